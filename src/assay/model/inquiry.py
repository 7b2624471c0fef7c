"""What a search provider is asked, what it answers, and on which terms."""

from datetime import date

from pydantic import Field

from assay.model.record import Record


class Inquiry(Record):
    """One search in terms that all providers share; each uses the filters it has and ignores the others."""

    query: str = Field(min_length=1)
    limit: int = Field(default=10, ge=1, le=50)
    since: date | None = None  # published on this day or later
    until: date | None = None
    sites: tuple[str, ...] = ()  # only these hosts
    without: tuple[str, ...] = ()  # none of these hosts
    language: str | None = None  # as in "de"


class Found(Record):
    """One result as a provider gave it, checked and cleaned."""

    url: str
    title: str
    snippet: str = ""
    published: date | None = None
    author: str | None = None
    text: str = ""  # an abstract or extract that can be read by itself; most providers give none
    fulltext: str | None = None  # where the whole text can be read freely, if `text` is not all of it


class Terms(Record):
    """What a provider asks of whoever uses it; the settings may say otherwise."""

    per_minute: float = Field(gt=0)
    at_once: int = Field(default=4, ge=1)
    per_day: int | None = Field(default=None, ge=1)  # None: no quota that would be known
    usd: float = Field(default=0.0, ge=0)  # for one request
    key: str | None = None  # the field of settings.Keys that holds its key
    key_required: bool = False
    needs: str = ""  # what else it cannot do without, as a setting
