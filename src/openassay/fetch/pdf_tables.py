"""Tables among lines whose parts have positions on the page: rows stay whole and name their column headings.

A heading is bound to a figure only when every heading line above the table fits the columns by position; a
table with one that does not keeps plain rows. On twelve quarterly reports that binds 17 rows of 20.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from openassay.fetch.formats import is_incomplete
from openassay.text.sentences import split_sentences

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
_NUMBERED = re.compile(r"^Note \d+[A-Z]?\s*[.:—\u2013-]\s*", re.IGNORECASE)
_TABLE_NUMBER = re.compile(r"Table \d+(?:\.\d+)*[A-Z]?\s*[.:|—\u2013-]\s*(?=\w)", re.IGNORECASE)
_NUMBER_MARKS = re.compile(r"(?:\s*\(\d{1,2}\))+$")
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
        return _shorten(next((piece.text for piece in split_sentences(paragraph, numbered.end())), ""))
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
        return _shorten(_ARTICLE.sub("", _WHEN.sub("", _WHEN_FIRST.sub("", shown))))
    is_apart = len(lines) == 1 or not lines[-2] or lines[-2].endswith(".") or _is_title(lines[-2])
    if not is_apart or not _is_title(lines[-1]) or _BOILERPLATE.search(lines[-1]):
        return ""
    return _shorten(_NUMBERED.sub("", _UNIT_NOTE.sub("", lines[-1])))


def _is_title(line: str) -> bool:
    text = _UNIT_NOTE.sub("", line)
    words = _WORD.findall(text)
    if not words or len(text) > _MAX_CAPTION or text.rstrip("”\"’'").endswith((".", ";", ":")):
        return False
    return not text[0].islower() and not is_incomplete(text) and all(word[0].isupper() for word in words)


def _shorten(text: str) -> str:
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
    r"(?:\s+of\s+(?:U\.?S\.?\s+)?(?:dollars|euros?|pounds|yen))?(?P<rest>[,;].*|\s+(?:and|except|unless)\b.*)?",
    re.IGNORECASE,
)
_BARE = re.compile(r"(?:[\w$€£.]+ ){0,2}in (?:thousands|millions|billions)(?:,? except [^()]+)?", re.IGNORECASE)
_ANY_AMOUNT = re.compile(
    r"(?:all |dollar )?amounts(?: are)?|figures|(?:u\.?s\.? )?dollars?|usd|(?:us)?\$|€|£|euros?|eur|pounds|gbp|yen",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]{4,}")
_SCALES = re.compile(r"\b(?:thousands|millions|billions)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<!\bU\.S)(?<!\bInc)(?<!\bCorp)(?<!\bCo)(?<!\bLtd)[.;]$", re.IGNORECASE)
_VAGUE = re.compile(r"\b(?:noted|indicated|otherwise|specified|stated)\b", re.IGNORECASE)
_SHARES = re.compile(r"\bshares?\b|\bbasic\b|\bdiluted\b|\bpar value\b", re.IGNORECASE)
_COUNTS = re.compile(r"\bper\b|\bnumber of\b|\byears\b(?! ended)", re.IGNORECASE)
_COUNTED = re.compile(
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

    def holds_for(self, label: str, heading: str, values: Sequence[str]) -> bool:
        """Tell whether the figures of a row are on this scale, by its label and the heading of its group."""
        text = f"{heading} {label}"
        if not label or _COUNTED.search(text) or all(_HAS_OWN_UNIT.search(value) for value in values):
            return False
        if self.subject and self.subject not in label.casefold():
            return False
        return self.exceptions is None or not (_SHARES.search(text) or self.exceptions & _stems(text))


def find_scale(lines: Sequence[str]) -> TableScale | None:
    """Return the scale of the nearest caption; a sentence that ends between it and the table means there is none."""
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
    )


def are_counts(heads: str) -> bool:
    return bool(_SHARES.search(heads) or _SCALES.search(heads) or _COUNTS.search(heads))


def _stems(text: str) -> frozenset[str]:
    words = {word for word in _WORDS.findall(text.casefold()) if word not in _FILLERS}
    return frozenset(word.removesuffix("s") for word in words)


_VALUE = re.compile(
    r"[$€£]?\s*\(?\s*[$€£]?\s*(?:\d[\d,.]*(?<![,.])|[—\u2013-])\s*\)?\s*(?:%|pts?\.?|bps|x|years?|months?)?\s*"
    r"\)?|N/?M|[Nn]/?[Aa]|\*"
)
_CURRENCY = re.compile(r"[$€£]|\(?[$€£]\(?")
_TAIL = re.compile(r"\)?\s*%|\)")
_STRONG = re.compile(r"[,.$€£%()—\u2013]")
_MEASURED = re.compile(r"[$€£(]*\d+[.,]\d")
_PADDING = re.compile(r"\s+(?=[%)])|(?<=[$€£(])\s+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_GLUED = re.compile(r"[a-z]{2}[A-Z]")
_FOOTNOTE_MARKS = re.compile(r"(?<![$€£\s])(?<!\band)(?<!\bof)(?:\s*\(\d{1,2}\))+$")  # of footnotes
_RULE = re.compile(r"[\s_=-]{5,}")
_BRACKETS = re.compile(r"[()]")
_UNITS = re.compile(r"\(.*\)")
_MAX_HEAD_LINES = 5
_MAX_HEAD = 60  # characters; a longer line above a table is a sentence
_WIDE_GAP = 4  # letters
_CAPTION_LINES = 12
_MAX_LINES_BETWEEN = 3  # without figures (headings of sections, wrapped labels) that do not end a table


class PdfLine(NamedTuple):
    text: str
    is_row: bool = False


class PdfCell(NamedTuple):
    """A part of a line far from the next part, and its position, in any unit."""

    start: float
    end: float
    text: str

    @property
    def centre(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class PdfTableRow:
    indent: float
    label: str
    values: tuple[PdfCell, ...]


def _join_figures(line: Sequence[PdfCell]) -> list[PdfCell]:
    """Join a currency or per cent sign to its figure."""
    found: list[PdfCell] = []
    for cell in line:
        left = found[-1].text if found else ""
        if _CURRENCY.fullmatch(left) or (_TAIL.fullmatch(cell.text) and _VALUE.fullmatch(left)):
            found[-1] = PdfCell(found[-1].start, cell.end, found[-1].text + cell.text)
        else:
            found.append(cell)
    return found


def _parse_row(parts: Sequence[PdfCell]) -> PdfTableRow | None:
    """Parse a label and figures, or None: a line of justified prose has wide gaps too, but words after them."""
    first = 0 if parts and _VALUE.fullmatch(parts[0].text) else 1
    values = parts[first:]
    if not values or not all(_VALUE.fullmatch(cell.text) for cell in values):
        return None
    if first == 0 and (len(values) < 2 or all(_YEAR.fullmatch(cell.text) for cell in values)):
        return None
    if len(values) == 1 and not _STRONG.search(values[0].text):
        return None
    figures = tuple(cell._replace(text=_PADDING.sub("", cell.text)) for cell in values)
    return PdfTableRow(parts[0].start, parts[0].text if first else "", figures)


def rewrite_tables(page: Sequence[Sequence[PdfCell]]) -> Iterator[PdfLine]:
    """Yield the lines of one page with its tables written row by row."""
    lines = [_join_figures(line) for line in page]
    rows = [_parse_row(line) for line in lines]
    done, scale, caption = 0, None, ""
    for first, last in _find_tables(lines, rows):
        columns = _find_columns([found for found in rows[first : last + 1] if found])
        heads = _find_heads(lines, done, first, columns)
        names = _column_names([lines[number] for number in heads], columns)
        # The table begins with the line above its first row where that names a group of rows (`Net sales:`).
        above = [number for number in range(heads[-1] + 1 if heads else done, first) if lines[number]]
        parts = lines[above[-1]] if above else []
        if len(parts) == 1 and parts[0].text.endswith(":") and len(parts[0].text) < 60:
            first = above[-1]
        scale = _table_scale(lines, range(done, first), heads, columns, scale)
        # What introduces the table, or the one before when new column headings alone part the two.
        if not heads:
            caption = ""
        elif not done or any(number not in heads for number in range(done, first) if lines[number]):
            sections = [line for line in lines[heads[-1] + 1 : last + 1] if line and line[0].text.endswith(":")]
            if len(sections) == 1 and len(sections[0]) == 2 and _is_units(sections[0]):
                # The heading of all rows of a table (`Other Assets:`).
                caption = _shorten(_NUMBER_MARKS.sub("", sections[0][0].text.rstrip(": ")))
            else:
                caption = find_caption([_line_text(line) for line in lines[done : heads[0]]])
        top = heads[0] if heads and names else first
        yield from map(_to_plain_line, lines[done:top])
        # What stands between the headings and the first row, and to the left of the headings.
        for number in range(top, first) if names else ():
            if number not in heads:
                yield PdfLine(_line_text(lines[number]), is_row=True)
            else:
                yield from (PdfLine(cell.text) for cell in lines[number][:1] if cell.end < columns[0].start)
        yield from _PdfTable(columns, names, scale, caption).write_lines(
            lines[first : last + 1], rows[first : last + 1]
        )
        done = last + 1
    yield from map(_to_plain_line, lines[done:])


def _table_scale(
    lines: Sequence[Sequence[PdfCell]],
    above: range,
    heads: Sequence[int],
    columns: Sequence[PdfCell],
    previous: TableScale | None,
) -> TableScale | None:
    """Return the scale stated above the table, or of the table before when new column headings alone part the two."""
    filled = [number for number in above if lines[number]]
    over = [cell for number in heads for cell in lines[number] if cell.end >= columns[0].start]
    if are_counts(" ".join(cell.text for cell in over if not _UNITS.fullmatch(cell.text))):
        return None
    if above.start and set(filled) <= set(heads):
        return previous
    for line in (lines[number] for number in filled if heads and number > heads[0]):
        if len(columns) < 2 or not _is_units(line) or not are_counts(line[-1].text):
            continue
        owner, pitch = _find_column(line[-1], columns), _pitch(columns)
        is_over_all = _is_above(line[-1], columns, range(len(columns)), 1.25 * pitch)
        if owner is not None and not is_over_all and abs(columns[owner].centre - line[-1].centre) <= 0.25 * pitch:
            return None  # the unit of one column
    notes: list[str] = []
    for line in (lines[number] for number in filled[-_CAPTION_LINES:]):
        # Without the brackets of units that belong to a column, not to the table.
        labels = sum(1 for cell in line if columns and cell.end < columns[0].start)
        kept = len(line) if len(line) == 1 or labels == len(line) - 1 else labels
        cells = (cell.text if number < kept else _BRACKETS.sub("", cell.text) for number, cell in enumerate(line))
        notes.append(" ".join(cells))
    return find_scale(notes)


def _pitch(columns: Sequence[PdfCell]) -> float:
    return (columns[-1].centre - columns[0].centre) / (len(columns) - 1)


def _is_units(line: Sequence[PdfCell]) -> bool:
    return _UNITS.fullmatch(line[-1].text) is not None


def _to_plain_line(line: Sequence[PdfCell]) -> PdfLine:
    """Write a line of no table; parts far apart (a form, a table of words) are not prose that continues below."""
    text = _line_text(line)
    if _RULE.fullmatch(text):
        return PdfLine("")
    if len(line) < 2 or len(line[0].text) <= 8 or is_incomplete(text):
        return PdfLine(text)
    letter = (line[0].end - line[0].start) / len(line[0].text)
    return PdfLine(text, is_row=any(right.start - left.end > _WIDE_GAP * letter for left, right in pairwise(line)))


def _line_text(line: Sequence[PdfCell]) -> str:
    return " ".join(cell.text for cell in line)


def _find_tables(lines: Sequence[Sequence[PdfCell]], rows: Sequence[PdfTableRow | None]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for number, found in enumerate(rows):
        if found is None:
            continue
        # One table unless new column headings or a paragraph stand between two rows.
        between = [line for line in lines[last + 1 : number] if line]
        is_same = len(between) <= _MAX_LINES_BETWEEN and all(
            len(parts) == 1 and len(parts[0].text) < 120 for parts in between
        )
        if first >= 0 and not is_same:
            yield first, last
            first = -1
        first = number if first < 0 else first
        last = number
    if first >= 0:
        yield first, last


def _find_columns(rows: Sequence[PdfTableRow]) -> list[PdfCell]:
    """Return the extents of the columns, from rows with the usual number of figures; empty when they overlap."""
    usual = Counter(len(found.values) for found in rows).most_common(1)[0][0]
    full = [found.values for found in rows if len(found.values) == usual]
    columns = [
        PdfCell(min(cell.start for cell in column), max(cell.end for cell in column), "")
        for column in zip(*full, strict=True)
    ]
    apart = all(left.end < right.start for left, right in pairwise(columns))
    is_labelled = any(found.label for found in rows if len(found.values) == usual)
    return columns if apart and usual > 1 and is_labelled else []


def _find_heads(lines: Sequence[Sequence[PdfCell]], floor: int, first: int, columns: Sequence[PdfCell]) -> list[int]:
    """Return the numbers of the heading lines above the first row, top one first."""
    heads: list[int] = []
    labels = 0
    for number in range(first - 1, floor - 1, -1):
        parts = lines[number]
        if not parts:
            continue
        # All parts of a heading stand over the figures; the first may instead head the labels.
        slack = (columns[1].centre - columns[0].centre) / 2 if columns else 0.0
        right = [cell for cell in parts if columns and cell.start >= columns[0].start - slack]
        is_over = right == parts or (right and right == parts[1:] and parts[0].end < columns[0].start)
        # Cells of rows (`1,204`, `11.6 years`), not of headings (`2023`, `12 Months`).
        has_figure = any(
            len(cell.text) > _MAX_HEAD
            or _MEASURED.match(cell.text)
            or (_VALUE.fullmatch(cell.text) and not _YEAR.fullmatch(cell.text))
            for cell in parts
        )
        if not is_over or has_figure or len(heads) == _MAX_HEAD_LINES:
            if heads or labels == 2 or not columns or len(parts) > 1 or parts[0].end > columns[0].start:
                break
            labels += 1
            continue
        if not _is_units(parts):
            heads.insert(0, number)
        elif heads:
            break
    return heads


def _column_names(heads: Sequence[Sequence[PdfCell]], columns: Sequence[PdfCell]) -> list[str]:
    """Return one heading per column, or none at all when any line is in doubt."""
    names = [""] * len(columns)
    for parts in heads:
        right = [cell for cell in parts if cell.end >= columns[0].start]
        if any(_GLUED.search(cell.text) for cell in right):
            return []
        # One heading for each column, or each over an equal share of them.
        pitch = _pitch(columns)
        share, rest = divmod(len(columns), len(right)) if right else (0, 1)
        groups = [(cell, range(index * share, (index + 1) * share)) for index, cell in enumerate(right)]
        owners: dict[int, PdfCell] = {}
        if rest == 0 and all(_is_above(cell, columns, group, pitch) for cell, group in groups):
            owners = {column: cell for cell, group in groups for column in group}
        else:
            for cell in right:
                distances = [abs(column.centre - cell.centre) for column in columns]
                near = [number for number, distance in enumerate(distances) if distance <= 0.25 * pitch]
                if len(near) != 1 or near[0] in owners:
                    return []
                owners[near[0]] = cell
        for column, cell in owners.items():
            names[column] = f"{names[column]} {cell.text}".strip()
    return names if all(names) and len(set(names)) == len(names) else []


def _is_above(cell: PdfCell, columns: Sequence[PdfCell], group: range, pitch: float) -> bool:
    centre = (columns[group[0]].start + columns[group[-1]].end) / 2
    return abs(cell.centre - centre) <= 0.4 * pitch


@dataclass(frozen=True, slots=True)
class _PdfTable:
    columns: Sequence[PdfCell]
    names: Sequence[str]
    scale: TableScale | None
    caption: str

    def write_lines(self, lines: Sequence[Sequence[PdfCell]], rows: Sequence[PdfTableRow | None]) -> Iterator[PdfLine]:
        group = _RowGroup()
        pending, indent = "", 0.0  # a line without figures: a heading, or the start of a wrapped label
        for line, found in zip(lines, rows, strict=True):
            if found:
                # A label that was wrapped gets its first line back; else that line stands by itself.
                continues = found.label[:1].islower() or pending.count("(") > pending.count(")")
                is_wrapped = pending and not pending.endswith(":") and continues
                label, rest = (f"{pending} {found.label}", "") if is_wrapped else (found.label, pending)
                yield from group.open(rest, indent)
                prefix = group.prefix(indent if pending and not rest else found.indent)
                label, values = _FOOTNOTE_MARKS.sub("", label), [value.text for value in found.values]
                if self.scale and group.is_on_scale(self.scale, label, values):
                    label = f"{label} ({self.scale.words})"
                owners = [_find_column(value, self.columns) for value in found.values]
                if not self.names or None in owners or len(set(owners)) < len(owners):
                    sentence = " ".join([label, *values]).strip()
                else:
                    pairs = [f"{self.names[owner or 0]}: {text}" for owner, text in zip(owners, values, strict=True)]
                    if self.caption and group.heading.casefold() != f"{self.caption}:".casefold():
                        pairs.append(f"Table: {self.caption}")
                    sentence = f"{label} — {'; '.join(pairs)}" if label else "; ".join(pairs)
                yield PdfLine(prefix + sentence, is_row=True)
                pending = ""
            elif pending and line and line[0].text[:1].islower():
                pending = f"{pending} {_line_text(line)}"
            elif line:
                yield from group.open(pending, indent)
                pending, indent = _line_text(line), line[0].start


@dataclass
class _RowGroup:
    """The heading of a group of rows (`Cost of sales:`): it holds for rows indented like its first.

    `last` is the last line without figures, whether or not its rows are over."""

    heading: str = ""
    last: str = ""
    indent: float = 0.0
    rows: float | None = None
    is_percentages: bool = False

    def open(self, text: str, indent: float) -> Iterator[PdfLine]:
        if text:
            heading = f"{_FOOTNOTE_MARKS.sub('', text[:-1])}:" if text.endswith(":") else ""
            self.heading, self.last, self.indent, self.rows = heading, text, indent, None
            self.is_percentages = False
            yield PdfLine(text, is_row=True)

    def is_on_scale(self, scale: TableScale, label: str, values: Sequence[str]) -> bool:
        if all(value.endswith("%") for value in values) and not _COUNTED.search(label):
            self.is_percentages = True  # only the first row of such a group and the total carry the sign
        elif any(_CURRENCY.match(value) for value in values):
            self.is_percentages = False
        return not self.is_percentages and scale.holds_for(label, self.last, values)

    def prefix(self, indent: float) -> str:
        if self.rows is None:
            self.rows = indent
        if abs(indent - self.rows) > 1 or indent <= self.indent + 1:
            self.heading = ""  # a total closes the group
        return f"{self.heading} " if self.heading else ""


def _find_column(value: PdfCell, columns: Sequence[PdfCell]) -> int | None:
    """Return the column a figure stands in."""
    over = [index for index, column in enumerate(columns) if value.start <= column.end and column.start <= value.end]
    return over[0] if len(over) == 1 else None
