"""How hard a site may be asked: few requests at once, a pause between their starts, and a bound over all sites."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

LONGEST_PAUSE = 10.0  # seconds; a site that asks for more is asked rarely enough by one run
_REMEMBERED = 1_000  # hosts that are idle


@dataclass
class _Host:
    slots: asyncio.Semaphore
    gate: asyncio.Lock = field(default_factory=asyncio.Lock)  # starts come one after the other
    ready: float = 0.0
    users: int = 0


class Politeness:
    """First come, first served, for each host and over all; whoever waits for a slow host keeps nobody else waiting."""

    def __init__(
        self, *, at_once: int, at_once_per_host: int, host_pause: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._all = asyncio.Semaphore(at_once)
        self._per_host = at_once_per_host
        self._pause = host_pause
        self._clock = clock
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def turn(self, host: str, *, pause: float = 0.0) -> AsyncIterator[None]:
        """The time in which one request to the host may be made; `pause` is what the site itself asks for."""
        state = self._hosts.setdefault(host, _Host(asyncio.Semaphore(self._per_host)))
        state.users += 1
        try:
            async with state.slots:
                await self._start(state, max(self._pause, min(pause, LONGEST_PAUSE)))
                try:
                    yield
                finally:
                    self._all.release()
        finally:
            state.users -= 1
            self._forget()

    async def _start(self, state: _Host, pause: float) -> None:
        async with state.gate:
            await asyncio.sleep(max(0.0, state.ready - self._clock()))
            await self._all.acquire()
            state.ready = self._clock() + pause

    def _forget(self) -> None:
        if len(self._hosts) <= _REMEMBERED:
            return
        now = self._clock()
        self._hosts = {name: host for name, host in self._hosts.items() if host.users or host.ready > now}
