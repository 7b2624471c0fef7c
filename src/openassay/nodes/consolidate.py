"""Bringing the rounds together: sources S1, S2, ... and evidence E1, E2, ..., each once, and how far they reach."""

import asyncio
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.models.event import Status
from openassay.models.evidence import ANSWERED, Document, Finding
from openassay.models.plan import Plan, Understanding
from openassay.nodes.analyse import limit_reason
from openassay.nodes.dispatch import add_budget_notice
from openassay.protocols import ConfidenceSource, Source
from openassay.state import Plain, State
from openassay.verification.sources import assess_credibility, group_documents
from openassay.verification.verdict import (
    FindingContext,
    answer_confidence,
    answer_scores,
    build_finding_context,
    select_findings,
)

FindingKey = tuple[str, str, int]


async def consolidate(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    known = {_finding_key(finding): finding.id for finding in map(Finding.model_validate, state["findings"])}
    found = [Finding.model_validate(item) for key in sorted(state["read"]) for item in state["read"][key]]
    findings = _merge_findings(found, known)
    sources = await _number_sources(findings, state, deps)
    understanding = Understanding.model_validate(state["understanding"])
    complete = _assess_completeness(understanding, deps.sources) if findings else None
    coverage = await _answer_coverage(plan, findings, understanding, complete, deps)
    overall = sum(coverage.values()) / len(coverage) if coverage else 0.0
    if complete is not None and understanding.query_class == "overview":
        overall = complete
    return {
        "findings": [finding.plain() for finding in findings],
        "sources": sources,
        "coverage": coverage,
        "confidence": round(overall * 10, 1),
        "notices": await _budget_notices(plan, coverage, state, deps),
        "status": Status.ANALYZING,
        "current_agent": "research",
    }


async def _budget_notices(
    plan: Plan, coverage: Mapping[str, float], state: State, deps: ResearchContext
) -> dict[str, str]:
    """With its money gone a run goes on to verify what it has; what another round could have helped is named."""
    weak = [question for question in plan.questions if coverage[question.id] < ANSWERED]
    last = limit_reason(state["round"], deps.settings, len(state["failures"]))
    if last or not weak or not await deps.account.is_exhausted():
        return state["notices"]
    return await add_budget_notice(state, weak, "consolidate", deps)


async def _answer_coverage(
    plan: Plan, findings: Sequence[Finding], understanding: Understanding, complete: float | None, deps: ResearchContext
) -> dict[str, float]:
    """By sub-question, how sure it is answered. Of an overview, who can tell how complete the data are has the last
    word; of a fact it says nothing, but where nobody else was asked there can be no second witness."""
    chosen = {
        q.id: select_findings(finding for finding in findings if finding.question == q.id) for q in plan.questions
    }
    witnesses = await _gather_contexts(chosen, deps)
    today = deps.started.date()
    coverage = await asyncio.to_thread(
        lambda: {q.id: answer_confidence(q, witnesses[q.id], today) for q in plan.questions}
    )
    if complete is None:
        return coverage
    for question in plan.questions:
        if not witnesses[question.id]:
            continue
        if understanding.query_class == "overview":
            coverage[question.id] = complete
        elif all(isinstance(source, ConfidenceSource) for source in deps.sources):
            told = max(answer_scores(question, witnesses[question.id], today))
            coverage[question.id] = max(coverage[question.id], round(told, 4))
    return coverage


async def _gather_contexts(
    chosen: Mapping[str, Sequence[Finding]], deps: ResearchContext
) -> dict[str, list[FindingContext]]:
    names = dict.fromkeys(finding.span.document for found in chosen.values() for finding in found)
    documents = {name: await deps.documents.get(name) for name in names}
    together = await asyncio.to_thread(group_documents, documents.values())
    scores = {name: assess_credibility(document).score for name, document in documents.items()}

    def known(finding: Finding) -> FindingContext:
        document: Document = documents[finding.span.document]
        return build_finding_context(finding, document, together[document.hash], scores[document.hash])

    return {question: [known(finding) for finding in found] for question, found in chosen.items()}


def _assess_completeness(understanding: Understanding, sources: Sequence[Source]) -> float | None:
    """How complete the data on the subjects are at a source that can tell; one subject that no such source knows
    leaves it to the coverage."""
    judges = [source for source in sources if isinstance(source, ConfidenceSource)]
    known = []
    for subject in understanding.subjects:
        opinions = [opinion for judge in judges if (opinion := judge.confidence(subject)) is not None]
        if not opinions:
            return None
        known.append(max(opinions))
    return max(known, default=None)


def _merge_findings(findings: Sequence[Finding], known: Mapping[FindingKey, str]) -> list[Finding]:
    """One finding per span and sub-question, named E1, E2, ... from the most relevant on; one of an earlier round
    keeps its name."""
    best: dict[FindingKey, Finding] = {}
    for finding in findings:
        key = _finding_key(finding)
        if key not in best or finding.relevance > best[key].relevance:
            best[key] = finding
    ordered = sorted(best.values(), key=lambda finding: (-finding.relevance, finding.id))
    fresh = (finding for finding in ordered if _finding_key(finding) not in known)
    names = {**known, **{_finding_key(finding): f"E{n}" for n, finding in enumerate(fresh, len(known) + 1)}}
    return [finding.model_copy(update={"id": names[_finding_key(finding)]}) for finding in ordered]


def _finding_key(finding: Finding) -> FindingKey:
    return finding.question, finding.span.document, finding.span.start


async def _number_sources(findings: Sequence[Finding], state: State, deps: ResearchContext) -> list[Plain]:
    """Documents keep the number they were given in an earlier round; those without a finding come last, since
    they may still bear witness to another's statement."""
    sources = list(state["sources"])
    numbered = {source["document"] for source in sources}
    chosen = [place["document"] for passages in state["selected"].values() for place in passages]
    for name in (*(finding.span.document for finding in findings), *chosen):
        if name not in numbered:
            numbered.add(name)
            document = await deps.documents.get(name)
            date = document.published.isoformat() if document.published else None
            number = f"S{len(sources) + 1}"
            sources.append({"id": number, "document": name, "title": document.title, "published": date})
    return sources
