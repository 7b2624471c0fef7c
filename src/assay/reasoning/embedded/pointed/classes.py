"""What somebody or something is: sports, professions, genres and the like, as a sentence says "X is a Y"."""

import re
from collections.abc import Iterator

from assay.reasoning.embedded.pointed.kinds import SHOWN_BY, TONGUES, said
from assay.reasoning.embedded.pointed.names import IN_BRACKETS, initials
from assay.reasoning.embedded.pointed.view import LONGEST, Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import stems

_PHRASE_END = re.compile(
    r" ?[,;:.!?()\[\]\"“”|]| ''| ``| (?:who|whom|which|that|where|when|directed|written|starring|based|released|by|"
    r"located|situated|published|produced|created|and (?:is|was|the|later|former)|known|from|during|since|after|before|"
    r"with|about|featuring|recorded|formed|founded|set|playing|played|is|was|has|had|on|at|as|born|between)\b"
)
_IS = re.compile(
    r"\b(?:is|was|are|were|became|remains)(?: (?:also|currently|best|primarily|perhaps|now|usually|generally|both))?"
    r"(?: known as)?(?: (?:a|an|the|one of the))?(?= )"
)
_NO_CLASS = re.compile(r"\b(?:stub|article|part of|series of|list|disambiguation|page|same|way|result|case)\b", re.I)
_TRAILING = re.compile(r"(?: (?:of|to|the|in|for|a|an|and|or|with|his|her|its|is|then|as|by|on|at))+$")


def classes(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    yield from _defined(wanted, read)
    yield from _opening(wanted, read)
    yield from _labelled(wanted, read)
    yield from _in_title(wanted, read)
    yield from _of_the_kind(wanted, read)
    yield from initials(wanted, read)
    if known := wanted.words or SHOWN_BY.get(wanted.noun):
        yield from _mentioned(wanted, said(known), read)


def _defined(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ "X is an English former footballer who ...": the phrase, or the word of the kind in it."""
    text = read.text
    for found in _IS.finditer(text):
        start = found.end() + 1
        stop = _PHRASE_END.search(text, start)
        phrase = _TRAILING.sub("", text[start : stop.start() if stop else len(text)].rstrip())
        article = found.group().endswith((" a", " an", " the"))
        fits = 1 <= len(phrase.split()) <= LONGEST and (article or said(TONGUES).match(phrase))
        if not fits or _NO_CLASS.search(phrase):
            continue
        score = 0.4 + 0.3 * read.named(found.start(), found.end()) + 2 * read.early(start)
        if not wanted.words:
            yield Stretch(start, start + len(phrase), min(1.0, score + _shown(wanted, phrase)))
        elif hit := said(wanted.words).search(text, start, start + len(phrase)):
            yield Stretch(*_whole(wanted, text, hit.start(), hit.end()), min(1.0, score + 0.2))


def _shown(wanted: Wanted, phrase: str) -> float:
    known = SHOWN_BY.get(wanted.noun)
    return 0.0 if known is None else 0.15 if said(known).search(phrase) else -0.3


_OPENING = re.compile(r"(?:^|[.] |\bas )[Aa]n? ((?:[\w-]+ ){0,4}[\w-]+)(?=,? (?:he|she|it|to|in|of|from)\b|,)")


def _opening(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ "A defender, he began": what somebody was, ahead of what he did; "elected as a Democrat"."""
    listed = wanted.words or SHOWN_BY.get(wanted.noun)
    if not listed:
        return
    for found in _OPENING.finditer(read.text):
        if hit := said(listed).search(read.text, found.start(1), found.end(1)):
            start, end = hit.span() if wanted.words else found.span(1)
            yield Stretch(start, end, 0.55 + 0.15 * read.named(start, end) + read.early(start))


def _mentioned(wanted: Wanted, listed: re.Pattern[str], read: Read) -> Iterator[Stretch]:
    own = set(stems(wanted.subject))
    for found in listed.finditer(read.text):
        start, end = _whole(wanted, read.text, found.start(), found.end())
        named = read.text[start].isupper() and set(stems(read.text[start:end])) <= own  # "A Single Man" is no single
        if named or (wanted.noun == "party" and read.text[start].islower()):
            continue
        near, cue = read.named(start, end), read.cued(start, end)
        yield Stretch(start, end, 0.1 + 0.3 * near + 0.25 * cue + read.early(start))


_RIGHT = re.compile(r"-language\b| (?:player|[Pp]arty|rider|riding|driver|driving|testing|runner|running)\b")
_LEFT = re.compile(r"(?:\b(?!The |A |An |In |He |She |His |Her )[A-Z][\w-]* )+$")


def _whole(wanted: Wanted, text: str, start: int, end: int) -> tuple[int, int]:
    """The name a listed word is part of: "Quebec Liberal Party", "snooker player"."""
    if wanted.noun == "party" and text[start].isupper() and (left := _LEFT.search(text[max(0, start - 30) : start])):
        start -= len(left.group()) if len(left.group().split()) <= 2 else 0
    right = _RIGHT.match(text, end)
    return start, right.end() if right else end


_LABELS = {"profession": "profession|occupation", "medium": "medium|format|media type"}
_VALUE = re.compile(r"[A-Z][\w/&-]*(?: [A-Z][\w/&-]*)?")
_LABEL_GAP = re.compile(r" ?(?:\( ?s ?\))? ?:? ?")


def _labelled(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ "Genre Dance", "Position(s): Defender": a label and its value, as in a table."""
    if not wanted.noun:
        return
    for found in re.finditer(rf"\b(?:{_LABELS.get(wanted.noun, re.escape(wanted.noun))})s?\b", read.text, re.I):
        gap = _LABEL_GAP.match(read.text, found.end())
        start = gap.end() if gap else found.end()
        value = _VALUE.match(read.text, start)
        if not value or not found.group()[:1].isupper():
            continue
        if not wanted.words:
            yield Stretch(start, value.end(), 0.6)
        elif hit := said(wanted.words).search(read.text, start, value.end()):
            yield Stretch(*_whole(wanted, read.text, hit.start(), hit.end()), 0.6)


def _of_the_kind(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ " "a Spanish Tropical format", "378th Fighter Squadron": words that end in what is asked for or go on from the
    name that is asked about."""
    if wanted.noun and not wanted.words:
        for found in re.finditer(rf"\b(?:an?|the) ((?:[\w/-]+ ){{1,4}}{re.escape(wanted.noun)})\b", read.text):
            yield Stretch(found.start(1), found.end(1), 0.72 + 0.3 * read.named(found.start(1), found.end(1)))
    if wanted.subject and wanted.near & {"unit", "institut", "organ", "squadron"}:
        more = r"((?:(?!The |It |He |In |A )[A-Z][\w-]* ?){1,4})"
        for found in re.finditer(rf"\b{re.escape(wanted.subject)} {more}", read.text):
            yield Stretch(found.start(), found.start() + len(found.group().rstrip()), 0.8 + read.early(found.start()))


def _in_title(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ "Tim Martin (American football)": what is in brackets after the subject's name."""
    for found in IN_BRACKETS.finditer(read.text):
        ahead = read.text[max(0, found.start() - 40) : found.start()]
        if not set(stems(wanted.subject)[-1:]) & set(stems(ahead)[-2:]) or re.search(r"\d{3}|born|^also|_", found[1]):
            continue
        if wanted.words:
            if hit := said(wanted.words).search(read.text, found.start(1), found.end(1)):
                yield Stretch(*_whole(wanted, read.text, hit.start(), hit.end()), 0.85)
        elif len(found[1].split()) <= 4 and found[1][:1].islower():
            yield Stretch(found.start(1), found.end(1), 0.6)
