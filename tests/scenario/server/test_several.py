"""Several servers on one database: they count together, admit together, and hear of each other's runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.models.thread import ResearchOptions
from openassay.server import stream
from openassay.server.app import RunningServer
from openassay.settings import load
from openassay.storage.ledger import SqlSpending
from openassay.storage.shared_servers import RedisLink
from tests.conftest import ValkeyServer
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.server.asking import QUESTION, asked, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import transcript

START = "/api/threads/start"
Pair = Callable[..., Awaitable[tuple[RunningServer, RunningServer]]]


@pytest.fixture(params=["postgres", "redis"])
def carrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What carries rates and news between them."""
    if request.param == "redis":
        server: ValkeyServer = request.getfixturevalue("own_valkey")()
        monkeypatch.setenv("REDIS_URL", server.url.get_secret_value())
    name: str = request.param
    return name


@pytest.fixture
def pair(postgres_address: str, serve: Open, tmp_path: Path) -> Pair:
    """`await pair(...)`: two servers on one database, each on a machine of its own."""

    async def opened(**settings: Any) -> tuple[RunningServer, RunningServer]:
        there = {**settings, "persistence": {"backend": "postgres", "connection_string": postgres_address}}
        return await serve(tmp_path / "one", **there), await serve(tmp_path / "two", **there)

    return opened


@pytest.fixture
async def slow_model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Any]]:
    """Settings of servers whose runs are not done before a test is."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel(), latency=30.0) as provider:
        yield {"llm": {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}, "depth": "quick"}


# -- limits --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_requests_of_one_person_are_counted_together(carrier: str, pair: Pair, http: Http) -> None:
    one, other = await pair(server={"requests_per_minute": 6})
    token = await token_of(one, "ada")
    clients = [http(one, token), http(other, token)]
    answers = [await clients[number % 2].get("/api/account") for number in range(12)]
    admitted = [answer for answer in answers if answer.status_code == 200]
    assert len(admitted) in (6, 7), "and one may come back while the test lasts"
    assert [answer.status_code for answer in answers[:6]] == [200] * 6
    assert answers[1].headers["RateLimit-Remaining"] == "4", "the other has counted one already"
    assert int(answers[-1].headers["Retry-After"]) in range(1, 11)


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_two_servers_admit_no_more_runs_than_one(pair: Pair, http: Http, slow_model: dict[str, Any]) -> None:
    one, other = await pair(**slow_model, server={"runs_per_user": 1, "start_seconds": 0})
    token = await token_of(one, "ada")
    clients = [http(one, token), http(other, token)]
    body = {"goal": QUESTION, "depth": "quick"}
    answers = await asyncio.gather(*(clients[number % 2].post(START, json=body) for number in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [429] * 9
    assert await SqlSpending(one.service.resources.rows).count_active("ada") == 1
    await _cancel_all(clients[0])


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_two_servers_promise_no_more_money_than_there_is(
    pair: Pair, http: Http, slow_model: dict[str, Any]
) -> None:
    one, other = await pair(**slow_model, server={"start_seconds": 0, "usd_per_month": 2.0})
    token = await token_of(one, "ada")
    clients = [http(one, token), http(other, token)]
    body = {"goal": QUESTION, "usd": 0.9}
    answers = await asyncio.gather(*(clients[number % 2].post(START, json=body) for number in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [402] * 5
    budget = (await clients[1].get("/api/account")).json()["budget"]
    assert budget["held"] + budget["spent"] == pytest.approx(2.0)
    await _cancel_all(clients[0])


async def _cancel_all(client: Any) -> None:
    for thread in (await client.get("/api/threads")).json()["threads"]:
        await client.post(f"/api/threads/{thread['id']}/cancel")


# -- news ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-12", "W-14")
async def test_a_run_of_another_process_is_heard_of(
    postgres_address: str, carrier: str, serve: Open, http: Http, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody looks by itself here within a minute: whatever arrives was heard of."""
    for name in ("MIN_POLL_SECONDS", "MAX_POLL_SECONDS", "SIGNALLED_POLL_SECONDS"):
        monkeypatch.setattr(stream, name, 60.0)
    there = {"backend": "postgres", "connection_string": postgres_address}
    client = http(await serve(tmp_path / "one", persistence=there))
    async with open_engine(load(data_dir=tmp_path / "two", source="demo", persistence=there)) as elsewhere:
        run = await elsewhere.start(QUESTION, ResearchOptions(source="demo"))
        async with asyncio.timeout(50):
            heard = await transcript(client, run.thread)
        assert [one.json()["seq"] for one in heard] == [event.seq async for event in elsewhere.events(run.id)]
    assert heard[-1].json()["data"]["status"] == "done"


@pytest.mark.slow
@pytest.mark.requirement("W-12", "W-14")
async def test_a_valkey_that_goes_and_comes_back_costs_no_run(
    postgres_address: str, own_valkey: Callable[..., ValkeyServer], serve: Open, http: Http, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """With caches, rates and news on it, gone in the middle of a run that another process follows."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    valkey = own_valkey()
    monkeypatch.setenv("REDIS_URL", valkey.url.get_secret_value())
    async with FakeLlmServer(FakeModel(), latency=0.15) as provider:
        settings: dict[str, Any] = {
            "persistence": {"backend": "postgres", "connection_string": postgres_address},
            "cache": {"backend": "redis"},
            "llm": {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}},
        }
        server = await serve(tmp_path / "one", **settings, server={"start_seconds": 0})
        client = http(server, await token_of(server, "ada"))
        signals = server.service.resources.shared.signals
        thread = str((await asked(client))["threadId"])
        following = asyncio.create_task(transcript(client, thread))
        async with asyncio.timeout(30):
            while not signals.is_live:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        valkey.stop()
        with caplog.at_level(logging.WARNING, logger="openassay"):
            assert (await standing(client, thread))["status"] == "done"
            assert (await following)[-1].json()["data"]["status"] == "done"
            second = await asked(client)
            assert (await standing(client, second["threadId"]))["status"] == "done", "one that begins without it"
        told = [record.message for record in caplog.records if "Redis" in record.message]
        assert len(told) == 1, told
        assert "cannot be reached" in told[0]

        again = own_valkey(port=valkey.port)
        async with asyncio.timeout(60):
            while not signals.is_live:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        link = RedisLink(again.url, pytest.fail)
        async with asyncio.timeout(60):
            while not await link.client.keys("openassay:rate:*"):  # it rests a little first
                assert (await client.get("/api/account")).status_code == 200
                await asyncio.sleep(0.05)
        third = await asked(client)
        assert (await standing(client, third["threadId"]))["status"] == "done"
        assert (await link.client.pubsub_numsub("openassay:openassay"))[0][1] == 1
        await link.close()
