"""`openassay threads export`, and the way of a finished report onto the screen, into a pipe or into a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openassay.cli.options import RunId, ThreadId, complete_format
from openassay.cli.runtime import find_run, run_on_thread
from openassay.cli.screen import print_json, print_message, show_report, to_one_line
from openassay.errors import EvidenceError, IntegrityError, NotFoundError, PathError, ThreadBusyError, UsageError
from openassay.export import FORMATS, ZIP, ExportFormat, get_file_format, get_format, open_atomically, to_file_stem
from openassay.models.event import RunStatus

if TYPE_CHECKING:
    from openassay.engine.engine import Engine
    from openassay.export import Report

STDOUT = "-"


def export(
    thread: ThreadId,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            show_default=False,
            help="md, obsidian, quarto, html, pdf, docx, json, bibtex, ris, csl, csv, or zip (everything of the "
            "thread). By default what the ending of --out says, else md.",
            autocompletion=complete_format,
        ),
    ] = None,
    run: RunId = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="The file; - is stdout. By default named after the report."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Write a thread's report to a file: for a paper, a memo, a vault, a reference manager."""
    # What can be refused is refused before anything is read or made.
    target = None if out in (None, STDOUT) else Path(str(out))
    if format == ZIP or (format is None and target is not None and target.suffix.lower() == f".{ZIP}"):
        if run is not None or out == STDOUT:
            what = "--run" if run is not None else "--out -"
            raise UsageError(f"{what} does not go with zip, which has all of a thread", help="Name a file: --out FILE")
        return _export_zip(thread, target, force=force)
    if format is not None:
        chosen = get_format(format.lower())
    else:
        chosen = FORMATS["md"] if target is None else get_file_format(target)
    chosen.need()
    if target is not None:
        _refuse_existing(target, force=force)
    if out == STDOUT and chosen.is_binary and sys.stdout.isatty():
        raise UsageError(f"a terminal cannot show {format}", help="Name a file: --out FILE")

    async def load(engine: Engine, thread: str) -> Report:
        report = await load_report(engine, thread, await find_run(engine, thread, run))
        await warn_of_damage(engine, thread)
        return report

    report = run_on_thread(thread, load)
    if out == STDOUT:
        content = chosen.write(report)
        for caveat in chosen.caveats(report):
            print_message(caveat)
        if sys.stdout.isatty():  # which would obey what sources have written
            lines = content.decode().replace("\r\n", "\n").split("\n")
            return typer.echo("\n".join(map(to_one_line, lines)), nl=False)
        return typer.echo(content, nl=False)
    if target is None:
        target = Path(f"{to_file_stem(report.title)}{chosen.ending}")
        _refuse_existing(target, force=force)
    return write_report(report, chosen, target)


def _export_zip(thread: str, target: Path | None, *, force: bool) -> None:
    if target is not None:
        _refuse_existing(target, force=force)

    async def write(engine: Engine, thread: str) -> tuple[str, Path]:
        path = target or Path(f"{thread}.zip")
        _refuse_existing(path, force=force)
        await engine.archive.export(thread, path)
        return thread, path

    id, path = run_on_thread(thread, write)
    typer.echo(f"Thread {id} written to {path}", err=True)


def _refuse_existing(path: Path, *, force: bool) -> None:
    check_place(path)
    if path.is_file() and not force:
        raise PathError(f"{path} exists", help="Choose another --out, or replace it with --force.")


async def load_report(engine: Engine, thread: str, run: str | None) -> Report:
    """Load the latest report, or that of one run. Where another run is under way, that is said."""
    await engine.threads.get(thread)
    active = [one for one in await engine.threads.runs(thread) if one.active]
    try:
        report = await engine.history.report(thread, run)
    except NotFoundError as error:
        asked = [one for one in active if run in (None, one.id)]
        if not asked:
            raise
        if asked[-1].status is RunStatus.WAITING:
            why, help = "it waits for an answer", f"Answer it: openassay review show {thread}"
        elif await engine.is_orphaned(thread, asked[-1].status):
            why, help = "the process that worked on it is gone", f"Resume it: openassay resume {thread}"
        else:
            why, help = "it is still being researched", f"Follow it: openassay threads follow {thread}"
        raise ThreadBusyError(f"thread {thread} has no report yet: {why}", help=help, retryable=True) from error
    if active and run is None:
        print_message("A later run on this thread has not ended: this is the report before it.")
    return report


async def warn_of_damage(engine: Engine, thread: str) -> None:
    """A report says what was checked when it was written; what it rests on may have been altered since."""
    try:
        await engine.check(thread)
    except (IntegrityError, EvidenceError) as error:
        print_message(f"Warning: {to_one_line(error.message)}")


def check_target(path: Path | None) -> None:
    """Refuse a file that cannot be written, or not in that format, before anything is researched."""
    if path is not None:
        check_place(path)
        get_file_format(path).need()


def check_place(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise PathError(f"{path} is a folder", help="Name a file in it for --out.")
    if not folder.is_dir():
        raise PathError(f"the folder of {path} does not exist", help="Create it or choose another --out.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PathError(f"{path} is not writable", help="Change its permissions or choose another --out.")


def deliver_report(report: Report, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        write_report(report, FORMATS["json"] if as_json else get_file_format(out), out)
    elif as_json:
        print_json(report)
    elif sys.stdout.isatty():
        show_report(report)
    else:
        typer.echo(report.markdown, nl=False)


def write_report(report: Report, format: ExportFormat, path: Path) -> None:
    """Write a report to a file, and say what the file cannot show."""
    content = format.write(report)
    with open_atomically(path, f"The report is kept: openassay threads show {report.provenance.thread}") as file:
        file.write(content)
    for caveat in format.caveats(report):
        print_message(caveat)
    typer.echo(f"Report written to {path}", err=True)
