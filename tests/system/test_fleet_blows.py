"""Workers killed and stopped while they work; benchmarks/bench_fleet.py does it for 2,000 runs."""

import asyncio
import time
from pathlib import Path

import pytest

from benchmarks.fleet import Fleet

LEASE = 2.0
PATIENCE = 90.0


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
async def test_no_run_is_lost_and_nobody_writes_for_another(postgres_address: str, tmp_path: Path) -> None:
    fleet = Fleet(postgres_address, tmp_path, lease=LEASE, concurrency=4)
    began = time.monotonic()
    try:
        fleet.prepare()
        async with fleet.asking() as asker:
            await asker.ask(30, people=3)
        for _ in range(2):
            fleet.start()
        await asyncio.to_thread(fleet.wait_for_all)
        await fleet.disturb(3, pause=1.5)
        await fleet.done(PATIENCE)
        found = fleet.found(time.monotonic() - began)
    finally:
        fleet.close()

    assert found.runs == {"done": 30}
    assert (found.early, found.foreign) == (0, [])
    assert [blow.kind for blow in found.blows] == ["kill", "stop", "kill"]
    assert found.rescues  # or nothing was tried
