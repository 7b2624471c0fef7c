"""The indexes of folders, one per folder, so that folders never mix and one can be deleted.

FileIndexCatalog        libraries/INDEX.sqlite3         of a folder
                        libraries/OWNER/INDEX.sqlite3   of the uploads that a run was given, together
PostgresIndexCatalog    rows of the database, for every machine
"""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from openassay.errors import ConfigurationError, StorageError
from openassay.models.user import SCHEME
from openassay.protocols import IndexCounts
from openassay.settings import Settings
from openassay.storage.admin import database_address
from openassay.storage.database import Database
from openassay.storage.index_postgres import PathKeys, PostgresIndex, Stems
from openassay.storage.index_sqlite import SqliteIndex
from openassay.storage.postgres import PostgresDatabase

OLD_DATABASES = ("assay.sqlite3", "assay.db")  # in data directories of version 0.1
ROOT, KEPT = "root", "kept"  # properties of an index
_SUFFIX = ".sqlite3"


class IndexSummary(NamedTuple):
    root: str  # empty in one that was made before indexes knew their folder
    holdings: IndexCounts
    bytes: int
    updated: datetime
    machine: str = ""  # that has indexed it, where that may be another
    kept: bool = False  # until a person deletes it; the others go with the last thread that uses them


class FileIndexCatalog:
    """Indexes in files. One is open as long as something refers to it: a hundred unused ones would hold a thousand
    files open, one connection for each thread that has ever used them."""

    def __init__(self, folder: Path, uploads: Path) -> None:
        self._folder = folder
        self._uploads = uploads
        self._opened: WeakValueDictionary[Path, SqliteIndex] = WeakValueDictionary()
        self._lock = Lock()

    def open(self, root: Path) -> SqliteIndex:
        file = self._file(root)
        with self._lock:
            index = self._opened.get(file)
            if index is None:
                index = self._opened[file] = SqliteIndex(file)
        index.set_property(ROOT, str(root))
        return index

    def find_remote(self, root: Path) -> IndexSummary | None:
        return None

    def keep(self, root: Path) -> None:
        """Keep an index that a person has made on purpose when no thread uses it any more."""
        self.open(root).set_property(KEPT, "yes")

    def forget(self, roots: set[Path], *, kept: bool = False) -> None:
        """Delete the indexes of folders, and those of several uploads that one of them is among; permanent ones only
        with `kept`."""
        with self._lock:
            for root in roots:
                own = self._file(root)
                for file in own.parent.glob(f"*{_SUFFIX}") if root.is_relative_to(self._uploads) else [own]:
                    if file.exists() and self._is_forgotten(file, root, kept):
                        self._delete(file)

    def all(self) -> list[IndexSummary]:
        """Describe the indexes of folders, not of uploads."""
        return [self._describe(file) for file in sorted(self._folder.glob(f"*{_SUFFIX}"))]

    def close(self) -> None:
        with self._lock:
            for index in list(self._opened.values()):
                index.close()

    def _file(self, root: Path) -> Path:
        name = hashlib.sha256(str(root).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        is_upload = root.is_relative_to(self._uploads)
        return (self._folder / root.parent.name if is_upload else self._folder) / f"{name}{_SUFFIX}"

    def _is_forgotten(self, file: Path, root: Path, kept: bool) -> bool:
        """Return whether an index goes with a folder or an upload that it is of; a damaged one does, and is rebuilt."""
        try:
            with self._open_file(file) as index:
                if KEPT in index.properties() and not kept:
                    return False
                return file == self._file(root) or any(Path(path).is_relative_to(root) for path in index.stamps())
        except StorageError:
            return True

    def _describe(self, file: Path) -> IndexSummary:
        with self._open_file(file) as index:
            about, holdings = index.properties(), index.count_contents()
        size = sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))
        updated = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        return IndexSummary(about.get(ROOT, ""), holdings, size, updated, kept=KEPT in about)

    @contextmanager
    def _open_file(self, file: Path) -> Iterator[SqliteIndex]:
        if (index := self._opened.get(file)) is not None:
            yield index
            return
        with SqliteIndex(file) as index:
            yield index

    def _delete(self, file: Path) -> None:
        if index := self._opened.pop(file, None):
            index.close()
        for part in file.parent.glob(f"{file.name}*"):
            part.unlink(missing_ok=True)


_ALL = "SELECT id, root, machine, updated, kept, passages FROM libraries"
_CONTAINING = """
SELECT id FROM libraries WHERE root >= ? AND root < ?
AND EXISTS (SELECT 1 FROM library_files WHERE library = id AND path >= ? AND path < ?)
"""
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(relation)), 0) AS size, (SELECT sum(passages) FROM libraries) AS passages
FROM unnest(ARRAY[
    to_regclass('library_passages'), to_regclass('library_documents'), to_regclass('library_files'),
    to_regclass('library_words'), to_regclass('library_vectors')
]) AS relation WHERE relation IS NOT NULL
"""


class PostgresIndexCatalog:
    """Indexes in a PostgreSQL database, for every machine that uses it."""

    def __init__(self, database: PostgresDatabase, uploads: Path) -> None:
        self._database = database
        self._names = PathKeys(uploads)
        self._stems = Stems()

    def open(self, root: Path) -> PostgresIndex:
        return PostgresIndex(self._database, root, self._names, self._stems)

    def find_remote(self, root: Path) -> IndexSummary | None:
        """Describe what another machine has indexed of a folder that is not here."""
        row = self._database.query_one(f"{_ALL} WHERE root = ?", (self._names.key(str(root)),))
        found = self._describe(row) if row else None
        return found if found and found.holdings.files else None

    def keep(self, root: Path) -> None:
        with self._database.transaction() as connection:
            connection.execute("UPDATE libraries SET kept = 1 WHERE root = ?", (self._names.key(str(root)),))

    def forget(self, roots: set[Path], *, kept: bool = False) -> None:
        for root in roots:
            for library in self._find_ids(self._names.key(str(root)), kept):
                self._delete(library)

    def all(self) -> list[IndexSummary]:
        rows = self._database.query(f"{_ALL} ORDER BY root")
        return [self._describe(row) for row in rows if not row["root"].startswith(SCHEME.encode())]

    def close(self) -> None:
        """Do nothing: the database is closed by its owner."""

    def _describe(self, row: Any) -> IndexSummary:
        """Describe an index; its size is its share of what all indexes take."""
        root, taken = self._names.path(row["root"]), self._database.query_one(_SIZE)
        size = round(int(taken["size"]) * row["passages"] / max(int(taken["passages"] or 0), 1))
        holdings, updated = self.open(Path(root)).count_contents(), datetime.fromisoformat(row["updated"])
        return IndexSummary(root, holdings, size, updated, row["machine"], bool(row["kept"]))

    def _find_ids(self, root: bytes, kept: bool) -> list[int]:
        """Return the index of a folder and, of an upload, those of its owner that it is in."""
        found = self._database.query("SELECT id FROM libraries WHERE root = ? AND kept <= ?", (root, kept))
        if root.startswith(SCHEME.encode()):
            owner = root.rpartition(b"/")[0]
            found += self._database.query(_CONTAINING, (*_prefix_range(owner), *_prefix_range(root)))
        return list(dict.fromkeys(row["id"] for row in found))

    def _delete(self, library: int) -> None:
        with self._database.transaction() as connection:
            connection.execute(f"DROP INDEX IF EXISTS library_vectors_{library}")  # the vectors go with their passages
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM libraries WHERE id = ?", (library,))
            bounds = (f"{library}.", f"{library}/")  # what follows the full stop
            connection.execute("DELETE FROM library_words WHERE word >= ? AND word < ?", bounds)


def _prefix_range(path: bytes) -> tuple[bytes, bytes]:
    """Return the bounds of all paths below a path: 0 follows the slash."""
    return path + b"/", path + b"0"


IndexCatalog = FileIndexCatalog | PostgresIndexCatalog


class IndexStore(NamedTuple):
    libraries: IndexCatalog
    uploads: Path
    are_shared: bool  # with other machines


@contextmanager
def open_index_store(settings: Settings) -> Iterator[IndexStore]:
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "persistence.backend is memory: an index would be gone at once", help="Set it to sqlite or postgres."
        )
    is_server = settings.persistence.backend == "postgres"
    with ExitStack() as stack:
        folder = make_private_folder(settings.data_dir)
        database = stack.enter_context(PostgresDatabase(database_address(settings))) if is_server else None
        uploads = (folder / ("copies" if is_server else "uploads")).resolve()
        libraries = open_indexes(settings, folder, uploads, database)
        stack.callback(libraries.close)
        yield IndexStore(libraries, uploads, isinstance(libraries, PostgresIndexCatalog))


def open_indexes(settings: Settings, folder: Path, uploads: Path, database: Database | None) -> IndexCatalog:
    """Open the indexes. Encrypted words cannot be searched: with encryption, indexes stay on this machine."""
    if isinstance(database, PostgresDatabase) and not settings.persistence.encrypt:
        return PostgresIndexCatalog(database, uploads)
    return FileIndexCatalog(folder / "libraries", uploads)


def make_private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can read, unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise StorageError(
            f"cannot use the data directory {folder}: {error.strerror}",
            help="Set OPENASSAY_DATA_DIR to a folder you can write to.",
        ) from error
    if any((folder / name).exists() for name in OLD_DATABASES):
        raise StorageError(
            f"the data directory {folder} was written by version 0.1, as Assay, and cannot be used by OpenAssay",
            help="Set OPENASSAY_DATA_DIR to another folder, or move this one away; version 0.1 can still read it.",
        )
    return folder
