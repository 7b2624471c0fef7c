"""Writing without a model: verified claims in their own words, in the order of the plan, each said once."""

import re
from collections.abc import Iterator, Sequence

from assay.model.claim import Claim, Mark, Verdict
from assay.model.evidence import Disagreement
from assay.model.question import Depth
from assay.reasoning.embedded.planning import COMPANY_SECTIONS
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence, WriteRequest
from assay.text.overlap import jaccard
from assay.text.relations import years

ABSTRACT_WORDS = 170
QUICK_WORDS = 220
PER_SECTION = {Depth.QUICK: 10, Depth.STANDARD: 8, Depth.COMPREHENSIVE: 12}
REPEATED = 0.6
PER_SIDE = 3

_STOCK = re.compile(
    r"\b(?:stock|shares?|trad(?:ed|ing)|market (?:cap\w*|value)|price-earnings|P/E|dividend|year to date|AAPL|TSLA)\b",
    re.I,
)
_NEWS = re.compile(
    r"\b(?:launch\w*|announc\w*|report\w*|quarter\w*|deliver\w*|earnings|revenue|ruling|unveil\w*|exceed\w*)\b", re.I
)
_CHANGE = re.compile(r"\b(?:chang|grow|grew|rose|fell|trend|over time|compare|evol)", re.I)


def write(request: WriteRequest) -> Draft:
    usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
    current = [claim for claim in usable if not claim.superseded_by]
    body = _body(request, current)
    used = {claim_id for section in body for sentence in section.sentences for claim_id in sentence.claims}
    sections = [section for section in body if section.sentences]
    if request.plan.depth is not Depth.QUICK and len(used) >= 4:
        chosen = [claim for claim in current if claim.id in used]
        sections.insert(0, DraftSection(title="Summary", role="abstract", sentences=tuple(_abstract(chosen, request))))
    disputed = tuple(_disagreements(request.disagreements, {claim.id: claim for claim in usable}))
    if disputed:
        sections.append(DraftSection(title="What the sources disagree on", role="disagreements", sentences=disputed))
    if request.unanswered:
        sections.append(DraftSection(title="What could not be found", role="not_found", sentences=_not_found(request)))
    if request.plan.depth is not Depth.QUICK and used:
        sections.append(DraftSection(title="Conclusion", role="conclusion", sentences=_conclusion(request, current)))
    return Draft(title=request.plan.goal.rstrip("?!. "), sections=tuple(sections), notes=request.fixes)


def _body(request: WriteRequest, claims: Sequence[Claim]) -> list[DraftSection]:
    """Each claim goes to the first section it answers; a section stops at its share of the words."""
    share = (QUICK_WORDS if request.plan.depth is Depth.QUICK else request.words) // max(1, len(request.plan.sections))
    share = max(share, QUICK_WORDS if len(request.plan.sections) == 1 else 60)
    placed: dict[str, list[Claim]] = {section: [] for section in request.plan.sections}
    said: list[str] = []
    for claim in sorted(claims, key=lambda claim: (-_worth(claim), claim.id)):
        section = _section_of(claim, request)
        room = placed[section]
        full = len(room) >= PER_SECTION[request.plan.depth] or sum(len(c.text.split()) for c in room) >= share
        if full or any(jaccard(claim.text, other) >= REPEATED for other in said):
            continue
        room.append(claim)
        said.append(claim.text)
    return [
        DraftSection(title=title, sentences=tuple(_sentence(claim) for claim in _ordered(title, chosen)))
        for title, chosen in placed.items()
    ]


def _worth(claim: Claim) -> float:
    """Relevance, and a little for being borne out: of two statements a reader wants the surer one."""
    return claim.relevance + (0.1 if claim.mark is Mark.CORROBORATED else 0.0)


def _section_of(claim: Claim, request: WriteRequest) -> str:
    if request.plan.sections == COMPANY_SECTIONS:
        overview, news, finance = COMPANY_SECTIONS
        return finance if _STOCK.search(claim.text) else news if _NEWS.search(claim.text) else overview
    by_id = {question.id: question.section for question in request.plan.questions}
    return next((by_id[question] for question in claim.questions if question in by_id), request.plan.sections[0])


def _ordered(title: str, claims: Sequence[Claim]) -> list[Claim]:
    """A change is told in order of time, everything else by relevance."""
    if _CHANGE.search(title):
        return sorted(claims, key=lambda claim: (min(years(claim.text), default=9999), -claim.relevance, claim.id))
    return list(claims)


def _sentence(claim: Claim) -> DraftSentence:
    return DraftSentence(text=claim.text, claims=(claim.id,))


def _abstract(claims: Sequence[Claim], request: WriteRequest) -> Iterator[DraftSentence]:
    """The best statement of each sub-question, then the best of the rest, corroborated ones first."""
    ranked = sorted(claims, key=lambda claim: (claim.mark is not Mark.CORROBORATED, -claim.relevance, claim.id))
    leads = [
        next((claim for claim in ranked if question.id in claim.questions), None) for question in request.plan.questions
    ]
    chosen = list({claim.id: claim for claim in (*leads, *ranked) if claim is not None}.values())
    words = 0
    for claim in chosen:
        words += len(claim.text.split())
        if words > ABSTRACT_WORDS and words != len(claim.text.split()):
            return
        yield _sentence(claim)


def _disagreements(disagreements: Sequence[Disagreement], claims: dict[str, Claim]) -> Iterator[DraftSentence]:
    """Open matters with both sides, then figures that a newer one of the same origin has replaced."""
    replaced: dict[str, list[str]] = {}
    for matter in disagreements:
        sides = [[claims[id] for id in side if id in claims] for side in matter.sides]
        if not all(sides):
            continue
        if matter.resolved:
            replaced.setdefault(sides[0][0].id, []).append(sides[1][0].id)
        else:
            yield DraftSentence(text="Here the sources do not agree, and no source read in this run settles it.")
            for side in sides:
                yield from (_sentence(claim) for claim in side[:PER_SIDE])
    for newest, older in list(replaced.items())[:PER_SIDE]:
        yield DraftSentence(text="An older figure has been superseded by a newer one of the same origin, given last.")
        yield from (_sentence(claims[id]) for id in (*older[:PER_SIDE], newest))


def _not_found(request: WriteRequest) -> tuple[DraftSentence, ...]:
    return tuple(
        DraftSentence(text=f"No source read in this run answered: “{question}”") for question in request.unanswered
    )


def _conclusion(request: WriteRequest, claims: Sequence[Claim]) -> tuple[DraftSentence, ...]:
    """How far the answer carries; it speaks of the research only, so nothing is claimed twice."""
    total = len(request.plan.questions)
    answered = total - len(request.unanswered)
    sentences = [DraftSentence(text=f"Of {total} sub-questions, {answered} could be answered from the sources read.")]
    corroborated = sum(claim.mark is Mark.CORROBORATED for claim in claims)
    if corroborated:
        sentences.append(
            DraftSentence(text=f"Statements marked {Mark.CORROBORATED} rest on two or more independent sources.")
        )
    if any(not matter.resolved for matter in request.disagreements):
        sentences.append(DraftSentence(text="Where sources disagree, both sides are given and none is preferred."))
    return tuple(sentences)
