"""Files people have given: whose each is, what it is called, and how much one person may keep. Where the bytes stand is
up to files.py.
"""

import asyncio
import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from openassay.errors import IntegrityError, NotFoundError, StorageError, UsageError
from openassay.models.user import SCHEME, Upload
from openassay.storage.database import CHUNKS, UPLOADS, timestamp, utc_now
from openassay.storage.rows import ALTERATION_HELP, Row, Rows, Writer

# Where the bytes of uploads stand.
#
#     FolderFiles    uploads/OWNER/ID/NAME in the data directory, where one machine does everything
#     SharedFiles    rows of the database, which every machine reads; copies/OWNER/ID/NAME here while they are needed
#
# Nothing outside knows where they stand: a run is given `upload:OWNER/ID`, and what it reads is called
# `upload:ID/NAME`.

ABANDON_SECONDS = (
    3600  # seconds after which what is on its way will not arrive any more, and nobody reads a copy any more
)
CHUNK = 131_072  # bytes in a row: a few of them are in memory at a time, and 200 where everything is sealed anew
MOST_COPIES = 2_000_000_000  # bytes of copies on one machine
_INCOMING = ".incoming"
_UPLOAD_URI = re.compile(rf"{SCHEME}(?P<owner>[A-Za-z0-9_-]{{1,64}})/(?P<id>[0-9a-f]{{16}})")
_MAX_IDS = 500  # ids in one query
_READ_ROWS = 8  # rows of bytes in memory at a time
_PAUSE = 60.0  # seconds between two times that copies are tidied up
_EXISTS_ERRORS = (errno.ENOTEMPTY, errno.EEXIST)


class FileStore(Protocol):
    """Synchronous: callers run it in a thread. `put` and `remove` are steps of the transaction that changes the row."""

    folder: Path

    def has(self, upload: Upload) -> bool: ...

    def put(self, upload: Upload, file: Path) -> None:
        """Takes the file from where it is."""
        ...

    def remove(self, upload: Upload) -> None: ...

    def locate(self, name: str) -> Path:
        """The folder to read an upload in, by what a run was given; any other path is itself. NotFoundError where the
        upload is gone."""
        ...

    def new_folder(self) -> Path:
        """A new folder for something on its way; whoever asks for it removes it."""
        ...

    def tidy(self) -> None:
        """Remove what nobody waits for any more."""
        ...


class FolderFileStore:
    """Files of this machine. One counts once its row is written, which happens last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def has(self, upload: Upload) -> bool:
        return _file_path(self.folder, upload).is_file()

    def put(self, upload: Upload, file: Path) -> None:
        target = _file_path(self.folder, upload)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in target.parent.iterdir():  # by a process that was killed before it wrote a row
            left.unlink()
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        file.chmod(0o600)
        file.replace(target)

    def remove(self, upload: Upload) -> None:
        _discard(self.folder, _file_path(self.folder, upload).parent)

    def locate(self, name: str) -> Path:
        found = resolve_path(name, self.folder)
        if name.startswith(SCHEME) and not found.is_dir():
            raise _no_upload(name)
        return found

    def new_folder(self) -> Path:
        return _make_folder(self.folder)

    def tidy(self) -> None:
        """What was on its way when a process died. A file that has arrived is nobody's to sweep: its row may stand in
        another database, which is the one in use tomorrow."""
        _sweep(self.folder)


class DatabaseFileStore:
    """Files in the database, in rows of a bounded size, sealed and encrypted like all others."""

    def __init__(self, rows: Rows, folder: Path, *, most: int = MOST_COPIES) -> None:
        self.folder = folder.resolve()
        self._rows = rows
        self._most = most
        self._tidied = -_PAUSE

    def has(self, upload: Upload) -> bool:
        with self._rows.database.connection() as connection:
            sql = "SELECT count(*) AS n FROM chunks WHERE upload = ?"
            return int(connection.execute(sql, (upload.id,)).fetchone()["n"]) == _chunk_count(upload)

    def put(self, upload: Upload, file: Path) -> None:
        with self._rows.open_writer("") as writer, file.open("rb") as stream:
            writer.delete(CHUNKS, "WHERE upload = ?", (upload.id,))  # of bytes that were damaged
            for number in range(_chunk_count(upload)):
                content = stream.read(CHUNK)
                writer.insert(CHUNKS, {"upload": upload.id, "number": number, "content": content})

    def remove(self, upload: Upload) -> None:
        """The bytes go with the row. Copies on other machines go when those tidy up."""
        _discard(self.folder, _file_path(self.folder, upload).parent)

    def locate(self, name: str) -> Path:
        if not name.startswith(SCHEME):
            return Path(name)
        named = _UPLOAD_URI.fullmatch(name)
        found = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (named["id"], named["owner"])) if named else []
        if not found:
            raise _no_upload(name)
        return self._ensure_copy(to_upload(found[0]))

    def new_folder(self) -> Path:
        return _make_folder(self.folder)

    def tidy(self) -> None:
        """Copies of uploads that are gone, and those that were used longest ago where there are too many. What somebody
        may be reading stays."""
        self._tidied = time.monotonic()
        _sweep(self.folder)
        held = sorted(_list_copies(self.folder))
        known = self._find_ids([copy.folder.name for copy in held])
        size = sum(copy.size for copy in held)
        for copy in held:
            if copy.folder.name not in known or (size > self._most and copy.used < time.time() - ABANDON_SECONDS):
                _discard(self.folder, copy.folder)
                size -= copy.size

    def _find_ids(self, ids: Sequence[str]) -> set[str]:
        known = set[str]()
        with self._rows.database.connection() as connection:
            for start in range(0, len(ids), _MAX_IDS):
                some = ids[start : start + _MAX_IDS]
                sql = f"SELECT id FROM uploads WHERE id IN ({', '.join('?' for _ in some)})"  # noqa: S608  # marks alone
                known |= {row["id"] for row in connection.execute(sql, some)}
        return known

    def _ensure_copy(self, upload: Upload) -> Path:
        """The folder with the copy on this machine, which is made where there is none that is whole."""
        file = _file_path(self.folder, upload)
        try:
            if not _is_intact(file, upload):
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
        fresh = self.new_folder()
        try:
            self._write(upload, fresh / file.name)
            _install(fresh, file, upload, self.folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _write(self, upload: Upload, file: Path) -> None:
        with file.open("xb") as stream:
            for first in range(0, _chunk_count(upload), _READ_ROWS):
                rest = "WHERE upload = ? AND number >= ? ORDER BY number LIMIT ?"
                for row in self._rows.read(CHUNKS, rest, (upload.id, first, _READ_ROWS)):
                    stream.write(row["content"])
        if not _is_intact(file, upload):
            if not self._find_ids([upload.id]):
                raise _no_upload(upload.id)
            raise IntegrityError(f"the bytes of document {upload.id} are not what was given", help=ALTERATION_HELP)
        file.chmod(0o600)
        os.utime(file, (upload.created.timestamp(),) * 2)  # on every machine the same: an index knows it by this


class _FileCopy(NamedTuple):
    used: float
    folder: Path
    size: int


def to_upload(row: Row) -> Upload:
    return Upload.model_validate(row)


def resolve_path(name: str, folder: Path) -> Path:
    """Where the documents stand that a run was given: the folder of an upload, or the path itself."""
    return folder / name.removeprefix(SCHEME) if _UPLOAD_URI.fullmatch(name) else Path(name)


def public_address(file: Path, folder: Path) -> str:
    """What a file is called in reports: an upload by its id and name, any other by its path."""
    if not file.is_relative_to(folder):
        return file.as_uri()
    return f"{SCHEME}{file.parent.name}/{quote(file.name)}"


def hash_file(file: Path) -> tuple[str, int]:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_size


def _no_upload(name: str) -> NotFoundError:
    return NotFoundError(
        f"the document {name.rpartition('/')[2][:16]} is not there any more", help="Upload it again, and ask anew."
    )


def _file_path(folder: Path, upload: Upload) -> Path:
    return folder / upload.owner / upload.id / Path(upload.name).name


def _chunk_count(upload: Upload) -> int:
    return -(-upload.size // CHUNK)


def _is_intact(file: Path, upload: Upload) -> bool:
    try:
        return hash_file(file) == (upload.hash, upload.size)
    except OSError:  # there is none, or it is being removed
        return False


def _install(fresh: Path, file: Path, upload: Upload, root: Path) -> None:
    """Another process may do the same at this moment: whose copy it is in the end does not matter. One that is damaged
    makes room."""
    file.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    while not _is_intact(file, upload):
        try:
            fresh.rename(file.parent)
        except OSError as error:
            if error.errno not in _EXISTS_ERRORS:
                raise
            if not _is_intact(file, upload):
                _discard(root, file.parent)


def _make_folder(root: Path) -> Path:
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
    before = time.time() - ABANDON_SECONDS
    for folder in root.glob(f"{_INCOMING}/*"):
        if _mtime(folder) < before:
            shutil.rmtree(folder, ignore_errors=True)


def _list_copies(root: Path) -> Iterator[_FileCopy]:
    for folder in root.glob("[!.]*/*"):
        with suppress(OSError):  # somebody else removes it
            yield _FileCopy(folder.stat().st_mtime, folder, sum(file.stat().st_size for file in folder.iterdir()))


def _mtime(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # somebody else was faster
        return time.time()


_ID = re.compile(r"[0-9a-f]{16}")


class UploadQuota(NamedTuple):
    """How much one person may keep."""

    files: int
    bytes: int


class UploadCursor(NamedTuple):
    """Where a page of uploads has ended, the newest first."""

    created: datetime
    id: str


class SqlUploads:
    def __init__(self, rows: Rows, files: FileStore, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._files = files
        self._now = now
        self._is_swept = False

    async def new_folder(self) -> Path:
        """A new folder for one file on its way; whoever asks for it removes it."""
        return await asyncio.to_thread(self._new_folder)

    async def add(self, owner: str, files: Sequence[tuple[Path, str]], room: UploadQuota) -> list[Upload]:
        """Takes files, with their media types, from where they are, under their names: all or none. Bytes that are here
        already are the upload they were."""
        return await asyncio.to_thread(self._add, owner, files, room)

    async def get(self, owner: str, id: str) -> Upload:
        return await asyncio.to_thread(self._get, owner, id)

    async def list_for(self, owner: str, *, limit: int, after: UploadCursor | None = None) -> list[Upload]:
        """The newest first."""
        return await asyncio.to_thread(self._list_for, owner, limit, after)

    async def paths(self, owner: str, ids: Sequence[str]) -> list[str]:
        """What `Options.docs` takes for them: no place on this disk. NotFoundError for another's."""
        return await asyncio.to_thread(lambda: [upload_uri(self._get(owner, id)) for id in dict.fromkeys(ids)])

    async def delete(self, owner: str, id: str) -> Upload:
        """The file and its row; threads keep what they have read of it."""
        return await asyncio.to_thread(self._delete, owner, id)

    # -- inside -------------------------------------------------------------------------------------------

    def _new_folder(self) -> Path:
        if not self._is_swept:
            self._is_swept = True
            self._files.tidy()
        return self._files.new_folder()

    def _add(self, owner: str, files: Sequence[tuple[Path, str]], room: UploadQuota) -> list[Upload]:
        given = [(self._describe(owner, file, media), file) for file, media in files]
        with self._rows.open_writer("user", owner) as writer:
            kept = {upload.id: to_upload(row) for upload, _ in given if (row := writer.find(UPLOADS, upload.id))}
            new = {upload.id: upload for upload, _ in reversed(given) if upload.id not in kept}
            _check_quota(room, _usage(writer, owner), list(new.values()))
            for upload in new.values():
                writer.insert(UPLOADS, {**dict(upload), "created": timestamp(upload.created)})
            for upload, file in given:
                target = kept.get(upload.id) or new[upload.id]
                if not self._files.has(target):
                    self._files.put(target, file)
        return [kept.get(upload.id) or new[upload.id] for upload, _ in given]

    def _describe(self, owner: str, file: Path, media: str) -> Upload:
        hash, size = hash_file(file)
        return Upload(
            id=_upload_id(owner, hash),
            owner=owner,
            name=file.name,
            media=media,
            size=size,
            hash=hash,
            created=self._now(),
        )

    def _get(self, owner: str, id: str) -> Upload:
        rows = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (id, owner)) if _ID.fullmatch(id) else []
        if not rows or not self._files.has(to_upload(rows[0])):
            raise no_document(id)
        return to_upload(rows[0])

    def _list_for(self, owner: str, limit: int, after: UploadCursor | None) -> list[Upload]:
        rest, values = "WHERE owner = ?", list[object]([owner])
        if after:
            rest += " AND (created < ? OR (created = ? AND id < ?))"
            values += [timestamp(after.created), timestamp(after.created), after.id]
        rows = self._rows.read(UPLOADS, f"{rest} ORDER BY created DESC, id DESC LIMIT ?", (*values, max(limit, 0)))
        return [to_upload(row) for row in rows]

    def _delete(self, owner: str, id: str) -> Upload:
        with self._rows.open_writer("user", owner) as writer:
            found = writer.find(UPLOADS, id) if _ID.fullmatch(id) else None
            if found is None or found["owner"] != owner:
                raise no_document(id)
            writer.delete(UPLOADS, "WHERE id = ?", (id,))
            self._files.remove(to_upload(found))  # while nobody can give the same file again
        return to_upload(found)


def upload_uri(upload: Upload) -> str:
    return f"{SCHEME}{upload.owner}/{upload.id}"


def no_document(id: str) -> NotFoundError:
    return NotFoundError(f"no document {id[:40]}", help="Look at the list of documents for its id.")


def _upload_id(owner: str, hash: str) -> str:
    """Of nobody else: what others have given cannot be told from it."""
    return hashlib.sha256(f"{owner}:{hash}".encode()).hexdigest()[:16]


def _usage(writer: Writer, owner: str) -> UploadQuota:
    sql = "SELECT count(*) AS n, coalesce(sum(size), 0) AS size FROM uploads WHERE owner = ?"
    row = writer.connection.execute(sql, (owner,)).fetchone()
    return UploadQuota(int(row["n"]), int(row["size"]))


def _check_quota(room: UploadQuota, kept: UploadQuota, new: Sequence[Upload]) -> None:
    files, size = kept.files + len(new), kept.bytes + sum(upload.size for upload in new)
    if new and files > room.files:
        raise UsageError(
            f"you would have {files:,} documents; {room.files:,} are the most", help="Delete some of them first."
        )
    if new and size > room.bytes:
        raise UsageError(
            f"your documents would take {size / 1e6:,.1f} MB; {room.bytes / 1e6:,.1f} is the most",
            help="Delete some of them first.",
        )
