"""A server that processes share, for what each can do without: trouble with it is told once, and felt by nobody.

Caches, rates and news go over one link. A server that is gone is gone for all of them and told once; one that answers
and refuses, since its memory is full or a user of it may not do that, is left alone for that purpose only.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Literal, TypeVar, get_args

from assay.storage.outage import Outage

C = TypeVar("C")
T = TypeVar("T")

Purpose = Literal["caches", "rates", "news"]
REST_SECONDS = 10.0  # without the server after it failed
_WITHOUT = "until it is back, caches and rates are this process's own, and news is looked for"


class Link(ABC, Generic[C]):
    """`C` is what the server is spoken to with."""

    server: str  # what it is called in notices
    seconds = 3.0  # one call may take

    def __init__(self, on_notice: Callable[[str], None], *, rest: float = REST_SECONDS) -> None:
        self._gone = Outage(on_notice, rest=rest)
        self._refusals = {purpose: Outage(on_notice, rest=rest) for purpose in get_args(Purpose)}
        self._closed = False

    async def use(self, purpose: Purpose, action: Callable[[C], Awaitable[T]]) -> T | None:
        """None where trouble stands in the way."""
        if self._closed or self._gone.resting or self._refusals[purpose].resting:
            return None
        try:
            async with asyncio.timeout(self.seconds):
                done = await self._do(action)
        except self.faults() as error:
            self.fails(purpose, error)
            return None
        self.works(purpose)
        return done

    def fails(self, purpose: Purpose, error: Exception) -> None:
        if self._closed:
            return
        if self._is_gone(error):
            self._gone.begins(f"The {self.server} {self._reason(error)}; {_WITHOUT}.")
        else:
            self._refusals[purpose].begins(
                f"The {self.server} {self._reason(error)} where it is used for {purpose}; going on without it there."
            )

    def works(self, purpose: Purpose) -> None:
        self._gone.is_over()
        self._refusals[purpose].is_over()

    @abstractmethod
    def faults(self) -> tuple[type[Exception], ...]:
        """What goes wrong with a server, and is no fault of ours."""

    @abstractmethod
    async def _do(self, action: Callable[[C], Awaitable[T]]) -> T: ...

    @abstractmethod
    def _is_gone(self, error: Any) -> bool: ...

    @abstractmethod
    def _reason(self, error: Any) -> str:
        """In words of our own: addresses hold passwords."""

    @abstractmethod
    async def close(self) -> None: ...
