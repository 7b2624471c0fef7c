"""Rows that show when they are not what was written.

    row   its seal is over its table and every column
    head  of a thread, of a run's events, of an account: how many rows there are, and the sum of their seals
    all   only with a key: the sum of the heads' seals, so that a thread cannot be put back as a whole either

A row that was altered or exchanged fails its own seal; one that is missing, added or put back fails the sum. Without a
key a seal is a SHA-256, which finds every accident; with one it is an HMAC, which nobody can make without the key. What
is encrypted is bound to its place, so it cannot be moved to another.
"""

import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from openassay.errors import ConfigurationError, IntegrityError, StorageError
from openassay.models.base import utc_now
from openassay.storage.database import ALL_TABLES, Connection, Database, TableSpec, Values, timestamp
from openassay.storage.locks import check_fence

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


MIN_KEY_LENGTH = 24  # characters
ALTERATION_HELP = "It was altered, or damaged. Restore a copy, or delete the thread and ask again."
_MARK = "enc1:"
_NONCE = 12  # bytes


class Seals:
    """Seals over rows and files, and the cipher of encryption at rest, made from the key of the settings."""

    def __init__(self, key: str | None = None, *, encrypt: bool = False) -> None:
        if key is not None and len(key) < MIN_KEY_LENGTH:
            raise ConfigurationError(
                f"the storage key has {len(key)} characters; it needs at least {MIN_KEY_LENGTH}",
                help="Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if encrypt and key is None:
            raise ConfigurationError(
                "persistence.encrypt is set and there is no key", help="Set OPENASSAY_STORAGE_KEY, or unset it."
            )
        self._sealing = derive_key(key, "seal") if key else None
        self._cipher: AESGCM | None = None
        if key and encrypt:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM as Cipher

            self._cipher = Cipher(derive_key(key, "cipher"))
        self.keyed = key is not None
        self.encrypts = encrypt
        self.key_id = derive_key(key, "name").hex()[:16] if key else ""

    def seal(self, *parts: Any) -> str:
        """Seal plain values and bytes, in order."""
        return self.seal_bytes(_PLAIN.encode(parts).encode())

    def seal_bytes(self, content: bytes) -> str:
        if self._sealing is None:
            return hashlib.sha256(content).hexdigest()
        return hmac.digest(self._sealing, content, "sha256").hex()

    def encrypt(self, place: str, value: Any) -> Any:
        """Return what is stored in place of a text or of bytes."""
        if self._cipher is None or value is None:
            return value
        nonce = secrets.token_bytes(_NONCE)
        if isinstance(value, bytes):
            return _MARK.encode() + nonce + self._cipher.encrypt(nonce, value, place.encode())
        sealed = nonce + self._cipher.encrypt(nonce, str(value).encode("utf-8", "surrogatepass"), place.encode())
        return _MARK + base64.b64encode(sealed).decode()

    def decrypt(self, place: str, value: Any) -> Any:
        """Return the value that was encrypted there; IntegrityError for one that was not, or in another place."""
        if self._cipher is None or value is None:
            return value
        mark = _MARK.encode() if isinstance(value, bytes) else _MARK
        if not value.startswith(mark):
            raise IntegrityError(f"{place} is not encrypted, and everything here is", help=ALTERATION_HELP, place=place)
        from cryptography.exceptions import InvalidTag

        stored = value[len(mark) :]
        try:
            sealed = stored if isinstance(stored, bytes) else base64.b64decode(stored, validate=True)
            plain = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise IntegrityError(f"{place} cannot be decrypted", help=ALTERATION_HELP, place=place) from error
        return plain if isinstance(value, bytes) else plain.decode("utf-8", "surrogatepass")


def derive_key(key: str, purpose: str) -> bytes:
    """Derive a key for one purpose: HKDF (RFC 5869) with SHA-256, one block."""
    extracted = hmac.new(b"openassay storage", key.encode(), "sha256").digest()
    return hmac.new(extracted, purpose.encode() + b"\x01", "sha256").digest()


def _hash_bytes(value: object) -> Mapping[str, str]:
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"cannot be sealed: {type(value).__name__}")
    return {"sha256": hashlib.sha256(value).hexdigest()}


_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_hash_bytes)


_MODULUS = 2**256  # of sums, so that a change costs one row of `heads` whatever the size of the thread
_EVERYTHING = "all"
_SCOPES = frozenset(table.scope for table in ALL_TABLES if table.scope)
_ONE = "SELECT scope, version, members, total, seal FROM heads WHERE scope = ?"
_OTHERS = "SELECT scope, version, members, total, seal FROM heads WHERE scope <> ? ORDER BY scope"
_SEALING = "SELECT value FROM meta WHERE name = 'sealing'"
_NEW = "INSERT INTO heads (scope, version, members, total, seal) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope) DO NOTHING"
_SET = "UPDATE heads SET version = ?, members = ?, total = ?, seal = ? WHERE scope = ?"


@dataclass(slots=True)
class Head:
    """How many rows belong to a thread, a run's events or an account, and the sum of their seals."""

    scope: str
    version: int = 0
    members: int = 0
    total: int = 0
    seal: str = ""

    def add(self, members: int, difference: int) -> None:
        self.members += members
        self.total = (self.total + difference) % _MODULUS

    def compute_seal(self, seals: Seals) -> str:
        return seals.seal("heads", self.scope, self.version, self.members, f"{self.total:064x}")


class Heads:
    """The table `heads`. Methods that take a connection are steps of a transaction.

    To lock several, lock those of threads, runs and accounts first and what they have in common last: two processes
    that did it in different orders would wait for each other."""

    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals

    def lock(self, connection: Connection, scope: str, *, make: bool = True) -> Head:
        """Lock a head until the transaction ends; a missing one is made, unless `make` is false."""
        if make:
            check_fence(connection, scope)
        sql = _ONE + self._database.for_update
        row = connection.execute(sql, (scope,)).fetchone()
        if row is None:
            head = Head(scope)
            if not make:
                return head
            if self._insert(connection, head) and scope != _EVERYTHING:  # unless another process was faster
                self._add_to_total(connection, 1, int(head.seal, 16))
            row = connection.execute(sql, (scope,)).fetchone()
        return self._load(row)

    def lock_heads(self, connection: Connection, scopes: Iterable[str]) -> None:
        """Lock those of the heads that exist, even damaged ones."""
        for scope in scopes:
            check_fence(connection, scope)
            connection.execute(_ONE + self._database.for_update, (scope,)).fetchall()

    def lock_common(self, connection: Connection) -> None:
        """Lock what all have in common, so that no run begins until the transaction ends. With a key that is the head
        over all heads, which every change locks in the end."""
        if self._seals.keyed:
            self.lock(connection, _EVERYTHING)
        else:
            connection.execute(_SEALING + self._database.for_update).fetchall()

    def save(self, connection: Connection, head: Head) -> None:
        before = int(head.seal, 16)
        head.version += 1
        head.seal = head.compute_seal(self._seals)
        connection.execute(_SET, (head.version, head.members, f"{head.total:064x}", head.seal, head.scope))
        if head.scope != _EVERYTHING:
            self._add_to_total(connection, 0, int(head.seal, 16) - before)

    def drop(self, connection: Connection, scopes: Iterable[str]) -> int:
        """Delete the heads of rows that were deleted; return how many there were."""
        seals = []
        for scope in scopes:
            found = connection.execute("DELETE FROM heads WHERE scope = ? RETURNING seal", (scope,)).fetchall()
            seals += [row["seal"] for row in found]
        if self._seals.keyed and seals:
            self._add_to_total(connection, -len(seals), -self.sum_seals(seals))
        return len(seals)

    def replace(self, connection: Connection, heads: Iterable[Head]) -> None:
        """Write these heads in place of all others."""
        connection.execute("DELETE FROM heads")
        everything = Head(_EVERYTHING)
        for head in heads:
            self._insert(connection, head)
            everything.add(1, int(head.seal, 16))
        if self._seals.keyed:
            self._insert(connection, everything)

    def check_all(self) -> None:
        """With a key, raise IntegrityError if a head was put back, or taken out, as a whole. Each must be what its seal
        was made from, or what one lacks in the sum could be added to the seal of another."""
        if not self._seals.keyed:
            return
        with self._database.transaction() as connection:
            everything = self.lock(connection, _EVERYTHING)
            rows = connection.execute(_OTHERS, (_EVERYTHING,)).fetchall()
        heads = [self._load(row) for row in rows]
        if len(heads) != everything.members or self.sum_seals(head.seal for head in heads) != everything.total:
            raise IntegrityError(
                f"{self._database.name}: a thread, a run or an account was put back or taken out", help=ALTERATION_HELP
            )

    def list_scopes(self) -> list[tuple[str, str]]:
        """List everything that has a head, as (scope, owner)."""
        scopes: list[tuple[str, str]] = []
        for row in self._database.query(_OTHERS, (_EVERYTHING,)):
            scope, _, owner = str(row["scope"]).partition(":")
            if scope not in _SCOPES:
                raise self.alteration_error(str(row["scope"]))
            scopes.append((scope, owner))
        return scopes

    def sum_seals(self, seals: Iterable[str]) -> int:
        try:
            return sum(int(seal, 16) for seal in seals) % _MODULUS
        except (TypeError, ValueError) as error:
            raise IntegrityError(
                f"{self._database.name}: a seal is not what was written", help=ALTERATION_HELP
            ) from error

    def alteration_error(self, scope: str) -> IntegrityError:
        return IntegrityError(
            f"{self._database.name}: row heads {scope} is not what was written", help=ALTERATION_HELP, table="heads"
        )

    def _load(self, row: Any) -> Head:
        try:
            head = Head(row["scope"], row["version"], row["members"], int(row["total"], 16), row["seal"])
        except (TypeError, ValueError) as error:
            raise self.alteration_error(row["scope"]) from error
        if head.compute_seal(self._seals) != head.seal:
            raise self.alteration_error(head.scope)
        return head

    def _insert(self, connection: Connection, head: Head) -> int:
        head.seal = head.compute_seal(self._seals)
        values = (head.scope, head.version, head.members, f"{head.total:064x}", head.seal)
        return connection.execute(_NEW, values).rowcount

    def _add_to_total(self, connection: Connection, members: int, difference: int) -> None:
        if self._seals.keyed:
            everything = self.lock(connection, _EVERYTHING)
            everything.add(members, difference)
            self.save(connection, everything)
        elif members > 0 and connection.execute(_ONE, (_EVERYTHING,)).fetchone():
            raise self.alteration_error(_EVERYTHING)  # it was sealed with a key since we opened it


_log = logging.getLogger("openassay")
_BATCH = 200  # rows in memory at a time

Row = dict[str, Any]
OnConflict = Literal["raise", "keep", "replace"]


class Rows:
    """All sealed tables of one database. Reading checks; writing goes through `open_writer`, one scope at a time."""

    def __init__(self, database: Database, seals: Seals | None = None) -> None:
        self.database = database
        self.seals = seals or Seals()
        self.heads = Heads(database, self.seals)

    def read(self, table: TableSpec, rest: str = "", values: Values = ()) -> list[Row]:
        """Read rows, checked and decrypted. `rest` is what follows the table's name in a SELECT."""
        return [self.decode(table, row) for row in self.database.query(table.select + rest, values)]

    def find(self, table: TableSpec, *key: object) -> Row | None:
        rows = self.read(table, table.where_key, key)
        return rows[0] if rows else None

    def iter_among(
        self, table: TableSpec, column: str, wanted: Collection[str], rest: str = "", values: Sequence[object] = ()
    ) -> Iterator[Row]:
        """Yield the rows that have one of some values in a column; `rest` is a condition that begins with AND."""
        distinct = sorted(set(wanted))
        for start in range(0, len(distinct), _BATCH):
            batch = distinct[start : start + _BATCH]
            marks = ", ".join("?" for _ in batch)
            yield from self.read(table, f"WHERE {column} IN ({marks}) {rest}", (*batch, *values))

    def read_lenient(self, table: TableSpec, rest: str = "", values: Values = ()) -> tuple[list[Row], list[Any]]:
        """Read rows of many threads. One that is not what was written is logged and returned apart, as it is stored, so
        that one damaged thread does not stop the others."""
        sound, damaged = list[Row](), list[Any]()
        for row in self.database.query(table.select + rest, values):
            try:
                sound.append(self.decode(table, row))
            except IntegrityError as error:
                _log.warning("%s; it is skipped", error.message)
                damaged.append(row)
        return sound, damaged

    def iter_batches(self, table: TableSpec, rest: str = "", values: Sequence[object] = ()) -> Iterator[list[Any]]:
        """Yield rows as they are stored, unchecked, each batch after the last key of the one before. `rest` is empty or
        a WHERE clause."""
        keys = ", ".join(table.key)
        onwards, after = "", list[object]()
        while True:
            sql = f"{table.select}{rest} {onwards} ORDER BY {keys} LIMIT {_BATCH}"
            batch = self.database.query(sql, (*values, *after))
            yield batch
            if len(batch) < _BATCH:
                return
            after = [batch[-1][name] for name in table.key]
            onwards = f"{'AND' if rest else 'WHERE'} ({keys}) > ({', '.join('?' for _ in after)})"

    def decode(self, table: TableSpec, row: Any) -> Row:
        """Check and decrypt a row of a SELECT of all columns with the seal."""
        values = self._check_seal(table, row)
        for name in self._secret_columns(table, values):
            values[name] = self.seals.decrypt(row_name(table, values, name), values[name])
        return values

    def _check_seal(self, table: TableSpec, row: Any) -> Row:
        values = {name: row[name] for name in table.columns}
        try:
            is_intact = self._seal(table, values) == row["seal"]
        except (TypeError, ValueError):
            is_intact = False  # bytes where text should be
        if not is_intact:
            raise IntegrityError(
                f"{self.database.name}: row {row_name(table, values)} is not what was written",
                help=ALTERATION_HELP,
                table=table.name,
            )
        return values

    @contextmanager
    def open_writer(self, scope: str, owner: str = "") -> Iterator["Writer"]:
        """Open a transaction that alone changes rows of one scope, as ("thread", id). Without a scope: documents and
        other rows without an owner."""
        name = f"{scope}:{owner}" if scope else ""
        with self.database.transaction() as connection:
            writer = Writer(self, connection, name, self.heads.lock(connection, name) if name else None)
            yield writer
            writer.flush()

    def encode(self, table: TableSpec, values: Mapping[str, object]) -> Row:
        """Return the row as it is stored, encrypted and with its seal."""
        row: Row = {name: to_column(values[name]) for name in table.columns}
        for name in self._secret_columns(table, row):
            row[name] = self.seals.encrypt(row_name(table, row, name), row[name])
        return {**row, "seal": self._seal(table, row)}

    def _secret_columns(self, table: TableSpec, row: Row) -> list[str]:
        """List the columns to encrypt. That one is empty is no secret: the ledger counts by it."""
        return [name for name in table.secret if row[name] != ""] if self.seals.encrypts else []

    def _seal(self, table: TableSpec, row: Row) -> str:
        # Whether it is encrypted is sealed too: a reader who thinks otherwise must not take ciphertext for text.
        values = [value if isinstance(value := row[name], str) else _normalize_number(value) for name in table.columns]
        return self.seals.seal(table.name, self.seals.encrypts, values)

    def check(self, scope: str, owner: str, *, deep: bool = False) -> None:
        """Raise IntegrityError unless the rows are those that were written.

        `deep` checks every row, which reading does anyway. With a key it always does, since sums alone do not help
        against somebody who knows them: a row nobody reads could carry the seal of one that was removed. 8,000 rows of
        a thread of 100 turns take 120 ms, sums alone 20."""
        deep = deep or self.seals.keyed
        with self.database.transaction() as connection:
            head = self.heads.lock(connection, f"{scope}:{owner}", make=False)
            seals: list[str] = []
            for table in (table for table in ALL_TABLES if table.scope == scope):
                rest = f"WHERE {table.owner} = ?"
                sql = table.select + rest if deep else f"SELECT seal FROM {table.name} {rest}"  # noqa: S608  # ours
                for row in connection.execute(sql, (owner,)).fetchall():
                    if deep:
                        self._check_seal(table, row)
                    seals.append(row["seal"])
            if len(seals) != head.members or self.heads.sum_seals(seals) != head.total:
                raise self.count_error(scope, owner, head.members - len(seals))

    def count_error(self, scope: str, owner: str, missing: int) -> IntegrityError:
        what = f"{missing} missing" if missing > 0 else f"{-missing} too many" if missing else "one was put back"
        return IntegrityError(
            f"{self.database.name}: the rows of {scope} {owner} are not those that were written ({what})",
            help=ALTERATION_HELP,
            scope=f"{scope}:{owner}",
        )


class RowStore:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now


class Writer:
    """Changes to the rows of one scope, in one transaction."""

    def __init__(self, rows: Rows, connection: Connection, scope: str, head: Head | None) -> None:
        self.connection = connection
        self.read = rows.read  # which sees the transaction, and so does `find`: readers of this thread join it
        self.find = rows.find
        self._rows = rows
        self._scope = scope
        self._head = head
        self._changed = False

    def insert(self, table: TableSpec, values: Mapping[str, object], *, on_conflict: OnConflict = "raise") -> bool:
        """Insert a row; return whether it is new. `keep` keeps a row of the same key, `replace` replaces it."""
        row = self._rows.encode(table, values)
        self._check_scope(table, row)
        if on_conflict == "replace":
            sql = f"SELECT seal FROM {table.name} {table.where_key}"  # noqa: S608
            before = self.connection.execute(sql, [row[name] for name in table.key]).fetchone()
            if before is not None:
                self._overwrite(table, row, before["seal"])
                return False
        keep = f" ON CONFLICT ({', '.join(table.key)}) DO NOTHING" if on_conflict == "keep" else ""
        if self.connection.execute(table.insert + keep, list(row.values())).rowcount == 0:
            return False
        self._update_head(1, int(row["seal"], 16))
        return True

    def update(self, table: TableSpec, key: Sequence[object], changes: Mapping[str, object]) -> Row | None:
        """Change a row and return it; None where there is none."""
        found = self.connection.execute(table.select + table.where_key, key).fetchone()
        if found is None:
            return None
        new = {**self._rows.decode(table, found), **{name: to_column(value) for name, value in changes.items()}}
        self._overwrite(table, self._rows.encode(table, new), found["seal"])
        return new

    def delete(self, table: TableSpec, rest: str, values: Values = ()) -> int:
        """Delete the rows of `rest`, a WHERE clause; return how many."""
        if not rest.startswith("WHERE "):
            raise StorageError("rows are deleted by a WHERE clause", help="This is a fault in OpenAssay: report it.")
        found = self.connection.execute(f"DELETE FROM {table.name} {rest} RETURNING seal", values).fetchall()  # noqa: S608
        self._update_head(-len(found), -self._rows.heads.sum_seals(row["seal"] for row in found))
        return len(found)

    def flush(self) -> None:
        if self._changed and self._head is not None:
            self._rows.heads.save(self.connection, self._head)

    def _overwrite(self, table: TableSpec, row: Row, before: str) -> None:
        self._check_scope(table, row)
        overwrite_row(self.connection, table, row)
        self._update_head(0, int(row["seal"], 16) - self._rows.heads.sum_seals([before]))

    def _check_scope(self, table: TableSpec, row: Row) -> None:
        scope = f"{table.scope}:{row[table.owner]}" if table.scope else ""
        if scope != self._scope:
            raise StorageError(
                f"a row of {scope or 'nobody'} was written as one of {self._scope or 'nobody'}",
                help="This is a fault in OpenAssay: report it.",
            )

    def _update_head(self, members: int, difference: int) -> None:
        if self._head is not None:
            self._head.add(members, difference)
            self._changed = True


def to_column(value: object) -> object:
    """Return a value of a record as its column has it: times as text, words of a tuple in one text, booleans as 0 or
    1."""
    if isinstance(value, datetime):
        return timestamp(value)
    if isinstance(value, tuple):
        return " ".join(value)
    return int(value) if isinstance(value, bool) else value


def row_name(table: TableSpec, row: Mapping[str, object], column: str = "") -> str:
    """Return the name of a row in messages, to which an encrypted value is bound."""
    name = "/".join(str(row[key]) for key in table.key)
    return f"{table.name} {name}" + (f" {column}" if column else "")


def overwrite_row(connection: Connection, table: TableSpec, row: Row) -> None:
    """Write a row as it is stored over the one of its key."""
    connection.execute(table.update, [row[name] for name in (*table.others, *table.key)])


def _normalize_number(value: Any) -> Any:
    """Return a number as it is sealed, by its value: a column may give 1 back as 1.0, -0.0 as 0.0, and true as 1."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value
