"""Conversations of chat front ends, and the thread each became. A front end sends all of what was said each time: it is
known again by the last question and the answer to it, also where the front end has left out what came before."""

import asyncio
import hashlib
from collections.abc import Callable
from datetime import datetime

from assay.storage.database import timestamp, utc_now
from assay.storage.rows import Rows
from assay.storage.tables import CHATS
from assay.storage.threads import writing_in

_OWNED = (
    "WHERE said = ? AND thread IN (SELECT id FROM threads WHERE owner = ?) ORDER BY created DESC, thread DESC LIMIT 1"
)
_LAST = "WHERE thread = ? ORDER BY created DESC, said LIMIT 1"


class SqlChats:
    """Nothing of what was said is kept here but its hash."""

    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def add(self, thread: str, question: str, answer: str) -> None:
        """What was said last on a thread; NotFoundError if there is none any more."""
        await asyncio.to_thread(self._add, thread, _said(question, answer))

    async def thread(self, owner: str, question: str, answer: str) -> str | None:
        """The person's thread that ends with this. A question that was asked again, or changed after it was answered,
        belongs to no thread: the one it was asked on has gone on."""
        return await asyncio.to_thread(self._thread, owner, _said(question, answer))

    def _add(self, thread: str, said: str) -> None:
        row = {"said": said, "thread": thread, "created": timestamp(self._now())}
        with writing_in(self._rows, thread) as writer:
            writer.insert(CHATS, row, on_conflict="replace")

    def _thread(self, owner: str, said: str) -> str | None:
        rows = self._rows.read(CHATS, _OWNED, (said, owner))
        if not rows:
            return None
        thread = str(rows[0]["thread"])
        [last] = self._rows.read(CHATS, _LAST, (thread,))
        return thread if last["said"] == said else None


def _said(question: str, answer: str) -> str:
    """Front ends trim and wrap: white space does not count."""
    plain = "\x1f".join(" ".join(text.split()) for text in (question, answer))
    return hashlib.sha256(plain.encode()).hexdigest()
