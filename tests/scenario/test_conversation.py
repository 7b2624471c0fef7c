"""The rules of a conversation: who does what, what is asked back, what is remembered, and how sure an answer sounds."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.graph import build_graph
from openassay.models.event import RunStatus
from openassay.models.evidence import Analysis, Gap
from openassay.search import demo
from openassay.settings import load
from openassay.testing import FakeSource, make_document
from tests.fakes.llm_api import ModelPrompt
from tests.fakes.llm_server import FaultAlways
from tests.fakes.model import FakeModel
from tests.scenario.conftest import Lab
from tests.scenario.talk import REASONERS, Talk, open_talk, text

Make = Callable[..., Lab]
Open = Callable[..., AbstractAsyncContextManager[Talk]]


@pytest.fixture(params=REASONERS)
def reasoner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    return str(request.param)


@pytest.fixture
def talk(reasoner: str, tmp_path: Path) -> Open:
    return lambda **settings: open_talk(reasoner, tmp_path / "data", **settings)


@pytest.fixture
def little_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo data on Microsoft lack its stock."""
    whole = demo.load_companies()
    microsoft = whole["microsoft"].model_copy(update={"stock_info": (), "recent_news": ()})
    monkeypatch.setattr(demo, "load_companies", lambda: {**whole, "microsoft": microsoft})


# C-01


@pytest.mark.requirement("C-01")
def test_the_four_roles_are_nodes_of_the_graph_in_their_order() -> None:
    graph = build_graph().get_graph()
    edges = {(edge.source, edge.target) for edge in graph.edges}

    assert {"understand", "dispatch", "search", "read", "analyse", "write"} <= set(graph.nodes)
    assert ("__start__", "understand") in edges
    assert {("understand", "clarify"), ("clarify", "understand")} <= edges
    assert {("consolidate", "analyse"), ("consolidate", "verify"), ("analyse", "dispatch")} <= edges
    assert ("clarify", "dispatch") not in edges
    assert ("clarify", "plan") not in edges


@pytest.mark.requirement("C-01")
async def test_which_role_is_at_work_can_be_read_from_the_state_at_every_step(lab: Make, little_known: None) -> None:
    here = lab()

    outcome = await here.ask("Tell me about Microsoft", depth="quick")

    config: Any = {"configurable": {"thread_id": outcome.run.thread}}
    kept = [kept.checkpoint["channel_values"] async for kept in here.checkpointer.alist(config)]
    agents = [str(values["current_agent"]) for values in reversed(kept) if "current_agent" in values]
    roles = [agent for agent in agents if agent in ("understand", "research", "validator", "synthesis")]
    assert list(dict.fromkeys(roles)) == ["understand", "research", "validator", "synthesis"]
    assert roles[-1] == "synthesis"
    entered = [event.stage for event in await here.log(outcome.run.id) if event.kind == "enter"]
    firsts = [entered.index(stage) for stage in ("understand", "search", "read", "analyse", "write")]
    assert firsts == sorted(firsts)


# C-03


@pytest.mark.slow
@pytest.mark.requirement("C-03")
async def test_a_new_question_starts_with_nothing_of_the_last_but_what_was_said(talk: Open) -> None:
    async with talk() as here:
        await here.say("Tell me about the company")
        await here.say("Zorblax Industries")
        before = await here.state()
        assert before["clarification_attempts"] == 1
        assert before["validation_result"] == "insufficient"

        await here.say("What's happening with Apple?")

        after = await here.state()
        assert (after["clarification_attempts"], after["clarification_question"], after["clarified"]) == (0, None, [])
        assert (after["validation_result"], after["validation_feedback"]) == ("pending", "")
        assert (after["research_attempts"], after["round"], after["confidence"]) == (1, 1, 10)
        assert after["original_query"] == "What's happening with Apple?"
        assert after["final_summary"] != before["final_summary"]
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["subject"] == "Apple"


# C-04

ACME = make_document(
    "Acme Corp makes anvils in the town of Ostrey. Acme Corp was founded by two brothers.",
    title="Acme Corp", url="https://anvils.example/acme",
)  # fmt: skip


class Assessing(FakeSource):
    """A source that says how complete its data are: one figure an attempt."""

    figures: list[float]

    def confidence(self, subject: str) -> float | None:
        return self.figures.pop(0) if len(self.figures) > 1 else self.figures[0]


@pytest.mark.requirement("C-04")
@pytest.mark.parametrize(
    ("confidence", "sufficient", "way"),
    [
        ([1.0], [], "research write"),
        ([0.6], [], "research write"),
        ([0.59], [True], "research validate write"),
        ([0.0], [True], "research validate write"),
        ([0.3, 0.6], [False], "research validate research write"),
        ([0.3, 0.3], [False, True], "research validate research validate write"),
        # After the last attempt the validator cannot have anything looked for: what is counted says how it ended.
        ([0.3, 0.3, 0.3], [False] * 2, "research validate research validate research write"),
        ([0.3, 0.3, 0.8], [False, False, True], "research validate research validate research write"),
    ],
)
async def test_confidence_and_the_validator_decide_the_way(
    lab: Make, confidence: list[float], sufficient: list[bool], way: str
) -> None:
    async def analyse(real: Any, request: Any) -> Analysis:
        made: Analysis = await real(request)
        enough = sufficient[len(asked)]
        asked.append(f"acme corp attempt {len(asked) + 2}")
        gaps = () if enough else (Gap(section=request.plan.sections[0], severity="major", question="Q1"),)
        feedback = "" if enough else f"Missing: {asked[-1]}."
        refined = {} if enough else {"Q1": (asked[-1],)}
        return made.model_copy(update={"gaps": gaps, "refinements": refined, "feedback": feedback, "confidence": 0.9})

    asked: list[str] = []
    here = lab(analyse=analyse)
    source = Assessing(here.documents, [ACME])
    source.figures = list(confidence)
    here.sources = [source]

    outcome = await here.ask("What's happening with Acme Corp?", depth="quick")

    names = {"dispatch": "research", "analyse": "validate", "write": "write"}
    entered = [event.stage for event in await here.log(outcome.run.id) if event.kind == "enter"]
    assert " ".join(names[stage] for stage in entered if stage in names) == way
    state = await here.state(outcome)
    assert state["research_attempts"] == way.split().count("research")
    assert outcome.report is not None
    retried = [query for query in outcome.report.provenance.queries if "attempt" in query]
    assert retried == asked[: way.split().count("research") - 1]
    if sufficient:
        assert state["validation_result"] == ("sufficient" if sufficient[-1] else "insufficient")
    else:
        assert state["validation_result"] == "pending"


@pytest.mark.requirement("C-04")
async def test_a_question_that_is_not_clear_is_never_researched(talk: Open) -> None:
    async with talk() as here:
        asked = await here.say("Tell me about the company")

        assert asked.run.status is RunStatus.WAITING
        assert await here.way() == ["understand", "clarify"]
        state = await here.state()
        assert (state["research_attempts"], state["plan"]) == (0, None)


# C-05


@pytest.mark.requirement("C-05", "C-06")
async def test_an_answer_may_be_another_question(talk: Open) -> None:
    async with talk() as here:
        await here.say("Tell me about the company")

        outcome = await here.say("Actually, what's happening with Tesla?")

        assert (await here.state())["subject"] == "Tesla"
        assert "Tesla" in text(outcome)


@pytest.mark.requirement("C-05", "C-06")
async def test_an_answer_may_call_it_all_off(talk: Open) -> None:
    async with talk() as here:
        await here.say("Tell me about the company")

        outcome = await here.say("never mind")

        assert outcome.report is not None
        assert outcome.report.status == "cancelled"
        assert await here.way() == ["understand", "clarify", "understand", "publish"]


@pytest.mark.slow
@pytest.mark.requirement("C-05")
async def test_a_best_guess_takes_the_company_the_conversation_is_about_and_says_so(talk: Open) -> None:
    async with talk(max_clarifications=1) as here:
        await here.say("What's happening with Apple?")
        asked = await here.say("")
        assert len(asked.questions) == 1

        outcome = await here.say("hm, that thing")

        assert outcome.questions == ()
        assert outcome.report is not None
        assert "Apple" in outcome.report.question
        [notice] = [notice for notice in outcome.report.notices if "was not clear" in notice]
        assert "Apple" in notice
        assert "was not clear" in outcome.report.markdown


# C-06


@pytest.mark.slow
@pytest.mark.requirement("C-06")
@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ("What's happening with Tesla?", "Tesla"),
        ("tell me about tesla", "Tesla"),
        ("Tell me about the electric car company", "Tesla"),
        ("How is TSLA doing?", "Tesla"),
        ("What about their stock?", "Apple"),
        ("And how do they make money?", "Apple"),
        ("Tell me more", "Apple"),
        ("Actually, tell me about Microsoft instead", "Microsoft"),
    ],
)
async def test_what_a_message_is_about(talk: Open, message: str, subject: str) -> None:
    async with talk() as here:
        await here.say("What's happening with Apple?")

        outcome = await here.say(message)

        assert outcome.questions == ()
        assert (await here.state())["subject"] == subject
        assert subject in text(outcome)


@pytest.mark.slow
@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("message", ["What about their stock?", "Tell me more", "Compare them to Apple"])
async def test_what_leans_on_nothing_is_asked_back(talk: Open, message: str) -> None:
    async with talk() as here:
        asked = await here.say(message)

        assert len(asked.questions) == 1
        assert (await here.state())["clarity_status"] == "needs_clarification"


@pytest.mark.slow
@pytest.mark.requirement("C-06")
@pytest.mark.parametrize("message", ["Nevermind", "Forget it!", "Thanks!"])
async def test_what_is_no_question_is_answered_kindly_and_changes_no_subject(talk: Open, message: str) -> None:
    async with talk() as here:
        await here.say("What's happening with Apple?")
        calls = len(here.provider.calls)

        outcome = await here.say(message)

        assert await here.way() == ["understand", "publish"]
        assert outcome.report is not None
        assert (outcome.report.status, outcome.report.sources) == ("cancelled", ())
        assert (await here.state())["subject"] == "Apple"
        if message != "Thanks!":
            assert len(here.provider.calls) == calls


# C-09


@pytest.mark.slow
@pytest.mark.requirement("C-09")
async def test_the_validator_names_what_is_missing_and_the_retry_asks_for_it(talk: Open, little_known: None) -> None:
    async with talk() as here:
        outcome = await here.say("Tell me about Microsoft")

        feedback = (await here.state())["validation_feedback"]
        assert outcome.report is not None
        queries = [query.lower() for query in outcome.report.provenance.queries]
        for missing in ("recent news", "stock price and revenue"):
            assert missing in feedback
            assert any("microsoft" in query and missing in query for query in queries), missing
        assert "key developments" not in feedback


@pytest.mark.requirement("C-09")
@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("How large is Lake Marrow?", "figures"),
        ("When was Lake Marrow surveyed?", "date"),
        ("Why is Lake Marrow frozen?", "reason"),
        ("Is Lake Marrow known for its pelicans?", "pelicans"),
    ],
)
async def test_what_is_missing_of_any_question_is_named_by_the_embedded_reasoner(
    lab: Make, question: str, missing: str
) -> None:
    async def read(real: Any, request: Any) -> Any:
        return [quote.model_copy(update={"relevance": 0.1}) for quote in await real(request)]

    here = lab(read=read)
    source = here.holds(
        make_document("Lake Marrow is known to fishermen. Lake Marrow was surveyed by boat.", title="A lake")
    )

    outcome = await here.ask(question, depth="quick")

    state = await here.state(outcome)
    assert state["validation_result"] == "insufficient"
    assert missing in state["validation_feedback"].partition("missing: ")[2]
    assert any(missing in query and "marrow" in query for query in source.queries)


@pytest.mark.requirement("C-09")
async def test_what_a_model_finds_missing_is_asked_for(
    little_known: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def analysed(prompt: ModelPrompt) -> dict[str, Any]:
        gap = {"question": 1, "severity": "major", "missing": "the dividend", "query": "Microsoft dividend Zorblax"}
        return {"findings": [], "themes": [], "contradictions": [], "gaps": [gap], "sufficiency": "gaps_major",
                "confidence": 3}  # fmt: skip

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with open_talk("model", tmp_path / "data", model=FakeModel({"Analysis": analysed})) as here:
        outcome = await here.say("Tell me about Microsoft")

        assert "the dividend" in (await here.state())["validation_feedback"]
        assert outcome.report is not None
        assert "Microsoft dividend" in outcome.report.provenance.queries, "without the word that only pages have"


# C-10


@pytest.mark.slow
@pytest.mark.requirement("C-10")
@pytest.mark.parametrize(
    ("confidence", "begins"),
    [
        (0.8, ""),
        (0.7, "Here is what was found about Acme Corp."),
        (0.6, "Here is what was found about Acme Corp."),
        (0.5, "This is based on limited information about Acme Corp."),
    ],
)
async def test_an_answer_begins_as_sure_as_it_is(
    talk: Open, plugin: Callable[..., None], confidence: float, begins: str
) -> None:
    def source(bench: Any) -> Assessing:
        made = Assessing(bench.store, [ACME])
        made.figures = [confidence]
        return made

    plugin("anvils", source)
    async with talk(options={"source": "anvils"}) as here:
        outcome = await here.say("What's happening with Acme Corp?")

        assert (await here.state())["confidence"] == confidence * 10
        assert text(outcome).startswith(begins or "Acme Corp ")
        assert (await here.state())["final_summary"].startswith(begins or "Acme Corp ")


@pytest.mark.slow
@pytest.mark.requirement("C-10")
async def test_what_every_answer_about_a_company_should_have_and_has_not_is_owned_up_to(
    talk: Open, little_known: None
) -> None:
    async with talk() as here:
        outcome = await here.say("Tell me about Microsoft")

        assert outcome.report is not None
        [section] = [section for section in outcome.report.sections if section.role == "not_found"]
        told = " ".join(sentence.text for sentence in section.sentences)
        assert "Recent news" in told
        assert "Financial snapshot" in told
        assert "Overview" not in told


@pytest.mark.slow
@pytest.mark.requirement("C-10")
@pytest.mark.parametrize("company", ["Tesla", "Google"])
async def test_a_company_is_told_by_overview_news_and_finance(talk: Open, company: str) -> None:
    async with talk() as here:
        outcome = await here.say(f"Tell me about {company}")

        assert outcome.report is not None
        bodies = {section.title: section for section in outcome.report.sections if section.role == "body"}
        assert list(bodies) == ["Overview", "Recent news", "Financial snapshot"]
        finance = " ".join(sentence.text for sentence in bodies["Financial snapshot"].sentences)
        assert "trade" in finance or "market capitalisation" in finance


# C-11


@pytest.mark.slow
@pytest.mark.requirement("C-11")
async def test_a_conversation_of_many_turns_never_loses_its_thread(talk: Open) -> None:
    async with talk() as here:
        turns = {}
        for message in ("What's happening with Apple?", "What about their stock?", "Tell me more",
                        "Now tell me about Tesla", "Compare them to Apple"):  # fmt: skip
            turns[message] = text(await here.say(message))
            assert here.outcome is not None
            assert here.outcome.report is not None
            assert here.outcome.report.status == "complete"

        assert "AAPL" in turns["What about their stock?"]
        assert "Apple" in turns["Tell me more"]
        assert "Tesla" not in turns["Tell me more"]
        assert "Apple" not in turns["Now tell me about Tesla"]
        assert "Tesla" in turns["Compare them to Apple"]
        assert "Apple" in turns["Compare them to Apple"]
        state = await here.state()
        assert state["subject"] == "Tesla"
        assert len(state["messages"]) == 10


@pytest.mark.slow
@pytest.mark.requirement("C-11")
async def test_threads_that_take_turns_never_mix(talk: Open) -> None:
    async with talk() as one:
        two = one.another()
        await one.say("What's happening with Apple?")
        await two.say("What's happening with Tesla?")
        first, second = text(await one.say("What about their stock?")), text(await two.say("What about their stock?"))

        assert "AAPL" in first
        assert "Tesla" not in first
        assert "TSLA" in second
        assert "Apple" not in second
        states = [await one.state(), await two.state()]
        assert [(state["subject"], len(state["messages"])) for state in states] == [("Apple", 4), ("Tesla", 4)]


# C-12


@pytest.mark.slow
@pytest.mark.requirement("C-12")
async def test_a_long_conversation_is_condensed_and_a_follow_up_still_knows_its_subject(talk: Open) -> None:
    async with talk() as here:
        await here.say("What's happening with Apple?")
        for _ in range(4):
            await here.say("hello")
        ten = await here.state()
        assert (len(ten["messages"]), ten["conversation_summary"]) == (10, "")

        await here.say("thank you")

        state = await here.state()
        assert [message["content"] for message in state["messages"][:3]] == [
            *(message["content"] for message in ten["messages"][-2:]), "thank you",
        ]  # fmt: skip
        assert len(state["messages"]) == 4
        assert "apple" in state["conversation_summary"].lower()
        outcome = await here.say("What about their stock?")
        assert "AAPL" in text(outcome)
        assert (await here.state())["subject"] == "Apple"
        assert (await here.state())["conversation_summary"] == state["conversation_summary"]


# C-15


@pytest.mark.slow
@pytest.mark.requirement("C-15")
async def test_a_model_that_fails_in_the_middle_of_a_conversation_is_stood_in_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def faults(call: Any) -> Any:
        return FaultAlways("key-rejected")(call) if broken else None

    broken: list[bool] = []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with open_talk("model", tmp_path / "data", faults=faults) as here:
        await here.say("What's happening with Apple?")
        broken.append(True)

        outcome = await here.say("What about their stock?")

        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert "AAPL" in text(outcome)
        assert any("embedded reasoner" in notice for notice in outcome.report.notices)


@pytest.mark.requirement("C-15")
@pytest.mark.parametrize(("field", "value"), [("clarification_attempts", "many"), ("clarified", "Apple")])
async def test_what_was_spoiled_while_a_question_was_open_is_reset_and_said_to_be(
    lab: Make, field: str, value: object
) -> None:
    here = lab()
    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)
    config: Any = {"configurable": {"thread_id": asked.run.thread}}
    await build_graph(here.checkpointer).aupdate_state(config, {field: value}, as_node="clarify")

    run = await here.engine.resume(asked.run.thread)
    outcome = await here.settled(run.id)

    assert outcome.run.status in (RunStatus.WAITING, RunStatus.DONE), outcome.run.error
    assert any("could not be read" in str(event.data.get("text")) for event in await here.log(run.id))


@pytest.mark.slow
@pytest.mark.requirement("C-15")
@pytest.mark.parametrize("name", ["debug", "info", "warning", "error"])
async def test_the_log_is_as_loud_as_it_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv("OPENASSAY_LOG_LEVEL", name)

    async with open_engine(load(data_dir=tmp_path / "data")):
        log = logging.getLogger("openassay")
        level = logging.getLevelNamesMapping()[name.upper()]
        assert log.isEnabledFor(level)
        assert not log.isEnabledFor(level - 1)
