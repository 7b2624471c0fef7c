"""Human breakpoints, one node a place. Each asks for the first that is due and does what was decided; the edges in
graph.py come back for the next."""

from collections.abc import Collection, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.review import Decision
from assay.settings import Place
from assay.stages.asking import ask
from assay.stages.breakpoints import NONE, due, fields, shown, without_turn
from assay.stages.fuse import of_hosts
from assay.stages.unread import done
from assay.state import Plain, State
from assay.text.hosts import within
from assay.text.urls import host_of

SAID = "The reviewer said:"  # such a notice is of a person's own saying
MOST_REVISIONS = 5  # versions a person may send back on top of those the settings allow


async def approve_plan(state: State, runtime: Runtime[Deps]) -> State:
    answer, update = await _decided("plan", state, runtime.context)
    return {**update, "plan": answer["plan"]} if answer["decision"] == Decision.MODIFY else update


async def approve_harvest(state: State, runtime: Runtime[Deps]) -> State:
    answer, update = await _decided("harvest", state, runtime.context)
    if update["rejected"]:  # what was not to be read bears no witness to what was
        known = {source["document"] for source in state["sources"]}
        return {**update, "selected": _only(known, state)}
    if answer["decision"] != Decision.MODIFY:
        return update
    hosts = list(dict.fromkeys([*state["edits"].get("without", ()), *answer["without"]]))
    gone = of_hosts(hosts, state)
    kept = {place["document"] for places in state["selected"].values() for place in places} - gone
    pages = fewer(state.get("pages") or {}, answer["pages"], hosts, done(state["harvested"]))
    edits = {**state["edits"], "without": hosts}
    return {**update, "edits": edits, "pages": pages, "selected": _only(kept, state)}


def _only(documents: Collection[str], state: State) -> dict[str, list[Plain]]:
    return {
        question: [place for place in places if place["document"] in documents]
        for question, places in state["selected"].items()
    }


async def approve_claims(state: State, runtime: Runtime[Deps]) -> State:
    answer, update = await _decided("claims", state, runtime.context)
    if answer["decision"] == Decision.MODIFY:
        out = set(answer["drop"])
        update["claims"] = [claim for claim in state["claims"] if claim["id"] not in out]
        count = len(state["claims"]) - len(update["claims"])
        note = f"A person left {count} statement{'s' * (count != 1)} out at a review."
        update["notices"] = {**state["notices"], **update.get("notices", {}), "claims": note}
    return update


async def approve_review(state: State, runtime: Runtime[Deps]) -> State:
    return await _of_report("review", state, runtime.context)


async def approve_output(state: State, runtime: Runtime[Deps]) -> State:
    return await _of_report("output", state, runtime.context)


async def _of_report(place: Place, state: State, deps: Deps) -> State:
    answer, update = await _decided(place, state, deps)
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
        "back": f"{without_turn(answer['key'])}:{state['iteration'] + 1}" if wishes else None,
    }
    return {**update, "issues": [*state["issues"], *wishes], "edits": edits, "stuck": False}


async def _decided(place: Place, state: State, deps: Deps) -> tuple[Plain, State]:
    """What a person, or the timer, said to the first breakpoint of a place; nothing is done before that. Where it was
    asked under other settings there may be none by now, or another: the answer says what it is to."""
    seen = fields(state, deps)
    stop = next(iter(due(place, state, deps)), NONE)
    answer = ask(
        f"approve_{place}", stop.question, deps.now(), seconds=stop.timeout,
        on_timeout="approve" if stop.auto_approve else "end", options=_options(place, state, deps),
        **shown(stop, seen), breakpoint=stop.name, key=stop.key,
    )  # fmt: skip
    await deps.emit("notice", f"approve_{place}", text=_told(answer), decision=answer["decision"])
    ends = answer["decision"] in (Decision.REJECT, "timeout")
    kept = {"place": place, **{key: answer.get(key) for key in ("decision", "comment", "by")}}
    update: State = {"approvals": {**state["approvals"], answer["key"]: kept}, "rejected": ends}
    notes = _notes(answer)
    return answer, {**update, "notices": {**state["notices"], **notes}} if notes else update


def _options(place: Place, state: State, deps: Deps) -> list[str]:
    all_of_them = [decision.value for decision in Decision]
    spent = state["iteration"] >= deps.settings.max_iterations + MOST_REVISIONS
    return [one for one in all_of_them if one != Decision.MODIFY or place not in ("review", "output") or not spent]


_SAID = {"approve": "approved", "reject": "rejected", "modify": "changed", "skip": "passed without a decision",
         "timeout": "not answered in time"}  # fmt: skip


def _told(answer: Plain) -> str:
    by = " by the timer, since nobody answered in time" if answer.get("by") == "timer" and _goes_on(answer) else ""
    comment = f": {answer['comment']}" if answer.get("comment") else ""
    return f"{answer['question']} Was {_SAID[answer['decision']]}{by}{comment}"


def _goes_on(answer: Plain) -> bool:
    return bool(answer["decision"] == Decision.APPROVE)


def _notes(answer: Plain) -> dict[str, str]:
    """A report says what no person has looked at, though one was to, and why it was ended early."""
    if answer.get("by") == "timer":
        went = "it was approved automatically" if _goes_on(answer) else "so the research ended there"
        return {f"approval {answer['key']}": f"Nobody answered “{answer['question']}” in time; {went}."}
    if answer["decision"] == Decision.REJECT and answer.get("comment"):
        return {f"approval {answer['key']}": f"{SAID} {answer['comment']}"}
    return {}


def fewer(
    pages: dict[str, list[Plain]], most: int | None, hosts: Sequence[str], read: Collection[str]
) -> dict[str, list[Plain]]:
    """At most so many pages to be fetched, the best of each sub-question first, and none of the hosts that were struck
    out. Pages that were read before cost nothing and stay."""
    kept = {
        question: [page for page in wanted if not any(within(host_of(page["url"]), host) for host in hosts)]
        for question, wanted in pages.items()
    }
    if most is None:
        return kept
    longest = max(map(len, kept.values()), default=0)
    in_turn = [wanted[rank]["key"] for rank in range(longest) for wanted in kept.values() if rank < len(wanted)]
    allowed = {*list(dict.fromkeys(key for key in in_turn if key not in read))[:most], *read}
    return {question: [page for page in wanted if page["key"] in allowed] for question, wanted in kept.items()}
