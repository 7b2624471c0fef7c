"""Auto and plan mode: chosen for a question, changed for a thread, or turned to by the gate."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from openassay.errors import NotFoundError
from openassay.models.event import RunStatus
from openassay.models.evidence import Hit
from openassay.models.plan import Mode, Understanding
from openassay.models.thread import ResearchOptions
from openassay.nodes.plan import decide_mode, hit_coherence
from openassay.testing import SingleReasonerFactory
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]


def hit(title: str, snippet: str = "") -> Hit:
    return Hit(
        provider="web", query="Mercury", rank=1, url=f"https://example.com/{title}", title=title, snippet=snippet
    )


# The mode is what was said last


@pytest.mark.requirement("W-01")
@pytest.mark.parametrize(("mode", "asks"), [("auto", False), ("plan", True), (None, False)])
async def test_auto_goes_ahead_and_plan_asks_first(lab: Make, mode: Any, asks: bool) -> None:
    here = lab()
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION, mode=mode, interactive=True)

    assert [question.kind for question in outcome.questions] == ["planning"] * asks


@pytest.mark.requirement("W-01")
async def test_a_thread_keeps_the_mode_that_was_set_for_it(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    first = await here.ask(QUESTION, depth="quick", interactive=True)
    assert await here.engine.interrupts.set_mode(first.run.thread, Mode.PLAN) is False  # nothing is being worked on

    second = await here.ask("How long is the ferry's way?", depth="quick", interactive=True, thread=first.run.thread)

    assert second.questions[0].kind == "planning"
    assert (await here.threads.get(first.run.thread)).mode is Mode.PLAN


@pytest.mark.requirement("W-01")
async def test_turning_to_auto_drops_what_is_still_to_be_asked(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION, mode="plan", interactive=True)
    outcome = await here.answer(outcome, "the ferry")

    assert await here.engine.interrupts.set_mode(outcome.run.thread, Mode.AUTO) is True

    done = await here.settled(outcome.run.id)
    assert done.run.status is RunStatus.DONE
    assert done.report is not None
    assert done.report.plan is not None
    assert any("the ferry" in line for line in done.report.plan.constraints)  # what was answered counts
    assert any("changed to auto" in notice for notice in done.report.notices)
    assert await here.engine.interrupts.reviews() == []


@pytest.mark.requirement("W-01")
async def test_a_mode_changed_while_the_question_is_being_understood_takes_effect(lab: Make) -> None:
    async def understand(real: Any, message: str, conversation: Any) -> Understanding:
        [run] = await here.threads.list_active()
        assert await here.engine.interrupts.set_mode(run.thread, Mode.PLAN) is True
        understood: Understanding = await real(message, conversation)
        return understood

    here = lab(understand=understand)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION, mode="auto", interactive=True)

    assert outcome.questions[0].kind == "planning"


async def test_an_unknown_thread_has_no_mode(lab: Make) -> None:
    with pytest.raises(NotFoundError):
        await lab().engine.interrupts.set_mode("nowhere", Mode.PLAN)


# The gate


def vague(level: float) -> Callable[..., Any]:
    async def understand(real: Any, message: str, conversation: Any) -> Understanding:
        understood: Understanding = await real(message, conversation)
        return understood.model_copy(update={"ambiguity_level": level, "clarification_question": None})

    return understand


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize(
    ("settings", "options", "flips"),
    [
        ({}, {"interactive": True}, True),
        ({"auto_gate": False}, {"interactive": True}, False),
        ({}, {"interactive": False}, False),
    ],
    ids=["open to it", "switched off", "nobody there"],
)
async def test_an_ambiguous_question_turns_auto_into_plan_and_the_signals_are_recorded(
    lab: Make, settings: dict[str, Any], options: dict[str, Any], flips: bool
) -> None:
    here = lab(settings=settings, understand=vague(0.8))
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION, mode="auto", **options)

    gate = (await here.state(outcome))["gate"]
    assert gate["flipped"] is flips
    assert gate["mode"] == ("plan" if flips else "auto")
    assert gate["clarity"] == 0.2
    assert gate["preview_hits"] > 0
    assert 0 <= gate["coherence"] <= 1
    assert source.queries[0] == QUESTION  # one search, of the question as it stands
    assert bool(outcome.questions) is flips
    if flips:
        told = [
            event.data for event in await here.log(outcome.run.id) if (event.kind, event.stage) == ("notice", "gate")
        ]
        assert "several ways" in str(told[0]["reason"])


@pytest.mark.requirement("W-03")
@pytest.mark.parametrize(("usd", "flips"), [(1.2, True), (0.9, False)])
async def test_an_expensive_question_is_asked_about(lab: Make, usd: float, flips: bool) -> None:
    here = lab()
    here.holds(*LAKE)
    here.engine._runner.reasoners = SingleReasonerFactory(here.reasoner, here.account, usd=usd)

    outcome = await here.ask(QUESTION, mode="auto", interactive=True)

    gate = (await here.state(outcome))["gate"]
    assert (gate["flipped"], gate["estimated_usd"]) == (flips, usd)
    assert ("$1.20 of $2.00" in gate["reason"]) is flips


@pytest.mark.requirement("W-03")
async def test_a_short_question_whose_finds_are_about_different_things_is_asked_about(lab: Make) -> None:
    here = lab()
    texts = {
        "Mercury the planet": "It orbits the Sun in 88 days and has no moon.",
        "Mercury the metal": "A liquid at room temperature, once used in thermometers.",
        "Mercury the god": "Messenger of Roman deities, patron of merchants.",
        "Mercury Records": "A label founded in Chicago which released jazz and rock.",
        "Mercury (automobile)": "A brand sold by Ford dealers until 2011.",
    }
    hits = [hit(title, text) for title, text in texts.items()]
    assert hit_coherence(hits, "What is Mercury?") < 0.08
    same = [hit(f"Planet {n}", "Mercury orbits the Sun in 88 days and has no moon.") for n in range(5)]
    assert hit_coherence(same, "What is Mercury?") > 0.5
    assert hit_coherence([], "What is Mercury?") == 0
    deps: Any = SimpleNamespace(settings=here.engine.settings, options=ResearchOptions(interactive=True), quote=None)
    asked = Understanding(question="What is Mercury?", ambiguity_level=0.2)
    assert decide_mode(asked, hits, deps, wanted=Mode.AUTO, guessed=False).flipped
    assert not decide_mode(asked, same, deps, wanted=Mode.AUTO, guessed=False).flipped
    longer = Understanding(question="Which temperature does the planet Mercury reach at noon?", ambiguity_level=0.2)
    assert not decide_mode(longer, hits, deps, wanted=Mode.AUTO, guessed=False).flipped
