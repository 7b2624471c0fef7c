"""Every claim against the passages it came from, before anything may be written."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.errors import ReasoningError
from assay.model.claim import Claim, Judgement, Mark, Verdict
from assay.model.evidence import Disagreement, Span
from assay.model.plan import Plan
from assay.model.source import Document, Passage
from assay.ports import SupportScorer
from assay.reasoning.protocol import Claimed, Conflict, DraftClaim, Evidence, Judged
from assay.stages.analyse import evidence
from assay.state import Plain, State
from assay.trust.credibility import Credibility, assess
from assay.trust.figures import check
from assay.trust.independence import groups
from assay.trust.quotes import verify as stands
from assay.trust.verdict import Weighed, decide
from assay.trust.witnesses import Witnesses

MOST_SPANS = 6  # candidates per claim; a seventh witness would change nothing


class Variant(NamedTuple):
    """One wording of a drafted claim, with the spans it may rest on."""

    id: str
    draft: DraftClaim
    text: str
    spans: list[Span]


async def verify(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    places = [place for passages in state["selected"].values() for place in passages]
    documents = await _documents([source["document"] for source in state["sources"]], deps)
    # Sentences and spans of all documents are gone through: work for a thread, not for the event loop.
    found = await asyncio.to_thread(_with_all_witnesses, evidence(state), places, documents)
    claimed = await deps.reasoner.claims(plan, found)
    variants = await asyncio.to_thread(_variants, claimed.claims, found, documents)
    judged = await judge([(variant.text, [span.quote]) for variant in variants for span in variant.spans], deps)
    known = {name: assess(document) for name, document in documents.items()}
    credibility = _lowered(known, claimed)
    decided = await asyncio.to_thread(_decide, variants, judged.judgements, documents, credibility, deps.support)
    verdicts = _best(decided)
    supported = [claim for claim in verdicts if claim.verdict == "supported"]
    disagreements = await deps.reasoner.disagreements(supported, _conflicts(judged, variants, supported))
    verdicts = [_related(claim, disagreements) for claim in verdicts]
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


def _with_all_witnesses(
    found: Sequence[Evidence], places: Sequence[Plain], documents: dict[str, Document]
) -> tuple[Evidence, ...]:
    return with_witnesses(found, Witnesses(_passages(places, documents)), documents)


def _variants(drafts: Sequence[DraftClaim], found: Sequence[Evidence], documents: dict[str, Document]) -> list[Variant]:
    spans = {item.finding.id: item.finding.span for item in found}
    return [
        Variant(f"C{number}", draft, wording, _candidates(draft, spans, documents))
        for number, draft in enumerate(drafts, 1)
        for wording in draft.wordings
    ]


async def _documents(names: Iterable[str], deps: Deps) -> dict[str, Document]:
    return {name: await deps.documents.get(name) for name in dict.fromkeys(names)}


def _passages(places: Sequence[Plain], documents: dict[str, Document]) -> list[Passage]:
    distinct = {(place["document"], place["start"]): place for place in places}.values()
    return [
        Passage(**place, text=documents[place["document"]].text[place["start"] : place["end"]]) for place in distinct
    ]


def with_witnesses(
    found: Sequence[Evidence], witnesses: Witnesses, documents: dict[str, Document]
) -> tuple[Evidence, ...]:
    """The findings, and W1, W2, ... for sentences elsewhere that state the same figure."""
    known = {(item.finding.span.document, item.finding.span.start) for item in found}
    added: list[Evidence] = []
    for item in found:
        for span in witnesses.of(item.finding.span):
            if (span.document, span.start) in known:
                continue
            known.add((span.document, span.start))
            finding = item.finding.model_copy(update={"id": f"W{len(added) + 1}", "span": span})
            document = documents[span.document]
            date = document.published.isoformat() if document.published else None
            added.append(Evidence(finding=finding, title=document.title, published=date))
    return (*found, *added)


def _candidates(draft: DraftClaim, spans: dict[str, Span], documents: dict[str, Document]) -> list[Span]:
    """Spans that truly stand in their snapshot; anything else is not evidence."""
    chosen = [spans[name] for name in draft.findings if name in spans]
    standing = [span for span in chosen if stands(span, documents[span.document].text)]
    return list({(span.document, span.start): span for span in standing}.values())[:MOST_SPANS]


async def judge(statements: Sequence[tuple[str, Sequence[str]]], deps: Deps) -> Judged:
    """All statements with their quotes in one call, or in none where there are none."""
    judged = await deps.reasoner.judge(statements) if statements else Judged(judgements=())
    if len(judged.judgements) != len(statements):
        raise ReasoningError(f"{len(judged.judgements)} judgements were given on {len(statements)} statements")
    return judged


def _lowered(known: Mapping[str, Credibility], claimed: Claimed) -> dict[str, Credibility]:
    """What is known of each source's origin, less what the reasoner holds against it."""
    opinions = claimed.credibility
    return {
        name: credibility.lowered(opinions[name].score, opinions[name].reason) if name in opinions else credibility
        for name, credibility in known.items()
    }


def _conflicts(judged: Judged, variants: Sequence[Variant], claims: Sequence[Claim]) -> list[Conflict]:
    """Claims that cannot both hold, whichever of their wordings were judged, in the words that were kept."""
    kept = {claim.id: claim.text for claim in claims}
    texts = {variant.text: kept[variant.id] for variant in variants if variant.id in kept}
    return [
        Conflict(first=texts[conflict.first], second=texts[conflict.second], about=conflict.about)
        for conflict in judged.conflicts
        if conflict.first in texts and conflict.second in texts
    ]


def _decide(
    variants: Sequence[Variant],
    judgements: Sequence[Judgement],
    documents: dict[str, Document],
    credibility: Mapping[str, Credibility],
    support: SupportScorer,
) -> list[Claim]:
    together = groups(documents.values())
    each = iter(judgements)
    verdicts = []
    for variant in variants:
        draft = variant.draft
        claim = Claim(id=variant.id, text=variant.text, questions=draft.questions, relevance=draft.relevance)
        weighed = [
            Weighed(
                span=span,
                figures=check(variant.text, [span.quote], known=documents[span.document].title.split()),
                judgement=judgement,
                support=support.score(variant.text, span.quote),
            )
            for span, judgement in zip(variant.spans, each, strict=False)
        ]
        verdicts.append(decide(claim, weighed, together, credibility))
    return verdicts


def _best(verdicts: Sequence[Claim]) -> list[Claim]:
    """Of each claim the wording that is borne out best; the reasoner's first choice where there is no difference."""
    best: dict[str, Claim] = {}
    for claim in verdicts:
        if claim.id not in best or _standing(claim) > _standing(best[claim.id]):
            best[claim.id] = claim
    return list(best.values())


def _standing(claim: Claim) -> tuple[bool, bool, float]:
    return claim.verdict is Verdict.SUPPORTED, claim.mark is Mark.CORROBORATED, claim.confidence


def _related(claim: Claim, disagreements: Sequence[Disagreement]) -> Claim:
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
