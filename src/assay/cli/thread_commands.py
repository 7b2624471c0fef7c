"""`assay threads ...`: what is kept."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.parameters import Json, ThreadId

threads_app = typer.Typer(help="List, show and manage threads.", invoke_without_command=True, rich_markup_mode=None)
ThreadIds = Annotated[list[str], typer.Argument(metavar="THREAD...", help="The threads' ids.")]


@threads_app.callback()
def threads(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    active: Annotated[bool, typer.Option("--active", help="Only those at work, or waiting for an answer.")] = False,
    json: Json = False,
) -> None:
    if context.invoked_subcommand is None:
        from assay.cli.threads import listing

        listing(limit, active=active, json=json)


@threads_app.command("new")
def threads_new(title: Annotated[str, typer.Argument(metavar="[TITLE]", show_default=False)] = "") -> None:
    """Begin a thread on which nothing is asked yet; prints its id, for --thread."""
    from assay.cli.threads import new

    new(title)


@threads_app.command("show")
def threads_show(
    thread: ThreadId,
    full: Annotated[bool, typer.Option("--full", help="Leave nothing out.")] = False,
    json: Json = False,
) -> None:
    """A thread with its runs, and its report if there is one; what is long is cut short."""
    from assay.cli.threads import show

    show(thread, json, full=full)


@threads_app.command("rename")
def threads_rename(thread: ThreadId, title: Annotated[str, typer.Argument(metavar="TITLE")]) -> None:
    """Give a thread another title."""
    from assay.cli.threads import rename

    rename(thread, title)


@threads_app.command("log")
def threads_log(thread: ThreadId) -> None:
    """Everything that happened in the thread's last run."""
    from assay.cli.threads import log

    log(thread)


@threads_app.command("timings")
def threads_timings(
    thread: ThreadId,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the last unless said.")
    ] = None,
    json: Json = False,
) -> None:
    """Where the time of a run went: its stages, whoever outside was asked, what the caches knew, and its waiting."""
    from assay.cli.timings import timings

    timings(thread, run, json=json)


@threads_app.command("delete")
def threads_delete(
    threads: ThreadIds,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether I mean it.")] = False,
) -> None:
    """Delete threads for good, with everything that was said and found; what was spent stays in the books."""
    from assay.cli.threads import delete

    delete(threads, yes=yes)


@threads_app.command("export")
def threads_export(
    thread: ThreadId,
    out: Annotated[
        Path | None, typer.Option("--out", help="The zip to write; THREAD.zip unless said.", dir_okay=False)
    ] = None,
) -> None:
    """Everything of a thread in one zip: runs, events, report, documents, ledger, journal."""
    from assay.cli.threads import export

    export(thread, out)


@threads_app.command("check")
def threads_check(thread: Annotated[str, typer.Argument(metavar="[THREAD]", show_default=False)] = "") -> None:
    """Look into every row of a thread, or of all; what is not what was written is named, and the exit code is 1."""
    from assay.cli.storage import check

    check(thread or None)


@threads_app.command("expire")
def threads_expire() -> None:
    """Delete threads that nobody has touched for persistence.ttl_hours."""
    from assay.cli.threads import expire

    expire()


@threads_app.command("state")
def threads_state(
    thread: ThreadId,
    at: Annotated[
        str | None, typer.Option("--at", metavar="CHECKPOINT", help="As it was then; see `assay history`.")
    ] = None,
    json: Json = False,
) -> None:
    """What a thread holds right now: plan, queries, finds, evidence, draft, issues."""
    from assay.cli.threads import state

    state(thread, json, at)
