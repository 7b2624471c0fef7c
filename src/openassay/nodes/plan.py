"""The plan: sub-questions, queries and sections, validated before anything is searched."""

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import StorageError
from openassay.models.event import Status
from openassay.models.plan import Understanding
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.reasoning.base import PlanRequest
from openassay.state import State

MOST_FACTS = 5  # of what is remembered of the person


async def plan(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps, options = runtime.context, runtime.context.options
    understanding = Understanding.model_validate(state["understanding"])
    facts, notices = await _recall_facts(understanding.question, deps)
    made = await deps.reasoner.plan(
        PlanRequest(
            understanding=understanding,
            depth=options.depth,
            answers=state["planner_answers"],
            context=state["enriched_context"],
            domains=options.domains,
            preferences=options.preferences,
            facts=facts,
        )
    )
    # What the run may ask and spend stands in the plan, so that a person can change it there.
    usd = options.max_usd(deps.settings.budget.usd)
    asked = select_sources(deps.sources, (), source_preferences(understanding.question, options))
    made = made.model_copy(update={"sources": tuple(source.name for source in asked), "usd": usd})
    for warning in made.warnings:
        await deps.emit("notice", "plan", text=warning)
    await deps.emit(
        "section", "plan", questions=[question.text for question in made.questions], queries=len(made.queries),
        constraints=list(made.constraints),
    )  # fmt: skip
    return {
        "plan": made.plain(),
        "notices": {**state["notices"], **notices},
        "status": Status.SEARCHING,
        "current_agent": "plan",
    }


async def _recall_facts(question: str, deps: ResearchContext) -> tuple[tuple[str, ...], dict[str, str]]:
    """What is remembered and bears on a question. Where that cannot be read, the question is researched all the same,
    and a notice says so."""
    try:
        facts = await deps.memory.find_relevant(deps.options.user, question, limit=MOST_FACTS)
    except StorageError as error:
        note = f"Planned without the facts you had remembered: {error.message}. {error.help}".rstrip()
        await deps.emit("notice", "plan", text=note)
        return (), {"facts": note}
    return tuple(fact.text for fact in facts), {}
