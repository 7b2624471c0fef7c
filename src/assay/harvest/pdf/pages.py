"""Pages of a PDF as one flowing text: whole sentences on one line, one row per line, no running lines."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from assay.harvest.pdf.columns import Cell, Line, rewrite
from assay.harvest.reflow import is_open, reflow

_DIGITS = re.compile(r"\d+")
_EDGE = 4  # lines at the edge of a page among which running headers and footers are looked for
_GLUED_DATE = re.compile(r"\b([A-Z][a-z]{2,8} \d{1,2}),((?:19|20)\d\d)\b")
_OPEN_END = re.compile(r"[\w,\u2019)-]$")


Sheet = Sequence[Sequence[Cell]]


def flow(pages: Sequence[Sheet]) -> str:
    lines: list[Line] = []
    for sheet in _without_running_lines(pages):
        found = _trimmed(list(rewrite(sheet)))
        if lines and found and not _goes_on(lines[-1], found[0]):
            lines.append(Line(""))
        lines += found
    return _GLUED_DATE.sub(r"\1, \2", "\n".join(_flowing(lines)))


def _flowing(lines: Sequence[Line]) -> Iterator[str]:
    for is_row, group in groupby(lines, key=lambda line: line.is_row):
        texts = [line.text for line in group]
        if is_row:
            yield from ("", *texts, "")
        else:
            yield reflow("\n".join(texts))


def _trimmed(lines: list[Line]) -> list[Line]:
    filled = [number for number, line in enumerate(lines) if line.text]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def _goes_on(last: Line, first: Line) -> bool:
    """Whether a sentence runs over the page break; then no blank line may part it."""
    if last.is_row or first.is_row:
        return False
    if is_open(last.text):
        return True
    return bool(_OPEN_END.search(last.text)) and (first.text[0].islower() or len(last.text) > 60)


def _without_running_lines(sheets: Sequence[Sheet]) -> list[Sheet]:
    """Drops outermost lines that come again, but for numbers, on a quarter of the pages (three at least)."""
    counts = Counter(form for sheet in sheets for form in _edge_forms(sheet))
    enough = max(3, len(sheets) // 4)
    running = {form for form, count in counts.items() if count >= enough}
    return [_stripped(sheet, running) for sheet in sheets]


def _edge_forms(sheet: Sheet) -> set[str]:
    forms = [form for line in sheet if (form := _form(line))]
    return {*forms[:_EDGE], *forms[-_EDGE:]}


def _stripped(sheet: Sheet, running: set[str]) -> Sheet:
    """From each edge inwards up to the first line that is the page's own: a column heading below it stays."""
    top, bottom = 0, len(sheet)
    while top < bottom and (not (form := _form(sheet[top])) or form in running):
        top += 1
    while bottom > top and (not (form := _form(sheet[bottom - 1])) or form in running):
        bottom -= 1
    return sheet[top:bottom]


def _form(line: Sequence[Cell]) -> str:
    return _DIGITS.sub("#", " ".join(cell.text for cell in line))
