"""Sources that are read again: what they said then, they may not say now."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from openassay.bootstrap import open_engine
from openassay.cli.app import app
from openassay.engine.checks import RereadResult, check_sources, find_nearest, from_page
from openassay.models.evidence import ProviderResult
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import ResearchOptions
from openassay.protocols import PageResult
from openassay.settings import load
from tests.fakes.search_api import FakeSearchProvider
from tests.fakes.search_web_formats import SEARXNG
from tests.fakes.web import FakeWeb
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, LAKE, QUESTION, SURVEY

pytestmark = pytest.mark.requirement("X-04")
AREA = "Lake Marrow covered 412 square kilometres in 2019."
PAGES = {
    "area": AREA,
    "cause": "Lake Marrow shrank because a long drought dried up the river Tamsel.",
    "depth": "In 1950 Lake Marrow covered 640 square kilometres, the survey office found.",
    "wells": "Lake Marrow also shrank because farms pump 30 million litres a day from its wells.",
    "dam": "Lake Marrow shrank because a dam at Ostrey holds back the river Tamsel.",
}


def page(text: str) -> str:
    filler = "The water board keeps the records of the lake, and has done so for a long time, in a house by the shore."
    return (
        f"<html lang=en><head><title>Lake Marrow, a record</title></head><body><article><h1>Lake Marrow</h1>"
        f"<p>{filler}</p><p>{text}</p><p>{filler}</p></article></body></html>"
    )


class Seen(NamedTuple):
    code: int
    sources: dict[str, Any]  # by the last part of their address


class Site(NamedTuple):
    web: FakeWeb
    thread: str
    cited: set[str]

    def change(self, name: str, text: str, **how: Any) -> None:
        self.web.add_page(f"http://*/{name}", page(text), **how)

    async def watched(self) -> Seen:
        return await watched(self.thread)


async def watched(thread: str) -> Seen:
    result = await asyncio.to_thread(CliRunner().invoke, app, ["threads", "watch", thread, "--json"])
    assert result.exit_code in (0, 6, 7), result.output
    told = json.loads(result.stdout)
    return Seen(result.exit_code, {one["url"].rpartition("/")[2]: one for one in told["sources"]})


def configure(settings: dict[str, Any]) -> None:
    Path(os.environ["OPENASSAY_CONFIG"]).write_text(json.dumps(settings), encoding="utf-8")


@asynccontextmanager
async def researched() -> AsyncIterator[Site]:
    async with FakeWeb() as web, FakeSearchProvider(SEARXNG) as search:
        for name, text in PAGES.items():
            web.add_page(f"http://*/{name}", page(text))
        found = [ProviderResult(url=f"http://127.0.0.1:{web.port}/{name}", title="Lake Marrow") for name in PAGES]
        search.found = tuple(found)
        settings = {
            "source": "searxng", "offline": False, "max_gap_searches": 0,
            "search": {"searxng_url": search.url, "requests_per_minute": {"searxng": 3000}},
            "harvest": {"allow_addresses": ["127.0.0.1/32"], "host_pause": 0, "browser": "off"},
        }  # fmt: skip
        configure(settings)
        async with open_engine(load()) as engine:
            run = await engine.start(QUESTION, ResearchOptions(source="searxng"))
            outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        yield Site(web, run.thread, {card.url.rpartition("/")[2] for card in outcome.report.sources})


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENASSAY_OFFLINE")


@pytest.mark.slow
async def test_pages_that_stand_change_vanish_move_and_close_are_told_apart() -> None:
    async with researched() as site:
        assert {"area", "cause", "depth", "wells"} <= site.cited
        before = len(site.web.requests)
        assert (await site.watched()).code == 0
        assert len(site.web.requests) > before, "what the cache holds is not asked"

        site.change("area", AREA.replace("412", "398"))
        site.change("depth", "", status=404)
        site.web.add_redirect("http://*/cause", "/moved")
        site.change("moved", f"A word before it. {PAGES['cause']}")
        site.change("wells", "", status=503, headers={"Retry-After": "3600"})
        seen = await site.watched()

    states = {name: one["state"] for name, one in seen.sources.items()}
    assert seen.code == 6
    assert {name: states[name] for name in ("area", "depth", "cause", "wells")} == {
        "area": "changed", "depth": "vanished", "cause": "moved", "wells": "unchecked",
    }  # fmt: skip
    [passage] = [one for one in seen.sources["area"]["passages"] if one["state"] == "changed"]
    assert "398" in passage["now"]
    assert any("412" in statement for statement in passage["statements"])
    assert "/moved" in seen.sources["cause"]["reason"]
    assert seen.sources["depth"]["reason"] == "answered 404"


@pytest.mark.slow
async def test_who_may_not_or_cannot_look_has_not_seen_that_it_is_gone() -> None:
    async with researched() as site:
        site.web.add_page("http://*/robots.txt", "User-agent: *\nDisallow: /\n", type="text/plain")
        closed = await site.watched()
    down = await watched(site.thread)
    assert {one["state"] for one in (*closed.sources.values(), *down.sources.values())} == {"unchecked"}
    assert {one["reason"] for one in closed.sources.values()} == {"robots.txt forbids it"}
    assert closed.code == down.code == 7


@pytest.mark.slow
async def test_nothing_of_the_thread_is_altered_and_the_lines_are_for_people() -> None:
    async with researched() as site:
        async with open_engine(load()) as engine:
            before = [event.plain() for event in await _events(engine, site.thread)]
        site.change("area", AREA.replace("412", "398"))
        shown = await asyncio.to_thread(CliRunner().invoke, app, ["threads", "watch", site.thread])
        async with open_engine(load()) as engine:
            assert [event.plain() for event in await _events(engine, site.thread)] == before
    assert shown.exit_code == 6
    assert "CHANGED" in shown.stdout
    assert "[-412-] [+398+]" in shown.stdout
    assert "rests on it: " in shown.stdout


async def _events(engine: Any, thread: str) -> list[Any]:
    return [event for run in await engine.threads.runs(thread) async for event in engine.events(run.id)]


@pytest.mark.slow
async def test_files_are_read_again_from_the_disk(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("area", "cause"):
        (folder / f"{name}.md").write_text(f"# Lake Marrow, {name}\n\n{PAGES[name]}\n", encoding="utf-8")
    async with open_engine(load(offline=True)) as engine:
        run = await engine.start(QUESTION, ResearchOptions(docs=(str(folder),)))
        assert (await engine.wait(run.id)).report is not None
    assert (await watched(run.thread)).code == 0
    (folder / "area.md").write_text("# Lake Marrow, area\n\nNothing is known.\n", encoding="utf-8")
    (folder / "cause.md").unlink()
    seen = await watched(run.thread)
    assert seen.code == 6
    assert {name: one["state"] for name, one in seen.sources.items()} == {"area.md": "vanished", "cause.md": "vanished"}
    shutil.rmtree(folder)
    assert (await watched(run.thread)).code == 7, "a folder that is not there now may be back tomorrow"


@pytest.mark.slow
async def test_demo_data_do_not_change() -> None:
    async with open_engine(load(source="demo")) as engine:
        run = await engine.start("What's happening with Tesla?", ResearchOptions(source="demo"))
        assert (await engine.wait(run.id)).report is not None
    seen = await watched(run.thread)
    assert seen.code == 0
    assert all("demo" in one["reason"] for one in seen.sources.values())


async def test_a_text_that_a_provider_gave_is_not_missed_on_the_page(lab: Callable[..., Lab]) -> None:
    bench = lab()
    bench.holds(*LAKE)
    report = await bench.report(QUESTION)
    told = await check_sources(report, _always(from_page(PageResult(SURVEY.url, GAZETTE), ours=False)))
    assert {one.state for one in told} <= {"stands", "moved", "unchecked"}
    assert "changed" in {
        one.state for one in await check_sources(report, _always(from_page(PageResult("", _spoiled()), ours=True)))
    }


def _spoiled() -> Any:
    return SURVEY.model_copy(update={"text": SURVEY.text.replace("412", "398")})


def _always(again: RereadResult) -> Any:
    async def reread(card: SourceCard) -> RereadResult:
        return again

    return reread


def test_a_report_that_states_nothing_has_nothing_to_look_at() -> None:
    bare = ReportData.model_validate(
        {"question": "?", "title": "?", "status": "no_data", "provenance": {"question": "?"}}
    )
    assert asyncio.run(check_sources(bare, _always(RereadResult()))) == []


@pytest.mark.parametrize(
    ("text", "like"),
    [("Lake Marrow covered 398 square kilometres in 2019.", True), ("The ferry runs from May to October.", False)],
)  # fmt: skip
def test_the_nearest_text_is_what_a_passage_has_become(text: str, like: bool) -> None:
    now, likeness = find_nearest(AREA, f"An opening line. {text} A closing line.")
    assert (likeness >= 0.5) is like
    assert (now == text) is like
