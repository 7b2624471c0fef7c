"""Documents, passages of them, and hits that point to them."""

from datetime import date, datetime
from typing import Literal

from pydantic import Field

from assay.model.record import Record

Kind = Literal["document", "web", "academic", "news", "code", "demo"]


class Document(Record):
    """A snapshot: `hash` is the sha256 of `text` (UTF-8); offsets everywhere count its code points."""

    hash: str
    text: str = Field(repr=False)
    url: str
    title: str
    host: str = ""
    author: str | None = None
    published: date | None = None
    fetched: datetime
    kind: Kind = "document"
    origin: str | None = None  # the primary publication a document says its facts come from
    language: str | None = None  # as in "de", where the page says so


class Passage(Record):
    document: str
    start: int = Field(ge=0)
    end: int = Field(gt=0)
    text: str


class Hit(Record):
    """One search result; sources that keep their own documents say where the match stands."""

    provider: str
    query: str
    rank: int = Field(ge=1)
    url: str
    title: str
    snippet: str = ""
    host: str = ""
    kind: Kind = "web"
    published: date | None = None
    score: float = 0.0
    author: str | None = None
    document: str | None = None
    start: int | None = None
    end: int | None = None
    fulltext: str | None = None  # where the whole text can be read freely, if `document` is not all of it
