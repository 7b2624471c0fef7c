"""Time travel: a thread as it was at any moment, and branches that go on from there with something changed."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import NotFoundError, StorageError, UsageError
from openassay.export import Report
from openassay.models.event import RunStatus
from openassay.models.plan import Mode
from openassay.models.report import ReportStatus
from openassay.models.thread import BranchChanges, CheckpointInfo, ResearchOptions
from openassay.storage.database import ALL_TABLES
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, LAKE, QUESTION, SURVEY

pytestmark = pytest.mark.requirement("W-18")

Make = Callable[..., Lab]


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    with SqliteDatabase(tmp_path / "lab.sqlite3") as database:
        yield Rows(database)


@pytest.fixture
def here(lab: Make, rows: Rows) -> Lab:
    """A laboratory on a database, whose only source is the documents on a lake."""
    made = lab(rows=rows)
    made.holds(*LAKE)
    return made


async def forked(here: Lab, thread: str, at: str | None = None, **changes: Any) -> Report:
    run = await here.engine.branches.fork(thread, at, BranchChanges(**changes))
    outcome = await here.settled(run.id)
    assert outcome.report is not None, outcome.run.error
    return outcome.report


async def moment(here: Lab, thread: str, after: str) -> CheckpointInfo:
    return [one for one in await here.engine.history.list_page(thread, limit=None) if after in one.after][-1]


async def latest(here: Lab) -> str:
    found = await here.threads.list_recent(limit=50)
    return str(max(found, key=lambda thread: thread.created).id)


def kept(rows: Rows, thread: str) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a thread, byte by byte."""
    of_runs = "run IN (SELECT id FROM runs WHERE thread = ?)"
    of_people = ("", "user")
    places = {
        table.name: f"{table.owner} = ?" if table.scope == "thread" else of_runs
        for table in ALL_TABLES
        if table.scope not in of_people
    }
    places["heads"] = "scope = 'thread:' || ?"
    found = {}
    with rows.database.connection() as connection:
        for table, place in places.items():
            sql = f"SELECT * FROM {table} WHERE {place}"  # noqa: S608  # names of ours
            found[table] = [tuple(row) for row in connection.execute(sql, (thread,)).fetchall()]
    return found


def facts(report: Report) -> set[str]:
    return {s.text for section in report.sections for s in section.sentences if s.kind == "fact"}


def words(report: Report) -> int:
    return sum(len(s.text.split()) for section in report.sections for s in section.sentences if s.kind == "fact")


# The moments ------------------------------------------------------------------------------------------


async def test_every_step_of_a_run_can_be_looked_at_again(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    history = await here.engine.history.list_page(thread, limit=None)
    assert [one.number for one in history] == list(range(1, len(history) + 1))
    assert history[0].begins
    assert history[-1].next == ()
    assert {stage for one in history for stage in one.after} >= {"understand", "plan", "search", "write", "publish"}
    assert all(one.summary for one in history)
    told = {one.after[-1]: one.summary for one in history if one.after}
    assert "sub-questions planned" in told["plan"]
    assert told["publish"].startswith("report complete")
    assert [one.time for one in history] == sorted(one.time for one in history)
    assert await here.engine.history.list_page(thread, limit=3) == history[-3:]


async def test_the_state_of_a_moment_is_that_of_the_moment(here: Lab) -> None:
    thread = (await here.report(QUESTION)).provenance.thread
    first, planned = (await here.engine.history.list_page(thread, limit=None))[0], await moment(here, thread, "plan")
    asked = await here.engine.history.view(thread, "1")
    assert (asked.user_inputs.goal, asked.plan, asked.next) == (QUESTION, None, ("understand",))
    after_plan = await here.engine.history.view(thread, planned.short)
    assert after_plan.plan is not None
    assert (after_plan.search_results, after_plan.draft) == ((), None)
    written = await here.engine.history.view(thread, (await moment(here, thread, "write")).checkpoint)
    assert written.draft is not None
    assert "412" in written.draft.text
    assert (await here.engine.history.state(thread, first.checkpoint))["original_query"] == QUESTION


@pytest.mark.slow
async def test_a_checkpoint_that_is_not_there_is_said_to_be_so(here: Lab) -> None:
    thread = (await here.report(QUESTION)).provenance.thread
    other = (await here.report("How do visitors reach Lake Marrow?")).provenance.thread
    [*_, foreign] = await here.engine.history.list_page(other)
    with pytest.raises(NotFoundError, match=f"is of thread {other}, not of {thread}"):
        await here.engine.history.view(thread, foreign.checkpoint)
    for name in ("99", "0", "nosuch", "1f", "", "1f000000-0000"):
        with pytest.raises(NotFoundError, match="has no checkpoint") as caught:
            await here.engine.history.view(thread, name)
        assert caught.value.help
    with pytest.raises(NotFoundError, match="at least 8 characters"):
        await here.engine.history.view(thread, "1f1e")
    with pytest.raises(NotFoundError, match="no thread nosuch"):
        await here.engine.history.list_page("nosuch")


# Forks ------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_fork_at_each_checkpoint_ends_as_its_parent_did(here: Lab, rows: Rows) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    before = kept(rows, thread)
    for one in await here.engine.history.list_page(thread, limit=None):
        branch = await forked(here, thread, one.checkpoint)
        assert facts(branch) == facts(report), one.label
        assert branch.status is ReportStatus.COMPLETE
        assert (await here.engine.history.report(await latest(here))).model_dump() == branch.model_dump()
    assert kept(rows, thread) == before
    assert len((await here.engine.branches.tree(thread)).branches) == len(
        await here.engine.history.list_page(thread, limit=None)
    )


@pytest.mark.slow
async def test_style_and_length_are_changed_before_anything_is_written(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    branch = await forked(here, thread, style="executive", words=50)
    assert words(branch) < words(report)
    [tree] = (await here.engine.branches.tree(thread)).branches
    assert (tree.changed, tree.moment) == ("executive style, 50 words", (await moment(here, thread, "verify")).label)
    assert tree.title.startswith("executive style, 50 words · How")
    log = await here.log((await here.threads.runs(tree.thread))[0].id)
    assert not {"search", "read", "plan", "verify"} & {event.stage for event in log if event.kind == "enter"}


async def test_a_change_that_takes_effect_earlier_says_where_it_began(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    reviewed = await moment(here, thread, "review")
    branch = await forked(here, thread, reviewed.checkpoint, words=50)
    assert any(f"It does not begin at {reviewed.label}" in notice for notice in branch.notices)
    [run] = await here.threads.runs(await latest(here))
    assert any("takes effect earlier" in str(event.data) for event in await here.log(run.id) if event.kind == "notice")


async def test_another_deliverable_leaves_both_branches_readable(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    branch = await forked(here, thread, deliverable="A one-page briefing for the board")
    assert branch.plan is not None
    assert branch.plan.deliverable == "A one-page briefing for the board"
    state = await here.engine.state(await latest(here))
    assert (state["options"]["style"], state["options"]["words"]) == ("executive", 350)
    assert (await here.engine.history.report(thread)).model_dump() == report.model_dump()


@pytest.mark.slow
async def test_an_edited_plan_is_carried_out(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    asks = "How does the ferry on Lake Marrow run?"
    branch = await forked(here, thread, edits=({"op": "add", "text": asks},))
    assert branch.plan is not None
    assert asks in [question.text for question in branch.plan.questions]
    assert any("60 passengers" in claim.text for claim in branch.claims)
    [tree] = (await here.engine.branches.tree(thread)).branches
    assert tree.moment == (await moment(here, thread, "plan")).label


async def test_sections_are_renamed_without_searching_again(here: Lab) -> None:
    report = await here.report(QUESTION)
    assert report.plan is not None
    title = report.plan.sections[0]
    branch = await forked(
        here, report.provenance.thread, edits=({"op": "rename_section", "title": title, "name": "Its size"},)
    )
    assert "Its size" in [section.title for section in branch.sections]
    [run] = await here.threads.runs(await latest(here))
    assert "search" not in {event.stage for event in await here.log(run.id) if event.kind == "enter"}


@pytest.mark.slow
async def test_a_source_is_done_without(here: Lab) -> None:
    report = await here.report(QUESTION)
    card = next(card for card in report.sources if card.document == SURVEY.hash)
    for named in (card.id, SURVEY.url, "survey.example"):
        branch = await forked(here, report.provenance.thread, without=(named,))
        assert SURVEY.hash not in {card.document for card in branch.sources}
        assert GAZETTE.hash in {card.document for card in branch.sources}
    # Asked anew from its parent, at a moment when nothing had been found yet: the number is that of the report.
    run = await here.engine.branches.fork(report.provenance.thread, None, BranchChanges(without=(card.id,)))
    await here.settled(run.id)
    again = await forked(here, run.thread, depth="quick")
    assert SURVEY.hash not in {card.document for card in again.sources}


@pytest.mark.slow
@pytest.mark.requirement("C-11")
async def test_another_question_keeps_the_conversation_before_it(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    await here.ask("Why did it shrink?", thread=thread)
    branch = await forked(here, thread, question="Does it freeze over in winter?")
    assert "Lake Marrow" in branch.question
    assert any("freezes over" in claim.text for claim in branch.claims)
    state = await here.engine.state(await latest(here))
    said = [message["content"] for message in state["messages"] if message["role"] == "user"]
    assert said == [QUESTION, "Does it freeze over in winter?"]


@pytest.mark.slow
@pytest.mark.requirement("C-11")
async def test_a_branch_is_a_thread_like_any_other(here: Lab, rows: Rows) -> None:
    """Asked on, vetoed and forked again; parents know nothing of it."""
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    before = kept(rows, thread)
    await forked(here, thread)
    branch = await latest(here)
    follow_up = await here.ask("Does it freeze over in winter?", thread=branch)
    assert follow_up.report is not None
    assert "Lake Marrow" in follow_up.report.question
    await forked(here, branch, words=50)
    tree = await here.engine.branches.tree(await latest(here))
    assert tree.thread == thread
    assert tree.branches[0].thread == branch
    assert tree.branches[0].branches[0].parent == branch
    assert kept(rows, thread) == before


@pytest.mark.slow
async def test_a_branch_that_begins_too_late_goes_back_to_its_parent(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    await forked(here, thread, words=60)
    shorter = await latest(here)
    branch = await forked(here, shorter, edits=({"op": "remove", "question": "Q2"},))
    assert branch.plan is not None
    assert "Q2" not in [question.id for question in branch.plan.questions]
    state = await here.engine.state(await latest(here))
    assert state["options"]["words"] == 60
    first, second = [run.id for of in (thread, shorter) for run in await here.threads.runs(of)]
    assert state["options"]["lineage"] == [second, first]
    assert [tree.parent for tree in (await here.engine.branches.tree(thread)).branches] == [thread, thread]


async def test_a_finished_copy_can_be_vetoed(here: Lab) -> None:
    report = await here.report(QUESTION)
    await forked(here, report.provenance.thread)
    run = await here.engine.vetoes.begin(await latest(here), ["survey.example"])
    outcome = await here.settled(run.id)
    assert outcome.report is not None, outcome.run.error
    assert SURVEY.hash not in {card.document for card in outcome.report.sources}


@pytest.mark.slow
async def test_what_was_vetoed_stays_out_of_a_branch(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    await here.settled((await here.engine.vetoes.begin(thread, ["survey.example"])).id)
    again = await forked(here, thread)
    changed = await forked(here, thread, words=50)
    for branch in (again, changed):
        assert SURVEY.hash not in {card.document for card in branch.sources}
    [copy, shorter] = (await here.engine.branches.tree(thread)).branches
    assert copy.moment.endswith("after publish")
    assert shorter.moment.endswith("after plan")  # what the source had found goes, so it is searched again


@pytest.mark.slow
async def test_a_question_at_the_fork_is_asked_again_and_on_the_branch_alone(lab: Make, rows: Rows) -> None:
    here = lab(rows=rows, settings={"hitl_after_planning": True})
    here.holds(*LAKE)
    asked = await here.ask(QUESTION, interactive=True)
    thread = asked.run.thread
    run = await here.engine.branches.fork(thread)
    branch = await here.settled(run.id)
    assert branch.run.status is RunStatus.WAITING
    assert branch.questions[0].id != asked.questions[0].id
    assert branch.questions[0].question == asked.questions[0].question
    done = await here.answer(branch, "approve")
    assert done.report is not None
    assert (await here.engine.interrupts.open_questions(thread))[0].id == asked.questions[0].id
    assert (await here.answer(asked, "approve")).report is not None
    # Answered on the parent, and still asked by whoever goes back to before it.
    once_more = await here.settled(
        (await here.engine.branches.fork(thread, (await moment(here, thread, "plan")).short)).id
    )
    assert once_more.run.status is RunStatus.WAITING


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "mode", "note"),
    [(QUESTION, Mode.PLAN, "planning questions that were open were left to defaults"), ("tell me more", None, "")],
)
async def test_a_branch_on_which_nobody_is_asked_takes_the_defaults(
    here: Lab, question: str, mode: Mode | None, note: str
) -> None:
    asked = await here.ask(question, interactive=True, mode=mode)
    assert asked.run.status is RunStatus.WAITING
    run = await here.engine.branches.fork(asked.run.thread, interactive=False)
    branch = await here.settled(run.id)
    assert branch.report is not None, branch.questions
    assert note in " ".join(branch.report.notices)
    assert (await here.threads.runs(asked.run.thread))[-1].status is RunStatus.WAITING


@pytest.mark.slow
async def test_branches_run_at_the_same_time(here: Lab, rows: Rows) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    before = kept(rows, thread)
    planned = await moment(here, thread, "plan")
    runs = [await here.engine.branches.fork(thread, planned.short, BranchChanges(words=60 + n)) for n in range(3)]
    outcomes = await asyncio.gather(*(here.settled(run.id) for run in runs))
    assert all(outcome.report is not None for outcome in outcomes)
    assert len({outcome.run.thread for outcome in outcomes}) == 3
    assert kept(rows, thread) == before


async def test_a_branch_outlives_its_parent(here: Lab) -> None:
    report = await here.report(QUESTION)
    await forked(here, report.provenance.thread, words=50)
    branch = await latest(here)
    await here.threads.delete(report.provenance.thread)
    tree = await here.engine.branches.tree(branch)
    assert (tree.thread, tree.of_deleted, tree.parent) == (branch, True, report.provenance.thread)
    assert (await here.engine.history.report(branch)).status is ReportStatus.COMPLETE
    assert (await here.engine.history.view(branch, "1")).user_inputs.goal == QUESTION


async def test_a_branch_that_cannot_be_made_leaves_nothing(
    here: Lab, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread

    def full(*args: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(here.checkpointer, "_put", full)
    with pytest.raises(StorageError, match="the disk is full"):
        await here.engine.branches.fork(thread, None, BranchChanges(words=50))
    assert [found.id for found in await here.threads.list_recent(limit=9)] == [thread]
    assert (await here.engine.branches.tree(thread)).branches == ()


async def test_what_cannot_be_changed_is_refused_before_anything_is_made(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    greeted = (await here.ask("hello there")).run.thread
    first = (await here.engine.history.list_page(thread, limit=None))[0].checkpoint
    refused: list[tuple[str, str | None, dict[str, Any], str]] = [
        (thread, first, {"edits": ({"op": "remove", "question": "Q1"},)}, "there was no plan yet"),
        (thread, None, {"edits": ({"op": "remove", "question": "Q99"},)}, "no sub-question Q99"),
        (thread, None, {"plan": {"questions": []}}, "The plan cannot be used"),
        (thread, None, {"without": ("S99",)}, "there is no source"),
        (thread, None, {"without": ("nowhere.example",)}, "there is no source"),
        (thread, None, {"question": "x" * 3000}, "at most"),
        (greeted, None, {"deliverable": "a memo"}, "no plan was made"),
        (greeted, None, {"words": 100}, "no research was done"),
    ]
    for of, at, changes, message in refused:
        with pytest.raises(UsageError, match=message) as caught:
            await here.engine.branches.fork(of, at, BranchChanges(**changes))
        assert caught.value.help
    assert {found.id for found in await here.threads.list_recent(limit=9)} == {thread, greeted}


async def test_a_moment_that_was_pruned_is_said_to_be_gone(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    await here.checkpointer.prune_run(thread, report.provenance.run, keep=2)
    assert [one.number for one in await here.engine.history.list_page(thread)] == [1, 2]
    for changes in (BranchChanges(words=50), BranchChanges(question="How do visitors reach Lake Marrow?")):
        with pytest.raises(UsageError, match="no longer stored") as caught:
            await here.engine.branches.fork(thread, None, changes)
        assert "persistence.keep_checkpoints" in caught.value.help
    assert facts(await forked(here, thread, "1")) == facts(report)
    await here.checkpointer.prune_run(thread, report.provenance.run, keep=1)
    [last] = await here.engine.history.list_page(thread)
    assert (last.after, last.summary.split(":")[0]) == (("publish",), "report complete")


async def test_a_thread_is_forked_while_it_is_at_work(lab: Make, rows: Rows) -> None:
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def read(real: Any, *args: Any) -> Any:
        reading.set()
        await go_on.wait()
        return await real(*args)

    here = lab(rows=rows, read=read)
    here.holds(*LAKE)
    run = await here.engine.start(QUESTION, ResearchOptions())
    await reading.wait()
    branch = await here.engine.branches.fork(run.thread, None, BranchChanges(words=50))
    go_on.set()
    both = await asyncio.gather(here.settled(run.id), here.settled(branch.id))
    assert all(outcome.report is not None for outcome in both)


# Differences ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("X-07")
async def test_a_fork_is_told_apart_from_its_parent_by_claims(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    await forked(here, thread)
    copy = await latest(here)
    assert (await here.engine.history.diff(thread, copy)).empty
    await forked(here, thread, without=("survey.example",))
    branch = await latest(here)
    found = await here.engine.history.diff(thread, branch)
    assert any("drought" in one.text for one in found.dropped)
    assert (await here.engine.history.diff(branch, thread)).added == found.dropped
    [area] = [one for one in found.changed if "412" in one.after.text]
    assert {"mark", "sources"} <= set(area.how)
    assert {source.url for source in area.before.sources} - {source.url for source in area.after.sources} == {
        SURVEY.url
    }
    assert [source.url for source in found.sources_lost] == [SURVEY.url]


@pytest.mark.requirement("X-07")
async def test_a_draft_of_a_moment_is_compared_too(here: Lab) -> None:
    report = await here.report(QUESTION)
    thread = report.provenance.thread
    verified, written = await moment(here, thread, "verify"), await moment(here, thread, "write")
    found = await here.engine.history.diff(f"{thread}@{written.short}", thread)
    assert (found.added, found.dropped, found.changed) == ((), (), ())
    assert found.a.status is None
    assert (await here.engine.history.diff(f"{thread}@{verified.number}", thread)).same
    with pytest.raises(NotFoundError, match="nothing had been verified"):
        await here.engine.history.diff(f"{thread}@1", thread)
