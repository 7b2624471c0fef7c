"""Breakpoints: where a run stops for a person, what can be decided, and what happens when nobody does."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from assay.admission import validated
from assay.engine import Outcome
from assay.errors import AnswerError, ConfigurationError, PathError
from assay.model.event import RunStatus
from assay.model.report import Critique, Issue
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

pytestmark = pytest.mark.requirement("F-09")
Make = Callable[..., Lab]
PLAN = {"hitl_after_planning": True}
OUTPUT = {"hitl_before_output": True}


def everything(outcome: Outcome) -> str:
    assert outcome.report is not None, outcome.run.error
    return " ".join(s.text for section in outcome.report.sections for s in section.sentences)


def criticised(severity: str, score: float, recommendation: str) -> Callable[..., Critique]:
    def critique(real: Any, request: Any) -> Critique:
        issue = Issue(category="accuracy", severity=severity, location="all", description="doubtful")  # type: ignore[arg-type]
        return Critique(scores={}, score=score, issues=(issue,), recommendation=recommendation)  # type: ignore[arg-type]

    return critique


async def asked(lab: Make, settings: dict[str, Any], **script: Any) -> tuple[Lab, Outcome]:
    here = lab(settings=settings, **script)
    here.holds(*LAKE)
    return here, await here.ask(QUESTION, interactive=True)


# What can be decided


async def test_a_plan_is_edited_before_it_is_approved(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)
    edits = [
        {"op": "add", "text": "How many passengers does the ferry take?", "section": "The ferry"},
        {"op": "remove", "question": "Q2"},
        {"op": "budget", "usd": 0.5},
    ]

    outcome = await here.answer(waiting, {"decision": "modify", "edits": edits})

    assert outcome.report is not None
    assert outcome.report.plan is not None
    texts = [question.text for question in outcome.report.plan.questions]
    assert "How many passengers does the ferry take?" in texts
    assert "Q2" not in [question.id for question in outcome.report.plan.questions]
    assert "The ferry" in outcome.report.plan.sections
    assert "60 passengers" in everything(outcome)
    assert (await here.threads.run(outcome.run.id)).options["usd"] == 0.5


async def test_edits_name_sources_that_exist_or_the_question_stays_open(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)
    here.engine._sources = lambda options: (
        (_ for _ in ()).throw(ConfigurationError("unknown source 'nowhere'"))
        if "nowhere" in options.source
        else (here.sources, {})
    )

    with pytest.raises(AnswerError, match="nowhere"):
        await here.answer(waiting, {"decision": "modify", "edits": [{"op": "sources", "names": ["nowhere"]}]})

    assert (await here.engine.outcome(waiting.run.id)).questions == waiting.questions


@pytest.mark.parametrize("decision", ["approve", "skip"])
async def test_approving_and_skipping_go_on(lab: Make, decision: str) -> None:
    here, waiting = await asked(lab, PLAN)

    outcome = await here.answer(waiting, decision)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert (await here.state(outcome))["approvals"]["plan"]["decision"] == decision


async def test_who_rejects_can_say_why_and_the_report_tells(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)

    outcome = await here.answer(waiting, {"decision": "reject", "comment": "Too narrow."})

    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert any("Too narrow." in notice for notice in outcome.report.notices)


async def test_a_report_goes_back_to_the_writer_with_what_is_to_be_changed(lab: Make) -> None:
    here, waiting = await asked(lab, OUTPUT)

    again = await here.answer(waiting, {"decision": "modify", "fixes": ["Say more about the ferry."]})

    assert again.questions[0].kind == "approve_output"
    assert again.questions[0].id != waiting.questions[0].id
    requests = [arguments[0] for name, arguments in here.reasoner.calls if name == "write"]
    assert requests[-1].fixes == ("Say more about the ferry.",)
    assert (await here.answer(again, "approve")).report is not None


async def test_sections_are_struck_out_and_the_title_changed(lab: Make) -> None:
    here, waiting = await asked(lab, OUTPUT)
    titles = [section["title"] for section in waiting.questions[0].shown["draft"]["sections"]]

    outcome = await here.answer(waiting, {"decision": "modify", "drop": [titles[1]], "title": "On Lake Marrow"})

    assert outcome.report is not None
    assert outcome.report.title == "On Lake Marrow"
    assert titles[1] not in [section.title for section in outcome.report.sections]
    assert titles[0] in [section.title for section in outcome.report.sections]


async def test_claims_are_struck_out_before_anything_is_written(lab: Make) -> None:
    mine = {"name": "look", "at": "claims"}
    here, waiting = await asked(lab, {"breakpoints": {"custom": [mine]}})
    claims = waiting.questions[0].shown["claims"]
    supported = [claim for claim in claims if claim["verdict"] == "supported"]

    outcome = await here.answer(waiting, {"decision": "modify", "drop": [supported[0]["id"]]})

    assert outcome.report is not None
    assert supported[0]["id"] not in [claim.id for claim in outcome.report.claims]
    assert supported[0]["text"] not in everything(outcome)
    assert "A person left 1 statements out at a review." in outcome.report.notices


# A critical issue


@pytest.mark.parametrize(("decision", "status"), [("approve", "complete"), ("reject", "partial"), ("skip", "partial")])
async def test_a_critical_issue_is_overruled_confirmed_or_left_to_the_review(
    lab: Make, decision: str, status: str
) -> None:
    settings = {"breakpoints": {"on_critical": True}, "max_iterations": 1}
    here, waiting = await asked(lab, settings, critique=criticised("critical", 4.0, "reject"))

    outcome = await here.answer(waiting, decision)

    assert waiting.questions[0].kind == "approve_review"
    assert outcome.report is not None
    assert outcome.report.status == status


async def test_who_overrules_a_critical_issue_still_approves_the_output(lab: Make) -> None:
    settings = {"breakpoints": {"on_critical": True}, **OUTPUT}
    here, waiting = await asked(lab, settings, critique=criticised("critical", 4.0, "reject"))

    again = await here.answer(waiting, "approve")

    assert [question.kind for question in again.questions] == ["approve_output"]


# Before an expensive harvest


@pytest.mark.requirement("W-06")
@pytest.mark.parametrize(("pages", "asks"), [(0, True), (1, False)])
async def test_only_a_harvest_that_is_large_enough_is_asked_about(lab: Make, pages: int, asks: bool) -> None:
    _, outcome = await asked(lab, {"breakpoints": {"before_harvest": True, "harvest_pages": pages}})

    assert bool(outcome.questions) is asks
    if asks:
        [question] = outcome.questions
        assert question.kind == "approve_harvest"
        assert f"Read {question.shown['passages']} passages, about $0.00?" == question.question


# Breakpoints of one's own


async def test_a_condition_decides_and_the_reviewer_sees_what_was_named(lab: Make) -> None:
    mine = {
        "name": "weak", "at": "review", "when": {"field": "critique.score", "operator": "<", "value": 9.9},
        "shows": ["critique.score", "draft.title"], "question": "Good enough?", "timeout": 60,
    }  # fmt: skip
    here, waiting = await asked(lab, {"breakpoints": {"custom": [mine]}}, critique=criticised("minor", 8.0, "approve"))

    [question] = waiting.questions
    assert (question.kind, question.question, question.shown["breakpoint"]) == (
        "approve_review",
        "Good enough?",
        "weak",
    )
    assert {"critique.score", "draft.title"} < set(question.shown)
    assert question.due is not None
    assert question.asked is not None
    assert question.due - question.asked == timedelta(seconds=60)
    outcome = await here.answer(waiting, "approve")
    assert outcome.report is not None
    assert outcome.report.status == "complete"


async def test_a_condition_that_is_not_met_does_not_stop_anything(lab: Make) -> None:
    mine = {"name": "many", "at": "plan", "when": {"field": "plan.questions", "operator": ">", "value": 7}}
    _, outcome = await asked(lab, {"breakpoints": {"custom": [mine]}})

    assert outcome.run.status is RunStatus.DONE


async def test_several_at_one_place_are_asked_one_after_the_other(lab: Make) -> None:
    mine = [{"name": name, "at": "plan", "question": f"{name}?"} for name in ("first", "second")]
    here, waiting = await asked(lab, {"breakpoints": {"custom": mine}, **PLAN})

    texts = []
    while waiting.questions:
        texts.append(waiting.questions[0].question)
        waiting = await here.answer(waiting, "approve")

    assert texts == ["Is this plan what you want?", "first?", "second?"]
    assert waiting.report is not None
    assert waiting.report.status == "complete"


# Nobody answers


@pytest.mark.parametrize(
    ("auto", "status", "told"),
    [(True, "complete", "it was approved automatically"), (False, "no_data", "so the research ended there")],
)
async def test_when_time_is_up_the_timer_decides(lab: Make, auto: bool, status: str, told: str) -> None:
    here, waiting = await asked(lab, {**PLAN, "breakpoints": {"plan_auto_approve": auto}})
    assert await here.engine.settle_overdue() == []  # there is time
    here.ahead = timedelta(seconds=1801)

    [run] = await here.engine.settle_overdue()

    outcome = await here.settled(run.id)
    assert outcome.report is not None
    assert outcome.report.status == status
    assert any(told in notice for notice in outcome.report.notices)
    assert await here.engine.reviews() == []
    with pytest.raises(AnswerError, match="by the timer"):
        await here.engine.answer(run.thread, waiting.questions[0].id, "reject")


async def test_a_late_answer_is_refused_even_before_the_timer_has_come_round(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)
    before = await here.state(waiting)
    here.ahead = timedelta(hours=1)

    with pytest.raises(AnswerError, match="the time for an answer ended"):
        await here.answer(waiting, "approve")

    assert await here.state(waiting) == before
    outcome = await here.settled((await here.engine.resume(waiting.run.thread)).id)  # which lets the timer speak
    assert outcome.report is not None
    assert outcome.report.status == "no_data"


async def test_the_timer_runs_by_itself_where_somebody_keeps_it(lab: Make) -> None:
    here, waiting = await asked(lab, {**PLAN, "breakpoints": {"plan_timeout": 1, "plan_auto_approve": True}})
    keeper = asyncio.create_task(here.engine.keep_time())
    try:
        async with asyncio.timeout(20):
            while (await here.engine.wait(waiting.run.id)).run.status is not RunStatus.DONE:  # noqa: ASYNC110
                await asyncio.sleep(0.05)  # nothing says when somebody else's timer strikes
    finally:
        keeper.cancel()


async def test_clarifications_and_planning_questions_can_have_an_end_too(lab: Make) -> None:
    here = lab(settings={"breakpoints": {"question_timeout": 60}})
    waiting = await here.ask("Tell me about the company", depth="quick", interactive=True)
    here.ahead = timedelta(seconds=61)

    [run] = await here.engine.settle_overdue()

    outcome = await here.settled(run.id)
    assert waiting.questions[0].on_timeout == "guess"
    assert outcome.report is not None
    assert any("was not clear" in notice for notice in outcome.report.notices)


# Answers of the wrong kind


@pytest.mark.parametrize(
    "value",
    [
        None, 7, [], {}, "", "maybe", "x" * 1_000_000, {"decision": "approve", "comment": 5}, {"decision": ["approve"]},
        {"decision": "modify"}, {"decision": "modify", "fixes": "more"}, {"decision": "modify", "fixes": [1]},
        {"decision": "approve", "extra": 1}, {"decision": "reject", "comment": "\x00"},
        {"decision": "modify", "title": "x" * 300},
    ],
    ids=range(15),
)  # fmt: skip
async def test_what_is_no_answer_leaves_the_question_open_and_the_state_as_it_was(lab: Make, value: object) -> None:
    here, waiting = await asked(lab, OUTPUT)
    before = await here.state(waiting)

    with pytest.raises(AnswerError) as refused:
        await here.answer(waiting, value)

    assert refused.value.help
    assert len(refused.value.message) < 300
    assert await here.state(waiting) == before
    assert (await here.engine.outcome(waiting.run.id)).questions == waiting.questions


async def test_an_answer_that_was_taken_but_not_acted_on_is_applied_on_resume(lab: Make) -> None:
    """As after a kill between the two."""
    here, waiting = await asked(lab, PLAN)
    [question] = waiting.questions
    taken = validated(question, "approve")
    await here.reviews.take(question.id, taken, "person", here.engine._runner.now())

    outcome = await here.settled((await here.engine.resume(waiting.run.thread)).id)

    assert outcome.report is not None
    assert outcome.report.status == "complete"


async def test_what_was_asked_under_other_settings_is_still_answered(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)
    here.engine._runner.settings = here.engine.settings.model_copy(update={"hitl_after_planning": False})

    outcome = await here.answer(waiting, "reject")

    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert (await here.state(outcome))["approvals"]["plan"]["decision"] == "reject"


async def test_a_run_that_cannot_go_on_does_not_hold_up_the_timers_of_others(lab: Make) -> None:
    here, first = await asked(lab, {**PLAN, "breakpoints": {"plan_auto_approve": True}})
    second = await here.ask(QUESTION, interactive=True)
    here.ahead = timedelta(hours=1)

    def choose(options: Any) -> Any:
        if not choose.called:  # type: ignore[attr-defined]
            choose.called = True  # type: ignore[attr-defined]
            raise PathError("the documents are gone")
        return here.sources, {}

    choose.called = False  # type: ignore[attr-defined]
    here.engine._sources = choose

    [run] = await here.engine.settle_overdue()

    assert run.id == second.run.id
    assert (await here.settled(run.id)).report is not None
    assert [review.run for review in await here.engine.reviews()] == [first.run.id]
