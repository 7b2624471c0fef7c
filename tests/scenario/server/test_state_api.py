"""The state, the report and the documents of a thread over HTTP."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from openassay.export import Report
from openassay.models.thread import ResearchOptions
from tests.scenario.server.asking import asked, researched
from tests.scenario.server.conftest import Http, Open, token_of


@pytest.mark.slow
@pytest.mark.requirement("W-04", "W-12")
async def test_a_state_says_what_there_is_what_comes_next_and_which_checkpoint_it_is(serve: Open, http: Http) -> None:
    client = http(await serve())
    empty = (await client.post("/api/threads", json={})).json()["id"]
    nothing = (await client.get(f"/api/threads/{empty}/state")).json()
    assert (nothing["next"], nothing["checkpointId"], nothing["values"]["plan"]) == ([], None, None)
    assert (await client.get(f"/api/threads/{empty}/report")).status_code == 404

    thread = (await asked(client, modeOverride="plan"))["threadId"]
    address = f"/api/threads/{thread}/state"
    waiting = await client.get(address)
    told = waiting.json()
    assert told.keys() == {"values", "next", "checkpointId"}
    assert told["next"] == ["question"]
    assert told["values"]["user_inputs"]["mode_override"] == "plan"
    assert (await client.get(address, headers={"If-None-Match": waiting.headers["ETag"]})).status_code == 304
    first = (await client.get(address, params={"checkpoint": "1"})).json()
    assert first["checkpointId"] != told["checkpointId"]
    assert (await client.get(address, params={"checkpoint": told["checkpointId"]})).json()["next"] == ["question"]

    other = (await asked(client, modeOverride="plan"))["threadId"]
    theirs = (await client.get(f"/api/threads/{other}/state")).json()["checkpointId"]
    refused = await client.get(address, params={"checkpoint": theirs})
    assert refused.status_code == 404
    assert other not in refused.text, "whose it is is not told"
    for odd in ("", "x", "\x00", "1" * 40):
        assert (await client.get(address, params={"checkpoint": odd})).status_code == 422
    assert (await client.get(address, params={"checkpoint": "9999999"})).status_code == 404


@pytest.mark.slow
@pytest.mark.requirement("X-01")
async def test_every_span_of_a_report_opens_the_passage_it_names(serve: Open, http: Http) -> None:
    server = await serve()
    ann = http(server, await token_of(server, "ann"))
    thread = await researched(ann)
    answer = await ann.get(f"/api/threads/{thread}/report")
    assert (await ann.get(answer.url.path, headers={"If-None-Match": answer.headers["ETag"]})).status_code == 304
    report = Report.model_validate(answer.json())
    span = report.claims[0].spans[0]
    address = f"/api/threads/{thread}/documents/{span.document}"
    shown = (await ann.get(address, params={"start": span.start, "end": span.end})).json()
    assert shown["passage"] == [span.start, span.end]
    assert shown["text"][span.start - shown["start"] : span.end - shown["start"]] == span.quote
    whole = (await ann.get(address)).json()
    assert (whole["start"], whole["end"]) == (0, whole["length"] == len(whole["text"]) and whole["length"])
    for odd in ({"start": 1}, {"start": 5, "end": 5}, {"start": -1, "end": 3}, {"start": 0, "end": 10**30}):
        assert (await ann.get(address, params=odd)).status_code == 422
    assert (await ann.get(address, params={"start": 0, "end": whole["length"] + 1})).status_code == 404

    stranger = http(server, await token_of(server, "bob"))
    own = await researched(stranger, "What's happening with Apple and its stock?")
    assert (await stranger.get(f"/api/threads/{own}/documents/{span.document}")).status_code == 404, "of another thread"

    _, secret = await server.service.resources.shares.create(thread, timedelta(hours=1))
    visitor = http(server, secret)
    assert (await visitor.get(f"/api/threads/{thread}/report")).json()["claims"] == answer.json()["claims"]
    cited = await visitor.get(address, params={"start": span.start, "end": span.end})
    assert cited.json()["text"] == span.quote, "and nothing around it"
    assert (await visitor.get(address)).status_code == 404, "a link shows what the report cites"
    assert (await visitor.get(f"/api/threads/{thread}/state")).status_code == 403


@pytest.mark.slow
async def test_where_files_stand_is_not_told(serve: Open, http: Http, tmp_path: Path) -> None:
    folder = tmp_path / "private place"
    folder.mkdir()
    (folder / "ferry.txt").write_text("The ferry takes 60 passengers across the lake. It sails at noon.", "utf-8")
    server = await serve(tmp_path / "data")
    run = await server.service.engine.start(
        "How many passengers does the ferry take?", ResearchOptions(docs=(str(folder),), user="local")
    )
    await server.service.engine.wait(run.id)
    client = http(server)
    for path in ("", "/state", "/report", "/sources", "/runs", "/history", "/branches"):
        answer = await client.get(f"/api/threads/{run.thread}{path}")
        assert answer.status_code == 200
        assert "private" not in answer.text, path
    assert "file:ferry.txt" in (await client.get(f"/api/threads/{run.thread}/report")).text


@pytest.mark.slow
async def test_a_report_stays_while_a_follow_up_is_under_way_or_was_stopped(serve: Open, http: Http) -> None:
    client = http(await serve())
    thread = await researched(client)
    before = (await client.get(f"/api/threads/{thread}/report")).json()
    await asked(client, threadId=thread, modeOverride="plan")
    after = await client.get(f"/api/threads/{thread}/report")
    assert (after.status_code, after.json()) == (200, before), "the latest that is finished"
    assert (await client.get(f"/api/threads/{thread}/sources")).json()["sources"]


@pytest.mark.slow
@pytest.mark.requirement("W-11", "W-12")
async def test_the_report_of_an_earlier_run_stays_readable(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server, await token_of(server, "ann"))
    thread = await researched(client)
    address = f"/api/threads/{thread}"
    before, sources = (await client.get(f"{address}/report")).json(), (await client.get(f"{address}/sources")).json()
    await researched(client, "What's happening with Apple and its stock?", threadId=thread)
    await asked(client, threadId=thread, modeOverride="plan")
    first, second, third = [run["id"] for run in (await client.get(f"{address}/runs")).json()["runs"]]
    latest = (await client.get(f"{address}/report")).json()
    assert latest["question"] != before["question"]

    async def got(path: str, run: str, who: httpx2.AsyncClient = client) -> Any:
        answer = await who.get(f"{address}/{path}", params={"run": run})
        return answer.json() if answer.status_code == 200 else answer.status_code

    assert (await got("report", first), await got("report", second)) == (before, latest)
    assert await got("sources", first) == sources
    assert (await got("sources", second))["sources"] != sources["sources"]
    other = await researched(client)
    elsewhere = (await client.get(f"/api/threads/{other}/runs")).json()["runs"][0]["id"]
    for none in (third, elsewhere, "0" * 12):
        assert (await got("report", none), await got("sources", none)) == (404, 404), none
    assert await got("report", "../x") == 422

    _, secret = await server.service.resources.shares.create(thread, timedelta(hours=1))
    visitor = http(server, secret)
    assert (await got("report", second, visitor))["sections"] == latest["sections"]
    assert len((await got("sources", second, visitor))["sources"]) == len(latest["sources"])
    for hidden in (first, third, elsewhere):
        assert (await got("report", hidden, visitor), await got("sources", hidden, visitor)) == (404, 404)
