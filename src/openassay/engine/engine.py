"""Starts, follows, answers and resumes runs. Front ends call the engine and nothing below it.

A run is detached from its caller: it appends events, and its checkpoints alone decide how it is resumed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from openassay.engine.archive import ThreadArchive
from openassay.engine.branches import BranchService
from openassay.engine.diff import ReportDiff
from openassay.engine.history import PAGE, ThreadHistory
from openassay.engine.interrupts import InterruptService
from openassay.engine.resume import MAX_CONCURRENT, RunCoordinator, RunResumer
from openassay.engine.runner import DRAIN_SECONDS, CostLimit, Runner
from openassay.engine.start import RunStarter, make_title
from openassay.engine.state_view import StateView, build_view
from openassay.engine.timings import Timings, measure_timings
from openassay.engine.validation import OpenQuestion, validate_question
from openassay.engine.vetoes import VetoService
from openassay.errors import NotFoundError, OpenAssayError
from openassay.export.report import Report
from openassay.models.base import Record
from openassay.models.event import Event, RunStatus
from openassay.models.evidence import Document
from openassay.models.plan import Mode
from openassay.models.spend import CostEstimate
from openassay.models.thread import (
    BranchChanges,
    BranchTree,
    CheckpointInfo,
    Consequences,
    Cursor,
    ResearchOptions,
    Review,
    Run,
    Thread,
    ThreadSummary,
)
from openassay.nodes.approve import check_breakpoints
from openassay.protocols import ChooseSources
from openassay.state import question_input
from openassay.storage.documents import get_only, validate_prefix
from openassay.storage.events import no_review
from openassay.storage.threads import no_run


class RunOutcome(Record):
    """What a run has reached once it no longer moves by itself."""

    run: Run
    report: Report | None = None
    questions: tuple[OpenQuestion, ...] = ()


class Engine:
    """What a front end can do with threads and runs. `sources` chooses those of a run, with notices about the choice
    that the person must see; `forget` deletes what is stored of folders that no thread uses any more."""

    def __init__(
        self,
        runner: Runner,
        sources: ChooseSources,
        forget: Callable[[set[str]], None] = lambda folders: None,
    ) -> None:
        check_breakpoints(runner.settings)
        self.settings = runner.settings
        self.threads = runner.threads
        self.memory = runner.memory
        self._runner = runner
        self._sources = sources
        self._starter = RunStarter(runner, lambda options: self._sources(options))
        self._interrupts = InterruptService(runner, lambda options: self._sources(options))
        self._history = ThreadHistory(runner)
        self._branches = BranchService(runner, self._history, lambda options: self._sources(options))
        self._archive = ThreadArchive(runner, forget)
        self._vetoes = VetoService(runner, self._history, self._starter)
        self._resumer = RunResumer(
            runner, self._vetoes, lambda options: self._sources(options), self._interrupts.resume_waiting
        )
        self._coordinator = RunCoordinator(runner, self._resumer.continue_run)

    # -- starting -----------------------------------------------------------------------------------------

    async def start(self, question: str, options: ResearchOptions, *, thread: str | None = None) -> Run:
        """Start a run, on a new thread unless one is named. Nothing is written before the question is accepted."""
        async with self._starter.open_run(question, options, thread, RunStatus.RUNNING) as (prepared, lock):
            run, sources, notices = prepared
            input = question_input(run, notices)
            self._runner.spawn(run, sources, input, lock, notices, new=thread is None)
        return run

    async def queue(
        self, question: str, options: ResearchOptions, *, thread: str | None = None, id: str | None = None
    ) -> Run:
        """Queue a run for the process that will resume its thread. `id` is what the run is called."""
        async with self._starter.open_run(question, options, thread, RunStatus.QUEUED, id) as (prepared, _):
            return prepared.run

    async def fetch_documents(self, options: ResearchOptions) -> None:
        """Copy the documents of a run to this machine, where they are not. It takes a while: call it before anything is
        locked that others wait for."""
        if options.docs:
            await asyncio.to_thread(self._sources, options)

    async def create_thread(self, title: str = "", mode: Mode | None = None, owner: str | None = None) -> Thread:
        """Create a thread without a question."""
        thread = self._starter.build_thread(uuid4().hex[:12], title, mode, owner or self.settings.user)
        await self.threads.create(thread)
        return thread

    async def estimate(self, question: str, options: ResearchOptions) -> CostEstimate:
        """Estimate what a question will cost; nothing is written and nothing is spent."""
        validate_question(question, options)
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._runner.reasoners.notices, options)
        return await self._runner.estimate(options, sources)

    # -- interrupts ---------------------------------------------------------------------------------------

    async def answer(self, thread: str, question: str, value: object, *, queued: bool = False) -> Run:
        """Answer an open question by its id. A late, repeated or malformed answer is refused and changes nothing.
        `queued`: queue the run instead of resuming it here."""
        value = self._runner.redaction.redact_data_secrets(value)
        return await self._interrupts.answer(await self._runner.latest_run(thread), question, value, queued=queued)

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        """Return what the run waits for and nobody has answered yet."""
        return await self._interrupts.open_questions(thread)

    async def reviews(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        """Return the open questions of all threads, of one, or of one user's, the first due first."""
        return await self._runner.reviews.pending(thread, owner=owner)

    async def review(self, id: str, *, owner: str | None = None) -> Review:
        """Return one question by its id, open or not. Another user's is as unknown as one that never was."""
        found = await self._runner.reviews.get(id)
        try:
            await self.threads.get(found.thread, owner=owner)
        except NotFoundError as error:
            raise no_review(id) from error
        return found

    async def last_review(self, thread: str) -> Review | None:
        """Return the question that the thread asked last, with its answer if there is one."""
        return await self._runner.reviews.latest(thread)

    async def set_mode(self, thread: str, mode: Mode, *, queued: bool = False) -> bool:
        """Set the mode from now on; returns whether the current question is affected. Open planning questions are
        dropped when the thread turns to auto. `queued`: queue its run instead of resuming it here."""
        return await self._interrupts.set_mode(thread, mode, queued=queued)

    async def answer_overdue(self, *, queued: bool = False) -> list[Run]:
        """Let the timer answer what nobody has answered in time, and return the runs that continue. `queued`: queue
        them instead of resuming them here."""
        return await self._interrupts.answer_overdue(queued=queued)

    async def seconds_until_due(self) -> float:
        """Return the seconds after which to look for overdue questions again."""
        return await self._interrupts.seconds_until_due()

    async def run_deadlines(self, *, queued: bool = False) -> None:
        """Settle every question as it comes due, those of other processes too, until cancelled."""
        await self._interrupts.run_deadlines(queued=queued)

    # -- vetoes -------------------------------------------------------------------------------------------

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        """Return what the thread's report would lose without these sources; nothing is changed."""
        return await self._vetoes.consequences(thread, sources)

    async def veto(self, thread: str, sources: Sequence[str], *, usd: float | None = None, queued: bool = False) -> Run:
        """Remove sources from the thread's report for good: what rested on them is derived again, the rest is kept, and
        later questions do without them. `usd` is the most it may cost; None: as the question before. `queued`: queue
        the run."""
        return await self._vetoes.begin(thread, sources, usd=usd, queued=queued)

    # -- resuming and stopping ----------------------------------------------------------------------------

    async def resume(self, thread: str, *, queued: bool = False) -> Run:
        """Resume from the last good checkpoint; what was finished is not done again. `queued`: only if the run is still
        queued."""
        return await self._resumer.resume(thread, queued=queued)

    async def restore(self, folder: Path) -> Run:
        """Restore a run from its journal alone, on any machine. Nothing is written before all of it was checked;
        `resume` continues it, unless it was finished."""
        return await self._resumer.restore(folder)

    async def requeue(self, thread: str) -> Run:
        """Queue a run that was stopped, or has failed, again."""
        return await self._resumer.requeue(thread)

    async def suspend(self, thread: str) -> Run:
        """Queue a run for another process that is about to start."""
        return await self._resumer.suspend(thread)

    async def resume_abandoned(self, at_once: int = MAX_CONCURRENT) -> list[Run]:
        """Resume runs whose process is gone, as many as may run together: call it again when one of them stops. What
        cannot be resumed is logged and left as it is; what waits for a person is left alone."""
        return await self._coordinator.resume_abandoned(at_once)

    async def claim(self, run: Run) -> bool:
        """Resume a run that is queued, or whose process is gone; returns whether it does. What a person has stopped, or
        must answer, is left alone; ThreadBusyError where somebody works on it."""
        return await self._coordinator.claim(run)

    async def is_orphaned(self, run: Run) -> bool:
        """Whether the process that worked on it is gone."""
        return await self._coordinator.is_orphaned(run.status, run.thread)

    def list_unrecoverable(self) -> list[OpenAssayError]:
        """Return why abandoned runs could not be resumed here."""
        return list(self._coordinator.unrecoverable.values())

    async def stop(self, thread: str, *, drain: bool = False, run: str | None = None) -> Run:
        """Stop what runs on a thread, in any process, or this `run` alone; `drain` lets it end its current step.
        Returns the run as it is now: another process checks once a second whether it must stop. Only a
        person resumes it."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        return await self._coordinator.stop(found, drain=drain)

    async def crash_count(self, thread: str) -> int:
        """Return how many processes in a row have died while they worked on it, without getting anywhere."""
        return await asyncio.to_thread(self._runner.locks.crash_count, thread)

    async def fail(self, run: Run, error: OpenAssayError) -> None:
        """End a queued run that cannot be resumed, and record why."""
        await self._resumer.fail(run, error)

    async def cancel(self, run: str) -> None:
        """Stop a run of this process; it can be resumed."""
        await self._runner.cancel(run)

    async def drain(self, run: str | None = None, seconds: float = DRAIN_SECONDS) -> None:
        """Stop a run of this process, or all, each after its current step, or at once if that takes longer than
        `seconds`. The next process resumes them."""
        await (self._runner.drain(run, seconds) if run else self._runner.drain_all(seconds))

    async def wait(self, run: str) -> RunOutcome:
        """Wait until the run is done, failed, cancelled or waits for a person."""
        await self._runner.wait(run)
        return await self.outcome(run)

    @property
    def watchers(self) -> list[Callable[[Event], None]]:
        """Functions called with every event of this process's runs once it is stored; runs wait for them."""
        return self._runner.watchers

    def set_cost_limit(self, cost_limit: CostLimit) -> None:
        """Ask this function, whenever a run is started or resumed, what it may cost at most."""
        self._runner.cost_limit = cost_limit

    def list_running(self) -> list[str]:
        """Return the runs this process works on."""
        return self._runner.list_running()

    def losses(self) -> int:
        """Return how many runs were lost to another process because this one was silent for too long."""
        return self._runner.losses

    def fault(self, run: str) -> OpenAssayError | None:
        """Return why a run of this process failed, if for a reason that was foreseen."""
        return self._runner.fault(run)

    async def outcome(self, run: str) -> RunOutcome:
        """Return the run with its report, or with the questions it waits for."""
        current = await self.threads.run(run)
        values = (await self._runner.state(current.thread)).values
        is_done = current.status is RunStatus.DONE and values.get("run") == run
        report = values.get("report") if is_done else None
        return RunOutcome(
            run=current,
            report=Report.model_validate(report) if report else None,
            questions=tuple(await self.open_questions(current.thread)) if current.status is RunStatus.WAITING else (),
        )

    # -- history and branches -----------------------------------------------------------------------------

    async def history(self, thread: str, *, limit: int | None = PAGE, run: str | None = None) -> list[CheckpointInfo]:
        """Return the thread's checkpoints, the newest last; `limit` None for all."""
        return await self._history.list_page(thread, limit=limit, run=run)

    async def state_at(self, thread: str, checkpoint: str) -> dict[str, Any]:
        return await self._history.state(thread, checkpoint)

    async def view_at(self, thread: str, checkpoint: str) -> StateView:
        """Return the thread as it was at a checkpoint: its id, the beginning of it, or its number in the history."""
        return await self._history.view(thread, checkpoint)

    async def fork(
        self,
        thread: str,
        checkpoint: str | None = None,
        changes: BranchChanges | None = None,
        *,
        interactive: bool | None = None,
        usd: float | None = None,
        id: str | None = None,
        queued: bool = False,
    ) -> Run:
        """Continue from a checkpoint with something changed, on a new thread; this one stays as it is. `interactive`:
        whether somebody can answer questions; None: as it was. `usd` is the most it may cost, whatever was changed;
        `id` is what the run is called; `queued`: queue the run."""
        return await self._branches.fork(
            thread, checkpoint, changes or BranchChanges(), interactive=interactive, usd=usd, id=id, queued=queued
        )

    async def replay(self, thread: str, checkpoint: str, *, interactive: bool | None = None) -> Run:
        """Continue from a checkpoint as if nothing had come after it, on a new thread."""
        return await self._branches.fork(thread, checkpoint, BranchChanges(), interactive=interactive)

    async def tree(self, thread: str) -> BranchTree:
        """Return the branches a thread is one of, from their root on."""
        return await self._branches.tree(thread)

    async def diff(self, a: str, b: str) -> ReportDiff:
        """Compare two reports: threads, or THREAD@CHECKPOINT for the draft of that checkpoint."""
        return await self._history.diff(a, b)

    # -- reading ------------------------------------------------------------------------------------------

    def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield every event from `after` on, then new ones as they come, until the run stops."""
        return self._runner.events(run, after)

    def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Yield events as `events` does, of a run that any process may work on."""
        return self._coordinator.follow(run, after)

    async def state(self, thread: str) -> dict[str, Any]:
        return dict((await self._runner.state(thread)).values)

    async def view(self, thread: str) -> StateView:
        """Return everything the thread's state says, with what it refers to."""
        mode = (await self.threads.get(thread)).mode
        state = await self._runner.state(thread)
        checkpoint = state.config.get("configurable", {}).get("checkpoint_id") if state.values else None
        return await build_view(
            state.values,
            self._runner.documents,
            thread=thread,
            next=tuple(state.next),
            checkpoint=checkpoint,
            mode=mode,
        )

    async def checkpoint(self, thread: str) -> str | None:
        """Return the last checkpoint of a thread; None where nothing was done on it yet."""
        saved = await self._runner.checkpointer.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return saved.checkpoint["id"] if saved else None

    async def document(self, hash: str, *, thread: str | None = None) -> Document:
        """Return a document by its hash, or the beginning of that; with `thread`, one which that thread rests on."""
        if thread is not None:
            start, hashes = validate_prefix(hash), await self._runner.documents.list_hashes(thread)
            hash = get_only([one for one in hashes if one.startswith(start)], hash)
        return await self._runner.documents.get(hash)

    async def timings(self, thread: str, run: str | None = None) -> Timings:
        """Return where the time of a run went: of the thread's last one, unless one is named."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        if found.thread != thread:
            raise no_run(found.id)  # as of one that never was
        return measure_timings(found, await self._runner.log.since(found.id, 0), self._runner.now())

    async def report(self, thread: str, run: str | None = None) -> Report:
        """Return the thread's latest finished report, or that of an earlier run."""
        return await self._history.report(thread, run)

    # -- the archive --------------------------------------------------------------------------------------

    async def overview(
        self,
        limit: int,
        status: RunStatus | Collection[RunStatus] = (),
        *,
        owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:
        """List threads, the one used last first. `status` is that of a thread's last run, `after` where the page before
        has ended."""
        statuses = [status] if isinstance(status, RunStatus) else status
        found = await self.threads.overview(limit=limit, statuses=statuses, owner=owner, after=after)
        return await self._coordinator.mark_orphans(found)

    async def rename(self, thread: str, name: str) -> None:
        await self.threads.rename(thread, make_title(name))

    async def delete(self, thread: str) -> None:
        """Delete a thread for good, and documents that no other thread uses. What was spent stays in the ledger."""
        await self._archive.delete(thread)

    async def expire(self) -> list[str]:
        """Delete threads unused for `persistence.ttl_hours`, a bounded number; returns their ids."""
        return await self._archive.expire()

    async def check(self, thread: str) -> None:
        """Raise IntegrityError unless the thread is what was written. Every run begins with this check."""
        await self._runner.check(thread)

    async def problems(self, thread: str | None = None) -> list[str]:
        """Check every row of a thread, or of all; one line for each that is not what was written."""
        return await self._archive.problems(thread)

    async def export(self, thread: str, path: Path) -> None:
        """Export everything of a thread into one zip file."""
        await self._archive.export(thread, path)

    async def close(self) -> None:
        await self._runner.close()
