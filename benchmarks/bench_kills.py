"""Runs killed at random moments: 300 times on SQLite, 100 times on PostgreSQL. Numbers as arguments choose others."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import keep
from benchmarks.killing import trial
from benchmarks.postgres import server

SEED = 7
COLUMNS = (
    "kept in", "kills", "runs", "runs lost", "answers paid for again after they had arrived",
    "calls in flight, booked as ambiguous", "requests not in the books", "of",
)  # fmt: skip


def main() -> int:
    on_sqlite, on_postgres = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (300, 100)
    sound, rows = True, []
    for where, kills in (("SQLite", on_sqlite), ("PostgreSQL", on_postgres)):
        if not kills:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            if where == "PostgreSQL":
                with server() as address:
                    tally = asyncio.run(trial(Path(folder), kills, SEED, address))
            else:
                tally = asyncio.run(trial(Path(folder), kills, SEED))
        print(f"{tally.line(where)}, {time.monotonic() - began:.0f} s", flush=True)
        for problem in (*tally.lost_runs, *tally.paid_again, *tally.unbooked):
            print(f"    {problem}")
        sound = sound and tally.sound()
        rows.append((
            where, tally.kills, tally.runs, len(tally.lost_runs), len(tally.paid_again), tally.ambiguous,
            len(tally.unbooked), tally.requests,
        ))  # fmt: skip
    keep("kills", COLUMNS, rows)
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
