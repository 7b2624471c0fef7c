"""Questions that wait for a person, in processes that come and go: found again, answered once, settled by the clock."""

import asyncio
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import pytest
import typer

from openassay.bootstrap import open_engine
from openassay.cli.review import answer, show
from openassay.engine.engine import Engine
from openassay.engine.state_view import StateView
from openassay.engine.validation import OpenQuestion
from openassay.errors import OpenAssayError
from openassay.export import Report
from openassay.models.event import RunStatus
from openassay.models.thread import ResearchOptions, Review
from openassay.settings import load
from tests.system.command import Command, Ran

T = TypeVar("T")
QUESTION = "How high are the tides in the Bay of Fundy?"
AT_THE_PLAN: dict[str, Any] = {"hitl_after_planning": True}

pytestmark = pytest.mark.requirement("F-09")


def configure(openassay: Command, settings: dict[str, Any]) -> None:
    (openassay.folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")  # JSON is YAML


# A command takes almost two seconds to come up, so what is only looked at is looked at from here.


@pytest.fixture(autouse=True)
def _here(openassay: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(openassay.folder)
    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(openassay.data))
    monkeypatch.setenv("OPENASSAY_CONFIG", str(openassay.folder / "config.yaml"))


def wait_at(openassay: Command, **settings: Any) -> str:
    """The thread of a run that was started under these settings and has asked something; its engine is closed."""
    configure(openassay, settings)

    async def ask(engine: Engine) -> str:
        run = await engine.start(QUESTION, ResearchOptions(docs=(str(openassay.folder / "tiny"),), interactive=True))
        outcome = await engine.wait(run.id)
        assert outcome.run.status is RunStatus.WAITING, outcome.run.error
        return outcome.run.thread

    return _with_engine(ask)


def state(thread: str) -> StateView:
    return _with_engine(lambda engine: engine.view(thread))


def pending() -> list[Review]:
    return _with_engine(lambda engine: engine.interrupts.reviews())


def report(thread: str) -> Report:
    return _with_engine(lambda engine: engine.history.report(thread))


def _with_engine(work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())


def refuses(thread: str, words: str, reason: str, **given: Any) -> str:
    """The hint that comes with it."""
    with pytest.raises(OpenAssayError, match=re.escape(reason)) as caught:
        answer(thread, [words], **given)
    assert caught.value.exit_code == 2
    assert caught.value.help
    assert "THREAD" not in caught.value.help
    return caught.value.help


# Processes that die -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-04")
def test_a_question_outlives_kill_9_with_its_deadline_and_takes_one_answer(openassay: Command) -> None:
    configure(openassay, AT_THE_PLAN)
    with openassay.typed("research", QUESTION, "--docs", "tiny") as terminal:
        terminal.expect("Is this plan what you want?")
        terminal.expect("plan> ")
    (thread,) = openassay.threads()  # leaving the terminal has killed it
    [before] = pending()

    [asked] = openassay("review", "--json").json
    assert (asked["thread"], asked["kind"], asked["on_timeout"]) == (thread, "approve_plan", "end")
    opened, due = (datetime.fromisoformat(asked[name]) for name in ("opened", "due"))
    assert due - opened == timedelta(minutes=30)
    assert datetime.now(UTC) - timedelta(minutes=2) < opened < datetime.now(UTC)
    seen = openassay("threads", "state", thread, "--json").json
    assert (seen["next"], seen["status"], seen["user_inputs"]["goal"]) == (["approve_plan"], "searching", QUESTION)
    assert pending() == [before]
    assert before.due == due

    answered = openassay("review", "answer", thread, "approve", "--json")

    assert answered.code == 0, answered.err
    assert answered.json["status"] == "complete"
    assert openassay.statuses(thread) == ["done"]
    assert pending() == []
    done = state(thread)
    second = openassay("review", "answer", thread, "reject", "--question", asked["id"])
    second.refused(2, "answered already, on 20", " UTC, by a person")
    refuses(thread, "reject", f"thread {thread} does not wait for an answer; its last question was answered already")
    assert state(thread) == done


@pytest.mark.slow
def test_of_two_processes_one_is_heard(openassay: Command) -> None:
    thread = wait_at(openassay, **AT_THE_PLAN)
    answer = ("review", "answer", thread, "approve", "--json")

    with openassay.started(*answer) as one, openassay.started(*answer) as other:
        ends = [_ended(process) for process in (one, other)]

    assert sorted(end.code for end in ends) == [0, 2], [end.err for end in ends]
    [heard], [refused] = [[end for end in ends if end.code == code] for code in (0, 2)]
    assert heard.json["status"] == "complete"
    assert refused.stdout == b""
    assert refused.err.startswith("openassay: ")
    assert openassay.statuses(thread) == ["done"]


def _ended(process: subprocess.Popen[bytes]) -> Ran:
    out, err = process.communicate(timeout=60)
    assert b"Traceback" not in err
    return Ran(process.returncode, out, err)


# Time -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("auto", [True, False])
def test_when_time_is_up_the_clock_decides(openassay: Command, auto: bool) -> None:
    breakpoints = {"plan_timeout": 1, "plan_auto_approve": auto}
    thread = wait_at(openassay, **AT_THE_PLAN, breakpoints=breakpoints)
    [asked] = pending()
    assert asked.due is not None
    time.sleep(max((asked.due - datetime.now(UTC)).total_seconds(), 0))
    listed = openassay("review")
    assert f"overdue     {'continues' if auto else 'ends'}" in listed.out
    assert QUESTION in listed.out, "what is being researched tells threads apart"
    assert "Overdue: openassay review timers --once settles them." in listed.err
    before = state(thread)
    late = refuses(thread, "approve", "the time for an answer ended, on ")
    assert late == f"The default applies now: openassay resume {thread}"
    assert state(thread) == before

    settled = openassay("review", "timers", "--once")

    assert settled.code == 0, settled.err
    went, came = settled.out.splitlines()
    assert went == f"{thread}  nobody answered “Is this plan what you want?”: {'continues' if auto else 'ends'}"
    made = report(thread)
    assert (made.status == "complete") is auto
    assert came.startswith(f"{thread}  done: {made.status} report")
    assert any("Nobody answered “Is this plan what you want?” in time" in notice for notice in made.notices)
    refuses(thread, "approve", " UTC, by the timer", question=asked.id)


@pytest.mark.slow
def test_the_clock_keeps_the_time_of_all_threads_until_it_is_stopped(openassay: Command) -> None:
    wait_at(openassay, **AT_THE_PLAN)  # has half an hour
    thread = wait_at(openassay, **AT_THE_PLAN, breakpoints={"plan_timeout": 4})
    with openassay.started("review", "timers") as process:
        ends = time.monotonic() + 60
        while openassay.statuses(thread) != ["done"] and time.monotonic() < ends:
            time.sleep(0.05)
        time.sleep(0.3)  # what came of it is being told
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert b"Traceback" not in err
    assert {line.split()[0] for line in out.decode().splitlines()} == {thread}
    [still] = pending()
    assert still.thread != thread


# Answers that will not do -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-04")
def test_what_is_no_answer_is_refused_and_changes_nothing(openassay: Command) -> None:
    thread = wait_at(openassay, **AT_THE_PLAN)
    asked, before = pending(), state(thread)

    refuses(thread, "maybe", "'maybe' is not a decision")
    refuses(thread, " ", "'' is not a decision")
    refuses(thread, "modify", "nothing is said about what to change")
    refuses(thread, "reject", "comment: string should have at most 2000 characters", comment="x" * 2001)
    refuses(thread, "approve", "this question is not open any more", question="0" * 32)
    refuses("nowhere", "approve", "no thread nowhere")
    refuses(thread, "modify", "nowhere.json cannot be read", edits="nowhere.json")
    openassay("review", "answer", thread, "modify", "--edits", "-", stdin=b"{").refused(2, "the edits are not JSON")
    openassay("review", "answer", thread, "").refused(2, "'' is not a decision")

    assert pending() == asked
    assert state(thread) == before
    assert openassay.statuses(thread) == ["waiting"]


@pytest.mark.slow
@pytest.mark.requirement("W-04")
def test_edits_that_cannot_be_made_are_refused_and_change_nothing(openassay: Command) -> None:
    thread = wait_at(openassay, **AT_THE_PLAN)
    asked, before = pending(), state(thread)
    file = openassay.folder / "edits.json"
    wrong: dict[str, Any] = {
        "neither a list nor an object": "fewer",
        "fly": [{"op": "fly"}],
        "the answer is too long": [{"op": "add", "text": "x" * 1_000_000}],
        "pages: extra inputs are not permitted": {"pages": 3},
        "plan": {"questions": [{"id": "Q1", "text": "?"}]},
    }

    for reason, edits in wrong.items():
        file.write_text(json.dumps(edits), encoding="utf-8")
        refuses(thread, "modify", reason, edits=str(file))
    refuses(thread, "approve", "--edits does not go with 'approve'", edits=str(file))
    for content, reason in [("[" * 100_000, "not JSON"), ("[" + " " * 2_000_000 + "]", "more than 2,000,000 bytes")]:
        file.write_text(content, encoding="utf-8")
        refuses(thread, "modify", reason, edits=str(file))

    assert pending() == asked
    assert state(thread) == before


@pytest.mark.slow
def test_planning_questions_are_answered_in_their_order(openassay: Command) -> None:
    thread = wait_at(openassay, mode="plan")
    [first] = pending()
    assert (first.kind, first.due) == ("planning", None)
    assert "no limit" in openassay("review").out
    hint = refuses(thread, "99", "'99' is not an answer here")
    assert hint.startswith("Choose 1 to ")
    assert "Ctrl-D" not in hint + refuses(thread, "help", "'help' is not an answer here")
    refuses(thread, "1", "wants an answer in words", comment="why")
    question = opened(thread)

    next_one = openassay("review", "answer", thread, "2", "--quiet")

    assert next_one.code == 3, next_one.err
    assert "a question is open: " in next_one.err
    before = state(thread)
    assert list(before.user_inputs.planner_answers.values()) == [question.options[1]]
    refuses(thread, "1", " UTC, by a person", question=first.id)
    assert state(thread) == before
    while len(pending()) == 1:
        with pytest.raises(typer.Exit) as left:
            answer(thread, ["Since 2015"], json=True, quiet=True)
        assert left.value.exit_code == (3 if pending() else 0)
    assert "Since 2015" in state(thread).user_inputs.planner_answers.values()


@pytest.mark.slow
@pytest.mark.requirement("W-01")
def test_what_is_open_is_dropped_when_its_thread_turns_to_auto(openassay: Command) -> None:
    thread = wait_at(openassay, mode="plan")
    [asked] = pending()

    switched = openassay("threads", "mode", thread, "auto")

    assert switched.code == 0, switched.err
    assert openassay.statuses(thread) == ["done"]
    refuses(thread, "1", "answered already, on 20", question=asked.id)
    assert pending() == []


# Decisions --------------------------------------------------------------------------------------------


def opened(thread: str) -> OpenQuestion:
    [question] = _with_engine(lambda engine: engine.interrupts.open_questions(thread))
    return question


@pytest.mark.slow
@pytest.mark.requirement("W-06")
def test_a_plan_is_changed_from_a_file_and_carried_out(openassay: Command) -> None:
    thread = wait_at(openassay, **AT_THE_PLAN)
    told = openassay("review", "show", thread).out
    assert QUESTION in told.splitlines()[0]
    asked = opened(thread).shown["plan"]["questions"]
    assert all(f"{one['id']} {one['text']}" in " ".join(told.split()) for one in asked)
    assert f"openassay review answer {thread} modify --edits -" in told
    change = [{"op": "words", "words": 500}]

    answered = openassay(
        "review", "answer", thread, "modify", "--edits", "-", "--json", stdin=json.dumps(change).encode()
    )

    assert answered.code == 0, answered.err
    assert answered.json["plan"]["words"] == 500


@pytest.mark.slow
@pytest.mark.requirement("W-06")
def test_a_report_is_looked_at_whole_before_it_is_published_or_ended(openassay: Command) -> None:
    thread = wait_at(openassay, hitl_before_output=True)
    question = opened(thread)
    told = " ".join(openassay("review", "show", thread).out.split())
    for section in question.shown["draft"]["sections"]:
        assert all(one["text"] in told for one in section["sentences"])

    ended = openassay("review", "answer", thread, "reject", "too", "narrow", "--comment", "and short", "--json")

    assert ended.code == 5, ended.err
    assert any("too narrow. and short" in notice for notice in ended.json["notices"])


@pytest.mark.slow
def test_the_example_of_an_answer_would_be_taken(openassay: Command, capsys: pytest.CaptureFixture[str]) -> None:
    thread = wait_at(openassay, **AT_THE_PLAN, hitl_before_output=True)
    for kind in ("approve_plan", "approve_output"):
        show(thread, json=True)
        told = json.loads(capsys.readouterr().out)
        [question] = told["questions"]
        assert (told["thread"], question["kind"]) == (thread, kind)
        assert set(question["example"]) <= set(question["schema"]["properties"])
        _with_engine(partial(_take, thread=thread, id=question["id"], value=question["example"]))


async def _take(engine: Engine, *, thread: str, id: str, value: object) -> None:
    outcome = await engine.wait((await engine.interrupts.answer(thread, id, value)).id)
    assert outcome.run.status is RunStatus.WAITING, outcome.run.error


@pytest.mark.slow
def test_a_job_without_a_terminal_leaves_its_question_open_if_asked_to(openassay: Command) -> None:
    configure(openassay, {"hitl_after_planning": True})
    question = "How did Apple change over 2023?"

    unattended = openassay("ask", question, "--json")
    waiting = openassay("ask", question, "--ask", "--json")

    assert unattended.code == 0
    assert any("nobody could give them" in notice for notice in unattended.json["notices"])
    assert waiting.code == 3, waiting.err
    [review] = pending()
    assert review.kind == "approve_plan"
    assert f"openassay review answer {review.thread}" in waiting.err
