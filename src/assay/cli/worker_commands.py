"""`assay worker`, with its options."""

from typing import Annotated

import typer


def worker(
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Runs it is at together.", min=1, max=200)
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop as soon as nothing waits and nothing is at work.")
    ] = False,
) -> None:
    """Work on runs that a server has put in line, until it is stopped; others go on with what was under way."""
    from assay.cli.working import work

    work(concurrency, until_idle=until_idle)
