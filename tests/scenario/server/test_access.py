"""Who may do what: every route, held against everybody who may not use it.

A route that has no row in the table fails the test. A row says whose a thing is:

    public   nobody's: everybody is answered
    own      each person's own: somebody else is answered with theirs
    thread   its owner's alone: to anybody else there is no such thing
    seen     its owner's, and whoever has a link to it
"""

import asyncio
import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Literal, NamedTuple

import httpx2
import pytest

from openassay.models.user import Scope
from openassay.server import middleware, service
from openassay.server.app import RunningServer, create_app
from openassay.server.auth import is_still_valid
from openassay.server.routes.system import load_interface
from tests.scenario.server.asking import asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import listening

MARK = "adas-secret"  # in everything of hers that has a name
T = "/api/threads/{threadId}"


class Row(NamedTuple):
    whose: Literal["public", "own", "thread", "seen"]
    scope: Scope | None = None
    body: Any = None


READ, WRITE, SHARE, METRICS = Scope
TABLE: dict[tuple[str, str], Row] = {
    ("GET", "/openapi.json"): Row("public"),
    ("GET", "/healthz"): Row("public"),
    ("GET", "/readyz"): Row("public"),
    ("GET", "/s/{secret}"): Row("public"),
    ("GET", "/"): Row("public"),
    ("GET", "/t/{threadId}"): Row("public"),
    ("GET", "/ui/{digest}/{part:path}"): Row("public"),
    ("GET", "/metrics"): Row("own", METRICS),
    ("GET", "/api/account"): Row("own"),
    ("GET", "/api/choices"): Row("own", READ),
    ("GET", "/api/graph"): Row("own", READ),
    ("GET", "/api/threads"): Row("own", READ),
    ("POST", "/api/threads"): Row("own", WRITE, {"title": "mine"}),
    ("POST", "/api/threads/start"): Row("own", WRITE, {"goal": "What is happening with Apple?", "depth": "quick"}),
    ("POST", "/api/quote"): Row("own", READ, {"goal": "What is happening with Apple?"}),
    ("GET", T): Row("seen", READ),
    ("PATCH", T): Row("thread", WRITE, {"title": "taken"}),
    ("DELETE", T): Row("thread", WRITE),
    ("GET", f"{T}/runs"): Row("thread", READ),
    ("POST", f"{T}/cancel"): Row("thread", WRITE),
    ("POST", f"{T}/resume"): Row("thread", WRITE, {}),
    ("PATCH", f"{T}/mode"): Row("thread", WRITE, {"mode": "plan"}),
    ("GET", f"{T}/state"): Row("thread", READ),
    ("GET", f"{T}/report"): Row("seen", READ),
    ("GET", f"{T}/documents/{{hash}}"): Row("seen", READ),
    ("GET", f"{T}/timings"): Row("thread", READ),
    ("GET", "/api/stream/{threadId}"): Row("seen", READ),
    ("GET", f"{T}/history"): Row("thread", READ),
    ("GET", f"{T}/branches"): Row("thread", READ),
    ("POST", f"{T}/fork"): Row("thread", WRITE, {}),
    ("GET", "/api/diff"): Row("thread", READ),
    ("GET", "/api/reviews"): Row("own", READ),
    ("GET", f"{T}/reviews"): Row("thread", READ),
    ("GET", "/api/reviews/{reviewId}"): Row("thread", READ),
    ("POST", "/api/reviews/{reviewId}/answer"): Row("thread", WRITE, {"value": "taken"}),
    ("GET", f"{T}/sources"): Row("seen", READ),
    ("PUT", f"{T}/sources/{{sourceId}}/pin"): Row("thread", WRITE),
    ("DELETE", f"{T}/sources/{{sourceId}}/pin"): Row("thread", WRITE),
    ("POST", f"{T}/sources/{{sourceId}}/veto"): Row("thread", WRITE),
    ("GET", f"{T}/sources/{{sourceId}}/consequences"): Row("thread", READ),
    ("GET", f"{T}/artifacts"): Row("thread", READ),
    ("POST", f"{T}/artifacts"): Row("thread", WRITE, {"title": "taken", "content": "x"}),
    ("GET", f"{T}/artifacts/{{name}}"): Row("thread", READ),
    ("PUT", f"{T}/artifacts/{{name}}"): Row("thread", WRITE, {"content": "taken"}),
    ("GET", f"{T}/artifacts/{{name}}/versions"): Row("thread", READ),
    ("DELETE", f"{T}/artifacts/{{name}}"): Row("thread", WRITE),
    ("GET", f"{T}/export"): Row("seen", READ),
    ("POST", "/api/documents"): Row("own", WRITE),
    ("GET", "/api/documents"): Row("own", READ),
    ("GET", "/api/documents/{documentId}"): Row("thread", READ),
    ("DELETE", "/api/documents/{documentId}"): Row("thread", WRITE),
    ("GET", "/api/memory"): Row("own", READ),
    ("DELETE", "/api/memory"): Row("own", WRITE),
    ("PUT", "/api/memory/preferences"): Row("own", WRITE, {}),
    ("POST", "/api/memory/facts"): Row("own", WRITE, {}),
    ("PATCH", "/api/memory/facts/{factId}"): Row("thread", WRITE, {"text": "taken"}),
    ("DELETE", "/api/memory/facts/{factId}"): Row("thread", WRITE),
    ("POST", f"{T}/shares"): Row("thread", SHARE),
    ("GET", f"{T}/shares"): Row("thread", SHARE),
    ("DELETE", f"{T}/shares/{{shareId}}"): Row("thread", SHARE),
    ("POST", "/api/webhooks"): Row("own", WRITE, {}),
    ("GET", "/api/webhooks"): Row("own", READ),
    ("DELETE", "/api/webhooks/{webhookId}"): Row("thread", WRITE),
    ("GET", "/api/webhooks/{webhookId}/deliveries"): Row("thread", READ),
    ("POST", "/api/webhooks/{webhookId}/test"): Row("thread", WRITE),
    ("GET", "/v1/models"): Row("own", READ),
    ("GET", "/v1/models/{model}"): Row("own", READ),
    ("POST", "/v1/chat/completions"): Row("own", WRITE, {"model": "openassay-quick", "messages": []}),
    ("POST", "/mcp"): Row("own", None, {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
}
MALFORMED = {400, 406, 415, 422}  # somebody else may send this, and what is sent here is not whole


def routes(listed: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for route in listed:
        if hasattr(route, "original_router"):
            yield from routes(route.original_router.routes)
        else:
            yield from ((method, route.path) for method in route.methods - {"HEAD"})


@pytest.mark.slow
async def test_every_route_has_a_row(serve: Open) -> None:
    server = await serve()
    assert set(routes(create_app(server.service).routes)) == set(TABLE)


class Ada(NamedTuple):
    """What she has: everything with the mark in its name."""

    client: httpx2.AsyncClient
    names: dict[str, str]  # of what stands in a path
    passage: str  # that her report cites
    waiting: str  # a thread with a question that is open
    ids: frozenset[str]

    def path(self, route: str) -> str:
        path = re.sub(r"\{(\w+)(?::path)?\}", lambda found: self.names[found[1]], route)
        thread, queries = self.names["threadId"], {"/api/diff": "a={0}&b={0}", f"{T}/documents/{{hash}}": self.passage}
        return f"{path}?{queries[route].format(thread)}" if route in queries else path


async def settled(server: RunningServer, http: Http) -> Ada:
    client = http(server, await token_of(server, "ada", *Scope))
    thread = await researched(client)
    await client.patch(f"/api/threads/{thread}", json={"title": f"{MARK} title"})
    waiting = (await asked(client, modeOverride="plan", depth="standard"))["threadId"]
    await standing(client, waiting)
    review = (await client.get(f"/api/threads/{waiting}/reviews")).json()["reviews"][0]["id"]
    fact = (await client.post("/api/memory/facts", json={"text": f"{MARK} fact"})).json()["id"]
    files = {"file": (f"{MARK}.txt", b"The kiln is hot.", "text/plain")}
    document = (await client.post("/api/documents", files=files)).json()["documents"][0]["id"]
    webhook = await client.post("/api/webhooks", json={"url": f"https://1.1.1.1/{MARK}"})
    artifact = await client.post(f"/api/threads/{thread}/artifacts", json={"title": f"{MARK} notes", "content": "x"})
    share = (await client.post(f"/api/threads/{thread}/shares")).json()
    card = (await client.get(f"/api/threads/{thread}/sources")).json()["sources"][0]
    span = (await client.get(f"/api/threads/{thread}/report")).json()["claims"][0]["spans"][0]
    names = {
        "digest": load_interface().digest, "part": "app.js",
        "threadId": thread, "reviewId": review, "factId": fact, "documentId": document, "hash": span["document"],
        "webhookId": webhook.json()["id"], "name": artifact.json()["name"], "shareId": share["id"],
        "secret": share["secret"], "sourceId": card["id"], "model": "openassay",
    }  # fmt: skip
    runs = [
        run["id"] for one in (thread, waiting) for run in (await client.get(f"/api/threads/{one}/runs")).json()["runs"]
    ]
    secret = frozenset({thread, waiting, review, document, names["webhookId"], share["id"], *runs})
    return Ada(client, names, f"start={span['start']}&end={span['end']}", waiting, secret)


async def everybody_else(server: RunningServer, http: Http, ada: Ada) -> dict[str, httpx2.AsyncClient]:
    users, now = server.service.resources.users, server.service.now()
    expired = await token_of(server, "ada", expires=now + timedelta(milliseconds=1))
    revoked, disabled = await token_of(server, "ada"), await token_of(server, "eve")
    await users.revoke(revoked.split("_")[1])
    await users.change("eve", disabled=True)
    other = await server.service.engine.create_thread("somebody's", owner="bob")
    _, elsewhere = await server.service.resources.shares.create(other.id, timedelta(days=1))
    gone, taken_back = await server.service.resources.shares.create(ada.names["threadId"], timedelta(days=1))
    await server.service.resources.shares.revoke(ada.names["threadId"], gone.id)
    secrets = {
        "anonymous": "",
        "expired": expired,
        "revoked": revoked,
        "disabled": disabled,
        "nobody": f"openassay_0_{'x' * 43}",
        "other": await token_of(server, "bob", *Scope),
        "link": ada.names["secret"],
        "another link": elsewhere,
        "link taken back": taken_back,
    }
    for scope in Scope:
        secrets[f"not {scope}"] = await token_of(server, "ada", *(set(Scope) - {scope}))
    return {who: http(server, secret) for who, secret in secrets.items()}


def expected(who: str, row: Row) -> set[int]:
    """Empty: not to be asked, since it would be answered."""
    if row.whose == "public":
        return {200}
    if who in ("anonymous", "expired", "revoked", "disabled", "nobody", "link taken back"):
        return {401}
    if who.startswith("not "):
        return {403} if who == f"not {row.scope}" else set()
    if who == "link":
        return {200, 204} if row.whose == "seen" else {403}
    if who == "another link":
        return {404} if row.whose == "seen" else {403}
    return {404} if row.whose != "own" else {200, 201, 202, 204, *MALFORMED}


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_nobody_gets_what_is_not_theirs(serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FAILURES_PER_MINUTE", 100_000)
    server = await serve(server={"requests_per_minute": 100_000})
    ada = await settled(server, http)
    others = await everybody_else(server, http, ada)
    before = await what_there_is(ada)
    for who, client in others.items():
        for (method, route), row in TABLE.items():
            allowed = expected(who, row)
            if not allowed:
                continue
            path = ada.path(route)
            answer = (
                await client.request(method, path, json=row.body)
                if row.body is not None
                else await client.request(method, path)
            )
            assert answer.status_code in allowed, (who, method, route, answer.text)
            if who != "link" and row.whose != "public":
                leaked = [word for word in (MARK, "Tesla", *ada.ids) if word in answer.text and word not in path]
                assert not leaked, (who, method, route, answer.text)
            if answer.status_code >= 400 and not route.startswith(("/v1", "/mcp")):
                assert answer.headers["Content-Type"] == "application/problem+json", (who, method, route)
    assert await what_there_is(ada) == before


async def what_there_is(ada: Ada) -> list[Any]:
    """All of it, and so that she is answered wherever others are not."""
    told = []
    for (method, route), row in TABLE.items():
        if method == "GET" and route not in ("/metrics", "/api/account", "/healthz", "/readyz", "/openapi.json"):
            answer = await ada.client.get(ada.path(route))
            assert answer.status_code in (200, 204), (route, answer.text)
            told.append((route, answer.text if "json" in answer.headers.get("Content-Type", "") else ""))
            assert row.whose
    return told


# -- what stays open -----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_stream_ends_with_the_token_that_opened_it(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with the link, the person, and when the first user is added to a server that asked nobody."""
    monkeypatch.setattr(middleware, "RECHECK_SECONDS", 0.1)
    server = await serve()
    users, shares = server.service.resources.users, server.service.resources.shares
    anybody = http(server)
    thread = (await asked(anybody, modeOverride="plan", depth="standard"))["threadId"]
    await standing(anybody, thread)

    async def heard(client: httpx2.AsyncClient) -> int:
        async with asyncio.timeout(20), listening(client, thread) as events:
            return len([event async for event in events])

    open_to_all = asyncio.create_task(heard(anybody))
    await asyncio.sleep(0.5)
    assert not open_to_all.done()
    await token_of(server, "eve")
    await open_to_all

    token = await token_of(server, server.service.settings.user)
    link, secret = await shares.create(thread, timedelta(days=1))
    streams = [asyncio.create_task(heard(http(server, one))) for one in (token, token, secret)]
    await asyncio.sleep(0.5)
    assert not any(stream.done() for stream in streams)
    await users.revoke(token.split("_")[1])
    await asyncio.gather(*streams[:2])
    assert not streams[2].done()
    await shares.revoke(thread, link.id)
    await streams[2]
    assert (await http(server, token).get(f"/api/stream/{thread}")).status_code == 401


@pytest.mark.slow
async def test_a_token_is_looked_at_once_for_all_its_streams(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after something went wrong with that which nobody foresaw."""
    looks, failures = 0, 3

    async def look(*given: Any) -> bool:
        nonlocal looks, failures
        looks += 1
        if failures:
            failures -= 1
            raise RuntimeError("nobody foresaw this")
        return await is_still_valid(*given)

    monkeypatch.setattr(middleware, "RECHECK_SECONDS", 0.1)
    monkeypatch.setattr(middleware, "is_still_valid", look)
    server = await serve()
    token = await token_of(server, "ada")
    client = http(server, token)
    thread = (await asked(client, modeOverride="plan", depth="standard"))["threadId"]
    await standing(client, thread)

    async def heard() -> int:
        async with asyncio.timeout(20), listening(client, thread) as events:
            return len([event async for event in events])

    streams = [asyncio.create_task(heard()) for _ in range(8)]
    await asyncio.sleep(1)
    assert not any(stream.done() for stream in streams)
    assert 4 <= looks <= 12
    await server.service.resources.users.revoke(token.split("_")[1])
    assert all(await asyncio.gather(*streams))
    before = looks
    await asyncio.sleep(0.3)
    assert looks == before, "nothing is open any more"


async def test_the_headers_of_a_stream_can_be_asked_for(serve: Open, http: Http) -> None:
    client = http(await serve())
    thread = (await asked(client, modeOverride="plan", depth="standard"))["threadId"]
    async with asyncio.timeout(10):
        answer = await client.head(f"/api/stream/{thread}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["Content-Type"].startswith("text/event-stream")


# -- a server that asks nobody -------------------------------------------------------------------------


@pytest.mark.slow
async def test_the_first_user_closes_an_open_server(serve: Open, http: Http) -> None:
    server = await serve()
    client = http(server)
    assert (await client.get("/api/account")).json()["user"] == "local"
    assert (await http(server, "any-key-a-client-wants").get("/api/threads")).status_code == 200
    assert (await http(server, f"openassay_0_{'x' * 43}").get("/api/threads")).status_code == 401
    users = server.service.resources.users
    token = await token_of(server, "ada")
    server.service.open_to_all = True  # as it is where another process has added her
    assert (await client.get("/api/account")).status_code == 401
    assert (await http(server, "any-key-a-client-wants").get("/api/threads")).status_code == 401
    assert (await http(server, token).get("/api/account")).json()["user"] == "ada"
    await users.revoke(token.split("_")[1])
    assert (await client.get("/api/account")).status_code == 401, "that nobody is left opens it to nobody"


async def test_a_token_comes_in_its_header_alone(serve: Open, http: Http) -> None:
    server = await serve()
    token = await token_of(server, "ada")
    client = http(server)
    assert (await client.get("/api/threads", params={"share": token})).status_code == 401
    assert (await client.get("/api/threads", params={"token": token})).status_code == 401
    assert (await client.get("/api/threads", headers={"Authorization": f"Basic {token}"})).status_code == 401
    assert (await client.get("/api/threads", headers={"Authorization": f"bearer  {token}"})).status_code == 200
    refused = await client.get("/api/threads", headers={"Authorization": f"Bearer {token}x"})
    assert refused.headers["WWW-Authenticate"] == "Bearer"
