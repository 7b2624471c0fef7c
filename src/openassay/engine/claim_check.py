"""Judges one statement against documents, as the statements of a report are judged; no language model is used."""

import asyncio
from typing import NamedTuple

from openassay.bootstrap import ServerResources
from openassay.companies.register import LazyCompanyRegister
from openassay.models.evidence import Document, QuoteSpan, Verdict
from openassay.nodes.verify import ClaimWording, decide_claims
from openassay.reasoning.base import DraftClaim
from openassay.reasoning.rules import RuleReasoner
from openassay.text.relations import relate
from openassay.text.sentences import LONGEST_PASSAGE, split_passages
from openassay.verification.corroboration import CorroborationIndex
from openassay.verification.figures import check_statement
from openassay.verification.sources import assess_credibility

MAX_CANDIDATES = 6  # passages that are judged


class JudgedSpan(NamedTuple):
    """A passage, how far it supports the statement (0 to 1), and what in it disagrees."""

    span: QuoteSpan
    support: float
    disagreements: list[str]


class StatementJudgement(NamedTuple):
    verdict: Verdict
    confidence: float
    reasons: list[str]
    evidence: list[JudgedSpan]  # the best first


async def judge_statement(
    resources: ServerResources, statement: str, documents: dict[str, Document]
) -> StatementJudgement:
    """Return the verdict on a statement. A passage that says otherwise contradicts what nothing supports."""
    spans = await asyncio.to_thread(_find_candidates, statement, documents)
    reasoner = RuleReasoner(resources.embedder, resources.support, LazyCompanyRegister())
    judged = await reasoner.judge([(statement, [span.quote]) for span in spans])
    draft = DraftClaim(wordings=(statement,), findings=(), questions=(), relevance=1.0)
    wordings = [ClaimWording("C1", draft, statement, spans)]
    credibility = {name: assess_credibility(document) for name, document in documents.items()}
    [claim] = await asyncio.to_thread(
        decide_claims, wordings, judged.judgements, documents, credibility, resources.support
    )
    values = await asyncio.to_thread(resources.support.scores, [(statement, span.quote) for span in spans])
    scores = dict(zip(spans, values, strict=True))
    against = [span for span in spans if relate(statement, span.quote) == "disagree"]
    is_denied = claim.verdict is not Verdict.SUPPORTED and bool(against)
    chosen = set(against) if is_denied else {*claim.spans, *claim.against} or set(spans)
    evidence = []
    for span in sorted((span for span in spans if span in chosen), key=lambda span: -scores[span]):
        known = documents[span.document].title.split()
        problems = check_statement(statement, [span.quote], known=known).problems
        evidence.append(JudgedSpan(span, round(scores[span], 4), [problem.text for problem in problems]))
    return StatementJudgement(
        verdict=Verdict.CONTRADICTED if is_denied else claim.verdict,
        confidence=0.0 if is_denied else claim.confidence,
        reasons=[*(["a passage says otherwise"] if is_denied else []), *claim.reasons],
        evidence=evidence,
    )


def _find_candidates(statement: str, documents: dict[str, Document]) -> list[QuoteSpan]:
    """Return the sentences that bear on the statement; of a short text, all of it."""
    passages = [one for document in documents.values() for one in split_passages(document.hash, document.text)]
    index = CorroborationIndex(passages, {name: document.title for name, document in documents.items()})
    found = [*index.find_equivalents(statement), *index.find_candidates(statement, MAX_CANDIDATES)]
    found += [
        QuoteSpan(document=document.hash, start=0, end=len(document.text), quote=document.text)
        for document in documents.values()
        if len(document.text) <= LONGEST_PASSAGE
    ]
    return list({(span.document, span.start, span.end): span for span in found}.values())[:MAX_CANDIDATES]
