"""The plan: sub-questions, queries and sections, validated before anything is searched."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.question import Understanding
from assay.reasoning.protocol import PlanRequest
from assay.state import State


async def plan(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    made = await deps.reasoner.plan(
        PlanRequest(
            understanding=Understanding.model_validate(state["understanding"]),
            depth=deps.options.depth,
            answers=state["planner_answers"],
            context=state["enriched_context"],
            domains=deps.options.domains,
        )
    )
    for warning in made.warnings:
        await deps.emit("notice", "plan", text=warning)
    await deps.emit(
        "section", "plan", questions=[question.text for question in made.questions], queries=len(made.queries)
    )
    return {"plan": made.plain(), "status": Status.SEARCHING, "current_agent": "plan"}
