"""Uploaded files: whose each is, what it is called, how much one user may store, and where the bytes are.

    FolderFileStore      uploads/OWNER/ID/NAME in the data directory, where one machine does everything
    DatabaseFileStore    rows of the database, which every machine reads, and copies/OWNER/ID/NAME while they are needed

Nothing outside knows where they are: a run is given `upload:OWNER/ID`, and what it reads is called `upload:ID/NAME`.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from openassay.errors import IntegrityError, NotFoundError, StorageError, UsageError
from openassay.models.user import SCHEME, Upload, UploadCursor, UploadQuota
from openassay.storage.database import CHUNKS, UPLOADS, run_in_thread, timestamp
from openassay.storage.sealed_rows import ALTERATION_HELP, Rows, RowStore, Writer

ABANDON_SECONDS = 3600  # after which an incoming file will not arrive any more, and no run reads a copy any more
CHUNK = 131_072  # bytes in a row: a few of them are in memory at a time, and 200 where everything is sealed anew
MAX_COPY_BYTES = 2_000_000_000  # of copies on one machine
_INCOMING = ".incoming"
_UPLOAD_URI = re.compile(rf"{SCHEME}(?P<owner>[A-Za-z0-9_-]{{1,64}})/(?P<id>[0-9a-f]{{16}})")
_READ_ROWS = 8  # chunks in memory at a time
_TIDY_SECONDS = 60.0  # between two times that copies are tidied up
_EXISTS_ERRORS = (errno.ENOTEMPTY, errno.EEXIST)


class FileStore(ABC):
    """The bytes of uploads. It blocks: callers run it in a thread. `put` and `remove` are steps of the transaction that
    changes the row."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    @abstractmethod
    def has(self, upload: Upload) -> bool: ...

    @abstractmethod
    def put(self, upload: Upload, file: Path) -> None:
        """Store the bytes of a file, which may be moved."""

    @abstractmethod
    def locate(self, name: str) -> Path:
        """Return the folder to read an upload in, by what a run was given; any other path is itself. NotFoundError
        where the upload was deleted."""

    def remove(self, upload: Upload) -> None:
        self._discard(self._path(upload).parent)

    def new_folder(self) -> Path:
        """Make a folder for an incoming file, which the caller removes."""
        folder = self.folder / _INCOMING / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def tidy(self) -> None:
        """Remove what was incoming when a process died. A file that has arrived stays: its row may be in another
        database, which is the one in use tomorrow."""
        for folder in self.folder.glob(f"{_INCOMING}/*"):
            with suppress(OSError):  # another process was faster
                if folder.stat().st_mtime < time.time() - ABANDON_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def _path(self, upload: Upload) -> Path:
        return self.folder / upload.owner / upload.id / Path(upload.name).name

    def _discard(self, folder: Path) -> None:
        """Remove a folder by moving it away first, so that nobody finds half of it; what stays of it is swept."""
        gone = self.new_folder() / folder.name
        with suppress(FileNotFoundError):  # or another process was faster
            folder.rename(gone)
        shutil.rmtree(gone.parent, ignore_errors=True)


class FolderFileStore(FileStore):
    """Files on this machine. One counts once its row is written, which happens last."""

    def has(self, upload: Upload) -> bool:
        return self._path(upload).is_file()

    def put(self, upload: Upload, file: Path) -> None:
        target = self._path(upload)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in target.parent.iterdir():  # by a process that was killed before it wrote a row
            left.unlink()
        with file.open("rb") as stream:
            os.fsync(stream.fileno())
        file.chmod(0o600)
        file.replace(target)

    def locate(self, name: str) -> Path:
        path = resolve_path(name, self.folder)
        if name.startswith(SCHEME) and not path.is_dir():
            raise _no_upload(name)
        return path


class DatabaseFileStore(FileStore):
    """Files in the database, in rows of a bounded size, sealed and encrypted like all others. What is removed here is
    the copy: the bytes go with the row, and copies on other machines when those tidy up."""

    def __init__(self, rows: Rows, folder: Path, *, max_bytes: int = MAX_COPY_BYTES) -> None:
        super().__init__(folder)
        self._rows = rows
        self._max_bytes = max_bytes
        self._tidied = -_TIDY_SECONDS

    def has(self, upload: Upload) -> bool:
        sql = "SELECT count(*) AS n FROM chunks WHERE upload = ?"
        return int(self._rows.database.query_one(sql, (upload.id,))["n"]) == _chunk_count(upload)

    def put(self, upload: Upload, file: Path) -> None:
        with self._rows.open_writer("") as writer, file.open("rb") as stream:
            writer.delete(CHUNKS, "WHERE upload = ?", (upload.id,))  # of bytes that were damaged
            for number in range(_chunk_count(upload)):
                content = stream.read(CHUNK)
                writer.insert(CHUNKS, {"upload": upload.id, "number": number, "content": content})

    def locate(self, name: str) -> Path:
        if not name.startswith(SCHEME):
            return Path(name)
        named = _UPLOAD_URI.fullmatch(name)
        found = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (named["id"], named["owner"])) if named else []
        if not found:
            raise _no_upload(name)
        upload = Upload.model_validate(found[0])
        file = self._path(upload)
        try:
            if not _is_intact(file, upload):
                self._copy(upload, file)
            os.utime(file.parent)  # it was used now
        except OSError as error:
            raise StorageError(
                f"document {upload.id} cannot be copied to {self.folder}: {error.strerror}",
                help="Make the data directory writable, on a disk that has room.",
                retryable=True,  # on another machine, perhaps
            ) from error
        return file.parent

    def tidy(self) -> None:
        """Remove copies of deleted uploads as well, and the least recently used where there are too many, but nothing
        that a run may be reading."""
        self._tidied = time.monotonic()
        super().tidy()
        copies = []
        for folder in self.folder.glob("[!.]*/*"):
            with suppress(OSError):  # another process removes it
                size = sum(file.stat().st_size for file in folder.iterdir())
                copies.append((folder.stat().st_mtime, folder, size))
        known = self._known_ids()
        taken = sum(size for _, _, size in copies)
        for used, folder, size in sorted(copies):
            if folder.name not in known or (taken > self._max_bytes and used < time.time() - ABANDON_SECONDS):
                self._discard(folder)
                taken -= size

    def _known_ids(self) -> set[str]:
        return {row["id"] for row in self._rows.database.query("SELECT id FROM uploads")}

    def _copy(self, upload: Upload, file: Path) -> None:
        if time.monotonic() - self._tidied > _TIDY_SECONDS:
            self.tidy()
        fresh = self.new_folder()
        try:
            self._write(upload, fresh / file.name)
            # Another process may do the same now, and either copy will do. A damaged one makes room.
            file.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            while not _is_intact(file, upload):
                try:
                    fresh.rename(file.parent)
                except OSError as error:
                    if error.errno not in _EXISTS_ERRORS:
                        raise
                    if not _is_intact(file, upload):
                        self._discard(file.parent)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _write(self, upload: Upload, file: Path) -> None:
        with file.open("xb") as stream:
            for first in range(0, _chunk_count(upload), _READ_ROWS):
                rest = "WHERE upload = ? AND number >= ? ORDER BY number LIMIT ?"
                for row in self._rows.read(CHUNKS, rest, (upload.id, first, _READ_ROWS)):
                    stream.write(row["content"])
        if not _is_intact(file, upload):
            if upload.id not in self._known_ids():
                raise _no_upload(upload.id)
            raise IntegrityError(f"the bytes of document {upload.id} are not what was given", help=ALTERATION_HELP)
        file.chmod(0o600)
        os.utime(file, (upload.created.timestamp(),) * 2)  # the same on every machine: an index compares it


def resolve_path(name: str, folder: Path) -> Path:
    """Return where documents are that a run was given: the folder of an upload, or the path itself."""
    return folder / name.removeprefix(SCHEME) if _UPLOAD_URI.fullmatch(name) else Path(name)


def public_address(file: Path, folder: Path) -> str:
    """Return the address of a file in reports: an upload by its id and name, any other by its path."""
    if not file.is_relative_to(folder):
        return file.as_uri()
    return f"{SCHEME}{file.parent.name}/{quote(file.name)}"


def hash_file(file: Path) -> tuple[str, int]:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_size


def _no_upload(name: str) -> NotFoundError:
    return NotFoundError(
        f"the document {name.rpartition('/')[2][:16]} was deleted", help="Upload it again, and ask again."
    )


def _chunk_count(upload: Upload) -> int:
    return -(-upload.size // CHUNK)


def _is_intact(file: Path, upload: Upload) -> bool:
    try:
        return hash_file(file) == (upload.hash, upload.size)
    except OSError:  # it is missing, or being removed
        return False


_ID = re.compile(r"[0-9a-f]{16}")


class SqlUploads(RowStore):
    def __init__(self, rows: Rows, files: FileStore) -> None:
        super().__init__(rows)
        self._files = files
        self._is_swept = False

    @run_in_thread
    def new_folder(self) -> Path:
        if not self._is_swept:
            self._is_swept = True
            self._files.tidy()
        return self._files.new_folder()

    @run_in_thread
    def add(self, owner: str, files: Sequence[tuple[Path, str]], room: UploadQuota) -> list[Upload]:
        """Add files, with their media types, under their names: all or none. The same bytes again are the same
        upload."""
        given = []
        for file, media in files:
            hash, size = hash_file(file)
            id = hashlib.sha256(f"{owner}:{hash}".encode()).hexdigest()[:16]  # reveals nothing about others' files
            upload = Upload(id=id, owner=owner, name=file.name, media=media, size=size, hash=hash, created=self._now())
            given.append((upload, file))
        with self._rows.open_writer("user", owner) as writer:
            found = [row for upload, _ in given if (row := writer.find(UPLOADS, upload.id))]
            uploads = {row["id"]: Upload.model_validate(row) for row in found}
            new = {upload.id: upload for upload, _ in reversed(given) if upload.id not in uploads}
            if new:
                _check_quota(writer, owner, room, list(new.values()))
            for upload in new.values():
                writer.insert(UPLOADS, dict(upload))
            uploads |= new
            for upload, file in given:
                if not self._files.has(uploads[upload.id]):
                    self._files.put(uploads[upload.id], file)
        return [uploads[upload.id] for upload, _ in given]

    @run_in_thread
    def list_for(self, owner: str, *, limit: int, after: UploadCursor | None = None) -> list[Upload]:
        """List uploads, newest first."""
        rest, values = "WHERE owner = ?", [owner]
        if after:
            rest += " AND (created, id) < (?, ?)"
            values += [timestamp(after.created), after.id]
        rows = self._rows.read(UPLOADS, f"{rest} ORDER BY created DESC, id DESC LIMIT ?", (*values, max(limit, 0)))
        return [Upload.model_validate(row) for row in rows]

    @run_in_thread
    def paths(self, owner: str, ids: Sequence[str]) -> list[str]:
        """Return their addresses for `ResearchOptions.docs`; NotFoundError for another user's."""
        return [self._get(owner, id).uri for id in dict.fromkeys(ids)]

    @run_in_thread
    def delete(self, owner: str, id: str) -> Upload:
        """Delete a file and its row; threads keep what they have read of it."""
        with self._rows.open_writer("user", owner) as writer:
            found = writer.find(UPLOADS, id) if _ID.fullmatch(id) else None
            if found is None or found["owner"] != owner:
                raise no_document(id)
            writer.delete(UPLOADS, "WHERE id = ?", (id,))
            upload = Upload.model_validate(found)
            self._files.remove(upload)  # while nobody can upload the same file again
        return upload

    def _get(self, owner: str, id: str) -> Upload:
        rows = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (id, owner)) if _ID.fullmatch(id) else []
        if not rows or not self._files.has(Upload.model_validate(rows[0])):
            raise no_document(id)
        return Upload.model_validate(rows[0])

    get = run_in_thread(_get)


def no_document(id: str) -> NotFoundError:
    return NotFoundError(f"no document {id[:40]}", help="Look at the list of documents for its id.")


def _check_quota(writer: Writer, owner: str, room: UploadQuota, new: Sequence[Upload]) -> None:
    sql = "SELECT count(*) AS n, coalesce(sum(size), 0) AS size FROM uploads WHERE owner = ?"
    row = writer.connection.execute(sql, (owner,)).fetchone()
    files, size = int(row["n"]) + len(new), int(row["size"]) + sum(upload.size for upload in new)
    if files > room.files:
        raise UsageError(
            f"you would have {files:,} documents; the limit is {room.files:,}", help="Delete some of them first."
        )
    if size > room.bytes:
        raise UsageError(
            f"your documents would take {size / 1e6:,.1f} MB; the limit is {room.bytes / 1e6:,.1f} MB",
            help="Delete some of them first.",
        )
