"""`assay watch`, with its options."""

from typing import Annotated

import typer

from assay.cli.parameters import ThreadId


def watch(thread: ThreadId, json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Read the sources of a report again: which statements rest on passages that have changed or vanished?"""
    from assay.cli.watching import watch

    watch(thread, json=json)
