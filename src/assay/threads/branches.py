"""Threads that begin as copies of a moment of another one, with something changed.

A branch is a thread of its own; its parent is read and never written. docs/decisions/0019 says why.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from assay.admission import accepted
from assay.checkpoints.moments import begun, changed
from assay.errors import NotFoundError, UsageError
from assay.model.branch import Changes, Moment, Tree
from assay.model.event import RunStatus
from assay.model.plan import Plan
from assay.model.thread import Branch, Options, Run, Thread, chosen
from assay.ports import Choose, Source
from assay.runs.runner import Runner
from assay.stages.taste import eligible, taste
from assay.state import new_question
from assay.threads import changes as changing
from assay.threads.changes import Origin
from assay.threads.history import History
from assay.view.diff import references
from assay.view.veto import all_vetoed

LONGEST_TITLE = 120


class Start(NamedTuple):
    """How a branch begins: `values` of the state are replaced, `question` is put in place of the one there was."""

    options: Options
    sources: list[Source]
    notices: dict[str, str]
    values: dict[str, Any]
    question: str | None


class Found(NamedTuple):
    """Where a branch begins: not always on the thread that was named."""

    thread: str
    begin: Origin
    changes: Changes
    lineage: tuple[str, ...] = ()  # runs in between, whose answers are paid for too


class Branches:
    def __init__(self, runner: Runner, history: History, sources: Choose) -> None:
        self._runner = runner
        self._history = history
        self._sources = sources

    async def fork(
        self, thread: str, name: str | None, changes: Changes, *, interactive: bool | None = None,
        usd: float | None = None, id: str | None = None, queued: bool = False,
    ) -> Run:  # fmt: skip
        """Goes on from a moment of the thread, or from the last before it at which the changes can take effect. It is
        made as a whole or not at all. `interactive`: whether somebody can be asked; None: as it was. `usd` is the most
        it may cost, whatever was changed. `queued`: nobody works on it yet; where nothing is left to do, it is done."""
        await self._runner.threads.get(thread)
        await self._runner.check(thread)
        place = await self._found(thread, name, changing.implied(changes))
        parent = await self._runner.threads.get(place.thread)
        begin, changes = place.begin, place.changes
        queued = queued and bool(begin.moment.next)
        before = await self._runner.threads.run(begin.moment.run)
        start = await self._start(before, begin, changes, interactive, usd)
        lineage = (*place.lineage, *start.options.lineage)
        start = start._replace(options=start.options.model_copy(update={"lineage": lineage}))
        run = Run(
            id=id or uuid4().hex[:12], thread=uuid4().hex[:12], question=start.question or before.question,
            status=RunStatus.QUEUED if queued else RunStatus.RUNNING, started=self._runner.now(),
            settings=self._runner.settings.fingerprint(), options=start.options.plain(),
        )  # fmt: skip
        async with self._runner.holding(run.thread) as hold:
            await self._create(parent, run, begin.moment, changes, start)
            if queued:
                await self._runner.tell(run.id, start.notices["branch"])
                return run
            self._runner.spawn(run, start.sources, None, hold, start.notices)
        return run

    async def _found(self, thread: str, name: str | None, changes: Changes) -> Found:
        """A branch may begin after the place a change takes effect at: then its parent is forked, with what had been
        changed there too."""
        moments = await self._history.some(thread)
        wanted = await self._history.named(thread, name, moments) if name else None
        runs = {run.id: run for run in await self._runner.threads.runs(thread)}
        try:
            return Found(thread, changing.origin(moments, runs, wanted, changes), changes)
        except UsageError:
            branch = await self._runner.threads.branch(thread)
            run = (wanted or moments[-1]).run
            if branch is None or run != moments[0].run or not await self._exists(branch.parent):
                raise
        merged = changing.merged(Changes.model_validate(branch.changes), changes)
        found = await self._found(branch.parent, branch.checkpoint, merged)
        return found._replace(lineage=(run, *found.lineage))

    # -- what is changed: all that can be refused is refused here, before anything is written ---------------

    async def _start(
        self, before: Run, begin: Origin, changes: Changes, interactive: bool | None, usd: float | None
    ) -> Start:
        values = await self._history.values(before.thread, begin.moment)
        options = changing.chosen(chosen(before), before.id, changes, interactive)
        origin = {"branch": changing.told(before.thread, begin, changes)}
        if not begin.moment.next:  # a copy of what is finished: nobody has to be asked anything
            return Start(options, [], origin, {}, None)
        question = None if changes.question is None else accepted(changes.question, options)
        question = question and self._runner.redaction.secrets(question)
        old = Plan.model_validate(values["plan"]) if begin.moment.planned else None
        plan = changing.planned(old, changes) if old else None
        if old and plan:
            options = await self._by_plan(options, plan, old, changes)
        options = options if usd is None else options.model_copy(update={"usd": min(usd, self._usd(options))})
        options, sources, notices = await self._chosen(options, anew=question is not None)
        if plan and changes.sources:
            asked = eligible(sources, (), taste(str(values["understanding"]["question"]), options))
            plan = plan.model_copy(update={"sources": tuple(source.name for source in asked)})
        notices |= origin
        update = await self._without(before.thread, begin, values, changes)
        if plan:
            update["plan"] = plan.plain()
        update["notices"] = {**(values.get("notices") or {}), **notices}
        return Start(options, sources, notices, update, question)

    def _usd(self, options: Options) -> float:
        return options.cap(self._runner.settings.budget.usd)

    async def _by_plan(self, options: Options, plan: Plan, before: Plan, changes: Changes) -> Options:
        """What a plan says of money, length and sources holds for the run."""
        options = options.by_plan(plan, before)
        if plan.sources == before.sources or changes.sources:
            return options
        named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
        await asyncio.to_thread(self._sources, named)  # refuses such as there are not
        return options.model_copy(update={"sources": plan.sources})

    async def _chosen(self, options: Options, *, anew: bool) -> tuple[Options, list[Source], dict[str, str]]:
        options = options.model_copy(update={"veto": ()}) if anew else options
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices = notices | await asyncio.to_thread(self._runner.thinking.notices, options)
        options = await asyncio.to_thread(self._runner.thinking.settled, options)
        if options.source == "auto" and not options.sources:
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        return options, sources, notices

    async def _without(self, thread: str, begin: Origin, values: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
        """Sources the branch does without: those named and, where the run was a veto, those it took out."""
        if not changes.without and not begin.again:
            return {}
        latest = await self._history.values(thread, begin.wanted)
        known = await references(latest, self._runner.documents)
        if not known:  # the numbers are those of the report, which came later
            end = [one for one in await self._history.moments(thread) if one.run == begin.wanted.run][-1]
            known = await references(await self._history.values(thread, end), self._runner.documents)
        found = changing.without(changes.without, known)
        kept = latest if begin.again else values
        edits = dict(values.get("edits") or {})
        edits["without"] = list(dict.fromkeys([*edits.get("without", ()), *found.hosts]))
        return {"vetoed": all_vetoed(kept, found.vetoed), **({"edits": edits} if found.hosts else {})}

    async def _create(self, parent: Thread, run: Run, moment: Moment, changes: Changes, start: Start) -> None:
        now = run.started
        name = start.question or f"{changes.told if changes.given else 'again'} · {parent.title}"
        thread = Thread(
            id=run.thread, title=_clipped(name), created=now, updated=now, mode=parent.mode, owner=parent.owner
        )
        branch = Branch(
            thread=run.thread, parent=parent.id, checkpoint=moment.checkpoint, changes=changes.given, created=now
        )
        update = {**start.values, "run": run.id, "options": run.options}

        def replaced(values: Mapping[str, Any]) -> dict[str, Any]:
            if start.question is None:
                return changed(values, update)
            put = new_question(start.question, run.id, run.options, start.notices)
            return begun(values, {**put, **{name: update[name] for name in ("vetoed", "edits") if name in update}})

        def copy() -> None:
            self._history.checkpoints.copy(parent.id, moment.checkpoint, run.thread, now, moment.after, replaced)

        await self._runner.threads.fork(thread, run, branch, copy)

    # -- the tree -----------------------------------------------------------------------------------------

    async def tree(self, thread: str) -> Tree:
        """The whole tree a thread is part of, from its root on."""
        await self._runner.threads.get(thread)
        root, seen = thread, {thread}
        while (branch := await self._runner.threads.branch(root)) and await self._exists(branch.parent):
            if branch.parent in seen:
                break
            root = branch.parent
            seen.add(root)
        return await self._grown(root, branch, set())

    async def _grown(self, thread: str, branch: Branch | None, seen: set[str]) -> Tree:
        seen.add(thread)
        kept = await self._runner.threads.get(thread)
        runs = await self._runner.threads.runs(thread)
        below = [found for found in await self._runner.threads.branches(thread) if found.thread not in seen]
        totals = [[usd for _, usd in await self._history.spent(run.id)] for run in runs]
        return Tree(
            thread=thread,
            title=kept.title,
            status=runs[-1].status if runs else None,
            usd=sum(max(spent, default=0.0) for spent in totals),
            branches=tuple([await self._grown(found.thread, found, seen) for found in below]),
            **(await self._came_from(branch) if branch else {}),
        )

    async def _came_from(self, branch: Branch) -> dict[str, Any]:
        there = await self._exists(branch.parent)
        moments = await self._history.moments(branch.parent) if there else []
        return {
            "parent": branch.parent,
            "of_deleted": not there,
            "changed": Changes.model_validate(branch.changes).told,
            "moment": next((moment.told for moment in moments if moment.checkpoint == branch.checkpoint), ""),
            "checkpoint": branch.checkpoint,
        }

    async def _exists(self, thread: str) -> bool:
        try:
            await self._runner.threads.get(thread)
        except NotFoundError:
            return False
        return True


def _clipped(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"
