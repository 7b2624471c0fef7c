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
    consolidate -> analyse --gaps--> dispatch        (quick and sure, out of money, or in the last round, which no
                     |                                analysis can change: consolidate -> verify)
                     |--else--> verify -> [approve_claims] -> write -> review -> [approve_review]
        review --revise, while rounds remain and the last one changed something--> write
          |--a part is missing, after the first draft--> dispatch (and from consolidate to verify)
          |--approved--> [approve_output] -> publish -> END
          |--rejected, out of rounds--> fallback -> END
    START -> withdraw (a source is vetoed) -> [approve_output] -> publish, or fallback where nothing is left

Names in brackets are human breakpoints, off by default: each place asks for what is due there, one after the other. A
rejection leads to the fallback, by way of verify where earlier rounds have found something; a report sent back to the
writer comes back to the breakpoint that sent it. Sources and the model router retry their own requests; a node is
retried only where storage was busy for a moment (nodes/failures.py). A failing search, harvest or read loses its own
sub-question only.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from functools import cache, wraps
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
from openassay.nodes.analyse import SURE, analyse, consolidate, limit_reason
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
from openassay.nodes.dispatch import dispatch
from openassay.nodes.failures import RETRY, handle_harvest_failure, handle_read_failure, handle_search_failure
from openassay.nodes.harvest import fuse, harvest, list_unread_passages, pages_to_skip, select
from openassay.nodes.plan import gate, pending_questions, plan, question
from openassay.nodes.publish import fallback, publish
from openassay.nodes.read import read
from openassay.nodes.review import count_revisions, review
from openassay.nodes.search import search
from openassay.nodes.understand import clarify, understand
from openassay.nodes.verify import verify
from openassay.nodes.withdraw import withdraw
from openassay.nodes.write import write
from openassay.state import (
    State,
    load_analysis,
    load_critique,
    load_edits,
    load_harvests,
    load_page_requests,
    load_supported_claims,
    load_tasks,
    load_understanding,
)

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

# The status of requirement F-01 while a node is at work.
STATUS = {
    node: status
    for status, nodes in {
        Status.PLANNING: "understand clarify gate question plan approve_plan",
        Status.SEARCHING: "dispatch search fuse approve_harvest harvest select read",
        Status.ANALYZING: "consolidate analyse verify approve_claims withdraw",
        Status.WRITING: "write publish fallback",
        Status.REVIEWING: "review approve_review approve_output",
    }.items()
    for node in nodes.split()
}

NodeFunction = Callable[..., Awaitable[State]]
NODES: tuple[NodeFunction, ...] = (understand, clarify, gate, question, plan, approve_plan)
NODES += (dispatch, fuse, approve_harvest, select, consolidate, analyse, verify, approve_claims)
NODES += (write, review, approve_review, approve_output, publish, fallback, withdraw)


def build_graph(checkpointer: "BaseCheckpointSaver[Any] | None" = None) -> "CompiledStateGraph[Any, Any, Any, Any]":
    """Compile the research graph; without a checkpointer for tools that bring their own."""
    return define_graph().compile(checkpointer=checkpointer, name="openassay")


@cache  # it is the same for every engine of a process, and takes 40 ms
def define_graph() -> "StateGraph[Any, Any, Any, Any]":
    graph = StateGraph(State, context_schema=ResearchContext)
    for node in NODES:
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
    graph.add_conditional_edges("consolidate", instrument_edge(after_consolidating))
    graph.add_conditional_edges("analyse", instrument_edge(after_analysis))
    graph.add_conditional_edges("verify", instrument_edge(after_verifying))
    graph.add_conditional_edges("approve_claims", instrument_edge(after_verifying))
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", instrument_edge(after_review))
    graph.add_conditional_edges("approve_review", instrument_edge(after_review_approval))
    graph.add_conditional_edges("approve_output", instrument_edge(after_output_approval))
    graph.add_edge("publish", END)
    graph.add_edge("fallback", END)
    return graph


def entry(state: State) -> Literal["understand", "withdraw"]:
    return "withdraw" if state.get("withdrawn") else "understand"


def after_withdrawal(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["approve_output", "publish", "fallback"]:
    if not load_supported_claims(state):
        return "fallback"
    return "approve_output" if due_breakpoints("output", state, runtime.context) else "publish"


def after_understanding(state: State) -> Literal["clarify", "gate", "publish"]:
    if state["clarity_status"] == Clarity.NEEDS_CLARIFICATION:
        return "clarify"
    return "publish" if load_understanding(state).intent in ("cancel", "small_talk") else "gate"


def after_gate(state: State) -> Literal["question", "plan", "publish"]:
    if load_understanding(state).intent == "cancel":
        return "publish"
    return "question" if pending_questions(state) else "plan"


def after_planning(state: State, runtime: Runtime[ResearchContext]) -> Literal["approve_plan", "dispatch"]:
    return "approve_plan" if due_breakpoints("plan", state, runtime.context) else "dispatch"


def after_plan_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["approve_plan", "dispatch", "fallback"]:
    return "fallback" if state["rejected"] else after_planning(state, runtime)


def to_searches(state: State) -> Sequence[Send] | Literal["verify"]:
    """Search for each sub-question; with nothing left to ask, verify and write what there is."""
    return [Send("search", {**task, "understanding": state["understanding"]}) for task in load_tasks(state)] or "verify"


HarvestRoute = Sequence[Send] | Literal["select", "consolidate"]


def after_fusing(state: State, runtime: Runtime[ResearchContext]) -> HarvestRoute | Literal["approve_harvest"]:
    route = to_harvests(state)
    asks = route != "consolidate" and due_breakpoints("harvest", state, runtime.context)
    return "approve_harvest" if asks else route


def after_harvest_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> HarvestRoute | Literal["approve_harvest", "verify", "fallback"]:
    """End the research where a round is refused; what earlier ones have found is verified and reported."""
    if state["rejected"]:
        return "verify" if state["findings"] else "fallback"
    return after_fusing(state, runtime)


def to_harvests(state: State) -> HarvestRoute:
    """Fetch the pages of each sub-question, a shared one only once; without pages, begin to read at once."""
    wanted = load_page_requests(state)
    if not any(wanted.values()):
        return to_readings(state)
    sends, seen = [], pages_to_skip(load_harvests(state))
    for task in load_tasks(state):
        pages = [page for page in wanted.get(task["question"]["id"], ()) if page["key"] not in seen]
        seen.update(page["key"] for page in pages)
        if pages:
            sends.append(Send("harvest", {**task, "pages": pages}))
    return sends or "select"


def to_readings(state: State) -> Sequence[Send] | Literal["consolidate"]:
    """Read the passages selected for each sub-question of this round; one read before is not read again."""
    sends = []
    for task in load_tasks(state):
        if unread := list_unread_passages(state, task["question"]["id"]):
            sends.append(Send("read", {**task, "passages": unread}))
    return sends or "consolidate"


async def after_consolidating(state: State, runtime: Runtime[ResearchContext]) -> Literal["analyse", "verify"]:
    context = runtime.context
    sure = context.options.depth is Depth.QUICK and state["confidence"] >= SURE[Depth.QUICK] * 10
    last = state["iteration"] or limit_reason(state["round"], context.settings, len(state["failures"]))
    return "verify" if sure or last or await context.account.is_exhausted() else "analyse"


def after_analysis(state: State) -> Literal["dispatch", "verify"]:
    analysis = load_analysis(state)
    return "verify" if analysis is None or analysis.stop_reason else "dispatch"


def after_verifying(state: State, runtime: Runtime[ResearchContext]) -> Literal["approve_claims", "write", "fallback"]:
    if state["rejected"] or not load_supported_claims(state):
        return "fallback"
    return "approve_claims" if due_breakpoints("claims", state, runtime.context) else "write"


ReviewRoute = Literal["write", "approve_review", "approve_output", "publish", "fallback"]


def after_review(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["dispatch", "write", "approve_review", "approve_output", "publish", "fallback"]:
    """Go on by what the review says; without a draft, it has found a part missing that is now searched for."""
    return "dispatch" if state["draft"] is None else _route_draft(state, runtime)


def _route_draft(state: State, runtime: Runtime[ResearchContext]) -> ReviewRoute:
    if due_breakpoints("review", state, runtime.context):
        return "approve_review"
    stops = due_breakpoints("output", state, runtime.context)
    if can_publish(state) or awaits_revision(stops, state):
        return "approve_output" if stops else "publish"
    return _route_revision(state, runtime)


def _route_revision(state: State, runtime: Runtime[ResearchContext]) -> Literal["write", "fallback"]:
    """Write again where the review asks for it and a round remains; "reject" is said only where none does (F-07)."""
    critique = load_critique(state)
    asks = critique and critique.recommendation == "revise"
    return "write" if asks and count_revisions(state, runtime.context) else "fallback"


def after_review_approval(state: State, runtime: Runtime[ResearchContext]) -> ReviewRoute:
    if state["rejected"]:
        return "fallback"
    return "write" if load_edits(state).get("rewrite") else _route_draft(state, runtime)


def after_output_approval(
    state: State, runtime: Runtime[ResearchContext]
) -> Literal["write", "approve_output", "publish", "fallback"]:
    if state["rejected"]:
        return "fallback"
    if load_edits(state).get("rewrite"):
        return "write"
    if due_breakpoints("output", state, runtime.context):
        return "approve_output"
    return "publish" if can_publish(state) else _route_revision(state, runtime)


def instrument_node(function: NodeFunction) -> NodeFunction:
    """Wrap a node for LangGraph: it gets the whole state, and its entry, exit or failure becomes an event."""

    @wraps(function)
    async def node(state: Any, runtime: Runtime[ResearchContext]) -> State:
        with enter_step():
            return await run_node(function, state, runtime)

    node.__annotations__ = {
        "state": function.__annotations__.get("task") or State,
        "runtime": Runtime[ResearchContext],
        "return": State,
    }
    # LangGraph passes what the signature asks for, and reads it through __wrapped__: a node without a runtime
    # parameter would then leave the wrapper without one.
    del node.__wrapped__
    return node


async def run_node(function: NodeFunction, state: Any, runtime: Runtime[ResearchContext]) -> State:
    context, name = runtime.context, function.__name__
    began = context.now()
    status = Status.REVISING if name == "write" and state["iteration"] else STATUS[name]
    await context.emit("enter", name, status=status)
    try:
        whole = await context.notes.expand(state)
        update = await (function(whole, runtime) if "runtime" in function.__annotations__ else function(whole))
        # Under strict serialisation only plain data survive a checkpoint: enumerations become their values.
        plain = {key: value.value if isinstance(value, StrEnum) else value for key, value in update.items()}
        short = await context.notes.compact(plain)
    except GraphBubbleUp:
        raise  # an interrupt, not a failure
    except Exception as error:
        await context.emit("error", name, message=str(error), type=type(error).__name__, category=category_of(error))
        raise
    await context.emit("leave", name, status=status, seconds=round((context.now() - began).total_seconds(), 3))
    return cast("State", short)


def instrument_edge(router: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a router for LangGraph: it gets the whole state, and the tasks it sends are compacted for the checkpoint."""

    @wraps(router)
    async def edge(state: Any, runtime: Runtime[ResearchContext]) -> Any:
        notes = runtime.context.notes
        whole = await notes.expand(state)
        route = router(whole, runtime) if "runtime" in router.__annotations__ else router(whole)
        route = await route if isawaitable(route) else route
        if not isinstance(route, list) or not any(isinstance(step, Send) for step in route):
            return route
        tasks = await notes.compact_tasks([send.arg for send in route])
        return [Send(send.node, task) for send, task in zip(route, tasks, strict=True)]

    edge.__annotations__ = {
        "state": State,
        "runtime": Runtime[ResearchContext],
        "return": router.__annotations__["return"],
    }
    del edge.__wrapped__
    return edge
