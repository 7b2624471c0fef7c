"""MCP over stdin and stdout, for one person. It ends when stdin does; runs that are active then are suspended."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.errors import NotFoundError
from openassay.mcp_server.tools import ToolCaller, create_server
from openassay.models.event import Event, RunStatus
from openassay.models.thread import ResearchOptions, Run
from openassay.settings import Settings

_log = logging.getLogger("openassay")
DRAIN_SECONDS = 1.5  # clients that close stdin send a signal after two
SignalContext = Callable[[Callable[[], None], Callable[[], None]], AbstractContextManager[None]]


async def serve(settings: Settings, handle_signals: SignalContext) -> None:
    """Serve until stdin ends or a signal comes; Ctrl-C and a signal to end both end it in good order."""
    async with open_server_resources(settings) as resources:
        host = LocalHost(resources)
        serving = asyncio.create_task(create_server(host).run_stdio_async(), name="mcp")
        stop = asyncio.Event()
        with handle_signals(stop.set, stop.set):
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
        await resources.engine.drain(seconds=DRAIN_SECONDS)
        for id in host.runs:
            with suppress(NotFoundError):  # its thread was deleted
                run = await resources.engine.threads.run(id)
                if run.status is RunStatus.QUEUED:
                    _log.warning("thread %s was suspended; resume it with: openassay resume %s", run.thread, run.thread)
    if not serving.done():
        os._exit(0)  # everything is closed, but for a thread that reads stdin and cannot be stopped
    await serving


class LocalHost:
    """A host for one person, whose documents are their own files and folders: nothing is redacted."""

    def __init__(self, resources: ServerResources) -> None:
        self.resources = resources
        self.runs: list[str] = []  # that were started here

    def identify(self, request: object) -> ToolCaller:
        return ToolCaller(user=self.resources.engine.settings.user, is_local=True)

    async def ask(self, caller: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run:
        run = await self.resources.engine.start(question, options, thread=thread)
        self.runs.append(run.id)
        return run

    def events(self, run: str) -> AsyncIterator[Event]:
        return self.resources.engine.events(run)

    async def resolve_documents(self, caller: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(str(Path(name).expanduser().absolute()) for name in names)  # noqa: ASYNC240  # nothing is read

    def redact(self, data: Any) -> Any:
        return data

    def redact_message(self, message: str) -> str:
        return message
