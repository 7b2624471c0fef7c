"""Addresses that are told when a run ends or asks."""

import asyncio
import hmac
import json
import sqlite3
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from openassay.bootstrap import open_engine
from openassay.engine.webhooks import MAX_DELIVERIES_PER_USER, WebhookSender, check_address
from openassay.errors import ConfigurationError
from openassay.models.plan import Depth, Mode
from openassay.models.thread import ResearchOptions
from openassay.server.app import RunningServer, open_server
from openassay.settings import load
from tests.scenario.server.conftest import Http, Open, token_of

QUESTION = "What's happening with Tesla and its stock?"
HERE: dict[str, Any] = {"webhook_addresses": ["127.0.0.1/32"], "webhook_seconds": 1.0}


class Post(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Receiver:
    """An address; `answers` are the statuses it gives, the last one from then on. 0 is silence."""

    def __init__(self) -> None:
        self.url = ""
        self.answers = [204]
        self.says = b""
        self.posts: list[Post] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            fields = [line.partition(": ") for line in asked[1:] if line]
            headers = {name.lower(): value for name, _, value in fields}
            self.posts.append(Post(headers, await reader.readexactly(int(headers["content-length"]))))
            status = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if not status:
                await asyncio.sleep(30)
            where = "Location: http://127.0.0.1:9/elsewhere\r\n" if status == 302 else ""
            head = f"HTTP/1.1 {status} X\r\n{where}Content-Length: {len(self.says)}\r\nConnection: close\r\n\r\n"
            writer.write(head.encode() + self.says)
            with suppress(ConnectionError):  # who asked need not read all of it
                await writer.drain()
        finally:
            writer.close()

    async def heard(self, count: int) -> list[Post]:
        async with asyncio.timeout(15):
            while len(self.posts) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return self.posts


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.connected, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    yield receiver
    server.close()


@asynccontextmanager
async def telling(server: RunningServer, first: float = 0.05) -> AsyncIterator[WebhookSender]:
    hooks = WebhookSender(server.service.resources)
    hooks.poll_seconds, hooks.first_retry = 0.02, timedelta(seconds=first)
    task = asyncio.create_task(hooks.run())
    yield hooks
    task.cancel()
    await asyncio.wait([task])


async def added(client: httpx2.AsyncClient, receiver: Receiver, **more: Any) -> dict[str, Any]:
    answer = await client.post("/api/webhooks", json={"url": receiver.url, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def deliveries(client: httpx2.AsyncClient, id: str) -> list[dict[str, Any]]:
    answer = await client.get(f"/api/webhooks/{id}/deliveries")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["deliveries"]
    return found


async def until(met: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await met():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def is_signed(post: Post, secret: str) -> bool:
    """As a receiver checks it."""
    content = f"{post.headers['webhook-id']}.{post.headers['webhook-timestamp']}.".encode() + post.body
    digest = hmac.digest(b64decode(secret.removeprefix("whsec_")), content, "sha256")
    return post.headers["webhook-signature"] == f"v1,{b64encode(digest).decode()}"


@pytest.mark.slow
async def test_ends_and_questions_are_told_and_signed(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server=HERE)
    client = http(server)
    made = await added(client, receiver)
    async with telling(server):
        waiting = await server.service.engine.start(
            QUESTION, ResearchOptions(source="demo", mode=Mode.PLAN, interactive=True)
        )
        [asked] = await receiver.heard(1)
        ended = await server.service.engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        _, finished = await receiver.heard(2)
    [question] = await server.service.engine.interrupts.open_questions(waiting.thread)
    assert asked.told["type"] == "run.question"
    told = {name: asked.told["data"][name] for name in ("threadId", "runId", "questionId", "question")}
    assert told == {
        "threadId": waiting.thread, "runId": waiting.id, "questionId": question.id, "question": question.question,
    }  # fmt: skip
    assert finished.told["type"] == "run.finished"
    assert finished.told["data"] == {"threadId": ended.thread, "runId": ended.id, "status": "done"}
    assert all(is_signed(post, made["secret"]) for post in receiver.posts)
    assert not is_signed(asked._replace(body=asked.body + b" "), made["secret"])
    assert finished.headers["content-type"] == "application/json"


@pytest.mark.slow
async def test_a_failure_is_tried_again_and_then_given_up(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server={**HERE, "webhook_attempts": 3, "webhook_seconds": 0.3})
    client = http(server)
    made = await added(client, receiver)
    receiver.answers = [500, 0, 200, 302]
    async with telling(server):
        first = (await client.post(f"/api/webhooks/{made['id']}/test")).json()
        posts = await receiver.heard(3)
        await until(lambda: stands(client, made["id"], "delivered"))
        assert {post.headers["webhook-id"] for post in posts} == {first["id"]}, "a receiver can tell a repetition"
        assert [one["attempts"] for one in await deliveries(client, made["id"])] == [3]
        await client.post(f"/api/webhooks/{made['id']}/test")
        await until(lambda: stands(client, made["id"], "given up"))
    given_up = next(one for one in await deliveries(client, made["id"]) if one["status"] == "given up")
    assert (given_up["attempts"], given_up["error"], given_up["due"]) == (3, "answered 302", None)
    assert len(receiver.posts) == 6


async def stands(client: httpx2.AsyncClient, id: str, status: str) -> bool:
    return any(one["status"] == status for one in await deliveries(client, id))


@pytest.mark.slow
async def test_who_answers_gone_is_told_nothing_more(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server=HERE)
    client = http(server)
    made = await added(client, receiver)
    receiver.answers = [410]
    async with telling(server):
        await client.post(f"/api/webhooks/{made['id']}/test")
        await receiver.heard(1)
        await until(lambda: none_left(client))
    assert (await client.get(f"/api/webhooks/{made['id']}/deliveries")).status_code == 404


async def none_left(client: httpx2.AsyncClient) -> bool:
    return bool((await client.get("/api/webhooks")).json() == {"webhooks": []})


@pytest.mark.slow
async def test_an_address_that_takes_its_time_holds_up_nobody_else(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server={**HERE, "webhook_seconds": 20.0})
    ada, ben = [http(server, await token_of(server, name)) for name in ("ada", "ben")]
    silent = Receiver()
    silent.answers = [0]
    listening = await asyncio.start_server(silent.connected, "127.0.0.1", 0)
    silent.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
    slow = [(await added(ada, silent))["id"] for _ in range(7)]
    answers = [await ada.post(f"/api/webhooks/{id}/test") for id in slow for _ in range(4)]
    assert [one.status_code for one in answers] == [202, 202, 202, 429] * 7
    assert int(answers[3].headers["Retry-After"]) > 0
    quick = await added(ben, receiver)
    async with telling(server):
        await silent.heard(1)
        await ben.post(f"/api/webhooks/{quick['id']}/test")
        async with asyncio.timeout(5):
            await receiver.heard(1)
        assert len(silent.posts) <= 2 * MAX_DELIVERIES_PER_USER  # the server has a sender of its own
    listening.close()


@pytest.mark.slow
async def test_a_long_answer_is_an_answer(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server=HERE)
    client = http(server)
    made = await added(client, receiver)
    receiver.says = b"x" * 3_000_000
    receiver.answers = [200]
    async with telling(server):
        await client.post(f"/api/webhooks/{made['id']}/test")
        await until(lambda: stands(client, made["id"], "delivered"))
    assert len(receiver.posts) == 1


@pytest.mark.slow
async def test_what_ended_while_the_server_was_away_is_told(
    serve: Open, http: Http, receiver: Receiver, tmp_path: Path
) -> None:
    """By the command line, say, on the same data directory."""
    async with open_server(load(data_dir=tmp_path, source="demo", server={"port": 0, **HERE})) as server:
        await added(http(server), receiver, events=["finished"])
    async with open_engine(load(data_dir=tmp_path, source="demo")) as engine:
        runs = [await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK)) for _ in range(2)]
        for run in runs:
            await engine.wait(run.id)
        await engine.archive.delete(runs[1].thread)
    assert receiver.posts == []
    again = await serve(server=HERE)
    async with telling(again), telling(again):
        await receiver.heard(1)
        await asyncio.sleep(0.3)
    assert [post.told["data"]["threadId"] for post in receiver.posts] == [runs[0].thread]


@pytest.mark.slow
async def test_of_a_thread_that_was_altered_nobody_is_told_and_it_is_not_tried_for_ever(
    serve: Open, http: Http, receiver: Receiver, tmp_path: Path
) -> None:
    async with open_server(load(data_dir=tmp_path, source="demo", server={"port": 0, **HERE})) as server:
        made = await added(http(server), receiver, events=["finished"])
    async with open_engine(load(data_dir=tmp_path, source="demo")) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        await engine.wait(run.id)
    with closing(sqlite3.connect(tmp_path / "openassay.sqlite3")) as database, database:
        database.execute("UPDATE threads SET title = 'of somebody else' WHERE id = ?", (run.thread,))
    again = await serve(server=HERE)
    async with telling(again):
        await until(lambda: stands(http(again), made["id"], "given up"))
    [delivery] = await deliveries(http(again), made["id"])
    assert (receiver.posts, delivery["error"]) == ([], "its thread or its webhook is gone")


@pytest.mark.slow
async def test_only_safe_addresses_are_taken(serve: Open, http: Http) -> None:
    client = http(await serve(server={"webhook_addresses": ["10.1.0.0/16"]}))
    for url in (
        "http://hooks.example.org/x", "https://127.0.0.1/x", "https://169.254.169.254/",
        "https://[::1]/", "http://10.2.0.1/", "ftp://example.org/", "file:///etc/passwd", "https://u:p@example.org/",
        "https://example.org:25/", "nothing", "https://exa mple.org/", "https://a.internal.\x00/",
    ):  # fmt: skip
        answer = await client.post("/api/webhooks", json={"url": url})
        assert (answer.status_code, answer.headers["Content-Type"]) == (422, "application/problem+json"), url
    for url in ("https://hooks.example.org/x", "http://10.1.2.3/x", "https://10.1.2.3:8443/x"):
        assert (await client.post("/api/webhooks", json={"url": url})).status_code == 201, url
    for body in ({}, {"url": "https://example.org", "events": []}, {"url": "https://example.org", "events": ["x"]}):
        assert (await client.post("/api/webhooks", json=body)).status_code == 422


@pytest.mark.slow
async def test_a_name_that_leads_inside_is_told_nothing(serve: Open, http: Http, receiver: Receiver) -> None:
    """It is looked up when it is told something; where no network is named, it is not even taken."""
    url = receiver.url.replace("127.0.0.1", "localhost")
    assert (await http(await serve()).post("/api/webhooks", json={"url": url})).status_code == 422
    server = await serve(server={"webhook_addresses": ["10.1.0.0/16"], "webhook_attempts": 1})
    client = http(server)
    made = (await client.post("/api/webhooks", json={"url": url})).json()
    async with telling(server):
        await client.post(f"/api/webhooks/{made['id']}/test")
        await until(lambda: stands(client, made["id"], "given up"))
    assert [one["error"] for one in await deliveries(client, made["id"])] == ["leads to a private address"]
    assert receiver.posts == []


@pytest.mark.slow
async def test_nobody_reaches_the_webhooks_of_others(serve: Open, http: Http, receiver: Receiver) -> None:
    server = await serve(server=HERE)
    ada, ben = [http(server, await token_of(server, name)) for name in ("ada", "ben")]
    made = await added(ada, receiver)
    listed = (await ada.get("/api/webhooks")).json()["webhooks"]
    assert [one["id"] for one in listed] == [made["id"]]
    assert "secret" not in listed[0]
    assert await none_left(ben)
    for verb, rest in (("GET", "/deliveries"), ("POST", "/test"), ("DELETE", "")):
        answer = await ben.request(verb, f"/api/webhooks/{made['id']}{rest}")
        assert answer.status_code == 404
        assert (await ben.request(verb, f"/api/webhooks/ffff{rest}")).json()["detail"] == answer.json()["detail"]
        assert (await http(server).request(verb, f"/api/webhooks/{made['id']}{rest}")).status_code == 401
    assert (await ada.delete(f"/api/webhooks/{made['id']}")).status_code == 204
    assert await none_left(ada)
    theirs = await added(ben, receiver)
    await ben.post(f"/api/webhooks/{theirs['id']}/test")
    await server.service.resources.users.change("ben", disabled=True)
    async with telling(server):
        await asyncio.sleep(0.3)
    [left] = await server.service.resources.webhooks.deliveries(theirs["id"])
    assert (left.status, receiver.posts) == ("given up", []), "who may not come in is told nothing"


def test_a_network_that_is_none_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"server\.webhook_addresses: 'here' is not a network"):
        check_address("https://hooks.example.org", load(server={"webhook_addresses": ["here"]}))
