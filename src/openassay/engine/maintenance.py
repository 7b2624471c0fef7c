"""Maintenance of the database and the indexes of the settings: inspected, migrated and cleaned up."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from openassay.errors import IntegrityError, NotFoundError, OpenAssayError, PathError, StorageError
from openassay.fetch.documents import LocalFileReader, walk_folder
from openassay.models.evidence import Company
from openassay.protocols import DocumentFolder, IndexCounts, IndexProgress, IndexUpdate
from openassay.search.index_builder import add_vectors, synchronise
from openassay.settings import Settings, load
from openassay.storage.admin import DATABASE_FILE, Inspection, inspect_database, open_database
from openassay.storage.database import Database
from openassay.storage.index_catalog import IndexStore, IndexSummary, open_index_store
from openassay.storage.integrity import SqlIntegrity
from openassay.storage.uploads import public_address

# Indexes of folders that a person makes ahead of questions, shows and deletes.

Watch = Callable[[IndexProgress], None]


def build_file_reader(settings: Settings, uploads: Path) -> LocalFileReader:
    return LocalFileReader(
        max_bytes=settings.reading.max_file_mb * 1_000_000,
        pdf_seconds=settings.reading.pdf_seconds,
        address=partial(public_address, folder=uploads),
    )


def scan_folder(path: Path) -> DocumentFolder:
    root = path.resolve()  # one folder, one index, however it was spelt
    found = walk_folder(root)
    return DocumentFolder(root, found.files, found.skipped)


class IndexResult(NamedTuple):
    folder: DocumentFolder
    indexed: IndexUpdate
    holdings: IndexCounts
    seconds: float


@contextmanager
def open_folder_indexes(settings: Settings) -> Iterator["FolderIndexes"]:
    with open_index_store(settings) as store:
        yield FolderIndexes(settings, store)


class FolderIndexes:
    def __init__(self, settings: Settings, store: IndexStore) -> None:
        self._settings = settings
        self._store = store

    @property
    def notice(self) -> str:
        """What a person must know about where indexes are kept."""
        if self._settings.persistence.backend != "postgres" or self._store.are_shared:
            return ""
        return "persistence.encrypt is set, so the index stays on this machine, in the clear."

    def update(
        self, folder: DocumentFolder, *, jobs: int | None, watch: Watch, watch_vectors: Watch | None = None
    ) -> IndexResult:
        """Bring the index of a folder up to date, and keep it; with vectors, too, if their progress is watched."""
        began = time.monotonic()
        index = self._store.libraries.open(folder.root)
        with index.lock_updates(wait=0) as mine:
            if not mine:
                raise StorageError(
                    f"{folder.root} is being indexed by another process",
                    help="Wait for it to end; or stop it, and this one goes on where it was.",
                    retryable=True,
                )
            reader = build_file_reader(self._settings, self._store.uploads)
            found = synchronise(folder, index, reader, jobs=jobs, watch=watch)
            if not found.files:
                path, reason = found.skipped[0]
                raise PathError(
                    f"{folder.root}: no document could be read, such as {Path(path).name} ({reason})",
                    help="Give a folder with .md .txt .html .pdf .docx or .csv files.",
                )
            self._store.libraries.keep(folder.root)
            notices = []
            if watch_vectors is not None:
                from openassay.text.embeddings import MiniLM

                if refusal := index.vector_problem():
                    notices = [f"No vectors were made, so passages are found by their words alone: {refusal}."]
                elif add_vectors(index, MiniLM(threads=jobs), watch=watch_vectors):
                    index.optimize()
        return IndexResult(folder, found._replace(notices=notices), index.count_contents(), time.monotonic() - began)

    def list(self) -> list[IndexSummary]:
        return self._store.libraries.all()

    def forget(self, roots: Sequence[Path]) -> None:
        """Delete the indexes of folders, or none of them where one is not indexed."""
        known = {index.root for index in self.list()}
        for root in roots:
            if str(root) not in known:
                raise NotFoundError(f"{root} is not indexed", help="See what is: openassay sources index --status")
        for root in roots:
            with self._store.libraries.open(root).lock_updates(wait=0) as mine:
                if not mine:
                    raise StorageError(f"{root} is being indexed by another process", help="Stop that first.")
                self._store.libraries.forget({root}, kept=True)


QUEUE = "queue_migrations"  # a table that is there once the queue was prepared


def has_database(settings: Settings) -> bool:
    return settings.persistence.backend != "sqlite" or (settings.data_dir / DATABASE_FILE).exists()


def inspect_storage(settings: Settings) -> Inspection:
    """Look at the database as it stands; nothing is changed."""
    with open_database(settings) as database:
        return inspect_database(database)


def has_queue(found: Inspection) -> bool:
    return any(table.name == QUEUE for table in found.tables)


def migrate_storage(
    settings: Settings, prepare_queue: Callable[[Database], None] = lambda database: None
) -> tuple[str, list[str]]:
    """Apply what is missing, then prepare the workers' queue. Returns the name and what was applied."""
    with open_database(settings, make=True) as database:
        applied = database.migrate()
        prepare_queue(database)
        return database.name, applied


def open_server_database(settings: Settings, stack: AsyncExitStack) -> Database | None:
    """Open the PostgreSQL database of the settings, if they name one that answers."""
    if settings.persistence.backend == "postgres":
        with suppress(OpenAssayError):
            from openassay.bootstrap import open_rows

            return open_rows(settings, settings.data_dir, stack)[0].database
    return None


async def describe_database(settings: Settings) -> str:
    """Look into every row, which takes about 2 ms a thread, and say how the database is sealed."""
    async with AsyncExitStack() as stack:
        from openassay.bootstrap import open_rows

        rows, _ = open_rows(settings, settings.data_dir, stack)
        schema = rows.database.query_one("SELECT max(version) AS version FROM schema_migrations")["version"]
        if problems := await SqlIntegrity(rows).problems():
            more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
            raise IntegrityError(f"{problems[0]}{more}", help="See them all with: openassay admin check")
    sealed = "sealed with the key" if rows.seals.keyed else "sealed without a key"
    encrypted = "encrypted" if rows.seals.encrypts else "not encrypted"
    return f"{rows.database.name}, {settings.persistence.backend}, schema {schema}, {sealed}, {encrypted}"


MAX_RECENT = 50  # threads that a shell completes
_RECENT = "SELECT id, title FROM threads WHERE owner = ? ORDER BY updated DESC LIMIT ?"


def list_recent_threads() -> list[tuple[str, str]]:
    """List the newest threads of the user in the settings' SQLite database, with their titles unless encrypted. A shell
    completes them, so where there is nothing it is silent."""
    try:
        settings = load()
        if settings.persistence.backend != "sqlite":  # asking a server takes longer than a person waits for a Tab
            return []
        with open_database(settings) as database:
            rows = database.query(_RECENT, (settings.user, MAX_RECENT))
        return [(row["id"], "" if settings.persistence.encrypt else " ".join(row["title"].split())) for row in rows]
    except (OpenAssayError, sqlite3.Error, OSError):
        return []


# What this machine has besides.


def find_company(name: str) -> tuple[Company | None, list[Company]]:
    """Return the company a name stands for, or else those that it may stand for."""
    from openassay.companies.register import open_companies

    register = open_companies()
    found = register.resolve(name)
    return found, [] if found else register.candidates(name)


async def list_model_servers() -> list[str]:
    """List servers on this machine that could do the thinking, and how to use them."""
    from openassay.llm.names import find_model_servers

    offers = []
    for server in await find_model_servers():
        address = "" if server.kind == "ollama" else f"OPENASSAY_LLM__BASE_URL={server.url} "
        use = f"use it with {address}OPENASSAY_LLM__MODEL={server.kind}:{server.models[0]}" if server.models else ""
        offers.append(f"{server.kind} at {server.url}: {use or 'no model loaded'}")
    return offers
