"""The application: every route, and what stands around all of them."""

from importlib.metadata import version

from fastapi import FastAPI

from assay.server import guard, mcp_door, observation, problems
from assay.server.requests import RequestIds
from assay.server.routes import (
    account,
    artifacts,
    choices,
    completions,
    documents,
    exports,
    figures,
    graph,
    health,
    history,
    memory,
    reviews,
    shares,
    sources,
    state,
    stream,
    threads,
    ui,
    webhooks,
)
from assay.server.service import Service

ROUTES = (
    health, figures, account, threads, state, stream, history, reviews, sources, artifacts, exports, documents, memory,
    shares, webhooks, completions, choices, graph, ui,
)  # fmt: skip


def create_app(service: Service) -> FastAPI:
    app = FastAPI(
        title="Assay",
        version=version("assay"),
        summary="Deep research whose every sentence opens the passage that supports it.",
        docs_url=None,  # these pages would run scripts of other hosts beside people's tokens
        redoc_url=None,
    )
    app.state.service = service
    problems.install(app)
    for module in ROUTES:
        app.include_router(module.router)
    mcp_door.mount(app, service)
    guard.install(app, service.settings.server)
    observation.install(app, service)
    app.add_middleware(RequestIds)
    return app
