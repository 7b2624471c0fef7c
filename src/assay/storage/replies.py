"""What was answered to requests with an Idempotency-Key, for as long as somebody may send them again.

A key is claimed before the work and kept with the answer after it. A claim without an answer whose time is over was
left by a process that died: whoever comes next takes it over, under the same name, and can see what became of the work.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

from assay.model.record import Record
from assay.storage.database import timestamp, utc_now
from assay.storage.rows import Row, Rows, Writer
from assay.storage.tables import REPLIES

KEPT = timedelta(hours=24)
LEASE = timedelta(seconds=90)  # an answer takes no longer: a start waits 60 s at most
PENDING = 0  # in place of a status


class Reply(Record):
    """`body` of one that is pending is the name its work goes by."""

    owner: str
    key: str
    request: str  # hash of what was sent
    status: int
    body: str
    created: datetime

    @property
    def pending(self) -> bool:
        return self.status == PENDING


class SqlReplies:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def claim(self, owner: str, key: str, request: str, name: str) -> tuple[Reply, bool]:
        """The reply of that key, and whether the work is the caller's to do. `name` is what a new one goes by."""
        return await asyncio.to_thread(self._claim, owner, key, request, name)

    async def keep(self, owner: str, key: str, status: int, body: str) -> None:
        await asyncio.to_thread(self._keep, owner, key, status, body)

    async def release(self, owner: str, key: str) -> None:
        """Nothing came of it: the key can be used again."""
        await asyncio.to_thread(self._release, owner, key)

    def _claim(self, owner: str, key: str, request: str, name: str) -> tuple[Reply, bool]:
        now = self._now()
        new = Reply(owner=owner, key=key, request=request, status=PENDING, body=name, created=now)
        with self._rows.writing("") as writer:
            writer.delete(REPLIES, "WHERE created < ?", (timestamp(now - KEPT),))
            if writer.insert(REPLIES, {**dict(new), "created": timestamp(now)}, on_conflict="keep"):
                return new, True
            row = self._locked(writer, owner, key)
            if row is None:
                return new, False  # it was given up just now
            held = Reply.model_validate(row)
            if not held.pending or held.request != request or now - held.created < LEASE:
                return held, False
            writer.update(REPLIES, (owner, key), {"created": timestamp(now)})
            return held, True

    def _locked(self, writer: Writer, owner: str, key: str) -> Row | None:
        """Two who find it left must not both take it over."""
        held = f"SELECT 1 FROM replies WHERE owner = ? AND key = ?{self._rows.database.for_update}"  # noqa: S608
        writer.connection.execute(held, (owner, key))
        return writer.one(REPLIES, owner, key)

    def _keep(self, owner: str, key: str, status: int, body: str) -> None:
        with self._rows.writing("") as writer:
            writer.update(REPLIES, (owner, key), {"status": status, "body": body})

    def _release(self, owner: str, key: str) -> None:
        with self._rows.writing("") as writer:
            writer.delete(REPLIES, f"WHERE owner = ? AND key = ? AND status = {PENDING}", (owner, key))
