"""The way of one run through the graph, to where it stands still."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langgraph.runtime import RunControl

from assay import questions
from assay.checkpoints.saver import Checkpoints
from assay.deps import Deps, step
from assay.errors import StorageError
from assay.llm.tracing import tracing
from assay.model.event import EventKind, RunStatus, Status
from assay.model.thread import Run, chosen
from assay.notebook import Notebook
from assay.ports import Prepared, Source
from assay.runs.workplace import Workplace, config
from assay.search.owned import OwnDocuments
from assay.stages.failures import is_passing

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

SETBACKS = (1.0, 5.0, 15.0)  # seconds after which it is tried again where storage was away; anew after each step
AWAY = "The database was away for a moment."


@dataclass(slots=True, kw_only=True, eq=False)
class Drive:
    """`control` can ask it to stop after the step it is at."""

    place: Workplace
    run: Run
    sources: list[Source]
    control: RunControl
    stage: str | None = None  # the one that was written last

    async def prepare(self) -> None:
        """Sources that have something to read before they can be asked."""
        for source in self.sources:
            if isinstance(source, Prepared):
                done = await source.prepare()
                await self._append("read", "prepare", {"files": done.files, "new": done.new, "removed": done.removed})
                for path, reason in done.skipped:
                    await self._append("skip", "prepare", {"path": path, "reason": reason})
                for notice in done.notices:
                    await self.place.tell(self.run.id, notice, "prepare")

    async def through(self, given: Any) -> RunStatus:
        """To where it stands still. A database that is away for a moment, since its server is restarted, is waited for:
        what was under way is done again from the last checkpoint."""
        reached, pauses = "", iter(SETBACKS)
        while True:
            try:
                await self._once(given)
                return await self._standing()
            except StorageError as problem:
                if not is_passing(problem):
                    raise
                given, checkpoint = await self._left(given)
                if checkpoint != reached:
                    reached, pauses = checkpoint, iter(SETBACKS)
                pause = next(pauses, None)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            await self.place.tell(self.run.id, f"{AWAY} It goes on from the last step that was kept.")

    async def _left(self, given: Any) -> tuple[Any, str]:
        """Of what the graph was to be given, what it has not taken yet; and the checkpoint it goes on from."""
        state = await self.place.graph.aget_state(config(self.run.thread))
        begun = state.values.get("run") == self.run.id
        answers = getattr(given, "resume", None) or {}
        taken = begun and not any(asked.id in answers for asked in state.interrupts)
        return None if taken else given, str(state.config["configurable"].get("checkpoint_id", ""))

    async def _once(self, given: Any) -> None:
        place, run = self.place, await self._within_means()
        options = chosen(run)
        quote = await place.quote(options, self.sources)
        if isinstance(given, dict):
            await self._append("quote", "", quote.plain())
        reasoner, account = place.thinking.open(run, self._append)
        deps = Deps(
            run=run.id, thread=run.thread, options=options, settings=place.settings, reasoner=reasoner,
            account=account, quote=quote, support=place.support, sources=self.sources,
            documents=OwnDocuments(place.documents, self.sources),
            notes=Notebook(place.notes, run.thread), pages=place.pages, ranker=place.ranker, memory=place.memory,
            started=run.started, now=place.now, append=self._append,
            checkpoints=self._checkpoints, tally=self._tally,
            mode=lambda: place.mode(run.thread, options),
        )  # fmt: skip
        with tracing(allowed=place.thinking.may_trace(options), redaction=place.redaction):
            await place.graph.ainvoke(given, config(run.thread), context=deps, durability="sync", control=self.control)

    async def _append(self, kind: EventKind, stage: str, data: dict[str, object]) -> None:
        event = await self.place.append(self.run.id, kind, stage, data)
        if kind == "enter":
            step.set(event.seq)
            await self._reach(data.get("status"))

    async def _reach(self, stage: object) -> None:
        if stage not in (None, self.stage):
            await self.place.threads.update(self.run.id, stage=Status(str(stage)))
            self.stage = str(stage)

    async def _within_means(self) -> Run:
        """Whatever was chosen for it, by a plan for one: a run costs no more than its person has left."""
        run, options = self.run, chosen(self.run)
        most = await self.place.ceiling(run, options) if self.place.ceiling else None
        if most is None or options.cap(self.place.settings.budget.usd) <= most:
            return run
        await self.place.tell(
            run.id, f"This run may cost ${most:,.2f} at the most: more is not left of what you may spend this month."
        )
        return run.model_copy(update={"options": {**run.options, "usd": most}})

    async def _tally(self) -> dict[str, int]:
        """How many steps each reasoner has done, the run's earlier attempts included."""
        steps = [event for event in await self.place.log.since(self.run.id, 0) if event.kind == "think"]
        return dict(Counter(str(event.data["by"]) for event in steps))

    async def _checkpoints(self) -> tuple[str, ...]:
        """Those of other questions on the thread are older, or hold another run."""
        run, saver = self.run, self.place.checkpointer
        if isinstance(saver, Checkpoints):
            return await saver.of_run(run.thread, run.id, since=run.started)
        found: list[str] = []
        async for kept in saver.alist(_root(run.thread)):
            if datetime.fromisoformat(kept.checkpoint["ts"]) < run.started:
                break
            if kept.checkpoint["channel_values"].get("run") == run.id:
                found.append(kept.checkpoint["id"])
        return tuple(reversed(found))

    async def _standing(self) -> RunStatus:
        asked = questions.read((await self.place.state(self.run.thread)).interrupts)
        for question in asked:
            await self.place.reviews.open(questions.review(question, self.run, self.place.now()))
            await self._append("interrupt", "", question.plain())
        return RunStatus.WAITING if asked else RunStatus.DONE


def _root(thread: str) -> "RunnableConfig":
    """With the graph's own name, by which its checkpoints are found in order."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
