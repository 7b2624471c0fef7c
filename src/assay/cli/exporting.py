"""`assay export`: which report it is, where it goes, and what is refused."""

import asyncio
import sys
from pathlib import Path

import typer

from assay.bootstrap import open_engine
from assay.cli import threads
from assay.cli.delivery import check_place, write_report
from assay.cli.finished import finished
from assay.cli.lines import one_line
from assay.cli.screen import tell
from assay.errors import PathError, UsageError
from assay.export.filename import stem
from assay.export.formats import FORMATS, ZIP, Format, named, of_file
from assay.export.report import Report
from assay.settings import load

STDOUT = "-"


def export(thread: str, name: str | None, run: str | None, out: str | None, *, force: bool) -> None:
    """What can be refused is refused before anything is read or made."""
    target = None if out in (None, STDOUT) else Path(str(out))
    if name == ZIP:
        _export_all(thread, run, out, target, force)
        return
    format = _format(name, target)
    format.need()
    if target is not None:
        _refuse_target(target, force)
    if out == STDOUT:
        _refuse_bytes(format)
    report = asyncio.run(_found(thread, run))
    if out == STDOUT:
        _print(report, format)
        return
    if target is None:
        target = Path(f"{stem(report.title)}{format.ending}")
        _refuse_target(target, force)
    write_report(report, format, target)


def _export_all(thread: str, run: str | None, out: str | None, target: Path | None, force: bool) -> None:
    """As `assay threads export`."""
    if run is not None or out == STDOUT:
        what = "--run" if run is not None else "--out -"
        raise UsageError(f"{what} is not for zip, which has all of a thread", help="Name a file: --out FILE.zip")
    target = target or Path(f"{thread}.zip")
    _refuse_target(target, force)
    threads.export(thread, target)


def _format(name: str | None, target: Path | None) -> Format:
    if name is not None:
        return named(name.lower())
    return FORMATS["md"] if target is None else of_file(target)


def _refuse_target(path: Path, force: bool) -> None:
    check_place(path)
    if path.is_file() and not force:
        raise PathError(f"{path} exists", help="Choose another --out, or replace it with --force.")


def _refuse_bytes(format: Format) -> None:
    if not format.is_text and sys.stdout.isatty():
        raise UsageError(f"{format.name} is nothing a terminal can show", help="Name a file: --out FILE")


def _print(report: Report, format: Format) -> None:
    content = format.write(report)
    for caveat in format.caveats(report):
        tell(caveat)
    if sys.stdout.isatty():  # which would obey what sources have written
        lines = content.decode().replace("\r\n", "\n").split("\n")
        typer.echo("\n".join(map(one_line, lines)), nl=False)
    else:
        typer.echo(content, nl=False)


async def _found(thread: str, run: str | None) -> Report:
    async with open_engine(load()) as engine:
        report = await finished(engine, thread, run)
        if damage := await threads.damage(engine, thread):
            tell(f"Careful: {one_line(damage)}")
        return report
