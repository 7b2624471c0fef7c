"""Tables as data, whatever file they come from: cells in their places, headings of several lines, and each row written
as one line that says by itself what it is of, when, in what unit and in which table:

    Net sales: Services (in millions) — Three Months Ended July 1, 2023: 21,213; Table: Statements of Operations
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from openassay.fetch.formats import is_incomplete
from openassay.fetch.table_notes import (
    COUNTED,
    NUMBER_MARKS,
    TableScale,
    are_counts,
    find_caption,
    find_scale,
    is_unit_note,
    shorten_caption,
)

VALUE = re.compile(
    r"[$€£]?\s*\(?\s*[$€£]?\s*(?:\d[\d,.]*(?<![,.])|[—\u2013-])\s*\)?\s*(?:%|pts?\.?|bps|x|years?|months?)?\s*"
    r"\)?|N/?M|[Nn]/?[Aa]|\*"
)
YEAR = re.compile(r"(?:19|20)\d\d")
_ANY_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
CURRENCY = re.compile(r"[$€£]|\(?[$€£]\(?")
FOOTNOTE_MARKS = re.compile(
    r"(?<![$€£\s])(?<!\band)(?<!\bof)(?:\s*(?:\(\d{1,2}\)|\[[\da-z]{1,2}\]))+$|(?<=\w)\s*[*†‡]+$"
)
_TAIL = re.compile(r"\)?\s*%|\)")
_PADDING = re.compile(r"\s+(?=[%)])|(?<=[$€£(])\s+")
_TOTAL = re.compile(r"(?:sub-?)?total\b|summe\b|gesamt", re.IGNORECASE)
_PERIOD = re.compile(r"\b(?:years?|months?|quarters?|weeks?|periods?|ended|ending|as (?:of|at)|at)\b|,$", re.IGNORECASE)
_MAX_HEAD_LINES = 5
_MAX_PERIOD = 60  # characters
_MAX_SIGN = 4
_MAX_SPAN = 200  # columns or rows
_LONGEST_ROW = 900  # characters; a longer line would be no sentence, and no part of an index


class PlacedCell(NamedTuple):
    """A part of a line and its place: on a page, in any unit; in a grid, its first and last column."""

    start: float
    end: float
    text: str

    @property
    def centre(self) -> float:
        return (self.start + self.end) / 2


def join_figures(line: Sequence[PlacedCell]) -> list[PlacedCell]:
    """Join a currency or per cent sign to its figure."""
    if all(len(cell.text) > _MAX_SIGN or cell.text[0].isalnum() for cell in line):
        return list(line)
    found: list[PlacedCell] = []
    for cell in line:
        left = found[-1].text if found else ""
        if (CURRENCY.fullmatch(left) and VALUE.fullmatch(cell.text)) or (
            _TAIL.fullmatch(cell.text) and VALUE.fullmatch(left)
        ):
            found[-1] = PlacedCell(found[-1].start, cell.end, found[-1].text + cell.text)
        else:
            found.append(cell)
    return found


def tidy_value(text: str) -> str:
    return _PADDING.sub("", text) if " " in text else text


def is_measured(text: str) -> bool:
    """Whether a cell holds a figure, which headings do not, and not a year, which they may."""
    return VALUE.fullmatch(text) is not None and not YEAR.fullmatch(text)


@dataclass
class RowGroup:
    """The heading of a group of rows (`Cost of sales:`): it holds for rows indented like its first.

    `last` is the last line without figures, whether or not its rows are over."""

    heading: str = ""
    last: str = ""
    indent: float = 0.0
    rows: float | None = None
    is_percentages: bool = False

    def open(self, text: str, indent: float) -> Iterator[str]:
        if text:
            heading = f"{FOOTNOTE_MARKS.sub('', text[:-1])}:" if text.endswith(":") else ""
            self.heading, self.last, self.indent, self.rows = heading, text, indent, None
            self.is_percentages = False
            yield text

    def prefix(self, indent: float) -> str:
        if self.rows is None:
            self.rows = indent
        if abs(indent - self.rows) > 1 or indent <= self.indent + 1:
            self.heading = ""  # a total closes the group
        return f"{self.heading} " if self.heading else ""

    def add_unit(self, scale: TableScale | None, label: str, values: Sequence[str]) -> str:
        """The label with the scale of its figures, where that holds for them."""
        if scale is None:
            return label
        if all(value.endswith("%") for value in values) and not COUNTED.search(label):
            self.is_percentages = True  # only the first row of such a group and the total carry the sign
        elif any(CURRENCY.match(value) for value in values):
            self.is_percentages = False
        if self.is_percentages or not scale.holds_for(label, self.last, values):
            return label
        return f"{label} ({scale.words})"


def write_row(label: str, pairs: Sequence[tuple[str, str]], caption: str = "") -> list[str]:
    """Write a row as one line, or as several that all begin with its label when it is long."""
    cells = [f"{name}: {text}" if name else text for name, text in pairs]
    table = [f"Table: {caption}"] if caption else []
    whole = "; ".join([*cells, *table])
    if len(label) + len(whole) <= _LONGEST_ROW:
        return [f"{label} — {whole}" if label else whole]
    room = _LONGEST_ROW - len(label) - sum(map(len, table))
    lines, part = list[str](), list[str]()
    for cell in cells:
        if part and sum(len(one) + 2 for one in part) + len(cell) > room:
            lines.append("; ".join([*part, *table]))
            part = []
        part.append(cell)
    lines.append("; ".join([*part, *table]))
    return [f"{label} — {line}" if label else line for line in lines]


# A grid of cells, as HTML, Word, Markdown and CSV files have ---------------------------------------------------


class GridCell(NamedTuple):
    text: str
    columns: int = 1
    rows: int = 1
    is_head: bool = False


def write_grid(
    rows: Sequence[Sequence[GridCell]], above: Sequence[str] = (), heading: str = "", *, caption: str = ""
) -> list[str] | None:
    """Write a table line by line; None where it has no headings to name its cells by.

    `above` are the lines before the table, `heading` the one it stands under, `caption` what its author calls it."""
    lines = [join_figures(line) for line in _place_cells(rows)]
    marked = [all(cell.is_head for cell in row if cell.text) for row in rows]
    start = min((line[0].start for line in lines if line), default=0)
    width = max((line[-1].end for line in lines if line), default=0) + 1 - start
    # Titles and notes on units stand in the first lines alone.
    first = 0
    while first < len(lines) and width > 1 and len(lines[first]) <= 1 and all(c.start == start for c in lines[first]):
        first += 1
    end = first
    while end < len(lines) and end - first < _MAX_HEAD_LINES and _is_head(lines, marked, first, end, start, width):
        end += 1
    heads, body = [line for line in lines[first:end] if line], lines[end:]
    if not heads or not _has_body(body, any(marked[first:end]), width, start):
        return None
    titles = [cell.text for line in lines[:first] for cell in line]
    return list(_GridTable(start, [*above, *titles], titles, heading, caption).write_lines(heads, body))


def _place_cells(rows: Sequence[Sequence[GridCell]]) -> Iterator[list[PlacedCell]]:
    """Give each filled cell its first and last column; one that spans rows stands in each of them."""
    spanning: dict[float, tuple[PlacedCell, int]] = {}  # by first column, with the rows that are left to it
    for row in rows:
        line, column, left, spanning = list[PlacedCell](), 0.0, spanning, {}
        for cell in (*row, None):
            while column in left:
                carried, more = left.pop(column)
                line.append(carried)
                column = carried.end + 1
                if more > 1:
                    spanning[carried.start] = (carried, more - 1)
            if cell is not None:
                end = column + min(max(cell.columns, 1), _MAX_SPAN) - 1
                line.append(PlacedCell(column, end, cell.text))
                if cell.rows > 1:
                    spanning[column] = (line[-1], min(cell.rows, _MAX_SPAN) - 1)
                column = end + 1
        for carried, more in left.values():  # further to the right than the row reaches
            line.append(carried)
            if more > 1:
                spanning[carried.start] = (carried, more - 1)
        yield sorted(cell for cell in line if cell.text)


def _is_head(
    lines: Sequence[Sequence[PlacedCell]], marked: Sequence[bool], first: int, number: int, start: float, width: float
) -> bool:
    """Tell whether a line at the top names columns, the lines from `first` on being headings."""
    line, before = lines[number], [line for line in lines[first:number] if line]
    if not line or marked[number]:
        return True
    if any(is_measured(cell.text) for cell in line):
        return False
    if not before or is_unit_note(line[0].text):
        return True
    if line[0].start > start:
        return not _is_group(line) or all(len(other) < width - 1 for other in before)
    if len(line) == 1:
        return False
    if any(is_incomplete(cell.text) for cell in before[-1]):
        return True
    if all(is_unit_note(cell.text) or CURRENCY.fullmatch(cell.text) for cell in line[1:]):
        return True
    if any(marked[first:number]):
        return False
    # A line below headings that name the labels, or each column, is a row of words.
    return not any(other[0].start == start or len(other) >= width - 1 for other in before)


def _is_group(line: Sequence[PlacedCell]) -> bool:
    """Tell whether a cell alone in its line heads rows and not columns."""
    return len(line) == 1 and not (_ANY_YEAR.search(line[0].text) or _PERIOD.search(line[0].text))


def _has_body(body: Sequence[Sequence[PlacedCell]], is_marked: bool, width: float, start: float) -> bool:
    """Two columns that nobody marked may as well be names and what they stand for."""
    filled = [line for line in body if len(line) > 1 or (line and line[0].start > start)]
    if width < 2 or not filled:
        return False
    return is_marked or width > 2 or (len(filled) > 1 and all(VALUE.fullmatch(line[-1].text) for line in filled))


@dataclass
class _GridTable:
    start: float  # the column of the labels
    above: Sequence[str]
    titles: Sequence[str]  # in lines of the table itself
    heading: str
    caption: str

    def write_lines(self, heads: Sequence[Sequence[PlacedCell]], body: Sequence[Sequence[PlacedCell]]) -> Iterator[str]:
        columns = sorted({cell.start for line in body for cell in line if cell.start > self.start})
        notes = list[str]()
        names = self._name_columns(heads, columns, notes)
        caption = shorten_caption(NUMBER_MARKS.sub("", self.caption)) or find_caption(self.above)
        caption = caption or shorten_caption(NUMBER_MARKS.sub("", self.heading))
        scale = find_scale([*self.above, *notes])
        unit = list[tuple[str, str]]()  # where columns have units of their own, what is said of it stands by itself
        if scale and are_counts(" ".join(name for column, name in names.items() if column != self.start)):
            unit, scale = [("Unit", scale.note or scale.words)], None
        group, fresh = RowGroup(), list[Sequence[PlacedCell]]()
        for line in body:
            if not line:
                continue
            if _is_group(line):
                yield from group.open(f"{FOOTNOTE_MARKS.sub('', line[0].text).rstrip(': ')}:", 0)
                continue
            if self._is_new_head(line):
                fresh.append(line)
                continue
            if fresh:  # headings in the middle of a table begin it anew
                names, fresh = self._name_columns(fresh, columns, notes), []
            label = FOOTNOTE_MARKS.sub("", line[0].text) if line[0].start == self.start else ""
            values = line[1:] if label else line
            texts = [tidy_value(cell.text) for cell in values]
            prefix = group.prefix(0 if _TOTAL.match(label) else 2)
            pairs = [(_find_name(names, cell), text) for cell, text in zip(values, texts, strict=True)]
            if any(map(is_measured, texts)):
                label = group.add_unit(scale, label, texts)
                pairs += unit
            if label and (over := names.get(self.start)):
                yield from write_row("", [(over, prefix + label), *pairs], caption)
            else:
                yield from write_row(prefix + label, pairs, caption)

    def _is_new_head(self, line: Sequence[PlacedCell]) -> bool:
        values = [cell for cell in line if cell.start > self.start]
        if len(values) > 1 and all(YEAR.fullmatch(cell.text) for cell in values):
            return True
        return len(values) == len(line) and not any(is_measured(cell.text) for cell in line)

    def _name_columns(
        self, heads: Sequence[Sequence[PlacedCell]], columns: Sequence[float], notes: list[str]
    ) -> dict[float, str]:
        """Return the headings over each column, read downwards; what they say of units goes to the notes."""
        names: dict[float, str] = {}
        for number, line in enumerate(heads):
            over = [cell for cell in line if cell.start > self.start]
            if len(over) == 1 and is_unit_note(over[0].text):
                notes.append(over[0].text)
                over = []
            own = [cell for cell in line if cell.start == self.start]
            if own and is_unit_note(own[0].text):
                notes.append(own[0].text)
                own = []
            is_last = number == len(heads) - 1
            for cell in (*own, *_spread(over, columns, is_last=is_last)):
                text = FOOTNOTE_MARKS.sub("", cell.text)
                for column in range(int(cell.start), int(cell.end) + 1):
                    known = names.get(column, "")
                    if text not in known:
                        names[column] = f"{known} {text}".strip()
        return self._add_period(names)

    def _add_period(self, names: dict[float, str]) -> dict[float, str]:
        """`Years ended June 30,` over the labels or the whole table belongs to the years below, and a date to columns
        that have none."""
        label, others = names.get(self.start, ""), [name for at, name in names.items() if at != self.start]
        are_years = all(YEAR.fullmatch(name) for name in others)
        if label and are_years and others and _PERIOD.search(label):
            return {at: f"{label} {name}" for at, name in names.items() if at != self.start}
        is_dated = any(_ANY_YEAR.search(name) for name in others)
        for title in self.titles:
            if len(title) <= _MAX_PERIOD and (
                _PERIOD.search(title) if are_years else _ANY_YEAR.search(title) and not is_dated
            ):
                return {at: name if at == self.start else f"{title} {name}" for at, name in names.items()}
        return names


def _spread(line: Sequence[PlacedCell], columns: Sequence[float], *, is_last: bool) -> Iterable[PlacedCell]:
    """Stretch headings over the columns they stand for, where the file does not say how far they span: each over an
    equal share of the columns, or from its own up to the next, where they are equally far apart."""
    if not line or len(line) >= len(columns) or any(cell.end > cell.start for cell in line):
        return line
    share, rest = divmod(len(columns), len(line))
    groups = [columns[at * share : (at + 1) * share] for at in range(len(line))]
    if rest == 0 and all(group[0] <= cell.start <= group[-1] for cell, group in zip(line, groups, strict=True)):
        return [PlacedCell(group[0], group[-1], cell.text) for cell, group in zip(line, groups, strict=True)]
    gaps = {right.start - left.start for left, right in pairwise(line)}
    if is_last or len(gaps) != 1 or gaps == {1}:
        return line
    ends = [*(cell.start - 1 for cell in line[1:]), min(columns[-1], line[-1].start + gaps.pop() - 1)]
    return [PlacedCell(cell.start, end, cell.text) for cell, end in zip(line, ends, strict=True)]


def _find_name(names: dict[float, str], cell: PlacedCell) -> str:
    if cell.start == cell.end:
        return names.get(cell.start, "")
    return next((name for at in range(int(cell.start), int(cell.end) + 1) if (name := names.get(at))), "")
