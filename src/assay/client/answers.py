"""What the server answers, where it is worth a name. What a newer server says besides is ignored."""

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from assay.model.event import RunStatus


class Answer(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class Interrupt(Answer):
    """A question for a person: answer it with `resume(thread, interrupt.id, value)`."""

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    due: datetime | None = None


class Started(Answer):
    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: Interrupt | None = None


class StreamEvent(NamedTuple):
    """`name` is what a browser would call it; `data` has run, seq, kind, stage and the event's own data."""

    id: str
    name: str
    data: dict[str, Any]

    @property
    def ends(self) -> bool:
        """Whether the run moves no more."""
        status = self.data.get("data", {}).get("status")
        return self.data.get("kind") == "run" and status in ("done", "failed", "cancelled")


class Page(NamedTuple):
    """Some of a list, and where the next page begins."""

    items: list[dict[str, Any]]
    cursor: str | None
