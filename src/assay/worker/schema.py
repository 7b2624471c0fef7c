"""The tables of the queue, which are Procrastinate's: made beside ours, and brought up to what its package says."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.util import find_spec
from typing import NamedTuple

from assay.errors import ConfigurationError, install
from assay.settings import Settings
from assay.storage.database import Connection, Database
from assay.storage.postgres import PostgresDatabase

_PREPARING = 7_301_240  # the advisory lock of whoever does this
_NOTES = """
CREATE TABLE IF NOT EXISTS queue_migrations (name TEXT PRIMARY KEY, applied TIMESTAMPTZ NOT NULL DEFAULT now())
"""
_NOTE = "INSERT INTO queue_migrations (name) VALUES (?)"
_IS_THERE = "SELECT to_regclass(?) IS NOT NULL AS there"
# Before the server has counted the rows of a queue of 2,000, a job was found in 400 ms without this, in 10 ms with it.
_BY_LOCK = "CREATE INDEX queue_by_lock ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing')"
# When the last sweep was: twenty workers sweep no more often than one.
_SWEEPS = """
CREATE TABLE queue_sweeps (at TIMESTAMPTZ NOT NULL);
INSERT INTO queue_sweeps VALUES (to_timestamp(0))
"""


class _Step(NamedTuple):
    name: str
    sql: str


def prepare_queue(address: str) -> None:
    """In the database at this address. Doing it twice, or from two processes at once, changes nothing more."""
    with PostgresDatabase(address, connections=1) as database:
        prepare(database)


def prepare(database: Database) -> None:
    """As `prepare_queue`, where the database is open already."""
    refuse_without_procrastinate()
    while _advanced(database):
        pass


def check_fleet(settings: Settings) -> None:
    """ConfigurationError where these settings do not allow for workers."""
    if settings.persistence.backend != "postgres":
        raise ConfigurationError(
            f"workers need a PostgreSQL database, and persistence.backend is {settings.persistence.backend}",
            help="Set persistence.backend to postgres and DATABASE_URL to its address (docs/howto/fleet.md).",
        )
    refuse_without_procrastinate()


def refuse_without_procrastinate() -> None:
    if find_spec("procrastinate") is None:
        raise ConfigurationError("workers need the extra `fleet`", help=install("fleet"))


def _advanced(database: Database) -> bool:
    """One step, in a transaction of its own: whether there may be another."""
    known = list(_steps())
    with database.transaction() as connection:
        connection.execute("SELECT pg_advisory_xact_lock(?)", (_PREPARING,))
        had = _had(database, connection)
        if unknown := had - {step.name for step in known}:
            raise ConfigurationError(
                f"the queue of {database.name} was prepared by a newer Assay ({min(unknown)})",
                help="Upgrade this process, or name another database.",
            )
        missing = [step for step in known if step.name not in had]
        if missing:
            connection.execute(missing[0].sql)
            connection.execute(_NOTE, (missing[0].name,))
        return len(missing) > 1


def _had(database: Database, connection: Connection) -> set[str]:
    """The names of the steps that were done. Where there is no queue yet, all of Procrastinate's are done at once."""
    if not _is_there(connection, "queue_migrations"):
        if _is_there(connection, "procrastinate_jobs"):
            raise ConfigurationError(
                f"{database.name} holds a queue of another program", help="Name a database of Assay's own."
            )
        connection.execute(_sql("schema.sql"))
        connection.execute(_NOTES)
        for step in _theirs():
            connection.execute(_NOTE, (step.name,))
    return {row["name"] for row in connection.execute("SELECT name FROM queue_migrations").fetchall()}


def _is_there(connection: Connection, table: str) -> bool:
    return bool(connection.execute(_IS_THERE, (table,)).fetchone()["there"])


def _steps() -> Iterator[_Step]:
    yield from _theirs()
    yield _Step("assay_01_by_lock", _BY_LOCK)
    yield _Step("assay_02_sweeps", _SWEEPS)


def _theirs() -> Iterator[_Step]:
    """Its migrations, in the order of the versions they are named by."""
    folder = files("procrastinate") / "sql" / "migrations"
    for name in sorted(item.name for item in folder.iterdir() if item.name.endswith(".sql")):
        yield _Step(name.removesuffix(".sql"), _sql(f"migrations/{name}"))


def _sql(name: str) -> str:
    return (files("procrastinate") / "sql" / name).read_text(encoding="utf-8")
