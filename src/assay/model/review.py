"""A question put to a person, from when it was asked until it was answered."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

from assay.model.record import Record


class Decision(StrEnum):
    """What can be said at a breakpoint. Skip: go on without having decided."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    SKIP = "skip"


OnTimeout = Literal["approve", "end", "guess"]  # go on; end with what there is; take the defaults
By = Literal["person", "timer", "mode"]  # mode: the thread was switched to auto while it asked


class Review(Record):
    """`id` names it for good: the answer to another question never fits."""

    id: str
    thread: str
    run: str
    kind: str  # clarification, planning, or approve_ and the place of a breakpoint
    question: str
    opened: datetime
    due: datetime | None = None  # from then on no person's answer is taken
    on_timeout: OnTimeout = "end"
    answered: datetime | None = None
    answer: Any = None  # as it was accepted; applied again if the process died before the run took it
    by: By | None = None

    @property
    def refusal(self) -> str:
        """Why no answer is taken any more: when and by whom there was one, so that nobody wonders whose word counts."""
        if self.answered is None:
            return f"the time for an answer ended, on {_utc(self.due)}"
        return f"answered already, on {_utc(self.answered)}, {_WHO[str(self.by)]}"


def _utc(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "no day"


_WHO = {"person": "by a person", "timer": "by the timer", "mode": "by switching its thread to auto"}
