"""`assay db`: the database as it stands, and brought up to this version."""

import asyncio
import json as jsonlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import typer

from assay.cli.lines import fitted
from assay.cli.screen import tell
from assay.errors import install
from assay.settings import load
from assay.storage.inspection import Connections, Inspection, TableSize, inspect
from assay.storage.opening import open_database
from assay.storage.postgres import PostgresDatabase
from assay.storage.upgrade import migrate as upgrade
from assay.text.words import counted
from assay.worker.schema import prepare

QUEUE = "queue_migrations"  # a table that is there once the queue was prepared


def status(as_json: bool) -> None:
    with open_database(load()) as database:
        found = inspect(database)
    if as_json:
        typer.echo(jsonlib.dumps(_plain(found), indent=2))
        return
    for name, text in _lines(found):
        typer.echo(fitted(f"{name:13}{text}", 13))
    for line in _table(found.tables):
        typer.echo(line)


def migrate() -> None:
    with open_database(load(), make=True) as database:
        done = upgrade(database) if isinstance(database, PostgresDatabase) else database.migrate()
        tell(f"Applied: {', '.join(done)}." if done else f"{database.name} is up to date.")
        if isinstance(database, PostgresDatabase):
            _prepare_queue(database)


def copy(folder: Path) -> None:
    from assay.upkeep import copy_from

    rows = asyncio.run(copy_from(load(), folder))
    tell(f"{counted(rows, 'row')} copied. {folder} is as it was; journals and indexes of folders stay there.")


def _prepare_queue(database: PostgresDatabase) -> None:
    """Who has no workers needs no queue."""
    if find_spec("procrastinate") is None:
        tell(f"There is no queue for workers, which need the extra `fleet`. {install('fleet')}")
        return
    prepare(database)
    tell("The queue of the workers is ready.")


def _plain(found: Inspection) -> dict[str, object]:
    return {
        **found._asdict(),
        "tables": [table._asdict() for table in found.tables],
        "connections": found.connections._asdict() if found.connections else None,
        "queue": _has_queue(found),
    }


def _lines(found: Inspection) -> list[tuple[str, str]]:
    missing = f"{', '.join(found.pending)}: assay db migrate" if found.pending else "nothing"
    lines = [
        ("database", found.database),
        ("server", found.server),
        ("schema", f"{found.applied[-1]} ({len(found.applied)} applied)" if found.applied else "none yet"),
        ("missing", missing),
        ("size", _size(found.bytes)),
    ]
    if found.connections:
        lines.append(("queue", "ready for workers" if _has_queue(found) else "not prepared: assay db migrate"))
        lines.append(("connections", _connected(found.connections)))
    return lines


def _has_queue(found: Inspection) -> bool:
    return any(table.name == QUEUE for table in found.tables)


def _connected(connections: Connections) -> str:
    programs = ", ".join(f"{name} {count}" for name, count in connections.by_program.items())
    return f"{sum(connections.by_program.values())} of {connections.most}: {programs}"


def _table(tables: Sequence[TableSize]) -> list[str]:
    """The largest first. Of one that was never looked through the server does not know how many rows it has."""
    width = max((len(table.name) for table in tables), default=0)
    rows = [
        f"  {table.name:{width}}  {'' if table.rows is None else counted(table.rows, 'row'):>14}"
        f"  {'' if table.bytes is None else _size(table.bytes):>10}".rstrip()
        for table in tables
    ]
    return ["", *rows] if rows else []


def _size(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB"
