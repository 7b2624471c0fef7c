"""Stopping for a person. When it was asked goes into the checkpoint with the question, so that a deadline outlives
whoever asked."""

from datetime import datetime
from typing import Any

from langgraph.types import interrupt

from assay.model.review import OnTimeout
from assay.state import Plain


def ask(
    kind: str,
    question: str,
    asked: datetime,
    *,
    seconds: int | None,
    on_timeout: OnTimeout,
    options: list[str],
    **shown: Any,
) -> Plain:
    """What was answered, in the form `admission.validated` or `questions.timed` gave it. A node that asks has done
    nothing before: it is run again from its beginning."""
    answer: Plain = interrupt(
        {"kind": kind, "question": question, "options": options, "asked": asked.isoformat(), "seconds": seconds,
         "on_timeout": on_timeout, **shown}
    )  # fmt: skip
    return answer
