"""Uploaded documents: they are checked when they arrive, and read by runs that name them."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import Field

from openassay.errors import ReadError, UsageError
from openassay.fetch.documents import identify_upload
from openassay.models.user import Upload
from openassay.protocols import DocumentReader
from openassay.server.auth import Reader, Writer
from openassay.server.bodies import Body, created_links, refusals
from openassay.server.problems import UnsupportedError
from openassay.server.schemas import decode_cursor, encode_cursor
from openassay.server.service import ServiceDep
from openassay.server.uploads import FilePart, receive_files
from openassay.storage.uploads import UploadCursor, UploadQuota, upload_uri

router = APIRouter(tags=["documents"])
MB = 1_000_000
# Files are read apart from everything else that uses threads: a PDF may take a minute.
_READERS = ThreadPoolExecutor(2, thread_name_prefix="reading")
_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}
                    },
                }
            }
        },
    }
}
_DOCUMENT_LINKS = created_links("get_document", "delete_document", documentId="$response.body#/documents/0/id")
DocumentId = Annotated[
    str, PathParameter(alias="documentId", description="The id of a document.", examples=["9c1e04d2a7b35f68"])
]


class DocumentBody(Body):
    id: str = Field(examples=["9c1e04d2a7b35f68"])
    name: str = Field(examples=["Annual report.pdf"])
    media_type: str = Field(examples=["application/pdf"])
    size: int = Field(examples=[182_034], description="In bytes.")
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])


class DocumentList(Body):
    documents: list[DocumentBody]
    next_cursor: str | None = Field(default=None, description="Where the next page begins; null: there is none.")


@router.post(
    "/api/documents",
    status_code=201,
    openapi_extra=_FORM,
    summary="Upload documents",
    responses={**_DOCUMENT_LINKS, **refusals(409, 413, 415)},
)
async def add_documents(request: Request, caller: Writer, service: ServiceDep) -> DocumentList:
    """One or several files: all of them are stored, or none. The same content has the same id."""
    limits = service.settings.server
    folder = await service.resources.uploads.new_folder()
    try:
        received = await receive_files(request, folder, round(limits.upload_mb * MB))
        loop, reader = asyncio.get_running_loop(), service.resources.sources.reader
        readable = [
            await loop.run_in_executor(_READERS, _read_file, file, folder / f"{file.path.name}.checked", reader)
            for file in received
        ]
        quota = UploadQuota(limits.uploads, round(limits.uploads_mb * MB))
        stored = await service.resources.uploads.add(caller.user, readable, quota)
    except ReadError as error:
        raise UnsupportedError(error.message, help=error.help) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return DocumentList(documents=[_to_document_body(upload) for upload in stored])


@router.get("/api/documents", summary="List your documents", responses=refusals())
async def list_documents(
    caller: Reader,
    service: ServiceDep,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[str | None, Query(max_length=200, description="The nextCursor of the page before.")] = None,
) -> DocumentList:
    """The newest first."""
    after = UploadCursor(*decode_cursor(cursor)) if cursor is not None else None
    found = await service.resources.uploads.list_for(caller.user, limit=limit + 1, after=after)
    more = encode_cursor(found[limit - 1].created, found[limit - 1].id) if len(found) > limit else None
    return DocumentList(documents=[_to_document_body(upload) for upload in found[:limit]], next_cursor=more)


@router.get("/api/documents/{documentId}", summary="Get a document", responses=refusals(404))
async def get_document(id: DocumentId, caller: Reader, service: ServiceDep) -> DocumentBody:
    return _to_document_body(await service.resources.uploads.get(caller.user, id))


@router.delete(
    "/api/documents/{documentId}", status_code=204, summary="Delete a document", responses=refusals(404, 409)
)
async def delete_document(id: DocumentId, caller: Writer, service: ServiceDep) -> Response:
    """The file and its search index. Threads keep what they have read."""
    upload = await service.resources.uploads.get(caller.user, id)
    for run in await service.engine.threads.list_active():
        if upload_uri(upload) in run.options.docs:
            raise UsageError(f"thread {run.thread} is using this document", help="Let it end, or delete the thread.")
    await service.resources.uploads.delete(caller.user, id)
    await asyncio.to_thread(service.resources.sources.forget, {upload_uri(upload)})
    return Response(status_code=204)


def _read_file(file: FilePart, folder: Path, reader: DocumentReader) -> tuple[Path, str]:
    """Return the path of a file that can be read, under its final name, and its media type."""
    name, media = identify_upload(file.name, file.path.read_bytes())
    folder.mkdir()
    path = file.path.rename(folder / name)
    reader.read(path)
    return path, media


def _to_document_body(upload: Upload) -> DocumentBody:
    return DocumentBody(
        id=upload.id, name=upload.name, media_type=upload.media, size=upload.size, created=upload.created
    )
