"""Starting, following, answering and resuming runs. Every front end calls this and nothing below it.

A run is detached from whoever started it: it appends events, and the checkpointer alone decides how it goes on.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from langgraph.types import Command

from assay.admission import accepted, unasked, validated
from assay.deps import Deps, Thinking
from assay.errors import AnswerError, AssayError, NotFoundError, ThreadBusyError, UsageError
from assay.export.report import Report
from assay.graph import build
from assay.llm.lineup import is_private
from assay.llm.tracing import tracing
from assay.model.event import Event, EventKind, RunStatus, Status
from assay.model.record import Record
from assay.model.source import Document
from assay.model.spend import Quote
from assay.model.thread import Options, Run, Thread
from assay.ports import (
    DocumentStore,
    EventLog,
    Pages,
    PassageRanker,
    Prepared,
    RunLocks,
    Source,
    SupportScorer,
    ThreadStore,
)
from assay.search.pricing import with_searches
from assay.settings import Settings
from assay.state import new_question

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import StateSnapshot

STEPS = 200  # supersteps of one run; every loop of the graph is bounded far below this
TICK = 0.5  # seconds after which a reader of events looks again by itself


class OpenQuestion(Record):
    """Something a run waits for. `id` names it; answers to any other id are refused."""

    id: str
    kind: str
    question: str
    options: tuple[str, ...] = ()
    shown: dict[str, Any] = {}


class Outcome(Record):
    """Where a run stands once it no longer moves by itself."""

    run: Run
    report: Report | None = None
    questions: tuple[OpenQuestion, ...] = ()


class Engine:
    def __init__(
        self,
        *,
        settings: Settings,
        threads: ThreadStore,
        events: EventLog,
        documents: DocumentStore,
        pages: Pages,
        ranker: PassageRanker,
        thinking: Thinking,
        support: SupportScorer,
        checkpointer: "BaseCheckpointSaver[Any]",
        sources: Callable[[Options], tuple[list[Source], dict[str, str]]],
        locks: RunLocks,
        now: Callable[[], datetime],
    ) -> None:
        self.settings = settings
        self.threads = threads
        self._events = events
        self._documents = documents
        self._pages = pages
        self._ranker = ranker
        self._thinking = thinking
        self._support = support
        self._sources = sources
        self._now = now
        self._checkpointer = checkpointer
        self._graph = build(checkpointer)
        self._locks = locks
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._faults: dict[str, AssayError] = {}
        self._discarded: set[str] = set()  # runs whose new thread was taken back, since their input could not be used
        self._news: dict[str, asyncio.Event] = {}

    # -- runs ---------------------------------------------------------------------------------------------

    async def start(self, question: str, options: Options, *, thread: str | None = None) -> Run:
        """A new run, on a new thread unless one is named. Nothing is written before the input is accepted."""
        question = accepted(question, options)
        if thread is not None:
            options = await self._inherited(thread, options)
        options = options.model_copy(update={"private": is_private(options)})
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices |= unasked(options, self.settings) | await asyncio.to_thread(self._thinking.notices, options)
        options = await asyncio.to_thread(self._thinking.settled, options)
        if options.source == "auto":
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        now = self._now()
        new = thread is None
        thread = thread or uuid4().hex[:12]
        if new:
            await self.threads.create(Thread(id=thread, title=title(question), created=now, updated=now))
        run = Run(
            id=uuid4().hex[:12], thread=thread, question=question, status=RunStatus.RUNNING, started=now,
            settings=self.settings.fingerprint(), options=options.plain(),
        )  # fmt: skip
        await self.threads.begin(run)
        try:
            self._spawn(run, sources, new_question(question, run.id, options.plain(), notices), notices, new=new)
        except ThreadBusyError as error:
            await self.threads.update(run.id, status=RunStatus.FAILED, error=error.message)
            raise
        return run

    async def quote(self, question: str, options: Options) -> Quote:
        """What a question will probably cost; nothing is written and nothing is spent."""
        accepted(question, options)
        sources, _ = await asyncio.to_thread(self._sources, options)
        await asyncio.to_thread(self._thinking.notices, options)
        return await self._quote(options, sources)

    async def _quote(self, options: Options, sources: list[Source]) -> Quote:
        made = await asyncio.to_thread(self._thinking.quote, options)
        return with_searches(made, sources, options.depth, self.settings)

    async def _inherited(self, thread: str, options: Options) -> Options:
        """A follow-up asks the documents its thread was started on, unless it names its own or another source."""
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        before = _options(max(runs, key=lambda run: run.started)) if runs else options
        # What was said about documents stays as private as they are, whatever is asked next.
        options = options.model_copy(update={"private": before.private or options.private})
        if options.docs or options.source != "auto":
            return options
        web = options.web or before.web
        return options.model_copy(update={"docs": before.docs, "source": before.source, "web": web})

    async def answer(self, thread: str, question: str, value: object) -> Run:
        """Answer an open question by its id. A late, repeated or malformed answer is refused and changes nothing."""
        run = await self._latest(thread)
        waiting = {item.id: item for item in await self.open_questions(thread)}
        if question not in waiting or run.status is not RunStatus.WAITING:
            raise AnswerError(
                "this question is not open any more", help=f"See what is open with: assay threads show {thread}"
            )
        checked = validated(waiting[question].kind, value)
        sources = (await asyncio.to_thread(self._sources, _options(run)))[0]
        if run.id in self._tasks:
            raise AnswerError("this question has just been answered")
        self._spawn(run, sources, Command(resume={question: checked}))
        return run

    async def resume(self, thread: str) -> Run:
        """Go on from the last good checkpoint; what was finished is not done again."""
        run = await self._latest(thread)
        if run.status is RunStatus.DONE:
            raise UsageError(
                "this thread's last question is already answered",
                help=f"Ask a new one: assay ask ... --thread {thread}",
            )
        if run.id in self._tasks:
            raise ThreadBusyError("this thread is already running here")
        if run.status is RunStatus.WAITING:
            return run
        state = await self._state(thread)
        untouched = not state.values or state.values.get("run") != run.id
        sources, notices = await asyncio.to_thread(self._sources, _options(run))
        notices |= await asyncio.to_thread(self._thinking.notices, _options(run))
        work = new_question(run.question, run.id, run.options, notices) if untouched else None
        self._spawn(run, sources, work, notices)
        return run

    async def cancel(self, run: str) -> None:
        """Stop a run of this process; it can be resumed."""
        task = self._tasks.get(run)
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def wait(self, run: str) -> Outcome:
        """Until the run is done, failed, cancelled or waits for a person."""
        if task := self._tasks.get(run):
            await asyncio.wait([task])
            await asyncio.sleep(0)  # its ending has been seen to
        if run in self._discarded:
            raise self._faults[run]
        return await self.outcome(run)

    def fault(self, run: str) -> AssayError | None:
        """Why a run of this process failed, if for a reason that was foreseen."""
        return self._faults.get(run)

    async def outcome(self, run: str) -> Outcome:
        current = await self.threads.run(run)
        state = await self._state(current.thread)
        mine = state.values.get("run") == run
        report = state.values.get("report") if mine and current.status is RunStatus.DONE else None
        return Outcome(
            run=current,
            report=Report.model_validate(report) if report else None,
            questions=tuple(await self.open_questions(current.thread)) if current.status is RunStatus.WAITING else (),
        )

    # -- reading ------------------------------------------------------------------------------------------

    async def events(self, run: str, after: int = 0) -> AsyncIterator[Event]:
        """Every event from `after` on, then new ones as they come, until the run stands still."""
        news = self._news.setdefault(run, asyncio.Event())
        while True:
            news.clear()
            still = run not in self._tasks
            if run in self._discarded:
                return
            for event in await self._events.since(run, after):
                after = event.seq
                yield event
            if still:
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), TICK)

    async def state(self, thread: str) -> dict[str, Any]:
        return dict((await self._state(thread)).values)

    async def open_questions(self, thread: str) -> list[OpenQuestion]:
        state = await self._state(thread)
        return [
            OpenQuestion(
                id=item.id, kind=item.value["kind"], question=item.value["question"],
                options=tuple(item.value.get("options", ())),
                shown={k: v for k, v in item.value.items() if k not in ("kind", "question", "options")},
            )
            for item in state.interrupts
        ]  # fmt: skip

    async def document(self, hash: str) -> Document:
        return await self._documents.get(hash)

    async def report(self, thread: str) -> Report:
        """The thread's latest finished report."""
        values = await self.state(thread)
        if not values.get("report"):
            raise NotFoundError(f"thread {thread} has no finished report", help=f"Go on with: assay resume {thread}")
        return Report.model_validate(values["report"])

    async def delete(self, thread: str) -> None:
        """The thread with its runs, events and checkpoints. Snapshots stay: other threads may cite them."""
        await self.threads.get(thread)
        self._locks.take(thread)  # a run that is at work would write into the void
        try:
            await self.threads.delete(thread)
            await self._checkpointer.adelete_thread(thread)
        finally:
            self._locks.release(thread)

    async def close(self) -> None:
        for run in list(self._tasks):
            await self.cancel(run)

    # -- inside -------------------------------------------------------------------------------------------

    def _spawn(
        self, run: Run, sources: list[Source], work: Any, notices: dict[str, str] | None = None, *, new: bool = False
    ) -> None:
        self._locks.take(run.thread)
        task = asyncio.create_task(self._execute(run, sources, work, notices or {}, new), name=f"run-{run.id}")
        self._tasks[run.id] = task
        task.add_done_callback(lambda _: self._ended(run))

    def _ended(self, run: Run) -> None:
        """Whatever happened, even a database that is gone: readers are let go and the thread is free."""
        self._tasks.pop(run.id, None)
        self._locks.release(run.thread)
        if run.id in self._news:
            self._news[run.id].set()

    async def _execute(self, run: Run, sources: list[Source], work: Any, notices: dict[str, str], new: bool) -> None:
        status, error = RunStatus.FAILED, None
        try:
            await self.threads.update(run.id, status=RunStatus.RUNNING)
            await self._append(run.id, "run", "", {"status": RunStatus.RUNNING})
            for notice in notices.values():
                await self._append(run.id, "notice", "", {"text": notice})
            await self._prepare(run.id, sources)
            await self._drive(run, sources, work)
            status = await self._standing(run)
        except asyncio.CancelledError:
            status = RunStatus.CANCELLED
            raise
        except AssayError as problem:
            error, self._faults[run.id] = problem.message, problem
            await self._append(run.id, "error", "", {"message": problem.message, "help": problem.help})
            if new and isinstance(problem, UsageError):
                self._discarded.add(run.id)
        except Exception as problem:  # noqa: BLE001  # the last line of defence: a run never takes its caller down
            error = f"{type(problem).__name__}: {problem}"
            await self._append(run.id, "error", "", {"message": error})
        finally:
            # Shielded: a cancelled run must still be marked as such, or its thread would stay busy.
            await asyncio.shield(self._settle(run, status, error))

    async def _settle(self, run: Run, status: RunStatus, error: str | None) -> None:
        if run.id in self._discarded:
            await self.threads.delete(run.thread)
            return
        stage = Status.FAILED if status is RunStatus.FAILED else Status.COMPLETED if status is RunStatus.DONE else None
        await self.threads.update(run.id, status=status, stage=stage, error=error)
        await self._append(run.id, "run", "", {"status": status, "error": error})

    async def _prepare(self, run: str, sources: list[Source]) -> None:
        for source in sources:
            if isinstance(source, Prepared):
                done = await source.prepare()
                await self._append(
                    run, "read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed}
                )
                for path, reason in done.skipped:
                    await self._append(run, "skip", "prepare", {"path": path, "reason": reason})

    async def _drive(self, run: Run, sources: list[Source], work: Any) -> None:
        async def append(kind: EventKind, stage: str, data: dict[str, object]) -> None:
            await self._append(run.id, kind, stage, data)
            if kind == "enter" and "status" in data:
                await self.threads.update(run.id, stage=Status(str(data["status"])))

        options = _options(run)
        quote = await self._quote(options, sources)
        if isinstance(work, dict):
            await append("quote", "", quote.plain())
        reasoner, account = self._thinking.open(run, append)
        deps = Deps(
            run=run.id, thread=run.thread, options=options, settings=self.settings, reasoner=reasoner,
            account=account, quote=quote, support=self._support, sources=sources, documents=self._documents,
            pages=self._pages, ranker=self._ranker, started=run.started, now=self._now, append=append,
            checkpoints=lambda: self._checkpoints(run), tally=lambda: self._tally(run),
        )  # fmt: skip
        with tracing(allowed=self._thinking.may_trace(options)):
            await self._graph.ainvoke(work, _config(run.thread), context=deps, durability="sync")

    async def _tally(self, run: Run) -> dict[str, int]:
        """How many steps each reasoner has done, the run's earlier attempts included."""
        steps = [event for event in await self._events.since(run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))

    async def _checkpoints(self, run: Run) -> tuple[str, ...]:
        """Those of other questions on the thread are older, or hold another run."""
        found: list[str] = []
        async for kept in self._checkpointer.alist(_config(run.thread)):
            if datetime.fromisoformat(kept.checkpoint["ts"]) < run.started:
                break
            if kept.checkpoint["channel_values"].get("run") == run.id:
                found.append(kept.checkpoint["id"])
        return tuple(reversed(found))

    async def _standing(self, run: Run) -> RunStatus:
        questions = await self.open_questions(run.thread)
        for question in questions:
            await self._append(run.id, "interrupt", "", question.plain())
        return RunStatus.WAITING if questions else RunStatus.DONE

    async def _append(self, run: str, kind: EventKind, stage: str, data: dict[str, object]) -> None:
        await self._events.append(Event(run=run, time=self._now(), kind=kind, stage=stage, data=data))
        if run in self._news:
            self._news[run].set()

    async def _latest(self, thread: str) -> Run:
        await self.threads.get(thread)
        runs = await self.threads.runs(thread)
        if not runs:
            raise NotFoundError(f"thread {thread} has no run")
        return max(runs, key=lambda run: run.started)

    async def _state(self, thread: str) -> "StateSnapshot":
        return await self._graph.aget_state(_config(thread))


def _config(thread: str) -> "RunnableConfig":
    return cast("RunnableConfig", {"configurable": {"thread_id": thread}, "recursion_limit": STEPS})


def _options(run: Run) -> Options:
    options = Options.model_validate(run.options)
    if "sources" not in run.options and options.source == "auto" and not options.docs:
        return options.model_copy(update={"sources": ("demo",)})  # begun when auto knew of nothing else
    return options


def title(question: str) -> str:
    line = " ".join(question.split())
    return (line if len(line) <= 80 else f"{line[:79]}…") or "Untitled"
