"""The application: every route, and what stands around all of them."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI

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

ROUTERS = (
    system.health_router, system.figures_router, account.account_router, threads.threads_router, threads.state_router,
    stream.router, threads.history_router, reviews.router, sources.router, artifacts.router, exports.router,
    documents.router, account.memory_router, account.shares_router, account.webhooks_router, completions.router,
    choices.router, system.graph_router, system.ui_router,
)  # fmt: skip


def create_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="OpenAssay",
        version=version("openassay"),
        summary="Deep research whose every sentence opens the passage that supports it.",
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


# A socket that is bound, and an application that answers on it, for as long as it is open.

CLOSING = 3  # seconds that requests under way are given to end when the server stops


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are for whoever runs this to heed."""
        yield


@contextlib.contextmanager
def bind_socket(host: str, port: int) -> Iterator[socket.socket]:
    """Before anything else is opened: a port that is taken is told at once."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends at once, not after 40 ms, if it is told TCP
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


@asynccontextmanager
async def serve_app(app: FastAPI, service: Service, listener: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=CLOSING,
    )  # fmt: skip
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="serving")
    try:
        while not server.started:  # uvicorn has nothing to wait on
            if serving.done():
                await serving  # which tells why, if it knows
                raise OpenAssayError("the server could not be started")
            await asyncio.sleep(0.01)
        yield
    finally:
        service.feeds.close()
        server.should_exit = True
        await serving


# Running the server: what is open while it runs, and how it stops.

_log = logging.getLogger("openassay")


class RunningServer(NamedTuple):
    url: str
    service: Service


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[RunningServer]:
    """A server that answers in here; its address is told, since it may have chosen the port. At the end no request is
    taken any more, streams end where they are, and runs after the step they are at: the next server goes on."""
    if settings.server.runs == "workers":
        check_fleet(settings)
    with bind_socket(settings.server.host, settings.server.port) as listener:
        async with open_server_resources(settings) as premises:
            if settings.server.runs == "workers":
                await asyncio.to_thread(prepare_tables, premises.world.rows.database)
            known = await premises.users.has_valid_token()
            if not known:
                _refuse_strangers(listener, settings.server)
            service = Service(premises=premises, open_to_all=await premises.users.is_empty())
            hooks = WebhookSender(premises)
            _tune_garbage_collection()
            async with (
                serve_app(create_app(service), service, listener),
                _run_in_background(dispatching=service.dispatcher.run(), webhooks=hooks.run()),
            ):
                yield RunningServer(_build_url(settings.server, listener), service)
            await premises.engine.drain(seconds=settings.server.drain_seconds)


def _tune_garbage_collection() -> None:
    """Garbage is collected in fewer and shorter pauses: one over all that was imported held up every request for
    138 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@asynccontextmanager
async def _run_in_background(**works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What goes on all the time, until the server stops."""
    tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
    for task in tasks:
        task.add_done_callback(_log_failure)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("%s has failed: %s: %s", task.get_name(), type(error).__name__, error, exc_info=error)


def _refuse_strangers(listener: socket.socket, settings: ServerSettings) -> None:
    """Names under which others come in, through a proxy on this machine, say, are as good as an address for them."""
    address = listener.getsockname()[0].partition("%")[0]
    names = [urlsplit(settings.public_url).hostname or ""] if settings.public_url else []
    if not all(map(_is_local, [address, *names, *settings.allow_hosts])):
        raise ConfigurationError(
            "nobody has a token, so only this machine may reach the server",
            help="Add a user: openassay admin users add NAME. Or listen on 127.0.0.1 without public_url or allow_hosts.",
        )


def _is_local(host: str) -> bool:
    name = host.lower().strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _build_url(settings: ServerSettings, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}"
