"""Human breakpoints, one node a place. Each asks for the first that is due and does what was decided; the edges in
graph.py come back for the next.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import ConfigurationError
from openassay.llm.estimate import STEPS
from openassay.models.thread import Decision
from openassay.nodes.fuse import documents_only_from
from openassay.nodes.gate import ask_person, is_cut_short
from openassay.nodes.harvest import list_unread_passages, pages_to_skip
from openassay.nodes.publish import apply_edits
from openassay.settings import BreakpointPlace, Condition, CustomBreakpoint, Operator, Settings
from openassay.state import Plain, State
from openassay.text.urls import host_of, is_within_domain

# Where a run stops for a person: at which place, on which condition, for how long, and what they are shown.
#
# Conditions are a field, an operator and a value. They are compared, never evaluated as code; one that cannot be
# compared
# is treated as met, since who sets a breakpoint would rather be asked once too often. A report that a person has sent
# back comes back to the same breakpoint, whatever its condition says of the new version.

# Fields a condition may name and a reviewer may be shown; `harvest` and `quote` are made for them.
FIELDS = frozenset(
    "original_query subject understanding enriched_context gate planner_answers plan round sources findings coverage "
    "confidence analysis claims disagreements draft statements critique iteration issues notices failures harvest "
    "quote".split()
)
SHOWN: dict[BreakpointPlace, tuple[str, ...]] = {
    "plan": ("plan",),
    "harvest": ("harvest",),
    "claims": ("claims", "disagreements", "sources"),
    "review": ("issues", "critique", "draft"),
    "output": ("draft", "critique"),
}
# What can be changed at a place is shown whatever else is: an answer is held against it.
CHANGED: dict[BreakpointPlace, str] = {
    "plan": "plan", "harvest": "harvest", "claims": "claims", "review": "draft", "output": "draft",
}  # fmt: skip
PASSAGES_OF_A_PAGE = 9  # the median of 181 web pages


class DueBreakpoint(NamedTuple):
    """One breakpoint as it stands now; `key` tells the same one of another round apart."""

    key: str
    question: str
    shows: tuple[str, ...]
    timeout: int
    auto_approve: bool

    @property
    def name(self) -> str:
        return strip_turn(self.key).removeprefix("custom:")


def strip_turn(key: str) -> str:
    return key.rpartition(":")[0] or key


NO_BREAKPOINT = DueBreakpoint("", "", (), 0, False)


def due_breakpoints(place: BreakpointPlace, state: State, deps: ResearchContext) -> list[DueBreakpoint]:
    """Breakpoints of a place that stand in the way and were not passed yet; none where nobody can answer."""
    if not deps.options.interactive:
        return []
    seen = condition_fields(state, deps)
    stops = [*_standard_breakpoints(place, seen, state, deps), *_custom_breakpoints(place, seen, state, deps.settings)]
    return [stop for stop in stops if stop.key not in state["approvals"]]


def _standard_breakpoints(
    place: BreakpointPlace, seen: Mapping[str, Any], state: State, deps: ResearchContext
) -> list[DueBreakpoint]:
    settings, points = deps.settings, deps.settings.breakpoints
    match place:
        case "plan" if settings.hitl_after_planning or (deps.options.approve_plan and not is_cut_short(state)):
            return [DueBreakpoint("plan", "Is this plan what you want?", SHOWN[place], points.plan_timeout,
                         points.plan_auto_approve)]  # fmt: skip
        case "harvest" if points.before_harvest and _is_expensive(seen["harvest"], settings):
            key = f"harvest:{state['round']}"
            return [DueBreakpoint(key, _harvest_question(seen["harvest"]), SHOWN[place], points.harvest_timeout,
                         points.harvest_auto_approve)]  # fmt: skip
        case "review" if points.on_critical:
            key = f"critical:{state['iteration']}"
            stop = DueBreakpoint(
                key, _critical_question(state), SHOWN[place], points.critical_timeout, points.critical_auto_approve
            )
            return [stop] if _has_critical(state) or key == state["edits"].get("back") else []
        case "output" if settings.hitl_before_output:
            return [
                DueBreakpoint(
                    f"output:{state['iteration']}",
                    _output_question(state),
                    SHOWN[place],
                    points.output_timeout,
                    points.output_auto_approve,
                )
            ]
    return []


def _critical_question(state: State) -> str:
    return (
        "The review found a critical issue. Publish all the same?" if _has_critical(state) else _output_question(state)
    )


def _output_question(state: State) -> str:
    return (
        "Publish this report?" if _review_approves(state) else "The review does not approve it. Publish all the same?"
    )


def _has_critical(state: State) -> bool:
    return any(issue["severity"] == "critical" for issue in state["issues"])


def _review_approves(state: State) -> bool:
    return bool((state["critique"] or {})["recommendation"] == "approve")


def can_publish(state: State) -> bool:
    """Whether this version may go out: the review recommends it, or a person wants it in spite of that. Who skips
    leaves it to the review; who changes it without having it written anew has approved the rest."""
    said = [one for key, one in state["approvals"].items() if key.endswith(f":{state['iteration']}")]
    wanted = [one["decision"] for one in said if one.get("place") in ("review", "output")]
    return _review_approves(state) or bool({Decision.APPROVE, Decision.MODIFY} & set(wanted))


def awaits_revision(stops: Sequence[DueBreakpoint], state: State) -> bool:
    """Whether one of them was promised the report when it was sent back."""
    return state["edits"].get("back") in [stop.key for stop in stops]


def _is_expensive(harvest: Mapping[str, Any], settings: Settings) -> bool:
    points = settings.breakpoints
    wanted = [(harvest["pages"], points.harvest_pages), (harvest["usd"], points.harvest_usd)]
    limits = [(amount, least) for amount, least in wanted if least]
    return not limits or any(amount >= least for amount, least in limits)


def _harvest_question(harvest: Mapping[str, Any]) -> str:
    counts = [(harvest["pages"], "web page"), (harvest["passages"], "passage")]
    what = " and ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"
    return f"Read {what}, about ${harvest['usd']:.2f}?"


def _custom_breakpoints(
    place: BreakpointPlace, seen: Mapping[str, Any], state: State, settings: Settings
) -> list[DueBreakpoint]:
    turn = {"harvest": state["round"], "review": state["iteration"], "output": state["iteration"]}.get(place, 0)
    back = state["edits"].get("back")
    return [
        _make_breakpoint(one, key)
        for one in settings.breakpoints.custom
        if (key := f"custom:{one.name}:{turn}") and one.at == place
        and (one.when is None or key == back or is_condition_met(one.when, seen))
    ]  # fmt: skip


def _make_breakpoint(one: CustomBreakpoint, key: str) -> DueBreakpoint:
    shows = tuple(dict.fromkeys((*(one.shows or SHOWN[one.at]), CHANGED[one.at])))
    return DueBreakpoint(
        key, one.question or f"Go on? ({_describe_breakpoint(one)})", shows, one.timeout, one.auto_approve
    )


def _describe_breakpoint(one: CustomBreakpoint) -> str:
    when = one.when
    return one.name if when is None else f"{one.name}: {when.field} {when.operator} {when.value}".removesuffix(" None")


def condition_fields(state: State, deps: ResearchContext) -> dict[str, Any]:
    """What conditions are held against."""
    held = {name: value for name, value in state.items() if name in FIELDS}
    if state["draft"]:
        held["draft"] = apply_edits(state).plain()  # what would be published, not what was struck out before
    quote = deps.quote.plain() if deps.quote else {}
    return {**held, "harvest": estimate_harvest(state, deps), "quote": quote}


def estimate_harvest(state: State, deps: ResearchContext) -> dict[str, Any]:
    """What reading this round's finds would take."""
    wanted = state.get("pages") or {}  # runs that began before pages were fetched have none
    keys = {page["key"] for chosen in wanted.values() for page in chosen} - pages_to_skip(state["harvested"] or {})
    hosts = sorted({host_of(page["url"]) for chosen in wanted.values() for page in chosen if page["key"] in keys})
    passages = {question: len(list_unread_passages(state, question)) for question in _question_ids(state)}
    pages = {question: sum(page["key"] in keys for page in wanted.get(question, ())) for question in passages}
    return {
        "pages": len(keys),
        "passages": sum(passages.values()),
        "usd": _estimate_price(passages, pages, deps),
        "hosts": hosts[:50],
    }


def _question_ids(state: State) -> list[str]:
    return [task["question"]["id"] for task in state["tasks"]]


def _estimate_price(passages: Mapping[str, int], pages: Mapping[str, int], deps: ResearchContext) -> float:
    """The quote allows for a number of readings, each of as many passages as a sub-question may have; this round's
    are as large a part of that as they have passages, those of pages estimated."""
    if not deps.quote:
        return 0.0
    most = deps.settings.reading.passages_per_question
    full = sum(min(1.0, (count + pages[name] * PASSAGES_OF_A_PAGE) / most) for name, count in passages.items())
    quoted = sum(step.calls for step in STEPS[deps.options.depth] if step.role == "searcher")
    return round(deps.quote.reading_usd * full / quoted, 4)


_MISSING = object()
_NUMERIC_OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
_OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "in": lambda found, value: found in value, "not in": lambda found, value: found not in value,
    "contains": lambda found, value: value in found,
}  # fmt: skip


def is_condition_met(when: Condition, seen: Mapping[str, Any]) -> bool:
    found = value_at_path(when.field, seen)
    if when.operator in ("exists", "missing"):
        return (found in (_MISSING, None)) == (when.operator == "missing")
    if found is _MISSING:  # misspelt, unless nothing has come of the whole field yet
        return bool(seen.get(when.field.split(".")[0]))
    if found is None:
        return False
    counted = when.operator in _NUMERIC_OPERATORS and _is_number(when.value)
    if counted and isinstance(found, Sequence | Mapping) and not isinstance(found, str):
        found = len(found)
    try:
        return _OPERATORS[when.operator](found, when.value)
    except TypeError:
        return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_at_path(path: str, seen: Any) -> Any:
    """The value at a dotted path; a number picks from a list."""
    for part in path.split("."):
        if isinstance(seen, Mapping) and part in seen:
            seen = seen[part]
        elif isinstance(seen, list) and part.isdecimal() and int(part) < len(seen):
            seen = seen[int(part)]
        else:
            return _MISSING
    return seen


def select_fields(stop: DueBreakpoint, seen: Mapping[str, Any]) -> dict[str, Any]:
    found = {path: value for path in stop.shows if (value := value_at_path(path, seen)) is not _MISSING}
    return {**found.pop("harvest", {}), **found}


def check_breakpoints(settings: Settings) -> None:
    """Before anything runs: every field a breakpoint names can exist."""
    for one in settings.breakpoints.custom:
        named = [*one.shows, *([one.when.field] if one.when else [])]
        if unknown := [path for path in named if path.split(".")[0] not in FIELDS]:
            raise ConfigurationError(
                f"breakpoint {one.name!r} names {unknown[0]!r}, which no run has",
                help=f"Fields begin with one of: {', '.join(sorted(FIELDS))}.",
            )


REVIEWER_PREFIX = "The reviewer said:"  # such a notice is of a person's own saying
MOST_REVISIONS = 5  # versions a person may send back on top of those the settings allow


async def approve_plan(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("plan", state, runtime.context)
    return {**update, "plan": answer["plan"]} if answer["decision"] == Decision.MODIFY else update


async def approve_harvest(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("harvest", state, runtime.context)
    if update["rejected"]:  # what was not to be read bears no witness to what was
        known = {source["document"] for source in state["sources"]}
        return {**update, "selected": _keep_documents(known, state)}
    if answer["decision"] != Decision.MODIFY:
        return update
    hosts = list(dict.fromkeys([*state["edits"].get("without", ()), *answer["without"]]))
    gone = documents_only_from(hosts, state)
    kept = {place["document"] for places in state["selected"].values() for place in places} - gone
    pages = limit_pages(state.get("pages") or {}, answer["pages"], hosts, pages_to_skip(state["harvested"]))
    edits = {**state["edits"], "without": hosts}
    return {**update, "edits": edits, "pages": pages, "selected": _keep_documents(kept, state)}


def _keep_documents(documents: Collection[str], state: State) -> dict[str, list[Plain]]:
    return {
        question: [place for place in places if place["document"] in documents]
        for question, places in state["selected"].items()
    }


async def approve_claims(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("claims", state, runtime.context)
    if answer["decision"] == Decision.MODIFY:
        out = set(answer["drop"])
        update["claims"] = [claim for claim in state["claims"] if claim["id"] not in out]
        count = len(state["claims"]) - len(update["claims"])
        note = f"A person left {count} statement{'s' * (count != 1)} out at a review."
        update["notices"] = {**state["notices"], **update.get("notices", {}), "claims": note}
    return update


async def approve_review(state: State, runtime: Runtime[ResearchContext]) -> State:
    return await _approve_report("review", state, runtime.context)


async def approve_output(state: State, runtime: Runtime[ResearchContext]) -> State:
    return await _approve_report("output", state, runtime.context)


async def _approve_report(place: BreakpointPlace, state: State, deps: ResearchContext) -> State:
    answer, update = await _await_decision(place, state, deps)
    if answer["decision"] != Decision.MODIFY:
        return update
    wishes = [
        {
            "category": "style",
            "severity": "major",
            "location": "all",
            "description": f"A person asks: {fix}",
            "fix": fix,
        }
        for fix in answer["fixes"]
    ]
    before = state["edits"]
    edits = {
        **before,
        "drop": [*before.get("drop", ()), *answer["drop"]],
        "title": answer["title"] or before.get("title"),
        "rewrite": bool(wishes),
        "back": f"{strip_turn(answer['key'])}:{state['iteration'] + 1}" if wishes else None,
    }
    return {**update, "issues": [*state["issues"], *wishes], "edits": edits, "stuck": False}


async def _await_decision(place: BreakpointPlace, state: State, deps: ResearchContext) -> tuple[Plain, State]:
    """What a person, or the timer, said to the first breakpoint of a place; nothing is done before that. Where it was
    asked under other settings there may be none by now, or another: the answer says what it is to."""
    seen = condition_fields(state, deps)
    stop = next(iter(due_breakpoints(place, state, deps)), NO_BREAKPOINT)
    answer = ask_person(
        f"approve_{place}", stop.question, deps.now(), seconds=stop.timeout,
        on_timeout="approve" if stop.auto_approve else "end", options=_decision_options(place, state, deps),
        **select_fields(stop, seen), breakpoint=stop.name, key=stop.key,
    )  # fmt: skip
    await deps.emit("notice", f"approve_{place}", text=_describe_decision(answer), decision=answer["decision"])
    ends = answer["decision"] in (Decision.REJECT, "timeout")
    kept = {"place": place, **{key: answer.get(key) for key in ("decision", "comment", "by")}}
    update: State = {"approvals": {**state["approvals"], answer["key"]: kept}, "rejected": ends}
    notes = _decision_notes(answer)
    return answer, {**update, "notices": {**state["notices"], **notes}} if notes else update


def _decision_options(place: BreakpointPlace, state: State, deps: ResearchContext) -> list[str]:
    all_of_them = [decision.value for decision in Decision]
    spent = state["iteration"] >= deps.settings.max_iterations + MOST_REVISIONS
    return [one for one in all_of_them if one != Decision.MODIFY or place not in ("review", "output") or not spent]


_DECISION_WORDS = {
    "approve": "approved",
    "reject": "rejected",
    "modify": "changed",
    "skip": "passed without a decision",
    "timeout": "not answered in time",
}


def _describe_decision(answer: Plain) -> str:
    by = " by the timer, since nobody answered in time" if answer.get("by") == "timer" and _is_approval(answer) else ""
    comment = f": {answer['comment']}" if answer.get("comment") else ""
    return f"{answer['question']} Was {_DECISION_WORDS[answer['decision']]}{by}{comment}"


def _is_approval(answer: Plain) -> bool:
    return bool(answer["decision"] == Decision.APPROVE)


def _decision_notes(answer: Plain) -> dict[str, str]:
    """A report says what no person has looked at, though one was to, and why it was ended early."""
    if answer.get("by") == "timer":
        went = "it was approved automatically" if _is_approval(answer) else "so the research ended there"
        return {f"approval {answer['key']}": f"Nobody answered “{answer['question']}” in time; {went}."}
    if answer["decision"] == Decision.REJECT and answer.get("comment"):
        return {f"approval {answer['key']}": f"{REVIEWER_PREFIX} {answer['comment']}"}
    return {}


def limit_pages(
    pages: dict[str, list[Plain]], most: int | None, hosts: Sequence[str], read: Collection[str]
) -> dict[str, list[Plain]]:
    """At most so many pages to be fetched, the best of each sub-question first, and none of the hosts that were struck
    out. Pages that were read before cost nothing and stay."""
    kept = {
        question: [page for page in wanted if not any(is_within_domain(host_of(page["url"]), host) for host in hosts)]
        for question, wanted in pages.items()
    }
    if most is None:
        return kept
    longest = max(map(len, kept.values()), default=0)
    in_turn = [wanted[rank]["key"] for rank in range(longest) for wanted in kept.values() if rank < len(wanted)]
    allowed = {*list(dict.fromkeys(key for key in in_turn if key not in read))[:most], *read}
    return {question: [page for page in wanted if page["key"] in allowed] for question, wanted in kept.items()}
