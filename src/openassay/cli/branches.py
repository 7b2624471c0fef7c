"""`openassay threads history`, `fork`, `replay`, `branches` and `diff`: go back, and go on differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import ValidationError

from openassay.cli import options as opt
from openassay.cli import screen
from openassay.cli.options import ThreadId, complete_thread, json_option
from openassay.cli.research import Output, execute_run, resolve_docs
from openassay.cli.review import read_edits
from openassay.cli.runtime import find_thread, run_on_thread, run_with_engine
from openassay.errors import UsageError
from openassay.models.plan import Depth as ResearchDepth
from openassay.models.thread import BranchChanges, BranchTree, Run
from openassay.settings import load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.diff import EditionHeader, ReportDiff, ReportStatement, SourceRef
    from openassay.engine.engine import Engine

MAX_CHECKPOINTS = 30  # that `history` lists
BEGUN, BEGINNINGS = "begun", (("understand",), ("withdraw",))  # the question was accepted, and nothing done yet
_PLANS = "What a plan and its edits look like: docs/howto/branches.md, or openassay threads state THREAD --json."


def history(
    thread: ThreadId,
    everything: Annotated[bool, typer.Option("--all", help="From the beginning, not only the last 30.")] = False,
    json: Annotated[bool, json_option("the checkpoints")] = False,
) -> None:
    """List the checkpoints of a thread: what was done, what came of it, what it had cost."""
    limit = None if everything else MAX_CHECKPOINTS
    found = run_on_thread(thread, lambda engine, id: engine.history.list_page(id, limit=limit))
    if json:
        return screen.print_json(found)
    # The day is named once; what costs nothing has no column.
    stages = []
    for moment in found:
        if moment.after or moment.begins:
            stages.append(", ".join(moment.after) or "asked")
        else:  # what had just ended is not known of a checkpoint whose predecessors were pruned
            stages.append(BEGUN if moment.next in BEGINNINGS and not moment.planned else "…")
    width, stage_width = max(len(moment.short) for moment in found), max(map(len, stages))
    costs = any(moment.usd for moment in found)
    heading = ""
    for moment, stage in zip(found, stages, strict=True):
        before, heading = heading, f"run {moment.run}  {moment.time:%Y-%m-%d}"
        if heading != before:
            typer.echo(screen.truncate_line(heading))
        usd = f"  {screen.format_dollars(moment.usd) if moment.usd else '':>9}" if costs else ""
        head = f"{moment.number:4}  {moment.short:{width}}  {moment.time:%H:%M:%S}{usd}  {stage:{stage_width}}"
        summary = "" if stage == BEGUN else screen.to_one_line(moment.summary)
        then = f"→ {', '.join(moment.next)}" if moment.next else ""
        typer.echo(screen.truncate_line(f"{head}  {' '.join(part for part in (summary, then) if part)}"))
    if found[0].number > 1 and not everything:
        earlier = pluralize(found[0].number - 1, "checkpoint")
        screen.print_message(f"The {earlier} before: openassay threads history {thread} --all")
    return None


def fork(
    thread: ThreadId,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="CHECKPOINT", help="From there; else from where the change takes effect."),
    ] = None,
    question: Annotated[str | None, typer.Option(metavar="TEXT", help="Ask this in place of the question.")] = None,
    plan: Annotated[
        str | None, typer.Option(metavar="FILE", help="Edits of the plan, or a whole one, as JSON; - is stdin.")
    ] = None,
    deliverable: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What you want to get, such as a one-page briefing.")
    ] = None,
    style: opt.Style = None,
    words: opt.Words = None,
    source: opt.Source = None,
    docs: opt.Docs = None,
    web: opt.Web = False,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE", help="Leave it out: S3, an address, or a host; may be repeated."),
    ] = None,
    depth: opt.Depth = None,
    model: opt.Model = None,
    budget: opt.Usd = None,
    yes: opt.Yes = False,
    out: opt.Out = None,
    json: opt.JsonReport = False,
    quiet: opt.Quiet = False,
) -> None:
    """Continue from a checkpoint with something changed, on a thread of its own.

    Nothing paid for before is paid for again, and the thread itself stays as it is."""
    edits = read_edits(plan, _PLANS) if plan else None
    if edits is not None and not isinstance(edits, list | dict):
        raise UsageError("the plan is neither a list of edits nor an object", help=_PLANS)
    if edits == []:
        raise UsageError("nothing is changed: the list of edits is empty", help=_PLANS)
    try:
        changes = BranchChanges(
            question=question,
            plan=edits if isinstance(edits, dict) else None,
            edits=tuple(edits) if isinstance(edits, list) else (),
            deliverable=deliverable,
            style=style,
            words=words,
            source=source,
            docs=resolve_docs(docs) if docs else None,
            web=web or None,
            without=tuple(without or ()),
            depth=ResearchDepth(depth) if depth else None,
            model=model,
            usd=budget,
        )
    except ValidationError as error:
        problem = error.errors()[0]
        name = ".".join(map(str, problem["loc"]))
        raise UsageError(f"{name}: {problem['msg'].lower()}", help="See: openassay threads fork --help") from error
    _run_branch(thread, at, changes, Output(json=json, out=out, quiet=quiet, yes=yes))


def replay(
    thread: ThreadId,
    at: Annotated[
        str,
        typer.Option("--at", metavar="CHECKPOINT", help="Its number in `openassay threads history`, or its id."),
    ],
    yes: opt.Yes = False,
    out: opt.Out = None,
    json: opt.JsonReport = False,
    quiet: opt.Quiet = False,
) -> None:
    """Continue from a checkpoint once more, on a thread of its own, with nothing changed."""
    _run_branch(thread, at, BranchChanges(), Output(json=json, out=out, quiet=quiet, yes=yes))


def _run_branch(thread: str, at: str | None, changes: BranchChanges, output: Output) -> None:
    async def start(engine: Engine, thread: str) -> Run:
        run = await engine.branches.fork(thread, at, changes, interactive=output.interactive)
        if not output.quiet:
            screen.print_message(f"Branch {run.thread}; to compare them: openassay threads diff {thread} {run.thread}")
        return run

    execute_run(load(), start, output, thread)


def show_branches(thread: ThreadId, json: Annotated[bool, json_option("the tree")] = False) -> None:
    """Show the thread a thread was forked from, and all that were forked from it, as a tree."""

    async def load_tree(engine: Engine, thread: str) -> tuple[str, BranchTree]:
        return thread, await engine.branches.tree(thread)

    id, tree = run_on_thread(thread, load_tree)
    if json:
        return screen.print_json(tree)
    return typer.echo("\n".join(_draw_tree(tree, id)))


def _draw_tree(tree: BranchTree, asked: str, before: str = "", corner: str = "") -> Iterator[str]:
    usd = f"  {screen.format_dollars(tree.usd)}" if tree.usd else ""
    here = " *" if tree.thread == asked else ""
    change = f"{tree.changed}, from {tree.moment}" if tree.moment else tree.changed
    origin = f"  of a deleted thread ({tree.parent})" if tree.of_deleted else ""
    text = change if tree.parent and not tree.of_deleted else f"{tree.title}{origin}"
    line = f"{before}{corner}{tree.thread}{here}  {tree.status or 'empty'}{usd}  {screen.to_one_line(text)}"
    yield screen.wrap_line(line, len(before) + 6)
    below = before + {"": "", "├─ ": "│  ", "└─ ": "   "}[corner]
    for number, branch in enumerate(tree.branches, 1):
        yield from _draw_tree(branch, asked, below, "└─ " if number == len(tree.branches) else "├─ ")


def diff(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="A thread, or THREAD@CHECKPOINT for the draft it had then.",
            autocompletion=complete_thread,
        ),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="What it is compared with.", autocompletion=complete_thread)],
    json: Annotated[bool, json_option("the differences")] = False,
) -> None:
    """Compare two reports: what each states that the other does not, with the sources."""

    async def compare(engine: Engine) -> ReportDiff:
        names = []
        for name in (a, b):
            thread, at, checkpoint = name.partition("@")
            names.append(f"{await find_thread(engine, thread)}{at}{checkpoint}")
        return await engine.history.diff(*names)

    found = run_with_engine(compare)
    screen.print_found(found, _format_diff(found), json=json, indent=4)


def _format_diff(found: ReportDiff) -> Iterator[str]:
    yield f"--- {_format_header(found.a)}"
    yield f"+++ {_format_header(found.b)}"
    if found.empty:
        yield f"They state the same: {pluralize(found.same, 'statement')}."
        return
    for one in found.changed:
        yield f"~ {_format_statement(one.before)}"
        yield f"  {_format_statement(one.after)}  ({', '.join(one.how)})"
    yield from (f"- {_format_statement(one)}" for one in found.dropped)
    yield from (f"+ {_format_statement(one)}" for one in found.added)
    yield from (f"- section: {screen.to_one_line(title)}" for title in found.sections_dropped)
    yield from (f"+ section: {screen.to_one_line(title)}" for title in found.sections_added)
    yield from (f"- source: {_format_source(one)}" for one in found.sources_lost)
    yield from (f"+ source: {_format_source(one)}" for one in found.sources_gained)
    yield f"{pluralize(found.same, 'statement')} {'is' if found.same == 1 else 'are'} the same."


def _format_header(one: EditionHeader) -> str:
    spent = f", {screen.format_dollars(one.usd)}" if one.usd else ""
    what = f"{one.status}, confidence {one.confidence}" if one.status else f"a draft, confidence {one.score:.2f}"
    return f"{one.name}  {screen.to_one_line(one.title)} ({what}{spent})"


def _format_statement(one: ReportStatement) -> str:
    sources = "; ".join(screen.to_one_line(source.title) or source.id for source in one.sources)
    verdict = "" if one.verdict == "supported" else f" {str(one.verdict).replace('_', ' ')}"
    return f"{screen.to_one_line(one.text)} {one.mark or ''}{verdict} [{sources}]".replace("  ", " ")


def _format_source(one: SourceRef) -> str:
    return f"{screen.to_one_line(one.title)} ({screen.to_one_line(one.url)})"
