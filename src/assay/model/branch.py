"""Moments of a thread, what a branch may change at one, and the tree that branches make."""

from datetime import datetime
from enum import IntEnum

from pydantic import Field

from assay.model.event import RunStatus
from assay.model.plan import FEWEST_WORDS, MOST_USD, MOST_WORDS, Style
from assay.model.question import Depth
from assay.model.record import Record

LONGEST_DELIVERABLE = 500  # characters
OUTLINE = frozenset({"move_section", "rename_section", "words"})  # edits of a plan that change how it is told alone


class Moment(Record):
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
    def told(self) -> str:
        before = "at the beginning" if self.begins else f"before {', '.join(self.next)}"
        return f"moment {self.number}, {'after ' + ', '.join(self.after) if self.after else before}"


class Place(IntEnum):
    """Where in a run a change takes effect: what is after it has to be done again."""

    ASKED = 0
    SEARCHING = 1
    WRITING = 2
    ANYWHERE = 3


class Changes(Record):
    """What is different on a branch. None, or nothing, leaves it as it was."""

    question: str | None = None
    plan: dict[str, object] | None = None  # a whole one
    edits: tuple[dict[str, object], ...] = ()  # of the plan, as in model.edit
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
    def given(self) -> dict[str, object]:
        return {name: value for name, value in self.plain().items() if value not in (None, [])}

    @property
    def sources(self) -> bool:
        return self.source is not None or self.docs is not None or self.web is not None or bool(self.without)

    @property
    def outline_only(self) -> bool:
        """Whether the plan's edits change nothing of what is searched for."""
        return self.plan is None and all(edit.get("op") in OUTLINE for edit in self.edits)

    @property
    def needs_plan(self) -> bool:
        return self.plan is not None or bool(self.edits) or self.deliverable is not None

    @property
    def place(self) -> Place:
        if self.question is not None or self.depth is not None:
            return Place.ASKED
        if self.sources or not self.outline_only:
            return Place.SEARCHING
        if self.edits or self.deliverable is not None or self.style is not None or self.words is not None:
            return Place.WRITING
        return Place.ANYWHERE

    @property
    def told(self) -> str:
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


class Tree(Record):
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
    branches: tuple["Tree", ...] = ()
