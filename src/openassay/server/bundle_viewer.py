"""One report to be looked at, and nothing else: the web UI on a storage that lasts as long as the server does.

The report is put there as a finished thread, so that every pane shows what it would at home. Whoever looks may read;
nothing can be asked, answered, forked or deleted, since nothing but GET is answered and nobody has a scope to change
anything. It listens on this machine alone.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from openassay.bootstrap import ServerResources, open_server_resources
from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.engine.start import make_title
from openassay.graph import build_graph
from openassay.models.event import Event, RunStatus, Status
from openassay.models.evidence import Document
from openassay.models.report import ReportData
from openassay.models.thread import Run, Thread, is_id
from openassay.models.user import Scope as Permission
from openassay.server import middleware, problems
from openassay.server.app import bind_socket, serve_app
from openassay.server.auth import Principal, authenticate
from openassay.server.middleware import RequestIdMiddleware
from openassay.server.problems import ForbiddenError
from openassay.server.routes import (
    account,
    artifacts,
    choices,
    documents,
    exports,
    reviews,
    sources,
    stream,
    system,
    threads,
)
from openassay.server.service import Service
from openassay.settings import Settings, load
from openassay.state import question_input
from openassay.storage.events import SqlEvents
from openassay.storage.threads import SqlThreads

HOST = "127.0.0.1"
READER = "reader"
ROUTERS = (
    system.health_router, account.account_router, threads.threads_router, threads.state_router, stream.router,
    threads.history_router, reviews.router, sources.router, artifacts.router, exports.router, documents.router,
    choices.router, system.graph_router, system.ui_router,
)  # fmt: skip


def viewer_settings(port: int) -> Settings:
    """Nothing is kept, nobody is asked, and nothing is told to anybody."""
    return load(
        user=READER,
        offline=True,
        persistence={"backend": "memory", "ttl_hours": None},
        cache={"backend": "memory"},
        fleet={"signals": "process"},
        telemetry={"traces": "off"},
        harvest={"browser": "off"},
        server={
            "host": HOST, "port": port, "public_url": None, "allow_hosts": (), "allow_origins": (), "runs": "here",
            "requests_per_minute": 100_000,
        },
    )  # fmt: skip


@asynccontextmanager
async def open_viewer(report: ReportData, texts: Sequence[Document], port: int = 0) -> AsyncIterator[str]:
    """The address of the report, for as long as this is open."""
    settings = viewer_settings(port)
    with bind_socket(HOST, port) as listener:
        async with open_server_resources(settings) as resources:
            thread = await _store_report(resources, report, texts)
            service = Service(resources=resources, open_to_all=True)
            async with serve_app(_create_app(service), service, listener):
                yield f"http://{HOST}:{listener.getsockname()[1]}/t/{thread}"


# -- the thread -------------------------------------------------------------------------------------------


async def _store_report(resources: ServerResources, report: ReportData, texts: Sequence[Document]) -> str:
    """Where it comes from anybody, its ids are taken only if they are such."""
    made, now, rows = report.provenance, datetime.now(UTC), resources.rows
    thread, run = (id if is_id(id) else "bundle" for id in (made.thread, made.run))
    question = made.question or report.question
    then = _parse_time(report.metadata.finished) or now
    await SqlThreads(rows).fork(
        Thread(id=thread, title=make_title(report.title or question), created=then, updated=then, owner=READER),
        Run(
            id=run, thread=thread, question=question, status=RunStatus.DONE, stage=Status.COMPLETED,
            started=_parse_time(report.metadata.started) or then, finished=then, settings=report.metadata.settings,
            options={"user": READER},
        ),
    )  # fmt: skip
    values = {
        **question_input(question, run, {"user": READER}, {}), "status": Status.COMPLETED.value,
        "plan": report.plan.plain() if report.plan else None, "report": report.plain(),
    }  # fmt: skip
    place: Any = {"configurable": {"thread_id": thread}}
    await build_graph(SqlCheckpointSaver(rows)).aupdate_state(place, values, as_node="publish")
    for document in texts:
        await resources.documents.put(document)
    ended = Event(run=run, time=then, kind="run", data={"status": RunStatus.DONE.value})
    await SqlEvents(rows).append(ended)
    return thread


def _parse_time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# -- the server -------------------------------------------------------------------------------------------


def _create_app(service: Service) -> FastAPI:
    app = FastAPI(title="OpenAssay", version=version("openassay"), docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.dependency_overrides[authenticate] = _get_reader
    app.add_middleware(ReadOnlyMiddleware)
    middleware.install_guard(app, service.settings.server)
    app.add_middleware(RequestIdMiddleware)
    return app


async def _get_reader(request: Request) -> Principal:
    request.state.user = READER
    return Principal(user=READER, scopes=frozenset({Permission.READ}))


class ReadOnlyMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            raise ForbiddenError("this page shows a bundle, and nothing can be changed in it", help="Look around.")
        await self._app(scope, receive, send)
