"""Checkpoints of LangGraph, and what its tasks have written since, as plain JSON and back, exactly.

JSON has no bytes, no sets, no Sends and no numbers as keys: such a value is an object with one key, which begins with
"$". Tuples are lists: so they come back from a database, too.
"""

import base64
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from assay.checkpoints.moments import run_of
from assay.notebook import evidence, notes_in
from assay.storage.notes import documents_in

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple

Plain = dict[str, Any]
Writes = Sequence[tuple[str, Any]]

# How a task has failed, or what it waits for, is not restored: it is tried again, and asks again.
UNFINISHED = frozenset({"__error__", "__error_source_node__", "__interrupt__", "__scheduled__"})


def plain(kept: "CheckpointTuple") -> Plain:
    """A checkpoint; `restore` puts it back."""
    parent = kept.parent_config["configurable"].get("checkpoint_id") if kept.parent_config else None
    values = kept.checkpoint["channel_values"]
    return {
        "id": kept.checkpoint["id"],
        "parent": parent,
        "step": kept.metadata.get("step", 0),
        "time": kept.checkpoint["ts"],
        "ns": kept.config["configurable"].get("checkpoint_ns", ""),
        "metadata": encoded(kept.metadata),
        "checkpoint": encoded(kept.checkpoint),
        "documents": sorted(set(documents_in(evidence(values.items())))),
        "notes": sorted(set(named(values))),
    }


def result(task: str, path: str, writes: Writes) -> Plain | None:
    """What a task has brought; None if it has only failed, or asks something."""
    brought = [(channel, value) for channel, value in writes if channel not in UNFINISHED]
    if not brought:
        return None
    return {
        "task": task,
        "path": path,
        "writes": [[channel, encoded(value)] for channel, value in brought],
        "documents": sorted(set(documents_in(evidence(brought)))),
        "notes": sorted({name for channel, value in brought for name in named({channel: value})}),
    }


def results(kept: "CheckpointTuple") -> list[Plain]:
    """Those that are pending at a checkpoint."""
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in kept.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    return [found for task, writes in tasks.items() if (found := result(task, "", writes))]


class Watch:
    """A checkpoints.Watcher that hands on plain data, made by whoever wants them: a value may be none."""

    def __init__(
        self,
        checkpoint: Callable[[Callable[[], Plain]], Awaitable[None]],
        result: Callable[[str, Callable[[], Plain | None]], Awaitable[None]],
    ) -> None:
        self._checkpoint = checkpoint
        self._result = result

    async def checkpoint(self, kept: "CheckpointTuple") -> None:
        await self._checkpoint(lambda: plain(kept))

    async def writes(self, config: "RunnableConfig", writes: Writes, task: str, path: str) -> None:
        at = str(config["configurable"].get("checkpoint_id", ""))
        await self._result(at, lambda: result(task, path, writes))


async def newest(
    checkpointer: "BaseCheckpointSaver[Any]", thread: str, run: str, known: Callable[[str], bool]
) -> list[tuple[Plain, list[Plain]]]:
    """Checkpoints of a run that are not known yet, and the last one in any case, with results since; oldest first."""
    found: list[tuple[Plain, list[Plain]]] = []
    async for kept in checkpointer.alist({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}):
        if run_of(kept.checkpoint["channel_values"]) != run:
            break  # that of the question before
        found.append((plain(kept), results(kept)))
        if known(kept.checkpoint["id"]):
            break
    return found[::-1]


async def restore(
    checkpointer: "BaseCheckpointSaver[Any]", thread: str, content: Mapping[str, Any], done: Sequence[Mapping[str, Any]]
) -> None:
    """A checkpoint with the results of tasks since."""
    checkpoint = cast("Checkpoint", decoded(content["checkpoint"]))
    place = {"thread_id": thread, "checkpoint_ns": content["ns"]}
    before = {**place, "checkpoint_id": content["parent"]} if content["parent"] else place
    config: RunnableConfig = {"configurable": before}
    at = await checkpointer.aput(config, checkpoint, decoded(content["metadata"]), checkpoint["channel_versions"])
    for line in done:
        writes = [(channel, decoded(value)) for channel, value in line["writes"]]
        await checkpointer.aput_writes(at, writes, line["task"], line["path"])


def named(values: Mapping[str, Any]) -> Iterator[str]:
    """The notes that values refer to, those that a run begins with included."""
    yield from notes_in(values)
    if isinstance(given := values.get("__start__"), Mapping):
        yield from notes_in(given)


def encoded(value: Any) -> Any:
    """Of every checkpoint thousands of values are texts or numbers: they are told apart first."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [encoded(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str and not key.startswith("$") for key in value):
        return {key: encoded(item) for key, item in value.items()}
    return _encoded(value)


def _encoded(value: Any) -> Any:
    from langgraph.types import Send

    match value:
        case float():
            return value if math.isfinite(value) else {"$float": repr(value)}
        case Mapping() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: encoded(item) for key, item in value.items()}
        case Mapping():
            return {"$map": [[encoded(key), encoded(item)] for key, item in value.items()]}
        case set() | frozenset():
            return {"$set": [encoded(item) for item in sorted(value, key=repr)]}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case Send() if value.timeout is None:
            return {"$send": [value.node, encoded(value.arg)]}
    raise TypeError(f"a {type(value).__name__} in a checkpoint cannot be written as JSON")


def decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(key, held)] = value.items()
        if key.startswith("$"):
            return _special(key, held)
    return {key: decoded(item) for key, item in value.items()}


def _special(kind: str, held: Any) -> Any:
    from langgraph.types import Send

    match kind:
        case "$float":
            return float(held)
        case "$map":
            return {decoded(key): decoded(item) for key, item in held}
        case "$set":
            return set(decoded(held))
        case "$bytes":
            return base64.b64decode(held)
        case "$send":
            return Send(held[0], decoded(held[1]))
    raise ValueError(f"{kind} is of a newer version")
