"""What a checkpoint tells of itself without being opened: where its run stands and what comes next.

It is kept with the checkpoint in plain text, encrypted or not, so it says nothing of what is researched.
"""

from collections.abc import Mapping
from typing import Any

from assay.model.record import Record

_BEGINNING, _SENDS, _GOES_TO = "__start__", "__pregel_tasks", "branch:to:"  # names of LangGraph


class Standing(Record):
    after: tuple[str, ...] = ()  # stages done before, of a copy alone: any other moment follows one that names them
    next: tuple[str, ...] = ()  # stages; none at the end of a run
    begins: bool = False  # nothing of the run was done yet
    planned: bool = False
    round: int = 0
    iteration: int = 0


def standing(values: Mapping[str, Any]) -> Standing:
    """Of the values of a checkpoint."""
    state = effective(values)
    begins = _BEGINNING in values
    return Standing(
        next=(("withdraw" if state.get("withdrawn") else "understand"),) if begins else _next(values),
        begins=begins,
        planned=bool(state.get("plan")),
        round=_count(state.get("round")),
        iteration=_count(state.get("iteration")),
    )


def effective(values: Mapping[str, Any]) -> dict[str, Any]:
    """The state with a question that was put and not taken up yet."""
    put = values.get(_BEGINNING)
    fresh = put if isinstance(put, Mapping) else {}
    internal = (_BEGINNING, _SENDS)
    kept = {name: value for name, value in values.items() if name not in internal and not name.startswith(_GOES_TO)}
    return {**kept, **fresh, **_messages(kept, fresh)}


def run_of(values: Mapping[str, Any]) -> str:
    """Of which run a checkpoint is; its first one holds the run in what it was given."""
    given = values.get(_BEGINNING)
    fresh = given.get("run") if isinstance(given, Mapping) else None
    return str(fresh or values.get("run") or "")


def changed(values: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a checkpoint with fields of the state replaced, wherever it holds them."""
    put = values.get(_BEGINNING)
    if isinstance(put, Mapping):
        return {**values, _BEGINNING: {**put, **update}}
    return {**values, **update}


def begun(values: Mapping[str, Any], put: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a checkpoint at which a run begins, with another beginning."""
    return {**values, _BEGINNING: dict(put)}


def _next(values: Mapping[str, Any]) -> tuple[str, ...]:
    sends = [send.node for send in values.get(_SENDS) or ()]
    goes_to = [name.removeprefix(_GOES_TO) for name in values if name.startswith(_GOES_TO)]
    return tuple(dict.fromkeys((*sends, *sorted(goes_to))))


def _messages(kept: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """What is put is said after what was said before."""
    if "messages" not in fresh:
        return {}
    before = kept.get("messages")
    return {"messages": [*(before if isinstance(before, list) else []), *fresh["messages"]]}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
