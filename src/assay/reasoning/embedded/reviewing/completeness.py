"""Completeness: sub-questions answered, planned sections there or owned up to, the subject spoken of, evidence."""

from collections.abc import Iterator

from assay.model.question import Depth
from assay.reasoning.embedded.reviewing.case import Case, Fault, fault, graded
from assay.reasoning.embedded.reviewing.relevance import relevance, touched
from assay.text.words import fold

ALL_OPEN = 6.0  # points where no sub-question is answered
MOST_OPEN = 0.5
ELSEWHERE, NOWHERE = 0.5, 2.0  # for a section that was not written, by whether its words stand in others


def completeness(case: Case) -> Iterator[Fault]:
    if not case.facts:
        yield fault("completeness", "critical", "whole report", "no factual statement could be verified", "add sources")
    yield from _unanswered(case)
    yield from _missing(case)
    yield from relevance(case)
    yield from _thin(case)


def _unanswered(case: Case) -> Iterator[Fault]:
    asked = max(len(case.request.plan.questions), len(case.request.unanswered), 1)
    for question in case.request.unanswered:
        cost = ALL_OPEN / asked
        yield fault("completeness", "major" if graded(cost) == "major" else "minor", "What could not be found",
                    f"unanswered: {question}", "add sources that speak to it", cost)  # fmt: skip
    if asked > 1 and len(case.request.unanswered) / asked > MOST_OPEN:
        yield fault("completeness", "major", "whole report", "most of what was asked is open", "add sources")


def _missing(case: Case) -> Iterator[Fault]:
    """Planned sections that are not there, and of which nothing says why."""
    draft, plan = case.request.draft, case.request.plan
    there = {fold(section.title) for section in draft.sections}
    owned = fold(" ".join(text for _, text in case.frames))
    for title in plan.sections:
        asked = [question.text for question in plan.questions if question.section == title]
        told = any(fold(text) in owned for text in (title, *asked))
        if case.facts and fold(title) not in there and not told and plan.depth is not Depth.QUICK:
            yield fault("completeness", "minor", title, f"planned and not written: {title}",
                        "write it, or say that nothing was found",
                        ELSEWHERE if touched(case, asked) else NOWHERE)  # fmt: skip


def _thin(case: Case) -> Iterator[Fault]:
    """Most sections have next to nothing."""
    if case.request.plan.depth is Depth.QUICK:
        return
    body = [section for section in case.request.draft.sections if section.role == "body"]
    lone = [section for section in body if sum(bool(s.claims) for s in section.sentences) == 1]
    if len(body) > 1 and len(lone) > len(body) / 2:
        yield fault("completeness", "suggestion", lone[0].title,
                    f"{len(lone)} of {len(body)} sections have one statement", "say more, or join them")  # fmt: skip
