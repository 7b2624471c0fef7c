"""Which source a run asks, and the demo companies."""

import json
from collections.abc import Callable
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest

from openassay.bootstrap import open_engine
from openassay.errors import ConfigurationError, PathError
from openassay.export import Report
from openassay.models.thread import ResearchOptions
from openassay.protocols import ConfidenceSource, Source
from openassay.search import demo
from openassay.search.demo import DemoCompany, DemoSource, find_company
from openassay.search.registry import source_names
from openassay.settings import load
from openassay.testing import FakeSource, MemoryDocuments
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE

Make = Callable[..., Lab]
Research = Callable[..., Report]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number, document in enumerate(LAKE):
        (folder / f"{number}.txt").write_text(document.text, encoding="utf-8")
    return folder


# C-07


@pytest.mark.slow
@pytest.mark.requirement("C-07", "X-10")
def test_without_documents_auto_is_the_demo_data_and_says_so(researched: Research) -> None:
    report = researched("What's happening with Apple?", depth="quick")

    assert report.status == "complete"
    assert {card.kind for card in report.sources} == {"demo"}
    [notice] = report.notices
    assert "demo data" in notice
    assert notice in report.markdown.replace("\\", "")


@pytest.mark.requirement("C-07")
async def test_the_notice_is_an_event_of_the_run(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path / "data")) as engine:
        run = await engine.start("nevermind", ResearchOptions())
        await engine.wait(run.id)
        notices = [str(event.data["text"]) async for event in engine.events(run.id) if event.kind == "notice"]

    assert len(notices) == 1
    assert "demo data" in notices[0]


@pytest.mark.slow
@pytest.mark.requirement("C-07", "X-10")
def test_with_documents_auto_is_the_documents_alone(researched: Research, docs: Path) -> None:
    report = researched("How large is Lake Marrow, and what's happening with Apple?", docs=[docs])

    assert report.status == "complete"
    assert {card.kind for card in report.sources} == {"document"}
    assert all(card.url.startswith(docs.as_uri()) for card in report.sources)
    assert report.notices == ()
    assert "AAPL" not in report.markdown


@pytest.mark.requirement("C-07")
def test_the_demo_can_be_asked_for_by_name_and_gives_no_notice(researched: Research) -> None:
    report = researched("What's happening with Tesla?", depth="quick", source="demo")

    assert {card.kind for card in report.sources} == {"demo"}
    assert report.notices == ()


@pytest.mark.requirement("C-07")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tavili", "did you mean 'tavily'?"),
        ("documets", "did you mean 'documents'?"),
        ("", "there is no source called ''"),
        ("Demo", "there is no source called 'Demo'"),
        ("documents", "needs a folder"),
    ],
)
def test_a_source_that_is_not_there_is_an_error_and_never_another(researched: Research, name: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        researched("What's happening with Apple?", depth="quick", source=name)

    assert said in caught.value.message
    assert caught.value.help


@pytest.mark.requirement("C-07")
async def test_nothing_is_written_down_for_a_question_that_cannot_be_asked(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path / "data")) as engine:
        for options in (ResearchOptions(source="tavili"), ResearchOptions(docs=(str(tmp_path / "nowhere"),))):
            with pytest.raises((ConfigurationError, PathError)):
                await engine.start("What's happening with Apple?", options)

        assert await engine.threads.list_recent(limit=5) == []


@pytest.mark.requirement("C-07")
def test_all_sources_have_one_interface_and_plugins_come_by_the_same_door(
    researched: Research, plugin: Callable[..., None]
) -> None:
    made: list[FakeSource] = []
    plugin("lake", lambda bench: made.append(FakeSource(bench.store, LAKE)) or made[-1])  # type: ignore[func-returns-value]

    report = researched("How large is Lake Marrow?", depth="quick", source="lake")

    assert isinstance(made[0], Source)
    assert isinstance(DemoSource(MemoryDocuments()), Source)
    assert report.status == "complete"
    assert {card.host for card in report.sources} <= {document.host for document in LAKE}
    assert {"demo", "documents", "lake", "tavily"} <= set(source_names())


# C-08

NAMES = {
    "Apple Inc.": ["Apple", "apple", "APPLE INC", "Apple, Inc.", "apple inc.", "AAPL", " Apple Ltd. ", "Apple Corp"],
    "Tesla, Inc.": ["Tesla", "tesla inc", "TESLA MOTORS", "TSLA", "Tesla Limited"],
    "Microsoft Corporation": ["microsoft", "Microsoft Corp.", "MICROSOFT CORPORATION", "MSFT", "Microsoft, Inc"],
    "Amazon.com, Inc.": ["Amazon", "amazon.com", "Amazon.com, Inc.", "AMZN", "amazon ltd"],
    "Alphabet Inc. (Google)": ["Google", "google llc", "Alphabet", "ALPHABET INC.", "GOOGL", "Google, Inc."],
}  # fmt: skip


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize(("company", "name"), [(company, name) for company in NAMES for name in NAMES[company]])
def test_a_company_is_found_under_its_usual_names(company: str, name: str) -> None:
    found = find_company(name)
    assert found
    assert found.name == company


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("company", NAMES)
async def test_findings_are_complete_and_their_sources_can_be_opened(company: str) -> None:
    found = find_company(company)
    store = MemoryDocuments()
    hits = await DemoSource(store).search(f"news about {company}", limit=10)

    assert found
    assert found.recent_news
    assert found.stock_info
    assert found.key_developments
    assert found.confidence == 10
    assert [f"demo:{found.key}/{topic}" for topic in found.topics] == [hit.url for hit in hits]
    texts = "\n".join(document.text for document in store.stored.values())
    for line in (*found.recent_news, *found.stock_info, *found.key_developments):
        assert line in texts


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize(
    ("held", "confidence"),
    [
        ((), 0),
        (("recent_news",), 4),
        (("stock_info",), 4),
        (("recent_news", "key_developments"), 7),
        (("recent_news", "stock_info", "key_developments"), 10),
    ],
)
async def test_confidence_follows_how_complete_the_findings_are(
    monkeypatch: pytest.MonkeyPatch, held: tuple[str, ...], confidence: int
) -> None:
    """Three for each kind of finding, one for the sources behind them."""
    lines = dict.fromkeys(held, ("Acme makes anvils and sells them to coyotes.",))
    acme = DemoCompany(key="acme", name="Acme Corp", ticker="ACM", as_of=date(2024, 1, 1), **lines)
    monkeypatch.setattr(demo, "load_companies", lambda: {"acme": acme})
    monkeypatch.setattr(demo, "load_aliases", lambda: {"acme": "Acme"})

    source = DemoSource(MemoryDocuments())

    assert source.confidence("ACME, Inc.") == confidence / 10
    assert len(await source.search("Acme", limit=9)) == len(held)


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("name", ["Zorblax Industries", "", "Inc.", "Appl", "Pineapple", "the company"])
async def test_an_unknown_company_has_no_findings_and_confidence_0(name: str) -> None:
    assert DemoSource(MemoryDocuments()).confidence(name) is None
    assert await DemoSource(MemoryDocuments()).search(f"What about {name}?", limit=9) == []


@pytest.mark.requirement("C-08")
def test_an_unknown_company_is_answered_with_an_honest_nothing(researched: Research) -> None:
    report = researched("What's happening with Zorblax Industries?", depth="quick")

    assert report.status == "no_data"
    assert (report.confidence, report.confidence_score) == ("low", 0)
    assert report.claims == ()
    assert "Zorblax Industries" in report.sections[0].sentences[0].text


@pytest.mark.requirement("C-08")
@pytest.mark.parametrize(
    ("missing", "confidence"), [((), 10), (("stock_info",), 7), (("recent_news", "key_developments"), 4)]
)
async def test_a_run_is_as_confident_as_the_data_on_the_company_are_complete(
    lab: Make, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], confidence: float
) -> None:
    whole = demo.load_companies()
    microsoft = whole["microsoft"].model_copy(update=dict.fromkeys(missing, ()))
    monkeypatch.setattr(demo, "load_companies", lambda: {**whole, "microsoft": microsoft})
    here = lab()

    outcome = await here.ask("Tell me about Microsoft", depth="quick")

    assert (await here.state(outcome))["confidence"] == confidence
    assert outcome.report is not None
    assert outcome.report.confidence_score == confidence / 10


@pytest.mark.requirement("C-08")
async def test_a_run_about_an_unknown_company_has_confidence_0(lab: Make) -> None:
    here = lab()

    outcome = await here.ask("Tell me about Zorblax Industries", depth="quick")

    assert (await here.state(outcome))["confidence"] == 0


@pytest.mark.slow
@pytest.mark.requirement("C-08")
@pytest.mark.parametrize("question", ["How large is Microsoft's market value?", "Tell me about Microsoft and Zorblax"])
async def test_completeness_says_nothing_about_a_fact_or_about_others(
    lab: Make, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    seen = []
    for complete in (0.0, 1.0):
        monkeypatch.setattr(DemoSource, "confidence", lambda _, name, c=complete: c if name == "Microsoft" else None)
        here = lab()
        state = await here.state(await here.ask(question, depth="quick"))
        assert state["findings"]
        seen.append(state["confidence"])

    assert seen[0] == seen[1] > 0


def test_only_a_source_that_can_tell_is_asked_how_complete_it_is() -> None:
    assert isinstance(DemoSource(MemoryDocuments()), ConfidenceSource)
    assert not isinstance(FakeSource(MemoryDocuments(), LAKE), ConfidenceSource)


def test_the_demo_data_say_what_they_are() -> None:
    note = json.loads(files("openassay.search").joinpath("demo_companies.json").read_text("utf-8"))["note"]

    for words in ("illustrative", "demonstrations", "end of 2023", "not to be relied on"):
        assert words in note
