"""What a thread has come to: its state at any moment, its report, and the documents that it rests on."""

from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from assay.errors import NotFoundError
from assay.model.report import ReportData
from assay.model.source import Document, Kind
from assay.model.thread import Thread
from assay.server import etags
from assay.server.access import Caller, OwnThread, SeenThread
from assay.server.bodies import TAGGED, Body, refusals
from assay.server.paths import hidden
from assay.server.problems import MalformedError
from assay.server.reports import OfRun, report_of
from assay.server.service import Service, Serving
from assay.server.shown import linked_report, shown_report
from assay.view import StateView

router = APIRouter(tags=["state"])
CONTEXT = 400  # characters shown before and after a passage
MOST_OFFSET = 1 << 40

Checkpoint = Annotated[
    str | None,
    Query(
        pattern="^[0-9a-fA-F-]{1,36}$",
        description="A moment of the history: its checkpoint, the beginning of that, or its number.",
        examples=["3"],
    ),
]


class State(Body):
    """`values`: see the reference of the state view; `next`: the stages that are due."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "values": {
                        "status": "searching",
                        "user_inputs": {"goal": "How did Tesla's deliveries change over 2023?"},
                    },
                    "next": ["fuse"],
                    "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000",
                }
            ]
        }
    )

    values: StateView
    next: tuple[str, ...]
    checkpoint_id: str | None


@router.get(
    "/api/threads/{threadId}/state", summary="The state of a thread", operation_id="get_state", response_model=State,
    responses={**refusals(404, 409), **TAGGED},
)  # fmt: skip
async def get_state(thread: OwnThread, service: Serving, request: Request, checkpoint: Checkpoint = None) -> Response:
    """As it is now, or was at a moment of its history."""
    view = await _seen(service, thread, checkpoint)
    told = {"values": hidden(view.plain()), "next": list(view.next), "checkpointId": view.checkpoint}
    return etags.answer(request, told)


async def _seen(service: Service, thread: Thread, checkpoint: str | None) -> StateView:
    if checkpoint is None:
        return await service.engine.view(thread.id)
    try:
        return await service.engine.view_at(thread.id, checkpoint)
    except NotFoundError as error:  # which may tell whose it is
        raise no_checkpoint() from error


def no_checkpoint() -> NotFoundError:
    return NotFoundError("this thread has no such checkpoint", help="Look at its history.")


@router.get(
    "/api/threads/{threadId}/report", summary="The report", operation_id="get_report", response_model=ReportData,
    responses={**refusals(404), **TAGGED},
)  # fmt: skip
async def get_report(
    thread: SeenThread, caller: Caller, service: Serving, request: Request, run: OfRun = None
) -> Response:
    """The latest that is finished, or that of an earlier run, as a structure: every sentence with the claims, and every
    claim with the spans of documents, that it rests on. A link shows the latest, without its plan, queries and
    checkpoints."""
    shown = shown_report if caller.share is None else linked_report
    report = await report_of(service, caller, thread, run)
    return etags.answer(request, shown(report, service.redaction).plain())


# Documents -----------------------------------------------------------------------------------------------

Hash = Annotated[str, Path(pattern="^[0-9a-fA-F]{8,64}$", description="The hash of a document, or its beginning.")]
Offset = Annotated[int | None, Query(ge=0, le=MOST_OFFSET, description="In characters of the document's text.")]


class DocumentText(Body):
    """`text` goes from `start` to `end` of a document that has `length` characters; the passage that was asked for
    stands at `passage`, both counted from the beginning of the document."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    "title": "Annual report", "url": "https://example.com/annual-report", "host": "example.com",
                    "kind": "web", "author": None, "published": "2024-01-31", "fetched": "2026-01-01T12:00:10Z",
                    "length": 48211, "start": 1200, "end": 2200, "text": "... rose by 38 percent ...",
                    "passage": [1600, 1800],
                }
            ]
        }
    )  # fmt: skip

    hash: str
    title: str
    url: str
    host: str = ""
    kind: Kind
    author: str | None = None
    published: date | None = None
    fetched: datetime
    length: int
    start: int
    end: int
    text: str
    passage: tuple[int, int] | None = Field(default=None)


@router.get(
    "/api/threads/{threadId}/documents/{hash}", summary="A document it rests on", operation_id="read_document",
    response_model=DocumentText, responses={**refusals(404), **TAGGED},
)  # fmt: skip
async def read_document(
    hash: Hash, thread: SeenThread, caller: Caller, service: Serving, request: Request,
    start: Offset = None, end: Offset = None,
) -> Response:  # fmt: skip
    """All of its text, or a passage with what stands around it. Somebody with a link sees the passages that the report
    cites, and nothing around them."""
    if (start is None) is not (end is None) or (start is not None and end is not None and start >= end):
        raise MalformedError("a passage goes from a start to an end behind it")
    document = await service.engine.document(hash, thread=thread.id)
    place = (start, end) if start is not None and end is not None else None
    if caller.share is not None and not await _is_cited(service, thread, document.hash, place):
        raise NotFoundError("the report cites no such passage", help="Its claims list those that it does.")
    return etags.answer(request, _shown(document, place, CONTEXT if caller.share is None else 0))


async def _is_cited(service: Service, thread: Thread, document: str, place: tuple[int, int] | None) -> bool:
    claims = (await service.engine.report(thread.id)).claims
    spans = [span for claim in claims for span in (*claim.spans, *claim.against) if span.document == document]
    return place is not None and any(span.start <= place[0] and place[1] <= span.end for span in spans)


def _shown(document: Document, place: tuple[int, int] | None, around: int) -> DocumentText:
    length = len(document.text)
    if place is not None and place[1] > length:
        raise NotFoundError(f"the document has {length:,} characters", help="Name a passage of it.")
    first, last = (max(place[0] - around, 0), min(place[1] + around, length)) if place else (0, length)
    return DocumentText(
        hash=document.hash, title=document.title, url=hidden(document.url), host=document.host, kind=document.kind,
        author=document.author, published=document.published, fetched=document.fetched, length=length, start=first,
        end=last, text=document.text[first:last], passage=place,
    )  # fmt: skip
