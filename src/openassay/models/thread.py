"""A thread is a conversation; a run is one execution on it."""

import re
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Any, Literal, NamedTuple

from pydantic import Field

from openassay.models.base import Record
from openassay.models.event import ACTIVE, RunStatus, Status
from openassay.models.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Depth, Mode, Plan, Style
from openassay.models.user import Preferences

# Moments of a thread, what a branch may change at one, and the tree that branches make.

LONGEST_DELIVERABLE = 500  # characters
OUTLINE = frozenset({"move_section", "rename_section", "words"})  # edits of a plan that change how it is told alone


class CheckpointInfo(Record):
    """A checkpoint, as a person looks for it."""

    checkpoint: str
    short: str  # as much of the checkpoint's id as no other of the thread begins with
    number: int  # from 1, in the order of time
    time: datetime
    run: str
    after: tuple[str, ...] = ()  # stages that were just finished
    next: tuple[str, ...] = ()  # none at the end of a run: a branch from here is a copy
    begins: bool = False  # the question was put, and nothing of it done yet
    planned: bool = False
    round: int = 0
    iteration: int = 0
    summary: str = ""
    usd: float = 0.0  # spent by its run until then

    @property
    def label(self) -> str:
        before = "at the beginning" if self.begins else f"before {', '.join(self.next)}"
        return f"moment {self.number}, {'after ' + ', '.join(self.after) if self.after else before}"


class RestartPoint(IntEnum):
    """Where in a run a change takes effect: what is after it has to be done again."""

    ASKED = 0
    SEARCHING = 1
    WRITING = 2
    ANYWHERE = 3


class BranchChanges(Record):
    """What is different on a branch. None, or nothing, leaves it as it was."""

    question: str | None = None
    plan: dict[str, object] | None = None  # a whole one
    edits: tuple[dict[str, object], ...] = ()  # of the plan, as parse_edits reads them
    deliverable: str | None = Field(default=None, min_length=1, max_length=LONGEST_DELIVERABLE)
    style: Style | None = None
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS)
    source: str | None = None
    docs: tuple[str, ...] | None = None
    web: bool | None = None
    without: tuple[str, ...] = ()  # sources: an id of the report, an address, or a host
    depth: Depth | None = None
    model: str | None = None
    usd: float | None = Field(default=None, ge=0, le=MOST_USD, allow_inf_nan=False)

    @property
    def overrides(self) -> dict[str, object]:
        return {name: value for name, value in self.plain().items() if value not in (None, [])}

    @property
    def affects_sources(self) -> bool:
        return self.source is not None or self.docs is not None or self.web is not None or bool(self.without)

    @property
    def needs_plan(self) -> bool:
        return self.plan is not None or bool(self.edits) or self.deliverable is not None

    @property
    def restart_point(self) -> RestartPoint:
        if self.question is not None or self.depth is not None:
            return RestartPoint.ASKED
        is_outline_only = self.plan is None and all(edit.get("op") in OUTLINE for edit in self.edits)
        if self.affects_sources or not is_outline_only:
            return RestartPoint.SEARCHING
        if self.edits or self.deliverable is not None or self.style is not None or self.words is not None:
            return RestartPoint.WRITING
        return RestartPoint.ANYWHERE

    @property
    def description(self) -> str:
        """In few words."""
        parts = [
            "another question" if self.question is not None else "",
            "another plan" if self.plan is not None or self.edits else "",
            f"as {' '.join(self.deliverable.split())}" if self.deliverable else "",
            f"{self.style} style" if self.style else "",
            f"{self.words:,} words" if self.words else "",
            f"source {self.source}" if self.source is not None else "",
            f"documents {', '.join(self.docs)}" if self.docs else "without documents" if self.docs is not None else "",
            "" if self.web is None else "with the web" if self.web else "without the web",
            f"without {', '.join(self.without)}" if self.without else "",
            f"depth {self.depth}" if self.depth else "",
            f"model {self.model}" if self.model else "",
            f"at most ${self.usd:,.2f}" if self.usd is not None else "",
        ]
        return ", ".join(part for part in parts if part) or "as it was"


class BranchTree(Record):
    """A thread with the branches that began on it."""

    thread: str
    title: str
    status: RunStatus | None = None  # of its last run
    usd: float = 0.0
    parent: str | None = None
    of_deleted: bool = False  # its parent is gone
    changed: str = ""
    moment: str = ""  # of the parent, at which it began
    checkpoint: str | None = None  # of that moment
    branches: tuple["BranchTree", ...] = ()


# A question put to a person, from when it was asked until it was answered.


class Decision(StrEnum):
    """What can be said at a breakpoint. Skip: go on without having decided."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    SKIP = "skip"


ALL_OPTIONS, CUSTOM_OPTION = "All of the above", "Custom"  # offered with the options of a planning question
OnTimeout = Literal["approve", "end", "guess"]  # go on; end with what there is; take the defaults
AnswerOrigin = Literal["person", "timer", "mode"]  # mode: the thread was switched to auto while it asked


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
    by: AnswerOrigin | None = None

    @property
    def refusal(self) -> str:
        """Why no answer is taken any more: when and by whom there was one, so that nobody wonders whose word counts."""
        if self.answered is None:
            return f"the time for an answer ended, on {_format_utc(self.due)}"
        return f"answered already, on {_format_utc(self.answered)}, {_WHO[str(self.by)]}"


def _format_utc(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if moment else "no day"


_WHO = {"person": "by a person", "timer": "by the timer", "mode": "by switching its thread to auto"}


Priority = Literal["normal", "low"]  # low: taken up when nothing else waits
LOCAL = "local"  # whoever works on this machine, where nobody has a name
_ID = re.compile("[0-9a-z]{1,32}")


def is_id(text: str) -> bool:
    """Whether it can be that of a thread or a run, and so the name of a file: it may come from elsewhere."""
    return _ID.fullmatch(text) is not None


class Thread(Record):
    id: str
    title: str
    created: datetime
    updated: datetime
    mode: Mode | None = None  # said for this thread; None: what the settings say
    owner: str = LOCAL


class StopRequest(StrEnum):
    """What is asked of a run that another process works on."""

    NO = ""
    CANCEL = "cancel"  # now; calls in flight are given up
    DRAIN = "drain"  # after the step it is at


class Branch(Record):
    """A thread that began as a copy of another one, at one of its checkpoints, with something changed."""

    thread: str
    parent: str
    checkpoint: str
    changes: dict[str, object] = {}
    created: datetime


class ResearchOptions(Record):
    """What a caller chose for one question; everything else comes from the settings."""

    depth: Depth = Depth.STANDARD
    mode: Mode | None = None  # None: what was said for the thread, or else in the settings
    user: str = LOCAL  # whose memory is used, and whose a new thread is
    interactive: bool = False  # whether somebody can answer questions
    approve_plan: bool = False  # whether they want to see the plan before it is searched for, whatever the settings say
    docs: tuple[str, ...] = ()
    source: str = "auto"
    sources: tuple[str, ...] = ()  # what was chosen for the run; a resumed one asks the same
    web: bool = False  # search the open web too, where documents are given
    private: bool = False  # the thread has been about documents: no model sees it that was not asked for by name
    style: Style | None = None  # None: the person's preference, or what the settings say
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS)
    preferences: Preferences = Preferences()  # what was remembered of the person when the run began
    veto: tuple[str, ...] = ()  # documents this run takes out of the thread's last report; it asks nothing new
    lineage: tuple[str, ...] = ()  # runs this one continues: what they paid for is not paid again
    context: str = ""  # what the person wants the planner to know besides the question
    domains: tuple[str, ...] = ()  # fields the question belongs to
    model: str | None = None  # who thinks; None: what the settings say
    priority: Priority = "normal"
    request: str = ""  # the id of the request that began it
    trace: str = ""  # where that request stands in a trace, as a W3C traceparent
    usd: float | None = Field(default=None, ge=0, le=MOST_USD, allow_inf_nan=False)  # None: what the settings say

    def with_plan(self, plan: Plan, before: Plan) -> "ResearchOptions":
        """What a plan says of money and length holds for the run; what it leaves out stays."""
        own = {"usd": (plan.usd, before.usd), "words": (plan.words, before.words)}
        said = {name: new for name, (new, old) in own.items() if new != old and new is not None}
        return self.model_copy(update=said)

    def max_usd(self, usual: float) -> float:
        """Dollars this run may cost; `usual` is what the settings say."""
        return usual if self.usd is None else self.usd


class Run(Record):
    id: str
    thread: str
    question: str
    status: RunStatus = RunStatus.QUEUED
    stage: Status = Status.PENDING
    started: datetime
    finished: datetime | None = None
    settings: str = ""  # hash of the settings the run was started with
    options: ResearchOptions = ResearchOptions()  # what the caller chose; a resumed run is rebuilt from it
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.status in ACTIVE


class ThreadSummary(Record):
    """A thread on one line of a list."""

    id: str
    title: str
    created: datetime
    updated: datetime
    status: RunStatus | None = None  # of its last run; None: nothing was asked yet
    question: str = ""  # of its last run
    turns: int = 0
    usd: float = 0.0  # what all its runs have cost
    parent: str | None = None  # the thread it is a branch of
    owner: str = LOCAL
    left: bool = False  # it is running, by a process that is gone
    damaged: bool = False  # something of it is not what was written; what cannot be told is left out


class Cursor(NamedTuple):
    """Where a page of threads has ended: of the threads as they were then, the newest first."""

    updated: datetime
    id: str


# A source that a person will not have, and what a report loses with it.


class SourceVeto(Record):
    """Kept with the thread: later questions do without it too."""

    document: str
    url: str
    title: str = ""


class Consequences(Record):
    """What would change: statements by claim id, sentences by their text, sub-questions in their own words."""

    sources: tuple[SourceVeto, ...]
    lost: tuple[str, ...] = ()  # claims that rest on nothing else
    weaker: tuple[str, ...] = ()  # claims that keep other sources
    sentences: tuple[str, ...] = ()  # of the report, that are checked again or go
    unanswered: tuple[str, ...] = ()  # sub-questions that nothing else answers
    untouched: int = 0  # claims that stay as they are, unpaid for
