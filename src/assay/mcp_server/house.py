"""Whom the tools serve, and what with: the same tools work on a person's own machine and on a server."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from assay.bootstrap import Premises
from assay.errors import NotFoundError, UsageError
from assay.model.event import Event
from assay.model.record import Record
from assay.model.thread import Options, Run, Thread, is_id
from assay.model.user import Scope


class Guest(Record):
    """Who calls a tool. `is_local`: whoever runs this program, on their own machine and at their own cost."""

    user: str
    scopes: frozenset[Scope] = frozenset(Scope)
    is_local: bool = False

    def needs(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise UsageError(f"this token may not {scope}", help="Use one with that scope.")


class House(Protocol):
    @property
    def premises(self) -> Premises: ...

    def guest(self, request: object) -> Guest:
        """By the HTTP request that a call came with; None where it came without one."""
        ...

    async def ask(self, guest: Guest, question: str, options: Options, thread: str | None) -> Run: ...

    def events(self, run: str) -> AsyncIterator[Event]:
        """From the first on, until the run stands still."""
        ...

    async def documents(self, guest: Guest, names: Sequence[str]) -> tuple[str, ...]:
        """What a run may be asked about, for what a caller named."""
        ...

    def shown(self, data: Any) -> Any:
        """Plain data as they may be told to who calls."""
        ...

    def said(self, message: str) -> str:
        """As `shown`, of what is said of a run, or of something that cannot be."""
        ...


class OwnMachine:
    """A House of one person: documents are files and folders of theirs."""

    def __init__(self, premises: Premises) -> None:
        self.premises = premises
        self.asked: list[str] = []  # runs

    def guest(self, request: object) -> Guest:
        return Guest(user=self.premises.engine.settings.user, is_local=True)

    async def ask(self, guest: Guest, question: str, options: Options, thread: str | None) -> Run:
        run = await self.premises.engine.start(question, options, thread=thread)
        self.asked.append(run.id)
        return run

    def events(self, run: str) -> AsyncIterator[Event]:
        return self.premises.engine.events(run)

    async def documents(self, guest: Guest, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(str(Path(name).expanduser().absolute()) for name in names)  # noqa: ASYNC240  # nothing is read

    def shown(self, data: Any) -> Any:
        """Where files stand on it is known to whose machine it is."""
        return data

    def said(self, message: str) -> str:
        return message


async def own(house: House, guest: Guest, thread: str) -> Thread:
    """Another's is as unknown as one that never was."""
    if not is_id(thread):
        raise NotFoundError("no such thread", help="Call `threads` without a thread for the list of them.")
    return await house.premises.engine.threads.get(thread, owner=guest.user)
