"""However many runs are at work, a process has so many calls, searches and pages under way, and no more."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import Engine
from openassay.models.evidence import ProviderResult
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes import search_web_formats
from tests.fakes.http_server import ServerConnection
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.fakes.search_api import FakeSearchProvider, SearchFormat
from tests.fakes.web import FakeWeb, WebVisit, build_reply

RUNS = 20
PAGES = 12
TEXT = "<html><title>Lake Marrow</title><article><p>Lake Marrow covered 412 square kilometres in 2019.</p></article>"


class Counter(list[int]):
    """How many were under way when each began, itself included."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way = 0

    def __enter__(self) -> None:
        self._under_way += 1
        self.append(self._under_way)

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1


class Counted(FakeSearchProvider):
    """One of several providers that are counted together."""

    def __init__(self, format: SearchFormat, counter: Counter) -> None:
        super().__init__(format)
        self._counter = counter
        self.delay = 0.05

    async def _handle_visit(self, wire: ServerConnection, visit: WebVisit) -> None:
        with self._counter:
            await super()._handle_visit(wire, visit)


class Crowd(NamedTuple):
    engine: Engine
    model: FakeLlmServer
    searches: Counter
    pages: Counter


Make = Callable[..., Any]


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-test-not-a-key")

    @asynccontextmanager
    async def made(**harvest: Any) -> AsyncIterator[Crowd]:
        searches, pages = Counter(), Counter()
        async with (
            FakeLlmServer(FakeModel(), latency=0.05) as model,
            Counted(search_web_formats.TAVILY, searches) as one,
            Counted(search_web_formats.SEARXNG, searches) as other,
            FakeWeb() as web,
        ):
            web.add_handler("http://*/*", _counting(pages))
            for search in (one, other):
                search.found = tuple(
                    ProviderResult(url=f"http://127.0.0.1:{web.port}/{number}", title=f"Lake Marrow {number}")
                    for number in range(PAGES)
                )
            settings = load(
                data_dir=tmp_path / "data", offline=False,
                llm={"model": "openai:gpt-4o", "endpoints": {"openai": f"{model.url}/v1"}, "at_once": 3},
                search={
                    "searxng_url": other.url, "endpoints": {"tavily": one.url}, "cache_hours": 0, "at_once": 2,
                    "requests_per_minute": {"tavily": 60_000, "searxng": 60_000},
                },
                harvest={"allow_addresses": ("127.0.0.1/32",), "browser": "off", "host_pause": 0, **harvest},
            )  # fmt: skip
            async with open_engine(settings) as engine:
                yield Crowd(engine, model, searches, pages)

    return made


def _counting(pages: Counter) -> Callable[[ServerConnection, WebVisit], Any]:
    async def play(wire: ServerConnection, visit: WebVisit) -> None:
        if visit.path == "/robots.txt":
            return await wire.send(build_reply("", status=404))
        with pages:
            await asyncio.sleep(0.1)
            await wire.send(build_reply(TEXT))

    return play


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_twenty_runs_share_what_one_process_may_have_under_way(crowd: Make) -> None:
    async with crowd(at_once=2, at_once_per_host=20) as here:
        options = ResearchOptions(source="tavily,searxng", depth=Depth.QUICK)
        for number in range(RUNS):
            await here.engine.start(f"How large was Lake Marrow in {1990 + number}?", options)
        async with asyncio.timeout(100):
            while len(here.searches) < RUNS or len(here.pages) < PAGES:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert here.model.max_concurrency in (2, 3), "several, and no more than may be"
        assert max(here.searches) == 2, "of both providers together"
        assert max(here.pages) == 2
