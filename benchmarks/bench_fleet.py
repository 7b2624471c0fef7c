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
    kinds = [blow.kind for blow in found.blows]
    times = [blow.at for blow in found.blows]
    apart = (times[-1] - times[0]) / max(len(times) - 1, 1) if times else 0.0
    print(f"blows                               every {apart:.1f} s")
    print(f"runs                                {found.runs} in {found.seconds:.0f} s, {found.starts} worker starts")
    print(f"SIGKILL, SIGSTOP                    {kinds.count('kill')}, {kinds.count('stop')}")
    print(f"runs lost                           {sum(found.runs.values()) - found.runs.get('done', 0)}")
    print(f"threads taken before their lease had ended  {found.early}")
    print(f"writes of another accepted          {len(found.foreign)} {found.foreign[:3] if found.foreign else ''}")
    print(f"runs given up by one that had lost them     {found.refused}")
    if found.rescues:
        print(
            f"threads held at a blow              {len(found.rescues)}, gone on with within one lease "
            f"{found.within(LEASE):.1%}, two {found.within(2 * LEASE):.1%}, longest {max(found.rescues):.1f} s"
        )
        marks = quantiles(found.rescues, n=100)
        print(f"half of them within {marks[49]:.1f} s, 90% {marks[89]:.1f} s, 99% {marks[98]:.1f} s")
    for line in found.slow:
        print(f"  {line}")


def main(jobs: int, blows: int) -> None:
    with server() as address, tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(address, Path(folder), lease=LEASE)
        try:
            shown(asyncio.run(disturbed(fleet, jobs, blows)))
        finally:
            fleet.close()


if __name__ == "__main__":
    main(*(int(one) for one in (sys.argv[1:] or (JOBS, BLOWS))))
