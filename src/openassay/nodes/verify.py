"""Verify every claim against the passages it came from, before anything may be written."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.runtime import Runtime

from openassay.context import ResearchContext
from openassay.errors import ReasoningError
from openassay.models.evidence import Claim, Disagreement, Document, Judgement, Mark, QuoteSpan, Verdict
from openassay.nodes.analyse import load_evidence
from openassay.nodes.read import load_passages
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
from openassay.state import State, load_plan, load_selected, load_sources
from openassay.text.sentences import split_sentences
from openassay.text.words import stems, words
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.quotes import is_verbatim_span
from openassay.verification.sources import Credibility, assess_credibility, group_documents
from openassay.verification.statement_check import StatementCheck, check_statement
from openassay.verification.verdict import OPPOSED, SpanEvidence, decide_verdict

MAX_SPANS = 6  # candidates per claim; a seventh witness would change nothing
OPENING_LENGTH = 4000  # characters at the beginning of a document in which it names its subject


class ClaimWording(NamedTuple):
    """One wording of a drafted claim, with the spans it may rest on."""

    id: str
    draft: DraftClaim
    text: str
    spans: list[QuoteSpan]
    sought: int = 0  # of the spans, the first ones, found elsewhere: those it was drawn from do not say it


async def verify(state: State, runtime: Runtime[ResearchContext]) -> State:
    context, plan = runtime.context, load_plan(state)
    documents = await context.load_documents(source["document"] for source in load_sources(state))
    places = {
        (place["document"], place["start"]): place for places in load_selected(state).values() for place in places
    }
    titles = {name: document.title for name, document in documents.items()}
    passages = load_passages(places.values(), documents)
    # Sentences and spans of all documents are gone through: work for a thread, not for the event loop.
    index = await asyncio.to_thread(CorroborationIndex, passages, titles)
    evidence = await asyncio.to_thread(add_corroboration, load_evidence(state), index, documents)
    extraction = await context.reasoner.extract_claims(plan, evidence)
    wordings = await asyncio.to_thread(_build_wordings, extraction.claims, evidence, documents, index)
    judged = await judge_statements(
        [(wording.text, [span.quote]) for wording in wordings for span in wording.spans], context
    )
    known = {name: assess_credibility(document) for name, document in documents.items()}
    credibility = lower_credibility(known, extraction.credibility)
    decided = select_wordings(
        await asyncio.to_thread(decide_claims, wordings, judged.judgements, documents, credibility, context.support)
    )
    claims = _merge_claims(decided)
    # Claims that cannot both hold, whichever of their wordings were judged, in the words that were kept.
    kept = {claim.id: claim.text for claim in decided if claim.verdict is Verdict.SUPPORTED}
    texts = {wording.text: kept[wording.id] for wording in wordings if wording.id in kept}
    conflicts = [
        Conflict(first=texts[conflict.first], second=texts[conflict.second], about=conflict.about)
        for conflict in judged.conflicts
        if conflict.first in texts and conflict.second in texts
    ]
    groups = await asyncio.to_thread(group_documents, documents.values())
    origins = {
        name: DocumentOrigin(
            text=document.text,
            rank=known[name].rank,
            host=document.host,
            group=groups[name],
            published=document.published.isoformat() if document.published else None,
        )
        for name, document in documents.items()
    }
    supported = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    disagreements = await context.reasoner.find_disagreements(
        supported, conflicts, DisputeContext(question=plan.goal, origins=origins)
    )
    claims = [add_disputes(claim, disagreements) for claim in claims]
    counts = {str(verdict): sum(claim.verdict is verdict for claim in claims) for verdict in Verdict}
    await context.emit("leave", "verify", claims=len(claims), **counts)
    lowered = [name for name in known if credibility[name] != known[name]]
    return {
        "claims": [claim.plain() for claim in claims],
        "credibility": {name: extraction.credibility[name].plain() for name in lowered},
        "disagreements": [item.plain() for item in disagreements],
        "current_agent": "verify",
    }


def _build_wordings(
    drafts: Sequence[DraftClaim],
    evidence: Sequence[Evidence],
    documents: Mapping[str, Document],
    index: CorroborationIndex,
) -> list[ClaimWording]:
    """Collect the spans that each wording may rest on. Only spans that truly stand in their snapshot are evidence."""
    spans = {
        item.finding.id: span
        for item in evidence
        if is_verbatim_span(span := item.finding.span, documents[span.document].text)
    }
    wordings = []
    for number, draft in enumerate(drafts, 1):
        named = _distinct_spans(spans[name] for name in draft.findings if name in spans)[:MAX_SPANS]
        for text in draft.wordings:
            # Where it may be from a passage named (figures and names agree, and half of its words are there), or one
            # says the contrary, no other passage is looked for that might be read as saying it.
            wanted, settled = set(stems(text)), False
            for span in named:
                half = 2 * len(wanted & set(stems(span.quote))) >= len(wanted)
                title = documents[span.document].title.split()
                settled = settled or (half and check_statement(text, [span.quote], known=title).agrees)
                problems = () if settled else check_statement(text, [span.quote]).problems
                settled = settled or any(problem.kind in OPPOSED for problem in problems)
            sought = [] if settled else index.find_candidates(text)
            others = index.find_equivalents(text, but={span.document for span in named})
            chosen = _distinct_spans([*sought, *named, *others])[:MAX_SPANS]
            wordings.append(ClaimWording(f"C{number}", draft, text, chosen, len(sought)))
    return wordings


def add_corroboration(
    evidence: Sequence[Evidence], index: CorroborationIndex, documents: Mapping[str, Document]
) -> tuple[Evidence, ...]:
    """Return the findings, and W1, W2, ... for sentences elsewhere that state the same figure."""
    known = {(item.finding.span.document, item.finding.span.start) for item in evidence}
    added: list[Evidence] = []
    for item in evidence:
        for span in index.find_corroboration(item.finding.span):
            if (span.document, span.start) in known:
                continue
            known.add((span.document, span.start))
            finding = item.finding.model_copy(update={"id": f"W{len(added) + 1}", "span": span})
            document = documents[span.document]
            date = document.published.isoformat() if document.published else None
            added.append(Evidence(finding=finding, title=document.title, published=date))
    return (*evidence, *added)


def _distinct_spans(spans: Iterable[QuoteSpan]) -> list[QuoteSpan]:
    return list({(span.document, span.start): span for span in spans}.values())


async def judge_statements(statements: Sequence[tuple[str, Sequence[str]]], context: ResearchContext) -> JudgementBatch:
    """Judge all statements with their quotes in one call, or in none where there are none."""
    judged = await context.reasoner.judge(statements) if statements else JudgementBatch(judgements=())
    if len(judged.judgements) != len(statements):
        raise ReasoningError(f"{len(judged.judgements)} judgements were given on {len(statements)} statements")
    return judged


def lower_credibility(known: Mapping[str, Credibility], opinions: Mapping[str, SourceRating]) -> dict[str, Credibility]:
    """Return what is known of each source's origin, less what the reasoner holds against it."""
    return {
        name: credibility.with_lower_score(opinions[name].score, opinions[name].reason)
        if name in opinions
        else credibility
        for name, credibility in known.items()
    }


def decide_claims(
    wordings: Sequence[ClaimWording],
    judgements: Sequence[Judgement],
    documents: Mapping[str, Document],
    credibility: Mapping[str, Credibility],
    support: SupportScorer,
) -> list[Claim]:
    """Decide on every wording. A claim also gets the sentences that name what it is about, and a remark where it rests
    on passages it was not drawn from."""
    groups = group_documents(documents.values())
    pairs = [(wording.text, span.quote) for wording in wordings for span in wording.spans]
    each = zip(judgements, support.scores(pairs), strict=True)
    claims = []
    for wording in wordings:
        draft, text = wording.draft, wording.text
        weighed, naming = [], dict[QuoteSpan, QuoteSpan]()
        for span in wording.spans:
            judgement, score = next(each)
            figures, document = check_statement(text, [span.quote]), documents[span.document]
            # A passage may leave it to its document's title to name what it is about: then a sentence that names it.
            named = set(words(document.title)) & set(words(text)) - set(words(span.quote))
            if named and figures.problems and all(problem.kind == "name" for problem in figures.problems):
                for piece in split_sentences(document.text, 0, min(OPENING_LENGTH, len(document.text))):
                    if named <= set(words(piece.text)) and check_statement(text, [span.quote, piece.text]).agrees:
                        figures = StatementCheck()
                        naming[span] = QuoteSpan(
                            document=document.hash, start=piece.start, end=piece.end, quote=piece.text
                        )
                        break
                else:
                    figures = check_statement(text, [span.quote], known=document.title.split())
            weighed.append(SpanEvidence(span=span, figures=figures, judgement=judgement, support=score))
        claim = decide_verdict(
            Claim(id=wording.id, text=text, questions=draft.questions, relevance=draft.relevance),
            weighed,
            groups,
            credibility,
        )
        names = [naming[span] for span in wording.spans if span in claim.spans and span in naming]
        spans = _distinct_spans([*claim.spans, *names])
        reasons = claim.reasons
        elsewhere = {(span.document, span.start) for span in wording.spans[: wording.sought]}
        own = [span for span in spans if (span.document, span.start) not in elsewhere]
        if claim.verdict is Verdict.SUPPORTED and draft.findings and not own:
            reasons = (*reasons, "found in another passage than the one it named")
        claims.append(claim.model_copy(update={"spans": tuple(spans), "reasons": reasons}))
    return claims


def select_wordings(claims: Sequence[Claim]) -> list[Claim]:
    """Keep the best supported wording of each claim; the reasoner's first choice where there is no difference."""
    best: dict[str, Claim] = {}
    for claim in claims:
        if claim.id not in best or _support_rank(claim) > _support_rank(best[claim.id]):
            best[claim.id] = claim
    return list(best.values())


def _support_rank(claim: Claim) -> tuple[bool, bool, bool, int]:
    """Rank a claim: supported, and by its spans alone, and by how many."""
    supported = claim.verdict is Verdict.SUPPORTED
    alone = supported and check_statement(claim.text, [span.quote for span in claim.spans]).agrees
    documents = len({span.document for span in claim.spans}) if alone else 0
    return supported, alone, claim.mark is Mark.CORROBORATED, documents


def _merge_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Make one of claims that came to the same words, with the questions of all."""
    merged: dict[str, Claim] = {}
    for claim in claims:
        if claim.text in merged:
            known = merged[claim.text]
            questions = tuple(dict.fromkeys((*known.questions, *claim.questions)))
            better = claim if _support_rank(claim) > _support_rank(known) else known
            claim = better.model_copy(update={"id": known.id, "questions": questions})
        merged[claim.text] = claim
    return list(merged.values())


def add_disputes(claim: Claim, disagreements: Sequence[Disagreement]) -> Claim:
    """Add who disputes a claim, and what has superseded it."""
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
