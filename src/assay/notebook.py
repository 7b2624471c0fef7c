"""Keeping the state small: what grows with the pages read stands in notes, and the state names them.

    a field            {"note": name} in place of a value above `LARGE` bytes
    a collected field  {"note name": how many keys} in place of what one task adds
    a task             {"key": ..., "note": name} in place of the argument of a Send

Stages never see this: the graph gives them the state whole, and takes apart what they return. Measured on the example
library: of 349 KB of state, 14 KB are left.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from assay.ports import Notes

LARGE = 1024  # bytes; a reference takes 60
FIELDS = frozenset({
    "tasks", "asked", "pages", "selected", "sources", "findings", "analysis", "claims", "credibility",
    "disagreements", "draft", "critique", "issues", "best", "report",
})  # fmt: skip
COLLECTED = frozenset({"searched", "harvested", "read", "perused"})
_KEPT_APART = FIELDS | COLLECTED
_NOTE = "note"
_NOTES = "note "  # before the name, in a collected field
_SENDS = "__pregel_tasks"
_FOUND = _KEPT_APART | {_SENDS}

Values = dict[str, Any]


class Notebook:
    """The notes of one thread. What was written or read once is remembered."""

    def __init__(self, notes: Notes, thread: str) -> None:
        self._notes = notes
        self._thread = thread
        self._known: dict[str, Any] = {}

    async def apart(self, update: Mapping[str, Any]) -> Values:
        """What a stage returned, as it goes into the state."""
        said = {field: json.dumps(value) for field, value in update.items() if field in _KEPT_APART and value}
        large = {field: update[field] for field, text in said.items() if len(text) > LARGE}
        names = await self._put(list(large.values()), [said[field] for field in large])
        short = {
            field: {_NOTES + name: len(large[field])} if field in COLLECTED else {_NOTE: name}
            for field, name in zip(large, names, strict=True)
        }
        return {**update, **short}

    async def tasks(self, tasks: Sequence[Mapping[str, Any]]) -> list[Values]:
        """Arguments of Sends, as they go into the state."""
        names = await self._put(tasks := [dict(task) for task in tasks], [json.dumps(task) for task in tasks])
        return [{"key": task["key"], _NOTE: name} for task, name in zip(tasks, names, strict=True)]

    async def whole(self, state: Mapping[str, Any]) -> Values:
        """The state, or a task, with everything it refers to."""
        await self._get(set(notes_in(state)))
        if name := _of_task(state):
            return dict(self._known[name])
        return {field: self._filled(field, value) for field, value in state.items()}

    def _filled(self, field: str, value: Any) -> Any:
        if field in COLLECTED and isinstance(value, Mapping):
            filled: Values = {}
            for key, held in value.items():
                filled.update(self._known[key.removeprefix(_NOTES)] if key.startswith(_NOTES) else {key: held})
            return filled
        name = _of_field(value) if field in FIELDS else None
        return self._known[name] if name else value

    async def _put(self, values: Sequence[Any], texts: Sequence[str]) -> list[str]:
        if not values:
            return []
        names = await self._notes.put(self._thread, values)
        # As whoever resumes will read them: tuples are lists.
        self._known |= {name: json.loads(text) for name, text in zip(names, texts, strict=True)}
        return names

    async def _get(self, names: set[str]) -> None:
        if missing := names - self._known.keys():
            self._known |= await self._notes.get(self._thread, missing)


def notes_in(state: Mapping[str, Any]) -> Iterator[str]:
    """The names of the notes that the values of a checkpoint, or a task, refer to."""
    if name := _of_task(state):
        yield name
    for field, value in state.items():
        if field in FIELDS and (name := _of_field(value)):
            yield name
        elif field in COLLECTED and isinstance(value, Mapping):
            yield from (key.removeprefix(_NOTES) for key in value if key.startswith(_NOTES))
        elif field == _SENDS:
            sends = value if isinstance(value, list | tuple) else [value]
            yield from (name for send in sends if (name := _of_task(send.arg)))


def evidence(fields: Iterable[tuple[str, Any]]) -> list[Any]:
    """Of the fields of a state those that stages alone fill, and from what they have found. What a person has said
    stands in others: an answer, a plan or a note of theirs makes no document one that the thread has read."""
    return [value for field, value in fields if field in _FOUND]


def _of_field(value: Any) -> str | None:
    return value[_NOTE] if isinstance(value, Mapping) and value.keys() == {_NOTE} else None


def _of_task(task: Any) -> str | None:
    return task[_NOTE] if isinstance(task, Mapping) and task.keys() == {"key", _NOTE} else None
