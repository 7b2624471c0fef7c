"""Reviewing a draft by checks that can be counted, one criterion at a time."""

import re
from collections.abc import Iterator
from typing import Literal

from assay.model.claim import Verdict
from assay.model.question import Depth
from assay.model.report import Critique, Issue
from assay.reasoning.protocol import CritiqueRequest, DraftSentence
from assay.text.overlap import jaccard

WEIGHTS = {
    "accuracy": 0.25,
    "completeness": 0.20,
    "coherence": 0.20,
    "citation": 0.15,
    "methodology": 0.10,
    "style": 0.10,
}
COST = {"critical": 5.0, "major": 2.5, "minor": 1.0, "suggestion": 0.25}
APPROVE, REVISE, MOST_MAJOR = 7.5, 5.0, 3


def critique(request: CritiqueRequest) -> Critique:
    issues = tuple(_issues(request))
    scores = {name: _score(name, issues) for name in WEIGHTS}
    total = round(sum(WEIGHTS[name] * score for name, score in scores.items()), 2)
    return Critique(
        scores=scores,
        score=total,
        issues=issues,
        recommendation=recommend(total, issues),
        improvement_potential=round((10 - total) / 10, 2),
    )


def recommend(score: float, issues: tuple[Issue, ...]) -> Literal["approve", "revise", "reject"]:
    critical = sum(issue.severity == "critical" for issue in issues)
    major = sum(issue.severity == "major" for issue in issues)
    if score >= APPROVE and not critical and major <= MOST_MAJOR:
        return "approve"
    return "revise" if score >= REVISE else "reject"


def _score(name: str, issues: tuple[Issue, ...]) -> float:
    return max(0.0, 10.0 - sum(COST[issue.severity] for issue in issues if issue.category == name))


def _issues(request: CritiqueRequest) -> Iterator[Issue]:
    yield from _accuracy(request)
    yield from _completeness(request)
    yield from _coherence(request)
    yield from _methodology(request)
    yield from _style(request)


def _facts(request: CritiqueRequest) -> list[tuple[str, DraftSentence]]:
    return [
        (section.title, sentence)
        for section in request.draft.sections
        for sentence in section.sentences
        if sentence.claims
    ]


def _accuracy(request: CritiqueRequest) -> Iterator[Issue]:
    claims = {claim.id: claim for claim in request.claims}
    for place, sentence in _facts(request):
        bound = [claims.get(id) for id in sentence.claims]
        if any(claim is None or claim.verdict is not Verdict.SUPPORTED for claim in bound):
            yield Issue(category="accuracy", severity="critical", location=place,
                        description=f"not supported: {sentence.text[:80]}", fix="drop the sentence")  # fmt: skip
        if any(claim is not None and not claim.spans for claim in bound):
            yield Issue(category="citation", severity="critical", location=place,
                        description=f"no span: {sentence.text[:80]}", fix="drop the sentence")  # fmt: skip
    if request.dropped:
        yield Issue(category="accuracy", severity="minor", location="whole report",
                    description=f"{request.dropped} drafted sentences did not hold against their passages",
                    fix="they were replaced by the claim's own words or left out")  # fmt: skip


def _completeness(request: CritiqueRequest) -> Iterator[Issue]:
    for question in request.unanswered:
        yield Issue(category="completeness", severity="minor", location="What could not be found",
                    description=f"unanswered: {question}", fix="add sources that speak to it")  # fmt: skip
    if not _facts(request):
        yield Issue(category="completeness", severity="critical", location="whole report",
                    description="no factual statement could be verified", fix="add sources")  # fmt: skip


def _coherence(request: CritiqueRequest) -> Iterator[Issue]:
    bodies = [
        sentence.text for section in request.draft.sections if section.role == "body" for sentence in section.sentences
    ]
    for at, left in enumerate(bodies):
        if any(jaccard(left, right) > 0.8 for right in bodies[at + 1 :]):
            yield Issue(category="coherence", severity="minor", location="body",
                        description=f"said twice: {left[:80]}", fix="keep one of them")  # fmt: skip


def _methodology(request: CritiqueRequest) -> Iterator[Issue]:
    owned = any(section.role == "not_found" for section in request.draft.sections)
    if request.unanswered and not owned:
        yield Issue(category="methodology", severity="major", location="whole report",
                    description="open questions are not owned up to", fix="add what could not be found")  # fmt: skip
    if request.plan.depth is not Depth.QUICK and not request.plan.methodology:
        yield Issue(category="methodology", severity="minor", location="plan", description="no methodology stated")


def _style(request: CritiqueRequest) -> Iterator[Issue]:
    """Banned words are about our own words, so only frame sentences and titles are looked at."""
    ours = [request.draft.title] + [
        text
        for section in request.draft.sections
        for text in (section.title, *(sentence.text for sentence in section.sentences if not sentence.claims))
    ]
    quoted = request.plan.model_dump_json()
    for word in request.banned:
        if re.search(rf"\b{re.escape(word)}\b", " ".join(ours), re.I) and word not in quoted.lower():
            yield Issue(category="style", severity="minor", location="wording", description=f"banned word: {word}",
                        fix="say it plainly")  # fmt: skip
    length = sum(len(text.split()) for text in ours) + sum(
        len(sentence.text.split()) for _, sentence in _facts(request)
    )
    if length > request.words * 1.25:
        yield Issue(category="style", severity="minor", location="whole report",
                    description=f"{length} words where {request.words} were asked for", fix="shorten")  # fmt: skip
