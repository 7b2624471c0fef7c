"""Validate what was found: how sure each section is, what is missing, and whether another round is worth it."""

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Analysis
from openassay.models.plan import Depth
from openassay.nodes.dispatch import list_queries
from openassay.reasoning.base import AnalysisRequest, Evidence
from openassay.settings import Settings
from openassay.state import State, load_analysis, load_findings, load_plan, load_sources

SURE = {Depth.QUICK: 0.6, Depth.STANDARD: 0.85, Depth.COMPREHENSIVE: 0.85}
SMALL_GAIN = 0.05


async def analyse(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, plan, previous = runtime.context, load_plan(state), load_analysis(state)
    analysis = await context.reasoner.analyse(
        AnalysisRequest(
            plan=plan,
            evidence=load_evidence(state),
            coverage=state["coverage"],
            previous=previous,
            asked=tuple(line.partition(" ")[2] for line in list_queries(state)),
        )
    )
    reason = stop_reason(analysis, previous, state["round"], plan.depth, context.settings, len(state["failures"]))
    analysis = analysis.model_copy(update={"stop_reason": reason})
    text, gaps = reason or analysis.feedback, len(analysis.gaps)
    await context.emit("notice", "analyse", text=text, confidence=analysis.confidence, gaps=gaps)
    return {
        "analysis": analysis.plain(),
        "validation_result": "insufficient" if gaps else "sufficient",
        "validation_feedback": analysis.feedback,
        "current_agent": "validator",
    }


def load_evidence(state: State) -> tuple[Evidence, ...]:
    """Return the findings with the titles and dates of their documents."""
    sources = {source["document"]: source for source in load_sources(state)}
    return tuple(
        Evidence(finding=finding, title=source["title"], published=source["published"])
        for finding in load_findings(state)
        if (source := sources[finding.span.document])
    )


def stop_reason(
    analysis: Analysis, previous: Analysis | None, rounds: int, depth: Depth, settings: Settings, failures: int
) -> str | None:
    """Say why research ends here, or return None when another round is worth it."""
    if reason := limit_reason(rounds, settings, failures):
        return reason
    if not analysis.gaps:
        return "every sub-question has evidence"
    # Of a quick question the route has looked at the confidence before, and it is tried again even when nothing new
    # came (C-04); deeper ones stop (S-08).
    if depth is not Depth.QUICK:
        if analysis.confidence >= SURE[depth]:
            return f"confidence {analysis.confidence:.2f} is enough"
        # Rounded, since as floats .35 less .30 is a little less than .05.
        if previous is not None and round(analysis.confidence - previous.confidence, 4) < SMALL_GAIN:
            return "the last round added too little"
    if not analysis.refinements:
        return "there is nothing new to ask"
    return None


def limit_reason(rounds: int, settings: Settings, failures: int) -> str | None:
    """Say why this round is the last, whatever the analysis finds, or return None."""
    if rounds >= max_rounds(settings):
        return f"stopped after {rounds} rounds"
    return f"stopped after {failures} failed searches" if failures >= settings.max_search_errors else None


def max_rounds(settings: Settings) -> int:
    return min(settings.max_gap_searches + 1, 3)
