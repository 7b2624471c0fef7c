"""Sources by name. Built-in ones register through the same entry points as a plugin would; MCP servers are named in the
settings."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from assay.errors import ConfigurationError
from assay.ports import Cache, DocumentStore, Embedder, FileReader, Folder, PassageIndex, Source
from assay.search.http import Http
from assay.search.mcp_link import Links
from assay.settings import Settings

GROUP = "assay.sources"


@dataclass(frozen=True, slots=True)
class Bench:
    """What a source may be built from; it takes what it needs."""

    store: DocumentStore
    embedder: Embedder
    reader: FileReader
    open_index: Callable[[Path], PassageIndex]
    settings: Settings
    cache: Cache
    http: Http  # one for all runs of a process, which share a provider's rate
    folders: Sequence[Folder] = ()
    links: Links = field(default_factory=Links)  # to MCP servers; shared like `http`, and closed by whoever shares it


@cache  # reading what all installed packages say of themselves takes 9 ms, and every run asks
def entry_points(group: str) -> tuple[metadata.EntryPoint, ...]:
    return tuple(metadata.entry_points(group=group))


def available(settings: Settings | None = None) -> list[str]:
    """The installed ones, and those that settings name."""
    installed = {point.name for point in entry_points(group=GROUP)}
    return sorted(installed | set(settings.search.mcp if settings else ()))


def build(name: str, bench: Bench) -> Source:
    """The source registered under a name; a misspelt one is an error, never another source."""
    if said := bench.settings.search.mcp.get(name):
        from assay.search.mcp import source as mcp_source

        return mcp_source(name, said, bench)
    for point in entry_points(group=GROUP):
        if point.name == name:
            source: Source = point.load().build(bench)
            return source
    raise _unknown(name, bench.settings)


def _unknown(name: str, settings: Settings, setting: str = "") -> ConfigurationError:
    known = available(settings)
    near = difflib.get_close_matches(name, known, n=1)
    return ConfigurationError(
        f"{setting}there is no source called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"Installed sources: auto, {', '.join(known)}.",
    )


def check_names(settings: Settings) -> None:
    """A misspelt provider in the settings would otherwise be asked, or priced, without a word."""
    search, known = settings.search, available(settings)
    for name in search.mcp:
        if name == "auto" or name in available():
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
                raise _unknown(name, settings, f"search.{key}: ")
