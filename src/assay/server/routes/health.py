"""Whether the server lives, and whether it can work."""

import asyncio
import logging
import math
import tempfile
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from assay.errors import AssayError
from assay.server.access import Visitor
from assay.server.bodies import Body, refusals
from assay.server.problems import Refusal
from assay.server.service import Service, Serving

_log = logging.getLogger("assay")
router = APIRouter(tags=["health"])
PATIENCE = 5.0  # seconds after which something that does not answer is taken for broken
FRESH = 1.0  # seconds for which what was found is told again


class NotReadyError(Refusal):
    status = 503


class Alive(Body):
    status: str = Field(default="ok", examples=["ok"])


@router.get("/healthz", summary="Is it alive?", operation_id="healthz")
async def healthz() -> Alive:
    """Whether the process answers; asks nothing of anything else."""
    return Alive()


class Readiness:
    """What keeps the server from working. However many ask: each check has one thread at the most, and one that hangs
    is not begun again before it has ended."""

    def __init__(self, service: Service) -> None:
        self._checks = {
            "the database does not answer": lambda: _ask(service),
            "the data directory cannot be written to": lambda: _write(service),
        }
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self._found: list[str] = []
        self._at = -math.inf

    async def problems(self) -> list[str]:
        clock = asyncio.get_running_loop().time
        async with self._lock:
            if clock() - self._at >= FRESH:
                found = await asyncio.gather(
                    *(self._checked(problem, check) for problem, check in self._checks.items())
                )
                self._found, self._at = [problem for problem in found if problem], clock()
        return list(self._found)

    async def _checked(self, problem: str, check: Callable[[], None]) -> str:
        task = self._under_way.get(problem)
        if task is None or task.done():
            task = self._under_way[problem] = asyncio.create_task(asyncio.to_thread(check))
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        error = task.exception() if done else TimeoutError(f"no answer within {PATIENCE:g} s")
        if isinstance(error, AssayError | OSError):  # TimeoutError is one
            _log.warning("not ready: %s (%s)", problem, error)
            return problem
        if error is not None:
            raise error
        return ""


def _readiness(request: Request, service: Serving) -> Readiness:
    """One for the server."""
    state = request.app.state
    if not hasattr(state, "readiness"):
        state.readiness = Readiness(service)
    found: Readiness = state.readiness
    return found


@router.get(
    "/readyz", summary="Can it work?", operation_id="readyz", responses=refusals(429, 503), dependencies=[Visitor]
)
async def readyz(service: Serving, readiness: Annotated[Readiness, Depends(_readiness)]) -> Alive:
    """Whether the database answers, the data directory can be written to, and runs are taken up; looked at once a
    second at the most."""
    problems = await readiness.problems()
    if not service.dispatcher.is_alive():
        problems.append("nothing takes up runs")
    if problems:
        raise NotReadyError("; ".join(problems), help="The server's log says more.", headers={"Retry-After": "5"})
    return Alive()


def _ask(service: Service) -> None:
    with service.premises.world.rows.database.connection() as connection:
        connection.execute("SELECT count(*) AS n FROM schema_migrations").fetchone()


def _write(service: Service) -> None:
    with tempfile.TemporaryFile(dir=service.premises.world.folder) as file:
        file.write(b"ready")
        file.flush()
