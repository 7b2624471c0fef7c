"""Pages that need JavaScript, in a real Chromium whose every request the guard has judged."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from openassay.errors import ConfigurationError, FetchError
from openassay.fetch.browser import Render, find_chromium, open_browser
from openassay.fetch.client import FetchClient
from openassay.fetch.web_pages import WebPages
from openassay.settings import HarvestSettings
from openassay.testing import MemoryCache
from tests.fakes.web import FakeWeb

pytestmark = pytest.mark.skipif(find_chromium(HarvestSettings()) is None, reason="no Chromium; try: make browser")

SHOP = "http://shop.example.org"
BUILT = """<html><head><title>Prices</title></head><body><div id="root"></div><script>
fetch("/prices.json").then(r => r.json()).then(p => {
  document.getElementById("root").innerHTML = "<article><p>Flour costs " + p.flour + " a sack.</p></article>";
});
</script></body></html>"""


@asynccontextmanager
async def rendering(web: FakeWeb, **options: object) -> AsyncIterator[Render]:
    settings = HarvestSettings.model_validate(options)
    async with (
        FetchClient(settings, resolve=web.resolve_public, dial=web.dial) as client,
        open_browser(settings, client.connect) as render,
    ):
        assert render is not None
        yield render


@pytest.mark.slow
@pytest.mark.requirement("L-04")
async def test_what_scripts_build_is_read() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/", BUILT)
        web.add_page(f"{SHOP}/prices.json", '{"flour": 31}', type="application/json")
        async with rendering(web) as render:
            shown = await render(f"{SHOP}/")

    assert shown.url == f"{SHOP}/"
    assert "Flour costs 31 a sack." in shown.html.decode()


@pytest.mark.slow
@pytest.mark.requirement("W-17")
async def test_where_scripts_have_led_the_browser_is_told() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/go", "<script>location.replace('http://other.example.org/there')</script>")
        web.add_page("http://other.example.org/there", "<p>Elsewhere.</p>")
        async with rendering(web) as render:
            shown = await render(f"{SHOP}/go")

    assert shown.url == "http://other.example.org/there"
    assert b"Elsewhere." in shown.html


@pytest.mark.slow
async def test_half_a_character_is_no_stumbling_block() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/", r"<p>Whole.</p><script>document.body.append('\ud83c')</script>")
        async with rendering(web) as render:
            assert b"Whole." in (await render(f"{SHOP}/")).html


@pytest.mark.slow
@pytest.mark.requirement("W-08", "W-17")
async def test_a_page_reaches_nothing_on_this_machine_or_its_network() -> None:
    """Pictures, frames, scripts, sockets, beacons, forms and redirects: all of them are requests of the page."""
    touched: list[bytes] = []

    async def canary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        touched.append(await reader.read(100))
        writer.close()

    server = await asyncio.start_server(canary, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    inside = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"2130706433:{port}", f"0x7f.1:{port}",
              f"0.0.0.0:{port}", "169.254.169.254", "metadata.google.internal", "10.0.0.1"]  # fmt: skip
    attacks = "".join(
        f"""<img src="http://{place}/i"><iframe src="http://{place}/f"></iframe><script src="http://{place}/s"></script>
        <link rel=stylesheet href="http://{place}/c"><link rel=preconnect href="http://{place}/">
        <script>fetch("http://{place}/x", {{mode: "no-cors"}}).catch(() => 0); navigator.sendBeacon("http://{place}/b");
        try {{ new WebSocket("ws://{place}/w") }} catch (e) {{}}
        try {{ new EventSource("http://{place}/e") }} catch (e) {{}}</script>"""
        for place in inside
    )
    async with FakeWeb() as web, server:
        web.add_page(f"{SHOP}/", f"<p>Bait.</p>{attacks}<script>setTimeout(() => document.title = 'ran', 50)</script>")
        web.add_page(f"{SHOP}/leave", f"<script>location.href = 'http://127.0.0.1:{port}/left'</script>")
        web.add_redirect(f"{SHOP}/moved", f"http://127.0.0.1:{port}/moved")
        async with rendering(web) as render:
            html = (await render(f"{SHOP}/")).html.decode()
            for path in ("/leave", "/moved"):
                with contextlib.suppress(FetchError):  # or an empty page: what counts is who was reached
                    await render(f"{SHOP}{path}")
        hosts = {visit.host for visit in web.requests}

    assert "<title>ran</title>" in html  # the page did run
    assert touched == []
    assert hosts == {"shop.example.org"}
    assert {address for address, _ in web.dialled} == {"93.184.215.14"}


@pytest.mark.slow
@pytest.mark.requirement("W-08")
async def test_a_page_that_never_ends_is_given_up_and_the_next_one_read() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/loop", "<p>Busy</p><script>for (;;) {}</script>")
        web.add_page(
            f"{SHOP}/pile",
            "<body><script>for (let i = 0; i < 3e5; i++) document.write('<p>' + 'x'.repeat(100))</script>",
        )
        web.add_page(f"{SHOP}/", "<p>Quiet.</p>")
        async with rendering(web, page_seconds=8, page_mb=1) as render:
            with pytest.raises(FetchError, match="browser"):
                await render(f"{SHOP}/loop")
            with contextlib.suppress(FetchError):  # on a slow machine there is not even time for a part of it
                assert len((await render(f"{SHOP}/pile")).html) <= 1_000_000
            assert b"Quiet." in (await render(f"{SHOP}/")).html


@pytest.mark.slow
async def test_several_pages_at_once_wait_for_their_turn() -> None:
    async with FakeWeb() as web:
        for number in range(4):
            web.add_page(f"{SHOP}/{number}", f"<p id=a></p><script>a.textContent = 'page ' + {number}</script>")
        async with rendering(web) as render:
            pages = await asyncio.gather(*(render(f"{SHOP}/{number}") for number in range(4)))

    assert all(f"page {number}".encode() in page.html for number, page in enumerate(pages))


@pytest.mark.slow
async def test_who_waits_too_long_for_a_turn_is_told() -> None:
    """All pages together take four times as long as one may; the last one is not kept waiting for its turn."""
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/loop", "<p>Busy</p><script>for (;;) {}</script>")
        async with rendering(web, page_seconds=1) as render:
            found = await asyncio.gather(*(render(f"{SHOP}/loop") for _ in range(6)), return_exceptions=True)

    assert isinstance(found[0], FetchError)
    assert "took the browser longer" in str(found[0])
    assert isinstance(found[-1], FetchError)
    assert str(found[-1]) == "the browser was busy for too long"
    assert found[-1].retryable


def drivers() -> set[int]:
    """The processes through which Playwright speaks to its browsers: other tests of this process keep one open, too."""
    started = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    return {int(pid) for pid in started if b"playwright" in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.mark.slow
async def test_the_driver_survives_a_ctrl_c() -> None:
    """A terminal sends it to all processes of its group: ours decides what ends."""
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/", "<p>Quiet.</p>")
        web.add_page(f"{SHOP}/slow", "<p>Slow.</p>", delay=1.0)
        others = drivers()
        async with rendering(web) as render:
            await render(f"{SHOP}/")
            [before] = drivers() - others
            slow = asyncio.ensure_future(render(f"{SHOP}/slow"))
            await asyncio.sleep(0.3)
            os.kill(before, signal.SIGINT)
            assert b"Slow." in (await slow).html
            assert drivers() - others == {before}


@pytest.mark.slow
async def test_a_driver_that_is_killed_costs_one_page() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/", "<p>Quiet.</p>")
        web.add_page(f"{SHOP}/slow", "<p>Slow.</p>", delay=5.0)
        others = drivers()
        async with rendering(web) as render:
            await render(f"{SHOP}/")
            [driver] = drivers() - others
            slow = asyncio.ensure_future(render(f"{SHOP}/slow"))
            await asyncio.sleep(0.3)
            os.kill(driver, signal.SIGKILL)
            with pytest.raises(FetchError, match="could not be read by the browser") as caught:
                await slow
            assert caught.value.retryable
            assert b"Quiet." in (await render(f"{SHOP}/")).html


@pytest.mark.slow
@pytest.mark.parametrize("node", ["/bin/false", "/nowhere/node"])
async def test_a_driver_that_does_not_start_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, node: str) -> None:
    async with FakeWeb() as web, rendering(web) as render:
        web.add_page(f"{SHOP}/", "<p>Quiet.</p>")
        with monkeypatch.context() as patch:
            patch.setenv("PLAYWRIGHT_NODEJS_PATH", node)
            with pytest.raises(FetchError, match="could not be read by the browser"):
                await render(f"{SHOP}/")
        assert b"Quiet." in (await render(f"{SHOP}/")).html


def test_a_browser_that_was_asked_for_and_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="Chromium"):
        find_chromium(HarvestSettings(browser="playwright", browser_path="/nowhere/chromium"))
    assert find_chromium(HarvestSettings(browser="off")) is None


@pytest.mark.requirement("L-04")
@pytest.mark.skipif(find_spec("crawl4ai") is None, reason="the extra crawl4ai is not installed")
async def test_crawl4ai_reads_the_same_page_over_the_same_guarded_way() -> None:
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/", BUILT)
        web.add_page(f"{SHOP}/prices.json", '{"flour": 31}', type="application/json")
        async with rendering(web, browser="crawl4ai") as render:
            shown = await render(f"{SHOP}/")

    assert shown.url == f"{SHOP}/"
    assert "Flour costs 31 a sack." in shown.html.decode()
    assert {visit.host for visit in web.requests} == {"shop.example.org"}


@pytest.mark.slow
@pytest.mark.requirement("L-04")
async def test_a_page_that_needs_javascript_becomes_a_document() -> None:
    """The whole way: fetched, found empty, shown to the browser, read."""
    story = "The harbour office measured a tide of 14.5 metres, and nobody has explained it so far. " * 12
    shell = f"""<html><head><title>Tides</title></head><body><div id="root"></div><noscript>Please enable JavaScript.
    </noscript><script>root.innerHTML = "<article><h1>Tides</h1><p>" + {story!r} + "</p></article>"</script></body>"""
    options = HarvestSettings(host_pause=0)
    async with FakeWeb() as web:
        web.add_page(f"{SHOP}/tides", shell)
        async with (
            FetchClient(options, resolve=web.resolve_public, dial=web.dial) as client,
            open_browser(options, client.connect) as render,
        ):
            read, unread = (WebPages(options, client=client, cache=MemoryCache(), render=how) for how in (render, None))
            page, without = await read.read(f"{SHOP}/tides"), await unread.read(f"{SHOP}/tides")
            for pages in (read, unread):
                await pages.close()

    assert page.document is not None, page.reason
    assert "a tide of 14.5 metres" in page.document.text
    assert without.reason == "needs JavaScript, and no browser is installed"
