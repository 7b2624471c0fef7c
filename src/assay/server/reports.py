"""Which report of a thread is meant, and who may see it."""

from typing import Annotated

from fastapi import Query

from assay.export.report import Report
from assay.model.event import RunStatus
from assay.model.thread import Thread
from assay.server.access import Principal
from assay.server.bodies import Id
from assay.server.service import Service
from assay.storage.threads import no_run

OfRun = Annotated[Id | None, Query(description="One of the thread's runs; the latest that is finished unless said.")]


async def report_of(service: Service, caller: Principal, thread: Thread, run: str | None) -> Report:
    """NotFoundError where there is none. Whoever has a link sees the latest: another run is as unknown to them as one
    that never was."""
    if run is not None and caller.share is not None:
        done = [one.id for one in await service.engine.threads.runs(thread.id) if one.status is RunStatus.DONE]
        if run not in done[-1:]:
            raise no_run(run)
    return await service.engine.report(thread.id, run)
