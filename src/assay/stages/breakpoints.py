"""Where a run stops for a person: at which place, on which condition, for how long, and what they are shown.

Conditions are a field, an operator and a value. They are compared, never evaluated as code; one that cannot be compared
is treated as met, since who sets a breakpoint would rather be asked once too often.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from assay.deps import Deps
from assay.errors import ConfigurationError
from assay.settings import Condition, CustomBreakpoint, Operator, Place, Settings
from assay.stages.unread import done
from assay.state import State
from assay.text.urls import host_of

# Fields a condition may name and a reviewer may be shown; `harvest` and `quote` are made for them.
FIELDS = frozenset(
    "original_query subject understanding enriched_context gate planner_answers plan round sources findings coverage "
    "confidence analysis claims disagreements draft statements critique iteration issues notices failures harvest "
    "quote".split()
)
SHOWN: dict[Place, tuple[str, ...]] = {
    "plan": ("plan",),
    "harvest": ("harvest",),
    "claims": ("claims", "disagreements", "sources"),
    "review": ("issues", "critique", "draft"),
    "output": ("draft", "critique"),
}


class Stop(NamedTuple):
    """One breakpoint as it stands now; `key` tells the same one of another round apart."""

    key: str
    question: str
    shows: tuple[str, ...]
    timeout: int
    auto_approve: bool


NONE = Stop("", "", (), 0, False)


def due(place: Place, state: State, deps: Deps) -> list[Stop]:
    """Breakpoints of a place that stand in the way and were not passed yet; none where nobody can answer."""
    if not deps.options.interactive:
        return []
    seen = fields(state, deps)
    stops = [*_own(place, seen, state, deps), *_custom(place, seen, state, deps.settings)]
    return [stop for stop in stops if stop.key not in state["approvals"]]


def _own(place: Place, seen: Mapping[str, Any], state: State, deps: Deps) -> list[Stop]:
    settings, points = deps.settings, deps.settings.breakpoints
    match place:
        case "plan" if settings.hitl_after_planning:
            return [Stop("plan", "Is this plan what you want?", SHOWN[place], points.plan_timeout,
                         points.plan_auto_approve)]  # fmt: skip
        case "harvest" if points.before_harvest and _is_expensive(seen["harvest"], settings):
            key = f"harvest:{state['round']}"
            return [Stop(key, _harvest(seen["harvest"]), SHOWN[place], points.harvest_timeout,
                         points.harvest_auto_approve)]  # fmt: skip
        case "review" if points.on_critical and has_critical(state):
            return [Stop(critical(state), "The review found a critical issue. Publish all the same?", SHOWN[place],
                         points.critical_timeout, points.critical_auto_approve)]  # fmt: skip
        case "output" if settings.hitl_before_output:
            return [Stop(f"output:{state['iteration']}", "Publish this report?", SHOWN[place], points.output_timeout,
                         points.output_auto_approve)]  # fmt: skip
    return []


def critical(state: State) -> str:
    return f"critical:{state['iteration']}"


def has_critical(state: State) -> bool:
    return any(issue["severity"] == "critical" for issue in state["issues"])


def _is_expensive(harvest: Mapping[str, Any], settings: Settings) -> bool:
    points = settings.breakpoints
    wanted = [(harvest["pages"], points.harvest_pages), (harvest["usd"], points.harvest_usd)]
    limits = [(amount, least) for amount, least in wanted if least]
    return not limits or any(amount >= least for amount, least in limits)


def _harvest(harvest: Mapping[str, Any]) -> str:
    counts = [(harvest["pages"], "web pages"), (harvest["passages"], "passages")]
    what = " and ".join(f"{count} {noun}" for count, noun in counts if count or noun == "passages")
    return f"Read {what}, about ${harvest['usd']:.2f}?"


def _custom(place: Place, seen: Mapping[str, Any], state: State, settings: Settings) -> list[Stop]:
    turn = {"harvest": state["round"], "review": state["iteration"], "output": state["iteration"]}.get(place, 0)
    return [
        Stop(
            f"{one.name}:{turn}",
            one.question or f"Go on? ({_told(one)})",
            one.shows or SHOWN[place],
            one.timeout,
            one.auto_approve,
        )
        for one in settings.breakpoints.custom
        if one.at == place and (one.when is None or holds(one.when, seen))
    ]


def _told(one: CustomBreakpoint) -> str:
    when = one.when
    return one.name if when is None else f"{one.name}: {when.field} {when.operator} {when.value}".removesuffix(" None")


def fields(state: State, deps: Deps) -> dict[str, Any]:
    """What conditions are held against."""
    held = {name: value for name, value in state.items() if name in FIELDS}
    quote = deps.quote.plain() if deps.quote else {}
    return {**held, "harvest": harvest(state, deps), "quote": quote}


def harvest(state: State, deps: Deps) -> dict[str, Any]:
    """What reading this round's finds would take."""
    wanted = state.get("pages") or {}  # runs that began before pages were fetched have none
    keys = {page["key"] for chosen in wanted.values() for page in chosen} - done(state["harvested"] or {})
    hosts = sorted({host_of(page["url"]) for chosen in wanted.values() for page in chosen if page["key"] in keys})
    return {
        "pages": len(keys),
        "passages": sum(len(passages) for passages in state["selected"].values()),
        "usd": round(deps.quote.reading_usd, 4) if deps.quote else 0.0,
        "hosts": hosts[:50],
    }


_MISSING = object()
_COMPARED: dict[Operator, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "in": lambda found, value: found in value, "not in": lambda found, value: found not in value,
    "contains": lambda found, value: value in found,
}  # fmt: skip


def holds(when: Condition, seen: Mapping[str, Any]) -> bool:
    found = at(when.field, seen)
    if when.operator in ("exists", "missing"):
        return (found in (_MISSING, None)) == (when.operator == "missing")
    if found in (_MISSING, None):
        return False  # nothing has come of it yet
    if isinstance(found, Sequence | Mapping) and not isinstance(found, str) and _is_number(when.value):
        found = len(found)
    try:
        return _COMPARED[when.operator](found, when.value)
    except TypeError:
        return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def at(path: str, seen: Any) -> Any:
    """The value at a dotted path; a number picks from a list."""
    for part in path.split("."):
        if isinstance(seen, Mapping) and part in seen:
            seen = seen[part]
        elif isinstance(seen, list) and part.isdecimal() and int(part) < len(seen):
            seen = seen[int(part)]
        else:
            return _MISSING
    return seen


def shown(stop: Stop, seen: Mapping[str, Any]) -> dict[str, Any]:
    found = {path: value for path in stop.shows if (value := at(path, seen)) is not _MISSING}
    return {**found.pop("harvest", {}), **found}


def check(settings: Settings) -> None:
    """Before anything runs: every field a breakpoint names can exist."""
    for one in settings.breakpoints.custom:
        named = [*one.shows, *([one.when.field] if one.when else [])]
        if unknown := [path for path in named if path.split(".")[0] not in FIELDS]:
            raise ConfigurationError(
                f"breakpoint {one.name!r} names {unknown[0]!r}, which no run has",
                help=f"Fields begin with one of: {', '.join(sorted(FIELDS))}.",
            )
