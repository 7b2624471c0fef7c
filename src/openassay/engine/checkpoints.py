"""LangGraph's checkpoints in the tables of OpenAssay's own database, SQLite or PostgreSQL, sealed like all others.

A checkpoint is a small row: values of the state above `PART` bytes stand apart, by the hash of what they hold, so what
a step did not change is not written again. Everything is checked when it is read. docs/decisions/0018 says why this is
not LangGraph's own saver.
"""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from openassay.errors import IntegrityError, NotFoundError
from openassay.models.base import Record
from openassay.state import evidence_values, note_names
from openassay.storage.database import CHECKPOINTS, NOTES, PARTS, USED_DOCUMENTS, WRITES, run_in_thread
from openassay.storage.events import SqlNotes, record_documents
from openassay.storage.sealed_rows import ALTERATION_HELP, Row, Rows, Writer, row_name
from openassay.storage.threads import open_thread_writer

# The ids of checkpoints tell their order, by the clock of the machine that made them.

_VERSION = 6  # time first


def advance_clock(id: str) -> None:
    """Ids that this process makes from here on come after that one. A machine whose clock is behind would else put what
    it does before what it goes on from, and the older state would count as the last."""
    try:
        made = UUID(id)
    except ValueError:  # somebody's own
        return
    if made.version == _VERSION:
        last: int | None = ids._last_v6_timestamp
        setattr(ids, "_last_v6_timestamp", max(last or 0, ids.UUID(int=made.int).time))  # noqa: B010  # typed as None


# What a checkpoint tells of itself without being opened: where its run stands and what comes next.
#
# It is kept with the checkpoint in plain text, encrypted or not, so it says nothing of what is researched.

_BEGINNING, _SENDS, _GOES_TO = "__start__", "__pregel_tasks", "branch:to:"  # names of LangGraph


class CheckpointPosition(Record):
    after: tuple[str, ...] = ()  # stages done before, of a copy alone: any other moment follows one that names them
    next: tuple[str, ...] = ()  # stages; none at the end of a run
    begins: bool = False  # nothing of the run was done yet
    planned: bool = False
    round: int = 0
    iteration: int = 0


def read_position(values: Mapping[str, Any]) -> CheckpointPosition:
    state = effective_state(values)
    begins = _BEGINNING in values
    return CheckpointPosition(
        next=(("withdraw" if state.get("withdrawn") else "understand"),) if begins else _next_nodes(values),
        begins=begins,
        planned=bool(state.get("plan")),
        round=_to_count(state.get("round")),
        iteration=_to_count(state.get("iteration")),
    )


def effective_state(values: Mapping[str, Any]) -> dict[str, Any]:
    """The state with a question that was put and not taken up yet."""
    put = values.get(_BEGINNING)
    fresh = put if isinstance(put, Mapping) else {}
    internal = (_BEGINNING, _SENDS)
    kept = {name: value for name, value in values.items() if name not in internal and not name.startswith(_GOES_TO)}
    return {**kept, **fresh, **_merge_messages(kept, fresh)}


def find_run_id(values: Mapping[str, Any]) -> str:
    """Of which run a checkpoint is; its first one holds the run in what it was given."""
    given = values.get(_BEGINNING)
    fresh = given.get("run") if isinstance(given, Mapping) else None
    return str(fresh or values.get("run") or "")


def replace_fields(values: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a checkpoint with fields of the state replaced, wherever it holds them."""
    put = values.get(_BEGINNING)
    if isinstance(put, Mapping):
        return {**values, _BEGINNING: {**put, **update}}
    return {**values, **update}


def replace_input(values: Mapping[str, Any], put: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a checkpoint at which a run begins, with another beginning."""
    return {**values, _BEGINNING: dict(put)}


def _next_nodes(values: Mapping[str, Any]) -> tuple[str, ...]:
    sends = [send.node for send in values.get(_SENDS) or ()]
    goes_to = [name.removeprefix(_GOES_TO) for name in values if name.startswith(_GOES_TO)]
    return tuple(dict.fromkeys((*sends, *sorted(goes_to))))


def _merge_messages(kept: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """What is put is said after what was said before."""
    if "messages" not in fresh:
        return {}
    before = kept.get("messages")
    return {"messages": [*(before if isinstance(before, list) else []), *fresh["messages"]]}


def _to_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)
PART = 1024  # bytes from which a value stands apart: a reference to it takes 90
_COMPRESSION_LEVEL = 1  # 350 KB of state in 5 ms, to a fifth; level 6 takes four times as long for a tenth more

ValueChange = Callable[[Mapping[str, Any]], dict[str, Any]]  # the values of a checkpoint, with something changed
_OWN = "openassay"  # what a checkpoint's metadata tell besides those of LangGraph


class CheckpointOutline(NamedTuple):
    id: str
    parent: str | None
    time: datetime
    run: str
    standing: CheckpointPosition


class CheckpointListener(Protocol):
    """Is told what was kept, after it was."""

    async def checkpoint(self, kept: CheckpointTuple) -> None: ...

    async def writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str) -> None: ...


class SqlCheckpointSaver(BaseCheckpointSaver[int]):
    """`watchers` are told of what is kept for their thread."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(serde=SERDE)
        self._rows = rows
        self.watchers: dict[str, CheckpointListener] = {}

    # -- reading ------------------------------------------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self._get, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield the newest first; each is read when it is asked for."""
        found = await asyncio.to_thread(self._list, config, filter or {}, before)
        for one in found[:limit]:
            if saved := await self.aget_tuple(one):
                yield saved

    def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, ns = _parse_config(config)
        if id := get_checkpoint_id(config):
            rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id))
        else:
            rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = ? ORDER BY id DESC LIMIT 1", (thread, ns))
        if rows:
            advance_clock(rows[0]["id"])
        return self._tuple(rows[0]) if rows else None

    def _tuple(self, row: Row) -> CheckpointTuple:
        writes = self._rows.read(
            WRITES, "WHERE thread = ? AND ns = ? AND checkpoint = ? ORDER BY path, task, idx",
            (row["thread"], row["ns"], row["id"]),
        )  # fmt: skip
        parent = _make_config(row["thread"], row["ns"], row["parent"]) if row["parent"] else None
        with _check_readable(row_name(CHECKPOINTS, row)):
            return CheckpointTuple(
                _make_config(row["thread"], row["ns"], row["id"]),
                self._checkpoint(row),
                cast("CheckpointMetadata", json.loads(row["metadata"])),
                parent,
                [(write["task"], *result) for write in writes for result in self._results(write)],
            )

    def _results(self, write: Row) -> list[tuple[str, Any]]:
        held = self._unpack(write["payload"])
        return [(write["channel"], held)] if write["channel"] else [(channel, value) for _, channel, value in held]

    def _checkpoint(self, row: Row) -> Checkpoint:
        held = self._unpack(row["payload"])
        parts = held.pop("parts")
        values = dict(held["channel_values"])
        rows = self._rows.iter_among(PARTS, "hash", parts.values(), "AND thread = ?", (row["thread"],))
        found = {part["hash"]: part["payload"] for part in rows}
        for channel, hash in parts.items():
            if hash not in found:
                raise IntegrityError(f"row parts {row['thread']}/{hash} is missing", help=ALTERATION_HELP)
            values[channel] = self._unpack(found[hash])
        return cast("Checkpoint", {**held, "channel_values": values})

    def _list(
        self, config: RunnableConfig | None, filter: dict[str, Any], before: RunnableConfig | None
    ) -> list[RunnableConfig]:
        held = config["configurable"] if config else {}
        last = get_checkpoint_id(before) if before else None
        wanted = {
            "thread = ?": held.get("thread_id"),
            "ns = ?": held.get("checkpoint_ns"),
            "id = ?": held.get("checkpoint_id"),
            "id < ?": last,
        }
        given = {clause: str(value) for clause, value in wanted.items() if value is not None}
        where = f"WHERE {' AND '.join(given)}" if given else ""
        columns = "thread, ns, id, metadata" if filter else "thread, ns, id"
        sql = f"SELECT {columns} FROM checkpoints {where} ORDER BY id DESC"  # noqa: S608  # marks alone
        rows = self._rows.database.query(sql, tuple(given.values()))
        return [
            _make_config(row["thread"], row["ns"], row["id"])
            for row in rows
            if not filter or filter.items() <= json.loads(row["metadata"]).items()
        ]

    @run_in_thread
    def find_thread(self, id: str) -> str | None:
        row = self._rows.database.query_one("SELECT thread FROM checkpoints WHERE id = ? LIMIT 1", (id,))
        return str(row["thread"]) if row else None

    @run_in_thread
    def outline(self, thread: str) -> list[CheckpointOutline]:
        """Return all checkpoints of a thread, oldest first, none of them opened: 2,000 take 0.2 s."""
        rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = '' ORDER BY id", (thread,))
        found = []
        for row in rows:
            with _check_readable(row_name(CHECKPOINTS, row)):
                position = CheckpointPosition.model_validate(json.loads(row["metadata"]).get(_OWN, {}))
                time = datetime.fromisoformat(row["time"])
                found.append(CheckpointOutline(row["id"], row["parent"], time, row["run"], position))
        return found

    @run_in_thread
    def ids_of_run(self, thread: str, run: str, since: datetime) -> tuple[str, ...]:
        """Return the ids of those that a run has made, oldest first."""
        rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = '' AND run = ? ORDER BY id", (thread, run))
        made = [row for row in rows if not json.loads(row["metadata"]).get(_OWN, {}).get("begins")]
        return tuple(row["id"] for row in made if datetime.fromisoformat(row["time"]) >= since)

    # -- writing ------------------------------------------------------------------------------------------

    def copy(
        self, source: str, id: str, target: str, now: datetime, after: Sequence[str], changed: ValueChange
    ) -> None:
        """A thread begins as another one stood at a checkpoint, `after` these stages. What was under way there is not
        copied: it is done again. Part of the transaction it is called in."""
        kept = self._get(_make_config(source, "", id))
        if kept is None:
            raise NotFoundError(f"thread {source} has no checkpoint {id}", thread=source)
        values = changed(kept.checkpoint["channel_values"])
        # An id of its own: the ids of questions are made from it, and those of the parent have their answers.
        fresh = str(uuid6(clock_seq=kept.metadata["step"]))
        checkpoint = {**kept.checkpoint, "id": fresh, "ts": now.isoformat(), "channel_values": values}
        metadata = _add_outline({**kept.metadata, "source": "fork"}, values, after)
        self._put(CheckpointTuple(_make_config(target, "", fresh), cast("Checkpoint", checkpoint), metadata, None))
        SqlNotes(self._rows).copy(source, target, set(note_names(values)))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, ns = _parse_config(config)
        kept = CheckpointTuple(
            _make_config(thread, ns, checkpoint["id"]),
            checkpoint,
            _add_outline(get_checkpoint_metadata(config, metadata), checkpoint["channel_values"]),
            _make_config(thread, ns, parent) if (parent := get_checkpoint_id(config)) else None,
        )
        await asyncio.to_thread(self._put, kept)
        if watcher := self.watchers.get(thread):
            await watcher.checkpoint(kept)
        return kept.config

    def _put(self, kept: CheckpointTuple) -> None:
        thread, ns = _parse_config(kept.config)
        values = kept.checkpoint["channel_values"]
        dumped = {channel: self._dump(value) for channel, value in values.items()}
        large = {channel: content for channel, content in dumped.items() if len(content) > PART}
        parts = {channel: zlib.compress(content, _COMPRESSION_LEVEL) for channel, content in large.items()}
        hashes = {channel: self._rows.seals.seal_bytes(payload) for channel, payload in parts.items()}
        small = {channel: value for channel, value in values.items() if channel not in parts}
        row = {
            "thread": thread,
            "ns": ns,
            "id": kept.checkpoint["id"],
            "parent": get_checkpoint_id(kept.parent_config) if kept.parent_config else None,
            "run": find_run_id(values),
            "time": kept.checkpoint["ts"],
            "metadata": json.dumps(kept.metadata),
            "payload": self._pack({**kept.checkpoint, "channel_values": small, "parts": hashes}),
        }
        with open_thread_writer(self._rows, thread) as writer:
            changed = dict(small)
            for channel, payload in parts.items():
                part = {"thread": thread, "hash": hashes[channel], "payload": payload}
                if writer.insert(PARTS, part, on_conflict="keep"):
                    changed[channel] = values[channel]
            writer.insert(CHECKPOINTS, row, on_conflict="replace")
            record_documents(writer, thread, evidence_values(changed.items()))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self._put_writes, config, list(writes), task_id, task_path)
        if watcher := self.watchers.get(_parse_config(config)[0]):
            await watcher.writes(config, writes, task_id, task_path)

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """What a task brought is one row, whatever the number of channels; an error, a question or an answer is one of
        its own, and takes the place of an earlier one. A result, once kept, is not kept again."""
        thread, ns = _parse_config(config)
        key = {"thread": thread, "ns": ns, "checkpoint": str(get_checkpoint_id(config)), "task": task_id}
        apart = [(WRITES_IDX_MAP[channel], channel, value) for channel, value in writes if channel in WRITES_IDX_MAP]
        brought = [[n, channel, value] for n, (channel, value) in enumerate(writes) if channel not in WRITES_IDX_MAP]
        with open_thread_writer(self._rows, thread) as writer:
            record_documents(writer, thread, evidence_values(writes))
            for index, channel, value in apart:
                row = {**key, "idx": index, "path": task_path, "channel": channel, "payload": self._pack(value)}
                writer.insert(WRITES, row, on_conflict="keep" if brought else "replace")
            if brought:
                before = writer.find(WRITES, *key.values(), 0)
                held = self._unpack(before["payload"]) if before else []
                held += [result for result in brought if result[0] not in {index for index, _, _ in held}]
                row = {**key, "idx": 0, "path": task_path, "channel": "", "payload": self._pack(held)}
                writer.insert(WRITES, row, on_conflict="replace")

    # -- deleting -----------------------------------------------------------------------------------------

    @run_in_thread
    def adelete_thread(self, thread_id: str) -> None:
        if not self._list({"configurable": {"thread_id": thread_id}}, {}, None):
            return  # gone with its thread; looking for more would leave a new head behind
        with self._rows.open_writer("thread", thread_id) as writer:
            for table in (CHECKPOINTS, PARTS, WRITES, NOTES, USED_DOCUMENTS):
                writer.delete(table, "WHERE thread = ?", (thread_id,))

    @run_in_thread
    def prune_run(self, thread: str, run: str, *, keep: int) -> int:
        """Delete all checkpoints of a run but the newest; return how many."""
        with open_thread_writer(self._rows, thread) as writer:
            gone = writer.read(CHECKPOINTS, "WHERE thread = ? AND run = ? ORDER BY id", (thread, run))[:-keep]
            for row in gone:
                place = thread, row["ns"], row["id"]
                writer.delete(CHECKPOINTS, "WHERE thread = ? AND ns = ? AND id = ?", place)
                writer.delete(WRITES, "WHERE thread = ? AND ns = ? AND checkpoint = ?", place)
            if gone:
                self._drop_orphans(writer, thread)
        return len(gone)

    def _drop_orphans(self, writer: Writer, thread: str) -> None:
        """Parts and notes that no checkpoint names any more, nor a result that waits to become part of one."""
        rows = writer.read(CHECKPOINTS, "WHERE thread = ?", (thread,))
        results = writer.read(WRITES, "WHERE thread = ?", (thread,))
        parts = {hash for row in rows for hash in self._unpack(row["payload"])["parts"].values()}
        states = [self._checkpoint(row)["channel_values"] for row in rows]
        states += [{channel: value} for row in results for channel, value in self._results(row)]
        notes = {name for state in states for name in note_names(state)}
        for table, column, wanted in ((PARTS, "hash", parts), (NOTES, "name", notes)):
            sql = f"SELECT {column} AS name FROM {table.name} WHERE thread = ?"  # noqa: S608  # names of ours
            kept = {row["name"] for row in writer.connection.execute(sql, (thread,)).fetchall()}
            for name in sorted(kept - wanted):
                writer.delete(table, f"WHERE thread = ? AND {column} = ?", (thread, name))

    # -- values as bytes ----------------------------------------------------------------------------------

    def _dump(self, value: Any) -> bytes:
        import numpy  # noqa: F401  # waits for a thread that is importing it: half-way, the serialiser refuses exceptions

        kind, content = self.serde.dumps_typed(value)
        return kind.encode() + b"\n" + content

    def _pack(self, value: Any) -> bytes:
        return zlib.compress(self._dump(value), _COMPRESSION_LEVEL)

    def _unpack(self, payload: bytes) -> Any:
        kind, _, content = zlib.decompress(payload).partition(b"\n")
        return self.serde.loads_typed((kind.decode(), content))


@contextmanager
def _check_readable(place: str) -> Iterator[None]:
    """What was sealed can still be unreadable: another version has written it, or the serialiser refuses a type."""
    try:
        yield
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"row {place} cannot be read: {error}", help=ALTERATION_HELP) from error


def _add_outline(
    metadata: Mapping[str, Any], values: Mapping[str, Any], after: Sequence[str] = ()
) -> CheckpointMetadata:
    told = read_position(values).model_copy(update={"after": tuple(after)})
    return cast("CheckpointMetadata", {**metadata, _OWN: told.plain()})


def _parse_config(config: RunnableConfig) -> tuple[str, str]:
    held = config["configurable"]
    return str(held["thread_id"]), str(held.get("checkpoint_ns", ""))


def _make_config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}
