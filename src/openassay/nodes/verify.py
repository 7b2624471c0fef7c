"""Every claim against the passages it came from, before anything may be written."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import ReasoningError
from openassay.models.evidence import Claim, Disagreement, Document, Judgement, Mark, Passage, QuoteSpan, Verdict
from openassay.models.plan import Plan
from openassay.nodes.analyse import load_evidence
from openassay.protocols import SupportScorer
from openassay.reasoning.base import (
    Conflict,
    DisputeContext,
    DocumentOrigin,
    DraftClaim,
    Evidence,
    JudgementBatch,
    SourceRating,
)
from openassay.state import Plain, State
from openassay.text.sentences import split_sentences
from openassay.text.words import stems, words
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.figures import StatementCheck, check_statement
from openassay.verification.quotes import is_verbatim_span as stands
from openassay.verification.sources import Credibility, assess_credibility, group_documents
from openassay.verification.verdict import OPPOSED, SpanEvidence, decide_verdict

MOST_SPANS = 6  # candidates per claim; a seventh witness would change nothing
LEAD = 4000  # characters at the beginning of a document in which it names its subject


class ClaimWording(NamedTuple):
    """One wording of a drafted claim, with the spans it may rest on."""

    id: str
    draft: DraftClaim
    text: str
    spans: list[QuoteSpan]
    sought: int = 0  # of the spans, the first ones, found elsewhere: those it was drawn from do not say it


async def verify(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    places = [place for passages in state["selected"].values() for place in passages]
    documents = await _load_documents([source["document"] for source in state["sources"]], deps)
    # Sentences and spans of all documents are gone through: work for a thread, not for the event loop.
    witnesses = await asyncio.to_thread(_build_corroboration, places, documents)
    found = await asyncio.to_thread(add_corroboration, load_evidence(state), witnesses, documents)
    claimed = await deps.reasoner.extract_claims(plan, found)
    variants = await asyncio.to_thread(_build_wordings, claimed.claims, found, documents, witnesses)
    judged = await judge_statements(
        [(variant.text, [span.quote]) for variant in variants for span in variant.spans], deps
    )
    known = {name: assess_credibility(document) for name, document in documents.items()}
    credibility = lower_credibility(known, claimed.credibility)
    decided = await asyncio.to_thread(decide_claims, variants, judged.judgements, documents, credibility, deps.support)
    worded = select_wordings(decided)
    verdicts = _merge_claims(worded)
    conflicts = _map_conflicts(judged, variants, [claim for claim in worded if claim.verdict == "supported"])
    supported = [claim for claim in verdicts if claim.verdict == "supported"]
    origins = await asyncio.to_thread(_build_origins, documents, known)
    disagreements = await deps.reasoner.find_disagreements(
        supported, conflicts, DisputeContext(question=plan.goal, origins=origins)
    )
    verdicts = [add_disputes(claim, disagreements) for claim in verdicts]
    counts = {
        verdict: sum(claim.verdict == verdict for claim in verdicts)
        for verdict in ("supported", "partly", "contradicted", "not_found")
    }
    await deps.emit("leave", "verify", claims=len(verdicts), **counts)
    return {
        "claims": [claim.plain() for claim in verdicts],
        "credibility": {name: claimed.credibility[name].plain() for name in known if credibility[name] != known[name]},
        "disagreements": [item.plain() for item in disagreements],
        "current_agent": "verify",
    }


def _build_corroboration(places: Sequence[Plain], documents: dict[str, Document]) -> CorroborationIndex:
    titles = {name: document.title for name, document in documents.items()}
    return CorroborationIndex(_load_passages(places, documents), titles)


def _build_wordings(
    drafts: Sequence[DraftClaim],
    found: Sequence[Evidence],
    documents: dict[str, Document],
    witnesses: CorroborationIndex,
) -> list[ClaimWording]:
    spans = {item.finding.id: item.finding.span for item in found}
    variants = []
    for number, draft in enumerate(drafts, 1):
        named = _candidate_spans(draft, spans, documents)
        for wording in draft.wordings:
            settled = any(_can_support(wording, span, documents) or _opposes(wording, span) for span in named)
            sought = () if settled else witnesses.find_candidates(wording)
            others = witnesses.find_equivalents(wording, but={span.document for span in named})
            chosen = _distinct_spans([*sought, *named, *others])[:MOST_SPANS]
            variants.append(ClaimWording(f"C{number}", draft, wording, chosen, len(sought)))
    return variants


def _can_support(text: str, span: QuoteSpan, documents: dict[str, Document]) -> bool:
    """Whether a statement may be from a passage: figures and names agree, and half of its words are there."""
    wanted, offered = set(stems(text)), set(stems(span.quote))
    agrees = check_statement(text, [span.quote], known=documents[span.document].title.split()).agrees
    return agrees and 2 * len(wanted & offered) >= len(wanted)


def _opposes(text: str, span: QuoteSpan) -> bool:
    """Whether the passage says the contrary: then no other is looked for that might be read as saying it."""
    return any(problem.kind in OPPOSED for problem in check_statement(text, [span.quote]).problems)


async def _load_documents(names: Iterable[str], deps: ResearchContext) -> dict[str, Document]:
    return {name: await deps.documents.get(name) for name in dict.fromkeys(names)}


def _load_passages(places: Sequence[Plain], documents: dict[str, Document]) -> list[Passage]:
    distinct = {(place["document"], place["start"]): place for place in places}.values()
    return [
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]]) for place in distinct
    ]


def add_corroboration(
    found: Sequence[Evidence], witnesses: CorroborationIndex, documents: dict[str, Document]
) -> tuple[Evidence, ...]:
    """The findings, and W1, W2, ... for sentences elsewhere that state the same figure."""
    known = {(item.finding.span.document, item.finding.span.start) for item in found}
    added: list[Evidence] = []
    for item in found:
        for span in witnesses.find_corroboration(item.finding.span):
            if (span.document, span.start) in known:
                continue
            known.add((span.document, span.start))
            finding = item.finding.model_copy(update={"id": f"W{len(added) + 1}", "span": span})
            document = documents[span.document]
            date = document.published.isoformat() if document.published else None
            added.append(Evidence(finding=finding, title=document.title, published=date))
    return (*found, *added)


def _candidate_spans(draft: DraftClaim, spans: dict[str, QuoteSpan], documents: dict[str, Document]) -> list[QuoteSpan]:
    """Spans that truly stand in their snapshot; anything else is not evidence."""
    chosen = [spans[name] for name in draft.findings if name in spans]
    standing = [span for span in chosen if stands(span, documents[span.document].text)]
    return _distinct_spans(standing)[:MOST_SPANS]


def _distinct_spans(spans: Iterable[QuoteSpan]) -> list[QuoteSpan]:
    return list({(span.document, span.start): span for span in spans}.values())


async def judge_statements(statements: Sequence[tuple[str, Sequence[str]]], deps: ResearchContext) -> JudgementBatch:
    """All statements with their quotes in one call, or in none where there are none."""
    judged = await deps.reasoner.judge(statements) if statements else JudgementBatch(judgements=())
    if len(judged.judgements) != len(statements):
        raise ReasoningError(f"{len(judged.judgements)} judgements were given on {len(statements)} statements")
    return judged


def _build_origins(documents: Mapping[str, Document], known: Mapping[str, Credibility]) -> dict[str, DocumentOrigin]:
    together = group_documents(documents.values())
    return {
        name: DocumentOrigin(text=document.text, rank=known[name].rank, host=document.host, group=together[name],
                     published=document.published.isoformat() if document.published else None)
        for name, document in documents.items()
    }  # fmt: skip


def lower_credibility(known: Mapping[str, Credibility], opinions: Mapping[str, SourceRating]) -> dict[str, Credibility]:
    """What is known of each source's origin, less what the reasoner holds against it."""
    return {
        name: credibility.with_lower_score(opinions[name].score, opinions[name].reason)
        if name in opinions
        else credibility
        for name, credibility in known.items()
    }


def _map_conflicts(judged: JudgementBatch, variants: Sequence[ClaimWording], claims: Sequence[Claim]) -> list[Conflict]:
    """Claims that cannot both hold, whichever of their wordings were judged, in the words that were kept."""
    kept = {claim.id: claim.text for claim in claims}
    texts = {variant.text: kept[variant.id] for variant in variants if variant.id in kept}
    return [
        Conflict(first=texts[conflict.first], second=texts[conflict.second], about=conflict.about)
        for conflict in judged.conflicts
        if conflict.first in texts and conflict.second in texts
    ]


def decide_claims(
    variants: Sequence[ClaimWording],
    judgements: Sequence[Judgement],
    documents: dict[str, Document],
    credibility: Mapping[str, Credibility],
    support: SupportScorer,
) -> list[Claim]:
    together = group_documents(documents.values())
    each = zip(judgements, support.scores([(v.text, span.quote) for v in variants for span in v.spans]), strict=True)
    verdicts = []
    for variant in variants:
        draft = variant.draft
        claim = Claim(id=variant.id, text=variant.text, questions=draft.questions, relevance=draft.relevance)
        checks = [_check_span(variant.text, span, documents[span.document]) for span in variant.spans]
        weighed = [
            SpanEvidence(span=span, figures=figures, judgement=judgement, support=score)
            for span, (figures, _), (judgement, score) in zip(variant.spans, checks, each, strict=False)
        ]
        decided = decide_verdict(claim, weighed, together, credibility)
        naming = [
            named for span, (_, named) in zip(variant.spans, checks, strict=True) if named and span in decided.spans
        ]
        verdicts.append(_add_naming_spans(decided, variant, naming))
    return verdicts


def _add_naming_spans(claim: Claim, variant: ClaimWording, naming: Sequence[QuoteSpan]) -> Claim:
    """With the sentences that name what a statement is about; and said of one that rests on passages it was not drawn
    from."""
    claim = claim.model_copy(update={"spans": tuple(_distinct_spans([*claim.spans, *naming]))})
    elsewhere = {(span.document, span.start) for span in variant.spans[: variant.sought]}
    own = [span for span in claim.spans if (span.document, span.start) not in elsewhere]
    if claim.verdict is not Verdict.SUPPORTED or own or not variant.draft.findings:
        return claim
    return claim.model_copy(update={"reasons": (*claim.reasons, "found in another passage than the one it named")})


def _check_span(text: str, span: QuoteSpan, document: Document) -> tuple[StatementCheck, QuoteSpan | None]:
    """What the passage does not bear out, and the sentence that names what a statement is about, where the passage
    leaves that to the title of its document."""
    result = check_statement(text, [span.quote])
    named = set(words(document.title)) & set(words(text)) - set(words(span.quote))
    if result.agrees or not named or any(problem.kind != "name" for problem in result.problems):
        return result, None
    for piece in split_sentences(document.text, 0, min(LEAD, len(document.text))):
        if named <= set(words(piece.text)) and check_statement(text, [span.quote, piece.text]).agrees:
            naming = QuoteSpan(document=document.hash, start=piece.start, end=piece.end, quote=piece.text)
            return StatementCheck(), naming
    return check_statement(text, [span.quote], known=document.title.split()), None


def select_wordings(verdicts: Sequence[Claim]) -> list[Claim]:
    """Of each claim the wording that is borne out best; the reasoner's first choice where there is no difference."""
    best: dict[str, Claim] = {}
    for claim in verdicts:
        if claim.id not in best or _support_rank(claim) > _support_rank(best[claim.id]):
            best[claim.id] = claim
    return list(best.values())


def _support_rank(claim: Claim) -> tuple[bool, bool, bool, int]:
    """Supported, and by its spans alone, and by how many."""
    told = (
        claim.verdict is Verdict.SUPPORTED and check_statement(claim.text, [span.quote for span in claim.spans]).agrees
    )
    documents = len({span.document for span in claim.spans}) if told else 0
    return claim.verdict is Verdict.SUPPORTED, told, claim.mark is Mark.CORROBORATED, documents


def _merge_claims(verdicts: Sequence[Claim]) -> list[Claim]:
    """Claims that came to the same words are one, with the questions of all."""
    made: dict[str, Claim] = {}
    for claim in verdicts:
        known = made.get(claim.text)
        if known is None:
            made[claim.text] = claim
        else:
            better = claim.model_copy(update={"id": known.id}) if _support_rank(claim) > _support_rank(known) else known
            asked = tuple(dict.fromkeys((*known.questions, *claim.questions)))
            made[claim.text] = better.model_copy(update={"questions": asked})
    return list(made.values())


def add_disputes(claim: Claim, disagreements: Sequence[Disagreement]) -> Claim:
    """Who disputes a claim, and what has superseded it."""
    disputed: list[str] = []
    superseded = None
    for matter in disagreements:
        first, second = matter.sides
        if matter.resolved:
            superseded = first[0] if claim.id in second else superseded
        elif claim.id in first:
            disputed += second
        elif claim.id in second:
            disputed += first
    return claim.model_copy(update={"disputed_by": tuple(dict.fromkeys(disputed)), "superseded_by": superseded})
