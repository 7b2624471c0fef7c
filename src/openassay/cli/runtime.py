"""An engine for one command, the threads and runs it is given by name, and the signals that end it."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from openassay.cli import STOPPED
from openassay.cli.screen import print_message
from openassay.errors import NotFoundError, UsageError
from openassay.settings import Settings, load

if TYPE_CHECKING:
    from openassay.engine.engine import Engine

T = TypeVar("T")
LAST = "last"
ID_LENGTH = 12  # of threads and runs
MAX_THREADS = 1_000_000  # that are looked through for the start of an id
MAX_LISTED = 6
_HANG_UP = getattr(signal, "SIGHUP", None)  # not on Windows


def run_with_engine(work: Callable[[Engine], Awaitable[T]], settings: Settings | None = None) -> T:
    """Do one thing on an engine that is open for it alone."""
    from openassay.bootstrap import open_engine

    async def run() -> T:
        async with open_engine(settings or load()) as engine:
            return await work(engine)

    return asyncio.run(run())


def run_on_thread(thread: str, work: Callable[[Engine, str], Awaitable[T]]) -> T:
    """Do one thing on a thread, which may be named by the start of its id or as `last`."""

    async def find_and_work(engine: Engine) -> T:
        return await work(engine, await find_thread(engine, thread))

    return run_with_engine(find_and_work)


async def find_thread(engine: Engine, name: str) -> str:
    """Return a thread's id. One that is not known is returned as it is, for the engine to say so."""
    if name == LAST:
        newest = await engine.threads.overview(limit=1, owner=engine.settings.user)
        if not newest:
            raise NotFoundError("there is no thread yet", help='Ask something: openassay ask "..."')
        return newest[0].id
    if not name or len(name) >= ID_LENGTH:
        return name
    return match_id(name, (one.id for one in await engine.threads.list_recent(limit=MAX_THREADS)), "threads")


async def find_run(engine: Engine, thread: str, name: str | None) -> str | None:
    if not name or len(name) >= ID_LENGTH:
        return name
    ids = [run.id for run in await engine.threads.runs(thread)]
    return ids[-1] if name == LAST and ids else match_id(name, ids, "runs")


def match_id(name: str, ids: Iterable[str], what: str) -> str:
    """Return the one id that begins with a name, or the name where none does."""
    found = [id for id in ids if id.startswith(name)]
    if len(found) > 1 and name not in found:
        some = f"{', '.join(found[:MAX_LISTED])}{' ...' if found[MAX_LISTED:] else ''}"
        raise UsageError(f"the ids of {len(found)} {what} begin with {name}", help=f"Type more of it: {some}")
    return found[0] if len(found) == 1 else name


@contextmanager
def handle_signals(interrupt: Callable[[], None], terminate: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` on Ctrl-C, `terminate` on SIGTERM and when the terminal is closed, unless nohup was used."""

    def hang_up() -> None:
        # Writing to a terminal that is gone fails, and would take the run with it: output goes nowhere from here on.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # it is closed, or stands for no file
                if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
                    os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        terminate()

    handlers = {signal.SIGINT: interrupt, signal.SIGTERM: terminate}
    if _HANG_UP is not None and signal.getsignal(_HANG_UP) is not signal.SIG_IGN:
        handlers[_HANG_UP] = hang_up
    loop = asyncio.get_running_loop()
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)


@contextmanager
def wait_for_stop(message: str) -> Iterator[asyncio.Event]:
    """Set an event at the first signal, with a message; a second one ends the process at once."""
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            os._exit(STOPPED)
        print_message(message)
        stopping.set()

    with handle_signals(stop, stop):
        yield stopping
