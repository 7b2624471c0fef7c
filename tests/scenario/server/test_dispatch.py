"""Runs wait in line, and are taken up in an order that is fair to everybody."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from openassay.bootstrap import open_engine
from openassay.models.event import RunStatus
from openassay.models.thread import ResearchOptions, Run
from openassay.server.app import RunningServer, open_server
from openassay.server.dispatch import FairQueue
from openassay.settings import load
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import Heard, listening, transcript

QUESTION = "What's happening with Apple?"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def waiting(*owners: str) -> list[Run]:
    """One after the other, named after their place: a0 b1 ..."""
    return [
        Run(
            id=f"{owner}{n}", thread=f"t{n}", question=QUESTION, started=NOON + timedelta(seconds=n),
            options=ResearchOptions(user=owner),
        )
        for n, owner in enumerate(owners)
    ]  # fmt: skip


def taken(line: FairQueue, busy: Counter[str] | None = None) -> list[str]:
    order = []
    while run := line.pop(busy or Counter()):
        order.append(run.id)
    return order


def test_people_take_turns() -> None:
    line = FairQueue()
    line.replace(waiting(*"aaaabbc"))
    places = {run.id: line.position(run.id, Counter()) for run in waiting(*"aaaabbc")}
    order = taken(line)
    assert order == ["a0", "b4", "c6", "a1", "b5", "a2", "a3"]
    assert places == {run: n for n, run in enumerate(order, 1)}
    assert line.position("a0", Counter()) is None


def test_who_has_something_at_work_lets_others_go_first() -> None:
    line = FairQueue()
    line.replace(waiting(*"aab"))
    assert taken(line, Counter(a=2, b=1)) == ["b2", "a0", "a1"]


def test_a_turn_is_remembered_when_the_line_is_read_again() -> None:
    line = FairQueue()
    served = []
    for n in range(4):  # whoever had the last turn waits, however long the other's line is
        line.replace([*waiting(*"aaaa")[n // 2 :], *waiting(*"xxxxb")[4:]])
        served.append(run.id[0] if (run := line.pop(Counter())) else "")
    assert served == ["a", "b", "a", "b"]


async def asked(client: httpx2.AsyncClient, **more: str) -> str:
    answer = await client.post("/api/threads/start", json={"goal": QUESTION, **more})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["threadId"])


async def finished(server: RunningServer, *threads: str) -> list[Run]:
    """All of them, in the order in which they ended."""
    async with asyncio.timeout(60):
        while True:
            runs = [(await server.service.engine.threads.runs(thread))[-1] for thread in threads]
            if all(not run.active for run in runs):
                return sorted(runs, key=lambda run: run.finished or NOON)
            await asyncio.sleep(0.05)


async def place_in_line(client: httpx2.AsyncClient, thread: str) -> int:
    async with asyncio.timeout(10), listening(client, thread) as events:
        async for heard in events:
            if heard.name == "queue":
                assert not heard.id, "it is not part of the log"
                return int(heard.json()["position"])
    pytest.fail("it was never told")


@pytest.mark.slow
async def test_one_run_is_not_held_up_by_anothers_many(serve: Open, http: Http) -> None:
    server = await serve(server={"runs_at_once": 1, "start_seconds": 0, "heartbeat": 0.05})
    ann, ben = http(server, await token_of(server, "ann")), http(server, await token_of(server, "ben"))
    many = [await asked(ann) for _ in range(5)]
    one = await asked(ben)
    assert await place_in_line(ann, many[-1]) >= 2
    runs = await finished(server, *many, one)
    assert [run.status for run in runs] == [RunStatus.DONE] * 6
    assert one in [run.thread for run in runs[:3]]


@pytest.mark.slow
async def test_what_others_put_in_line_is_taken_up(serve: Open, tmp_path: Path) -> None:
    """By the command line, say; and what a server that was stopped had not come to."""
    async with open_engine(load(data_dir=tmp_path, source="demo")) as elsewhere:
        before = await elsewhere.queue(QUESTION, ResearchOptions(source="demo"))
        server = await serve()
        later = await elsewhere.queue(QUESTION, ResearchOptions(source="demo"))
        stopped = await elsewhere.queue(QUESTION, ResearchOptions(source="demo"))
        await elsewhere.stop(stopped.thread)
    runs = await finished(server, before.thread, later.thread, stopped.thread)
    assert {run.id: run.status for run in runs} == {
        before.id: RunStatus.DONE, later.id: RunStatus.DONE, stopped.id: RunStatus.CANCELLED,
    }  # fmt: skip


@pytest.mark.slow
async def test_two_servers_share_the_work(serve: Open, http: Http) -> None:
    servers = [await serve(server={"runs_at_once": 1, "start_seconds": 0}) for _ in range(2)]
    clients = [http(server) for server in servers]
    threads = [await asked(clients[n % 2]) for n in range(4)]
    runs = await finished(servers[0], *threads)
    assert [run.status for run in runs] == [RunStatus.DONE] * 4
    for thread in threads:
        heard = await transcript(clients[0], thread)
        assert heard == await transcript(clients[1], thread)
        assert sum(one.json()["kind"] == "run" for one in heard) == 2, "it was taken up once"


async def test_a_run_that_cannot_be_taken_up_is_told_of(tmp_path: Path, http: Http) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tides.md").write_text("The tide turns twice a day.", encoding="utf-8")
    settings = load(data_dir=tmp_path / "data", server={"port": 0})
    async with open_engine(settings) as elsewhere:
        run = await elsewhere.queue("When does the tide turn?", ResearchOptions(docs=(str(tmp_path / "docs"),)))
    (tmp_path / "docs" / "tides.md").unlink()
    (tmp_path / "docs").rmdir()
    async with open_server(settings) as server:
        [ended] = await finished(server, run.thread)
        await transcript(http(server), run.thread)
    assert ended.status is RunStatus.FAILED
    assert "docs" in (ended.error or "")


@pytest.mark.slow
async def test_a_person_who_answers_does_not_wait_in_line(serve: Open, http: Http) -> None:
    server = await serve(server={"runs_at_once": 1, "start_seconds": 0})
    client = http(server)
    first = await asked(client, modeOverride="plan")
    async with listening(client, first) as events:
        assert "interrupt" in [heard.name async for heard in _until(events, "interrupt")]
    threads = [await asked(client) for _ in range(4)]
    answer = await client.patch(f"/api/threads/{first}/mode", json={"mode": "auto"})
    assert answer.status_code == 200
    runs = await finished(server, first, *threads)
    assert first in [run.thread for run in runs[:3]]
    assert [run.status for run in runs] == [RunStatus.DONE] * 5


@contextlib.asynccontextmanager
async def _counted(server: RunningServer) -> AsyncIterator[list[int]]:
    """How many runs were at work together, looked at all the time."""
    seen = [0]

    async def look() -> None:
        while True:
            seen[0] = max(seen[0], len(server.service.engine.list_running()))
            await asyncio.sleep(0.002)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()


@pytest.mark.slow
async def test_branches_and_vetoes_wait_in_line_too(serve: Open, http: Http) -> None:
    server = await serve(server={"runs_at_once": 1, "start_seconds": 0})
    client = http(server)
    thread = await asked(client)
    await finished(server, thread)
    async with _counted(server) as seen:
        body = {"changes": {"deliverable": "a memo of one page"}}
        forks = [(await client.post(f"/api/threads/{thread}/fork", json=body)).json() for _ in range(3)]
        veto = await client.post(f"/api/threads/{thread}/sources/S1/veto")
        assert (veto.status_code, veto.json()["status"]) == (202, "queued")
        runs = await finished(server, thread, *(fork["threadId"] for fork in forks))
    assert [run.status for run in runs] == [RunStatus.DONE] * 4
    assert seen == [1]
    told = [one.json() for one in await transcript(client, forks[0]["threadId"])]
    texts = [one["data"]["text"] for one in told if one["kind"] == "notice"]
    assert sum(thread in text for text in texts) == 1, "where it began is told, once"


@pytest.mark.slow
@pytest.mark.requirement("F-09")
async def test_what_the_timer_has_answered_waits_in_line(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.interrupts.TIMER_POLL_SECONDS", 0.1)
    server = await serve(hitl_after_planning=True, breakpoints={"plan_timeout": 60}, server={"runs_at_once": 1})
    client = http(server)
    started = [await client.post("/api/threads/start", json={"goal": QUESTION}) for _ in range(3)]
    assert {answer.status_code for answer in started} == {202}
    due = server.service.now() + timedelta(seconds=61)
    async with _counted(server) as seen:
        server.service.engine._runner.now = lambda: due
        runs = await finished(server, *(answer.json()["threadId"] for answer in started))
    assert [run.status for run in runs] == [RunStatus.DONE] * 3
    assert seen == [1]
    for answer in started:
        review = await client.get(f"/api/reviews/{answer.json()['interrupt']['id']}")
        assert review.json()["by"] == "timer"


async def _until(events: AsyncIterator[Heard], name: str) -> AsyncIterator[Heard]:
    async for heard in events:
        yield heard
        if heard.name == name:
            return
