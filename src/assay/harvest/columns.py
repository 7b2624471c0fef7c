"""Tables in text that keeps the layout of the page: rows stay whole and say their column headings.

A heading is bound to a figure only when every heading line above the table fits the columns by position; a
table with one that does not keeps plain rows. On twelve quarterly reports that binds 7 rows of 10.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

_CELL = re.compile(r"\S+(?: \S+)*")
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
_UNITS = re.compile(r"\(.*\)")
_HEAD_LINES = 5
_LONGEST_HEAD = 60  # characters; a longer line above a table is a sentence
_BETWEEN = 3  # lines without figures (headings of sections, wrapped labels) that do not end a table


class Line(NamedTuple):
    text: str
    is_row: bool = False


class Cell(NamedTuple):
    start: int
    end: int
    text: str

    @property
    def centre(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Row:
    indent: int
    label: str
    values: tuple[Cell, ...]


def cells(line: str) -> list[Cell]:
    """Parts of a line two or more spaces apart; a currency or per cent sign belongs to its figure."""
    found: list[Cell] = []
    for match in _CELL.finditer(line):
        cell = Cell(match.start(), match.end(), match[0])
        if found and _is_one_figure(found[-1].text, cell.text):
            found[-1] = Cell(found[-1].start, cell.end, found[-1].text + cell.text)
        else:
            found.append(cell)
    return found


def _is_one_figure(left: str, right: str) -> bool:
    if _CURRENCY.fullmatch(left):
        return True
    return bool(_TAIL.fullmatch(right) and _VALUE.fullmatch(left))


def row(line: str) -> Row | None:
    """A label and figures, or None: a line of justified prose has wide gaps too, but words after them."""
    parts = cells(line)
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


def rewrite(lines: Sequence[str]) -> Iterator[Line]:
    """The lines of one page with its tables written row by row and all runs of spaces collapsed."""
    rows = [row(line) for line in lines]
    done = 0
    for first, last in _tables(lines, rows):
        columns = _columns([found for found in rows[first : last + 1] if found])
        heads = _heads(lines, done, first, columns)
        names = _names([cells(lines[number]) for number in heads], columns)
        first = _section_above(lines, heads[-1] + 1 if heads else done, first)
        top = heads[0] if heads and names else first
        yield from (Line(_plain(line)) for line in lines[done:top])
        if names:
            yield from _left_over(lines, top, first, heads, columns)
        yield from _table(lines[first : last + 1], rows[first : last + 1], columns, names)
        done = last + 1
    yield from (Line(_plain(line)) for line in lines[done:])


def _section_above(lines: Sequence[str], floor: int, first: int) -> int:
    """Where the table begins when the line above its first row names a group of rows (`Net sales:`)."""
    above = [number for number in range(floor, first) if lines[number].strip()]
    if not above:
        return first
    parts = cells(lines[above[-1]])
    is_section = len(parts) == 1 and parts[0].text.endswith(":") and len(parts[0].text) < 60
    return above[-1] if is_section else first


def _plain(line: str) -> str:
    return " ".join(line.split())


def _tables(lines: Sequence[str], rows: Sequence[Row | None]) -> Iterator[tuple[int, int]]:
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


def _belongs(between: Sequence[str]) -> bool:
    """Whether rows above and below these lines are one table: no new column headings, no paragraph."""
    filled = [cells(line) for line in between if line.strip()]
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


def _heads(lines: Sequence[str], floor: int, first: int, columns: Sequence[Cell]) -> list[int]:
    """Numbers of the heading lines above the first row, top one first."""
    heads: list[int] = []
    labels = 0
    for number in range(first - 1, floor - 1, -1):
        parts = cells(lines[number])
        if not parts:
            continue
        if not columns or len(heads) == _HEAD_LINES or not _over(parts, columns):
            if heads or labels == 2 or not columns or len(parts) > 1 or parts[0].end > columns[0].start:
                break
            labels += 1
            continue
        if not _UNITS.fullmatch(parts[-1].text):
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
    pitch = (columns[-1].centre - columns[0].centre) / (len(columns) - 1)
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
    lines: Sequence[str], top: int, first: int, heads: Sequence[int], columns: Sequence[Cell]
) -> Iterator[Line]:
    """What stands between the headings and the first row, and to the left of the headings."""
    for number in range(top, first):
        if number not in heads:
            yield Line(_plain(lines[number]), is_row=True)
        else:
            yield from (Line(cell.text) for cell in cells(lines[number])[:1] if cell.end < columns[0].start)


def _table(
    lines: Sequence[str], rows: Sequence[Row | None], columns: Sequence[Cell], names: Sequence[str]
) -> Iterator[Line]:
    group = _Group()
    held = ""
    for line, found in zip(lines, rows, strict=True):
        if found is None:
            text = _plain(line)
            if held and text[:1].islower():
                text = f"{held} {text}"
            elif held:
                yield Line(held, is_row=True)
            held = text
            group.open(held, len(line) - len(line.lstrip()))
            continue
        label, held = _label(held, found.label)
        if held:
            yield Line(held, is_row=True)
        held = ""
        yield Line(group.prefix(found.indent) + _sentence(label, found, columns, names), is_row=True)


@dataclass
class _Group:
    """The heading of a group of rows (`Cost of sales:`): it holds for rows indented like its first."""

    heading: str = ""
    indent: int = 0
    rows: int | None = None

    def open(self, text: str, indent: int) -> None:
        if text:
            self.heading, self.indent, self.rows = text if text.endswith(":") else "", indent, None

    def prefix(self, indent: int) -> str:
        if self.rows is None:
            self.rows = indent
        if indent != self.rows or indent <= self.indent:
            self.heading = ""  # a total closes the group
        return f"{self.heading} " if self.heading else ""


def _label(held: str, label: str) -> tuple[str, str]:
    """A label that was wrapped gets its first line back; else that line stands by itself."""
    is_wrapped = held and not held.endswith(":") and (label[:1].islower() or held.count("(") > held.count(")"))
    return (f"{held} {label}", "") if is_wrapped else (label, held)


def _sentence(label: str, found: Row, columns: Sequence[Cell], names: Sequence[str]) -> str:
    owners = [_owner(value, columns) for value in found.values]
    if not names or None in owners or len(set(owners)) < len(owners):
        return " ".join([label, *(value.text for value in found.values)]).strip()
    pairs = (f"{names[owner or 0]}: {value.text}" for owner, value in zip(owners, found.values, strict=True))
    return f"{label} — {'; '.join(pairs)}" if label else "; ".join(pairs)


def _owner(value: Cell, columns: Sequence[Cell]) -> int | None:
    """The column a figure stands in."""
    over = [index for index, column in enumerate(columns) if value.start <= column.end and column.start <= value.end]
    return over[0] if len(over) == 1 else None
