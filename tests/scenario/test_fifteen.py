"""The fifteen conversations everybody can have with it, each on the embedded reasoner and on a language model."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from openassay.models.event import RunStatus
from openassay.models.evidence import ProviderResult
from openassay.search import demo
from tests.fakes.model import FakeModel
from tests.fakes.search_api import FakeSearchProvider
from tests.fakes.search_web_formats import TAVILY
from tests.fakes.web import FakeWeb, build_reply
from tests.scenario.talk import REASONERS, Talk, open_talk, text

Open = Callable[..., AbstractAsyncContextManager[Talk]]


@pytest.fixture(params=REASONERS)
def talk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")

    def make(**settings: Any) -> AbstractAsyncContextManager[Talk]:
        return open_talk(request.param, tmp_path / "data", **settings)

    return make


# The conversation


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-04")
async def test_1_a_clear_question_is_answered_at_once(talk: Open) -> None:
    async with talk() as here:
        outcome = await here.say("What's happening with Apple?")

        state = await here.state()
        assert outcome.questions == ()
        assert (state["clarity_status"], state["subject"]) == ("clear", "Apple")
        assert "Apple" in state["final_summary"]
        assert await here.way() == ["understand", "dispatch", "write", "publish"]
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert all("Apple" in card.title for card in outcome.report.sources)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-05")
async def test_2_a_vague_question_is_asked_back_and_its_answer_understood_afresh(talk: Open) -> None:
    async with talk() as here:
        asked = await here.say("Tell me about the company")
        [question] = asked.questions
        assert (asked.run.status, question.kind) == (RunStatus.WAITING, "clarification")
        assert "company" in question.question
        assert (await here.state())["clarity_status"] == "needs_clarification"

        outcome = await here.say("Apple")

        state = await here.state()
        assert outcome.questions == ()
        assert (state["clarity_status"], state["clarification_attempts"], state["subject"]) == ("clear", 1, "Apple")
        assert "Apple" in state["final_summary"]
        assert await here.way() == ["understand", "clarify", "understand", "dispatch", "write", "publish"]


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-05", "C-06")
async def test_3_an_answer_that_is_still_vague_is_asked_back_once_more(talk: Open) -> None:
    async with talk() as here:
        first = await here.say("Tell me about the company")
        second = await here.say("The tech one")
        outcome = await here.say("Apple")

        assert len(first.questions) == len(second.questions) == 1
        assert first.questions[0].id != second.questions[0].id
        state = await here.state()
        assert (state["clarification_attempts"], state["subject"]) == (2, "Apple")
        assert await here.way() == [
            "understand", "clarify", "understand", "clarify", "understand", "dispatch", "write", "publish",
        ]  # fmt: skip
        assert outcome.report is not None
        assert all("Apple" in card.title for card in outcome.report.sources)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-04", "C-10")
async def test_4_an_unknown_company_is_tried_again_and_the_answer_says_there_is_none(talk: Open) -> None:
    async with talk() as here:
        outcome = await here.say("What's happening with Acme Corp?")

        state = await here.state()
        assert state["subject"] == "Acme Corp"
        assert (state["confidence"], state["validation_result"]) == (0, "insufficient")
        assert state["research_attempts"] in (2, 3)
        way = await here.way()
        assert way[:3] == ["understand", "dispatch", "analyse"]
        assert way.count("analyse") == state["research_attempts"] - 1  # the last round is not analysed
        assert "write" not in way
        assert outcome.report is not None
        assert outcome.report.status == "no_data"
        assert "Sorry" in text(outcome)
        assert "Acme Corp" in text(outcome)
        assert "check the spelling" in text(outcome)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-04", "C-09", "C-10")
async def test_5_too_little_is_researched_again_and_then_told_with_a_caveat(
    talk: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = demo.load_companies()
    microsoft = whole["microsoft"].model_copy(update={"recent_news": (), "stock_info": ()})
    monkeypatch.setattr(demo, "load_companies", lambda: {**whole, "microsoft": microsoft})
    async with talk() as here:
        outcome = await here.say("What's happening with Microsoft?")

        state = await here.state()
        assert (state["confidence"], state["validation_result"]) == (4, "insufficient")
        assert state["research_attempts"] in (2, 3)
        way = await here.way()
        assert way[:5] == ["understand", "dispatch", "analyse", "dispatch", "analyse"]
        assert way[-2:] == ["write", "publish"]
        before, found, _ = text(outcome).partition("OpenAI")
        assert found
        assert "limited information about Microsoft" in before
        assert f"After {state['research_attempts']} attempts" in before
        assert "MSFT" not in text(outcome)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-03", "C-11")
async def test_6_a_follow_up_is_about_the_same_company(talk: Open) -> None:
    async with talk() as here:
        await here.say("What's happening with Apple?")

        outcome = await here.say("What about their stock?")

        state = await here.state()
        assert outcome.questions == ()
        assert state["subject"] == "Apple"
        assert state["original_query"] == "What about their stock?"
        assert "AAPL" in state["final_summary"]
        assert outcome.report is not None
        assert "Apple" in outcome.report.question


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-06", "C-11")
async def test_7_another_company_takes_the_place_of_the_first(talk: Open) -> None:
    async with talk() as here:
        await here.say("What's happening with Apple?")

        outcome = await here.say("Now tell me about Tesla")

        state = await here.state()
        assert state["subject"] == "Tesla"
        assert "Tesla" in state["final_summary"]
        assert "Apple" not in text(outcome)
        assert [message["role"] for message in state["messages"]] == ["user", "assistant"] * 2
        assert outcome.report is not None
        assert all("Tesla" in card.title for card in outcome.report.sources)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-05")
async def test_8_after_two_vague_answers_a_best_guess_is_made_and_said(talk: Open) -> None:
    async with talk() as here:
        asked = [await here.say(message) for message in ("Tell me about the company", "the company", "that one")]

        assert [len(outcome.questions) for outcome in asked] == [1, 1, 0]
        assert asked[-1].run.status is RunStatus.DONE
        state = await here.state()
        assert (state["clarity_status"], state["clarification_attempts"]) == ("clear", 2)
        assert (await here.way()).count("dispatch") >= 1
        assert asked[-1].report is not None
        assert any("was not clear" in notice for notice in asked[-1].report.notices)


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-06")
@pytest.mark.parametrize("nothing", ["", "  \n\t "], ids=["empty", "white space"])
async def test_9_an_empty_question_is_asked_for(talk: Open, nothing: str) -> None:
    async with talk() as here:
        asked = await here.say(nothing)
        [question] = asked.questions
        assert question.question == "What would you like to know?"
        assert (await here.state())["clarity_status"] == "needs_clarification"
        assert here.provider.calls == []

        outcome = await here.say("What's happening with Apple?")

        assert (await here.state()).get("subject") == "Apple"
        assert "Apple" in text(outcome)


@pytest.mark.requirement("C-16", "C-06")
async def test_10_a_question_that_is_called_off_ends_kindly_and_costs_nothing(talk: Open) -> None:
    async with talk() as here:
        outcome = await here.say("Nevermind")

        assert await here.way() == ["understand", "publish"]
        assert outcome.report is not None
        assert outcome.report.status == "cancelled"
        assert (outcome.report.spend.usd, outcome.report.spend.requests) == (0, 0)
        assert "Ask whenever you like" in (await here.state())["final_summary"]
        assert here.provider.calls == []


# The sources


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-08")
async def test_11_a_company_of_the_demo_data_has_confidence_10(talk: Open) -> None:
    async with talk() as here:
        outcome = await here.say("Tell me about Microsoft")

        state = await here.state()
        assert (state["subject"], state["confidence"], state["research_attempts"]) == ("Microsoft", 10, 1)
        assert state["validation_result"] == "pending"
        assert outcome.report is not None
        assert outcome.report.confidence_score == 1
        assert [section.title for section in outcome.report.sections if section.role == "body"] == [
            "Overview", "Recent news", "Financial snapshot",
        ]  # fmt: skip
        assert "MSFT" in text(outcome)
        assert not text(outcome).startswith(("This is based on", "Here is what"))


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-08", "C-10")
async def test_12_a_company_the_demo_data_do_not_know_has_no_findings_and_confidence_0(talk: Open) -> None:
    async with talk() as here:
        outcome = await here.say("Tell me about RandomCorp")

        state = await here.state()
        assert (state["subject"], state["confidence"], state["findings"]) == ("RandomCorp", 0, [])
        assert state["research_attempts"] in (2, 3)
        assert outcome.report is not None
        assert (outcome.report.status, outcome.report.claims, outcome.report.sources) == ("no_data", (), ())
        assert "Sorry" in text(outcome)
        assert "RandomCorp" in text(outcome)
        assert "add documents" in text(outcome)


ARTICLE = """<html><head><title>Apple opens a plant</title></head><body><article><h1>Apple opens a plant</h1>
<p>Apple opened a plant for recycled aluminium in Ostrey on Monday, the company announced.</p>
<p>Apple expects the plant to employ 640 people by the end of next year.</p>
<p>Shares of Apple rose 1.5% after the announcement of the plant in Ostrey.</p>
<p>The mayor of Ostrey welcomed the news about Apple and promised a new road to the site.</p>
</article></body></html>"""


@asynccontextmanager
async def tavily(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[FakeSearchProvider, dict[str, Any]]]:
    """Tavily's own format over real HTTP, and a web of one page; with the settings that lead there."""
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-test-not-a-key")
    monkeypatch.setenv("OPENASSAY_OFFLINE", "false")
    async with FakeWeb() as web, FakeSearchProvider(TAVILY) as provider:
        web.add_page("http://*/apple", ARTICLE)
        found = ProviderResult(
            url=f"http://127.0.0.1:{web.port}/apple", title="Apple opens a plant", snippet="In Ostrey."
        )
        provider.found = [found]
        harvest = {"allow_addresses": ["127.0.0.1/32"], "host_pause": 0, "browser": "off"}
        search = {"endpoints": {"tavily": provider.url}, "seconds": 0.3, "requests_per_minute": {"tavily": 6000}}
        asks_little = {
            "query_variations": 1,
            "max_search_iterations": 1,
            "model": FakeModel(questions=1, queries=1),
        }
        yield provider, {"harvest": harvest, "search": search, "options": {"source": "tavily"}, **asks_little}


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-07")
async def test_13_tavily_is_asked_and_what_it_finds_is_read(talk: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    async with tavily(monkeypatch) as (provider, settings), talk(**settings) as here:
        outcome = await here.say("Latest news about Apple")

        state = await here.state()
        assert state["subject"] == "Apple"
        assert state["confidence"] > 0
        assert provider.queries
        assert {asked.key for asked in provider.queries} == {"tvly-test-not-a-key"}
        assert all("apple" in asked.query.lower() for asked in provider.queries)
        assert "recycled aluminium" in text(outcome)
        assert outcome.report is not None
        assert [card.url for card in outcome.report.sources] == [provider.found[0].url]


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-07", "C-15")
@pytest.mark.parametrize(("fault", "retryable"), [("timeout", True), (503, True), (401, False)])
async def test_14_a_tavily_that_fails_is_reported_and_nothing_takes_its_place(
    talk: Open, monkeypatch: pytest.MonkeyPatch, fault: object, retryable: bool
) -> None:
    async with tavily(monkeypatch) as (provider, settings), talk(**settings, max_gap_searches=0) as here:
        if isinstance(fault, int):
            provider.reply_next(*[build_reply("{}", status=fault, type="application/json")] * 50)
        else:
            provider.delay = 2.0

        outcome = await here.say("Latest news about Apple")

        assert outcome.run.status is RunStatus.DONE
        assert outcome.report is not None
        assert (outcome.report.status, outcome.report.sources) == ("no_data", ())
        assert "could not be searched" in text(outcome)
        errors = [event for event in await here.log() if event.kind == "error" and event.data.get("source") == "tavily"]
        assert errors
        assert {event.data["retryable"] for event in errors} == {retryable}
        assert not any("tvly-test" in str(event.data) for event in await here.log())


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-07")
async def test_15_without_key_and_network_it_is_the_demo_data_and_said_to_be(talk: Open) -> None:
    async with talk(options={"source": "auto"}) as here:
        outcome = await here.say("What's happening with Apple?")

        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert {card.kind for card in outcome.report.sources} == {"demo"}
        [notice] = [notice for notice in outcome.report.notices if "demo data" in notice]
        assert notice in [event.data.get("text") for event in await here.log() if event.kind == "notice"]


# None of them leaves anything behind


@pytest.mark.slow
@pytest.mark.requirement("C-16", "C-11", "C-03")
async def test_two_conversations_at_once_have_nothing_in_common(talk: Open) -> None:
    async with talk() as one:
        two = one.another()
        await asyncio.gather(one.say("What's happening with Apple?"), two.say("Tell me about the company"))
        stocks = await asyncio.gather(one.say("What about their stock?"), two.say("Microsoft"))

        states = [await one.state(), await two.state()]
        assert [state["subject"] for state in states] == ["Apple", "Microsoft"]
        assert [state["clarification_attempts"] for state in states] == [0, 1]
        assert ["MSFT" in text(outcome) for outcome in stocks] == [False, True]
        assert ["AAPL" in text(outcome) for outcome in stocks] == [True, False]
