"""Writing without a model: verified claims in their own words, in the order of the plan, each said once."""

import re
from collections.abc import Iterator, Sequence

from assay.model.claim import Claim, Mark, Verdict
from assay.model.evidence import Disagreement
from assay.model.question import Depth
from assay.reasoning.embedded.aspects import FINANCE, NEWS, aspect, is_about_a_company
from assay.reasoning.protocol import Draft, DraftSection, DraftSentence, WriteRequest
from assay.text.overlap import jaccard
from assay.text.quantities import quantities
from assay.text.relations import stated, years

ABSTRACT_WORDS = 170
ABSTRACT_SHARE, DISPUTED_SHARE = 5, 4  # a fifth and a quarter of the words
NO_ABSTRACT = 300  # a report shorter than this is its own summary
QUICK_WORDS = 220
PER_SECTION = {Depth.QUICK: 10, Depth.STANDARD: 8, Depth.COMPREHENSIVE: 12}
EXECUTIVE, TECHNICAL = 4, 10  # statements a section
REPEATED, REPEATED_WHEN_TOLD = 0.6, 0.4
PER_SIDE = 3

# What the reviewer can ask for and this writer can do.
SHORTEN, KEEP_ONE = "shorten", "keep one of them"

Told = tuple[DraftSentence, ...]

_CHANGE = re.compile(r"\b(?:chang|grow|grew|rose|fell|trend|over time|compare|evol)", re.I)


def write(request: WriteRequest) -> Draft:
    usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
    current = [claim for claim in usable if not claim.superseded_by]
    target = _target(request)
    after = _after(request, usable, current, target)
    quick = request.plan.depth is Depth.QUICK
    summary = 0 if quick or target < NO_ABSTRACT else min(ABSTRACT_WORDS, target // ABSTRACT_SHARE)
    room = target - summary - sum(_words(section.sentences) for section in after)
    body = _body(request, current, min(room, QUICK_WORDS) if quick else room)
    used = {claim_id for section in body for sentence in section.sentences for claim_id in sentence.claims}
    abstract = tuple(_abstract([claim for claim in current if claim.id in used], request, summary))
    sections = [section for section in (*body, *after) if section.sentences and (used or section.role != "conclusion")]
    if abstract and len(used) >= 4:
        sections.insert(0, DraftSection(title="Summary", role="abstract", sentences=abstract))
    return Draft(title=request.plan.goal.rstrip("?!. "), sections=tuple(sections), notes=request.fixes)


def _target(request: WriteRequest) -> int:
    return request.target * 3 // 4 if SHORTEN in request.fixes else request.target


def _words(sentences: Sequence[DraftSentence]) -> int:
    return sum(len(sentence.text.split()) for sentence in sentences)


def _after(request: WriteRequest, usable: Sequence[Claim], current: Sequence[Claim], target: int) -> list[DraftSection]:
    """What follows the body; the body has to do with the words it leaves."""
    disputed = tuple(_disagreements(request.disagreements, {claim.id: claim for claim in usable}, target))
    conclusion = () if request.plan.depth is Depth.QUICK else _conclusion(request, current)
    if request.style == "executive" or target < NO_ABSTRACT:
        conclusion = conclusion[:1]
    return [
        DraftSection(title="What the sources disagree on", role="disagreements", sentences=disputed),
        DraftSection(title="What could not be found", role="not_found", sentences=_not_found(request, usable)),
        DraftSection(title="Conclusion", role="conclusion", sentences=conclusion),
    ]


def _body(request: WriteRequest, claims: Sequence[Claim], words: int) -> list[DraftSection]:
    """Each claim goes to the first section it answers that has room; a section has its share of the words, or one
    statement. What repeats another in words but not in figures or names is no repetition."""
    share = words // max(1, len({_sections_of(claim, request)[0] for claim in claims}))
    told = KEEP_ONE in request.fixes
    placed: dict[str, list[Claim]] = {section: [] for section in request.plan.sections}
    said: list[str] = []
    for claim in sorted(claims, key=lambda claim: (_figures_last(claim, request), -_worth(claim), claim.id)):
        rooms = [placed[section] for section in _sections_of(claim, request)]
        room = next((room for room in rooms if not _full(room, claim, request, share)), None)
        if room is None or any(_repeats(claim.text, other, told) for other in said):
            continue
        room.append(claim)
        said.append(claim.text)
    return [
        DraftSection(title=title, sentences=tuple(_sentence(claim) for claim in _ordered(title, chosen, request)))
        for title, chosen in placed.items()
    ]


def _most(request: WriteRequest) -> int:
    """Statements a section may have."""
    usual = PER_SECTION[request.plan.depth]
    if request.style == "executive":
        return min(EXECUTIVE, usual)
    return max(TECHNICAL, usual) if request.style == "technical" else usual


def _figures_last(claim: Claim, request: WriteRequest) -> bool:
    """A technical reader looks for the figures: statements without one come after those with one."""
    if request.style != "technical":
        return False
    return all(quantity.kind in ("year", "date") for quantity in quantities(claim.text))


def _worth(claim: Claim) -> float:
    """Relevance, and a little for being borne out: of two statements a reader wants the surer one."""
    return claim.relevance + (0.1 if claim.mark is Mark.CORROBORATED else 0.0)


def _full(room: Sequence[Claim], claim: Claim, request: WriteRequest, share: int) -> bool:
    """Whether a statement more would be too many; the first always fits."""
    words = sum(len(other.text.split()) for other in (*room, claim))
    return bool(room) and (len(room) >= _most(request) or words > share)


def _repeats(text: str, other: str, told: bool) -> bool:
    """Alike, with the same figures and names; a reviewer who said so need not find the same figures."""
    if told:
        return jaccard(text, other) >= REPEATED_WHEN_TOLD
    return jaccard(text, other) >= REPEATED and stated(text) == stated(other)


def _sections_of(claim: Claim, request: WriteRequest) -> list[str]:
    """Where a claim may stand, the person's own questions first: they come first in the plan."""
    if is_about_a_company(request.plan.sections):
        return [aspect(claim.text)]
    answered = [question.section for question in request.plan.questions if question.id in claim.questions]
    return list(dict.fromkeys(answered)) or [request.plan.sections[0]]


def _ordered(title: str, claims: Sequence[Claim], request: WriteRequest) -> list[Claim]:
    """A change is told in order of time, everything else by relevance."""
    if _CHANGE.search(title):
        claims = sorted(claims, key=lambda claim: (min(years(claim.text), default=9999), -claim.relevance, claim.id))
    return sorted(claims, key=lambda claim: _figures_last(claim, request))


def _sentence(claim: Claim) -> DraftSentence:
    return DraftSentence(text=claim.text, claims=(claim.id,))


def _abstract(claims: Sequence[Claim], request: WriteRequest, most: int) -> Iterator[DraftSentence]:
    """The best statement of each sub-question, then the best of the rest, corroborated ones first; `most` words."""
    ranked = sorted(claims, key=lambda claim: (claim.mark is not Mark.CORROBORATED, -claim.relevance, claim.id))
    leads = [
        next((claim for claim in ranked if question.id in claim.questions), None) for question in request.plan.questions
    ]
    left = most
    for claim in {claim.id: claim for claim in (*leads, *ranked) if claim is not None}.values():
        if len(claim.text.split()) <= left:
            left -= len(claim.text.split())
            yield _sentence(claim)


def _disagreements(
    disagreements: Sequence[Disagreement], claims: dict[str, Claim], target: int
) -> Iterator[DraftSentence]:
    """As many matters as a quarter of the words holds, but never none: where there is a dispute, it is shown."""
    room, taken = target // DISPUTED_SHARE, 0
    for short, full in _matters(disagreements, claims):
        told = full if taken + _words(full) <= room else short
        if taken and taken + _words(told) > room:
            continue
        taken += _words(told)
        yield from told


def _matters(disagreements: Sequence[Disagreement], claims: dict[str, Claim]) -> Iterator[tuple[Told, Told]]:
    """Open matters with both sides, then figures that a newer one of the same origin has replaced; each in short, and
    in full where it takes more."""
    replaced: dict[str, list[str]] = {}
    for matter in disagreements:
        sides = [[claims[id] for id in side if id in claims] for side in matter.sides]
        if not all(sides):
            continue
        if matter.resolved:
            replaced.setdefault(sides[0][0].id, []).append(sides[1][0].id)
        else:
            yield _open(sides, 1), _open(sides, PER_SIDE)
    for newest, older in list(replaced.items())[:PER_SIDE]:
        yield (
            _settled([claims[id] for id in (older[0], newest)]),
            _settled([claims[id] for id in (*older[:PER_SIDE], newest)]),
        )


def _open(sides: Sequence[Sequence[Claim]], most: int) -> Told:
    frame = DraftSentence(text="Here the sources do not agree, and no source read in this run settles it.")
    return (frame, *(_sentence(claim) for side in sides for claim in side[:most]))


def _settled(in_order: Sequence[Claim]) -> Told:
    frame = DraftSentence(text="An older figure has been superseded by a newer one of the same origin, given last.")
    return (frame, *map(_sentence, in_order))


def _not_found(request: WriteRequest, claims: Sequence[Claim]) -> tuple[DraftSentence, ...]:
    """Sub-questions without an answer, and what every answer about a company is expected to have."""
    told = [f"No source read in this run answered: “{question}”" for question in request.unanswered]
    if is_about_a_company(request.plan.sections):
        there = {aspect(claim.text) for claim in claims}
        told += [
            f"No source read in this run had anything for: “{part}”" for part in (NEWS, FINANCE) if part not in there
        ]
    return tuple(DraftSentence(text=text) for text in told)


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
