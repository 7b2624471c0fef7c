"""Which files of a folder can be read."""

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
from openassay.fetch import docx, html, pdf, text
from openassay.fetch.formats import MEDIA_TYPES, ContentFormat, Extraction, detect_format
from openassay.models.evidence import Document
from openassay.text.words import clean_text

# A file on disk as a document.

_MAX_BYTES = 50_000_000

_READERS: dict[str, Callable[[Path], Extraction]] = {
    ".md": lambda path: text.extract_markdown(path.read_bytes()),
    ".markdown": lambda path: text.extract_markdown(path.read_bytes()),
    ".txt": lambda path: text.extract_plain(path.read_bytes()),
    ".html": lambda path: html.extract(path.read_bytes(), path.as_uri()),
    ".htm": lambda path: html.extract(path.read_bytes(), path.as_uri()),
    ".csv": lambda path: text.extract_csv(path.read_bytes()),
    ".pdf": pdf.extract,
    ".docx": docx.extract,
}

SUFFIXES = frozenset(_READERS)


class LocalFileReader:
    """Reads local files by their suffix; every fault of one file is a ReadError that names it."""

    def __init__(
        self, *, max_bytes: int = _MAX_BYTES, pdf_seconds: int = 60, address: Callable[[Path], str] = Path.as_uri
    ) -> None:
        """`address` is what a document says it was read from; it can be pickled, since other processes read, too."""
        self._max_bytes = max_bytes
        self._pdf_seconds = pdf_seconds
        self._address = address

    def can_read(self, path: Path) -> bool:
        return path.suffix.lower() in SUFFIXES

    def read(self, path: Path) -> Document:
        try:
            real = path.resolve(strict=True)
            self._check(path, real)
            return _to_document(path, self._address(real), self._extract(path.suffix.lower(), real))
        except ReadError as error:
            message = f"{path.name}: {error.message}"
            raise ReadError(message, help=error.help, path=str(path)) from error
        except (OSError, RuntimeError) as error:  # RuntimeError: a link to itself
            raise ReadError(
                f"{path.name}: {_failure_reason(error)}", help=_failure_help(error), path=str(path)
            ) from error

    def _extract(self, suffix: str, real: Path) -> Extraction:
        return pdf.extract(real, seconds=self._pdf_seconds) if suffix == ".pdf" else _READERS[suffix](real)

    def _check(self, path: Path, real: Path) -> None:
        if not self.can_read(path):
            raise ReadError("not a kind of file OpenAssay reads", help=f"It reads {', '.join(sorted(SUFFIXES))}.")
        status = real.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ReadError("not a regular file", help="Give a file, or a folder of files.")
        if status.st_size > self._max_bytes:
            size, limit = status.st_size / 1e6, self._max_bytes / 1e6
            raise ReadError(f"too large ({size:,.0f} MB; the limit is {limit:,.0f} MB)", help="Split the file.")
        if not os.access(real, os.R_OK):
            raise PermissionError(None, "Permission denied")


def _failure_reason(error: Exception) -> str:
    match error:
        case FileNotFoundError():
            return "no longer there"
        case PermissionError():
            return "no permission to read it"
        case OSError():
            return (error.strerror or "cannot be read").lower()
        case _:
            return "a link that leads nowhere"


def _failure_help(error: Exception) -> str:
    return "Check its permissions." if isinstance(error, PermissionError) else "Check the path."


def _to_document(path: Path, url: str, extracted: Extraction) -> Document:
    if not extracted.text:
        raise ReadError("holds no text", help="Leave it out, or put text into it.")
    return Document(
        hash=sha256(extracted.text.encode()).hexdigest(),
        text=extracted.text,
        url=url,
        title=extracted.title or _title_from_path(path),
        author=extracted.author,
        published=extracted.published,
        fetched=datetime.now(UTC),
        kind="document",
        origin=extracted.origin,
    )


def _title_from_path(path: Path) -> str:
    return " ".join(clean_text(path.stem).replace("_", " ").replace("-", " ").split()) or "untitled"


# A file somebody gives: what it is called and what kind it is. Its content decides, or else its name.

MAX_NAME_LENGTH = 120  # characters of a name
_MAX_NAME_BYTES = 200  # of a name on a disk; 255 is what disks take
_SUFFIXES_BY_FORMAT: dict[ContentFormat, tuple[str, ...]] = {
    ContentFormat.HTML: (".html", ".htm"), ContentFormat.PLAIN: (".txt",), ContentFormat.MARKDOWN: (".md", ".markdown"),
    ContentFormat.CSV: (".csv",), ContentFormat.PDF: (".pdf",), ContentFormat.DOCX: (".docx",),
}  # fmt: skip
_MEDIA_TYPE_BY_FORMAT = {kind: media for media, kind in reversed(MEDIA_TYPES.items())}


def identify_upload(name: str, body: bytes) -> tuple[str, str]:
    """What the file is called from now on, and its media type; ReadError, with the reason, for what is not read."""
    clean = clean_file_name(name)
    suffix = Path(clean).suffix.lower()
    kind = _detect_upload_format(clean, suffix, body)
    return (
        clean if suffix in _SUFFIXES_BY_FORMAT[kind] else clean + _SUFFIXES_BY_FORMAT[kind][0]
    ), _MEDIA_TYPE_BY_FORMAT[kind]


def clean_file_name(name: str) -> str:
    """Of what somebody calls a file, what can be the name of one anywhere, and can be read."""
    last = re.split(r"[/\\]", name)[-1]
    seen = "".join(mark if unicodedata.category(mark)[0] != "C" else " " for mark in last)
    plain = re.sub(r"[<>:\"|?*\s]+", " ", unicodedata.normalize("NFC", seen)).strip(" .")
    suffix = Path(plain).suffix if len(Path(plain).suffix) <= 10 else ""
    stem = plain.removesuffix(suffix)[: MAX_NAME_LENGTH - len(suffix)]
    while len(stem.encode()) + len(suffix.encode()) > _MAX_NAME_BYTES:
        stem = stem[:-1]
    return (stem.strip(" .") or "untitled") + suffix


def _detect_upload_format(name: str, suffix: str, body: bytes) -> ContentFormat:
    expected = next((kind for kind, suffixes in _SUFFIXES_BY_FORMAT.items() if suffix in suffixes), None)
    try:
        return detect_format(_MEDIA_TYPE_BY_FORMAT[expected] if expected else "", name, body)
    except ReadError as error:
        if expected in (ContentFormat.PDF, ContentFormat.DOCX):
            raise ReadError(f"{name}: it is called {suffix}, but is none", help=error.help) from error
        known = ", ".join(sorted(SUFFIXES))
        raise ReadError(f"{name}: not a kind of file OpenAssay reads", help=f"It reads {known}.") from error


_SILENT = {"__pycache__", "node_modules"}
_SUFFIX_LIST = ", ".join(sorted(SUFFIXES))


@dataclass(frozen=True, slots=True)
class FolderListing:
    files: list[Path]
    skipped: list[tuple[Path, str]]


def walk_folder(root: Path, *, limit: int = 1_000_000) -> FolderListing:
    """Readable files under `root`, sorted; raises PathError when there are none.

    Links are followed inside the root only, so that a folder shares no more than it seems to.
    """
    try:
        is_folder = _check_root(root)
    except OSError as error:
        raise _unreadable_error(root, error) from error
    if not is_folder:
        return FolderListing([root], [])
    found = _FolderWalk(root, root.resolve(), limit).run()
    if not found.files:
        raise PathError(f"{root} holds no file that OpenAssay reads", help=_empty_folder_help(found), path=str(root))
    return found


def _check_root(root: Path) -> bool:
    """Whether the root is a folder (else a file that can be read)."""
    if root.is_dir():
        os.scandir(root).close()
        return True
    root.stat()
    if not root.is_file() or root.suffix.lower() not in SUFFIXES:
        raise PathError(
            f"{root} is not a kind of file OpenAssay reads", help=f"It reads {_SUFFIX_LIST}.", path=str(root)
        )
    with root.open("rb"):
        return False


def _unreadable_error(root: Path, error: OSError) -> PathError:
    if isinstance(error, FileNotFoundError):
        return PathError(f"{root} does not exist", help="Check the spelling of the path.", path=str(root))
    reason = (error.strerror or type(error).__name__).lower()
    return PathError(f"{root} cannot be read: {reason}", help="Check its permissions.", path=str(root))


def _empty_folder_help(found: FolderListing) -> str:
    if not found.skipped:
        return f"The folder is empty. Put files there: {_SUFFIX_LIST}."
    path, reason = found.skipped[0]
    return f"{len(found.skipped)} skipped, such as {path.name} ({reason}). It reads {_SUFFIX_LIST}."


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
        """Real files first, links after them: a file reached both ways goes by its own name."""
        self._visit_folder(self.root)
        while self.links:
            self._visit_link(self.links.popleft())
        files = sorted(self.files.values())
        if len(files) > self.limit:
            self.skipped.append((self.root, f"only the first {self.limit:,} of {len(files):,} files are read"))
        return FolderListing(files[: self.limit], sorted(self.skipped))

    def _visit_folder(self, top: Path) -> None:
        folders = [top]
        while folders:
            folder = folders.pop()
            try:
                if not self._is_new(folder):
                    continue
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                self._skip(folder, error)
                continue
            folders += [path for entry in entries if (path := self._visit_entry(entry)) is not None]

    def _is_new(self, folder: Path) -> bool:
        stat = folder.stat()
        key = (stat.st_dev, stat.st_ino)
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _visit_entry(self, entry: os.DirEntry[str]) -> Path | None:
        """Take one entry; the path comes back when it is a folder to enter."""
        path = Path(entry.path)
        if entry.name.startswith(".") or entry.name in _SILENT:
            return None
        try:
            if entry.is_symlink():
                self.links.append(path)
            elif entry.is_dir():
                return path
            else:
                self._add_file(path)
        except OSError as error:
            self._skip(path, error)
        return None

    def _visit_link(self, link: Path) -> None:
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

    def _add_file(self, path: Path) -> None:
        if path.suffix.lower() not in SUFFIXES:
            self.skipped.append((path, "not a kind of file OpenAssay reads"))
        elif not path.is_file():
            self.skipped.append((path, "not a regular file"))
        else:
            stat = path.stat()
            self.files.setdefault((stat.st_dev, stat.st_ino), path)

    def _skip(self, path: Path, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) else None
        self.skipped.append((path, (reason or "a link that leads nowhere").lower()))
