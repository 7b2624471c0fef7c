"""Starting, following, answering and resuming runs. Every front end calls this and nothing below it.

A run is detached from whoever started it: it appends events, and the checkpointer alone decides how it goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import uuid4

from assay.admission import accepted, unasked
from assay.desk import Desk
from assay.errors import (
    AssayError,
    NotFoundError,
    StorageError,
    ThreadBusyError,
    UsageError,
)
from assay.export.report import Report
from assay.llm.lineup import is_private
from assay.model.event import Event, RunStatus
from assay.model.question import Mode
from assay.model.record import Record
from assay.model.review import Review
from assay.model.source import Document
from assay.model.spend import Quote
from assay.model.thread import Options, Run, Thread
from assay.ports import (
    Source,
)
from assay.questions import OpenQuestion
from assay.runner import Runner, chosen
from assay.stages.breakpoints import check
from assay.state import new_question
from assay.view import StateView, view


class Outcome(Record):
    """Where a run stands once it no longer moves by itself."""

    run: Run
    report: Report | None = None
    questions: tuple[OpenQuestion, ...] = ()


class Engine:
    """`sources` chooses those of a run, with notices about the choice that the person must see."""

    def __init__(self, runner: Runner, sources: Callable[[Options], tuple[list[Source], dict[str, str]]]) -> None:
        check(runner.settings)
        self.settings = runner.settings
        self.threads = runner.threads
        self.memory = runner.memory
        self._runner = runner
        self._sources = sources
        self._desk = Desk(runner, lambda options: self._sources(options))

    # -- runs ---------------------------------------------------------------------------------------------

    async def start(self, question: str, options: Options, *, thread: str | None = None) -> Run:
        """A new run, on a new thread unless one is named. Nothing is written before the input is accepted."""
        question = accepted(question, options)
        if thread is not None:
            options = await self._inherited(thread, options)
        options, remembered = await self._remembering(options.model_copy(update={"private": is_private(options)}))
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices |= (
            remembered
            | unasked(options, self.settings)
            | await asyncio.to_thread(self._runner.thinking.notices, options)
        )
        options = await asyncio.to_thread(self._runner.thinking.settled, options)
        if options.source == "auto":
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        now = self._runner.now()
        new = thread is None
        thread = thread or uuid4().hex[:12]
        said = options.mode if options.interactive else None  # a thread keeps what a person said, not what a job did
        if new:
            await self.threads.create(Thread(id=thread, title=title(question), created=now, updated=now, mode=said))
        run = Run(
            id=uuid4().hex[:12], thread=thread, question=question, status=RunStatus.RUNNING, started=now,
            settings=self.settings.fingerprint(), options=options.plain(),
        )  # fmt: skip
        await self.threads.begin(run)
        if said and not new:
            await self.threads.set_mode(thread, said)
        try:
            self._runner.spawn(run, sources, new_question(question, run.id, options.plain(), notices), notices, new=new)
        except ThreadBusyError as error:
            await self.threads.update(run.id, status=RunStatus.FAILED, error=error.message)
            raise
        return run

    async def quote(self, question: str, options: Options) -> Quote:
        """What a question will probably cost; nothing is written and nothing is spent."""
        accepted(question, options)
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._runner.thinking.notices, options)
        return await self._runner.quote(options, sources)

    async def _inherited(self, thread: str, options: Options) -> Options:
        """A follow-up asks the documents its thread was started on, unless it names its own or another source."""
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        before = chosen(max(runs, key=lambda run: run.started)) if runs else options
        # What was said about documents stays as private as they are, whatever is asked next.
        options = options.model_copy(update={"private": before.private or options.private})
        if options.docs or options.source != "auto":
            return options
        web = options.web or before.web
        return options.model_copy(update={"docs": before.docs, "source": before.source, "web": web})

    async def _remembering(self, options: Options) -> tuple[Options, dict[str, str]]:
        """What the person prefers, as it is when the run begins."""
        try:
            known = await self.memory.preferences(options.user)
        except StorageError as error:
            return options, {"memory": f"What is remembered of you could not be read and was left out: {error.message}"}
        return options.model_copy(update={"preferences": known}), {}

    # -- questions ----------------------------------------------------------------------------------------

    async def answer(self, thread: str, question: str, value: object) -> Run:
        """Answer an open question by its id. A late, repeated or malformed answer is refused and changes nothing."""
        return await self._desk.answer(await self._latest(thread), question, value)

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        """What the run waits for and nobody has answered yet."""
        return await self._desk.open_questions(thread)

    async def reviews(self, thread: str | None = None) -> list[Review]:
        """Questions that are open, of all threads or of one: what is due first comes first."""
        return await self._runner.reviews.pending(thread)

    async def last_review(self, thread: str) -> Review | None:
        """The question a thread was asked last, with its answer if there is one."""
        return await self._runner.reviews.latest(thread)

    async def set_mode(self, thread: str, mode: Mode) -> bool:
        """From now on; returns whether the question that is being worked on is affected. Planning questions that are
        open are dropped when the thread turns to auto."""
        return await self._desk.set_mode(thread, mode)

    async def settle_overdue(self) -> list[Run]:
        """Let the timer answer what nobody has answered in time. The runs that go on are told."""
        return await self._desk.settle_overdue()

    async def until_due(self) -> float:
        """Seconds after which to look again."""
        return await self._desk.until_due()

    async def keep_time(self) -> None:
        """Until it is cancelled: every question is settled as it comes due, those of other processes too."""
        await self._desk.keep_time()

    # -- going on -----------------------------------------------------------------------------------------

    async def resume(self, thread: str) -> Run:
        """Go on from the last good checkpoint; what was finished is not done again."""
        run = await self._latest(thread)
        if run.status is RunStatus.DONE:
            raise UsageError(
                "this thread's last question is already answered",
                help=f"Ask a new one: assay ask ... --thread {thread}",
            )
        if self._runner.at_work(run.id):
            raise ThreadBusyError("this thread is already running here")
        state = await self._runner.state(thread)
        if state.interrupts and state.values.get("run") == run.id:
            return await self._desk.asked_again(run)
        untouched = not state.values or state.values.get("run") != run.id
        sources, notices = await asyncio.to_thread(self._sources, chosen(run))
        notices |= await asyncio.to_thread(self._runner.thinking.notices, chosen(run))
        work = new_question(run.question, run.id, run.options, notices) if untouched else None
        self._runner.spawn(run, sources, work, notices)
        return run

    async def cancel(self, run: str) -> None:
        """Stop a run of this process; it can be resumed."""
        await self._runner.cancel(run)

    async def wait(self, run: str) -> Outcome:
        """Until the run is done, failed, cancelled or waits for a person."""
        await self._runner.wait(run)
        return await self.outcome(run)

    def fault(self, run: str) -> AssayError | None:
        """Why a run of this process failed, if for a reason that was foreseen."""
        return self._runner.faults.get(run)

    async def outcome(self, run: str) -> Outcome:
        current = await self.threads.run(run)
        state = await self._runner.state(current.thread)
        mine = state.values.get("run") == run
        report = state.values.get("report") if mine and current.status is RunStatus.DONE else None
        return Outcome(
            run=current,
            report=Report.model_validate(report) if report else None,
            questions=tuple(await self.open_questions(current.thread)) if current.status is RunStatus.WAITING else (),
        )

    # -- reading ------------------------------------------------------------------------------------------

    def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        return self._runner.events(run, after)

    async def state(self, thread: str) -> dict[str, Any]:
        return dict((await self._runner.state(thread)).values)

    async def view(self, thread: str) -> StateView:
        """Everything the thread's state tells, with what it refers to."""
        kept = await self.threads.get(thread)
        state = await self._runner.state(thread)
        checkpoint = state.config.get("configurable", {}).get("checkpoint_id") if state.values else None
        return await view(
            state.values, self._runner.documents, thread=thread, next=tuple(state.next), checkpoint=checkpoint,
            mode=kept.mode,
        )  # fmt: skip

    async def document(self, hash: str) -> Document:
        return await self._runner.documents.get(hash)

    async def report(self, thread: str) -> Report:
        """The thread's latest finished report."""
        values = await self.state(thread)
        if not values.get("report"):
            raise NotFoundError(f"thread {thread} has no finished report", help=f"Go on with: assay resume {thread}")
        return Report.model_validate(values["report"])

    async def delete(self, thread: str) -> None:
        """The thread with its runs, events and checkpoints. Snapshots stay: other threads may cite them."""
        await self.threads.get(thread)
        self._runner.locks.take(thread)  # a run that is at work would write into the void
        try:
            await self.threads.delete(thread)
            await self._runner.checkpointer.adelete_thread(thread)
        finally:
            self._runner.locks.release(thread)

    async def close(self) -> None:
        await self._runner.close()

    # -- inside -------------------------------------------------------------------------------------------

    async def _latest(self, thread: str) -> Run:
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        if not runs:
            raise NotFoundError(f"thread {thread} has no run")
        return max(runs, key=lambda run: run.started)


def title(question: str) -> str:
    line = " ".join(question.split())
    return (line if len(line) <= 80 else f"{line[:79]}…") or "Untitled"
