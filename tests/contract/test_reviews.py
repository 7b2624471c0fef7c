"""What every SqlReviews does; above all, that a question is answered once."""

import asyncio
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import AnswerError, NotFoundError, StorageError
from openassay.models.thread import AnswerOrigin, Review, Thread
from openassay.storage.events import SqlReviews
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlThreads

NOON = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)

pytestmark = pytest.mark.requirement("F-09")


@pytest.fixture
async def threads(rows: Rows) -> SqlThreads:
    """With the threads `t` and `u`."""
    threads = SqlThreads(rows)
    for id in "tu":
        await threads.create(Thread(id=id, title="", created=NOON, updated=NOON))
    return threads


@pytest.fixture
def store(threads: SqlThreads, rows: Rows) -> SqlReviews:
    return SqlReviews(rows)


def review(id: str = "q", of: str = "t", *, opened: datetime = NOON, due: datetime | None = None) -> Review:
    return Review(id=id, thread=of, run="r", kind="approve_plan", question="Go on?", opened=opened, due=due)


async def test_a_review_comes_back_as_it_was(store: SqlReviews) -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=-7)))
    kept = review(opened=elsewhere, due=elsewhere + timedelta(hours=1)).model_copy(
        update={"question": "\N{FIRE} 'quoted'\n\x00", "on_timeout": "approve"}
    )
    await store.open(kept)
    assert await store.get("q") == kept
    assert await store.pending() == [kept]


async def test_opening_again_changes_nothing(store: SqlReviews) -> None:
    due = NOON + timedelta(hours=1)
    await store.open(review(due=due))
    await store.open(review(due=due + timedelta(hours=1)))
    assert (await store.get("q")).due == due
    await store.accept_answer("q", "approve", "person", NOON)
    await store.open(review(due=due))
    assert (await store.get("q")).answer == "approve"
    assert await store.pending() == []


async def test_what_is_due_first_comes_first_then_what_was_opened_first(store: SqlReviews) -> None:
    hour = timedelta(hours=1)
    await store.open(review("late", opened=NOON, due=NOON + 3 * hour))
    await store.open(review("open end, second", opened=NOON + hour))
    await store.open(review("open end, first", of="u", opened=NOON))
    await store.open(review("soon, second", opened=NOON + hour, due=NOON + 2 * hour))
    await store.open(review("soon, first", of="u", opened=NOON, due=NOON + 2 * hour))
    soon, rest = ["soon, first", "soon, second"], ["late", "open end, first", "open end, second"]
    assert [found.id for found in await store.pending()] == soon + rest
    assert [found.id for found in await store.pending("u")] == ["soon, first", "open end, first"]
    assert await store.pending("nowhere") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    ["approve", "", "\N{FIRE}\n\x00", None, 7, {"decision": "modify", "edits": [{"op": "drop", "n": 1.5}], "on": True}],
)
async def test_an_answer_is_kept_as_it_was_given(store: SqlReviews, answer: Any) -> None:
    await store.open(review())
    taken = await store.accept_answer("q", answer, "person", NOON)
    assert (taken.answer, taken.answered, taken.by) == (answer, NOON, "person")
    assert await store.get("q") == taken
    assert await store.pending() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "told"),
    [("person", "by a person"), ("timer", "by the timer"), ("mode", "by switching its thread to auto")],
)
async def test_the_second_answer_is_told_of_the_first(store: SqlReviews, by: AnswerOrigin, told: str) -> None:
    await store.open(review())
    first = await store.accept_answer("q", "approve", by, NOON.astimezone(timezone(timedelta(hours=9))))
    for second in ("person", "timer", "mode"):
        with pytest.raises(AnswerError, match=f"answered already, on 2026-11-15 12:30 UTC, {told}") as caught:
            await store.accept_answer("q", "reject", second, NOON + timedelta(days=1))
        assert caught.value.help
    assert await store.get("q") == first


@pytest.mark.parametrize("by", ["timer", "mode"])
async def test_from_its_due_on_no_person_may_answer(store: SqlReviews, by: AnswerOrigin) -> None:
    await store.open(review(due=NOON))
    with pytest.raises(AnswerError, match="ended, on 2026-11-15 12:30 UTC") as caught:
        await store.accept_answer("q", "approve", "person", NOON)
    assert caught.value.help == "The default applies now: openassay resume t"
    assert [found.id for found in await store.pending()] == ["q"]
    assert (await store.accept_answer("q", "skip", by, NOON)).by == by


async def test_a_person_may_answer_to_the_last_moment(store: SqlReviews) -> None:
    await store.open(review(due=NOON))
    tokyo = timezone(timedelta(hours=9))  # its clock reads later, which must not matter
    assert (await store.accept_answer("q", "approve", "person", (NOON - MOMENT).astimezone(tokyo))).by == "person"


async def test_the_latest_is_what_was_asked_last(store: SqlReviews) -> None:
    hour = timedelta(hours=1)
    assert await store.latest("t") is None
    await store.open(review("second", opened=NOON + hour))
    await store.open(review("first", opened=NOON, due=NOON + 9 * hour))
    await store.open(review("elsewhere", of="u", opened=NOON + 2 * hour))
    await store.open(review("third", opened=NOON + hour))
    taken = await store.accept_answer("third", "approve", "person", NOON + hour)
    assert await store.latest("t") == taken


async def test_what_never_was_is_not_found(store: SqlReviews) -> None:
    for call in (store.get("x"), store.accept_answer("x", "approve", "person", NOON)):
        with pytest.raises(NotFoundError) as caught:
            await call
        assert caught.value.help
    with pytest.raises(NotFoundError):
        await store.open(review(of="nowhere"))


async def test_reviews_go_with_their_thread(store: SqlReviews, threads: SqlThreads) -> None:
    await store.open(review("gone"))
    await store.open(review("kept", of="u"))
    await threads.delete("t")
    assert [found.id for found in await store.pending()] == ["kept"]
    assert await store.latest("t") is None
    with pytest.raises(NotFoundError):
        await store.get("gone")


async def test_an_answer_that_is_not_plain_data_is_refused(store: SqlReviews) -> None:
    await store.open(review())
    with pytest.raises(StorageError, match="JSON"):
        await store.accept_answer("q", object(), "person", NOON)
    assert len(await store.pending()) == 1


async def test_one_of_many_answers_is_taken(store: SqlReviews) -> None:
    await store.open(review())
    tries = await asyncio.gather(
        *(store.accept_answer("q", number, "person", NOON) for number in range(30)), return_exceptions=True
    )
    [won] = [outcome.answer for outcome in tries if isinstance(outcome, Review)]
    assert sum(isinstance(outcome, AnswerError) for outcome in tries) == 29
    assert (await store.get("q")).answer == won


# SQLite -----------------------------------------------------------------------------------------------

QUESTIONS = 20

TAKE = f"""
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from openassay.errors import AnswerError
from openassay.storage.events import SqlReviews
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase

with SqliteDatabase(Path(sys.argv[1])) as database:
    print("ready", flush=True)
    sys.stdin.readline()
    for question in range({QUESTIONS}):
        try:
            answer = SqlReviews(Rows(database)).accept_answer(str(question), sys.argv[2], "person", datetime.now(UTC))
            asyncio.run(answer)
        except AnswerError:
            continue
        print(question, flush=True)
"""


async def _asked(rows: Rows) -> SqlReviews:
    await SqlThreads(rows).create(Thread(id="t", title="", created=NOON, updated=NOON))
    store = SqlReviews(rows)
    for number in range(QUESTIONS):
        await store.open(review(str(number)))
    return store


@pytest.mark.slow
async def test_one_of_two_processes_answers(sqlite_database: SqliteDatabase) -> None:
    store = await _asked(Rows(sqlite_database))
    won = _taken_by_two(sqlite_database.path)
    assert sorted(won["a"] + won["b"], key=int) == [str(number) for number in range(QUESTIONS)]
    for name, numbers in won.items():
        assert {(await store.get(number)).answer for number in numbers} <= {name}


def _taken_by_two(path: Path) -> dict[str, list[str]]:
    """What the processes `a` and `b` have answered, let go at the same moment."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    children = {
        name: subprocess.Popen(
            [sys.executable, "-W", "error", "-c", TAKE, path, name],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in "ab"
    }
    for child in children.values():
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    for child in children.values():
        assert child.stdin
        child.stdin.write("go\n")
        child.stdin.flush()
    won = {name: child.communicate()[0].split() for name, child in children.items()}
    assert [child.returncode for child in children.values()] == [0, 0]
    return won


async def test_one_of_two_threads_answers(rows: Rows) -> None:
    store = await _asked(rows)
    barrier, refused = threading.Barrier(2), []

    def answer_all() -> None:
        for number in range(QUESTIONS):
            barrier.wait(10)
            try:
                asyncio.run(store.accept_answer(str(number), threading.current_thread().name, "person", NOON))
            except AnswerError:
                refused.append(number)

    workers = [threading.Thread(target=answer_all) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        await asyncio.to_thread(worker.join)
    assert sorted(refused) == list(range(QUESTIONS))
    assert await store.pending() == []


async def test_a_time_without_zone_is_refused(rows: Rows) -> None:
    store = await _asked(rows)
    with pytest.raises(StorageError, match="time zone"):
        await store.open(review("naive", due=datetime(2026, 1, 1)))
    with pytest.raises(StorageError, match="time zone"):
        await store.accept_answer("0", "approve", "person", datetime(2026, 1, 1))
    assert (await store.get("0")).answered is None


async def test_a_review_outlives_its_database(tmp_path: Path) -> None:
    kept = review(due=NOON + timedelta(hours=1))
    with SqliteDatabase(tmp_path / "main.db") as first:
        await SqlThreads(Rows(first)).create(Thread(id="t", title="", created=NOON, updated=NOON))
        await SqlReviews(Rows(first)).open(kept)
    with SqliteDatabase(tmp_path / "main.db") as second:
        assert await SqlReviews(Rows(second)).pending() == [kept]
