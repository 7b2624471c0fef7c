"""What a table is about, in words of the sentence or the title right above it: a row alone does not say.

`Research and development` is one thing in a statement of income and another in a table of stock-based pay.
"""

import re
from collections.abc import Sequence

from assay.harvest.reflow import is_open
from assay.text.sentences import sentences

_LONGEST = 95  # characters
_LEAST = 40  # what a cut leaves at least
_BLANKS = 2  # that may part a table from what introduces it

_BE = r"(?:is|are|was|were|has been|have been)"
_TOLD = r"(?:also )?(?:summari[sz]ed|shown|presented|set forth|detailed|provided|reflected|disclosed|listed|described)"
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_SPAN = r"(?:periods?|months?|quarters?|years?|weeks?)"

_NOTE = re.compile(r"\s*\((?:[^()]*\b(?:thousands|millions|billions|percentages?|unaudited)\b[^()]*)\)", re.IGNORECASE)
_WHOLE_NOTE = re.compile(r"\([^()]*\)|(?:[\w$€£.]+ ){0,2}in (?:thousands|millions|billions)\b.*", re.IGNORECASE)
_LEADS_IN = re.compile(
    rf"\b(?:following tables?|tables? below|as follows|of the following|the following {_BE}|"
    rf"{_BE} {_TOLD} (?:below|in the following|in the table))\b|:$",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    rf",? (?:for|as of|at) (?:the|each of the) (?:dates?|{_SPAN}) (?:indicated|presented|shown),?", re.IGNORECASE
)
_TABLE_SHOWS = re.compile(
    r"^.*?\b(?:the )?(?:following|tables? below|(?:following|accompanying) (?:tables?|schedules?|chart|information))"
    r"(?: below)? (?:also )?(?:shows?|presents?|summari[sz]es?|sets? forth|provides?|reflects?|details?|contains?|"
    r"includes?|discloses?|lists?|illustrates?|describes?|displays?|outlines?|reconciles?|is|are)\b[ ,]*",
    re.IGNORECASE,
)
_INCLUDES = re.compile(r"^[^,;:]*? includes? (?P<subject>.+?),? as follows\b.*$", re.IGNORECASE)
_IS_AS_FOLLOWS = re.compile(
    rf"^(?P<subject>.+?),? (?:(?:{_BE} )?(?:{_TOLD} )?(?:as follows|in the following tables?|in the tables? below)|"
    rf"{_BE} {_TOLD} below|(?:consist(?:s|ed)?|{_BE} compris?ed|{_BE} composed) of(?: the following)?|"
    rf"compris(?:es?|ed) the following|includes?d? the following)\b.*$",
    re.IGNORECASE,
)
_WHEN_FIRST = re.compile(rf"^(?:As of|At|For|During|In) .*?\b(?:{_SPAN}|(?:19|20)\d\d)(?:,? respectively)?, (?=[a-z])")
_WHEN = re.compile(
    rf",? (?:(?:for|during|over|in (?=the|each|fiscal)) ?(?:[\w’'-]+ ){{0,7}}?{_SPAN}\b|"
    rf"(?:as of|at) (?:the )?(?:{_MONTH}|dates?|end)\b).*$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"^(?:(?:the Company[’']s|the|an?|our|its|certain) (?=\S))*"
    r"(?:information (?:about|on|regarding|related to|relating to|pertaining to) (?:the |our )?)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"^Note \d+[A-Z]?\s*[.:—\u2013-]\s*", re.IGNORECASE)
_TABLE_NUMBER = re.compile(r"Table \d+(?:\.\d+)*[A-Z]?\s*[.:|—\u2013-]\s*(?=\w)", re.IGNORECASE)
_MARKS = re.compile(r"(?:\s*\(\d{1,2}\))+$")
_JOINT = re.compile(
    r",|,? (?:of|in|on|to|for|by|from|with|within|as|at|and|or|that|which|whether|including|based|under|during)\b",
    re.IGNORECASE,
)
_DANGLING = re.compile(r"(?:[,:]|\s(?:the|a|an|our|its|and|or|of|in|to|from|changes|\w+ed))+$", re.IGNORECASE)
_OPENED = re.compile(r"[,\s]*[(“\"][^)”\"]*$")
_WORD = re.compile(r"[^\W\d_]{4,}")
_SAYS_NOTHING = frozenset(
    "detail details information result results amount amounts following table tables component components summary "
    "unaudited ended ending fiscal three nine twelve period periods month months quarter quarters year years week "
    f"weeks {_MONTH.replace('|', ' ').lower()}".split()
)
_BOILERPLATE = re.compile(
    r"^(?:item|part)\s+[\divx]|\baccompanying notes|^notes to\b|table of contents|\bform 10-|\bpage \d|"
    r"\b(?:inc|corp|corporation|ltd|llc|plc|subsidiaries)\.?$",
    re.IGNORECASE,
)


def gist(above: Sequence[str]) -> str:
    """What the lines above the headings of a table say it shows, or nothing when they do not introduce it."""
    lines = _without_notes(above)
    if not lines:
        return ""
    paragraph = _NOTE.sub("", _paragraph(lines))
    if numbered := _TABLE_NUMBER.match(paragraph):
        return _short(next((piece.text for piece in sentences(paragraph, numbered.end())), ""))
    sentence = _last_sentence(paragraph)
    if _LEADS_IN.search(sentence) and sentence[0].isupper():
        return _short(_subject(sentence.rstrip(":. ")))
    is_apart = len(lines) == 1 or not lines[-2] or lines[-2].endswith(".") or _is_title(lines[-2])
    if not is_apart or not _is_title(lines[-1]) or _BOILERPLATE.search(lines[-1]):
        return ""
    return _short(_NUMBERED.sub("", _NOTE.sub("", lines[-1])))


def of_section(heading: str) -> str:
    """The heading of all rows of a table (`Other Assets:`) as its caption."""
    return _short(_MARKS.sub("", heading.rstrip(": ")))


def _without_notes(above: Sequence[str]) -> list[str]:
    """Up to the last line that is no note on units; none when it is far above the table."""
    end, blanks, note = len(above), 0, ""
    for number in range(len(above) - 1, -1, -1):
        note = f"{above[number]} {note}".strip()
        if above[number] and note.endswith(")") and "(" not in note:
            continue  # it began further up
        if note and not _WHOLE_NOTE.fullmatch(note):
            break
        blanks += not above[number]
        end, note = number, ""
    return list(above[:end]) if blanks <= _BLANKS else []


def _paragraph(lines: Sequence[str]) -> str:
    """The last lines down from a blank line or a title."""
    first = len(lines) - 1
    while first > 0 and lines[first - 1] and not (_is_title(lines[first - 1]) and lines[first][0].isupper()):
        first -= 1
    return " ".join(lines[first:])


def _last_sentence(text: str) -> str:
    pieces = sentences(text)
    while len(pieces) > 1 and pieces[-2].text.endswith(("U.S.", "U.K.")):
        pieces.pop()  # `versus the U.S. Dollar` is one sentence more often than two
    return text[pieces[-1].start :].strip() if pieces else ""


def _is_title(line: str) -> bool:
    text = _NOTE.sub("", line)
    words = _WORD.findall(text)
    if not words or len(text) > _LONGEST or text.rstrip("”\"’'").endswith((".", ";", ":")):
        return False
    return not text[0].islower() and not is_open(text) and all(word[0].isupper() for word in words)


def _subject(sentence: str) -> str:
    text = _ASIDE.sub("", sentence)
    shown = _TABLE_SHOWS.sub("", text)
    if shown == text:
        found = _INCLUDES.match(text) or _IS_AS_FOLLOWS.match(text)
        shown = found["subject"] if found else text
    return _ARTICLE.sub("", _WHEN.sub("", _WHEN_FIRST.sub("", shown)))


def _short(text: str) -> str:
    """At most so long, cut where a phrase ends; a semicolon would end the cell of a row."""
    text = re.split(r"; |: | — ", " ".join(text.split()))[0]
    if len(text) > _LONGEST:
        text = text[: _LONGEST + 1].rsplit(" ", 1)[0]
        joints = [found.start() for found in _JOINT.finditer(text) if found.start() >= _LEAST]
        text = text[: joints[-1]] if joints else text
        text = _DANGLING.sub("", text)
    text = _OPENED.sub("", text).strip(" ,:;.")
    return text if {word.lower() for word in _WORD.findall(text)} - _SAYS_NOTHING else ""
