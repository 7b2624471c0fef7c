"""What every route works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from openassay.bootstrap import ServerResources
from openassay.engine.engine import Engine
from openassay.protocols import RunDispatcher
from openassay.server.dispatch import LocalDispatcher
from openassay.server.limits import CallerLimits
from openassay.server.stream import EventFeeds
from openassay.settings import Settings
from openassay.text.redaction import Redactor, build_redactor
from openassay.worker.limits import build_spending_limits
from openassay.worker.queue import QueueDispatcher, RunQueue


@dataclass(slots=True, kw_only=True)
class Service:
    """`open_to_all`: nobody has to say who they are, since only this machine can reach the server."""

    resources: ServerResources
    open_to_all: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dispatcher: RunDispatcher = field(init=False)
    feeds: EventFeeds = field(init=False)
    limits: CallerLimits = field(init=False)
    redaction: Redactor = field(init=False)

    def __post_init__(self) -> None:
        self.dispatcher = self._create_dispatcher()
        self.feeds = EventFeeds(self.engine, self.resources.shared.signals)
        means = build_spending_limits(self.resources, lambda: self.now())
        self.limits = CallerLimits(self.settings, means, self.resources.shared.rates)
        self.engine.set_cost_limit(means.limit_run)
        self.redaction = build_redactor(self.settings)

    def _create_dispatcher(self) -> RunDispatcher:
        if not self.has_workers:
            return LocalDispatcher(self.engine)
        return QueueDispatcher(self.engine, RunQueue(self.resources.rows.database, self.settings.fleet.lease_seconds))

    @property
    def has_workers(self) -> bool:
        """Whether runs are worked on by other processes: in this one, whatever goes on is only put in line."""
        return self.settings.server.runs == "workers"

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    @property
    def settings(self) -> Settings:
        return self.resources.engine.settings


def get_service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


ServiceDep = Annotated[Service, Depends(get_service)]
