"""What a store needs of a database, be it SQLite or PostgreSQL.

SQL is written once, for both: `?` and `:name` stand for values, times are text, truth is 0 or 1, and every table has a
`rowid` in the order of insertion.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from assay.errors import StorageError

Values = Sequence[object] | Mapping[str, object]
Constraint = Literal["primary", "unique", "foreign", "other"]


class ConstraintError(StorageError):
    """A row that may not be; `constraint` says which rule is against it."""

    def __init__(self, message: str, constraint: Constraint) -> None:
        super().__init__(message, help="This is a fault in Assay: report it.")
        self.constraint = constraint


class Result(Protocol):
    """The rows of a statement; each can be asked by the name of a column."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    def execute(self, sql: str, values: Values = ..., /) -> Result: ...


class Database(Protocol):
    """Synchronous: callers run it in a thread. Faults leave it as StorageError."""

    @property
    def name(self) -> str:
        """For messages: a path or an address, without a password."""
        ...

    @property
    def for_update(self) -> str:
        """What a SELECT ends in whose rows nobody else may change until the transaction is over."""
        ...

    def next_id(self, connection: Connection, table: str) -> int:
        """The number of a new row, higher than any before; to be asked inside the transaction that writes the row."""
        ...

    def connection(self) -> AbstractContextManager[Connection]:
        """For reading; each statement sees the last committed state."""
        ...

    def transaction(self) -> AbstractContextManager[Connection]:
        """For writing: all or nothing. Inside another one of the same thread it becomes part of that one."""
        ...

    def scrub(self) -> None:
        """Rid its files of what was deleted, as far as others who use them allow."""
        ...

    def close(self) -> None: ...


def timestamp(moment: datetime) -> str:
    """UTC and of fixed width, so that the order of the text is the order in time."""
    if moment.tzinfo is None:
        raise StorageError(f"{moment} has no time zone", help="Use datetime.now(UTC).")
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def utc_now() -> datetime:
    return datetime.now(UTC)
