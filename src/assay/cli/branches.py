"""Moments, branches and differences on a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import typer
from pydantic import ValidationError

from assay.cli.lines import cut, dollars, fitted, one_line
from assay.cli.research import Wishes, conduct
from assay.cli.review import read_edits
from assay.cli.screen import tell
from assay.cli.with_engine import with_engine
from assay.engine import Engine
from assay.errors import UsageError
from assay.model.branch import Changes, Moment, Tree
from assay.model.plan import Style
from assay.model.question import Depth
from assay.model.thread import Run
from assay.text.words import counted
from assay.threads.history import PAGE
from assay.view.diff import Changed, Header, ReportDiff, SourceRef, Statement

T = TypeVar("T")
BEGUN, BEGINNINGS = "begun", (("understand",), ("withdraw",))  # the question was taken up, and nothing done yet
_PLANS = "What a plan and its edits look like: docs/howto/branches.md, or assay threads state THREAD --json."


@dataclass(frozen=True, slots=True)
class Fork:
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


def history(thread: str, *, everything: bool, json: bool) -> None:
    found = with_engine(lambda engine: engine.history(thread, limit=None if everything else PAGE))
    if json:
        typer.echo(_array(moment.model_dump_json(indent=2) for moment in found))
        return
    for line in _told(found):
        typer.echo(cut(line))
    if found[0].number > 1 and not everything:
        tell(f"The {counted(found[0].number - 1, 'moment')} before: assay history {thread} --all")


def _told(moments: Sequence[Moment]) -> Iterator[str]:
    """The day stands once; what costs nothing has no column."""
    id, stage = max(len(moment.short) for moment in moments), max(len(_stage(moment)) for moment in moments)
    costs = any(moment.usd for moment in moments)
    heading = ""
    for moment in moments:
        before, heading = heading, f"run {moment.run}  {moment.time:%Y-%m-%d}"
        if heading != before:
            yield heading
        usd = f"  {dollars(moment.usd) if moment.usd else '':>9}" if costs else ""
        head = f"{moment.number:4}  {moment.short:{id}}  {moment.time:%H:%M:%S}{usd}  {_stage(moment):{stage}}"
        summary = "" if _stage(moment) == BEGUN else one_line(moment.summary)
        then = f"→ {', '.join(moment.next)}" if moment.next else ""
        yield f"{head}  {' '.join(part for part in (summary, then) if part)}"


def _stage(moment: Moment) -> str:
    """What had just ended. It is not known of a moment whose predecessors were pruned."""
    if moment.after or moment.begins:
        return ", ".join(moment.after) or "asked"
    return BEGUN if moment.next in BEGINNINGS and not moment.planned else "…"


# Forks ------------------------------------------------------------------------------------------------


def fork(thread: str, at: str | None, given: Fork, *, yes: bool, out: Path | None, json: bool, quiet: bool) -> None:
    wishes = Wishes(json=json, out=out, quiet=quiet, yes=yes)
    changes = changed(given)

    async def begin(engine: Engine) -> tuple[Run, int]:
        run = await engine.fork(thread, at, changes, interactive=wishes.interactive)
        if not quiet:
            tell(f"Branch {run.thread}; to compare them: assay diff {thread} {run.thread}")
        return run, 0

    conduct(wishes, begin)


def changed(given: Fork) -> Changes:
    plan = read_edits(given.plan, _PLANS) if given.plan else None
    if plan is not None and not isinstance(plan, list | dict):
        raise UsageError("the plan is neither a list of edits nor an object", help=_PLANS)
    if plan == []:
        raise UsageError("nothing is changed: the list of edits is empty", help=_PLANS)
    try:
        return Changes(
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
        raise UsageError(f"{name}: {problem['msg'].lower()}", help="See: assay fork --help") from error


def branches(thread: str, *, json: bool) -> None:
    tree = with_engine(lambda engine: engine.tree(thread))
    if json:
        typer.echo(tree.model_dump_json(indent=2).encode())
        return
    for line in _drawn(tree, thread):
        typer.echo(line)


def _drawn(tree: Tree, asked: str, before: str = "", corner: str = "") -> Iterator[str]:
    usd = f"  {dollars(tree.usd)}" if tree.usd else ""
    here = " *" if tree.thread == asked else ""
    came = f"{tree.changed}, from {tree.moment}" if tree.moment else tree.changed
    origin = f"  of a deleted thread ({tree.parent})" if tree.of_deleted else ""
    told = came if tree.parent and not tree.of_deleted else f"{tree.title}{origin}"
    line = f"{before}{corner}{tree.thread}{here}  {tree.status or 'empty'}{usd}  {one_line(told)}"
    yield fitted(line, len(before) + 6)
    below = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[corner]
    for number, branch in enumerate(tree.branches, 1):
        yield from _drawn(branch, asked, below, "└─ " if number == len(tree.branches) else "├─ ")


# Differences ------------------------------------------------------------------------------------------


def diff(a: str, b: str, *, json: bool) -> None:
    found = with_engine(lambda engine: engine.diff(a, b))
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in _compared(found):
        typer.echo(fitted(line, 4))


def _compared(found: ReportDiff) -> Iterator[str]:
    yield f"--- {_header(found.a)}"
    yield f"+++ {_header(found.b)}"
    if found.empty:
        yield f"They state the same: {counted(found.same, 'statement')}."
        return
    yield from (line for one in found.changed for line in _change(one))
    yield from (f"- {_statement(one)}" for one in found.dropped)
    yield from (f"+ {_statement(one)}" for one in found.added)
    yield from (f"- section: {one_line(title)}" for title in found.sections_dropped)
    yield from (f"+ section: {one_line(title)}" for title in found.sections_added)
    yield from (f"- source: {_source(one)}" for one in found.sources_lost)
    yield from (f"+ source: {_source(one)}" for one in found.sources_gained)
    yield f"{counted(found.same, 'statement')} {'is' if found.same == 1 else 'are'} the same."


def _header(one: Header) -> str:
    spent = f", {dollars(one.usd)}" if one.usd else ""
    what = f"{one.status}, confidence {one.confidence}" if one.status else f"a draft, confidence {one.score:.2f}"
    return f"{one.name}  {one_line(one.title)} ({what}{spent})"


def _change(one: Changed) -> Iterator[str]:
    yield f"~ {_statement(one.before)}"
    yield f"  {_statement(one.after)}  ({', '.join(one.how)})"


def _statement(one: Statement) -> str:
    sources = "; ".join(one_line(source.title) or source.id for source in one.sources)
    verdict = "" if one.verdict == "supported" else f" {str(one.verdict).replace('_', ' ')}"
    return f"{one_line(one.text)} {one.mark or ''}{verdict} [{sources}]".replace("  ", " ")


def _source(one: SourceRef) -> str:
    return f"{one_line(one.title)} ({one_line(one.url)})"


def _array(objects: Iterator[str]) -> bytes:
    return f"[{', '.join(objects)}]".encode()
