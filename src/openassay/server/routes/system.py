"""Health, metrics, the graph, the choices for a question, and the web UI.

The files of the web UI are read once, when the server starts. Their address contains a digest of all of them, so that a
browser caches them for good and never mixes two versions.
"""

import asyncio
import hashlib
import json
from base64 import b64encode
from functools import cache
from pathlib import Path
from string import Template
from typing import Annotated, Literal, NamedTuple, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter
from pydantic import Field

from openassay.engine.choices import describe_depth, describe_model, select_default_models, unavailable_reason
from openassay.engine.state_view import list_stages
from openassay.engine.timings import Timings
from openassay.errors import NotFoundError
from openassay.models.event import Status
from openassay.models.plan import FEWEST_WORDS, LONGEST, MOST_WORDS, Depth, Mode, QueryType, Style
from openassay.protocols import RemoteSource
from openassay.server.auth import OwnThread, Reader, Visitor, Watcher
from openassay.server.bodies import Body, Id, refusals, with_examples
from openassay.server.responses import Refusal
from openassay.server.routes.threads import MAX_DOCUMENTS
from openassay.server.service import ServiceDep
from openassay.telemetry.health import Readiness, list_checks
from openassay.telemetry.metrics import MEDIA, Metrics

health_router = APIRouter(tags=["health"])
figures_router = APIRouter(responses=refusals(), tags=["figures"])
choices_router = APIRouter(responses=refusals(), tags=["choices"])
graph_router = APIRouter(responses=refusals(), tags=["graph"])
ui_router = APIRouter(include_in_schema=False)
_METRICS_EXAMPLE = (
    "# HELP openassay_requests_total Requests that were answered.\n# TYPE openassay_requests_total counter\n"
)
_METRICS = {"schema": {"type": "string"}, "example": _METRICS_EXAMPLE}


@figures_router.get(
    "/api/threads/{threadId}/timings",
    operation_id="timings",
    summary="Get the timings of a run",
    responses=refusals(404),
)
async def get_timings(
    thread: OwnThread,
    service: ServiceDep,
    run: Annotated[Id | None, Query(description="One of the thread's runs; the last one if left out.")] = None,
) -> Timings:
    """Where its time went: nodes, outside services, caches, waiting."""
    return await service.engine.timings(thread.id, run)


@figures_router.get(
    "/metrics",
    operation_id="metrics",
    summary="Get the metrics of the server",
    response_class=Response,
    responses={200: {"description": "The metrics.", "content": {"text/plain": _METRICS}}},
)
async def get_metrics(_: Watcher, request: Request) -> Response:
    """In the text format of Prometheus."""
    metrics: Metrics = request.app.state.metrics
    return Response(await asyncio.to_thread(metrics.text), media_type=MEDIA)


class NodeBody(Body):
    """A node, as events name it, and the status of a run in it; the two ends have none."""

    name: str
    status: Status | None


class EdgeBody(Body):
    start: str = Field(alias="from")
    end: str = Field(alias="to")
    conditional: bool


class GraphBody(Body):
    model_config = with_examples("""
        {"nodes": [{"name": "write", "status": "writing"}, {"name": "review", "status": "reviewing"}],
        "edges": [{"from": "write", "to": "review", "conditional": false}]}
        """)

    nodes: tuple[NodeBody, ...]
    edges: tuple[EdgeBody, ...]


@graph_router.get("/api/graph", summary="Get the research graph")
async def get_graph(caller: Reader) -> GraphBody:
    return await asyncio.to_thread(load_graph)


@cache
def load_graph() -> GraphBody:
    nodes, edges = list_stages()
    return GraphBody(
        nodes=tuple(NodeBody(name=name, status=status) for name, status in nodes.items()),
        edges=tuple(EdgeBody(start=start, end=end, conditional=is_conditional) for start, end, is_conditional in edges),
    )


# Choices for a question, and the defaults. Nothing on the network is asked ----------------------------------------


class DepthChoice(Body):
    name: Depth
    about: str


class SourceChoice(Body):
    """`kind`: what it has; `own` is on the server's machine. `usd` is what one search costs."""

    name: str
    kind: QueryType | Literal["own"]
    available: bool
    reason: str = Field(default="", description="Why it cannot be searched.")
    usd: float = 0.0


class Defaults(Body):
    """What is used for options that are left out; leave them out instead of sending these."""

    depth: Depth
    mode: Mode
    source: str
    style: Style
    words: int
    usd: float = Field(description="The most a question may cost.")
    model: str | None = Field(description="The model used; embedded costs nothing, null: it cannot be used.")


class FileLimits(Body):
    suffixes: tuple[str, ...]
    max_mb: float = Field(description="Of one file.")
    most: int = Field(description="Of one question.")


class Choices(Body):
    model_config = with_examples("""
        {"depths": [{"name": "quick", "about": "An answer of up to 220 words: one sub-question, ..."}],
        "styles": ["academic", "technical", "executive"], "modes": ["auto", "plan"],
        "sources": [
        {"name": "brave", "kind": "web", "available": false, "reason": "needs BRAVE_API_KEY", "usd": 0.005}],
        "defaults": {"depth": "standard", "mode": "auto", "source": "auto", "style": "academic", "words": 2000,
        "usd": 2.0, "model": "embedded"},
        "files": {"suffixes": [".pdf", ".txt"], "maxMb": 25, "most": 100},
        "words": [50, 20000], "longestQuestion": 2000, "shareDays": 7}
        """)

    depths: tuple[DepthChoice, ...]
    styles: tuple[Style, ...]
    modes: tuple[Mode, ...]
    sources: tuple[SourceChoice, ...]
    defaults: Defaults
    files: FileLimits
    words: tuple[int, int] = Field(description="Of a report: the fewest and the most.")
    longest_question: int = Field(description="In characters.")
    share_days: float = Field(description="For which a link is valid by default.")


@choices_router.get("/api/choices", summary="List the choices for a question")
def get_choices(caller: Reader, service: ServiceDep) -> Choices:
    """The same for everybody, as the settings have it."""
    settings = service.settings
    server, models = settings.server, select_default_models(settings)
    sources = []
    for source in service.resources.sources.list_sources():
        reason = unavailable_reason(source, settings)
        choice = SourceChoice(name=source.name, kind="own", available=not reason, reason=reason)
        if isinstance(source, RemoteSource):
            choice = choice.model_copy(update={"kind": source.types[0], "usd": source.terms.usd})
        sources.append(choice)
    return Choices(
        depths=tuple(DepthChoice(name=depth, about=describe_depth(depth, settings, models)) for depth in Depth),
        styles=get_args(Style),
        modes=tuple(Mode),
        sources=tuple(sources),
        defaults=Defaults(
            depth=settings.depth,
            mode=settings.mode,
            source=settings.source,
            style=settings.style_guide,
            words=settings.target_length,
            usd=settings.budget.usd,
            model=describe_model(models),
        ),
        files=FileLimits(
            suffixes=tuple(sorted(service.resources.sources.reader.suffixes)),
            max_mb=min(server.upload_mb, settings.reading.max_file_mb),
            most=min(MAX_DOCUMENTS, server.uploads),
        ),
        words=(FEWEST_WORDS, MOST_WORDS),
        longest_question=LONGEST,
        share_days=server.share_days,
    )


# Health -------------------------------------------------------------------------------------------------------


class HealthBody(Body):
    status: str = Field(default="ok", examples=["ok"])


class ReadinessBody(Body):
    status: str = Field(examples=["ok"], description="`degraded`: something optional is missing.")
    degraded: list[str] = Field(examples=[["the Redis server does not answer"]])


@health_router.get("/healthz", summary="Check whether it is alive")
async def healthz() -> HealthBody:
    """Whether the process answers; nothing else is checked."""
    return HealthBody()


@health_router.get("/readyz", summary="Check whether it is ready", responses=refusals(429, 503), dependencies=[Visitor])
async def readyz(request: Request, service: ServiceDep) -> ReadinessBody:
    """Whether everything that the settings name is available, and runs are executed. What is optional is listed as
    degraded. Checked at most once a second."""
    state, resources = request.app.state, service.resources
    if not hasattr(state, "readiness"):  # the checks are made once for the server
        sources = await asyncio.to_thread(resources.sources.list_sources)
        checks = list_checks(service.settings, resources.folder, resources.rows.database, sources)
        if not hasattr(state, "readiness"):  # another request may have made them meanwhile
            state.readiness = Readiness(checks)
    readiness: Readiness = state.readiness
    problems, degraded = await readiness.summarise()
    if not service.dispatcher.is_alive():
        problems.append("no worker is picking up runs")
    if problems:
        message, headers = "; ".join(problems), {"Retry-After": "5"}
        raise Refusal(message, help="The server's log says more.", headers=headers, status=503, kind="not-ready")
    return ReadinessBody(status="degraded" if degraded else "ok", degraded=degraded)


_STATIC = Path(__file__).parents[1] / "static"
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MODULES = {  # the names by which modules import each other
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "@preact/signals-core": "vendor/signals-core.js",
    "@preact/signals": "vendor/signals.js",
    "htm": "vendor/htm.js",
}
# Only our own modules run, no text ever becomes a script or markup, and nothing is sent to another origin.
_POLICY = (
    "default-src 'none'; script-src 'self' 'sha256-{map}'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)


class Interface(NamedTuple):
    digest: str
    files: dict[str, bytes]
    page: bytes
    policy: str


@cache
def load_interface() -> Interface:
    paths = {path.relative_to(_STATIC).as_posix(): path for path in _STATIC.rglob("*")}
    found = {name: paths[name].read_bytes() for name in sorted(paths) if name.endswith((*_MEDIA, "index.html"))}
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in found.items())).hexdigest()[:16]
    base = f"/ui/{digest}"
    modules = json.dumps({"imports": {name: f"{base}/{path}" for name, path in _MODULES.items()}})
    names = sorted(found, key=lambda name: (name != "base.css", name))  # the styles of a pane come after common ones
    styles = (f'<link rel="stylesheet" href="{base}/{name}">' for name in names if name.endswith(".css"))
    preloads = (f'<link rel="modulepreload" href="{base}/{name}">' for name in names if name.endswith(".js"))
    page = Template(found.pop("index.html").decode()).substitute(
        base=base, importmap=modules, styles="\n".join(styles), preloads="\n".join(preloads)
    )
    policy = _POLICY.format(map=b64encode(hashlib.sha256(modules.encode()).digest()).decode())
    return Interface(digest, found, page.encode(), policy)


@ui_router.get("/")
@ui_router.get("/t/{threadId}")
async def open_ui() -> Response:
    """The same page for every address: it fetches what it shows with the reader's own token. So anyone may open it."""
    interface = load_interface()
    headers = {"Content-Security-Policy": interface.policy, "Cache-Control": "no-cache"}
    return Response(interface.page, headers=headers, media_type="text/html; charset=utf-8")


@ui_router.get("/ui/{digest}/{part:path}")
async def get_ui_file(digest: str, part: Annotated[str, PathParameter(max_length=200)]) -> Response:
    interface = load_interface()
    content = interface.files.get(part) if digest == interface.digest else None
    if content is None:
        raise NotFoundError("the page has no such part", help="Load the page again.")
    media = _MEDIA[part[part.rindex(".") :]]
    return Response(content, headers={"Cache-Control": _CACHE_FOREVER}, media_type=f"{media}; charset=utf-8")
