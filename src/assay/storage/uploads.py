"""Files people have given: whose each is, what it is called, and how much one person may keep. Where the bytes stand is
up to files.py."""

import asyncio
import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from assay.errors import NotFoundError, UsageError
from assay.model.upload import SCHEME, Upload
from assay.storage.database import timestamp, utc_now
from assay.storage.files import Files, hashed, upload_of
from assay.storage.rows import Rows, Writer
from assay.storage.tables import UPLOADS

_ID = re.compile(r"[0-9a-f]{16}")


class Room(NamedTuple):
    """How much one person may keep."""

    files: int
    bytes: int


class Page(NamedTuple):
    """Where a page of uploads has ended, the newest first."""

    created: datetime
    id: str


class SqlUploads:
    def __init__(self, rows: Rows, files: Files, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._files = files
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
            self._files.tidy()
        return self._files.incoming()

    def _add(self, owner: str, files: Sequence[tuple[Path, str]], room: Room) -> list[Upload]:
        given = [(self._described(owner, file, media), file) for file, media in files]
        with self._rows.writing("user", owner) as writer:
            kept = {upload.id: upload_of(row) for upload, _ in given if (row := writer.one(UPLOADS, upload.id))}
            new = {upload.id: upload for upload, _ in reversed(given) if upload.id not in kept}
            _refuse_beyond(room, _kept(writer, owner), list(new.values()))
            for upload in new.values():
                writer.insert(UPLOADS, {**dict(upload), "created": timestamp(upload.created)})
            for upload, file in given:
                target = kept.get(upload.id) or new[upload.id]
                if not self._files.has(target):
                    self._files.put(target, file)
        return [kept.get(upload.id) or new[upload.id] for upload, _ in given]

    def _described(self, owner: str, file: Path, media: str) -> Upload:
        hash, size = hashed(file)
        return Upload(
            id=_id(owner, hash), owner=owner, name=file.name, media=media, size=size, hash=hash, created=self._now()
        )

    def _get(self, owner: str, id: str) -> Upload:
        rows = self._rows.read(UPLOADS, "WHERE id = ? AND owner = ?", (id, owner)) if _ID.fullmatch(id) else []
        if not rows or not self._files.has(upload_of(rows[0])):
            raise no_document(id)
        return upload_of(rows[0])

    def _of(self, owner: str, limit: int, after: Page | None) -> list[Upload]:
        rest, values = "WHERE owner = ?", list[object]([owner])
        if after:
            rest += " AND (created < ? OR (created = ? AND id < ?))"
            values += [timestamp(after.created), timestamp(after.created), after.id]
        rows = self._rows.read(UPLOADS, f"{rest} ORDER BY created DESC, id DESC LIMIT ?", (*values, max(limit, 0)))
        return [upload_of(row) for row in rows]

    def _delete(self, owner: str, id: str) -> Upload:
        with self._rows.writing("user", owner) as writer:
            found = writer.one(UPLOADS, id) if _ID.fullmatch(id) else None
            if found is None or found["owner"] != owner:
                raise no_document(id)
            writer.delete(UPLOADS, "WHERE id = ?", (id,))
            self._files.remove(upload_of(found))  # while nobody can give the same file again
        return upload_of(found)


def named(upload: Upload) -> str:
    return f"{SCHEME}{upload.owner}/{upload.id}"


def no_document(id: str) -> NotFoundError:
    return NotFoundError(f"no document {id[:40]}", help="Look at the list of documents for its id.")


def _id(owner: str, hash: str) -> str:
    """Of nobody else: what others have given cannot be told from it."""
    return hashlib.sha256(f"{owner}:{hash}".encode()).hexdigest()[:16]


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
