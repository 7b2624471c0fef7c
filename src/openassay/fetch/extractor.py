"""Extracts pages in a pool of processes, so that no page can stop, bloat or end the process that asked.

A worker reads one page after another, under limits that hold whatever a page does, and scores what it has found. A
frame is a length of 4 bytes, that much JSON, and, on the way in, a body whose size the JSON gives. A worker ends when
its input does, so also when its parent is killed.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import struct
import sys
from dataclasses import asdict, dataclass
from datetime import date
from html import unescape
from statistics import fmean
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import urljoin

from openassay.errors import ReadError
from openassay.fetch import html, text
from openassay.fetch.decoders import decode_page
from openassay.fetch.formats import ContentFormat, Extraction

_MODULE = "openassay.fetch.extractor"
_MAX_WORKERS = 4  # extraction is all computing, and each worker holds about 75 MB
_MEGABYTES = 62  # above a worker at rest, with the body held here: the page then stays below 64; real ones take 15
_MAX_PDFS = 2  # at once
_START_SECONDS = 60.0
_CHUNK_BYTES = 1 << 18
_MAX_ANSWER_BYTES = 64_000_000  # two million characters of JSON stay below it
_HELP = "Open it in a browser."


@dataclass(frozen=True, slots=True)
class PageContent(Extraction):
    """What a worker found in a page."""

    quality: float = 0.0
    refresh: tuple[int, str] | None = None  # after so many seconds it leads to this address


class ExtractorPool:
    """Starts workers when they are first needed, and replaces one for which a page was too much."""

    def __init__(self, *, workers: int | None = None, megabytes: float = _MEGABYTES) -> None:
        self._size = workers or min(_MAX_WORKERS, os.cpu_count() or 1)
        self._megabytes = megabytes
        self._slots = asyncio.Semaphore(self._size)
        self._pdfs = asyncio.Semaphore(_MAX_PDFS)
        self._idle: list[_ExtractorProcess] = []  # some of them still starting
        self._busy = 0
        self._ending: set[asyncio.Task[None]] = set()

    def warm_up(self) -> None:
        """Start the missing workers, without waiting for them."""
        self._idle += [_ExtractorProcess() for _ in range(self._size - len(self._idle) - self._busy)]

    async def extract(
        self, body: bytes, *, format: ContentFormat, url: str, charset: str = "", seconds: float
    ) -> PageContent:
        """Extract a page; raises ReadError for a fault of the page, or of a worker that it has ended."""
        megabytes = max(self._megabytes - len(body) / 1e6, 1)
        task = ExtractionTask(format, url, charset, seconds, megabytes, len(body))
        async with self._pdfs if format is ContentFormat.PDF else contextlib.nullcontext(), self._slots:
            worker = self._take_worker()
            reusable = False
            try:
                await worker.wait_until_ready()
                async with asyncio.timeout(seconds):
                    answer = await worker.ask(task, body)
                reusable = not answer["retire"]
            except TimeoutError as error:
                raise ReadError(f"took more than {seconds:.0f} s to read", help=_HELP) from error
            except (OSError, EOFError, ValueError) as error:
                raise ReadError(await worker.exit_reason(), help=_HELP, retryable=True) from error
            finally:
                self._return_worker(worker, reusable)
        if "error" in answer:
            raise ReadError(str(answer["error"]), help=_HELP, url=url)
        fields = {name: answer[name] for name in PageContent.__dataclass_fields__ if name in answer}
        published, refresh = answer.get("published"), answer.get("refresh")
        fields["published"] = date.fromisoformat(published) if published else None
        fields["refresh"] = (int(refresh[0]), str(refresh[1])) if refresh else None
        return PageContent(**fields)

    def _take_worker(self) -> "_ExtractorProcess":
        """Take an idle worker, one that is ready before one that is starting."""
        if not self._size:
            raise ReadError("the reader is closed", help="Open another.")
        for worker in [worker for worker in self._idle if worker.is_dead]:
            self._idle.remove(worker)
            self._end_worker(worker)
        self.warm_up()
        worker = next((worker for worker in reversed(self._idle) if worker.is_ready), self._idle[0])
        self._idle.remove(worker)
        self._busy += 1
        return worker

    def _return_worker(self, worker: "_ExtractorProcess", reusable: bool) -> None:
        self._busy -= 1
        if reusable and self._size:
            self._idle.append(worker)
            return
        self._end_worker(worker)
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # a caller that gives up may close next: no new worker for that
            self.warm_up()

    def _end_worker(self, worker: "_ExtractorProcess") -> None:
        ending = asyncio.create_task(worker.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End all workers; no page may be in work any more."""
        idle, self._idle, self._size = self._idle, [], 0
        await asyncio.gather(*self._ending, *(worker.end() for worker in idle))


class _ExtractorProcess:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        self._starting = asyncio.create_task(self._start())

    @property
    def is_ready(self) -> bool:
        return self._starting.done()

    @property
    def is_dead(self) -> bool:
        """Whether something outside has ended it, or it could not be started."""
        return self.is_ready and (
            self._starting.exception() is not None or self._starting.result().returncode is not None
        )

    async def wait_until_ready(self) -> None:
        """Wait until it has started; raises OSError when it could not be."""
        await asyncio.shield(self._starting)

    async def _start(self) -> asyncio.subprocess.Process:
        # A session of its own: Ctrl-C is the parent's to handle, and with a worker goes the process it reads a PDF in.
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            _MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        started = False
        try:
            async with asyncio.timeout(_START_SECONDS):
                started = bool(await _read_answer(process))
        except (TimeoutError, EOFError) as error:
            raise OSError("a process for reading pages did not start") from error
        finally:
            if not started:
                await _kill(process)
        return process

    async def ask(self, task: "ExtractionTask", body: bytes) -> dict[str, Any]:
        process = self._starting.result()
        pipe = cast(asyncio.StreamWriter, process.stdin)
        header = json.dumps(task._asdict()).encode()
        pipe.write(struct.pack(">I", len(header)) + header)
        # Piece by piece, so that no second copy lies in the pipe's buffer.
        for start in range(0, len(body), _CHUNK_BYTES):
            pipe.write(body[start : start + _CHUNK_BYTES])
            await pipe.drain()
        return await _read_answer(process)

    async def exit_reason(self) -> str:
        """Say how it ended by itself."""
        if not self._starting.done() or self._starting.exception():
            return "no process could be started to read it in"
        process = self._starting.result()
        with contextlib.suppress(TimeoutError):  # its pipe may be closed a moment before it is gone
            await asyncio.wait_for(process.wait(), 1)
        code = process.returncode or 0
        return "ended the process that read it" + (f" ({signal.Signals(-code).name})" if code < 0 else "")

    async def end(self) -> None:
        self._starting.cancel()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await _kill(await self._starting)


async def _read_answer(process: asyncio.subprocess.Process) -> dict[str, Any]:
    pipe = cast(asyncio.StreamReader, process.stdout)
    size = struct.unpack(">I", await pipe.readexactly(4))[0]
    if size > _MAX_ANSWER_BYTES:
        raise ValueError("no answer of a reader")
    answer = json.loads(await pipe.readexactly(size))
    if not isinstance(answer, dict):
        raise ValueError("no answer of a reader")
    return answer


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a process with all it has started: it leads a group of its own."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    await process.wait()


# The process of a worker -----------------------------------------------------------------------------------

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
    """The header of a request to a worker."""

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
    # The libraries are loaded, and make the tables that they make at their first page.
    html.extract(b"<html><body><article><p>One page is read to warm up.</p></article></body></html>", "https://a.test/")
    base = _read_memory("VmSize")
    write_answer(sink, {"ready": True})
    while len(prefix := source.read(4)) == 4:
        fields = json.loads(source.read(struct.unpack(">I", prefix)[0]))
        task = ExtractionTask(**{**fields, "format": ContentFormat(fields["format"])})
        body = source.read(task.size)  # all of it, whatever becomes of it: the next page comes after it
        # Memory is limited above that of a worker at rest, where the system tells what that is.
        _set_limits(task.seconds + 2, base + int(task.memory_limit * MEGABYTE) if base else 0)
        found = run_task(task, body)
        _set_limits(0, 0)
        found["retire"] = _read_memory("VmSize") - base > _MAX_GROWTH
        write_answer(sink, found)
        if found["retire"]:
            return


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
    kept = found.text[:_MAX_CHARACTERS]
    # A table has no prose to judge.
    quality = score(kept) if task.format is not ContentFormat.CSV else 1.0
    fields = {name: value.isoformat() if isinstance(value, date) else value for name, value in asdict(found).items()}
    return fields | {"text": kept, "quality": quality, "refresh": leads}


def _extract(task: ExtractionTask, body: bytes) -> Extraction:
    match task.format:
        case ContentFormat.HTML:
            return html.extract(decode_page(_PICTURE.sub(b"data:,", body), task.charset), task.url)
        case ContentFormat.PDF:
            from openassay.fetch import pdf  # a worker that reads none does without

            return pdf.extract(body, seconds=max(1, int(task.seconds)), megabytes=_PDF_MEGABYTES)
        case ContentFormat.DOCX:
            return text.EXTRACTORS[task.format](body)
        case _:  # no more than is kept is decoded
            content = decode_page(body, task.charset)[:_MAX_CHARACTERS].encode("utf-8", "replace")
            return text.EXTRACTORS[task.format](content)


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


def _set_limits(seconds: float, memory: int) -> None:
    """Limit the time, by an alarm that ends a worker whose parent is gone, and the memory in bytes; 0 is no limit."""
    try:
        import resource
    except ImportError:  # Windows: only the parent's clock limits it
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, hardest = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (memory or hardest, hardest))


def _read_memory(field: str) -> int:
    """Return a field of /proc/self/status in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith(field)), 0)
    except OSError:
        return 0


# How much a text reads like content rather than a menu, a cookie wall or a dump ------------------------------

_WORD = re.compile(r"[^\W\d_]+")
# Its end is optional, so that each character is looked at once: a page may be one line without a full stop.
_STRETCH = re.compile(r"[^.!?\u3002\uff01\uff1f\n]+([.!?\u3002\uff01\uff1f]?)")
_LETTER = re.compile(r"[^\W\d_]")
_MIN_SENTENCE = 27  # characters
_SPACE = re.compile(r"\s")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # one says as much as two or three Latin letters

# Notices that stand where content should; only a short text can be one, an article may speak of them.
_GONE = re.compile(
    r"\A\W*404\W*$|error 404\b|\b404 (?:error|not|page|-)|"
    r"(?:page|article|content|story|post|site|url|link|product)[^.!?\n]{0,50}"
    r"(?:not (?:be )?found|can(?:no|['\u2019])t be found|(?:does not|doesn['\u2019]t|no longer) (?:exist|available)|"
    r"(?:is|has been|was) (?:no longer available|removed|deleted|moved))|nothing (?:was )?found|"
    r"(?:page|article)[^.!?\n]{0,30}(?:no longer|un)available|"
    r"seite (?:wurde )?nicht (?:gefunden|vorhanden)|page (?:est )?introuvable|página no (?:encontrada|existe)|"
    r"página não (?:foi )?encontrada|pagina non (?:è stata )?trovata|pagina niet gevonden|страница не найдена|"
    r"页面(?:不存在|未找到)|ページが見つかりません",
    re.IGNORECASE | re.MULTILINE,
)
_CONSENT = re.compile(
    r"(?:use[sn]?|using|store|accept|allow|reject|manage|enable|set) (?:[\w/,]+ ){0,6}cookies|"
    r"cookies? (?:policy|settings|preferences|notice)|value your privacy|before you continue|"
    r"your (?:privacy|cookie) (?:choices|settings)|(?:verwende[nt]?|nutz(?:en|t)|setzen) .{0,20}cookies|"
    r"utilis\w+ (?:des |les )?cookies|utiliza\w* cookies|utilizz\w+ (?:i )?cookie|файлы cookie",
    re.IGNORECASE,
)
_ABOUT_CONSENT = re.compile(
    r"cookie|consent|privacy|partners|personali[sz]|advertis|\bads\b|accept|reject|agree|options|preferences|"
    r"got it|learn more",
    re.IGNORECASE,
)
_UNIT = re.compile(r"[^.!?\n]+")
_NOTICE_LENGTH = 1_500  # characters
_NOTICE_START = 250

_LONG_ENOUGH = 600  # characters; a news brief is about this long
_USUAL_LETTERS = 0.75  # share of letters in running prose; tables and code lie near 0.5


def score(text: str) -> float:
    """Score by length, letters, sentences, variety and substance how much a text reads like content: 0 to 1."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return 0.0
    visible = _SPACE.sub("", text)
    inside = 0  # characters inside sentences
    for stretch in _STRETCH.finditer(text):
        first = _LETTER.search(text, stretch.start(), stretch.end())
        size = stretch.end() - first.start() if first and stretch[1] else 0
        inside += size if size >= _MIN_SENTENCE else 0
    # Repeated lines and repeated words both mark boilerplate and generated filler.
    words = _WORD.findall(" ".join(lines).lower())[:400]
    distinct = len(set(words)) / len(words) if words else 0.0
    widths = [_width(line) for line in lines]  # lines that are longer than a menu entry have substance
    factors = (
        min(1.0, _width(text) / _LONG_ENOUGH),
        min(1.0, sum(map(str.isalpha, visible)) / len(visible) / _USUAL_LETTERS),
        min(1.0, inside / (0.7 * len(text))),
        min(len(set(lines)) / len(lines), min(1.0, distinct / 0.3)),
        min(1.0, sum(width for width in widths if width > 60) / sum(widths) / 0.6),
    )
    # The weakest trait decides more than the average: a long menu must not pass for its length.
    found = 0.4 * fmean(factors) + 0.6 * min(factors[1:]) * min(1.0, 0.4 + factors[0])
    return round(found * _notice_factor(text), 3)


def _notice_factor(text: str) -> float:
    """Return less the more of a short text is a notice: that the page is gone, or that it wants to set cookies."""
    if len(text) > _NOTICE_LENGTH:
        return 1.0
    if _GONE.search(text, 0, _NOTICE_START):
        return 0.2
    if not _CONSENT.search(text):
        return 1.0
    units = _UNIT.findall(text)
    share = sum(len(unit) for unit in units if _ABOUT_CONSENT.search(unit)) / sum(map(len, units))
    return max(0.1, 1 - 1.5 * share)


def _width(text: str) -> float:
    """Count characters, wide ones for what they say."""
    return len(text) + 1.5 * len(_WIDE.findall(text))


if __name__ == "__main__":
    main()
