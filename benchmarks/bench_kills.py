"""Runs killed at random moments: 300 times on SQLite, 100 times on PostgreSQL. Numbers as arguments choose others."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.killing import trial
from benchmarks.postgres import server

SEED = 7


def main() -> int:
    on_sqlite, on_postgres = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (300, 100)
    sound = True
    for where, kills in (("sqlite", on_sqlite), ("postgres", on_postgres)):
        if not kills:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            if where == "postgres":
                with server() as address:
                    tally = asyncio.run(trial(Path(folder), kills, SEED, address))
            else:
                tally = asyncio.run(trial(Path(folder), kills, SEED))
        print(f"{tally.line(where)}, {time.monotonic() - began:.0f} s", flush=True)
        for problem in (*tally.lost_runs, *tally.paid_again, *tally.unbooked):
            print(f"    {problem}")
        sound = sound and tally.sound()
    return int(not sound)


if __name__ == "__main__":
    sys.exit(main())
