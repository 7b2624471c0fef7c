"""Everything one machine keeps in SQLite, written into an empty PostgreSQL database: checked as it is read, and sealed
anew as it is written."""

from collections.abc import Sequence
from itertools import chain

from assay.errors import UsageError
from assay.storage.database import Connection
from assay.storage.files import Files, upload_of
from assay.storage.rows import Rows, Writer, select
from assay.storage.tables import ALL, EVENTS, MEMORIES, UPLOADS, Table
from assay.storage.uploads import named

_ORDER = ("thread", "run", "ledger", "user")  # what others refer to comes first

Memory = tuple[str, str, str, str]  # whose, where, under which key, and what


def transfer(source: Rows, target: Rows, files: tuple[Files, Files], memories: Sequence[Memory]) -> int:
    """All or nothing; how many rows. `files` are where the bytes of uploads stand, and where they go. Nobody writes to
    the source meanwhile."""
    with source.database.transaction() as reading, target.database.transaction() as writing:
        _refuse_unless_empty(target, writing)
        source.check_heads()
        count = 0
        for scope, owner in sorted(source.scopes(), key=lambda one: _ORDER.index(one[0])):
            source.check(scope, owner)
            with target.writing(scope, owner) as writer:
                count += sum(_copied(source, reading, writer, table, owner) for table in ALL if table.scope == scope)
        with target.writing("") as writer:
            for table in (table for table in ALL if not table.scope):
                for row in chain.from_iterable(source.batches(table)):
                    count += writer.insert(table, source.opened(table, row))
        _give_numbers(writing)
        count += _remember(target, memories)
        _move(source, *files)
    return count


def _copied(source: Rows, reading: Connection, writer: Writer, table: Table, owner: str) -> int:
    """In the order in which they were inserted, which the new place numbers them by."""
    order = ", ".join(table.key) if table is EVENTS else "rowid"  # the only one without
    rows = reading.execute(select(table, f"WHERE {table.owner} = ? ORDER BY {order}"), (owner,)).fetchall()
    return sum(writer.insert(table, source.opened(table, row)) for row in rows)


def _give_numbers(writing: Connection) -> None:
    """From where those of the calls end."""
    writing.execute("SELECT setval('calls_id', (SELECT max(id) FROM calls)) WHERE EXISTS (SELECT 1 FROM calls)")


def _remember(target: Rows, memories: Sequence[Memory]) -> int:
    for memory in memories:
        with target.writing("user", memory[0]) as writer:
            writer.insert(MEMORIES, dict(zip(MEMORIES.columns, memory, strict=True)))
    return len(memories)


def _move(source: Rows, here: Files, there: Files) -> None:
    """Bytes that are gone here are gone there, too."""
    for upload in map(upload_of, source.read(UPLOADS)):
        if here.has(upload):
            there.put(upload, here.located(named(upload)) / upload.name)


def _refuse_unless_empty(target: Rows, writing: Connection) -> None:
    for table in ALL:
        if writing.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone():  # noqa: S608  # names of ours
            raise UsageError(
                f"{target.database.name} holds something already", help="Name an empty database, or create another one."
            )
