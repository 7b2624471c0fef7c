"""The server as Python sees it: `openassay.Client` and `openassay.AsyncClient` against a real one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import openassay
from openassay.client.calls import ApiError, EventReader, Interrupt
from tests.scenario.server.conftest import Open, token_of

QUESTION = "What's happening with Tesla and its stock?"


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_a_question_becomes_a_report(serve: Open) -> None:
    server = await serve()
    async with openassay.AsyncClient(server.url) as client:
        report = await client.research(QUESTION, depth="quick")
        [thread] = [one async for one in client.threads()]
        assert report == await server.service.engine.history.report(thread["id"])
        assert report.markdown == (await client.export(thread["id"])).decode()
        state = await client.state(thread["id"])
        assert set(state) == {"values", "next", "checkpointId"}
        assert (await client.account())["user"] == "local"
        await client.rename(thread["id"], "Another title")
        assert (await client.thread(thread["id"]))["title"] == "Another title"
        await client.delete(thread["id"])
        with pytest.raises(ApiError, match="no thread") as gone:
            await client.thread(thread["id"])
        assert gone.value.status == 404
        assert gone.value.problem["type"].startswith("urn:openassay:problem:")


@pytest.mark.slow
@pytest.mark.requirement("W-01", "W-12", "F-09")
async def test_what_is_asked_back_is_answered(serve: Open) -> None:
    server = await serve()
    asked: list[Interrupt] = []

    async def answer(question: Interrupt) -> str:
        asked.append(question)
        return "The last three years, for an investor, as a short summary."

    async with openassay.AsyncClient(server.url) as client:
        report = await client.research(QUESTION, mode="plan", depth="quick", on_interrupt=answer)
        assert report.sections
        assert asked
        assert await client.reviews() == []
        [thread] = [one async for one in client.threads()]
        with pytest.raises(ApiError) as late:
            await client.resume(thread["id"], asked[0].id, "again")
        assert late.value.status == 409


@pytest.mark.slow
async def test_a_stream_is_taken_up_again_where_it_was_lost(serve: Open) -> None:
    server = await serve()
    async with openassay.AsyncClient(server.url) as client:
        started = await client.start(QUESTION, depth="quick", interactive=False)
        whole = [event async for event in client.events(started.thread_id)]
        assert whole[-1].is_final
        middle = whole[len(whole) // 2]
        rest = [event async for event in client.events(started.thread_id, after=middle.id)]
        assert rest == whole[whole.index(middle) + 1 :]
        assert [event async for event in client.events(started.thread_id, after=whole[-1].id)] == []


@pytest.mark.slow
async def test_the_synchronous_client_does_the_same(serve: Open, tmp_path: Path) -> None:
    server = await serve()
    token = await token_of(server, "ada")
    paper = tmp_path / "kilns.md"
    paper.write_text("# Kilns\n\nThe kiln at Delft reached 1,240 degrees in 2021. It burns gas.\n", encoding="utf-8")

    def work() -> dict[str, Any]:
        with openassay.Client(server.url, token) as client:
            [uploaded] = client.upload(paper)
            report = client.research("How hot was the kiln at Delft?", depth="quick", documents=[uploaded["id"]])
            [thread] = list(client.threads())
            client.remember("I work with ceramics.")
            shared = client.share(thread["id"])
            return {
                "report": report, "documents": list(client.documents()), "memory": client.memory(), "shared": shared,
                "runs": client.runs(thread["id"]), "sources": client.sources(thread["id"]),
            }  # fmt: skip

    found = await asyncio.to_thread(work)
    assert "1,240" in found["report"].markdown
    assert [one["name"] for one in found["documents"]] == ["kilns.md"]
    assert found["memory"]["facts"]
    assert found["shared"]["url"].startswith(server.url)
    assert [run["status"] for run in found["runs"]] == ["done"]
    assert len(found["sources"]) == 1


@pytest.mark.slow
async def test_a_wrong_token_and_a_server_that_is_not_there(serve: Open) -> None:
    server = await serve()
    await token_of(server, "ada")
    async with openassay.AsyncClient(server.url, "openassay_00000000_wrong") as client:
        with pytest.raises(ApiError, match="token") as refused:
            await client.account()
        assert refused.value.status == 401
        assert "openassay admin users add" in refused.value.help
    async with openassay.AsyncClient("http://127.0.0.1:9", seconds=1) as client:
        with pytest.raises(ApiError, match="cannot be reached") as nobody:
            await client.account()
        assert nobody.value.status == 0
        assert "openassay serve" in nobody.value.help


def test_half_an_event_is_none() -> None:
    reader = EventReader()
    lines = ["retry: 1000", "", "id: r.1", "event: status", 'data: {"seq":', "data: 1}", ""]
    [first] = filter(None, map(reader.read_line, lines))
    assert (first.id, first.name, first.data) == ("r.1", "status", {"seq": 1})
    assert not any(map(reader.read_line, [": still here", "", "id: r.2", 'data: {"se']))
    reader.reset()
    assert reader.last == "r.1", "the second is asked for again"
    [second] = filter(None, map(reader.read_line, ["id: r.2", 'data: {"seq": 2}', ""]))
    assert (second.id, second.name) == ("r.2", "message")
