"""Stored rows altered on purpose, by somebody who knows everything about seals but the key."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from openassay.storage.database import ALL_TABLES, EVENTS, PARTS, TableSpec
from openassay.storage.sealed_rows import Seals

Rows = list[dict[str, Any]]
# Rows that nothing names, so that nobody reads them.
_JUNK: dict[str, tuple[TableSpec, dict[str, Any]]] = {
    "thread": (PARTS, {"hash": "junk", "payload": b""}),
    "run": (EVENTS, {"seq": -1, "time": "", "kind": "", "stage": "", "parent": None, "data": "{}"}),
}


class Forger:
    """Somebody who knows everything about seals but the key."""

    def __init__(self, path: Path, earlier: list[Path], chance: random.Random) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        self._earlier = earlier
        self._chance = chance
        self._connection.execute("PRAGMA foreign_keys = OFF")

    def close(self) -> None:
        self._connection.close()

    def edit(self) -> str:
        """A column of a row, with a seal made anew as far as it can be without the key."""
        table, row = self._some_row()
        column = self._chance.choice(table.columns)
        edited = {**row, column: _other(row[column])}
        if self._chance.random() < 0.5:
            edited["seal"] = Seals().seal(table.name, [edited[name] for name in table.columns])
        self._delete(table, row)
        self._insert(table, edited)
        return f"edit of {table.name}.{column}"

    def swap(self) -> str:
        """Two rows of a table change places."""
        table = self._chance.choice([table for table in ALL_TABLES if len(self._rows(table)) > 1])
        one, two = self._chance.sample(self._rows(table), 2)
        for name in (*table.columns, "seal"):
            if name not in table.key:
                one[name], two[name] = two[name], one[name]
        self._replace(table, one)
        self._replace(table, two)
        return f"swap in {table.name}"

    def roll_back(self) -> str:
        """A row as it was before; sometimes with its head, sometimes a whole thread with everything in it."""
        with closing(self._old()) as old:
            how = self._chance.choice(["row", "row", "row and head", "scope"])
            return self._rolled_back(old, how)

    def _rolled_back(self, old: sqlite3.Connection, how: str) -> str:
        changed = [(table, row) for table in ALL_TABLES for row in _all(old, table) if self._differs(table, row)]
        table, row = self._chance.choice(changed)
        self._replace(table, row)
        scope = f"{table.scope}:{row[table.owner]}" if table.scope else ""
        if how != "row" and scope:
            self._copy_head(old, scope)
        if how == "scope" and scope:
            self._put_back(old, table, row[table.owner])
        return f"roll-back of {table.name} ({how})"

    def remove(self) -> str:
        table, row = self._some_row()
        self._delete(table, row)
        return f"removal from {table.name}"

    def in_the_clear(self) -> str:
        """A readable text where an encrypted one stood."""
        table = self._chance.choice([table for table in ALL_TABLES if table.secret and self._rows(table)])
        row = self._chance.choice(self._rows(table))
        column = self._chance.choice(sorted(table.secret))
        row[column] = b"{}" if isinstance(row[column], bytes) else "{}"
        self._replace(table, row)
        return f"plain text in {table.name}.{column}"

    # Sums that are right: what is wrong in one is made up for where nobody looks.

    def carry(self) -> str:
        """A row is removed, and one nobody reads carries its seal."""
        table = self._chance.choice([table for table in ALL_TABLES if table.scope in _JUNK and self._rows(table)])
        row = self._chance.choice(self._rows(table))
        self._delete(table, row)
        junk, values = _JUNK[table.scope]
        self._insert(junk, {**values, junk.owner: row[table.owner], "seal": row["seal"]})
        return f"removal from {table.name}, its seal carried by a row of {junk.name}"

    def make_up(self) -> str:
        """A row is put back, and the seal of another of its thread makes up for it."""
        with closing(self._old()) as old:
            table, row = self._earlier_row(old)
        before = self._seal_of(table, row)
        others = [
            (other, held) for other in ALL_TABLES if other.scope == table.scope for held in self._rows(other)
            if held[other.owner] == row[table.owner] and (other, _by_key(other, held)) != (table, _by_key(table, row))
        ]  # fmt: skip
        self._replace(table, row)
        other, held = self._chance.choice(others)
        self._replace(other, {**held, "seal": _shifted(held["seal"], before, row["seal"])})
        return f"roll-back of {table.name}, made up for in {other.name}"

    def make_up_heads(self) -> str:
        """A thread is put back as a whole, and the seal of another head makes up for it."""
        with closing(self._old()) as old:
            table, row = self._earlier_row(old)
            scope = f"{table.scope}:{row[table.owner]}"
            before = self._connection.execute("SELECT seal FROM heads WHERE scope = ?", (scope,)).fetchone()["seal"]
            self._put_back(old, table, row[table.owner])
            self._copy_head(old, scope)
        heads = self._connection.execute("SELECT scope, seal FROM heads WHERE scope NOT IN (?, 'all')", (scope,))
        other = self._chance.choice(heads.fetchall())
        after = self._connection.execute("SELECT seal FROM heads WHERE scope = ?", (scope,)).fetchone()["seal"]
        seal = _shifted(other["seal"], before, after)
        self._connection.execute("UPDATE heads SET seal = ? WHERE scope = ?", (seal, other["scope"]))
        return f"roll-back of {scope}, made up for in the head of {other['scope']}"

    def _old(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._chance.choice(self._earlier))
        connection.row_factory = sqlite3.Row
        return connection

    def _earlier_row(self, old: sqlite3.Connection) -> tuple[TableSpec, dict[str, Any]]:
        """One of a thread that was there and has changed since."""
        tables = [table for table in ALL_TABLES if table.scope == "thread"]
        changed = [
            (table, row) for table in tables for row in _all(old, table)
            if self._differs(table, row) and self._seal_of(table, row)
        ]  # fmt: skip
        return self._chance.choice(changed)

    def _seal_of(self, table: TableSpec, row: dict[str, Any]) -> str:
        where, values = _by_key(table, row)
        found = self._connection.execute(f"SELECT seal FROM {table.name} {where}", values).fetchone()  # noqa: S608
        return str(found["seal"]) if found else ""

    def _put_back(self, old: sqlite3.Connection, table: TableSpec, owner: str) -> None:
        """All rows of a scope."""
        for other in (one for one in ALL_TABLES if one.scope == table.scope):
            self._connection.execute(f"DELETE FROM {other.name} WHERE {other.owner} = ?", (owner,))  # noqa: S608
            for held in _all(old, other):
                if held[other.owner] == owner:
                    self._insert(other, held)

    def _some_row(self) -> tuple[TableSpec, dict[str, Any]]:
        table = self._chance.choice([table for table in ALL_TABLES if self._rows(table)])
        return table, self._chance.choice(self._rows(table))

    def _rows(self, table: TableSpec) -> Rows:
        return _all(self._connection, table)

    def _differs(self, table: TableSpec, row: dict[str, Any]) -> bool:
        where, values = _by_key(table, row)
        found = self._connection.execute(f"SELECT seal FROM {table.name} {where}", values).fetchone()  # noqa: S608
        return found is None or found["seal"] != row["seal"]

    def _replace(self, table: TableSpec, row: dict[str, Any]) -> None:
        self._delete(table, row)
        self._insert(table, row)

    def _delete(self, table: TableSpec, row: dict[str, Any]) -> None:
        where, values = _by_key(table, row)
        self._connection.execute(f"DELETE FROM {table.name} {where}", values)  # noqa: S608

    def _insert(self, table: TableSpec, row: dict[str, Any]) -> None:
        names = ", ".join(f'"{name}"' for name in row)
        marks = ", ".join("?" for _ in row)
        self._connection.execute(f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({marks})", list(row.values()))  # noqa: S608

    def _copy_head(self, old: sqlite3.Connection, scope: str) -> None:
        head = old.execute("SELECT * FROM heads WHERE scope = ?", (scope,)).fetchone()
        if head is not None:
            self._connection.execute(
                "UPDATE heads SET version = ?, members = ?, total = ?, seal = ? WHERE scope = ?",
                (head["version"], head["members"], head["total"], head["seal"], scope),
            )


def _all(connection: sqlite3.Connection, table: TableSpec) -> Rows:
    names = ", ".join(f'"{name}"' for name in (*table.columns, "seal"))
    return [dict(row) for row in connection.execute(f"SELECT {names} FROM {table.name}")]  # noqa: S608


def _by_key(table: TableSpec, row: dict[str, Any]) -> tuple[str, list[Any]]:
    return "WHERE " + " AND ".join(f'"{name}" = ?' for name in table.key), [row[name] for name in table.key]


def _shifted(seal: str, was: str, now: str) -> str:
    return f"{(int(seal, 16) + int(was, 16) - int(now, 16)) % 2**256:064x}"


def _other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, bytes):
        return value[:-1] + bytes([value[-1] ^ 1])
    return "x" if value is None else f"{value}x"
