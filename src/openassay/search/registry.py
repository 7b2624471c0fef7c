"""Search sources by name, and which of them a run asks.

Built-in sources register through the same entry points as a plugin would; MCP servers are named in the settings.
Nothing about a person's documents leaves the machine unless they say so:

    auto    own documents where there are some (and the web too, if wanted); else every provider that is available:
            for the web those with a key, or else the one that needs none; with no network the demo data, and a notice
    a,b     just these; one that cannot be asked is an error, never another in its place
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from openassay import protocols
from openassay.errors import ConfigurationError, UsageError
from openassay.models.evidence import Document
from openassay.models.plan import TYPES_BY_DEPTH, Depth
from openassay.models.spend import CostEstimate
from openassay.models.thread import ResearchOptions
from openassay.models.user import SCHEME
from openassay.search.http import ProviderClient
from openassay.search.mcp import McpConnectionPool, make_source
from openassay.search.vector_maker import VectorMaker
from openassay.settings import Settings
from openassay.text.urls import host_of, registrable_domain

GROUP = "openassay.sources"
REACH_SECONDS = 2.0
OFFLINE = "offline is set"
NO_NETWORK = "no web source could be reached"
NO_PROVIDER = "no web source is available"
PRIVATE = "this thread is about documents that stay here (--web searches the web)"
# The most sub-questions that a plan may have.
MAX_SUBQUESTIONS = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source may be built from; it takes what it needs."""

    store: protocols.DocumentStore
    embedder: protocols.Embedder
    reader: protocols.DocumentReader
    open_index: Callable[[Path], protocols.PassageIndex]
    settings: Settings
    cache: protocols.Cache
    http: ProviderClient  # one for all runs of a process, which share a provider's rate
    folders: Sequence[protocols.DocumentFolder] = ()
    # Connections to MCP servers; shared like `http`, and closed by the one that shares them.
    links: McpConnectionPool = field(default_factory=McpConnectionPool)
    vectors: VectorMaker | None = None  # completes indexes between runs; None: a person does


@cache  # reading the metadata of all installed packages takes 9 ms, and every run asks
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=group))


def source_names(settings: Settings | None = None) -> list[str]:
    """List the sources that are installed, and those that settings name."""
    installed = {point.name for point in entry_points(group=GROUP)}
    return sorted(installed | set(settings.search.mcp if settings else ()))


def build_source(name: str, context: SourceContext) -> protocols.Source:
    """Build the source registered under a name; a misspelt one is an error, never another source."""
    if server := context.settings.search.mcp.get(name):
        return make_source(name, server, context)
    for point in entry_points(group=GROUP):
        if point.name == name:
            source: protocols.Source = point.load().build(context)
            return source
    raise _unknown_source_error(name, context.settings)


def check_names(settings: Settings) -> None:
    """Refuse misspelt providers in the settings, which would otherwise be asked, or priced, without a word."""
    search, known = settings.search, source_names(settings)
    for name in search.mcp:
        if name == "auto" or name in source_names():
            raise ConfigurationError(
                f"search.mcp: {name} is the name of a source that is installed", help="Call the server something else."
            )
    for key in ("without", "endpoints", "requests_per_minute", "requests_per_day", "usd_per_request"):
        for name in getattr(search, key):
            if name not in known:
                raise _unknown_source_error(name, settings, f"search.{key}: ")


def _unknown_source_error(name: str, settings: Settings, setting: str = "") -> ConfigurationError:
    known = source_names(settings)
    near = get_close_matches(name, known, n=1)
    return ConfigurationError(
        f"{setting}there is no source called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"Installed sources: auto, {', '.join(known)}.",
    )


def parse_host_or_source(text: str, settings: Settings) -> str:
    """Parse what a person prefers or avoids: a host as in "nasa.gov", also given as an address, or a source's name."""
    name, known = text.strip().lower(), source_names(settings)
    if name in known:
        return name
    host = host_of(name if "://" in name else f"https://{name}").removeprefix("www.")
    if "." in host and registrable_domain(host):
        return host
    near = get_close_matches(name, known, n=1)
    raise UsageError(
        f"{text.strip()!r} is neither a host nor a source" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"A host is written like reddit.com; sources are {', '.join(known)}.",
    )


def add_search_costs(
    estimate: CostEstimate, sources: Sequence[protocols.Source], depth: Depth, settings: Settings
) -> CostEstimate:
    """Add what searching will cost at most to the estimate of what a model costs.

    Every query of a sub-question goes to each web source; providers of papers, news and code get one of them."""
    searches, usd = 0, 0.0
    for source in sources:
        if isinstance(source, protocols.RemoteSource) and source.terms.usd:
            queries = MAX_SUBQUESTIONS[depth] * (settings.max_search_iterations if "web" in source.types else 1)
            searches, usd = searches + queries, usd + queries * source.terms.usd
    return estimate.model_copy(update={"searches": searches, "search_usd": round(usd, 4)})


def choose_sources(options: ResearchOptions, context: SourceContext) -> protocols.SourceSelection:
    """Choose the sources of a run, and the notices about them; blocks while it checks which can be reached."""
    if options.sources:
        return [_get_source(name, options, context) for name in options.sources], {}
    if options.source != "auto":
        names = [name.strip() for name in options.source.split(",") if name.strip()] or [options.source]
        if options.docs and "documents" not in names:  # documents that were given are asked beside the others
            names = ["documents", *names]
        chosen = [_get_source(name, options, context) for name in dict.fromkeys(names)]
        remote = [source.name for source in chosen if isinstance(source, protocols.RemoteSource)]
        if (options.docs or options.private) and remote and not options.web:
            raise UsageError(
                f"{', '.join(remote)} would receive queries about your documents",
                help="Add --web if that is what you want.",
            )
        return chosen, {}
    own = [_get_source("documents", options, context)] if options.docs else []
    if own and not options.web:
        return own, {}
    private = options.private and not options.web  # the thread has been about documents
    found, notices, why_none = ([], {}, PRIVATE) if private else _select_web_sources(options.depth, context)
    if found or own:
        if not found:
            notices["web"] = f"The web was not searched: {why_none}. Your documents alone were."
        return [*own, *found], notices
    notices["source"] = (
        f"No documents were given (--docs) and {why_none}, so this answer comes from the built-in illustrative demo "
        "data on five companies."
    )
    return [_get_source("demo", options, context)], notices


def _get_source(name: str, options: ResearchOptions, context: SourceContext) -> protocols.Source:
    if name == "documents" and not options.docs:
        raise ConfigurationError("the documents source needs a folder", help="Name one with --docs PATH.")
    source = build_source(name, context)
    remote = source if isinstance(source, protocols.RemoteSource) else None
    if remote and context.settings.offline:
        raise ConfigurationError(
            f"{name} cannot be asked: {OFFLINE}", help="Unset offline (OPENASSAY_OFFLINE), or use --docs."
        )
    if not source.is_available():
        needs = (remote.terms.needs or (remote.terms.key or "").upper()) if remote else ""
        raise ConfigurationError(
            f"the source {name!r} is not available",
            help=f"Set {needs}, or choose another --source; `openassay sources` lists them."
            if needs
            else "Run `openassay sources` to see what it needs, or choose another --source.",
        )
    return source


def _select_web_sources(depth: Depth, context: SourceContext) -> tuple[list[protocols.Source], dict[str, str], str]:
    """Select the providers for a depth that can be reached; the text says why there are none."""
    if context.settings.offline:
        return [], {}, OFFLINE
    wanted = {*TYPES_BY_DEPTH[depth], "code"}
    built = [build_source(name, context) for name in source_names(context.settings)]
    remote = [source for source in built if isinstance(source, protocols.RemoteSource)]
    candidates = drop_stand_ins([source for source in remote if source.is_available() and wanted & set(source.types)])
    if not candidates:
        return [], {}, NO_PROVIDER
    reached = [False] * len(candidates)

    def check(index: int) -> None:
        reached[index] = candidates[index].is_reachable()

    # All at once, in threads that are not waited for any longer: a lookup may hang without a network.
    threads = [Thread(target=check, args=(index,), daemon=True) for index in range(len(candidates))]
    for thread in threads:
        thread.start()
    until = monotonic() + REACH_SECONDS
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    in_time = list(reached)  # a thread that ends later changes nothing
    lost = [source.name for source, there in zip(candidates, in_time, strict=True) if not there]
    found = [source for source, there in zip(candidates, in_time, strict=True) if there]
    if not found:
        return [], {}, f"{NO_NETWORK} ({', '.join(lost)})"
    notices = {"reach": f"Not asked, since they could not be reached: {', '.join(lost)}."} if lost else {}
    if not any("web" in source.types for source in found):
        notices["web"] = "The web itself was not searched, only papers, news or code."
    return [source for source in found if isinstance(source, protocols.Source)], notices, ""


def drop_stand_ins(sources: Sequence[protocols.RemoteSource]) -> list[protocols.RemoteSource]:
    """Drop sources that only stand in for others where others of their type, those of one site aside, are there."""
    # A plugin need not have the traits of ApiSource.
    stand_ins = [source for source in sources if getattr(source, "stands_in", False)]
    proper = [source for source in sources if source not in stand_ins and not getattr(source, "one_site", False)]
    served = {kind for source in proper for kind in source.types}
    return [source for source in sources if source not in stand_ins or not served.issuperset(source.types)]


# Documents that people have given are stored once, by their text: the same text may be several people's, and what one
# of them calls it, or when they gave it, is shown to nobody else. Each run uses the names its own person gave.

_TITLE_LENGTH = 60
_NEVER = datetime.fromtimestamp(0, UTC)
_PERSONAL_FIELDS = ("url", "title", "author", "published", "fetched", "origin", "publisher", "language")


@runtime_checkable
class DocumentOwner(Protocol):
    """A source that knows documents by other names than the store does."""

    async def own_document(self, hash: str) -> Document | None: ...


def anonymise(document: Document) -> Document:
    """Drop all that is known of a person's document but its text, for the store."""
    if not document.url.startswith(SCHEME):
        return document
    return Document(
        hash=document.hash,
        text=document.text,
        url=f"{SCHEME}{document.hash[:16]}",
        fetched=_NEVER,
        kind=document.kind,
        title=" ".join(document.text[: 4 * _TITLE_LENGTH].split())[:_TITLE_LENGTH] or "untitled",
    )


class RunDocumentStore:
    """A `protocols.DocumentStore` for one run, which sees its own person's names of documents."""

    def __init__(self, documents: protocols.DocumentStore, sources: Sequence[protocols.Source]) -> None:
        self._documents = documents
        self._owners = [source for source in sources if isinstance(source, DocumentOwner)]
        self._names: dict[str, dict[str, Any]] = {}

    async def put(self, document: Document) -> None:
        await self._documents.put(document)

    async def list_hashes(self, thread: str) -> list[str]:
        return await self._documents.list_hashes(thread)

    async def get(self, hash: str) -> Document:
        document = await self._documents.get(hash)
        if not self._owners:
            return document
        if document.hash not in self._names:
            names: dict[str, Any] = {}
            for owner in self._owners:
                if own := await owner.own_document(document.hash):
                    names = {field: getattr(own, field) for field in _PERSONAL_FIELDS}
                    break
            self._names[document.hash] = names
        return document.model_copy(update=self._names[document.hash])
