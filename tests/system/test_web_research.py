"""The installed command on a web of its own: a metasearch, pages, and everything that can be wrong with them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from openassay.models.evidence import ProviderResult
from tests.fakes.search_api import FakeSearchProvider
from tests.fakes.search_web_formats import SEARXNG
from tests.fakes.web import FakeWeb
from tests.system.command import Command, Ran

QUESTION = "How large is Lake Marrow and why did it shrink?"
SURVEY = """The survey office has published its report on the lake. Lake Marrow covered 412 square kilometres in 2019.
The survey office measured the area of Lake Marrow with sonar from two boats. Lake Marrow shrank because a long drought
dried up the river Tamsel, which carries most of its water. The survey office did not detect any leak in the bed of
Lake Marrow, although the divers looked for one during the whole summer of that year."""
GAZETTE = """Fishermen on the northern shore speak of better years. According to the water board, Lake Marrow covered
412 square kilometres in 2019, and the board expects no change before the next survey. The drought of the river Tamsel
made Lake Marrow shrink, says the harbour master. The town of Ostrey draws its drinking water from wells."""


def page(title: str, text: str) -> str:
    body = "".join(f"<p>{part}.</p>" for part in text.replace("\n", " ").rstrip(".").split(". "))
    return (
        f"<html lang=en><head><title>{title}</title>"
        "<meta property='article:published_time' content='2021-03-04'></head><body><nav><a href=/>Home</a></nav>"
        f"<article><h1>{title}</h1>{body}</article><footer>Imprint</footer></body></html>"
    )


@dataclass
class World:
    web: FakeWeb
    search: FakeSearchProvider
    openassay: Command

    def offers(self, *paths: str) -> None:
        self.search.found = tuple(
            ProviderResult(url=f"http://127.0.0.1:{self.web.port}{path}", title=f"Lake Marrow {path}") for path in paths
        )

    def settings(self, **extra: str) -> dict[str, str]:
        return {
            "OPENASSAY_OFFLINE": "false",
            "OPENASSAY_SOURCE": "searxng",
            "OPENASSAY_SEARCH__SEARXNG_URL": self.search.url,
            "OPENASSAY_HARVEST__ALLOW_ADDRESSES": '["127.0.0.1/32"]',
            "OPENASSAY_HARVEST__HOST_PAUSE": "0",
            "OPENASSAY_HARVEST__BROWSER": "off",
            **extra,
        }

    async def run(self, *args: str, **extra: str) -> Ran:
        return await asyncio.to_thread(self.openassay, *args, env=self.settings(**extra), timeout=90)


@pytest.fixture
def world(tmp_path: Path) -> Callable[[], Any]:
    @asynccontextmanager
    async def made() -> AsyncIterator[World]:
        async with FakeWeb() as web, FakeSearchProvider(SEARXNG) as search:
            web.add_page("http://*/survey", page("Survey of Lake Marrow", SURVEY))
            web.add_page("http://*/gazette", page("The shores of Lake Marrow", GAZETTE))
            yield World(web, search, Command(tmp_path, tmp_path / "data"))

    return made


def visited(world: World) -> list[str]:
    return [visit.path for visit in world.web.requests if visit.path != "/robots.txt"]


@pytest.mark.slow
@pytest.mark.requirement("W-05", "W-08", "W-14")
async def test_a_question_is_researched_on_the_web_and_asked_again_it_is_fetched_from_the_cache(
    world: Callable[[], Any],
) -> None:
    async with world() as there:
        there.web.add_page("http://*/private", "<p>x</p>")
        there.web.add_page("http://*/robots.txt", "User-agent: *\nDisallow: /private", type="text/plain")
        there.web.add_page("http://*/picture", b"\x89PNG", type="image/png")
        there.web.add_redirect("http://*/inside", "http://169.254.169.254/latest/meta-data/")
        there.offers("/survey", "/gazette", "/private", "/picture", "/inside", "/gone")

        first = await there.run("ask", QUESTION, "--json")
        asked, fetched = len(there.search.seen), len(visited(there))
        second = await there.run("ask", QUESTION, "--json")

        assert first.code == 0, first.err
        assert {card["url"].rpartition("/")[2] for card in first.json["sources"]} <= {"survey", "gazette"}
        assert "412 square kilometres" in first.out
        for path, reason in {
            "/private": "robots.txt forbids it", "/picture": "image/png", "/inside": "private address", "/gone": "404",
        }.items():  # fmt: skip
            [line] = [line for line in first.err.splitlines() if line.startswith("skipped") and f"{path}:" in line]
            assert reason in line
        assert "/private" not in visited(there)
        assert second.code == 0, second.err
        again = visited(there)[fetched:]
        assert (len(there.search.seen), again) == (asked, ["/inside"])  # where it leads may be allowed by now
        assert "from the cache" in second.err


@pytest.mark.slow
@pytest.mark.requirement("C-07")
async def test_a_search_that_is_down_is_told_and_nothing_takes_its_place(world: Callable[[], Any]) -> None:
    async with world() as there:
        done = await there.run(
            "ask", QUESTION, OPENASSAY_SEARCH__SEARXNG_URL="http://127.0.0.1:9", OPENASSAY_MAX_GAP_SEARCHES="0"
        )

        assert done.code == 5
        assert "searxng could not be reached" in done.err
        assert "demo" not in done.out


@pytest.mark.slow
async def test_a_page_that_never_comes_costs_no_more_than_its_time(world: Callable[[], Any]) -> None:
    async with world() as there:
        there.web.add_page("http://*/slow", page("Slow", SURVEY), delay=60)
        there.offers("/slow", "/survey")
        done = await there.run("ask", QUESTION, OPENASSAY_HARVEST__PAGE_SECONDS="2")

        assert done.code == 0, done.err
        assert "longer than 2 s" in done.err


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_killed_run_goes_on_and_pays_for_no_search_twice(world: Callable[[], Any]) -> None:
    """Killed while a page is on its way: the searches are in the ledger, the other pages in the cache."""
    async with world() as there:
        there.web.add_page("http://*/slow", page("Slow", SURVEY), delay=8)
        there.offers("/survey", "/gazette", "/slow")
        with there.openassay.started("ask", QUESTION, env=there.settings()) as process:
            async with asyncio.timeout(60):
                while not {"/slow", "/gazette"} <= set(visited(there)):  # noqa: ASYNC110 - another process does it
                    await asyncio.sleep(0.05)
            await asyncio.sleep(1)
            process.kill()
            process.communicate()
        there.web.add_page("http://*/slow", page("Slow", SURVEY))
        searches = len(there.search.seen)
        listed = await there.run("threads")
        thread = listed.out.splitlines()[1].split()[0]

        done = await there.run("resume", thread, "--json")

        assert done.code == 0, done.err
        assert len(there.search.seen) == searches
        assert "412 square kilometres" in done.out


@pytest.mark.slow
async def test_one_page_is_read_as_research_would(world: Callable[[], Any]) -> None:
    async with world() as there:
        base = f"http://127.0.0.1:{there.web.port}"

        good = await there.run("sources", "fetch", f"{base}/survey", "--json")
        gone = await there.run("sources", "fetch", f"{base}/gone")
        inside = await there.run("sources", "fetch", "http://169.254.169.254/latest/")
        junk = await there.run("sources", "fetch", "not an address")

        assert json.loads(good.out)["title"] == "Survey of Lake Marrow"
        assert json.loads(good.out)["published"] == "2021-03-04"
        gone.refused(1, "404")
        inside.refused(1, "private address")
        junk.refused(1, "not an address")


@pytest.mark.slow
@pytest.mark.requirement("C-07")
async def test_sources_are_listed_with_what_they_need(world: Callable[[], Any]) -> None:
    async with world() as there:
        listed = await there.run("sources", "--json", TAVILY_API_KEY="tvly-secret")

        rows = {row["name"]: row for row in listed.json}
        assert rows["tavily"]["available"]
        assert not rows["exa"]["available"]
        assert rows["exa"]["key"] == "EXA_API_KEY"
        assert rows["searxng"]["available"]
        assert {kind for row in rows.values() for kind in row["types"]} >= {"web", "academic", "news", "code", "own"}
        assert "tvly-secret" not in listed.out
