"""`openassay serve`, `worker` and `mcp`: processes that work until a signal ends them."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Annotated

import typer

from openassay.cli.runtime import handle_signals, wait_for_stop
from openassay.cli.screen import print_message
from openassay.errors import UsageError
from openassay.settings import Settings, load
from openassay.text.words import pluralize

STOPPING = "Stopping: runs end the step they are at (Ctrl-C again to stop at once) ..."
Port = Annotated[int | None, typer.Option("--port", metavar="N", help="0: any that is free.", min=0, max=65_535)]


def serve(
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Listen here; other machines need a token to be let in.")
    ] = None,
    port: Port = None,
    public_url: Annotated[
        str | None, typer.Option("--public-url", metavar="URL", help="Its public address, for links and webhooks.")
    ] = None,
) -> None:
    """Serve the web UI and the API until stopped; runs under way are resumed at the next start."""
    from openassay.telemetry.logs import configure_logs

    settings = _load_server_settings(host=host, port=port, public_url=public_url)

    async def run() -> None:
        from openassay.server.app import open_server

        with wait_for_stop(STOPPING) as stopping:
            async with open_server(settings) as server:
                typer.echo(server.url)
                print_message(f"Its API is described in {server.url}/openapi.json. Ctrl-C stops it.")
                if server.service.has_workers:
                    print_message("Runs are queued for workers: openassay worker")
                if server.service.open_to_all:
                    print_message("Anybody on this machine may use it. Let others in: openassay admin users add NAME")
                await stopping.wait()
        print_message("Stopped. Runs under way are resumed when the server starts again.")

    with configure_logs(settings):
        asyncio.run(run())


def _load_server_settings(**given: object) -> Settings:
    """Load the settings; options that were given take the place of the server's."""
    return load(server={name: value for name, value in given.items() if value is not None})


def worker(
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="How many runs to work on at a time.", min=1, max=200)
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop as soon as nothing is queued or running.")
    ] = False,
) -> None:
    """Work on queued runs until stopped; what it was working on is resumed by other workers."""
    from openassay.telemetry.logs import configure_logs
    from openassay.worker.queue import check_fleet

    settings = load()
    check_fleet(settings)

    async def run() -> None:
        from openassay.worker.worker import open_worker

        with wait_for_stop(STOPPING) as stopping:
            async with open_worker(settings, concurrency) as worker:
                print_message(f"Working on runs of {worker.database}, {worker.concurrency} at a time. Ctrl-C stops it.")
                if worker.metrics_url:
                    print_message(f"Its metrics are at {worker.metrics_url}/metrics.")
                await worker.run(stopping, until_idle=until_idle)
        idle = "Nothing was under way." if stopping.is_set() else "Nothing is left to do."
        requeued = f"Queued again, for another worker: {pluralize(worker.interrupted, 'run')}."
        print_message(f"Stopped. {requeued if worker.interrupted else idle}")

    with configure_logs(settings, worker=f"{socket.gethostname()}-{os.getpid()}"):
        asyncio.run(run())


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Over HTTP at /mcp, instead of stdin and stdout.")] = False,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="With --http: where to listen.")] = None,
    port: Port = None,
) -> None:
    """Serve research, search, fetch, verify and threads to MCP clients, such as assistants and editors."""
    if not http and (host is not None or port is not None):
        raise UsageError("--host and --port go with --http", help="Without it, stdin and stdout are used.")
    if not http:
        from openassay.mcp_server.stdio import serve as serve_stdio

        return asyncio.run(serve_stdio(load(), handle_signals))
    settings = _load_server_settings(host=host, port=port)

    async def run() -> None:
        from openassay.server.app import open_server
        from openassay.server.mcp import PATH

        ended = asyncio.Event()
        async with open_server(settings) as server:
            print_message(f"MCP clients may connect to {server.url}{PATH} (Ctrl-C ends it).")
            with handle_signals(ended.set, ended.set):
                await ended.wait()
            print_message("Stopping after the steps under way ...")

    return asyncio.run(run())
