"""Threads found by words of their title, or of the question that was asked on them last.

What is stored may be encrypted, so it is looked through here and not by the database, a bounded part at a time."""

import asyncio
from collections.abc import Collection, Sequence

from assay.model.event import RunStatus
from assay.model.thread import Cursor, ThreadSummary
from assay.server.service import Service
from assay.server.summaries import closed, cursor_of, end_of
from assay.text.words import fold

LONGEST = 200  # characters of what is looked for
PAGE, MOST_LOOKED_AT = 200, 2_000  # threads: at once, and for one request


async def search(
    service: Service, words: str, limit: int, status: Collection[RunStatus], owner: str, after: Cursor | None
) -> tuple[list[ThreadSummary], str | None]:
    """At most `limit` of them, the newest first, and where to go on looking; None: all were looked at."""
    wanted, found = fold(words).split(), list[ThreadSummary]()
    for _ in range(MOST_LOOKED_AT // PAGE):
        page = await service.engine.overview(PAGE, status, owner=owner, after=after)
        found += await asyncio.to_thread(_matching, page, wanted)
        if len(found) > limit:
            return found[:limit], cursor_of(found[:limit])
        after = end_of(page)
        if len(page) < PAGE or after is None:
            return found, None
    return found, closed(*after) if after else None


def _matching(page: Sequence[ThreadSummary], words: Sequence[str]) -> list[ThreadSummary]:
    told = [(one, fold(f"{one.title} {one.question}")) for one in page]
    return [one for one, text in told if all(word in text for word in words)]
