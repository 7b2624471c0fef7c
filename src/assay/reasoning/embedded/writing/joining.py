"""Joining: statements one after the other as prose, with words between them that add no fact."""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from assay.model.claim import Claim
from assay.reasoning.embedded.claiming import wording
from assay.reasoning.embedded.writing.comparison import Sides, side
from assay.reasoning.embedded.writing.matter import CAVEAT, follows, kind
from assay.reasoning.embedded.writing.voice import Voice, allowed
from assay.reasoning.protocol import DraftSentence
from assay.text.names import names
from assay.text.negation import opposed
from assay.text.overlap import jaccard
from assay.text.relations import measure, relate, years
from assay.text.sentences import is_row, is_statement, sentences
from assay.text.words import fold, stems

CONTRAST, LATER, BESIDES = "By contrast, ", "Later, ", "In addition, "
APART = 2  # years from which on "later" is worth saying
SHARED = 2  # stems that two statements have, of one matter
SHORTEST, LONGEST = 6, 45  # words of a statement told in the words of another source
OTHER = 0.9  # two wordings more alike than this are one

_OPENERS = frozenset(
    "the a an this these those its their his her some many most several one two three four five".split()
)
_LEANING = re.compile(
    r"^(?:it|they|he|she|this|these|those|that|its|their|his|her|such|here|there|we|our|i|you|both|so|as such|"
    r"for example|for instance|the (?:former|latter|same|two|other)|then|another|also|only|even)\b",
    re.I,
)
# A source's own joint, which `wording` has taken away, is true where its neighbour stands before it again.
_OWN_JOINT = re.compile(
    r"^(However|Moreover|Furthermore|In addition|Additionally|Meanwhile|Nevertheless|Nonetheless|By contrast|"
    r"In contrast|Similarly|Likewise|As a result|Consequently|Therefore|Thus)\b,?\s+"
)


class Joints(NamedTuple):
    """What is known about the statements that are joined."""

    voice: Voice
    banned: Collection[str] = ()
    sides: Sides | None = None
    lower: frozenset[str] = frozenset()  # words that stand in small letters somewhere: no names


def said(claim: Claim, joint: str = "", *, text: str = "", opens: bool = False) -> DraftSentence:
    """`text`: the words of another of its sources."""
    text = text or claim.text
    text = f"{joint}{lowered(text)}" if joint else text
    return DraftSentence(text=text, claims=(claim.id,), opens=opens)


def paragraph(claims: Sequence[Claim], joints: Joints) -> list[DraftSentence]:
    told: list[DraftSentence] = []
    used: set[str] = set()
    for at, claim in enumerate(claims):
        joint = _joint(claims[at - 1], claim, joints, used, len(claims)) if at else ""
        used.add(joint)
        told.append(said(claim, joint, opens=not at))
    return told


def _joint(before: Claim, claim: Claim, joints: Joints, used: Collection[str], length: int) -> str:
    """At most one of a kind in a paragraph; none where the statement opens with words of its own that join."""
    own = _own_joint(claim, before)
    joint = own or (_reasoned(before, claim, joints, length) if joints.voice.joints else "")
    fits = joint and joint not in used and can_follow(claim.text, joints.lower) and allowed(joint, joints.banned)
    return joint if fits else ""


def _own_joint(claim: Claim, before: Claim) -> str:
    for span in claim.spans if follows(claim, before) else ():
        found = _OWN_JOINT.match(span.quote)
        if found and wording(span.quote) == claim.text:
            return f"{found[1]}, "
    return ""


def _reasoned(before: Claim, claim: Claim, joints: Joints, length: int) -> str:
    if _contrasts(before, claim, joints.sides):
        return CONTRAST
    if _is_later(before, claim):
        return LATER
    one_matter = len(set(stems(before.text)) & set(stems(claim.text))) >= SHARED
    plain = CAVEAT not in (kind(before), kind(claim)) and not is_row(before.text)
    return BESIDES if length > 2 and one_matter and plain and not opposed(before.text, claim.text) else ""


def _contrasts(before: Claim, claim: Claim, sides: Sides | None) -> bool:
    """Opposites in one wording, or other figures of one measure for the two sides of a comparison."""
    if relate(before.text, claim.text) == "disagree":
        return True
    if sides is None or {side(before, sides), side(claim, sides)} != {0, 1}:
        return False
    a, b = measure(before.text), measure(claim.text)
    return a is not None and b is not None and a.unit == b.unit and a.value != b.value


def _is_later(before: Claim, claim: Claim) -> bool:
    """Figures of one measure, each of one year."""
    a, b, x, y = measure(before.text), measure(claim.text), years(before.text), years(claim.text)
    if a is None or b is None or a.unit != b.unit or len(x) != 1 or len(y) != 1:
        return False
    return min(y) - max(x) >= APART and bool(set(a.matter) & set(b.matter))


def can_follow(text: str, lower: Collection[str]) -> bool:
    """Whether a word may stand before the statement: what opens it is an article, a name or a known common word."""
    first = text.split(" ", 1)[0]
    return not is_row(text) and (fold(first) in _OPENERS or first in lower or _is_name(text, first))


def lowered(text: str) -> str:
    """The statement in the middle of a sentence. Names keep their capitals."""
    first = text.split(" ", 1)[0]
    return text if _is_name(text, first) and fold(first) not in _OPENERS else f"{text[:1].lower()}{text[1:]}"


def _is_name(text: str, first: str) -> bool:
    found = names(text)
    return bool(found) and text.startswith(found[0]) and (len(found[0].split()) > 1 or not first[1:].islower())


def common_words(claims: Sequence[Claim]) -> frozenset[str]:
    """Words that open a statement and stand in small letters in another, so that they are no names."""
    small = {word.strip(",;:.()") for claim in claims for word in claim.text.split() if word[:1].islower()}
    firsts = {claim.text.split(" ", 1)[0] for claim in claims}
    return frozenset(first for first in firsts if first.lower() in small and fold(first) not in _ADVERBIAL)


# "In addition, in 2018 ..." reads badly.
_ADVERBIAL = frozenset(
    "in on at by for from with after before during since until while when where if as although though despite because "
    "according but and or however under over within among between to not".split()
)


def in_other_words(claim: Claim, besides: Collection[str] = ()) -> str | None:
    """The statement as another of its sources puts it, so that it can be told a second time without repeating it."""
    for span in claim.spans:
        text = wording(span.quote)
        fits = SHORTEST <= len(text.split()) <= LONGEST and is_statement(text) and len(sentences(text)) == 1
        if text in besides:
            continue
        if fits and not _LEANING.match(text) and not is_row(text) and _retells(text, claim.text):
            return text
    return None


def _retells(text: str, statement: str) -> bool:
    return jaccard(text, statement) < OTHER and relate(text, statement) == "same"
