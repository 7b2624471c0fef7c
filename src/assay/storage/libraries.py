"""Indexes of folders, one a folder, so that folders never mix and one can be thrown away.

FileLibraries       libraries/INDEX.sqlite3         of a folder
                    libraries/OWNER/INDEX.sqlite3   of the uploads that a run was given, together
PostgresLibraries   rows of the database, for every machine (postgres_libraries.py)
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

from assay.errors import StorageError
from assay.ports import Holdings, PassageIndex
from assay.storage.library import LibraryIndex

ROOT, KEPT = "root", "kept"  # what an index says about itself
_ENDING = ".sqlite3"


class Library(NamedTuple):
    """An index as a person looks at it."""

    root: str  # empty in one that was made before indexes knew their folder
    holdings: Holdings
    bytes: int
    updated: datetime
    machine: str = ""  # that has indexed it, where that may be another
    kept: bool = False  # until somebody says otherwise; the others go with the last thread that asks them


class Libraries(Protocol):
    def open(self, root: Path) -> PassageIndex: ...

    def elsewhere(self, root: Path) -> Library | None:
        """What another machine has indexed of a folder that is not here."""
        ...

    def keep(self, root: Path) -> None:
        """Somebody has had it indexed on purpose: it stays when no thread asks it any more."""
        ...

    def forget(self, roots: set[Path], *, kept: bool = False) -> None:
        """Delete the indexes of folders, and those of several uploads that one of them is among; of those to be kept
        only if that is said."""
        ...

    def all(self) -> list[Library]:
        """Those of folders, not of uploads."""
        ...

    def close(self) -> None: ...


class FileLibraries:
    """An index is open for as long as somebody holds it: a hundred that nobody asks any more would hold a thousand
    files open, one connection for each thread that has ever asked them."""

    def __init__(self, folder: Path, uploads: Path) -> None:
        self._folder = folder
        self._uploads = uploads
        self._opened: WeakValueDictionary[Path, LibraryIndex] = WeakValueDictionary()
        self._lock = Lock()

    def open(self, root: Path) -> LibraryIndex:
        file = self._file(root)
        with self._lock:
            index = self._opened.get(file)
            if index is None:
                index = self._opened[file] = LibraryIndex(file)
        index.note(ROOT, str(root))
        return index

    def elsewhere(self, root: Path) -> Library | None:
        return None

    def keep(self, root: Path) -> None:
        self.open(root).note(KEPT, "yes")

    def forget(self, roots: set[Path], *, kept: bool = False) -> None:
        with self._lock:
            for root in roots:
                for file in [self._file(root), *self._sharing(root)]:
                    if kept or not self._is_kept(file):
                        self._delete(file)

    def all(self) -> list[Library]:
        return [self._described(file) for file in sorted(self._folder.glob(f"*{_ENDING}"))]

    def close(self) -> None:
        with self._lock:
            for index in list(self._opened.values()):
                index.close()

    def _file(self, root: Path) -> Path:
        name = hashlib.sha256(str(root).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        is_given = root.is_relative_to(self._uploads)
        return (self._folder / root.parent.name if is_given else self._folder) / f"{name}{_ENDING}"

    def _sharing(self, root: Path) -> list[Path]:
        if not root.is_relative_to(self._uploads):
            return []
        return [file for file in self._file(root).parent.glob(f"*{_ENDING}") if self._holds(file, root)]

    def _holds(self, file: Path, root: Path) -> bool:
        try:
            with self._at_hand(file) as index:
                return any(Path(path).is_relative_to(root) for path in index.stamps())
        except StorageError:  # a damaged one is built anew
            return True

    def _is_kept(self, file: Path) -> bool:
        if not file.exists():
            return False
        try:
            with self._at_hand(file) as index:
                return KEPT in index.about()
        except StorageError:  # a damaged one is built anew
            return False

    def _described(self, file: Path) -> Library:
        with self._at_hand(file) as index:
            about, holdings = index.about(), index.holdings()
        size = sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))
        updated = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        return Library(about.get(ROOT, ""), holdings, size, updated, kept=KEPT in about)

    @contextmanager
    def _at_hand(self, file: Path) -> Iterator[LibraryIndex]:
        if (index := self._opened.get(file)) is not None:
            yield index
            return
        with LibraryIndex(file) as index:
            yield index

    def _delete(self, file: Path) -> None:
        if index := self._opened.pop(file, None):
            index.close()
        for part in file.parent.glob(f"{file.name}*"):
            part.unlink(missing_ok=True)
