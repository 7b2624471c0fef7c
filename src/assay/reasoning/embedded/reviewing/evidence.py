"""What the evidence behind a report is worth: how high its score may be, however well it is written.

A statement of one source that nothing else speaks for is not known to be right, however truly it is told. That is no
fault of the writer's, so it lowers no score by itself: it sets a ceiling, and an honest answer from a single page can
still be approved, but is not of high confidence.
"""

from collections.abc import Iterator

from assay.model.claim import Mark
from assay.reasoning.embedded.reviewing.case import Case, Fault, fault

BEST, UNSURE = 10.0, 2.1  # the ceiling, and what it loses where half of the statements or more are unconfirmed
ONE_VOICE = THIN = 0.1  # and besides, where all of it rests on one source, or there is little of it
LITTLE = 6.0  # confidence of 10 below which an answer is based on limited information
HALF = 0.5


def ceiling(case: Case) -> float:
    unconfirmed = UNSURE * min(1.0, case.share(Mark.SINGLE) / HALF)
    lost = max(unconfirmed, UNSURE if _thin(case) else 0.0)
    if unconfirmed:
        lost += ONE_VOICE * _one_voice(case) + THIN * _thin(case)
    return round(BEST - lost, 2)


def _one_voice(case: Case) -> bool:
    return len({source.group for source in case.cited}) == 1


def _thin(case: Case) -> bool:
    return bool(case.facts) and case.request.confidence is not None and case.request.confidence < LITTLE


def evidence(case: Case) -> Iterator[Fault]:
    """Told as issues that take few points or none: the ceiling does."""
    weak, total = case.share(Mark.SINGLE), len(case.statements)
    if weak:
        yield fault("accuracy", "major" if weak >= HALF else "minor", "whole report",
                    f"{round(weak * total)} of {total} statements rest on one source that is not known to be reliable",
                    cost=0.0)  # fmt: skip
    if _one_voice(case):
        yield fault("citation", "minor", "whole report", "everything rests on one independent source", cost=0.5)
    if _thin(case):
        yield fault("completeness", "minor", "whole report",
                    f"the evidence is thin: confidence {case.request.confidence:g} of 10", cost=0.0)  # fmt: skip
