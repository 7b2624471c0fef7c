"""Where the bytes of uploads stand.

    FolderFiles    uploads/OWNER/ID/NAME in the data directory, where one machine does everything
    SharedFiles    rows of the database, which every machine reads; copies/OWNER/ID/NAME here while they are needed

Nothing outside knows where they stand: a run is given `upload:OWNER/ID`, and what it reads is called `upload:ID/NAME`.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from assay.errors import IntegrityError, NotFoundError, StorageError
from assay.model.upload import SCHEME, Upload
from assay.storage.rows import Row, Rows
from assay.storage.seals import ALTERED
from assay.storage.tables import CHUNKS, UPLOADS

ABANDONED = 3600  # seconds after which what is on its way will not arrive any more, and nobody reads a copy any more
CHUNK = 131_072  # bytes in a row: a few of them are in memory at a time, and 200 where everything is sealed anew
MOST_COPIES = 2_000_000_000  # bytes of copies on one machine
_INCOMING = ".incoming"
_NAMED = re.compile(rf"{SCHEME}(?P<owner>[A-Za-z0-9_-]{{1,64}})/(?P<id>[0-9a-f]{{16}})")
_ASKED = 500  # ids in one query
_READ = 8  # rows of bytes in memory at a time
_PAUSE = 60.0  # seconds between two times that copies are tidied up
_THERE = (errno.ENOTEMPTY, errno.EEXIST)


class Files(Protocol):
    """Synchronous: callers run it in a thread. `put` and `remove` are steps of the transaction that changes the row."""

    folder: Path

    def has(self, upload: Upload) -> bool: ...

    def put(self, upload: Upload, file: Path) -> None:
        """Takes the file from where it is."""
        ...

    def remove(self, upload: Upload) -> None: ...

    def located(self, name: str) -> Path:
        """The folder to read an upload in, by what a run was given; any other path is itself. NotFoundError where the
        upload is gone."""
        ...

    def incoming(self) -> Path:
        """A new folder for something on its way; whoever asks for it removes it."""
        ...

    def tidy(self) -> None:
        """Remove what nobody waits for any more."""
        ...


class FolderFiles:
    """Files of this machine. One counts once its row is written, which happens last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def has(self, upload: Upload) -> bool:
        return _place(self.folder, upload).is_file()

    def put(self, upload: Upload, file: Path) -> None:
        target = _place(self.folder, upload)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in target.parent.iterdir():  # by a process that was killed before it wrote a row
            left.unlink()
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        file.chmod(0o600)
        file.replace(target)

    def remove(self, upload: Upload) -> None:
        _discard(self.folder, _place(self.folder, upload).parent)

    def located(self, name: str) -> Path:
        found = place(name, self.folder)
        if name.startswith(SCHEME) and not found.is_dir():
            raise _gone(name)
        return found

    def incoming(self) -> Path:
        return _incoming(self.folder)

    def tidy(self) -> None:
        """What was on its way when a process died. A file that has arrived is nobody's to sweep: its row may stand in
        another database, which is the one in use tomorrow."""
        _sweep(self.folder)


class SharedFiles:
    """Files in the database, in rows of a bounded size, sealed and encrypted like all others."""

    def __init__(self, rows: Rows, folder: Path, *, most: int = MOST_COPIES) -> None:
        self.folder = folder.resolve()
        self._rows = rows
        self._most = most
        self._tidied = -_PAUSE

    def has(self, upload: Upload) -> bool:
        with self._rows.database.connection() as connection:
            sql = "SELECT count(*) AS n FROM chunks WHERE upload = ?"
            return int(connection.execute(sql, (upload.id,)).fetchone()["n"]) == _chunks(upload)

    def put(self, upload: Upload, file: Path) -> None:
        with self._rows.writing("") as writer, file.open("rb") as stream:
            writer.delete(CHUNKS, "WHERE upload = ?", (upload.id,))  # of bytes that were damaged
            for number in range(_chunks(upload)):
                content = stream.read(CHUNK)
                writer.insert(CHUNKS, {"upload": upload.id, "number": number, "content": content})

    def remove(self, upload: Upload) -> None:
        """The bytes go with the row. Copies on other machines go when those tidy up."""
        _discard(self.folder, _place(self.folder, upload).parent)

    def located(self, name: str) -> Path:
        if not name.startswith(SCHEME):
            return Path(name)
        named = _NAMED.fullmatch(name)
        found = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (named["id"], named["owner"])) if named else []
        if not found:
            raise _gone(name)
        return self._copied(upload_of(found[0]))

    def incoming(self) -> Path:
        return _incoming(self.folder)

    def tidy(self) -> None:
        """Copies of uploads that are gone, and those that were used longest ago where there are too many. What somebody
        may be reading stays."""
        self._tidied = time.monotonic()
        _sweep(self.folder)
        held = sorted(_copies(self.folder))
        known = self._known([copy.folder.name for copy in held])
        size = sum(copy.size for copy in held)
        for copy in held:
            if copy.folder.name not in known or (size > self._most and copy.used < time.time() - ABANDONED):
                _discard(self.folder, copy.folder)
                size -= copy.size

    def _known(self, ids: Sequence[str]) -> set[str]:
        known = set[str]()
        with self._rows.database.connection() as connection:
            for start in range(0, len(ids), _ASKED):
                some = ids[start : start + _ASKED]
                sql = f"SELECT id FROM uploads WHERE id IN ({', '.join('?' for _ in some)})"  # noqa: S608  # marks alone
                known |= {row["id"] for row in connection.execute(sql, some)}
        return known

    def _copied(self, upload: Upload) -> Path:
        """The folder with the copy on this machine, which is made where there is none that is whole."""
        file = _place(self.folder, upload)
        try:
            if not _is_whole(file, upload):
                self._copy(upload, file)
            os.utime(file.parent)  # it was used now
        except OSError as error:
            raise StorageError(
                f"document {upload.id} cannot be copied to {self.folder}: {error.strerror}",
                help="The data directory must be writable, on a disk that has room: see to it.",
                retryable=True,  # on another machine, perhaps
            ) from error
        return file.parent

    def _copy(self, upload: Upload, file: Path) -> None:
        if time.monotonic() - self._tidied > _PAUSE:
            self.tidy()
        fresh = self.incoming()
        try:
            self._write(upload, fresh / file.name)
            _install(fresh, file, upload, self.folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _write(self, upload: Upload, file: Path) -> None:
        with file.open("xb") as stream:
            for first in range(0, _chunks(upload), _READ):
                rest = "WHERE upload = ? AND number >= ? ORDER BY number LIMIT ?"
                for row in self._rows.read(CHUNKS, rest, (upload.id, first, _READ)):
                    stream.write(row["content"])
        if not _is_whole(file, upload):
            if not self._known([upload.id]):
                raise _gone(upload.id)
            raise IntegrityError(f"the bytes of document {upload.id} are not what was given", help=ALTERED)
        file.chmod(0o600)
        os.utime(file, (upload.created.timestamp(),) * 2)  # on every machine the same: an index knows it by this


class _Copy(NamedTuple):
    used: float
    folder: Path
    size: int


def upload_of(row: Row) -> Upload:
    return Upload.model_validate(row)


def place(name: str, folder: Path) -> Path:
    """Where the documents stand that a run was given: the folder of an upload, or the path itself."""
    return folder / name.removeprefix(SCHEME) if _NAMED.fullmatch(name) else Path(name)


def address(file: Path, folder: Path) -> str:
    """What a file is called in reports: an upload by its id and name, any other by its path."""
    if not file.is_relative_to(folder):
        return file.as_uri()
    return f"{SCHEME}{file.parent.name}/{quote(file.name)}"


def hashed(file: Path) -> tuple[str, int]:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_size


def _gone(name: str) -> NotFoundError:
    return NotFoundError(
        f"the document {name.rpartition('/')[2][:16]} is not there any more", help="Upload it again, and ask anew."
    )


def _place(folder: Path, upload: Upload) -> Path:
    return folder / upload.owner / upload.id / Path(upload.name).name


def _chunks(upload: Upload) -> int:
    return -(-upload.size // CHUNK)


def _is_whole(file: Path, upload: Upload) -> bool:
    try:
        return hashed(file) == (upload.hash, upload.size)
    except OSError:  # there is none, or it is being removed
        return False


def _install(fresh: Path, file: Path, upload: Upload, root: Path) -> None:
    """Another process may do the same at this moment: whose copy it is in the end does not matter. One that is damaged
    makes room."""
    file.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while not _is_whole(file, upload):
        try:
            fresh.rename(file.parent)
        except OSError as error:
            if error.errno not in _THERE:
                raise
            if not _is_whole(file, upload):
                _discard(root, file.parent)


def _incoming(root: Path) -> Path:
    folder = root / _INCOMING / secrets.token_hex(8)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def _discard(root: Path, folder: Path) -> None:
    """Out of the way at once, so that nobody finds half of it; what stays of it is swept."""
    gone = root / _INCOMING / secrets.token_hex(8)
    gone.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):  # or somebody was faster
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _sweep(root: Path) -> None:
    before = time.time() - ABANDONED
    for folder in root.glob(f"{_INCOMING}/*"):
        if _changed(folder) < before:
            shutil.rmtree(folder, ignore_errors=True)


def _copies(root: Path) -> Iterator[_Copy]:
    for folder in root.glob("[!.]*/*"):
        with suppress(OSError):  # somebody else removes it
            yield _Copy(folder.stat().st_mtime, folder, sum(file.stat().st_size for file in folder.iterdir()))


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # somebody else was faster
        return time.time()
