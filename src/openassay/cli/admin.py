"""`openassay admin`: the database, whether what is stored is what was written, users, and the graph."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openassay.cli import users
from openassay.cli.options import complete_thread, group, json_option
from openassay.cli.runtime import find_thread, run_with_engine
from openassay.cli.screen import print_json, print_message, to_one_line, wrap_line
from openassay.errors import UsageError, install_help
from openassay.settings import load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine
    from openassay.storage.database import Database

app = group("Look after the database, what is stored, and users.", no_args_is_help=True)
database = group("Show the database, bring it up to date, or move into it.", no_args_is_help=True)
app.add_typer(database, name="db")
app.add_typer(users.app, name="users")


@database.command()
def status(json: Annotated[bool, json_option("the status")] = False) -> None:
    """Show which database it is, its version, what is missing, sizes and connections. Changes nothing."""
    from openassay.engine.maintenance import has_queue, inspect_storage

    found = inspect_storage(load())
    if json:
        tables = [table._asdict() for table in found.tables]
        connections = found.connections._asdict() if found.connections else None
        return print_json({**found._asdict(), "tables": tables, "connections": connections, "queue": has_queue(found)})
    lines = {
        "database": found.database,
        "server": found.server,
        "schema": f"{found.applied[-1]} ({len(found.applied)} applied)" if found.applied else "none yet",
        "missing": f"{', '.join(found.pending)}: openassay admin db migrate" if found.pending else "nothing",
        "size": _format_size(found.bytes),
    }
    if found.connections:
        programs = ", ".join(f"{name} {count}" for name, count in found.connections.by_program.items())
        total = f"{sum(found.connections.by_program.values())} of {found.connections.most}"
        lines["queue"] = "ready for workers" if has_queue(found) else "not prepared: openassay admin db migrate"
        lines["connections"] = f"{total}: {programs}"
    for name, text in lines.items():
        typer.echo(wrap_line(f"{name:13}{text}", 13))
    if found.tables:
        typer.echo("")
    width = max((len(table.name) for table in found.tables), default=0)
    for table in found.tables:  # the server does not know how many rows one has that was never looked through
        rows = "" if table.rows is None else pluralize(table.rows, "row")
        size = "" if table.bytes is None else _format_size(table.bytes)
        typer.echo(f"  {table.name:{width}}  {rows:>14}  {size:>10}".rstrip())
    return None


def _format_size(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB"


@database.command()
def migrate() -> None:
    """Bring it up to this version, all or nothing, before workers and servers of this version start."""
    from openassay.engine.maintenance import migrate_storage

    messages = []

    def prepare_queue(database: Database) -> None:
        if find_spec("procrastinate") is None:  # without workers no queue is needed
            messages.append(f"There is no queue for workers, which need the extra `fleet`. {install_help('fleet')}")
            return
        from openassay.worker.queue import prepare_tables

        prepare_tables(database)
        messages.append("The queue of the workers is ready.")

    name, applied = migrate_storage(load(), prepare_queue)
    for message in (f"Applied: {', '.join(applied)}." if applied else f"{name} is up to date.", *messages):
        print_message(message)


@database.command()
def copy(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The data directory of the machine to copy from, which stays.")
    ],
) -> None:
    """Copy what one machine has stored into an empty PostgreSQL database: all or nothing."""
    from openassay.bootstrap import copy_to_postgres

    rows = asyncio.run(copy_to_postgres(load(), folder))
    print_message(f"{pluralize(rows, 'row')} copied. {folder} is unchanged; journals and folder indexes stay there.")


@app.command()
def check(
    thread: Annotated[str, typer.Argument(metavar="[THREAD]", show_default=False, autocompletion=complete_thread)] = "",
) -> None:
    """Check every stored row, of a thread or of all; exits with 1 where one is not what was written."""

    async def find_problems(engine: Engine) -> tuple[str, list[str]]:
        id = await find_thread(engine, thread)
        return id, await engine.archive.problems(id or None)

    id, found = run_with_engine(find_problems)
    for problem in found:
        typer.echo(to_one_line(problem))
    if found:
        print_message(f"{pluralize(len(found), 'problem')}. Restore a copy, or delete the thread and ask again.")
        raise typer.Exit(1)
    print_message(f"{f'Thread {id}' if id else 'Everything'} is what was written.")


@app.command()
def seal(
    encrypt: Annotated[
        bool | None, typer.Option("--encrypt/--no-encrypt", help="Encrypt as well; by default as the settings say.")
    ] = None,
) -> None:
    """Seal everything stored with OPENASSAY_STORAGE_KEY.

    The key before it, if there was one, is OPENASSAY_STORAGE_KEY_BEFORE."""
    from openassay.bootstrap import reseal_storage

    settings = load()
    keys = settings.keys
    if keys.openassay_storage_key is None and keys.openassay_storage_key_before is None:
        raise UsageError(
            "there is no key to seal with",
            help="Set OPENASSAY_STORAGE_KEY; to give a key up, set it as OPENASSAY_STORAGE_KEY_BEFORE instead.",
        )
    encrypts = settings.persistence.encrypt if encrypt is None else encrypt
    rows = asyncio.run(reseal_storage(settings, encrypt=encrypts))
    how = "with the key" if keys.openassay_storage_key else "without a key"
    print_message(f"{pluralize(rows, 'row')} sealed {how}{', encrypted' if encrypts else ''}.")
    if encrypts != settings.persistence.encrypt:
        print_message(f"Set persistence.encrypt to {str(encrypts).lower()} before anything else is done.")
    if keys.openassay_storage_key_before:
        print_message("OPENASSAY_STORAGE_KEY_BEFORE is not needed any more.")


@app.command()
def graph() -> None:
    """Draw the research graph as Mermaid."""
    from openassay.graph import draw_mermaid

    typer.echo(draw_mermaid())
