"""What every checkpointer does: LangGraph's own suite, on each database, in the clear and encrypted; and what ours does
besides, that nothing altered is ever taken for a checkpoint."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.types import Send

from openassay.engine.checkpoints import PART, SqlCheckpointSaver
from openassay.errors import IntegrityError, StorageError
from openassay.storage.database import Database
from openassay.storage.events import find_documents
from openassay.storage.sealed_rows import Rows, Seals
from openassay.storage.sqlite import SqliteDatabase
from tests.contract.conftest import KEY, with_threads

BIG = "The lake is large. " * PART
HASH = "ab" * 32


@contextmanager
def _file() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder, SqliteDatabase(Path(folder) / "main.db") as database:
        yield database


class _Anywhere(SqlCheckpointSaver):
    """LangGraph's suite keeps checkpoints of threads that nobody began."""

    async def aput(self, config: Any, *rest: Any) -> Any:
        with_threads(self._rows, config["configurable"]["thread_id"])
        return await super().aput(config, *rest)


@pytest.mark.slow
@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("seals", [Seals(), Seals(KEY, encrypt=True)], ids=["plain", "encrypted"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_langgraphs_own_suite_passes(kind: str, seals: Seals, request: pytest.FixtureRequest) -> None:
    postgres = request.getfixturevalue("postgres_database") if kind == "postgres" else None

    @checkpointer_test(name=f"{kind}", skip_capabilities={"delete_for_runs"})  # runs are ours, not LangGraph's
    async def saver() -> AsyncIterator[SqlCheckpointSaver]:
        if postgres is not None:
            yield _Anywhere(Rows(postgres, seals))
        else:
            with _file() as database:
                yield _Anywhere(Rows(database, seals))

    report = await validate(saver)

    assert report.passed_all_base()
    failed = [name for name, result in report.results.items() if result.failures]
    assert failed == []


@pytest.fixture
def saver(rows: Rows) -> SqlCheckpointSaver:
    return SqlCheckpointSaver(with_threads(rows, "t", "t0", "t1", "t2", "t3"))


def config(thread: str = "t", **more: str) -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


async def put(saver: SqlCheckpointSaver, thread: str = "t", parent: str | None = None, **values: Any) -> Any:
    checkpoint: Checkpoint = {**empty_checkpoint(), "channel_values": values}
    where = config(thread, **({"checkpoint_id": parent} if parent else {}))
    return await saver.aput(where, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {})


async def values_of(saver: SqlCheckpointSaver, where: Any) -> Any:
    kept = await saver.aget_tuple(where)
    assert kept is not None
    return kept.checkpoint["channel_values"]


@pytest.mark.slow
@pytest.mark.requirement("F-10", "L-05")
async def test_what_a_step_does_not_change_is_not_written_again(saver: SqlCheckpointSaver, rows: Rows) -> None:
    first = await put(saver, plan={"text": BIG}, round=1)
    second = await put(saver, parent=first["configurable"]["checkpoint_id"], plan={"text": BIG}, round=2)

    assert (await values_of(saver, first))["round"] == 1
    assert await values_of(saver, second) == {"plan": {"text": BIG}, "round": 2}
    with rows.database.connection() as connection:
        [parts] = connection.execute("SELECT count(*) AS n, max(length(payload)) AS size FROM parts").fetchall()
        [whole] = connection.execute("SELECT max(length(payload)) AS size FROM checkpoints").fetchall()
    assert parts["n"] == 1
    assert parts["size"] < len(BIG) / 10
    assert whole["size"] < PART


@pytest.mark.slow
async def test_pruning_leaves_what_is_kept_whole(saver: SqlCheckpointSaver, rows: Rows) -> None:
    for number in range(3):
        await put(saver, text=BIG + str(number // 2))
    last = await put(saver, text=BIG + "1")
    assert await saver.prune_run("t", "", keep=1) == 3
    assert await values_of(saver, last) == {"text": BIG + "1"}
    with rows.database.connection() as connection:
        assert connection.execute("SELECT count(*) AS n FROM parts").fetchone()["n"] == 1
    rows.check("thread", "t", deep=True)


async def test_the_documents_a_thread_rests_on_are_noted(saver: SqlCheckpointSaver, rows: Rows) -> None:
    place = {"document": HASH, "start": 3}
    await put(saver, selected={"Q1": [place]}, tasks=[Send("read", {"passages": [{"document": "cd" * 32}]})])
    with rows.database.connection() as connection:
        found = connection.execute("SELECT document FROM used_documents ORDER BY document").fetchall()
    assert [row["document"] for row in found] == [HASH, "cd" * 32]
    assert list(find_documents({"a": [("x", {"document": HASH})], "b": {"document": HASH[:-1]}, "c": None})) == [HASH]


@pytest.mark.slow
@pytest.mark.requirement("W-12")
async def test_what_a_person_says_is_no_document_the_thread_rests_on(saver: SqlCheckpointSaver, rows: Rows) -> None:
    """Whoever knows the hash of another's document would read it."""
    said = {"document": HASH}
    kept = await put(
        saver, original_query=HASH, planner_answers={"Q": HASH}, plan=said, edits=said, messages=[said], options=said,
        approvals={"a": said}, __start__={"options": said, "searched": said}, selected={"Q1": [{"title": HASH}]},
    )  # fmt: skip
    await saver.aput_writes(kept, [("__resume__", [said]), ("clarified", [said])], "task", "")
    with rows.database.connection() as connection:
        assert connection.execute("SELECT document FROM used_documents").fetchall() == []


class Trap:
    """What a blob would make if types were made by name."""

    sprung = False

    def __init__(self, *_: object) -> None:
        Trap.sprung = True


@pytest.mark.requirement("F-10")
async def test_only_plain_data_come_back(saver: SqlCheckpointSaver) -> None:
    Trap.sprung = False
    trap = Trap.__new__(Trap)
    try:
        kept = await put(saver, odd=trap)
        await values_of(saver, kept)
    except (StorageError, TypeError):
        pass  # refused is as good
    assert not Trap.sprung


ALTERATIONS: dict[str, Callable[[Any], Any]] = {
    "a checkpoint's state": lambda c: c.execute("UPDATE checkpoints SET payload = ?", (b"x",)),
    "its parent": lambda c: c.execute("UPDATE checkpoints SET parent = 'other'"),
    "its metadata": lambda c: c.execute("UPDATE checkpoints SET metadata = '{}'"),
    "a part": lambda c: c.execute("UPDATE parts SET payload = ?", (b"x",)),
    "a part that is gone": lambda c: c.execute("DELETE FROM parts"),
    "a result": lambda c: c.execute("UPDATE writes SET payload = ?", (b"x",)),
    "a result's channel": lambda c: c.execute("UPDATE writes SET channel = 'other'"),
}


@pytest.mark.slow
@pytest.mark.requirement("F-10", "C-15")
@pytest.mark.parametrize("what", ALTERATIONS)
async def test_what_was_altered_is_refused_by_name(saver: SqlCheckpointSaver, rows: Rows, what: str) -> None:
    kept = await put(saver, text=BIG)
    await saver.aput_writes(kept, [("found", {"n": 1})], "task", "")
    with rows.database.transaction() as connection:
        ALTERATIONS[what](connection)

    with pytest.raises(IntegrityError, match=r"(checkpoints|parts|writes) t/"):
        await saver.aget_tuple(config())


@pytest.mark.slow
@pytest.mark.requirement("F-10", "C-11")
async def test_two_threads_never_mix(saver: SqlCheckpointSaver) -> None:
    async def fill(thread: str) -> Any:
        last = None
        for number in range(5):
            last = await put(saver, thread, text=f"{thread} {number} {BIG}")
            await saver.aput_writes(last, [("found", thread)], f"task {number}", "")
        return last

    ends = await asyncio.gather(*(fill(f"t{n}") for n in range(4)))
    for number, end in enumerate(ends):
        kept = await saver.aget_tuple(config(f"t{number}"))
        assert kept is not None
        assert kept.config == end
        assert kept.checkpoint["channel_values"]["text"].startswith(f"t{number} 4 ")
        assert kept.pending_writes == [("task 4", "found", f"t{number}")]
