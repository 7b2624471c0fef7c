"""The moments of a thread: each of its checkpoints, what had come of the run by then, and what it had cost."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from assay.checkpoints.moments import effective
from assay.checkpoints.saver import Checkpoints, Outline
from assay.errors import NotFoundError, UsageError
from assay.export.report import Report
from assay.model.branch import Moment
from assay.model.event import RunStatus
from assay.model.report import ReportData
from assay.notebook import Notebook
from assay.runs.runner import Runner
from assay.storage.threads import no_run
from assay.view import StateView, view
from assay.view.diff import Edition, ReportDiff, diff, of_report, of_state
from assay.view.history import summary

PAGE = 30  # moments shown unless more are asked for
LEAST = 8  # characters of a checkpoint's id
FULL = 36  # characters of a whole one


class History:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.checkpoints = cast("Checkpoints", runner.checkpointer)

    async def page(self, thread: str, *, limit: int | None = PAGE, run: str | None = None) -> list[Moment]:
        """The newest last. Only those that are shown are opened."""
        found = [moment for moment in await self.some(thread) if run in (None, moment.run)]
        shown = found[-limit:] if limit else found
        notebook = Notebook(self._runner.notes, thread)
        spent = {name: await self.spent(name) for name in dict.fromkeys(moment.run for moment in shown)}
        told = []
        for moment in shown:
            values = await self._opened(thread, moment, notebook)
            usd = _until(moment, spent[moment.run])
            told.append(moment.model_copy(update={"summary": summary(values, moment.after), "usd": usd}))
        return told

    async def moments(self, thread: str) -> list[Moment]:
        """All of them, unopened: without a summary and what they had cost."""
        await self._runner.threads.get(thread)
        outlines = await self.checkpoints.outline(thread)
        short = _shortest([outline.id for outline in outlines])
        by_id = {outline.id: outline for outline in outlines}
        return [
            Moment(
                checkpoint=outline.id, short=short[outline.id], number=number, time=outline.time, run=outline.run,
                after=_after(outline, by_id), **outline.standing.model_dump(exclude={"after"}),
            )
            for number, outline in enumerate(outlines, 1)
        ]  # fmt: skip

    async def some(self, thread: str) -> list[Moment]:
        """As `moments`, where there have to be some."""
        if found := await self.moments(thread):
            return found
        if await self._runner.threads.runs(thread):
            raise UsageError(f"nothing has been done on thread {thread} yet", help=f"Begin: assay resume {thread}")
        ask = f'Ask on it: assay ask "..." --thread {thread}'
        raise UsageError(f"nothing was asked on thread {thread} yet", help=ask)

    async def named(self, thread: str, name: str, moments: Sequence[Moment]) -> Moment:
        """By its number, its checkpoint's id or the beginning of that."""
        name = name.strip().lower()
        if name.isdecimal() and len(name) < LEAST:
            found = [moment for moment in moments if moment.number == int(name)]
        else:
            found = [moment for moment in moments if len(name) >= LEAST and moment.checkpoint.startswith(name)]
        if len(found) == 1:
            return found[0]
        help = f"See them with: assay history {thread}"
        if found:
            raise NotFoundError(f"{len(found)} checkpoints of thread {thread} begin with {name}", help=help)
        if len(name) == FULL and (holder := await self.checkpoints.holder(name)):
            raise NotFoundError(f"checkpoint {name} is of thread {holder}, not of {thread}", help=help)
        short = f": the start of an id has at least {LEAST} characters" if 0 < len(name) < LEAST else ""
        raise NotFoundError(f"thread {thread} has no checkpoint {name[:FULL]!r}{short}", help=help)

    # -- one of them --------------------------------------------------------------------------------------

    async def state(self, thread: str, name: str) -> dict[str, Any]:
        return await self.values(thread, await self._found(thread, name))

    async def view(self, thread: str, name: str) -> StateView:
        moment = await self._found(thread, name)
        kept = await self._runner.threads.get(thread)
        return await view(
            await self.values(thread, moment), self._runner.documents, thread=thread, next=moment.next,
            checkpoint=moment.checkpoint, mode=kept.mode,
        )  # fmt: skip

    async def values(self, thread: str, moment: Moment) -> dict[str, Any]:
        """The state there was, with everything it refers to."""
        return await self._opened(thread, moment, Notebook(self._runner.notes, thread))

    async def report(self, thread: str, run: str | None = None) -> Report:
        """The latest that is finished, or that of one run of the thread."""
        held = await (self._latest_report(thread) if run is None else self._report_of(thread, run))
        if held:
            return Report.model_validate(held)
        if run is None:
            raise NotFoundError(f"thread {thread} has no finished report", help=f"Go on with: assay resume {thread}")
        raise NotFoundError(f"run {run} has no report", help="The runs of its thread that are done have one.")

    async def _latest_report(self, thread: str) -> Any:
        """Where a run is under way, or was stopped, of one before it."""
        if held := (await self._runner.state(thread)).values.get("report"):
            return held
        done = [run.id for run in await self._runner.threads.runs(thread) if run.status is RunStatus.DONE]
        return await self._report_of(thread, done[-1]) if done else None

    async def _report_of(self, thread: str, name: str) -> Any:
        run = await self._runner.threads.run(name)
        if run.thread != thread:
            raise no_run(name)  # as of one that never was
        if run.status is not RunStatus.DONE:  # what stands in its state may be of the one before
            return None
        state = (await self._runner.state(thread)).values
        if state.get("run") == name:
            return state.get("report")
        if not isinstance(self._runner.checkpointer, Checkpoints):
            return None
        moments = [moment for moment in await self.moments(thread) if moment.run == name]
        return (await self.values(thread, moments[-1])).get("report") if moments else None

    async def _found(self, thread: str, name: str) -> Moment:
        return await self.named(thread, name, await self.some(thread))

    async def _opened(self, thread: str, moment: Moment, notebook: Notebook) -> dict[str, Any]:
        place = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": moment.checkpoint}
        kept = await self.checkpoints.aget_tuple({"configurable": place})
        if kept is None:
            raise NotFoundError(
                f"thread {thread} has no checkpoint {moment.checkpoint}", help="It was pruned just now."
            )
        return await notebook.whole(effective(kept.checkpoint["channel_values"]))

    async def spent(self, run: str) -> list[tuple[datetime, float]]:
        """When a run had spent how much."""
        events = await self._runner.log.since(run, 0)
        return [(event.time, float(str(event.data["total_usd"]))) for event in events if event.kind == "spend"]

    # -- two of them --------------------------------------------------------------------------------------

    async def diff(self, a: str, b: str) -> ReportDiff:
        """Of two threads, or of THREAD@CHECKPOINT: the draft there was at that moment."""
        first, second = await self._edition(a), await self._edition(b)
        return await asyncio.to_thread(diff, first, second)

    async def _edition(self, name: str) -> Edition:
        thread, then, at = name.partition("@")
        if then and not at:
            raise UsageError(f"no checkpoint stands behind the @ of {name}", help=f"See: assay history {thread}")
        moments = await self.some(thread)
        moment = await self.named(thread, at, moments) if at else moments[-1]
        values = await self.values(thread, moment)
        if values.get("report"):
            return of_report(name, ReportData.model_validate(values["report"]))
        return await of_state(name, values, self._runner.documents, _until(moment, await self.spent(moment.run)))


def _until(moment: Moment, spent: Iterable[tuple[datetime, float]]) -> float:
    return max((usd for time, usd in spent if time <= moment.time), default=0.0)


def _after(outline: Outline, by_id: Mapping[str, Outline]) -> tuple[str, ...]:
    """What was due at the moment before is what was done since; at the first of all only a question was put. Where the
    moment before was pruned, the last of a run is still known to be its end."""
    if outline.standing.begins or outline.parent is None:
        return outline.standing.after
    before = by_id.get(outline.parent)
    if before is None:
        return () if outline.standing.next else ("publish",)
    return () if before.standing.begins else before.standing.next


def _shortest(ids: Sequence[str]) -> dict[str, str]:
    """As much of each id as tells it from all others: they are in order, so from its neighbours."""
    short = {}
    for before, id, following in zip(["", *ids][:-1], ids, [*ids, ""][1:], strict=True):
        shared = max(_shared(id, before), _shared(id, following))
        short[id] = id[: max(LEAST, shared + 1)]
    return short


def _shared(one: str, other: str) -> int:
    return next((at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), 0)
