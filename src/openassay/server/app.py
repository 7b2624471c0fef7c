"""The application with all its routes, and the server that runs it."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import NamedTuple
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRoute

from openassay.bootstrap import open_server_resources
from openassay.errors import ConfigurationError, OpenAssayError
from openassay.server import mcp, middleware, problems
from openassay.server.middleware import RequestIdMiddleware
from openassay.server.routes import (
    account,
    artifacts,
    choices,
    completions,
    documents,
    exports,
    reviews,
    sources,
    stream,
    system,
    threads,
)
from openassay.server.service import Service
from openassay.server.webhooks import WebhookSender
from openassay.settings import ServerSettings, Settings
from openassay.worker.queue import check_fleet, prepare_tables

_log = logging.getLogger("openassay")
SHUTDOWN_SECONDS = 3  # that active requests have to end when the server stops
ROUTERS = (
    system.health_router,
    system.figures_router,
    account.account_router,
    threads.threads_router,
    threads.state_router,
    stream.router,
    threads.history_router,
    reviews.router,
    sources.router,
    artifacts.router,
    exports.router,
    documents.router,
    account.memory_router,
    account.shares_router,
    account.webhooks_router,
    completions.router,
    choices.router,
    system.graph_router,
    system.ui_router,
)


def name_operation(route: APIRoute) -> str:
    """Return the operation id of a route: the name of its function."""
    return route.name


def create_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="OpenAssay",
        version=version("openassay"),
        summary="Deep research whose every sentence opens the passage that supports it.",
        generate_unique_id_function=name_operation,
        docs_url=None,  # these pages would run scripts of other hosts beside people's tokens
        redoc_url=None,
    )
    app.state.service = service
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    mcp.mount(app, service)
    middleware.install_guard(app, service.settings.server)
    middleware.install_observation(app, service)
    app.add_middleware(RequestIdMiddleware)
    return app


class RunningServer(NamedTuple):
    url: str
    service: Service


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[RunningServer]:
    """Run a server; its address is given, since it may have chosen the port.

    At the end, no request is accepted any more, streams end where they are, and runs after their current step: the next
    server resumes them."""
    server = settings.server
    if server.runs == "workers":
        check_fleet(settings)
    with bind_socket(server.host, server.port) as listener:
        async with open_server_resources(settings) as resources:
            if server.runs == "workers":
                await asyncio.to_thread(prepare_tables, resources.rows.database)
            if not await resources.users.has_valid_token():
                _require_local(listener, server)
            service = Service(resources=resources, open_to_all=await resources.users.is_empty())
            sender = WebhookSender(resources)
            # Garbage is collected less often: one collection over all imports held up every request for 138 ms.
            gc.collect()
            gc.freeze()
            gc.set_threshold(50_000, 20, 50)
            async with serve_app(create_app(service), service, listener):
                works = {"dispatching": service.dispatcher.run(), "webhooks": sender.run()}
                tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
                for task in tasks:
                    task.add_done_callback(_log_failure)
                host = f"[{server.host}]" if ":" in server.host else server.host
                try:
                    yield RunningServer(f"http://{host}:{listener.getsockname()[1]}", service)
                finally:
                    for task in tasks:
                        task.cancel()
                    await asyncio.wait(tasks)
            await resources.engine.drain(seconds=server.drain_seconds)


@contextlib.contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Bind before anything else is opened, so that a port in use is an error at once."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # with the protocol, asyncio does not delay packets by 40 ms
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"{host} is no address to listen on ({error})", help="Set server.host, or --host."
        ) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}, port {port}: {(error.strerror or str(error)).lower()}",
                help="Is another server running? Choose another port with --port (0: any that is free).",
            ) from error
        yield listener


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield


@asynccontextmanager
async def serve_app(app: FastAPI, service: Service, listener: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="serving")
    try:
        while not server.started:  # uvicorn has nothing to wait on
            if serving.done():
                await serving  # which raises the reason, if it knows it
                raise OpenAssayError("the server could not be started")
            await asyncio.sleep(0.01)
        yield
    finally:
        service.feeds.close()
        server.should_exit = True
        await serving


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("%s has failed: %s: %s", task.get_name(), type(error).__name__, error, exc_info=error)


def _require_local(listener: socket.socket, settings: ServerSettings) -> None:
    """Refuse to serve other machines without authentication, also under a name, through a proxy for example."""
    address = listener.getsockname()[0].partition("%")[0]
    public = [urlsplit(settings.public_url).hostname or ""] if settings.public_url else []
    for host in [address, *public, *settings.allow_hosts]:
        name = host.lower().strip("[]")
        is_local = name == "localhost" or name.endswith(".localhost")
        with contextlib.suppress(ValueError):  # it is no address
            is_local = is_local or ipaddress.ip_address(name).is_loopback
        if not is_local:
            raise ConfigurationError(
                "nobody has a token, so only this machine may reach the server",
                help="Add a user: openassay admin users add NAME. Or listen on 127.0.0.1, without public_url and "
                "allow_hosts.",
            )
