"""Whether the server lives, and whether it can work."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from assay.server.access import Visitor
from assay.server.bodies import Body, refusals
from assay.server.problems import Refusal
from assay.server.service import Serving
from assay.telemetry.checks import checks
from assay.telemetry.readiness import Readiness

router = APIRouter(tags=["health"])


class NotReadyError(Refusal):
    status = 503


class Alive(Body):
    status: str = Field(default="ok", examples=["ok"])


class Ready(Body):
    status: str = Field(examples=["ok"], description="`degraded` where something is missing that it can do without.")
    degraded: list[str] = Field(examples=[["the Redis server does not answer"]])


@router.get("/healthz", summary="Is it alive?", operation_id="healthz")
async def healthz() -> Alive:
    """Whether the process answers; asks nothing of anything else."""
    return Alive()


def _readiness(request: Request, service: Serving) -> Readiness:
    """One for the server."""
    state = request.app.state
    if not hasattr(state, "readiness"):
        world = service.premises.world
        needs = checks(service.settings, world.folder, world.rows.database, world.sources.installed())
        state.readiness = Readiness(needs)
    found: Readiness = state.readiness
    return found


@router.get(
    "/readyz", summary="Can it work?", operation_id="readyz", responses=refusals(429, 503), dependencies=[Visitor]
)
async def readyz(service: Serving, readiness: Annotated[Readiness, Depends(_readiness)]) -> Ready:
    """Whether all is there that the settings name, and runs are taken up. What the server can do without is told, and
    is no reason to send nobody here. Looked at once a second at the most."""
    problems, degraded = await readiness.ready()
    if not service.dispatcher.is_alive():
        problems.append("nothing takes up runs")
    if problems:
        raise NotReadyError("; ".join(problems), help="The server's log says more.", headers={"Retry-After": "5"})
    return Ready(status="degraded" if degraded else "ok", degraded=degraded)
