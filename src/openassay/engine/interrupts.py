"""Questions that runs put to people: answers are accepted once, deadlines kept, and planning questions dropped when a
thread is switched to auto."""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langgraph.types import Command

from openassay.engine import validation
from openassay.engine.runner import Runner
from openassay.engine.thread_lock import ThreadLock
from openassay.errors import (
    AnswerError,
    BudgetError,
    ConfigurationError,
    LateAnswerError,
    NotFoundError,
    OpenAssayError,
    ThreadBusyError,
    UsageError,
)
from openassay.models.event import AT_WORK, RunStatus
from openassay.models.plan import Mode, Plan
from openassay.models.thread import AnswerOrigin, Decision, ResearchOptions, Review, Run
from openassay.nodes.dispatch import available_types
from openassay.nodes.plan import pending_questions
from openassay.protocols import Source
from openassay.state import State, load_plan
from openassay.storage.events import no_review

_log = logging.getLogger("openassay")
MAX_DROP_ATTEMPTS = 6  # at a planning question while somebody is answering them
IDLE_WAIT_SECONDS = 1.0  # for which a run between two questions is waited for, each time
TIMER_POLL_SECONDS = 5.0  # after which the timer looks whether another process has asked something


class InterruptService:
    """Accepts answers to the questions of runs, and resumes the runs with them."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._warned: set[str] = set()  # threads with an overdue question whose run cannot be resumed

    async def open_questions(self, thread: str) -> list[validation.OpenQuestion]:
        """Return what the run waits for and nobody has answered yet."""
        pending = {review.id for review in await self._runner.reviews.pending(thread)}
        asked = validation.read_interrupts((await self._runner.state(thread)).interrupts)
        return [question for question in asked if question.id in pending]

    async def reviews(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        """Return the open questions of all threads, of one, or of one user's, the first due first."""
        return await self._runner.reviews.pending(thread, owner=owner)

    async def review(self, id: str, *, owner: str | None = None) -> Review:
        """Return one question by its id, open or not. Another user's is as unknown as one that never was."""
        found = await self._runner.reviews.get(id)
        try:
            await self._runner.threads.get(found.thread, owner=owner)
        except NotFoundError as error:
            raise no_review(id) from error
        return found

    async def last_review(self, thread: str) -> Review | None:
        """Return the question that the thread asked last, with its answer if there is one."""
        return await self._runner.reviews.latest(thread)

    # -- answers ------------------------------------------------------------------------------------------

    async def answer(self, thread: str, question: str, value: object, *, queued: bool = False) -> Run:
        """Answer an open question by its id. A late, repeated or malformed answer is refused and changes nothing.
        `queued`: queue the run instead of resuming it here."""
        value = self._runner.redaction.redact_data_secrets(value)
        run = await self._runner.latest_run(thread)
        answer = validation.validate_answer(await self._get_open(run.thread, question), value)
        try:
            return await self._accept_answer(run, question, answer, "person", queued=queued)
        except (UsageError, ConfigurationError, BudgetError) as error:  # of what a plan was changed to
            raise AnswerError(error.message, help=error.help) from error

    async def _get_open(self, thread: str, question: str) -> validation.OpenQuestion:
        for item in await self.open_questions(thread):
            if item.id == question:
                return item
        with contextlib.suppress(NotFoundError):
            before = await self._runner.reviews.get(question)
            if before.thread == thread and before.answered:
                raise LateAnswerError(
                    before.refusal, help=f"Look at the thread, or resume it: openassay resume {thread}"
                )
        raise LateAnswerError(
            "this question is not open any more", help=f"See what is open with: openassay review show {thread}"
        )

    async def _accept_answer(
        self, run: Run, question: str, answer: Mapping[str, Any], by: AnswerOrigin, *, queued: bool = False
    ) -> Run:
        """Store the answer before it is acted on: if this process dies in between, resuming applies it. All of it
        happens under the thread's lock, so nobody else can act on it at the same time. `queued`: nor does this process,
        yet."""
        if self._runner.is_running(run.id):
            await self._get_open(run.thread, question)
            await self._runner.wait(run.id)  # it has asked and is only ending
        try:
            async with self._runner.lock_thread(run.thread) as lock:
                await self._runner.check(run.thread)
                run, sources = await self._apply_plan_changes(run, answer)
                await self._runner.reviews.accept_answer(question, dict(answer), by, self._runner.now())
                if queued:
                    await self._runner.threads.update(run.id, status=RunStatus.QUEUED)
                    return run
                return await self._resume_with_answer(run, sources, question, answer, lock)
        except ThreadBusyError as error:
            raise LateAnswerError("somebody else is answering this question right now") from error

    async def _resume_with_answer(
        self, run: Run, sources: list[Source], question: str, answer: Mapping[str, Any], lock: ThreadLock
    ) -> Run:
        await self._runner.threads.set_options(run.id, run.options)
        await self._runner.threads.update(run.id, status=RunStatus.RUNNING)  # so that nobody resumes it a second time
        self._runner.spawn(run, sources, Command(resume={question: dict(answer)}), lock)
        return run

    async def _apply_plan_changes(self, run: Run, answer: Mapping[str, Any]) -> tuple[Run, list[Source]]:
        """Return the run with the sources, the budget and the length of a plan that a person has changed."""
        options = run.options
        if answer.get("plan") and answer["decision"] == Decision.MODIFY:
            before = load_plan((await self._runner.state(run.thread)).values)
            plan = Plan.model_validate(answer["plan"])
            if plan.sources != before.sources:
                options = await self._set_sources(options, plan)
            options = options.with_plan(plan, before)
        sources, _ = await self._runner.select_sources(options)
        return run.model_copy(update={"options": options}), sources

    async def _set_sources(self, options: ResearchOptions, plan: Plan) -> ResearchOptions:
        """Set the sources for this run alone: a follow-up asks those its thread was started on. They are chosen by
        name, so documents stay as private as they were."""
        named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
        sources, _ = await asyncio.to_thread(self._runner.choose_sources, named)
        if unknown := set(plan.sources) - {source.name for source in sources}:
            raise AnswerError(f"there is no source {sorted(unknown)[0]!r}", help="See: openassay sources")
        if not {query.type for query in plan.queries} & set(available_types(sources)):
            kinds = ", ".join(dict.fromkeys(query.type for query in plan.queries))
            raise AnswerError(f"none of these sources answers queries for {kinds}", help="See: openassay sources")
        return options.model_copy(update={"sources": plan.sources})

    async def resume_waiting(self, run: Run, lock: ThreadLock) -> Run:
        """Resume a run that waits for an answer, if there is one that nobody acted on or if time is up."""
        await self._runner.check(run.thread)
        [question, *_] = validation.read_interrupts((await self._runner.state(run.thread)).interrupts)
        reviews, now = self._runner.reviews, self._runner.now()
        await reviews.open(validation.build_review(question, run, now))
        review = await reviews.get(question.id)
        if not review.answered and self._is_due(review):
            review = await reviews.accept_answer(review.id, dict(validation.timeout_answer(question)), "timer", now)
        if review.answered:
            run, sources = await self._apply_plan_changes(run, review.answer)
            return await self._resume_with_answer(run, sources, review.id, review.answer, lock)
        if run.status is not RunStatus.WAITING:
            await self._runner.end(run, RunStatus.WAITING)
        return await self._runner.threads.run(run.id)

    # -- deadlines ----------------------------------------------------------------------------------------

    async def answer_overdue(self, *, queued: bool = False) -> list[Run]:
        """Let the timer answer what nobody has answered in time, and return the runs that continue. `queued`: they are
        queued instead of resumed here."""
        reviews = await self._runner.reviews.pending()
        listed = {review.thread for review in reviews}
        resumed = []
        # With a queue, its workers find orphaned runs by themselves.
        statuses = [RunStatus.WAITING] if queued else [RunStatus.WAITING, RunStatus.RUNNING]
        for run in await self._runner.threads.list_active(*statuses):
            known = run.thread in listed if run.status is RunStatus.WAITING else self._runner.is_running(run.id)
            if not known:
                with self._warn_once(run.thread):
                    resumed += await self._resume_orphaned(run, queued)
        for review in reviews:
            if self._is_due(review) and not self._runner.is_running(review.run):
                with self._warn_once(review.thread), contextlib.suppress(AnswerError):  # somebody else was faster
                    run = await self._runner.threads.run(review.run)
                    answer = validation.timeout_answer(await self._get_open(review.thread, review.id))
                    resumed.append(await self._accept_answer(run, review.id, answer, "timer", queued=queued))
        return resumed

    @contextlib.contextmanager
    def _warn_once(self, thread: str) -> Iterator[None]:
        """Log why a thread cannot be resumed, because its documents are gone for example: the others must not wait."""
        try:
            yield
        except OpenAssayError as error:
            if thread not in self._warned:
                self._warned.add(thread)
                _log.warning("thread %s cannot be resumed: %s", thread, error.message)

    def _is_due(self, review: Review) -> bool:
        return review.due is not None and review.due <= self._runner.now()

    async def _resume_orphaned(self, run: Run, queued: bool) -> list[Run]:
        """Resume a run whose process died between asking and having the question listed, or between accepting an answer
        and acting on it; without an answer its question is listed."""
        with contextlib.suppress(ThreadBusyError):  # somebody is at work on it
            async with self._runner.lock_thread(run.thread, patience=0) as lock:
                run = await self._runner.threads.run(run.id)
                state = await self._runner.state(run.thread)
                if not run.active or not state.interrupts or state.values.get("run") != run.id:
                    return []
                if queued:
                    await self._runner.threads.update(run.id, status=RunStatus.QUEUED)
                    return [run]
                run = await self.resume_waiting(run, lock)
                return [run] if lock.transferred else []
        return []

    async def run_deadlines(self, *, queued: bool = False) -> None:
        """Settle every question as it comes due, those of other processes too, until cancelled."""
        while True:
            pause = TIMER_POLL_SECONDS
            try:
                await self.answer_overdue(queued=queued)
                pause = await self.seconds_until_due()
            except OpenAssayError as error:  # a database that is busy now may not be next time
                _log.warning("the timer could not check for overdue questions: %s", error.message)
            await asyncio.sleep(pause)

    async def seconds_until_due(self) -> float:
        """Return when to look again: when the next question comes due, or another process may have asked one."""
        now = self._runner.now()
        dues = [review.due for review in await self._runner.reviews.pending() if review.due and review.due > now]
        return min((min(dues) - now).total_seconds(), TIMER_POLL_SECONDS) if dues else TIMER_POLL_SECONDS

    # -- the mode -----------------------------------------------------------------------------------------

    async def set_mode(self, thread: str, mode: Mode, *, queued: bool = False) -> bool:
        """Set the mode from now on; returns whether the current question is affected. Open planning questions are
        dropped when the thread turns to auto. `queued`: queue its run instead of resuming it here."""
        await self._runner.threads.get(thread)
        await self._runner.threads.set_mode(thread, mode)
        runs = [run for run in await self._runner.threads.runs(thread) if run.active]
        if not runs:
            return False
        if mode is Mode.AUTO and await self._drop_planning_questions(runs[-1], queued):
            return True
        return not (await self._runner.state(thread)).values.get("gate")

    async def _drop_planning_questions(self, run: Run, queued: bool) -> bool:
        """Drop what is still to be asked. Somebody may be answering just now; then the next question is dropped."""
        clock = asyncio.get_running_loop().time
        for _ in range(MAX_DROP_ATTEMPTS):
            values = (await self._runner.state(run.thread)).values
            if not values.get("planner_questions") or not pending_questions(cast(State, values)):
                return False
            # Between two questions it is at work for a moment, here or in another process.
            await self._runner.wait(run.id)
            deadline = clock() + IDLE_WAIT_SECONDS
            while (await self._runner.threads.run(run.id)).status in AT_WORK:
                if clock() >= deadline:
                    break
                await asyncio.sleep(IDLE_WAIT_SECONDS / 10)
            for question in await self.open_questions(run.thread):
                if question.kind == "planning":
                    with contextlib.suppress(AnswerError):
                        await self._accept_answer(run, question.id, validation.SKIP_BY_MODE, "mode", queued=queued)
                        return True
        return False
