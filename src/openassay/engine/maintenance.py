"""The database of the settings, looked at and brought up to date, for whoever looks after it."""

from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from openassay.bootstrap import open_rows
from openassay.errors import IntegrityError, OpenAssayError
from openassay.graph import draw_mermaid
from openassay.llm.names import ModelServer, find_model_servers
from openassay.settings import Settings
from openassay.storage.admin import DATABASE_FILE, ConnectionCounts, Inspection, inspect_database, open_database
from openassay.storage.database import Database
from openassay.storage.index_store import make_private_folder
from openassay.storage.integrity import SqlIntegrity
from openassay.storage.postgres import PostgresDatabase, apply_migrations

__all__ = [
    "ConnectionCounts",
    "Database",
    "Inspection",
    "ModelServer",
    "create_data_dir",
    "describe_database",
    "draw_mermaid",
    "find_model_servers",
    "has_database",
    "has_queue",
    "inspect_storage",
    "migrate_storage",
    "open_server_database",
]

QUEUE = "queue_migrations"  # a table that is there once the queue was prepared


def create_data_dir(settings: Settings) -> Path:
    """Make the data directory where there is none, readable by nobody else."""
    return make_private_folder(settings.data_dir)


def has_database(settings: Settings) -> bool:
    return settings.persistence.backend != "sqlite" or (settings.data_dir / DATABASE_FILE).exists()


def inspect_storage(settings: Settings) -> Inspection:
    """Look at the database as it stands; nothing is changed."""
    with open_database(settings) as database:
        return inspect_database(database)


def has_queue(found: Inspection) -> bool:
    return any(table.name == QUEUE for table in found.tables)


def migrate_storage(settings: Settings, prepare_queue: Callable[[Database], None]) -> tuple[str, list[str]]:
    """Apply what is missing, and prepare the workers' queue on a server. Returns the name and what was applied."""
    with open_database(settings, make=True) as database:
        if not isinstance(database, PostgresDatabase):
            return database.name, list(database.migrate())
        applied = list(apply_migrations(database))
        prepare_queue(database)
        return database.name, applied


def open_server_database(settings: Settings, stack: AsyncExitStack) -> Database | None:
    """Open the PostgreSQL database of the settings, if they name one that answers."""
    if settings.persistence.backend == "postgres":
        with suppress(OpenAssayError):
            return open_rows(settings, settings.data_dir, stack)[0].database
    return None


async def describe_database(settings: Settings) -> str:
    """Look into every row, which takes about 2 ms a thread, and say how the database is sealed."""
    async with AsyncExitStack() as stack:
        rows, _ = open_rows(settings, settings.data_dir, stack)
        with rows.database.connection() as connection:
            schema = connection.execute("SELECT max(version) AS version FROM schema_migrations").fetchone()["version"]
        if problems := await SqlIntegrity(rows).problems():
            more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
            raise IntegrityError(f"{problems[0]}{more}", help="See them all with: openassay admin check")
    sealed = "sealed with the key" if rows.seals.keyed else "sealed without a key"
    encrypted = "encrypted" if rows.seals.encrypts else "not encrypted"
    return f"{rows.database.name}, {settings.persistence.backend}, schema {schema}, {sealed}, {encrypted}"
