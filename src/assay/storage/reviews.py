"""Questions put to people; one answer is taken to each."""

import asyncio
import json
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from assay.errors import LateAnswerError, NotFoundError, StorageError
from assay.model.review import By, Review
from assay.storage.database import ConstraintError, timestamp
from assay.storage.rows import Row, Rows
from assay.storage.tables import REVIEWS
from assay.storage.threads import no_thread

_FIRST_DUE = "ORDER BY due IS NULL, due, opened, rowid"
_OWNED = "thread IN (SELECT id FROM threads WHERE owner = ?)"
# The question of a run that was stopped is asked again when somebody goes on with it.
_ASKED = """
answered IS NULL AND NOT EXISTS
(SELECT 1 FROM runs WHERE runs.id = reviews.run AND runs.status IN ('cancelled', 'done', 'failed'))
"""
_LATEST = "WHERE thread = ? ORDER BY opened DESC, rowid DESC LIMIT 1"


class SqlReviews:
    """A ports.ReviewStore."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def open(self, review: Review) -> None:
        await asyncio.to_thread(self._open, review)

    async def get(self, id: str) -> Review:
        return await asyncio.to_thread(self._get, id)

    async def pending(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        return await asyncio.to_thread(self._pending, thread, owner)

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
        with self._rows.writing("thread", review.thread) as writer:
            try:
                writer.insert(REVIEWS, values, on_conflict="keep")
            except ConstraintError as error:
                raise no_thread(review.thread) from error

    def _get(self, id: str) -> Review:
        row = self._rows.one(REVIEWS, id)
        if row is None:
            raise no_review(id)
        return _restored(row)

    def _pending(self, thread: str | None, owner: str | None) -> list[Review]:
        mine, whose = ("", ()) if owner is None else (f"AND {_OWNED}", (owner,))
        if thread is None:
            rows, _ = self._rows.sift(REVIEWS, f"WHERE {_ASKED} {mine} {_FIRST_DUE}", whose)
        else:
            rest = f"WHERE {_ASKED} AND thread = ? {mine} {_FIRST_DUE}"
            rows = self._rows.read(REVIEWS, rest, (thread, *whose))
        return [_restored(row) for row in rows]

    def _latest(self, thread: str) -> Review | None:
        rows = self._rows.read(REVIEWS, _LATEST, (thread,))
        return _restored(rows[0]) if rows else None

    def _take(self, id: str, answer: Any, by: By, now: datetime) -> Review:
        changes = {"answer": json.dumps(plain_answer(answer)), "by": by, "answered": timestamp(now)}
        with self._rows.writing("thread", self._get(id).thread) as writer:
            [row] = writer.read(REVIEWS, "WHERE id = ?", (id,))
            review = _restored(row)
            late = by == "person" and review.due is not None and now >= review.due
            if review.answered or late:
                raise refusal(review)
            return _restored(writer.update(REVIEWS, (id,), changes) or row)


def no_review(id: str) -> NotFoundError:
    return NotFoundError(f"no question {id}", help="See what is open with: assay review")


def refusal(review: Review) -> LateAnswerError:
    """Why an answer comes too late: there is one, or the time for it is over."""
    overdue = f"Let the clock decide: assay resume {review.thread}"
    return LateAnswerError(
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


def _restored(row: Row) -> Review:
    return Review.model_validate({**dict(row), "answer": json.loads(row["answer"])})
