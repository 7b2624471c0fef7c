"""Users, their scopes, memories, uploads and webhooks."""

from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import Field

from openassay.models.base import Record
from openassay.models.plan import FEWEST_WORDS, MOST_WORDS, Style

# What is remembered of a person beyond one thread.

LONGEST_FACT = 500  # characters
MOST_NAMED = 50  # sources that may be preferred, or avoided


class Preferences(Record):
    """None or nothing: no preference, so the settings decide. What a question itself asks for always comes first."""

    style: Style | None = None
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS)
    prefer: tuple[str, ...] = Field(default=(), max_length=MOST_NAMED)  # hosts, or names of sources
    avoid: tuple[str, ...] = Field(default=(), max_length=MOST_NAMED)
    region: str | None = Field(default=None, max_length=80)
    language: str | None = Field(default=None, max_length=40)


class MemoryFact(Record):
    """Something worth knowing for many questions: "We report in euros"."""

    id: str
    text: str = Field(min_length=1, max_length=LONGEST_FACT)
    created: datetime
    updated: datetime


# A file somebody has given.

SCHEME = "upload:"  # of the addresses of what was given


class Upload(Record):
    """`hash` is the SHA-256 of its bytes; the same bytes of the same person are one upload."""

    id: str
    owner: str
    name: str
    media: str
    size: int
    hash: str
    created: datetime

    @property
    def uri(self) -> str:
        return f"{SCHEME}{self.owner}/{self.id}"


class UploadQuota(NamedTuple):
    files: int  # of one user
    bytes: int


class UploadCursor(NamedTuple):
    """The end of a page of uploads, newest first."""

    created: datetime
    id: str


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


TOKEN_PREFIX = "openassay"  # noqa: S105  # what a token begins with, not one
SHARE_PREFIX = "share"


class ApiToken(Record):
    """Its secret is known to its holder alone; `hash` is what is kept."""

    id: str
    owner: str
    label: str = ""
    hash: str
    scopes: tuple[Scope, ...] = USUAL
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked is None and (self.expires is None or now < self.expires)


class ShareLink(Record):
    """A link that shows one thread to whoever has it."""

    id: str
    thread: str
    hash: str
    created: datetime
    expires: datetime
    revoked: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        return self.revoked is None and now < self.expires


# Addresses that are told when a run ends or asks.

WEBHOOK_PREFIX = "whsec_"  # of secrets
MAX_WEBHOOK_TESTS = 3  # pending deliveries of tests to one webhook


class WebhookEvent(StrEnum):
    """What an address can be told of."""

    FINISHED = "finished"  # a run is done, has failed or was cancelled
    QUESTION = "question"  # a run waits for a person


class Webhook(Record):
    """`secret` signs what is sent; it is shown once."""

    id: str
    owner: str
    url: str
    secret: str
    events: tuple[WebhookEvent, ...]
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
