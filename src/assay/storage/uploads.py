"""Files people have given.

    uploads/OWNER/ID/NAME     one of them; it counts once its row is written, which happens last
    uploads/.incoming/TOKEN/  one that is on its way, or was when something stopped it

Nothing outside knows where they stand: a run is given `upload:OWNER/ID`, and what it reads is called `upload:ID/NAME`.
"""

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from assay.errors import NotFoundError, UsageError
from assay.model.upload import SCHEME, Upload
from assay.storage.database import timestamp, utc_now
from assay.storage.rows import Row, Rows, Writer
from assay.storage.tables import UPLOADS

ABANDONED = 3600  # seconds after which what is on its way will not arrive any more
_INCOMING = ".incoming"
_ID = re.compile(r"[0-9a-f]{16}")
_NAMED = re.compile(rf"{SCHEME}[A-Za-z0-9_-]{{1,64}}/[0-9a-f]{{16}}")


class Room(NamedTuple):
    """How much one person may keep."""

    files: int
    bytes: int


class Page(NamedTuple):
    """Where a page of uploads has ended, the newest first."""

    created: datetime
    id: str


class SqlUploads:
    def __init__(self, rows: Rows, folder: Path, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._folder = folder
        self._now = now
        self._is_swept = False

    async def incoming(self) -> Path:
        """A new folder for one file on its way; whoever asks for it removes it."""
        return await asyncio.to_thread(self._new_folder)

    async def add(self, owner: str, files: Sequence[tuple[Path, str]], room: Room) -> list[Upload]:
        """Takes files, with their media types, from where they are, under their names: all or none. Bytes that are here
        already are the upload they were."""
        return await asyncio.to_thread(self._add, owner, files, room)

    async def get(self, owner: str, id: str) -> Upload:
        return await asyncio.to_thread(self._get, owner, id)

    async def of(self, owner: str, *, limit: int, after: Page | None = None) -> list[Upload]:
        """The newest first."""
        return await asyncio.to_thread(self._of, owner, limit, after)

    async def paths(self, owner: str, ids: Sequence[str]) -> list[str]:
        """What `Options.docs` takes for them: no place on this disk. NotFoundError for another's."""
        return await asyncio.to_thread(lambda: [named(self._get(owner, id)) for id in dict.fromkeys(ids)])

    async def delete(self, owner: str, id: str) -> Upload:
        """The file and its row; threads keep what they have read of it."""
        return await asyncio.to_thread(self._delete, owner, id)

    # -- inside -------------------------------------------------------------------------------------------

    def _new_folder(self) -> Path:
        if not self._is_swept:
            self._is_swept = True
            self._sweep()
        folder = self._folder / _INCOMING / secrets.token_hex(8)
        folder.mkdir(parents=True, mode=0o700)
        return folder

    def _add(self, owner: str, files: Sequence[tuple[Path, str]], room: Room) -> list[Upload]:
        given = [(self._described(owner, file, media), file) for file, media in files]
        with self._rows.writing("user", owner) as writer:
            kept = {upload.id: _upload(row) for upload, _ in given if (row := writer.one(UPLOADS, upload.id))}
            new = {upload.id: upload for upload, _ in reversed(given) if upload.id not in kept}
            _refuse_beyond(room, _kept(writer, owner), list(new.values()))
            for upload, file in given:
                target = self._place(kept.get(upload.id) or new[upload.id])
                if not target.is_file():
                    _put(file, target)
            for upload in new.values():
                writer.insert(UPLOADS, {**dict(upload), "created": timestamp(upload.created)})
        return [kept.get(upload.id) or new[upload.id] for upload, _ in given]

    def _described(self, owner: str, file: Path, media: str) -> Upload:
        hash, size = _hashed(file)
        return Upload(
            id=_id(owner, hash), owner=owner, name=file.name, media=media, size=size, hash=hash, created=self._now()
        )

    def _get(self, owner: str, id: str) -> Upload:
        rows = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (id, owner)) if _ID.fullmatch(id) else []
        if not rows or not self._place(_upload(rows[0])).is_file():
            raise no_document(id)
        return _upload(rows[0])

    def _of(self, owner: str, limit: int, after: Page | None) -> list[Upload]:
        rest, values = "WHERE owner = ?", list[object]([owner])
        if after:
            rest += " AND (created < ? OR (created = ? AND id < ?))"
            values += [timestamp(after.created), timestamp(after.created), after.id]
        rows = self._rows.read(UPLOADS, f"{rest} ORDER BY created DESC, id DESC LIMIT ?", (*values, max(limit, 0)))
        return [_upload(row) for row in rows]

    def _delete(self, owner: str, id: str) -> Upload:
        gone = self._folder / _INCOMING / secrets.token_hex(8)
        with self._rows.writing("user", owner) as writer:
            found = writer.one(UPLOADS, id) if _ID.fullmatch(id) else None
            if found is None or found["owner"] != owner:
                raise no_document(id)
            writer.delete(UPLOADS, "WHERE id = ?", (id,))
            folder = self._place(_upload(found)).parent
            if folder.is_dir():
                gone.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                folder.rename(gone)  # while nobody can give the same file again
        shutil.rmtree(gone, ignore_errors=True)  # what stays is swept
        return _upload(found)

    def _place(self, upload: Upload) -> Path:
        return self._folder / upload.owner / upload.id / upload.name

    def _sweep(self) -> None:
        """What was on its way when a process died. A file that has arrived is nobody's to sweep: its row may stand in
        another database, which is the one in use tomorrow."""
        before = time.time() - ABANDONED
        for folder in self._folder.glob(f"{_INCOMING}/*"):
            if _changed(folder) < before:
                shutil.rmtree(folder, ignore_errors=True)


def named(upload: Upload) -> str:
    return f"{SCHEME}{upload.owner}/{upload.id}"


def place(name: str, folder: Path) -> Path:
    """Where the documents stand that a run was given: the folder of an upload, or the path itself."""
    return folder / name.removeprefix(SCHEME) if _NAMED.fullmatch(name) else Path(name)


def located(name: str, folder: Path) -> Path:
    """As `place`, of an upload that is still there."""
    found = place(name, folder)
    if name.startswith(SCHEME) and not found.is_dir():
        raise NotFoundError(
            f"the document {name.rpartition('/')[2][:16]} is not there any more", help="Upload it again, and ask anew."
        )
    return found


def address(file: Path, folder: Path) -> str:
    """What a file is called in reports: an upload by its id and name, any other by its path."""
    if not file.is_relative_to(folder):
        return file.as_uri()
    return f"{SCHEME}{file.parent.name}/{quote(file.name)}"


def no_document(id: str) -> NotFoundError:
    return NotFoundError(f"no document {id[:40]}", help="Look at the list of documents for its id.")


def _id(owner: str, hash: str) -> str:
    """Of nobody else: what others have given cannot be told from it."""
    return hashlib.sha256(f"{owner}:{hash}".encode()).hexdigest()[:16]


def _hashed(file: Path) -> tuple[str, int]:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), file.stat().st_size


def _kept(writer: Writer, owner: str) -> Room:
    sql = "SELECT count(*) AS n, coalesce(sum(size), 0) AS size FROM uploads WHERE owner = ?"
    row = writer.connection.execute(sql, (owner,)).fetchone()
    return Room(int(row["n"]), int(row["size"]))


def _refuse_beyond(room: Room, kept: Room, new: Sequence[Upload]) -> None:
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


def _put(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for left in target.parent.iterdir():  # by a process that was killed before it wrote a row
        left.unlink()
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
    file.chmod(0o600)
    file.replace(target)


def _changed(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # somebody else was faster
        return time.time()


def _upload(row: Row) -> Upload:
    return Upload.model_validate(row)
