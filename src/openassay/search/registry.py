"""Sources by name. Built-in ones register through the same entry points as a plugin would; MCP servers are named in the
settings.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from openassay.errors import ConfigurationError, UsageError
from openassay.models.evidence import Document
from openassay.models.plan import TYPES_BY_DEPTH, Depth
from openassay.models.thread import ResearchOptions
from openassay.models.user import SCHEME
from openassay.protocols import (
    Cache,
    DocumentFolder,
    DocumentReader,
    DocumentStore,
    Embedder,
    PassageIndex,
    RemoteSource,
    Source,
    SourceSelection,
)
from openassay.search.http import ProviderClient
from openassay.search.mcp_connection import McpConnectionPool
from openassay.settings import Settings

GROUP = "openassay.sources"


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source may be built from; it takes what it needs."""

    store: DocumentStore
    embedder: Embedder
    reader: DocumentReader
    open_index: Callable[[Path], PassageIndex]
    settings: Settings
    cache: Cache
    http: ProviderClient  # one for all runs of a process, which share a provider's rate
    folders: Sequence[DocumentFolder] = ()
    links: McpConnectionPool = field(
        default_factory=McpConnectionPool
    )  # to MCP servers; shared like `http`, and closed by whoever shares it


@cache  # reading what all installed packages say of themselves takes 9 ms, and every run asks
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=group))


def source_names(settings: Settings | None = None) -> list[str]:
    """The installed ones, and those that settings name."""
    installed = {point.name for point in entry_points(group=GROUP)}
    return sorted(installed | set(settings.search.mcp if settings else ()))


def build_source(name: str, bench: SourceContext) -> Source:
    """The source registered under a name; a misspelt one is an error, never another source."""
    if said := bench.settings.search.mcp.get(name):
        from openassay.search.mcp import make_source as mcp_source

        return mcp_source(name, said, bench)
    for point in entry_points(group=GROUP):
        if point.name == name:
            source: Source = point.load().build(bench)
            return source
    raise _unknown_source_error(name, bench.settings)


def _unknown_source_error(name: str, settings: Settings, setting: str = "") -> ConfigurationError:
    known = source_names(settings)
    near = difflib.get_close_matches(name, known, n=1)
    return ConfigurationError(
        f"{setting}there is no source called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"Installed sources: auto, {', '.join(known)}.",
    )


def check_names(settings: Settings) -> None:
    """A misspelt provider in the settings would otherwise be asked, or priced, without a word."""
    search, known = settings.search, source_names(settings)
    for name in search.mcp:
        if name == "auto" or name in source_names():
            raise ConfigurationError(
                f"search.mcp: {name} is the name of a source that is installed", help="Call the server something else."
            )
    named = {
        "without": search.without, "endpoints": search.endpoints, "requests_per_minute": search.requests_per_minute,
        "requests_per_day": search.requests_per_day, "usd_per_request": search.usd_per_request,
    }  # fmt: skip
    for key, names in named.items():
        for name in names:
            if name not in known:
                raise _unknown_source_error(name, settings, f"search.{key}: ")


# Which sources a run asks. Nothing about a person's documents leaves the machine unless they say so.
#
# auto    own documents where there are some (and the web too, if wanted); else every provider that is available: for
#         the web those with a key, or else the one that needs none; with no network the demo data, and a notice
# a,b     just these; one that cannot be asked is an error, never another in its place

REACH_SECONDS = 2.0
OFFLINE = "offline is set"
NO_NETWORK = "no web source could be reached"
NO_PROVIDER = "no web source is available"
PRIVATE = "this thread is about documents that stay here (--web searches the web)"


def choose_sources(options: ResearchOptions, bench: SourceContext) -> SourceSelection:
    """Blocks while it looks which providers can be reached."""
    if options.sources:
        return [_get_source(name, options, bench) for name in options.sources], {}
    if options.source != "auto":
        names = [name.strip() for name in options.source.split(",") if name.strip()] or [options.source]
        return _select_by_name(list(dict.fromkeys(names)), options, bench), {}
    if options.docs and not options.web:
        return [_get_source("documents", options, bench)], {}
    own = [_get_source("documents", options, bench)] if options.docs else []
    private = options.private and not options.web  # the thread has been about documents
    found, notices, why_none = ([], {}, PRIVATE) if private else _select_web_sources(options.depth, bench)
    if found or own:
        if not found:
            notices["web"] = f"The web was not searched: {why_none}. Your documents alone were."
        return [*own, *found], notices
    return [_get_source("demo", options, bench)], {**notices, "source": demo_notice(why_none)}


def demo_notice(reason: str) -> str:
    return (
        f"No documents were given (--docs) and {reason}, so this answer comes from the built-in illustrative demo data "
        "on five companies."
    )


def _select_by_name(names: Sequence[str], options: ResearchOptions, bench: SourceContext) -> list[Source]:
    """Documents that were given are asked beside what was named."""
    if options.docs and "documents" not in names:
        names = ["documents", *names]
    chosen = [_get_source(name, options, bench) for name in names]
    remote = [source.name for source in chosen if isinstance(source, RemoteSource)]
    if (options.docs or options.private) and remote and not options.web:
        raise UsageError(
            f"{', '.join(remote)} would be asked about your documents", help="Add --web if that is what you want."
        )
    return chosen


def _get_source(name: str, options: ResearchOptions, bench: SourceContext) -> Source:
    if name == "documents" and not options.docs:
        raise ConfigurationError("the documents source needs a folder", help="Name one with --docs PATH.")
    source = build_source(name, bench)
    if isinstance(source, RemoteSource) and bench.settings.offline:
        raise ConfigurationError(
            f"{name} cannot be asked: {OFFLINE}", help="Unset offline (OPENASSAY_OFFLINE), or use --docs."
        )
    if not source.is_available():
        raise ConfigurationError(f"the source {name!r} is not available", help=_missing_help(source))
    return source


def _missing_help(source: Source) -> str:
    if isinstance(source, RemoteSource) and source.terms.needs:
        return f"Set {source.terms.needs}, or choose another --source; `openassay sources` lists them."
    if isinstance(source, RemoteSource) and source.terms.key:
        return f"Set {source.terms.key.upper()}, or choose another --source; `openassay sources` lists them."
    return "Run `openassay sources` to see what it needs, or choose another --source."


def _select_web_sources(depth: Depth, bench: SourceContext) -> tuple[list[Source], dict[str, str], str]:
    """Providers for what the depth asks for, those that cannot be reached left out; and why there are none."""
    if bench.settings.offline:
        return [], {}, OFFLINE
    wanted = {*TYPES_BY_DEPTH[depth], "code"}
    built = [build_source(name, bench) for name in source_names(bench.settings)]
    remote = [source for source in built if isinstance(source, RemoteSource)]
    candidates = drop_stand_ins([source for source in remote if source.is_available() and wanted & set(source.types)])
    if not candidates:
        return [], {}, NO_PROVIDER
    reached = _check_reachability(candidates)
    lost = [source.name for source, there in zip(candidates, reached, strict=True) if not there]
    found = [source for source, there in zip(candidates, reached, strict=True) if there]
    if not found:
        return [], {}, f"{NO_NETWORK} ({', '.join(lost)})"
    notices = {"reach": f"Not asked, since they could not be reached: {', '.join(lost)}."} if lost else {}
    if not any("web" in source.types for source in found):
        notices["web"] = "The web itself was not searched, only papers, news or code."
    return [source for source in found if isinstance(source, Source)], notices, ""


def drop_stand_ins(sources: Sequence[RemoteSource]) -> list[RemoteSource]:
    """Those who only stand in for others are asked where there are no others of their type, one site aside."""
    proper = [
        source for source in sources if not _has_trait(source, "stands_in") and not _has_trait(source, "one_site")
    ]
    served = {kind for source in proper for kind in source.types}
    return [source for source in sources if not _has_trait(source, "stands_in") or not served.issuperset(source.types)]


def _has_trait(source: RemoteSource, trait: str) -> bool:
    """Traits of ApiSource that a plugin need not have."""
    return bool(getattr(source, trait, False))


def _check_reachability(sources: Sequence[RemoteSource]) -> list[bool]:
    """All at once, in threads that nobody waits for any longer than that: a lookup without a network may hang."""
    reached = [False] * len(sources)

    def look(place: int) -> None:
        reached[place] = sources[place].is_reachable()

    threads = [Thread(target=look, args=(place,), daemon=True) for place in range(len(sources))]
    for thread in threads:
        thread.start()
    until = monotonic() + REACH_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    return list(reached)


# Documents people have given. They are stored once, by what they say: the same text may be several people's, and what
# one of them calls it, or when they gave it, is told to nobody else. Each run calls them what its own person does.

TITLE = 60  # characters
NEVER = datetime.fromtimestamp(0, UTC)
_NAMES = ("url", "title", "author", "published", "fetched", "origin", "language")


@runtime_checkable
class DocumentOwner(Protocol):
    """A source that knows documents by other names than the store does."""

    async def own_document(self, hash: str) -> Document | None: ...


def anonymise(document: Document) -> Document:
    """As it is stored: of what a person has given, nothing that does not stand in its text."""
    if not document.url.startswith(SCHEME):
        return document
    return Document(
        hash=document.hash, text=document.text, url=f"{SCHEME}{document.hash[:16]}", fetched=NEVER, kind=document.kind,
        title=" ".join(document.text[: 4 * TITLE].split())[:TITLE] or "untitled",
    )  # fmt: skip


class RunDocumentStore:
    """A ports.DocumentStore for one run."""

    def __init__(self, documents: DocumentStore, sources: Sequence[Source]) -> None:
        self._documents = documents
        self._sources = [source for source in sources if isinstance(source, DocumentOwner)]
        self._names: dict[str, dict[str, Any]] = {}

    async def put(self, document: Document) -> None:
        await self._documents.put(document)

    async def list_hashes(self, thread: str) -> list[str]:
        return await self._documents.list_hashes(thread)

    async def get(self, hash: str) -> Document:
        document = await self._documents.get(hash)
        if not self._sources:
            return document
        if document.hash not in self._names:
            self._names[document.hash] = await self._load_names(document.hash)
        return document.model_copy(update=self._names[document.hash])

    async def _load_names(self, hash: str) -> dict[str, Any]:
        for source in self._sources:
            if own := await source.own_document(hash):
                return {name: getattr(own, name) for name in _NAMES}
        return {}
