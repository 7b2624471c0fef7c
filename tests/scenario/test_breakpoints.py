"""Breakpoints: where a run stops for a person, what can be decided, and what happens when nobody does."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from openassay.engine.engine import RunOutcome
from openassay.engine.validation import validate_answer
from openassay.errors import AnswerError, ConfigurationError, PathError
from openassay.models.event import RunStatus
from openassay.models.evidence import Analysis, Gap
from openassay.models.report import Critique, Issue
from openassay.models.spend import CostEstimate
from openassay.testing import FakeRemote
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY
from tests.scenario.test_web import hit, of, on_the_web

pytestmark = pytest.mark.requirement("F-09")
Make = Callable[..., Lab]
PLAN = {"hitl_after_planning": True}
OUTPUT = {"hitl_before_output": True}


def everything(outcome: RunOutcome) -> str:
    assert outcome.report is not None, outcome.run.error
    return " ".join(s.text for section in outcome.report.sections for s in section.sentences)


def criticised(severity: str, score: float, recommendation: str) -> Callable[..., Critique]:
    def critique(real: Any, request: Any) -> Critique:
        issue = Issue(category="accuracy", severity=severity, location="all", description="doubtful")  # type: ignore[arg-type]
        return Critique(scores={}, score=score, issues=(issue,), recommendation=recommendation)  # type: ignore[arg-type]

    return critique


async def asked(lab: Make, settings: dict[str, Any], **script: Any) -> tuple[Lab, RunOutcome]:
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
    assert (await here.threads.run(outcome.run.id)).options.usd == 0.5


async def test_edits_name_sources_that_exist_or_the_question_stays_open(lab: Make) -> None:
    here, waiting = await asked(lab, PLAN)
    here.engine._runner.choose_sources = lambda options: (
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


def first_then(first: Callable[..., Critique], then: Callable[..., Critique]) -> Callable[..., Critique]:
    """A review of the first version, and one of all others."""
    judges = iter([first])
    return lambda real, request: next(judges, then)(real, request)


@pytest.mark.slow
@pytest.mark.parametrize("recommendation", ["revise", "reject"])
async def test_a_report_sent_back_comes_back_whatever_the_review_says_of_it(lab: Make, recommendation: str) -> None:
    critique = first_then(criticised("minor", 9.0, "approve"), criticised("major", 5.0, recommendation))
    here, waiting = await asked(lab, {**OUTPUT, "max_iterations": 1}, critique=critique)

    again = await here.answer(waiting, {"decision": "modify", "fixes": ["Say more about the ferry."]})

    assert again.questions[0].question == "The review does not approve it. Publish anyway?"
    outcome = await here.answer(again, "approve")
    assert outcome.report is not None
    assert outcome.report.status == "complete"


async def test_who_skips_what_came_back_leaves_it_to_the_review(lab: Make) -> None:
    critique = first_then(criticised("minor", 9.0, "approve"), criticised("major", 5.0, "reject"))
    here, waiting = await asked(lab, {**OUTPUT, "max_iterations": 1}, critique=critique)

    again = await here.answer(waiting, {"decision": "modify", "fixes": ["Say more about the ferry."]})

    outcome = await here.answer(again, "skip")
    assert outcome.report is not None
    assert outcome.report.status == "partial"


async def test_what_was_sent_back_from_a_breakpoint_comes_back_to_it_though_its_condition_has_passed(lab: Make) -> None:
    mine = {"name": "weak", "at": "review", "when": {"field": "critique.score", "operator": "<", "value": 6}}
    critique = first_then(criticised("major", 5.0, "revise"), criticised("major", 7.0, "revise"))
    settings = {"breakpoints": {"custom": [mine]}, "max_iterations": 1}
    here, waiting = await asked(lab, settings, critique=critique)

    again = await here.answer(waiting, {"decision": "modify", "fixes": ["Say more about the ferry."]})

    assert [question.shown["breakpoint"] for question in again.questions] == ["weak"]
    assert (await here.state(again))["iteration"] == 2
    outcome = await here.answer(again, "approve")
    assert outcome.report is not None
    assert outcome.report.status == "complete"


async def test_a_report_is_sent_back_so_often_and_no_more(lab: Make) -> None:
    here, waiting = await asked(lab, {**OUTPUT, "max_iterations": 1}, critique=criticised("minor", 9.0, "approve"))
    sent = 0
    while "modify" in waiting.questions[0].options:
        sent += 1
        waiting = await here.answer(
            waiting, {"decision": "modify", "fixes": [f"Say it in another way, number {sent}."]}
        )

    assert sent == 5
    with pytest.raises(AnswerError, match="not possible here any more"):
        await here.answer(waiting, {"decision": "modify", "fixes": ["Once more."]})


async def test_a_section_struck_out_before_is_not_shown_again(lab: Make) -> None:
    here, waiting = await asked(lab, OUTPUT)
    titles = [section["title"] for section in waiting.questions[0].shown["draft"]["sections"]]

    again = await here.answer(
        waiting,
        {
            "decision": "modify",
            "drop": [f" {titles[2].upper()}"],
            "title": "On\nLakes ",
            "fixes": ["Say it in another way."],
        },
    )

    draft = again.questions[0].shown["draft"]
    assert titles[2] not in [section["title"] for section in draft["sections"]]
    assert draft["title"] == "On Lakes"


async def test_what_is_not_there_or_all_there_is_cannot_be_dropped(lab: Make) -> None:
    mine = {"name": "look", "at": "claims", "shows": ["confidence"]}
    here, waiting = await asked(lab, {**OUTPUT, "breakpoints": {"custom": [mine]}})
    claims = [claim["id"] for claim in waiting.questions[0].shown["claims"]]
    with pytest.raises(AnswerError, match="no 'C99' to drop") as refused:
        await here.answer(waiting, {"decision": "modify", "drop": ["C99"]})
    assert claims[0] in refused.value.help
    with pytest.raises(AnswerError, match="no statement"):
        await here.answer(waiting, {"decision": "modify", "drop": claims})

    waiting = await here.answer(waiting, {"decision": "modify", "drop": [claims[-1].lower()]})

    assert claims[-1] not in [claim["id"] for claim in (await here.state(waiting))["claims"]]
    titles = [section["title"] for section in waiting.questions[0].shown["draft"]["sections"]]
    with pytest.raises(AnswerError, match="no 'Elsewhere' to drop") as refused:
        await here.answer(waiting, {"decision": "modify", "drop": ["Elsewhere"]})
    assert titles[0] in refused.value.help
    with pytest.raises(AnswerError, match="no section"):
        await here.answer(waiting, {"decision": "modify", "drop": titles, "fixes": ["Write it anew."]})


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
    assert "A reviewer left out 1 statement." in outcome.report.notices


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


async def test_a_report_changed_at_a_critical_issue_is_approved_as_changed(lab: Make) -> None:
    settings = {"breakpoints": {"on_critical": True}, "max_iterations": 1}
    here, waiting = await asked(lab, settings, critique=criticised("critical", 4.0, "reject"))
    titles = [section["title"] for section in waiting.questions[0].shown["draft"]["sections"]]

    outcome = await here.answer(waiting, {"decision": "modify", "drop": [titles[-1]]})

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert titles[-1] not in [section.title for section in outcome.report.sections]


@pytest.mark.parametrize(("decision", "status"), [("approve", "complete"), ("skip", "partial")])
async def test_who_approves_at_a_review_overrules_it(lab: Make, decision: str, status: str) -> None:
    settings = {"breakpoints": {"custom": [{"name": "weak", "at": "review"}]}, "max_iterations": 1}
    here, waiting = await asked(lab, settings, critique=criticised("major", 5.0, "revise"))

    outcome = await here.answer(waiting, decision)

    assert outcome.report is not None
    assert outcome.report.status == status


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


@pytest.mark.requirement("W-06")
@pytest.mark.parametrize(("least", "asks"), [(0.01, True), (100.0, False)])
async def test_a_harvest_is_asked_about_from_the_cost_on_that_was_set(lab: Make, least: float, asks: bool) -> None:
    here = lab(settings={"breakpoints": {"before_harvest": True, "harvest_usd": least}, "auto_gate": False})
    here.holds(*LAKE)
    quote = CostEstimate(model="m", usd=2.0, most_usd=2.0, calls=10, tokens=1000, seconds=1, reading_usd=2.0)
    here.reasoners.estimate = lambda options: quote  # type: ignore[method-assign]

    outcome = await here.ask(QUESTION, interactive=True)

    assert bool(outcome.questions) is asks
    if asks:
        assert least <= outcome.questions[0].shown["usd"] <= 2.0


def with_another_round(source: FakeRemote) -> Callable[..., Any]:
    """After the first round something is wanting, and the source has found one page more."""
    rounds: list[Analysis] = []

    async def analyse(real: Any, request: Any) -> Analysis:
        rounds.append(await real(request))
        if len(rounds) > 1:
            return rounds[-1]
        source._hits = [hit(SURVEY), hit(GAZETTE), hit(GUIDE)]
        gap = Gap(section=request.plan.sections[0], severity="major", question="Q1")
        return rounds[0].model_copy(
            update={"gaps": (gap,), "confidence": 0.1, "refinements": {"Q1": ("lake marrow ferry",)}}
        )

    return analyse


async def in_rounds(lab: Make, **breakpoints: Any) -> tuple[Lab, RunOutcome]:
    source = FakeRemote("exa", [hit(SURVEY), hit(GAZETTE)])
    settings = {"breakpoints": {"before_harvest": True, **breakpoints}}
    here = on_the_web(lab(settings=settings, analyse=with_another_round(source)), source)
    return here, await here.ask(QUESTION, interactive=True)


@pytest.mark.requirement("W-06")
@pytest.mark.parametrize("by", ["person", "timer"])
async def test_who_ends_the_second_round_keeps_what_the_first_has_found(lab: Make, by: str) -> None:
    here, waiting = await in_rounds(lab)
    assert waiting.questions[0].question == "Read 2 web pages, about $0.00?"
    waiting = await here.answer(waiting, "approve")
    assert waiting.questions[0].question == "Read 1 web page, about $0.00?"

    if by == "timer":
        here.ahead = timedelta(seconds=1801)
        [run] = await here.engine.interrupts.answer_overdue()
        outcome = await here.settled(run.id)
    else:
        outcome = await here.answer(waiting, "reject")

    assert outcome.report is not None
    assert outcome.report.status == "partial"
    assert "412 square kilometres" in everything(outcome)
    assert ("rejected at a review" if by == "person" else "Nobody answered a review") in everything(outcome)
    assert GUIDE.url not in here.pages.asked


@pytest.mark.requirement("W-06")
async def test_a_host_that_was_struck_out_is_not_read_in_later_rounds_either(lab: Make) -> None:
    here, waiting = await in_rounds(lab, harvest_pages=2)

    outcome = await here.answer(waiting, {"decision": "modify", "without": ["https://WWW.Gazette.example/shores"]})

    assert outcome.report is not None
    assert here.pages.asked == [SURVEY.url, GUIDE.url]  # and one page is no reason to ask
    told = [event.data for event in of(await here.log(outcome.run.id), "skip", "fuse")]
    assert [(data["path"], data["reason"]) for data in told] == [
        ("gazette.example", "you left gazette.example out at a review")
    ]


@pytest.mark.requirement("W-06")
async def test_so_many_pages_are_fetched_in_the_round_that_was_asked_about(lab: Make) -> None:
    here, waiting = await in_rounds(lab)

    waiting = await here.answer(waiting, {"decision": "modify", "pages": 1})

    assert here.pages.asked == [SURVEY.url]
    assert waiting.questions[0].question == "Read 2 web pages, about $0.00?"
    outcome = await here.answer(waiting, {"decision": "modify", "pages": 1, "without": ["gazette.example"]})
    assert here.pages.asked == [SURVEY.url, GUIDE.url]
    assert outcome.report is not None
    assert {card.url for card in outcome.report.sources} <= {SURVEY.url, GUIDE.url}


@pytest.mark.requirement("W-06")
async def test_the_price_of_a_harvest_is_that_of_its_pages(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    quote = CostEstimate(model="m", usd=2.0, most_usd=5.0, calls=22, tokens=1, seconds=1, reading_usd=1.0)
    prices = []
    for pages in (1, 2):
        here = lab(settings={"breakpoints": {"before_harvest": True}, "auto_gate": False})
        on_the_web(here, FakeRemote("exa", [hit(SURVEY), hit(GAZETTE)][:pages]))
        monkeypatch.setattr(here.reasoners, "estimate", lambda options: quote)
        waiting = await here.ask(QUESTION, interactive=True)
        plan = (await here.state(waiting))["plan"]
        prices.append(waiting.questions[0].shown["usd"])
        # Of ten readings of 36 passages each that the quote allows for, as many of nine a page.
        assert prices[-1] == round(len(plan["questions"]) * pages * 9 / 36 / 10, 4)
        assert f"about ${prices[-1]:.2f}?" in waiting.questions[0].question
    assert prices[0] < prices[1] < 1.0


# Breakpoints of one's own


async def test_a_plan_can_be_changed_where_it_is_not_among_what_is_shown(lab: Make) -> None:
    mine = {"name": "look", "at": "plan", "shows": ["plan.goal"]}
    here, waiting = await asked(lab, {"breakpoints": {"custom": [mine]}})

    outcome = await here.answer(waiting, {"decision": "modify", "edits": [{"op": "remove", "question": "Q2"}]})

    assert outcome.report is not None
    assert outcome.report.plan is not None
    assert "Q2" not in [question.id for question in outcome.report.plan.questions]


@pytest.mark.parametrize(
    ("name", "place", "settings"),
    [
        ("plan", "plan", PLAN),
        ("harvest", "harvest", {"breakpoints": {"before_harvest": True}}),
        ("critical", "review", {"breakpoints": {"on_critical": True}}),
        ("output", "output", OUTPUT),
    ],
)
async def test_a_breakpoint_with_the_name_of_another_is_asked_for_itself(
    lab: Make, name: str, place: str, settings: dict[str, Any]
) -> None:
    mine = {"name": name, "at": place, "question": "Mine?"}
    settings = {**settings, "breakpoints": {**settings.get("breakpoints", {}), "custom": [mine]}}
    here, waiting = await asked(lab, settings, critique=criticised("critical", 9.0, "approve"))

    again = await here.answer(waiting, "approve")

    assert waiting.questions[0].question != "Mine?"
    assert [question.question for question in again.questions] == ["Mine?"]
    assert again.questions[0].shown["breakpoint"] == waiting.questions[0].shown["breakpoint"] == name


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
    assert await here.engine.interrupts.answer_overdue() == []  # there is time
    here.ahead = timedelta(seconds=1801)

    [run] = await here.engine.interrupts.answer_overdue()

    outcome = await here.settled(run.id)
    assert outcome.report is not None
    assert outcome.report.status == status
    assert any(told in notice for notice in outcome.report.notices)
    assert await here.engine.interrupts.reviews() == []
    with pytest.raises(AnswerError, match="by the timer"):
        await here.engine.interrupts.answer(run.thread, waiting.questions[0].id, "reject")


OFF_AND_ON = [(False, {"partial", "no_data"}), (True, {"complete"})]


@pytest.mark.slow
@pytest.mark.parametrize(("auto", "status"), OFF_AND_ON)
@pytest.mark.parametrize(
    ("name", "seconds", "settings"),
    [
        ("harvest", 1800, {"breakpoints": {"before_harvest": True}}),
        ("critical", 7200, {"breakpoints": {"on_critical": True}}),
        ("output", 3600, OUTPUT),
    ],
)
async def test_every_breakpoint_has_its_time_and_its_way_out(
    lab: Make, name: str, seconds: int, settings: dict[str, Any], auto: bool, status: set[str]
) -> None:
    points = {**settings.get("breakpoints", {}), f"{name}_auto_approve": auto}
    recommendation = "reject" if name == "critical" else "approve"
    severity = "critical" if name == "critical" else "minor"
    here, waiting = await asked(
        lab, {**settings, "breakpoints": points}, critique=criticised(severity, 8.0, recommendation)
    )
    [question] = waiting.questions
    assert question.due is not None
    assert question.asked is not None
    assert question.due - question.asked == timedelta(seconds=seconds)
    here.ahead = timedelta(seconds=seconds + 1)

    [run] = await here.engine.interrupts.answer_overdue()

    outcome = await here.settled(run.id)
    assert outcome.report is not None
    assert outcome.report.status in status
    told = "it was approved automatically" if auto else "so the research ended there"
    assert any(told in notice for notice in outcome.report.notices)


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
    keeper = asyncio.create_task(here.engine.interrupts.run_deadlines())
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

    [run] = await here.engine.interrupts.answer_overdue()

    outcome = await here.settled(run.id)
    assert waiting.questions[0].on_timeout == "guess"
    assert outcome.report is not None
    assert any("was not clear" in notice for notice in outcome.report.notices)


# Answers of the wrong kind


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [
        None, 7, [], {}, "", "maybe", "x" * 1_000_000, {"decision": "approve", "comment": 5}, {"decision": ["approve"]},
        {"decision": "modify"}, {"decision": "modify", "fixes": "more"}, {"decision": "modify", "fixes": [1]},
        {"decision": "approve", "extra": 1}, {"decision": "reject", "comment": "\x00"},
        {"decision": "modify", "title": "x" * 300}, {"decision": "modify", "title": " \n "},
        {"decision": "modify", "fixes": [""]}, {"decision": "modify", "fixes": ["Be brief.", "  "]},
        {"decision": "approve", "fixes": ["Be brief."]}, {"decision": "modify", "drop": [""]},
    ],
    ids=range(20),
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
    taken = validate_answer(question, "approve")
    await here.reviews.accept_answer(question.id, taken, "person", here.engine._runner.now())

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


@pytest.mark.slow
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
    here.engine._runner.choose_sources = choose

    [run] = await here.engine.interrupts.answer_overdue()

    assert run.id == second.run.id
    assert (await here.settled(run.id)).report is not None
    assert [review.run for review in await here.engine.interrupts.reviews()] == [first.run.id]
