"""The indexes of folders, where the settings want them. What opens all the rest takes seconds to import, this does
not."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from assay.errors import ConfigurationError, StorageError
from assay.settings import Settings
from assay.storage.database import Database
from assay.storage.libraries import FileLibraries, Libraries
from assay.storage.opening import database_address
from assay.storage.postgres import PostgresDatabase
from assay.storage.postgres_libraries import PostgresLibraries


class Shelf(NamedTuple):
    libraries: Libraries
    uploads: Path
    are_shared: bool  # with other machines


@contextmanager
def open_shelf(settings: Settings) -> Iterator[Shelf]:
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "persistence.backend is memory: an index would be gone at once", help="Set it to sqlite or postgres."
        )
    is_server = settings.persistence.backend == "postgres"
    with ExitStack() as stack:
        folder = private(settings.data_dir)
        database = stack.enter_context(PostgresDatabase(database_address(settings))) if is_server else None
        uploads = (folder / ("copies" if is_server else "uploads")).resolve()
        libraries = shelved(settings, folder, uploads, database)
        stack.callback(libraries.close)
        yield Shelf(libraries, uploads, isinstance(libraries, PostgresLibraries))


def shelved(settings: Settings, folder: Path, uploads: Path, database: Database | None) -> Libraries:
    """Words that are encrypted cannot be searched: where all that is shared is, indexes stay on this machine."""
    if isinstance(database, PostgresDatabase) and not settings.persistence.encrypt:
        return PostgresLibraries(database, uploads)
    return FileLibraries(folder / "libraries", uploads)


def private(folder: Path) -> Path:
    """Made where it is not there, and then nobody else's to read."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(
            f"cannot use the data directory {folder}: {error.strerror}",
            help="Set ASSAY_DATA_DIR to a folder you can write to.",
        ) from error
    return folder
