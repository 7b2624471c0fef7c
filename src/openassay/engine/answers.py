"""Where runs put their questions: answers are taken here once, deadlines kept, and nobody is waited for in vain."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Container, Iterator, Mapping
from typing import Any, cast

from langgraph.types import Command

from openassay.engine import questions
from openassay.engine.lock import ThreadLock
from openassay.engine.questions import OpenQuestion, validate_answer
from openassay.engine.runner import Runner
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
from openassay.models.thread import AnswerOrigin, Decision, Review, Run, ResearchOptions, read_options
from openassay.nodes.dispatch import available_types
from openassay.nodes.gate import pending_questions
from openassay.protocols import ChooseSources, Source
from openassay.state import State

_log = logging.getLogger("openassay")
MOST_PLANNING = 6  # tries at dropping a planning question while somebody is answering them
MOMENT = 1.0  # seconds for which a run between two questions is waited for, each time
LOOK = 5.0  # seconds after which the timer looks whether another process has asked something


class InterruptService:
    def __init__(self, runner: Runner, sources: ChooseSources) -> None:
        self._runner = runner
        self._sources = sources
        self._unsettled: set[str] = set()  # threads with an overdue question whose run cannot go on; told once

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        waiting = {review.id for review in await self._runner.reviews.pending(thread)}
        return [
            item
            for item in questions.read_interrupts((await self._runner.state(thread)).interrupts)
            if item.id in waiting
        ]

    # -- answers ------------------------------------------------------------------------------------------

    async def answer(self, run: Run, question: str, value: object, *, queued: bool = False) -> Run:
        checked = validate_answer(await self._get_open(run.thread, question), value)
        try:
            return await self._accept_answer(run, question, checked, "person", queued=queued)
        except (UsageError, ConfigurationError, BudgetError) as error:  # of what a plan was changed to
            raise AnswerError(error.message, help=error.help) from error

    async def _get_open(self, thread: str, question: str) -> OpenQuestion:
        for item in await self.open_questions(thread):
            if item.id == question:
                return item
        with contextlib.suppress(NotFoundError):
            before = await self._runner.reviews.get(question)
            if before.thread == thread and before.answered:
                help = f"Look at the thread, or go on with it: openassay resume {thread}"
                raise LateAnswerError(before.refusal, help=help)
        raise LateAnswerError(
            "this question is not open any more", help=f"See what is open with: openassay review show {thread}"
        )

    async def _accept_answer(
        self, run: Run, question: str, answer: Mapping[str, Any], by: AnswerOrigin, *, queued: bool = False
    ) -> Run:
        """The answer is kept before it is acted on: if this process dies in between, resuming applies it. All of it
        happens under the thread's lock, so nobody else can act on it at the same time. `queued`: nor does this process,
        yet."""
        if self._runner.is_running(run.id):
            await self._get_open(run.thread, question)
            await self._runner.wait(run.id)  # it has asked and is only putting its things away
        async with self._lock_thread(run.thread) as hold:
            await self._runner.check(run.thread)
            run, sources = await self._apply_plan_changes(run, answer)
            await self._runner.reviews.accept_answer(question, dict(answer), by, self._runner.now())
            if queued:
                await self._runner.threads.update(run.id, status=RunStatus.QUEUED)
                return run
            return await self._resume_with_answer(run, sources, question, answer, hold)

    async def _resume_with_answer(
        self, run: Run, sources: list[Source], question: str, answer: Mapping[str, Any], hold: ThreadLock
    ) -> Run:
        await self._runner.threads.set_options(run.id, run.options)
        await self._runner.threads.update(run.id, status=RunStatus.RUNNING)  # whoever looks next sees that it goes on
        self._runner.spawn(run, sources, Command(resume={question: dict(answer)}), hold)
        return run

    @contextlib.asynccontextmanager
    async def _lock_thread(self, thread: str) -> AsyncIterator[ThreadLock]:
        try:
            async with self._runner.lock_thread(thread) as hold:
                yield hold
        except ThreadBusyError as error:
            raise LateAnswerError("this question is being answered by somebody else right now") from error

    async def _apply_plan_changes(self, run: Run, answer: Mapping[str, Any]) -> tuple[Run, list[Source]]:
        """The run with the sources, the budget and the length of a plan a person has changed."""
        options = read_options(run)
        if answer.get("plan") and answer["decision"] == Decision.MODIFY:
            before = Plan.model_validate((await self._runner.state(run.thread)).values["plan"])
            plan = Plan.model_validate(answer["plan"])
            options = await self._set_sources(options, plan) if plan.sources != before.sources else options
            options = options.with_plan(plan, before)
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._runner.thinking.notices, options)
        return run.model_copy(update={"options": options.plain()}), sources

    async def _set_sources(self, options: ResearchOptions, plan: Plan) -> ResearchOptions:
        """For this run alone: a follow-up asks what its thread was started on. They are chosen by name, so documents
        stay as private as they were."""
        named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
        sources, _ = await asyncio.to_thread(self._sources, named)
        if unknown := set(plan.sources) - {source.name for source in sources}:
            raise AnswerError(f"there is no source {sorted(unknown)[0]!r}", help="See: openassay sources")
        if not {query.type for query in plan.queries} & set(available_types(sources)):
            kinds = ", ".join(dict.fromkeys(query.type for query in plan.queries))
            raise AnswerError(f"none of these sources answers queries for {kinds}", help="See: openassay sources")
        return options.model_copy(update={"sources": plan.sources})

    async def resume_waiting(self, run: Run, hold: ThreadLock) -> Run:
        """A run that waits goes on only if it was answered and nobody acted on that, or if time is up."""
        await self._runner.check(run.thread)
        [question, *_] = questions.read_interrupts((await self._runner.state(run.thread)).interrupts)
        await self._runner.reviews.open(questions.build_review(question, run, self._runner.now()))
        review = await self._runner.reviews.get(question.id)
        if not review.answered and self._is_due(review):
            review = await self._runner.reviews.accept_answer(
                review.id, dict(questions.timeout_answer(question)), "timer", self._runner.now()
            )
        if review.answered:
            run, sources = await self._apply_plan_changes(run, review.answer)
            return await self._resume_with_answer(run, sources, review.id, review.answer, hold)
        if run.status is not RunStatus.WAITING:
            await self._runner.end(run, RunStatus.WAITING)
        return await self._runner.threads.run(run.id)

    # -- time ---------------------------------------------------------------------------------------------

    async def answer_overdue(self, *, queued: bool = False) -> list[Run]:
        """Let the timer answer what nobody has answered in time. The runs that go on are told. `queued`: they are put
        in line instead, for whoever takes them up."""
        asked = await self._runner.reviews.pending()
        listed = {review.thread for review in asked}
        going_on = []
        # Whoever takes up what is in line finds what it has asked; where there is a line, also what was left.
        left = [RunStatus.WAITING] if queued else [RunStatus.WAITING, RunStatus.RUNNING]
        for run in await self._runner.threads.list_active(*left):
            if self._may_be_orphaned(run, listed):
                with self._warn_once(run.thread):
                    going_on += await self._resume_orphaned(run, queued)
        for review in asked:
            with self._warn_once(review.thread):
                going_on += [run for run in [await self._answer_by_timer(review, queued)] if run]
        return going_on

    def _may_be_orphaned(self, run: Run, listed: Container[str]) -> bool:
        return run.thread not in listed if run.status is RunStatus.WAITING else not self._runner.is_running(run.id)

    @contextlib.contextmanager
    def _warn_once(self, thread: str) -> Iterator[None]:
        """Its documents are gone, say: the others must not wait for that."""
        try:
            yield
        except OpenAssayError as error:
            if thread not in self._unsettled:
                self._unsettled.add(thread)
                _log.warning("thread %s cannot go on: %s", thread, error.message)

    def _is_due(self, review: Review) -> bool:
        return review.due is not None and review.due <= self._runner.now()

    async def _answer_by_timer(self, review: Review, queued: bool) -> Run | None:
        if not self._is_due(review) or self._runner.is_running(review.run):
            return None
        run = await self._runner.threads.run(review.run)
        try:
            asked = await self._get_open(review.thread, review.id)
            return await self._accept_answer(run, review.id, questions.timeout_answer(asked), "timer", queued=queued)
        except AnswerError:
            return None  # somebody else was faster

    async def _resume_orphaned(self, run: Run, queued: bool) -> list[Run]:
        """A run whose process died between asking and having the question listed, or between taking an answer and
        acting on it: it is listed, or goes on."""
        with contextlib.suppress(ThreadBusyError):  # somebody is at work on it
            async with self._runner.lock_thread(run.thread, patience=0) as hold:
                run = await self._runner.threads.run(run.id)
                state = await self._runner.state(run.thread)
                if not run.active or not state.interrupts or state.values.get("run") != run.id:
                    return []
                if queued:
                    await self._runner.threads.update(run.id, status=RunStatus.QUEUED)
                    return [run]
                run = await self.resume_waiting(run, hold)
                return [run] if hold.passed_on else []
        return []

    async def run_deadlines(self, *, queued: bool = False) -> None:
        """Until it is cancelled: every question is settled as it comes due, those of other processes too."""
        while True:
            pause = LOOK
            try:
                await self.answer_overdue(queued=queued)
                pause = await self.seconds_until_due()
            except OpenAssayError as error:  # a database that is busy now may not be at the next look
                _log.warning("the timer could not look: %s", error.message)
            await asyncio.sleep(pause)

    async def seconds_until_due(self) -> float:
        """Seconds after which to look again: when the next question comes due, or another process may have asked."""
        now = self._runner.now()
        dues = [review.due for review in await self._runner.reviews.pending() if review.due and review.due > now]
        return min((min(dues) - now).total_seconds(), LOOK) if dues else LOOK

    # -- the mode -----------------------------------------------------------------------------------------

    async def set_mode(self, thread: str, mode: Mode, *, queued: bool = False) -> bool:
        """From now on; returns whether the question that is being worked on is affected. Planning questions that are
        open are dropped when the thread turns to auto. `queued`: its run is put in line, for whoever takes it up."""
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
        for _ in range(MOST_PLANNING):
            values = (await self._runner.state(run.thread)).values
            if not values.get("planner_questions") or not pending_questions(cast(State, values)):
                return False
            await self._wait_until_idle(run)
            for question in await self.open_questions(run.thread):
                if question.kind == "planning":
                    with contextlib.suppress(AnswerError):
                        await self._accept_answer(run, question.id, questions.SKIP_BY_MODE, "mode", queued=queued)
                        return True
        return False

    async def _wait_until_idle(self, run: Run) -> None:
        """Between two questions it is at work for a moment, here or in another process."""
        await self._runner.wait(run.id)
        ends = asyncio.get_running_loop().time() + MOMENT
        while (await self._runner.threads.run(run.id)).status in AT_WORK:
            if asyncio.get_running_loop().time() >= ends:
                return
            await asyncio.sleep(MOMENT / 10)
