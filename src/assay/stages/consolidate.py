"""Bringing the rounds together: sources S1, S2, ... and evidence E1, E2, ..., each once, and how far they reach."""

import asyncio
from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.evidence import ANSWERED, Finding
from assay.model.plan import Plan
from assay.model.question import Understanding
from assay.model.source import Document
from assay.ports import Assessed, Source
from assay.stages.analyse import foregone
from assay.stages.dispatch import out_of_money
from assay.state import Plain, State
from assay.trust.coverage import Witness, confidence_of, weighed, witness, worths
from assay.trust.credibility import assess
from assay.trust.independence import groups

Place = tuple[str, str, int]


async def consolidate(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    known = {_place(finding): finding.id for finding in map(Finding.model_validate, state["findings"])}
    found = [Finding.model_validate(item) for key in sorted(state["read"]) for item in state["read"][key]]
    findings = _distinct(found, known)
    sources = await _sources(findings, state, deps)
    understanding = Understanding.model_validate(state["understanding"])
    complete = _assessed(understanding, deps.sources) if findings else None
    coverage = await _coverage(plan, findings, understanding, complete, deps)
    overall = sum(coverage.values()) / len(coverage) if coverage else 0.0
    if complete is not None and understanding.query_class == "overview":
        overall = complete
    return {
        "findings": [finding.plain() for finding in findings],
        "sources": sources,
        "coverage": coverage,
        "confidence": round(overall * 10, 1),
        "notices": await _notices(plan, coverage, state, deps),
        "status": Status.ANALYZING,
        "current_agent": "research",
    }


async def _notices(plan: Plan, coverage: Mapping[str, float], state: State, deps: Deps) -> dict[str, str]:
    """With its money gone a run goes on to verify what it has; what another round could have helped is named."""
    weak = [question for question in plan.questions if coverage[question.id] < ANSWERED]
    last = foregone(state["round"], deps.settings, len(state["failures"]))
    if last or not weak or not await deps.account.exhausted():
        return state["notices"]
    return await out_of_money(state, weak, "consolidate", deps)


async def _coverage(
    plan: Plan, findings: Sequence[Finding], understanding: Understanding, complete: float | None, deps: Deps
) -> dict[str, float]:
    """By sub-question, how sure it is answered. Of an overview, who can tell how complete the data are has the last
    word; of a fact it says nothing, but where nobody else was asked there can be no second witness."""
    chosen = {q.id: weighed(finding for finding in findings if finding.question == q.id) for q in plan.questions}
    witnesses = await _witnesses(chosen, deps)
    today = deps.started.date()
    coverage = await asyncio.to_thread(lambda: {q.id: confidence_of(q, witnesses[q.id], today) for q in plan.questions})
    if complete is None:
        return coverage
    for question in plan.questions:
        if not witnesses[question.id]:
            continue
        if understanding.query_class == "overview":
            coverage[question.id] = complete
        elif all(isinstance(source, Assessed) for source in deps.sources):
            told = max(worths(question, witnesses[question.id], today))
            coverage[question.id] = max(coverage[question.id], round(told, 4))
    return coverage


async def _witnesses(chosen: Mapping[str, Sequence[Finding]], deps: Deps) -> dict[str, list[Witness]]:
    names = dict.fromkeys(finding.span.document for found in chosen.values() for finding in found)
    documents = {name: await deps.documents.get(name) for name in names}
    together = await asyncio.to_thread(groups, documents.values())
    scores = {name: assess(document).score for name, document in documents.items()}

    def known(finding: Finding) -> Witness:
        document: Document = documents[finding.span.document]
        return witness(finding, document, together[document.hash], scores[document.hash])

    return {question: [known(finding) for finding in found] for question, found in chosen.items()}


def _assessed(understanding: Understanding, sources: Sequence[Source]) -> float | None:
    """How complete the data on the subjects are at a source that can tell; one subject that no such source knows
    leaves it to the coverage."""
    judges = [source for source in sources if isinstance(source, Assessed)]
    known = []
    for subject in understanding.subjects:
        opinions = [opinion for judge in judges if (opinion := judge.confidence(subject)) is not None]
        if not opinions:
            return None
        known.append(max(opinions))
    return max(known, default=None)


def _distinct(findings: Sequence[Finding], known: Mapping[Place, str]) -> list[Finding]:
    """One finding per span and sub-question, named E1, E2, ... from the most relevant on; one of an earlier round
    keeps its name."""
    best: dict[Place, Finding] = {}
    for finding in findings:
        key = _place(finding)
        if key not in best or finding.relevance > best[key].relevance:
            best[key] = finding
    ordered = sorted(best.values(), key=lambda finding: (-finding.relevance, finding.id))
    fresh = (finding for finding in ordered if _place(finding) not in known)
    names = {**known, **{_place(finding): f"E{n}" for n, finding in enumerate(fresh, len(known) + 1)}}
    return [finding.model_copy(update={"id": names[_place(finding)]}) for finding in ordered]


def _place(finding: Finding) -> Place:
    return finding.question, finding.span.document, finding.span.start


async def _sources(findings: Sequence[Finding], state: State, deps: Deps) -> list[Plain]:
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
