"""Plan the research: sub-questions, queries and sections, validated before anything is searched."""

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import StorageError
from openassay.models.event import Status
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.reasoning.base import PlanRequest
from openassay.state import State, load_understanding

MAX_FACTS = 5  # of what is remembered of the person


async def plan(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, options = runtime.context, runtime.context.options
    understanding = load_understanding(state)
    facts, notices = [], dict(state["notices"])
    try:
        facts = list(await context.memory.find_relevant(options.user, understanding.question, limit=MAX_FACTS))
    except StorageError as error:  # the question is researched all the same
        notices["facts"] = f"Planned without the facts you had remembered: {error.message}. {error.help}".rstrip()
        await context.emit("notice", "plan", text=notices["facts"])
    plan = await context.reasoner.plan(
        PlanRequest(
            understanding=understanding,
            depth=options.depth,
            answers=state["planner_answers"],
            context=state["enriched_context"],
            domains=options.domains,
            preferences=options.preferences,
            facts=tuple(fact.text for fact in facts),
        )
    )
    # What the run may ask and spend stands in the plan, so that a person can change it there.
    sources = select_sources(context.sources, (), source_preferences(understanding.question, options))
    usd = options.max_usd(context.settings.budget.usd)
    plan = plan.model_copy(update={"sources": tuple(source.name for source in sources), "usd": usd})
    for warning in plan.warnings:
        await context.emit("notice", "plan", text=warning)
    texts = [question.text for question in plan.questions]
    constraints = list(plan.constraints)
    await context.emit("section", "plan", questions=texts, queries=len(plan.queries), constraints=constraints)
    return {"plan": plan.plain(), "notices": notices, "status": Status.SEARCHING, "current_agent": "plan"}
