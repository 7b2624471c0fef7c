"""Where the tools run: on a person's own machine, or on a server with many people."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from openassay.bootstrap import ServerResources
from openassay.errors import NotFoundError, UsageError
from openassay.models.base import Record
from openassay.models.event import Event
from openassay.models.thread import ResearchOptions, Run, Thread, is_id
from openassay.models.user import Scope


class ToolCaller(Record):
    """Who calls a tool. `is_local`: the person who runs this program, at their own cost."""

    user: str
    scopes: frozenset[Scope] = frozenset(Scope)
    is_local: bool = False

    def require(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise UsageError(f"this token may not {scope}", help="Use one with that scope.")


class ToolHost(Protocol):
    @property
    def resources(self) -> ServerResources: ...

    def identify(self, request: object) -> ToolCaller:
        """Return who sent the HTTP request of a call; the request is None where there was none."""
        ...

    async def ask(self, caller: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run: ...

    def events(self, run: str) -> AsyncIterator[Event]:
        """Yield the events of a run from the first one, until it stops."""
        ...

    async def resolve_documents(self, caller: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        """Return the documents that a caller named, as a run's options name them."""
        ...

    def redact(self, data: Any) -> Any:
        """Return plain data as the caller may see it."""
        ...

    def redact_message(self, message: str) -> str:
        """Return a message about a run or an error as the caller may see it."""
        ...


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


async def get_own_thread(host: ToolHost, caller: ToolCaller, thread: str) -> Thread:
    """Return a thread of the caller; another person's is as unknown as one that does not exist."""
    if not is_id(thread):
        raise NotFoundError("no such thread", help="Call `threads` without a thread for the list of them.")
    return await host.resources.engine.threads.get(thread, owner=caller.user)
