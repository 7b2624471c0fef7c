"""What belongs together, summed up: for a thread, a run's events or an account, how many rows there are and the sum of
their seals. With a key a head over all heads does the same for them.

Sums are taken modulo 2**256, so a change costs one row of `heads` whatever the size of the thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from assay.errors import IntegrityError
from assay.storage import fences
from assay.storage.database import Connection, Database
from assay.storage.seals import ALTERED, Seals
from assay.storage.tables import ALL

_MODULUS = 2**256
_EVERYTHING = "all"
_SCOPES = frozenset(table.scope for table in ALL if table.scope)
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

    def sealed(self, seals: Seals) -> str:
        return seals.seal("heads", self.scope, self.version, self.members, f"{self.total:064x}")


class Heads:
    """The table `heads`. Its methods that take a connection are steps of a transaction.

    Who locks several locks those of threads, runs and accounts first and what they have in common last: two who do it
    the other way round would wait for each other."""

    def __init__(self, database: Database, seals: Seals) -> None:
        self._database = database
        self._seals = seals

    def locked(self, connection: Connection, scope: str, *, make: bool = True) -> Head:
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
        return self._opened(row)

    def take(self, connection: Connection, scopes: Iterable[str]) -> None:
        """Lock heads in whatever state they are; those there are."""
        for scope in scopes:
            fences.check(connection, scope)
            connection.execute(_ONE + self._database.for_update, (scope,)).fetchall()

    def take_common(self, connection: Connection) -> None:
        """Lock what all have in common: no run begins, and nobody else who does this goes on, until the transaction is
        over. With a key that is the head over all heads, which every change locks in the end."""
        if self._seals.keyed:
            self.locked(connection, _EVERYTHING)
        else:
            connection.execute(_MOMENT + self._database.for_update).fetchall()

    def save(self, connection: Connection, head: Head) -> None:
        before = int(head.seal, 16)
        head.version += 1
        head.seal = head.sealed(self._seals)
        connection.execute(_SET, (head.version, head.members, f"{head.total:064x}", head.seal, head.scope))
        if head.scope != _EVERYTHING:
            self._count_in(connection, 0, int(head.seal, 16) - before)

    def drop(self, connection: Connection, scopes: Iterable[str]) -> int:
        """Forget the heads of rows that are gone; how many there were."""
        seals = []
        for scope in scopes:
            row = connection.execute(_ONE, (scope,)).fetchone()
            if row is not None:
                connection.execute("DELETE FROM heads WHERE scope = ?", (scope,))
                seals.append(row["seal"])
        if self._seals.keyed and seals:
            self._count_in(connection, -len(seals), -self.sum(seals))
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
            everything = self.locked(connection, _EVERYTHING)
            rows = connection.execute(_OTHERS, (_EVERYTHING,)).fetchall()
        heads = [self._opened(row) for row in rows]
        if len(heads) != everything.members or self.sum(head.seal for head in heads) != everything.total:
            raise IntegrityError(
                f"{self._database.name}: a thread, a run or an account was put back or taken out", help=ALTERED
            )

    def names(self) -> list[tuple[str, str]]:
        """Everything that has a head, as (scope, owner)."""
        with self._database.connection() as connection:
            rows = connection.execute(_OTHERS, (_EVERYTHING,)).fetchall()
        return [self._named(row["scope"]) for row in rows]

    def sum(self, seals: Iterable[str]) -> int:
        try:
            return sum(int(seal, 16) for seal in seals) % _MODULUS
        except (TypeError, ValueError) as error:
            raise IntegrityError(f"{self._database.name}: a seal is not what was written", help=ALTERED) from error

    def altered(self, scope: str) -> IntegrityError:
        return IntegrityError(
            f"{self._database.name}: row heads {scope} is not what was written", help=ALTERED, table="heads"
        )

    def _opened(self, row: Any) -> Head:
        try:
            head = Head(row["scope"], row["version"], row["members"], int(row["total"], 16), row["seal"])
        except (TypeError, ValueError) as error:
            raise self.altered(row["scope"]) from error
        if head.sealed(self._seals) != head.seal:
            raise self.altered(head.scope)
        return head

    def _make(self, connection: Connection, scope: str) -> None:
        head = Head(scope)
        if self._insert(connection, head) and scope != _EVERYTHING:  # unless somebody was faster
            self._count_in(connection, 1, int(head.seal, 16))

    def _insert(self, connection: Connection, head: Head) -> int:
        head.seal = head.sealed(self._seals)
        values = (head.scope, head.version, head.members, f"{head.total:064x}", head.seal)
        return connection.execute(_NEW, values).rowcount

    def _count_in(self, connection: Connection, members: int, difference: int) -> None:
        if self._seals.keyed:
            everything = self.locked(connection, _EVERYTHING)
            everything.add(members, difference)
            self.save(connection, everything)
        elif members > 0 and connection.execute(_ONE, (_EVERYTHING,)).fetchone():
            raise self.altered(_EVERYTHING)  # sealed with a key since we opened it

    def _named(self, head: object) -> tuple[str, str]:
        scope, _, owner = str(head).partition(":")
        if scope not in _SCOPES:
            raise self.altered(str(head))
        return scope, owner
