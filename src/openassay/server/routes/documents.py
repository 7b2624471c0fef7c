"""Uploaded documents: they are checked when they arrive, and read by runs that name them."""

import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO, Annotated, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import Field
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from openassay.errors import ReadError, StorageError, UsageError
from openassay.models.user import Upload, UploadCursor, UploadQuota
from openassay.server.auth import Reader, Writer
from openassay.server.bodies import Body, created_links, refusals
from openassay.server.responses import (
    MalformedError,
    TooLargeError,
    UnsupportedError,
    decode_cursor,
    encode_cursor,
)
from openassay.server.service import ServiceDep

router = APIRouter(prefix="/api/documents", responses=refusals(), tags=["documents"])
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
_CREATED = {"documentId": "$response.body#/documents/0/id"}
_DOCUMENT_LINKS = created_links(get_document=_CREATED, delete_document=_CREATED)
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
    "",
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
            await loop.run_in_executor(
                _READERS, reader.accept_upload, file.path, file.name, folder / f"{file.path.name}.checked"
            )
            for file in received
        ]
        quota = UploadQuota(limits.uploads, round(limits.uploads_mb * MB))
        stored = await service.resources.uploads.add(caller.user, readable, quota)
    except ReadError as error:
        raise UnsupportedError(error.message, help=error.help) from error
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return DocumentList(documents=[_to_document_body(upload) for upload in stored])


@router.get("", summary="List your documents")
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


@router.get("/{documentId}", summary="Get a document", responses=refusals(404))
async def get_document(id: DocumentId, caller: Reader, service: ServiceDep) -> DocumentBody:
    return _to_document_body(await service.resources.uploads.get(caller.user, id))


@router.delete("/{documentId}", status_code=204, summary="Delete a document", responses=refusals(404, 409))
async def delete_document(id: DocumentId, caller: Writer, service: ServiceDep) -> Response:
    """The file and its search index. Threads keep what they have read."""
    upload = await service.resources.uploads.get(caller.user, id)
    for run in await service.engine.threads.list_active():
        if upload.uri in run.options.docs:
            raise UsageError(f"thread {run.thread} is using this document", help="Let it end, or delete the thread.")
    await service.resources.uploads.delete(caller.user, id)
    await asyncio.to_thread(service.resources.sources.forget, {upload.uri})
    return Response(status_code=204)


class FilePart(NamedTuple):
    """`name` is the sender's name of the file."""

    name: str
    path: Path


def _to_document_body(upload: Upload) -> DocumentBody:
    return DocumentBody(
        id=upload.id, name=upload.name, media_type=upload.media, size=upload.size, created=upload.created
    )


# Files of a multipart body, written to disk as they arrive: none of them is ever whole in memory ------------------

MAX_FILES = 100  # of one request
_HELP = "Send each file as a part with a name and a filename."


async def receive_files(request: Request, folder: Path, max_bytes: int) -> list[FilePart]:
    """Write the files of a request into a folder; each has at most so many bytes."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data":
        raise UnsupportedError("send files as multipart/form-data", help="As a form with a field for each file does.")
    if not options.get(b"boundary"):
        raise MalformedError("the form has no boundary", help="Give a boundary in Content-Type.")
    receiver = _FileReceiver(folder, max_bytes)
    try:
        parser = MultipartParser(options[b"boundary"], receiver.callbacks())  # type: ignore[arg-type]
        async for chunk in request.stream():
            await asyncio.to_thread(parser.write, chunk)
    except FormParserError as error:
        raise MalformedError(f"the body is not a multipart form: {error}", help=_HELP) from error
    except ClientDisconnect as error:
        raise MalformedError("the connection was lost in the middle of it", help="Send it again.") from error
    except OSError as error:
        raise StorageError(f"the file cannot be stored: {error.strerror}", help="Free some space.") from error
    finally:
        receiver.close_file()
    if not receiver.is_complete:
        raise MalformedError("the body ends in the middle of a file", help=_HELP)
    if not receiver.files:
        raise MalformedError("there is no file in it", help=_HELP)
    return receiver.files


class _FileReceiver:
    """The callbacks of the parser. A part is a file if it has a filename; a form's empty field is none."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.files: list[FilePart] = []
        self.is_complete = False
        self._folder = folder
        self._max_bytes = max_bytes
        self._header = (bytearray(), bytearray())
        self._disposition = b""
        self._file: IO[bytes] | None = None
        self._size = 0
        self._parts = 0

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": partial(self._extend_header, 0),
            "on_header_value": partial(self._extend_header, 1),
            "on_header_end": self._end_header,
            "on_headers_finished": self._open_file,
            "on_part_data": self._write,
            "on_part_end": self.close_file,
            "on_end": self._end,
        }

    def close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            if not self._size and not self.files[-1].name:
                self.files.pop().path.unlink()

    def _begin_part(self) -> None:
        self._disposition, self._size = b"", 0
        self._parts += 1
        if self._parts > MAX_FILES:
            raise TooLargeError(f"a request has at most {MAX_FILES} files", help="Send them in several requests.")

    def _extend_header(self, part: int, data: bytes, start: int, end: int) -> None:
        self._header[part].extend(data[start:end])

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _open_file(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" not in options:
            raise MalformedError("a part of it is not a file", help=_HELP)
        path = self._folder / str(self._parts)
        self._file = path.open("wb")
        self.files.append(FilePart(options[b"filename"].decode(errors="replace"), path))

    def _write(self, data: bytes, start: int, end: int) -> None:
        self._size += end - start
        if self._size > self._max_bytes:
            limit = f"{self._max_bytes / 1e6:g} MB"
            raise TooLargeError(f"{self.files[-1].name[:80]} is larger than {limit}", help="Split the file.")
        if self._file is not None:
            self._file.write(data[start:end])

    def _end(self) -> None:
        self.is_complete = True
