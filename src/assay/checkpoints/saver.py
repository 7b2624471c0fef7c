"""LangGraph's checkpoints in the tables of Assay's own database, SQLite or PostgreSQL, sealed like all others.

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
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from assay.checkpoints.ids import succeed
from assay.checkpoints.moments import Standing, run_of, standing
from assay.checkpoints.packing import Packing, packed
from assay.errors import IntegrityError, NotFoundError
from assay.notebook import evidence, notes_in
from assay.storage.notes import SqlNotes, use_documents
from assay.storage.rows import Row, Rows, Writer, place
from assay.storage.seals import ALTERED
from assay.storage.tables import CHECKPOINTS, NOTES, PARTS, USED_DOCUMENTS, WRITES
from assay.storage.threads import writing_in

PART = 1024  # bytes from which a value stands apart: a reference to it takes 90
_PAGE = 50  # checkpoints looked up at once

Changed = Callable[[Mapping[str, Any]], dict[str, Any]]  # the values of a checkpoint, with something changed
_OWN = "assay"  # what a checkpoint's metadata tell besides those of LangGraph


class Outline(NamedTuple):
    id: str
    parent: str | None
    time: datetime
    run: str
    standing: Standing


class Watcher(Protocol):
    """Is told what was kept, after it was."""

    async def checkpoint(self, kept: CheckpointTuple) -> None: ...

    async def writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str) -> None: ...


class Checkpoints(BaseCheckpointSaver[int]):
    """`watchers` are told of what is kept for their thread."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._rows = rows
        self.watchers: dict[str, Watcher] = {}

    @property
    def _packing(self) -> Packing:
        return Packing(self.serde)  # LangGraph may give a copy of this saver another

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
        """Newest first; each is read when it is asked for."""
        left, page = limit, before
        while left is None or left > 0:
            found, page = await asyncio.to_thread(self._found, config, filter or {}, page)
            for thread, ns, id in found[:left]:
                if kept := await self.aget_tuple(_config(thread, ns, id)):
                    yield kept
            left = None if left is None else left - len(found)
            if page is None:
                return

    def _get(self, config: RunnableConfig) -> CheckpointTuple | None:
        thread, ns = _place(config)
        if id := get_checkpoint_id(config):
            rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id))
        else:
            rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = ? ORDER BY id DESC LIMIT 1", (thread, ns))
        if rows:
            succeed(rows[0]["id"])
        return self._tuple(rows[0]) if rows else None

    def _tuple(self, row: Row) -> CheckpointTuple:
        writes = self._rows.read(
            WRITES, "WHERE thread = ? AND ns = ? AND checkpoint = ? ORDER BY path, task, idx",
            (row["thread"], row["ns"], row["id"]),
        )  # fmt: skip
        parent = _config(row["thread"], row["ns"], row["parent"]) if row["parent"] else None
        with _readable(place(CHECKPOINTS, row)):
            return CheckpointTuple(
                _config(row["thread"], row["ns"], row["id"]),
                self._checkpoint(row),
                cast("CheckpointMetadata", json.loads(row["metadata"])),
                parent,
                [(write["task"], *result) for write in writes for result in self._results(write)],
            )

    def _results(self, write: Row) -> list[tuple[str, Any]]:
        held = self._packing.unpack(write["payload"])
        return [(write["channel"], held)] if write["channel"] else [(channel, value) for _, channel, value in held]

    def _checkpoint(self, row: Row) -> Checkpoint:
        held = self._packing.unpack(row["payload"])
        parts = held.pop("parts")
        wanted = sorted(set(parts.values()))
        values = dict(held["channel_values"])
        if wanted:
            marks = ", ".join("?" for _ in wanted)
            rest = f"WHERE thread = ? AND hash IN ({marks})"
            found = {part["hash"]: part["payload"] for part in self._rows.read(PARTS, rest, (row["thread"], *wanted))}
            for channel, hash in parts.items():
                if hash not in found:
                    raise IntegrityError(f"row parts {row['thread']}/{hash} is missing", help=ALTERED)
                values[channel] = self._packing.unpack(found[hash])
        return cast("Checkpoint", {**held, "channel_values": values})

    def _found(
        self, config: RunnableConfig | None, filter: dict[str, Any], before: RunnableConfig | None
    ) -> tuple[list[tuple[str, str, str]], RunnableConfig | None]:
        """Which there are, and where to go on: those of a thread come by the page, since most who ask want its last."""
        where, values = _where(config, before)
        page = f"LIMIT {_PAGE}" if config else ""
        columns = "thread, ns, id, metadata" if filter else "thread, ns, id"
        sql = f"SELECT {columns} FROM checkpoints {where} ORDER BY id DESC {page}"  # noqa: S608  # marks alone
        with self._rows.database.connection() as connection:
            rows = connection.execute(sql, values).fetchall()
        found = [
            (row["thread"], row["ns"], row["id"])
            for row in rows
            if not filter or filter.items() <= json.loads(row["metadata"]).items()
        ]
        full = config is not None and len(rows) == _PAGE
        return found, _config(rows[-1]["thread"], rows[-1]["ns"], rows[-1]["id"]) if full else None

    async def holder(self, id: str) -> str | None:
        """The thread a checkpoint is of."""
        return await asyncio.to_thread(self._holder, id)

    def _holder(self, id: str) -> str | None:
        with self._rows.database.connection() as connection:
            row = connection.execute("SELECT thread FROM checkpoints WHERE id = ? LIMIT 1", (id,)).fetchone()
        return str(row["thread"]) if row else None

    async def outline(self, thread: str) -> "list[Outline]":
        """All checkpoints of a thread, oldest first, none of them opened: 2,000 take 0.2 s."""
        return await asyncio.to_thread(self._outline, thread)

    def _outline(self, thread: str) -> "list[Outline]":
        rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = '' ORDER BY id", (thread,))
        found = []
        for row in rows:
            with _readable(place(CHECKPOINTS, row)):
                held = json.loads(row["metadata"]).get(_OWN, {})
                time = datetime.fromisoformat(row["time"])
                found.append(Outline(row["id"], row["parent"], time, row["run"], Standing.model_validate(held)))
        return found

    async def of_run(self, thread: str, run: str, since: datetime) -> tuple[str, ...]:
        """The ids of those that a run has made, oldest first."""
        return await asyncio.to_thread(self._of_run, thread, run, since)

    def _of_run(self, thread: str, run: str, since: datetime) -> tuple[str, ...]:
        rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND ns = '' AND run = ? ORDER BY id", (thread, run))
        made = [row for row in rows if not json.loads(row["metadata"]).get(_OWN, {}).get("begins")]
        return tuple(row["id"] for row in made if datetime.fromisoformat(row["time"]) >= since)

    # -- writing ------------------------------------------------------------------------------------------

    def copy(self, source: str, id: str, target: str, now: datetime, after: Sequence[str], changed: Changed) -> None:
        """A thread begins as another one stood at a checkpoint, `after` these stages. What was under way there is not
        copied: it is done again. Part of the transaction it is called in."""
        kept = self._get(_config(source, "", id))
        if kept is None:
            raise NotFoundError(f"thread {source} has no checkpoint {id}", thread=source)
        values = changed(kept.checkpoint["channel_values"])
        # An id of its own: the ids of questions are made from it, and those of the parent have their answers.
        fresh = str(uuid6(clock_seq=kept.metadata["step"]))
        checkpoint = {**kept.checkpoint, "id": fresh, "ts": now.isoformat(), "channel_values": values}
        metadata = _outlined({**kept.metadata, "source": "fork"}, values, after)
        self._put(CheckpointTuple(_config(target, "", fresh), cast("Checkpoint", checkpoint), metadata, None))
        SqlNotes(self._rows).copy(source, target, set(notes_in(values)))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, ns = _place(config)
        kept = CheckpointTuple(
            _config(thread, ns, checkpoint["id"]),
            checkpoint,
            _outlined(get_checkpoint_metadata(config, metadata), checkpoint["channel_values"]),
            _config(thread, ns, parent) if (parent := get_checkpoint_id(config)) else None,
        )
        await asyncio.to_thread(self._put, kept)
        if watcher := self.watchers.get(thread):
            await watcher.checkpoint(kept)
        return kept.config

    def _put(self, kept: CheckpointTuple) -> None:
        thread, ns = _place(kept.config)
        values = kept.checkpoint["channel_values"]
        typed = {channel: self._packing.typed(value) for channel, value in values.items()}
        parts = {channel: packed(value) for channel, value in typed.items() if len(value[1]) > PART}
        hashes = {channel: self._rows.seals.seal_bytes(payload) for channel, payload in parts.items()}
        small = {channel: value for channel, value in values.items() if channel not in parts}
        row = {
            "thread": thread,
            "ns": ns,
            "id": kept.checkpoint["id"],
            "parent": get_checkpoint_id(kept.parent_config) if kept.parent_config else None,
            "run": run_of(values),
            "time": kept.checkpoint["ts"],
            "metadata": json.dumps(kept.metadata),
            "payload": self._packing.pack({**kept.checkpoint, "channel_values": small, "parts": hashes}),
        }
        with writing_in(self._rows, thread) as writer:
            fresh = [channel for channel in parts if self._put_part(writer, thread, hashes[channel], parts[channel])]
            writer.insert(CHECKPOINTS, row, on_conflict="replace")
            changed = {**small, **{channel: values[channel] for channel in fresh}}
            use_documents(writer, thread, evidence(changed.items()))

    @staticmethod
    def _put_part(writer: Writer, thread: str, hash: str, payload: bytes) -> bool:
        return writer.insert(PARTS, {"thread": thread, "hash": hash, "payload": payload}, on_conflict="keep")

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self._put_writes, config, list(writes), task_id, task_path)
        if watcher := self.watchers.get(_place(config)[0]):
            await watcher.writes(config, writes, task_id, task_path)

    def _put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """What a task brought is one row, whatever the number of channels; an error, a question or an answer is one of
        its own, and takes the place of an earlier one. A result, once kept, is not kept again."""
        thread, ns = _place(config)
        key = {"thread": thread, "ns": ns, "checkpoint": str(get_checkpoint_id(config)), "task": task_id}
        apart = [(WRITES_IDX_MAP[channel], channel, value) for channel, value in writes if channel in WRITES_IDX_MAP]
        brought = [[n, channel, value] for n, (channel, value) in enumerate(writes) if channel not in WRITES_IDX_MAP]
        with writing_in(self._rows, thread) as writer:
            use_documents(writer, thread, evidence(writes))
            for index, channel, value in apart:
                row = {**key, "idx": index, "path": task_path, "channel": channel, "payload": self._packing.pack(value)}
                writer.insert(WRITES, row, on_conflict="keep" if brought else "replace")
            if brought:
                before = writer.one(WRITES, *key.values(), 0)
                held = self._packing.unpack(before["payload"]) if before else []
                held += [result for result in brought if result[0] not in {index for index, _, _ in held}]
                row = {**key, "idx": 0, "path": task_path, "channel": "", "payload": self._packing.pack(held)}
                writer.insert(WRITES, row, on_conflict="replace")

    # -- the whole thread ---------------------------------------------------------------------------------

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self._delete_thread, thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self._copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        for thread in thread_ids:
            if strategy == "delete":
                await self.adelete_thread(thread)
            else:
                await self.prune_thread(thread, keep=lambda ids: ids[-1:])

    async def prune_thread(self, thread: str, keep: Callable[[list[str]], Sequence[str]]) -> int:
        """Forget the checkpoints that `keep`, given all of them from the oldest on, leaves out; says how many."""
        return await asyncio.to_thread(self._prune, thread, keep)

    async def prune_run(self, thread: str, run: str, *, keep: int) -> int:
        """Forget all checkpoints of a run but the newest; says how many."""

        def of_others_or_new(ids: list[str]) -> list[str]:
            rows = self._rows.read(CHECKPOINTS, "WHERE thread = ? AND run = ? ORDER BY id", (thread, run))
            old = {row["id"] for row in rows[:-keep]}
            return [id for id in ids if id not in old]

        return await self.prune_thread(thread, of_others_or_new)

    def _delete_thread(self, thread: str) -> None:
        if not self._found({"configurable": {"thread_id": thread}}, {}, None)[0]:
            return  # gone with its thread; looking for more would leave a new head behind
        with self._rows.writing("thread", thread) as writer:
            for table in (CHECKPOINTS, PARTS, WRITES, NOTES, USED_DOCUMENTS):
                writer.delete(table, "WHERE thread = ?", (thread,))

    def _copy_thread(self, source: str, target: str) -> None:
        tables = (CHECKPOINTS, PARTS, WRITES, NOTES, USED_DOCUMENTS)
        rows = [(table, row) for table in tables for row in self._rows.read(table, "WHERE thread = ?", (source,))]
        with writing_in(self._rows, target) as writer:
            for table, row in rows:
                writer.insert(table, {**row, "thread": target}, on_conflict="replace")

    def _prune(self, thread: str, keep: Callable[[list[str]], Sequence[str]]) -> int:
        with writing_in(self._rows, thread) as writer:
            namespaces: dict[str, list[str]] = {}
            for row in writer.read(CHECKPOINTS, "WHERE thread = ? ORDER BY id", (thread,)):
                namespaces.setdefault(row["ns"], []).append(row["id"])
            gone = [(ns, id) for ns, ids in namespaces.items() for id in sorted(set(ids) - set(keep(ids)))]
            for ns, id in gone:
                writer.delete(CHECKPOINTS, "WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id))
                writer.delete(WRITES, "WHERE thread = ? AND ns = ? AND checkpoint = ?", (thread, ns, id))
            if gone:
                self._drop_unnamed(writer, thread)
        return len(gone)

    def _drop_unnamed(self, writer: Writer, thread: str) -> None:
        """Parts and notes that no checkpoint names any more, nor a result that waits to become part of one."""
        rows = writer.read(CHECKPOINTS, "WHERE thread = ?", (thread,))
        results = writer.read(WRITES, "WHERE thread = ?", (thread,))
        parts = {hash for row in rows for hash in self._packing.unpack(row["payload"])["parts"].values()}
        states = [self._checkpoint(row)["channel_values"] for row in rows]
        states += [{channel: value} for row in results for channel, value in self._results(row)]
        notes = {name for state in states for name in notes_in(state)}
        for table, column, wanted in ((PARTS, "hash", parts), (NOTES, "name", notes)):
            sql = f"SELECT {column} AS name FROM {table.name} WHERE thread = ?"  # noqa: S608  # names of ours
            kept = {row["name"] for row in writer.connection.execute(sql, (thread,)).fetchall()}
            for name in sorted(kept - wanted):
                writer.delete(table, f"WHERE thread = ? AND {column} = ?", (thread, name))


@contextmanager
def _readable(place: str) -> Iterator[None]:
    """What was sealed can still be unreadable: another version has written it, or the serialiser refuses a type."""
    try:
        yield
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError) as error:
        raise IntegrityError(f"row {place} cannot be read: {error}", help=ALTERED) from error


def _outlined(metadata: Mapping[str, Any], values: Mapping[str, Any], after: Sequence[str] = ()) -> CheckpointMetadata:
    told = standing(values).model_copy(update={"after": tuple(after)})
    return cast("CheckpointMetadata", {**metadata, _OWN: told.plain()})


def _place(config: RunnableConfig) -> tuple[str, str]:
    held = config["configurable"]
    return str(held["thread_id"]), str(held.get("checkpoint_ns", ""))


def _config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}


def _where(config: RunnableConfig | None, before: RunnableConfig | None) -> tuple[str, list[str]]:
    held = config["configurable"] if config else {}
    wanted = {"thread": held.get("thread_id"), "ns": held.get("checkpoint_ns"), "id": held.get("checkpoint_id")}
    clauses = [f"{column} = ?" for column, value in wanted.items() if value is not None]
    values = [str(value) for value in wanted.values() if value is not None]
    if before and (id := get_checkpoint_id(before)):
        clauses.append("id < ?")
        values.append(str(id))
    return ("WHERE " + " AND ".join(clauses) if clauses else ""), values
