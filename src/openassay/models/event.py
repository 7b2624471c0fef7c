"""What happened in a run, in order. Progress, the run log and the journal all read the same events."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from openassay.models.base import Record


class Status(StrEnum):
    """Where a question stands (requirement F-01)."""

    PENDING = "pending"
    PLANNING = "planning"
    SEARCHING = "searching"
    ANALYZING = "analyzing"
    WRITING = "writing"
    REVIEWING = "reviewing"
    REVISING = "revising"
    COMPLETED = "completed"
    FAILED = "failed"


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    CANCELLED = "cancelled"
    DONE = "done"
    FAILED = "failed"


AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING)
ACTIVE = (*AT_WORK, RunStatus.WAITING)
ENDED = frozenset(RunStatus) - set(ACTIVE)

EventKind = Literal[
    "run",  # the run changed its own status
    "enter",  # a stage began
    "leave",  # a stage ended
    "error",  # a stage or one of its tasks failed
    "notice",  # something was degraded, skipped or refused
    "search",  # a query was asked
    "read",  # a document was read
    "skip",  # a document was not read, and why
    "finding",  # a sub-question gained evidence
    "section",  # a section of the answer is ready
    "citation",  # a source was cited for the first time
    "token",  # a piece of the answer
    "interrupt",  # a question for the person is open
    "quote",  # what the run will probably cost
    "think",  # a step of reasoning is done, and who did it
    "spend",  # money, tokens or requests were used
    "done",  # the report is ready
]


class Event(Record):
    seq: int = Field(default=0, ge=0)
    run: str
    time: datetime
    kind: EventKind
    stage: str = ""
    parent: int | None = None
    data: dict[str, object] = {}
