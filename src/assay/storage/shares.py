"""Links that show a thread to whoever has them; they go with it."""

import asyncio
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from assay.errors import NotFoundError
from assay.model.user import Share
from assay.storage.database import timestamp, utc_now
from assay.storage.rows import Rows
from assay.storage.tables import SHARES
from assay.storage.threads import writing_in
from assay.storage.users import hashed

PREFIX = "share"


class SqlShares:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def make(self, thread: str, lasts: timedelta) -> tuple[Share, str]:
        """A new link and its secret, which is told this once."""
        return await asyncio.to_thread(self._make, thread, lasts)

    async def known(self, secret: str) -> Share | None:
        """Whether or not it is still good."""
        return await asyncio.to_thread(self._known, secret)

    async def of(self, thread: str) -> list[Share]:
        return await asyncio.to_thread(self._of, thread)

    async def revoke(self, thread: str, id: str) -> Share:
        return await asyncio.to_thread(self._revoke, thread, id)

    def _make(self, thread: str, lasts: timedelta) -> tuple[Share, str]:
        id, now = secrets.token_hex(4), self._now()
        secret = f"{PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        share = Share(id=id, thread=thread, hash=hashed(secret), created=now, expires=now + lasts)
        times = {"created": timestamp(share.created), "expires": timestamp(share.expires)}
        with writing_in(self._rows, thread) as writer:
            writer.insert(SHARES, {**dict(share), **times})
        return share, secret

    def _known(self, secret: str) -> Share | None:
        rows = self._rows.read(SHARES, "WHERE hash = ?", (hashed(secret),))
        return Share.model_validate(rows[0]) if rows else None

    def _of(self, thread: str) -> list[Share]:
        rows = self._rows.read(SHARES, "WHERE thread = ? ORDER BY created, id", (thread,))
        return [Share.model_validate(row) for row in rows]

    def _revoke(self, thread: str, id: str) -> Share:
        with writing_in(self._rows, thread) as writer:
            found = writer.one(SHARES, id)
            if found is None or found["thread"] != thread:
                raise NotFoundError(f"there is no link {id} to this thread", help="See the thread's list of links.")
            row = writer.update(SHARES, (id,), {"revoked": found["revoked"] or timestamp(self._now())})
        return Share.model_validate(row or found)
