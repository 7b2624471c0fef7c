"""Threads that begin as copies of a moment of another one, with something changed.

A branch is a thread of its own; its parent is read and never written. docs/decisions/0019 says why.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from openassay.engine.checkpoints import replace_fields, replace_input
from openassay.engine.diff import SourceRef, load_references
from openassay.engine.history import ThreadHistory
from openassay.engine.questions import validate_question
from openassay.engine.runner import Runner
from openassay.engine.vetoes import merge_vetoes
from openassay.errors import AnswerError, NotFoundError, UsageError
from openassay.llm.selection import is_private
from openassay.models.event import RunStatus
from openassay.models.plan import Mode, Plan, add_note, apply_edits, parse_edits, replace_plan
from openassay.models.thread import (
    Branch,
    BranchChanges,
    BranchTree,
    CheckpointInfo,
    ResearchOptions,
    RestartPoint,
    Run,
    SourceVeto,
    Thread,
    read_options,
)
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.protocols import ChooseSources, Source
from openassay.reasoning.rules.phrases import parse_length, parse_use
from openassay.state import question_input
from openassay.text.urls import canonicalize_url, host_of, is_within_domain, registrable_domain
from openassay.text.urls import parse_url as address

# Where a branch begins and what is different there: the choice of a moment, the options, the plan.

_HOST = re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_PLANNED = ("approve_plan", "dispatch")
_PRUNED = "Ask the question anew. How many moments of a finished run are kept: persistence.keep_checkpoints."


# Where ------------------------------------------------------------------------------------------------


class BranchPoint(NamedTuple):
    """`wanted` is the moment that was asked for, and where none was, the last: not always the one a change takes effect
    at. `again`: the run took sources out of a report, which its branch does without from the search on."""

    moment: CheckpointInfo
    wanted: CheckpointInfo
    named: bool
    again: bool = False


def find_branch_point(
    moments: Sequence[CheckpointInfo], runs: Mapping[str, Run], wanted: CheckpointInfo | None, changes: BranchChanges
) -> BranchPoint:
    """The last moment of the run at which the changes can still take effect."""
    last = wanted or moments[-1]
    place, again = changes.restart_point, False
    if wanted is None and place is RestartPoint.ANYWHERE and changes.overrides:
        place = RestartPoint.ASKED  # who thinks, or for how much, is of use from the beginning on
    reach = [moment for moment in moments if moment.number <= last.number]
    for run in dict.fromkeys(moment.run for moment in reversed(reach)):
        of_run = [moment for moment in reach if moment.run == run]
        fitting = [moment for moment in of_run if _fits(moment, changes, place)]
        if fitting and not _has_nothing_to_change([moment for moment in moments if moment.run == run], place):
            return BranchPoint(fitting[-1], last, wanted is not None, again)
        if run not in runs or not runs[run].options.get("veto"):
            break
        place, again = min(place, RestartPoint.SEARCHING), True  # a veto rests on the question before it
    raise _no_fit_error(last, [moment for moment in moments if moment.run == last.run], changes)


def _fits(moment: CheckpointInfo, changes: BranchChanges, place: RestartPoint) -> bool:
    if changes.needs_plan and not moment.planned and place is not RestartPoint.ASKED:
        return False
    match place:
        case RestartPoint.ASKED:
            return moment.begins
        case RestartPoint.SEARCHING:
            at_plan = not changes.needs_plan or set(moment.next) <= set(_PLANNED)
            return moment.round == 0 and bool(moment.next) and at_plan and moment.next != ("publish",)
        case RestartPoint.WRITING:
            return moment.iteration == 0 and bool(moment.next) and moment.next != ("publish",)
    return bool(moment.next) or not changes.overrides


def _has_nothing_to_change(of_run: Sequence[CheckpointInfo], place: RestartPoint) -> bool:
    """Small talk, or a question that was called off: nothing was searched or written that could be changed."""
    ended = not of_run[-1].next and not any(moment.planned for moment in of_run)
    return ended and place in (RestartPoint.SEARCHING, RestartPoint.WRITING)


def _no_fit_error(last: CheckpointInfo, of_run: Sequence[CheckpointInfo], changes: BranchChanges) -> UsageError:
    later = [
        moment for moment in of_run if moment.number > last.number and _fits(moment, changes, changes.restart_point)
    ]
    if later:
        return UsageError(f"no plan had been made at {last.label}", help=f"Fork at moment {later[0].number} or later.")
    if changes.restart_point is RestartPoint.ASKED or any(moment.planned for moment in of_run):
        return UsageError("the moment at which that takes effect is not kept any more", help=_PRUNED)
    what = "plan was made" if changes.needs_plan else "research was done"
    return UsageError(
        f"no {what} for this question, so that cannot be changed", help="Ask the question anew, or fork elsewhere."
    )


def merge_changes(before: BranchChanges, changes: BranchChanges) -> BranchChanges:
    """What a branch had changed, and what is changed now."""
    edits = changes.edits if changes.plan is not None else (*before.edits, *changes.edits)
    without = tuple(dict.fromkeys((*before.without, *changes.without)))
    return BranchChanges.model_validate({**before.overrides, **changes.overrides, "edits": edits, "without": without})


def describe_branch(thread: str, begin: BranchPoint, changes: BranchChanges) -> str:
    """What whoever reads the branch must know of where it comes from."""
    line = f"This is a branch of thread {thread} from {begin.moment.label}: {changes.description}."
    if begin.named and begin.moment != begin.wanted:
        return f"{line} It does not begin at {begin.wanted.label}: what was changed takes effect earlier."
    return line


# The plan ---------------------------------------------------------------------------------------------


def apply_deliverable(changes: BranchChanges) -> BranchChanges:
    """With the style and the length that a deliverable asks for, where they are not said."""
    if changes.deliverable is None:
        return changes
    use, length = parse_use(changes.deliverable), parse_length(changes.deliverable)
    style, words = use.style if use else None, length or (use.words if use else None)
    return changes.model_copy(update={"style": changes.style or style, "words": changes.words or words})


def change_plan(plan: Plan, changes: BranchChanges) -> Plan:
    """Raises UsageError where an edit cannot be made."""
    try:
        if changes.plan is not None:
            plan = replace_plan(plan, changes.plan)
        if changes.edits:
            plan = apply_edits(plan, parse_edits(list(changes.edits)))
    except AnswerError as error:
        raise UsageError(error.message, help=error.help) from error
    if changes.deliverable is not None:
        line = " ".join(changes.deliverable.split())
        plan = add_note(plan.model_copy(update={"deliverable": line}), f"You asked for: {line}")
    own = {"words": changes.words, "usd": changes.usd}
    return plan.model_copy(update={name: value for name, value in own.items() if value is not None})


# The options ------------------------------------------------------------------------------------------


def derive_options(
    before: ResearchOptions, run: str, changes: BranchChanges, interactive: bool | None
) -> ResearchOptions:
    """What the branch's run goes by; sources that were changed are chosen anew."""
    update: dict[str, object] = {
        name: value
        for name in ("depth", "model", "usd", "style", "words", "source", "docs", "web")
        if (value := getattr(changes, name)) is not None
    }
    if {"source", "docs", "web"} & set(update):
        update["sources"] = ()
    if interactive is not None:
        update["interactive"] = interactive
        if not interactive:
            update["mode"] = Mode.AUTO
    update["lineage"] = (run, *before.lineage)
    options = before.model_copy(update=update)
    return options.model_copy(update={"private": before.private or is_private(options)})


# Sources ----------------------------------------------------------------------------------------------


class SourceExclusions(NamedTuple):
    vetoed: tuple[SourceVeto, ...] = ()
    hosts: tuple[str, ...] = ()


def resolve_exclusions(names: Sequence[str], known: Sequence[SourceRef]) -> SourceExclusions:
    """Sources to do without: by the number a report gives them, by address, or all of a host."""
    vetoed: list[SourceVeto] = []
    hosts: list[str] = []
    for name in (name.strip() for name in names):
        meant = [ref for ref in known if _is_match(ref, name)]
        host = name.lower().removeprefix("www.").rstrip(".")
        of_host = [ref for ref in known if is_within_domain(host_of(ref.url), host)]
        # Where nothing was found yet, any host may turn up; later one that did not is a slip of the pen.
        if not meant and _HOST.fullmatch(host) and registrable_domain(host) and (of_host or not known):
            hosts.append(host)
            meant = of_host
        elif not meant and "://" in name and address(name):
            vetoed.append(SourceVeto(document="", url=name))
        elif not meant:
            listed = ", ".join(ref.id for ref in known) or "none yet"
            raise NotFoundError(
                f"there is no source {name[:80]!r}", help=f"Sources are {listed}, an address or a host."
            )
        vetoed += [SourceVeto(document=ref.document, url=ref.url, title=ref.title) for ref in meant]
    return SourceExclusions(tuple(dict.fromkeys(vetoed)), tuple(dict.fromkeys(hosts)))


def _is_match(ref: SourceRef, name: str) -> bool:
    return name.lower() in (ref.id.lower(), ref.id.lower().removeprefix("s")) or canonicalize_url(
        name
    ) == canonicalize_url(ref.url)


LONGEST_TITLE = 120


class BranchSetup(NamedTuple):
    """How a branch begins: `values` of the state are replaced, `question` is put in place of the one there was."""

    options: ResearchOptions
    sources: list[Source]
    notices: dict[str, str]
    values: dict[str, Any]
    question: str | None


class BranchBase(NamedTuple):
    """Where a branch begins: not always on the thread that was named."""

    thread: str
    begin: BranchPoint
    changes: BranchChanges
    lineage: tuple[str, ...] = ()  # runs in between, whose answers are paid for too


class BranchService:
    def __init__(self, runner: Runner, history: ThreadHistory, sources: ChooseSources) -> None:
        self._runner = runner
        self._history = history
        self._sources = sources

    async def fork(
        self, thread: str, name: str | None, changes: BranchChanges, *, interactive: bool | None = None,
        usd: float | None = None, id: str | None = None, queued: bool = False,
    ) -> Run:  # fmt: skip
        """Goes on from a moment of the thread, or from the last before it at which the changes can take effect. It is
        made as a whole or not at all. `interactive`: whether somebody can be asked; None: as it was. `usd` is the most
        it may cost, whatever was changed. `queued`: nobody works on it yet; where nothing is left to do, it is done."""
        await self._runner.threads.get(thread)
        await self._runner.check(thread)
        place = await self._find_base(thread, name, apply_deliverable(changes))
        parent = await self._runner.threads.get(place.thread)
        begin, changes = place.begin, place.changes
        queued = queued and bool(begin.moment.next)
        before = await self._runner.threads.run(begin.moment.run)
        start = await self._prepare(before, begin, changes, interactive, usd)
        lineage = (*place.lineage, *start.options.lineage)
        start = start._replace(options=start.options.model_copy(update={"lineage": lineage}))
        run = Run(
            id=id or uuid4().hex[:12], thread=uuid4().hex[:12], question=start.question or before.question,
            status=RunStatus.QUEUED if queued else RunStatus.RUNNING, started=self._runner.now(),
            settings=self._runner.settings.fingerprint(), options=start.options.plain(),
        )  # fmt: skip
        async with self._runner.lock_thread(run.thread) as hold:
            await self._create(parent, run, begin.moment, changes, start)
            if queued:
                await self._runner.add_notice(run.id, start.notices["branch"])
                return run
            self._runner.spawn(run, start.sources, None, hold, start.notices)
        return run

    async def _find_base(self, thread: str, name: str | None, changes: BranchChanges) -> BranchBase:
        """A branch may begin after the place a change takes effect at: then its parent is forked, with what had been
        changed there too."""
        moments = await self._history.require_checkpoints(thread)
        wanted = await self._history.find_checkpoint(thread, name, moments) if name else None
        runs = {run.id: run for run in await self._runner.threads.runs(thread)}
        try:
            return BranchBase(thread, find_branch_point(moments, runs, wanted, changes), changes)
        except UsageError:
            branch = await self._runner.threads.branch(thread)
            run = (wanted or moments[-1]).run
            if branch is None or run != moments[0].run or not await self._exists(branch.parent):
                raise
        merged = merge_changes(BranchChanges.model_validate(branch.changes), changes)
        found = await self._find_base(branch.parent, branch.checkpoint, merged)
        return found._replace(lineage=(run, *found.lineage))

    # -- what is changed: all that can be refused is refused here, before anything is written ---------------

    async def _prepare(
        self, before: Run, begin: BranchPoint, changes: BranchChanges, interactive: bool | None, usd: float | None
    ) -> BranchSetup:
        values = await self._history.values(before.thread, begin.moment)
        options = derive_options(read_options(before), before.id, changes, interactive)
        origin = {"branch": describe_branch(before.thread, begin, changes)}
        if not begin.moment.next:  # a copy of what is finished: nobody has to be asked anything
            return BranchSetup(options, [], origin, {}, None)
        question = None if changes.question is None else validate_question(changes.question, options)
        question = question and self._runner.redaction.redact_secrets(question)
        old = Plan.model_validate(values["plan"]) if begin.moment.planned else None
        plan = change_plan(old, changes) if old else None
        if old and plan:
            options = await self._apply_plan(options, plan, old, changes)
        options = options if usd is None else options.model_copy(update={"usd": min(usd, self._max_usd(options))})
        options, sources, notices = await self._choose_sources(options, anew=question is not None)
        if plan and changes.affects_sources:
            asked = select_sources(sources, (), source_preferences(str(values["understanding"]["question"]), options))
            plan = plan.model_copy(update={"sources": tuple(source.name for source in asked)})
        notices |= origin
        update = await self._exclude_sources(before.thread, begin, values, changes)
        if plan:
            update["plan"] = plan.plain()
        update["notices"] = {**(values.get("notices") or {}), **notices}
        return BranchSetup(options, sources, notices, update, question)

    def _max_usd(self, options: ResearchOptions) -> float:
        return options.max_usd(self._runner.settings.budget.usd)

    async def _apply_plan(
        self, options: ResearchOptions, plan: Plan, before: Plan, changes: BranchChanges
    ) -> ResearchOptions:
        """What a plan says of money, length and sources holds for the run."""
        options = options.with_plan(plan, before)
        if plan.sources == before.sources or changes.affects_sources:
            return options
        named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
        await asyncio.to_thread(self._sources, named)  # refuses such as there are not
        return options.model_copy(update={"sources": plan.sources})

    async def _choose_sources(
        self, options: ResearchOptions, *, anew: bool
    ) -> tuple[ResearchOptions, list[Source], dict[str, str]]:
        options = options.model_copy(update={"veto": ()}) if anew else options
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices = notices | await asyncio.to_thread(self._runner.reasoners.notices, options)
        options = await asyncio.to_thread(self._runner.reasoners.pin_options, options)
        if options.source == "auto" and not options.sources:
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        return options, sources, notices

    async def _exclude_sources(
        self, thread: str, begin: BranchPoint, values: Mapping[str, Any], changes: BranchChanges
    ) -> dict[str, Any]:
        """Sources the branch does without: those named and, where the run was a veto, those it took out."""
        if not changes.without and not begin.again:
            return {}
        latest = await self._history.values(thread, begin.wanted)
        known = await load_references(latest, self._runner.documents)
        if not known:  # the numbers are those of the report, which came later
            end = [one for one in await self._history.list_checkpoints(thread) if one.run == begin.wanted.run][-1]
            known = await load_references(await self._history.values(thread, end), self._runner.documents)
        found = resolve_exclusions(changes.without, known)
        kept = latest if begin.again else values
        edits = dict(values.get("edits") or {})
        edits["without"] = list(dict.fromkeys([*edits.get("without", ()), *found.hosts]))
        return {"vetoed": merge_vetoes(kept, found.vetoed), **({"edits": edits} if found.hosts else {})}

    async def _create(
        self, parent: Thread, run: Run, moment: CheckpointInfo, changes: BranchChanges, start: BranchSetup
    ) -> None:
        now = run.started
        name = start.question or f"{changes.description if changes.overrides else 'again'} · {parent.title}"
        thread = Thread(
            id=run.thread, title=_clip_title(name), created=now, updated=now, mode=parent.mode, owner=parent.owner
        )
        branch = Branch(
            thread=run.thread, parent=parent.id, checkpoint=moment.checkpoint, changes=changes.overrides, created=now
        )
        update = {**start.values, "run": run.id, "options": run.options}

        def replaced(values: Mapping[str, Any]) -> dict[str, Any]:
            if start.question is None:
                return replace_fields(values, update)
            put = question_input(start.question, run.id, run.options, start.notices)
            return replace_input(
                values, {**put, **{name: update[name] for name in ("vetoed", "edits") if name in update}}
            )

        def copy() -> None:
            self._history.checkpoints.copy(parent.id, moment.checkpoint, run.thread, now, moment.after, replaced)

        await self._runner.threads.fork(thread, run, branch, copy)

    # -- the tree -----------------------------------------------------------------------------------------

    async def tree(self, thread: str) -> BranchTree:
        """The whole tree a thread is part of, from its root on."""
        await self._runner.threads.get(thread)
        root, seen = thread, {thread}
        while (branch := await self._runner.threads.branch(root)) and await self._exists(branch.parent):
            if branch.parent in seen:
                break
            root = branch.parent
            seen.add(root)
        return await self._build_tree(root, branch, set())

    async def _build_tree(self, thread: str, branch: Branch | None, seen: set[str]) -> BranchTree:
        seen.add(thread)
        kept = await self._runner.threads.get(thread)
        runs = await self._runner.threads.runs(thread)
        below = [found for found in await self._runner.threads.branches(thread) if found.thread not in seen]
        totals = [[usd for _, usd in await self._history.list_spend(run.id)] for run in runs]
        return BranchTree(
            thread=thread,
            title=kept.title,
            status=runs[-1].status if runs else None,
            usd=sum(max(spent, default=0.0) for spent in totals),
            branches=tuple([await self._build_tree(found.thread, found, seen) for found in below]),
            **(await self._describe_origin(branch) if branch else {}),
        )

    async def _describe_origin(self, branch: Branch) -> dict[str, Any]:
        there = await self._exists(branch.parent)
        moments = await self._history.list_checkpoints(branch.parent) if there else []
        return {
            "parent": branch.parent,
            "of_deleted": not there,
            "changed": BranchChanges.model_validate(branch.changes).description,
            "moment": next((moment.label for moment in moments if moment.checkpoint == branch.checkpoint), ""),
            "checkpoint": branch.checkpoint,
        }

    async def _exists(self, thread: str) -> bool:
        try:
            await self._runner.threads.get(thread)
        except NotFoundError:
            return False
        return True


def _clip_title(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"
