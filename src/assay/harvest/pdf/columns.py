"""Tables among lines whose parts have places on the page: rows stay whole and say their column headings.

A heading is bound to a figure only when every heading line above the table fits the columns by position; a
table with one that does not keeps plain rows. On twelve quarterly reports that binds 17 rows of 20.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from assay.harvest.pdf.caption import gist, of_section
from assay.harvest.pdf.scale import Scale, are_counts, opens_percentages, stated_above
from assay.harvest.reflow import is_open

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
_MARKS = re.compile(r"(?<![$€£\s])(?<!\band)(?<!\bof)(?:\s*\(\d{1,2}\))+$")  # of footnotes
_RULE = re.compile(r"[\s_=-]{5,}")
_BRACKETS = re.compile(r"[()]")
_UNITS = re.compile(r"\(.*\)")
_HEAD_LINES = 5
_LONGEST_HEAD = 60  # characters; a longer line above a table is a sentence
_FAR = 4  # letters
_CAPTION_LINES = 12
_BETWEEN = 3  # lines without figures (headings of sections, wrapped labels) that do not end a table


class Line(NamedTuple):
    text: str
    is_row: bool = False


class Cell(NamedTuple):
    """A part of a line far from the next part, and where it stands, in any unit."""

    start: float
    end: float
    text: str

    @property
    def centre(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Row:
    indent: float
    label: str
    values: tuple[Cell, ...]


def _figures_whole(line: Sequence[Cell]) -> list[Cell]:
    """A currency or per cent sign belongs to its figure."""
    found: list[Cell] = []
    for cell in line:
        if found and _is_one_figure(found[-1].text, cell.text):
            found[-1] = Cell(found[-1].start, cell.end, found[-1].text + cell.text)
        else:
            found.append(cell)
    return found


def _is_one_figure(left: str, right: str) -> bool:
    if _CURRENCY.fullmatch(left):
        return True
    return bool(_TAIL.fullmatch(right) and _VALUE.fullmatch(left))


def _row(parts: Sequence[Cell]) -> Row | None:
    """A label and figures, or None: a line of justified prose has wide gaps too, but words after them."""
    first = 0 if parts and _VALUE.fullmatch(parts[0].text) else 1
    values = parts[first:]
    if not values or not all(_VALUE.fullmatch(cell.text) for cell in values):
        return None
    if first == 0 and (len(values) < 2 or _are_years(values)):
        return None
    if len(values) == 1 and not _STRONG.search(values[0].text):
        return None
    figures = tuple(cell._replace(text=_PADDING.sub("", cell.text)) for cell in values)
    return Row(parts[0].start, parts[0].text if first else "", figures)


def _are_years(parts: Sequence[Cell]) -> bool:
    return all(_YEAR.fullmatch(cell.text) for cell in parts)


def rewrite(page: Sequence[Sequence[Cell]]) -> Iterator[Line]:
    """The lines of one page with its tables written row by row."""
    lines = [_figures_whole(line) for line in page]
    rows = [_row(line) for line in lines]
    done, scale, caption = 0, None, ""
    for first, last in _tables(lines, rows):
        columns = _columns([found for found in rows[first : last + 1] if found])
        heads = _heads(lines, done, first, columns)
        names = _names([lines[number] for number in heads], columns)
        first = _section_above(lines, heads[-1] + 1 if heads else done, first)
        scale = _scale(lines, range(done, first), heads, columns, scale)
        caption = _caption(lines, done, heads, range(first, last + 1), caption)
        top = heads[0] if heads and names else first
        yield from map(_outside, lines[done:top])
        if names:
            yield from _left_over(lines, top, first, heads, columns)
        yield from _Table(columns, names, scale, caption).written(lines[first : last + 1], rows[first : last + 1])
        done = last + 1
    yield from map(_outside, lines[done:])


def _scale(
    lines: Sequence[Sequence[Cell]],
    above: range,
    heads: Sequence[int],
    columns: Sequence[Cell],
    previous: Scale | None,
) -> Scale | None:
    """The scale stated above the table, or by the table before when new column headings alone part the two."""
    filled = [number for number in above if lines[number]]
    over = [cell for number in heads for cell in lines[number] if cell.end >= columns[0].start]
    if are_counts(" ".join(cell.text for cell in over if not _UNITS.fullmatch(cell.text))):
        return None
    if above.start and set(filled) <= set(heads):
        return previous
    if any(_is_unit_of_one_column(lines[number], columns) for number in filled if heads and number > heads[0]):
        return None
    return stated_above([_note(lines[number], columns) for number in filled[-_CAPTION_LINES:]])


def _is_unit_of_one_column(line: Sequence[Cell], columns: Sequence[Cell]) -> bool:
    if len(columns) < 2 or not _is_units(line) or not are_counts(line[-1].text):
        return False
    owner, pitch = _owner(line[-1], columns), _pitch(columns)
    if owner is None or _above(line[-1], columns, range(len(columns)), 1.25 * pitch):
        return False
    return abs(columns[owner].centre - line[-1].centre) <= 0.25 * pitch


def _note(line: Sequence[Cell], columns: Sequence[Cell]) -> str:
    """Units in brackets that stand among the headings of columns are not those of the table."""
    if len(line) == 1:
        return line[0].text
    labels = [cell for cell in line if columns and cell.end < columns[0].start]
    kept = len(labels) + 1 if len(labels) == len(line) - 1 else len(labels)
    return " ".join([cell.text for cell in line[:kept]] + [_BRACKETS.sub("", cell.text) for cell in line[kept:]])


def _caption(lines: Sequence[Sequence[Cell]], done: int, heads: Sequence[int], table: range, previous: str) -> str:
    """What introduces the table; what introduced the one before when new column headings alone part the two."""
    if not heads:
        return ""
    if done and all(number in heads for number in range(done, table.start) if lines[number]):
        return previous
    body = (lines[number] for number in range(heads[-1] + 1, table.stop))
    sections = [line for line in body if line and line[0].text.endswith(":")]
    if len(sections) == 1 and len(sections[0]) == 2 and _is_units(sections[0]):
        return of_section(sections[0][0].text)
    return gist([_plain(lines[number]) for number in range(done, heads[0])])


def _pitch(columns: Sequence[Cell]) -> float:
    return (columns[-1].centre - columns[0].centre) / (len(columns) - 1)


def _is_units(line: Sequence[Cell]) -> bool:
    return _UNITS.fullmatch(line[-1].text) is not None


def _outside(line: Sequence[Cell]) -> Line:
    """A line of no table; parts far apart (a form, a table of words) are not prose that goes on below."""
    text = _plain(line)
    if _RULE.fullmatch(text):
        return Line("")
    return Line(text, is_row=len(line) > 1 and len(line[0].text) > 8 and _is_wide(line) and not is_open(text))


def _is_wide(line: Sequence[Cell]) -> bool:
    letter = (line[0].end - line[0].start) / len(line[0].text)
    return any(right.start - left.end > _FAR * letter for left, right in pairwise(line))


def _section_above(lines: Sequence[Sequence[Cell]], floor: int, first: int) -> int:
    """Where the table begins when the line above its first row names a group of rows (`Net sales:`)."""
    above = [number for number in range(floor, first) if lines[number]]
    if not above:
        return first
    parts = lines[above[-1]]
    is_section = len(parts) == 1 and parts[0].text.endswith(":") and len(parts[0].text) < 60
    return above[-1] if is_section else first


def _plain(line: Sequence[Cell]) -> str:
    return " ".join(cell.text for cell in line)


def _tables(lines: Sequence[Sequence[Cell]], rows: Sequence[Row | None]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for number, found in enumerate(rows):
        if found is None:
            continue
        if first >= 0 and not _belongs(lines[last + 1 : number]):
            yield first, last
            first = -1
        first = number if first < 0 else first
        last = number
    if first >= 0:
        yield first, last


def _belongs(between: Sequence[Sequence[Cell]]) -> bool:
    """Whether rows above and below these lines are one table: no new column headings, no paragraph."""
    filled = [line for line in between if line]
    return len(filled) <= _BETWEEN and all(len(parts) == 1 and len(parts[0].text) < 120 for parts in filled)


def _columns(rows: Sequence[Row]) -> list[Cell]:
    """Extents of the columns, from the rows with the usual number of figures; empty when they overlap."""
    usual = Counter(len(found.values) for found in rows).most_common(1)[0][0]
    full = [found.values for found in rows if len(found.values) == usual]
    columns = [
        Cell(min(cell.start for cell in column), max(cell.end for cell in column), "")
        for column in zip(*full, strict=True)
    ]
    apart = all(left.end < right.start for left, right in pairwise(columns))
    is_labelled = any(found.label for found in rows if len(found.values) == usual)
    return columns if apart and usual > 1 and is_labelled else []


def _heads(lines: Sequence[Sequence[Cell]], floor: int, first: int, columns: Sequence[Cell]) -> list[int]:
    """Numbers of the heading lines above the first row, top one first."""
    heads: list[int] = []
    labels = 0
    for number in range(first - 1, floor - 1, -1):
        parts = lines[number]
        if not parts:
            continue
        if not columns or len(heads) == _HEAD_LINES or not _over(parts, columns):
            if heads or labels == 2 or not columns or len(parts) > 1 or parts[0].end > columns[0].start:
                break
            labels += 1
            continue
        if not _is_units(parts):
            heads.insert(0, number)
        elif heads:
            break
    return heads


def _over(parts: Sequence[Cell], columns: Sequence[Cell]) -> bool:
    """Whether all parts stand over the figures; the first may instead head the labels."""
    if any(len(cell.text) > _LONGEST_HEAD or _is_figure(cell.text) for cell in parts):
        return False
    slack = (columns[1].centre - columns[0].centre) / 2
    right = [cell for cell in parts if cell.start >= columns[0].start - slack]
    return bool(right) and (len(right) == len(parts) or (right == parts[1:] and parts[0].end < columns[0].start))


def _is_figure(text: str) -> bool:
    """Whether a cell is from a row (`1,204`, `11.6 years`), not from a heading (`2023`, `12 Months`)."""
    return bool(_MEASURED.match(text) or (_VALUE.fullmatch(text) and not _YEAR.fullmatch(text)))


def _names(heads: Sequence[Sequence[Cell]], columns: Sequence[Cell]) -> list[str]:
    """One heading per column, or none at all when any line is in doubt."""
    names = [""] * len(columns)
    for parts in heads:
        right = [cell for cell in parts if cell.end >= columns[0].start]
        owners = _owners(right, columns)
        if owners is None or any(_GLUED.search(cell.text) for cell in right):
            return []
        for column, cell in owners.items():
            names[column] = f"{names[column]} {cell.text}".strip()
    return names if all(names) and len(set(names)) == len(names) else []


def _owners(parts: Sequence[Cell], columns: Sequence[Cell]) -> dict[int, Cell] | None:
    """Which heading of a line stands over which column: one each, or each over an equal share of them."""
    pitch = _pitch(columns)
    share, rest = divmod(len(columns), len(parts)) if parts else (0, 1)
    if rest == 0:
        groups = [range(index * share, (index + 1) * share) for index in range(len(parts))]
        if all(_above(cell, columns, group, pitch) for cell, group in zip(parts, groups, strict=True)):
            return {column: cell for cell, group in zip(parts, groups, strict=True) for column in group}
    owners: dict[int, Cell] = {}
    for cell in parts:
        near = [index for index in range(len(columns)) if abs(columns[index].centre - cell.centre) <= 0.25 * pitch]
        if len(near) != 1 or near[0] in owners:
            return None
        owners[near[0]] = cell
    return owners


def _above(cell: Cell, columns: Sequence[Cell], group: range, pitch: float) -> bool:
    centre = (columns[group[0]].start + columns[group[-1]].end) / 2
    return abs(cell.centre - centre) <= 0.4 * pitch


def _left_over(
    lines: Sequence[Sequence[Cell]], top: int, first: int, heads: Sequence[int], columns: Sequence[Cell]
) -> Iterator[Line]:
    """What stands between the headings and the first row, and to the left of the headings."""
    for number in range(top, first):
        if number not in heads:
            yield Line(_plain(lines[number]), is_row=True)
        else:
            yield from (Line(cell.text) for cell in lines[number][:1] if cell.end < columns[0].start)


@dataclass(frozen=True, slots=True)
class _Table:
    columns: Sequence[Cell]
    names: Sequence[str]
    scale: Scale | None
    caption: str

    def written(self, lines: Sequence[Sequence[Cell]], rows: Sequence[Row | None]) -> Iterator[Line]:
        group = _Group()
        held, indent = "", 0.0
        for line, found in zip(lines, rows, strict=True):
            if found:
                label, rest = _label(held, found.label)
                yield from group.open(rest, indent)
                prefix = group.prefix(indent if held and not rest else found.indent)
                yield Line(prefix + self._sentence(_MARKS.sub("", label), group, found), is_row=True)
                held = ""
            elif held and line and line[0].text[:1].islower():
                held = f"{held} {_plain(line)}"
            elif line:
                yield from group.open(held, indent)
                held, indent = _plain(line), line[0].start

    def _sentence(self, label: str, group: "_Group", found: Row) -> str:
        if self.scale and group.is_on(self.scale, label, [value.text for value in found.values]):
            label = f"{label} ({self.scale.words})"
        owners = [_owner(value, self.columns) for value in found.values]
        if not self.names or None in owners or len(set(owners)) < len(owners):
            return " ".join([label, *(value.text for value in found.values)]).strip()
        pairs = [f"{self.names[owner or 0]}: {value.text}" for owner, value in zip(owners, found.values, strict=True)]
        if self.caption and group.heading.casefold() != f"{self.caption}:".casefold():
            pairs.append(f"Table: {self.caption}")
        return f"{label} — {'; '.join(pairs)}" if label else "; ".join(pairs)


@dataclass
class _Group:
    """The heading of a group of rows (`Cost of sales:`): it holds for rows indented like its first.

    `last` is the last line without figures, whether or not its rows are over.
    """

    heading: str = ""
    last: str = ""
    indent: float = 0.0
    rows: float | None = None
    is_percentages: bool = False

    def open(self, text: str, indent: float) -> Iterator[Line]:
        if text:
            heading = f"{_MARKS.sub('', text[:-1])}:" if text.endswith(":") else ""
            self.heading, self.last, self.indent, self.rows = heading, text, indent, None
            self.is_percentages = False
            yield Line(text, is_row=True)

    def is_on(self, scale: Scale, label: str, values: Sequence[str]) -> bool:
        if opens_percentages(label, values):
            self.is_percentages = True
        elif any(_CURRENCY.match(value) for value in values):
            self.is_percentages = False
        return not self.is_percentages and scale.holds_for(label, self.last, values)

    def prefix(self, indent: float) -> str:
        if self.rows is None:
            self.rows = indent
        if abs(indent - self.rows) > 1 or indent <= self.indent + 1:
            self.heading = ""  # a total closes the group
        return f"{self.heading} " if self.heading else ""


def _label(held: str, label: str) -> tuple[str, str]:
    """A label that was wrapped gets its first line back; else that line stands by itself."""
    is_wrapped = held and not held.endswith(":") and (label[:1].islower() or held.count("(") > held.count(")"))
    return (f"{held} {label}", "") if is_wrapped else (label, held)


def _owner(value: Cell, columns: Sequence[Cell]) -> int | None:
    """The column a figure stands in."""
    over = [index for index, column in enumerate(columns) if value.start <= column.end and column.start <= value.end]
    return over[0] if len(over) == 1 else None
