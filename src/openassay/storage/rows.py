"""Rows that say when they are not what was written.

    row   its seal is over its table and every column
    head  of a thread, of a run's events, of an account: how many rows there are, and the sum of their seals
    all   only with a key: the sum of the heads' seals, so that a thread cannot be put back as a whole either

A row that was altered or exchanged fails its own seal; one that is missing, added or put back fails the sum.
"""

import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from openassay.errors import ConfigurationError, IntegrityError, StorageError
from openassay.storage import fences
from openassay.storage.database import ALL_TABLES, Connection, Database, TableSpec, Values

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


# Seals over rows and files, and the cipher of encryption at rest.
#
# Without a key a seal is a SHA-256, which finds every accident; with one it is an HMAC, which nobody can make without
# the
# key. What is encrypted is bound to its place, so it cannot be moved to another.

SHORTEST_KEY = 24  # characters
_MARK = "enc1:"
_NONCE = 12


class Seals:
    """Made from the key of the settings, if there is one."""

    def __init__(self, key: str | None = None, *, encrypt: bool = False) -> None:
        if key is not None and len(key) < SHORTEST_KEY:
            raise ConfigurationError(
                f"the storage key has {len(key)} characters; it needs at least {SHORTEST_KEY}",
                help="Make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
            )
        if encrypt and key is None:
            raise ConfigurationError(
                "persistence.encrypt is set and there is no key", help="Set OPENASSAY_STORAGE_KEY, or unset it."
            )
        self._sealing = derive_key(key, "seal") if key else None
        self._cipher = _make_cipher(derive_key(key, "cipher")) if key and encrypt else None
        self.keyed = key is not None
        self.encrypts = encrypt
        self.key_id = derive_key(key, "name").hex()[:16] if key else ""

    def seal(self, *parts: Any) -> str:
        """Over plain values and bytes, in order."""
        return self.seal_bytes(_PLAIN.encode(parts).encode())

    def seal_bytes(self, content: bytes) -> str:
        if self._sealing is None:
            return hashlib.sha256(content).hexdigest()
        return hmac.digest(self._sealing, content, "sha256").hex()

    def encrypt(self, place: str, value: Any) -> Any:
        """What is stored in place of a text or of bytes."""
        if self._cipher is None or value is None:
            return value
        nonce = secrets.token_bytes(_NONCE)
        if isinstance(value, bytes):
            return _MARK.encode() + nonce + self._cipher.encrypt(nonce, value, place.encode())
        sealed = nonce + self._cipher.encrypt(nonce, str(value).encode("utf-8", "surrogatepass"), place.encode())
        return _MARK + base64.b64encode(sealed).decode()

    def decrypt(self, place: str, value: Any) -> Any:
        """The value that was hidden there. One that was not hidden, or somewhere else, is refused."""
        if self._cipher is None or value is None:
            return value
        mark = _MARK.encode() if isinstance(value, bytes) else _MARK
        if not value.startswith(mark):
            raise IntegrityError(f"{place} is not encrypted, and everything here is", help=ALTERATION_HELP, place=place)
        from cryptography.exceptions import InvalidTag

        held = value[len(mark) :]
        try:
            sealed = held if isinstance(held, bytes) else base64.b64decode(held, validate=True)
            plain = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode())
        except (InvalidTag, ValueError) as error:
            raise IntegrityError(f"{place} cannot be decrypted", help=ALTERATION_HELP, place=place) from error
        return plain if isinstance(value, bytes) else plain.decode("utf-8", "surrogatepass")


ALTERATION_HELP = "It was altered, or damaged. Restore a copy, or delete the thread and ask again."


def derive_key(key: str, purpose: str) -> bytes:
    """HKDF (RFC 5869) with SHA-256, one block: a key of its own for each purpose."""
    extracted = hmac.new(b"openassay admin", key.encode(), "sha256").digest()
    return hmac.new(extracted, purpose.encode() + b"\x01", "sha256").digest()


def _make_cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _hash_bytes(value: object) -> Mapping[str, str]:
    if not isinstance(value, bytes | memoryview):
        raise TypeError(f"cannot be sealed: {type(value).__name__}")
    return {"sha256": hashlib.sha256(value).hexdigest()}


_PLAIN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_hash_bytes)


# What belongs together, summed up: for a thread, a run's events or an account, how many rows there are and the sum of
# their seals. With a key a head over all heads does the same for them.
#
# Sums are taken modulo 2**256, so a change costs one row of `heads` whatever the size of the thread.

_MODULUS = 2**256
_EVERYTHING = "all"
_SCOPES = frozenset(table.scope for table in ALL_TABLES if table.scope)
_ONE = "SELECT scope, version, members, total, seal FROM heads WHERE scope = ?"
_OTHERS = "SELECT scope, version, members, total, seal FROM heads WHERE scope <> ? ORDER BY scope"
_MOMENT = "SELECT value FROM meta WHERE name = 'sealing'"
_NEW = "INSERT INTO heads (scope, version, members, total, seal) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope) DO NOTHING"
_SET = "UPDATE heads SET version = ?, members = ?, total = ?, seal = ? WHERE scope = ?"


@dataclass(slots=True)
class Head:
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
    """The table `heads`. Its methods that take a connection are steps of a transaction.

    Who locks several locks those of threads, runs and accounts first and what they have in common last: two who do it
    the other way round would wait for each other."""

    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals

    def lock(self, connection: Connection, scope: str, *, make: bool = True) -> Head:
        """The head, which nobody else may change until the transaction is over; a new one where there is none. Whoever
        does not make one only looks."""
        if make:
            fences.check(connection, scope)
        sql = _ONE + self._database.for_update
        row = connection.execute(sql, (scope,)).fetchone()
        if row is None:
            if not make:
                return Head(scope)
            self._make(connection, scope)
            row = connection.execute(sql, (scope,)).fetchone()
        return self._load(row)

    def lock_heads(self, connection: Connection, scopes: Iterable[str]) -> None:
        """Lock heads in whatever state they are; those there are."""
        for scope in scopes:
            fences.check(connection, scope)
            connection.execute(_ONE + self._database.for_update, (scope,)).fetchall()

    def lock_common(self, connection: Connection) -> None:
        """Lock what all have in common: no run begins, and nobody else who does this goes on, until the transaction is
        over. With a key that is the head over all heads, which every change locks in the end."""
        if self._seals.keyed:
            self.lock(connection, _EVERYTHING)
        else:
            connection.execute(_MOMENT + self._database.for_update).fetchall()

    def save(self, connection: Connection, head: Head) -> None:
        before = int(head.seal, 16)
        head.version += 1
        head.seal = head.compute_seal(self._seals)
        connection.execute(_SET, (head.version, head.members, f"{head.total:064x}", head.seal, head.scope))
        if head.scope != _EVERYTHING:
            self._add_to_total(connection, 0, int(head.seal, 16) - before)

    def drop(self, connection: Connection, scopes: Iterable[str]) -> int:
        """Forget the heads of rows that are gone; how many there were."""
        seals = []
        for scope in scopes:
            row = connection.execute(_ONE, (scope,)).fetchone()
            if row is not None:
                connection.execute("DELETE FROM heads WHERE scope = ?", (scope,))
                seals.append(row["seal"])
        if self._seals.keyed and seals:
            self._add_to_total(connection, -len(seals), -self.sum_seals(seals))
        return len(seals)

    def replace(self, connection: Connection, heads: Iterable[Head]) -> None:
        """These, and no others."""
        connection.execute("DELETE FROM heads")
        everything = Head(_EVERYTHING)
        for head in heads:
            self._insert(connection, head)
            everything.add(1, int(head.seal, 16))
        if self._seals.keyed:
            self._insert(connection, everything)

    def check_all(self) -> None:
        """With a key: that none was put back, or taken out, as a whole. Each must be what its seal was made from, or
        what one lacks in the sum could be added to the seal of another."""
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
        """Everything that has a head, as (scope, owner)."""
        with self._database.connection() as connection:
            rows = connection.execute(_OTHERS, (_EVERYTHING,)).fetchall()
        return [self._split_scope(row["scope"]) for row in rows]

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

    def _make(self, connection: Connection, scope: str) -> None:
        head = Head(scope)
        if self._insert(connection, head) and scope != _EVERYTHING:  # unless somebody was faster
            self._add_to_total(connection, 1, int(head.seal, 16))

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
            raise self.alteration_error(_EVERYTHING)  # sealed with a key since we opened it

    def _split_scope(self, head: object) -> tuple[str, str]:
        scope, _, owner = str(head).partition(":")
        if scope not in _SCOPES:
            raise self.alteration_error(str(head))
        return scope, owner


_log = logging.getLogger("openassay")
_BATCH = 200  # rows in memory at a time

Row = dict[str, Any]
OnConflict = Literal["raise", "keep", "replace"]


class Rows:
    """All sealed tables of one database. Reading checks; writing goes through `writing`, one scope at a time."""

    def __init__(self, database: Database, seals: Seals | None = None) -> None:
        self.database = database
        self.seals = seals or Seals()
        self.heads = Heads(database, self.seals)

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, table: TableSpec, rest: str = "", values: Values = ()) -> list[Row]:
        """Rows as they were written. `rest` is what follows the table's name in a SELECT."""
        with self.database.connection() as connection:
            found = connection.execute(select_sql(table, rest), values).fetchall()
        return [self.decode(table, row) for row in found]

    def find(self, table: TableSpec, *key: object) -> Row | None:
        rows = self.read(table, _where_key_sql(table), key)
        return rows[0] if rows else None

    def read_lenient(self, table: TableSpec, rest: str = "", values: Values = ()) -> tuple[list[Row], list[Any]]:
        """As `read`, for who looks after many threads: a row that is not what was written is logged and set aside, as
        it is stored, so that one thread that is damaged does not stop the others."""
        with self.database.connection() as connection:
            found = connection.execute(select_sql(table, rest), values).fetchall()
        sound, damaged = list[Row](), list[Any]()
        for row in found:
            try:
                sound.append(self.decode(table, row))
            except IntegrityError as error:
                _log.warning("%s; it is left out", error.message)
                damaged.append(row)
        return sound, damaged

    def iter_batches(self, table: TableSpec, rest: str = "", values: Sequence[object] = ()) -> Iterator[list[Any]]:
        """Rows as they are stored, unchecked, each batch from the key on that the last one ended with. `rest` is empty
        or a WHERE clause."""
        keys = ", ".join(qualify_columns(table, table.key))
        onwards, after = "", list[object]()
        while True:
            sql = select_sql(table, f"{rest} {onwards} ORDER BY {keys} LIMIT {_BATCH}")
            with self.database.connection() as connection:
                batch = connection.execute(sql, (*values, *after)).fetchall()
            yield batch
            if len(batch) < _BATCH:
                return
            after = [batch[-1][name] for name in table.key]
            onwards = f"{'AND' if rest else 'WHERE'} ({keys}) > ({', '.join('?' for _ in after)})"

    def decode(self, table: TableSpec, row: Any) -> Row:
        """A row of a SELECT of all columns with the seal, checked and decrypted."""
        held = self._check_seal(table, row)
        for name in self._secret_columns(table, held):
            held[name] = self.seals.decrypt(row_name(table, held, name), held[name])
        return held

    def _check_seal(self, table: TableSpec, row: Any) -> Row:
        held = {name: row[name] for name in table.columns}
        try:
            intact = self._seal(table, held) == row["seal"]
        except (TypeError, ValueError):
            intact = False  # bytes where text should stand
        if not intact:
            raise alteration_error(self.database, table, held)
        return held

    # -- writing ------------------------------------------------------------------------------------------

    @contextmanager
    def open_writer(self, scope: str, owner: str = "") -> Iterator["Writer"]:
        """A transaction that changes rows of one scope, alone: `writing("thread", id)`. Without a scope, documents."""
        name = f"{scope}:{owner}" if scope else ""
        with self.database.transaction() as connection:
            writer = Writer(self, connection, name, self.heads.lock(connection, name) if name else None)
            yield writer
            writer.flush()

    def encode(self, table: TableSpec, values: Mapping[str, object]) -> Row:
        """The row as it goes into the database, with its seal."""
        held: Row = {name: values[name] for name in table.columns}
        for name in self._secret_columns(table, held):
            held[name] = self.seals.encrypt(row_name(table, held, name), held[name])
        return {**held, "seal": self._seal(table, held)}

    def _secret_columns(self, table: TableSpec, held: Row) -> list[str]:
        """Columns that encryption hides. That nothing stands in one is no secret: the ledger counts by it."""
        return [name for name in table.secret if held[name] != ""] if self.seals.encrypts else []

    def _seal(self, table: TableSpec, held: Row) -> str:
        # Whether it is encrypted is sealed too: a reader who thinks otherwise must not take ciphertext for text.
        values = [value if isinstance(value := held[name], str) else _normalize_number(value) for name in table.columns]
        return self.seals.seal(table.name, self.seals.encrypts, values)

    # -- heads --------------------------------------------------------------------------------------------

    def check(self, scope: str, owner: str, *, deep: bool = False) -> int:
        """Raises IntegrityError unless the rows are those that were written; returns the head's version. `deep` looks
        into every row, which reading does anyway. With a key it always does, since sums alone do not help against
        somebody who knows them: a row nobody reads could carry the seal of one that was removed. 8,000 rows of a
        thread of 100 turns take 120 ms, sums alone 20."""
        deep = deep or self.seals.keyed
        with self.database.transaction() as connection:
            head = self.heads.lock(connection, f"{scope}:{owner}", make=False)
            tables = [table for table in ALL_TABLES if table.scope == scope]
            found = [seal for table in tables for seal in self._read_seals(connection, table, owner, deep=deep)]
            if len(found) != head.members or self.heads.sum_seals(found) != head.total:
                raise self.count_error(scope, owner, head.members - len(found))
        return head.version

    def _read_seals(self, connection: Connection, table: TableSpec, owner: str, *, deep: bool) -> list[str]:
        """The seals of the rows there are."""
        rest = f"WHERE {table.owner} = ?"
        sql = select_sql(table, rest) if deep else f"SELECT seal FROM {table.name} {rest}"  # noqa: S608  # names of ours
        rows = connection.execute(sql, (owner,)).fetchall()
        for row in rows if deep else ():
            self._check_seal(table, row)
        return [row["seal"] for row in rows]

    def count_error(self, scope: str, owner: str, missing: int) -> IntegrityError:
        what = f"{missing} missing" if missing > 0 else f"{-missing} too many" if missing else "one was put back"
        return IntegrityError(
            f"{self.database.name}: the rows of {scope} {owner} are not those that were written ({what})",
            help=ALTERATION_HELP,
            scope=f"{scope}:{owner}",
        )

    def check_heads(self) -> None:
        """With a key: that no thread, run or account was put back, or taken out, as a whole."""
        self.heads.check_all()

    def scopes(self) -> list[tuple[str, str]]:
        """Everything that has a head, as (scope, owner)."""
        return self.heads.list_scopes()


class Writer:
    """Changes to the rows of one scope, in one transaction."""

    def __init__(self, rows: Rows, connection: Connection, scope: str, head: Head | None) -> None:
        self.connection = connection
        self._rows = rows
        self._scope = scope
        self._head = head
        self._changed = False
        self._seen: dict[tuple[object, ...], tuple[Row, str]] = {}  # rows nobody else can change meanwhile, and seals

    def insert(self, table: TableSpec, values: Mapping[str, object], *, on_conflict: OnConflict = "raise") -> bool:
        """Whether the row is new. `keep` leaves one that is there alone, `replace` puts the new one in its place."""
        row = self._rows.encode(table, values)
        self._check_scope(table, row)
        if on_conflict == "replace":
            sql = f"SELECT seal FROM {table.name} {_where_key_sql(table)}"  # noqa: S608
            before = self.connection.execute(sql, [row[name] for name in table.key]).fetchone()
            if before is not None:
                self._overwrite(table, row, before["seal"])
                return False
        if self.connection.execute(_insert_sql(table, on_conflict == "keep"), list(row.values())).rowcount == 0:
            return False
        self._update_head(1, int(row["seal"], 16))
        return True

    def read(self, table: TableSpec, rest: str = "", values: Values = ()) -> list[Row]:
        """As the transaction sees them."""
        found = self.connection.execute(select_sql(table, rest), values).fetchall()
        rows = [self._rows.decode(table, row) for row in found]
        if table.scope:
            for row, stored in zip(rows, found, strict=True):
                self._seen[table.name, *(row[name] for name in table.key)] = row, stored["seal"]
        return rows

    def find(self, table: TableSpec, *key: object) -> Row | None:
        rows = self.read(table, _where_key_sql(table), key)
        return rows[0] if rows else None

    def update(self, table: TableSpec, key: Sequence[object], changes: Mapping[str, object]) -> Row | None:
        """The row as it is now; None where there is none."""
        seen = self._seen.get((table.name, *key))
        if seen is None:
            found = self.connection.execute(select_sql(table, _where_key_sql(table)), key).fetchone()
            if found is None:
                return None
            seen = self._rows.decode(table, found), found["seal"]
        before, seal = seen
        new = {**before, **changes}
        self._overwrite(table, self._rows.encode(table, new), seal)
        return new

    def delete(self, table: TableSpec, rest: str, values: Values = ()) -> int:
        """How many rows `rest`, a WHERE clause, had."""
        if not rest.startswith("WHERE "):
            raise StorageError("rows are deleted by a WHERE clause", help="This is a fault in OpenAssay: report it.")
        found = self.connection.execute(f"SELECT seal FROM {table.name} {rest}", values).fetchall()  # noqa: S608
        self.connection.execute(f"DELETE FROM {table.name} {rest}", values)  # noqa: S608
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
        self._seen.clear()
        if self._head is not None:
            self._head.add(members, difference)
            self._changed = True


def row_name(table: TableSpec, row: Mapping[str, object], column: str = "") -> str:
    """What a message calls a row, and what an encrypted value is bound to."""
    name = "/".join(str(row[key]) for key in table.key)
    return f"{table.name} {name}" + (f" {column}" if column else "")


def alteration_error(database: Database, table: TableSpec, row: Mapping[str, object]) -> IntegrityError:
    return IntegrityError(
        f"{database.name}: row {row_name(table, row)} is not what was written", help=ALTERATION_HELP, table=table.name
    )


def overwrite_row(connection: Connection, table: TableSpec, row: Row) -> None:
    """A row as it is stored, over the one of its key."""
    connection.execute(_update_sql(table), [row[name] for name in (*_other_columns(table), *table.key)])


@cache
def _insert_sql(table: TableSpec, keep: bool) -> str:
    columns = (*table.columns, "seal")
    names, keys = (", ".join(map(_as_identifier, some)) for some in (columns, table.key))
    rest = f" ON CONFLICT ({keys}) DO NOTHING" if keep else ""
    return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' for _ in columns)}){rest}"  # noqa: S608


@cache
def _update_sql(table: TableSpec) -> str:
    changes = ", ".join(f"{_as_identifier(name)} = ?" for name in _other_columns(table))
    return f"UPDATE {table.name} SET {changes} {_where_key_sql(table)}"  # noqa: S608


@cache
def _other_columns(table: TableSpec) -> tuple[str, ...]:
    return tuple(name for name in (*table.columns, "seal") if name not in table.key)


def _normalize_number(value: Any) -> Any:
    """Numbers are sealed by what they are worth: a column may give 1 back as 1.0, -0.0 as 0.0, and true as 1."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value


def select_sql(table: TableSpec, rest: str) -> str:
    """All columns with the seal."""
    return f"{_select_all_sql(table)} {rest}"


@cache
def _select_all_sql(table: TableSpec) -> str:
    return f"SELECT {', '.join(qualify_columns(table, table.columns))}, seal FROM {table.name}"  # noqa: S608


@cache
def _where_key_sql(table: TableSpec) -> str:
    return "WHERE " + " AND ".join(f"{name} = ?" for name in qualify_columns(table, table.key))


def qualify_columns(table: TableSpec, columns: Sequence[str]) -> list[str]:
    """With the table's name before it: alone, a quoted name that is no column's is taken for a text by SQLite."""
    return [f"{table.name}.{_as_identifier(name)}" for name in columns]


def _as_identifier(name: str) -> str:
    return f'"{name}"'  # "by" is a word of SQL
