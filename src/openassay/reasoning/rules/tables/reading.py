"""Tables as the readers of documents write them into plain text, a row to a line, made tables again:

Net sales: Services (in millions) — Three Months Ended July 1, 2023: 21,213; Table: Statements of Operations
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from openassay.reasoning.rules.tables.cells import parse_cell
from openassay.reasoning.rules.tables.grid import Cell, Row, Table
from openassay.reasoning.rules.tables.scales import find_stated_scale
from openassay.text.sentences import is_table_row

_DASH = " — "
_NOTES = ("Table", "Company", "Unit")  # cells that tell of the whole row
_SCALE_NOTE = re.compile(r"\s*\((in (?:thousands|millions|billions)[^()]*|[$€£¥][^()]{1,12})\)$", re.IGNORECASE)


class _Piece(NamedTuple):
    head: str
    text: str
    start: int


@dataclass
class _Line:
    """A row as it is written."""

    label: str
    start: int
    pieces: list[_Piece]
    notes: dict[str, str]
    corner: str = ""


@dataclass
class _Open:
    """A table that more rows may belong to."""

    caption: str
    notes: dict[str, str]
    lines: list[_Line] = field(default_factory=list)

    def takes(self, line: _Line) -> bool:
        """Rows of one table have its name, and heads in common."""
        if line.notes.get("Table", "") != self.caption or line.notes.get("Company") != self.notes.get("Company"):
            return False
        heads = {piece.head for last in self.lines[-3:] for piece in last.pieces}
        return self.lines[-1].label == line.label or bool(heads & {piece.head for piece in line.pieces})


def read_tables(text: str) -> list[Table]:
    """The tables of a text, in its order; cells know where in the text they stand."""
    found, current, gap = list[_Open](), list[_Open](), 0
    for start, line in _split_lines(text):
        row = _read_line(line, start)
        if row is None:
            gap += bool(line.strip())
            if gap > 1:  # the heading of a group may stand between two rows
                current = []
            continue
        gap = 0
        if not (current and current[0].takes(row)):
            current = [_Open(row.notes.get("Table", ""), row.notes)]
            found.append(current[0])
        current[0].lines.append(row)
    return [_close(one).turn_periods_to_columns() for one in found]


class WrittenCell(NamedTuple):
    """A cell as its row tells it: all that a reader needs to understand the figure."""

    label: str
    head: str
    text: str
    scale: str
    caption: str
    company: str


def read_cell(line: str, at: int) -> WrittenCell | None:
    """The cell that stands at a place of a row."""
    row = _read_line(line, 0)
    found = (one for one in row.pieces if one.start <= at < one.start + max(1, len(one.text))) if row else ()
    piece = next(iter(found), None)
    return _write_cell(row, piece) if row and piece else None


def read_cells(line: str) -> list[WrittenCell]:
    """All cells of a row; none of any other line."""
    row = _read_line(line, 0)
    return [_write_cell(row, piece) for piece in row.pieces] if row else []


def _write_cell(row: _Line, piece: _Piece) -> WrittenCell:
    note = _SCALE_NOTE.search(row.label)
    value = parse_cell(piece.text)
    is_scaled = value is not None and not value.is_percent and not value.scale
    scale = find_stated_scale(note[1] if note else row.notes.get("Unit", "")) if is_scaled else ""
    label = _SCALE_NOTE.sub("", row.label)
    return WrittenCell(label, piece.head, piece.text, scale, row.notes.get("Table", ""), row.notes.get("Company", ""))


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1


def _read_line(line: str, start: int) -> _Line | None:
    """A row that is written with its heads; None for anything else."""
    label, dash, rest = line.partition(_DASH)
    if not dash or ": " not in rest:
        if not is_table_row(line):
            return None
        label, rest = "", line
    at = start + len(line) - len(rest)
    pieces, notes = list[_Piece](), dict[str, str]()
    for part in rest.split("; "):
        head, colon, value = part.rpartition(": ")
        if not colon:
            head, value = "", part
        if head in _NOTES:
            notes[head] = value
        else:
            pieces.append(_Piece(head, value, at + len(part) - len(value)))
        at += len(part) + 2
    if not any(parse_cell(piece.text) for piece in pieces) or (dash and not all(piece.head for piece in pieces[1:])):
        return None
    corner = ""
    if not label and parse_cell(pieces[0].text) is None and len(pieces) > 1:
        corner, label = pieces[0].head, pieces.pop(0).text
    return _Line(label, start, pieces, notes, corner)


def _close(one: _Open) -> Table:
    heads = _order_heads([[piece.head for piece in line.pieces] for line in one.lines])
    rows = list[Row]()
    stated = [match[1] for line in one.lines if (match := _SCALE_NOTE.search(line.label))]
    is_scaled, common = bool(stated), max(set(stated), key=stated.count) if stated else ""
    for line in one.lines:
        cells = {piece.head: Cell(piece.text, parse_cell(piece.text), piece.start) for piece in line.pieces}
        if rows and rows[-1].start >= 0 and _is_continued(one.lines, line):
            before = rows.pop()
            merged = [cells.get(head) or kept for head, kept in zip(heads, before.cells, strict=True)]
            rows.append(before._replace(cells=tuple(merged)))
            continue
        group, colon, label = f"{line.label} ".rpartition(": ")
        scale = _SCALE_NOTE.search(line.label)
        label = _SCALE_NOTE.sub("", label.strip())
        unit = scale[1] if scale else "" if is_scaled and label else None
        rows.append(Row(label, group if colon else "", tuple(cells.get(head) for head in heads), line.start, unit))
    corner = next((line.corner for line in one.lines if line.corner), "")
    notes = [one.notes.get("Unit", ""), common, one.notes.get("Company", "")]
    return Table(one.caption, tuple(heads), tuple(rows), corner, tuple(note for note in notes if note))


def _order_heads(lines: Sequence[Sequence[str]]) -> list[str]:
    """All heads, each after the one that stands before it in some row."""
    heads = list[str]()
    for line in lines:
        for before, head in pairwise(["", *line]):
            if head not in heads:
                heads.insert(heads.index(before) + 1 if before in heads else 0 if not before else len(heads), head)
    return heads


def _is_continued(lines: Sequence[_Line], line: _Line) -> bool:
    """A long row goes on in lines that begin with its label and have other heads."""
    number = next(at for at, one in enumerate(lines) if one is line)
    before = lines[number - 1] if number else None
    if before is None or before.label != line.label or not line.label:
        return False
    return not {piece.head for piece in before.pieces} & {piece.head for piece in line.pieces}
