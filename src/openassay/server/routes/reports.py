"""The state of a thread, its report as data and as files, and what it rests on: documents and sources."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request
from fastapi import Path as PathParameter
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from openassay.engine.state_view import StateView
from openassay.errors import NotFoundError, no_run
from openassay.export import FORMATS, ZIP, FormatName, Report
from openassay.models.event import RunStatus
from openassay.models.evidence import DocumentKind
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import SourceVeto, Thread
from openassay.server import responses, runs
from openassay.server.auth import Caller, OwnThread, VisibleThread, WritableThread, Writer
from openassay.server.bodies import (
    NOT_MODIFIED,
    Body,
    Id,
    hide_file_urls,
    redact_report,
    redact_report_for_link,
    refusals,
    with_examples,
)
from openassay.server.responses import ForbiddenError, MalformedError, content_disposition
from openassay.server.runs import StartResponse, to_start_response
from openassay.server.service import Principal, Service, ServiceDep

state_router = APIRouter(prefix="/api/threads/{threadId}", responses={**refusals(404), **NOT_MODIFIED}, tags=["state"])
sources_router = APIRouter(prefix="/api/threads/{threadId}/sources", responses=refusals(404), tags=["sources"])
exports_router = APIRouter(responses=refusals(404), tags=["exports"])
PASSAGE_CONTEXT = 400  # characters shown before and after a passage
MAX_OFFSET = 1 << 40
CHUNK_BYTES = 65_536
RunQuery = Annotated[Id | None, Query(description="One of the thread's runs; the latest finished one if left out.")]


async def load_report(service: Service, caller: Principal, thread: Thread, run: str | None) -> Report:
    """Return a report, or raise NotFoundError. A link shows the latest: other runs are unknown to it."""
    if run is not None and caller.share is not None:
        done = [one.id for one in await service.engine.threads.runs(thread.id) if one.status is RunStatus.DONE]
        if run not in done[-1:]:
            raise no_run(run)
    return await service.engine.history.report(thread.id, run)


def redact_for(caller: Principal, report: Report, service: Service) -> Report:
    return (redact_report if caller.share is None else redact_report_for_link)(report, service.redaction)


# State, reports and documents -----------------------------------------------------------------------------------

Checkpoint = Annotated[
    str | None,
    Query(
        pattern="^[0-9a-fA-F-]{1,36}$",
        description="A checkpoint of the history: its id, the beginning of that, or its number.",
        examples=["3"],
    ),
]


class StateBody(Body):
    """`values`: see the reference of the state view; `next`: the nodes that run next."""

    model_config = with_examples("""
        {"values": {"status": "searching", "user_inputs": {"goal": "How did Tesla's deliveries change over 2023?"}},
        "next": ["fuse"], "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000"}
        """)

    values: StateView
    next: tuple[str, ...]
    checkpoint_id: str | None


@state_router.get("/state", summary="Get the state of a thread", response_model=StateBody, responses=refusals(409))
async def get_state(
    thread: OwnThread, service: ServiceDep, request: Request, checkpoint: Checkpoint = None
) -> Response:
    """As it is now, or was at a checkpoint of its history."""
    try:
        view = await (
            service.engine.view(thread.id) if checkpoint is None else service.engine.history.view(thread.id, checkpoint)
        )
    except NotFoundError as error:
        if checkpoint is None:
            raise
        raise no_checkpoint() from error  # the message of the other may say whose checkpoint it is
    body = {"values": hide_file_urls(view.plain()), "next": list(view.next), "checkpointId": view.checkpoint}
    return responses.respond_with_etag(request, body)


def no_checkpoint() -> NotFoundError:
    return NotFoundError("this thread has no such checkpoint", help="Look at its history.")


@state_router.get("/report", summary="Get the report", response_model=ReportData)
async def get_report(
    thread: VisibleThread, caller: Caller, service: ServiceDep, request: Request, run: RunQuery = None
) -> Response:
    """The latest finished one, or that of an earlier run, as data: every sentence with its claims, and every claim with
    the spans of documents that it rests on. A link shows the latest, without its plan, queries and checkpoints."""
    report = await load_report(service, caller, thread, run)
    return responses.respond_with_etag(request, redact_for(caller, report, service).plain())


Hash = Annotated[
    str, PathParameter(pattern="^[0-9a-fA-F]{8,64}$", description="The hash of a document, or its beginning.")
]
Offset = Annotated[int | None, Query(ge=0, le=MAX_OFFSET, description="In characters of the document's text.")]


class DocumentText(Body):
    """`text` goes from `start` to `end` of a document of `length` characters; `passage` is the one that was asked for.
    Both are counted from the beginning of the document."""

    model_config = with_examples("""
        {"hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "title": "Annual report",
        "url": "https://example.com/annual-report", "host": "example.com", "kind": "web", "author": null,
        "published": "2024-01-31", "fetched": "2026-01-01T12:00:10Z", "length": 48211, "start": 1200, "end": 2200,
        "text": "... rose by 38 percent ...", "passage": [1600, 1800]}
        """)

    hash: str
    title: str
    url: str
    host: str = ""
    kind: DocumentKind
    author: str | None = None
    published: date | None = None
    fetched: datetime
    length: int
    start: int
    end: int
    text: str
    passage: tuple[int, int] | None = Field(default=None)


@state_router.get("/documents/{hash}", summary="Read a document that the report rests on", response_model=DocumentText)
async def read_document(
    hash: Hash,
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    request: Request,
    start: Offset = None,
    end: Offset = None,
) -> Response:
    """All of its text, or a passage with its context. A link shows the passages that the report cites, without their
    context."""
    if (start is None) is not (end is None) or (start is not None and end is not None and start >= end):
        raise MalformedError("a passage needs a start, and an end after it")
    document = await service.engine.document(hash, thread=thread.id)
    passage = (start, end) if start is not None and end is not None else None
    first, last, length = 0, len(document.text), len(document.text)
    if caller.share is not None:
        claims = (await service.engine.history.report(thread.id)).claims
        spans = [span for claim in claims for span in (*claim.spans, *claim.against) if span.document == document.hash]
        if passage is None or not any(span.start <= passage[0] and passage[1] <= span.end for span in spans):
            raise NotFoundError("the report cites no such passage", help="Its claims list those that it does.")
    if passage is not None:
        if passage[1] > length:
            raise NotFoundError(f"the document has {length:,} characters", help="Name a passage of it.")
        context = PASSAGE_CONTEXT if caller.share is None else 0
        first, last = max(passage[0] - context, 0), min(passage[1] + context, length)
    fields = {"hash", "title", "host", "kind", "author", "published", "fetched"}
    body = DocumentText(
        **document.model_dump(include=fields),
        url=hide_file_urls(document.url),
        length=length,
        start=first,
        end=last,
        text=document.text[first:last],
        passage=passage,
    )
    return responses.respond_with_etag(request, body)


# Sources ------------------------------------------------------------------------------------------------------

SourceId = Annotated[
    str,
    PathParameter(
        alias="sourceId",
        pattern="^([Ss][0-9]{1,6}|[0-9a-fA-F]{8,64})$",
        description="Its id in the report (S1), or the hash of its document.",
        examples=["S1"],
    ),
]


class Excerpt(Body):
    """A quote of a source that supports a claim, or speaks against it."""

    claim: str
    start: int
    end: int
    quote: str
    against: bool = False


class SourceBody(SourceCard, Body):
    model_config = with_examples("""
        {"id": "S1", "title": "Annual report", "url": "https://example.com/annual-report", "host": "example.com",
        "kind": "web", "author": null, "published": "2024-01-31",
        "document": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "group": "G1",
        "whyUsed": "It answers Q1", "primary": true, "credibility": 0.8, "credibilityReasons": [], "sameAs": [],
        "pinned": false, "excerpts": [{"claim": "C1", "start": 1600, "end": 1629,
        "quote": "Deliveries rose by 38 percent"}]}
        """)

    kind: str
    credibility: float
    pinned: bool = False
    excerpts: tuple[Excerpt, ...] = ()


class VetoBody(SourceVeto, Body):
    pass


class SourceList(Body):
    """`pinned` are documents, also such that the last report does not use; `vetoed` is what the thread must not use."""

    sources: tuple[SourceBody, ...]
    pinned: tuple[str, ...] = ()
    vetoed: tuple[VetoBody, ...] = ()


@sources_router.get("", summary="List the sources of the report")
async def list_sources(thread: VisibleThread, caller: Caller, service: ServiceDep, run: RunQuery = None) -> SourceList:
    """Of the latest report, or of an earlier run's; none while there is no report. A link shows the report's own, and
    not what was pinned or vetoed."""
    values = await service.engine.state(thread.id)
    try:
        report = await load_report(service, caller, thread, run)
    except NotFoundError:
        if run is not None:
            raise
        report = None
    if caller.share is not None:
        values, pinned = {}, list[str]()
    else:
        pinned = await service.resources.pins.list_for(thread.id)
    cards = [_to_source(card, report, card.document in pinned) for card in report.sources] if report else []
    vetoed = [VetoBody(**hide_file_urls(one)) for one in values.get("vetoed") or ()]
    return SourceList(sources=tuple(cards), pinned=tuple(pinned), vetoed=tuple(vetoed))


def _to_source(card: SourceCard, report: Report, pinned: bool) -> SourceBody:
    excerpts = [
        Excerpt(claim=claim.id, start=span.start, end=span.end, quote=span.quote, against=against)
        for claim in report.claims
        for spans, against in ((claim.spans, False), (claim.against, True))
        for span in spans
        if span.document == card.document
    ]
    return SourceBody(**hide_file_urls(card.model_dump()), pinned=pinned, excerpts=tuple(excerpts))


class PinBody(Body):
    model_config = with_examples("""
        {"document": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "pinned": true}
        """)

    document: str
    pinned: bool


@sources_router.put("/{sourceId}/pin", summary="Pin a source")
async def pin_source(id: SourceId, thread: WritableThread, service: ServiceDep) -> PinBody:
    """Its document is pinned, whatever id later reports give it."""
    document = await _resolve_document(service, thread.id, id)
    await service.resources.pins.pin(thread.id, document)
    return PinBody(document=document, pinned=True)


@sources_router.delete("/{sourceId}/pin", summary="Unpin a source")
async def unpin_source(id: SourceId, thread: WritableThread, service: ServiceDep) -> PinBody:
    document = await _resolve_document(service, thread.id, id)
    await service.resources.pins.unpin(thread.id, document)
    return PinBody(document=document, pinned=False)


async def _resolve_document(service: Service, thread: str, source: str) -> str:
    """Return the hash of a source of the last report, or of any document of the thread."""
    if source[0] in "sS":
        return (await _find_card(service, thread, source)).document
    return (await service.engine.document(source, thread=thread)).hash


async def _find_card(service: Service, thread: str, source: str) -> SourceCard:
    report = await service.engine.history.report(thread)
    name = source.lower()
    found = [card for card in report.sources if card.id.lower() == name or card.document.startswith(name)]
    if len(found) != 1:
        known = ", ".join(card.id for card in report.sources) or "none"
        raise NotFoundError(f"the report has no source {source}", help=f"It has: {known}.")
    return found[0]


@sources_router.post(
    "/{sourceId}/veto",
    status_code=202,
    summary="Veto a source",
    response_model=StartResponse,
    responses=refusals(402, 409),
)
async def veto_source(id: SourceId, thread: WritableThread, caller: Writer, service: ServiceDep) -> Response:
    """A run derives again what rested on it; all else stays as it is, and later questions do not use it."""
    card = await _find_card(service, thread.id, id)
    run = await runs.veto(service, caller, thread.id, card.document)
    return to_start_response(run, None, 202)


class VetoConsequences(Body):
    """What the report would lose: ids of claims, and the texts of sentences and sub-questions."""

    model_config = with_examples("""
        {"lost": ["C1"], "weaker": ["C2"], "sentences": ["Deliveries rose by 38 percent."], "unanswered": [],
        "untouched": 7}
        """)

    lost: tuple[str, ...] = Field(default=(), description="Claims that rest on nothing else.")
    weaker: tuple[str, ...] = Field(default=(), description="Claims that keep other sources.")
    sentences: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()
    untouched: int = 0


@sources_router.get("/{sourceId}/consequences", summary="Preview the consequences of a veto")
async def get_consequences(id: SourceId, thread: OwnThread, service: ServiceDep) -> VetoConsequences:
    """Nothing is changed."""
    card = await _find_card(service, thread.id, id)
    return VetoConsequences.model_validate(await service.engine.vetoes.consequences(thread.id, [card.document]))


# Exports ------------------------------------------------------------------------------------------------------

_RENDERERS = ThreadPoolExecutor(2, "openassay-press")  # slow formats at once; others wait
_ZIP_TYPE = "application/zip"
FormatQuery = Literal[FormatName, "zip"]
_OBJECTS = {"json": "object", "csl": "array"}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            **{
                format.media.partition(";")[0]: {"schema": {"type": _OBJECTS.get(name, "string")}}
                for name, format in FORMATS.items()
            },
            _ZIP_TYPE: {"schema": {"type": "string"}},
        },
    },
    304: {"description": "Not modified."},
}


@exports_router.get(
    "/api/threads/{threadId}/export",
    summary="Export the report of a thread",
    response_class=Response,
    responses=_ANSWERS,
)
async def export_thread(
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    request: Request,
    format: Annotated[FormatQuery, Query(description="csv has the statements; zip has everything.")] = "md",
) -> Response:
    """A link shows the report alone: the zip, with everything that was read and paid for, is its owner's."""
    if format == ZIP:
        if caller.share is not None:
            raise ForbiddenError("a link shows the report alone", help=f"Choose one of {', '.join(FORMATS)}.")
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="openassay-export-"))
        try:
            path = folder / "thread.zip"
            await service.engine.archive.export(thread.id, path)
            file, size = path.open("rb"), path.stat().st_size
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        headers = {"Content-Disposition": content_disposition(thread.title, ZIP), "Content-Length": str(size)}
        return StreamingResponse(_read_chunks(file), headers=headers, media_type=_ZIP_TYPE)
    report = redact_for(caller, await service.engine.history.report(thread.id), service)
    chosen = FORMATS[format]
    executor = _RENDERERS if chosen.is_binary else None  # never on the event loop
    content = await asyncio.get_running_loop().run_in_executor(executor, chosen.write, report)
    headers = {
        **(responses.page_headers(content.decode()) if format == "html" else {}),
        "Content-Disposition": content_disposition(report.title, chosen.ending.removeprefix(".")),
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    return responses.respond_unless_seen(request, content, chosen.media, headers)


async def _read_chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    """Read an open file without a name: it is gone when it was read, or when nobody reads it."""
    with file:
        while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield chunk
