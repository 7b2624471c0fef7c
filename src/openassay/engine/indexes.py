"""Indexes of folders that a person makes ahead of questions, shows and deletes."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from openassay.bootstrap import build_file_reader, scan_folder
from openassay.errors import NotFoundError, PathError, StorageError
from openassay.protocols import DocumentFolder, IndexCounts, IndexUpdate
from openassay.search.index import IndexProgress, add_vectors, synchronise
from openassay.settings import Settings
from openassay.storage.index_store import IndexStore, IndexSummary, open_index_store

__all__ = ["FolderIndexes", "IndexProgress", "IndexResult", "IndexSummary", "open_folder_indexes", "scan_folder"]

Watch = Callable[[IndexProgress], None]


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
    """The indexes of the settings' data directory or database."""

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
