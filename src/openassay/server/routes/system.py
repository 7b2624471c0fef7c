"""The web UI: one page, and the modules and styles it is made of. They are read once, when the server starts.

Everything a page loads lies under an address that holds the digest of all of it, so a browser keeps it for good and
never mixes two versions.
"""

import asyncio
import hashlib
import json
from base64 import b64encode
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import ConfigDict, Field

from openassay import graph
from openassay.engine.timings import Timings
from openassay.errors import NotFoundError
from openassay.models.event import Status
from openassay.server.auth import OwnThread, Reader, Visitor, Watcher
from openassay.server.bodies import Body, Id, refusals
from openassay.server.problems import Refusal
from openassay.server.service import ServiceDep
from openassay.telemetry.health import Readiness, list_checks
from openassay.telemetry.metrics import MEDIA, Metrics

# What is recorded of time, cost and caches: of a run for whoever asked, of the server for whoever watches it.

figures_router = APIRouter(tags=["figures"])
_EXAMPLE = "# HELP openassay_requests_total Requests that were answered.\n# TYPE openassay_requests_total counter\n"
TEXT = {"schema": {"type": "string"}, "example": _EXAMPLE}


@figures_router.get(
    "/api/threads/{threadId}/timings",
    operation_id="timings",
    summary="Where the time of a run went: stages, whoever outside was asked, caches, waiting.",
    responses=refusals(404),
)
async def get_timings(
    thread: OwnThread,
    service: ServiceDep,
    run: Annotated[Id | None, Query(description="One of the thread's runs; the last unless said.")] = None,
) -> Timings:
    return await service.engine.timings(thread.id, run)


@figures_router.get(
    "/metrics",
    operation_id="metrics",
    summary="The server's figures, in the text format of Prometheus.",
    response_class=Response,
    responses={**refusals(), 200: {"description": "The figures.", "content": {"text/plain": TEXT}}},
)
async def get_metrics(_: Watcher, request: Request) -> Response:
    figures: Metrics = request.app.state.metrics
    return Response(await asyncio.to_thread(figures.text), media_type=MEDIA)


# The research graph, as it is compiled: a picture of it is always one of the code.

graph_router = APIRouter(tags=["graph"])
_HANDLER = "__error_handler__"  # LangGraph's own, one for each stage that may lose a sub-question


class NodeBody(Body):
    """A stage, as events name it, and the status of a run while it is at work; the two ends have none."""

    name: str
    status: Status | None


class EdgeBody(Body):
    start: str = Field(alias="from")
    end: str = Field(alias="to")
    conditional: bool


class GraphBody(Body):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "nodes": [{"name": "write", "status": "writing"}, {"name": "review", "status": "reviewing"}],
                    "edges": [{"from": "write", "to": "review", "conditional": False}],
                }
            ]
        }
    )

    nodes: tuple[NodeBody, ...]
    edges: tuple[EdgeBody, ...]


@graph_router.get(
    "/api/graph", summary="The stages, and which follows which", operation_id="get_graph", responses=refusals()
)
async def get_graph(caller: Reader) -> GraphBody:
    return await asyncio.to_thread(_build_graph)


@cache
def _build_graph() -> GraphBody:
    drawn = graph.build_graph().get_graph()
    return GraphBody(
        nodes=tuple(
            NodeBody(name=name, status=graph.STATUS.get(name)) for name in drawn.nodes if not name.startswith(_HANDLER)
        ),
        edges=tuple(
            EdgeBody(start=edge.source, end=edge.target, conditional=edge.conditional)
            for edge in drawn.edges
            if not edge.source.startswith(_HANDLER) and not edge.target.startswith(_HANDLER)
        ),
    )


# Whether the server lives, and whether it can work.

health_router = APIRouter(tags=["health"])


class NotReadyError(Refusal):
    status = 503


class HealthBody(Body):
    status: str = Field(default="ok", examples=["ok"])


class ReadinessBody(Body):
    status: str = Field(examples=["ok"], description="`degraded` where something is missing that it can do without.")
    degraded: list[str] = Field(examples=[["the Redis server does not answer"]])


@health_router.get("/healthz", summary="Is it alive?", operation_id="healthz")
async def healthz() -> HealthBody:
    """Whether the process answers; asks nothing of anything else."""
    return HealthBody()


def _get_readiness(request: Request, service: ServiceDep) -> Readiness:
    """One for the server."""
    state = request.app.state
    if not hasattr(state, "readiness"):
        resources = service.resources
        needs = list_checks(
            service.settings, resources.folder, resources.rows.database, resources.sources.list_sources()
        )
        state.readiness = Readiness(needs)
    found: Readiness = state.readiness
    return found


@health_router.get(
    "/readyz", summary="Can it work?", operation_id="readyz", responses=refusals(429, 503), dependencies=[Visitor]
)
async def readyz(service: ServiceDep, readiness: Annotated[Readiness, Depends(_get_readiness)]) -> ReadinessBody:
    """Whether all is there that the settings name, and runs are taken up. What the server can do without is told, and
    is no reason to send nobody here. Looked at once a second at the most."""
    problems, degraded = await readiness.summarise()
    if not service.dispatcher.is_alive():
        problems.append("nothing takes up runs")
    if problems:
        raise NotReadyError("; ".join(problems), help="The server's log says more.", headers={"Retry-After": "5"})
    return ReadinessBody(status="degraded" if degraded else "ok", degraded=degraded)


ui_router = APIRouter(include_in_schema=False)
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_MEDIA = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_MODULES = {  # what the vendored modules, and ours, call each other
    "preact": "vendor/preact.js",
    "preact/hooks": "vendor/preact-hooks.js",
    "@preact/signals-core": "vendor/signals-core.js",
    "@preact/signals": "vendor/signals.js",
    "htm": "vendor/htm.js",
}
# Only our own modules run, nothing is ever made into a script or markup from text, and nothing leaves this origin.
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
    found = dict(sorted(_read_files(files("openassay.server") / "static")))
    digest = hashlib.sha256(b"".join(name.encode() + content for name, content in found.items())).hexdigest()[:16]
    base = f"/ui/{digest}"
    modules = json.dumps({"imports": {name: f"{base}/{path}" for name, path in _MODULES.items()}})
    page = Template(found.pop("index.html").decode()).substitute(
        base=base,
        importmap=modules,
        styles=_link_tags('<link rel="stylesheet" href="{}">', base, found, ".css"),
        preloads=_link_tags('<link rel="modulepreload" href="{}">', base, found, ".js"),
    )
    policy = _POLICY.format(map=b64encode(hashlib.sha256(modules.encode()).digest()).decode())
    return Interface(digest, found, page.encode(), policy)


def _read_files(folder: Traversable, under: str = "") -> list[tuple[str, bytes]]:
    names: list[tuple[str, bytes]] = []
    for one in folder.iterdir():
        if one.is_dir():
            names += _read_files(one, f"{under}{one.name}/")
        elif one.name.endswith(tuple(_MEDIA)) or one.name == "index.html":
            names.append((f"{under}{one.name}", one.read_bytes()))
    return names


def _link_tags(form: str, base: str, found: dict[str, bytes], suffix: str) -> str:
    """Styles of a pane come after those that all panes have."""
    names = sorted(found, key=lambda name: (name != "base.css", name))
    return "\n".join(form.format(f"{base}/{name}") for name in names if name.endswith(suffix))


@ui_router.get("/")
@ui_router.get("/t/{threadId}")
async def open_ui() -> Response:
    """The same page for every place: what it shows is asked for by the page, and answered to whom it belongs. So it is
    for everybody, and nobody is counted."""
    made = load_interface()
    headers = {"Content-Security-Policy": made.policy, "Cache-Control": "no-cache"}
    return Response(made.page, headers=headers, media_type="text/html; charset=utf-8")


@ui_router.get("/ui/{digest}/{part:path}")
async def get_ui_file(digest: str, part: Annotated[str, Path(max_length=200)]) -> Response:
    made = load_interface()
    content = made.files.get(part) if digest == made.digest else None
    if content is None:
        raise NotFoundError("the page has no such part", help="Load the page again.")
    media = _MEDIA[part[part.rindex(".") :]]
    return Response(content, headers={"Cache-Control": _CACHE_FOREVER}, media_type=f"{media}; charset=utf-8")
