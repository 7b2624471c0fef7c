"""A pool of processes that extract pages, so that no page can stop, bloat or end the process that asked."""

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

_MODULE = "openassay.fetch.extractor_child"
_MAX_WORKERS = 4  # extraction is all computing, and each worker holds about 75 MB
_MEGABYTES = 62  # above a worker at rest, with the body held here: the page then stays below 64; real ones take 15
_MAX_PDFS = 2  # at once
_START_SECONDS = 60.0
_CHUNK_BYTES = 1 << 18
_MAX_ANSWER_BYTES = 64_000_000  # two million characters of JSON stay below it
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
        task = {
            "format": format,
            "url": url,
            "charset": charset,
            "seconds": seconds,
            "size": len(body),
            "megabytes": max(self._megabytes - len(body) / 1e6, 1),
        }
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

    async def ask(self, task: Mapping[str, object], body: bytes) -> dict[str, Any]:
        process = self._starting.result()
        pipe = cast(asyncio.StreamWriter, process.stdin)
        header = json.dumps(task).encode()
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
