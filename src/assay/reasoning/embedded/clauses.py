"""A compound sentence as the statements it is made of. Only clauses with a subject and a verb of their own are parted,
only where nothing reaches over both but what can be said of each: when, and according to whom."""

import re

from assay.text.negation import hedges, negations
from assay.text.quantities import quantities
from assay.text.sentences import is_row
from assay.text.words import fold

# Said once for all clauses, so it is said with each.
_AHEAD = re.compile(
    r"^(?:According to [^,;]{2,60}, |(?:In|During|By|Since|As of|At|On|For|Through) (?:[^,;]{2,40}), )+|"
    r"^[A-Z][\w'’.& -]{1,50} (?:said|says|reported|announced|stated|found|estimated)(?: on [A-Z][a-z]+)? that "
)
# What may bind clauses together: one is the condition, the reason, the time or the content of the other.
_BINDING = re.compile(
    r"\b(?:that|which|who|whom|whose|where|whether|if|when|while|as|because|since|although|though|unless|until|so|than|"
    r"after|before|once|due|despite|compared|versus|respectively|both|either|neither|each|combined|together|said|says|"
    r"say|told|added|announced|reported|believes?|claims?|thinks?|argues?|estimates?|according|not only|instead|"
    r"would|could|should|must)\b|[\"“”()]",
    re.I,
)
_JOINT = re.compile(r"; (?:and |but )?|,? and |, but |, ")
_VERB = re.compile(
    r"(?:is|are|was|were|has|have|had|rose|fell|grew|increased|decreased|declined|dropped|gained|lost|climbed|jumped|"
    r"slipped|surged|doubled|halved|shrank|reached|totaled|totalled|remained|stood|covered|covers|became|began|ended|"
    r"won|opened|closed|contains|holds|employs|produced|produces|sold|cost|costs|amounted|accounted|came|went)",
)
_LEANING = frozenset(
    "it its he his she her they their them this that these those we our i you there such one ones others both some "
    "many most more all none".split()
)
_JOINING = frozenset(
    "of in on at by for with from into over under about and or the a an its their his her per via among".split()
)
_NAME = re.compile(r"(?<=\w )(?:[A-Z]|[a-z]+[A-Z])|^\S*[a-z’']\S*[A-Z]|^[A-Z]\S*['’]s\b|^[A-Z]{2}")
LONGEST_SUBJECT = 7  # words
FEWEST = 3  # words of a statement


def clauses(sentence: str) -> list[str]:
    """The statements of a sentence, each a sentence of the same words; the sentence itself where it has but one or
    nobody could be sure."""
    ahead = _AHEAD.match(sentence)
    said = ahead.group() if ahead else ""
    body = sentence[len(said) :].rstrip(".")
    if is_row(sentence) or _BINDING.search(body) or hedges(sentence):
        return [sentence]
    parts = _parted(body)
    return [_told(said, part) for part in parts] if len(parts) > 1 and _alike(parts) else [sentence]


def _parted(body: str) -> list[str]:
    """Cut at the joints after which a clause begins; a joint inside a list or a phrase is none."""
    cuts, begin = [], 0
    for joint in _JOINT.finditer(body):
        if _is_clause(body[begin : joint.start()]) and _is_clause(body[joint.end() :]):
            cuts.append(body[begin : joint.start()])
            begin = joint.end()
    return [*cuts, body[begin:]] if begin else [body]


def _is_clause(text: str) -> bool:
    """A subject that names what it speaks of, then a verb; both before the next joint."""
    found = text.split()
    head = found[: LONGEST_SUBJECT + 1]
    at = next((index for index, word in enumerate(head) if _VERB.fullmatch(word)), 0)
    if not at or len(found) < FEWEST or any(word.endswith((",", ";", ":")) for word in head[:at]):
        return False
    subject = [fold(word) for word in head[:at]]
    return not _LEANING & set(subject) and "and" not in subject and subject[-1] not in _JOINING


def _alike(parts: list[str]) -> bool:
    """Either every clause tells its time or none does ("rose 5% and fell 3% in 2019" may be one year for both), and
    none leaves it to the first to name its subject ("Apple's sales rose and profit fell"). A denial may reach over
    what follows it."""
    timed = {any(quantity.when for quantity in quantities(part)) for part in parts}
    named = [bool(_NAME.search(part)) or (at > 0 and part[:1].isupper()) for at, part in enumerate(parts)]
    return len(timed) == 1 and (all(named) or not named[0]) and not any(negations(part) for part in parts)


def _told(said: str, part: str) -> str:
    first = part.split(" ", 1)[0]
    shown = part[:1].upper() + part[1:] if not said and first.islower() else part
    if said and first in ("The", "A", "An"):
        shown = part[:1].lower() + part[1:]
    return f"{said}{shown.strip(' ,')}."
