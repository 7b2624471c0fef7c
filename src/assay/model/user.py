"""Who may do what."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from assay.model.record import Record


class Scope(StrEnum):
    """What a token is good for."""

    READ = "read"  # look at one's own threads, documents and memory
    WRITE = "write"  # ask, answer, change and delete them
    SHARE = "share"  # make links that show a thread to others
    METRICS = "metrics"  # read the figures of the whole server


USUAL = (Scope.READ, Scope.WRITE, Scope.SHARE)


class User(Record):
    name: str
    created: datetime
    usd: float | None = Field(default=None, ge=0)  # the most their runs may cost in a month; None: the settings' word
    requests_per_minute: int | None = Field(default=None, ge=1)  # None: the settings' word
    disabled: bool = False


class Token(Record):
    """Its secret is known to its holder alone; `hash` is what is kept."""

    id: str
    owner: str
    label: str = ""
    hash: str
    scopes: tuple[Scope, ...] = USUAL
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def is_good(self, now: datetime) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)


class Share(Record):
    """A link that shows one thread to whoever has it."""

    id: str
    thread: str
    hash: str
    created: datetime
    expires: datetime
    revoked: datetime | None = None

    def is_good(self, now: datetime) -> bool:
        return self.revoked is None and now < self.expires
