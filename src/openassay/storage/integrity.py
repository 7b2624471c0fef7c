"""Whether what is stored is what was written: a quick look before a run goes on, and a long one on demand."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from openassay.errors import ConfigurationError, EvidenceError, IntegrityError, StorageError
from openassay.storage.database import ALL_TABLES, DOCUMENTS, Connection, Database, TableSpec
from openassay.storage.documents import load_document
from openassay.storage.rows import ALTERATION_HELP, Head, Row, Rows, Seals, overwrite_row
from openassay.storage.threads import run_ids

_THREAD_DOCUMENTS = "SELECT document FROM used_documents WHERE thread = ?"
_BATCH = 200  # documents asked for at a time

ScopeOwner = tuple[str, str]  # a scope and its owner


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
        found = self._check_documents(sorted(documents))
        for hash in sorted(set(documents) - found):
            raise IntegrityError(
                f"row documents {hash} is missing, and thread {thread} rests on it", help=ALTERATION_HELP
            )

    def _check_documents(self, hashes: list[str]) -> set[str]:
        """Those of the documents that are there; each is what it was."""
        found = set()
        for start in range(0, len(hashes), _BATCH):
            batch = hashes[start : start + _BATCH]
            rest = f"WHERE hash IN ({', '.join('?' for _ in batch)})"
            for row in self._rows.read(DOCUMENTS, rest, batch):
                load_document(row["hash"], row["metadata"], row["text"].encode())
                found.add(row["hash"])
        return found

    def _problems(self, thread: str | None) -> Iterator[str]:
        for scope, owner in self._scopes(thread) if thread else self._all_scopes():
            yield from self._check_scope(scope, owner)
        if thread:
            yield from self._check_table(DOCUMENTS, f"WHERE hash IN ({_THREAD_DOCUMENTS})", (thread,))
        else:
            for table in (table for table in ALL_TABLES if not table.scope):
                yield from self._check_table(table, "", ())
        yield from _error_messages(self._rows.check_heads)

    def _scopes(self, thread: str) -> list[ScopeOwner]:
        """The rows of a thread, the events of its runs, and their accounts."""
        runs = run_ids(self._rows, thread)
        return [("thread", thread), *((scope, run) for run in runs for scope in ("run", "ledger"))]

    def _all_scopes(self) -> list[ScopeOwner]:
        """Whatever has a head, and rows that should have one."""
        owners = set(self._rows.scopes())
        with self._rows.database.connection() as connection:
            for table in (table for table in ALL_TABLES if table.scope):
                found = connection.execute(f"SELECT DISTINCT {table.owner} AS owner FROM {table.name}").fetchall()  # noqa: S608
                owners |= {(table.scope, str(row["owner"])) for row in found}
        return sorted(owners)

    def _check_scope(self, scope: str, owner: str) -> Iterator[str]:
        """Rows that are wrong are named; where the sum is wrong, some are missing, added or put back."""
        for table in ALL_TABLES:
            if table.scope == scope:
                yield from self._check_table(table, f"WHERE {table.owner} = ?", (owner,))
        yield from _error_messages(lambda: self._rows.check(scope, owner))

    def _check_table(self, table: TableSpec, rest: str, values: tuple[str | None, ...]) -> Iterator[str]:
        try:
            for row in chain.from_iterable(self._rows.iter_batches(table, rest, values)):
                yield from _error_messages(partial(self._check_row, table, row))
        except StorageError as error:  # a damaged page: what stands behind it cannot be read either
            yield f"{table.name}: {error.message}"

    def _check_row(self, table: TableSpec, row: Any) -> None:
        opened = self._rows.decode(table, row)
        if table is DOCUMENTS:
            load_document(opened["hash"], opened["metadata"], opened["text"].encode())


def _error_messages(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except (StorageError, EvidenceError) as error:
        yield error.message


# Which key a database is sealed with: agreed on when it is opened, and changed by `reseal`.
#
# The row `sealing` of `meta` says it, for a message that helps. It is no proof: seals are only ever checked with the
# key
# of the settings, so nobody gains by changing the row.

_SEAL_HELP = "Run `openassay admin seal`"
_TRUST_HELP = (
    "If it was sealed before, somebody has altered it: restore a copy. If you know that it never was: "
    "openassay admin seal --trust-unsealed"
)
_READ = "SELECT value FROM meta WHERE name = 'sealing'"
_NOTE = "INSERT INTO meta (name, value) VALUES ('sealing', ?) ON CONFLICT (name) DO "


class DatabaseSealSettings(NamedTuple):
    """`key` names the key; empty: there is none."""

    key: str
    encrypt: bool


def ensure_seals(rows: Rows) -> None:
    """Make sure that a database is sealed the way the settings say; called when it is opened.

    Rows from before there were seals are sealed now, unless there is a key: then somebody has to say that they are to
    be trusted."""
    configured = DatabaseSealSettings(rows.seals.key_id, rows.seals.encrypts)
    held = read_seal_settings(rows.database)
    if held is None:
        with rows.database.transaction() as connection:
            if connection.execute(_NOTE + "NOTHING", (_to_json(configured),)).rowcount:
                _seal_all_rows(rows, connection)
                return
        held = read_seal_settings(rows.database)  # another process was faster
    if held is not None and held != configured:
        raise _mismatch_error(rows.database, held, configured)


def read_seal_settings(database: Database) -> DatabaseSealSettings | None:
    """How a database is sealed; None where it never was."""
    with database.connection() as connection:
        row = connection.execute(_READ).fetchone()
    if row is None:
        return None
    try:
        value = json.loads(row["value"])
        return DatabaseSealSettings(str(value["key"]), bool(value["encrypt"]))
    except (ValueError, TypeError, KeyError) as error:
        raise _alteration_error(database) from error


def reseal(database: Database, old: Seals, new: Seals, *, trust_unsealed: bool = False) -> int:
    """Check everything with the old key and write it anew with the new one, all or nothing; how many rows there are.

    Nothing else may be using the database. What has no seals is taken as it is only if somebody says that it is to be
    trusted: whoever can write to the database can remove them."""
    before, after = Rows(database, old), Rows(database, new)
    held, configured = read_seal_settings(database), DatabaseSealSettings(old.key_id, old.encrypts)
    if held is not None and held != configured:
        raise _mismatch_error(database, held, configured)
    if held is None and not old.keyed and not before.scopes():
        if new.keyed and not trust_unsealed and _has_rows(database):
            raise ConfigurationError(f"{database.name} holds rows without seals", help=_TRUST_HELP)
        ensure_seals(before)
    with database.transaction() as connection:
        before.heads.check_all()
        versions = {(scope, owner): before.check(scope, owner) for scope, owner in before.heads.list_scopes()}
        made = _rewrite(connection, before.decode, after)
        for scope, owner in made.keys() - versions.keys():
            raise before.count_error(scope, owner, -made[scope, owner].members)
        for name, version in versions.items():
            made.setdefault(name, Head(":".join(name))).version = version + 1
        after.heads.replace(connection, made.values())
        note = _to_json(DatabaseSealSettings(new.key_id, new.encrypts))
        connection.execute(_NOTE + "UPDATE SET value = excluded.value", (note,))
        count = sum(_count(connection, table.name) for table in ALL_TABLES)
    database.scrub()  # of what may have been written in the clear
    return count


def _seal_all_rows(rows: Rows, connection: Connection) -> None:
    """Rows that were written before there were seals."""
    if _count(connection, "heads"):
        raise _alteration_error(rows.database)  # it was sealed, and what said so is gone
    if rows.seals.keyed and _has_rows(rows.database):
        raise ConfigurationError(f"{rows.database.name} holds rows without seals", help=_TRUST_HELP)

    def unsealed(table: TableSpec, row: Any) -> Row:
        if row["seal"]:
            raise _alteration_error(rows.database)
        return {name: row[name] for name in table.columns}

    rows.heads.replace(connection, _rewrite(connection, unsealed, rows).values())


def _rewrite(
    connection: Connection, opened: Callable[[TableSpec, Any], Row], rows: Rows
) -> dict[tuple[str, str], Head]:
    """Every row, sealed anew; the heads they have now, by scope and owner."""
    heads: dict[tuple[str, str], Head] = {}
    for table in ALL_TABLES:
        for row in chain.from_iterable(rows.iter_batches(table)):
            new = rows.encode(table, opened(table, row))
            overwrite_row(connection, table, new)
            if table.scope:
                name = (table.scope, new[table.owner])
                heads.setdefault(name, Head(":".join(name))).add(1, int(new["seal"], 16))
    return heads


def _has_rows(database: Database) -> bool:
    with database.connection() as connection:
        return any(_count(connection, table.name) for table in ALL_TABLES)


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) AS n FROM {table}").fetchone()["n"])  # noqa: S608  # names of ours


def _to_json(value: DatabaseSealSettings) -> str:
    return json.dumps(value._asdict())


def _mismatch_error(
    database: Database, held: DatabaseSealSettings, configured: DatabaseSealSettings
) -> ConfigurationError:
    if not configured.key:
        return ConfigurationError(f"{database.name} is sealed with a key", help="Set OPENASSAY_STORAGE_KEY.")
    if not held.key:
        return ConfigurationError(
            f"{database.name} is not sealed with a key yet",
            help=(
                f"{_SEAL_HELP}, or unset OPENASSAY_STORAGE_KEY. If it was "
                "sealed with a key before, somebody has altered it."
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
