"""Workers that are killed and stopped while they work: python benchmarks/bench_fleet.py [JOBS [BLOWS]]

4 workers of 4 runs each on one PostgreSQL work off short research runs (the demo source, quick, no model). Meanwhile
one of them, drawn by chance, gets SIGKILL (and is replaced) or SIGSTOP (and is let go on after two and a half leases,
by when its runs are another's). Blows are spread over all runs, and five starts of a worker, measured first, lie
between two of them at the least. Asked of the books that
the database keeps (benchmarks/fleet.py): is a run lost, was a thread taken whose lease had not ended, was anything
accepted of one whose thread another had, and how soon was a run gone on with?
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

from benchmarks.figures import keep
from benchmarks.fleet import Fleet, Found
from benchmarks.postgres import server

JOBS, BLOWS, WORKERS, LEASE = 2000, 60, 4, 5.0
LONGEST = 3600.0


async def disturbed(fleet: Fleet, jobs: int, blows: int) -> Found:
    fleet.prepare()
    async with fleet.asking() as asker:
        await asker.ask(WORKERS)
        began = time.monotonic()
        for _ in range(WORKERS):
            fleet.start()
        fleet.wait_for_all()
        start = (time.monotonic() - began) / WORKERS  # they share the cores
        await asker.ask(jobs - WORKERS, people=20)
    print(f"a worker starts in {start:.1f} s", flush=True)
    disturbing = asyncio.create_task(fleet.disturb(blows, 5 * start))
    await fleet.done(LONGEST)
    await disturbing
    await fleet.done(LONGEST)
    return fleet.found(time.monotonic() - began)


def shown(found: Found) -> None:
    lines = table(found)
    for name, value in lines.items():
        print(f"{name:72} {value}")
    for line in found.slow:
        print(f"  {line}")
    keep("fleet", ("", ""), lines.items())


def table(found: Found) -> dict[str, str]:
    kinds = [blow.kind for blow in found.blows]
    times = [blow.at for blow in found.blows]
    apart = (times[-1] - times[0]) / max(len(times) - 1, 1) if times else 0.0
    done = found.runs.get("done", 0)
    lines = {
        "runs done": f"{done:,} in {found.seconds:,.0f} s, {found.starts} starts of a worker",
        "SIGKILL, SIGSTOP": f"{kinds.count('kill')}, {kinds.count('stop')}, one every {apart:.1f} s",
        "runs lost": f"**{sum(found.runs.values()) - done}**",
        "threads taken before their lease had ended": f"**{found.early}**",
        "writes of a worker accepted whose thread was another's": f"**{len(found.foreign)}**",
        "times one was refused and gave up its run": f"{found.refused:,}",
        "threads held after a blow": f"{len(found.rescues):,}",
    }
    if found.rescues:
        marks = quantiles(found.rescues, n=100)
        lines["gone on with by another within two leases"] = f"**{found.within(2 * LEASE):.1%}**"
        lines["half of them, 90%, 99%, all within"] = (
            f"{marks[49]:.1f} s, {marks[89]:.1f} s, {marks[98]:.1f} s, {max(found.rescues):.1f} s"
        )
    return lines


def main(jobs: int, blows: int) -> None:
    with server() as address, tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(address, Path(folder), lease=LEASE)
        try:
            found = asyncio.run(disturbed(fleet, jobs, blows))
        finally:
            fleet.close()
    shown(found)
    if found.early or found.foreign or found.runs.get("done") != jobs:
        sys.exit("not as it should be")


if __name__ == "__main__":
    main(*(int(one) for one in (sys.argv[1:] or (JOBS, BLOWS))))
