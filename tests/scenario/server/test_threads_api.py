"""Threads over HTTP: asked, listed, answered, stopped, deleted; and each person's own."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from openassay.server.routes import threads
from tests.scenario.server.asking import QUESTION, asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of

UNKNOWN = "0123456789ab"
JSON = {"Content-Type": "application/json"}


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_a_question_becomes_a_thread_that_can_be_looked_at_renamed_and_deleted(serve: Open, http: Http) -> None:
    client = http(await serve())
    answer = await client.post("/api/threads/start", json={"goal": QUESTION, "depth": "quick"})
    started = answer.json()
    assert answer.status_code == 200, "nothing is asked back"
    assert {"threadId", "runId", "status"} <= started.keys()
    address = answer.headers["Location"]
    assert address == f"/api/threads/{started['threadId']}"
    assert (await standing(client, started["threadId"]))["status"] == "done"

    seen = await client.get(address)
    assert (seen.json()["title"], seen.json()["status"], seen.json()["turns"]) == (QUESTION, "done", 1)
    assert (await client.get(address, headers={"If-None-Match": seen.headers["ETag"]})).status_code == 304
    renamed = await client.patch(address, json={"title": "Tesla"}, headers={"If-Match": seen.headers["ETag"]})
    assert (renamed.status_code, renamed.json()["title"]) == (200, "Tesla")
    stale = await client.delete(address, headers={"If-Match": seen.headers["ETag"]})
    assert (stale.status_code, stale.json()["type"]) == (412, "urn:openassay:problem:precondition")

    follow_up = await asked(client, "What about their profits?", threadId=started["threadId"])
    assert follow_up["threadId"] == started["threadId"]
    await standing(client, started["threadId"])
    assert len((await client.get(f"{address}/runs")).json()["runs"]) == 2
    assert (await client.delete(address, headers={"If-Match": "*"})).status_code == 204
    assert (await client.get(address)).status_code == 404
    assert (await client.get("/api/threads")).json() == {"threads": [], "nextCursor": None}


@pytest.mark.slow
@pytest.mark.requirement("W-01", "W-12")
async def test_plan_mode_asks_first_and_turning_to_auto_drops_what_is_still_to_be_asked(
    serve: Open, http: Http
) -> None:
    client = http(await serve())
    answer = await client.post("/api/threads/start", json={"goal": QUESTION, "modeOverride": "plan"})
    started = answer.json()
    assert (answer.status_code, started["status"]) == (202, "waiting")
    first = started["interrupt"]
    assert first["kind"] == "planning"
    assert len(first["options"]) >= 5
    assert first["form"] == {"type": "string", "maxLength": 2000}
    address = f"/api/threads/{started['threadId']}"

    refused = [
        await client.post(f"{address}/resume", json={"interruptId": first["id"], "value": value})
        for value in ("", 7, None, {"decision": "approve"}, "Custom", "x" * 3000)
    ]
    assert {one.status_code for one in refused} == {422}
    assert (await client.post(f"{address}/resume", json={"value": "x"})).status_code == 409, "whose answer is it?"
    assert (await client.post(f"{address}/resume", json={})).status_code == 409, "it waits for an answer"
    taken = await client.post(f"{address}/resume", json={"interruptId": first["id"], "value": "its stock"})
    assert taken.json().keys() == {"ok", "checkpointId"}
    assert taken.json()["ok"] is True
    again = await client.post(f"{address}/resume", json={"interruptId": first["id"], "value": "its stock"})
    assert (again.status_code, again.json()["type"]) == (409, "urn:openassay:problem:late-answer")

    assert (await standing(client, started["threadId"]))["status"] == "waiting", "there is another question"
    changed = await client.patch(f"{address}/mode", json={"mode": "auto"})
    assert (changed.status_code, changed.json()) == (200, {"mode": "auto"})
    assert (await standing(client, started["threadId"]))["status"] == "done"
    report = (await client.get(f"{address}/report")).json()
    assert any("its stock" in line for line in report["plan"]["constraints"]), "what was answered counts"
    assert (await client.get(address)).json()["mode"] == "auto"


@pytest.mark.slow
@pytest.mark.requirement("W-01")
async def test_a_thread_keeps_the_mode_that_was_set_for_it(serve: Open, http: Http) -> None:
    client = http(await serve())
    made = await client.post("/api/threads", json={"title": "Mine", "mode": "auto"})
    assert (made.status_code, made.json()["title"], made.json()["status"]) == (201, "Mine", None)
    thread = made.json()["id"]
    await client.patch(f"/api/threads/{thread}/mode", json={"mode": "plan"})
    assert (await asked(client, threadId=thread))["interrupt"]["kind"] == "planning"
    unattended = await asked(client, interactive=False, depth="quick")
    assert unattended["interrupt"] is None


@pytest.mark.slow
async def test_a_run_is_stopped_and_gone_on_with(serve: Open, http: Http) -> None:
    client = http(await serve(server={"start_seconds": 0}))
    started = await asked(client, depth="standard")
    address = f"/api/threads/{started['threadId']}"
    stopped = await client.post(f"{address}/cancel")
    assert stopped.status_code == 200
    assert (await standing(client, started["threadId"]))["status"] == "cancelled"
    assert (await client.post(f"{address}/cancel", json={"drain": True})).status_code == 409, "nothing is at work"
    gone_on = await client.post(f"{address}/resume", json={})
    assert (gone_on.status_code, gone_on.json()["ok"]) == (200, True)
    assert (await standing(client, started["threadId"]))["status"] == "done"
    assert (await client.post(f"{address}/resume", json={})).status_code == 409, "it is answered already"


@pytest.mark.slow
async def test_a_run_that_is_stopped_after_its_step_waits_until_somebody_goes_on_with_it(
    serve: Open, http: Http
) -> None:
    server = await serve(server={"start_seconds": 0})
    client = http(server)
    started = await asked(client, depth="comprehensive")
    address = f"/api/threads/{started['threadId']}"
    async with asyncio.timeout(30):
        while started["runId"] not in server.service.engine.list_running():  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.001)
    assert (await client.post(f"{address}/cancel", json={"drain": True})).json()["status"] == "cancelled"
    text = (await client.get(f"/api/stream/{started['threadId']}")).text
    assert "Stopped after its current step" in text
    assert (await client.post(f"{address}/resume", json={})).status_code == 200
    assert (await standing(client, started["threadId"]))["status"] == "done"


@pytest.mark.slow
async def test_pages_hold_every_thread_once(serve: Open, http: Http) -> None:
    client = http(await serve())
    made = [(await client.post("/api/threads", json={"title": f"T{n}"})).json()["id"] for n in range(5)]
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await client.get("/api/threads", params={"limit": 2, **({"cursor": cursor} if cursor else {})})).json()
        found += [thread["id"] for thread in page["threads"]]
        cursor = page["nextCursor"]
    assert found == made[::-1]
    assert (await client.get("/api/threads", params={"status": ["done", "failed"]})).json()["threads"] == []
    year_0 = "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwgImEiXQ"  # in a zone fourteen hours ahead
    for odd in (year_0, "x", "e30", "WzEsMl0", "\u00e9", "W10", "'--", "A" * 150):
        refused = await client.get("/api/threads", params={"cursor": odd})
        assert refused.status_code == 422, odd


@pytest.mark.slow
@pytest.mark.requirement("W-11", "W-12")
async def test_threads_are_found_by_words_of_their_title_or_last_question(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    titles = ["Évian and the lake", "The lake of Évian, again", "A harbour", "Lake Geneva", "EVIAN's other LAKE"]
    made = [(await ann.post("/api/threads", json={"title": title})).json()["id"] for title in titles]
    asked_on = await researched(ann)
    await ann.patch(f"/api/threads/{asked_on}", json={"title": "Cars"})

    async def found(client: httpx2.AsyncClient, **params: Any) -> tuple[list[str], str | None]:
        page = (await client.get("/api/threads", params=params)).json()
        return [thread["id"] for thread in page["threads"]], page["nextCursor"]

    assert await found(ann, q="lake evian") == ([made[4], made[1], made[0]], None)
    assert await found(ann, q="TESLA stock") == ([asked_on], None), "of the last question"
    assert await found(ann, q="tesla", status="failed") == ([], None)
    assert await found(ann, q="volcano") == ([], None)
    assert len((await found(ann, q="  "))[0]) == 6
    assert await found(bob, q="lake") == ([], None)
    first, cursor = await found(ann, q="Evian", limit=2)
    assert (first, cursor is not None) == ([made[4], made[1]], True)
    assert await found(ann, q="Evian", limit=2, cursor=cursor) == ([made[0]], None)

    monkeypatch.setattr(threads, "SEARCH_PAGE", 2)
    monkeypatch.setattr(threads, "MAX_SEARCH", 4)  # the question, and four of the titles
    first, cursor = await found(ann, q="again")
    assert (first, cursor is not None) == ([], True), "it is not among the four"
    assert await found(ann, q="again", cursor=cursor) == ([made[1]], None)
    assert (await ann.get("/api/threads", params={"q": "x" * 201})).status_code == 422


@pytest.mark.slow
async def test_a_quote_writes_nothing(serve: Open, http: Http) -> None:
    client = http(await serve())
    quoted = await client.post("/api/quote", json={"goal": QUESTION, "usd": 1})
    assert (quoted.status_code, quoted.json()["usd"], quoted.json()["model"]) == (200, 0, "embedded")
    assert (await client.get("/api/threads")).json()["threads"] == []


@pytest.mark.slow
async def test_another_persons_thread_is_as_unknown_as_one_that_never_was(serve: Open, http: Http) -> None:
    server = await serve()
    ann, bob = http(server, await token_of(server, "ann")), http(server, await token_of(server, "bob"))
    thread = await researched(ann)
    assert [one["id"] for one in (await ann.get("/api/threads")).json()["threads"]] == [thread]
    assert (await bob.get("/api/threads")).json()["threads"] == []
    routes: list[tuple[str, str, Any]] = [
        ("GET", "", None), ("PATCH", "", {"title": "x"}), ("DELETE", "", None), ("GET", "/runs", None),
        ("POST", "/cancel", {}), ("POST", "/resume", {}), ("PATCH", "/mode", {"mode": "plan"}),
        ("GET", "/state", None), ("GET", "/report", None), ("GET", f"/documents/{'a' * 64}", None),
        ("GET", "/history", None), ("GET", "/branches", None), ("POST", "/fork", {}), ("GET", "/reviews", None),
        ("GET", "/sources", None), ("PUT", "/sources/S1/pin", None), ("DELETE", "/sources/S1/pin", None),
        ("POST", "/sources/S1/veto", None), ("GET", "/sources/S1/consequences", None),
    ]  # fmt: skip
    for method, rest, body in routes:
        theirs, nobodys = [await bob.request(method, f"/api/threads/{id}{rest}", json=body) for id in (thread, UNKNOWN)]
        assert (theirs.status_code, nobodys.status_code) == (404, 404), (method, rest)
        assert theirs.json()["detail"] == nobodys.json()["detail"].replace(UNKNOWN, thread), (method, rest)
    for a, b in ((thread, thread), (f"{thread}@1", f"{thread}@2")):
        assert (await bob.get("/api/diff", params={"a": a, "b": b})).status_code == 404
    assert (await bob.post("/api/threads/start", json={"goal": QUESTION, "threadId": thread})).status_code == 404
    assert (await ann.get(f"/api/threads/{thread}")).json()["title"] == QUESTION


ODD: list[Any] = [
    {}, [], "x", None, 7, {"goal": 5}, {"goal": None}, {"goal": "\x00" * 20}, {"goal": "x" * 5000},
    {"goal": QUESTION, "depth": "endless"}, {"goal": QUESTION, "words": 10**30}, {"goal": QUESTION, "words": "100"},
    {"goal": QUESTION, "usd": -1}, {"goal": QUESTION, "usd": 10**400}, {"goal": QUESTION, "interactive": "yes"},
    {"goal": QUESTION, "docs": ["/etc/passwd"]}, {"goal": QUESTION, "documents": ["../../etc/passwd"]},
    {"goal": QUESTION, "source": "nowhere"}, {"goal": QUESTION, "source": "\x00"},
    {"goal": QUESTION, "model": "no:one"}, {"goal": QUESTION, "model": "local:/etc/passwd"},
    {"goal": QUESTION, "threadId": "../x"},
    {"goal": QUESTION, "domains": ["x"] * 100}, {"goal": QUESTION, "context": "\x1b[2J"},
    {"goal": QUESTION, "\ud800": 1},
]  # fmt: skip


@pytest.mark.slow
async def test_what_makes_no_sense_is_refused_and_nothing_comes_of_it(serve: Open, http: Http) -> None:
    client = http(await serve())
    missing = [{"goal": QUESTION, "documents": ["0" * 16]}, {"goal": QUESTION, "threadId": UNKNOWN}]
    for body in [*ODD, *missing]:
        content = json.dumps(body)
        answer = await client.post("/api/threads/start", content=content, headers=JSON)
        assert answer.status_code == (404 if body in missing else 422), content[:80]
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert {"type", "title", "status", "detail", "requestId"} <= answer.json().keys()
    for content in ("{", "[" * 100_000, '{"goal": "\\ud800 what is this about?"}', "", "\xff", '{"goal": NaN}'):
        for path in ("start", f"{UNKNOWN}/resume"):
            answer = await client.post(f"/api/threads/{path}", content=content.encode("latin-1"), headers=JSON)
            assert answer.status_code in (400, 404, 422), content[:80]
    assert (await client.get("/api/threads")).json()["threads"] == []
