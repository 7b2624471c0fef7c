"""Phrases of a text that later words may stand for: names, titles in quotation marks, places, times, nouns."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from assay.text.names import names
from assay.text.words import IRREGULAR, STOP_WORDS, fold

_QUOTED = re.compile(r"[\"“]([^\"“”]{2,80}?)[,.]?[\"”]")
_YEAR = r"(?:1[5-9]|20)\d{2}"
_TIME = re.compile(rf"\b{_YEAR}s?(?:\s*(?:-|–|to)\s*(?:{_YEAR}|\d{{2}}|present))?")
_PLACE = re.compile(r"\b(?:in|at|to|near|from)\s+(?:the\s+)?$")
_BESIDE = re.compile(r"\b(?:in|at|to|near|from|by|with|via|for|of|on|against|under|than|as)\s+(?:the\s+)?$", re.I)
_MONTHS = frozenset(
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday".split()
)
# Verbs of asking and doing that open what is left of a question once its small words are gone.
_VERBS = frozenset(
    "happen happens happened mean means meant know want need think say says find see use using work works go going "
    "take takes get getting start started keep put let look looking try explain describe compare list name summarize "
    "show provide define elaborate clarify talking speaking considered called play plays live lives cost costs help "
    "helps cause causes affect affects increase decrease win release released become change changed".split()
)
# Verbs that say no more than that something is, or comes to be: "How did the Hubble tension arise?"
HAPPENING = frozenset(
    "arise arises arose appear appears begin begins come comes compare develop develops differ emerge emerges end ends "
    "evolve evolves exist exists fare form forms function functions go happen happens last matter mean occur occurs "
    "operate operates originate originates perform performs start starts unfold work works".split()
)
# Verbs that may as well be nouns: "climate change".
_NOUNS_TOO = frozenset("change work works help cost costs play plays use release start look increase decrease".split())
_DO = re.compile(r"\b(?:do|does|did|will|would|can|could|should|to)\b", re.I)
# What something is found to be: "Is ibuprofen safe?"
_JUDGED = frozenset(
    "safe unsafe legal illegal good bad better worse dangerous harmful effective true real healthy".split()
)
_BE = frozenset("is are was were be".split())
_AUXILIARIES = _BE | frozenset("do does did has have had can could will would should may might must".split())
_ABOUT = frozenset("about of explain describe define research investigate".split())
_LATELY = frozenset("today tomorrow yesterday now lately instead too first".split())
_CLAUSES = frozenset("how why when where if that whether because while as and".split())
# Initials that name an office or a figure, not somebody or something.
_INITIALS = frozenset("CEO CFO COO CTO CIO IPO EPS ETF ROI GDP R&D AGM FAQ PE P/E ESG HQ".split())
_CHUNK = re.compile(r"[^\W_]+(?:[-'’.&+/][^\W_]+)*|[^\w\s]", re.UNICODE)


class Named(NamedTuple):
    """A name and how it stands in its text."""

    text: str
    start: int
    quoted: bool = False
    place: bool = False  # after "in", "at", "to"
    beside: bool = False  # after a preposition: seldom what the sentence is about


def proper(text: str) -> list[str]:
    """Names in a text, without months, offices and words that may be capitalised only for standing first."""
    straight = text.replace("’", "'")
    return [name for name in names(straight) if not _is_none(name, straight)]


def _is_none(name: str, text: str) -> bool:
    if name in _INITIALS or fold(name.split()[0]) in _MONTHS or not any(map(str.isalpha, name)):
        return True
    return text.startswith(name) and " " not in name and not name.isupper() and text.strip(" ?!.,") != name


def with_noun(name: str, text: str) -> str:
    """ "The Hubble tension" is more than Hubble; in "did the Fed raise rates" it is the Fed that is spoken of."""
    said = re.search(rf"(?<!\w)(the )?{re.escape(name)} ([a-z][a-z-]{{2,}})(?:\s+([a-z]+)|(?!\w))", text)
    if " " in name or not said or not _may_be_noun(said[2]):
        return name
    first, last = ["", "", *map(fold, text[: said.start()].split())][-2:]
    after = said[3] or ""
    if after in HAPPENING or after in _AUXILIARIES or after.endswith("ed"):
        return f"{name} {said[2]}"
    asked_after = last in _BE and first in ("what", "who", "which")
    if last in _CLAUSES or (last in _AUXILIARIES and not asked_after):
        return name
    return f"{name} {said[2]}" if said[1] or (not after and (asked_after or last in _ABOUT)) else name


def _may_be_noun(word: str) -> bool:
    other = word in STOP_WORDS or word in _VERBS or word in IRREGULAR or word in HAPPENING or word in _LATELY
    return not other and not word.endswith(("ed", "ing", "ly"))


def named(text: str) -> list[Named]:
    """Names and quoted titles in order, with how they stand."""
    found = [Named(match[1], match.start(1), quoted=True) for match in _QUOTED.finditer(text) if match[1][:1].isupper()]
    straight = text.replace("’", "'")
    for name in proper(text):
        start = straight.find(name)
        if not any(other.start <= start < other.start + len(other.text) for other in found):
            before = straight[:start]
            found.append(Named(name, start, place=bool(_PLACE.search(before)), beside=bool(_BESIDE.search(before))))
    return sorted(found, key=lambda one: one.start)


def listed(names: Sequence[str], joint: str = "and") -> str:
    """ "Apple, Tesla and Microsoft"."""
    return f" {joint} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def times(text: str) -> list[str]:
    return [match.group() for match in _TIME.finditer(text)]


def is_person(name: str) -> bool:
    """Whether a name looks like a person's: two to four capitalised words and nothing else."""
    parts = name.split()
    return 2 <= len(parts) <= 4 and all(re.fullmatch(r"[A-Z][\w'’.-]*", part) for part in parts) and parts[0] != "The"


def nouns(question: str) -> list[str]:
    """Runs of words that carry meaning, without the verbs at their ends: what a question may be about, in order."""
    runs: list[list[str]] = [[]]
    for token in _CHUNK.findall(question):
        plain = fold(token).removesuffix("'s")
        if plain == "of" and runs[-1] and runs[-1][-1][-1].isalnum():
            runs[-1].append(token)
        elif not token[0].isalnum() or plain in STOP_WORDS or "'" in plain:
            runs.append([])
        else:
            runs[-1].append(token)
    verbs = _VERBS if _DO.search(question) else _VERBS - _NOUNS_TOO
    return [" ".join(bare) for run in runs if (bare := _without_verbs(run, verbs))]


def _without_verbs(run: list[str], last: frozenset[str]) -> list[str]:
    while run and (fold(run[0]) in _VERBS or fold(run[0]) == "of"):
        run = run[1:]
    while len(run) > 1 and (
        fold(run[-1]) in last | _JUDGED | {"of"} or fold(run[-1]) in IRREGULAR or run[-1].endswith(("ed", "ly"))
    ):
        run = run[:-1]
    return run if not (len(run) == 1 and (fold(run[0]) in IRREGULAR or len(run[0]) == 1)) else []
