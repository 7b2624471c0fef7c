"""Where runs put their questions: answers are taken here once, deadlines kept, and nobody is waited for in vain."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from langgraph.types import Command

from assay import questions
from assay.admission import validated
from assay.errors import (
    AnswerError,
    AssayError,
    BudgetError,
    ConfigurationError,
    NotFoundError,
    StorageError,
    ThreadBusyError,
    UsageError,
)
from assay.model.event import RunStatus
from assay.model.plan import Plan
from assay.model.question import Mode
from assay.model.review import By, Decision, Review
from assay.model.thread import Options, Run
from assay.ports import Source
from assay.questions import OpenQuestion
from assay.runner import Runner, chosen
from assay.stages.dispatch import served
from assay.stages.question import to_be_asked
from assay.state import State

_log = logging.getLogger("assay")
MOST_STRANDED = 50  # threads that are looked through for runs whose process died
MOST_PLANNING = 6  # tries at dropping a planning question while somebody is answering them
LOOK = 5.0  # seconds after which the timer looks whether another process has asked something


class Desk:
    def __init__(self, runner: Runner, sources: Callable[[Options], tuple[list[Source], dict[str, str]]]) -> None:
        self._runner = runner
        self._sources = sources
        self._unsettled: set[str] = set()  # threads with an overdue question whose run cannot go on; told once

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        waiting = {review.id for review in await self._runner.reviews.pending(thread)}
        return [item for item in questions.read((await self._runner.state(thread)).interrupts) if item.id in waiting]

    # -- answers ------------------------------------------------------------------------------------------

    async def answer(self, run: Run, question: str, value: object) -> Run:
        checked = validated(await self._asked(run.thread, question), value)
        try:
            return await self._taken(run, question, checked, "person")
        except (UsageError, ConfigurationError, BudgetError) as error:  # of what a plan was changed to
            raise AnswerError(error.message, help=error.help) from error

    async def _asked(self, thread: str, question: str) -> OpenQuestion:
        for item in await self.open_questions(thread):
            if item.id == question:
                return item
        with contextlib.suppress(NotFoundError):
            before = await self._runner.reviews.get(question)
            if before.thread == thread and before.answered:
                raise AnswerError(before.refusal, help=f"Look at the thread, or go on with it: assay resume {thread}")
        raise AnswerError(
            "this question is not open any more", help=f"See what is open with: assay review show {thread}"
        )

    async def _taken(self, run: Run, question: str, answer: Mapping[str, Any], by: By) -> Run:
        """The answer is kept before it is acted on: if this process dies in between, resuming applies it. All of it
        happens under the thread's lock, so nobody else can act on it at the same time."""
        if self._runner.at_work(run.id):
            await self._asked(run.thread, question)
            await self._runner.wait(run.id)  # it has asked and is only putting its things away
        run, sources = await self._replanned(run, answer)
        with self._locked(run.thread):
            await self._runner.reviews.take(question, dict(answer), by, self._runner.now())
            await self._runner.threads.set_options(run.id, run.options)
        self._runner.spawn(run, sources, Command(resume={question: dict(answer)}), locked=True)
        return run

    @contextlib.contextmanager
    def _locked(self, thread: str) -> Iterator[None]:
        """Kept where all goes well, for the run that is spawned then."""
        try:
            self._runner.locks.take(thread)
        except ThreadBusyError as error:
            raise AnswerError("this question is being answered by somebody else right now") from error
        try:
            yield
        except BaseException:
            self._runner.locks.release(thread)
            raise

    async def _replanned(self, run: Run, answer: Mapping[str, Any]) -> tuple[Run, list[Source]]:
        """The run with the sources, the budget and the length of a plan a person has changed."""
        options = chosen(run)
        if answer.get("plan") and answer["decision"] == Decision.MODIFY:
            before = Plan.model_validate((await self._runner.state(run.thread)).values["plan"])
            plan = Plan.model_validate(answer["plan"])
            options = await self._with_sources(options, plan) if plan.sources != before.sources else options
            changes = {"usd": (plan.usd, before.usd), "words": (plan.words, before.words)}
            options = options.model_copy(update={key: new for key, (new, old) in changes.items() if new != old})
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._runner.thinking.notices, options)
        return run.model_copy(update={"options": options.plain()}), sources

    async def _with_sources(self, options: Options, plan: Plan) -> Options:
        """For this run alone: a follow-up asks what its thread was started on. They are chosen by name, so documents
        stay as private as they were."""
        named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
        sources, _ = await asyncio.to_thread(self._sources, named)
        if unknown := set(plan.sources) - {source.name for source in sources}:
            raise AnswerError(f"there is no source {sorted(unknown)[0]!r}", help="See: assay sources")
        if not {query.type for query in plan.queries} & set(served(sources)):
            kinds = ", ".join(dict.fromkeys(query.type for query in plan.queries))
            raise AnswerError(f"none of these sources answers queries for {kinds}", help="See: assay sources")
        return options.model_copy(update={"sources": plan.sources})

    async def asked_again(self, run: Run) -> Run:
        """A run that waits goes on only if it was answered and nobody acted on that, or if time is up."""
        [question, *_] = questions.read((await self._runner.state(run.thread)).interrupts)
        await self._runner.reviews.open(questions.review(question, run, self._runner.now()))
        review = await self._runner.reviews.get(question.id)
        if review.answered:
            run, sources = await self._replanned(run, review.answer)
            await self._runner.threads.set_options(run.id, run.options)
            self._runner.spawn(run, sources, Command(resume={review.id: review.answer}))
        elif not await self._timed_out(review) and run.status is not RunStatus.WAITING:
            await self._runner.threads.update(run.id, status=RunStatus.WAITING)
            run = await self._runner.threads.run(run.id)
        return run

    # -- time ---------------------------------------------------------------------------------------------

    async def settle_overdue(self) -> list[Run]:
        """Let the timer answer what nobody has answered in time. The runs that go on are told."""
        going_on = await self._stranded()
        for review in await self._runner.reviews.pending():
            try:
                run = await self._timed_out(review)
            except AssayError as error:  # its documents are gone, say; the others must not wait for that
                self._warn(review.thread, error)
                continue
            going_on += [run] if run else []
        return going_on

    def _warn(self, thread: str, error: AssayError) -> None:
        if thread not in self._unsettled:
            self._unsettled.add(thread)
            _log.warning("thread %s cannot go on: %s", thread, error.message)

    async def _timed_out(self, review: Review) -> Run | None:
        if review.due is None or review.due > self._runner.now() or self._runner.at_work(review.run):
            return None
        run = await self._runner.threads.run(review.run)
        try:
            asked = await self._asked(review.thread, review.id)
            return await self._taken(run, review.id, questions.timed(asked), "timer")
        except AnswerError:
            return None  # somebody else was faster

    async def _stranded(self) -> list[Run]:
        """Runs whose process died between asking and having the question listed, or between taking an answer and acting
        on it: the first are listed, the others go on and are told."""
        going_on = []
        for thread in await self._runner.threads.recent(limit=MOST_STRANDED):
            for run in (await self._runner.threads.runs(thread.id))[-1:]:
                listed = run.status is RunStatus.WAITING and await self._runner.reviews.pending(thread.id)
                if run.active and not listed and not self._runner.at_work(run.id) and self._is_abandoned(thread.id):
                    state = await self._runner.state(thread.id)
                    if state.interrupts and state.values.get("run") == run.id:
                        await self.asked_again(run)
                        going_on += [run] if self._runner.at_work(run.id) else []
        return going_on

    def _is_abandoned(self, thread: str) -> bool:
        try:
            self._runner.locks.take(thread)
        except ThreadBusyError:
            return False
        self._runner.locks.release(thread)
        return True

    async def keep_time(self) -> None:
        """Until it is cancelled: every question is settled as it comes due, those of other processes too."""
        while True:
            pause = LOOK
            try:
                await self.settle_overdue()
                pause = await self.until_due()
            except StorageError as error:  # a database that is busy now may not be at the next look
                _log.warning("the timer could not look: %s", error.message)
            await asyncio.sleep(pause)

    async def until_due(self) -> float:
        """Seconds after which to look again: when the next question comes due, or another process may have asked."""
        now = self._runner.now()
        dues = [review.due for review in await self._runner.reviews.pending() if review.due and review.due > now]
        return min((min(dues) - now).total_seconds(), LOOK) if dues else LOOK

    # -- the mode -----------------------------------------------------------------------------------------

    async def set_mode(self, thread: str, mode: Mode) -> bool:
        """From now on; returns whether the question that is being worked on is affected. Planning questions that are
        open are dropped when the thread turns to auto."""
        await self._runner.threads.get(thread)
        await self._runner.threads.set_mode(thread, mode)
        runs = [run for run in await self._runner.threads.runs(thread) if run.active]
        if not runs:
            return False
        if mode is Mode.AUTO and await self._unasked(runs[-1]):
            return True
        return not (await self._runner.state(thread)).values.get("gate")

    async def _unasked(self, run: Run) -> bool:
        """Drop what is still to be asked. Somebody may be answering just now; then the next question is dropped."""
        for _ in range(MOST_PLANNING):
            values = (await self._runner.state(run.thread)).values
            if not values.get("planner_questions") or not to_be_asked(cast(State, values)):
                return False
            await self._runner.wait(run.id)  # between two of them it is at work for a moment
            for question in await self.open_questions(run.thread):
                if question.kind == "planning":
                    with contextlib.suppress(AnswerError):
                        await self._taken(run, question.id, questions.UNASKED, "mode")
                        return True
        return False
