"""Turning the state into the report that leaves the graph."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.metadata import version

from assay.deps import Deps
from assay.model.claim import Claim, Mark, Verdict
from assay.model.evidence import Disagreement, Span
from assay.model.plan import Plan, QueryType, SearchQuery
from assay.model.report import (
    Coverage,
    Critique,
    Issue,
    Level,
    Metadata,
    Provenance,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    SourceCard,
)
from assay.model.source import Document
from assay.model.spend import Spend
from assay.reasoning.protocol import Draft, DraftSentence
from assay.stages.answers import told
from assay.stages.considered import considered
from assay.stages.dispatch import asked, served
from assay.stages.disputes import disputes, not_found
from assay.stages.key_figures import key_figures
from assay.stages.unchecked import unchecked_tamed
from assay.stages.unread import unused
from assay.state import Plain, State
from assay.trust.credibility import assess
from assay.trust.independence import groups

SURENESS = [Mark.SINGLE, Mark.VERIFIED, Mark.CORROBORATED]
MOST_CITED = 4  # citations behind one sentence; the claim keeps all its spans


async def compose(state: State, deps: Deps, sections: Sequence[Section], status: ReportStatus) -> ReportData:
    """`sections` are already checked; everything else is gathered from the state."""
    claims = [Claim.model_validate(item) for item in state["claims"]]
    types = served(deps.sources)
    plan = _carried_out(Plan.model_validate(state["plan"]), state, types) if state["plan"] else None
    cards = await _cards(state, claims, deps)
    ids = {card.document: card.id for card in cards}
    score = float((state["critique"] or {}).get("score", 0.0))
    coverage = covered(claims, state["statements"])
    by_id = {claim.id: claim for claim in claims}
    matters = [Disagreement.model_validate(item) for item in state["disagreements"]]
    draft = Draft.model_validate(state["draft"]) if state["draft"] else None
    spend, steps = await deps.account.spent(), await deps.tally()
    notices = (
        *state["notices"].values(),
        *considered(state, plan, deps),
        *unused(state),
        *_degraded(steps),
        *_unconfirmed(spend),
    )
    report = ReportData(
        question=(state["understanding"] or {}).get("question") or state["original_query"],
        title=title(state),
        status=status,
        confidence=level(score, status),
        confidence_score=round(state["confidence"] / 10, 2),
        plan=plan,
        answers=told(draft.answers, by_id, ids, matters) if draft else (),
        sections=tuple(sections),
        figures=key_figures(draft, by_id, ids) if draft else (),
        disputes=disputes(state, by_id, cards),
        not_found=not_found(state),
        claims=tuple(_claim(claim, ids) for claim in claims),
        sources=tuple(cards),
        coverage=coverage,
        hallucination_score=round(1 - coverage.checked / coverage.total, 4) if coverage.total else 0.0,
        review=Critique.model_validate(state["critique"]) if state["critique"] else None,
        issues=tuple(Issue.model_validate(issue) for issue in state["issues"]),
        notices=notices if status is not ReportStatus.CANCELLED else (),
        spend=spend,
        metadata=_metadata(state, deps, sections, cards, score).model_copy(update={"reasoning": steps}),
        provenance=_provenance(state, deps, plan, await deps.checkpoints()),
    )
    return unchecked_tamed(report)


def _degraded(steps: Mapping[str, int]) -> list[str]:
    """Said where the embedded reasoner stood in for a model."""
    stood_in, total = steps.get("embedded", 0), sum(steps.values())
    if not stood_in:
        return []
    return [
        f"{stood_in} of {total} reasoning steps were done by the embedded reasoner because the model failed, refused "
        "or the budget was spent; the run log says which and why."
    ]


def _unconfirmed(spend: Spend) -> list[str]:
    if not spend.unconfirmed_usd:
        return []
    return [f"${spend.unconfirmed_usd:.4f} of the spend could not be confirmed and is booked at its worst case."]


def _carried_out(plan: Plan, state: State, types: Collection[QueryType]) -> Plan:
    """The plan with what became of its queries: of a search that was lost as a whole, none was answered, and of a
    type without a source none was asked, though its words may have been asked elsewhere."""
    lost = [key.partition(":")[2] for key in state["failures"] if key.startswith("search ")]
    became: dict[tuple[str, str | None], str] = {(question, None): "failed" for question in lost}
    for result in state["searched"].values():
        became |= {(result["question"], query["text"]): query["status"] for query in result["queries"]}

    def status(query: SearchQuery) -> str:
        if query.type not in types:
            return "pending"
        return became.get((query.question, query.text), became.get((query.question, None), "pending"))

    queries = tuple(query.model_copy(update={"status": status(query)}) for query in plan.queries)
    return plan.model_copy(update={"queries": queries, "warnings": (*plan.warnings, *_unserved(plan, types))})


def _unserved(plan: Plan, types: Collection[QueryType]) -> list[str]:
    missing = dict.fromkeys(query.type for query in plan.queries if query.type not in types)
    return [f"No {' or '.join(missing)} source is configured: these queries were not asked."] if missing else []


def covered(claims: Sequence[Claim], retold: dict[str, int]) -> Coverage:
    """Every statement drafted counts: each claim, and each sentence that says it in other words."""
    supported = sum(claim.verdict is Verdict.SUPPORTED for claim in claims)
    drafted, failed = retold.get("retold", 0), retold.get("failed", 0)
    return Coverage(checked=supported + drafted - failed, total=len(claims) + drafted)


def title(state: State) -> str:
    question = (state["understanding"] or {}).get("question") or state["original_query"]
    named = state["edits"].get("title") or (state["draft"] or {}).get("title")  # a person's own words come first
    return str(named or question).strip() or "No question"


def level(score: float, status: ReportStatus) -> Level:
    if status is not ReportStatus.COMPLETE:
        return "low"
    return "high" if score >= 8.0 else "medium"


def published(draft: Draft, claims: Iterable[Claim], sources: Sequence[dict[str, str]]) -> tuple[Section, ...]:
    """The draft with citations and marks on every statement of fact."""
    by_id = {claim.id: claim for claim in claims}
    ids = {source["document"]: source["id"] for source in sources}
    return tuple(
        Section(title=section.title, role=section.role,
                sentences=tuple(_sentence(s, [by_id[name] for name in s.claims], ids) for s in section.sentences))
        for section in draft.sections
    )  # fmt: skip


def _sentence(drafted: DraftSentence, bound: Sequence[Claim], ids: dict[str, str]) -> Sentence:
    if not bound:
        return Sentence(text=drafted.text, kind="frame", opens=drafted.opens)
    cited = dict.fromkeys(ids[span.document] for claim in bound for span in claim.spans)
    marks = [claim.mark for claim in bound if claim.mark]
    return Sentence(
        text=drafted.text,
        kind="fact",
        opens=drafted.opens,
        claims=tuple(claim.id for claim in bound),
        citations=tuple(list(cited)[:MOST_CITED]),
        mark=min(marks, key=SURENESS.index) if marks else Mark.SINGLE,
    )


def _claim(claim: Claim, ids: dict[str, str]) -> ReportClaim:
    return ReportClaim(
        id=claim.id, text=claim.text, verdict=claim.verdict, confidence=claim.confidence, mark=claim.mark,
        spans=_spans(claim.spans, ids), against=_spans(claim.against, ids), reasons=claim.reasons,
        questions=claim.questions, disputed_by=claim.disputed_by, superseded_by=claim.superseded_by,
    )  # fmt: skip


def _spans(spans: Iterable[Span], ids: dict[str, str]) -> tuple[ReportSpan, ...]:
    return tuple(
        ReportSpan(source=ids[s.document], document=s.document, start=s.start, end=s.end, quote=s.quote) for s in spans
    )


async def _cards(state: State, claims: Sequence[Claim], deps: Deps) -> list[SourceCard]:
    """Sources that a claim rests on, under the numbers they were given when they were found."""
    used = {span.document for claim in claims for span in (*claim.spans, *claim.against)}
    chosen = [source for source in state["sources"] if source["document"] in used]
    documents = {source["document"]: await deps.documents.get(source["document"]) for source in state["sources"]}
    together = await asyncio.to_thread(groups, documents.values())  # of all, as the marks were given
    cards = [
        _card(source["id"], documents[source["document"]], together, claims, state["credibility"]) for source in chosen
    ]
    return [
        card.model_copy(update={"same_as": tuple(o.id for o in cards if o.group == card.group and o.id != card.id)})
        for card in cards
    ]


def _card(
    id: str, document: Document, together: dict[str, str], claims: Sequence[Claim], opinions: Mapping[str, Plain]
) -> SourceCard:
    credibility = assess(document)
    if opinion := opinions.get(document.hash):
        credibility = credibility.lowered(opinion["score"], opinion["reason"])
    behind = [claim.id for claim in claims if any(span.document == document.hash for span in claim.spans)]
    return SourceCard(
        id=id, title=document.title, url=document.url, document=document.hash, group=together[document.hash],
        why_used=f"supports {len(behind)} statement{'s' * (len(behind) != 1)}: {', '.join(behind[:8])}",
        host=document.host, kind=document.kind, author=document.author,
        published=document.published.isoformat() if document.published else None,
        primary=credibility.primary, credibility=credibility.score, credibility_reasons=credibility.reasons,
    )  # fmt: skip


def _metadata(
    state: State, deps: Deps, sections: Sequence[Section], cards: Sequence[SourceCard], score: float
) -> Metadata:
    finished = deps.now()
    return Metadata(
        iterations=state["iteration"], rounds=state["round"], score=score, sources=len(cards),
        words=sum(len(sentence.text.split()) for section in sections for sentence in section.sentences),
        started=deps.started.isoformat(timespec="seconds"), finished=finished.isoformat(timespec="seconds"),
        seconds=round((finished - deps.started).total_seconds(), 2),
        settings=deps.settings.fingerprint(), version=version("assay"),
    )  # fmt: skip


def _provenance(state: State, deps: Deps, plan: Plan | None, checkpoints: tuple[str, ...]) -> Provenance:
    return Provenance(
        question=state["original_query"],
        sub_questions=tuple(question.text for question in plan.questions) if plan else (),
        queries=tuple(dict.fromkeys(line.partition(" ")[2] for line in asked(state))),
        checkpoints=checkpoints,
        thread=deps.thread,
        run=deps.run,
    )
