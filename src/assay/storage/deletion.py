"""Deleting a thread for good, also one whose rows are damaged: nothing here is read but names."""

from assay.storage.database import Connection
from assay.storage.documents import sweep
from assay.storage.rows import Rows
from assay.storage.tables import ALL

_RUNS = "SELECT id FROM runs WHERE thread = ? ORDER BY started, id"


def run_ids(rows: Rows, thread: str) -> list[str]:
    with rows.database.connection() as connection:
        return [str(row["id"]) for row in connection.execute(_RUNS, (thread,)).fetchall()]


def delete(rows: Rows, thread: str) -> bool:
    """What was said, found and decided; whether there was anything of it. What was spent stays in the books."""
    with rows.database.transaction() as connection:
        rows.heads.take(connection, [f"thread:{thread}"])
        owners = [*(("run", run) for run in run_ids(rows, thread)), ("thread", thread)]
        scopes = [":".join(owner) for owner in owners]
        rows.heads.take(connection, scopes)
        count = sum(_discard(connection, *owner) for owner in owners)
        count += rows.heads.drop(connection, scopes)  # no sum is left that they could be missed in
        sweep(rows, connection)
    return count > 0


def _discard(connection: Connection, scope: str, owner: str) -> int:
    """All rows that belong together."""
    count = 0
    for table in reversed([table for table in ALL if table.scope == scope]):  # what others refer to goes last
        sql = f"DELETE FROM {table.name} WHERE {table.owner} = ?"  # noqa: S608  # names of ours
        count += connection.execute(sql, (owner,)).rowcount
    return count
