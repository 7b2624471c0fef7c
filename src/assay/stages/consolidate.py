"""Bringing the rounds together: sources S1, S2, ... and evidence E1, E2, ..., each once, and how far they reach."""

from collections.abc import Mapping, Sequence

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.evidence import ANSWERED, Finding
from assay.model.plan import Plan
from assay.model.question import Understanding
from assay.ports import Assessed, Source
from assay.stages.analyse import foregone
from assay.stages.dispatch import out_of_money
from assay.state import Plain, State
from assay.trust.coverage import confidence_of

Place = tuple[str, str, int]


async def consolidate(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    known = {_place(finding): finding.id for finding in map(Finding.model_validate, state["findings"])}
    found = [Finding.model_validate(item) for key in sorted(state["read"]) for item in state["read"][key]]
    findings = _distinct(found, known)
    sources = await _sources(findings, state, deps)
    coverage = {
        question.id: confidence_of([finding for finding in findings if finding.question == question.id])
        for question in plan.questions
    }
    overall = sum(coverage.values()) / len(coverage) if coverage else 0.0
    if findings:
        assessed = _assessed(Understanding.model_validate(state["understanding"]), deps.sources)
        overall = overall if assessed is None else assessed
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


def _assessed(understanding: Understanding, sources: Sequence[Source]) -> float | None:
    """An overview is as complete as the data its subjects have at a source that can tell; one subject that no such
    source knows leaves it to the coverage."""
    if understanding.query_class != "overview":
        return None
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
