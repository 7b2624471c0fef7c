"""Reads local files as documents, names uploads, and lists the files of a folder that can be read."""

import os
import re
import stat
import unicodedata
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from openassay.errors import PathError, ReadError
from openassay.fetch import html, pdf, text
from openassay.fetch.formats import FORMATS_BY_SUFFIX, MEDIA_TYPES, ContentFormat, Extraction, detect_format
from openassay.models.evidence import Document
from openassay.text.words import clean_text

_MAX_BYTES = 50_000_000

SUFFIXES = frozenset(FORMATS_BY_SUFFIX)
_SUFFIX_LIST = ", ".join(sorted(SUFFIXES))


class LocalFileReader:
    """Reads local files by their suffix; every fault of one file is a ReadError that names it."""

    suffixes = SUFFIXES

    def __init__(
        self, *, max_bytes: int = _MAX_BYTES, pdf_seconds: int = 60, address: Callable[[Path], str] = Path.as_uri
    ) -> None:
        """`address` gives the address of a document; it can be pickled, since other processes read, too."""
        self._max_bytes = max_bytes
        self._pdf_seconds = pdf_seconds
        self._address = address

    def can_read(self, path: Path) -> bool:
        return path.suffix.lower() in SUFFIXES

    def accept_upload(self, file: Path, name: str, folder: Path) -> tuple[Path, str]:
        """Move a file that can be read into a new folder, under the name it is given as; return its path and media
        type."""
        name, media = _identify_upload(name, file.read_bytes())
        folder.mkdir()
        path = file.rename(folder / name)
        self.read(path)
        return path, media

    def read(self, path: Path) -> Document:
        try:
            real = path.resolve(strict=True)
            if not self.can_read(path):
                raise ReadError("not a kind of file OpenAssay reads", help=f"It reads {_SUFFIX_LIST}.")
            status = real.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ReadError("not a regular file", help="Give a file, or a folder of files.")
            if status.st_size > self._max_bytes:
                size, limit = status.st_size / 1e6, self._max_bytes / 1e6
                raise ReadError(f"too large ({size:,.0f} MB; the limit is {limit:,.0f} MB)", help="Split the file.")
            if not os.access(real, os.R_OK):
                raise PermissionError(None, "Permission denied")
            found = self._extract(real, FORMATS_BY_SUFFIX[path.suffix.lower()])
            if not found.text:
                raise ReadError("holds no text", help="Leave it out, or put text into it.")
            name = " ".join(clean_text(path.stem).replace("_", " ").replace("-", " ").split())
            return Document(
                hash=sha256(found.text.encode()).hexdigest(),
                text=found.text,
                url=self._address(real),
                title=found.title or name or "untitled",
                author=found.author,
                published=found.published,
                fetched=datetime.now(UTC),
                kind="document",
                origin=found.origin,
                publisher=found.publisher,
            )
        except ReadError as error:
            message = f"{path.name}: {error.message}"
            raise ReadError(message, help=error.help, path=str(path)) from error
        except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
            reason, help = "a link that leads nowhere", "Check the path."
            if isinstance(error, FileNotFoundError):
                reason = "no longer there"
            elif isinstance(error, PermissionError):
                reason, help = "no permission to read it", "Check its permissions."
            elif isinstance(error, OSError):
                reason = (error.strerror or "cannot be read").lower()
            raise ReadError(f"{path.name}: {reason}", help=help, path=str(path)) from error

    def _extract(self, path: Path, format: ContentFormat) -> Extraction:
        if format is ContentFormat.PDF:
            return pdf.extract(path, seconds=self._pdf_seconds)
        data = path.read_bytes()
        return html.extract(data, path.as_uri()) if format is ContentFormat.HTML else text.EXTRACTORS[format](data)


# Uploads --------------------------------------------------------------------------------------------------

MAX_NAME_LENGTH = 120  # characters
_MAX_NAME_BYTES = 200  # of a name on a disk; disks take 255
_MEDIA_TYPE_BY_FORMAT = {kind: media for media, kind in reversed(MEDIA_TYPES.items())}


def _identify_upload(name: str, body: bytes) -> tuple[str, str]:
    """Return a name and the media type of an upload, by its content or else its name.

    Raises ReadError, with the reason, for what cannot be read."""
    name = clean_file_name(name)
    suffix = Path(name).suffix.lower()
    expected = FORMATS_BY_SUFFIX.get(suffix)
    try:
        found = detect_format(_MEDIA_TYPE_BY_FORMAT[expected] if expected else "", name, body)
    except ReadError as error:
        if expected in (ContentFormat.PDF, ContentFormat.DOCX):
            message = f"{name}: has the suffix {suffix} but is not a {expected.upper()}"
            raise ReadError(message, help=error.help) from error
        raise ReadError(f"{name}: not a kind of file OpenAssay reads", help=f"It reads {_SUFFIX_LIST}.") from error
    if expected is not found:
        name += next(usual for usual, kind in FORMATS_BY_SUFFIX.items() if kind is found)
    return name, _MEDIA_TYPE_BY_FORMAT[found]


def clean_file_name(name: str) -> str:
    """Make a file name of what somebody calls a file, valid on any system and readable."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(mark if unicodedata.category(mark)[0] != "C" else " " for mark in last)
    plain = re.sub(r"[<>:\"|?*\s]+", " ", unicodedata.normalize("NFC", visible)).strip(" .")
    suffix = Path(plain).suffix if len(Path(plain).suffix) <= 10 else ""
    stem = plain.removesuffix(suffix)[: MAX_NAME_LENGTH - len(suffix)]
    while len(stem.encode()) + len(suffix.encode()) > _MAX_NAME_BYTES:
        stem = stem[:-1]
    return (stem.strip(" .") or "untitled") + suffix


# Folders --------------------------------------------------------------------------------------------------

_IGNORED_NAMES = {"__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True)
class FolderListing:
    files: list[Path]
    skipped: list[tuple[Path, str]]


def walk_folder(root: Path, *, limit: int = 1_000_000) -> FolderListing:
    """List the readable files under `root`, sorted; raises PathError when there are none.

    Links are followed inside the root only, so that a folder shares no more than it seems to."""
    try:
        if not root.is_dir():
            root.stat()  # raises where there is nothing
            if not root.is_file() or root.suffix.lower() not in SUFFIXES:
                reason = f"{root} is not a kind of file OpenAssay reads"
                raise PathError(reason, help=f"It reads {_SUFFIX_LIST}.", path=str(root))
            with root.open("rb"):
                return FolderListing([root], [])
        os.scandir(root).close()
    except FileNotFoundError as error:
        help = "Check the spelling of the path."
        raise PathError(f"{root} does not exist", help=help, path=str(root)) from error
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise PathError(f"{root} cannot be read: {reason}", help="Check its permissions.", path=str(root)) from error
    found = _FolderWalk(root, root.resolve(), limit).run()
    if not found.files:
        help = f"The folder is empty. Put files there: {_SUFFIX_LIST}."
        if found.skipped:
            path, reason = found.skipped[0]
            help = f"{len(found.skipped)} skipped, such as {path.name} ({reason}). It reads {_SUFFIX_LIST}."
        raise PathError(f"{root} holds no file that OpenAssay reads", help=help, path=str(root))
    return found


@dataclass
class _FolderWalk:
    root: Path
    real: Path
    limit: int
    files: dict[tuple[int, int], Path] = field(default_factory=dict)
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    links: deque[Path] = field(default_factory=deque)

    def run(self) -> FolderListing:
        """Visit real files first, links after them: a file reached both ways has its own name."""
        self._visit_folder(self.root)
        while self.links:
            link = self.links.popleft()
            try:
                target = link.resolve(strict=True)
                if not target.is_relative_to(self.real):
                    self.skipped.append((link, "a link that leads outside the folder"))
                elif target.is_dir():
                    self._visit_folder(link)
                else:
                    self._add_file(link)
            except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
                self._skip(link, error)
        files = sorted(self.files.values())
        if len(files) > self.limit:
            self.skipped.append((self.root, f"only the first {self.limit:,} of {len(files):,} files are read"))
        return FolderListing(files[: self.limit], sorted(self.skipped))

    def _visit_folder(self, top: Path) -> None:
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                status = folder.stat()
                key = (status.st_dev, status.st_ino)
                if key in self.seen:
                    continue
                self.seen.add(key)
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self._skip(folder, error)
                continue
            for entry in entries:
                path = Path(entry.path)
                if entry.name.startswith(".") or entry.name in _IGNORED_NAMES:
                    continue
                try:
                    if entry.is_symlink():
                        self.links.append(path)
                    elif entry.is_dir():
                        folders.append(path)
                    else:
                        self._add_file(path)
                except OSError as error:
                    self._skip(path, error)

    def _add_file(self, path: Path) -> None:
        if path.suffix.lower() not in SUFFIXES:
            self.skipped.append((path, "not a kind of file OpenAssay reads"))
        elif not path.is_file():
            self.skipped.append((path, "not a regular file"))
        else:
            status = path.stat()
            self.files.setdefault((status.st_dev, status.st_ino), path)

    def _skip(self, path: Path, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else None
        self.skipped.append((path, (reason or "a link that leads nowhere").lower()))
