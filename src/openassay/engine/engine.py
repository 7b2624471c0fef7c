"""Starting, following, answering and resuming runs. Every front end calls this and nothing below it.

A run is detached from whoever started it: it appends events, and the checkpointer alone decides how it goes on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from openassay.engine.answers import InterruptService
from openassay.engine.archive import ThreadArchive
from openassay.engine.branches import BranchService
from openassay.engine.diff import ReportDiff
from openassay.engine.history import PAGE, ThreadHistory
from openassay.engine.questions import OpenQuestion, validate_question
from openassay.engine.resume import AT_ONCE, RunCoordinator, RunResumer
from openassay.engine.runner import DRAIN, MaxCost, Runner
from openassay.engine.start import RunStarter, make_title
from openassay.engine.timings import Timings, measure_timings
from openassay.engine.vetoes import VetoService
from openassay.engine.view import StateView, build_view
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
    Review,
    Run,
    ResearchOptions,
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
    """Where a run stands once it no longer moves by itself."""

    run: Run
    report: Report | None = None
    questions: tuple[OpenQuestion, ...] = ()


class Engine:
    """`sources` chooses those of a run, with notices about the choice that the person must see; `forget` gives up what
    is known of folders that no thread asks any more."""

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
        self._beginnings = RunStarter(runner, lambda options: self._sources(options))
        self._desk = InterruptService(runner, lambda options: self._sources(options))
        self._history = ThreadHistory(runner)
        self._branches = BranchService(runner, self._history, lambda options: self._sources(options))
        self._archive = ThreadArchive(runner, forget)
        self._vetoes = VetoService(runner, self._history, self._beginnings)
        self._resumption = RunResumer(
            runner, self._vetoes, lambda options: self._sources(options), self._desk.resume_waiting
        )
        self._takeover = RunCoordinator(runner, self._resumption.continue_run)

    # -- runs ---------------------------------------------------------------------------------------------

    async def start(self, question: str, options: ResearchOptions, *, thread: str | None = None) -> Run:
        """A new run, on a new thread unless one is named. Nothing is written before the input is accepted."""
        async with self._beginnings.open_run(question, options, thread, RunStatus.RUNNING) as begun:
            run, sources, notices, hold = begun
            given = question_input(run.question, run.id, run.options, notices)
            self._runner.spawn(run, sources, given, hold, notices, new=thread is None)
        return run

    async def queue(
        self, question: str, options: ResearchOptions, *, thread: str | None = None, id: str | None = None
    ) -> Run:
        """As `start`, but nobody works on it yet: whoever resumes the thread does. `id` is what the run is called."""
        async with self._beginnings.open_run(question, options, thread, RunStatus.QUEUED, id) as (run, *_):
            return run

    async def fetch_documents(self, options: ResearchOptions) -> None:
        """Documents that a run is to read are brought here, where they are not. It takes a while: call it before
        anything is held that others wait for."""
        if options.docs:
            await asyncio.to_thread(self._sources, options)

    async def create_thread(self, title: str = "", mode: Mode | None = None, owner: str | None = None) -> Thread:
        """A thread on which nothing was asked yet."""
        made = self._beginnings.build_thread(uuid4().hex[:12], title, mode, owner or self.settings.user)
        await self.threads.create(made)
        return made

    async def estimate(self, question: str, options: ResearchOptions) -> CostEstimate:
        """What a question will probably cost; nothing is written and nothing is spent."""
        validate_question(question, options)
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._runner.thinking.notices, options)
        return await self._runner.estimate(options, sources)

    # -- questions ----------------------------------------------------------------------------------------

    async def answer(self, thread: str, question: str, value: object, *, queued: bool = False) -> Run:
        """Answer an open question by its id. A late, repeated or malformed answer is refused and changes nothing.
        `queued`: the run is put in line, for whoever takes it up."""
        value = self._runner.redaction.redact_data_secrets(value)
        return await self._desk.answer(await self._runner.latest_run(thread), question, value, queued=queued)

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        """What the run waits for and nobody has answered yet."""
        return await self._desk.open_questions(thread)

    async def reviews(self, thread: str | None = None, *, owner: str | None = None) -> list[Review]:
        """Questions that are open, of all threads, of one, or of one person's: what is due first comes first."""
        return await self._runner.reviews.pending(thread, owner=owner)

    async def review(self, id: str, *, owner: str | None = None) -> Review:
        """One question by its id, open or not. Another's is as unknown as one that never was."""
        found = await self._runner.reviews.get(id)
        try:
            await self.threads.get(found.thread, owner=owner)
        except NotFoundError as error:
            raise no_review(id) from error
        return found

    async def last_review(self, thread: str) -> Review | None:
        """The question a thread was asked last, with its answer if there is one."""
        return await self._runner.reviews.latest(thread)

    async def set_mode(self, thread: str, mode: Mode, *, queued: bool = False) -> bool:
        """From now on; returns whether the question that is being worked on is affected. Planning questions that are
        open are dropped when the thread turns to auto. `queued`: its run is put in line, for whoever takes it up."""
        return await self._desk.set_mode(thread, mode, queued=queued)

    async def answer_overdue(self, *, queued: bool = False) -> list[Run]:
        """Let the timer answer what nobody has answered in time. The runs that go on are told. `queued`: they are put
        in line instead, for whoever takes them up."""
        return await self._desk.answer_overdue(queued=queued)

    async def seconds_until_due(self) -> float:
        """Seconds after which to look again."""
        return await self._desk.seconds_until_due()

    async def run_deadlines(self, *, queued: bool = False) -> None:
        """Until it is cancelled: every question is settled as it comes due, those of other processes too."""
        await self._desk.run_deadlines(queued=queued)

    # -- sources --------------------------------------------------------------------------------------------

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        """What the thread's report would lose without these sources; nothing is changed."""
        return await self._vetoes.consequences(thread, sources)

    async def veto(self, thread: str, sources: Sequence[str], *, usd: float | None = None, queued: bool = False) -> Run:
        """Take sources out of the thread's report, for good: what rested on them is derived again, the rest is kept as
        it is, and later questions do without them. `usd` is the most it may cost; None: as the question before.
        `queued`: nobody works on it yet."""
        return await self._vetoes.begin(thread, sources, usd=usd, queued=queued)

    # -- going on -----------------------------------------------------------------------------------------

    async def resume(self, thread: str, *, queued: bool = False) -> Run:
        """Go on from the last good checkpoint; what was finished is not done again. `queued`: not if somebody has
        stopped it, or taken it up, since it was put aside."""
        return await self._resumption.resume(thread, queued=queued)

    async def restore(self, folder: Path) -> Run:
        """A run from its journal alone, on whatever machine. Nothing is written before all of it was checked; `resume`
        goes on with it, unless it was finished."""
        return await self._resumption.restore(folder)

    async def requeue(self, thread: str) -> Run:
        """Put a run that was stopped, or has failed, in line again: whoever resumes the thread goes on with it."""
        return await self._resumption.requeue(thread)

    async def suspend(self, thread: str) -> Run:
        """For another process to go on with, which is about to start."""
        return await self._resumption.suspend(thread)

    async def resume_abandoned(self, at_once: int = AT_ONCE) -> list[Run]:
        """Go on with runs whose process is gone, as many as may be at work together: call it again when one of them
        stands still. What cannot go on is told and left as it is; what waits for a person is left alone."""
        return await self._takeover.resume_abandoned(at_once)

    async def claim(self, run: Run) -> bool:
        """Go on with a run that is in line, or whose process is gone; whether it does. What a person has stopped, or
        is to answer, is left alone; ThreadBusyError where somebody works on it."""
        return await self._takeover.claim(run)

    async def is_orphaned(self, run: Run) -> bool:
        """Whether the process that worked on it is gone."""
        return await self._takeover.is_orphaned(run.status, run.thread)

    def list_unrecoverable(self) -> list[OpenAssayError]:
        """Why runs that were left could not be gone on with here."""
        return list(self._takeover.unable.values())

    async def stop(self, thread: str, *, drain: bool = False, run: str | None = None) -> Run:
        """Stop whatever works on a thread, in any process, or this `run` alone; `drain` lets it end the step it is at.
        Returns the run as it stands: another process looks once a second whether it is to stop. It is resumed by a
        person, and by nobody else."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        return await self._takeover.stop(found, drain=drain)

    async def crash_count(self, thread: str) -> int:
        """How many processes in a row have died while they had it, without getting anywhere."""
        return await asyncio.to_thread(self._runner.locks.crash_count, thread)

    async def fail(self, run: Run, error: OpenAssayError) -> None:
        """A run that waits in line and cannot go on: whoever waits for it is told why."""
        await self._resumption.fail(run, error)

    async def cancel(self, run: str) -> None:
        """Stop a run of this process; it can be resumed."""
        await self._runner.cancel(run)

    async def drain(self, run: str | None = None, seconds: float = DRAIN) -> None:
        """Stop a run of this process, or all, each after the step it is at; at once what takes longer than that. It is
        the process that stops: whoever starts next takes them up."""
        await (self._runner.drain(run, seconds) if run else self._runner.drain_all(seconds))

    async def wait(self, run: str) -> RunOutcome:
        """Until the run is done, failed, cancelled or waits for a person."""
        await self._runner.wait(run)
        return await self.outcome(run)

    @property
    def watchers(self) -> list[Callable[[Event], None]]:
        """Told of every event of this process's runs once it is written; a run waits for them, so they are quick."""
        return self._runner.watchers

    def set_cost_limit(self, ceiling: MaxCost) -> None:
        """Ask this, whenever a run begins or goes on, what it may cost at the most."""
        self._runner.ceiling = ceiling

    def list_running(self) -> list[str]:
        """The runs this process works on."""
        return self._runner.list_running()

    def losses(self) -> int:
        """How many runs were lost to another process, which had not heard of this one for too long."""
        return self._runner.losses

    def fault(self, run: str) -> OpenAssayError | None:
        """Why a run of this process failed, if for a reason that was foreseen."""
        return self._runner.fault(run)

    async def outcome(self, run: str) -> RunOutcome:
        current = await self.threads.run(run)
        state = await self._runner.state(current.thread)
        mine = state.values.get("run") == run
        report = state.values.get("report") if mine and current.status is RunStatus.DONE else None
        return RunOutcome(
            run=current,
            report=Report.model_validate(report) if report else None,
            questions=tuple(await self.open_questions(current.thread)) if current.status is RunStatus.WAITING else (),
        )

    # -- time travel --------------------------------------------------------------------------------------

    async def history(self, thread: str, *, limit: int | None = PAGE, run: str | None = None) -> list[CheckpointInfo]:
        """The thread's checkpoints, the newest last; None for all."""
        return await self._history.list_page(thread, limit=limit, run=run)

    async def state_at(self, thread: str, checkpoint: str) -> dict[str, Any]:
        return await self._history.state(thread, checkpoint)

    async def view_at(self, thread: str, checkpoint: str) -> StateView:
        """The thread as it was at a checkpoint: its id, the beginning of it, or its number in the history."""
        return await self._history.view(thread, checkpoint)

    async def fork(
        self, thread: str, checkpoint: str | None = None, changes: BranchChanges | None = None, *,
        interactive: bool | None = None, usd: float | None = None, id: str | None = None, queued: bool = False,
    ) -> Run:  # fmt: skip
        """A new thread that goes on from a moment of this one with something changed; this one stays as it is.
        `interactive`: whether somebody can answer questions; None: as it was. `usd` is the most it may cost, whatever
        was changed; `id` is what the run is called; `queued`: nobody works on it yet."""
        return await self._branches.fork(
            thread, checkpoint, changes or BranchChanges(), interactive=interactive, usd=usd, id=id, queued=queued
        )

    async def replay(self, thread: str, checkpoint: str, *, interactive: bool | None = None) -> Run:
        """A new thread that goes on from a moment of this one as if nothing had come after it."""
        return await self._branches.fork(thread, checkpoint, BranchChanges(), interactive=interactive)

    async def tree(self, thread: str) -> BranchTree:
        """The branches a thread is one of, from their root on."""
        return await self._branches.tree(thread)

    async def diff(self, a: str, b: str) -> ReportDiff:
        """What two reports tell differently: threads, or THREAD@CHECKPOINT for the draft of that moment."""
        return await self._history.diff(a, b)

    # -- reading ------------------------------------------------------------------------------------------

    def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        return self._runner.events(run, after)

    def follow(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """As `events`, of a run that any process may work on."""
        return self._takeover.follow(run, after)

    async def state(self, thread: str) -> dict[str, Any]:
        return dict((await self._runner.state(thread)).values)

    async def view(self, thread: str) -> StateView:
        """Everything the thread's state tells, with what it refers to."""
        kept = await self.threads.get(thread)
        state = await self._runner.state(thread)
        checkpoint = state.config.get("configurable", {}).get("checkpoint_id") if state.values else None
        return await build_view(
            state.values, self._runner.documents, thread=thread, next=tuple(state.next), checkpoint=checkpoint,
            mode=kept.mode,
        )  # fmt: skip

    async def checkpoint(self, thread: str) -> str | None:
        """The last moment of a thread; None where nothing was done on it yet."""
        kept = await self._runner.checkpointer.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})
        return kept.checkpoint["id"] if kept else None

    async def document(self, hash: str, *, thread: str | None = None) -> Document:
        """A snapshot by its hash, or the beginning of that; with `thread`, one which that thread rests on."""
        if thread is not None:
            start = validate_prefix(hash)
            hash = get_only(
                [one for one in await self._runner.documents.list_hashes(thread) if one.startswith(start)], hash
            )
        return await self._runner.documents.get(hash)

    async def timings(self, thread: str, run: str | None = None) -> Timings:
        """Where the time of a run went: of the thread's last one, unless one is named."""
        found = await self._runner.latest_run(thread) if run is None else await self.threads.run(run)
        if found.thread != thread:
            raise no_run(found.id)  # as of one that never was
        return measure_timings(found, await self._runner.log.since(found.id, 0), self._runner.now())

    async def report(self, thread: str, run: str | None = None) -> Report:
        """The thread's latest finished report, or that of an earlier run."""
        return await self._history.report(thread, run)

    # -- what is kept -------------------------------------------------------------------------------------

    async def overview(
        self, limit: int, status: RunStatus | Collection[RunStatus] = (), *, owner: str | None = None,
        after: Cursor | None = None,
    ) -> list[ThreadSummary]:  # fmt: skip
        """The thread on which something happened last comes first; `status` is that of a thread's last run, `after`
        where the page before has ended."""
        statuses = [status] if isinstance(status, RunStatus) else status
        found = await self.threads.overview(limit=limit, statuses=statuses, owner=owner, after=after)
        return await self._takeover.mark_orphans(found)

    async def rename(self, thread: str, name: str) -> None:
        await self.threads.rename(thread, make_title(name))

    async def delete(self, thread: str) -> None:
        """All of it, for good, and documents that no other thread uses. What was spent stays in the books."""
        await self._archive.delete(thread)

    async def expire(self) -> list[str]:
        """Delete threads that nobody has touched for `persistence.ttl_hours`, a bounded number; those that went."""
        return await self._archive.expire()

    async def check(self, thread: str) -> None:
        """What every run begins with: IntegrityError unless the thread is what was written."""
        await self._runner.check(thread)

    async def problems(self, thread: str | None = None) -> list[str]:
        """Every row of a thread, or of all, looked into; one line for each that is not what was written."""
        return await self._archive.problems(thread)

    async def export(self, thread: str, path: Path) -> None:
        """Everything of a thread in one zip."""
        await self._archive.export(thread, path)

    async def close(self) -> None:
        await self._runner.close()
