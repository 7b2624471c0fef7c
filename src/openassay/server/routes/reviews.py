"""Questions that wait for a person: listed and answered."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import Field

from openassay.models.thread import AnswerOrigin, OnTimeout, Review
from openassay.server import runs
from openassay.server.auth import OwnThread, Reader, Writer
from openassay.server.bodies import Body, JsonData, hide_file_urls, refusals, with_examples
from openassay.server.runs import INTERRUPT_EXAMPLE, InterruptBody, to_interrupt
from openassay.server.service import Service, ServiceDep

router = APIRouter(responses=refusals(), tags=["reviews"])
ReviewId = Annotated[
    str,
    Path(
        alias="reviewId",
        pattern="^[0-9A-Za-z_-]{1,64}$",
        description="The id of a question.",
        examples=[INTERRUPT_EXAMPLE["id"]],
    ),
]


class ReviewEntry(Body):
    """`about`: the question that is being researched."""

    model_config = with_examples("""
        {"id": "6f0b6f6d2f0d4c1e8a0b9c7d5e3f1a2b", "threadId": "4f1c2a9b7d3e", "runId": "a1b2c3d4e5f6",
        "kind": "approve_plan", "question": "Is this the right plan?", "opened": "2026-01-01T12:00:00Z",
        "due": "2026-01-01T12:30:00Z", "onTimeout": "end", "overdue": false,
        "about": "How did Tesla's deliveries change over 2023?"}
        """)

    id: str
    thread_id: str
    run_id: str
    kind: str
    question: str
    opened: datetime
    due: datetime | None = None
    on_timeout: OnTimeout = "end"
    overdue: bool = False
    about: str = ""


class ReviewBody(ReviewEntry):
    """With the interrupt while it is open, and with its answer after that."""

    interrupt: InterruptBody | None = Field(default=None, description="null: it is no longer open.")
    answered: datetime | None = None
    answer: Any = None
    by: AnswerOrigin | None = None


class ReviewList(Body):
    reviews: tuple[ReviewEntry, ...]


class ThreadReviews(Body):
    reviews: tuple[ReviewBody, ...]


@router.get("/api/reviews", summary="List your open questions")
async def list_reviews(caller: Reader, service: ServiceDep) -> ReviewList:
    """Of all your threads, those that are due first coming first."""
    found = await service.engine.interrupts.reviews(owner=caller.user)
    return ReviewList(reviews=tuple([ReviewEntry(**await _entry_fields(service, review)) for review in found]))


@router.get("/api/threads/{threadId}/reviews", summary="List the open questions of a thread", responses=refusals(404))
async def list_thread_reviews(thread: OwnThread, service: ServiceDep) -> ThreadReviews:
    found = await service.engine.interrupts.reviews(thread.id)
    return ThreadReviews(reviews=tuple([await _load_review(service, review) for review in found]))


@router.get("/api/reviews/{reviewId}", summary="Get a question", response_model=ReviewBody, responses=refusals(404))
async def get_review(id: ReviewId, caller: Reader, service: ServiceDep) -> ReviewBody:
    return await _load_review(service, await service.engine.interrupts.review(id, owner=caller.user))


async def _entry_fields(service: Service, review: Review) -> dict[str, Any]:
    return {
        **review.model_dump(include={"id", "kind", "question", "opened", "due", "on_timeout"}),
        "thread_id": review.thread,
        "run_id": review.run,
        "overdue": review.answered is None and review.due is not None and review.due <= service.now(),
        "about": (await service.engine.threads.run(review.run)).question,
    }


async def _load_review(service: Service, review: Review) -> ReviewBody:
    questions = await service.engine.interrupts.open_questions(review.thread) if review.answered is None else []
    return ReviewBody(
        **await _entry_fields(service, review),
        interrupt=next((to_interrupt(one) for one in questions if one.id == review.id), None),
        answered=review.answered,
        answer=hide_file_urls(review.answer),
        by=review.by,
    )


class ReviewAnswer(Body):
    model_config = with_examples(
        '{"value": "The last three years"}', '{"value": {"decision": "approve", "comment": "Good."}}'
    )

    value: JsonData = Field(description="A text or, at a breakpoint, a decision: see the question's form.")


class AnswerReceipt(Body):
    model_config = with_examples("""
        {"ok": true, "threadId": "4f1c2a9b7d3e", "checkpointId": "1f0a5b1e-0000-6000-8000-000000000000"}
        """)

    ok: bool = True
    thread_id: str
    checkpoint_id: str | None


@router.post("/api/reviews/{reviewId}/answer", summary="Answer a question", responses=refusals(404, 409))
async def answer_review(id: ReviewId, body: ReviewAnswer, caller: Writer, service: ServiceDep) -> AnswerReceipt:
    """A late or repeated answer is refused with 409, one that does not fit its question with 422."""
    review = await service.engine.interrupts.review(id, owner=caller.user)
    await runs.answer_interrupt(service, review.thread, review.id, body.value)
    return AnswerReceipt(thread_id=review.thread, checkpoint_id=await service.engine.checkpoint(review.thread))
