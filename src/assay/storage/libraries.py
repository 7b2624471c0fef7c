"""Full-text indexes, one a folder, so that folders never mix and one can be thrown away.

libraries/INDEX.sqlite3         of a folder
libraries/OWNER/INDEX.sqlite3   of the uploads that a run was given, together
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from assay.errors import StorageError
from assay.storage.library import LibraryIndex

_ENDING = ".sqlite3"


class Libraries:
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
        return index

    def forget(self, roots: set[Path]) -> None:
        """Delete the indexes of folders, and those of several uploads that one of them is among."""
        with self._lock:
            for root in roots:
                for file in [self._file(root), *self._sharing(root)]:
                    self._delete(file)

    def close(self) -> None:
        with self._lock:
            for index in list(self._opened.values()):
                index.close()

    def _file(self, root: Path) -> Path:
        name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
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
