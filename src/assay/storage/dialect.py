"""Statements are those of SQLite; what differs on PostgreSQL is translated here: the marks for values, broken rules and
the character 0, which its text cannot hold.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from assay.storage.database import Constraint, ConstraintError, Result, Values

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

_MARKS = re.compile(r"\?|(?<![:\w]):([a-z_]+)|%")


class Translated:
    """A storage Connection over one of psycopg."""

    def __init__(self, connection: "PsycopgConnection[Any]") -> None:
        self._connection = connection

    def execute(self, sql: str, values: Values = (), /) -> Result:
        import psycopg

        try:
            # Without values psycopg sends the text as it is, several statements if need be.
            cursor = (
                self._connection.execute(_translated(sql), _without_zeros(values))
                if values
                else self._connection.execute(sql.encode())
            )
        except psycopg.IntegrityError as error:
            raise ConstraintError(line(error), _constraint(error)) from error
        return _Rows(cursor)

    def copy(self, target: str, rows: Iterable[Sequence[object]]) -> None:
        """Many rows at once, into a table with its columns in brackets."""
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row([_encoded(value) for value in row])


class _Rows:
    """A storage Result, with the characters 0 back in their places."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    @property
    def rowcount(self) -> int:
        return int(self._cursor.rowcount)

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        return None if row is None else _with_zeros(row)

    def fetchall(self) -> list[Any]:
        return [_with_zeros(row) for row in self._cursor.fetchall()]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())


@lru_cache(maxsize=512)
def _translated(sql: str) -> bytes:
    def mark(found: re.Match[str]) -> str:
        if found[0] == "%":
            return "%%"
        return f"%({found[1]})s" if found[1] else "%s"

    return _MARKS.sub(mark, sql).encode()


# U+E000 is for private use; where a text has it, it is doubled, so that every text comes back as it was.
_ESCAPE, _ZERO, _SELF = "\ue000", "\ue000\ue001", "\ue000\ue002"


def _without_zeros(values: Values) -> Any:
    if isinstance(values, Mapping):
        return {name: _encoded(value) for name, value in values.items()}
    return [_encoded(value) for value in values]


def _encoded(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str) or not ("\0" in value or _ESCAPE in value):
        return str(value) if isinstance(value, str) else value  # an enumeration is its text
    return value.replace(_ESCAPE, _SELF).replace("\0", _ZERO)


def _with_zeros(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.replace(_ZERO, "\0").replace(_SELF, _ESCAPE)
        if isinstance(value, str) and _ESCAPE in value
        else value
        for name, value in row.items()
    }


def _constraint(error: Any) -> Constraint:
    from psycopg.errors import ForeignKeyViolation, UniqueViolation

    if isinstance(error, ForeignKeyViolation):
        return "foreign"
    if isinstance(error, UniqueViolation):
        return "primary" if str(error.diag.constraint_name).endswith("_pkey") else "unique"
    return "other"


def line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
