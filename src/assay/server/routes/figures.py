"""What is recorded of time, cost and caches: of a run for whoever asked, of the server for whoever watches it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from assay.server.access import OwnThread, Watcher
from assay.server.bodies import Id, refusals
from assay.server.service import Serving
from assay.telemetry.metrics import MEDIA, Metrics
from assay.view.timings import Timings

router = APIRouter(tags=["figures"])
_EXAMPLE = "# HELP assay_requests_total Requests that were answered.\n# TYPE assay_requests_total counter\n"
TEXT = {"schema": {"type": "string"}, "example": _EXAMPLE}


@router.get(
    "/api/threads/{threadId}/timings",
    operation_id="timings",
    summary="Where the time of a run went: stages, whoever outside was asked, caches, waiting.",
    responses=refusals(404),
)
async def timings(
    thread: OwnThread,
    service: Serving,
    run: Annotated[Id | None, Query(description="One of the thread's runs; the last unless said.")] = None,
) -> Timings:
    return await service.engine.timings(thread.id, run)


@router.get(
    "/metrics",
    operation_id="metrics",
    summary="The server's figures, in the text format of Prometheus.",
    response_class=Response,
    responses={**refusals(), 200: {"description": "The figures.", "content": {"text/plain": TEXT}}},
)
async def metrics(_: Watcher, request: Request) -> Response:
    figures: Metrics = request.app.state.metrics
    return Response(await asyncio.to_thread(figures.text), media_type=MEDIA)
