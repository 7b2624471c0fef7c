"""How much of everything one person may have."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from openassay.models.spend import MICRO
from openassay.server import service
from openassay.server.app import RunningServer
from openassay.storage.database import ACCOUNTS
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.server.asking import QUESTION, asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of

pytestmark = pytest.mark.requirement("W-15")
START = "/api/threads/start"


@asynccontextmanager
async def thinking(monkeypatch: pytest.MonkeyPatch, latency: float = 0.0) -> AsyncIterator[dict[str, Any]]:
    """Settings of a server whose runs ask a model that costs something; a start is answered at once."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel(), latency=latency) as provider:
        yield {"llm": {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}, "depth": "quick"}


async def limited(server: RunningServer, name: str, **limits: Any) -> str:
    token = await token_of(server, name)
    await server.service.resources.users.change(name, **limits)
    return token


def cap_of(server: RunningServer, run: str) -> float:
    """What a run may cost, as the books have it."""
    account = server.service.resources.rows.find(ACCOUNTS, run)
    assert account is not None
    return float(account["cap_micros"]) / MICRO


# -- requests ------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_each_person_has_so_many_requests_a_minute(serve: Open, http: Http) -> None:
    server = await serve(server={"requests_per_minute": 5})
    ada, bob = (
        http(server, await limited(server, "ada", requests_per_minute=2)),
        http(server, await token_of(server, "bob")),
    )
    told = [await ada.get("/api/account") for _ in range(3)]
    assert [one.status_code for one in told] == [200, 200, 429]
    assert [one.headers["RateLimit-Remaining"] for one in told] == ["1", "0", "0"]
    assert told[0].headers["RateLimit-Limit"] == "2"
    assert int(told[2].headers["Retry-After"]) in range(1, 31)
    assert told[2].json()["type"] == "urn:openassay:problem:too-many"
    assert [(await bob.get("/api/account")).status_code for _ in range(6)] == [200] * 5 + [429]
    assert (await ada.get("/healthz")).status_code == 200, "whether it lives is always told"


async def test_whoever_guesses_is_slowed_and_whoever_is_known_is_not(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "FAILURES_PER_MINUTE", 3)
    server = await serve()
    good = http(server, await token_of(server, "ada"))
    bad = http(server, f"openassay_00000000_{'x' * 43}")
    statuses = [(await bad.get("/api/account")).status_code for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert (await good.get("/api/account")).status_code == 200


@pytest.mark.slow
async def test_each_person_has_so_many_runs(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    async with thinking(monkeypatch, latency=20.0) as settings:
        server = await serve(**settings, server={"runs_per_user": 2, "start_seconds": 0})
        ada, bob = [http(server, await token_of(server, name)) for name in ("ada", "bob")]
        body = {"goal": QUESTION, "depth": "quick"}
        answers = await asyncio.gather(*(ada.post(START, json=body) for _ in range(5)))
        assert sorted(one.status_code for one in answers) == [200, 200, 429, 429, 429]
        assert (await ada.get("/api/account")).json()["limits"]["runsAtWork"] == 2
        assert (await bob.post(START, json=body)).status_code == 200
        first = next(one.json()["threadId"] for one in answers if one.status_code == 200)
        await ada.post(f"/api/threads/{first}/cancel")
        assert (await ada.post(START, json=body)).status_code == 200
        for client in (ada, bob):
            for thread in (await client.get("/api/threads")).json()["threads"]:
                await client.post(f"/api/threads/{thread['id']}/cancel")


@pytest.mark.slow
async def test_a_run_that_waits_for_its_person_counts_and_can_be_answered(serve: Open, http: Http) -> None:
    server = await serve(server={"runs_per_user": 1}, hitl_after_planning=True, auto_gate=False)
    ada = http(server, await token_of(server, "ada"))
    thread = (await asked(ada, depth="standard"))["threadId"]
    assert (await standing(ada, thread))["status"] == "waiting"
    refused = await ada.post(START, json={"goal": QUESTION})
    assert (refused.status_code, "answer one" in refused.json()["help"]) == (429, True)
    (review,) = (await ada.get("/api/reviews")).json()["reviews"]
    answer = {"interruptId": review["id"], "value": {"decision": "approve"}}
    assert (await ada.post(f"/api/threads/{thread}/resume", json=answer)).status_code == 200
    await ada.post(f"/api/threads/{thread}/cancel")
    assert (await ada.post(f"/api/threads/{thread}/resume", json={})).status_code == 200, "it is the one there may be"
    await ada.post(f"/api/threads/{thread}/cancel")


# -- money ---------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_month_has_an_end_and_deleting_brings_no_money_back(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thinking(monkeypatch) as settings:
        server = await serve(**settings)
        ada = http(server, await limited(server, "ada", usd=0.9))
        thread = await researched(ada)
        run = (await standing(ada, thread))["id"]
        assert cap_of(server, run) == 0.9, "of the usual 2 dollars"
        spent = (await ada.get("/api/account")).json()["budget"]
        assert spent["spent"] > 0
        assert spent["held"] == 0
        assert spent["left"] == pytest.approx(0.9 - spent["spent"])
        assert (await ada.delete(f"/api/threads/{thread}")).status_code == 204
        assert (await ada.get("/api/account")).json()["budget"] == spent

        await server.service.resources.users.change("ada", usd=spent["spent"])
        refused = await ada.post(START, json={"goal": QUESTION})
        assert refused.status_code == 402
        assert refused.json()["type"] == "urn:openassay:problem:budget"
        assert "$0.00 of your" in refused.json()["detail"]
        free = await researched(ada, model="embedded")
        assert (await ada.get("/api/account")).json()["budget"]["spent"] == spent["spent"]
        assert (
            await ada.post(f"/api/threads/{free}/fork", json={"changes": {"model": "openai:gpt-4o"}})
        ).status_code == 402

        server.service.now = lambda: datetime.now(UTC) + timedelta(days=32)
        assert (await ada.get("/api/account")).json()["budget"]["spent"] == 0
        await server.service.resources.users.change("ada", usd=0.9)
        await researched(ada)


@pytest.mark.slow
async def test_what_is_promised_at_once_is_not_more_than_there_is(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thinking(monkeypatch, latency=20.0) as settings:
        server = await serve(**settings, server={"start_seconds": 0, "usd_per_month": 2.0})
        ada = http(server, await token_of(server, "ada"))
        answers = await asyncio.gather(*(ada.post(START, json={"goal": QUESTION, "usd": 0.9}) for _ in range(5)))
        assert sorted(one.status_code for one in answers) == [200, 200, 200, 402, 402]
        runs = await server.service.engine.threads.list_active()
        assert sorted(round(run.options.usd or 0.0, 6) for run in runs) == [0.2, 0.9, 0.9]
        budget = (await ada.get("/api/account")).json()["budget"]
        assert (budget["held"] + budget["spent"], budget["left"]) == (pytest.approx(2.0), 0)

        stopped = runs[-1].thread
        await ada.post(f"/api/threads/{stopped}/cancel")
        await server.service.resources.users.change("ada", usd=0.5)
        assert (await ada.post(f"/api/threads/{stopped}/resume", json={})).status_code == 402, "the others hold it all"
        for run in runs:
            await ada.post(f"/api/threads/{run.thread}/cancel")


@pytest.mark.slow
async def test_no_plan_can_raise_what_is_left(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    async with thinking(monkeypatch) as settings:
        server = await serve(**settings, hitl_after_planning=True, auto_gate=False)
        ada = http(server, await limited(server, "ada", usd=0.5))
        started = await asked(ada, depth="standard")
        thread = started["threadId"]
        await standing(ada, thread)
        (review,) = (await ada.get("/api/reviews")).json()["reviews"]
        value = {"decision": "modify", "edits": [{"op": "budget", "usd": 9.0}]}
        answer = await ada.post(f"/api/threads/{thread}/resume", json={"interruptId": review["id"], "value": value})
        assert answer.status_code == 200, answer.text
        run = await standing(ada, thread)
        assert cap_of(server, run["id"]) == pytest.approx(0.5)
        told = [event.data async for event in server.service.engine.events(run["id"]) if event.kind == "notice"]
        assert any("at most $0.50" in str(notice["text"]) for notice in told)


@pytest.mark.slow
async def test_two_plans_together_cannot_raise_what_is_left(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with thinking(monkeypatch, latency=0.3) as settings:
        server = await serve(**settings, hitl_after_planning=True, auto_gate=False)
        ada = http(server, await limited(server, "ada", usd=1.0))
        started = [await asked(ada, depth="standard", usd=0.1) for _ in range(2)]
        runs = [(await standing(ada, one["threadId"]))["id"] for one in started]
        reviews = (await ada.get("/api/reviews")).json()["reviews"]
        value = {"decision": "modify", "edits": [{"op": "budget", "usd": 0.7}]}
        await asyncio.gather(
            *(
                ada.post(f"/api/threads/{one['threadId']}/resume", json={"interruptId": one["id"], "value": value})
                for one in reviews
            )
        )
        async with asyncio.timeout(10):
            while 0.1 in (caps := [cap_of(server, run) for run in runs]):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        budget = (await ada.get("/api/account")).json()["budget"]
        for one in started:
            await ada.post(f"/api/threads/{one['threadId']}/cancel")
        assert sum(caps) <= 1.0 + 1e-6
        assert budget["spent"] + budget["held"] <= 1.0 + 1e-6
