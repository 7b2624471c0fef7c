"""How hard a site is asked."""

import asyncio
from itertools import pairwise
from time import monotonic

import pytest

from openassay.fetch import client
from openassay.fetch.client import HostLimiter


class Log:
    """Visits that take a while, and what was seen of them."""

    def __init__(self, polite: HostLimiter) -> None:
        self.polite = polite
        self.starts: dict[str, list[float]] = {}
        self.order: list[str] = []
        self.under_way: dict[str, int] = {}
        self.busiest = self.busiest_host = 0

    async def visit(self, host: str, *, takes: float = 0.01, pause: float = 0.0, name: str = "") -> None:
        async with self.polite.slot(host, pause=pause):
            self.starts.setdefault(host, []).append(monotonic())
            self.order.append(name or host)
            self.under_way[host] = self.under_way.get(host, 0) + 1
            self.busiest = max(self.busiest, sum(self.under_way.values()))
            self.busiest_host = max(self.busiest_host, self.under_way[host])
            try:
                await asyncio.sleep(takes)
            finally:
                self.under_way[host] -= 1

    def shortest_pause(self, host: str) -> float:
        starts = self.starts[host]
        return min(after - before for before, after in pairwise(starts))


@pytest.mark.requirement("W-08")
async def test_few_at_once() -> None:
    log = Log(HostLimiter(at_once=5, at_once_per_host=2, host_pause=0))
    await asyncio.gather(*(log.visit(f"host-{number % 4}") for number in range(60)))
    assert (log.busiest, log.busiest_host) == (5, 2)
    assert sum(len(starts) for starts in log.starts.values()) == 60


@pytest.mark.requirement("W-08")
async def test_a_pause_between_starts() -> None:
    log = Log(HostLimiter(at_once=3, at_once_per_host=2, host_pause=0.04))
    hosts = ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    await asyncio.gather(*(log.visit(host, takes=0.03) for host in hosts))
    assert min(log.shortest_pause(host) for host in "abc") >= 0.039


async def test_the_site_may_ask_for_more_but_not_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "MAX_HOST_PAUSE", 0.08)
    log = Log(HostLimiter(at_once=9, at_once_per_host=9, host_pause=0.02))
    await asyncio.gather(*(log.visit(host, pause=pause) for host, pause in (("a", 0.001), ("b", 999.0)) for _ in "123"))
    assert log.shortest_pause("a") >= 0.019
    assert log.shortest_pause("b") >= 0.079
    assert log.shortest_pause("b") < 999, "no longer than a site may ask for"


async def test_a_slow_host_keeps_nobody_else_waiting() -> None:
    log = Log(HostLimiter(at_once=2, at_once_per_host=1, host_pause=0))
    slow = [asyncio.create_task(log.visit("slow", pause=5.0)) for _ in range(5)]
    await asyncio.wait_for(asyncio.gather(*(log.visit(f"host-{number}") for number in range(20))), 2.0)
    for task in slow:
        task.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert len(log.starts["slow"]) == 1


async def test_first_come_first_served() -> None:
    log = Log(HostLimiter(at_once=1, at_once_per_host=1, host_pause=0))
    names = [f"{number}" for number in range(20)]
    await asyncio.gather(*(log.visit("a", takes=0, name=name) for name in names))
    assert log.order == names


async def test_whoever_gives_up_leaves_his_turn_to_others() -> None:
    log = Log(HostLimiter(at_once=2, at_once_per_host=1, host_pause=0.001))
    for wait in (0.0, 0.001, 0.002, 0.005):
        tasks = [asyncio.create_task(log.visit(f"host-{number % 3}", takes=0.004)) for number in range(30)]
        await asyncio.sleep(wait)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    log.busiest = 0
    await asyncio.wait_for(asyncio.gather(*(log.visit(f"host-{number}") for number in range(8))), 2.0)
    assert log.busiest == 2


async def test_an_error_in_a_turn_ends_it() -> None:
    polite = HostLimiter(at_once=1, at_once_per_host=1, host_pause=0)
    for _ in range(3):
        with pytest.raises(RuntimeError):
            async with polite.slot("a"):
                raise RuntimeError
    async with asyncio.timeout(1), polite.slot("a"):
        pass


async def test_hosts_are_forgotten_but_not_while_they_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MAX_IDLE_HOSTS", 10)
    now = 0.0
    polite = HostLimiter(at_once=5, at_once_per_host=5, host_pause=1.0, clock=lambda: now)
    for number in range(100):
        now += 0.5
        async with polite.slot(f"host-{number}"):
            pass
    assert len(polite._hosts) <= 11
    assert polite._hosts["host-99"].ready > now
