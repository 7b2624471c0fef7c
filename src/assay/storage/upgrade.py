"""Bringing a PostgreSQL database to the schema of this version: all of it, or nothing."""

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from assay.errors import ConfigurationError
from assay.storage.database import Connection
from assay.storage.dialect import Translated, line
from assay.storage.migrating import POSTGRES, Migration, applied, note, read, version

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

    from assay.storage.postgres import PostgresDatabase

OLDEST = 14  # of PostgreSQL, that this was tried with
WAIT_SECONDS = 600  # for another process that does the same, and for whoever has a table in use
_MIGRATING = 7_301_226  # the advisory lock of whoever migrates
# A server learns that the process is gone while it works on a long statement. Not on every system it runs on.
_NOTICE = b"SET client_connection_check_interval = '1s'"


def pending(database: "PostgresDatabase") -> list[Migration]:
    """What is missing; ConfigurationError where the database is of a newer version, or of somebody else."""
    known = read(POSTGRES.migrations)
    with database.connection() as connection:
        return known[_version(database.name, connection, known) :]


def migrate(database: "PostgresDatabase") -> list[str]:
    """Apply what is missing, in one transaction; the names of what it was. Of several who want to, one does it.
    Whatever ends it in the middle leaves the database as it was."""
    import psycopg

    if not pending(database):
        return []
    with database.translating(), closing(database.session()) as session:
        _check_server(database.name, session)
        with suppress(psycopg.Error):
            session.execute(_NOTICE)
        try:
            with session.transaction():
                return _applied(database.name, session)
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConfigurationError(
                f"{database.name} is to be brought up to date, and this user may not: {line(error)}",
                help="Run `assay db migrate` as the owner of its tables, or GRANT it to this user.",
            ) from error


def _applied(name: str, session: "PsycopgConnection[Any]") -> list[str]:
    from psycopg.rows import dict_row

    session.row_factory = dict_row
    connection, known = Translated(session), read(POSTGRES.migrations)
    connection.execute(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
    connection.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
    missing = known[_version(name, connection, known) :]  # another process may have been faster
    for migration in missing:
        connection.execute(migration.sql)
        note(connection, migration)
    return [migration.name for migration in missing]


def _check_server(name: str, session: "PsycopgConnection[Any]") -> None:
    if session.info.server_version < OLDEST * 10_000:
        raise ConfigurationError(
            f"{name} is PostgreSQL {session.info.server_version // 10_000}", help=f"Use version {OLDEST} or newer."
        )
    encoding = session.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ConfigurationError(
            f"{name} holds text as {encoding}", help="Create it with ENCODING 'UTF8' TEMPLATE template0."
        )


def _version(name: str, connection: Connection, known: list[Migration]) -> int:
    kept = connection.execute("SELECT to_regclass('schema_migrations') AS kept").fetchone()["kept"]
    return version(name, applied(connection) if kept else [], known)
