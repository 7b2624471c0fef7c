"""Where a run stops for a person: at which place, on which condition, for how long, and what they are shown.

Conditions are a field, an operator and a value. They are compared, never evaluated as code; one that cannot be compared
is treated as met, since who sets a breakpoint would rather be asked once too often. A report that a person has sent
back comes back to the same breakpoint, whatever its condition says of the new version.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from assay.deps import Deps
from assay.errors import ConfigurationError
from assay.llm.quoting import STEPS
from assay.model.review import Decision
from assay.settings import Condition, CustomBreakpoint, Operator, Place, Settings
from assay.stages.publish import edited
from assay.stages.question import was_cut_short
from assay.stages.unread import done, unread
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
# What can be changed at a place is shown whatever else is: an answer is held against it.
CHANGED: dict[Place, str] = {
    "plan": "plan", "harvest": "harvest", "claims": "claims", "review": "draft", "output": "draft",
}  # fmt: skip
PASSAGES_OF_A_PAGE = 9  # the median of 181 web pages


class Stop(NamedTuple):
    """One breakpoint as it stands now; `key` tells the same one of another round apart."""

    key: str
    question: str
    shows: tuple[str, ...]
    timeout: int
    auto_approve: bool

    @property
    def name(self) -> str:
        return without_turn(self.key).removeprefix("custom:")


def without_turn(key: str) -> str:
    return key.rpartition(":")[0] or key


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
        case "plan" if settings.hitl_after_planning or (deps.options.approve_plan and not was_cut_short(state)):
            return [Stop("plan", "Is this plan what you want?", SHOWN[place], points.plan_timeout,
                         points.plan_auto_approve)]  # fmt: skip
        case "harvest" if points.before_harvest and _is_expensive(seen["harvest"], settings):
            key = f"harvest:{state['round']}"
            return [Stop(key, _harvest(seen["harvest"]), SHOWN[place], points.harvest_timeout,
                         points.harvest_auto_approve)]  # fmt: skip
        case "review" if points.on_critical:
            key = f"critical:{state['iteration']}"
            stop = Stop(key, _critical(state), SHOWN[place], points.critical_timeout, points.critical_auto_approve)
            return [stop] if _has_critical(state) or key == state["edits"].get("back") else []
        case "output" if settings.hitl_before_output:
            return [Stop(f"output:{state['iteration']}", _output(state), SHOWN[place], points.output_timeout,
                         points.output_auto_approve)]  # fmt: skip
    return []


def _critical(state: State) -> str:
    return "The review found a critical issue. Publish all the same?" if _has_critical(state) else _output(state)


def _output(state: State) -> str:
    return "Publish this report?" if _recommended(state) else "The review does not approve it. Publish all the same?"


def _has_critical(state: State) -> bool:
    return any(issue["severity"] == "critical" for issue in state["issues"])


def _recommended(state: State) -> bool:
    return bool((state["critique"] or {})["recommendation"] == "approve")


def is_cleared(state: State) -> bool:
    """Whether this version may go out: the review recommends it, or a person wants it in spite of that. Who skips
    leaves it to the review; who changes it without having it written anew has approved the rest."""
    said = [one for key, one in state["approvals"].items() if key.endswith(f":{state['iteration']}")]
    wanted = [one["decision"] for one in said if one.get("place") in ("review", "output")]
    return _recommended(state) or bool({Decision.APPROVE, Decision.MODIFY} & set(wanted))


def comes_back(stops: Sequence[Stop], state: State) -> bool:
    """Whether one of them was promised the report when it was sent back."""
    return state["edits"].get("back") in [stop.key for stop in stops]


def _is_expensive(harvest: Mapping[str, Any], settings: Settings) -> bool:
    points = settings.breakpoints
    wanted = [(harvest["pages"], points.harvest_pages), (harvest["usd"], points.harvest_usd)]
    limits = [(amount, least) for amount, least in wanted if least]
    return not limits or any(amount >= least for amount, least in limits)


def _harvest(harvest: Mapping[str, Any]) -> str:
    counts = [(harvest["pages"], "web page"), (harvest["passages"], "passage")]
    what = " and ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"
    return f"Read {what}, about ${harvest['usd']:.2f}?"


def _custom(place: Place, seen: Mapping[str, Any], state: State, settings: Settings) -> list[Stop]:
    turn = {"harvest": state["round"], "review": state["iteration"], "output": state["iteration"]}.get(place, 0)
    back = state["edits"].get("back")
    return [
        _stop(one, key)
        for one in settings.breakpoints.custom
        if (key := f"custom:{one.name}:{turn}") and one.at == place
        and (one.when is None or key == back or holds(one.when, seen))
    ]  # fmt: skip


def _stop(one: CustomBreakpoint, key: str) -> Stop:
    shows = tuple(dict.fromkeys((*(one.shows or SHOWN[one.at]), CHANGED[one.at])))
    return Stop(key, one.question or f"Go on? ({_told(one)})", shows, one.timeout, one.auto_approve)


def _told(one: CustomBreakpoint) -> str:
    when = one.when
    return one.name if when is None else f"{one.name}: {when.field} {when.operator} {when.value}".removesuffix(" None")


def fields(state: State, deps: Deps) -> dict[str, Any]:
    """What conditions are held against."""
    held = {name: value for name, value in state.items() if name in FIELDS}
    if state["draft"]:
        held["draft"] = edited(state).plain()  # what would be published, not what was struck out before
    quote = deps.quote.plain() if deps.quote else {}
    return {**held, "harvest": harvest(state, deps), "quote": quote}


def harvest(state: State, deps: Deps) -> dict[str, Any]:
    """What reading this round's finds would take."""
    wanted = state.get("pages") or {}  # runs that began before pages were fetched have none
    keys = {page["key"] for chosen in wanted.values() for page in chosen} - done(state["harvested"] or {})
    hosts = sorted({host_of(page["url"]) for chosen in wanted.values() for page in chosen if page["key"] in keys})
    passages = {question: len(unread(state, question)) for question in _asked(state)}
    pages = {question: sum(page["key"] in keys for page in wanted.get(question, ())) for question in passages}
    return {
        "pages": len(keys),
        "passages": sum(passages.values()),
        "usd": _price(passages, pages, deps),
        "hosts": hosts[:50],
    }


def _asked(state: State) -> list[str]:
    return [task["question"]["id"] for task in state["tasks"]]


def _price(passages: Mapping[str, int], pages: Mapping[str, int], deps: Deps) -> float:
    """The quote allows for a number of readings, each of as many passages as a sub-question may have; this round's
    are as large a part of that as they have passages, those of pages estimated."""
    if not deps.quote:
        return 0.0
    most = deps.settings.reading.passages_per_question
    full = sum(min(1.0, (count + pages[name] * PASSAGES_OF_A_PAGE) / most) for name, count in passages.items())
    quoted = sum(step.calls for step in STEPS[deps.options.depth] if step.role == "searcher")
    return round(deps.quote.reading_usd * full / quoted, 4)


_MISSING = object()
_MEASURED = ("<", "<=", ">", ">=", "==", "!=")
_COMPARED: dict[Operator, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "in": lambda found, value: found in value, "not in": lambda found, value: found not in value,
    "contains": lambda found, value: value in found,
}  # fmt: skip


def holds(when: Condition, seen: Mapping[str, Any]) -> bool:
    found = at(when.field, seen)
    if when.operator in ("exists", "missing"):
        return (found in (_MISSING, None)) == (when.operator == "missing")
    if found is _MISSING:  # misspelt, unless nothing has come of the whole field yet
        return bool(seen.get(when.field.split(".")[0]))
    if found is None:
        return False
    counted = when.operator in _MEASURED and _is_number(when.value)
    if counted and isinstance(found, Sequence | Mapping) and not isinstance(found, str):
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
