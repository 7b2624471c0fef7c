"""Handing out work: every sub-question in the first round, only the gaps in later ones."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.plan import Plan, SubQuestion
from assay.model.question import Understanding
from assay.state import State, Task


async def dispatch(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    understanding = Understanding.model_validate(state["understanding"])
    asked = list(state["asked"])
    tasks: list[Task] = []
    for question in plan.questions:
        queries = await _queries(question, plan, understanding, state, deps)
        fresh = [query for query in dict.fromkeys(queries) if f"{question.id} {query}" not in asked]
        fresh = fresh[: deps.settings.max_search_iterations]
        if fresh:
            asked += [f"{question.id} {query}" for query in fresh]
            tasks.append(
                {
                    "key": f"{state['round']}:{question.id}",
                    "question": question.plain(),
                    "queries": fresh,
                    "passages": [],
                }
            )
    return {
        "tasks": [dict(task) for task in tasks],
        "asked": asked,
        "round": state["round"] + 1,
        "research_attempts": state["research_attempts"] + 1,
        "status": Status.SEARCHING,
        "current_agent": "research",
    }


async def _queries(
    question: SubQuestion, plan: Plan, understanding: Understanding, state: State, deps: Deps
) -> list[str]:
    """Round 0: the plan's queries and variations of them. Later: what the analysis found wanting."""
    analysis = state["analysis"]
    if analysis is not None:
        return list(analysis["refinements"].get(question.id, ()))
    planned = [query.text for query in plan.queries if query.question == question.id]
    variations = await deps.reasoner.queries(question, understanding, deps.settings.query_variations)
    return [*planned, *variations]
