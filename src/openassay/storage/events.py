"""The events of a run, the notes that a thread's state refers to, and the reviews that ask people."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from openassay.errors import IntegrityError, LateAnswerError, NotFoundError, StorageError, no_run, no_thread
from openassay.models.event import Event
from openassay.models.thread import AnswerOrigin, Review
from openassay.storage.database import EVENTS, NOTES, REVIEWS, USED_DOCUMENTS, ConstraintError, run_in_thread
from openassay.storage.sealed_rows import ALTERATION_HELP, Row, Rows, RowStore, Writer, row_name
from openassay.storage.threads import open_thread_writer

_LAST = "SELECT coalesce(max(seq), 0) AS seq FROM events WHERE run = ?"


class SqlEvents:
    """Events, numbered from 1 without gaps, whichever process appends. Events belong to a run: they are refused
    before it begins and deleted with its thread. `on_append` is called with each, in the thread that appended it."""

    def __init__(self, rows: Rows, on_append: Callable[[Event], None] = lambda event: None) -> None:
        self._rows = rows
        self._on_append = on_append

    @run_in_thread
    def append(self, event: Event) -> Event:
        try:
            data = event.plain()["data"]
        except ValueError as error:
            raise StorageError(
                f"the data of a {event.kind!r} event cannot be written as JSON: {error}",
                help="Put only plain data into events: text, numbers, lists and dictionaries.",
                run=event.run,
            ) from error
        with self._rows.open_writer("run", event.run) as writer:
            seq = int(writer.connection.execute(_LAST, (event.run,)).fetchone()["seq"]) + 1
            values = {**dict(event), "seq": seq, "data": json.dumps(data)}
            try:
                writer.insert(EVENTS, values)
            except ConstraintError as error:
                raise no_run(event.run) from error
        appended = event.model_copy(update={"seq": seq, "data": data})
        self._on_append(appended)
        return appended

    @run_in_thread
    def has(self, run: str, seq: int) -> bool:
        return self._rows.find(EVENTS, run, seq) is not None

    @run_in_thread
    def since(self, run: str, seq: int) -> list[Event]:
        rows = self._rows.read(EVENTS, "WHERE run = ? AND seq > ? ORDER BY seq", (run, seq))
        return [Event.model_validate({**row, "data": json.loads(row["data"])}) for row in rows]


DIGITS = 40  # of a note's name, so that none is taken for the hash of a document
_COMPRESSION_LEVEL = 1  # 35 KB of hits in 0.4 ms, to a seventh
_DOCUMENT = "document"  # the key under which nodes write the hash of a document
_HASH = re.compile(r"[0-9a-f]{64}")
_WRITTEN_HASH = re.compile(rb'(?<=[{,])"document":"([0-9a-f]{64})"')  # in a text the quotes would be escaped


class SqlNotes(RowStore):
    """Notes: plain values that the state of a thread refers to, compressed, each under a name made from its content.

    The documents a note speaks of count as used by its thread. `get` raises NotFoundError, or IntegrityError if a note
    was altered."""

    @run_in_thread
    def put(self, thread: str, values: Sequence[Any]) -> list[str]:
        contents = [encode_note(value) for value in values]
        names = [note_name(content) for content in contents]
        with open_thread_writer(self._rows, thread) as writer:
            for name, content in zip(names, contents, strict=True):
                row = {"thread": thread, "name": name, "content": zlib.compress(content, _COMPRESSION_LEVEL)}
                if writer.insert(NOTES, row, on_conflict="keep"):
                    record_hashes(writer, thread, find_hashes(content))
        return names

    @run_in_thread
    def get(self, thread: str, names: Collection[str]) -> dict[str, Any]:
        return {row["name"]: _decode_note(row) for row in self._read(thread, names)}

    def _read(self, thread: str, names: Collection[str]) -> list[Row]:
        rows = list(self._rows.iter_among(NOTES, "name", names, "AND thread = ?", (thread,)))
        if missing := sorted(set(names) - {row["name"] for row in rows}):
            raise NotFoundError(f"thread {thread} has no note {missing[0]}", help=ALTERATION_HELP, thread=thread)
        return rows

    def copy(self, source: str, target: str, names: Collection[str]) -> None:
        """Copy notes to another thread, as part of the caller's transaction."""
        rows = self._read(source, names)
        with open_thread_writer(self._rows, target) as writer:
            for row in rows:
                if writer.insert(NOTES, {**row, "thread": target}, on_conflict="keep"):
                    record_documents(writer, target, _decode_note(row))


def encode_note(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def note_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def _decode_note(row: Row) -> Any:
    try:
        content = zlib.decompress(row["content"])
        if note_name(content) == row["name"]:
            return json.loads(content)
    except (zlib.error, ValueError):
        pass
    raise IntegrityError(
        f"row {row_name(NOTES, row)} is not what its name was made from", help=ALTERATION_HELP, table=NOTES.name
    )


def record_documents(writer: Writer, thread: str, value: Any) -> None:
    """Record that a thread uses every document the value refers to. Whoever may see the thread may read them, so the
    value must be made by nodes, not by people or pages."""
    record_hashes(writer, thread, set(find_documents(value)))


def record_hashes(writer: Writer, thread: str, documents: Iterable[str]) -> None:
    for document in sorted(documents):
        writer.insert(USED_DOCUMENTS, {"thread": thread, "document": document}, on_conflict="keep")


def find_hashes(content: bytes) -> set[str]:
    """Return what `find_documents` finds in the value that was encoded."""
    return {found.decode() for found in _WRITTEN_HASH.findall(content)}


def find_documents(value: Any) -> Iterator[str]:
    """Yield the hashes of documents that plain data refer to, in no order: what stands under `document`. A text
    elsewhere does not count, even if it looks like a hash: a person, a page or a model may have written it."""
    stack = [value]
    while stack:
        item = stack.pop()
        if item is None or isinstance(item, str | int | float):
            continue
        if isinstance(item, Mapping):
            hash = item.get(_DOCUMENT)
            if isinstance(hash, str) and len(hash) == 64 and _HASH.fullmatch(hash):  # digits of a SHA-256
                yield hash
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif hasattr(item, "arg"):  # a Send
            stack.append(item.arg)


_FIRST_DUE = "ORDER BY due IS NULL, due, opened, rowid"
_OWNED = "thread IN (SELECT id FROM threads WHERE owner = ?)"
# The question of a run that was stopped is asked again when the run is resumed.
_UNANSWERED = """
answered IS NULL AND NOT EXISTS
(SELECT 1 FROM runs WHERE runs.id = reviews.run AND runs.status IN ('cancelled', 'done', 'failed'))
"""
_LATEST = "WHERE thread = ? ORDER BY opened DESC, rowid DESC LIMIT 1"


class SqlReviews(RowStore):
    """Questions to people. An answer is taken once: the second, or one too late, is refused with AnswerError."""

    @run_in_thread
    def open(self, review: Review) -> None:
        values = {**dict(review), "answer": json.dumps(plain_answer(review.answer))}
        with self._rows.open_writer("thread", review.thread) as writer:
            try:
                writer.insert(REVIEWS, values, on_conflict="keep")
            except ConstraintError as error:
                raise no_thread(review.thread) from error

    @run_in_thread
    def pending(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        """List what is not answered, of runs that have not ended: what is due first, then what was opened first."""
        mine, whose = ("", ()) if owner is None else (f"AND {_OWNED}", (owner,))
        if thread is None:
            rows, _ = self._rows.read_lenient(REVIEWS, f"WHERE {_UNANSWERED} {mine} {_FIRST_DUE}", whose)
        else:
            rest = f"WHERE {_UNANSWERED} AND thread = ? {mine} {_FIRST_DUE}"
            rows = self._rows.read(REVIEWS, rest, (thread, *whose))
        return [_to_review(row) for row in rows]

    @run_in_thread
    def latest(self, thread: str) -> Review | None:
        rows = self._rows.read(REVIEWS, _LATEST, (thread,))
        return _to_review(rows[0]) if rows else None

    @run_in_thread
    def accept_answer(self, id: str, answer: Any, by: AnswerOrigin, now: datetime) -> Review:
        changes = {"answer": json.dumps(plain_answer(answer)), "by": by, "answered": now}
        with self._rows.open_writer("thread", self._get(id).thread) as writer:
            [row] = writer.read(REVIEWS, "WHERE id = ?", (id,))
            review = _to_review(row)
            late = by == "person" and review.due is not None and now >= review.due
            if review.answered or late:
                overdue = f"The default applies now: openassay resume {review.thread}"
                raise LateAnswerError(
                    review.refusal,
                    help="See what is open with: openassay review" if review.answered else overdue,
                    thread=review.thread,
                    run=review.run,
                    question=review.id,
                )
            return _to_review(writer.update(REVIEWS, (id,), changes) or row)

    def _get(self, id: str) -> Review:
        row = self._rows.find(REVIEWS, id)
        if row is None:
            raise no_review(id)
        return _to_review(row)

    get = run_in_thread(_get)


def no_review(id: str) -> NotFoundError:
    return NotFoundError(f"no question {id}", help="See what is open with: openassay review")


def plain_answer(answer: Any) -> Any:
    """Return an answer as it will be read back."""
    try:
        return to_jsonable_python(answer)
    except ValueError as error:
        raise StorageError(
            f"an answer cannot be written as JSON: {error}",
            help="Answer with plain data: text, numbers, lists and dictionaries.",
        ) from error


def _to_review(row: Row) -> Review:
    return Review.model_validate({**dict(row), "answer": json.loads(row["answer"])})
