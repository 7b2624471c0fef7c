"""`openassay worker`: until a signal ends it."""

import asyncio
import os
import socket
from typing import Any

import typer

from openassay.cli import STOPPED
from openassay.cli.runtime import handle_signals
from openassay.cli.screen import print_message
from openassay.settings import Settings, load
from openassay.telemetry.logs import configure_logs
from openassay.text.words import pluralize

# `openassay mcp`: over stdin and stdout for one program, or over HTTP as a part of the server.


def serve_mcp_stdio() -> None:
    from openassay.mcp_server.stdio import serve

    asyncio.run(serve(load(), handle_signals))


def serve_mcp_http(host: str | None, port: int | None) -> None:
    given: dict[str, Any] = {"host": host, "port": port}
    said = {name: value for name, value in given.items() if value is not None}
    asyncio.run(_serve_mcp(load(server=said or None)))


async def _serve_mcp(settings: Settings) -> None:
    from openassay.server.app import open_server
    from openassay.server.mcp import PATH

    ended = asyncio.Event()
    async with open_server(settings) as served:
        print_message(f"MCP clients may connect to {served.url}{PATH} (Ctrl-C ends it).")
        with handle_signals(ended.set, ended.set):
            await ended.wait()
        print_message("Stopping after the steps under way ...")


# `openassay serve`: the server, until a signal ends it.


def run_server(given: dict[str, object]) -> None:
    """`given` are settings of the server that were said; the others are as they stand."""
    settings = load(server={name: value for name, value in given.items() if value is not None})
    from openassay.telemetry.logs import configure_logs

    with configure_logs(settings):
        asyncio.run(_run_server(settings))


async def _run_server(settings: Settings) -> None:
    from openassay.server.app import open_server

    stopping = asyncio.Event()

    def stop() -> None:
        """A second time: at once."""
        if stopping.is_set():
            os._exit(STOPPED)
        print_message("Stopping: runs end the step they are at (Ctrl-C again to stop at once) ...")
        stopping.set()

    with handle_signals(stop, stop):
        async with open_server(settings) as server:
            typer.echo(server.url)
            print_message(f"Its API is described in {server.url}/openapi.json. Ctrl-C stops it.")
            if server.service.has_workers:
                print_message("Runs are put in line for workers: openassay worker")
            if server.service.open_to_all:
                print_message("Whoever is on this machine may use it; to let others in: openassay users add NAME")
            await stopping.wait()
    print_message("Stopped. What was under way goes on when the server starts again.")


def run_worker(concurrency: int | None, *, until_idle: bool) -> None:
    settings = load()
    from openassay.worker.queue import check_fleet

    check_fleet(settings)
    with configure_logs(settings, worker=f"{socket.gethostname()}-{os.getpid()}"):
        asyncio.run(_run_worker(settings, concurrency, until_idle))


async def _run_worker(settings: Settings, concurrency: int | None, until_idle: bool) -> None:
    from openassay.worker.worker import open_worker

    stopping = asyncio.Event()

    def stop() -> None:
        """A second time: at once. Others find out within the time of a lease."""
        if stopping.is_set():
            os._exit(STOPPED)
        print_message("Stopping: runs end the step they are at (Ctrl-C again to stop at once) ...")
        stopping.set()

    with handle_signals(stop, stop):
        async with open_worker(settings, concurrency) as worker:
            print_message(f"Working on runs of {worker.database}, {worker.concurrency} at a time. Ctrl-C stops it.")
            if worker.metrics_url:
                print_message(f"Its figures are at {worker.metrics_url}/metrics.")
            await worker.run(stopping, until_idle=until_idle)
    under_way = f"Put in line again, for another worker: {pluralize(worker.interrupted, 'run')}."
    idle = "Nothing was under way." if stopping.is_set() else "Nothing is left to do."
    print_message(f"Stopped. {under_way if worker.interrupted else idle}")
