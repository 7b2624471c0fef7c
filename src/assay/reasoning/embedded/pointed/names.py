"""Names that may be what a question wants: of people, works, lines, wars."""

import re
from collections.abc import Iterator
from itertools import zip_longest

from assay.reasoning.embedded.pointed.runs import NAME, apart_from, capitalised, without_nation
from assay.reasoning.embedded.pointed.view import Read, Stretch
from assay.reasoning.embedded.pointed.wanted import Wanted
from assay.text.words import fold, stem, stems

IN_BRACKETS = re.compile(r"\( ?([^()]{2,60}?) ?\)")

_DESCRIBES = re.compile(r" [a-z][a-z-]*(?: [a-z][a-z-]*){0,2} ")  # "the Tangut ruler Li Deming"
_IS = re.compile(r"(?:\b(?:is|was|are|were)|:) $")
_BY = re.compile(r"\b(?:by|son of|daughter of|father ,?|wife of|husband of|widow of|married)(?: the)?(?= )")
_BY_END = re.compile(
    r" ?[,;:.!?()\[\]\"“”|](?<!\b[A-Z]\.)| ''| ``| (?:in|on|at|for|from|with|that|which|who|whom|released|is|was|"
    r"featuring|as|to|after|under|through|about|into|while|when|starring|and|first|during|[12]\d{3})\b"
)
_DONE = re.compile(r"\w{3,}(?:ed|tten|wn|ught) ")
_BY_LONGEST = 90  # characters


def names(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    yield from _by(wanted, read)
    yield from _bracketed(wanted, read)
    yield from _called(wanted, read)
    yield from initials(wanted, read)
    text, own = read.text, set(stems(wanted.subject))
    runs = [apart_from(wanted.subject, text, *run) for run in capitalised(text, NAME)]
    runs = [run for run in runs if not set(stems(text[run[0] : run[1]])) <= own]
    for (start, end), follower in zip_longest(runs, runs[1:]):
        score = 0.55 * read.cued(start, end) + 0.12 * read.named(start, end)
        if follower and _DESCRIBES.fullmatch(text, end, follower[0]):
            score -= 0.15
        if _owns(wanted, read, end):
            score = max(score, 0.9)
        if _IS.search(text, max(0, start - 6), start) and read.cue_just_ahead(start, 4 + len(own)):
            score = max(score, 0.85)
        if _takes(wanted, read, end):
            score = max(score, 0.85)
        start, end, score = _of_the_kind(wanted, text, start, end, score)
        yield Stretch(start, end, min(1.0, score + read.early(start)))


def _owns(wanted: Wanted, read: Read, end: int) -> bool:
    """ "Joe Jackson's second album" """
    at = read.index(end)
    after = {word.stem for word in read.words[at : at + 4]}
    owned = re.compile(r" ?['’]s? ").match(read.text, end)
    return owned is not None and bool(after & (wanted.near | set(stems(wanted.subject))))


_TAKES = re.compile(r" (?:as|became|becomes|is|was)(?: (?:the|its|their|new|a|an))* ")


def _takes(wanted: Wanted, read: Read, end: int) -> bool:
    """ "appointed Marta Silva as chief executive", where an office is asked for"""
    office = wanted.near & _OFFICES
    taken = _TAKES.match(read.text, end) if office else None
    at = read.index(taken.end()) if taken else 0
    return taken is not None and bool(office & {word.stem for word in read.words[at : at + 2]})


_OFFICES = frozenset(map(stem, "ceo executive chairman chairwoman president mayor minister governor".split()))


def _of_the_kind(wanted: Wanted, text: str, start: int, end: int, score: float) -> tuple[int, int, float]:
    """ "Koltsevaya line" and "1982 Lebanon War", where a line or a conflict is asked for."""
    if not wanted.noun:
        return start, end, score
    if kind := re.compile(rf" {re.escape(wanted.noun)}\b").match(text, end):
        end, score = kind.end(), max(score, 0.85)
    if set(stems(text[start:end])[-2:]) & wanted.near:
        score = max(score, 0.8)
        start -= 5 if re.search(r"\b[12]\d{3} $", text[max(0, start - 6) : start]) else 0
    return start, end, score


def _by(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """ "directed by the Scottish author Muriel Spark": the first name of the phrase that does not only describe
    another, if a cue stands just ahead."""
    text, own = read.text, set(stems(wanted.subject))
    for found in _BY.finditer(text):
        stop = _BY_END.search(text, found.end())
        close = min(stop.start() if stop else len(text), found.end() + _BY_LONGEST)
        runs = [(found.end() + a, found.end() + b) for a, b in capitalised(text[found.end() : close], NAME)]
        while len(runs) > 1 and _DESCRIBES.fullmatch(text, runs[0][1], runs[1][0]):
            runs.pop(0)
        gap = _gap(wanted, read, found)
        if gap is not None and runs and not set(stems(text[runs[0][0] : runs[0][1]])) <= own:
            run = apart_from(wanted.subject, text, *without_nation(text, *runs[0]))
            yield Stretch(*run, min(1.0, 0.96 - 0.03 * gap + read.early(found.start())))


def _gap(wanted: Wanted, read: Read, by: re.Match[str]) -> int | None:
    """Words from a cue to "by"; None where there is none in the sentence. "Son of" is a cue by itself."""
    if {stem(fold(word)) for word in by.group().split()} & wanted.near:
        return 0
    at = read.index(by.start())
    if _other_done(wanted, read, at, by.start()):
        return None
    if at - 1 in read.subject and by.group().startswith("by"):
        return 2  # "The Grey Ferry by Ada Quill"
    gaps = [at - cue for cue in read.marks if 0 < at - cue <= 8]
    near = [gap for gap in gaps if not read.apart(read.words[at - gap].start, by.start())]
    return min(near, default=None) if by.group().startswith("by") else None


def _other_done(wanted: Wanted, read: Read, at: int, start: int) -> bool:
    """ "Scored by", where the director is asked for; "directed and written by" will do."""
    last = read.words[at - 1] if at else None
    if last is None or last.stem in wanted.near or not _DONE.fullmatch(read.text, last.start, start):
        return False
    joined = at > 2 and read.words[at - 2].stem == "and" and read.words[at - 3].stem in wanted.near
    return not joined


def _bracketed(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """What tells things of one name apart stands in brackets after it: "VII (Blitzen Trapper album)"."""
    for found in IN_BRACKETS.finditer(read.text) if wanted.subject else ():
        ahead = read.text[max(0, found.start() - len(wanted.subject) - 3) : found.start()]
        if fold(wanted.subject)[-12:] not in fold(ahead):
            continue
        inside, start = found[1], found.start(1)
        runs = [run for run in capitalised(inside, NAME) if run[0] == 0]
        tail = set(stems(inside[runs[0][1] :])) if runs else set()
        if runs and (tail & wanted.near or not tail):
            yield Stretch(start, start + runs[0][1], 0.88)


_CALLED = re.compile(
    r"\b(?:(?:commonly|also|formerly|now|today|originally|previously|historically) )?(?:known as|called|named|renamed|"
    r"written|(?:the )?modern(?:-day)?(?: (?:town|city|village|name)(?: of)?)?|present-day|stands for|"
    r"abbreviation (?:of|for))(?: (?:the|a|an))? "
)
_CALLED_END = re.compile(r" ?[,;:.()\[\]\"“”]| (?:or|and|is|was|in|on|by|at|that|which)\b")


def _called(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """What a thing is called, where its name is asked for; such a name may be written small."""
    if not wanted.near & {"name", "stand", "call"}:
        return
    for found in _CALLED.finditer(read.text):
        stop = _CALLED_END.search(read.text, found.end())
        end = stop.start() if stop else found.end()
        if 0 < len(read.text[found.end() : end].split()) <= 5:
            yield Stretch(found.end(), end, 0.6 + 0.25 * read.named(found.start(), found.end()))


def initials(wanted: Wanted, read: Read) -> Iterator[Stretch]:
    """What an abbreviation stands for: a name of which it has the initials."""
    short = wanted.subject.replace(".", "")
    if not (short.isupper() and short.isalpha() and 2 <= len(short) <= 7):
        return
    if wanted.asks & {"stand", "refer", "abbrevi", "mean"}:
        words = " ".join(rf"(?:(?:of|the|and|for|in|on) )?{letter}[\w’'-]*\.?" for letter in short)
        for found in re.finditer(rf"\b{words}", read.text):
            yield Stretch(found.start(), found.end(), 0.86)
