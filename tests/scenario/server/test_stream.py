"""What happens on a thread is told as it happens, to many, and again to whoever was cut off."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.bootstrap import open_engine
from openassay.models.thread import ResearchOptions
from openassay.server.app import RunningServer, open_server
from openassay.settings import Settings, load
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import Heard, listening, transcript, until

QUESTION = "What's happening with Tesla and its stock?"
AT_ONCE = {"start_seconds": 0}  # a start waits for nothing


async def asked(client: httpx2.AsyncClient, **more: Any) -> str:
    answer = await client.post("/api/threads/start", json={"goal": QUESTION, **more})
    assert answer.status_code in (200, 202), answer.text
    return str(answer.json()["threadId"])


@asynccontextmanager
async def thinking(monkeypatch: pytest.MonkeyPatch, latency: float = 0.0) -> AsyncIterator[dict[str, Any]]:
    """Settings of a server whose runs ask a model; a start is answered at once."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel(), latency=latency) as provider:
        llm = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        yield {"llm": llm, "depth": "quick", "server": {**AT_ONCE, "port": 0}}


def on(folder: Path, settings: dict[str, Any]) -> Settings:
    return load(data_dir=folder, source="demo", **settings)


@pytest.mark.slow
@pytest.mark.requirement("C-13", "W-12")
async def test_which_agent_is_at_work_and_the_answer_token_by_token(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thinking(monkeypatch) as settings:
        client = http(await serve(**settings))
        heard = await transcript(client, await asked(client))
    stages = [one.json()["stage"] for one in heard if one.name == "status" and one.json()["kind"] == "enter"]
    assert stages[0] == "understand"
    assert stages[-1] == "publish"
    assert {"plan", "search", "read", "verify", "write"} <= set(stages)
    tokens = [one.json()["data"]["text"] for one in heard if one.name == "token"]
    assert len(tokens) > 5
    names = [one.name for one in heard]
    assert names.index("token") < names.index("done"), "the answer is read while it is written"
    assert {"status", "section", "citation", "token", "spend", "done"} <= set(names)
    assert not {"run", "enter", "leave"} & set(names)
    assert set(heard[0].json()) == {"seq", "run", "time", "kind", "stage", "parent", "data"}
    assert heard[-1].name == "status"
    assert heard[-1].json()["data"]["status"] == "done"


@pytest.mark.slow
@pytest.mark.requirement("W-11", "W-12")
async def test_a_section_comes_with_the_sentences_that_were_checked(serve: Open, http: Http) -> None:
    """Numbered, marked and bound to claims as the report has them; a later draft replaces an earlier one."""
    client = http(await serve(server=AT_ONCE))
    thread = await asked(client, depth="standard")
    heard = await transcript(client, thread)
    told = [one.json()["data"] for one in heard if one.name == "section" and one.json()["stage"] == "write"]
    last = [one for one in told if one["draft"] == told[-1]["draft"]]
    assert {one["draft"] for one in told} == set(range(1, told[-1]["draft"] + 1))
    assert all(one["sentences"] == len(one["lines"]) for one in told)
    report = (await client.get(f"/api/threads/{thread}/report")).json()
    published = [
        (section["title"], section["role"], [{**one, "kind": None} for one in section["sentences"]])
        for section in report["sections"][: len(last)]
    ]
    assert published == [(one["title"], one["role"], [{"kind": None, **line} for line in one["lines"]]) for one in last]
    lines = [line for one in last for line in one["lines"] if line["claims"]]
    assert all(line["citations"] and line["mark"] in ("✓✓", "✓", "⚠") for line in lines)
    assert lines


@pytest.mark.slow
async def test_a_stream_is_one_no_cache_keeps_and_no_proxy_holds_back(serve: Open, http: Http) -> None:
    client = http(await serve(server=AT_ONCE))
    thread = await asked(client)
    async with client.stream("GET", f"/api/stream/{thread}") as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Accel-Buffering"] == "no"
        assert (await anext(answer.aiter_lines())).startswith("retry: ")


@pytest.mark.slow
@pytest.mark.requirement("W-12", "W-18")
async def test_whoever_was_cut_off_goes_on_where_it_was(serve: Open, http: Http) -> None:
    server = await serve(server=AT_ONCE)
    client = http(server)
    thread = await asked(client)
    whole = await transcript(client, thread)
    assert [one.json()["seq"] for one in whole] == list(range(1, len(whole) + 1))
    pieces: list[Heard] = []
    while len(pieces) < len(whole):
        pieces += await until(client, thread, 7, pieces[-1].id if pieces else "")
    assert pieces == whole
    assert await transcript(client, thread, after=whole[2].id) == whole[3:]
    run, _, seq = whole[4].id.partition(".")
    assert await transcript(client, thread, **{"after": f"{run}.{seq}"}) == whole[5:]
    over = await client.get(f"/api/stream/{thread}", headers={"Last-Event-ID": whole[-1].id})
    assert (over.status_code, over.content) == (204, b""), "a browser that is told so stops asking"
    assert server.service.feeds.count_readers() == 0


@pytest.mark.slow
@pytest.mark.requirement("W-18", "W-16")
async def test_a_restart_changes_nothing_for_a_reader(
    tmp_path: Path, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thinking(monkeypatch, latency=0.1) as settings:
        async with open_server(on(tmp_path, settings)) as server:
            client = http(server)
            thread = await asked(client)
            early = asyncio.create_task(transcript(client, thread))
            before = await until(client, thread, 12)
        cut = await early
        assert cut[: len(before)] == before
        assert [one for one in cut if one.name == "done"] == [], "it was stopped in the middle"
        async with open_server(on(tmp_path, settings)) as server:
            client = http(server)
            after = await transcript(client, thread, after=cut[-1].id)
            whole = await transcript(client, thread)
        assert cut + after == whole
        assert after[-1].json()["data"]["status"] == "done"
        statuses = [one.json()["data"]["status"] for one in whole if one.json()["kind"] == "run"]
        assert statuses == ["running", "queued", "running", "done"]


@pytest.mark.slow
async def test_an_id_that_nothing_has_is_refused(serve: Open, http: Http) -> None:
    """Going on from there would leave something out, or tell it twice."""
    client = http(await serve(server=AT_ONCE))
    thread = await asked(client)
    run = (await until(client, thread, 1))[0].json()["run"]
    for id in ("nonsense", "a.b", run, f"{run}.x", f"{run}.100000", f"{run}.-1", "ffff.1", f"{run}.1.1"):
        for headers, params in (({"Last-Event-ID": id}, {}), ({}, {"after": id})):
            answer = await client.get(f"/api/stream/{thread}", headers=headers, params=params)
            assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json"), id
            assert "from the beginning" in answer.json()["help"]
    assert (await client.get(f"/api/stream/{thread}", params={"run": "ffff"})).status_code == 404


@pytest.mark.slow
async def test_later_questions_of_a_thread_are_told_too(serve: Open, http: Http) -> None:
    client = http(await serve(server=AT_ONCE))
    thread = await asked(client)
    first = await transcript(client, thread)
    await asked(client, threadId=thread)
    second = await transcript(client, thread)
    assert {one.json()["run"] for one in first}.isdisjoint(one.json()["run"] for one in second)
    assert await transcript(client, thread, after=first[-2].id) == [first[-1], *second]
    assert await transcript(client, thread, after=first[-1].id) == second
    assert await transcript(client, thread, run=first[0].json()["run"]) == [*first, *second]
    empty = (await client.post("/api/threads", json={"title": "Nothing yet"})).json()["id"]
    assert (await client.get(f"/api/stream/{empty}")).status_code == 204


@pytest.mark.slow
async def test_a_stream_stays_open_while_a_question_is(serve: Open, http: Http) -> None:
    server = await serve(server={**AT_ONCE, "heartbeat": 0.1})
    client = http(server)
    thread = await asked(client, modeOverride="plan")
    names: list[str] = []
    async with asyncio.timeout(120), listening(client, thread) as events:
        async for heard in events:
            names.append(heard.name or heard.data)
            if "interrupt" in names and names[-3:] == [": still here"] * 3:
                break
        await client.patch(f"/api/threads/{thread}/mode", json={"mode": "auto"})
        rest = [heard.name async for heard in events]
    assert rest.count("done") == 1


@pytest.mark.slow
async def test_many_readers_cost_one(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    """One looks for what is new, and all are told; one who never reads holds up nobody."""
    async with thinking(monkeypatch, latency=0.05) as settings:
        server = await serve(**settings)
        client = http(server)
        thread = await asked(client)
        async with listening(client, thread):  # which nobody reads
            readers = [asyncio.create_task(transcript(client, thread)) for _ in range(20)]
            while server.service.feeds.count_readers() < 21:  # noqa: ASYNC110  # nothing tells how many there are
                await asyncio.sleep(0.01)
            assert [task.get_name() for task in asyncio.all_tasks()].count(f"tail-{await latest(server, thread)}") == 1
            heard = await asyncio.gather(*readers)
    assert all(one == other for one, other in pairwise(heard))
    assert heard[0][-1].json()["data"]["status"] == "done"
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("tail-")]


async def latest(server: RunningServer, thread: str) -> str:
    return (await server.service.engine.threads.runs(thread))[-1].id


@pytest.mark.slow
async def test_who_is_far_behind_reads_the_log_again(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("openassay.server.stream.MAX_RECENT", 5)
    monkeypatch.setattr("openassay.server.stream.PAGE_SIZE", 4)
    async with thinking(monkeypatch, latency=0.05) as settings:
        server = await serve(**settings)
        client = http(server)
        thread = await asked(client)
        prompt = asyncio.create_task(transcript(client, thread))
        slow = []
        async for event in server.service.feeds.read(await latest(server, thread)):
            slow.append(event.seq)
            await asyncio.sleep(0.02)
        heard = await prompt
    assert slow == list(range(1, len(heard) + 1))


@pytest.mark.slow
async def test_a_run_of_another_process_is_followed(serve: Open, http: Http, tmp_path: Path) -> None:
    client = http(await serve(server={"runs_at_once": 1}))
    async with open_engine(load(data_dir=tmp_path, source="demo")) as elsewhere:
        run = await elsewhere.start(QUESTION, ResearchOptions(source="demo"))
        heard = await transcript(client, run.thread)
        assert [one.json()["seq"] for one in heard] == [event.seq async for event in elsewhere.events(run.id)]
    assert heard[-1].json()["data"]["status"] == "done"


@pytest.mark.slow
async def test_a_thread_that_is_deleted_ends_its_streams(serve: Open, http: Http) -> None:
    client = http(await serve(server=AT_ONCE))
    thread = await asked(client, modeOverride="plan")
    async with asyncio.timeout(10), listening(client, thread) as events:
        async for heard in events:
            if heard.name == "interrupt":
                assert (await client.delete(f"/api/threads/{thread}")).status_code in (200, 204)
    assert (await client.get(f"/api/stream/{thread}")).status_code == 404


@pytest.mark.slow
async def test_nobody_may_have_too_many_streams(serve: Open, http: Http) -> None:
    server = await serve(server={**AT_ONCE, "streams_per_user": 2})
    ann, ben = http(server, await token_of(server, "ann")), http(server, await token_of(server, "ben"))
    thread, other = await asked(ann, modeOverride="plan"), await asked(ben, modeOverride="plan")
    async with listening(ann, thread), listening(ann, thread):
        refused = await ann.get(f"/api/stream/{thread}")
        assert refused.status_code == 429
        assert refused.headers["Retry-After"]
        assert await until(ben, other, 1), "what one has open is not counted to another"
    async with asyncio.timeout(5):
        while (await status_of(ann, thread)) == 429:  # noqa: ASYNC110  # the server sees that a reader is gone
            await asyncio.sleep(0.05)
    assert (await ben.get(f"/api/stream/{thread}")).status_code == 404


async def status_of(client: httpx2.AsyncClient, thread: str) -> int:
    async with client.stream("GET", f"/api/stream/{thread}") as answer:
        return answer.status_code


@pytest.mark.slow
async def test_a_token_that_is_taken_back_ends_its_streams(serve: Open, http: Http) -> None:
    server = await serve(server={**AT_ONCE, "heartbeat": 0.05})
    client = http(server, await token_of(server, "ann"))
    thread = await asked(client, modeOverride="plan")
    async with asyncio.timeout(10), listening(client, thread) as events:
        async for heard in events:
            if heard.name == "interrupt":
                [token] = await server.service.resources.users.tokens("ann")
                await server.service.resources.users.revoke(token.id)
    assert (await client.get(f"/api/stream/{thread}")).status_code == 401


@pytest.mark.slow
async def test_a_run_that_was_called_off_in_line_tells_just_that(serve: Open, http: Http, tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path, source="demo")) as elsewhere:
        run = await elsewhere.queue(QUESTION, ResearchOptions(source="demo"))
        await elsewhere.stop(run.thread)
    answer = await http(await serve()).get(f"/api/stream/{run.thread}")
    assert [line for line in answer.text.splitlines() if line.startswith("id:")] == [f"id: {run.id}.1"]
    assert '"status":"cancelled"' in answer.text
