"""Nothing leads the client to a private address, by whatever door; nothing hostile hurts it; the public web is open.

A new way to fetch becomes an entry of ENTRIES and is tried with every vector.
"""

import asyncio
import gc
import gzip
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import Any

import pytest

from benchmarks.evaluation.hostile import address_host, is_public
from benchmarks.evaluation.hostile import load_addresses as listed_vectors
from openassay.errors import AddressPolicyError, FetchError
from openassay.fetch.browser import BrowserProxy
from openassay.fetch.client import FetchClient
from openassay.fetch.web_pages import Robots, WebPages
from openassay.protocols import PageResult
from openassay.settings import HarvestSettings
from openassay.testing import MemoryCache
from openassay.text.urls import parse_url
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

SITE = "stage.example.org"

# Vectors ---------------------------------------------------------------------------------------------

IPS = """
0.0.0.1 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.0.0.53 127.127.127.127 168.63.129.16
169.254.169.254 169.254.170.2 169.254.169.123 169.254.42.42 172.16.0.1 172.17.0.1 172.31.255.255 192.0.0.1 192.0.0.192
192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.251 239.255.255.250
240.0.0.1 255.255.255.255
::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::169.254.169.254
64:ff9b:1::10.0.0.1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:a9fe:a9fe:: 2002:a00:1:: 3fff::1 fc00::1
fd00:ec2::254 fd20:ce::254 fd00:42::42 fe80::1 fec0::1 ff02::1 2a00:1450:4001::5efe:127.0.0.1
2a00:1450:4001::200:5efe:10.0.0.1
""".split()

NAMES = """
localhost LOCALHOST localhost. a.localhost localhost.localdomain ip6-localhost ip6-loopback metadata
metadata.google.internal metadata.google.internal. instance-data rancher-metadata kubernetes
kubernetes.default.svc.cluster.local printer.local router.lan router.home nas.home.arpa wiki.corp intranet
host.docker.internal gateway.docker.internal %6c%6f%63%61%6c%68%6f%73%74 ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localho\u017ft loc\u00adalhost
127.0.0.1.nip.io localtest.me lvh.me
""".split()

TRICKS = r"""
http:127.0.0.1/ http:/127.0.0.1/ http:///127.0.0.1/ http:\\127.0.0.1\ http://\127.0.0.1/ http:////127.0.0.1/
http://127.0.0.1:80\@8.8.8.8/ http://127.0.0.1#@8.8.8.8/ http://127.0.0.1?@8.8.8.8/ http://8.8.8.8@127.0.0.1/
http://8.8.8.8:80@127.0.0.1/ http://user:pass@8.8.8.8/ http://8.8.8.8%2f@127.0.0.1/ http://127.0.0.1%00.example.org/
http://127.0.0.1%2f.example.org/ http://[::ffff:7f00:1]/ http://[0:0:0:0:0:ffff:127.0.0.1]/ http://[::1]:80/
http://[fe80::1%25eth0]/ http://[::1%25lo]/ http://[::]/ http://0/ http://127.1/ http://127.0.1/ http://0x7f.1/
http://0177.1/ http://00000177.0.0.1/ http://0x7f000001/ http://2130706433/ http://017700000001/
http://0x0000000000007f000001/ http://127.000.000.001/ http://127。0。0。1/ http://①②⑦.⓪.⓪.①/ http://１２７.０.０.１/
http://127.0.0.1./ http://127.0.0.1:8080/ https://127.0.0.1:8443/ http://8.8.8.8:22/ http://example.org:25/
http://example.org:6379@127.0.0.1/ ftp://example.org/ file:///etc/passwd file://localhost/etc/passwd
gopher://127.0.0.1:6379/_INFO dict://127.0.0.1:11211/stats ldap://localhost/ tftp://127.0.0.1/x sftp://127.0.0.1/
jar:http://127.0.0.1!/ netdoc:///etc/passwd data:text/html,hello javascript:alert(1) blob:http://127.0.0.1/x
view-source:http://127.0.0.1/ ws://127.0.0.1/ wss://127.0.0.1/ unix:/var/run/docker.sock about:blank
http+unix://%2Fvar%2Frun%2Fdocker.sock/ //127.0.0.1/ \\127.0.0.1\share
""".split()


def own_vectors() -> list[str]:
    hosts = [f"[{ip}]" if ":" in ip else ip for ip in IPS] + NAMES
    spelled = [f"http://{spelling}/" for ip in IPS[:10] if ":" not in ip for spelling in _spellings(IPv4Address(ip))]
    return [*(f"http://{host}/" for host in hosts), *spelled, *TRICKS]


def _spellings(ip: IPv4Address) -> list[str]:
    a, b, c, d = ip.packed
    return [str(int(ip)), hex(int(ip)), f"0{a:o}.{b}.{c:#x}.{d}", f"{a}.{b}.{c << 8 | d}", f"{ip}."]


@pytest.fixture(scope="session")
def vectors(request: pytest.FixtureRequest) -> list[str]:
    try:
        listed = listed_vectors(request.getfixturevalue("eval_data"))
    except pytest.skip.Exception:
        listed = []
    return [*own_vectors(), *listed]


# Entries ---------------------------------------------------------------------------------------------


@dataclass
class Stage:
    """A public site, a canary on this machine, and a client that would reach the canary by any address but one."""

    site: FakeWeb
    canary: FakeWeb
    dialled: list[str] = field(default_factory=list)
    answers: dict[str, list[Sequence[str]]] = field(default_factory=dict)

    def open(self) -> FetchClient:
        return FetchClient(HarvestSettings(), resolve=self.resolve, dial=self.dial)

    async def resolve(self, host: str) -> Sequence[str]:
        """The site is public, and names told in `answers`; all others are this machine."""
        if host == SITE:
            return [PUBLIC_ADDRESS]
        left = self.answers.get(host, [["127.0.0.1"]])
        return left.pop(0) if len(left) > 1 else left[0]

    async def dial(self, address: str, port: int) -> Any:
        self.dialled.append(address)
        return await (self.site if is_public(address) else self.canary).dial(address, port)

    def leads(self, path: str, to: str) -> None:
        target = to.encode("utf-8", "replace")
        self.site.add_handler(f"http://*{path}", send_raw(b"HTTP/1.1 302 Found\r\nLocation: " + target + b"\r\n\r\n"))


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with FakeWeb() as site, FakeWeb() as canary:
        canary.add_page("http://*/*", "secret", headers={"Connection": "close"})
        yield Stage(site, canary)


Entry = Callable[[Stage, FetchClient, str], Awaitable[object]]
WISH: dict[str, Any] = {"seconds": 5.0, "max_bytes": 10_000}


def _behind(vector: str) -> str:
    """The private address that a vector means, for a name to resolve to."""
    with suppress(ValueError):
        return "127.0.0.1" if is_public(address_host(vector)) else str(ip_address(address_host(vector)))
    return "127.0.0.1"


async def address(stage: Stage, client: FetchClient, vector: str) -> object:
    return await client.get(vector, **WISH)


async def post(stage: Stage, client: FetchClient, vector: str) -> object:
    return await client.post(vector, b"{}", **WISH)


async def connect(stage: Stage, client: FetchClient, vector: str) -> object:
    parsed = parse_url(vector)
    host = parsed.host if parsed and not parsed.userinfo else vector
    return await client.connect(host, (parsed and parsed.port) or 80)


async def redirect(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.leads("/go", vector)
    return await client.get(f"http://{SITE}/go", **WISH)


async def second_redirect(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.leads("/start", "/go")
    return await redirect(stage, client, vector)


async def name(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.answers["name.example.org"] = [[_behind(vector)]]
    return await client.get("http://name.example.org/", **WISH)


async def name_with_two_addresses(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.answers["name.example.org"] = [[PUBLIC_ADDRESS, _behind(vector)]]
    return await client.get("http://name.example.org/", **WISH)


async def rebinding(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.site.add_page("http://name.example.org/", "harmless", headers={"Connection": "close"})
    stage.answers["name.example.org"] = [[PUBLIC_ADDRESS], [_behind(vector)]]
    assert (await client.get("http://name.example.org/", **WISH)).body == b"harmless"
    return await client.get("http://name.example.org/", **WISH)


async def rebinding_by_redirect(stage: Stage, client: FetchClient, vector: str) -> object:
    stage.leads("/go", "/gone")
    stage.answers["name.example.org"] = [[PUBLIC_ADDRESS], [_behind(vector)]]
    return await client.get("http://name.example.org/go", **WISH)


async def robots(stage: Stage, client: FetchClient, vector: str) -> None:
    stage.leads("/robots.txt", vector)
    rules = Robots(client, "OpenAssayBot/0.1")
    try:
        await rules.check(f"http://{SITE}/")
    finally:
        await rules.aclose()


async def robots_of_a_name(stage: Stage, client: FetchClient, vector: str) -> None:
    stage.answers["name.example.org"] = [[_behind(vector)]]
    rules = Robots(client, "OpenAssayBot/0.1")
    try:
        await rules.check("http://name.example.org/")
    finally:
        await rules.aclose()


ENTRIES: list[Entry] = [
    address, post, connect, redirect, second_redirect, name, name_with_two_addresses, rebinding,
    rebinding_by_redirect, robots, robots_of_a_name,
]  # fmt: skip
BY_NAME = (name, name_with_two_addresses, rebinding, rebinding_by_redirect, robots_of_a_name)
# Text that is no address by itself is a path of the page that redirects there, which is harmless.
RELATIVE = re.compile(r"(?:http:)?(?![a-z][\w+.-]*:|[/\\]{2})", re.IGNORECASE)


@pytest.mark.slow
@pytest.mark.requirement("W-08")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.__name__)
async def test_no_entry_leads_to_a_private_address(stage: Stage, vectors: list[str], entry: Entry) -> None:
    passed = []
    tried = {_behind(vector): vector for vector in vectors}.values() if entry in BY_NAME else vectors
    async with stage.open() as client:
        for vector in tried:
            try:
                await entry(stage, client, vector)
            except AddressPolicyError:
                continue
            except FetchError:
                if entry in (redirect, second_redirect, robots, robots_of_a_name):
                    continue  # led back to the site itself, or rules that could not be read
            if entry is robots and RELATIVE.match(vector):
                continue
            passed.append(vector)
    assert passed == []
    assert [address for address in stage.dialled if not is_public(address)] == []
    assert stage.canary.requests == []


Doors = Callable[[Stage, WebPages, str], Awaitable[PageResult]]


async def page(stage: Stage, pages: WebPages, vector: str) -> PageResult:
    return await pages.read(vector)


async def page_that_redirects(stage: Stage, pages: WebPages, vector: str) -> PageResult:
    stage.leads("/go", vector)
    return await pages.read(f"http://{SITE}/go")


async def page_that_refreshes(stage: Stage, pages: WebPages, vector: str) -> PageResult:
    """A new path each time: pages are remembered."""
    path = f"/refresh/{len(stage.site.requests)}"
    stage.site.add_page(
        f"http://*{path}", f'<meta http-equiv="refresh" content="0; url={escape(vector)}"><p>Moved.</p>'
    )
    return await pages.read(f"http://{SITE}{path}")


@pytest.mark.slow
@pytest.mark.requirement("W-08")
@pytest.mark.parametrize("door", [page, page_that_redirects, page_that_refreshes], ids=lambda door: door.__name__)
async def test_no_page_leads_to_a_private_address(stage: Stage, vectors: list[str], door: Doors) -> None:
    options = HarvestSettings(host_pause=0, page_seconds=5)
    async with FetchClient(options, resolve=stage.resolve, dial=stage.dial) as client:
        pages = WebPages(options, client=client, cache=MemoryCache())
        try:
            read = [vector for vector in vectors if (await door(stage, pages, vector)).document is not None]
        finally:
            await pages.close()
    assert read == []
    assert [address for address in stage.dialled if not is_public(address)] == []
    assert stage.canary.requests == []


@pytest.mark.requirement("W-08")
@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_the_proxy_of_the_browser_dials_no_private_address(stage: Stage, vectors: list[str], method: str) -> None:
    async with stage.open() as client, BrowserProxy(client.connect, 1_000_000) as proxy:
        for vector in vectors:
            parsed = parse_url(vector)
            if parsed is None or is_public(parsed.host.strip("[]")):
                continue  # refused for its form, which a browser does not pass on
            port = parsed.port or (443 if parsed.scheme == "https" else 80)
            target = f"{parsed.host}:{port}" if method == "CONNECT" else f"http://{parsed.host}:{port}/"
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(f"{method} {target} HTTP/1.1\r\nHost: {parsed.host}\r\n\r\n".encode())
            answer = await reader.read(1000)
            writer.close()
            assert not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.0 200")), vector
    assert [address for address in stage.dialled if not is_public(address)] == []
    assert stage.canary.requests == []


@pytest.mark.slow
@pytest.mark.requirement("W-08")
@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_the_proxy_survives_a_site_that_breaks_off(stage: Stage, method: str) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: unhandled.append(context))
    stage.site.add_handler(f"http://{SITE}/", reset_connection)
    target = f"{SITE}:80" if method == "CONNECT" else f"http://{SITE}/"
    async with stage.open() as client, BrowserProxy(client.connect, 1_000_000) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: {SITE}\r\n\r\n".encode())
        if method == "CONNECT":
            assert await reader.readuntil(b"\r\n\r\n")
            writer.write(f"GET / HTTP/1.1\r\nHost: {SITE}\r\n\r\n".encode())
        assert await reader.read(1000) == b""
        writer.close()
    gc.collect()
    assert unhandled == []


def test_there_are_enough_vectors(vectors: list[str]) -> None:
    assert len(set(own_vectors())) >= 150
    assert len(set(vectors)) >= len(set(own_vectors()))


async def test_a_real_service_on_this_machine_is_not_reached() -> None:
    """Nothing is stubbed: the machine's own lookup, its own sockets, and a server that is really there."""
    async with FakeWeb() as canary, FetchClient(HarvestSettings()) as client:
        for host in (
            "127.0.0.1",
            "localhost",
            "0",
            "127.1",
            "0x7f.1",
            "[::ffff:127.0.0.1]",
            "2130706433",
            "127.0.0.1.",
        ):
            with pytest.raises(AddressPolicyError):
                await client.get(canary.url(host), **WISH)
        assert canary.requests == []


# The public web --------------------------------------------------------------------------------------

GOOD = """
http://example.org http://example.org/ https://example.org/ http://example.org:80/ https://example.org:443/
http://example.org:8080/ https://example.org:8443/ http://example.org:8000/a http://example.org:3000/ http://example.org:81/
https://www.bbc.co.uk/news/science-environment-12345678 https://en.wikipedia.org/wiki/Tide https://de.wikipedia.org/wiki/Büro
https://fr.wikipedia.org/wiki/Fête_nationale https://ja.wikipedia.org/wiki/潮汐 https://ru.wikipedia.org/wiki/Прилив
https://bücher.example/ https://münchen.de/ http://例え.jp/ http://例子.中国/ http://пример.рф/ http://مثال.السعودية/ https://straße.de/
https://xn--bcher-kva.example/ https://xn--fiqs8s/x https://xn--p1ai.example.org/ https://example.org./ https://www.gov.uk./guidance
http://8.8.8.8/ http://1.1.1.1/ https://1.1.1.1/dns-query https://9.9.9.9/ http://93.184.215.14:8080/ http://134744072/
http://100.63.255.255/ http://100.128.0.1/ http://172.15.0.1/ http://172.32.0.1/ http://192.167.1.1/ http://192.169.1.1/
http://11.0.0.1/ http://126.255.255.255/ http://128.0.0.1/ http://169.253.1.1/ http://169.255.1.1/ http://198.17.0.1/ http://223.255.255.1/
http://[2606:4700:4700::1111]/ https://[2606:4700:4700::1001]:8443/ http://[2001:4860:4860::8888]/ http://[2a00:1450:4001:80b::200e]/
http://[::ffff:8.8.8.8]/ http://[64:ff9b::8.8.8.8]/ http://[2620:fe::fe]/ http://[2400:cb00:2048:1::c629:d7a2]/
https://3.basecamp.com/ https://4chan.org/ https://1password.com/ https://24.hu/ https://9to5mac.com/ https://360.cn/ http://163.com/
https://0x.org/ https://0xdead.example.org/ https://127.example.org/ https://10.example.org/ https://192-168-1-1.example.org/
https://localhost.example.org/ https://internal.example.org/ https://local.example.org/ https://home.example.com/ https://lan.example.org/
https://mylocalhost.org/ https://notlocal.com/ https://metadata.example.org/ https://intranet.example.org/ https://corp.example.com/
https://a.b.c.d.e.f.g.example.org/ https://under_score.example.org/ https://hyphen-ated.example.org/ https://EXAMPLE.ORG/UPPER
https://example.org/?url=http://127.0.0.1/ https://example.org/#http://localhost/ https://example.org/127.0.0.1/ https://example.org/@user
https://example.org/a?b=c&d=e#f https://example.org/a;b=c https://example.org/%7Euser/ https://example.org/a%2Fb https://example.org/a%20b
https://example.org/~user/(a)_[b]!$&'*+,= https://example.org/?q=what's+new&x=1%2B1 https://example.org/?a[]=1&a[]=2 https://example.org//double//slash
https://doi.org/10.1000/xyz123 https://arxiv.org/abs/2401.00001v2 https://web.archive.org/web/2020/http://example.org/
https://news.ycombinator.com/item?id=1 https://t.co/abc https://youtu.be/x https://export.arxiv.org/pdf/2401.00001.pdf
https://www.sec.gov/Archives/edgar/data/320193/000032019323000106/aapl-20230930.htm
https://example.museum/ https://example.photography/ http://nic.ai/
""".split()


def good() -> list[str]:
    return [
        *GOOD,
        f"https://example.org/{'long/' * 380}",
        f"https://{'a' * 63}.example.org/",
        "  https://example.org/x  ",
    ]


@pytest.mark.requirement("W-08")
async def test_the_public_web_is_open() -> None:
    assert len(set(good())) >= 100
    dialled: list[str] = []

    async def resolve(host: str) -> Sequence[str]:
        return [PUBLIC_ADDRESS, "2606:4700::1111"]

    async def dial(address: str, port: int) -> Any:
        dialled.append(address)
        raise ConnectionRefusedError

    refused = []
    async with FetchClient(HarvestSettings(), resolve=resolve, dial=dial) as client:
        for url in good():
            dialled.clear()
            with pytest.raises(FetchError) as caught:
                await client.get(url, **WISH)
            if isinstance(caught.value, AddressPolicyError) or not dialled:
                refused.append((url, caught.value.message))
    assert refused == [("https://xn--fiqs8s/x", "leads to a private address")]  # a name of one label


# Hostile sites ---------------------------------------------------------------------------------------


async def _onwards(wire: ServerConnection, visit: WebVisit) -> None:
    number = int(visit.path.rpartition("/")[2])
    await wire.send(
        build_reply("end") if number > 200 else build_reply(status=302, headers={"Location": f"/more/{number + 1}"})
    )


def _set(web: FakeWeb) -> dict[str, str]:
    """Hostile pages, and what is said of each."""
    large, status = "has more than 10 MB", b"HTTP/1.1 200 OK"
    told = {f"/{encoding.replace(', ', '+')}": large for encoding in _BOMBS}
    for encoding in _BOMBS:
        headers = {"Content-Encoding": encoding}
        web.add_page(f"http://*/{encoding.replace(', ', '+')}", make_bomb(encoding, 100), headers=headers)
    plays = {
        "/endless": (send_endless_body(), large),
        "/chunks": (
            send_endless_body(b"Transfer-Encoding: chunked\r\n", b"10000\r\n" + b"a" * 65_536 + b"\r\n"),
            large,
        ),
        "/members": (
            send_endless_body(b"Content-Encoding: gzip\r\n", gzip.compress(b"") * 3_000),
            "has a damaged body",
        ),
        "/claims": (send_slowly(b"a", 9, head=b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), large),
        "/drip": (send_slowly(b"a" * 10_000, 0.01), "took longer than 1.5 s"),
        "/silence": (stay_silent, "took longer than 1.5 s"),
        "/header": (
            send_endless_body(head=status, piece=b"X-Y: " + b"z" * 90_000 + b"\r\n"),
            "sent an invalid HTTP response",
        ),
        "/headers": (send_endless_body(head=status, piece=b"X-Y: z\r\n" * 100), "sent an invalid HTTP response"),
        "/picture": (
            send_endless_body(b"\r\nContent-Type: image/png\r\n", head=status),
            "is image/png, which is not supported",
        ),
        "/more/0": (_onwards, "redirects too often"),
    }
    for path, (play, reason) in plays.items():
        web.add_handler(f"http://*{path}", play)
        told[path] = reason
    web.add_handler("http://*/*", _onwards)
    return told


_BOMBS = ("gzip", "br", "zstd", "gzip, gzip", "br, zstd", "zstd, br")
_CHILD = """
import asyncio, json, re, sys, time
from pathlib import Path
from openassay.errors import FetchError
from openassay.fetch.client import FetchClient
from openassay.settings import HarvestSettings

def peak():  # ru_maxrss begins with what the parent had
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

async def fetch(client, url):
    accept = frozenset({"text/html"})
    try:
        found = await client.get(url, seconds=1.5, max_bytes=10_000_000, accept=accept)
    except FetchError as error:
        return error.message
    return f"answered {found.status}"

async def main():
    results = {}
    async with FetchClient(HarvestSettings(allow_addresses=("127.0.0.1/32",))) as client:
        await fetch(client, sys.argv[1] + "/warm-up/999")
        for path in sys.argv[2:]:
            before, began = peak(), time.monotonic()
            reason = await fetch(client, sys.argv[1] + path)
            grown = peak() - before
            results[path] = reason, grown / 1024, time.monotonic() - began
    print(json.dumps(results))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.requirement("W-08")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process's memory is read from /proc")
async def test_hostile_sites_cost_little() -> None:
    """In a process of its own: at most 64 MB more for all of them together, and a few seconds for each."""
    async with FakeWeb() as web:
        told = _set(web)
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-W", "error", "-c", _CHILD, web.url("127.0.0.1").rstrip("/"), *told,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await child.communicate()
    assert child.returncode == 0, errors.decode()
    results: dict[str, tuple[str, float, float]] = json.loads(output)
    assert {path: reason for path, (reason, _, _) in results.items()} == told
    assert sum(megabytes for _, megabytes, _ in results.values()) < 64
    assert max(seconds for _, _, seconds in results.values()) < 10


@pytest.mark.slow
async def test_naughty_strings_are_refused_in_words(eval_data: Path, stage: Stage) -> None:
    strings: list[str] = json.loads((eval_data / "hostile" / "naughty-strings.json").read_text(encoding="utf-8"))
    assert len(strings) > 400
    async with stage.open() as client:
        for text in strings:
            line = text.replace("\r", "").replace("\n", "")
            for url in (text, f"http://{text}/", f"http://{SITE}:{text}/"):
                with suppress(FetchError):
                    await client.get(url, **WISH)
            with suppress(FetchError):
                await redirect(stage, client, line)
    assert [address for address in stage.dialled if not is_public(address)] == []
    assert stage.canary.requests == []
