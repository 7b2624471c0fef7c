"""A thread's report as a file to keep: as text, as a page, as data, or with everything it rests on."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from openassay.export import FORMATS, ZIP, ExportFormat, FormatName
from openassay.export.report import Report
from openassay.models.thread import Thread
from openassay.server import responses
from openassay.server.auth import Caller, VisibleThread
from openassay.server.bodies import refusals
from openassay.server.problems import ForbiddenError
from openassay.server.redact import redact_report, redact_report_for_link
from openassay.server.responses import compute_etag, content_disposition, matches_etag
from openassay.server.service import Service, ServiceDep

router = APIRouter(tags=["exports"])
_CHUNK = 65_536
_RENDERERS = ThreadPoolExecutor(2, "openassay-press")  # how many are set in type at once, whoever asks; others wait
_ZIP_TYPE = "application/zip"
FormatQuery = Literal[FormatName, "zip"]
_OBJECTS = {"json": "object", "csl": "array"}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            **{
                format.media.partition(";")[0]: {"schema": {"type": _OBJECTS.get(format.name, "string")}}
                for format in FORMATS.values()
            },
            _ZIP_TYPE: {"schema": {"type": "string"}},
        },
    },
    304: {"description": "You have it already."},
}


@router.get(
    "/api/threads/{threadId}/export",
    summary="Take a thread's report out as a file",
    response_class=Response,
    responses={**_ANSWERS, **refusals(404)},
)
async def export_thread(
    thread: VisibleThread,
    caller: Caller,
    service: ServiceDep,
    request: Request,
    format: Annotated[FormatQuery, Query(description="csv has the statements; zip has everything.")] = "md",
) -> Response:
    """A link shows the report alone: the zip, which has everything that was read and paid for, is its owner's."""
    if format == ZIP:
        if caller.share is not None:
            raise ForbiddenError("a link shows the report alone", help=f"Choose one of {', '.join(FORMATS)}.")
        return await _respond_with_bundle(thread, service)
    shown = redact_report if caller.share is None else redact_report_for_link
    report = shown(await service.engine.report(thread.id), service.redaction)
    chosen = FORMATS[format]
    content = await _render(report, chosen)
    headers = {
        **(responses.page_headers(content.decode()) if chosen.name == "html" else {}),
        "Content-Disposition": content_disposition(report.title, chosen.ending.removeprefix(".")),
        "ETag": compute_etag(content),
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if matches_etag(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=chosen.media)


async def _render(report: Report, format: ExportFormat) -> bytes:
    """Never on the loop."""
    presses = _RENDERERS if format.is_slow else None
    return await asyncio.get_running_loop().run_in_executor(presses, format.write, report)


async def _respond_with_bundle(thread: Thread, service: Service) -> Response:
    file, size = await _open_bundle(thread.id, service)
    headers = {"Content-Disposition": content_disposition(thread.title, ZIP), "Content-Length": str(size)}
    return StreamingResponse(_read_chunks(file), headers=headers, media_type=_ZIP_TYPE)


async def _open_bundle(thread: str, service: Service) -> tuple[IO[bytes], int]:
    """Open, and already without a name: it is gone when it was read, or when nobody reads it."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="openassay-export-"))
    try:
        path = folder / "thread.zip"
        await service.engine.export(thread, path)
        return path.open("rb"), path.stat().st_size
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
