"""What every route works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, Request

from assay.bootstrap import Premises
from assay.engine import Engine
from assay.ports import Remote
from assay.server.dispatch import Dispatcher
from assay.server.feeds import Feeds
from assay.server.limits import Limits
from assay.settings import Settings
from assay.storage.spending import SqlSpending
from assay.text.redaction import Redaction, redaction


@dataclass(slots=True, kw_only=True)
class Service:
    """`open_to_all`: nobody has to say who they are, since only this machine can reach the server."""

    premises: Premises
    open_to_all: bool
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    dispatcher: Dispatcher = field(init=False)
    feeds: Feeds = field(init=False)
    limits: Limits = field(init=False)
    redaction: Redaction = field(init=False)

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.engine)
        self.feeds = Feeds(self.engine)
        paid = {
            one.name for one in self.premises.world.sources.installed() if isinstance(one, Remote) and one.terms.usd
        }
        spending = SqlSpending(self.premises.world.rows)
        self.limits = Limits(
            self.settings, spending, self.premises.users, self.engine.threads, paid, lambda: self.now()
        )
        self.engine.limit(self.limits.ceiling)
        self.redaction = redaction(self.settings)

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
