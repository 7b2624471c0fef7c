"""Branches: threads that begin as a copy of another one at a checkpoint, with something changed. And vetoes: runs that
ask nothing new, but take sources out of a report.

A branch is a thread of its own; its parent is read and never written. docs/decisions/0019 says why.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from openassay.engine.checkpoints import replace_fields, replace_input
from openassay.engine.diff import SourceRef, load_references
from openassay.engine.history import ThreadHistory
from openassay.engine.runner import Runner, new_id
from openassay.engine.validation import HOST, validate_question
from openassay.errors import AnswerError, NotFoundError, UsageError
from openassay.export import Report
from openassay.llm.selection import is_private
from openassay.models.event import RunStatus
from openassay.models.plan import Mode, Plan, add_note, apply_edits, parse_edits, replace_plan
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import (
    Branch,
    BranchChanges,
    BranchTree,
    CheckpointInfo,
    Consequences,
    ResearchOptions,
    RestartPoint,
    Run,
    SourceVeto,
)
from openassay.nodes.preferences import select_sources, source_preferences
from openassay.protocols import Source
from openassay.reasoning.rules.phrases import parse_length, parse_use
from openassay.state import load_edits, load_plan, load_understanding, load_vetoes, question_input, veto_input
from openassay.text.urls import canonicalize_url, host_of, is_within_domain, parse_url, registrable_domain

UNTITLED = "Untitled"
MAX_TITLE = 120  # characters of a branch's
_PLANNED = ("approve_plan", "dispatch")
_PRUNED = "Ask the question again. persistence.keep_checkpoints says how many checkpoints of a finished run are kept."


def make_title(text: str, longest: int = 80) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= longest else f"{line[: longest - 1]}…") or UNTITLED


class BranchPoint(NamedTuple):
    """Where a branch begins. `wanted` is the checkpoint that was asked for, or the last: not always the one at which a
    change takes effect. `again`: the run took sources out of a report, which its branch does without from the search
    on."""

    checkpoint: CheckpointInfo
    wanted: CheckpointInfo
    named: bool
    again: bool = False


def find_branch_point(
    checkpoints: Sequence[CheckpointInfo],
    runs: Mapping[str, Run],
    wanted: CheckpointInfo | None,
    changes: BranchChanges,
) -> BranchPoint:
    """Find the last checkpoint of the run at which the changes can still take effect."""
    last = wanted or checkpoints[-1]
    restart, again = changes.restart_point, False
    if wanted is None and restart is RestartPoint.ANYWHERE and changes.overrides:
        restart = RestartPoint.ASKED  # another model or budget is of use from the beginning on
    reachable = [one for one in checkpoints if one.number <= last.number]
    for run in dict.fromkeys(one.run for one in reversed(reachable)):
        of_run = [one for one in checkpoints if one.run == run]
        fitting = [one for one in reachable if one.run == run and _fits(one, changes, restart)]
        # Small talk, or a question that was cancelled: nothing was searched or written that could be changed.
        ended = not of_run[-1].next and not any(one.planned for one in of_run)
        if fitting and not (ended and restart in (RestartPoint.SEARCHING, RestartPoint.WRITING)):
            return BranchPoint(fitting[-1], last, wanted is not None, again)
        if run not in runs or not runs[run].options.veto:
            break
        restart, again = min(restart, RestartPoint.SEARCHING), True  # a veto rests on the question before it
    of_run = [one for one in checkpoints if one.run == last.run]
    later = [one for one in of_run if one.number > last.number and _fits(one, changes, changes.restart_point)]
    if later:
        raise UsageError(f"there was no plan yet at {last.label}", help=f"Fork at moment {later[0].number} or later.")
    if changes.restart_point is RestartPoint.ASKED or any(one.planned for one in of_run):
        raise UsageError("the checkpoint at which that takes effect is no longer stored", help=_PRUNED)
    missing = "plan was made" if changes.needs_plan else "research was done"
    raise UsageError(
        f"no {missing} for this question, so that cannot be changed", help="Ask the question again, or fork elsewhere."
    )


def _fits(checkpoint: CheckpointInfo, changes: BranchChanges, restart: RestartPoint) -> bool:
    if changes.needs_plan and not checkpoint.planned and restart is not RestartPoint.ASKED:
        return False
    continues = bool(checkpoint.next) and checkpoint.next != ("publish",)
    match restart:
        case RestartPoint.ASKED:
            return checkpoint.begins
        case RestartPoint.SEARCHING:
            at_plan = not changes.needs_plan or set(checkpoint.next) <= set(_PLANNED)
            return checkpoint.round == 0 and continues and at_plan
        case RestartPoint.WRITING:
            return checkpoint.iteration == 0 and continues
    return bool(checkpoint.next) or not changes.overrides


def merge_changes(before: BranchChanges, changes: BranchChanges) -> BranchChanges:
    """Add changes to those that a branch had already made."""
    edits = changes.edits if changes.plan is not None else (*before.edits, *changes.edits)
    without = tuple(dict.fromkeys((*before.without, *changes.without)))
    return BranchChanges.model_validate({**before.overrides, **changes.overrides, "edits": edits, "without": without})


def describe_branch(thread: str, point: BranchPoint, changes: BranchChanges) -> str:
    """Tell readers of the branch where it comes from."""
    line = f"This is a branch of thread {thread} from {point.checkpoint.label}: {changes.description}."
    if point.named and point.checkpoint != point.wanted:
        return f"{line} It does not begin at {point.wanted.label}: what was changed takes effect earlier."
    return line


def apply_deliverable(changes: BranchChanges) -> BranchChanges:
    """Add the style and the length that a deliverable asks for, where they are not given."""
    if changes.deliverable is None:
        return changes
    use, length = parse_use(changes.deliverable), parse_length(changes.deliverable)
    style, words = use.style if use else None, length or (use.words if use else None)
    return changes.model_copy(update={"style": changes.style or style, "words": changes.words or words})


def change_plan(plan: Plan, changes: BranchChanges) -> Plan:
    """Apply changes to a plan; raises UsageError where an edit cannot be made."""
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


def derive_options(
    before: ResearchOptions, run: str, changes: BranchChanges, interactive: bool | None
) -> ResearchOptions:
    """Return the options of the branch's run; sources that were changed are chosen again."""
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


def resolve_exclusions(names: Sequence[str], known: Sequence[SourceRef]) -> tuple[list[SourceVeto], list[str]]:
    """Resolve the sources and hosts to do without: by the number a report gives them, by address, or all of a host."""
    vetoed: list[SourceVeto] = []
    hosts: list[str] = []
    for name in (name.strip() for name in names):
        ids = [(ref, ref.id.lower()) for ref in known]
        matches = [
            ref
            for ref, id in ids
            if name.lower() in (id, id.removeprefix("s")) or canonicalize_url(name) == canonicalize_url(ref.url)
        ]
        host = name.lower().removeprefix("www.").rstrip(".")
        of_host = [ref for ref in known if is_within_domain(host_of(ref.url), host)]
        # Where nothing was found yet, any host may turn up; later one that did not is a typing error.
        if not matches and HOST.fullmatch(host) and registrable_domain(host) and (of_host or not known):
            hosts.append(host)
            matches = of_host
        elif not matches and "://" in name and parse_url(name):
            vetoed.append(SourceVeto(document="", url=name))
        elif not matches:
            listed = ", ".join(ref.id for ref in known) or "none yet"
            raise NotFoundError(
                f"there is no source {name[:80]!r}", help=f"Sources are {listed}, an address or a host."
            )
        vetoed += [SourceVeto(document=ref.document, url=ref.url, title=ref.title) for ref in matches]
    return vetoed, hosts


class BranchSetup(NamedTuple):
    """How a branch begins: `values` of the state are replaced, and `question` replaces the one there was."""

    options: ResearchOptions
    sources: list[Source]
    notices: dict[str, str]
    values: dict[str, Any]
    question: str | None


class BranchBase(NamedTuple):
    """Where a branch begins: not always on the thread that was named."""

    thread: str
    point: BranchPoint
    changes: BranchChanges
    lineage: tuple[str, ...] = ()  # runs in between, whose answers are paid for too


class BranchService:
    def __init__(self, runner: Runner, history: ThreadHistory) -> None:
        self._runner = runner
        self._history = history

    async def fork(
        self,
        thread: str,
        name: str | None = None,
        changes: BranchChanges = BranchChanges(),  # noqa: B008  # frozen
        *,
        interactive: bool | None = None,
        usd: float | None = None,
        id: str | None = None,
        queued: bool = False,
    ) -> Run:
        """Continue on a new thread from a checkpoint, or from the last before it at which the changes can take effect.
        The branch is created as a whole or not at all; one with nothing left to do is done even if `queued`.
        `interactive`: whether somebody can answer questions; None: as it was. `usd` is the most it may cost, whatever
        was changed; `id` is what the run is called."""
        threads = self._runner.threads
        await threads.get(thread)
        await self._runner.check(thread)
        base = await self._find_base(thread, name, apply_deliverable(changes))
        parent = await threads.get(base.thread)
        checkpoint, changes = base.point.checkpoint, base.changes
        queued = queued and bool(checkpoint.next)
        before = await threads.run(checkpoint.run)
        setup = await self._prepare(before, base.point, changes, interactive, usd)
        options = setup.options.model_copy(update={"lineage": (*base.lineage, *setup.options.lineage)})
        status = RunStatus.QUEUED if queued else RunStatus.RUNNING
        run = self._runner.build_run(new_id(), setup.question or before.question, options, status, id)
        now = run.started
        title = setup.question or f"{changes.description if changes.overrides else 'again'} · {parent.title}"
        own = {"id": run.thread, "title": make_title(title, MAX_TITLE), "created": now, "updated": now}
        child = parent.model_copy(update=own)
        branch = Branch(
            thread=child.id, parent=parent.id, checkpoint=checkpoint.checkpoint, changes=changes.overrides, created=now
        )
        update = {**setup.values, "run": run.id, "options": run.options.plain()}

        def replace(values: Mapping[str, Any]) -> dict[str, Any]:
            if setup.question is None:
                return replace_fields(values, update)
            input = question_input(run, setup.notices)
            kept = {name: value for name, value in update.items() if name in ("vetoed", "edits")}
            return replace_input(values, {**input, **kept})

        def copy() -> None:
            self._history.checkpoints.copy(parent.id, checkpoint.checkpoint, run.thread, now, checkpoint.after, replace)

        async with self._runner.lock_thread(run.thread) as lock:
            await threads.create_with_run(child, run, branch, copy)
            if queued:
                await self._runner.add_notice(run.id, setup.notices["branch"])
            else:
                self._runner.spawn(run, setup.sources, None, lock, setup.notices)
        return run

    async def _find_base(self, thread: str, name: str | None, changes: BranchChanges) -> BranchBase:
        """Find where the branch begins. A thread that is a branch itself may begin after the point at which a change
        takes effect: then its parent is forked, with what had been changed there too."""
        checkpoints = await self._history.require_checkpoints(thread)
        wanted = await self._history.find_checkpoint(thread, name, checkpoints) if name else None
        runs = {run.id: run for run in await self._runner.threads.runs(thread)}
        try:
            return BranchBase(thread, find_branch_point(checkpoints, runs, wanted, changes), changes)
        except UsageError:
            branch = await self._runner.threads.branch(thread)
            run = (wanted or checkpoints[-1]).run
            if branch is None or run != checkpoints[0].run or not await self._exists(branch.parent):
                raise
        merged = merge_changes(BranchChanges.model_validate(branch.changes), changes)
        found = await self._find_base(branch.parent, branch.checkpoint, merged)
        return found._replace(lineage=(run, *found.lineage))

    async def _prepare(
        self, before: Run, point: BranchPoint, changes: BranchChanges, interactive: bool | None, usd: float | None
    ) -> BranchSetup:
        """Prepare a branch: whatever can be refused is refused here, before anything is written."""
        values = await self._history.values(before.thread, point.checkpoint)
        options = derive_options(before.options, before.id, changes, interactive)
        origin = {"branch": describe_branch(before.thread, point, changes)}
        if not point.checkpoint.next:  # a copy of what is finished: nobody has to be asked anything
            return BranchSetup(options, [], origin, {}, None)
        question = None if changes.question is None else validate_question(changes.question, options)
        question = question and self._runner.redaction.redact_secrets(question)
        plan = None
        if point.checkpoint.planned:
            old = load_plan(values)
            plan = change_plan(old, changes)
            options = options.with_plan(plan, old)
            if plan.sources != old.sources and not changes.affects_sources:
                named = options.model_copy(update={"source": ",".join(plan.sources), "sources": ()})
                await asyncio.to_thread(self._runner.choose_sources, named)  # refuses names that do not exist
                options = options.model_copy(update={"sources": plan.sources})
        if usd is not None:
            options = options.model_copy(update={"usd": min(usd, options.max_usd(self._runner.settings.budget.usd))})
        if question is not None:
            options = options.model_copy(update={"veto": ()})
        sources, notices = await self._runner.select_sources(options)
        notices |= origin
        options = await asyncio.to_thread(self._runner.reasoners.pin_options, options)
        if options.source == "auto" and not options.sources:
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        if plan and changes.affects_sources:
            asked = select_sources(sources, (), source_preferences(load_understanding(values).question, options))
            plan = plan.model_copy(update={"sources": tuple(source.name for source in asked)})
        update = await self._exclude_sources(before.thread, point, values, changes)
        if plan:
            update["plan"] = plan.plain()
        update["notices"] = {**(values.get("notices") or {}), **notices}
        return BranchSetup(options, sources, notices, update, question)

    async def _exclude_sources(
        self, thread: str, point: BranchPoint, values: Mapping[str, Any], changes: BranchChanges
    ) -> dict[str, Any]:
        """Return the state's record of sources the branch does without: those named and, where the run was a veto,
        those it took out."""
        if not changes.without and not point.again:
            return {}
        latest = await self._history.values(thread, point.wanted)
        known = await load_references(latest, self._runner.documents)
        if not known:  # the numbers are those of the report, which came later
            end = [one for one in await self._history.list_checkpoints(thread) if one.run == point.wanted.run][-1]
            known = await load_references(await self._history.values(thread, end), self._runner.documents)
        excluded, hosts = resolve_exclusions(changes.without, known)
        vetoed = merge_vetoes(latest if point.again else values, excluded)
        if not hosts:
            return {"vetoed": vetoed}
        edits = load_edits(values)
        without = list(dict.fromkeys([*edits.get("without", ()), *hosts]))
        return {"vetoed": vetoed, "edits": {**edits, "without": without}}

    # -- the tree -----------------------------------------------------------------------------------------

    async def tree(self, thread: str) -> BranchTree:
        """Return the whole tree a thread is part of, from its root on."""
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
        runs = await self._runner.threads.runs(thread)
        below = [found for found in await self._runner.threads.branches(thread) if found.thread not in seen]
        totals = [[usd for _, usd in await self._history.list_spend(run.id)] for run in runs]
        origin: dict[str, Any] = {}
        if branch:
            exists = await self._exists(branch.parent)
            checkpoints = await self._history.list_checkpoints(branch.parent) if exists else []
            origin = {
                "parent": branch.parent,
                "of_deleted": not exists,
                "changed": BranchChanges.model_validate(branch.changes).description,
                "moment": next((one.label for one in checkpoints if one.checkpoint == branch.checkpoint), ""),
                "checkpoint": branch.checkpoint,
            }
        return BranchTree(
            thread=thread,
            title=(await self._runner.threads.get(thread)).title,
            status=runs[-1].status if runs else None,
            usd=sum(max(spent, default=0.0) for spent in totals),
            branches=tuple([await self._build_tree(found.thread, found, seen) for found in below]),
            **origin,
        )

    async def _exists(self, thread: str) -> bool:
        try:
            await self._runner.threads.get(thread)
        except NotFoundError:
            return False
        return True


# Vetoes: sources removed from a report for good.

MIN_HASH_CHARS = 6  # of the beginning of a hash by which a source is named


def select_vetoes(report: ReportData, names: Iterable[str]) -> tuple[SourceVeto, ...]:
    """Find sources of the report by their id ("S3" or "3"), address, host, or the beginning of their hash."""
    found: dict[str, SourceVeto] = {}
    for name in names:
        cards = [card for card in report.sources if _is_match(card, name.strip())]
        if not cards:
            known = ", ".join(card.id for card in report.sources) or "none"
            raise NotFoundError(
                f"the report has no source {name!r}", help=f"It has: {known}. openassay threads show lists them."
            )
        found |= {card.document: SourceVeto(document=card.document, url=card.url, title=card.title) for card in cards}
    return tuple(found.values())


def _is_match(card: SourceCard, name: str) -> bool:
    if not name:
        return False
    return bool(
        card.id.lower() in (name.lower(), f"s{name}")
        or canonicalize_url(name) == canonicalize_url(card.url)
        or (card.host and "." in name and is_within_domain(card.host, name))
        or (len(name) >= MIN_HASH_CHARS and card.document.startswith(name.lower()))
    )


def assess_consequences(report: ReportData, sources: Sequence[SourceVeto]) -> Consequences:
    """Return what the report would lose without these sources."""
    out = {source.document for source in sources}
    supported = [claim for claim in report.claims if claim.verdict == "supported"]
    touched = [claim for claim in supported if any(span.document in out for span in claim.spans)]
    lost = [claim for claim in touched if all(span.document in out for span in claim.spans)]
    affected, gone = {claim.id for claim in touched}, {claim.id for claim in lost}
    sentences = [sentence for section in report.sections for sentence in section.sentences]
    answered = {question for claim in supported for question in claim.questions}
    still_answered = {question for claim in supported if claim.id not in gone for question in claim.questions}
    questions = report.plan.questions if report.plan else ()
    return Consequences(
        sources=tuple(sources),
        lost=tuple(claim.id for claim in lost),
        weaker=tuple(claim.id for claim in touched if claim.id not in gone),
        sentences=tuple(sentence.text for sentence in sentences if affected & set(sentence.claims)),
        unanswered=tuple(question.text for question in questions if question.id in answered - still_answered),
        untouched=len(supported) - len(touched),
    )


def merge_vetoes(values: Mapping[str, Any], added: Sequence[SourceVeto]) -> list[dict[str, object]]:
    """Add vetoes to those of the thread, each once."""
    merged = {veto.document: veto for veto in (*load_vetoes(values), *added)}
    return [veto.plain() for veto in merged.values()]


class VetoService:
    def __init__(self, runner: Runner, history: ThreadHistory) -> None:
        self._runner = runner
        self._history = history

    async def consequences(self, thread: str, sources: Sequence[str]) -> Consequences:
        """Return what the thread's report would lose without these sources; nothing is changed."""
        report = await self._history.report(thread)
        return assess_consequences(report, select_vetoes(report, sources))

    async def begin(
        self, thread: str, sources: Sequence[str], *, usd: float | None = None, queued: bool = False
    ) -> Run:
        """Remove sources from the thread's report for good: what rested on them is derived again, the rest is kept, and
        later questions do without them. `usd` is the most it may cost; None: as the question before. `queued`: queue
        the run."""
        _refuse_open(await self._runner.latest_run(thread))
        async with self._runner.lock_thread(thread) as lock:
            await self._runner.check(thread)
            before = await self._runner.latest_run(thread)
            report = await self._history.report(thread)
            options = before.options
            # A branch may begin with a finished report.
            _refuse_open(before, has_report=report.provenance.run in (before.id, *options.lineage))
            named = select_vetoes(report, sources)
            update: dict[str, object] = {"veto": tuple(source.document for source in named)}
            options = options.model_copy(update=update if usd is None else {**update, "usd": usd})
            title = make_title(f"Without {', '.join(source.title for source in named)}")
            status = RunStatus.QUEUED if queued else RunStatus.RUNNING
            run = self._runner.build_run(thread, title, options, status)
            input = await self.build_input(run, {})
            await self._runner.threads.begin(run)
            if not queued:
                self._runner.spawn(run, [], input, lock)
        return run

    async def build_input(self, run: Run, notices: dict[str, str]) -> dict[str, Any]:
        """Return the input of the graph at the start of a run, whether it vetoes sources or asks a question."""
        if not run.options.veto:
            return question_input(run, notices)
        values = (await self._runner.state(run.thread)).values
        cards = [card for card in Report.model_validate(values["report"]).sources if card.document in run.options.veto]
        named = [SourceVeto(document=card.document, url=card.url, title=card.title) for card in cards]
        return veto_input(run, merge_vetoes(values, named))


def _refuse_open(run: Run, *, has_report: bool = True) -> None:
    if run.active or not has_report:
        raise UsageError(
            "this thread's last question has no report yet", help=f"Finish it: openassay resume {run.thread}"
        )
