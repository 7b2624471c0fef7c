"""Whether what is stored is what was written, and which key a database is sealed with.

There is a quick check before a run is resumed, and a thorough one on demand.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

from openassay.errors import ConfigurationError, EvidenceError, IntegrityError, StorageError
from openassay.storage.database import ALL_TABLES, DOCUMENTS, Connection, Database, TableSpec, run_in_thread
from openassay.storage.documents import load_document
from openassay.storage.sealed_rows import ALTERATION_HELP, Head, Rows, RowStore, Seals, overwrite_row
from openassay.storage.threads import run_ids

_THREAD_DOCUMENTS = "SELECT document FROM used_documents WHERE thread = ?"

ScopeOwner = tuple[str, str]  # a scope and its owner


class SqlIntegrity(RowStore):
    @run_in_thread
    def check(self, thread: str, documents: Collection[str]) -> None:
        """Raise IntegrityError unless every row of the thread is there, and the documents are what they were."""
        with self._rows.database.transaction():
            for scope, owner in self._scopes(thread):
                self._rows.check(scope, owner)
        self._rows.heads.check_all()
        missing = set(documents)
        for row in self._rows.iter_among(DOCUMENTS, "hash", documents):
            load_document(row["hash"], row["metadata"], row["text"].encode())
            missing.discard(row["hash"])
        for hash in sorted(missing):
            raise IntegrityError(
                f"row documents {hash} is missing, and thread {thread} rests on it", help=ALTERATION_HELP
            )

    async def problems(self, thread: str | None = None) -> list[str]:
        return await asyncio.to_thread(lambda: list(dict.fromkeys(self._problems(thread))))

    def _problems(self, thread: str | None) -> Iterator[str]:
        for scope, owner in self._scopes(thread) if thread else self._all_scopes():
            # Rows that are wrong are named; where only the sum is wrong, some are missing, added or put back.
            for table in ALL_TABLES:
                if table.scope == scope:
                    yield from self._check_table(table, f"WHERE {table.owner} = ?", (owner,))
            yield from _error_messages(partial(self._rows.check, scope, owner))
        if thread:
            yield from self._check_table(DOCUMENTS, f"WHERE hash IN ({_THREAD_DOCUMENTS})", (thread,))
        else:
            for table in (table for table in ALL_TABLES if not table.scope):
                yield from self._check_table(table, "", ())
        yield from _error_messages(self._rows.heads.check_all)

    def _scopes(self, thread: str) -> list[ScopeOwner]:
        """List the scopes of a thread: its rows, the events of its runs, and their accounts."""
        runs = run_ids(self._rows, thread)
        return [("thread", thread), *((scope, run) for run in runs for scope in ("run", "ledger"))]

    def _all_scopes(self) -> list[ScopeOwner]:
        """List whatever has a head, and rows that should have one."""
        owners = set(self._rows.heads.list_scopes())
        for table in (table for table in ALL_TABLES if table.scope):
            found = self._rows.database.query(f"SELECT DISTINCT {table.owner} AS owner FROM {table.name}")  # noqa: S608
            owners |= {(table.scope, str(row["owner"])) for row in found}
        return sorted(owners)

    def _check_table(self, table: TableSpec, rest: str, arguments: tuple[str | None, ...]) -> Iterator[str]:
        try:
            for row in chain.from_iterable(self._rows.iter_batches(table, rest, arguments)):
                try:
                    values = self._rows.decode(table, row)
                    if table is DOCUMENTS:
                        load_document(values["hash"], values["metadata"], values["text"].encode())
                except (StorageError, EvidenceError) as error:
                    yield error.message
        except StorageError as error:  # a damaged page: the rows behind it cannot be read either
            yield f"{table.name}: {error.message}"


def _error_messages(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except (StorageError, EvidenceError) as error:
        yield error.message


# The row `sealing` of `meta` says which key a database is sealed with, for a helpful message. It is no proof: seals are
# only ever checked with the key of the settings, so nobody gains by changing the row.

_SEAL_HELP = "Run `openassay admin seal`"
_READ = "SELECT value FROM meta WHERE name = 'sealing'"
_NOTE = "INSERT INTO meta (name, value) VALUES ('sealing', ?) ON CONFLICT (name) DO "


class DatabaseSealSettings(NamedTuple):
    """How a database is sealed; `key` is the id of the key, or empty."""

    key: str
    encrypt: bool


def ensure_seals(rows: Rows) -> None:
    """Make sure that a database is sealed the way the settings say; called when it is opened."""
    configured = DatabaseSealSettings(rows.seals.key_id, rows.seals.encrypts)
    held = read_seal_settings(rows.database)
    if held is None:
        with rows.database.transaction() as connection:
            if connection.execute(_NOTE + "NOTHING", (json.dumps(configured._asdict()),)).rowcount:
                if any(_count(connection, name) for name in ("heads", *(table.name for table in ALL_TABLES))):
                    raise _alteration_error(rows.database)  # it was sealed, and the row that said so is gone
                return
        held = read_seal_settings(rows.database)  # another process was faster
    if held is not None and held != configured:
        raise _mismatch_error(rows.database, held, configured)


def read_seal_settings(database: Database) -> DatabaseSealSettings | None:
    """Read how a database is sealed; None where it never was."""
    row = database.query_one(_READ)
    if row is None:
        return None
    try:
        value = json.loads(row["value"])
        return DatabaseSealSettings(str(value["key"]), bool(value["encrypt"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _alteration_error(database) from error


def reseal(database: Database, old: Seals, new: Seals) -> int:
    """Check everything with the old key and seal it with the new one, all or nothing; return the number of rows.
    Nothing else may be using the database."""
    before, after = Rows(database, old), Rows(database, new)
    if read_seal_settings(database) or not before.heads.list_scopes():  # or only that row is gone
        ensure_seals(before)
    with database.transaction() as connection:
        before.heads.check_all()
        known = set(before.heads.list_scopes())
        for scope, owner in known:
            before.check(scope, owner)
        heads = _rewrite(connection, before, after)
        for scope, owner in heads.keys() - known:
            raise before.count_error(scope, owner, -heads[scope, owner].members)
        after.heads.replace(connection, heads.values())
        note = json.dumps(DatabaseSealSettings(new.key_id, new.encrypts)._asdict())
        connection.execute(_NOTE + "UPDATE SET value = excluded.value", (note,))
        count = sum(_count(connection, table.name) for table in ALL_TABLES)
    database.scrub()  # of what may have been written in the clear
    return count


def _rewrite(connection: Connection, before: Rows, after: Rows) -> dict[ScopeOwner, Head]:
    """Seal every row anew; return the heads of all."""
    heads: dict[ScopeOwner, Head] = {}
    for table in ALL_TABLES:
        for row in chain.from_iterable(before.iter_batches(table)):
            new = after.encode(table, before.decode(table, row))
            overwrite_row(connection, table, new)
            if table.scope:
                name = (table.scope, new[table.owner])
                heads.setdefault(name, Head(":".join(name))).add(1, int(new["seal"], 16))
    return heads


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])  # noqa: S608  # names of ours


def _mismatch_error(
    database: Database, held: DatabaseSealSettings, configured: DatabaseSealSettings
) -> ConfigurationError:
    if not configured.key:
        return ConfigurationError(f"{database.name} is sealed with a key", help="Set OPENASSAY_STORAGE_KEY.")
    if not held.key:
        return ConfigurationError(
            f"{database.name} is not sealed with a key yet",
            help=(
                f"{_SEAL_HELP}, or unset OPENASSAY_STORAGE_KEY. If it was sealed with a key before, "
                "somebody has altered it."
            ),
        )
    if held.key != configured.key:
        return ConfigurationError(
            f"{database.name} is sealed with another key",
            help=f"Set OPENASSAY_STORAGE_KEY to the key it was sealed with. To change it: {_SEAL_HELP.lower()}.",
        )
    state = "encrypted" if held.encrypt else "not encrypted"
    return ConfigurationError(
        f"{database.name} is {state}, and persistence.encrypt says otherwise",
        help=f"{_SEAL_HELP}, or change the setting.",
    )


def _alteration_error(database: Database) -> IntegrityError:
    return IntegrityError(
        f"{database.name}: row meta sealing is missing, or not what was written", help=ALTERATION_HELP, table="meta"
    )
