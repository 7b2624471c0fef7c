"""200 readers of live events, each cut off 10 times at random, through two restarts of the server: once it is stopped
(SIGTERM), once killed (SIGKILL), in the middle of all runs. All readers of a run must have been told the same."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.figures import keep
from benchmarks.streaming import trial

RUNS, READERS, CUTS, LATENCY, SEED = 8, 200, 10, 0.8, 7


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tally = asyncio.run(
            trial(
                Path(folder), runs=RUNS, readers=READERS, cuts=CUTS, stops=(signal.SIGTERM, signal.SIGKILL),
                latency=LATENCY, seed=SEED,
            )
        )  # fmt: skip
    lost = sum(reader.lost for reader in tally.readers)
    print(
        f"{len(tally.readers)} readers of {len(tally.again)} runs, {tally.cuts} cuts at random,"
        f" {tally.restarts} restarts ({tally.downtime:.1f} s without a server; {lost} connections lost or refused),"
        f" {sum(reader.told for reader in tally.readers)} events told, {tally.seconds:.0f} s"
    )
    for thread, reader in tally.again.items():
        hashes = tally.hashes(thread)
        print(f"    {thread}  {reader.told} events  {len(hashes)} distinct transcripts  {sorted(hashes)[0][:16]}")
    keep("streams", ("", ""), [
        ("readers, of so many runs", f"{len(tally.readers)}, {len(tally.again)}"),
        ("cuts at random", tally.cuts),
        ("restarts of the server (SIGTERM, then SIGKILL)", tally.restarts),
        ("events told", sum(reader.told for reader in tally.readers)),
        ("runs of which all readers were told the same, as was one who read undisturbed",
         f"**{sum(len(tally.hashes(thread)) == 1 for thread in tally.again)}**"),
    ])  # fmt: skip
    return int(not tally.sound() or tally.cuts < READERS * CUTS)


if __name__ == "__main__":
    sys.exit(main())
