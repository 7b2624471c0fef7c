"""Going on with a run where its last good checkpoint left it, or putting it aside for somebody who will."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from assay.admission import unasked
from assay.checkpoints import restoration
from assay.errors import AssayError, ThreadBusyError, UsageError
from assay.model.event import AT_WORK, RunStatus
from assay.model.thread import Run, Stop, chosen
from assay.ports import Choice, Choose
from assay.runs.holding import Hold
from assay.runs.runner import Runner
from assay.storage.threads import another_is_active
from assay.threads.beginnings import taken_out
from assay.threads.vetoes import Vetoes


class Resumption:
    """`sources` chooses those of a run; `ask_again` puts a question again that a run waits for."""

    def __init__(
        self,
        runner: Runner,
        vetoes: Vetoes,
        sources: Choose,
        ask_again: Callable[[Run, Hold], Awaitable[Run]],
    ) -> None:
        self._runner = runner
        self._threads = runner.threads
        self._vetoes = vetoes
        self._sources = sources
        self._ask_again = ask_again

    async def resume(self, thread: str, *, queued: bool) -> Run:
        run = await self._unfinished(thread)
        stop = await self._threads.stopping(run.id)
        async with self._runner.holding(thread) as hold:
            if queued and (await self._runner.latest(thread)).status is not RunStatus.QUEUED:
                raise UsageError(
                    "this thread does not wait to be taken up any more", help=f"See: assay follow {thread}"
                )
            if stop and not queued:
                await self._threads.ask_to_stop(run.id, Stop.NO)  # asked of a process that is gone, not of this one
            return await self.go_on(thread, hold)

    async def go_on(self, thread: str, hold: Hold) -> Run:
        """On a thread that is held."""
        run = await self._unfinished(thread)
        state = await self._runner.state(thread)
        if state.interrupts and state.values.get("run") == run.id:
            return await self._ask_again(run, hold)
        await self._runner.check(thread)
        untouched = not state.values or state.values.get("run") != run.id
        sources, notices = await self._equipped(run, untouched)
        given = await self._vetoes.given(run, notices) if untouched else None
        self._runner.spawn(run, sources, given, hold, notices)
        return run

    async def _equipped(self, run: Run, untouched: bool) -> Choice:
        options = chosen(run)
        if untouched and options.veto:  # it asks nobody: all it needs was read
            return [], {}
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices |= await asyncio.to_thread(self._runner.thinking.notices, options)
        return sources, notices | (
            unasked(options, self._runner.settings) | taken_out(run.question, options) if untouched else {}
        )

    async def restore(self, folder: Path) -> Run:
        journal = self._runner.journal
        if journal is None:
            raise UsageError("there is no database here to restore a run into")
        found = await restoration.opened(folder, journal.seals)
        async with self._runner.holding(found.run.thread):
            run = await restoration.restore(found, journal.stores, self._runner.now())
            await journal.copy(run)
        return run

    async def requeue(self, thread: str) -> Run:
        await self._still(thread)
        async with self._runner.holding(thread):
            run = await self._still(thread)
            await self._runner.check(thread)
            await self._threads.update(run.id, status=RunStatus.QUEUED)
        return await self._threads.run(run.id)

    async def put_aside(self, thread: str) -> Run:
        await self._unfinished(thread)
        async with self._runner.holding(thread):
            run = await self._unfinished(thread)
            await self._runner.check(thread)
            await self._threads.update(run.id, status=RunStatus.QUEUED)
            await self._runner.tell(run.id, "It goes on in a process of its own.")
        return await self._threads.run(run.id)

    async def give_up(self, run: Run, error: AssayError) -> None:
        async with self._runner.holding(run.thread, patience=0):
            if (await self._threads.run(run.id)).status in AT_WORK:  # nobody has stopped it meanwhile
                await self._runner.end(run, RunStatus.FAILED, error.message)

    async def _still(self, thread: str) -> Run:
        """One that neither moves nor is about to."""
        run = await self._unfinished(thread)
        if run.status is RunStatus.WAITING:
            raise UsageError("this thread waits for an answer", help="Answer the question that is open.")
        if run.status is RunStatus.RUNNING:
            raise another_is_active(run.id, thread)
        if run.status is RunStatus.QUEUED:
            raise ThreadBusyError("this thread waits in line already", help="It is taken up in its turn.")
        return run

    async def _unfinished(self, thread: str) -> Run:
        run = await self._runner.latest(thread)
        if run.status is RunStatus.DONE:
            raise UsageError(
                "this thread's last question is already answered",
                help=f"Ask a new one: assay ask ... --thread {thread}",
            )
        if self._runner.at_work(run.id):
            raise ThreadBusyError("this thread is already running here")
        return run
