"""Lines of a page from runs of text with their places: cells far apart stay apart, a blank line parts paragraphs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from assay.harvest.pdf.columns import Cell

# Shares of the height of a line, which is a little more than the size of its letters.
_SAME_LINE = 0.45  # a raised footnote mark stands .35 higher
_SPACE = 0.12
_APART = 0.8  # justified prose rarely has wider gaps, and columns of a table rarely narrower ones
_PARAGRAPH = 1.35  # times the usual distance of two lines of prose

_CURRENCY = re.compile(r"[$€£]")
_FIGURE = re.compile(r"(?:^|\s)[$€£]?\s?\(?(?:\d[\d,.]*\d|\d|[—\u2013])\s?[)%]*$")
_LETTERS = re.compile(r"[^\W\d_]")


class Run(NamedTuple):
    left: float
    right: float
    bottom: float
    top: float
    text: str

    @property
    def height(self) -> float:
        return self.top - self.bottom


class _Line(NamedTuple):
    bottom: float
    height: float
    cells: list[Cell]

    @property
    def is_prose(self) -> bool:
        return len(self.cells) == 1 and len(self.cells[0].text) > 40


def lay_out(runs: Sequence[Run]) -> list[list[Cell]]:
    """Top to bottom across the page; a page set in two columns of prose in the order in which it was drawn,
    which follows each column down. A blank line is an empty list."""
    lines = [_line(group) for group in _side_by_side(sorted(runs, key=lambda run: -run.bottom))]
    if _is_set_in_columns([line.cells for line in lines]):
        lines = [_line(group) for group in _side_by_side(runs)]
    return list(_spaced(lines))


def _side_by_side(runs: Iterable[Run]) -> Iterator[list[Run]]:
    group: list[Run] = []
    for run in runs:
        if group and abs(run.bottom - group[0].bottom) >= _SAME_LINE * max(run.height, group[0].height):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _line(runs: Sequence[Run]) -> _Line:
    height = max(run.height for run in runs)
    cells: list[Cell] = []
    for run in sorted(runs, key=lambda run: run.left):
        last = cells[-1] if cells else None
        gap = (run.left - last.end) / height if last and height else 0.0
        if last is None or gap > _APART or (gap > _SPACE and _is_next_figure(last.text, run.text)):
            cells.append(Cell(run.left, run.right, run.text))
        else:
            space = " " if gap > _SPACE else ""
            cells[-1] = Cell(last.start, max(last.end, run.right), f"{last.text}{space}{run.text}")
    return _Line(min(run.bottom for run in runs), height, cells)


def _is_next_figure(left: str, right: str) -> bool:
    """`(2,028) $`: the sign belongs to the column that follows, however narrow the gap."""
    return _CURRENCY.match(right) is not None and _FIGURE.search(left) is not None


def _spaced(lines: Sequence[_Line]) -> Iterator[list[Cell]]:
    usual = _usual_distance(lines)
    for above, line in pairwise([None, *lines]):
        distance = above.bottom - line.bottom if above and line else 0.0
        if above and line and not 0 < distance <= _PARAGRAPH * max(usual, min(above.height, line.height)):
            yield []
        if line:
            yield line.cells


def _usual_distance(lines: Sequence[_Line]) -> float:
    """From line to line of prose, or 0 where a page has too little of it."""
    distances = [above.bottom - line.bottom for above, line in pairwise(lines) if above.is_prose and line.is_prose]
    close = [distance for distance in distances if distance > 0]
    return median(close) if len(close) > 2 else 0.0


def _is_set_in_columns(lines: Sequence[Sequence[Cell]]) -> bool:
    long = [cells for cells in lines if sum(len(cell.text) for cell in cells) > 40]
    split = sum(any(_is_gutter(cells, number) for number in range(1, len(cells))) for cells in long)
    return len(long) > 10 and split > 0.4 * len(long)


def _is_gutter(cells: Sequence[Cell], number: int) -> bool:
    """Whether prose stands on both sides of the gap before this cell."""
    width = cells[-1].end - cells[0].start
    share = (cells[number].start - cells[0].start) / width if width else 0.0
    return 0.25 < share < 0.75 and _is_prose(cells[:number]) and _is_prose(cells[number:])


def _is_prose(cells: Sequence[Cell]) -> bool:
    visible = "".join("".join(cell.text for cell in cells).split())
    return len(visible) > 15 and len(_LETTERS.findall(visible)) > 0.75 * len(visible)
