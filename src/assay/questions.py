"""What a run waits for: LangGraph's interrupts as questions with an id, a form and a deadline.

Resuming goes by id alone. A bare value would answer whatever happens to be open, and `Command(resume=None)` crashes.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from assay.model.record import Record
from assay.model.review import OnTimeout, Review
from assay.model.thread import Run

_OWN = ("kind", "question", "options", "asked", "seconds", "on_timeout")


class OpenQuestion(Record):
    """`id` names it; answers to any other id are refused."""

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    asked: datetime | None = None
    due: datetime | None = None
    on_timeout: OnTimeout = "end"


def read(interrupts: Iterable[Any]) -> list[OpenQuestion]:
    """Questions asked before they had a deadline have none."""
    return [_read(item.id, item.value) for item in interrupts]


def _read(id: str, value: dict[str, Any]) -> OpenQuestion:
    asked = datetime.fromisoformat(value["asked"]) if value.get("asked") else None
    due = asked + timedelta(seconds=value["seconds"]) if asked and value.get("seconds") else None
    return OpenQuestion(
        id=id,
        kind=value["kind"],
        question=value["question"],
        options=tuple(value.get("options", ())),
        shown={key: held for key, held in value.items() if key not in _OWN},
        asked=asked,
        due=due,
        on_timeout=value.get("on_timeout", "end"),
    )


def review(question: OpenQuestion, run: Run, now: datetime) -> Review:
    return Review(
        id=question.id, thread=run.thread, run=run.id, kind=question.kind, question=question.question,
        opened=question.asked or now, due=question.due, on_timeout=question.on_timeout,
    )  # fmt: skip


def timed(question: OpenQuestion) -> dict[str, Any]:
    """What the timer answers."""
    if question.on_timeout == "guess":
        return {"skipped": "timer"}
    decision = "approve" if question.on_timeout == "approve" else "timeout"
    return {"decision": decision, "comment": "", "by": "timer", **asked_as(question)}


def asked_as(question: OpenQuestion) -> dict[str, str]:
    """Which breakpoint was answered: under other settings another may stand there by the time the answer comes."""
    return {"key": str(question.shown.get("key", "")), "question": question.question}


UNASKED = {"skipped": "mode"}  # what a planning question is told when its thread is switched to auto
