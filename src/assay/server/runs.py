"""What a caller is told of a run, and of the question it waits for."""

from datetime import datetime
from typing import Any

from fastapi.responses import Response
from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from assay.admission import schema
from assay.model.event import RunStatus, Status
from assay.model.question import Depth, Mode
from assay.model.review import OnTimeout
from assay.model.thread import Run, chosen
from assay.questions import OpenQuestion
from assay.server.asking import settled
from assay.server.bodies import Body
from assay.server.etags import content_of
from assay.server.paths import hidden, unplaced
from assay.server.service import Service

ASKED: JsonDict = {
    "id": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b",
    "kind": "planning",
    "question": "Which period should it cover?",
    "options": ["The last year", "The last three years", "The last decade", "All of it", "Custom"],
    "shown": {"number": 1, "of": 2},
    "asked": "2026-01-01T12:00:00Z",
    "due": "2026-01-01T12:30:00Z",
    "onTimeout": "guess",
    "form": {"type": "string", "maxLength": 2000},
}
STARTED: JsonDict = {
    "threadId": "4f1c2a9b7d3e",
    "runId": "a1b2c3d4e5f6",
    "status": "running",
    "interrupt": None,
    "error": None,
}


class Interrupt(Body):
    """A question for a person. `form` is the JSON schema of an answer, `shown` what it is about."""

    model_config = ConfigDict(json_schema_extra={"examples": [ASKED]})

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}
    asked: datetime | None = None
    due: datetime | None = None
    on_timeout: OnTimeout = "end"
    form: dict[str, Any] = Field(default={}, description="The JSON schema of an answer.")


def interrupt(question: OpenQuestion) -> Interrupt:
    return Interrupt(**hidden(question.plain()), form=schema(question.kind))


class Started(Body):
    """`status` is that of the run; one that is `waiting` comes with the question it waits for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [STARTED, {**STARTED, "status": "waiting", "interrupt": ASKED}]}
    )

    thread_id: str
    run_id: str
    status: RunStatus
    interrupt: Interrupt | None = None
    error: str | None = None


async def started(service: Service, run: Run) -> Response:
    """At the first question that comes back, or when `server.start_seconds` are over."""
    run = await settled(service, run.id, service.settings.server.start_seconds)
    asked = await service.engine.open_questions(run.thread) if run.status is RunStatus.WAITING else []
    told = Started(
        thread_id=run.thread, run_id=run.id, status=run.status, error=unplaced(run.error),
        interrupt=interrupt(asked[0]) if asked else None,
    )  # fmt: skip
    return begun(told, 202 if asked else 200)


def begun(told: Started, status: int) -> Response:
    headers = {"Location": f"/api/threads/{told.thread_id}"}
    return Response(content_of(told), status, headers=headers, media_type="application/json")


class RunBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "a1b2c3d4e5f6", "threadId": "4f1c2a9b7d3e", "status": "done", "stage": "completed",
                    "question": "How did Tesla's deliveries change over 2023?", "started": "2026-01-01T12:00:00Z",
                    "finished": "2026-01-01T12:01:30Z", "error": None, "depth": "quick", "mode": "auto",
                    "source": "auto", "model": None, "usd": 2.0,
                }
            ]
        }
    )  # fmt: skip

    id: str
    thread_id: str
    question: str
    status: RunStatus
    stage: Status
    started: datetime
    finished: datetime | None = None
    error: str | None = None
    depth: Depth
    mode: Mode | None = None
    source: str
    model: str | None = None
    usd: float | None = Field(default=None, description="The most it may cost, where that was said.")


def told(run: Run) -> RunBody:
    options = chosen(run)
    return RunBody(
        id=run.id, thread_id=run.thread, question=run.question, status=run.status, stage=run.stage,
        started=run.started, finished=run.finished, error=unplaced(run.error), depth=options.depth, mode=options.mode,
        source=options.source, model=options.model, usd=options.usd,
    )  # fmt: skip
