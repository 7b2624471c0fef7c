"""Questions put to people; the database itself takes one answer to each."""

import asyncio
import json
import sqlite3
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from assay.errors import AnswerError, NotFoundError, StorageError
from assay.model.review import By, Review
from assay.storage.sqlite import Database, timestamp
from assay.storage.threads import no_thread

_OPEN = """
INSERT INTO reviews (id, thread, run, kind, question, opened, due, on_timeout, answered, answer, "by")
VALUES (:id, :thread, :run, :kind, :question, :opened, :due, :on_timeout, :answered, :answer, :by)
ON CONFLICT (id) DO NOTHING
"""

_PENDING = """
SELECT * FROM reviews WHERE answered IS NULL AND (:thread IS NULL OR thread = :thread)
ORDER BY due IS NULL, due, opened, rowid
"""

_LATEST = "SELECT * FROM reviews WHERE thread = ? ORDER BY opened DESC, rowid DESC LIMIT 1"

# Times are text of fixed width, so they compare as text.
_TAKE = """
UPDATE reviews SET answered = :now, answer = :answer, "by" = :by
WHERE id = :id AND answered IS NULL AND (:by <> 'person' OR due IS NULL OR :now < due)
"""


class SqliteReviews:
    """A ports.ReviewStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, review: Review) -> None:
        await asyncio.to_thread(self._open, review)

    async def get(self, id: str) -> Review:
        return await asyncio.to_thread(self._get, id)

    async def pending(self, thread: str | None = None) -> list[Review]:
        return await asyncio.to_thread(self._pending, thread)

    async def latest(self, thread: str) -> Review | None:
        return await asyncio.to_thread(self._latest, thread)

    async def take(self, id: str, answer: Any, by: By, now: datetime) -> Review:
        return await asyncio.to_thread(self._take, id, answer, by, now)

    def _open(self, review: Review) -> None:
        times = {name: getattr(review, name) for name in ("opened", "due", "answered")}
        values = {
            **dict(review),
            **{name: timestamp(moment) if moment else None for name, moment in times.items()},
            "answer": json.dumps(plain_answer(review.answer)),
        }
        with self._database.transaction() as connection:
            try:
                connection.execute(_OPEN, values)
            except sqlite3.IntegrityError as error:
                raise no_thread(review.thread) from error

    def _get(self, id: str) -> Review:
        with self._database.connection() as connection:
            row = connection.execute("SELECT * FROM reviews WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise no_review(id)
        return _restored(row)

    def _pending(self, thread: str | None) -> list[Review]:
        with self._database.connection() as connection:
            rows = connection.execute(_PENDING, {"thread": thread}).fetchall()
        return [_restored(row) for row in rows]

    def _latest(self, thread: str) -> Review | None:
        with self._database.connection() as connection:
            row = connection.execute(_LATEST, (thread,)).fetchone()
        return _restored(row) if row else None

    def _take(self, id: str, answer: Any, by: By, now: datetime) -> Review:
        values = {"id": id, "answer": json.dumps(plain_answer(answer)), "by": by, "now": timestamp(now)}
        with self._database.transaction() as connection:
            taken = connection.execute(_TAKE, values).rowcount
            review = self._get(id)
        if not taken:
            raise refusal(review)
        return review


def no_review(id: str) -> NotFoundError:
    return NotFoundError(f"no question {id}", help="See what is open with: assay review")


def refusal(review: Review) -> AnswerError:
    """Why an answer comes too late: there is one, or the time for it is over."""
    overdue = f"Let the clock decide: assay resume {review.thread}"
    return AnswerError(
        review.refusal,
        help="See what is open with: assay review" if review.answered else overdue,
        thread=review.thread,
        run=review.run,
        question=review.id,
    )


def plain_answer(answer: Any) -> Any:
    """An answer as it will be read back."""
    try:
        return to_jsonable_python(answer)
    except ValueError as error:
        raise StorageError(
            f"an answer cannot be written as JSON: {error}",
            help="Answer with plain data: text, numbers, lists and dictionaries.",
        ) from error


def _restored(row: sqlite3.Row) -> Review:
    return Review.model_validate({**dict(row), "answer": json.loads(row["answer"])})
