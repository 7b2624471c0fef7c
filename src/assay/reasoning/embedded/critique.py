"""Reviewing a draft by checks that can be counted: six criteria, each with its own file of checks in reviewing/.

Every criterion begins at 10 and loses what its faults cost; the weighted sum is at most what the evidence allows. So a
score means something: from 8 on, most statements are confirmed or come from credible sources. A report half of which
rests on single sources of unknown credit stays below 8 however well it reads; one beside the question never passes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor
from typing import Literal, NamedTuple

from assay.model.report import Critique, Issue
from assay.reasoning.embedded.reviewing.accuracy import accuracy
from assay.reasoning.embedded.reviewing.case import Case, Fault
from assay.reasoning.embedded.reviewing.citation import citation
from assay.reasoning.embedded.reviewing.coherence import coherence
from assay.reasoning.embedded.reviewing.completeness import completeness
from assay.reasoning.embedded.reviewing.evidence import ceiling, evidence
from assay.reasoning.embedded.reviewing.methodology import methodology
from assay.reasoning.embedded.reviewing.style import style
from assay.reasoning.protocol import CritiqueRequest

WEIGHTS = {
    "accuracy": 0.25,
    "completeness": 0.20,
    "coherence": 0.20,
    "citation": 0.15,
    "methodology": 0.10,
    "style": 0.10,
}
CHECKS: tuple[Callable[[Case], Iterator[Fault]], ...] = (
    evidence, accuracy, completeness, coherence, citation, methodology, style,
)  # fmt: skip
APPROVE, REVISE, MOST_MAJOR = 7.5, 5.0, 3
EVIDENCE = ("accuracy", "citation")  # what a ceiling is held by
BESIDES = 0.25  # of what faults take counts below a ceiling too
_RANK = {"critical": 0, "major": 1, "minor": 2, "suggestion": 3}


class Counted(NamedTuple):
    """What the checks have found: issues, the points left to each criterion, and the most the whole may have."""

    issues: tuple[Issue, ...]
    scores: dict[str, float]
    most: float


def count(request: CritiqueRequest) -> Counted:
    case = Case(request)
    faults = [fault for check in CHECKS for fault in check(case)]
    scores = {name: _score(name, faults) for name in WEIGHTS}
    issues = tuple(sorted((fault.issue for fault in faults), key=lambda issue: _RANK[issue.severity]))
    return Counted(issues, scores, ceiling(case) - BESIDES * (10 - weighed(scores)))


def critique(request: CritiqueRequest) -> Critique:
    counted = count(request)
    scores = held(counted.scores, counted.most)
    total = weighed(scores)
    return Critique(
        scores=scores,
        score=total,
        issues=counted.issues,
        recommendation=recommend(total, counted.issues, request.revisions),
        improvement_potential=potential(total, counted.issues),
    )


def held(scores: Mapping[str, float], most: float) -> dict[str, float]:
    """The scores, accuracy and citation lowered until the whole is no more than the evidence allows."""
    lowered = dict(scores)
    excess = weighed(scores) - most
    for name in EVIDENCE if excess > 0 else ():
        share = WEIGHTS[name] / sum(WEIGHTS[one] for one in EVIDENCE)
        lowered[name] = max(0.0, floor((scores[name] - excess * share / WEIGHTS[name]) * 100) / 100)
    return lowered


def weighed(scores: Mapping[str, float]) -> float:
    return round(sum(weight * scores[name] for name, weight in WEIGHTS.items()), 2)


def recommend(score: float, issues: Sequence[Issue], revisions: int = 0) -> Literal["approve", "revise", "reject"]:
    """`revisions` are those still allowed: while there are any, a poor draft is revised rather than rejected."""
    if score >= APPROVE and not _count(issues, "critical") and _count(issues, "major") <= MOST_MAJOR:
        return "approve"
    return "revise" if score >= REVISE or revisions else "reject"


def potential(score: float, issues: Sequence[Issue]) -> float:
    """The share of the points missing that a revision may win: small faults are mended easily, critical ones hardly."""
    if score >= 10:
        return 0.0
    major = min(0.15 * _count(issues, "major"), 0.5)
    minor = min(0.05 * _count(issues, "minor"), 0.3)
    share = (1 - 0.3 * _count(issues, "critical")) * (0.5 + minor - major)
    return round(max(0.0, min(1.0, share)), 2)


def _count(issues: Sequence[Issue], severity: str) -> int:
    return sum(issue.severity == severity for issue in issues)


def _score(name: str, faults: Sequence[Fault]) -> float:
    return round(max(0.0, 10.0 - sum(fault.cost for fault in faults if fault.issue.category == name)), 2)
