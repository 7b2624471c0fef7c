"""A file on disk as a document."""

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from assay.errors import ReadError
from assay.harvest import docx, html, pdf, tabular, text
from assay.harvest.extracted import Extracted
from assay.model.source import Document
from assay.text.clean import clean

_MAX_BYTES = 50_000_000

_READERS: dict[str, Callable[[Path], Extracted]] = {
    ".md": lambda path: text.extract_markdown(path.read_bytes()),
    ".markdown": lambda path: text.extract_markdown(path.read_bytes()),
    ".txt": lambda path: text.extract_plain(path.read_bytes()),
    ".html": lambda path: html.extract(path.read_bytes(), path.as_uri()),
    ".htm": lambda path: html.extract(path.read_bytes(), path.as_uri()),
    ".csv": lambda path: tabular.extract(path.read_bytes()),
    ".pdf": pdf.extract,
    ".docx": docx.extract,
}

SUFFIXES = frozenset(_READERS)


class FileReader:
    """Reads local files by their suffix; every fault of one file is a ReadError that names it."""

    def __init__(
        self, *, max_bytes: int = _MAX_BYTES, pdf_seconds: int = 60, address: Callable[[Path], str] = Path.as_uri
    ) -> None:
        """`address` is what a document says it was read from; it can be pickled, since other processes read, too."""
        self._max_bytes = max_bytes
        self._pdf_seconds = pdf_seconds
        self._address = address

    def reads(self, path: Path) -> bool:
        return path.suffix.lower() in SUFFIXES

    def read(self, path: Path) -> Document:
        try:
            real = path.resolve(strict=True)
            self._check(path, real)
            return _document(path, self._address(real), self._extracted(path.suffix.lower(), real))
        except ReadError as error:
            message = f"{path.name}: {error.message}"
            raise ReadError(message, help=error.help, path=str(path)) from error
        except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
            raise ReadError(f"{path.name}: {_reason(error)}", help=_help(error), path=str(path)) from error

    def _extracted(self, suffix: str, real: Path) -> Extracted:
        return pdf.extract(real, seconds=self._pdf_seconds) if suffix == ".pdf" else _READERS[suffix](real)

    def _check(self, path: Path, real: Path) -> None:
        if not self.reads(path):
            raise ReadError("not a kind of file Assay reads", help=f"It reads {', '.join(sorted(SUFFIXES))}.")
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ReadError("not a regular file", help="Give a file, or a folder of files.")
        if status.st_size > self._max_bytes:
            size, limit = status.st_size / 1e6, self._max_bytes / 1e6
            raise ReadError(f"too large ({size:,.0f} MB; the limit is {limit:,.0f} MB)", help="Split the file.")
        if not os.access(real, os.R_OK):
            raise PermissionError(None, "Permission denied")


def _reason(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "no longer there"
        case PermissionError():
            return "no permission to read it"
        case OSError():
            return (error.strerror or "cannot be read").lower()
        case _:
            return "a link that leads nowhere"


def _help(error: Exception) -> str:
    return "Check its permissions." if isinstance(error, PermissionError) else "Check the path."


def _document(path: Path, url: str, extracted: Extracted) -> Document:
    if not extracted.text:
        raise ReadError("holds no text", help="Leave it out, or put text into it.")
    return Document(
        hash=sha256(extracted.text.encode()).hexdigest(),
        text=extracted.text,
        url=url,
        title=extracted.title or _named(path),
        author=extracted.author,
        published=extracted.published,
        fetched=datetime.now(UTC),
        kind="document",
        origin=extracted.origin,
    )


def _named(path: Path) -> str:
    return " ".join(clean(path.stem).replace("_", " ").replace("-", " ").split()) or "untitled"
