"""The application with all its routes, the server that runs it, and a viewer of one report."""

import asyncio
import contextlib
import gc
import logging
import socket
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import NamedTuple
from urllib.parse import urlsplit

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from openassay.bootstrap import open_server_resources
from openassay.engine.bundle_import import store_report
from openassay.engine.webhooks import WebhookSender
from openassay.errors import ConfigurationError, OpenAssayError
from openassay.models.evidence import Document
from openassay.models.report import ReportData
from openassay.models.user import Scope as Permission
from openassay.server import mcp, middleware, responses
from openassay.server.auth import authenticate
from openassay.server.middleware import ObservationMiddleware, RequestIdMiddleware
from openassay.server.responses import ForbiddenError
from openassay.server.routes import (
    account,
    artifacts,
    completions,
    documents,
    reports,
    reviews,
    stream,
    system,
    threads,
)
from openassay.server.service import Principal, Service
from openassay.settings import ServerSettings, Settings, load
from openassay.telemetry.endpoint import attach_metrics
from openassay.worker.queue import check_fleet, prepare_tables

_log = logging.getLogger("openassay")
SHUTDOWN_SECONDS = 3  # that active requests have to end when the server stops
ROUTERS = (
    system.health_router,
    system.figures_router,
    account.account_router,
    threads.threads_router,
    reports.state_router,
    stream.router,
    threads.history_router,
    reviews.router,
    reports.sources_router,
    artifacts.router,
    reports.exports_router,
    documents.router,
    account.memory_router,
    account.shares_router,
    account.webhooks_router,
    completions.router,
    system.choices_router,
    system.graph_router,
    system.ui_router,
)


def create_app(service: Service) -> FastAPI:
    app = _assemble(service, ROUTERS, openapi_url="/openapi.json")
    mcp.mount(app, service)
    middleware.install_guard(app, service.settings.server)
    app.state.metrics = attach_metrics(service.engine, service.resources.rows.database)
    app.add_middleware(ObservationMiddleware, metrics=app.state.metrics, traces=service.resources.traces)
    app.add_middleware(RequestIdMiddleware)
    return app


def _assemble(service: Service, routers: Iterable[APIRouter], openapi_url: str | None) -> FastAPI:
    app = FastAPI(
        title="OpenAssay",
        version=version("openassay"),
        summary="Deep research whose every sentence opens the passage that supports it.",
        generate_unique_id_function=lambda route: route.name,
        openapi_url=openapi_url,
        docs_url=None,  # these pages would run scripts of other hosts beside people's tokens
        redoc_url=None,
    )
    app.state.service = service
    responses.install(app)
    for router in routers:
        app.include_router(router)
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
        if not middleware.is_local(host.lower().strip("[]")):
            raise ConfigurationError(
                "nobody has a token, so only this machine may reach the server",
                help="Add a user: openassay admin users add NAME. Or listen on 127.0.0.1, without public_url and "
                "allow_hosts.",
            )


# A read-only viewer of one report: the web UI on a storage that lasts as long as the server does. The report is stored
# as a finished thread, so that every pane shows what it would for a thread of one's own. Nothing but GET is answered,
# and nobody has a scope to change anything. It listens on this machine alone.

HOST = "127.0.0.1"
READER = "reader"
LEFT_OUT = (
    account.memory_router,
    account.shares_router,
    account.webhooks_router,
    completions.router,
    system.figures_router,
)


def viewer_settings(port: int) -> Settings:
    """Return settings with which nothing is stored and nothing outside this machine is contacted."""
    return load(
        user=READER,
        offline=True,
        persistence={"backend": "memory", "ttl_hours": None},
        cache={"backend": "memory"},
        fleet={"signals": "process"},
        telemetry={"traces": "off"},
        harvest={"browser": "off"},
        server={
            "host": HOST,
            "port": port,
            "public_url": None,
            "allow_hosts": (),
            "allow_origins": (),
            "runs": "here",
            "requests_per_minute": 100_000,
        },
    )


@asynccontextmanager
async def open_viewer(report: ReportData, texts: Sequence[Document], port: int = 0) -> AsyncIterator[str]:
    """Serve a report, and give its address."""
    with bind_socket(HOST, port) as listener:
        async with open_server_resources(viewer_settings(port)) as resources:
            thread = await store_report(resources, report, texts, READER)
            service = Service(resources=resources, open_to_all=True)
            routers = [router for router in ROUTERS if router not in LEFT_OUT]
            app = _assemble(service, routers, openapi_url=None)
            app.dependency_overrides[authenticate] = get_reader
            app.add_middleware(ReadOnlyMiddleware)
            middleware.install_guard(app, service.settings.server)
            app.add_middleware(RequestIdMiddleware)
            async with serve_app(app, service, listener):
                yield f"http://{HOST}:{listener.getsockname()[1]}/t/{thread}"


async def get_reader(request: Request) -> Principal:
    request.state.user = READER
    return Principal(user=READER, scopes=frozenset({Permission.READ}))


class ReadOnlyMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise ForbiddenError("this page shows a bundle, and nothing in it can be changed", help="Read it.")
        await self._app(scope, receive, send)
