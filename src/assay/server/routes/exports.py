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

from assay.export.formats import FORMATS, ZIP, Format, FormatName
from assay.export.report import Report
from assay.model.thread import Thread
from assay.server import pages
from assay.server.access import Caller, SeenThread
from assay.server.bodies import refusals
from assay.server.etags import is_among, tag_of
from assay.server.filename import disposition
from assay.server.problems import ForbiddenError
from assay.server.service import Service, Serving
from assay.server.shown import linked_report, shown_report

router = APIRouter(tags=["exports"])
_CHUNK = 65_536
_PRESSES = ThreadPoolExecutor(2, "assay-press")  # how many are set in type at once, whoever asks; others wait
_ZIPPED = "application/zip"
Wanted = Literal[FormatName, "zip"]
_OBJECTS = {"json": "object", "csl": "array"}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            **{
                format.media.partition(";")[0]: {"schema": {"type": _OBJECTS.get(format.name, "string")}}
                for format in FORMATS.values()
            },
            _ZIPPED: {"schema": {"type": "string"}},
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
    format: Annotated[Wanted, Query(description="csv has the statements; zip has everything.")] = "md",
) -> Response:
    """A link shows the report alone: the zip, which has everything that was read and paid for, is its owner's."""
    if format == ZIP:
        if caller.share is not None:
            raise ForbiddenError("a link shows the report alone", help=f"Choose one of {', '.join(FORMATS)}.")
        return await _bundled(thread, service)
    shown = shown_report if caller.share is None else linked_report
    report = shown(await service.engine.report(thread.id), service.redaction)
    chosen = FORMATS[format]
    content = await _written(report, chosen)
    headers = {
        **(pages.headers(content.decode()) if chosen.name == "html" else {}),
        "Content-Disposition": disposition(report.title, chosen.ending.removeprefix(".")),
        "ETag": tag_of(content),
        "Cache-Control": "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if is_among(headers["ETag"], request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=chosen.media)


async def _written(report: Report, format: Format) -> bytes:
    """Never on the loop."""
    presses = _PRESSES if format.is_slow else None
    return await asyncio.get_running_loop().run_in_executor(presses, format.write, report)


async def _bundled(thread: Thread, service: Service) -> Response:
    file, size = await _open_bundle(thread.id, service)
    headers = {"Content-Disposition": disposition(thread.title, ZIP), "Content-Length": str(size)}
    return StreamingResponse(_chunks(file), headers=headers, media_type=_ZIPPED)


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
