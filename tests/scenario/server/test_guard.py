"""What stands before every route: Host, Origin, bodies, and the headers of every answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.errors import ConfigurationError
from openassay.server import middleware
from openassay.server.app import RunningServer
from openassay.server.middleware import HEADERS, MAX_DEPTH, is_deep
from openassay.settings import load
from tests.growth import LINEAR, growth
from tests.scenario.server.conftest import Http, Open, token_of

PAGE = "https://team.example"
START = "/api/threads/start"


async def raw(server: RunningServer, *lines: str, body: bytes = b"", wait: float = 10) -> str:
    """A request as it is written here, and all of its answer."""
    at = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(at.hostname, at.port)
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    async with asyncio.timeout(wait):
        answer = await reader.read()
    writer.close()
    return answer.decode()


async def test_every_answer_tells_a_browser_what_it_may_do(serve: Open, http: Http) -> None:
    client = http(await serve())
    for method, path in (("GET", "/healthz"), ("GET", "/api/account"), ("GET", "/nowhere"), ("POST", "/healthz")):
        answer = await client.request(method, path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (path, name)
        assert answer.headers["Cache-Control"]
        assert answer.headers["X-Request-ID"]
        assert "server" not in answer.headers
        assert "Strict-Transport-Security" not in answer.headers
        assert "Access-Control-Allow-Origin" not in answer.headers


async def test_https_is_kept_to_where_it_is_used(serve: Open, http: Http) -> None:
    client = http(await serve(known="ann", server={"public_url": "https://openassay.example"}))
    answer = await client.get("/healthz", headers={"Host": "openassay.example"})
    assert answer.status_code == 200
    assert "max-age" in answer.headers["Strict-Transport-Security"]


async def test_it_answers_to_its_own_names_alone(serve: Open, http: Http) -> None:
    """A name that somebody has pointed here is how a page elsewhere would reach a server that asks nobody's name."""
    server = await serve(known="ann", server={"allow_hosts": ["openassay.team.example"]})
    client = http(server, await token_of(server, "ann"))
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "127.8.8.8:1", "[::1]:80", "openassay.team.example:443"):
        assert (await client.get("/api/account", headers={"Host": host})).status_code == 200, host
    wrong = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "team.example", "[", "")
    for _ in range(2):
        for host in wrong:
            answer = await client.get("/api/account", headers={"Host": host})
            assert answer.status_code == 421, host
            assert answer.json()["type"] == "urn:openassay:problem:misdirected"
            assert "local" not in answer.json()["detail"].replace(host, "")
        await token_of(server, "ada")  # and just so where tokens are asked for


@pytest.mark.slow
async def test_a_page_from_elsewhere_cannot_change_anything(serve: Open, http: Http) -> None:
    server = await serve(server={"allow_origins": [PAGE]})
    client = http(server)
    own = f"http://{urlsplit(server.url).netloc}"
    for origin, taken in (
        (PAGE, True),
        (own, True),
        ("https://evil.example", False),
        ("null", False),
        ("http://[", False),
    ):
        headers = {"Origin": origin}
        statuses = [
            (await client.post("/api/threads", json={"wrong": 1}, headers=headers)).status_code,
            (await client.request("DELETE", "/api/threads/abc", headers=headers)).status_code,
            (await client.get("/mcp/x", headers=headers)).status_code,
        ]
        assert all((status != 403) is taken for status in statuses), (origin, statuses)
        assert (await client.get("/healthz", headers=headers)).status_code == 200


@pytest.mark.slow
async def test_a_page_of_no_origin_is_let_in_nowhere(serve: Open, http: Http, tmp_path: Path) -> None:
    """A frame or a file says that it comes from `null`."""
    for number, settings in enumerate(({}, {"public_url": "openassay.example"}, {"allow_origins": [PAGE]})):
        server = await serve(tmp_path / str(number), known="ann", server=settings)
        client = http(server, await token_of(server, "ann"))
        for origin in ("null", "*", "://", "https://"):
            headers = {"Origin": origin}
            assert (await client.post("/api/threads", json={}, headers=headers)).status_code == 403, (settings, origin)
            assert "Access-Control-Allow-Origin" not in (await client.get("/healthz", headers=headers)).headers


@pytest.mark.parametrize("origin", ["*", "null", "team.example", "https://", "https://*.example", "", "http://["])
def test_only_whole_origins_can_be_allowed(origin: str) -> None:
    with pytest.raises(ConfigurationError, match="allow_origins"):
        load(server={"allow_origins": [origin]})


async def test_pages_that_may_call_are_told_so_and_no_others(serve: Open, http: Http) -> None:
    client = http(await serve(server={"allow_origins": [f"{PAGE}/"]}))
    ask = {"Origin": PAGE, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    allowed = await client.options(START, headers=ask)
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == PAGE
    assert "Access-Control-Allow-Credentials" not in allowed.headers
    assert (await client.options(START, headers={**ask, "Origin": "https://evil.example"})).status_code == 403
    # Refusals too can be read, and what a client needs of their headers.
    for body in (b"x" * 2_000_000, b"[" * 100):
        told = await client.post(START, content=body, headers={"Origin": PAGE, "Content-Type": "application/json"})
        assert told.status_code in (413, 422)
        assert told.headers["Access-Control-Allow-Origin"] == PAGE
        assert "ETag" in told.headers["Access-Control-Expose-Headers"]


async def test_bodies_are_only_so_large(serve: Open, http: Http) -> None:
    server = await serve(server={"body_mb": 0.01})
    client = http(server)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 1000

    for body in (b"x" * 40_000, pieces()):
        answer = await client.post(START, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["detail"] == "the body is larger than 0.01 MB"
    told = await raw(
        server, f"POST {START} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
        "Content-Length: 99999999999999999999",
    )  # fmt: skip
    assert told.startswith(("HTTP/1.1 413", "HTTP/1.1 400")), told[:80]
    assert (await client.get("/healthz")).status_code == 200


@pytest.mark.slow
async def test_a_body_that_does_not_come_is_not_waited_for(serve: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.3)
    server = await serve()
    for path in (START, "/api/documents"):
        kind = "application/json" if path == START else "multipart/form-data; boundary=x"
        told = await raw(
            server, f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}", "Content-Length: 10", body=b"-"
        )
        assert told.startswith("HTTP/1.1 408"), told


async def test_json_without_end_is_refused(serve: Open, http: Http) -> None:
    client = http(await serve())
    for body in (b"[" * 500_000, b'{"goal":' * 90 + b"1" + b"}" * 90, b'{"goal": ' + b"[" * 100 + b"]" * 100 + b"}"):
        answer = await client.post(START, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, answer.text
        assert answer.headers["Content-Type"] == "application/problem+json"


OPEN = b"[" * (MAX_DEPTH + 1)
HOSTILE = {
    "escapes": OPEN + b'"' + b'\\"' * 490_000, "backslashes": OPEN + b'"' + b"\\" * 990_000,
    "quotes": OPEN + b'"' * 990_000, "texts": OPEN + b'"a' * 490_000, "no end": OPEN + b'"' + b"a" * 990_000,
    "brackets": b"[" * 990_000,
}  # fmt: skip


def is_deep_until(body: bytes, size: int) -> bool:
    return is_deep(body[:size])


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_no_body_takes_long(serve: Open, http: Http) -> None:
    """Whoever sends it need not say who they are, and nobody else is answered meanwhile."""
    client = http(await serve())
    for what, body in HOSTILE.items():
        answer = await client.post(START, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, what
        assert growth(partial(is_deep_until, body), len(body) // 4) < LINEAR, what


async def test_of_a_request_that_is_wrong_everywhere_a_little_is_told(serve: Open, http: Http) -> None:
    client = http(await serve())
    for body in ({f"k{n}": 1 for n in range(20_000)}, {"sk-" * 100_000: 1}):
        answer = await client.post("/api/threads", json=body)
        assert answer.status_code == 422
        assert 1 <= len(answer.json()["errors"]) <= 20
        assert len(answer.content) < 5_000


async def test_head_is_a_get_without_its_body(serve: Open, http: Http) -> None:
    client = http(await serve())
    for path in ("/healthz", "/api/account"):
        answer = await client.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
        assert int(answer.headers["Content-Length"]) > 0
    assert (await client.head("/nowhere")).status_code == 404
    refused = await client.options("/healthz")
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")


async def test_what_nobody_foresaw_is_told_without_a_word_of_it(
    serve: Open, http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve()

    async def fail(*_: object) -> None:
        raise KeyError("the inside of the machine")

    monkeypatch.setattr(server.service.limits, "get_budget", fail)
    answer = await http(server).get("/api/account", headers={"X-Request-ID": "mine"})
    assert answer.status_code == 500
    assert "inside" not in answer.text
    assert answer.json()["requestId"] == answer.headers["X-Request-ID"] == "mine"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.slow
@given(_JSON, st.integers(0, 2 * MAX_DEPTH))
def test_depth_is_that_of_the_brackets(value: object, around: int) -> None:
    """Texts may hold any; what is whole and shallow passes."""
    for _ in range(around):
        value = [value]
    depth = _depth(value)
    body = json.dumps(value, ensure_ascii=False).encode()
    assert is_deep(body) == (depth > MAX_DEPTH and body.count(b"[") + body.count(b"{") > MAX_DEPTH)


def _depth(value: object) -> int:
    if isinstance(value, list | dict):
        return 1 + max((_depth(held) for held in (value.values() if isinstance(value, dict) else value)), default=0)
    return 0


@pytest.mark.parametrize("named", [{"public_url": "https://openassay.example"}, {"allow_hosts": ["openassay.example"]}])
async def test_names_for_others_need_somebody_with_a_token(serve: Open, named: dict[str, Any]) -> None:
    """Behind a proxy on this machine, everybody comes from it."""
    with pytest.raises(ConfigurationError, match="nobody has a token") as refused:
        await serve(server=named)
    assert "openassay admin users add" in refused.value.help
    await serve(server={"public_url": "http://localhost:9000", "allow_hosts": ["openassay.localhost"]})
