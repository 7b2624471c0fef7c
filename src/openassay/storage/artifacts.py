"""Tables and texts that came of a thread, with every version a person has made of them."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from openassay.errors import NotFoundError, UsageError
from openassay.models.base import Record
from openassay.models.report import Artifact, ArtifactKind
from openassay.storage.database import ARTIFACTS, PINS, timestamp, utc_now
from openassay.storage.rows import Row, Rows, Writer
from openassay.storage.threads import open_thread_writer

MOST_NAMES = 100  # of one thread
MOST_VERSIONS = 200  # of one artifact that people have made: none of them is ever dropped unasked
MOST_BYTES = 50_000_000  # of one thread, all versions together

# The last version of each, and the last that OpenAssay made.
_LATEST_VERSIONS = """
WHERE thread = ? AND version IN (
    (SELECT max(version) FROM artifacts AS a WHERE a.thread = artifacts.thread AND a.name = artifacts.name),
    (SELECT max(version) FROM artifacts AS a WHERE a.thread = artifacts.thread AND a.name = artifacts.name
        AND a.author = '')
) ORDER BY name, version
"""
_SIZES = """
SELECT name, count(*) AS n, sum(length(content)) AS size FROM artifacts WHERE thread = ? GROUP BY name
"""
_ALL_VERSIONS = "WHERE thread = ? AND name = ? ORDER BY version"


class ArtifactDraft(NamedTuple):
    """A version to be written, by whoever is its author."""

    name: str
    kind: ArtifactKind
    title: str
    content: str
    author: str = ""


class SqlArtifacts:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def latest(self, thread: str) -> list[Artifact]:
        """The last version of each, and the last that OpenAssay made of it."""
        return await asyncio.to_thread(self._latest, thread)

    async def versions(self, thread: str, name: str) -> list[Artifact]:
        """Oldest first."""
        return await asyncio.to_thread(self._versions, thread, name)

    async def keep(
        self, thread: str, draft: ArtifactDraft, base: ArtifactDraft | None, *, seen: int
    ) -> Artifact | None:
        """A new version. `base` is what OpenAssay makes of it now, which is kept too if it was not before.
        `seen` is the
        last version that was kept when the author looked, 0 for none; None comes back where there is another."""
        return await asyncio.to_thread(self._keep, thread, draft, base, seen)

    async def delete(self, thread: str, name: str) -> None:
        """All versions of it that were kept."""
        await asyncio.to_thread(self._delete, thread, name)

    def _latest(self, thread: str) -> list[Artifact]:
        return [_artifact(row) for row in self._rows.read(ARTIFACTS, _LATEST_VERSIONS, (thread,))]

    def _versions(self, thread: str, name: str) -> list[Artifact]:
        return [_artifact(row) for row in self._rows.read(ARTIFACTS, _ALL_VERSIONS, (thread, name))]

    def _keep(self, thread: str, draft: ArtifactDraft, base: ArtifactDraft | None, seen: int) -> Artifact | None:
        with open_thread_writer(self._rows, thread) as writer:
            kept = [_artifact(row) for row in writer.read(ARTIFACTS, _ALL_VERSIONS, (thread, draft.name))]
            last = kept[-1].version if kept else 0
            if last != seen:
                return None
            _check_limits(writer, thread, draft, sum(bool(one.author) for one in kept))
            made = next((one for one in reversed(kept) if not one.author), None)
            if base is not None and (made is None or made.content != base.content):
                last = self._write(writer, thread, base, last + 1).version
            return self._write(writer, thread, draft, last + 1)

    def _write(self, writer: Writer, thread: str, draft: ArtifactDraft, version: int) -> Artifact:
        made = Artifact(thread=thread, version=version, created=self._now(), **draft._asdict())
        writer.insert(ARTIFACTS, {**dict(made), "created": timestamp(made.created)})
        return made

    def _delete(self, thread: str, name: str) -> None:
        with open_thread_writer(self._rows, thread) as writer:
            if not writer.delete(ARTIFACTS, "WHERE thread = ? AND name = ?", (thread, name)):
                raise no_artifact(name)


def no_artifact(name: str) -> NotFoundError:
    return NotFoundError(
        f"this thread has no artifact {name[:40]} to speak of", help="Look at the list of its artifacts."
    )


def _check_limits(writer: Writer, thread: str, draft: ArtifactDraft, versions: int) -> None:
    rows = writer.connection.execute(_SIZES, (thread,)).fetchall()
    sizes = {str(row["name"]): int(row["size"]) for row in rows}
    if draft.name not in sizes and len(sizes) >= MOST_NAMES:
        raise UsageError(
            f"{MOST_NAMES} artifacts are kept of this thread, which is the most", help="Delete one of them."
        )
    if versions >= MOST_VERSIONS:
        raise UsageError(
            f"you have made {MOST_VERSIONS} versions of this, which is the most",
            help="Add it under another name, or delete it to begin with what OpenAssay makes of it.",
        )
    if sum(sizes.values()) + len(draft.content) > MOST_BYTES:
        raise UsageError(
            f"the artifacts of this thread would take more than {MOST_BYTES / 1e6:g} MB", help="Delete one of them."
        )


def _artifact(row: Row) -> Artifact:
    return Artifact.model_validate(row)


# Sources a person wants to keep in sight: documents of a thread, whatever number a report gives them.


class Pin(Record):
    thread: str
    document: str
    created: datetime


class SqlPins:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def pin(self, thread: str, document: str) -> None:
        """Pinning it again changes nothing."""
        await asyncio.to_thread(self._pin, thread, document)

    async def unpin(self, thread: str, document: str) -> bool:
        """Whether it was pinned."""
        return await asyncio.to_thread(self._unpin, thread, document)

    async def list_for(self, thread: str) -> list[Pin]:
        """Oldest first."""
        return await asyncio.to_thread(self._list_for, thread)

    def _pin(self, thread: str, document: str) -> None:
        row = {"thread": thread, "document": document, "created": timestamp(self._now())}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(PINS, row, on_conflict="keep")

    def _unpin(self, thread: str, document: str) -> bool:
        with open_thread_writer(self._rows, thread) as writer:
            return writer.delete(PINS, "WHERE thread = ? AND document = ?", (thread, document)) > 0

    def _list_for(self, thread: str) -> list[Pin]:
        rows = self._rows.read(PINS, "WHERE thread = ? ORDER BY created, document", (thread,))
        return [Pin.model_validate(row) for row in rows]
