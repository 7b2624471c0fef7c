"""Deleting a thread for good, also one whose rows are damaged: nothing here is read but names.

Other machines may have journals of its runs. That a run was deleted is kept, so that they can tell it from one whose
database was lost.
"""

from collections.abc import Collection

from assay.storage.database import Connection, timestamp, utc_now
from assay.storage.documents import sweep
from assay.storage.rows import Rows
from assay.storage.tables import ALL, DELETED

_BATCH = 500  # runs asked for at a time
_NOT_RESTORED = "NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = deleted.run)"
_RUNS = "SELECT id FROM runs WHERE thread = ? ORDER BY started, id"


def run_ids(rows: Rows, thread: str) -> list[str]:
    with rows.database.connection() as connection:
        return [str(row["id"]) for row in connection.execute(_RUNS, (thread,)).fetchall()]


def delete(rows: Rows, thread: str) -> bool:
    """What was said, found and decided; whether there was anything of it. What was spent stays in the books."""
    with rows.database.transaction() as connection:
        rows.heads.take(connection, [f"thread:{thread}"])
        runs = run_ids(rows, thread)
        owners = [*(("run", run) for run in runs), ("thread", thread)]
        scopes = [":".join(owner) for owner in owners]
        rows.heads.take(connection, scopes)
        count = sum(_discard(connection, *owner) for owner in owners)
        count += rows.heads.drop(connection, scopes)  # no sum is left that they could be missed in
        sweep(rows, connection)
        with rows.writing("") as writer:
            for run in runs:
                writer.insert(DELETED, {"run": run, "time": timestamp(utc_now())}, on_conflict="keep")
    return count > 0


def deleted(rows: Rows, runs: Collection[str]) -> set[str]:
    """Those of the runs that went with their thread, and were not restored since."""
    found, asked = set[str](), sorted(runs)
    for start in range(0, len(asked), _BATCH):
        some = asked[start : start + _BATCH]
        rest = f"WHERE run IN ({', '.join('?' for _ in some)}) AND {_NOT_RESTORED}"
        found |= {row["run"] for row in rows.sift(DELETED, rest, some)[0]}
    return found


def _discard(connection: Connection, scope: str, owner: str) -> int:
    """All rows that belong together."""
    count = 0
    for table in reversed([table for table in ALL if table.scope == scope]):  # what others refer to goes last
        sql = f"DELETE FROM {table.name} WHERE {table.owner} = ?"  # noqa: S608  # names of ours
        count += connection.execute(sql, (owner,)).rowcount
    return count
