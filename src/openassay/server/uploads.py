"""Files of a multipart body, written to disk as they arrive: none of them is ever whole in memory."""

import asyncio
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from openassay.errors import StorageError
from openassay.server.problems import MalformedError, TooLargeError, UnsupportedError

MAX_FILES = 100  # of one request
_HELP = "Send each file as a part with a name and a filename."


class FilePart(NamedTuple):
    """`name` is the sender's name of the file."""

    name: str
    path: Path


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
        self._header = (bytearray(), bytearray())
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
