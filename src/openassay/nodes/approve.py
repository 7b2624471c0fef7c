"""Human breakpoints: where a run stops for a person, on which condition, for how long, and what they are shown.

One node a place asks for the first breakpoint that is due and does what was decided; the edges in graph.py come back
for the next. Conditions are a field, an operator and a value. They are compared, never evaluated as code; one that
cannot be compared counts as met, since who sets a breakpoint would rather be asked once too often. A report that a
person has sent back comes back to the same breakpoint, whatever its condition says of the new version.
"""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import ConfigurationError
from openassay.llm.prices import STEPS
from openassay.models.report import REVIEWER_PREFIX
from openassay.models.thread import Decision
from openassay.nodes.harvest import documents_only_from, list_unread_passages, pages_to_skip, reading_limits
from openassay.nodes.plan import ask_person, is_cut_short
from openassay.nodes.publish import apply_edits
from openassay.settings import BreakpointPlace, Condition, Operator, Settings
from openassay.state import (
    PageRequest,
    Plain,
    State,
    load_critique,
    load_draft,
    load_edits,
    load_harvests,
    load_issues,
    load_page_requests,
    load_selected,
    load_sources,
    load_tasks,
)
from openassay.text.urls import host_of, is_within_domain

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
PASSAGES_PER_PAGE = 9  # the median of 181 web pages
MAX_REVISIONS = 5  # versions a person may send back on top of those the settings allow


async def approve_plan(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("plan", state, runtime.context)
    return {**update, "plan": answer["plan"]} if answer["decision"] == Decision.MODIFY else update


async def approve_harvest(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("harvest", state, runtime.context)
    selected, edits = load_selected(state), load_edits(state)
    if update["rejected"]:  # what was not to be read bears no witness to what was
        kept = {source["document"] for source in load_sources(state)}
    elif answer["decision"] == Decision.MODIFY:
        hosts = list(dict.fromkeys([*edits.get("without", ()), *answer["without"]]))
        gone = documents_only_from(hosts, state)
        kept = {passage["document"] for passages in selected.values() for passage in passages} - gone
        skipped = pages_to_skip(load_harvests(state))
        pages = limit_pages(load_page_requests(state), answer["pages"], hosts, skipped)
        update["edits"] = {**edits, "without": hosts}
        update["pages"] = {question: [dict(page) for page in chosen] for question, chosen in pages.items()}
    else:
        return update
    update["selected"] = {
        question: [dict(passage) for passage in passages if passage["document"] in kept]
        for question, passages in selected.items()
    }
    return update


async def approve_claims(state: State, runtime: Runtime[ResearchContext]) -> State:
    answer, update = await _await_decision("claims", state, runtime.context)
    if answer["decision"] == Decision.MODIFY:
        update["claims"] = [claim for claim in state["claims"] if claim["id"] not in answer["drop"]]
        count = len(state["claims"]) - len(update["claims"])
        note = f"A reviewer left out {count} statement{'s' * (count != 1)}."
        update["notices"] = {**state["notices"], **update.get("notices", {}), "claims": note}
    return update


async def approve_review(state: State, runtime: Runtime[ResearchContext]) -> State:
    return await _approve_report("review", state, runtime.context)


async def approve_output(state: State, runtime: Runtime[ResearchContext]) -> State:
    return await _approve_report("output", state, runtime.context)


async def _approve_report(place: BreakpointPlace, state: State, context: ResearchContext) -> State:
    answer, update = await _await_decision(place, state, context)
    if answer["decision"] != Decision.MODIFY:
        return update
    shared: Plain = {"category": "style", "severity": "major", "location": "all"}
    requests = [{**shared, "description": f"A person asks: {fix}", "fix": fix} for fix in answer["fixes"]]
    edits = load_edits(state)
    changed: Plain = {
        **edits,
        "drop": [*edits.get("drop", ()), *answer["drop"]],
        "title": answer["title"] or edits.get("title"),
        "rewrite": bool(requests),
        "back": f"{strip_turn(answer['key'])}:{state['iteration'] + 1}" if requests else None,
    }
    return {**update, "issues": [*state["issues"], *requests], "edits": changed, "stuck": False}


_DECISION_WORDS = {
    "approve": "approved",
    "reject": "rejected",
    "modify": "changed",
    "skip": "passed without a decision",
    "timeout": "not answered in time",
}


async def _await_decision(place: BreakpointPlace, state: State, context: ResearchContext) -> tuple[Plain, State]:
    """Return what a person, or the timer, said to the first breakpoint of a place; nothing is done before that. Where
    it was asked under other settings there may be none by now, or another: the answer says which it is to."""
    fields = condition_fields(state, context)
    stop = next(iter(due_breakpoints(place, state, context)), NO_BREAKPOINT)
    shown = {path: value for path in stop.shows if (value := value_at_path(path, fields)) is not _MISSING}
    options = [decision.value for decision in Decision]
    if place in ("review", "output") and state["iteration"] >= context.settings.max_iterations + MAX_REVISIONS:
        options.remove(Decision.MODIFY)
    answer = ask_person(
        f"approve_{place}",
        stop.question,
        context.now(),
        seconds=stop.timeout,
        on_timeout="approve" if stop.auto_approve else "end",
        options=options,
        **shown.pop("harvest", {}),
        **shown,
        breakpoint=strip_turn(stop.key).removeprefix("custom:"),
        key=stop.key,
    )
    question, decision, comment = answer["question"], answer["decision"], answer.get("comment")
    by_timer, approved = answer.get("by") == "timer", decision == Decision.APPROVE
    timer = " by the timer, since nobody answered in time" if by_timer and approved else ""
    text = f"{question} This was {_DECISION_WORDS[decision]}{timer}{f': {comment}' if comment else ''}"
    await context.emit("notice", f"approve_{place}", text=text, decision=decision)
    approval = {"place": place, "decision": decision, "comment": comment, "by": answer.get("by")}
    update: State = {
        "approvals": {**state["approvals"], answer["key"]: approval},
        "rejected": decision in (Decision.REJECT, "timeout"),
    }
    # A report says what no person has looked at, though one should have, and why it was ended early.
    note = ""
    if by_timer:
        outcome = "it was approved automatically" if approved else "so the research ended there"
        note = f"Nobody answered “{question}” in time; {outcome}."
    elif decision == Decision.REJECT and comment:
        note = f"{REVIEWER_PREFIX} {comment}"
    if note:
        update["notices"] = {**state["notices"], f"approval {answer['key']}": note}
    return answer, update


class DueBreakpoint(NamedTuple):
    """One breakpoint as it stands now; `key` tells the same one of another round apart."""

    key: str
    question: str
    shows: tuple[str, ...]
    timeout: int
    auto_approve: bool


NO_BREAKPOINT = DueBreakpoint("", "", (), 0, False)


def strip_turn(key: str) -> str:
    return key.rpartition(":")[0] or key


def due_breakpoints(place: BreakpointPlace, state: State, context: ResearchContext) -> list[DueBreakpoint]:
    """List the breakpoints of a place that are due and were not passed yet; none where nobody can answer."""
    if not context.options.interactive:
        return []
    settings, points, fields = context.settings, context.settings.breakpoints, condition_fields(state, context)
    stops, shown, back = [], SHOWN[place], load_edits(state).get("back")
    publish = "Publish this report?"
    if place in ("review", "output") and not _review_approves(state):
        publish = "The review does not approve it. Publish anyway?"
    match place:
        case "plan" if settings.hitl_after_planning or (context.options.approve_plan and not is_cut_short(state)):
            question = "Is this plan what you want?"
            stops.append(DueBreakpoint("plan", question, shown, points.plan_timeout, points.plan_auto_approve))
        case "harvest" if points.before_harvest:
            pages, passages, usd = (fields["harvest"][name] for name in ("pages", "passages", "usd"))
            limits = [(pages, points.harvest_pages), (usd, points.harvest_usd)]
            reached = [amount >= least for amount, least in limits if least]
            counts = [(pages, "web page"), (passages, "passage")]
            what = " and ".join(f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count) or "nothing"
            key, question = f"harvest:{state['round']}", f"Read {what}, about ${usd:.2f}?"
            if any(reached) or not reached:
                stops.append(DueBreakpoint(key, question, shown, points.harvest_timeout, points.harvest_auto_approve))
        case "review" if points.on_critical:
            key = f"critical:{state['iteration']}"
            critical = any(issue.severity == "critical" for issue in load_issues(state))
            question = "The review found a critical issue. Publish anyway?" if critical else publish
            if critical or key == back:
                stops.append(DueBreakpoint(key, question, shown, points.critical_timeout, points.critical_auto_approve))
        case "output" if settings.hitl_before_output:
            key = f"output:{state['iteration']}"
            stops.append(DueBreakpoint(key, publish, shown, points.output_timeout, points.output_auto_approve))
    turn = {"harvest": state["round"], "review": state["iteration"], "output": state["iteration"]}.get(place, 0)
    for custom in points.custom:
        key, when = f"custom:{custom.name}:{turn}", custom.when
        if custom.at != place or not (when is None or key == back or is_condition_met(when, fields)):
            continue
        condition = f": {when.field} {when.operator} {when.value}".removesuffix(" None") if when else ""
        question = custom.question or f"Continue? ({custom.name}{condition})"
        # Always shown: an answer is checked against it.
        changeable = "draft" if place in ("review", "output") else place
        shows = tuple(dict.fromkeys((*(custom.shows or shown), changeable)))
        stops.append(DueBreakpoint(key, question, shows, custom.timeout, custom.auto_approve))
    return [stop for stop in stops if stop.key not in state["approvals"]]


def _review_approves(state: State) -> bool:
    critique = load_critique(state)
    return critique is not None and critique.recommendation == "approve"


def can_publish(state: State) -> bool:
    """Tell whether this version may go out: the review recommends it, or a person wants it in spite of that. Who skips
    leaves it to the review; who changes it without having it rewritten has approved the rest."""
    approvals = [one for key, one in state["approvals"].items() if key.endswith(f":{state['iteration']}")]
    decisions = {one["decision"] for one in approvals if one.get("place") in ("review", "output")}
    return _review_approves(state) or bool(decisions & {Decision.APPROVE, Decision.MODIFY})


def awaits_revision(stops: Sequence[DueBreakpoint], state: State) -> bool:
    """Tell whether one of them was promised the report when it was sent back."""
    return load_edits(state).get("back") in [stop.key for stop in stops]


def condition_fields(state: State, context: ResearchContext) -> dict[str, Any]:
    """Return the fields that conditions are compared with."""
    fields = {name: value for name, value in state.items() if name in FIELDS}
    if draft := load_draft(state):
        fields["draft"] = apply_edits(draft, load_edits(state)).plain()  # as it would be published
    quote = context.quote.plain() if context.quote else {}
    return {**fields, "harvest": estimate_harvest(state, context), "quote": quote}


def estimate_harvest(state: State, context: ResearchContext) -> dict[str, Any]:
    """Estimate what reading this round's finds would take."""
    requests = load_page_requests(state)
    skipped = pages_to_skip(load_harvests(state) or {})
    fresh = {page["key"]: page["url"] for pages in requests.values() for page in pages if page["key"] not in skipped}
    total, usd = 0, 0.0
    full = 0.0  # readings with as many passages as a sub-question may have
    for task in load_tasks(state):
        question = task["question"]["id"]
        count = len(list_unread_passages(state, question))
        pages = sum(page["key"] in fresh for page in requests.get(question, ()))
        total += count
        full += min(1.0, (count + pages * PASSAGES_PER_PAGE) / reading_limits(context).passages)
    if context.quote:
        # The quote allows for a number of full readings; this round's cost as large a part of it.
        quoted = sum(step.calls for step in STEPS[context.options.depth] if step.role == "searcher")
        usd = round(context.quote.reading_usd * full / quoted, 4)
    hosts = sorted({host_of(url) for url in fresh.values()})
    return {"pages": len(fresh), "passages": total, "usd": usd, "hosts": hosts[:50]}


_MISSING = object()
_NUMERIC_OPERATORS = ("<", "<=", ">", ">=", "==", "!=")
_OPERATORS: dict[Operator, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "in": lambda found, value: found in value,
    "not in": lambda found, value: found not in value,
    "contains": operator.contains,
}


def is_condition_met(when: Condition, fields: Mapping[str, Any]) -> bool:
    found = value_at_path(when.field, fields)
    if when.operator in ("exists", "missing"):
        return (found in (_MISSING, None)) == (when.operator == "missing")
    if found is _MISSING:  # misspelt, unless nothing has come of the whole field yet
        return bool(fields.get(when.field.split(".")[0]))
    if found is None:
        return False
    is_number = isinstance(when.value, int | float) and not isinstance(when.value, bool)
    if when.operator in _NUMERIC_OPERATORS and is_number and isinstance(found, list | tuple | Mapping):
        found = len(found)
    try:
        return _OPERATORS[when.operator](found, when.value)
    except TypeError:
        return True


def value_at_path(path: str, value: Any) -> Any:
    """Return the value at a dotted path; a number picks from a list."""
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def check_breakpoints(settings: Settings) -> None:
    """Check, before anything runs, that every field a breakpoint names can exist."""
    for custom in settings.breakpoints.custom:
        paths = [*custom.shows, *([custom.when.field] if custom.when else [])]
        if unknown := [path for path in paths if path.split(".")[0] not in FIELDS]:
            raise ConfigurationError(
                f"breakpoint {custom.name!r} names {unknown[0]!r}, which no run has",
                help=f"Fields begin with one of: {', '.join(sorted(FIELDS))}.",
            )


def limit_pages(
    pages: Mapping[str, Sequence[PageRequest]], most: int | None, hosts: Sequence[str], read: Collection[str]
) -> dict[str, list[PageRequest]]:
    """Keep at most so many pages to be fetched, the best of each sub-question first, and none of the hosts that were
    left out. Pages that were read before cost nothing and stay."""
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
