"""A thread on one line, and where a page of them ends."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import ConfigDict, Field

from assay.model.event import RunStatus
from assay.model.question import Mode
from assay.model.thread import Cursor, Thread, ThreadSummary, is_id
from assay.server.bodies import Body
from assay.server.problems import MalformedError
from assay.server.service import Service


class Summary(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "4f1c2a9b7d3e", "title": "How did Tesla's deliveries change over 2023?",
                    "created": "2026-01-01T12:00:00Z", "updated": "2026-01-01T12:01:30Z", "mode": None,
                    "status": "done", "question": "How did Tesla's deliveries change over 2023?", "turns": 1,
                    "usd": 0.31, "parent": None, "left": False, "damaged": False,
                }
            ]
        }
    )  # fmt: skip

    id: str
    title: str
    created: datetime
    updated: datetime
    mode: Mode | None = None
    status: RunStatus | None = Field(default=None, description="Of its last run; null: nothing was asked yet.")
    question: str = Field(default="", description="Of its last run.")
    turns: int = 0
    usd: float = Field(default=0.0, description="What all its runs have cost.")
    parent: str | None = Field(default=None, description="The thread it is a branch of.")
    left: bool = Field(default=False, description="It is running, by a process that is gone.")
    damaged: bool = Field(default=False, description="Something of it is not what was written.")


async def summary(service: Service, thread: Thread) -> Summary:
    runs = await service.engine.threads.runs(thread.id)
    branch = await service.engine.threads.branch(thread.id)
    spent = [(await service.premises.ledger.spent(run.id)).usd for run in runs]
    return Summary(
        id=thread.id, title=thread.title, created=thread.created, updated=thread.updated, mode=thread.mode,
        status=runs[-1].status if runs else None, question=runs[-1].question if runs else "", turns=len(runs),
        usd=round(sum(spent), 6), parent=branch.parent if branch else None,
    )  # fmt: skip


def cursor_of(page: Sequence[ThreadSummary]) -> str | None:
    end = end_of(page)
    return closed(*end) if end else None


def end_of(page: Sequence[ThreadSummary]) -> Cursor | None:
    """Threads that are damaged say nothing of their time, and are told of again."""
    last = next((one for one in reversed(page) if not one.damaged or one.title), None)
    return Cursor(last.updated, last.id) if last else None


def closed(moment: datetime, id: str) -> str:
    """Where a page of anything ends, the newest first; `opened` reads it."""
    return base64.urlsafe_b64encode(json.dumps([moment.isoformat(), id]).encode()).decode().rstrip("=")


def opened(cursor: str) -> Cursor:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        moment, id = json.loads(text)
        found = Cursor(datetime.fromisoformat(moment), id)
        found.updated.astimezone(UTC)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:  # the year 0 of some zone
        raise _malformed() from error
    if found.updated.tzinfo is None or not isinstance(id, str) or not is_id(id):
        raise _malformed()
    return found


def _malformed() -> MalformedError:
    return MalformedError("this is no cursor", help="Use the nextCursor of a page as it is, or none for the first.")
