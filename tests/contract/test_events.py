"""What every SqlEvents does: numbered from 1, without gaps, in order, whoever appends."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openassay.errors import NotFoundError, StorageError
from openassay.models.event import Event
from openassay.models.thread import Run, Thread
from openassay.storage.events import SqlEvents
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from openassay.storage.threads import SqlThreads

NOW = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def threads(rows: Rows) -> SqlThreads:
    return SqlThreads(rows)


@pytest.fixture
async def log(threads: SqlThreads, rows: Rows) -> SqlEvents:
    """A log for the runs `a` and `b`, each on a thread of its own."""
    for id in "ab":
        await threads.create(Thread(id=id, title="", created=NOW, updated=NOW))
        await threads.begin(Run(id=id, thread=id, question="?", started=NOW))
    return SqlEvents(rows)


def event(run: str = "a", **data: object) -> Event:
    return Event(run=run, time=NOW, kind="notice", data=data)


async def test_numbers_start_at_one_in_each_run(log: SqlEvents) -> None:
    assert [(await log.append(event(run))).seq for run in "aabab"] == [1, 2, 1, 3, 2]


async def test_an_event_comes_back_as_it_was(log: SqlEvents) -> None:
    first = await log.append(event(text="\N{FIRE}\x00'", nested={"list": [1, 2.5, None]}))
    whole = Event(run="a", time=NOW, kind="leave", stage="plan", parent=first.seq, seq=99, data={})
    second = await log.append(whole)
    assert second == whole.model_copy(update={"seq": 2})
    assert await log.since("a", 0) == [first, second]


async def test_what_is_read_is_what_append_returned(log: SqlEvents) -> None:
    appended = await log.append(event(pair=(1, 2), when=NOW, path=Path("a")))
    assert await log.since("a", 0) == [appended]
    assert appended.data == {"pair": [1, 2], "when": "2026-01-02T03:04:05.000678Z", "path": "a"}


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.dictionaries(st.text(), PLAIN, max_size=4))
async def test_any_plain_data_survive(log: SqlEvents, data: dict[str, object]) -> None:
    appended = await log.append(Event(run="a", time=NOW, kind="notice", data=data))
    assert (await log.since("a", appended.seq - 1))[0].data == data


async def test_reading_goes_on_after_a_number(log: SqlEvents) -> None:
    for number in range(5):
        await log.append(event(number=number))
    assert [found.seq for found in await log.since("a", 0)] == [1, 2, 3, 4, 5]
    assert [found.seq for found in await log.since("a", 3)] == [4, 5]
    assert await log.since("a", 5) == []
    assert await log.since("a", 500) == []
    assert await log.since("b", 0) == []


async def test_a_run_that_never_began_has_no_events(log: SqlEvents) -> None:
    assert await log.since("x", 0) == []
    with pytest.raises(NotFoundError):
        await log.append(event("x"))


async def test_data_that_are_not_plain_are_refused(log: SqlEvents) -> None:
    with pytest.raises(StorageError) as caught:
        await log.append(event(thing=object()))
    assert caught.value.help
    assert await log.since("a", 0) == []


async def test_events_go_with_their_thread(log: SqlEvents, threads: SqlThreads) -> None:
    await log.append(event("a"))
    await log.append(event("b"))
    await threads.delete("a")
    assert await log.since("a", 0) == []
    assert len(await log.since("b", 0)) == 1


@pytest.mark.slow
async def test_many_tasks_leave_no_gap(log: SqlEvents) -> None:
    appended = await asyncio.gather(*(log.append(event(number=number)) for number in range(200)))
    assert sorted(found.seq for found in appended) == list(range(1, 201))
    found = await log.since("a", 0)
    assert [one.seq for one in found] == list(range(1, 201))
    assert {one.seq: one.data for one in appended} == {one.seq: one.data for one in found}


# SQLite -----------------------------------------------------------------------------------------------

APPEND = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from openassay.models.event import Event
from openassay.storage.events import SqlEvents
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase

async def main(log):
    one = lambda: log.append(Event(run="a", time=datetime.now(UTC), kind="token"))
    await asyncio.gather(*(one() for _ in range(100)))

with SqliteDatabase(Path(sys.argv[1])) as database:
    asyncio.run(main(SqlEvents(Rows(database))))
"""


@pytest.mark.slow
@pytest.mark.parametrize("any_database", ["sqlite"], indirect=True)
async def test_many_processes_leave_no_gap(log: SqlEvents, any_database: SqliteDatabase) -> None:
    assert _exit_codes(APPEND, any_database.path) == [0] * 4
    assert [found.seq for found in await log.since("a", 0)] == list(range(1, 401))


def _exit_codes(script: str, path: Path) -> list[int]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", script, str(path)]
    children = [subprocess.Popen(command, env=environment) for _ in range(4)]
    return [child.wait() for child in children]
