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
from assay.reasoning.protocol import Conflict, DraftClaim, Evidence, Judged, Known, Opinion, Origin
from assay.stages.analyse import evidence
from assay.state import Plain, State
from assay.text.sentences import sentences
from assay.text.words import stems, words
from assay.trust.credibility import Credibility, assess
from assay.trust.figures import FiguresResult, check
from assay.trust.independence import groups
from assay.trust.quotes import verify as stands
from assay.trust.verdict import OPPOSED, Weighed, decide
from assay.trust.witnesses import Witnesses

MOST_SPANS = 6  # candidates per claim; a seventh witness would change nothing
LEAD = 4000  # characters at the beginning of a document in which it names its subject


class Variant(NamedTuple):
    """One wording of a drafted claim, with the spans it may rest on."""

    id: str
    draft: DraftClaim
    text: str
    spans: list[Span]
    sought: int = 0  # of the spans, the first ones, found elsewhere: those it was drawn from do not say it


async def verify(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    plan = Plan.model_validate(state["plan"])
    places = [place for passages in state["selected"].values() for place in passages]
    documents = await _documents([source["document"] for source in state["sources"]], deps)
    # Sentences and spans of all documents are gone through: work for a thread, not for the event loop.
    witnesses = await asyncio.to_thread(_witnesses, places, documents)
    found = await asyncio.to_thread(with_witnesses, evidence(state), witnesses, documents)
    claimed = await deps.reasoner.claims(plan, found)
    variants = await asyncio.to_thread(_variants, claimed.claims, found, documents, witnesses)
    judged = await judge([(variant.text, [span.quote]) for variant in variants for span in variant.spans], deps)
    known = {name: assess(document) for name, document in documents.items()}
    credibility = lowered(known, claimed.credibility)
    decided = await asyncio.to_thread(judged_claims, variants, judged.judgements, documents, credibility, deps.support)
    worded = best_worded(decided)
    verdicts = _once(worded)
    conflicts = _conflicts(judged, variants, [claim for claim in worded if claim.verdict == "supported"])
    supported = [claim for claim in verdicts if claim.verdict == "supported"]
    origins = await asyncio.to_thread(_origins, documents, known)
    disagreements = await deps.reasoner.disagreements(supported, conflicts, Known(question=plan.goal, origins=origins))
    verdicts = [related(claim, disagreements) for claim in verdicts]
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


def _witnesses(places: Sequence[Plain], documents: dict[str, Document]) -> Witnesses:
    titles = {name: document.title for name, document in documents.items()}
    return Witnesses(_passages(places, documents), titles)


def _variants(
    drafts: Sequence[DraftClaim], found: Sequence[Evidence], documents: dict[str, Document], witnesses: Witnesses
) -> list[Variant]:
    spans = {item.finding.id: item.finding.span for item in found}
    variants = []
    for number, draft in enumerate(drafts, 1):
        named = _candidates(draft, spans, documents)
        for wording in draft.wordings:
            settled = any(_bears(wording, span, documents) or _opposes(wording, span) for span in named)
            sought = () if settled else witnesses.offered(wording)
            others = witnesses.saying(wording, but={span.document for span in named})
            chosen = _distinct([*sought, *named, *others])[:MOST_SPANS]
            variants.append(Variant(f"C{number}", draft, wording, chosen, len(sought)))
    return variants


def _bears(text: str, span: Span, documents: dict[str, Document]) -> bool:
    """Whether a statement may be from a passage: figures and names agree, and half of its words are there."""
    wanted, offered = set(stems(text)), set(stems(span.quote))
    agrees = check(text, [span.quote], known=documents[span.document].title.split()).agrees
    return agrees and 2 * len(wanted & offered) >= len(wanted)


def _opposes(text: str, span: Span) -> bool:
    """Whether the passage says the contrary: then no other is looked for that might be read as saying it."""
    return any(problem.kind in OPPOSED for problem in check(text, [span.quote]).problems)


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
    return _distinct(standing)[:MOST_SPANS]


def _distinct(spans: Iterable[Span]) -> list[Span]:
    return list({(span.document, span.start): span for span in spans}.values())


async def judge(statements: Sequence[tuple[str, Sequence[str]]], deps: Deps) -> Judged:
    """All statements with their quotes in one call, or in none where there are none."""
    judged = await deps.reasoner.judge(statements) if statements else Judged(judgements=())
    if len(judged.judgements) != len(statements):
        raise ReasoningError(f"{len(judged.judgements)} judgements were given on {len(statements)} statements")
    return judged


def _origins(documents: Mapping[str, Document], known: Mapping[str, Credibility]) -> dict[str, Origin]:
    together = groups(documents.values())
    return {
        name: Origin(text=document.text, rank=known[name].rank, host=document.host, group=together[name],
                     published=document.published.isoformat() if document.published else None)
        for name, document in documents.items()
    }  # fmt: skip


def lowered(known: Mapping[str, Credibility], opinions: Mapping[str, Opinion]) -> dict[str, Credibility]:
    """What is known of each source's origin, less what the reasoner holds against it."""
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


def judged_claims(
    variants: Sequence[Variant],
    judgements: Sequence[Judgement],
    documents: dict[str, Document],
    credibility: Mapping[str, Credibility],
    support: SupportScorer,
) -> list[Claim]:
    together = groups(documents.values())
    each = zip(judgements, support.scores([(v.text, span.quote) for v in variants for span in v.spans]), strict=True)
    verdicts = []
    for variant in variants:
        draft = variant.draft
        claim = Claim(id=variant.id, text=variant.text, questions=draft.questions, relevance=draft.relevance)
        checks = [_checked(variant.text, span, documents[span.document]) for span in variant.spans]
        weighed = [
            Weighed(span=span, figures=figures, judgement=judgement, support=score)
            for span, (figures, _), (judgement, score) in zip(variant.spans, checks, each, strict=False)
        ]
        decided = decide(claim, weighed, together, credibility)
        naming = [
            named for span, (_, named) in zip(variant.spans, checks, strict=True) if named and span in decided.spans
        ]
        verdicts.append(_told_where(decided, variant, naming))
    return verdicts


def _told_where(claim: Claim, variant: Variant, naming: Sequence[Span]) -> Claim:
    """With the sentences that name what a statement is about; and said of one that rests on passages it was not drawn
    from."""
    claim = claim.model_copy(update={"spans": tuple(_distinct([*claim.spans, *naming]))})
    elsewhere = {(span.document, span.start) for span in variant.spans[: variant.sought]}
    own = [span for span in claim.spans if (span.document, span.start) not in elsewhere]
    if claim.verdict is not Verdict.SUPPORTED or own or not variant.draft.findings:
        return claim
    return claim.model_copy(update={"reasons": (*claim.reasons, "found in another passage than the one it named")})


def _checked(text: str, span: Span, document: Document) -> tuple[FiguresResult, Span | None]:
    """What the passage does not bear out, and the sentence that names what a statement is about, where the passage
    leaves that to the title of its document."""
    result = check(text, [span.quote])
    named = set(words(document.title)) & set(words(text)) - set(words(span.quote))
    if result.agrees or not named or any(problem.kind != "name" for problem in result.problems):
        return result, None
    for piece in sentences(document.text, 0, min(LEAD, len(document.text))):
        if named <= set(words(piece.text)) and check(text, [span.quote, piece.text]).agrees:
            naming = Span(document=document.hash, start=piece.start, end=piece.end, quote=piece.text)
            return FiguresResult(), naming
    return check(text, [span.quote], known=document.title.split()), None


def best_worded(verdicts: Sequence[Claim]) -> list[Claim]:
    """Of each claim the wording that is borne out best; the reasoner's first choice where there is no difference."""
    best: dict[str, Claim] = {}
    for claim in verdicts:
        if claim.id not in best or _standing(claim) > _standing(best[claim.id]):
            best[claim.id] = claim
    return list(best.values())


def _standing(claim: Claim) -> tuple[bool, bool, bool, int]:
    """Supported, and by its spans alone, and by how many."""
    told = claim.verdict is Verdict.SUPPORTED and check(claim.text, [span.quote for span in claim.spans]).agrees
    documents = len({span.document for span in claim.spans}) if told else 0
    return claim.verdict is Verdict.SUPPORTED, told, claim.mark is Mark.CORROBORATED, documents


def _once(verdicts: Sequence[Claim]) -> list[Claim]:
    """Claims that came to the same words are one, with the questions of all."""
    made: dict[str, Claim] = {}
    for claim in verdicts:
        known = made.get(claim.text)
        if known is None:
            made[claim.text] = claim
        else:
            better = claim.model_copy(update={"id": known.id}) if _standing(claim) > _standing(known) else known
            asked = tuple(dict.fromkeys((*known.questions, *claim.questions)))
            made[claim.text] = better.model_copy(update={"questions": asked})
    return list(made.values())


def related(claim: Claim, disagreements: Sequence[Disagreement]) -> Claim:
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
