"""Research on the web: found by providers, fetched once, read, cited; and what could not be read is told."""

import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from openassay.errors import BudgetError, ConfigurationError, SourceError, UsageError
from openassay.graph import to_harvests
from openassay.models.event import Event
from openassay.models.evidence import Document, DocumentKind, Gap, Hit
from openassay.models.plan import QueryType
from openassay.models.spend import Fee
from openassay.models.thread import ResearchOptions
from openassay.nodes.dispatch import list_queries, scope_to_sites
from openassay.nodes.harvest import select_pages
from openassay.search.registry import SourceContext, check_names, choose_sources
from openassay.settings import load
from openassay.state import HarvestOutcome, State
from openassay.testing import FakeRemote, FakeSource, MemoryCache, MemoryDocuments, make_document
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]


def hit(document: Document, /, kind: DocumentKind = "web", **fields: object) -> Hit:
    return Hit.model_validate(
        {"provider": "x", "query": "x", "rank": 1, "url": document.url, "title": document.title, "kind": kind,
         "host": document.host, "published": document.published, **fields}
    )  # fmt: skip


def on_the_web(lab: Lab, *sources: FakeRemote, documents: tuple[Document, ...] = LAKE) -> Lab:
    lab.sources = list(sources)
    for document in documents:
        lab.pages.put(document.url, document)
    return lab


def of(events: list[Event], kind: str, stage: str) -> list[Event]:
    return [event for event in events if (event.kind, event.stage) == (kind, stage)]


@pytest.mark.slow
@pytest.mark.requirement("W-05", "S-05")
async def test_pages_that_were_found_are_read_once_and_cited(lab: Make) -> None:
    one = FakeRemote("tavily", [hit(SURVEY), hit(GAZETTE)])
    two = FakeRemote("exa", [hit(GAZETTE, url=f"{GAZETTE.url}?utm_source=mail#top"), hit(GUIDE)])
    bench = on_the_web(lab(), one, two)

    outcome = await bench.ask(QUESTION)

    report = outcome.report
    assert report is not None
    assert report.status == "complete"
    assert {card.url for card in report.sources} >= {SURVEY.url, GAZETTE.url}
    assert {card.kind for card in report.sources} == {"web"}
    assert sorted(bench.pages.asked) == sorted(set(bench.pages.asked))  # no page twice, however many want it
    read = of(await bench.log(outcome.run.id), "read", "harvest")
    assert {event.data["url"] for event in read} == {SURVEY.url, GAZETTE.url, GUIDE.url}


@pytest.mark.requirement("W-05", "L-03")
async def test_every_sub_question_is_asked_in_several_ways_at_every_provider(lab: Make) -> None:
    one, two = FakeRemote("tavily", [hit(SURVEY)]), FakeRemote("exa", [hit(GAZETTE)])
    bench = on_the_web(lab(), one, two)

    outcome = await bench.ask(QUESTION)

    by_question: dict[str, set[str]] = {}
    for line in list_queries(
        cast("State", await bench.state(outcome))
    ):  # what two have in common is asked by one of them
        by_question.setdefault(line.partition(" ")[0], set()).add(line.partition(" ")[2])
    assert len(by_question) >= 3
    assert all(len(queries) >= 3 for queries in by_question.values())
    assert {inquiry.query for inquiry in one.asked} == {inquiry.query for inquiry in two.asked}


@pytest.mark.requirement("W-08")
async def test_why_a_page_was_not_read_is_on_record_and_the_run_goes_on(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("tavily", [hit(SURVEY), hit(GAZETTE), hit(GUIDE)]))
    bench.pages.put(GUIDE.url, "robots.txt forbids it")
    bench.pages.put(GAZETTE.url, "quality 0.12 is below 0.3")

    outcome = await bench.ask(QUESTION)

    skipped = of(await bench.log(outcome.run.id), "skip", "harvest")
    assert {(event.data["path"], event.data["reason"]) for event in skipped} == {
        (GUIDE.url, "robots.txt forbids it"), (GAZETTE.url, "quality 0.12 is below 0.3"),
    }  # fmt: skip
    assert outcome.report is not None
    assert {card.url for card in outcome.report.sources} == {SURVEY.url}
    [notice] = outcome.report.notices
    assert notice.startswith("2 of 3 pages found were not read: ")
    assert "robots.txt forbids it" in notice


@pytest.mark.requirement("C-07", "S-05")
async def test_a_provider_that_fails_is_reported_and_the_others_go_on(lab: Make) -> None:
    failing = FakeRemote("tavily", fails=SourceError("the key of tavily was refused", help="Check TAVILY_API_KEY."))
    bench = on_the_web(lab(), failing, FakeRemote("exa", [hit(SURVEY), hit(GAZETTE)]))

    outcome = await bench.ask(QUESTION, depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    errors = of(await bench.log(outcome.run.id), "error", "search")
    assert errors
    assert {(event.data["source"], event.data["retryable"]) for event in errors} == {("tavily", False)}
    rounds = len({event.seq for event in of(await bench.log(outcome.run.id), "enter", "search")})
    assert len(errors) == rounds  # once for all its queries
    assert any("of tavily failed: the key of tavily was refused." in notice for notice in outcome.report.notices)


@pytest.mark.requirement("C-07")
async def test_when_the_only_provider_fails_nothing_takes_its_place(lab: Make) -> None:
    failing = FakeRemote("tavily", fails=SourceError("tavily did not answer", retryable=True))
    bench = on_the_web(lab(), failing)

    outcome = await bench.ask(QUESTION, depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert outcome.report.sources == ()
    errors = of(await bench.log(outcome.run.id), "error", "search")
    assert any("tavily did not answer" in str(event.data["message"]) for event in errors)


@pytest.mark.slow
@pytest.mark.requirement("W-07")
async def test_a_copy_on_another_site_is_read_but_not_used_twice(lab: Make) -> None:
    """The mirror has the survey with a menu around it."""
    mirror = make_document(f"Home News Weather Sport\n\n{SURVEY.text}\n\nAll rights reserved.", title="Mirror",
                      url="https://mirror.example/copy")  # fmt: skip
    bench = on_the_web(lab(), FakeRemote("exa", [hit(SURVEY), hit(mirror), hit(GAZETTE)]), documents=(*LAKE, mirror))

    outcome = await bench.ask(QUESTION)

    assert outcome.report is not None
    cited = {card.url for card in outcome.report.sources}
    assert len(cited & {SURVEY.url, mirror.url}) == 1
    skipped = of(await bench.log(outcome.run.id), "skip", "select")
    assert any("says the same" in str(event.data["reason"]) for event in skipped)


@pytest.mark.requirement("F-04")
async def test_the_abstract_of_a_paper_is_evidence_without_its_page(lab: Make) -> None:
    bench = lab()
    await bench.documents.put(SURVEY)
    paper = hit(SURVEY, "academic", url="https://doi.org/10.1000/marrow", document=SURVEY.hash, start=0,
                end=len(SURVEY.text))  # fmt: skip
    bench.sources = [FakeRemote("crossref", [paper], types=("web", "academic"))]

    outcome = await bench.ask(QUESTION)

    assert bench.pages.asked == []
    assert outcome.report is not None
    assert {card.document for card in outcome.report.sources} == {SURVEY.hash}


@pytest.mark.slow
@pytest.mark.requirement("F-04")
async def test_where_the_whole_paper_is_free_it_is_fetched(lab: Make) -> None:
    bench = on_the_web(lab())
    bench.pages.put("https://arxiv.org/pdf/2001.00001", GAZETTE)
    await bench.documents.put(SURVEY)
    paper = hit(SURVEY, "academic", url="https://arxiv.org/abs/2001.00001", document=SURVEY.hash, start=0,
                end=len(SURVEY.text), fulltext="https://arxiv.org/pdf/2001.00001")  # fmt: skip
    bench.sources = [FakeRemote("arxiv", [paper], types=("web", "academic"))]

    await bench.ask(QUESTION)

    assert bench.pages.asked == ["https://arxiv.org/pdf/2001.00001"]


@pytest.mark.requirement("W-14")
async def test_events_tell_how_much_the_cache_has_answered(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("exa", [hit(SURVEY)], cached=True), FakeRemote("tavily", [hit(GAZETTE)]))

    outcome = await bench.ask(QUESTION, depth="quick")

    events = await bench.log(outcome.run.id)
    [fused] = of(events, "search", "fuse")[:1]
    assert 0 < int(str(fused.data["cached"])) < int(str(fused.data["asked"]))
    assert {bool(event.data["cached"]) for event in of(events, "search", "search")} == {True, False}
    assert "cached" in of(events, "read", "select")[0].data


@pytest.mark.requirement("W-15")
async def test_pages_and_searches_count_as_requests_and_a_spent_budget_is_told(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("exa", [hit(document) for document in LAKE], micros=5_000))

    async def buy(fee: Fee, request: Callable[..., object]) -> str:
        bench.account.fees.append(fee)
        if fee.step == "harvest":
            raise BudgetError("the cap on requests is reached")
        return await request()  # type: ignore[misc, no-any-return]

    bench.account.buy = buy  # type: ignore[method-assign]
    outcome = await bench.ask(QUESTION, depth="quick")

    assert {(fee.step, fee.provider, fee.micros) for fee in bench.account.fees} >= {
        ("search", "exa", 5_000), ("harvest", "web", 0),
    }  # fmt: skip
    assert bench.pages.asked == []
    skipped = of(await bench.log(outcome.run.id), "skip", "harvest")
    assert {str(event.data["reason"]) for event in skipped} == {"the cap on requests is reached"}


@pytest.mark.requirement("L-05")
async def test_no_text_of_a_page_is_in_the_state(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("exa", [hit(document) for document in LAKE]))

    outcome = await bench.ask(QUESTION, depth="quick")

    state = await bench.state(outcome)
    research = {key: state[key] for key in ("searched", "pages", "harvested", "selected", "tasks", "sources")}
    assert "Fishermen on the northern shore" not in str(research)
    assert len(str(research["harvested"])) < 300 * len(LAKE)


@pytest.mark.requirement("W-07")
async def test_filters_of_the_question_are_the_providers_own(lab: Make) -> None:
    remote = FakeRemote("exa", [hit(SURVEY)])
    bench = on_the_web(lab(), remote)

    await bench.ask("How did Lake Marrow shrink since 2019 according to survey.example.org?", depth="quick")

    assert all(inquiry.since is not None and inquiry.since.year == 2019 for inquiry in remote.asked)
    scoped = [inquiry for inquiry in remote.asked if inquiry.sites]
    assert {inquiry.sites for inquiry in scoped} == {("survey.example.org",)}
    assert all("site:" not in inquiry.query for inquiry in remote.asked)
    assert len(scoped) < len(remote.asked)  # base queries are asked as well


# Which sources a run asks -----------------------------------------------------------------------------


def bench_for(**settings: object) -> SourceContext:
    def never(*_: object) -> None:
        raise AssertionError

    return SourceContext(
        store=MemoryDocuments(), embedder=never, reader=never, open_index=never,  # type: ignore[arg-type]
        settings=load(**{"offline": False, **settings}), cache=MemoryCache(), http=never,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeRemote]:
    """Every provider that would be installed, none of them real."""
    kinds: dict[str, tuple[QueryType, ...]] = {
        "tavily": ("web",), "duckduckgo": ("web",), "wikipedia": ("web",), "arxiv": ("academic",), "gdelt": ("news",),
        "github": ("code",),
    }  # fmt: skip
    made = {
        name: FakeRemote(
            name,
            types=types,
            stands_in=name == "duckduckgo",
            one_site=name == "wikipedia",
        )
        for name, types in kinds.items()
    }
    demo = FakeSource(MemoryDocuments(), (), name="demo")
    monkeypatch.setattr("openassay.search.registry.source_names", lambda settings: sorted(made))
    monkeypatch.setattr("openassay.search.registry.build_source", lambda name, bench: made.get(name, demo))
    return made


def chosen(depth: str = "standard", **options: object) -> set[str]:
    return {
        source.name
        for source in choose_sources(ResearchOptions.model_validate({"depth": depth, **options}), bench_for())[0]
    }


@pytest.mark.requirement("F-03", "C-07")
def test_depth_decides_which_kinds_of_source_are_asked(world: dict[str, FakeRemote]) -> None:
    assert chosen("quick") == {"tavily", "wikipedia", "github"}
    assert chosen("standard") == {"tavily", "wikipedia", "github", "arxiv"}
    assert chosen("comprehensive") == {"tavily", "wikipedia", "github", "arxiv", "gdelt"}


@pytest.mark.requirement("C-07")
def test_without_a_key_the_open_web_is_still_searched(world: dict[str, FakeRemote]) -> None:
    world["tavily"].is_available = lambda: False  # type: ignore[method-assign]
    assert chosen("quick") == {"duckduckgo", "wikipedia", "github"}


@pytest.mark.requirement("C-07")
def test_with_no_network_it_is_the_demo_and_a_plain_notice(world: dict[str, FakeRemote]) -> None:
    for source in world.values():
        source._reachable = False
    sources, notices = choose_sources(ResearchOptions(), bench_for())

    assert [source.name for source in sources] == ["demo"]
    assert "could be reached" in notices["source"]
    assert "demo data" in notices["source"]


@pytest.mark.requirement("C-07")
def test_papers_are_still_asked_where_the_web_cannot_be(world: dict[str, FakeRemote]) -> None:
    for name in ("tavily", "duckduckgo", "wikipedia"):
        world[name]._reachable = False
    sources, notices = choose_sources(ResearchOptions(), bench_for())

    assert {source.name for source in sources} == {"arxiv", "github"}
    assert "The web itself was not searched" in notices["web"]


@pytest.mark.slow
@pytest.mark.requirement("C-07")
def test_a_lookup_that_hangs_holds_nobody_up(world: dict[str, FakeRemote]) -> None:
    found, ended = threading.Event(), list[bool]()

    def hang() -> bool:
        ended.append(found.wait(60))
        return True

    world["arxiv"].is_reachable = hang  # type: ignore[method-assign]
    sources, _ = choose_sources(ResearchOptions(), bench_for())

    assert ended == [], "it was not waited for"
    found.set()
    assert "wikipedia" in {source.name for source in sources}


@pytest.mark.requirement("C-07")
def test_one_that_cannot_be_reached_is_named_and_left_out(world: dict[str, FakeRemote]) -> None:
    world["arxiv"]._reachable = False
    sources, notices = choose_sources(ResearchOptions(), bench_for())

    assert "arxiv" not in {source.name for source in sources}
    assert "arxiv" in notices["reach"]


@pytest.mark.requirement("C-07")
def test_documents_stay_here_unless_the_web_is_asked_for(world: dict[str, FakeRemote]) -> None:
    assert chosen(docs=("x",)) == {"demo"}  # stands for the documents here: nothing of the web
    assert chosen(docs=("x",), web=True) > {"tavily", "arxiv"}
    assert chosen(private=True) == {"demo"}
    for kept in ({"docs": ("x",)}, {"private": True}):  # private: a thread that was about documents
        with pytest.raises(UsageError, match="tavily would receive queries about your documents"):
            chosen(source="tavily", **kept)


@pytest.mark.requirement("C-07")
def test_a_named_source_that_lacks_its_key_is_an_error_and_never_another(world: dict[str, FakeRemote]) -> None:
    world["tavily"].is_available = lambda: False  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError, match="not available"):
        chosen(source="tavily")
    assert chosen(source="arxiv, wikipedia") == {"arxiv", "wikipedia"}


def test_offline_asks_nobody(world: dict[str, FakeRemote]) -> None:
    sources, notices = choose_sources(ResearchOptions(), bench_for(offline=True))
    assert [source.name for source in sources] == ["demo"]
    assert "offline" in notices["source"]
    with pytest.raises(ConfigurationError, match="offline"):
        choose_sources(ResearchOptions(source="arxiv"), bench_for(offline=True))


@pytest.mark.requirement("C-07")
def test_a_resumed_run_asks_whom_it_asked_before(world: dict[str, FakeRemote]) -> None:
    assert chosen("comprehensive", sources=("wikipedia",)) == {"wikipedia"}


# Rounds -----------------------------------------------------------------------------------------------


def ranked(*paths: str) -> list[Hit]:
    return [hit(SURVEY, url=f"https://site.example/{path}", rank=rank) for rank, path in enumerate(paths, 1)]


@pytest.mark.requirement("S-05")
def test_a_page_that_was_tried_in_vain_gives_its_place_to_the_next() -> None:
    def outcome(name: str, document: str | None, *, again: bool) -> HarvestOutcome:
        address = f"https://site.example/{name}"
        return {"address": address, "document": document, "reason": "", "cached": False, "again": again, "round": "0"}

    outcomes = (outcome("a", None, again=False), outcome("b", "x", again=False), outcome("c", None, again=True))
    tried = {one["address"]: one for one in outcomes}
    chosen = select_pages({"Q1": ranked("a", "b", "c", "d")}, tried, 2)
    assert [page["url"].rpartition("/")[2] for page in chosen["Q1"]] == ["b", "c"]


@pytest.mark.requirement("W-05")
def test_sites_are_asked_beside_the_web_and_files_are_no_sites() -> None:
    wanted: dict[str, Any] = {"lake size": ["web"], "lake area": ["web"]}
    asked = scope_to_sites(
        wanted, "What do nasa.gov, www.noaa.gov and epa.gov say of README.md, setup.py, ASP.NET and Node.js?"
    )
    assert asked == {"site:nasa.gov lake size": ["web"], "site:noaa.gov lake size": ["web"]}


@pytest.mark.requirement("W-05")
def test_a_page_is_fetched_for_one_sub_question_and_not_again_in_a_later_round() -> None:
    pages = select_pages({"Q1": ranked("a", "b"), "Q2": ranked("b", "c")}, {}, 8)
    tasks = [{"key": f"0:{name}", "question": {"id": name}} for name in ("Q1", "Q2")]
    state: dict[str, Any] = {"pages": pages, "tasks": tasks, "harvested": {}, "selected": {}, "perused": {}}

    sends = to_harvests(state)  # type: ignore[arg-type]
    wanted = [[page["url"].rpartition("/")[2] for page in send.arg["pages"]] for send in sends]  # type: ignore[union-attr]
    assert wanted == [["a", "b"], ["c"]]
    state["harvested"] = {
        page["key"]: {"document": "x", "again": False} for chosen in pages.values() for page in chosen
    }
    assert to_harvests(state) == "select"  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.requirement("S-05")
async def test_what_was_read_in_one_round_is_not_read_again_but_still_bears_witness(lab: Make) -> None:
    """The first round leaves a gap; the second finds the same pages and one more."""
    remote = FakeRemote("exa", [hit(SURVEY), hit(GAZETTE)])

    async def analyse(real: Callable[[Any], Any], request: Any) -> Any:
        found = await real(request)
        if request.previous is not None:  # a node that is tried again is still in its round
            return found
        remote._hits = [hit(SURVEY), hit(GAZETTE), hit(GUIDE)]
        gap = Gap(section=request.plan.sections[0], severity="major", question="Q1")
        return found.model_copy(
            update={"gaps": (gap,), "refinements": {"Q1": ("lake marrow ferry",)}, "confidence": 0.1}
        )

    bench = on_the_web(lab(analyse=analyse), remote)
    outcome = await bench.ask(QUESTION)

    state = await bench.state(outcome)
    assert state["round"] == 2, (state["failures"], state["notices"], state["analysis"], state["confidence"])
    assert sorted(bench.pages.asked) == sorted([SURVEY.url, GAZETTE.url, GUIDE.url])
    kept = {place["document"] for place in state["selected"]["Q1"]}
    assert kept == {SURVEY.hash, GAZETTE.hash, GUIDE.hash}
    assert {place["document"] for place in state["selected"]["Q2"]} == {SURVEY.hash, GAZETTE.hash}
    assert {name for name, _ in state["perused"]["1:Q1"]} == {GUIDE.hash}


@pytest.mark.parametrize(
    "search",
    [{"without": ["gdlt"]}, {"endpoints": {"gdlt": "http://x"}}, {"requests_per_minute": {"gdlt": 1}},
     {"requests_per_day": {"gdlt": 1}}, {"usd_per_request": {"gdlt": 1}}],
)  # fmt: skip
def test_a_misspelt_provider_in_the_settings_is_an_error(search: dict[str, Any]) -> None:
    with pytest.raises(
        ConfigurationError, match=r"search\.\w+: there is no source called 'gdlt'; did you mean 'gdelt'"
    ):
        check_names(load(search=search))


@pytest.mark.requirement("W-15", "W-03")
async def test_looking_ahead_asks_nobody_who_is_paid_or_slow(lab: Make) -> None:
    paid, papers = FakeRemote("tavily", [hit(SURVEY)], micros=8_000), FakeRemote("arxiv", types=("academic",))
    bench = on_the_web(lab(), paid, papers)
    outcome = await bench.ask(QUESTION, depth="quick")

    searched = of(await bench.log(outcome.run.id), "search", "search")
    assert len(paid.asked) == len(searched) == len([fee for fee in bench.account.fees if fee.step == "search"])
    assert papers.asked == []
