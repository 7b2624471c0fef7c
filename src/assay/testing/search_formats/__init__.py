"""The search providers' wire formats, from the server's side. One file a provider, found by its presence.

A file of this package holds one `Format` and ends with `FORMAT = ThatFormat()`; the contract suite
(tests/contract/test_search_providers.py) then runs on it. A format says three things about its provider: how a request
is read (`asked`), how its documented answers look for a list of results (`answer`, `spoiled`, `misshapen`), and which
filters and fields it has at all (`filters`, `fields`, `most`). It is written from the provider's documentation, never
from Assay's own code for it, so that the two can disagree.

    class Tavily(Format):
        name = "tavily"
        builds = "assay.search.tavily:Tavily"
        ...

    FORMAT = Tavily()
"""

import pkgutil
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

from assay.model.inquiry import Found
from assay.testing.wire import Request

__all__ = ["SAMPLES", "Asked", "Format", "formats", "midnight", "sited"]

LONG = "The harbour of Zanzibar was dredged to a depth of nine metres. " * 5  # long enough to be read by itself

# What a provider finds in the tests unless its format says otherwise; those that keep abstracts give `text`.
SAMPLES = (
    Found(
        url="https://port.example.org/zanzibar", title="The harbour of Zanzibar", snippet="Dredged to nine metres.",
        published=date(2024, 3, 5), author="Ada Obi", text=LONG, fulltext="https://port.example.org/zanzibar.pdf",
    ),
    Found(
        url="http://news.example.com/a?b=1&c=ü", title="Ships & “quays”", snippet="More than 40 ships.",
        published=date(2023, 11, 30), author="Bo Li",
    ),
    Found(url="https://example.net/", title="A quay", snippet="Nothing more."),
)  # fmt: skip


class Asked(NamedTuple):
    """What a request asks for, as the provider understands it; None or () for what it does not say."""

    query: str
    limit: int | None = None
    since: date | None = None
    until: date | None = None
    sites: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    language: str | None = None  # as in "de"
    key: str = ""  # where the provider looks for it


class Format(ABC):
    """A provider's documented wire format."""

    name: ClassVar[str]  # the source's, as in `assay.sources`
    builds: ClassVar[str]  # "module:Class" of the source
    filters: ClassVar[frozenset[str]] = frozenset()  # of since, until, sites, without, language: what it can be asked
    fields: ClassVar[frozenset[str]] = frozenset({"snippet"})  # of snippet, published, author, text, fulltext
    most: ClassVar[int] = 50  # results in one answer, by its documentation
    requests: ClassVar[int] = 1  # for one search
    content_type: ClassVar[str] = "application/json"
    openings: ClassVar[bool] = False  # its texts are how pages begin: the whole is the page itself
    makes_addresses: ClassVar[bool] = False  # the source derives a result's address, from an identifier or a title
    key_setting: ClassVar[str | None] = None  # the field of settings.Keys; None for a provider without keys
    key_required: ClassVar[bool] = False

    def settings(self, url: str) -> dict[str, Any]:
        """Fields of settings.Searching with which the source asks a server at `url`."""
        return {"endpoints": {self.name: url}}

    def samples(self) -> Sequence[Found]:
        """At least three results the provider could have, as the source must report them, with only the fields of
        `fields`; a provider that makes addresses overrides it."""
        kept = self.fields | {"url", "title"}
        return [Found(**{name: value for name, value in found if name in kept}) for found in SAMPLES]

    @abstractmethod
    def asked(self, request: Request) -> Asked:
        """How the provider reads a request (of a search in several requests, the first)."""

    @abstractmethod
    def answer(self, request: Request, found: Sequence[Found]) -> str:
        """The whole documented answer with these results, every documented field in its place; no results included."""

    @abstractmethod
    def spoiled(self, request: Request, found: Sequence[Found]) -> str:
        """The same answer with one more result at its head that is broken: its address or its type is not as
        documented. The others must still be found."""

    def misshapen(self) -> str:
        """Well-formed, and not an answer of this provider."""
        return '{"something": "else", "results": 7, "items": 7, "data": 7}'


def formats() -> list[Format]:
    """All formats, by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    found: list[Format] = [module.FORMAT for module in modules if hasattr(module, "FORMAT")]
    return sorted(found, key=lambda format: format.name)


def sited(query: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A query with site: and -site: in it, as search engines read it: the words, the hosts, and the hosts ruled out."""
    without = tuple(re.findall(r"(?<!\S)-site:(\S+)", query))
    sites = tuple(re.findall(r"(?<![\S-])\(?site:([^\s)]+)", query))
    words = re.sub(r"\(?-?(?<!\w)site:[^\s)]+\)?(?: OR (?=site:))?", " ", query)
    return " ".join(words.split()), sites, without


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
