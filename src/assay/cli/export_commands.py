"""`assay export`: a report as a file for elsewhere."""

from typing import Annotated

import typer

from assay.cli.parameters import ThreadId


def export(
    thread: ThreadId,
    format: Annotated[
        str | None,
        typer.Option(
            "--format", "-f", metavar="NAME", show_default=False,
            help="md, obsidian, quarto, html, pdf, docx, json, bibtex, ris, csl, csv, or zip (everything of the "
            "thread); unless said, what the ending of --out says, else md.",
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the latest report unless said.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Where to; - is stdout. Named after the report unless said."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
) -> None:  # fmt: skip
    """Write a thread's report to a file: for a paper, a memo, a vault, a reference manager."""
    from assay.cli.exporting import export

    export(thread, format, run, out, force=force)
