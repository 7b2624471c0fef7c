"""Rows that say when they are not what was written.

    row   its seal is over its table and every column
    head  of a thread, of a run's events, of an account: how many rows there are, and the sum of their seals
    all   only with a key: the sum of the heads' seals, so that a thread cannot be put back as a whole either

A row that was altered or exchanged fails its own seal; one that is missing, added or put back fails the sum.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal

from assay.errors import IntegrityError, StorageError
from assay.storage.database import Connection, Database, Values
from assay.storage.heads import Head, Heads
from assay.storage.seals import ALTERED, Seals
from assay.storage.tables import ALL, Table

_log = logging.getLogger("assay")
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

    def read(self, table: Table, rest: str = "", values: Values = ()) -> list[Row]:
        """Rows as they were written. `rest` is what follows the table's name in a SELECT."""
        with self.database.connection() as connection:
            found = connection.execute(select(table, rest), values).fetchall()
        return [self.opened(table, row) for row in found]

    def one(self, table: Table, *key: object) -> Row | None:
        rows = self.read(table, _by_key(table), key)
        return rows[0] if rows else None

    def sift(self, table: Table, rest: str = "", values: Values = ()) -> tuple[list[Row], list[Any]]:
        """As `read`, for who looks after many threads: a row that is not what was written is logged and set aside, as
        it is stored, so that one thread that is damaged does not stop the others."""
        with self.database.connection() as connection:
            found = connection.execute(select(table, rest), values).fetchall()
        sound, damaged = list[Row](), list[Any]()
        for row in found:
            try:
                sound.append(self.opened(table, row))
            except IntegrityError as error:
                _log.warning("%s; it is left out", error.message)
                damaged.append(row)
        return sound, damaged

    def batches(self, table: Table, rest: str = "", values: Sequence[object] = ()) -> Iterator[list[Any]]:
        """Rows as they are stored, unchecked, each batch from the key on that the last one ended with. `rest` is empty
        or a WHERE clause."""
        keys = ", ".join(named(table, table.key))
        onwards, after = "", list[object]()
        while True:
            sql = select(table, f"{rest} {onwards} ORDER BY {keys} LIMIT {_BATCH}")
            with self.database.connection() as connection:
                batch = connection.execute(sql, (*values, *after)).fetchall()
            yield batch
            if len(batch) < _BATCH:
                return
            after = [batch[-1][name] for name in table.key]
            onwards = f"{'AND' if rest else 'WHERE'} ({keys}) > ({', '.join('?' for _ in after)})"

    def opened(self, table: Table, row: Any) -> Row:
        """A row of a SELECT of all columns with the seal, checked and decrypted."""
        held = self._checked(table, row)
        for name in self._secrets(table, held):
            held[name] = self.seals.shown(place(table, held, name), held[name])
        return held

    def _checked(self, table: Table, row: Any) -> Row:
        held = {name: row[name] for name in table.columns}
        try:
            intact = self._seal(table, held) == row["seal"]
        except (TypeError, ValueError):
            intact = False  # bytes where text should stand
        if not intact:
            raise altered(self.database, table, held)
        return held

    # -- writing ------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, scope: str, owner: str = "") -> Iterator["Writer"]:
        """A transaction that changes rows of one scope, alone: `writing("thread", id)`. Without a scope, documents."""
        name = f"{scope}:{owner}" if scope else ""
        with self.database.transaction() as connection:
            writer = Writer(self, connection, name, self.heads.locked(connection, name) if name else None)
            yield writer
            writer.flush()

    def stored(self, table: Table, values: Mapping[str, object]) -> Row:
        """The row as it goes into the database, with its seal."""
        held: Row = {name: values[name] for name in table.columns}
        for name in self._secrets(table, held):
            held[name] = self.seals.hidden(place(table, held, name), held[name])
        return {**held, "seal": self._seal(table, held)}

    def _secrets(self, table: Table, held: Row) -> list[str]:
        """Columns that encryption hides. That nothing stands in one is no secret: the ledger counts by it."""
        return [name for name in table.secret if held[name] != ""] if self.seals.encrypts else []

    def _seal(self, table: Table, held: Row) -> str:
        # Whether it is encrypted is sealed too: a reader who thinks otherwise must not take ciphertext for text.
        values = [value if isinstance(value := held[name], str) else _number(value) for name in table.columns]
        return self.seals.seal(table.name, self.seals.encrypts, values)

    # -- heads --------------------------------------------------------------------------------------------

    def check(self, scope: str, owner: str, *, deep: bool = False) -> int:
        """Raises IntegrityError unless the rows are those that were written; returns the head's version. `deep` looks
        into every row, which reading does anyway. With a key it always does, since sums alone do not help against
        somebody who knows them: a row nobody reads could carry the seal of one that was removed. 8,000 rows of a
        thread of 100 turns take 120 ms, sums alone 20."""
        deep = deep or self.seals.keyed
        with self.database.transaction() as connection:
            head = self.heads.locked(connection, f"{scope}:{owner}", make=False)
            tables = [table for table in ALL if table.scope == scope]
            found = [seal for table in tables for seal in self._members(connection, table, owner, deep=deep)]
            if len(found) != head.members or self.heads.sum(found) != head.total:
                raise self.miscounted(scope, owner, head.members - len(found))
        return head.version

    def _members(self, connection: Connection, table: Table, owner: str, *, deep: bool) -> list[str]:
        """The seals of the rows there are."""
        rest = f"WHERE {table.owner} = ?"
        sql = select(table, rest) if deep else f"SELECT seal FROM {table.name} {rest}"  # noqa: S608  # names of ours
        rows = connection.execute(sql, (owner,)).fetchall()
        for row in rows if deep else ():
            self._checked(table, row)
        return [row["seal"] for row in rows]

    def miscounted(self, scope: str, owner: str, missing: int) -> IntegrityError:
        what = f"{missing} missing" if missing > 0 else f"{-missing} too many" if missing else "one was put back"
        return IntegrityError(
            f"{self.database.name}: the rows of {scope} {owner} are not those that were written ({what})",
            help=ALTERED,
            scope=f"{scope}:{owner}",
        )

    def check_heads(self) -> None:
        """With a key: that no thread, run or account was put back, or taken out, as a whole."""
        self.heads.check_all()

    def scopes(self) -> list[tuple[str, str]]:
        """Everything that has a head, as (scope, owner)."""
        return self.heads.names()


class Writer:
    """Changes to the rows of one scope, in one transaction."""

    def __init__(self, rows: Rows, connection: Connection, scope: str, head: Head | None) -> None:
        self.connection = connection
        self._rows = rows
        self._scope = scope
        self._head = head
        self._changed = False
        self._seen: dict[tuple[object, ...], tuple[Row, str]] = {}  # rows nobody else can change meanwhile, and seals

    def insert(self, table: Table, values: Mapping[str, object], *, on_conflict: OnConflict = "raise") -> bool:
        """Whether the row is new. `keep` leaves one that is there alone, `replace` puts the new one in its place."""
        row = self._rows.stored(table, values)
        self._belongs(table, row)
        if on_conflict == "replace":
            sql = f"SELECT seal FROM {table.name} {_by_key(table)}"  # noqa: S608
            before = self.connection.execute(sql, [row[name] for name in table.key]).fetchone()
            if before is not None:
                self._set(table, row, before["seal"])
                return False
        if self.connection.execute(_insert(table, on_conflict == "keep"), list(row.values())).rowcount == 0:
            return False
        self._count(1, int(row["seal"], 16))
        return True

    def read(self, table: Table, rest: str = "", values: Values = ()) -> list[Row]:
        """As the transaction sees them."""
        found = self.connection.execute(select(table, rest), values).fetchall()
        rows = [self._rows.opened(table, row) for row in found]
        if table.scope:
            for row, stored in zip(rows, found, strict=True):
                self._seen[table.name, *(row[name] for name in table.key)] = row, stored["seal"]
        return rows

    def one(self, table: Table, *key: object) -> Row | None:
        rows = self.read(table, _by_key(table), key)
        return rows[0] if rows else None

    def update(self, table: Table, key: Sequence[object], changes: Mapping[str, object]) -> Row | None:
        """The row as it is now; None where there is none."""
        seen = self._seen.get((table.name, *key))
        if seen is None:
            found = self.connection.execute(select(table, _by_key(table)), key).fetchone()
            if found is None:
                return None
            seen = self._rows.opened(table, found), found["seal"]
        before, seal = seen
        new = {**before, **changes}
        self._set(table, self._rows.stored(table, new), seal)
        return new

    def delete(self, table: Table, rest: str, values: Values = ()) -> int:
        """How many rows `rest`, a WHERE clause, had."""
        if not rest.startswith("WHERE "):
            raise StorageError("rows are deleted by a WHERE clause", help="This is a fault in Assay: report it.")
        found = self.connection.execute(f"SELECT seal FROM {table.name} {rest}", values).fetchall()  # noqa: S608
        self.connection.execute(f"DELETE FROM {table.name} {rest}", values)  # noqa: S608
        self._count(-len(found), -self._rows.heads.sum(row["seal"] for row in found))
        return len(found)

    def flush(self) -> None:
        if self._changed and self._head is not None:
            self._rows.heads.save(self.connection, self._head)

    def _set(self, table: Table, row: Row, before: str) -> None:
        self._belongs(table, row)
        put(self.connection, table, row)
        self._count(0, int(row["seal"], 16) - self._rows.heads.sum([before]))

    def _belongs(self, table: Table, row: Row) -> None:
        scope = f"{table.scope}:{row[table.owner]}" if table.scope else ""
        if scope != self._scope:
            raise StorageError(
                f"a row of {scope or 'nobody'} was written as one of {self._scope or 'nobody'}",
                help="This is a fault in Assay: report it.",
            )

    def _count(self, members: int, difference: int) -> None:
        self._seen.clear()
        if self._head is not None:
            self._head.add(members, difference)
            self._changed = True


def place(table: Table, row: Mapping[str, object], column: str = "") -> str:
    """What a message calls a row, and what an encrypted value is bound to."""
    name = "/".join(str(row[key]) for key in table.key)
    return f"{table.name} {name}" + (f" {column}" if column else "")


def altered(database: Database, table: Table, row: Mapping[str, object]) -> IntegrityError:
    return IntegrityError(
        f"{database.name}: row {place(table, row)} is not what was written", help=ALTERED, table=table.name
    )


def put(connection: Connection, table: Table, row: Row) -> None:
    """A row as it is stored, over the one of its key."""
    connection.execute(_update(table), [row[name] for name in (*_rest(table), *table.key)])


@cache
def _insert(table: Table, keep: bool) -> str:
    columns = (*table.columns, "seal")
    names, keys = (", ".join(map(_quoted, some)) for some in (columns, table.key))
    rest = f" ON CONFLICT ({keys}) DO NOTHING" if keep else ""
    return f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' for _ in columns)}){rest}"  # noqa: S608


@cache
def _update(table: Table) -> str:
    changes = ", ".join(f"{_quoted(name)} = ?" for name in _rest(table))
    return f"UPDATE {table.name} SET {changes} {_by_key(table)}"  # noqa: S608


@cache
def _rest(table: Table) -> tuple[str, ...]:
    return tuple(name for name in (*table.columns, "seal") if name not in table.key)


def _number(value: Any) -> Any:
    """Numbers are sealed by what they are worth: a column may give 1 back as 1.0, -0.0 as 0.0, and true as 1."""
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return int(value)
    return value


def select(table: Table, rest: str) -> str:
    """All columns with the seal."""
    return f"{_all_of(table)} {rest}"


@cache
def _all_of(table: Table) -> str:
    return f"SELECT {', '.join(named(table, table.columns))}, seal FROM {table.name}"  # noqa: S608


@cache
def _by_key(table: Table) -> str:
    return "WHERE " + " AND ".join(f"{name} = ?" for name in named(table, table.key))


def named(table: Table, columns: Sequence[str]) -> list[str]:
    """With the table's name before it: alone, a quoted name that is no column's is taken for a text by SQLite."""
    return [f"{table.name}.{_quoted(name)}" for name in columns]


def _quoted(name: str) -> str:
    return f'"{name}"'  # "by" is a word of SQL
