"""A thread is a conversation; a run is one execution on it."""

import re
from datetime import datetime
from enum import StrEnum
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from assay.errors import StorageError
from assay.model.event import ACTIVE, RunStatus, Status
from assay.model.memory import Preferences
from assay.model.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Plan, Style
from assay.model.question import Depth, Mode
from assay.model.record import Record

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


class Stop(StrEnum):
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


class Run(Record):
    id: str
    thread: str
    question: str
    status: RunStatus = RunStatus.QUEUED
    stage: Status = Status.PENDING
    started: datetime
    finished: datetime | None = None
    settings: str = ""  # hash of the settings the run was started with
    options: dict[str, object] = {}  # what the caller chose; a resumed run is rebuilt from it
    error: str | None = None

    @property
    def active(self) -> bool:
        return self.status in ACTIVE

    @property
    def user(self) -> str:
        """Who has asked."""
        return str(self.options.get("user", ""))

    @property
    def can_wait(self) -> bool:
        """Until nothing else does."""
        return self.options.get("priority") == "low"


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


class Options(Record):
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
    usd: float | None = Field(
        default=None, ge=0, le=MOST_USD, allow_inf_nan=False
    )  # the most this run may cost; None: what the settings say

    def by_plan(self, plan: Plan, before: Plan) -> "Options":
        """What a plan says of money and length holds for the run; what it leaves out stays."""
        own = {"usd": (plan.usd, before.usd), "words": (plan.words, before.words)}
        said = {name: new for name, (new, old) in own.items() if new != old and new is not None}
        return self.model_copy(update=said)

    def cap(self, usual: float) -> float:
        """Dollars this run may cost; `usual` is what the settings say."""
        return usual if self.usd is None else self.usd


def chosen(run: Run) -> Options:
    """What was chosen for a run."""
    try:
        options = Options.model_validate(run.options)
    except ValidationError as error:
        raise StorageError(
            f"what was chosen for run {run.id} cannot be read: {error.errors()[0]['msg'].lower()}",
            help="Ask again on a new thread.",
        ) from error
    if "sources" not in run.options and options.source == "auto" and not options.docs:
        return options.model_copy(update={"sources": ("demo",)})  # begun when auto knew of nothing else
    return options
