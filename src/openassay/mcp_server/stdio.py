"""A program of one's own over stdin and stdout. It ends when stdin does; runs under way are put aside."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from openassay.bootstrap import open_server_resources
from openassay.errors import NotFoundError
from openassay.mcp_server.host import LocalHost
from openassay.mcp_server.tools import create_server
from openassay.models.event import RunStatus
from openassay.settings import Settings

_log = logging.getLogger("openassay")
DRAIN = 1.5  # seconds: whoever closes stdin and waits for the end sends a signal after two
SignalContext = Callable[[Callable[[], None], Callable[[], None]], AbstractContextManager[None]]


async def serve(settings: Settings, heed: SignalContext) -> None:
    """`heed` says what to do on Ctrl-C and on a signal to end: here both end it in good order."""
    async with open_server_resources(settings) as resources:
        house = LocalHost(resources)
        serving = asyncio.create_task(create_server(house).run_stdio_async(), name="mcp")
        ended = asyncio.Event()
        with heed(ended.set, ended.set):
            told = asyncio.create_task(ended.wait())
            await asyncio.wait([serving, told], return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
        await resources.engine.drain(seconds=DRAIN)
        await _log_pending_runs(house)
    if not serving.done():
        os._exit(0)  # everything is closed, but for a thread that reads stdin and cannot be stopped
    await serving


async def _log_pending_runs(house: LocalHost) -> None:
    for id in house.asked:
        with suppress(NotFoundError):  # its thread was deleted
            run = await house.resources.engine.threads.run(id)
            if run.status is RunStatus.QUEUED:
                _log.warning("thread %s was put aside; go on with: openassay resume %s", run.thread, run.thread)
