"""`assay db ...`: the database everything is kept in."""

from pathlib import Path
from typing import Annotated

import typer

from assay.cli.parameters import Json

db_app = typer.Typer(
    help="The database: how it stands, bringing it up to date, and moving into it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@db_app.command("status")
def db_status(json: Json = False) -> None:
    """Which database, its version, what is missing, the size of its tables, and who is connected. Changes nothing."""
    from assay.cli.database import status

    status(json)


@db_app.command("migrate")
def db_migrate() -> None:
    """Bring it up to this version, all or nothing: before workers and servers of this version are started."""
    from assay.cli.database import migrate

    migrate()


@db_app.command("copy")
def db_copy(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The data directory of the machine to copy from, which stays.")
    ],
) -> None:
    """Everything one machine has kept so far, into the empty PostgreSQL database of the settings: all or nothing."""
    from assay.cli.database import copy

    copy(folder)
