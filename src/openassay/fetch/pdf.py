"""Extracts PDF files in a subprocess with limits on time and memory; safe to call from many threads."""

import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from threading import BoundedSemaphore
from typing import NamedTuple

from openassay.errors import ReadError
from openassay.fetch.formats import Extraction, is_incomplete, parse_day, reflow
from openassay.fetch.pdf_tables import PdfLine, rewrite_tables
from openassay.fetch.table_notes import add_company, find_company, find_filer
from openassay.fetch.tables import PlacedCell
from openassay.text.words import clean_text

# Shares of the height of a line, which is a little more than the size of its letters.
_SAME_LINE = 0.45  # a raised footnote mark stands .35 higher
_SPACE = 0.12
_APART = 0.8  # justified prose rarely has wider gaps, and columns of a table rarely narrower ones
_PARAGRAPH = 1.35  # times the usual distance of two lines of prose

_CURRENCY = re.compile(r"[$€£]")
_FIGURE = re.compile(r"(?:^|\s)[$€£]?\s?\(?(?:\d[\d,.]*\d|\d|[—\u2013])\s?[)%]*$")
_LETTERS = re.compile(r"[^\W\d_]")


class PdfTextRun(NamedTuple):
    left: float
    right: float
    bottom: float
    top: float
    text: str

    @property
    def height(self) -> float:
        return self.top - self.bottom


class _TextLine(NamedTuple):
    bottom: float
    height: float
    cells: list[PlacedCell]

    @property
    def is_prose(self) -> bool:
        return len(self.cells) == 1 and len(self.cells[0].text) > 40


def lay_out(runs: Sequence[PdfTextRun]) -> list[list[PlacedCell]]:
    """Make the lines of a page from runs of text with their positions; a blank line is an empty list.

    Lines go from top to bottom across the page; those of a page in two columns of prose go in the order in which it
    was drawn, which follows each column down. Cells far apart stay apart."""
    lines = [_build_line(group) for group in _group_by_line(sorted(runs, key=lambda run: -run.bottom))]
    if _is_set_in_columns([line.cells for line in lines]):
        lines = [_build_line(group) for group in _group_by_line(runs)]
    found: list[list[PlacedCell]] = []
    # The usual distance of two lines of prose; 0 where a page has too little of it.
    distances = [above.bottom - line.bottom for above, line in pairwise(lines) if above.is_prose and line.is_prose]
    close = [distance for distance in distances if distance > 0]
    usual = median(close) if len(close) > 2 else 0.0
    for above, line in pairwise([None, *lines]):
        distance = above.bottom - line.bottom if above and line else 0.0
        if above and line and not 0 < distance <= _PARAGRAPH * max(usual, min(above.height, line.height)):
            found.append([])
        if line:
            found.append(line.cells)
    return found


def _group_by_line(runs: Iterable[PdfTextRun]) -> Iterator[list[PdfTextRun]]:
    group: list[PdfTextRun] = []
    for run in runs:
        if group and abs(run.bottom - group[0].bottom) >= _SAME_LINE * max(run.height, group[0].height):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _build_line(runs: Sequence[PdfTextRun]) -> _TextLine:
    height = max(run.height for run in runs)
    cells: list[PlacedCell] = []
    for run in sorted(runs, key=lambda run: run.left):
        last = cells[-1] if cells else None
        gap = (run.left - last.end) / height if last and height else 0.0
        # `(2,028) $`: the sign belongs to the column that follows, however narrow the gap.
        if (
            last is None
            or gap > _APART
            or (gap > _SPACE and _CURRENCY.match(run.text) is not None and _FIGURE.search(last.text) is not None)
        ):
            cells.append(PlacedCell(run.left, run.right, run.text))
        else:
            space = " " if gap > _SPACE else ""
            cells[-1] = PlacedCell(last.start, max(last.end, run.right), f"{last.text}{space}{run.text}")
    return _TextLine(min(run.bottom for run in runs), height, cells)


def _is_set_in_columns(lines: Sequence[Sequence[PlacedCell]]) -> bool:
    """Tell whether prose stands on both sides of a gap in many lines."""
    long = [cells for cells in lines if sum(len(cell.text) for cell in cells) > 40]
    split = 0
    for cells in long:
        width = cells[-1].end - cells[0].start
        shares = [(cell.start - cells[0].start) / width if width else 0.0 for cell in cells]
        split += any(
            0.25 < shares[number] < 0.75 and _is_prose(cells[:number]) and _is_prose(cells[number:])
            for number in range(1, len(cells))
        )
    return len(long) > 10 and split > 0.4 * len(long)


def _is_prose(cells: Sequence[PlacedCell]) -> bool:
    visible = "".join("".join(cell.text for cell in cells).split())
    return len(visible) > 15 and len(_LETTERS.findall(visible)) > 0.75 * len(visible)


_DIGITS = re.compile(r"\d+")
_EDGE_LINES = 4  # of a page among which running headers and footers are searched for
_GLUED_DATE = re.compile(r"\b([A-Z][a-z]{2,8} \d{1,2}),((?:19|20)\d\d)\b")
_OPEN_END = re.compile(r"[\w,\u2019)-]$")


PageLines = Sequence[Sequence[PlacedCell]]


def join_pages(pages: Sequence[PageLines]) -> str:
    """Join pages to one text: whole sentences on one line, one row per line, no running headers and footers."""
    # Running lines are outermost lines that recur, but for numbers, on a quarter of the pages (three at least).
    counts: Counter[str] = Counter()
    for page in pages:
        forms = [form for line in page if (form := _mask_digits(line))]
        counts.update({*forms[:_EDGE_LINES], *forms[-_EDGE_LINES:]})
    enough = max(3, len(pages) // 4)
    running = {form for form, count in counts.items() if count >= enough}
    lines: list[PdfLine] = []
    for page in pages:
        # From each edge inwards up to the first line that is the page's own.
        own = [number for number, line in enumerate(page) if (form := _mask_digits(line)) and form not in running]
        found = list(rewrite_tables(page[own[0] : own[-1] + 1])) if own else []
        filled = [number for number, line in enumerate(found) if line.text]
        found = found[filled[0] : filled[-1] + 1] if filled else []
        if lines and found:
            # No blank line may part a sentence that runs over the page break.
            last, first = lines[-1], found[0]
            is_open = _OPEN_END.search(last.text) and (first.text[0].islower() or len(last.text) > 60)
            if last.is_row or first.is_row or not (is_open or is_incomplete(last.text)):
                lines.append(PdfLine(""))
        lines += found
    texts: list[str] = []
    for is_row, group in groupby(lines, key=lambda line: line.is_row):
        block = [line.text for line in group]
        texts += ["", *block, ""] if is_row else [reflow("\n".join(block))]
    return _GLUED_DATE.sub(r"\1, \2", "\n".join(texts))


def _mask_digits(line: Sequence[PlacedCell]) -> str:
    return _DIGITS.sub("#", " ".join(cell.text for cell in line))


_CHILD = Path(__file__).with_name("pdf_child.py")
_CHILDREN = BoundedSemaphore(os.cpu_count() or 2)  # more would only use up each other's time
_NO_MEMORY = (-signal.SIGABRT, -getattr(signal, "SIGTRAP", 5), -signal.SIGILL)  # how PDFium ends when none is left
_MIN_TEXT = 5  # visible characters a page on average; a scan has none, or a stray page number

_POOR_TITLE = re.compile(
    r"microsoft (?:word|powerpoint|excel)|untitled|(?:document|slide|presentation|book|layout)\s*\d*$|"
    r"[\w.-]*[\d_.][\w.-]*$|"
    r".*\.(?:docx?|pptx?|xlsx?|pdf|indd|tex|qxd|rtf|html?)$|\W*$",
    re.IGNORECASE,
)


def extract(source: Path | bytes, *, seconds: int = 60, megabytes: int = 1500) -> Extraction:
    """Extract a PDF; raises ReadError when it is corrupt, encrypted, scanned, or needs more than its limits."""
    with _CHILDREN:
        path, content = ("-", source) if isinstance(source, bytes) else (str(source), b"")
        # By path and with -P: `-m` would import the packages above it, and files beside the child could hide others.
        command = [sys.executable, "-P", str(_CHILD), path, str(seconds), str(megabytes)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=3 * seconds, input=content, check=False)
        except subprocess.TimeoutExpired as error:
            raise _too_slow_error(seconds) from error
        if done.returncode != 0:
            raise _exit_error(done.returncode, done.stderr.decode("utf-8", "replace"), seconds, megabytes)
        answer = json.loads(done.stdout)
        if not isinstance(answer, dict):
            raise _corrupt_error("")
    if answer.get("error") == "encrypted":
        raise ReadError("encrypted, it needs a password", help="Save a copy without the password.")
    if "error" in answer:
        raise _corrupt_error(str(answer.get("detail", "")))
    listed = answer.get("pages")
    pages: list[PageLines] = []
    for page in listed if isinstance(listed, list) else ():
        by_turn: dict[int, list[PdfTextRun]] = {}
        for turns, left, right, bottom, top, run in page:
            by_turn.setdefault(turns, []).append(PdfTextRun(left, right, bottom, top, run))
        # Upright text, then what is turned: a stamp in the margin, or a whole table set sideways.
        most_first = sorted(by_turn.values(), key=len, reverse=True)
        pages.append([line for runs in most_first for line in [*lay_out(runs), []]])
    if not pages:
        raise _corrupt_error("it holds no pages")
    text = clean_text(join_pages(pages))
    if len("".join(text.split())) < _MIN_TEXT * len(pages):
        raise ReadError("scanned, no text layer", help="Run text recognition (OCR) on it first.")
    # Many titles are accession numbers or what a printer driver wrote: worse than the name of the file.
    title = _metadata_text(answer, "title")
    letters = sum(map(str.isalpha, title))
    return Extraction(
        text=add_company(text, find_company("", text)),
        title="" if _POOR_TITLE.match(title) or letters < len(title) / 2 else title,
        author=_metadata_text(answer, "author") or None,
        # As in `D:20230804060209-04'00'`.
        published=parse_day(_metadata_text(answer, "created").removeprefix("D:")[:8]),
        publisher=find_filer(text) or None,
    )


def _corrupt_error(detail: str) -> ReadError:
    reason = f": {detail}" if detail else ""
    return ReadError(f"not a readable PDF{reason}", help="Open it in a viewer and save or print it to PDF again.")


def _too_slow_error(seconds: int) -> ReadError:
    return ReadError(f"took more than {seconds} s to read", help="Split the file, or print it to PDF again.")


def _exit_error(code: int, errors: str, seconds: int, megabytes: int) -> ReadError:
    if code in (-signal.SIGTERM, -getattr(signal, "SIGXCPU", 24), -getattr(signal, "SIGKILL", 9)):
        return _too_slow_error(seconds)
    last = errors.strip().rsplit("\n", 1)[-1]
    if code in _NO_MEMORY or "memory" in last.lower():
        return ReadError(f"needs more than {megabytes} MB of memory", help="Split the file into smaller ones.")
    return _corrupt_error(" ".join(clean_text(last).split())[:200])


def _metadata_text(answer: Mapping[str, object], key: str) -> str:
    return " ".join(clean_text(str(answer.get(key) or "")).split())
