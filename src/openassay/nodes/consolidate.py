"""Bring the rounds together: sources S1, S2, ... and evidence E1, E2, ..., each once, and how far they reach."""

import asyncio
from collections.abc import Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import ANSWERED, Finding
from openassay.models.plan import Plan, Understanding
from openassay.nodes.analyse import limit_reason
from openassay.nodes.dispatch import add_budget_notice
from openassay.nodes.read import load_documents
from openassay.protocols import ConfidenceSource
from openassay.state import (
    NumberedSource,
    State,
    load_findings,
    load_plan,
    load_selected,
    load_sources,
    load_understanding,
)
from openassay.verification.sources import assess_credibility, group_documents
from openassay.verification.verdict import answer_confidence, answer_scores, build_finding_context, select_findings

FindingKey = tuple[str, str, int]


async def consolidate(state: State, runtime: Runtime[ResearchContext]) -> State:
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
    last_round = limit_reason(state["round"], context.settings, len(state["failures"]))
    if weak and not last_round and await context.account.is_exhausted():
        notices = await add_budget_notice(state, weak, "consolidate", context)
    # Documents keep their number of an earlier round; those without a finding come last, since they may still bear
    # witness to another's statement.
    sources: list[NumberedSource] = list(load_sources(state))
    numbered = {source["document"] for source in sources}
    selected = [place["document"] for places in load_selected(state).values() for place in places]
    names = [name for name in (*(f.span.document for f in findings), *selected) if name not in numbered]
    for name, document in (await load_documents(names, context)).items():
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
    }


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
    documents = await load_documents((f.span.document for found in chosen.values() for f in found), context)
    groups = await asyncio.to_thread(group_documents, documents.values())
    scores = {name: assess_credibility(document).score for name, document in documents.items()}
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
