"""Whom the tools serve, and what with: the same tools work on a person's own machine and on a server."""

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
    """Who calls a tool. `is_local`: whoever runs this program, on their own machine and at their own cost."""

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
        """By the HTTP request that a call came with; None where it came without one."""
        ...

    async def ask(self, guest: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run: ...

    def events(self, run: str) -> AsyncIterator[Event]:
        """From the first on, until the run stands still."""
        ...

    async def resolve_documents(self, guest: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        """What a run may be asked about, for what a caller named."""
        ...

    def redact(self, data: Any) -> Any:
        """Plain data as they may be told to who calls."""
        ...

    def redact_message(self, message: str) -> str:
        """As `shown`, of what is said of a run, or of something that cannot be."""
        ...


class LocalHost:
    """A House of one person: documents are files and folders of theirs."""

    def __init__(self, resources: ServerResources) -> None:
        self.resources = resources
        self.asked: list[str] = []  # runs

    def identify(self, request: object) -> ToolCaller:
        return ToolCaller(user=self.resources.engine.settings.user, is_local=True)

    async def ask(self, guest: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run:
        run = await self.resources.engine.start(question, options, thread=thread)
        self.asked.append(run.id)
        return run

    def events(self, run: str) -> AsyncIterator[Event]:
        return self.resources.engine.events(run)

    async def resolve_documents(self, guest: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(str(Path(name).expanduser().absolute()) for name in names)  # noqa: ASYNC240  # nothing is read

    def redact(self, data: Any) -> Any:
        """Where files stand on it is known to whose machine it is."""
        return data

    def redact_message(self, message: str) -> str:
        return message


async def get_own_thread(house: ToolHost, guest: ToolCaller, thread: str) -> Thread:
    """Another's is as unknown as one that never was."""
    if not is_id(thread):
        raise NotFoundError("no such thread", help="Call `threads` without a thread for the list of them.")
    return await house.resources.engine.threads.get(thread, owner=guest.user)
