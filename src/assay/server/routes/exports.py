"""A thread's report as a file to keep: as text, as a page, as data, or with everything it rests on."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from assay.export.report import Report
from assay.export.table import as_csv
from assay.model.thread import Thread
from assay.server import pages
from assay.server.access import Caller, SeenThread
from assay.server.bodies import refusals
from assay.server.etags import is_among, tag_of
from assay.server.filename import disposition
from assay.server.problems import ForbiddenError
from assay.server.service import Service, Serving
from assay.server.shown import linked_report, shown_report
from assay.view.artifacts import claims

router = APIRouter(tags=["exports"])
_CHUNK = 65_536


class Format(StrEnum):
    MD = "md"
    HTML = "html"
    JSON = "json"
    CSV = "csv"  # the statements, with what each rests on
    ZIP = "zip"  # everything of the thread


_MEDIA = {
    Format.MD: "text/markdown; charset=utf-8",
    Format.HTML: "text/html; charset=utf-8",
    Format.JSON: "application/json",
    Format.CSV: "text/csv; charset=utf-8; header=present",
    Format.ZIP: "application/zip",
}
_WRITTEN: dict[Format, Callable[[Report], str]] = {
    Format.MD: lambda report: report.markdown,
    Format.HTML: lambda report: pages.written(report.title, report.html),
    Format.JSON: lambda report: report.model_dump_json(indent=2),
    Format.CSV: lambda report: as_csv(claims(report)),
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            media.partition(";")[0]: {"schema": {"type": "object" if format is Format.JSON else "string"}}
            for format, media in _MEDIA.items()
        },
    },
    304: {"description": "You have it already."},
}


@router.get(
    "/api/threads/{threadId}/export", operation_id="export_thread", summary="Take a thread's report out as a file",
    response_class=Response, responses={**_ANSWERS, **refusals(404)},
)  # fmt: skip
async def export_thread(
    thread: SeenThread,
    caller: Caller,
    service: Serving,
    request: Request,
    format: Annotated[Format, Query(description="csv has the statements; zip has everything.")] = Format.MD,
) -> Response:
    """A link shows the report alone: the zip, which has everything that was read and paid for, is its owner's."""
    if format is Format.ZIP:
        if caller.share is not None:
            raise ForbiddenError("a link shows the report alone", help="Choose md, html, json or csv.")
        return await _bundled(thread, service)
    shown = shown_report if caller.share is None else linked_report
    report = shown(await service.engine.report(thread.id), service.redaction)
    content = await asyncio.to_thread(_WRITTEN[format], report)
    headers = {
        **(pages.headers(content) if format is Format.HTML else {}),
        "Content-Disposition": disposition(report.title, format),
        "ETag": tag_of(content.encode()),
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if is_among(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_MEDIA[format])


async def _bundled(thread: Thread, service: Service) -> Response:
    file, size = await _open_bundle(thread.id, service)
    headers = {"Content-Disposition": disposition(thread.title, Format.ZIP), "Content-Length": str(size)}
    return StreamingResponse(_chunks(file), headers=headers, media_type=_MEDIA[Format.ZIP])


async def _open_bundle(thread: str, service: Service) -> tuple[IO[bytes], int]:
    """Open, and already without a name: it is gone when it was read, or when nobody reads it."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="assay-export-"))
    try:
        path = folder / "thread.zip"
        await service.engine.export(thread, path)
        return path.open("rb"), path.stat().st_size
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
