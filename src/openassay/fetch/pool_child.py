"""Runs alone in a subprocess and reads one page after another, under limits that hold whatever a page does.

A frame is a length of 4 bytes, that much JSON, and, on the way in, a body whose size the JSON tells. The child ends
when its input does, so also when its parent is killed.
"""

import json
import os
import re
import signal
import struct
import sys
from dataclasses import asdict
from datetime import date
from html import unescape
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import urljoin

from openassay.errors import ReadError
from openassay.fetch import html, quality
from openassay.fetch.decoders import decode_page
from openassay.fetch.formats import ContentFormat, Extraction

MEGABYTE = 1_000_000
_CHARACTERS = 2_000_000  # of one page; a long book has half of that
_PDF_MEGABYTES = 512  # for the process that opens the file
_LAYOUT_MEGABYTES = 256  # for the places of its characters, in this process
_GROWN = 24 * MEGABYTE  # a worker that keeps so much after a page is replaced; 181 pages in a row leave 12
_STUB = 1_000  # bytes; a page as short as that which leads elsewhere says nothing else
_TOO_BIG = "needs more than {:.0f} MB of memory"
_TAGS = 20  # of those that say something in place of a header
_WIDE = 200_000  # bytes in which a page must have said where it leads

_PICTURE = re.compile(rb"data:[\w/+.;=-]{1,80};base64,[\w+/=%]{1000,}")  # libxml2 gives up on long attributes
_SILENT = (
    (b"<!--", b"-->"), (b"<script", b"</script"), (b"<noscript", b"</noscript"), (b"<style", b"</style"),
    (b"<template", b"</template"),
)  # fmt: skip
_REFRESH = re.compile(rb"<meta\b[^>]{0,500}http-equiv\s*=\s*[\"']?refresh\b[^>]{0,2000}>", re.I)
_TARGET = re.compile(rb"content\s*=\s*[\"']?\s*(\d{1,4})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?\s*([^\"'>\s]+)", re.I)


class ExtractionTask(NamedTuple):
    """What stands in the header of a request."""

    format: ContentFormat
    url: str
    charset: str
    seconds: float
    megabytes: float
    size: int

    @property
    def memory_limit(self) -> float:
        """Megabytes above a worker at rest."""
        return _LAYOUT_MEGABYTES if self.format is ContentFormat.PDF else self.megabytes


def main() -> None:
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not pass for an answer
    warm_up()
    base = _read_memory("VmSize")
    write_answer(sink, {"ready": True})
    while (work := _read_task(source)) is not None:
        body = source.read(work.size)  # all of it, whatever becomes of it: the next page comes after it
        _set_limits(work, base)
        found = run_task(work, body)
        _clear_limits()
        found["retire"] = _read_memory("VmSize") - base > _GROWN
        write_answer(sink, found)
        if found["retire"]:
            return


def warm_up() -> None:
    """The libraries are loaded, and the tables they make at their first page are made."""
    html.extract(b"<html><body><article><p>One page is read to warm up.</p></article></body></html>", "https://a.test/")


def _read_task(source: BinaryIO) -> ExtractionTask | None:
    prefix = source.read(4)
    if len(prefix) < 4:
        return None
    fields = json.loads(source.read(struct.unpack(">I", prefix)[0]))
    return ExtractionTask(**{**fields, "format": ContentFormat(fields["format"])})


def write_answer(sink: BinaryIO, found: dict[str, Any]) -> None:
    data = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    sink.write(struct.pack(">I", len(data)) + data)
    sink.flush()


def run_task(work: ExtractionTask, body: bytes) -> dict[str, Any]:
    """A fault of the page is an answer; any other ends the process, and the parent reports it."""
    peak = _read_memory("VmPeak")
    try:
        return read_page(work, body)
    except MemoryError:
        return {"error": _TOO_BIG.format(work.memory_limit)}
    except ReadError as error:
        # libxml2 calls a page broken when it could not get the memory for it
        short = _read_memory("VmPeak") - peak > 0.8 * work.memory_limit * MEGABYTE
        return {"error": _TOO_BIG.format(work.memory_limit) if short else error.message}


def read_page(work: ExtractionTask, body: bytes) -> dict[str, Any]:
    leads = find_refresh(body, work.url) if work.format is ContentFormat.HTML else None
    found = Extraction("") if leads and len(body) < _STUB else _extract(work, body)
    words = found.text[:_CHARACTERS]
    fields = {name: value.isoformat() if isinstance(value, date) else value for name, value in asdict(found).items()}
    return fields | {
        "text": words,
        "quality": quality.score(words)
        if work.format is not ContentFormat.CSV
        else 1.0,  # a table has no prose to judge
        "refresh": leads,
    }


def _extract(work: ExtractionTask, body: bytes) -> Extraction:
    match work.format:
        case ContentFormat.HTML:
            return html.extract(decode_page(_PICTURE.sub(b"data:,", body), work.charset), work.url)
        case ContentFormat.PDF:
            from openassay.fetch import pdf

            return pdf.extract(body, seconds=max(1, int(work.seconds)), megabytes=_PDF_MEGABYTES)
        case ContentFormat.DOCX:
            from openassay.fetch import docx

            return docx.extract(body)
        case ContentFormat.CSV:
            from openassay.fetch import text

            return text.extract_csv(_to_utf8(body, work.charset))
        case ContentFormat.MARKDOWN | ContentFormat.PLAIN:
            from openassay.fetch import text

            read = text.extract_markdown if work.format is ContentFormat.MARKDOWN else text.extract_plain
            return read(_to_utf8(body, work.charset))


def _to_utf8(body: bytes, charset: str) -> bytes:
    """No more than is kept."""
    return decode_page(body, charset)[:_CHARACTERS].encode("utf-8", "replace")


# Where a page leads ----------------------------------------------------------------------------------


def find_refresh(body: bytes, url: str) -> list[Any] | None:
    """Seconds and address of `<meta http-equiv=refresh>`, if it leads to another page."""
    tag = _find_refresh_tag(body[:_WIDE])
    found = _TARGET.search(tag) if tag else None
    if found is None:
        return None
    target = urljoin(url, unescape(found[2].decode("utf-8", "replace")))
    return [int(found[1]), target] if target.split("#")[0] != url.split("#")[0] else None


def _find_refresh_tag(head: bytes) -> bytes | None:
    """The tag, if it is one that counts. By plain search: of patterns over a whole page some take the square of it."""
    low, at = head.lower(), 0
    for _ in range(_TAGS):
        at = low.find(b"http-equiv", at + 1)
        if at < 0:
            return None
        start, end = low.rfind(b"<", 0, at), low.find(b">", at) + 1
        silent = any(low.rfind(opens, 0, start) > low.rfind(closes, 0, start) for opens, closes in _SILENT)
        if end and not silent and _REFRESH.fullmatch(head, start, end):
            return head[start:end]
    return None


# Limits ----------------------------------------------------------------------------------------------


def _set_limits(work: ExtractionTask, base: int) -> None:
    """Memory above that of a worker at rest. The alarm ends a worker whose parent is no longer there to do it."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock alone holds it
        return
    signal.setitimer(signal.ITIMER_REAL, work.seconds + 2)
    if base:
        _, hardest = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (base + int(work.memory_limit * MEGABYTE), hardest))


def _clear_limits() -> None:
    try:
        import resource
    except ImportError:
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    _, hardest = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hardest, hardest))


def _read_memory(field: str) -> int:
    """Bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field)), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
