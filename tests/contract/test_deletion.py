"""What goes with a thread and what stays: documents are shared by whoever read the same text."""

import asyncio
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.errors import NotFoundError
from openassay.models.event import RunStatus
from openassay.models.evidence import Document
from openassay.models.thread import Run, Thread
from openassay.storage.database import DOCUMENTS, Database
from openassay.storage.documents import SqlDocuments, sweep_documents
from openassay.storage.events import SqlNotes
from openassay.storage.integrity import SqlIntegrity, ensure_seals
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.threads import SqlThreads
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("F-10")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def page(text: str) -> Document:
    hash = hashlib.sha256(text.encode()).hexdigest()
    return Document(hash=hash, text=text, url="https://example.org/", title="A", fetched=NOW)


SHARED, OWN, LOST = page("A kiln is hot."), page("A kettle is hot."), page("An oven is hot.")


@pytest.fixture
def rows(any_database: Database) -> Rows:
    return Rows(any_database)


async def begun(rows: Rows, id: str, status: RunStatus = RunStatus.DONE) -> None:
    """A thread with a run of the same name."""
    threads = SqlThreads(rows)
    await threads.create(Thread(id=id, title="A", created=NOW, updated=NOW))
    await threads.begin(Run(id=id, thread=id, question="How hot?", status=status, started=NOW))


async def read(rows: Rows, *documents: Document, thread: str | None = None) -> None:
    """As a step does it; only with its result does the thread rest on them."""
    for document in documents:
        await SqlDocuments(rows).put(document)
    if thread:
        await SqlNotes(rows).put(thread, [{"document": document.hash} for document in documents])


def kept(rows: Rows) -> set[str]:
    return {row["text"] for row in rows.read(DOCUMENTS)}


async def test_documents_go_with_the_last_thread_that_uses_them(rows: Rows) -> None:
    for id in ("a", "b"):
        await begun(rows, id)
    await read(rows, SHARED, OWN, thread="a")
    await read(rows, SHARED, thread="b")

    await SqlThreads(rows).delete("a")
    assert kept(rows) == {SHARED.text}
    await SqlThreads(rows).delete("b")
    assert kept(rows) == set()


@pytest.mark.slow
@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING])
async def test_what_another_run_may_just_have_read_stays(rows: Rows, status: RunStatus) -> None:
    await begun(rows, "a")
    await begun(rows, "b", status)
    await read(rows, SHARED, OWN, thread="a")
    await read(rows, SHARED)  # by a step of b

    await SqlThreads(rows).delete("a")
    assert kept(rows) == {SHARED.text, OWN.text}
    await SqlNotes(rows).put("b", [{"document": SHARED.hash}])  # which is over now
    await SqlIntegrity(rows).check("b", [SHARED.hash])

    await SqlThreads(rows).update("b", status=RunStatus.DONE)
    await begun(rows, "c")
    await SqlThreads(rows).delete("c")
    assert kept(rows) == {SHARED.text}


def swept(rows: Rows, days: float) -> None:
    with rows.database.transaction() as connection:
        sweep_documents(rows, connection, NOW + timedelta(days=days))


async def test_where_a_run_is_always_at_work_they_go_a_day_later(rows: Rows) -> None:
    await begun(rows, "b", RunStatus.RUNNING)
    await read(rows, SHARED, OWN)

    swept(rows, 0)
    swept(rows, 0.9)
    assert kept(rows) == {SHARED.text, OWN.text}
    await read(rows, SHARED)  # again: its day begins anew
    swept(rows, 1.1)
    assert kept(rows) == {SHARED.text}
    swept(rows, 2.2)
    assert kept(rows) == set()
    await read(rows, SHARED, thread="b")
    swept(rows, 9)
    assert kept(rows) == {SHARED.text}


@pytest.mark.slow
async def test_they_are_given_up_when_threads_are_looked_through(rows: Rows) -> None:
    await begun(rows, "b", RunStatus.RUNNING)
    await read(rows, OWN)
    swept(rows, 0)  # in January: long ago
    await read(rows, SHARED)

    await SqlThreads(rows).delete_orphan_documents()

    assert kept(rows) == {SHARED.text}


@pytest.mark.slow
async def test_what_was_used_in_between_is_spared_a_whole_day_again(rows: Rows) -> None:
    """A mark of before says nothing about when its last thread went."""
    for id in ("a", "b"):
        await begun(rows, id, RunStatus.RUNNING)
    await SqlDocuments(rows).put(SHARED)
    swept(rows, 0)
    await SqlNotes(rows).put("a", [{"document": SHARED.hash}])
    swept(rows, 0.5)
    await SqlThreads(rows).update("a", status=RunStatus.DONE)
    with rows.database.transaction() as connection:
        connection.execute("DELETE FROM used_documents")
    swept(rows, 1.5)
    assert kept(rows) == {SHARED.text}
    swept(rows, 2.6)
    assert kept(rows) == set()


@pytest.mark.slow
async def test_a_document_is_there_however_reading_and_sweeping_meet(postgres_database: PostgresDatabase) -> None:
    """Whoever reads one that is being swept away waits, and puts it there again."""
    rows = Rows(postgres_database)
    await begun(rows, "b", RunStatus.RUNNING)
    await read(rows, SHARED)
    swept(rows, 0)
    with ThreadPoolExecutor(1) as pool:
        with postgres_database.transaction() as connection:
            sweep_documents(rows, connection, NOW + timedelta(days=2))
            reading = pool.submit(asyncio.run, SqlDocuments(rows).put(SHARED))
            with pytest.raises(TimeoutError):
                reading.result(0.3)
        reading.result(5)
    assert kept(rows) == {SHARED.text}


@pytest.mark.slow
async def test_what_a_step_read_that_was_killed_goes_with_the_next_thread(rows: Rows) -> None:
    await begun(rows, "a")
    await read(rows, LOST)

    await SqlThreads(rows).delete("a")

    assert kept(rows) == set()


@pytest.mark.slow
async def test_what_waits_to_become_part_of_a_checkpoint_is_used(rows: Rows) -> None:
    """A run that was stopped half-way goes on from the results of the tasks that were done."""
    for id in ("a", "b"):
        await begun(rows, id, RunStatus.CANCELLED)
    await read(rows, SHARED)
    where: Any = {"configurable": {"thread_id": "b", "checkpoint_ns": "", "checkpoint_id": "1"}}
    await SqlCheckpointSaver(rows).aput_writes(where, [("harvested", {"P1": {"document": SHARED.hash}})], "task")

    await SqlThreads(rows).delete("a")

    assert kept(rows) == {SHARED.text}


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, KEY])
def test_no_run_begins_while_documents_are_looked_through(postgres_database: PostgresDatabase, key: str | None) -> None:
    rows = Rows(postgres_database, Seals(key))
    ensure_seals(rows)
    threads, begins = SqlThreads(rows), threading.Event()
    threads._create(Thread(id="a", title="A", created=NOW, updated=NOW))

    def begin() -> None:
        begins.set()
        threads._begin(Run(id="r", thread="a", question="?", started=NOW))

    with ThreadPoolExecutor(1) as pool:
        with postgres_database.transaction() as connection:
            sweep_documents(rows, connection)
            beginning = pool.submit(begin)
            assert begins.wait(5)
            with pytest.raises(TimeoutError):
                beginning.result(0.2)
        beginning.result(5)
    assert threads._run("r").status is RunStatus.QUEUED


@pytest.mark.slow
async def test_a_thread_that_never_was_is_not_deleted(rows: Rows) -> None:
    with pytest.raises(NotFoundError):
        await SqlThreads(rows).delete("a")
