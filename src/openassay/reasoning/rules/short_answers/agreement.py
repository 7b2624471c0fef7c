"""Whether two sources that answer one question agree, and if not, whether they speak of the same thing."""

import re
from functools import lru_cache
from typing import NamedTuple

from openassay.reasoning.rules.short_answers.candidates import NAME, find_capital_runs
from openassay.reasoning.rules.short_answers.question import (
    EXAMPLES_BY_KIND,
    MEDIA,
    OCCUPATIONS,
    SPORTS,
    AnswerSpec,
    definitions_differ,
    find_definition,
    word_pattern,
)
from openassay.text.words import fold, stems, words

ALIKE = 0.75  # of the words around two answers: one sentence with another value put in
AHEAD = 2  # words ahead of a name that may be part of it: Lieutenant General
PHRASES = 10  # three words in a row each
COPY_SHARE = 0.3  # of a text: of 390 documents on different things of one name 4 share that much, of 69 altered ones 38
_PART = re.compile(r"\d{3,4}|\d{1,2}|[A-Z][a-z]{2}")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_FULL_DATE = re.compile(rf"\b[0-3]?\d (?:{_MONTHS}),? \d{{4}}|\b(?:{_MONTHS}) [0-3]?\d ?, \d{{4}}")
_VISITED = re.compile(r"\b(?:Retrieved|Archived|[Aa]ccessed|original)(?: on)? [\w ,]{5,20}")
_BRACKET = re.compile(r" ?\( ?((?!born|b\.|[^()]*\d{3}[^()]*\d{3})[^():\"“]{2,50}?) ?\)")
_WHERE = re.compile(r" ?, ([A-Z][\w-]*(?: [A-Z][\w-]*){0,2})")
_TITLES = "band singer county township city district state emperor king sir lord saint american british"
_KINDS = frozenset(stems(" ".join((*MEDIA, *SPORTS, *OCCUPATIONS, _TITLES))))


class AnswerReading(NamedTuple):
    """What one document answers, and the words it stands in."""

    document: str
    claim: str
    text: str
    quote: str
    around: str  # everything quoted of the document
    score: float


def agree(wanted: AnswerSpec, left: str, right: str) -> bool:
    a, b = fold(left), fold(right)
    if a == b:
        return True
    if wanted.kind == "date":
        # The less exact of two dates may be part of the other: 1856 and June 1856.
        p, q = ({part.lower() for part in _PART.findall(text)} for text in (left, right))
        years = {part for part in p if len(part) > 2 and part.isdigit()} & {part for part in q if part.isdigit()}
        return bool(years) and (p <= q or q <= p)
    if wanted.kind == "number":
        return _find_figures(left) == _find_figures(right) != frozenset()
    own = set(stems(wanted.subject))
    x, y = set(stems(left)) - own, set(stems(right)) - own
    if wanted.kind in ("name", "place"):
        opens = wanted.kind == "name" and a.split()[:2] == b.split()[:2]  # what follows a name may run into it
        return bool(x and y) and (x <= y or y <= x or opens)
    if shown := EXAMPLES_BY_KIND.get(wanted.noun) or wanted.words:
        # Football and footballer, hockey and ice hockey; of several words half must agree.
        ours, theirs = _find_hits(shown, left), _find_hits(shown, right)
        shared = sum(any(one in other or other in one for other in theirs) for one in ours)
        return shared > 0 and shared * 2 >= min(len(ours), len(theirs))
    return bool(x & y) and (x <= y or y <= x or len(x & y) * 2 >= len(x | y))


def _find_hits(known: tuple[str, ...], text: str) -> set[str]:
    return {fold(hit).removesuffix(" party") for hit in word_pattern(known).findall(text)}


def _find_figures(text: str) -> frozenset[str]:
    return frozenset(re.sub(r"[^\d.]", "", figure) for figure in re.findall(r"\d[\d,.]*\d|\d", text))


def is_same_thing(wanted: AnswerSpec, left: AnswerReading, right: AnswerReading) -> bool | None:
    """Whether two sources speak of one thing: None where nothing tells. One text with another value put in does; of
    things with one name, what stands beside the name differs."""
    # 18 December 1868 and 18 December 1888: nobody shares two parts of a date by chance.
    one, other = (frozenset(_PART.findall(reading.text)) for reading in (left, right))
    altered = wanted.kind == "date" and len(one) == len(other) == 3 and len(one & other) == 2
    # Of a copy a share stands in the other text; a phrase or two is what statements on like things have in common.
    x, y = (_trigrams(reading.around.replace(reading.text, " ")) for reading in (left, right))
    if altered or (len(x & y) >= PHRASES and len(x & y) / min(len(x), len(y)) >= COPY_SHARE):
        return True
    # A day, two exact figures or three names in common, besides the answers: of 574 pairs of documents on different
    # things of one name 5 have that, of 243 with an altered answer 45.
    (days, figures, named), (days_b, figures_b, named_b) = (
        _extract_details(reading.around.replace(left.text, " ").replace(right.text, " ")) for reading in (left, right)
    )
    subject = set(stems(wanted.subject))
    shared = [name for name in named & named_b if not subject & set(stems(name))]
    if days & days_b or len(figures & figures_b) >= 2 or len(shared) >= 3:
        return True
    # Fully the same beside the name is one thing; each with something of its own are two, as a film and an album.
    p, q = find_qualifiers(wanted, left.around), find_qualifiers(wanted, right.around)
    own, others = p - _KINDS, q - _KINDS
    if p and q and ((own - others and others - own) or (not own and not others and not p & q)):
        return False
    if own and p == q:
        return True
    defined = [find_definition(wanted.subject, reading.around, reading.text) for reading in (left, right)]
    if definitions_differ(*defined):
        return False
    a, b = (set(stems(reading.quote)) - set(stems(reading.text)) for reading in (left, right))
    return True if subject <= a & b and len(a & b) >= ALIKE * len(a | b) else None


@lru_cache(maxsize=256)
def _extract_details(text: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    plain = _VISITED.sub(" ", text)
    days = frozenset(fold(found.group()).replace(" ,", ",") for found in _FULL_DATE.finditer(plain))
    figures = frozenset(re.findall(r"\b\d{1,3}(?:,\d{3})+\b|\b\d+\.\d+\b", plain))
    named = frozenset(fold(found) for found in NAME.findall(plain) if len(found.split()) >= 2)
    return days, figures, named


@lru_cache(maxsize=256)
def _trigrams(text: str) -> frozenset[tuple[str, ...]]:
    said = words(text)
    return frozenset(zip(said, said[1:], said[2:], strict=False))


@lru_cache(maxsize=256)
def find_qualifiers(wanted: AnswerSpec, text: str) -> frozenset[str]:
    """Stems of what stands beside the subject's name and tells it from others of that name."""
    own = frozenset(stems(wanted.subject))
    # A name in any case, since small words part it: "Stranger than Fiction".
    name = re.compile(r"[ _]".join(map(re.escape, wanted.subject.split())), re.I)
    for found in (*name.finditer(text), *NAME.finditer(text)) if own else ():
        if told := _qualifier_stems(own, text, found.end(), found.group()):
            return told
    return frozenset()


def _qualifier_stems(own: frozenset[str], text: str, end: int, run: str) -> frozenset[str]:
    said = {word for word in stems(run) if len(word) > 1 and "." not in word}  # without initials and addresses
    if not (own <= said or (len(own) > 1 and len(own & said) >= 2)):
        return frozenset()
    matches = (_BRACKET.match(text, end), _WHERE.match(text, end))
    return frozenset(said.union(*(stems(match[1]) for match in matches if match))) - own


@lru_cache(maxsize=256)
def find_full_name(wanted: AnswerSpec, text: str) -> str:
    """The subject's name as a text has it where that says more than the question: with a first name, a place, or what
    stands in brackets. Empty where it says no more."""
    own = frozenset(stems(wanted.subject))
    for start, end in find_capital_runs(text, NAME) if own else ():
        run = text[start:end]
        at = run.find(wanted.subject)
        if at > 0 and len(run[:at].split()) > AHEAD:  # a heading: "Dictionary Quotes Map Maurice Roche"
            run = run[at:]
        if _qualifier_stems(own, text, end, run):
            bracket, place = _BRACKET.match(text, end), _WHERE.match(text, end)
            # A title may run into the sentence after it: "Blackshear M. Bryan Lieutenant General Blackshear".
            again = run.find(run.split(" ", 1)[0], 1)
            repeats = again > 0 and set(stems(wanted.subject)) & set(stems(run[:again]))
            name = run[:again].rstrip() if repeats else run
            return name + (f" ({bracket[1]})" if bracket else f", {place[1]}" if place else "")
    return ""
