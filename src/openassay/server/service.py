"""What every route works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from openassay.bootstrap import ServerResources
from openassay.engine.engine import Engine
from openassay.engine.spending import SpendingLimits
from openassay.protocols import RunDispatcher
from openassay.server.dispatch import LocalDispatcher
from openassay.server.limits import CallerLimits
from openassay.server.stream import EventFeeds
from openassay.settings import Settings
from openassay.text.redaction import Redactor, build_redactor
from openassay.worker.queue import QueueDispatcher, RunQueue


@dataclass(slots=True, kw_only=True)
class Service:
    """`open_to_all`: no authentication is needed, since only this machine can reach the server."""

    resources: ServerResources
    open_to_all: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dispatcher: RunDispatcher = field(init=False)
    feeds: EventFeeds = field(init=False)
    limits: CallerLimits = field(init=False)
    redaction: Redactor = field(init=False)

    def __post_init__(self) -> None:
        if self.has_workers:
            queue = RunQueue(self.resources.rows.database, self.settings.fleet.lease_seconds)
            self.dispatcher = QueueDispatcher(self.engine, queue)
        else:
            self.dispatcher = LocalDispatcher(self.engine)
        self.feeds = EventFeeds(self.engine, self.resources.shared.signals)
        spending = SpendingLimits(self.resources, lambda: self.now())
        self.limits = CallerLimits(self.settings, spending, self.resources.shared.rates)
        self.engine.set_cost_limit(spending.limit_run)
        self.redaction = build_redactor(self.settings)

    @property
    def has_workers(self) -> bool:
        """Whether other processes execute the runs: this one only queues them."""
        return self.settings.server.runs == "workers"

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    @property
    def settings(self) -> Settings:
        return self.engine.settings


def get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(get_service)]
