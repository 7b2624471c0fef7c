"""The process of a pool: reads one page after another, under limits that hold whatever a page does.

A frame is a length of 4 bytes, that much JSON, and, on the way in, a body whose size the JSON gives. The child ends
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
_MAX_CHARACTERS = 2_000_000  # of one page; a long book has half of that
_PDF_MEGABYTES = 512  # for the process that opens the file
_LAYOUT_MEGABYTES = 256  # for the positions of its characters, in this process
_MAX_GROWTH = 24 * MEGABYTE  # a worker that keeps more after a page is replaced; 181 pages in a row leave 12
_STUB_BYTES = 1_000  # a page as short as that which leads elsewhere says nothing else
_TOO_BIG = "needs more than {:.0f} MB of memory"
_MAX_TAGS = 20  # with http-equiv that are looked at
_REFRESH_BYTES = 200_000  # in which a page must have said where it leads

_PICTURE = re.compile(rb"data:[\w/+.;=-]{1,80};base64,[\w+/=%]{1000,}")  # libxml2 gives up on long attributes
_INERT_TAGS = (
    (b"<!--", b"-->"), (b"<script", b"</script"), (b"<noscript", b"</noscript"), (b"<style", b"</style"),
    (b"<template", b"</template"),
)  # fmt: skip
_REFRESH = re.compile(rb"<meta\b[^>]{0,500}http-equiv\s*=\s*[\"']?refresh\b[^>]{0,2000}>", re.I)
_TARGET = re.compile(rb"content\s*=\s*[\"']?\s*(\d{1,4})(?:\.\d*)?\s*[;,]\s*(?:url\s*=\s*)?[\"']?\s*([^\"'>\s]+)", re.I)


class ExtractionTask(NamedTuple):
    """The header of a request."""

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
    while len(prefix := source.read(4)) == 4:
        fields = json.loads(source.read(struct.unpack(">I", prefix)[0]))
        task = ExtractionTask(**{**fields, "format": ContentFormat(fields["format"])})
        body = source.read(task.size)  # all of it, whatever becomes of it: the next page comes after it
        _set_limits(task, base)
        found = run_task(task, body)
        _clear_limits()
        found["retire"] = _read_memory("VmSize") - base > _MAX_GROWTH
        write_answer(sink, found)
        if found["retire"]:
            return


def warm_up() -> None:
    """Load the libraries, and let them make the tables that they make at their first page."""
    html.extract(b"<html><body><article><p>One page is read to warm up.</p></article></body></html>", "https://a.test/")


def write_answer(sink: BinaryIO, found: dict[str, Any]) -> None:
    data = json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")
    sink.write(struct.pack(">I", len(data)) + data)
    sink.flush()


def run_task(task: ExtractionTask, body: bytes) -> dict[str, Any]:
    """Read a page. A fault of the page is an answer; any other ends the process, and the parent reports it."""
    peak = _read_memory("VmPeak")
    try:
        return read_page(task, body)
    except MemoryError:
        return {"error": _TOO_BIG.format(task.memory_limit)}
    except ReadError as error:
        # libxml2 calls a page broken when it could not get the memory for it
        short = _read_memory("VmPeak") - peak > 0.8 * task.memory_limit * MEGABYTE
        return {"error": _TOO_BIG.format(task.memory_limit) if short else error.message}


def read_page(task: ExtractionTask, body: bytes) -> dict[str, Any]:
    leads = find_refresh(body, task.url) if task.format is ContentFormat.HTML else None
    found = Extraction("") if leads and len(body) < _STUB_BYTES else _extract(task, body)
    text = found.text[:_MAX_CHARACTERS]
    # A table has no prose to judge.
    score = quality.score(text) if task.format is not ContentFormat.CSV else 1.0
    fields = {name: value.isoformat() if isinstance(value, date) else value for name, value in asdict(found).items()}
    return fields | {"text": text, "quality": score, "refresh": leads}


def _extract(task: ExtractionTask, body: bytes) -> Extraction:
    match task.format:
        case ContentFormat.HTML:
            return html.extract(decode_page(_PICTURE.sub(b"data:,", body), task.charset), task.url)
        case ContentFormat.PDF:
            from openassay.fetch import pdf

            return pdf.extract(body, seconds=max(1, int(task.seconds)), megabytes=_PDF_MEGABYTES)
        case ContentFormat.DOCX:
            from openassay.fetch import docx

            return docx.extract(body)
        case ContentFormat.CSV:
            from openassay.fetch import text

            return text.extract_csv(_to_utf8(body, task.charset))
        case ContentFormat.MARKDOWN | ContentFormat.PLAIN:
            from openassay.fetch import text

            read = text.extract_markdown if task.format is ContentFormat.MARKDOWN else text.extract_plain
            return read(_to_utf8(body, task.charset))


def _to_utf8(body: bytes, charset: str) -> bytes:
    """Decode no more than is kept."""
    return decode_page(body, charset)[:_MAX_CHARACTERS].encode("utf-8", "replace")


def find_refresh(body: bytes, url: str) -> list[Any] | None:
    """Return seconds and address of `<meta http-equiv=refresh>`, if it leads to another page.

    The tag is found by plain search: some patterns over a whole page take the square of its length."""
    head = body[:_REFRESH_BYTES]
    low, at, found = head.lower(), 0, None
    for _ in range(_MAX_TAGS):
        at = low.find(b"http-equiv", at + 1)
        if at < 0:
            return None
        start, end = low.rfind(b"<", 0, at), low.find(b">", at) + 1
        inert = any(low.rfind(opens, 0, start) > low.rfind(closes, 0, start) for opens, closes in _INERT_TAGS)
        if end and not inert and _REFRESH.fullmatch(head, start, end):
            found = _TARGET.search(head[start:end])
            break
    if found is None:
        return None
    target = urljoin(url, unescape(found[2].decode("utf-8", "replace")))
    return [int(found[1]), target] if target.split("#")[0] != url.split("#")[0] else None


def _set_limits(task: ExtractionTask, base: int) -> None:
    """Limit the memory above that of a worker at rest, and the time: the alarm ends a worker whose parent is gone."""
    try:
        import resource
    except ImportError:  # Windows: only the parent's clock limits it
        return
    signal.setitimer(signal.ITIMER_REAL, task.seconds + 2)
    if base:
        _, hardest = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (base + int(task.memory_limit * MEGABYTE), hardest))


def _clear_limits() -> None:
    try:
        import resource
    except ImportError:
        return
    signal.setitimer(signal.ITIMER_REAL, 0)
    _, hardest = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hardest, hardest))


def _read_memory(field: str) -> int:
    """Return a field of /proc/self/status in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field)), 0)
    except OSError:
        return 0


if __name__ == "__main__":
    main()
