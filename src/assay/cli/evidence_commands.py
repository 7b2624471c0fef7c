"""`assay bundle`, `verify` and `open`: a report that others can check, with its options."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.parameters import ThreadId

File = Annotated[Path, typer.Argument(metavar="FILE", help="A bundle: FILE.assay.")]


def bundle(
    thread: ThreadId,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="One of its runs; the last that is finished unless said.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write; THREAD.assay unless said.")
    ] = None,
    unsigned: Annotated[
        bool, typer.Option("--unsigned", help="Do not sign it with this data directory's key.")
    ] = False,
) -> None:
    """A report with everything it rests on in one file, which anybody can check: assay verify."""
    from assay.cli.bundling import bundle

    bundle(thread, run=run, out=out, unsigned=unsigned)


def verify(
    file: File,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="FINGERPRINT", help="Who must have signed it; or a file with the fingerprint."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Check every hash, passage and figure of a bundle again: offline, without a model, on any machine."""
    from assay.cli.verifying import verify

    verify(file, key=key, json=json)


def open_bundle(
    file: File,
    port: Annotated[int, typer.Option(metavar="N", help="0: any that is free.", min=0, max=65_535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say the address.")] = False,
) -> None:
    """Check a bundle, then show it in the web UI of this machine, to be looked at and nothing else."""
    from assay.cli.opening_bundle import open_bundle

    open_bundle(file, port=port, browser=not no_browser)
