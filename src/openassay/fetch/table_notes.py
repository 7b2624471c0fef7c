"""What holds for all rows of a table: what it shows, on which scale its figures are, and whose they are."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from openassay.fetch.formats import is_incomplete
from openassay.text.sentences import is_table_row, split_sentences

# Captions: a row alone does not say what its table is about. `Research and development` is one thing in a statement of
# income and another in a table of stock-based pay.

_MAX_CAPTION = 95  # characters
_MIN_CAPTION = 40  # what a cut leaves at least
_MAX_BLANKS = 2  # that may part a table from what introduces it

_BE = r"(?:is|are|was|were|has been|have been)"
_REPORT_VERB = (
    r"(?:also )?(?:summari[sz]ed|shown|presented|set forth|detailed|provided|reflected|disclosed|listed|described)"
)
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_SPAN = r"(?:periods?|months?|quarters?|years?|weeks?)"

_UNIT_NOTE = re.compile(
    r"\s*\((?:[^()]*\b(?:thousands|millions|billions|percentages?|unaudited)\b[^()]*)\)", re.IGNORECASE
)
_WHOLE_NOTE = re.compile(r"\([^()]*\)|(?:[\w$€£.]+ ){0,2}in (?:thousands|millions|billions)\b.*", re.IGNORECASE)
_LEADS_IN = re.compile(
    rf"\b(?:following tables?|tables? below|as follows|of the following|the following {_BE}|"
    rf"{_BE} {_REPORT_VERB} (?:below|in the following|in the table))\b|:$",
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
    rf"^(?P<subject>.+?),? (?:(?:{_BE} )?(?:{_REPORT_VERB} )?(?:as "
    rf"follows|in the following tables?|in the tables? below)|"
    rf"{_BE} {_REPORT_VERB} below|(?:consist(?:s|ed)?|{_BE} compris?ed|{_BE} composed) of(?: the following)?|"
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
_NUMBERED = re.compile(r"^(?:Note \d+[A-Z]?\s*[.:—\u2013-]|\d{1,2}[.)] )\s*", re.IGNORECASE)
_TABLE_NUMBER = re.compile(r"Table \d+(?:\.\d+)*[A-Z]?\s*[.:|—\u2013-]\s*(?=\w)", re.IGNORECASE)
NUMBER_MARKS = re.compile(r"(?:\s*\(\d{1,2}\))+$")
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


def find_caption(above: Sequence[str]) -> str:
    """Return what the lines above the headings of a table say it shows, or nothing when they do not introduce it."""
    # The lines up to the last one that is no note on units; none when it is far above the table.
    end, blanks, note = len(above), 0, ""
    for number in range(len(above) - 1, -1, -1):
        note = f"{above[number]} {note}".strip()
        if above[number] and note.endswith(")") and "(" not in note:
            continue  # it began further up
        if note and not _WHOLE_NOTE.fullmatch(note):
            break
        blanks += not above[number]
        end, note = number, ""
    lines = list(above[:end]) if blanks <= _MAX_BLANKS else []
    if not lines:
        return ""
    # The last lines down from a blank line or a title.
    first = len(lines) - 1
    while first > 0 and lines[first - 1] and not (_is_title(lines[first - 1]) and lines[first][0].isupper()):
        first -= 1
    paragraph = _UNIT_NOTE.sub("", " ".join(lines[first:]))
    if numbered := _TABLE_NUMBER.match(paragraph):
        return shorten_caption(next((piece.text for piece in split_sentences(paragraph, numbered.end())), ""))
    pieces = split_sentences(paragraph)
    while len(pieces) > 1 and pieces[-2].text.endswith(("U.S.", "U.K.")):
        pieces.pop()  # `versus the U.S. Dollar` is one sentence more often than two
    sentence = paragraph[pieces[-1].start :].strip() if pieces else ""
    if _LEADS_IN.search(sentence) and sentence[0].isupper():
        text = _ASIDE.sub("", sentence.rstrip(":. "))
        shown = _TABLE_SHOWS.sub("", text)
        if shown == text:
            found = _INCLUDES.match(text) or _IS_AS_FOLLOWS.match(text)
            shown = found["subject"] if found else text
        return shorten_caption(_ARTICLE.sub("", _WHEN.sub("", _WHEN_FIRST.sub("", shown))))
    is_apart = len(lines) == 1 or not lines[-2] or lines[-2].endswith(".") or _is_title(lines[-2])
    if not is_apart or not _is_title(lines[-1]) or _BOILERPLATE.search(lines[-1]):
        return ""
    return shorten_caption(_NUMBERED.sub("", _UNIT_NOTE.sub("", lines[-1])))


def _is_title(line: str) -> bool:
    text = _UNIT_NOTE.sub("", line)
    words = _WORD.findall(text)
    if not words or len(text) > _MAX_CAPTION or text.rstrip("”\"’'").endswith((".", ";", ":")):
        return False
    return not text[0].islower() and not is_incomplete(text) and all(word[0].isupper() for word in words)


def shorten_caption(text: str) -> str:
    """Shorten a caption, cut where a phrase ends; a semicolon would end the cell of a row."""
    text = re.split(r"; |: | — ", " ".join(text.split()))[0]
    if len(text) > _MAX_CAPTION:
        text = text[: _MAX_CAPTION + 1].rsplit(" ", 1)[0]
        joints = [found.start() for found in _JOINT.finditer(text) if found.start() >= _MIN_CAPTION]
        text = text[: joints[-1]] if joints else text
        text = _DANGLING.sub("", text)
    text = _OPENED.sub("", text).strip(" ,:;.")
    return text if {word.lower() for word in _WORD.findall(text)} - _SAYS_NOTHING else ""


# Scales (`in millions`), as captions state them: never guessed, never for rows they exclude.

_SCALE_NOTE = re.compile(r"\(([^()]{4,200})\)")
_STATED = re.compile(
    r"(?:unaudited[,;]?\s+)?(?:(?P<subject>[\w$€£.’'-]+(?: [\w$€£.’'-]+){0,3})\s+)?"
    r"in\s+(?P<scale>thousands|millions|billions)"
    r"(?:\s+of\s+(?:(?:U\.?S\.?\s+)?(?:dollars|euros?|pounds|yen)|(?:US)?[$€£¥]))?(?P<rest>[,;].*|\s+(?:and|except|unless)\b.*)?",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:[\w$€£.]+ ){0,2}in (?:thousands|millions|billions)(?:,? except [^()]+)?", re.IGNORECASE)
# `€m`, `$'000`, `RMB’Million`, `$ million` where the labels have their heading.
_SHORT_UNIT = re.compile(
    r"\(?(?:in |all figures in )?(?:(?:US|U\.S\.|A|C|S|HK|NZ)? ?[$€£¥]|USD|EUR|GBP|RMB|CHF) ?['’‘]?"
    r"(?:000s?|mm?|mn|bn|thousands?|millions?|billions?)(?:, except [^()]{3,60})?\)?|"
    r"\(?in (?:thousand|million|billion)\)?",
    re.IGNORECASE,
)
_ANY_AMOUNT = re.compile(
    r"(?:all |dollar |tabular )?amounts(?: are)?(?: expressed)?|figures|(?:u\.?s\.? )?dollars?|usd|"
    r"(?:u\.?s\.? ?|[acs]|hk|nz)?\$|€|£|¥|euros?|eur|pounds|gbp|yen|rmb|chf",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]{4,}")
_SCALES = re.compile(r"\b(?:thousands|millions|billions)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<!\bU\.S)(?<!\bInc)(?<!\bCorp)(?<!\bCo)(?<!\bLtd)[.;]$", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:noted|indicated|otherwise|specified|stated)\b", re.IGNORECASE)
_SHARES = re.compile(r"\bshares?\b|\bbasic\b|\bdiluted\b|\bpar value\b", re.IGNORECASE)
_COUNTS = re.compile(r"\bper\b|\bnumber of\b|\byears\b(?! ended)", re.IGNORECASE)
COUNTED = re.compile(
    r"\bper[ -]|%|\bpercent|\bratio\b|\bnumber of\b|\bheadcount\b|\bemployees\b|\bEPS\b|\bbasis points\b|"
    r"\((?:in )?(?:years|months|days|units|thousands|millions|billions|shares)\b",
    re.IGNORECASE,
)
_HAS_OWN_UNIT = re.compile(r"%|[a-z]|^[$€£()\s—\u2013*-]*$", re.IGNORECASE)
_FILLERS = frozenset("amount amounts data information number which reflected thousands millions except other".split())


class TableScale(NamedTuple):
    words: str
    subject: str = ""
    exceptions: frozenset[str] | None = None  # words of what the caption excludes; None when it excludes nothing
    note: str = ""  # the caption itself, where it excludes something

    def holds_for(self, label: str, heading: str, values: Sequence[str]) -> bool:
        """Tell whether the figures of a row are on this scale, by its label and the heading of its group."""
        text = f"{heading} {label}"
        if not label or COUNTED.search(text) or all(_HAS_OWN_UNIT.search(value) for value in values):
            return False
        if self.subject and self.subject not in label.casefold():
            return False
        return self.exceptions is None or not (_SHARES.search(text) or self.exceptions & _stems(text))


def is_unit_note(text: str) -> bool:
    return any(pattern.fullmatch(text.strip()) for pattern in (_WHOLE_NOTE, _SHORT_UNIT, _BARE))


def find_scale(lines: Sequence[str]) -> TableScale | None:
    """Return the scale of the nearest caption; a sentence that ends between it and the table means there is none."""
    if lines and _SHORT_UNIT.fullmatch(lines[-1]):
        return TableScale(lines[-1].strip("()[] "), exceptions=frozenset())
    text = ""
    for line in reversed(lines):
        if _SENTENCE_END.search(line):
            return None
        text = f"{line} {text}"
        notes = [note for note in _SCALE_NOTE.finditer(text) if _STATED.fullmatch(note[1].strip())]
        if notes:
            return _scale_from_note(notes[-1][1], text[notes[-1].end() :])
        if _BARE.fullmatch(line):
            return _scale_from_note(line, text[len(line) :])
    return None


def _scale_from_note(note: str, below: str) -> TableScale | None:
    """Parse a note; columns of counts, or with units of their own, leave a table without a common scale."""
    found = None if are_counts(below) else _STATED.fullmatch(note.strip())
    if found is None:
        return None
    rest, subject = found["rest"] or "", found["subject"] or ""
    if _VAGUE.search(rest) or (_SCALES.search(rest) and not re.search("share|except", rest, re.IGNORECASE)):
        return None
    return TableScale(
        words=f"in {found['scale'].lower()}",
        subject="" if _ANY_AMOUNT.fullmatch(subject) else subject.casefold(),
        exceptions=_stems(rest) if re.search("share|except", rest, re.IGNORECASE) else None,
        note=note.strip() if rest else "",
    )


def are_counts(heads: str) -> bool:
    return bool(_SHARES.search(heads) or _SCALES.search(heads) or _COUNTS.search(heads))


def _stems(text: str) -> frozenset[str]:
    words = {word for word in _WORDS.findall(text.casefold()) if word not in _FILLERS}
    return frozenset(word.removesuffix("s") for word in words)


# Whose figures they are: a company that files a report names itself on the first page, as forms ask for. Else it is the
# one that a title begins or ends with, or that stands alone on one of the first lines; one that is only spoken of in a
# sentence is not taken for it.

_CHARTER = re.compile(r"\(\s*exact name of (?:the )?(?:registrant|issuer|company)\b", re.IGNORECASE)
_FORM = (
    r"(?:Inc|Incorporated|Corp|Corporation|Ltd|Limited|LLC|L\.L\.C|L\.P|LP|plc|PLC|Co|AG|SE|N\.V|NV|S\.A|SA|GmbH|"
    r"KGaA|AB|ASA|Oyj|S\.p\.A|SpA|INC|CORP|CORPORATION|LTD|LIMITED)\b\.?"
)
_COMPANY = rf"[A-Z0-9][\w&.'’-]*(?:,? (?:[A-Z0-9&][\w&.'’-]*|of|and|the|de)){{0,6}}?,? {_FORM}"
_COMPANY_LINE = re.compile(rf"({_COMPANY})(?: (?:and|AND) (?:its |Its )?(?:[Ss]ubsidiaries|SUBSIDIARIES))?")
_ANY_COMPANY = re.compile(rf"\b{_COMPANY}")
_IN_TITLE = re.compile(rf"(?:^|[|:\u2013—-] )({_COMPANY})(?![\w.])")
_FIRST_PAGE, _FIRST_LINES, _MAX_COMPANY, _MAX_TITLE = 6_000, 12, 80, 300  # lines, and characters of the others


def find_filer(text: str) -> str:
    """Return the company that files a document, as the form names it."""
    page = text[:_FIRST_PAGE]
    charter = _CHARTER.search(page)
    above = [line.strip() for line in page[: charter.start()].split("\n") if line.strip()] if charter else []
    return above[-1] if above and len(above[-1]) <= _MAX_COMPANY else ""


def find_company(title: str, text: str) -> str:
    """Return the company that a document is of or about; nothing where that is in doubt."""
    title = title[:_MAX_TITLE]
    if filer := find_filer(text):
        return filer
    if len(set(_ANY_COMPANY.findall(title))) > 1:
        return ""
    if named := _IN_TITLE.search(title):
        return named[1]
    lines = [line.strip() for line in text[:_FIRST_PAGE].split("\n") if line.strip()][:_FIRST_LINES]
    alone = (_COMPANY_LINE.fullmatch(line) for line in lines if len(line) <= _MAX_COMPANY)
    return next((found[1] for found in alone if found), "")


def add_company(text: str, company: str) -> str:
    """Let each row of a table say whose figures it gives."""
    if not company:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if "; " in line and company not in line and is_table_row(line):
            lines[number] = f"{line}; Company: {company}"
    return "\n".join(lines)
