"""A table with its cells in their places: a label and the groups it stands under for each row, the heads over each
column, and what they say of periods and units."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from openassay.reasoning.rules.tables.cells import CellValue, drop_footnotes, is_year, parse_cell, tidy
from openassay.reasoning.rules.tables.periods import find_periods

_TOTAL = re.compile(r"(?:sub-?)?totals?\b", re.IGNORECASE)
_ONLY_UNIT = re.compile(
    r"\(?(?:in )?[$€£¥]?(?:['’‘]?0{3}s?|millions?|thousands?|billions?|m|k|%|per ?cent|percentage)\)?|[$€£¥]",
    re.IGNORECASE,
)
_MAX_HEAD_LINES = 6
_MOST_ROWS, _MOST_COLUMNS = 400, 60  # of a table that is looked at


class Cell(NamedTuple):
    """`start` is its place in the text it was read from, where there is one."""

    text: str
    value: CellValue | None
    start: int = -1


class Row(NamedTuple):
    label: str
    group: str  # the headings it stands under
    cells: tuple[Cell | None, ...]  # one for each column; None where nothing stands
    start: int = -1  # of its line in the text it was read from
    unit: str | None = None  # of its figures, where the reader of the document has told it; None where it has not

    @property
    def name(self) -> str:
        return f"{self.group}: {self.label}".strip(": ")

    @property
    def is_total(self) -> bool:
        return not self.label or _TOTAL.match(self.label) is not None


@dataclass(frozen=True)
class Table:
    """`corner` is what stands over the labels, `notes` are lines of units over the columns."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    corner: str = ""
    notes: tuple[str, ...] = ()
    is_transposed: bool = False

    @classmethod
    def from_cells(cls, cells: Sequence[Sequence[str]], caption: str = "") -> "Table":
        """A grid of texts, as it stands in a document: lines of heads first, labels in the first column."""
        width = min(max((len(line) for line in cells), default=0), _MOST_COLUMNS)
        grid = [[tidy(cell) for cell in line[:width]] + [""] * (width - len(line)) for line in cells[:_MOST_ROWS]]
        return _read_grid(grid, caption).turn_periods_to_columns()

    def turn_periods_to_columns(self) -> "Table":
        """Years down the side and measures over the columns are the same table turned round."""
        sides = [bool(find_periods(row.name)) for row in self.rows if any(row.cells)]
        tops = [bool(find_periods(head)) for head in self.heads]
        if len(sides) < 2 or not self.heads or sum(sides) < 0.7 * len(sides) or sum(tops) > 0.3 * len(tops):
            return self
        rows = [row for row in self.rows if any(row.cells)]
        turned = tuple(
            Row(head, "", tuple(row.cells[column] for row in rows)) for column, head in enumerate(self.heads)
        )
        return replace(self, heads=tuple(row.name for row in rows), rows=turned, is_transposed=True)


def _read_grid(grid: list[list[str]], caption: str) -> Table:
    grid = [line for line in grid if line]
    end = _count_head_lines(grid)
    names, corner, notes = _name_columns(grid[:end])
    rows = list[Row]()
    groups, is_open = list[str](), True
    for line in grid[end:]:
        label = drop_footnotes(line[0]) if line else ""
        if not any(line):
            continue
        if not any(line[1:]):
            groups = [*groups, label.rstrip(":")][-2:] if is_open else [label.rstrip(":")]
            is_open = True
            continue
        if not label and all(is_year(cell) for cell in line[1:] if cell):
            names = _spread(line)
            continue
        is_open = False
        cells = tuple(Cell(text, parse_cell(text)) if text else None for text in line[1:])
        row = Row(label, " ".join(groups), cells)
        rows.append(row)
        if row.is_total and groups:
            groups = []
    return Table(caption, tuple(names), tuple(rows), corner, tuple(notes))


def _count_head_lines(grid: Sequence[Sequence[str]]) -> int:
    """Heads end where the first figure stands; a label alone below a line of heads is the heading of a group."""
    has_heads = False
    for number, line in enumerate(grid[:_MAX_HEAD_LINES]):
        if any(parse_cell(cell) and not _ONLY_UNIT.fullmatch(cell) for cell in line[1:]):
            return number
        if has_heads and line and line[0] and not any(line[1:]):
            return number
        has_heads = has_heads or any(line[1:])
    return 1 if len(grid) > 1 else 0


def _name_columns(lines: Sequence[Sequence[str]]) -> tuple[list[str], str, list[str]]:
    """The heads over each column, read downwards, what stands over the labels, and the lines of units."""
    names: list[str] = [""] * max((len(line) - 1 for line in lines), default=0)
    corner, notes = list[str](), list[str]()
    for line in lines:
        if line[0]:
            corner.append(line[0])
        told = [cell for cell in line[1:] if cell]
        if len(told) == 1 and len(names) > 1 and not find_periods(told[0]):
            notes.append(told[0])
        for column, head in enumerate(_spread(line)):
            head = drop_footnotes(head)
            if head and head not in names[column]:
                names[column] = f"{names[column]} {head}".strip()
    return names, " ".join(corner), notes


def _spread(line: Sequence[str]) -> list[str]:
    """Heads that span columns stand in the first of them, or are centred where the first column has none."""
    heads = list(line[1:])
    filled = [column for column, head in enumerate(heads) if head]
    if not filled or len(filled) == len(heads):
        return heads
    if filled[0] == 0:
        current = ""
        for column, head in enumerate(heads):
            current = heads[column] = head or current
        return heads
    return [heads[min(filled, key=lambda at: abs(at - column))] for column in range(len(heads))]
