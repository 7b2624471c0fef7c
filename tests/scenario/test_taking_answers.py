"""An answer is taken once, kept before it is acted on, and acted on by one: whatever dies or comes in between."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from openassay.engine.engine import RunOutcome
from openassay.engine.validation import validate_answer
from openassay.errors import AnswerError, StorageError
from openassay.models.event import RunStatus
from openassay.models.plan import Mode
from openassay.models.user import Preferences
from openassay.storage.database import REVIEWS, RUNS
from openassay.testing import FakeSource
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

pytestmark = pytest.mark.requirement("F-09")
Make = Callable[..., Lab]
PLAN = {"hitl_after_planning": True}
EDITS = {"decision": "modify", "edits": [{"op": "budget", "usd": 0.25}, {"op": "words", "words": 5000}]}


async def asked(lab: Make, settings: dict[str, Any] | None = None, **options: Any) -> tuple[Lab, RunOutcome]:
    here = lab(settings={**PLAN, **(settings or {})})
    here.holds(*LAKE)
    return here, await here.ask(QUESTION, **{"interactive": True, **options})


class Named(FakeSource):
    """A fake source under another name."""

    def __init__(self, *args: Any, name: str) -> None:
        super().__init__(*args)
        self.name = name


def several(here: Lab, *names: str) -> dict[str, Named]:
    """Sources by name, chosen as the real ones are."""
    made = {name: Named(here.documents, LAKE, name=name) for name in names}

    def choose(options: Any) -> tuple[list[Any], dict[str, str]]:
        wanted = options.sources or (tuple(made) if options.source == "auto" else options.source.split(","))
        return [made[name] for name in wanted if name in made], {}

    here.engine._runner.choose_sources = choose
    return made


# What dies in between


async def test_an_edit_whose_process_died_is_carried_out_in_full_on_resume(lab: Make) -> None:
    here, waiting = await asked(lab)
    [question] = waiting.questions
    answer = validate_answer(question, EDITS)
    await here.reviews.accept_answer(question.id, answer, "person", here.engine._runner.now())

    outcome = await here.settled((await here.engine.resume(waiting.run.thread)).id)

    assert outcome.report is not None
    options = (await here.threads.run(outcome.run.id)).options
    assert (options.usd, options.words) == (0.25, 5000)


async def test_an_answer_nobody_acted_on_is_found_by_whoever_keeps_time(lab: Make) -> None:
    here, waiting = await asked(lab)
    [question] = waiting.questions
    await here.reviews.accept_answer(
        question.id, validate_answer(question, "approve"), "person", here.engine._runner.now()
    )

    [run] = await here.engine.interrupts.answer_overdue()

    assert (await here.settled(run.id)).run.status is RunStatus.DONE


async def test_a_question_whose_process_died_before_it_was_listed_is_listed_and_its_deadline_holds(lab: Make) -> None:
    here, waiting = await asked(lab)
    with here.rows.open_writer("thread", waiting.run.thread) as writer:
        writer.delete(
            REVIEWS, "WHERE id = ?", (waiting.questions[0].id,)
        )  # as if it had died between the checkpoint and the table
    await here.threads.update(waiting.run.id, status=RunStatus.RUNNING)

    assert await here.engine.interrupts.answer_overdue() == []

    [review] = await here.engine.interrupts.reviews()
    assert (review.id, review.due) == (waiting.questions[0].id, waiting.questions[0].due)
    here.ahead = timedelta(hours=1)
    assert [run.id for run in await here.engine.interrupts.answer_overdue()] == [waiting.run.id]


async def test_a_row_that_cannot_be_read_does_not_stop_the_timer(lab: Make, caplog: pytest.LogCaptureFixture) -> None:
    here, broken = await asked(lab, {"breakpoints": {"plan_auto_approve": True}})
    sound = await here.ask(QUESTION, interactive=True)
    with here.rows.open_writer("thread", broken.run.thread) as writer:
        writer.update(RUNS, (broken.run.id,), {"options": '{"depth": "endless"}'})
    here.ahead = timedelta(hours=1)

    with caplog.at_level(logging.WARNING, "openassay"):
        runs = await here.engine.interrupts.answer_overdue()

    assert [run.id for run in runs] == [sound.run.id]
    assert "cannot be read" in caplog.text


async def test_a_database_that_is_busy_does_not_end_the_timer(lab: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    here = lab()
    looks = 0

    async def pending(thread: str | None = None) -> list[Any]:
        nonlocal looks
        looks += 1
        raise StorageError("database is locked")

    monkeypatch.setattr(here.reviews, "pending", pending)
    monkeypatch.setattr("openassay.engine.interrupts.TIMER_POLL_SECONDS", 0.01)
    keeper = asyncio.create_task(here.engine.interrupts.run_deadlines())
    await asyncio.sleep(0.2)
    alive = not keeper.done()
    keeper.cancel()
    await asyncio.gather(keeper, return_exceptions=True)

    assert alive
    assert looks > 1


# What comes in between


@pytest.mark.slow
async def test_a_thread_that_is_at_work_elsewhere_takes_no_answer_and_nothing_is_changed(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.LOCK_WAIT_SECONDS", 0.1)
    here, waiting = await asked(lab)
    here.engine._runner.locks.acquire(waiting.run.thread)
    before = (await here.threads.run(waiting.run.id)).options

    with pytest.raises(AnswerError, match="somebody else"):
        await here.answer(waiting, EDITS)

    here.engine._runner.locks.release(waiting.run.thread)
    assert (await here.threads.run(waiting.run.id)).options == before
    assert (await here.engine.outcome(waiting.run.id)).questions == waiting.questions
    assert (await here.answer(waiting, "approve")).report is not None


async def test_an_answer_to_a_question_that_has_just_been_shown_waits_for_the_run_to_settle(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab(settings=PLAN)
    here.holds(*LAKE)
    real = here.threads.update

    async def slow(run: str, **changes: Any) -> None:
        if changes.get("status") is RunStatus.WAITING:
            await asyncio.sleep(0.3)
        await real(run, **changes)

    monkeypatch.setattr(here.threads, "update", slow)
    from openassay.models.thread import ResearchOptions

    run = await here.engine.start(QUESTION, ResearchOptions(interactive=True))
    async for event in here.engine.events(run.id):
        if event.kind == "interrupt":
            break
    await here.engine.interrupts.answer(run.thread, str(event.data["id"]), "approve")

    assert (await here.settled(run.id)).report is not None


# Sources


async def test_sources_taken_out_of_a_plan_are_not_asked_and_the_next_question_asks_them_again(lab: Make) -> None:
    here = lab(settings=PLAN)
    made = several(here, "lakes", "maps")
    waiting = await here.ask(QUESTION, interactive=True)
    assert waiting.questions[0].shown["plan"]["sources"] == ["lakes", "maps"]
    before = len(made["maps"].queries)  # the gate's preview

    outcome = await here.answer(waiting, {"decision": "modify", "edits": [{"op": "sources", "names": ["lakes"]}]})

    assert outcome.report is not None
    assert len(made["maps"].queries) == before
    again = await here.ask("How deep is Lake Marrow?", interactive=True, thread=outcome.run.thread)
    assert again.questions[0].shown["plan"]["sources"] == ["lakes", "maps"]


@pytest.mark.parametrize("names", [["lakes,maps"], ["auto"], ["nowhere"]])
async def test_a_source_that_is_none_is_refused(lab: Make, names: list[str]) -> None:
    here = lab(settings=PLAN)
    several(here, "lakes", "maps")
    waiting = await here.ask(QUESTION, interactive=True)

    with pytest.raises(AnswerError):
        await here.answer(waiting, {"decision": "modify", "edits": [{"op": "sources", "names": names}]})

    assert (await here.engine.outcome(waiting.run.id)).questions == waiting.questions


async def test_an_edit_of_something_else_leaves_the_sources_as_they_were(lab: Make) -> None:
    here = lab(settings=PLAN)
    several(here, "lakes", "maps")
    await here.memory.set_preferences("local", Preferences(avoid=("maps",)))
    waiting = await here.ask(QUESTION, interactive=True)
    assert waiting.questions[0].shown["plan"]["sources"] == ["lakes"]

    await here.answer(waiting, {"decision": "modify", "edits": [{"op": "words", "words": 500}]})

    options = (await here.threads.run(waiting.run.id)).options
    assert (options.source, options.sources) == ("auto", ("lakes", "maps"))


async def test_a_source_put_into_the_plan_is_asked_though_it_is_avoided(lab: Make) -> None:
    here = lab(settings=PLAN)
    made = several(here, "lakes", "maps")
    await here.memory.set_preferences("local", Preferences(avoid=("maps",)))
    waiting = await here.ask(QUESTION, interactive=True)

    await here.answer(waiting, {"decision": "modify", "edits": [{"op": "sources", "names": ["lakes", "maps"]}]})

    assert made["maps"].queries


async def test_a_plan_of_ones_own_that_says_nothing_of_money_leaves_the_cap_as_it_was(lab: Make) -> None:
    here, waiting = await asked(lab, usd=0.1)
    plan = {name: value for name, value in waiting.questions[0].shown["plan"].items() if name not in ("usd", "words")}

    await here.answer(waiting, {"decision": "modify", "plan": {**plan, "methodology": "As it was."}})

    assert (await here.threads.run(waiting.run.id)).options.usd == 0.1


# How long, in which style


@pytest.mark.requirement("W-19")
async def test_what_is_said_now_comes_before_what_is_remembered(lab: Make) -> None:
    here, waiting = await asked(lab)
    await here.memory.set_preferences("local", Preferences(words=200, style="technical"))
    waiting = await here.ask(QUESTION, interactive=True)

    await here.answer(waiting, {"decision": "modify", "edits": [{"op": "words", "words": 1500}]})

    [request] = [arguments[0] for name, arguments in here.reasoner.calls if name == "write"][:1]
    assert (request.target, request.style) == (1500, "technical")


@pytest.mark.requirement("W-19")
async def test_what_is_remembered_comes_before_the_settings(lab: Make) -> None:
    here = lab(settings={"style_guide": "academic", "target_length": 2000})
    here.holds(*LAKE)
    await here.memory.set_preferences("local", Preferences(words=200, style="executive"))

    await here.ask(QUESTION)

    [request] = [arguments[0] for name, arguments in here.reasoner.calls if name == "write"][:1]
    assert (request.target, request.style) == (200, "executive")


async def test_a_memory_that_cannot_be_read_is_told_and_stops_nothing(
    lab: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = lab()
    here.holds(*LAKE)

    async def broken(user: str) -> Preferences:
        raise StorageError("the file is damaged")

    monkeypatch.setattr(here.memory, "preferences", broken)

    report = await here.report(QUESTION)

    assert report.status == "complete"
    assert any("the file is damaged" in notice for notice in report.notices)


# The mode


@pytest.mark.requirement("W-01")
async def test_turning_to_auto_between_two_planning_questions_takes_effect(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    waiting = await here.ask(QUESTION, mode="plan", interactive=True)
    [question] = waiting.questions
    await here.engine.interrupts.answer(
        waiting.run.thread, question.id, "the ferry"
    )  # and at once, while the run is at work:

    assert await here.engine.interrupts.set_mode(waiting.run.thread, Mode.AUTO) is True

    outcome = await here.settled(waiting.run.id)
    assert outcome.run.status is RunStatus.DONE
    assert len((await here.state(outcome))["planner_answers"]) == 1


@pytest.mark.requirement("W-01")
async def test_a_mode_given_with_a_question_is_kept_by_its_thread_unless_nobody_was_there(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    first = await here.ask(QUESTION, depth="quick", mode="plan", interactive=True)
    assert (await here.threads.get(first.run.thread)).mode is Mode.PLAN
    await here.answer(first, "never mind")

    job = await here.ask("How deep is Lake Marrow?", depth="quick", mode="auto", thread=first.run.thread)

    assert job.run.status is RunStatus.DONE
    assert (await here.threads.get(first.run.thread)).mode is Mode.PLAN


async def test_a_sub_question_on_somebody_else_is_researched_too(lab: Make) -> None:
    here = lab(settings=PLAN)  # on the demo data
    waiting = await here.ask("How did Apple change over 2023 and why?", interactive=True)
    edits = [{"op": "add", "text": "How is Tesla doing?", "section": "Tesla"}]

    outcome = await here.answer(waiting, {"decision": "modify", "edits": edits})

    assert outcome.report is not None
    assert any("Tesla" in claim.text for claim in outcome.report.claims)


# What the report tells


@pytest.mark.requirement("W-02", "W-19")
async def test_a_report_tells_what_was_taken_into_account(lab: Make) -> None:
    here = lab(settings=PLAN)
    here.holds(*LAKE)
    await here.memory.set_preferences("local", Preferences(style="executive", region="Austria"))
    await here.memory.remember("local", "We report lake sizes in hectares.")
    outcome = await here.ask(QUESTION, mode="plan", interactive=True)
    while outcome.questions[0].kind == "planning":
        outcome = await here.answer(outcome, "since 2018" if outcome.questions[0].shown["id"] == "timeframe" else "any")
    edits = [{"op": "add", "text": "How many passengers does the ferry take?"}]

    outcome = await here.answer(outcome, {"decision": "modify", "edits": edits})

    assert outcome.report is not None
    [told] = [notice for notice in outcome.report.notices if notice.startswith("Taken into account")]
    for part in ("since 2018", "Austria", "executive style", "hectares", "How many passengers does the ferry take?"):
        assert part in told, part
