"""Tables among lines whose parts have positions on the page: rows stay whole and name their column headings.

A heading is bound to a figure only when every heading line above the table fits the columns by position; a
table with one that does not keeps plain rows. On twelve quarterly reports that binds 17 rows of 20.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from openassay.fetch.formats import is_incomplete
from openassay.fetch.table_notes import NUMBER_MARKS, TableScale, are_counts, find_caption, find_scale, shorten_caption
from openassay.fetch.tables import (
    FOOTNOTE_MARKS,
    VALUE,
    YEAR,
    PlacedCell,
    RowGroup,
    join_figures,
    tidy_value,
    write_row,
)

_STRONG = re.compile(r"[,.$€£%()—\u2013]")
_MEASURED = re.compile(r"[$€£(]*\d+[.,]\d")
_GLUED = re.compile(r"[a-z]{2}[A-Z]")
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


@dataclass(frozen=True, slots=True)
class PdfTableRow:
    indent: float
    label: str
    values: tuple[PlacedCell, ...]


def _parse_row(parts: Sequence[PlacedCell]) -> PdfTableRow | None:
    """Parse a label and figures, or None: a line of justified prose has wide gaps too, but words after them."""
    first = 0 if parts and VALUE.fullmatch(parts[0].text) else 1
    values = parts[first:]
    if not values or not all(VALUE.fullmatch(cell.text) for cell in values):
        return None
    if first == 0 and (len(values) < 2 or all(YEAR.fullmatch(cell.text) for cell in values)):
        return None
    if len(values) == 1 and not _STRONG.search(values[0].text):
        return None
    figures = tuple(cell._replace(text=tidy_value(cell.text)) for cell in values)
    return PdfTableRow(parts[0].start, parts[0].text if first else "", figures)


def rewrite_tables(page: Sequence[Sequence[PlacedCell]]) -> Iterator[PdfLine]:
    """Yield the lines of one page with its tables written row by row."""
    lines = [join_figures(line) for line in page]
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
                caption = shorten_caption(NUMBER_MARKS.sub("", sections[0][0].text.rstrip(": ")))
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
    lines: Sequence[Sequence[PlacedCell]],
    above: range,
    heads: Sequence[int],
    columns: Sequence[PlacedCell],
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


def _pitch(columns: Sequence[PlacedCell]) -> float:
    return (columns[-1].centre - columns[0].centre) / (len(columns) - 1)


def _is_units(line: Sequence[PlacedCell]) -> bool:
    return _UNITS.fullmatch(line[-1].text) is not None


def _to_plain_line(line: Sequence[PlacedCell]) -> PdfLine:
    """Write a line of no table; parts far apart (a form, a table of words) are not prose that continues below."""
    text = _line_text(line)
    if _RULE.fullmatch(text):
        return PdfLine("")
    if len(line) < 2 or len(line[0].text) <= 8 or is_incomplete(text):
        return PdfLine(text)
    letter = (line[0].end - line[0].start) / len(line[0].text)
    return PdfLine(text, is_row=any(right.start - left.end > _WIDE_GAP * letter for left, right in pairwise(line)))


def _line_text(line: Sequence[PlacedCell]) -> str:
    return " ".join(cell.text for cell in line)


def _find_tables(
    lines: Sequence[Sequence[PlacedCell]], rows: Sequence[PdfTableRow | None]
) -> Iterator[tuple[int, int]]:
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


def _find_columns(rows: Sequence[PdfTableRow]) -> list[PlacedCell]:
    """Return the extents of the columns, from rows with the usual number of figures; empty when they overlap."""
    usual = Counter(len(found.values) for found in rows).most_common(1)[0][0]
    full = [found.values for found in rows if len(found.values) == usual]
    columns = [
        PlacedCell(min(cell.start for cell in column), max(cell.end for cell in column), "")
        for column in zip(*full, strict=True)
    ]
    apart = all(left.end < right.start for left, right in pairwise(columns))
    is_labelled = any(found.label for found in rows if len(found.values) == usual)
    return columns if apart and usual > 1 and is_labelled else []


def _find_heads(
    lines: Sequence[Sequence[PlacedCell]], floor: int, first: int, columns: Sequence[PlacedCell]
) -> list[int]:
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
            or (VALUE.fullmatch(cell.text) and not YEAR.fullmatch(cell.text))
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


def _column_names(heads: Sequence[Sequence[PlacedCell]], columns: Sequence[PlacedCell]) -> list[str]:
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
        owners: dict[int, PlacedCell] = {}
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


def _is_above(cell: PlacedCell, columns: Sequence[PlacedCell], group: range, pitch: float) -> bool:
    centre = (columns[group[0]].start + columns[group[-1]].end) / 2
    return abs(cell.centre - centre) <= 0.4 * pitch


@dataclass(frozen=True, slots=True)
class _PdfTable:
    columns: Sequence[PlacedCell]
    names: Sequence[str]
    scale: TableScale | None
    caption: str

    def write_lines(
        self, lines: Sequence[Sequence[PlacedCell]], rows: Sequence[PdfTableRow | None]
    ) -> Iterator[PdfLine]:
        group = RowGroup()
        pending, indent = "", 0.0  # a line without figures: a heading, or the start of a wrapped label
        for line, found in zip(lines, rows, strict=True):
            if found:
                # A label that was wrapped gets its first line back; else that line stands by itself.
                continues = found.label[:1].islower() or pending.count("(") > pending.count(")")
                is_wrapped = pending and not pending.endswith(":") and continues
                label, rest = (f"{pending} {found.label}", "") if is_wrapped else (found.label, pending)
                yield from _to_rows(group.open(rest, indent))
                prefix = group.prefix(indent if pending and not rest else found.indent)
                label, values = FOOTNOTE_MARKS.sub("", label), [value.text for value in found.values]
                label = group.add_unit(self.scale, label, values)
                owners = [_find_column(value, self.columns) for value in found.values]
                if not self.names or None in owners or len(set(owners)) < len(owners):
                    written = [prefix + " ".join([label, *values]).strip()]
                else:
                    pairs = [(self.names[owner or 0], text) for owner, text in zip(owners, values, strict=True)]
                    is_said = group.heading.casefold() == f"{self.caption}:".casefold()
                    written = write_row(prefix + label, pairs, "" if is_said else self.caption)
                yield from _to_rows(written)
                pending = ""
            elif pending and line and line[0].text[:1].islower():
                pending = f"{pending} {_line_text(line)}"
            elif line:
                yield from _to_rows(group.open(pending, indent))
                pending, indent = _line_text(line), line[0].start


def _to_rows(texts: Iterable[str]) -> Iterator[PdfLine]:
    return (PdfLine(text, is_row=True) for text in texts)


def _find_column(value: PlacedCell, columns: Sequence[PlacedCell]) -> int | None:
    """Return the column a figure stands in."""
    over = [index for index, column in enumerate(columns) if value.start <= column.end and column.start <= value.end]
    return over[0] if len(over) == 1 else None
