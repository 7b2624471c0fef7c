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

from assay.bootstrap import Premises, open_premises
from assay.checkpoints.saver import Checkpoints
from assay.graph import build
from assay.model.event import Event, RunStatus, Status
from assay.model.report import ReportData
from assay.model.source import Document
from assay.model.thread import Run, Thread, is_id
from assay.model.user import Scope as Permission
from assay.server import guard, problems
from assay.server.access import Principal, principal
from assay.server.listening import bound, listening
from assay.server.problems import ForbiddenError
from assay.server.requests import RequestIds
from assay.server.routes import (
    account,
    artifacts,
    choices,
    documents,
    exports,
    graph,
    health,
    history,
    reviews,
    sources,
    state,
    stream,
    threads,
    ui,
)
from assay.server.service import Service
from assay.settings import Settings, load
from assay.state import new_question
from assay.storage.events import SqlEvents
from assay.storage.threads import SqlThreads
from assay.threads.beginnings import title

HOST = "127.0.0.1"
READER = "reader"
ROUTES = (
    health, account, threads, state, stream, history, reviews, sources, artifacts, exports, documents, choices, graph,
    ui,
)  # fmt: skip


def room_settings(port: int) -> Settings:
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
async def open_reading_room(report: ReportData, texts: Sequence[Document], port: int = 0) -> AsyncIterator[str]:
    """The address of the report, for as long as this is open."""
    settings = room_settings(port)
    with bound(HOST, port) as listener:
        async with open_premises(settings) as premises:
            thread = await _laid_out(premises, report, texts)
            service = Service(premises=premises, open_to_all=True)
            async with listening(_app(service), service, listener):
                yield f"http://{HOST}:{listener.getsockname()[1]}/t/{thread}"


# -- the thread -------------------------------------------------------------------------------------------


async def _laid_out(premises: Premises, report: ReportData, texts: Sequence[Document]) -> str:
    """Where it comes from anybody, its ids are taken only if they are such."""
    made, now, rows = report.provenance, datetime.now(UTC), premises.world.rows
    thread, run = (id if is_id(id) else "bundle" for id in (made.thread, made.run))
    question = made.question or report.question
    then = _time(report.metadata.finished) or now
    await SqlThreads(rows).fork(
        Thread(id=thread, title=title(report.title or question), created=then, updated=then, owner=READER),
        Run(
            id=run, thread=thread, question=question, status=RunStatus.DONE, stage=Status.COMPLETED,
            started=_time(report.metadata.started) or then, finished=then, settings=report.metadata.settings,
            options={"user": READER},
        ),
    )  # fmt: skip
    values = {
        **new_question(question, run, {"user": READER}, {}), "status": Status.COMPLETED.value,
        "plan": report.plan.plain() if report.plan else None, "report": report.plain(),
    }  # fmt: skip
    place: Any = {"configurable": {"thread_id": thread}}
    await build(Checkpoints(rows)).aupdate_state(place, values, as_node="publish")
    for document in texts:
        await premises.world.documents.put(document)
    ended = Event(run=run, time=then, kind="run", data={"status": RunStatus.DONE.value})
    await SqlEvents(rows).append(ended)
    return thread


def _time(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


# -- the server -------------------------------------------------------------------------------------------


def _app(service: Service) -> FastAPI:
    app = FastAPI(title="Assay", version=version("assay"), docs_url=None, redoc_url=None, openapi_url=None)
    app.state.service = service
    problems.install(app)
    for module in ROUTES:
        app.include_router(module.router)
    app.dependency_overrides[principal] = _reader
    app.add_middleware(LookingOnly)
    guard.install(app, service.settings.server)
    app.add_middleware(RequestIds)
    return app


async def _reader(request: Request) -> Principal:
    request.state.user = READER
    return Principal(user=READER, scopes=frozenset({Permission.READ}))


class LookingOnly:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            raise ForbiddenError("this page shows a bundle, and nothing can be changed in it", help="Look around.")
        await self._app(scope, receive, send)
