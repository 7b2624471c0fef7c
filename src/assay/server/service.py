"""What every route works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from assay.bootstrap import Premises
from assay.engine import Engine
from assay.ports import Dispatch
from assay.server.dispatch import Dispatcher
from assay.server.feeds import Feeds
from assay.server.limits import Limits
from assay.settings import Settings
from assay.text.redaction import Redaction, redaction
from assay.worker.knocking import Knocker
from assay.worker.means import means_of
from assay.worker.queue import Queue


@dataclass(slots=True, kw_only=True)
class Service:
    """`open_to_all`: nobody has to say who they are, since only this machine can reach the server."""

    premises: Premises
    open_to_all: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dispatcher: Dispatch = field(init=False)
    feeds: Feeds = field(init=False)
    limits: Limits = field(init=False)
    redaction: Redaction = field(init=False)

    def __post_init__(self) -> None:
        self.dispatcher = self._dispatch()
        self.feeds = Feeds(self.engine, self.premises.world.commons.signals)
        means = means_of(self.premises, lambda: self.now())
        self.limits = Limits(self.settings, means, self.premises.world.commons.rates)
        self.engine.limit(means.ceiling)
        self.redaction = redaction(self.settings)

    def _dispatch(self) -> Dispatch:
        if not self.has_workers:
            return Dispatcher(self.engine)
        return Knocker(self.engine, Queue(self.premises.world.rows.database, self.settings.fleet.lease_seconds))

    @property
    def has_workers(self) -> bool:
        """Whether runs are worked on by other processes: in this one, whatever goes on is only put in line."""
        return self.settings.server.runs == "workers"

    @property
    def engine(self) -> Engine:
        return self.premises.engine

    @property
    def settings(self) -> Settings:
        return self.premises.engine.settings


def service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


Serving = Annotated[Service, Depends(service)]
