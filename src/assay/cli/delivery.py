"""A finished report on its way out: onto the screen, into a pipe, or into a file."""

import os
import sys
from pathlib import Path

import typer

from assay.cli.screen import show_report, tell
from assay.errors import PathError
from assay.export.formats import FORMATS, Format, of_file
from assay.export.report import Report
from assay.export.whole import write_whole


def check_target(path: Path) -> None:
    """Before anything is researched: can the report be written there at all, and in that format?"""
    check_place(path)
    of_file(path).need()


def check_place(path: Path) -> None:
    folder = path.absolute().parent
    if path.is_dir():
        raise PathError(f"{path} is a folder", help="Name a file in it for --out.")
    if not folder.is_dir():
        raise PathError(f"the folder of {path} does not exist", help="Create it or choose another --out.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PathError(f"{path} may not be written", help="Change its permissions or choose another --out.")


def hand_over(report: Report, out: Path | None, *, as_json: bool) -> None:
    if out is not None:
        _write(report, out, as_json)
    elif as_json:
        # JSON is UTF-8 whatever the terminal speaks, and a quote in it must stay as it was read.
        typer.echo(report.model_dump_json(indent=2).encode())
    elif sys.stdout.isatty():
        show_report(report)
    else:
        typer.echo(report.markdown, nl=False)


def _write(report: Report, path: Path, as_json: bool) -> None:
    write_report(report, FORMATS["json"] if as_json else of_file(path), path)


def write_report(report: Report, format: Format, path: Path) -> None:
    """What the file cannot show is told."""
    content = format.write(report)
    try:
        write_whole(path, content)
    except OSError as error:
        shown = f"The report is kept: assay threads show {report.provenance.thread}"
        raise PathError(f"cannot write {path}: {error.strerror}", help=shown) from error
    for caveat in format.caveats(report):
        tell(caveat)
    typer.echo(f"Report written to {path}", err=True)
