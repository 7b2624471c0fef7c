"""Runs alone in a subprocess: the pages of one PDF as JSON, under limits that hold whatever the file does.

Started by path, so it must import nothing of Assay; an unhandled error is the parent's to report.
"""

import json
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_CHARACTERS = 40_000_000  # layout text is mostly spaces: 60 KB of prose take about 200 KB
_GUTTER = re.compile(r"\S {3,}(?=\S)")
_LETTERS = re.compile(r"[^\W\d_]")

# Broken pages raise almost anything inside pypdf; a page is lost then, not the document.
_PAGE_FAULTS = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, AssertionError)


def main() -> None:
    path, seconds, megabytes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    limit(seconds, megabytes)
    sys.stdout.buffer.write(json.dumps(read(path)).encode("ascii"))


def limit(seconds: int, megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: the parent's wall clock alone holds it
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 1_000_000, megabytes * 1_000_000))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(path: str) -> dict[str, object]:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    logging.disable(logging.CRITICAL)
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "encrypted"}
        return {"pages": pages(reader), **metadata(reader)}
    except DependencyError:
        return {"error": "encrypted"}
    except PyPdfError as error:
        return {"error": "corrupt", "detail": str(error)}


def pages(reader: "PdfReader") -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    room = _CHARACTERS
    for page in reader.pages:
        text, is_layout = page_text(page)
        room -= len(text)
        if room < 0:
            raise SystemExit("more text than Assay reads")
        found.append({"text": text, "layout": is_layout})
    return found


def page_text(page: "PageObject") -> tuple[str, bool]:
    """Layout text, which shows paragraphs and columns; pages set in two columns of prose as plain text, which
    follows each column down."""
    from pypdf.errors import PyPdfError

    try:
        text = page.extract_text(extraction_mode="layout")
        if text.strip() and not is_set_in_columns(text):
            return text, True
    except (*_PAGE_FAULTS, PyPdfError):
        pass
    try:
        return page.extract_text(), False
    except (*_PAGE_FAULTS, PyPdfError):
        return "", False


def is_set_in_columns(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n") if len(line.strip()) > 40]
    split = sum(has_prose_on_both_sides(line) for line in lines)
    return len(lines) > 10 and split > 0.4 * len(lines)


def has_prose_on_both_sides(line: str) -> bool:
    middle = len(line) / 2
    gaps = [match.end() for match in _GUTTER.finditer(line) if 0.5 * middle < match.end() < 1.5 * middle]
    return any(is_prose(line[:gap]) and is_prose(line[gap:]) for gap in gaps)


def is_prose(part: str) -> bool:
    visible = part.replace(" ", "")
    return len(visible) > 15 and len(_LETTERS.findall(visible)) > 0.75 * len(visible)


def metadata(reader: "PdfReader") -> dict[str, object]:
    from pypdf.errors import PyPdfError

    try:
        info = reader.metadata
        created = info.creation_date if info else None
        return {
            "title": str(info.title or "") if info else "",
            "author": str(info.author or "") if info else "",
            "created": created.date().isoformat() if created else "",
        }
    except (*_PAGE_FAULTS, PyPdfError):
        return {}


if __name__ == "__main__":
    main()
