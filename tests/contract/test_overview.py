"""Many threads at a glance, and those nobody has touched: the same on every store."""

from datetime import UTC, datetime, timedelta

import pytest

from openassay.errors import IntegrityError
from openassay.models.event import RunStatus
from openassay.models.spend import Caps, Charge, Reservation
from openassay.models.thread import Branch, ResearchOptions, Review, Run, Thread
from openassay.storage.events import SqlReviews
from openassay.storage.ledger import SqlLedger
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


@pytest.fixture
def store(rows: Rows) -> SqlThreads:
    return SqlThreads(rows, Clock())


async def asked(store: SqlThreads, thread: str, *statuses: RunStatus, owner: str = "local") -> None:
    """A thread with a run for each status."""
    await store.create(Thread(id=thread, title=f"about {thread}", created=START, updated=START, owner=owner))
    for number, status in enumerate(statuses):
        run = Run(
            id=f"{thread}{number}", thread=thread, question=f"question {number}",
            started=START + timedelta(hours=number), options=ResearchOptions(docs=(f"/docs/{thread}",)),
        )  # fmt: skip
        await store.begin(run)
        await store.update(run.id, status=status)


@pytest.mark.requirement("F-10")
async def test_threads_are_summed_up_newest_first(store: SqlThreads) -> None:
    await asked(store, "a", RunStatus.DONE, RunStatus.WAITING)
    await asked(store, "b", RunStatus.DONE, RunStatus.CANCELLED, RunStatus.DONE)
    await asked(store, "c")
    await store.add_branch(Branch(thread="b", parent="a", checkpoint="x", created=START))

    found = await store.overview(limit=10)

    assert [(one.id, one.status, one.turns, one.question, one.parent) for one in found] == [
        ("b", RunStatus.DONE, 3, "question 2", "a"),
        ("a", RunStatus.WAITING, 2, "question 1", None),
        ("c", None, 0, "", None),
    ]
    assert [one.id for one in await store.overview(limit=1)] == ["b"]
    assert [one.id for one in await store.overview(limit=9, statuses=[RunStatus.WAITING, RunStatus.FAILED])] == ["a"]
    assert await store.overview(limit=0) == []
    assert await store.folders() == {"/docs/a", "/docs/b"}


@pytest.mark.requirement("F-10")
async def test_what_is_going_on_counts_as_touched(store: SqlThreads) -> None:
    await asked(store, "old", RunStatus.DONE)
    await asked(store, "older", RunStatus.DONE, RunStatus.WAITING)
    await asked(store, "empty")
    await asked(store, "new", RunStatus.FAILED)
    updated = {one.id: one.updated for one in await store.overview(limit=10)}

    assert await store.list_idle(updated["new"], limit=10) == ["empty", "old"]
    assert await store.list_idle(updated["new"] + timedelta(seconds=1), limit=2) == ["empty", "old"]
    assert await store.list_idle(START, limit=10) == []


DAMAGES = {
    "threads": "UPDATE threads SET title = 'x' WHERE id = 'b'",
    "runs": "UPDATE runs SET question = 'x' WHERE thread = 'b'",
    "reviews": "UPDATE reviews SET question = 'x' WHERE thread = 'b'",
}


@pytest.mark.requirement("F-10", "C-15")
@pytest.mark.parametrize("table", DAMAGES)
async def test_one_thread_that_is_damaged_does_not_stop_the_others(
    rows: Rows, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, reviews = SqlThreads(rows), SqlReviews(rows)
    for id in ("a", "b"):
        await asked(store, id, RunStatus.WAITING)
        await reviews.open(Review(id=id, thread=id, run=f"{id}0", kind="approve_plan", question="Go on?", opened=START))
    with rows.database.transaction() as connection:
        connection.execute(DAMAGES[table])

    listed = {one.id: one.damaged for one in await store.overview(limit=9)}
    active = [run.id for run in await store.list_active()]
    pending = [review.id for review in await reviews.pending()]
    folders = await store.folders()

    assert listed == {"a": False, "b": table != "reviews"}
    assert active == (["a0"] if table == "runs" else ["a0", "b0"])
    assert pending == (["a"] if table == "reviews" else ["a", "b"])
    assert "/docs/a" in folders
    assert f"row {table} b" in caplog.text
    with pytest.raises(IntegrityError):
        await (store.get("b") if table == "threads" else store.runs("b") if table == "runs" else reviews.pending("b"))


async def test_a_thread_that_is_gone_stops_the_lists_of_nobody_else(rows: Rows) -> None:
    store = SqlThreads(rows)
    for id, owner in {"a": "ada", "b": "bob"}.items():
        await asked(store, id, RunStatus.DONE, RunStatus.WAITING, owner=owner)
    with rows.database.transaction() as connection:
        connection.execute("DELETE FROM threads WHERE id = 'b'")

    found = await store.overview(limit=5, statuses=[RunStatus.WAITING], owner="ada")

    assert [(one.id, one.turns, one.status) for one in found] == [("a", 2, RunStatus.WAITING)]
    with pytest.raises(IntegrityError, match="1 threads are there and 2 were written"):
        await store.overview(limit=5)


async def test_what_a_thread_has_cost_is_summed_over_its_runs(rows: Rows) -> None:
    store, ledger = SqlThreads(rows), SqlLedger(rows)
    await asked(store, "a", RunStatus.DONE, RunStatus.DONE)
    for run, micros in (("a0", 1_500_000), ("a1", 20)):
        await ledger.open(run, Caps(micros=10**7, tokens=10**6, requests=10))
        await ledger.reserve(
            Reservation(
                key=run, run=run, step="plan", provider="openai", model="gpt", micros=micros, tokens=10, seconds=60
            )
        )
        await ledger.record_send(run)
        await ledger.store_answer(run, "yes")
        await ledger.settle(run, Charge(micros=micros, prompt_tokens=5, completion_tokens=5))

    await asked(store, "b")

    found, other = await store.overview(limit=5)

    assert found.usd == pytest.approx(1.50002)
    assert other.usd == 0
