"""Artifacts of a thread, with every version that people have made of them, and the sources they have pinned."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from openassay.errors import NotFoundError, UsageError
from openassay.models.base import Record
from openassay.models.report import Artifact, ArtifactKind
from openassay.storage.database import ARTIFACTS, PINS, run_in_thread, timestamp, utc_now
from openassay.storage.rows import Row, Rows, Writer
from openassay.storage.threads import open_thread_writer

MAX_NAMES = 100  # of one thread
MAX_VERSIONS = 200  # of one artifact that people have made: none of them is ever dropped unasked
MAX_BYTES = 50_000_000  # of one thread, all versions together

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
    """A version to be written; `author` is empty for one that OpenAssay makes."""

    name: str
    kind: ArtifactKind
    title: str
    content: str
    author: str = ""


class SqlArtifacts:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    @run_in_thread
    def latest(self, thread: str) -> list[Artifact]:
        """List the last version of each, and the last that OpenAssay made of it."""
        return [_artifact(row) for row in self._rows.read(ARTIFACTS, _LATEST_VERSIONS, (thread,))]

    @run_in_thread
    def versions(self, thread: str, name: str) -> list[Artifact]:
        """List the versions of one, oldest first."""
        return [_artifact(row) for row in self._rows.read(ARTIFACTS, _ALL_VERSIONS, (thread, name))]

    @run_in_thread
    def keep(self, thread: str, draft: ArtifactDraft, base: ArtifactDraft | None, *, seen: int) -> Artifact | None:
        """Store a new version. `base` is what OpenAssay makes of it now, which is stored too if it was not before.
        `seen` is the last version stored when the author looked, 0 for none; returns None where there is another."""
        with open_thread_writer(self._rows, thread) as writer:
            stored = [_artifact(row) for row in writer.read(ARTIFACTS, _ALL_VERSIONS, (thread, draft.name))]
            last = stored[-1].version if stored else 0
            if last != seen:
                return None
            rows = writer.connection.execute(_SIZES, (thread,)).fetchall()
            sizes = {str(row["name"]): int(row["size"]) for row in rows}
            if draft.name not in sizes and len(sizes) >= MAX_NAMES:
                raise UsageError(
                    f"this thread has {MAX_NAMES} artifacts, which is the limit", help="Delete one of them."
                )
            if sum(bool(version.author) for version in stored) >= MAX_VERSIONS:
                raise UsageError(
                    f"you have made {MAX_VERSIONS} versions of this, which is the limit",
                    help="Add it under another name, or delete it to start again from what OpenAssay makes of it.",
                )
            if sum(sizes.values()) + len(draft.content) > MAX_BYTES:
                raise UsageError(
                    f"the artifacts of this thread would take more than {MAX_BYTES / 1e6:g} MB",
                    help="Delete one of them.",
                )
            made = next((version for version in reversed(stored) if not version.author), None)
            if base is not None and (made is None or made.content != base.content):
                last = self._write(writer, thread, base, last + 1).version
            return self._write(writer, thread, draft, last + 1)

    @run_in_thread
    def delete(self, thread: str, name: str) -> None:
        """Delete all its versions."""
        with open_thread_writer(self._rows, thread) as writer:
            if not writer.delete(ARTIFACTS, "WHERE thread = ? AND name = ?", (thread, name)):
                raise no_artifact(name)

    def _write(self, writer: Writer, thread: str, draft: ArtifactDraft, version: int) -> Artifact:
        made = Artifact(thread=thread, version=version, created=self._now(), **draft._asdict())
        writer.insert(ARTIFACTS, {**dict(made), "created": timestamp(made.created)})
        return made


def no_artifact(name: str) -> NotFoundError:
    return NotFoundError(f"this thread has no artifact {name[:40]}", help="Look at the list of its artifacts.")


def _artifact(row: Row) -> Artifact:
    return Artifact.model_validate(row)


class Pin(Record):
    """A document that a person has pinned to a thread, whatever number a report gives it."""

    thread: str
    document: str
    created: datetime


class SqlPins:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    @run_in_thread
    def pin(self, thread: str, document: str) -> None:
        """Pin a document; pinning it again changes nothing."""
        row = {"thread": thread, "document": document, "created": timestamp(self._now())}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(PINS, row, on_conflict="keep")

    @run_in_thread
    def unpin(self, thread: str, document: str) -> bool:
        """Unpin a document; return whether it was pinned."""
        with open_thread_writer(self._rows, thread) as writer:
            return writer.delete(PINS, "WHERE thread = ? AND document = ?", (thread, document)) > 0

    @run_in_thread
    def list_for(self, thread: str) -> list[Pin]:
        """List the pins of a thread, oldest first."""
        rows = self._rows.read(PINS, "WHERE thread = ? ORDER BY created, document", (thread,))
        return [Pin.model_validate(row) for row in rows]
