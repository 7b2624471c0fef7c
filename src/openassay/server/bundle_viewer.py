"""A read-only viewer of one report: the web UI on a storage that lasts as long as the server does.

The report is stored as a finished thread, so that every pane shows what it would for a thread of one's own. Nothing but
GET is answered, and nobody has a scope to change anything. It listens on this machine alone.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from openassay.bootstrap import open_server_resources
from openassay.engine.bundle import store_report
from openassay.models.evidence import Document
from openassay.models.report import ReportData
from openassay.models.user import Scope as Permission
from openassay.server import middleware, problems
from openassay.server.app import ROUTERS, bind_socket, serve_app
from openassay.server.auth import Principal, authenticate
from openassay.server.middleware import RequestIdMiddleware
from openassay.server.problems import ForbiddenError
from openassay.server.routes import account, completions, system
from openassay.server.service import Service
from openassay.settings import Settings, load

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
            app = FastAPI(
                title="OpenAssay", version=version("openassay"), docs_url=None, redoc_url=None, openapi_url=None
            )
            app.state.service = service
            problems.install(app)
            for router in ROUTERS:
                if router not in LEFT_OUT:
                    app.include_router(router)
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
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            raise ForbiddenError("this page shows a bundle, and nothing in it can be changed", help="Read it.")
        await self._app(scope, receive, send)
