"""What was asked and how it was understood."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from assay.model.record import Record

SHORTEST, LONGEST = 10, 2000  # characters of a stand-alone question


class Depth(StrEnum):
    QUICK = "quick"
    STANDARD = "standard"
    COMPREHENSIVE = "comprehensive"


class Mode(StrEnum):
    AUTO = "auto"
    PLAN = "plan"


class Clarity(StrEnum):
    PENDING = "pending"
    CLEAR = "clear"
    NEEDS_CLARIFICATION = "needs_clarification"


Intent = Literal["research", "follow_up", "compare", "more", "cancel", "small_talk", "empty", "unclear"]


class Turn(Record):
    """One message of a thread."""

    role: Literal["user", "assistant"]
    content: str


class Understanding(Record):
    """A question made to stand alone, or the reason why it cannot."""

    question: str
    intent: Intent = "research"
    query_class: Literal["fact", "change", "comparison", "cause", "overview", "procedure", "yes_no"] = "overview"
    primary_subject: str | None = None
    subjects: tuple[str, ...] = ()
    topic_focus: str = ""
    temporal_scope: str | None = None
    complexity: Literal["simple", "moderate", "complex"] = "moderate"
    ambiguity_level: float = Field(default=0.0, ge=0, le=1)
    clarification_question: str | None = None
    clarification_options: tuple[str, ...] = ()  # answers to choose from, where the likely ones are known
    suggested_questions: tuple[str, ...] = ()

    @property
    def needs_clarification(self) -> bool:
        return self.clarification_question is not None


class PlannerQuestion(Record):
    """A question put to the person before planning; `Custom` is always allowed besides the options."""

    id: str
    about: Literal["scope", "timeframe", "depth", "use"]
    text: str
    options: tuple[str, ...] = Field(min_length=4, max_length=4)
    all_of_the_above: bool = False


class Gate(Record):
    """Why a run goes on at once or asks first."""

    mode: Mode
    flipped: bool = False
    clarity: float = Field(ge=0, le=1)
    coherence: float = Field(ge=0, le=1)
    estimated_usd: float = Field(ge=0)
    preview_hits: int = Field(ge=0)
    reason: str
