"""The whole research graph.

    START -> understand --unclear--> clarify -> understand
                 |--cancelled--> publish
                 v
               gate --plan mode--> question (one by one) --> plan
                 |--auto--> plan -> [approve_plan] -> dispatch
    dispatch ==> search x sub-questions ==> fuse -> [approve_harvest] --own documents-----------+
                                                         |==pages==> harvest x sub-questions     |
                                                                         ==> select              v
                                                                               +==> read x sub-questions ==> consolidate
    consolidate -> analyse --gaps--> dispatch        (quick and sure, or out of money: consolidate -> verify)
                     |--else--> verify -> [approve_claims] -> write -> review -> [approve_review]
        review --revise, while rounds remain and the last one changed something--> write
          |--approved--> [approve_output] -> publish -> END
          |--rejected, out of rounds--> fallback -> END
    START -> withdraw (a source is vetoed) -> [approve_output] -> publish, or fallback where nothing is left
    In the last round analyse cannot send anybody out again, so it runs beside verify:
    consolidate ==> analyse -> END, verify -> write

Names in brackets are human breakpoints, off by default: each place asks for what is due there, one after the other. A
rejection leads to the fallback, by way of verify where earlier rounds have found something; a report sent back to the
writer comes back to whoever sent it. Who is asked is asked again by the sources and the model router alone; a node is
tried again only where storage was busy for a moment (stages/failures.py). A failing search, harvest or read loses its
own sub-question only.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import wraps
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, cast

from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from assay.deps import Deps, within_a_step
from assay.errors import category_of
from assay.model.event import Status
from assay.model.question import Clarity, Depth
from assay.stages.analyse import SURE, analyse, foregone
from assay.stages.approve import approve_claims, approve_harvest, approve_output, approve_plan, approve_review
from assay.stages.breakpoints import comes_back, due, is_cleared
from assay.stages.clarify import clarify
from assay.stages.consolidate import consolidate
from assay.stages.dispatch import dispatch
from assay.stages.failures import RETRY, harvest_failed, read_failed, search_failed
from assay.stages.fallback import fallback
from assay.stages.fuse import fuse
from assay.stages.gate import gate
from assay.stages.harvest import harvest
from assay.stages.plan import plan
from assay.stages.publish import publish
from assay.stages.question import question, to_be_asked
from assay.stages.read import read
from assay.stages.review import review, revisions_left
from assay.stages.search import search
from assay.stages.select import select
from assay.stages.understand import understand
from assay.stages.unread import done, unread
from assay.stages.verify import verify
from assay.stages.withdraw import withdraw
from assay.stages.write import write
from assay.state import State

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

# What the status of requirement F-01 is while a stage is at work.
STATUS = {
    "understand": Status.PLANNING, "clarify": Status.PLANNING, "gate": Status.PLANNING, "question": Status.PLANNING,
    "plan": Status.PLANNING, "approve_plan": Status.PLANNING, "dispatch": Status.SEARCHING, "search": Status.SEARCHING,
    "fuse": Status.SEARCHING, "approve_harvest": Status.SEARCHING, "harvest": Status.SEARCHING,
    "select": Status.SEARCHING, "read": Status.SEARCHING,
    "consolidate": Status.ANALYZING, "analyse": Status.ANALYZING, "verify": Status.ANALYZING, "write": Status.WRITING,
    "approve_claims": Status.ANALYZING,
    "review": Status.REVIEWING, "approve_review": Status.REVIEWING, "approve_output": Status.REVIEWING,
    "withdraw": Status.ANALYZING, "publish": Status.WRITING, "fallback": Status.WRITING,
}  # fmt: skip


def build(checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    graph = StateGraph(State, context_schema=Deps)
    for node in (withdraw, understand, clarify, gate, question, plan, approve_plan, dispatch, fuse, approve_harvest,
                 select, consolidate, analyse, verify, approve_claims, write, review, approve_review, approve_output,
                 publish, fallback):  # fmt: skip
        graph.add_node(node.__name__, observed(node), retry_policy=RETRY)
    graph.add_node("search", observed(search), retry_policy=RETRY, error_handler=search_failed)
    graph.add_node("harvest", observed(harvest), retry_policy=RETRY, error_handler=harvest_failed)
    graph.add_node("read", observed(read), retry_policy=RETRY, error_handler=read_failed)

    graph.add_conditional_edges(START, entry)
    graph.add_conditional_edges("withdraw", seen(after_withdrawal))
    graph.add_conditional_edges("understand", seen(after_understanding))
    graph.add_edge("clarify", "understand")
    graph.add_conditional_edges("gate", seen(still_asking))
    graph.add_conditional_edges("question", seen(still_asking))
    graph.add_conditional_edges("plan", seen(after_planning))
    graph.add_conditional_edges("approve_plan", seen(after_plan_approval))
    graph.add_conditional_edges("dispatch", seen(to_searches), ["search", "verify"])
    graph.add_edge("search", "fuse")
    graph.add_conditional_edges(
        "fuse", seen(after_fusing), ["approve_harvest", "harvest", "select", "read", "consolidate"]
    )
    graph.add_conditional_edges(
        "approve_harvest",
        seen(after_harvest_approval),
        ["approve_harvest", "harvest", "select", "read", "consolidate", "verify", "fallback"],
    )
    graph.add_edge("harvest", "select")
    graph.add_conditional_edges("select", seen(to_readings), ["read", "consolidate"])
    graph.add_edge("read", "consolidate")
    graph.add_conditional_edges("consolidate", seen(after_consolidating), ["analyse", "verify"])
    graph.add_conditional_edges("analyse", seen(after_analysis))
    graph.add_conditional_edges("verify", seen(after_verifying))
    graph.add_conditional_edges("approve_claims", seen(after_claims_approval))
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", seen(after_review))
    graph.add_conditional_edges("approve_review", seen(after_review_approval))
    graph.add_conditional_edges("approve_output", seen(after_output_approval))
    graph.add_edge("publish", END)
    graph.add_edge("fallback", END)
    return graph.compile(checkpointer=checkpointer, name="assay")


def entry(state: State) -> Literal["understand", "withdraw"]:
    return "withdraw" if state.get("withdrawn") else "understand"


def after_withdrawal(state: State, runtime: Runtime[Deps]) -> Literal["approve_output", "publish", "fallback"]:
    if not any(claim["verdict"] == "supported" for claim in state["claims"]):
        return "fallback"
    return "approve_output" if due("output", state, runtime.context) else "publish"


def after_understanding(state: State) -> Literal["clarify", "gate", "publish"]:
    if state["clarity_status"] == Clarity.NEEDS_CLARIFICATION:
        return "clarify"
    return "publish" if (state["understanding"] or {})["intent"] in ("cancel", "small_talk") else "gate"


def still_asking(state: State) -> Literal["question", "plan", "publish"]:
    if (state["understanding"] or {})["intent"] == "cancel":
        return "publish"
    return "question" if to_be_asked(state) else "plan"


def after_planning(state: State, runtime: Runtime[Deps]) -> Literal["approve_plan", "dispatch"]:
    return "approve_plan" if due("plan", state, runtime.context) else "dispatch"


def after_plan_approval(state: State, runtime: Runtime[Deps]) -> Literal["approve_plan", "dispatch", "fallback"]:
    return "fallback" if state["rejected"] else after_planning(state, runtime)


def to_searches(state: State) -> Sequence[Send] | Literal["verify"]:
    """One search a sub-question; with nothing left to ask, what there is gets verified and written."""
    return [Send("search", {**task, "understanding": state["understanding"]}) for task in state["tasks"]] or "verify"


Onwards = Sequence[Send] | Literal["select", "consolidate"]


def after_fusing(state: State, runtime: Runtime[Deps]) -> Onwards | Literal["approve_harvest"]:
    onwards = to_harvests(state)
    asks = onwards != "consolidate" and due("harvest", state, runtime.context)
    return "approve_harvest" if asks else onwards


def after_harvest_approval(
    state: State, runtime: Runtime[Deps]
) -> Onwards | Literal["approve_harvest", "verify", "fallback"]:
    """A round that is refused ends the research; what earlier ones have found is verified and told."""
    if state["rejected"]:
        return "verify" if state["findings"] else "fallback"
    return after_fusing(state, runtime)


def to_harvests(state: State) -> Onwards:
    """Each sub-question fetches its pages, one that several want only once; without pages reading begins at once."""
    wanted = state.get("pages") or {}
    if not any(wanted.values()):
        return to_readings(state)
    sends, seen = [], done(state["harvested"])
    for task in state["tasks"]:
        pages = [page for page in wanted.get(task["question"]["id"], ()) if page["key"] not in seen]
        seen.update(page["key"] for page in pages)
        if pages:
            sends.append(Send("harvest", {**task, "pages": pages}))
    return sends or "select"


def to_readings(state: State) -> Sequence[Send] | Literal["consolidate"]:
    """Each sub-question of this round reads the passages chosen for it; a passage read before is not read again."""
    sends = []
    for task in state["tasks"]:
        fresh = unread(state, task["question"]["id"])
        if fresh:
            sends.append(Send("read", {**task, "passages": fresh}))
    return sends or "consolidate"


async def after_consolidating(state: State, runtime: Runtime[Deps]) -> list[str]:
    quick = runtime.context.options.depth is Depth.QUICK
    if quick and state["confidence"] >= SURE[Depth.QUICK] * 10:
        return ["verify"]
    if is_last_round(state, runtime):
        return ["analyse", "verify"]
    return ["verify" if await runtime.context.account.exhausted() else "analyse"]


def is_last_round(state: State, runtime: Runtime[Deps]) -> bool:
    return foregone(state["round"], runtime.context.settings, len(state["failures"])) is not None


def after_analysis(state: State, runtime: Runtime[Deps]) -> Literal["dispatch", "verify", "__end__"]:
    if is_last_round(state, runtime):
        return "__end__"  # verify is under way, and write waits for both
    return "verify" if (state["analysis"] or {})["stop_reason"] else "dispatch"


def after_verifying(state: State, runtime: Runtime[Deps]) -> Literal["approve_claims", "write", "fallback"]:
    if state["rejected"] or not any(claim["verdict"] == "supported" for claim in state["claims"]):
        return "fallback"
    return "approve_claims" if due("claims", state, runtime.context) else "write"


def after_claims_approval(state: State, runtime: Runtime[Deps]) -> Literal["approve_claims", "write", "fallback"]:
    return after_verifying(state, runtime)


Reviewed = Literal["write", "approve_review", "approve_output", "publish", "fallback"]


def after_review(state: State, runtime: Runtime[Deps]) -> Reviewed:
    if due("review", state, runtime.context):
        return "approve_review"
    stops = due("output", state, runtime.context)
    if is_cleared(state) or comes_back(stops, state):
        return "approve_output" if stops else "publish"
    return _revised(state, runtime)


def _revised(state: State, runtime: Runtime[Deps]) -> Literal["write", "fallback"]:
    """Whoever reviews, says "reject" only where no round remains (F-07); "revise" still needs one."""
    wanted = (state["critique"] or {})["recommendation"] == "revise"
    return "write" if wanted and revisions_left(state, runtime.context) else "fallback"


def after_review_approval(state: State, runtime: Runtime[Deps]) -> Reviewed:
    if state["rejected"]:
        return "fallback"
    return "write" if state["edits"].get("rewrite") else after_review(state, runtime)


def after_output_approval(
    state: State, runtime: Runtime[Deps]
) -> Literal["write", "approve_output", "publish", "fallback"]:
    if state["rejected"]:
        return "fallback"
    if state["edits"].get("rewrite"):
        return "write"
    if due("output", state, runtime.context):
        return "approve_output"
    return "publish" if is_cleared(state) else _revised(state, runtime)


Stage = Callable[..., Awaitable[State]]


def observed(stage: Stage) -> Stage:
    """Every entry, exit and failure of a stage is an event with its status and time."""
    name = stage.__name__
    takes_runtime = "runtime" in stage.__annotations__

    @wraps(stage)
    async def node(state: Any, runtime: Runtime[Deps]) -> State:
        with within_a_step():
            return await told(state, runtime)

    async def told(state: Any, runtime: Runtime[Deps]) -> State:
        deps = runtime.context
        began = deps.now()
        status = Status.REVISING if name == "write" and state["iteration"] else STATUS[name]
        await deps.emit("enter", name, status=status)
        try:
            held = await deps.notes.whole(state)
            update = await (stage(held, runtime) if takes_runtime else stage(held))
            short = await deps.notes.apart(plain(update))
        except GraphBubbleUp:
            raise  # an open question, not a failure
        except Exception as error:
            await deps.emit("error", name, message=str(error), type=type(error).__name__, category=category_of(error))
            raise
        await deps.emit("leave", name, status=status, seconds=round((deps.now() - began).total_seconds(), 3))
        return cast("State", short)

    node.__annotations__ = {
        "state": stage.__annotations__.get("task") or State,
        "runtime": Runtime[Deps],
        "return": State,
    }
    # LangGraph passes what the signature asks for, and a signature is read through __wrapped__: a stage without
    # a runtime of its own would then leave this node without one.
    del node.__wrapped__
    return node


def seen(edge: Callable[..., Any]) -> Callable[..., Any]:
    """An edge that sees the state whole; the tasks it hands out are named, since a checkpoint holds them too."""
    takes_runtime = "runtime" in edge.__annotations__

    @wraps(edge)
    async def route(state: Any, runtime: Runtime[Deps]) -> Any:
        notes = runtime.context.notes
        held = await notes.whole(state)
        way = edge(held, runtime) if takes_runtime else edge(held)
        way = await way if isawaitable(way) else way
        if not isinstance(way, list) or not any(isinstance(step, Send) for step in way):
            return way
        return [Send(step.node, task) for step, task in zip(way, await notes.tasks([s.arg for s in way]), strict=True)]

    route.__annotations__ = {
        "state": State, "runtime": Runtime[Deps], "return": edge.__annotations__["return"]
    }  # fmt: skip
    del route.__wrapped__
    return route


def plain(update: State) -> State:
    """Enumerations become their values: under strict serialisation only plain data survive a checkpoint."""
    values = {key: value.value if isinstance(value, StrEnum) else value for key, value in update.items()}
    return cast("State", values)


def drawing() -> str:
    """The graph as Mermaid, drawn from the compiled graph itself."""
    return build().get_graph().draw_mermaid()
