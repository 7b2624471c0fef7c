"""When somebody can answer, a run may ask: what was meant, how to plan, whether to go on."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.engine import RunOutcome
from openassay.errors import AnswerError, ThreadBusyError
from openassay.models.event import RunStatus
from openassay.models.evidence import Hit
from openassay.models.plan import Depth, Mode
from openassay.models.report import Critique, Issue
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]


def everything(outcome: RunOutcome) -> str:
    assert outcome.report is not None, outcome.run.error
    return " ".join(s.text for section in outcome.report.sections for s in section.sentences)


# Clarification


@pytest.mark.requirement("C-02", "F-02")
async def test_an_unclear_question_is_asked_back_and_understood_with_its_answer(lab: Make) -> None:
    here = lab()

    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)

    assert asked.run.status is RunStatus.WAITING
    assert asked.report is None
    [question] = asked.questions
    assert (question.kind, question.question) == ("clarification", "Which company do you mean?")
    state = await here.state(asked)
    assert (state["clarity_status"], state["clarification_question"]) == ("needs_clarification", question.question)
    assert state["plan"] is None
    answered = await here.answer(asked, "Tesla")
    assert answered.run.status is RunStatus.DONE
    assert "Tesla" in everything(answered)
    state = await here.state(answered)
    assert (state["clarity_status"], state["clarification_attempts"], state["subject"]) == ("clear", 1, "Tesla")
    assert [name for name, _ in here.reasoner.calls].count("understand") == 2  # never straight to research


@pytest.mark.parametrize("late", [True, False], ids=["after the run ended", "under another id"])
async def test_an_answer_to_what_is_not_open_is_refused_and_changes_nothing(lab: Make, late: bool) -> None:
    here = lab()
    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)
    [question] = asked.questions
    now = await here.answer(asked, "Tesla") if late else asked
    before = await here.state(now)

    with pytest.raises(AnswerError, match=r"answered already, on .* UTC, by a person" if late else "not open"):
        await here.engine.interrupts.answer(asked.run.thread, question.id if late else "no-such-id", "Apple")

    assert await here.state(now) == before
    assert (await here.engine.outcome(now.run.id)).run == now.run


@pytest.mark.slow
@pytest.mark.parametrize("nothing", ["", "   \n ", None, 7, "x" * 2001])
async def test_an_answer_that_says_nothing_leaves_the_question_open(lab: Make, nothing: object) -> None:
    here = lab()
    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)

    with pytest.raises(AnswerError, match="empty or too long"):
        await here.answer(asked, nothing)

    again = await here.engine.outcome(asked.run.id)
    assert again.questions == asked.questions
    assert again.run.status is RunStatus.WAITING
    assert "Tesla" in everything(await here.answer(again, "Tesla"))


async def test_of_two_answers_at_once_one_is_taken_and_one_refused(tmp_path: Path) -> None:
    """On the real store, where each answer has to wait for the disk before it can be taken."""
    async with open_engine(load(data_dir=tmp_path / "data")) as engine:
        run = await engine.start("Tell me about the company", ResearchOptions(depth=Depth.QUICK, interactive=True))
        [question] = (await engine.wait(run.id)).questions

        both = await asyncio.gather(
            *(engine.interrupts.answer(run.thread, question.id, name) for name in ("Tesla", "Apple")),
            return_exceptions=True,
        )

        assert sorted(type(result).__name__ for result in both) == ["LateAnswerError", "Run"]
        outcome = await engine.wait(run.id)
        assert outcome.run.status is RunStatus.DONE
        log = [event async for event in engine.events(run.id)]
        assert sum(event.kind == "enter" and event.stage == "plan" for event in log) == 1


async def test_a_thread_that_waits_takes_no_other_question(lab: Make) -> None:
    here = lab()
    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)

    with pytest.raises(ThreadBusyError):
        await here.ask("What's happening with Apple?", depth="quick", thread=asked.run.thread)

    assert (await here.engine.outcome(asked.run.id)).questions == asked.questions


@pytest.mark.requirement("C-02")
async def test_after_two_clarifications_the_best_guess_is_taken_and_said(lab: Make) -> None:
    here = lab()
    outcome = await here.ask("Tell me about the company", depth="quick", interactive=True)
    asked = 0
    while outcome.questions:
        asked += 1
        assert asked <= 2
        outcome = await here.answer(outcome, "the company")

    assert asked == 2
    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert any("was not clear" in notice for notice in outcome.report.notices)


@pytest.mark.requirement("C-05")
async def test_who_has_nothing_to_say_to_it_is_not_asked_again(lab: Make) -> None:
    here = lab()
    asked = await here.ask("Tell me about the company", depth="quick", interactive=True)

    outcome = await here.answer(asked, "no idea")

    assert outcome.report is not None
    assert any("was not clear" in notice for notice in outcome.report.notices)
    assert not any("no idea" in notice for notice in outcome.report.notices)


@pytest.mark.parametrize("limit", [0, 1])
async def test_how_often_may_be_asked_is_a_setting(lab: Make, limit: int) -> None:
    here = lab(settings={"max_clarifications": limit})
    outcome = await here.ask("Tell me about the company", depth="quick", interactive=True)
    for _ in range(limit):
        outcome = await here.answer(outcome, "the company")

    assert outcome.run.status is RunStatus.DONE


async def test_somebody_who_cannot_answer_is_never_asked(lab: Make) -> None:
    here = lab(settings={"hitl_after_planning": True, "hitl_before_output": True})

    outcome = await here.ask("Tell me about the company", depth="quick", interactive=False)

    assert outcome.run.status is RunStatus.DONE
    assert outcome.report is not None
    assert any("was not clear" in notice for notice in outcome.report.notices)


@pytest.mark.parametrize("message", ["nevermind", "Never mind!", "cancel that", "forget it."])
async def test_a_cancellation_is_friendly_and_searches_nothing(lab: Make, message: str) -> None:
    here = lab()
    source = here.holds(*LAKE)

    outcome = await here.ask(message, interactive=True)

    assert outcome.report is not None
    assert outcome.report.status == "cancelled"
    assert outcome.report.spend.usd == outcome.report.spend.requests == 0
    assert source.queries == []
    assert "Ask whenever you like" in everything(outcome)


# Plan mode


async def test_plan_mode_asks_one_by_one_and_the_plan_follows_the_answers(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION, depth="quick", mode="plan", interactive=True)

    total = outcome.questions[0].shown["of"]
    assert 1 <= total <= 4
    texts: list[str] = []
    while outcome.questions:
        [question] = outcome.questions
        texts.append(question.question)
        assert (question.kind, question.shown["number"]) == ("planning", len(texts))
        assert question.options[-1] == "Custom"
        assert len(question.options) in (5, 6)
        assert len(source.queries) == 1  # the gate's preview; nothing is researched before the last answer
        outcome = await here.answer(outcome, f"my answer {len(texts)}")
    assert len(texts) == len(set(texts)) == total
    assert all("Lake Marrow" in text for text in texts)
    assert outcome.report is not None
    assert outcome.report.plan is not None
    assert [line.partition(": ")[2] for line in outcome.report.plan.constraints] == [
        f"my answer {n}" for n in range(1, total + 1)
    ]


async def test_answers_change_what_is_searched_and_how_long_the_report_is(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)
    outcome = await here.ask(QUESTION, mode="plan", interactive=True)
    given = {
        "scope": "the ferry",
        "timeframe": "since 2018",
        "use": "A paper or a thesis",
        "depth": "A one-page answer",
    }
    while outcome.questions:
        outcome = await here.answer(outcome, given[outcome.questions[0].shown["id"]])

    assert outcome.report is not None
    assert outcome.report.plan is not None
    assert any("ferry" in question.text for question in outcome.report.plan.questions)
    assert any("ferry" in query and "2018" in query for query in source.queries[1:])
    assert "60 passengers" in everything(outcome)
    assert all("since 2018" in question.in_context for question in outcome.report.plan.questions)
    [[request]] = [arguments for name, arguments in here.reasoner.calls if name == "critique"]
    assert outcome.report.plan.words == request.words == 350


@pytest.mark.requirement("C-06", "W-02")
async def test_a_planning_question_can_be_answered_by_calling_it_all_off(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)
    asked = await here.ask(QUESTION, mode="plan", interactive=True)

    outcome = await here.answer(asked, "Never mind.")

    assert outcome.report is not None
    assert outcome.report.status == "cancelled"
    assert len(source.queries) == 1  # the gate's preview


@pytest.mark.slow
@pytest.mark.requirement("W-02")
@pytest.mark.parametrize("text", ["It doesn't matter", "None of the above"])
async def test_who_has_no_preference_is_asked_the_next_and_nothing_follows_from_it(lab: Make, text: str) -> None:
    here = lab()
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, mode="plan", interactive=True)
    total = asked.questions[0].shown["of"]

    outcome = await here.answer(asked, text)

    assert (outcome.questions[0].shown["number"], outcome.questions[0].shown["of"]) == (2, total)
    while outcome.questions:
        assert outcome.questions[0].question != asked.questions[0].question
        outcome = await here.answer(outcome, text)
    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert outcome.report.plan is not None
    assert outcome.report.plan.constraints == ()
    state = await here.state(outcome)
    assert [one["left_open"] for one in state["planner_questions"]] == [True] * total
    assert state["planner_answers"] == {}


@pytest.mark.requirement("W-01")
@pytest.mark.parametrize("said", ["in the settings", "for the thread"])
async def test_plan_mode_does_not_wait_for_somebody_who_is_not_there(lab: Make, said: str) -> None:
    here = lab(settings={"mode": "plan"} if said == "in the settings" else {})
    here.holds(*LAKE)
    thread = None
    if said == "for the thread":
        thread = (await here.ask(QUESTION, depth="quick")).run.thread
        await here.engine.interrupts.set_mode(thread, Mode.PLAN)

    outcome = await here.ask("How many passengers does the ferry on Lake Marrow carry?", depth="quick", thread=thread)

    told = "Plan mode was asked for, but nobody could answer: the plan was made with defaults."
    assert outcome.run.status is RunStatus.DONE
    assert outcome.report is not None
    assert told in outcome.report.notices
    events = await here.log(outcome.run.id)
    assert [event.stage for event in events if event.data.get("text") == told] == ["gate"]
    assert (await here.state(outcome))["gate"]["mode"] == "auto"


@pytest.mark.requirement("W-01")
async def test_plan_mode_asked_for_with_the_question_waits_for_whoever_comes(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION, depth="quick", mode="plan", interactive=False)

    assert [question.kind for question in outcome.questions] == ["planning"]


@pytest.mark.requirement("C-07")
async def test_a_source_that_breaks_while_the_gate_looks_does_not_end_the_run(lab: Make) -> None:
    class Broken:
        name = "broken"

        def is_available(self) -> bool:
            return True

        async def search(self, query: str, *, limit: int) -> list[Hit]:
            raise RuntimeError("a bug of its own")

    here = lab()
    here.sources = [Broken(), here.holds(*LAKE)]

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None, outcome.run.error
    assert outcome.report.status == "complete"
    errors = [event.data for event in await here.log(outcome.run.id) if (event.kind, event.stage) == ("error", "gate")]
    assert [(data["source"], data["message"]) for data in errors] == [("broken", "broken failed: RuntimeError")]


@pytest.mark.requirement("W-02")
@pytest.mark.parametrize("said", ["How is Tesla doing?", "all of the above", "Custom"])
async def test_what_answers_no_planning_question_is_refused(lab: Make, said: str) -> None:
    here = lab()
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, mode="plan", interactive=True)
    while asked.questions[0].shown["id"] != "timeframe":
        asked = await here.answer(asked, "any")

    with pytest.raises(AnswerError):
        await here.answer(asked, said)

    assert (await here.engine.outcome(asked.run.id)).questions == asked.questions


# Breakpoints


async def test_a_rejected_plan_ends_without_research_and_says_so(lab: Make) -> None:
    here = lab(settings={"hitl_after_planning": True})
    source = here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)
    [question] = asked.questions

    outcome = await here.answer(asked, "reject")

    assert question.kind == "approve_plan"
    assert len(question.shown["plan"]["questions"]) >= 3
    assert len(source.queries) == 1
    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert "rejected" in everything(outcome)
    assert "no source had an answer" not in everything(outcome)


async def test_an_approved_plan_is_researched(lab: Make) -> None:
    here = lab(settings={"hitl_after_planning": True})
    here.holds(*LAKE)

    outcome = await here.answer(await here.ask(QUESTION, interactive=True), "Approve ")

    assert outcome.report is not None
    assert outcome.report.status == "complete"


async def test_a_modified_plan_is_the_one_that_is_carried_out(lab: Make) -> None:
    here = lab(settings={"hitl_after_planning": True, "query_variations": 1})
    source = here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)
    plan = asked.questions[0].shown["plan"]
    plan["queries"][0]["text"] = "ferry passengers"

    outcome = await here.answer(asked, {"decision": "modify", "plan": plan})

    assert outcome.report is not None
    assert "ferry passengers" in source.queries


@pytest.mark.slow
@pytest.mark.requirement("F-02")
@pytest.mark.parametrize(
    "change",
    [
        "modify",
        {"decision": "modify"},
        {"decision": "modify", "plan": {"goal": "x"}},
        {"decision": "Maybe"},
        {"decision": "modify", "edits": [{"op": "explode"}]},
        {"decision": "approve", "plans": {}},
        7,
        None,
        [],
        "",
    ],
    ids=range(10),
)
async def test_a_plan_that_is_none_is_refused_and_the_question_stays_open(lab: Make, change: object) -> None:
    here = lab(settings={"hitl_after_planning": True})
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)

    with pytest.raises(AnswerError):
        await here.answer(asked, change)

    assert (await here.engine.outcome(asked.run.id)).questions == asked.questions


@pytest.mark.slow
@pytest.mark.parametrize("decision", ["reject", {"decision": "reject"}, {"decision": " Reject"}])
async def test_a_rejected_report_comes_as_a_partial_one(lab: Make, decision: object) -> None:
    here = lab(settings={"hitl_before_output": True})
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)
    [question] = asked.questions

    outcome = await here.answer(asked, decision)

    assert question.kind == "approve_output"
    assert question.shown["draft"]["sections"]
    assert outcome.report is not None
    assert (outcome.report.status, outcome.report.confidence) == ("partial", "low")
    assert "It was rejected at a review." in everything(outcome)
    assert "The last review did not approve it." not in everything(outcome)  # a person did not; the review had


async def test_an_approved_report_is_complete(lab: Make) -> None:
    here = lab(settings={"hitl_before_output": True})
    here.holds(*LAKE)

    outcome = await here.answer(await here.ask(QUESTION, interactive=True), {"decision": "approve"})

    assert outcome.report is not None
    assert outcome.report.status == "complete"


@pytest.mark.parametrize(("decision", "status"), [("approve", "complete"), ("reject", "partial")])
async def test_a_critical_issue_can_be_put_to_a_person(lab: Make, decision: str, status: str) -> None:
    def critique(real: Any, request: Any) -> Critique:
        issue = Issue(category="accuracy", severity="critical", location="all", description="doubtful")
        return Critique(scores={}, score=4.0, issues=(issue,), recommendation="reject")

    here = lab(settings={"breakpoints": {"on_critical": True}}, critique=critique)
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)

    outcome = await here.answer(asked, decision)

    assert asked.questions[0].shown["issues"][0]["description"] == "doubtful"
    assert outcome.report is not None
    assert outcome.report.status == status


async def test_a_harvest_can_be_approved_or_refused(lab: Make) -> None:
    here = lab(settings={"breakpoints": {"before_harvest": True}})
    here.holds(*LAKE)
    asked = await here.ask("How large is Lake Marrow?", depth="quick", interactive=True)

    outcome = await here.answer(asked, "reject")

    assert asked.questions[0].shown["passages"] > 0
    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert "read" not in [name for name, _ in here.reasoner.calls]
