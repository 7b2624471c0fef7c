"""Whether what is stored is what was written: a quick look before a run goes on, and a long one on demand."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Any

from assay.errors import EvidenceError, IntegrityError, StorageError
from assay.storage.deletion import run_ids
from assay.storage.documents import restored
from assay.storage.rows import Rows
from assay.storage.seals import ALTERED
from assay.storage.tables import ALL, DOCUMENTS, Table

_USED = "SELECT document FROM used_documents WHERE thread = ?"
_BATCH = 200  # documents asked for at a time

Owned = tuple[str, str]  # a scope and its owner


class SqlIntegrity:
    """A ports.Integrity."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def check(self, thread: str, documents: Collection[str]) -> None:
        await asyncio.to_thread(self._check, thread, documents)

    async def problems(self, thread: str | None = None) -> list[str]:
        return await asyncio.to_thread(lambda: list(dict.fromkeys(self._problems(thread))))

    def _check(self, thread: str, documents: Collection[str]) -> None:
        with self._rows.database.transaction():
            for scope, owner in self._scopes(thread):
                self._rows.check(scope, owner)
        self._rows.check_heads()
        found = self._whole(sorted(documents))
        for hash in sorted(set(documents) - found):
            raise IntegrityError(f"row documents {hash} is missing, and thread {thread} rests on it", help=ALTERED)

    def _whole(self, hashes: list[str]) -> set[str]:
        """Those of the documents that are there; each is what it was."""
        found = set()
        for start in range(0, len(hashes), _BATCH):
            batch = hashes[start : start + _BATCH]
            rest = f"WHERE hash IN ({', '.join('?' for _ in batch)})"
            for row in self._rows.read(DOCUMENTS, rest, batch):
                restored(row["hash"], row["metadata"], row["text"].encode())
                found.add(row["hash"])
        return found

    def _problems(self, thread: str | None) -> Iterator[str]:
        for scope, owner in self._scopes(thread) if thread else self._all():
            yield from self._in_scope(scope, owner)
        if thread:
            yield from self._in_table(DOCUMENTS, f"WHERE hash IN ({_USED})", (thread,))
        else:
            for table in (table for table in ALL if not table.scope):
                yield from self._in_table(table, "", ())
        yield from _told(self._rows.check_heads)

    def _scopes(self, thread: str) -> list[Owned]:
        """The rows of a thread, the events of its runs, and their accounts."""
        runs = run_ids(self._rows, thread)
        return [("thread", thread), *((scope, run) for run in runs for scope in ("run", "ledger"))]

    def _all(self) -> list[Owned]:
        """Whatever has a head, and rows that should have one."""
        owners = set(self._rows.scopes())
        with self._rows.database.connection() as connection:
            for table in (table for table in ALL if table.scope):
                found = connection.execute(f"SELECT DISTINCT {table.owner} AS owner FROM {table.name}").fetchall()  # noqa: S608
                owners |= {(table.scope, str(row["owner"])) for row in found}
        return sorted(owners)

    def _in_scope(self, scope: str, owner: str) -> Iterator[str]:
        """Rows that are wrong are named; where the sum is wrong, some are missing, added or put back."""
        for table in ALL:
            if table.scope == scope:
                yield from self._in_table(table, f"WHERE {table.owner} = ?", (owner,))
        yield from _told(lambda: self._rows.check(scope, owner))

    def _in_table(self, table: Table, rest: str, values: tuple[str | None, ...]) -> Iterator[str]:
        try:
            for row in chain.from_iterable(self._rows.batches(table, rest, values)):
                yield from _told(partial(self._opened, table, row))
        except StorageError as error:  # a damaged page: what stands behind it cannot be read either
            yield f"{table.name}: {error.message}"

    def _opened(self, table: Table, row: Any) -> None:
        opened = self._rows.opened(table, row)
        if table is DOCUMENTS:
            restored(opened["hash"], opened["metadata"], opened["text"].encode())


def _told(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except (StorageError, EvidenceError) as error:
        yield error.message
