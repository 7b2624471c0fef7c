"""What is remembered of a person shapes their research: whom it asks, what it leaves out, what comes first."""

from collections.abc import Callable, Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.cli.memory import forget_entry, set_preference
from openassay.engine.memory import change_preference
from openassay.errors import UsageError
from openassay.models.evidence import Document, Hit
from openassay.models.thread import ResearchOptions
from openassay.models.user import Preferences
from openassay.nodes.dispatch import scope_to_sites
from openassay.nodes.preferences import LIFT, SourcePreferences, find_sites, select_sources, source_preferences
from openassay.testing import FakeRemote, make_document
from openassay.text.language import language_code
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY
from tests.scenario.test_web import hit, of, on_the_web

pytestmark = pytest.mark.requirement("W-19")
Make = Callable[..., Lab]

FORUM = make_document(
    "Lake Marrow covered 900 square kilometres in 2019, says my uncle. Lake Marrow shrank because of the ferry.",
    title="My uncle on Lake Marrow", url="https://old.reddit.com/r/marrow/1", published=date(2021, 1, 1),
)  # fmt: skip


async def wants(lab: Lab, user: str = "local", **preferences: object) -> None:
    await lab.memory.set_preferences(user, Preferences.model_validate(preferences))


# Avoided ---------------------------------------------------------------------------------------------


async def test_a_host_that_is_avoided_is_neither_fetched_nor_cited_and_the_log_says_why(lab: Make) -> None:
    """Whatever a provider makes of the filter: this one ignores it."""
    one, two = FakeRemote("tavily", [hit(FORUM), hit(SURVEY)]), FakeRemote("exa", [hit(FORUM), hit(GAZETTE)])
    bench = on_the_web(lab(), one, two, documents=(*LAKE, FORUM))
    await wants(bench, avoid=["reddit.com", "guide.example"])

    outcome = await bench.ask(QUESTION)

    assert outcome.report is not None
    assert {card.host for card in outcome.report.sources} == {SURVEY.host, GAZETTE.host}
    assert FORUM.url not in bench.pages.asked
    assert {inquiry.without for inquiry in (*one.asked, *two.asked)} == {("reddit.com", "guide.example")}
    assert {event.data["hits"] for event in of(await bench.log(outcome.run.id), "search", "search")} == {1}
    rounds = (await bench.state(outcome))["round"]
    skipped = [event.data for event in of(await bench.log(outcome.run.id), "skip", "fuse")]
    assert [(data["path"], data["reason"]) for data in skipped] == [
        ("reddit.com", "you asked to avoid reddit.com")
    ] * rounds  # though two providers named it for every query


async def test_a_question_that_names_a_host_wants_it_now(lab: Make) -> None:
    remote = FakeRemote("tavily", [hit(FORUM), hit(SURVEY)])
    bench = on_the_web(lab(), remote, documents=(*LAKE, FORUM))
    await wants(bench, avoid=["reddit.com"])

    outcome = await bench.ask("How large is Lake Marrow according to old.reddit.com, and why did it shrink?")

    assert FORUM.url in bench.pages.asked
    assert all("reddit.com" not in inquiry.without for inquiry in remote.asked)
    assert of(await bench.log(outcome.run.id), "skip", "fuse") == []


async def test_a_source_that_is_avoided_is_not_asked_and_the_report_says_so(lab: Make) -> None:
    unwanted, wanted = FakeRemote("exa", [hit(GAZETTE)]), FakeRemote("tavily", [hit(SURVEY)])
    bench = on_the_web(lab(), unwanted, wanted)
    await wants(bench, avoid=["exa"])

    outcome = await bench.ask(QUESTION)

    assert outcome.report is not None
    assert unwanted.asked == []
    assert wanted.asked
    told = [event.data["text"] for event in of(await bench.log(outcome.run.id), "notice", "dispatch")]
    assert told == ["Not searched, because you avoid it: exa."]
    assert told[0] in outcome.report.notices


async def test_a_source_named_on_the_command_line_is_asked(lab: Make) -> None:
    named = FakeRemote("exa", [hit(SURVEY), hit(GAZETTE)])
    bench = on_the_web(lab(), named)
    await wants(bench, avoid=["exa"])

    outcome = await bench.ask(QUESTION, source="exa", depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert named.asked


async def test_where_nobody_is_left_to_ask_the_person_is_told_why(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("exa", [hit(SURVEY)]))
    await wants(bench, avoid=["exa"])

    outcome = await bench.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    errors = of(await bench.log(outcome.run.id), "error", "search")
    assert any("what you avoid" in str(event.data["message"]) for event in errors)
    assert any("because you avoid it: exa" in notice for notice in outcome.report.notices)


async def test_what_one_person_avoids_another_does_not(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("tavily", [hit(GUIDE), hit(SURVEY)]))
    await wants(bench, "ann", avoid=["guide.example"])

    await bench.ask(QUESTION, user="ann", depth="quick")
    assert GUIDE.url not in bench.pages.asked
    await bench.ask(QUESTION, user="bob", depth="quick")
    assert GUIDE.url in bench.pages.asked


async def test_a_run_keeps_the_preferences_it_began_with(lab: Make) -> None:
    bench = on_the_web(lab(), FakeRemote("tavily", [hit(GUIDE), hit(SURVEY)]))
    await wants(bench, avoid=["guide.example"])

    outcome = await bench.ask(QUESTION, depth="quick")
    await wants(bench)

    kept = ResearchOptions.model_validate((await bench.threads.run(outcome.run.id)).options)
    assert kept.preferences == Preferences(avoid=("guide.example",))


# Preferred -------------------------------------------------------------------------------------------


async def test_hosts_that_are_preferred_are_searched_by_themselves_too(lab: Make) -> None:
    remote = FakeRemote("tavily", [hit(SURVEY), hit(GAZETTE)])
    bench = on_the_web(lab(), remote)
    await wants(bench, prefer=["guide.example", "arxiv", "gazette.example"])

    await bench.ask(QUESTION)

    scopes = {inquiry.sites for inquiry in remote.asked}
    assert scopes == {(), ("guide.example", "gazette.example")}  # arxiv is no host


async def test_who_stands_in_for_the_web_searches_them_too(lab: Make) -> None:
    remote = FakeRemote("duckduckgo", [hit(SURVEY), hit(GAZETTE)], stands_in=True)
    remote.terms = remote.terms.model_copy(update={"per_minute": 20})
    bench = on_the_web(lab(), remote)
    await wants(bench, prefer=["guide.example"])

    await bench.ask(QUESTION, depth="quick")

    assert {inquiry.sites for inquiry in remote.asked} == {(), ("guide.example",)}


def pages(count: int) -> list[Document]:
    return [
        make_document(
            f"Lake Marrow covered 412 square kilometres in {2000 + number}.", url=f"https://s{number}.example/a"
        )
        for number in range(1, count + 1)
    ]


async def test_a_page_of_a_preferred_host_is_read_before_its_equals_but_not_from_far_behind(lab: Make) -> None:
    """Eight pages are fetched: the tenth of the list comes up by three, the twelfth not far enough."""
    documents = pages(12)
    bench = on_the_web(lab(), FakeRemote("tavily", [hit(page) for page in documents]), documents=tuple(documents))
    await wants(bench, prefer=["s10.example", "s12.example"])

    outcome = await bench.ask(QUESTION, depth="quick")

    fetched = {page["url"] for chosen in (await bench.state(outcome))["pages"].values() for page in chosen}
    read = fetched | set(bench.pages.asked)
    assert documents[9].url in read
    assert documents[11].url not in read
    assert documents[0].url in read


@pytest.mark.slow
@given(st.lists(st.booleans(), max_size=30))
def test_who_is_preferred_passes_a_few_and_nobody_else_changes_places(liked: list[bool]) -> None:
    hits = [
        Hit(
            provider="x", query="q", rank=place + 1, title="t", url=f"https://{'good' if good else 'other'}.com/{place}"
        )
        for place, good in enumerate(liked)
    ]
    wishes = SourcePreferences(prefer=("good.com",))
    lifted = wishes.promote_hits(hits)

    assert sorted(hit.rank for hit in lifted) == sorted(hit.rank for hit in hits)
    for kind in (True, False):
        ranks = [hit.rank for hit in lifted if wishes.prefers(hit) is kind]
        assert ranks == sorted(ranks)
    for place, found in enumerate(lifted):
        passed = [other for other in lifted[place + 1 :] if other.rank < found.rank]
        assert len(passed) <= LIFT
        assert wishes.prefers(found) or not passed


def test_a_preferred_source_lifts_what_it_found() -> None:
    found = [
        Hit(provider=name, query="q", rank=rank, title="t", url=f"https://{name}.com/{rank}")
        for rank, name in enumerate(["exa", "exa", "exa", "arxiv"], 1)
    ]
    assert [hit.provider for hit in SourcePreferences(prefer=("arxiv",)).promote_hits(found)] == [
        "arxiv",
        "exa",
        "exa",
        "exa",
    ]


# Facts -----------------------------------------------------------------------------------------------


async def test_facts_that_cannot_be_read_do_not_stop_the_research(lab: Make) -> None:
    bench = lab()
    bench.holds(*LAKE)
    await bench.memory.remember("local", "Lake Marrow is ours")
    await bench.memory._store.aput(("memory", "local", "facts"), "M1", {"id": "M1", "text": "x", "later": 1})

    outcome = await bench.ask(QUESTION, depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    [told] = [notice for notice in outcome.report.notices if "without the facts" in notice]
    assert "openassay memory forget all" in told
    assert [event.data["text"] for event in of(await bench.log(outcome.run.id), "notice", "plan")] == [told]


# Names, languages, plans -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "left_out"),
    [
        ("https://reddit.com/x", True), ("https://www.reddit.com/x", True), ("https://old.reddit.com./x", True),
        ("https://www.google.com/url?q=https://reddit.com/x", True), ("https://REDDIT.com", True),
        ("https://notreddit.com/x", False), ("https://reddit.com.evil.example/x", False),
        ("https://youtu.be/abc123", True), ("file:///pages/reddit.com/notes.md", False), ("doi:10.1/x", False),
    ],
)  # fmt: skip
def test_an_avoided_host_is_told_by_any_of_its_names(url: str, left_out: bool) -> None:
    found = Hit(provider="x", query="q", rank=1, title="t", url=url)
    kept, avoided = SourcePreferences(avoid=("reddit.com", "youtube.com")).filter_hits([found])
    assert bool(avoided) is left_out
    assert kept == ([] if left_out else [found])


def test_a_full_text_at_an_avoided_host_is_not_fetched_but_the_abstract_stays() -> None:
    found = Hit(provider="x", query="q", rank=1, title="t", url="https://doi.org/10.1/x", document="d",
                fulltext="https://www.researchgate.net/x.pdf")  # fmt: skip
    [kept], avoided = SourcePreferences(avoid=("researchgate.net",)).filter_hits([found])
    assert kept.fulltext is None
    assert kept.document == "d"
    assert not avoided


def test_only_a_few_hosts_go_into_one_request() -> None:
    many = tuple(f"h{number}.com" for number in range(50))
    assert len(SourcePreferences(avoid=many).without) == len(SourcePreferences(prefer=many).sites) == 5


def test_what_is_avoided_is_never_searched_by_itself() -> None:
    assert SourcePreferences(prefer=("a.com", "b.com"), avoid=("a.com",)).sites == ["b.com"]


def test_preferred_sites_make_one_query_beside_those_a_question_names() -> None:
    asked = scope_to_sites({"lake size": ["web"]}, "What does nasa.gov say?", ["a.com", "b.com"])
    assert list(asked) == ["site:nasa.gov lake size", "site:a.com site:b.com lake size"]
    assert find_sites("See www.nasa.gov and nasa.gov") == ["nasa.gov"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "asked"),
    [("German", "de"), ("de", "de"), ("de-AT", "de"), ("Deutsch", "de"), ("FRANÇAIS", "fr"), ("English", None),
     ("Klingon", None), (None, None)],
)  # fmt: skip
async def test_providers_are_asked_in_the_language_a_person_prefers(
    lab: Make, language: str | None, asked: str | None
) -> None:
    remote = FakeRemote("tavily", [hit(SURVEY), hit(GAZETTE)])
    bench = on_the_web(lab(), remote)
    await wants(bench, language=language)
    await bench.ask(QUESTION, depth="quick")
    assert {inquiry.language for inquiry in remote.asked} == {asked}


async def test_a_question_in_another_language_is_asked_in_its_own(lab: Make) -> None:
    remote = FakeRemote("tavily", [hit(SURVEY)])
    bench = on_the_web(lab(), remote)
    await wants(bench, language="French")
    await bench.ask("Wie groß ist der See Marrow und warum ist er kleiner geworden?", depth="quick")
    assert {inquiry.language for inquiry in remote.asked} == {"de"}


def test_codes_of_languages() -> None:
    assert language_code(" swedish ") == "sv"
    assert language_code(None) is None


def names(planned: Sequence[str] = (), **options: object) -> list[str]:
    sources = [FakeRemote(name) for name in ("documents", "exa", "tavily")]
    wishes = source_preferences(QUESTION, ResearchOptions.model_validate(options))
    return [source.name for source in select_sources(sources, planned, wishes)]


def test_a_plan_says_who_is_asked_and_documents_that_were_given_are_never_avoided() -> None:
    avoiding = {"avoid": ("exa", "documents")}
    assert names() == ["documents", "exa", "tavily"]
    assert names(["exa"]) == ["exa"]
    assert names(["exa", "tavily"], preferences=avoiding) == ["exa", "tavily"]  # changed by a person, who wants it now
    assert names(preferences=avoiding) == ["tavily"]
    assert names(preferences=avoiding, docs=("notes",)) == ["documents", "tavily"]
    assert names(preferences=avoiding, source="exa, tavily") == ["exa", "tavily"]


# On the command line ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "kept"),
    [("style", " Technical", "technical"), ("words", "1,500", 1500), ("region", "Lower  Austria", "Lower Austria"),
     ("prefer", "https://www.NASA.gov/missions, arxiv,nasa.gov", ("nasa.gov", "arxiv")),
     ("avoid", "bücher.example", ("xn--bcher-kva.example",)), ("language", "German", "German")],
)  # fmt: skip
def test_a_wish_is_kept_as_it_was_meant(key: str, value: str, kept: object) -> None:
    assert getattr(change_preference(Preferences(), key, value), key) == kept


def test_who_is_preferred_from_now_on_is_no_longer_avoided() -> None:
    avoiding = Preferences(avoid=("reddit.com", "gdelt"), words=500)
    assert change_preference(avoiding, "prefer", "reddit.com") == Preferences(
        prefer=("reddit.com",), avoid=("gdelt",), words=500
    )
    assert change_preference(Preferences(prefer=("exa",)), "avoid", "exa") == Preferences(avoid=("exa",))


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [("prefr", "x.com", "did you mean prefer?"), ("colour", "red", "style, words, prefer"),
     ("style", "purple", "academic, technical or executive"), ("words", "7", "50 to 20,000"),
     ("words", "many", "50 to 20,000"), ("region", " ", "a country or region"), ("region", "x" * 81, "80 characters"),
     ("region", "a\x1b[31m", "a country or region"), ("language", "??", "as in German or de"),
     ("avoid", "reddit", "written like reddit.com"), ("avoid", "wikipeda", "did you mean 'wikipedia'?"),
     ("avoid", "co.uk", "neither a host nor a source"), ("prefer", ",", "with commas"),
     ("prefer", "http://[", "neither a host nor a source")],
)  # fmt: skip
def test_a_wrong_wish_says_what_is_allowed(key: str, value: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        set_preference(key, value)
    assert told in f"{error.value.message} {error.value.help}"


def test_all_is_not_forgotten_where_nobody_can_confirm_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    with pytest.raises(UsageError) as error:
        forget_entry("all")
    assert "--yes" in error.value.help
