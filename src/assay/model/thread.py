"""A thread is a conversation; a run is one execution on it."""

from datetime import datetime

from pydantic import Field

from assay.model.event import RunStatus, Status
from assay.model.memory import Preferences
from assay.model.plan import Style
from assay.model.question import Depth, Mode
from assay.model.record import Record


class Thread(Record):
    id: str
    title: str
    created: datetime
    updated: datetime
    mode: Mode | None = None  # said for this thread; None: what the settings say


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
        return self.status in (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.WAITING)


class Options(Record):
    """What a caller chose for one question; everything else comes from the settings."""

    depth: Depth = Depth.STANDARD
    mode: Mode | None = None  # None: what was said for the thread, or else in the settings
    user: str = "local"  # whose memory is used
    interactive: bool = False  # whether somebody can answer questions
    docs: tuple[str, ...] = ()
    source: str = "auto"
    sources: tuple[str, ...] = ()  # what was chosen for the run; a resumed one asks the same
    web: bool = False  # search the open web too, where documents are given
    private: bool = False  # the thread has been about documents: no model sees it that was not asked for by name
    style: Style | None = None  # None: the person's preference, or what the settings say
    words: int | None = Field(default=None, ge=50, le=20_000)
    preferences: Preferences = Preferences()  # what was remembered of the person when the run began
    context: str = ""  # what the person wants the planner to know besides the question
    domains: tuple[str, ...] = ()  # fields the question belongs to
    model: str | None = None  # who thinks; None: what the settings say
    usd: float | None = Field(
        default=None, ge=0, le=10_000, allow_inf_nan=False
    )  # the most this run may cost; None: what the settings say
