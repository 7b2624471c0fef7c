"""Addresses that are told when a run ends or asks."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from assay.model.record import Record


class Told(StrEnum):
    """What an address can be told of."""

    FINISHED = "finished"  # a run is done, has failed or was cancelled
    QUESTION = "question"  # a run waits for a person


class Webhook(Record):
    """`secret` signs what is sent; it is shown once."""

    id: str
    owner: str
    url: str
    secret: str
    events: tuple[Told, ...]
    created: datetime


class Delivery(Record):
    """Something to be told to an address. `created` is when it happened; without `due` it is not tried any more."""

    id: str
    webhook: str
    body: dict[str, Any]
    created: datetime
    attempts: int = 0
    due: datetime | None = None
    delivered: datetime | None = None
    error: str = ""

    @property
    def status(self) -> str:
        return "delivered" if self.delivered else "waiting" if self.due else "given up"
