"""Sources by name. Built-in ones register through the same entry points as a plugin would."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from assay.errors import ConfigurationError
from assay.ports import Cache, DocumentStore, Embedder, FileReader, Folder, PassageIndex, Source
from assay.search.http import Http
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


def available() -> list[str]:
    return sorted({point.name for point in entry_points(group=GROUP)})


def build(name: str, bench: Bench) -> Source:
    """The source registered under a name; a misspelt one is an error, never another source."""
    for point in entry_points(group=GROUP):
        if point.name == name:
            source: Source = point.load().build(bench)
            return source
    raise _unknown(name)


def _unknown(name: str, setting: str = "") -> ConfigurationError:
    known = available()
    near = difflib.get_close_matches(name, known, n=1)
    return ConfigurationError(
        f"{setting}there is no source called {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"Installed sources: auto, {', '.join(known)}.",
    )


def check_names(settings: Settings) -> None:
    """A misspelt provider in the settings would otherwise be asked, or priced, without a word."""
    search, known = settings.search, available()
    named = {
        "without": search.without, "endpoints": search.endpoints, "requests_per_minute": search.requests_per_minute,
        "requests_per_day": search.requests_per_day, "usd_per_request": search.usd_per_request,
    }  # fmt: skip
    for key, names in named.items():
        for name in names:
            if name not in known:
                raise _unknown(name, f"search.{key}: ")
