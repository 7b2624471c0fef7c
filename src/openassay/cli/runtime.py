"""Signals by which a person, or whoever started this process, ends it."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.settings import load

_HANG_UP = getattr(signal, "SIGHUP", None)  # not on Windows


@contextmanager
def handle_signals(interrupt: Callable[[], None], terminate: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `interrupt`; SIGTERM, and a terminal that is closed, `terminate`. What nohup starts stays."""

    def hang_up() -> None:
        _leave_terminal()
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


def _leave_terminal() -> None:
    """What is still told goes nowhere: writing to a terminal that is gone fails, and would take the run with it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it is closed, or stands for no file
            if stat.S_ISCHR(os.fstat(stream.fileno()).st_mode):
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


# One thing done on an engine that is open for it alone.

T = TypeVar("T")


def run_with_engine(work: Callable[[Engine], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())
