"""`assay index`: folders made ready for questions."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.parameters import Json, Quiet


def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Folders or files.", show_default=False)
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make a vector of each passage, too: found by meaning, not only by words.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Files read at once; all processors unless said.", min=1, max=64)
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show what is indexed, and change nothing.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the index of each PATH; its files stay.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Index folders ahead of time. It can be stopped at any moment, and goes on where it was."""
    from assay.cli import indexing

    if status or not paths:
        indexing.status(paths or [], as_json=json)
    elif forget:
        indexing.forget(paths)
    else:
        indexing.index(paths, indexing.Wishes(vectors=vectors, jobs=jobs, json=json, quiet=quiet))
