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

from openassay.context import ResearchContext, enter_step
from openassay.errors import category_of
from openassay.models.event import Status
from openassay.models.plan import Clarity, Depth
from openassay.nodes.analyse import SURE, analyse, limit_reason
from openassay.nodes.approve import (
    approve_claims,
    approve_harvest,
    approve_output,
    approve_plan,
    approve_review,
    awaits_revision,
    can_publish,
    due_breakpoints,
)
from openassay.nodes.consolidate import consolidate
from openassay.nodes.dispatch import dispatch
from openassay.nodes.failures import RETRY, handle_harvest_failure, handle_read_failure, handle_search_failure
from openassay.nodes.fuse import fuse
from openassay.nodes.gate import gate, pending_questions, question
from openassay.nodes.harvest import harvest, list_unread_passages, pages_to_skip, select
from openassay.nodes.plan import plan
from openassay.nodes.publish import fallback, publish
from openassay.nodes.read import read
from openassay.nodes.review import count_revisions, review
from openassay.nodes.search import search
from openassay.nodes.understand import clarify, understand
from openassay.nodes.verify import verify
from openassay.nodes.withdraw import withdraw
from openassay.nodes.write import write
from openassay.state import State

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


def build_graph(checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    graph = StateGraph(State, context_schema=ResearchContext)
    for node in (withdraw, understand, clarify, gate, question, plan, approve_plan, dispatch, fuse, approve_harvest,
                 select, consolidate, analyse, verify, approve_claims, write, review, approve_review, approve_output,
                 publish, fallback):  # fmt: skip
        graph.add_node(node.__name__, instrument_node(node), retry_policy=RETRY)
    graph.add_node("search", instrument_node(search), retry_policy=RETRY, error_handler=handle_search_failure)
    graph.add_node("harvest", instrument_node(harvest), retry_policy=RETRY, error_handler=handle_harvest_failure)
    graph.add_node("read", instrument_node(read), retry_policy=RETRY, error_handler=handle_read_failure)

    graph.add_conditional_edges(START, entry)
    graph.add_conditional_edges("withdraw", instrument_edge(after_withdrawal))
    graph.add_conditional_edges("understand", instrument_edge(after_understanding))
    graph.add_edge("clarify", "understand")
    graph.add_conditional_edges("gate", instrument_edge(after_gate))
    graph.add_conditional_edges("question", instrument_edge(after_gate))
    graph.add_conditional_edges("plan", instrument_edge(after_planning))
    graph.add_conditional_edges("approve_plan", instrument_edge(after_plan_approval))
    graph.add_conditional_edges("dispatch", instrument_edge(to_searches), ["search", "verify"])
    graph.add_edge("search", "fuse")
    graph.add_conditional_edges(
        "fuse", instrument_edge(after_fusing), ["approve_harvest", "harvest", "select", "read", "consolidate"]
    )
    graph.add_conditional_edges(
        "approve_harvest",
        instrument_edge(after_harvest_approval),
        ["approve_harvest", "harvest", "select", "read", "consolidate", "verify", "fallback"],
    )
    graph.add_edge("harvest", "select")
    graph.add_conditional_edges("select", instrument_edge(to_readings), ["read", "consolidate"])
    graph.add_edge("read", "consolidate")
    graph.add_conditional_edges("consolidate", instrument_edge(after_consolidating), ["analyse", "verify"])
    graph.add_conditional_edges("analyse", instrument_edge(after_analysis))
    graph.add_conditional_edges("verify", instrument_edge(after_verifying))
    graph.add_conditional_edges("approve_claims", instrument_edge(after_claims_approval))
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", instrument_edge(after_review))
    graph.add_conditional_edges("approve_review", instrument_edge(after_review_approval))
    graph.add_conditional_edges("approve_output", instrument_edge(after_output_approval))
    graph.add_edge("publish", END)
    graph.add_edge("fallback", END)
    return graph.compile(checkpointer=checkpointer, name="openassay")


def entry(state: State) -> Literal["understand", "withdraw"]:
    return "withdraw" if state.get("withdrawn") else "understand"


def after_withdrawal(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["approve_output", "publish", "fallback"]:
    if not any(claim["verdict"] == "supported" for claim in state["claims"]):
        return "fallback"
    return "approve_output" if due_breakpoints("output", state, runtime.context) else "publish"


def after_understanding(state: State) -> Literal["clarify", "gate", "publish"]:
    if state["clarity_status"] == Clarity.NEEDS_CLARIFICATION:
        return "clarify"
    return "publish" if (state["understanding"] or {})["intent"] in ("cancel", "small_talk") else "gate"


def after_gate(state: State) -> Literal["question", "plan", "publish"]:
    if (state["understanding"] or {})["intent"] == "cancel":
        return "publish"
    return "question" if pending_questions(state) else "plan"


def after_planning(state: State, runtime: Runtime[ResearchContext]) -> Literal["approve_plan", "dispatch"]:
    return "approve_plan" if due_breakpoints("plan", state, runtime.context) else "dispatch"


def after_plan_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["approve_plan", "dispatch", "fallback"]:
    return "fallback" if state["rejected"] else after_planning(state, runtime)


def to_searches(state: State) -> Sequence[Send] | Literal["verify"]:
    """One search a sub-question; with nothing left to ask, what there is gets verified and written."""
    return [Send("search", {**task, "understanding": state["understanding"]}) for task in state["tasks"]] or "verify"


HarvestRoute = Sequence[Send] | Literal["select", "consolidate"]


def after_fusing(state: State, runtime: Runtime[ResearchContext]) -> HarvestRoute | Literal["approve_harvest"]:
    onwards = to_harvests(state)
    asks = onwards != "consolidate" and due_breakpoints("harvest", state, runtime.context)
    return "approve_harvest" if asks else onwards


def after_harvest_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> HarvestRoute | Literal["approve_harvest", "verify", "fallback"]:
    """A round that is refused ends the research; what earlier ones have found is verified and told."""
    if state["rejected"]:
        return "verify" if state["findings"] else "fallback"
    return after_fusing(state, runtime)


def to_harvests(state: State) -> HarvestRoute:
    """Each sub-question fetches its pages, one that several want only once; without pages reading begins at once."""
    wanted = state.get("pages") or {}
    if not any(wanted.values()):
        return to_readings(state)
    sends, seen = [], pages_to_skip(state["harvested"])
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
        fresh = list_unread_passages(state, task["question"]["id"])
        if fresh:
            sends.append(Send("read", {**task, "passages": fresh}))
    return sends or "consolidate"


async def after_consolidating(state: State, runtime: Runtime[ResearchContext]) -> list[str]:
    quick = runtime.context.options.depth is Depth.QUICK
    if quick and state["confidence"] >= SURE[Depth.QUICK] * 10:
        return ["verify"]
    if is_last_round(state, runtime):
        return ["analyse", "verify"]
    return ["verify" if await runtime.context.account.is_exhausted() else "analyse"]


def is_last_round(state: State, runtime: Runtime[ResearchContext]) -> bool:
    return limit_reason(state["round"], runtime.context.settings, len(state["failures"])) is not None


def after_analysis(state: State, runtime: Runtime[ResearchContext]) -> Literal["dispatch", "verify", "__end__"]:
    if is_last_round(state, runtime):
        return "__end__"  # verify is under way, and write waits for both
    return "verify" if (state["analysis"] or {})["stop_reason"] else "dispatch"


def after_verifying(state: State, runtime: Runtime[ResearchContext]) -> Literal["approve_claims", "write", "fallback"]:
    if state["rejected"] or not any(claim["verdict"] == "supported" for claim in state["claims"]):
        return "fallback"
    return "approve_claims" if due_breakpoints("claims", state, runtime.context) else "write"


def after_claims_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["approve_claims", "write", "fallback"]:
    return after_verifying(state, runtime)


ReviewRoute = Literal["write", "approve_review", "approve_output", "publish", "fallback"]


def after_review(state: State, runtime: Runtime[ResearchContext]) -> ReviewRoute:
    if due_breakpoints("review", state, runtime.context):
        return "approve_review"
    stops = due_breakpoints("output", state, runtime.context)
    if can_publish(state) or awaits_revision(stops, state):
        return "approve_output" if stops else "publish"
    return _route_revision(state, runtime)


def _route_revision(state: State, runtime: Runtime[ResearchContext]) -> Literal["write", "fallback"]:
    """Whoever reviews, says "reject" only where no round remains (F-07); "revise" still needs one."""
    wanted = (state["critique"] or {})["recommendation"] == "revise"
    return "write" if wanted and count_revisions(state, runtime.context) else "fallback"


def after_review_approval(state: State, runtime: Runtime[ResearchContext]) -> ReviewRoute:
    if state["rejected"]:
        return "fallback"
    return "write" if state["edits"].get("rewrite") else after_review(state, runtime)


def after_output_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["write", "approve_output", "publish", "fallback"]:
    if state["rejected"]:
        return "fallback"
    if state["edits"].get("rewrite"):
        return "write"
    if due_breakpoints("output", state, runtime.context):
        return "approve_output"
    return "publish" if can_publish(state) else _route_revision(state, runtime)


NodeFunction = Callable[..., Awaitable[State]]


def instrument_node(stage: NodeFunction) -> NodeFunction:
    """Every entry, exit and failure of a stage is an event with its status and time."""
    name = stage.__name__
    takes_runtime = "runtime" in stage.__annotations__

    @wraps(stage)
    async def node(state: Any, runtime: Runtime[ResearchContext]) -> State:
        with enter_step():
            return await told(state, runtime)

    async def told(state: Any, runtime: Runtime[ResearchContext]) -> State:
        deps = runtime.context
        began = deps.now()
        status = Status.REVISING if name == "write" and state["iteration"] else STATUS[name]
        await deps.emit("enter", name, status=status)
        try:
            held = await deps.notes.expand(state)
            update = await (stage(held, runtime) if takes_runtime else stage(held))
            short = await deps.notes.compact(to_plain(update))
        except GraphBubbleUp:
            raise  # an open question, not a failure
        except Exception as error:
            await deps.emit("error", name, message=str(error), type=type(error).__name__, category=category_of(error))
            raise
        await deps.emit("leave", name, status=status, seconds=round((deps.now() - began).total_seconds(), 3))
        return cast("State", short)

    node.__annotations__ = {
        "state": stage.__annotations__.get("task") or State,
        "runtime": Runtime[ResearchContext],
        "return": State,
    }
    # LangGraph passes what the signature asks for, and a signature is read through __wrapped__: a stage without
    # a runtime of its own would then leave this node without one.
    del node.__wrapped__
    return node


def instrument_edge(edge: Callable[..., Any]) -> Callable[..., Any]:
    """An edge that sees the state whole; the tasks it hands out are named, since a checkpoint holds them too."""
    takes_runtime = "runtime" in edge.__annotations__

    @wraps(edge)
    async def route(state: Any, runtime: Runtime[ResearchContext]) -> Any:
        notes = runtime.context.notes
        held = await notes.expand(state)
        way = edge(held, runtime) if takes_runtime else edge(held)
        way = await way if isawaitable(way) else way
        if not isinstance(way, list) or not any(isinstance(step, Send) for step in way):
            return way
        return [
            Send(step.node, task)
            for step, task in zip(way, await notes.compact_tasks([s.arg for s in way]), strict=True)
        ]

    route.__annotations__ = {
        "state": State, "runtime": Runtime[ResearchContext], "return": edge.__annotations__["return"]
    }  # fmt: skip
    del route.__wrapped__
    return route


def to_plain(update: State) -> State:
    """Enumerations become their values: under strict serialisation only plain data survive a checkpoint."""
    values = {key: value.value if isinstance(value, StrEnum) else value for key, value in update.items()}
    return cast("State", values)


def draw_mermaid() -> str:
    """The graph as Mermaid, drawn from the compiled graph itself."""
    return build_graph().get_graph().draw_mermaid()
