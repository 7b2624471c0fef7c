"""A thread's report as a file: as text, as a page, as data, or with everything it rests on."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse

from openassay.export import FORMATS, ZIP, FormatName
from openassay.server import responses
from openassay.server.auth import Caller, VisibleThread
from openassay.server.bodies import refusals
from openassay.server.problems import ForbiddenError
from openassay.server.reports import redact_for
from openassay.server.responses import content_disposition
from openassay.server.service import ServiceDep

router = APIRouter(tags=["exports"])
CHUNK_BYTES = 65_536
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


@router.get(
    "/api/threads/{threadId}/export",
    summary="Export the report of a thread",
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
