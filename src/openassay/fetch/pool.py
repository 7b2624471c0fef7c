"""A few processes that read pages, so that no page can stop, bloat or end the one that asked."""

import asyncio
import contextlib
import json
import os
import signal
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from openassay.errors import ReadError
from openassay.fetch.formats import ContentFormat, PageNeed

_MODULE = "openassay.fetch.pool_child"
_MAX_WORKERS = 4  # workers; extraction is all computing, and each holds about 75 MB
_MEGABYTES = 62  # above a worker at rest and with the body held here: the page then stays below 64; real ones take 15
_PDFS = 2
_START_SECONDS = 60.0
_CHUNK = 1 << 18
_LONGEST_ANSWER = 64_000_000  # bytes; two million characters of JSON stay below it


_HELP = "Open it in a browser."


@dataclass(frozen=True, slots=True)
class PageContent:
    """What a worker found in a page."""

    text: str
    title: str = ""
    author: str | None = None
    published: date | None = None
    origin: str | None = None
    language: str | None = None
    refresh: tuple[int, str] | None = None  # after so many seconds it leads to this address
    wants: PageNeed | None = None
    quality: float = 0.0


class ExtractorPool:
    """Workers are started when they are first wanted, and replaced when a page was too much for one of them."""

    def __init__(self, *, workers: int | None = None, megabytes: float = _MEGABYTES) -> None:
        self._size = workers or min(_MAX_WORKERS, os.cpu_count() or 1)
        self._megabytes = megabytes
        self._room = asyncio.Semaphore(self._size)
        self._pdfs = asyncio.Semaphore(_PDFS)
        self._bench: list[_ExtractorProcess] = []  # those not at work, some of them still starting
        self._busy = 0
        self._ending: set[asyncio.Task[None]] = set()

    def warm_up(self) -> None:
        """Starts what is not started yet, without waiting for it."""
        self._bench += [_ExtractorProcess() for _ in range(self._size - len(self._bench) - self._busy)]

    async def extract(
        self, body: bytes, *, format: ContentFormat, url: str, charset: str = "", seconds: float
    ) -> PageContent:
        """Raises ReadError: the page's fault, or that of a worker it has ended."""
        work = {
            "format": format, "url": url, "charset": charset, "seconds": seconds, "size": len(body),
            "megabytes": max(self._megabytes - len(body) / 1e6, 1),
        }  # fmt: skip
        async with self._pdfs if format is ContentFormat.PDF else contextlib.nullcontext(), self._room:
            answer = await self._run_task(work, body, seconds)
        if "error" in answer:
            raise ReadError(str(answer["error"]), help=_HELP, url=url)
        return _to_content(answer)

    async def _run_task(self, work: Mapping[str, object], body: bytes, seconds: float) -> dict[str, Any]:
        worker = self._take_worker()
        whole = False
        try:
            await worker.wait_until_ready()
            async with asyncio.timeout(seconds):
                answer = await worker.ask(work, body)
            whole = not answer["retire"]
            return answer
        except TimeoutError as error:
            raise ReadError(f"took more than {seconds:.0f} s to read", help=_HELP) from error
        except (OSError, EOFError, ValueError) as error:
            raise ReadError(await worker.exit_reason(), help=_HELP, retryable=True) from error
        finally:
            self._return_worker(worker, whole)

    def _take_worker(self) -> "_ExtractorProcess":
        """One that is ready before one that is starting."""
        if not self._size:
            raise ReadError("the reader is closed", help="Open another.")
        for worker in [worker for worker in self._bench if worker.is_dead]:
            self._bench.remove(worker)
            self._end_worker(worker)
        self.warm_up()
        worker = next((worker for worker in reversed(self._bench) if worker.is_ready), self._bench[0])
        self._bench.remove(worker)
        self._busy += 1
        return worker

    def _return_worker(self, worker: "_ExtractorProcess", whole: bool) -> None:
        self._busy -= 1
        if whole and self._size:
            self._bench.append(worker)
            return
        self._end_worker(worker)
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # who gives up may close next: no new worker for that
            self.warm_up()

    def _end_worker(self, worker: "_ExtractorProcess") -> None:
        ending = asyncio.create_task(worker.end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """No page may be at work any more."""
        bench, self._bench, self._size = self._bench, [], 0
        await asyncio.gather(*self._ending, *(worker.end() for worker in bench))


class _ExtractorProcess:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        self._starting = asyncio.create_task(self._start())

    @property
    def is_ready(self) -> bool:
        return self._starting.done()

    @property
    def is_dead(self) -> bool:
        """Something outside has ended it, or it could not be started."""
        return self.is_ready and (
            self._starting.exception() is not None or self._starting.result().returncode is not None
        )

    async def wait_until_ready(self) -> None:
        """Raises OSError when it could not be started."""
        await asyncio.shield(self._starting)

    async def _start(self) -> asyncio.subprocess.Process:
        # A session of its own: Ctrl-C is the parent's to handle, and with a worker goes the process it reads a PDF in.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", _MODULE, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
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

    async def ask(self, work: Mapping[str, object], body: bytes) -> dict[str, Any]:
        process = self._starting.result()
        pipe = cast(asyncio.StreamWriter, process.stdin)
        header = json.dumps(work).encode()
        pipe.write(struct.pack(">I", len(header)) + header)
        for start in range(0, len(body), _CHUNK):  # piece by piece, so that no second copy lies in the pipe's buffer
            pipe.write(body[start : start + _CHUNK])
            await pipe.drain()
        return await _read_answer(process)

    async def exit_reason(self) -> str:
        """How it ended by itself."""
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
    if size > _LONGEST_ANSWER:
        raise ValueError("no answer of a reader")
    answer = json.loads(await pipe.readexactly(size))
    if not isinstance(answer, dict):
        raise ValueError("no answer of a reader")
    return answer


async def _kill(process: asyncio.subprocess.Process) -> None:
    """With all it has started: it leads a group of its own."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    await process.wait()


def _to_content(answer: Mapping[str, Any]) -> PageContent:
    fields = {name: answer[name] for name in PageContent.__dataclass_fields__ if name in answer}
    published, refresh = answer.get("published"), answer.get("refresh")
    return PageContent(
        **fields
        | {
            "published": date.fromisoformat(published) if published else None,
            "refresh": (int(refresh[0]), str(refresh[1])) if refresh else None,
        }
    )
