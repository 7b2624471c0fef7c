"""Stored threads with 1,200 flipped bits in the database and 800 in the journal, and, with a key, 500 rows edited,
exchanged, put back or removed, also with sums made right: refused or harmless, never silently wrong. Three numbers as
arguments choose others."""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.damaging import trial
from benchmarks.figures import keep

SEED = 11
COUNTS = (1_200, 800, 500)


def main() -> int:
    in_database, in_journal, forged = map(int, sys.argv[1:4]) if len(sys.argv) > len(COUNTS) else COUNTS
    wrong, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        for title, tally in trial(Path(folder), in_database, in_journal, forged, SEED):
            print(f"{tally.line(title)}, {time.monotonic() - began:.0f} s", flush=True)
            for problem in tally.wrong[:10]:
                print(f"    {problem}")
            wrong += len(tally.wrong)
            counts = tally.outcomes
            rows.append((title, counts.total(), counts["refused"], counts["harmless"], len(tally.wrong)))
    keep("damage", ("", "alterations", "refused", "harmless", "silently wrong"), rows)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
