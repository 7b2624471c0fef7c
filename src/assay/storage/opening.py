"""The database of the settings, as it stands. What opens all the rest takes seconds to import; this does not."""

from collections.abc import Iterator
from contextlib import contextmanager

from assay.errors import ConfigurationError, NotFoundError
from assay.settings import Settings
from assay.storage.postgres import PostgresDatabase
from assay.storage.sqlite import SqliteDatabase

FILE = "assay.sqlite3"  # in the data directory


@contextmanager
def open_database(settings: Settings, *, make: bool = False) -> Iterator[PostgresDatabase | SqliteDatabase]:
    """Nothing is applied to it. NotFoundError where there is none yet, unless it is to be made."""
    if settings.persistence.backend == "postgres":
        with PostgresDatabase(database_address(settings), migrate=False) as server:
            yield server
        return
    if settings.persistence.backend == "memory":
        raise ConfigurationError("persistence.backend is memory: there is no database", help="Set it to another.")
    path = settings.data_dir / FILE
    is_new = not path.exists()
    if is_new and not make:
        raise NotFoundError(f"there is no database {path} yet", help="The first question makes one.")
    with SqliteDatabase(path, migrate=is_new) as file:
        yield file


def database_address(settings: Settings) -> str:
    url = settings.keys.database_url
    address = settings.persistence.connection_string or (url.get_secret_value() if url else None)
    if address is None:
        raise ConfigurationError(
            "persistence.backend is postgres and no database is named",
            help="Set DATABASE_URL, as in postgresql://user:password@host/assay.",
        )
    return address
