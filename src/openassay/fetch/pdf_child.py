"""Runs alone in a subprocess: the text of one PDF with its places, as JSON, under limits that hold whatever the
file does.

Started by path, so it must import nothing of OpenAssay; an unhandled error is the parent's to report.
"""

import ctypes
import json
import math
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pypdfium2
from pypdfium2 import raw

_CHARACTERS = 40_000_000
_HYPHENS = (0x02, 0xFFFE)  # PDFium's marks for a hyphen at the end of a line
_SLANT = 0.2  # radians off a quarter turn from which text is a watermark, not a line
_JOINS = 0.3  # of the height of a line: a wider gap ends a run, the parent decides what it means
_NARROW = 0.15  # of the height, less than most spaces take

_RECT = raw.FS_RECTF()
_AT_RECT = ctypes.byref(_RECT)


class Box(NamedTuple):
    left: float
    right: float
    bottom: float
    top: float


def main() -> None:
    path, seconds, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    set_limits(seconds, megabytes)
    sys.stdout.buffer.write(json.dumps(read_document(path)).encode("ascii"))


def set_limits(seconds: int, megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent's wall clock alone holds it
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000, megabytes * 1_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read_document(path: str) -> dict[str, object]:
    try:
        document = pypdfium2.PdfDocument(sys.stdin.buffer.read() if path == "-" else path)
        read, about = list(pages(document)), document.get_metadata_dict()
        return {"pages": read, "title": about["Title"], "author": about["Author"], "created": about["CreationDate"]}
    except pypdfium2.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            return {"error": "encrypted"}
        return {"error": "corrupt", "detail": str(error)}


def pages(document: Any) -> Iterator[list["RunRow"]]:
    """A broken page is lost, not the document."""
    room = _CHARACTERS
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:
            yield []
            continue
        found = list(runs(text.raw, PageObjects(page.raw)))
        room -= sum(len(run[-1]) for run in found)
        if room < 0:
            raise SystemExit("more text than OpenAssay reads")
        yield found
        text.close()
        page.close()


RunRow = tuple[int, float, float, float, float, str]  # quarter turns, left, right, bottom, top, text


class PageObjects:
    """Which text the page draws in which order, looked up when it is first asked for."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._objects: list[Any] = []
        self._order: dict[int | None, int] = {}

    def has_lost_letter(self, text: Any, left: int, right: int) -> bool:
        """PDFium takes a letter that overlaps the same letter before it, as in a slanted `ff`, for a trick to
        make it bold, and drops it: then one piece of text is drawn between the two it shows."""
        if not self._objects:
            count = raw.FPDFPage_CountObjects(self._page)
            self._objects = [raw.FPDFPage_GetObject(self._page, number) for number in range(count)]
            self._order = {pointer_address(found): number for number, found in enumerate(self._objects)}
        before, after = (
            self._order.get(pointer_address(raw.FPDFText_GetTextObject(text, index))) for index in (left, right)
        )
        if before is None or after is None or after - before != 2:
            return False
        lost, shown = text_size(self._objects[before + 1]), text_size(self._objects[before])
        return lost is not None and lost == shown


def text_size(piece: Any) -> tuple[float, float] | None:
    """Width and height of a piece of text, to tell a letter from another and from a space, which has none."""
    sides = [ctypes.c_float() for _ in range(4)]
    if raw.FPDFPageObj_GetType(piece) != raw.FPDF_PAGEOBJ_TEXT:
        return None
    if not raw.FPDFPageObj_GetBounds(piece, *map(ctypes.byref, sides)):
        return None
    left, bottom, right, top = (side.value for side in sides)
    return round(right - left, 1), round(top - bottom, 1)


def pointer_address(pointer: Any) -> int | None:
    return ctypes.cast(pointer, ctypes.c_void_p).value


def runs(text: Any, drawn: PageObjects) -> Iterator[RunRow]:
    """Characters that stand side by side, in the order in which the page draws them."""
    turns, place, letters, last = 0, Box(0, 0, 0, 0), "", 0
    for code, index, gap in characters(text):
        flat = bounds(text, index)
        box = rotate(flat, turns) if turns else flat
        if letters and follows(place, box):
            if gap:
                narrow = box.left - place.right < _NARROW * (box.top - box.bottom)
                lost = narrow and letters[-1].isalpha() and drawn.has_lost_letter(text, last, index)
                letters += letters[-1] if lost else " "
            letters += chr(code)
            place, last = Box(place.left, max(place.right, box.right), place.bottom, place.top), index
            continue
        if letters:
            yield (turns, *round_box(place), letters)
        quarters = raw.FPDFText_GetCharAngle(text, index) / (math.pi / 2)
        slanted = abs(quarters - round(quarters)) > _SLANT
        letters = "" if slanted else chr(code)
        turns, last = 0 if slanted else round(quarters) % 4, index
        place = rotate(flat, turns)
    if letters:
        yield (turns, *round_box(place), letters)


def characters(text: Any) -> Iterator[tuple[int, int, bool]]:
    """Code, index and whether white space stands before it."""
    unicode, gap = raw.FPDFText_GetUnicode, False
    for index in range(raw.FPDFText_CountChars(text)):
        code = unicode(text, index)
        if code in _HYPHENS:
            code = 0x2D
        if code <= 0x20 or code == 0xA0 or code > 0x10FFFF:
            gap = True
            continue
        yield code, index, gap
        gap = False


def bounds(text: Any, index: int) -> Box:
    raw.FPDFText_GetLooseCharBox(text, index, _AT_RECT)
    return Box(_RECT.left, _RECT.right, _RECT.bottom, _RECT.top)


def follows(place: Box, box: Box) -> bool:
    height = max(place.top - place.bottom, box.top - box.bottom)
    return (
        abs(box.bottom - place.bottom) < 0.25 * height and -_JOINS * height < box.left - place.right < _JOINS * height
    )


def rotate(box: Box, turns: int) -> Box:
    """The place as one sees it who turns the page until the text is upright."""
    left, right, bottom, top = box
    match turns:
        case 1:
            return Box(-top, -bottom, left, right)
        case 2:
            return Box(-right, -left, -top, -bottom)
        case 3:
            return Box(bottom, top, -right, -left)
        case _:
            return box


def round_box(box: Box) -> tuple[float, float, float, float]:
    return round(box.left, 1), round(box.right, 1), round(box.bottom, 1), round(box.top, 1)


if __name__ == "__main__":
    main()
