"""Moments, branches and differences on a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from pydantic import ValidationError

from openassay.cli.research import CommandOptions, run_and_deliver
from openassay.cli.review import read_edits
from openassay.cli.runtime import run_with_engine
from openassay.cli.screen import format_dollars, print_message, to_one_line, truncate_line, wrap_line
from openassay.engine.diff import EditionHeader, ReportDiff, ReportStatement, SourceRef, StatementChange
from openassay.engine.engine import Engine
from openassay.engine.history import PAGE
from openassay.errors import UsageError
from openassay.models.plan import Depth, Style
from openassay.models.thread import BranchChanges, BranchTree, CheckpointInfo, Run
from openassay.text.words import pluralize

T = TypeVar("T")
BEGUN, BEGINNINGS = "begun", (("understand",), ("withdraw",))  # the question was taken up, and nothing done yet
_PLANS = "What a plan and its edits look like: docs/howto/branches.md, or openassay threads state THREAD --json."


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """What was given on the command line to be changed."""

    question: str | None = None
    plan: str | None = None  # a file
    deliverable: str | None = None
    style: Style | None = None
    words: int | None = None
    source: str | None = None
    docs: list[str] | None = None
    web: bool = False
    without: list[str] | None = None
    depth: str | None = None
    model: str | None = None
    budget: float | None = None


# Moments ----------------------------------------------------------------------------------------------


def show_history(thread: str, *, everything: bool, json: bool) -> None:
    found = run_with_engine(lambda engine: engine.history(thread, limit=None if everything else PAGE))
    if json:
        typer.echo(_join_json(moment.model_dump_json(indent=2) for moment in found))
        return
    for line in _format_history(found):
        typer.echo(truncate_line(line))
    if found[0].number > 1 and not everything:
        print_message(f"The {pluralize(found[0].number - 1, 'moment')} before: openassay history {thread} --all")


def _format_history(moments: Sequence[CheckpointInfo]) -> Iterator[str]:
    """The day stands once; what costs nothing has no column."""
    id, stage = max(len(moment.short) for moment in moments), max(len(_format_stage(moment)) for moment in moments)
    costs = any(moment.usd for moment in moments)
    heading = ""
    for moment in moments:
        before, heading = heading, f"run {moment.run}  {moment.time:%Y-%m-%d}"
        if heading != before:
            yield heading
        usd = f"  {format_dollars(moment.usd) if moment.usd else '':>9}" if costs else ""
        head = f"{moment.number:4}  {moment.short:{id}}  {moment.time:%H:%M:%S}{usd}  {_format_stage(moment):{stage}}"
        summary = "" if _format_stage(moment) == BEGUN else to_one_line(moment.summary)
        then = f"→ {', '.join(moment.next)}" if moment.next else ""
        yield f"{head}  {' '.join(part for part in (summary, then) if part)}"


def _format_stage(moment: CheckpointInfo) -> str:
    """What had just ended. It is not known of a moment whose predecessors were pruned."""
    if moment.after or moment.begins:
        return ", ".join(moment.after) or "asked"
    return BEGUN if moment.next in BEGINNINGS and not moment.planned else "…"


# Forks ------------------------------------------------------------------------------------------------


def fork_thread(
    thread: str, at: str | None, given: ForkOptions, *, yes: bool, out: Path | None, json: bool, quiet: bool
) -> None:
    wishes = CommandOptions(json=json, out=out, quiet=quiet, yes=yes)
    changes = parse_changes(given)

    async def begin(engine: Engine) -> tuple[Run, int]:
        run = await engine.fork(thread, at, changes, interactive=wishes.interactive)
        if not quiet:
            print_message(f"Branch {run.thread}; to compare them: openassay diff {thread} {run.thread}")
        return run, 0

    run_and_deliver(wishes, begin)


def parse_changes(given: ForkOptions) -> BranchChanges:
    plan = read_edits(given.plan, _PLANS) if given.plan else None
    if plan is not None and not isinstance(plan, list | dict):
        raise UsageError("the plan is neither a list of edits nor an object", help=_PLANS)
    if plan == []:
        raise UsageError("nothing is changed: the list of edits is empty", help=_PLANS)
    try:
        return BranchChanges(
            question=given.question,
            plan=plan if isinstance(plan, dict) else None,
            edits=tuple(plan) if isinstance(plan, list) else (),
            deliverable=given.deliverable,
            style=given.style,
            words=given.words,
            source=given.source,
            docs=tuple(str(Path(path).absolute()) for path in given.docs) if given.docs else None,
            web=given.web or None,
            without=tuple(given.without or ()),
            depth=Depth(given.depth) if given.depth else None,
            model=given.model,
            usd=given.budget,
        )
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise UsageError(f"{name}: {problem['msg'].lower()}", help="See: openassay fork --help") from error


def show_branches(thread: str, *, json: bool) -> None:
    tree = run_with_engine(lambda engine: engine.tree(thread))
    if json:
        typer.echo(tree.model_dump_json(indent=2).encode())
        return
    for line in _draw_tree(tree, thread):
        typer.echo(line)


def _draw_tree(tree: BranchTree, asked: str, before: str = "", corner: str = "") -> Iterator[str]:
    usd = f"  {format_dollars(tree.usd)}" if tree.usd else ""
    here = " *" if tree.thread == asked else ""
    came = f"{tree.changed}, from {tree.moment}" if tree.moment else tree.changed
    origin = f"  of a deleted thread ({tree.parent})" if tree.of_deleted else ""
    told = came if tree.parent and not tree.of_deleted else f"{tree.title}{origin}"
    line = f"{before}{corner}{tree.thread}{here}  {tree.status or 'empty'}{usd}  {to_one_line(told)}"
    yield wrap_line(line, len(before) + 6)
    below = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[corner]
    for number, branch in enumerate(tree.branches, 1):
        yield from _draw_tree(branch, asked, below, "└─ " if number == len(tree.branches) else "├─ ")


# Differences ------------------------------------------------------------------------------------------


def show_diff(a: str, b: str, *, json: bool) -> None:
    found = run_with_engine(lambda engine: engine.diff(a, b))
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in _format_diff(found):
        typer.echo(wrap_line(line, 4))


def _format_diff(found: ReportDiff) -> Iterator[str]:
    yield f"--- {_format_header(found.a)}"
    yield f"+++ {_format_header(found.b)}"
    if found.empty:
        yield f"They state the same: {pluralize(found.same, 'statement')}."
        return
    yield from (line for one in found.changed for line in _format_change(one))
    yield from (f"- {_format_statement(one)}" for one in found.dropped)
    yield from (f"+ {_format_statement(one)}" for one in found.added)
    yield from (f"- section: {to_one_line(title)}" for title in found.sections_dropped)
    yield from (f"+ section: {to_one_line(title)}" for title in found.sections_added)
    yield from (f"- source: {_format_source(one)}" for one in found.sources_lost)
    yield from (f"+ source: {_format_source(one)}" for one in found.sources_gained)
    yield f"{pluralize(found.same, 'statement')} {'is' if found.same == 1 else 'are'} the same."


def _format_header(one: EditionHeader) -> str:
    spent = f", {format_dollars(one.usd)}" if one.usd else ""
    what = f"{one.status}, confidence {one.confidence}" if one.status else f"a draft, confidence {one.score:.2f}"
    return f"{one.name}  {to_one_line(one.title)} ({what}{spent})"


def _format_change(one: StatementChange) -> Iterator[str]:
    yield f"~ {_format_statement(one.before)}"
    yield f"  {_format_statement(one.after)}  ({', '.join(one.how)})"


def _format_statement(one: ReportStatement) -> str:
    sources = "; ".join(to_one_line(source.title) or source.id for source in one.sources)
    verdict = "" if one.verdict == "supported" else f" {str(one.verdict).replace('_', ' ')}"
    return f"{to_one_line(one.text)} {one.mark or ''}{verdict} [{sources}]".replace("  ", " ")


def _format_source(one: SourceRef) -> str:
    return f"{to_one_line(one.title)} ({to_one_line(one.url)})"


def _join_json(objects: Iterator[str]) -> bytes:
    return f"[{', '.join(objects)}]".encode()
