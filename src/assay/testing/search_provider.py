"""A search provider on this machine: real HTTP, its documented format, and whatever else it is told to answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import NamedTuple, Self

from assay.model.inquiry import Found
from assay.testing.search_formats import Asked, Format
from assay.testing.web import FakeWeb, Visit, reply
from assay.testing.wire import Request, Response, Wire

Turn = Response | Callable[[Wire, Request], Awaitable[None]]


class Seen(NamedTuple):
    request: Request
    time: float  # monotonic
    at_once: int  # requests under way, itself included


class FakeSearchProvider:
    """`async with FakeSearchProvider(format) as provider` finds `provider.found` whatever it is asked.

    What `then` was given comes first, one for each request. `delay` is in seconds."""

    def __init__(self, format: Format) -> None:
        self.format = format
        self.found: Sequence[Found] = format.samples()
        self.delay = 0.0
        self.seen: list[Seen] = []
        self._turns: list[Turn] = []
        self._under_way = 0
        self._web = FakeWeb()
        self._web.play("http://*/*", self._play)

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._web.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._web.port}"

    @property
    def asked(self) -> list[Asked]:
        return [self.format.asked(seen.request) for seen in self.seen]

    def then(self, *turns: Turn) -> None:
        self._turns += turns

    def forget(self) -> None:
        """Drop what is left of `then`."""
        self._turns.clear()

    def body(self, text: str | bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
        return reply(text, status=status, type=self.format.content_type, headers=headers)

    async def _play(self, wire: Wire, visit: Visit) -> None:
        request = Request(visit.method, visit.path, visit.query, visit.headers, visit.body)
        self._under_way += 1
        self.seen.append(Seen(request, monotonic(), self._under_way))
        try:
            await asyncio.sleep(self.delay)
            await self._answer(wire, request)
        finally:
            self._under_way -= 1

    async def _answer(self, wire: Wire, request: Request) -> None:
        turn = self._turns.pop(0) if self._turns else self.body(self.format.answer(request, self.found))
        if isinstance(turn, Response):
            await wire.send(turn)
        else:
            await turn(wire, request)
