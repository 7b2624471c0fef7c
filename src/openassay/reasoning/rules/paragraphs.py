"""Paragraphs: statements on one matter together, the general before the particular, figures in order of time."""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from openassay.models.evidence import Claim, Mark
from openassay.models.plan import Style
from openassay.reasoning.base import DraftSentence
from openassay.reasoning.rules.analyse import to_report_sentence
from openassay.text.negation import are_opposite
from openassay.text.quantities import find_quantities
from openassay.text.relations import find_main_figure, find_years, relate
from openassay.text.sentences import is_statement, is_table_row, split_sentences
from openassay.text.words import find_names, fold, jaccard, stems

# The three styles: what a report calls its parts, what it puts first and how long its paragraphs are.


class WritingStyle(NamedTuple):
    abstract: str
    conclusion: str
    paragraph: int  # sentences
    joints: bool = True  # whether sentences are joined by light words
    figures_first: bool = False
    brief: bool = False  # the surest and shortest statements, point by point, with the conclusion beside them


WRITING_STYLES: dict[Style, WritingStyle] = {
    "academic": WritingStyle("Abstract", "Conclusion", paragraph=5),
    "technical": WritingStyle(
        "Summary of findings", "Conclusion and limits", paragraph=4, joints=False, figures_first=True
    ),
    "executive": WritingStyle("In brief", "How sure this is", paragraph=3, brief=True),
}
LONG = 30  # words from which on a sentence is long for somebody in a hurry
SURER, ROW, WORDY = 0.1, 0.2, 0.15  # of relevance


def score_worth(claim: Claim, voice: WritingStyle) -> float:
    """Relevance, a little more for being borne out, less for a row of a table, which reads badly."""
    value = claim.relevance - ROW * is_table_row(claim.text)
    if claim.mark is Mark.CORROBORATED:
        value += SURER * (3 if voice.brief else 1)
    return value - WORDY * (voice.brief and len(claim.text.split()) > LONG)


def has_figure(claim: Claim) -> bool:
    """Dates alone are none."""
    return any(quantity.kind not in ("year", "date", "decade", "time") for quantity in find_quantities(claim.text))


def is_free_of(text: str, banned: Collection[str]) -> bool:
    """Whether words of our own are free of those a person does not want to read."""
    return not any(re.search(rf"\b{re.escape(word)}", text, re.I) for word in banned)


# What statements have in common, and what kind of statement each is: what paragraphs are made by.

DEFINITION, GENERAL, CAUSE, FIGURE, CAVEAT = range(5)  # in the order they are told
COMMON = 0.6  # a stem that more of the statements have tells none of them apart
NEAR, NEXT = 400, 3  # characters between two passages of one document that belong together, or follow one another
NEAR_BONUS, NEXT_BONUS = 0.15, 0.6

_DEFINITION = re.compile(
    r"^(?:(?:the|an?)\s)?(?:\S+\s){1,6}?(?:is|are|was|were)\s(?:an?|the|one of)\s(?!result|cause|consequence)|"
    r"\b(?:known as|called|refers? to|defined as|consists? of|stands? for)\b",
    re.I,
)
_CAUSE = re.compile(
    r"\b(?:because|due to|caus\w+|reasons?|owing to|as a result|result(?:s|ed)? (?:in|from)|driven by|led to|"
    r"explain\w*|attribut\w+|thanks to|stem\w* from)\b",
    re.I,
)
_CAVEAT = re.compile(
    r"\b(?:however|although|despite|nevertheless|uncertain\w*|disputed?|unclear|unknown|limit(?:s|ed|ations?)|cannot|"
    r"not yet|remains? to be|open question|critics?|caution\w*|may not|might not|no evidence|unless|except)\b",
    re.I,
)


def classify_claim(claim: Claim) -> int:
    if _CAVEAT.search(claim.text):
        return CAVEAT
    if _CAUSE.search(claim.text):
        return CAUSE
    if has_figure(claim):
        return FIGURE
    return DEFINITION if _DEFINITION.search(claim.text) else GENERAL


class ClaimSimilarity:
    """How much two statements of one section have in common; what they all have counts for nothing."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._stems = {claim.id: frozenset(stems(claim.text)) for claim in claims}
        count = Counter(stem for found in self._stems.values() for stem in found)
        total = len(claims)
        self._weight = {
            stem: math.log(1 + total / seen) if seen <= max(2, COMMON * total) else 0.0 for stem, seen in count.items()
        }

    def score(self, left: Claim, right: Claim) -> float:
        a, b = self._stems[left.id], self._stems[right.id]
        whole = math.sqrt(self._sum_weights(a) * self._sum_weights(b))
        alike = self._sum_weights(a & b) / whole if whole else 0.0
        # What one author said in one breath belongs together.
        if follows(right, left) or follows(left, right):
            return alike + NEXT_BONUS
        pairs = ((x, y) for x in left.spans for y in right.spans if x.document == y.document)
        gaps = [max(x.start, y.start) - min(x.end, y.end) for x, y in pairs]
        return alike + (NEAR_BONUS if gaps and min(gaps) < NEAR else 0.0)

    def _sum_weights(self, found: frozenset[str]) -> float:
        return sum(self._weight[stem] for stem in found)


def follows(claim: Claim, other: Claim) -> bool:
    """Whether its passage comes directly after the other's, with nothing between them."""
    return any(a.document == b.document and 0 <= a.start - b.end <= NEXT for a in claim.spans for b in other.spans)


# Comparisons and rankings: what is set against what, matter by matter, and which way a list is sorted.

PAIR_SIMILARITY = 0.1  # from here on a statement on one side answers one on the other

_COMPARED = (
    re.compile(r"\b(?:compare|comparing|comparison (?:of|between))\s+(?P<a>.+?)\s+"
               r"(?:and|with|to|versus|vs\.?|against)\s+(?P<b>[^?.,;:]+)", re.I),
    re.compile(r"\bdifferences? between\s+(?P<a>.+?)\s+and\s+(?P<b>[^?.,;:]+)", re.I),
    re.compile(r"\bhow (?:do|does|did)\s+(?P<a>.+?)\s+(?:and|differ from|compare (?:with|to))\s+(?P<b>[^?.,;:]+?)"
               r"(?:\s+(?:compare|differ)\b|$|\?)", re.I),
    re.compile(r"(?P<a>[^?.,;:]+?)\s+(?:versus|vs\.?)\s+(?P<b>[^?.,;:]+)", re.I),
)  # fmt: skip
_ASKING = re.compile(
    r"^(?:(?:please|which|what|is|are|better|the|both)\s+)+|\s+(?:in terms of|with regard to|by|on|for)\s.+$", re.I
)
_MOST = re.compile(r"\b(?:rank\w*|top (?:\d+|ten|five)|largest|biggest|highest|tallest|longest|most \w+|"
                   r"best[- ]selling|fastest|leading)\b", re.I)  # fmt: skip
_LEAST = re.compile(r"\b(?:smallest|lowest|shortest|cheapest|least \w+|slowest|fewest)\b", re.I)

Sides = tuple[frozenset[str], frozenset[str]]  # the stems each side is called by


def find_ranking(asked: str) -> Literal["ascending", "descending"] | None:
    if _LEAST.search(asked):
        return "ascending"
    return "descending" if _MOST.search(asked) else None


def find_sides(goal: str) -> Sides | None:
    """What a question sets against one another; what both are called tells neither."""
    for pattern in _COMPARED:
        if found := pattern.search(goal):
            a, b = (frozenset(stems(_ASKING.sub("", found[side].strip()))) for side in ("a", "b"))
            return (a - b, b - a) if a - b and b - a else None
    return None


def side_of(claim: Claim, sides: Sides) -> int | None:
    """The one side a statement speaks of; None where it speaks of both or of neither."""
    said = set(stems(claim.text))
    on = [bool(said & names) for names in sides]
    return on.index(True) if sum(on) == 1 else None


def pair_sides(claims: Sequence[Claim], sides: Sides, most: int) -> list[list[Claim]]:
    """Statements on both first, then each statement on one side with the nearest on the other."""
    both = [claim for claim in claims if all(set(stems(claim.text)) & names for names in sides)]
    groups = [both[at : at + most] for at in range(0, len(both), most)]
    alike = ClaimSimilarity(claims)
    here, there = ([claim for claim in claims if side_of(claim, sides) == number] for number in (0, 1))
    for claim in here:
        nearest = max(there, key=lambda other: alike.score(claim, other), default=None)
        if nearest is not None and alike.score(claim, nearest) >= PAIR_SIMILARITY:
            there.remove(nearest)
            groups.append([claim, nearest])
    return groups


# Joining: statements one after the other as prose, with words between them that add no fact.

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
# "In addition, in 2018 ..." reads badly.
_ADVERBIAL = frozenset(
    "in on at by for from with after before during since until while when where if as although though despite because "
    "according but and or however under over within among between to not".split()
)
MATTER_SIMILARITY = 0.12  # from here on two statements are of one matter
UNDATED = 9999
Paragraph = list[Claim]

_CHANGE = re.compile(r"\b(?:chang|grow|grew|rose|fell|trend|over time|evol|histor|develop)", re.I)
_WHY = re.compile(r"\b(?:why|cause|reason|explanation|drove|drives)", re.I)


def asks_for_development(goal: str) -> bool:
    return bool(_CHANGE.search(goal))


class JoinContext(NamedTuple):
    """What is known about the statements that are joined."""

    voice: WritingStyle
    banned: Collection[str] = ()
    sides: Sides | None = None
    lower: frozenset[str] = frozenset()  # words that stand in small letters somewhere: no names


def to_sentence(claim: Claim, joint: str = "", *, text: str = "", opens: bool = False) -> DraftSentence:
    """`text`: the words of another of its sources."""
    text = text or claim.text
    if joint:
        first = text.split(" ", 1)[0]
        named = _is_name(text, first) and fold(first) not in _OPENERS  # names keep their capitals
        text = f"{joint}{text if named else text[:1].lower() + text[1:]}"
    return DraftSentence(text=text, claims=(claim.id,), opens=opens)


def join_paragraph(claims: Sequence[Claim], joints: JoinContext) -> list[DraftSentence]:
    told: list[DraftSentence] = []
    used: set[str] = set()
    for at, claim in enumerate(claims):
        joint = ""
        if at:
            before = claims[at - 1]
            own = (
                f"{found[1]}, "
                for span in (claim.spans if follows(claim, before) else ())
                if (found := _OWN_JOINT.match(span.quote)) and to_report_sentence(span.quote) == claim.text
            )
            joint = next(own, "") or (_infer_joint(before, claim, joints, len(claims)) if joints.voice.joints else "")
            # At most one of a kind in a paragraph; none where the statement opens with words of its own that join.
            fits = joint not in used and can_follow(claim.text, joints.lower) and is_free_of(joint, joints.banned)
            joint = joint if fits else ""
        used.add(joint)
        told.append(to_sentence(claim, joint, opens=not at))
    return told


def _infer_joint(before: Claim, claim: Claim, joints: JoinContext, length: int) -> str:
    """Contrast for opposites and for figures that differ, later for figures of one measure and of later years."""
    if relate(before.text, claim.text) == "disagree":
        return CONTRAST
    a, b = find_main_figure(before.text), find_main_figure(claim.text)
    if a is not None and b is not None and a.unit == b.unit:
        sides = joints.sides
        if sides and {side_of(before, sides), side_of(claim, sides)} == {0, 1} and a.value != b.value:
            return CONTRAST
        x, y = find_years(before.text), find_years(claim.text)
        if len(x) == len(y) == 1 and min(y) - max(x) >= APART and set(a.matter) & set(b.matter):
            return LATER
    one_matter = len(set(stems(before.text)) & set(stems(claim.text))) >= SHARED
    plain = CAVEAT not in (classify_claim(before), classify_claim(claim)) and not is_table_row(before.text)
    return BESIDES if length > 2 and one_matter and plain and not are_opposite(before.text, claim.text) else ""


def can_follow(text: str, lower: Collection[str]) -> bool:
    """Whether a word may stand before the statement: what opens it is an article, a name or a known common word."""
    first = text.split(" ", 1)[0]
    return not is_table_row(text) and (fold(first) in _OPENERS or first in lower or _is_name(text, first))


def _is_name(text: str, first: str) -> bool:
    found = find_names(text)
    return bool(found) and text.startswith(found[0]) and (len(found[0].split()) > 1 or not first[1:].islower())


def find_common_words(claims: Sequence[Claim]) -> frozenset[str]:
    """Words that open a statement and stand in small letters in another, so that they are no names."""
    small = {word.strip(",;:.()") for claim in claims for word in claim.text.split() if word[:1].islower()}
    firsts = {claim.text.split(" ", 1)[0] for claim in claims}
    return frozenset(first for first in firsts if first.lower() in small and fold(first) not in _ADVERBIAL)


def rephrase(claim: Claim, besides: Collection[str] = ()) -> str | None:
    """The statement as another of its sources puts it, so that it can be told a second time without repeating it."""
    for span in claim.spans:
        text = to_report_sentence(span.quote)
        if text in besides or _LEANING.match(text) or is_table_row(text):
            continue
        fits = SHORTEST <= len(text.split()) <= LONGEST and is_statement(text) and len(split_sentences(text)) == 1
        if fits and jaccard(text, claim.text) < OTHER and relate(text, claim.text) == "same":
            return text
    return None


def build_paragraphs(title: str, claims: Sequence[Claim], voice: WritingStyle, goal: str) -> list[Paragraph]:
    """`title` is the section's, `goal` the question the whole report answers."""
    if voice.figures_first:
        groups = [[c for c in claims if has_figure(c)], [c for c in claims if not has_figure(c)]]
        plain = voice._replace(figures_first=False)
        return [paragraph for group in groups for paragraph in build_paragraphs(title, group, plain, goal)]
    # What is ranked or compared comes first, in its own order.
    first: list[Paragraph] = []
    if order := find_ranking(f"{goal} {title}"):
        # Statements with a figure in the unit most of them use, by its size.
        measured = {claim.id: found for claim in claims if (found := find_main_figure(claim.text)) is not None}
        units = [found.unit for found in measured.values()]
        common, sign = max(units, key=units.count, default=""), -1 if order == "descending" else 1
        chosen = [claim for claim in claims if claim.id in measured and measured[claim.id].unit == common]
        ranked = sorted(chosen, key=lambda claim: measured[claim.id].value * sign) if len(chosen) > 1 else []
        first = [ranked[at : at + voice.paragraph] for at in range(0, len(ranked), voice.paragraph)]
    elif sides := find_sides(goal):
        first = pair_sides(claims, sides, voice.paragraph)
    told = {claim.id for paragraph in first for claim in paragraph}
    others = [claim for claim in claims if claim.id not in told]
    # Rows of tables come after the prose, each in a line of its own.
    rows = sorted((c for c in others if is_table_row(c.text)), key=lambda c: (max(find_years(c.text), default=0), c.id))
    claims = [claim for claim in others if not is_table_row(claim.text)]
    alike = ClaimSimilarity(claims)
    left = sorted(claims, key=lambda claim: (_kind_rank(claim, title), -score_worth(claim, voice), claim.id))
    made: list[Paragraph] = []
    while left:
        paragraph = [left.pop(0)]
        while left and len(paragraph) < voice.paragraph:
            nearest = max(left, key=lambda claim: _closeness(claim, paragraph, alike))
            if _closeness(nearest, paragraph, alike) < MATTER_SIMILARITY:
                break
            left.remove(nearest)
            paragraph.append(nearest)
        made.append(paragraph)
    # Statements that found no companion share paragraphs; caveats keep to themselves.
    gathered: list[Paragraph] = []
    alone: dict[bool, Paragraph] = {}
    for paragraph in made:
        caveat = classify_claim(paragraph[0]) == CAVEAT
        if len(paragraph) == 1 and caveat in alone and len(alone[caveat]) < voice.paragraph:
            alone[caveat] += paragraph
            continue
        gathered.append(paragraph)
        if len(paragraph) == 1:
            alone[caveat] = paragraph
    return [*first, *(_order_claims(title, paragraph, voice) for paragraph in gathered), *([row] for row in rows)]


def _closeness(claim: Claim, paragraph: Paragraph, alike: ClaimSimilarity) -> float:
    return sum(alike.score(claim, other) for other in paragraph) / len(paragraph)


def _kind_rank(claim: Claim, title: str) -> int:
    """Where a why is asked, the reasons come before what is generally known."""
    found = classify_claim(claim)
    swapped = {CAUSE: GENERAL, GENERAL: CAUSE} if _WHY.search(title) else {}
    return swapped.get(found, found)


def _order_claims(title: str, claims: Sequence[Claim], voice: WritingStyle) -> Paragraph:
    """A change is told in order of time; what follows another in its document follows it here."""

    def key(claim: Claim) -> tuple[int, int, float, str]:
        when = min(find_years(claim.text), default=UNDATED)
        in_time = _CHANGE.search(title) or classify_claim(claim) == FIGURE
        return (
            0 if _CHANGE.search(title) else _kind_rank(claim, title),
            when if in_time else 0,
            -score_worth(claim, voice),
            claim.id,
        )

    left = sorted(claims, key=key)
    told: Paragraph = []
    while left:
        told.append(left.pop(0))
        while successor := next((claim for claim in left if follows(claim, told[-1])), None):
            left.remove(successor)
            told.append(successor)
    return told
