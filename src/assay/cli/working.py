"""`assay worker`: until a signal ends it."""

import asyncio
import os
import socket

from assay.cli import STOPPED
from assay.cli.ending import heeded
from assay.cli.screen import tell
from assay.settings import Settings, load
from assay.telemetry.logs import structured
from assay.text.words import counted


def work(concurrency: int | None, *, until_idle: bool) -> None:
    settings = load()
    from assay.worker.schema import check_fleet

    check_fleet(settings)
    with structured(settings, worker=f"{socket.gethostname()}-{os.getpid()}"):
        asyncio.run(_work(settings, concurrency, until_idle))


async def _work(settings: Settings, concurrency: int | None, until_idle: bool) -> None:
    from assay.worker.worker import open_worker

    stopping = asyncio.Event()

    def stop() -> None:
        """A second time: at once. Others find out within the time of a lease."""
        if stopping.is_set():
            os._exit(STOPPED)
        tell("Stopping: runs end the step they are at (Ctrl-C again to stop at once) ...")
        stopping.set()

    with heeded(stop, stop):
        async with open_worker(settings, concurrency) as worker:
            tell(f"Working on runs of {worker.database}, {worker.concurrency} at a time. Ctrl-C stops it.")
            if worker.figures:
                tell(f"Its figures are at {worker.figures}/metrics.")
            await worker.run(stopping, until_idle=until_idle)
    under_way = f"Put in line again, for another worker: {counted(worker.left, 'run')}."
    idle = "Nothing was under way." if stopping.is_set() else "Nothing is left to do."
    tell(f"Stopped. {under_way if worker.left else idle}")
