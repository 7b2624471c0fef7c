"""Analyse what was read: gather it from all rounds, say how sure each section is and what is missing, and decide
whether another round is worth it."""

import asyncio
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import ANSWERED, Analysis, Finding
from openassay.models.plan import Depth, Plan, Understanding
from openassay.nodes.dispatch import add_budget_notice, list_queries
from openassay.nodes.harvest import load_read_documents
from openassay.protocols import ConfidenceSource
from openassay.reasoning.base import AnalysisRequest, Evidence
from openassay.settings import Settings
from openassay.state import (
    NumberedSource,
    State,
    load_analysis,
    load_findings,
    load_plan,
    load_selected,
    load_sources,
    load_understanding,
)
from openassay.text.injection import find_instructions
from openassay.text.words import find_names
from openassay.verification.sources import group_documents, rate_sources
from openassay.verification.verdict import answer_confidence, answer_scores, build_finding_context, select_findings

SURE = {Depth.QUICK: 0.6, Depth.STANDARD: 0.85, Depth.COMPREHENSIVE: 0.85}
SMALL_GAIN = 0.05

FindingKey = tuple[str, str, int]


async def consolidate(state: State, runtime: Runtime[ResearchContext]) -> State:
    """Bring the rounds together: sources S1, S2, ... and evidence E1, E2, ..., each once, and how far they reach."""
    context, plan, understanding = runtime.context, load_plan(state), load_understanding(state)
    # One finding per span and sub-question, named E1, E2, ... from the most relevant on; one of an earlier round keeps
    # its name.
    best: dict[FindingKey, Finding] = {}
    for finding in (Finding.model_validate(item) for key in sorted(state["read"]) for item in state["read"][key]):
        key = _finding_key(finding)
        if key not in best or finding.relevance > best[key].relevance:
            best[key] = finding
    ids = {_finding_key(finding): finding.id for finding in load_findings(state)}
    findings = []
    for finding in sorted(best.values(), key=lambda finding: (-finding.relevance, finding.id)):
        id = ids.setdefault(_finding_key(finding), f"E{len(ids) + 1}")
        findings.append(finding.model_copy(update={"id": id}))
    # How complete the data are at a source that can tell, unless no such source knows one of the subjects.
    judges = [source for source in context.sources if isinstance(source, ConfidenceSource)]
    opinions = [[judge.confidence(subject) for judge in judges] for subject in understanding.subjects]
    known_opinions = [[opinion for opinion in found if opinion is not None] for found in opinions]
    complete = max(map(max, known_opinions)) if findings and known_opinions and all(known_opinions) else None
    coverage = await _answer_coverage(plan, findings, understanding, complete, context)
    overall = sum(coverage.values()) / len(coverage) if coverage else 0.0
    if complete is not None and understanding.query_class == "overview":
        overall = complete
    # Without money left, the run goes on to verify what it has; what another round could have helped is named.
    notices = state["notices"]
    weak = [question for question in plan.questions if coverage[question.id] < ANSWERED]
    conclusion: State = {}
    reviewed = "searched for what a review had found missing" if state["iteration"] else None
    if last_round := reviewed or limit_reason(state["round"], context.settings, len(state["failures"])):
        conclusion = conclude_rounds(plan, coverage, load_analysis(state), last_round)
    elif weak and await context.account.is_exhausted():
        notices = await add_budget_notice(state, weak, "consolidate", context)
    # Documents keep their number of an earlier round; those without a finding come last, since they may still bear
    # witness to another's statement.
    sources: list[NumberedSource] = list(load_sources(state))
    numbered = {source["document"] for source in sources}
    selected = [place["document"] for places in load_selected(state).values() for place in places]
    names = [name for name in (*(f.span.document for f in findings), *selected) if name not in numbered]
    for name, document in (await load_read_documents(state, context, names)).items():
        published = document.published.isoformat() if document.published else None
        sources.append(
            {"id": f"S{len(sources) + 1}", "document": name, "title": document.title, "published": published}
        )
    return {
        "findings": [finding.plain() for finding in findings],
        "sources": [dict(source) for source in sources],
        "coverage": coverage,
        "confidence": round(overall * 10, 1),
        "notices": notices,
        "status": Status.ANALYZING,
        "current_agent": "research",
        **conclusion,
    }


def conclude_rounds(plan: Plan, coverage: Mapping[str, float], analysis: Analysis | None, reason: str) -> State:
    """Say from what is counted how the last round ended: nobody is sent out after it, so no reasoner is asked. A gap
    that the analysis before named stays one until the count is sure of its answer."""
    unanswered = tuple(question.text for question in plan.questions if coverage[question.id] < ANSWERED)
    named = [gap.question for gap in analysis.gaps] if analysis else []
    told = " ".join(f"{text} does not have enough evidence." for text in unanswered)
    update: State = {"validation_result": "sufficient", "validation_feedback": ""}
    if unanswered or any(coverage[question] < SURE[plan.depth] for question in named):
        feedback = (analysis.feedback if analysis else "") or told
        update = {"validation_result": "insufficient", "validation_feedback": feedback}
    if analysis:
        concluded = analysis.model_copy(update={"unanswered": unanswered, "refinements": {}, "stop_reason": reason})
        update["analysis"] = concluded.plain()
    return update


async def _answer_coverage(
    plan: Plan,
    findings: Sequence[Finding],
    understanding: Understanding,
    complete: float | None,
    context: ResearchContext,
) -> dict[str, float]:
    """Compute for each sub-question how sure it is answered. For an overview, a source that can tell how complete its
    data are has the last word; for a fact it says nothing, but without other sources there can be no second witness."""
    chosen = {
        q.id: select_findings(finding for finding in findings if finding.question == q.id) for q in plan.questions
    }
    documents = await context.load_documents(f.span.document for found in chosen.values() for f in found)
    groups = await asyncio.to_thread(group_documents, documents.values())
    rated = await asyncio.to_thread(rate_sources, documents, understanding.question)
    scores = {name: credibility.score for name, credibility in rated.items()}
    witnesses = {
        question: [
            build_finding_context(finding, documents[name], groups[name], scores[name])
            for finding in found
            if (name := finding.span.document)
        ]
        for question, found in chosen.items()
    }
    today = context.started.date()
    coverage = await asyncio.to_thread(
        lambda: {q.id: answer_confidence(q, witnesses[q.id], today) for q in plan.questions}
    )
    for question in plan.questions:
        if complete is None or not witnesses[question.id]:
            continue
        if understanding.query_class == "overview":
            coverage[question.id] = complete
        elif all(isinstance(source, ConfidenceSource) for source in context.sources):
            best = max(answer_scores(question, witnesses[question.id], today))
            coverage[question.id] = max(coverage[question.id], round(best, 4))
    return coverage


def _finding_key(finding: Finding) -> FindingKey:
    return finding.question, finding.span.document, finding.span.start


async def analyse(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, plan, previous = runtime.context, load_plan(state), load_analysis(state)
    evidence = load_evidence(state)
    analysis = await context.reasoner.analyse(
        AnalysisRequest(
            plan=plan,
            evidence=evidence,
            leads=await find_leads(evidence, context),
            coverage=state["coverage"],
            previous=previous,
            asked=tuple(line.partition(" ")[2] for line in list_queries(state)),
        )
    )
    reason = stop_reason(analysis, previous, plan.depth, pointed=plan.asks_one_thing, broad=plan.asks_for_themes)
    analysis = analysis.model_copy(update={"stop_reason": reason})
    text, gaps = reason or analysis.feedback, len(analysis.gaps)
    await context.emit("notice", "analyse", text=text, confidence=analysis.confidence, gaps=gaps)
    return {
        "analysis": analysis.plain(),
        "validation_result": "insufficient" if gaps else "sufficient",
        "validation_feedback": analysis.feedback,
        "current_agent": "validator",
    }


async def find_leads(evidence: Sequence[Evidence], context: ResearchContext) -> tuple[str, ...] | None:
    """Find the names a later round may search for though neither the question nor the plan has them; None: any.

    Where only own documents are searched, nothing leaves the machine. On the web it is names that quotes from pages of
    two hosts have: no page alone, and none of the person's own, can have something searched for."""
    if all(getattr(source, "is_private", False) for source in context.sources):
        return None
    documents = await context.load_documents(item.finding.span.document for item in evidence)
    hosts: dict[str, set[str]] = {}
    for quote, document in ((item.finding.span.quote, documents[item.finding.span.document]) for item in evidence):
        for name in find_names(quote) if document.kind != "document" and not find_instructions(quote) else ():
            hosts.setdefault(name, set()).add(document.host)
    return tuple(name for name, found in hosts.items() if len(found) > 1)


def load_evidence(state: State) -> tuple[Evidence, ...]:
    """Return the findings with the titles and dates of their documents."""
    sources = {source["document"]: source for source in load_sources(state)}
    return tuple(
        Evidence(finding=finding, title=source["title"], published=source["published"])
        for finding in load_findings(state)
        if (source := sources[finding.span.document])
    )


def stop_reason(
    analysis: Analysis, previous: Analysis | None, depth: Depth, *, pointed: bool = False, broad: bool = False
) -> str | None:
    """Say why research ends here, or return None when another round is worth it. A `pointed` question asks for one
    thing, and once that is found and nobody says otherwise it is answered; of a `broad` one there is no end."""
    if not analysis.gaps:
        return "every sub-question has evidence"
    # Of a quick question the route has looked at the confidence before, and it is tried again even when nothing new
    # came (C-04); deeper ones stop (S-08).
    if depth is not Depth.QUICK:
        if pointed and analysis.confidence >= ANSWERED and not analysis.disagreements:
            return "what was asked for is found"
        if broad and analysis.confidence >= ANSWERED and not analysis.unanswered:
            return "there is enough for a report on the matter"
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
