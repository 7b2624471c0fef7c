"""Validator: how sure each section is, what is missing, and whether another round is worth it."""

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.evidence import Analysis, Finding
from openassay.models.plan import Depth, Plan
from openassay.nodes.dispatch import list_queries
from openassay.reasoning.base import AnalysisRequest, Evidence
from openassay.settings import Settings
from openassay.state import State

SURE = {Depth.QUICK: 0.6, Depth.STANDARD: 0.85, Depth.COMPREHENSIVE: 0.85}
SMALL_GAIN = 0.05


async def analyse(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    previous = Analysis.model_validate(state["analysis"]) if state["analysis"] else None
    analysis = await deps.reasoner.analyse(
        AnalysisRequest(plan=plan, evidence=load_evidence(state), coverage=state["coverage"], previous=previous,
                        asked=tuple(line.partition(" ")[2] for line in list_queries(state)))
    )  # fmt: skip
    reason = stop_reason(analysis, previous, state["round"], plan.depth, deps.settings, len(state["failures"]))
    analysis = analysis.model_copy(update={"stop_reason": reason})
    await deps.emit(
        "notice", "analyse", text=reason or analysis.feedback, confidence=analysis.confidence, gaps=len(analysis.gaps)
    )
    return {
        "analysis": analysis.plain(),
        "validation_result": "sufficient" if not analysis.gaps else "insufficient",
        "validation_feedback": analysis.feedback,
        "current_agent": "validator",
    }


def load_evidence(state: State) -> tuple[Evidence, ...]:
    """Findings with the titles and dates of their documents."""
    cards = {source["document"]: source for source in state["sources"]}
    findings = [Finding.model_validate(item) for item in state["findings"]]
    return tuple(
        Evidence(
            finding=finding,
            title=cards[finding.span.document]["title"],
            published=cards[finding.span.document]["published"],
        )
        for finding in findings
    )


def stop_reason(
    analysis: Analysis, previous: Analysis | None, rounds: int, depth: Depth, settings: Settings, failures: int
) -> str | None:
    """Why research ends here, or None when another round is worth it."""
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
    """Why this round is the last, whatever the analysis finds."""
    if rounds >= max_rounds(settings):
        return f"stopped after {rounds} rounds"
    return f"stopped after {failures} failed searches" if failures >= settings.max_search_errors else None


def max_rounds(settings: Settings) -> int:
    return min(settings.max_gap_searches + 1, 3)
