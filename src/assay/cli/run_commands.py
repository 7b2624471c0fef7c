"""`assay follow` and `assay stop`: runs that another process may work on."""

from typing import Annotated

import typer

from assay.cli.parameters import Json, Out, Quiet, ThreadId


def follow(
    thread: ThreadId,
    new: Annotated[bool, typer.Option("--new", help="Only what happens from now on.")] = False,
    json: Json = False,
    out: Out = None,
    quiet: Quiet = False,
) -> None:
    """Show how a run goes, in whatever process, and then its report. Ctrl-C leaves the run alone."""
    from assay.cli.follow import follow
    from assay.cli.research import Wishes

    follow(thread, Wishes(out=out, json=json, quiet=quiet), new=new)


def stop(
    thread: ThreadId,
    drain: Annotated[bool, typer.Option("--drain", help="Let it end the step it is at.")] = False,
) -> None:
    """Stop a run, whatever process works on it. It can be resumed."""
    from assay.cli.stop import stop

    stop(thread, drain=drain)
