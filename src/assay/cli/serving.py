"""`assay serve`: the server, until a signal ends it."""

import asyncio
import os

import typer

from assay.cli import STOPPED
from assay.cli.ending import heeded
from assay.cli.screen import tell
from assay.settings import Settings, load


def serve(given: dict[str, object]) -> None:
    """`given` are settings of the server that were said; the others are as they stand."""
    settings = load(server={name: value for name, value in given.items() if value is not None})
    from assay.telemetry.logs import structured

    with structured(settings):
        asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from assay.server.serving import open_server

    stopping = asyncio.Event()

    def stop() -> None:
        """A second time: at once."""
        if stopping.is_set():
            os._exit(STOPPED)
        tell("Stopping: runs end the step they are at (Ctrl-C again to stop at once) ...")
        stopping.set()

    with heeded(stop, stop):
        async with open_server(settings) as server:
            typer.echo(server.url)
            tell(f"Its API is described in {server.url}/openapi.json. Ctrl-C stops it.")
            if server.service.has_workers:
                tell("Runs are put in line for workers: assay worker")
            if server.service.open_to_all:
                tell("Whoever is on this machine may use it; to let others in: assay users add NAME")
            await stopping.wait()
    tell("Stopped. What was under way goes on when the server starts again.")
