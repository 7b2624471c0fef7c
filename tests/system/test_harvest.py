"""A harvest as a whole: as fast as its pages can be read, a polite guest, and nothing left behind when it is killed."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.bench_web import SLACK, from_memory, from_web
from openassay.fetch.extractor import ExtractorPool
from openassay.settings import HarvestSettings

PAGES, HOSTS = 40, 10

# A workshop with one worker at rest and one that reads a long page, which takes it 6 s.
HARVESTER = """
import asyncio
from openassay.fetch.formats import ContentFormat
from openassay.fetch.extractor import ExtractorPool

async def main() -> None:
    workshop = ExtractorPool(workers=2)
    page = b"<html><body><p>One page.</p></body></html>"
    read = lambda body, format: workshop.extract(body, format=format, url="http://a.test/", seconds=3)
    await asyncio.gather(*(read(page, ContentFormat.HTML) for _ in range(4)))
    line = b"<p>The office measured the tide, and <a href=/x>nobody</a> has explained it so far.</p>"
    hanging = asyncio.create_task(read(b"<html><body><article>" + line * 18_000, ContentFormat.HTML))
    await asyncio.sleep(0.3)
    print("done" if hanging.done() else "at work", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.requirement("W-08")
async def test_a_harvest_is_polite_and_as_fast_as_its_pages_can_be_read(eval_data: Path) -> None:
    """Ten hosts with four pages each. Alone on two cores the ratio is below 1.3; other tests run beside this one."""
    folder = eval_data / "extraction"
    names = sorted(json.loads((folder / "ground-truth.json").read_text(encoding="utf-8")))[:PAGES]
    bodies = [gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()) for name in names]
    settings = HarvestSettings(least_quality=0.0)
    workshop = ExtractorPool(workers=2)
    await from_memory(workshop, bodies[:4])
    memory = await from_memory(workshop, bodies)
    wall, log, found = await from_web(workshop, settings, bodies, HOSTS)
    await workshop.close()
    assert sum(page.document is not None for page in found) >= PAGES - 2, [page.reason for page in found]
    assert max(log.most.values()) <= settings.at_once_per_host
    assert log.shortest_pause() >= settings.host_pause - SLACK
    assert {len(starts) for starts in log.starts.values()} == {PAGES // HOSTS}
    assert wall < 3 * memory + (PAGES // HOSTS) * settings.host_pause + 1


@pytest.mark.slow
@pytest.mark.requirement("W-08")
def test_workers_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", HARVESTER], stdout=subprocess.PIPE, text=True) as harvester:
        assert harvester.stdout is not None
        assert harvester.stdout.readline() == "at work\n"
        workers = [int(pid) for pid in Path(f"/proc/{harvester.pid}/task/{harvester.pid}/children").read_text().split()]
        assert len(workers) == 2
        os.kill(harvester.pid, signal.SIGKILL)
    ends = time.monotonic() + 20
    while left := [pid for pid in workers if _is_alive(pid)]:
        assert time.monotonic() < ends, left
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
