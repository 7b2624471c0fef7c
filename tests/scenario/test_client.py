"""The guarded client: what it brings back, what it leaves alone, and what it says then."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import zstandard

from openassay.errors import AddressPolicyError, FetchError
from openassay.fetch.client import FetchClient, FetchResponse
from openassay.settings import HarvestSettings
from tests.fakes.http_server import ServerConnection
from tests.fakes.web import (
    PUBLIC_ADDRESS,
    FakeWeb,
    WebVisit,
    build_reply,
    make_bomb,
    reset_connection,
    send_endless_body,
    send_raw,
    send_slowly,
    stay_silent,
)

SITE = "http://site.example.org"
PAGES = frozenset({"text/html", "text/plain", "application/pdf"})
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


@pytest.fixture
async def web() -> AsyncIterator[FakeWeb]:
    async with FakeWeb(tls=("site.example.org",)) as web:
        yield web


@pytest.fixture
async def client(web: FakeWeb) -> AsyncIterator[FetchClient]:
    async with FetchClient(HarvestSettings(), resolve=web.resolve_public, dial=web.dial, trust=web.trust) as client:
        yield client


async def fetch(client: FetchClient, path: str = "/", **wish: Any) -> FetchResponse:
    return await client.get(f"{SITE}{path}", **{"seconds": 3.0, "max_bytes": 100_000, "accept": PAGES, **wish})


async def failure(client: FetchClient, path: str = "/", **wish: Any) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetch(client, path, **wish)
    assert caught.value.help
    assert str(caught.value.context["url"]).startswith("http")
    return caught.value


# What comes back -------------------------------------------------------------------------------------


async def test_a_page(web: FakeWeb, client: FetchClient) -> None:
    headers = {"ETag": '"1"', "Set-Cookie": "id=1"}
    web.add_page(f"{SITE}/a", "<p>Hällo</p>", type="text/html; charset=ISO-8859-1", headers=headers)
    found = await fetch(client, "/a?q=ü#part")
    assert (found.url, found.status, found.body) == (f"{SITE}/a?q=%C3%BC", 200, "<p>Hällo</p>".encode())
    assert (found.media_type, found.charset, found.whole) == ("text/html", "iso-8859-1", True)
    assert found.headers["etag"] == '"1"'
    assert "set-cookie" not in found.headers


async def test_what_is_sent(web: FakeWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    web.add_page(f"{SITE}/first", headers={"Set-Cookie": "id=1"})
    settings = HarvestSettings(user_agent="OtherBot/2.0 (+https://example.org/bot)")
    async with FetchClient(settings, resolve=web.resolve_public, dial=web.dial) as client:
        await fetch(client, "/first")
        await fetch(client, "/first", headers={"Accept-Language": "de", "Host": "evil.example.org"})
    sent = web.requests[1].headers
    assert sent["user-agent"] == settings.user_agent
    assert sent["host"] == "site.example.org"
    assert sent["accept-language"] == "de"
    assert "text/html" in sent["accept"]
    assert not {"cookie", "referer", "authorization", "proxy-authorization"} & sent.keys()


ENCODED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZIP": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
    "br": lambda data: _brotli(data),
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip, br": lambda data: _brotli(gzip.compress(data)),
    "zstd,gzip": lambda data: gzip.compress(zstandard.ZstdCompressor().compress(data)),
}


def _brotli(data: bytes) -> bytes:
    import brotli

    return bytes(brotli.compress(data))


@pytest.mark.parametrize("encoding", ENCODED)
async def test_encodings(web: FakeWeb, client: FetchClient, encoding: str) -> None:
    text = "".join(f"<p>Line {number} of a page.</p>" for number in range(3_000)).encode()
    web.add_page(f"{SITE}/", ENCODED[encoding](text), headers={"Content-Encoding": encoding})
    assert (await fetch(client)).body == text


async def test_odd_but_whole_encodings(web: FakeWeb, client: FetchClient) -> None:
    packer = zlib.compressobj(wbits=-15)
    bodies = {
        "deflate": packer.compress(b"raw") + packer.flush(),
        "gzip": gzip.compress(b"r") + gzip.compress(b"aw") + b"\0\0 padding",
        "zstd": zstandard.ZstdCompressor().compress(b"r") + zstandard.ZstdCompressor().compress(b"aw"),
    }
    for encoding, body in bodies.items():
        web.add_page(f"{SITE}/", body, headers={"Content-Encoding": encoding})
        assert (await fetch(client)).body == b"raw"
        web.add_page(f"{SITE}/", b"", headers={"Content-Encoding": encoding})
        assert (await fetch(client)).body == b""


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_damaged_encodings(web: FakeWeb, client: FetchClient, encoding: str) -> None:
    web.add_page(f"{SITE}/", b"This is not packed at all.", headers={"Content-Encoding": encoding})
    assert (await failure(client)).message == "has a damaged body"
    if encoding != "zstd":  # which does not say where it ends
        packed = ENCODED[encoding](bytes(range(256)) * 50)
        web.add_page(f"{SITE}/", packed[: len(packed) // 2], headers={"Content-Encoding": encoding})
        assert (await failure(client)).message == "has a damaged body"


@pytest.mark.parametrize("encoding", ["compress", "gzip, gzip, gzip", "br,zstd,gzip", "gzip;q=1", "\xff"])
async def test_encodings_that_are_not_read(web: FakeWeb, client: FetchClient, encoding: str) -> None:
    web.add_page(f"{SITE}/", b"abc", headers={"Content-Encoding": encoding})
    assert (await failure(client)).message.startswith("has an unsupported compression")


@pytest.mark.parametrize(
    ("body", "type", "kind"),
    [
        (b"\n <!DOCTYPE html><p>a", None, "text/html"),
        (b"\xef\xbb\xbf<html>", None, "text/html"),
        (b"%PDF-1.7 ...", "application/octet-stream", "application/pdf"),
        (b"Just text.", None, "text/plain"),
        (b"Just text.", "garbage", "text/plain"),
    ],
)
async def test_a_page_without_a_type_is_looked_at(
    web: FakeWeb, client: FetchClient, body: bytes, type: str | None, kind: str
) -> None:
    web.add_page(f"{SITE}/", body, type=type)
    assert (await fetch(client)).media_type == kind


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize(
    ("body", "type", "kind"),
    [
        (b"\x89PNG\r\n", "image/png", "image/png"),
        (b"<html>", "Application/JSON; charset=utf-8", "application/json"),
        (b"\x89PNG\r\n", None, "image/png"),
        (b"PK\x03\x04", "application/octet-stream", "application/zip"),
        (b"\0\1\2", None, "application/octet-stream"),
    ],
)
async def test_types_that_are_not_read(
    web: FakeWeb, client: FetchClient, body: bytes, type: str | None, kind: str
) -> None:
    web.add_page(f"{SITE}/", body, type=type)
    assert (await failure(client)).message == f"is {kind}, which is not supported"


async def test_a_type_is_refused_before_the_body_is_read(web: FakeWeb, client: FetchClient) -> None:
    web.add_handler(f"{SITE}/", send_slowly(b"a", 60.0, head=b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\n\r\n"))
    assert "which is not supported" in (await failure(client)).message, "the body takes a minute, and the client 20 s"


async def test_an_unknown_type_is_taken_where_it_is_asked_for(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", b"PK\x03\x04", type="application/octet-stream")
    accept = PAGES | {"application/octet-stream"}
    assert (await fetch(client, accept=accept)).media_type == "application/octet-stream"
    assert (await fetch(client, accept=None)).media_type == "application/octet-stream"


async def test_not_modified(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", status=304, type=None)
    found = await fetch(client, headers={"If-None-Match": '"1"'})
    assert (found.status, found.body) == (304, b"")
    assert (await failure(client)).message == "answered 304"


async def test_post(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/hook", status=204, type=None)
    found = await client.post(f"{SITE}/hook", b"{}", headers={"X-Sign": "1"}, seconds=3, max_bytes=100)
    assert found.status == 204
    assert (web.requests[0].method, web.requests[0].body, web.requests[0].headers["x-sign"]) == ("POST", b"{}", "1")
    web.add_redirect(f"{SITE}/hook", f"{SITE}/other")
    with pytest.raises(FetchError, match="answered 302"):
        await client.post(f"{SITE}/hook", b"{}", seconds=3, max_bytes=100)
    web.add_page(f"{SITE}/hook", status=503)
    with pytest.raises(FetchError, match="answered 503"):
        await client.post(f"{SITE}/hook", b"{}", seconds=3, max_bytes=100)
    assert len(web.requests) == 3


# Redirects -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(web: FakeWeb, client: FetchClient, status: int) -> None:
    web.add_redirect(f"{SITE}/a", "b?x=1", status=status)
    web.add_redirect(f"{SITE}/b", "//other.example.org/c#top", status=status)
    web.add_page("http://other.example.org/c", "here")
    asked = []

    async def on_redirect(url: str) -> None:
        asked.append(url)

    found = await fetch(client, "/a", headers={"X-Own": "1"}, on_redirect=on_redirect)
    assert (found.url, found.body) == ("http://other.example.org/c", b"here")
    assert found.redirects == (f"{SITE}/a", f"{SITE}/b?x=1")
    assert asked == [f"{SITE}/b?x=1", "http://other.example.org/c"]
    assert ["x-own" in visit.headers for visit in web.requests] == [True, True, False]


async def test_a_redirect_can_be_forbidden(web: FakeWeb, client: FetchClient) -> None:
    async def never(url: str) -> None:
        raise AddressPolicyError("is closed to robots", help="So it is.", url=url)

    web.add_redirect(f"{SITE}/a", "/b")
    assert (await failure(client, "/a", on_redirect=never)).message == "is closed to robots"
    assert web.visits_to("site.example.org", "/b") == []


@pytest.mark.requirement("W-08")
async def test_redirects_have_an_end(web: FakeWeb, client: FetchClient) -> None:
    async def onwards(wire: ServerConnection, visit: WebVisit) -> None:
        await wire.send(build_reply(status=302, headers={"Location": f"/{int(visit.path[1:]) + 1}"}))

    web.add_handler(f"{SITE}/*", onwards)
    assert (await failure(client, "/1")).message == "redirects too often"
    assert len(web.requests) == 11
    web.add_redirect(f"{SITE}/loop", "/pool")
    web.add_redirect(f"{SITE}/pool", "/loop")
    assert (await failure(client, "/loop")).message == "redirects in a circle"


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("file:///etc/passwd", "redirects to an address that is not an http or https address"),
        ("http://127.0.0.1/", "redirects to an address that leads to a private address"),
        ("http://u:p@example.org/", "redirects to an address that carries a user name or password"),
        ("http://", "redirects to an address that is not an address"),
        ("http://x.example.org:22/", "redirects to an address that leads to port 22, which is not for the web"),
    ],
)
async def test_redirects_to_nowhere(web: FakeWeb, client: FetchClient, to: str, reason: str) -> None:
    web.add_redirect(f"{SITE}/", to)
    error = await failure(client)
    assert isinstance(error, AddressPolicyError)
    assert error.message == reason


async def test_a_redirect_without_a_target_is_an_answer(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", status=302)
    assert (await failure(client)).message == "answered 302"


# Answers that help nobody ----------------------------------------------------------------------------


@pytest.mark.parametrize(("status", "retryable"), [(401, False), (404, False), (410, False), (500, True), (206, False)])
async def test_answers_that_are_none(web: FakeWeb, client: FetchClient, status: int, retryable: bool) -> None:
    web.add_page(f"{SITE}/", status=status)
    error = await failure(client)
    assert (error.message, error.retryable, error.context["status"]) == (f"answered {status}", retryable, status)
    assert len(web.requests) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_one_retry(web: FakeWeb, client: FetchClient, status: int) -> None:
    busy = build_reply(status=status, headers={"Retry-After": "0"})
    web.add_replies(f"{SITE}/", busy, build_reply("here"))
    assert (await fetch(client)).body == b"here"
    web.add_replies(f"{SITE}/", busy, busy, build_reply("here"))
    error = await failure(client)
    assert (error.message, error.retryable) == (f"answered {status}", True)
    assert len(web.requests) == 4


def _in(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "waits"),
    [("6", False), (_in(3600), False), (_in(-9), True), ("1", True), ("x", True)],
    ids=["too long", "in an hour", "past", "soon", "no time"],  # a date would name each worker's test differently
)
async def test_a_retry_waits_as_asked_but_not_long(web: FakeWeb, client: FetchClient, after: str, waits: bool) -> None:
    web.add_replies(f"{SITE}/", build_reply(status=503, headers={"Retry-After": after}), build_reply("here"))
    with suppress(FetchError):
        await fetch(client)
    assert len(web.requests) == 1 + waits


async def test_no_retry_that_would_take_too_long(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", status=503, headers={"Retry-After": "4"})
    assert (await failure(client, seconds=2.0)).message == "answered 503"
    assert len(web.requests) == 1


async def test_a_broken_connection_is_tried_again(web: FakeWeb, client: FetchClient) -> None:
    visits = 0

    async def breaks_once(wire: ServerConnection, visit: WebVisit) -> None:
        nonlocal visits
        visits += 1
        await (reset_connection(wire, visit) if visits == 1 else wire.send(build_reply("here")))

    web.add_handler(f"{SITE}/", breaks_once)
    assert (await fetch(client)).body == b"here"
    web.add_handler(f"{SITE}/", reset_connection)
    error = await failure(client)
    assert (error.message, error.retryable) == ("broke the connection", True)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (OK + b"Content-Length: 100\r\n\r\nabc", "broke off its response"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc", "broke off its response"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\nabc", "sent an invalid HTTP response"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffffff\r\na", "sent an invalid HTTP response"),
        (OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", "sent an invalid HTTP response"),
        (OK + b"Content-Length: -3\r\n\r\nabc", "sent an invalid HTTP response"),
        (b"", "broke off its response"),
        (b"HTTP/1.1 200", "broke off its response"),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "sent an invalid HTTP response"),
        (b"<html>HTTP/0.9</html>\r\n\r\n", "sent an invalid HTTP response"),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(500)) + b"\r\n", "sends too many headers"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000 + b"\r\n\r\n", "sent an invalid HTTP response"),
        (b"HTTP/1.1 200 OK\r\nX Y: \0\r\n\r\n", "sent an invalid HTTP response"),
    ],
)
async def test_answers_in_bad_http(web: FakeWeb, client: FetchClient, answer: bytes, reason: str) -> None:
    web.add_handler(f"{SITE}/", send_raw(answer))
    assert (await failure(client)).message == reason


@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
async def test_a_body_that_ends_with_the_connection(web: FakeWeb, client: FetchClient, version: bytes) -> None:
    web.add_handler(f"{SITE}/", send_raw(version + b" 200 OK\r\nContent-Type: text/html\r\n\r\nabc"))
    assert (await fetch(client)).body == b"abc"


# Bounds ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize(
    "encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, br", "zstd, gzip", "gzip, zstd"]
)
async def test_bombs(web: FakeWeb, client: FetchClient, encoding: str) -> None:
    web.add_page(f"{SITE}/", make_bomb(encoding, 20), headers={"Content-Encoding": encoding})
    assert (await failure(client)).message == "has more than 0.1 MB"
    clipped = await fetch(client, clip=True)
    assert (clipped.whole, set(clipped.body)) == (False, {0})
    assert 60_000 < len(clipped.body) <= 100_000


@pytest.mark.requirement("W-08")
async def test_a_body_that_is_too_large(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", b"a" * 100_000)
    assert len((await fetch(client)).body) == 100_000
    web.add_page(f"{SITE}/", b"a" * 100_001)
    assert (await failure(client)).message == "has more than 0.1 MB"
    clipped = await fetch(client, clip=True)
    assert (len(clipped.body), clipped.whole) == (100_000, False)
    assert (await failure(client, max_bytes=100)).message == "has more than 0.0001 MB"


@pytest.mark.parametrize(
    "play",
    [
        send_endless_body(),
        send_endless_body(b"Transfer-Encoding: chunked\r\n", b"%x\r\n%b\r\n" % (1000, b"a" * 1000)),
        send_endless_body(
            b"Content-Encoding: zstd\r\n", b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" * 500
        ),  # frames to be skipped
    ],
)
async def test_a_body_without_end(web: FakeWeb, client: FetchClient, play: Any) -> None:
    web.add_handler(f"{SITE}/", play)
    assert (await failure(client)).message == "has more than 0.1 MB"


async def test_a_body_of_countless_empty_parts(web: FakeWeb, client: FetchClient) -> None:
    web.add_handler(f"{SITE}/", send_endless_body(b"Content-Encoding: gzip\r\n", gzip.compress(b"") * 500))
    assert (await failure(client)).message == "has a damaged body"
    web.add_page(f"{SITE}/", gzip.compress(b"a") * 900, headers={"Content-Encoding": "gzip"})
    assert (await fetch(client)).body == b"a" * 900


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize(
    "play",
    [
        send_slowly(b"a" * 1000, 0.02),
        send_slowly(OK + b"X: y" * 1000, 0.02, head=b"HTTP/1.1 "),
        stay_silent,
        send_endless_body(head=b"HTTP/1.1 100 Continue\r\n", piece=b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
    ids=["body", "head", "silence", "continue"],
)
async def test_slow_sites_are_cut_off(web: FakeWeb, client: FetchClient, play: Any) -> None:
    web.add_handler(f"{SITE}/", play)
    error = await failure(client, seconds=0.4)
    assert (error.message, error.retryable) == ("took longer than 0.4 s", True)


async def test_cancelling_leaves_the_client_usable(web: FakeWeb, client: FetchClient) -> None:
    web.add_handler(f"{SITE}/slow", stay_silent)
    web.add_page(f"{SITE}/", "here")
    for _ in range(20):
        task = asyncio.create_task(fetch(client, "/slow"))
        await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await fetch(client)).body == b"here"


# Connections -----------------------------------------------------------------------------------------


async def test_tls_is_verified_for_the_host(web: FakeWeb, client: FetchClient) -> None:
    web.add_page("https://site.example.org/", "safe")
    found = await client.get("https://site.example.org./", seconds=3, max_bytes=100)
    assert found.body == b"safe"
    for url in ("https://other.example.org/", f"https://{PUBLIC_ADDRESS}/"):
        with pytest.raises(FetchError, match="has no valid certificate"):
            await client.get(url, seconds=3, max_bytes=100)
    async with FetchClient(HarvestSettings(), resolve=web.resolve_public, dial=web.dial) as other:
        with pytest.raises(FetchError, match="has no valid certificate"):
            await other.get("https://site.example.org/", seconds=3, max_bytes=100)
    assert len(web.requests) == 1


async def test_connections_are_kept_and_names_looked_up_once_for_each(web: FakeWeb) -> None:
    looked_up = []

    async def resolve(host: str) -> Sequence[str]:
        looked_up.append(host)
        return [PUBLIC_ADDRESS]

    web.add_page(f"{SITE}/", "here")
    async with FetchClient(HarvestSettings(), resolve=resolve, dial=web.dial) as client:
        for _ in range(3):
            await fetch(client)
    assert looked_up == ["site.example.org"]
    assert web.dialled == [(PUBLIC_ADDRESS, 80)]


@pytest.mark.parametrize(
    ("error", "reason", "retryable"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), "has a host name that does not exist", False),
        (socket.gaierror(socket.EAI_AGAIN, "later"), "has a host name that could not be looked up", True),
        (None, "has a host name that does not exist", False),
    ],
)
async def test_names_that_lead_nowhere(web: FakeWeb, error: OSError | None, reason: str, retryable: bool) -> None:
    async def resolve(host: str) -> Sequence[str]:
        if error:
            raise error
        return []

    async with FetchClient(HarvestSettings(), resolve=resolve, dial=web.dial) as client:
        found = await failure(client)
    assert (found.message, found.retryable) == (reason, retryable)


async def test_another_address_of_the_name_is_tried(web: FakeWeb) -> None:
    async def resolve(host: str) -> Sequence[str]:
        return ["2606:4700::1", "2606:4700::2", "1.1.1.1", PUBLIC_ADDRESS]

    tried = []

    async def dial(address: str, port: int) -> Any:
        tried.append(address)
        if address != PUBLIC_ADDRESS:
            raise ConnectionRefusedError
        return await web.dial(address, port)

    web.add_page(f"{SITE}/", "here")
    async with FetchClient(HarvestSettings(), resolve=resolve, dial=dial) as client:
        assert (await fetch(client)).body == b"here"
    assert tried == ["2606:4700::1", "1.1.1.1", "2606:4700::2", PUBLIC_ADDRESS]


async def test_a_site_that_is_down() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        async with FetchClient(HarvestSettings(allow_addresses=("127.0.0.1/32",))) as client:
            with pytest.raises(FetchError) as caught:
                await client.get(f"http://127.0.0.1:{port}/", seconds=3, max_bytes=100)
    assert (caught.value.message, caught.value.retryable) == ("could not be reached", True)


async def test_allowed_networks_are_reached_for_real(web: FakeWeb) -> None:
    web.add_page("http://*/", "inside")
    async with FetchClient(HarvestSettings(allow_addresses=("127.0.0.1/32", "::1/128"))) as client:
        for host in ("127.0.0.1", "localhost"):
            assert (await client.get(web.url(host), seconds=3, max_bytes=100)).body == b"inside"
    async with FetchClient(HarvestSettings(allow_addresses=("127.0.0.1/32",)), resolve=web.resolve) as client:
        for host in ("intranet", "wiki.corp", "example.org"):
            assert (await client.get(web.url(host), seconds=3, max_bytes=100)).body == b"inside"


async def test_a_connection_of_its_own(web: FakeWeb, client: FetchClient) -> None:
    web.add_page(f"{SITE}/", "here")
    stream = await client.connect("site.example.org", 80)
    await stream.write(b"GET / HTTP/1.1\r\nHost: site.example.org\r\n\r\n")
    assert (await stream.read(1000)).startswith(b"HTTP/1.1 200")
    await stream.aclose()
    for host, port in (("127.0.0.1", 80), ("localhost", 80), ("site.example.org", 25)):
        with pytest.raises(AddressPolicyError):
            await client.connect(host, port)


async def test_headers_that_cannot_be_sent(client: FetchClient) -> None:
    for value in ("a\r\nX-Evil: 1", "\0", "\ud800"):
        assert (await failure(client, headers={"X-A": value})).message == "cannot be requested"
