"""Handing out work: every sub-question in the first round, only the gaps in later ones."""

from collections.abc import Iterable

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.plan import Plan, QueryType, SubQuestion
from assay.model.question import Understanding
from assay.ports import Source
from assay.state import State, Task

SERVED: tuple[QueryType, ...] = ("web",)  # by a source that does not say otherwise in an attribute `types`


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


def served(sources: Iterable[Source]) -> set[QueryType]:
    """The types of query there is a source for; a query of another type is not asked."""
    return {kind for source in sources for kind in getattr(source, "types", SERVED)}


async def _queries(
    question: SubQuestion, plan: Plan, understanding: Understanding, state: State, deps: Deps
) -> list[str]:
    """Round 0: the plan's queries and variations of them. Later: what the analysis found wanting."""
    analysis = state["analysis"]
    if analysis is not None:
        return list(analysis["refinements"].get(question.id, ()))
    types = served(deps.sources)
    planned = [query.text for query in plan.queries if query.question == question.id and query.type in types]
    variations = await deps.reasoner.queries(question, understanding, deps.settings.query_variations)
    return [*planned, *variations]
