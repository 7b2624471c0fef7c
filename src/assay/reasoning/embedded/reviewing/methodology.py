"""Methodology: how it was done is told, gaps are owned up to, both sides of a dispute are shown, sources are recent."""

from collections.abc import Iterator

from assay.model.question import Depth
from assay.reasoning.embedded.reviewing.case import Case, Fault, fault, short
from assay.reasoning.embedded.reviewing.recency import recency

FEW_KINDS = 3  # sources from which on one kind alone is worth a word


def methodology(case: Case) -> Iterator[Fault]:
    request = case.request
    owned = any(section.role == "not_found" for section in request.draft.sections)
    if request.unanswered and not owned:
        yield fault("methodology", "major", "whole report", "open questions are not owned up to",
                    "add what could not be found")  # fmt: skip
    if request.plan.depth is not Depth.QUICK and not request.plan.methodology:
        yield fault("methodology", "minor", "plan", "no methodology stated")
    yield from _one_sided(case)
    yield from recency(case)
    yield from _alike(case)


def _one_sided(case: Case) -> Iterator[Fault]:
    """Of a dispute that nothing settles, a report tells both sides or neither."""
    told = {claim.id for fact in case.facts for claim in fact.claims if claim}
    for matter in case.request.disagreements:
        if matter.resolved:
            continue
        shown = [bool(told.intersection(side)) for side in matter.sides]
        if any(shown) and not all(shown):
            yield fault("methodology", "major", "What the sources disagree on",
                        f"one side of a disagreement is told and the other is not: {short(matter.about)}",
                        "give both sides")  # fmt: skip
        elif not any(shown):
            yield fault("methodology", "suggestion", "What the sources disagree on",
                        f"a disagreement is not shown: {short(matter.about)}", "give both sides")  # fmt: skip


def _alike(case: Case) -> Iterator[Fault]:
    cited = case.cited
    if len(cited) >= FEW_KINDS and len({source.kind for source in cited}) == 1 and not any(s.primary for s in cited):
        yield fault("methodology", "suggestion", "sources",
                    f"all {len(cited)} sources are of one kind ({cited[0].kind}) and none speaks at first hand",
                    "add a primary source")  # fmt: skip
