"""Whom a person can prefer or avoid: a host, or a source by its name."""

from difflib import get_close_matches

from assay.errors import UsageError
from assay.search.registry import available
from assay.settings import Settings
from assay.text.hosts import registered
from assay.text.urls import host_of


def party(said: str, settings: Settings) -> str:
    """A host as in "nasa.gov", also where its address was given; or a source's name."""
    name, known = said.strip().lower(), available(settings)
    if name in known:
        return name
    host = host_of(name if "://" in name else f"https://{name}").removeprefix("www.")
    if "." in host and registered(host):
        return host
    near = get_close_matches(name, known, n=1)
    raise UsageError(
        f"{said.strip()!r} is neither a host nor a source" + (f"; did you mean {near[0]!r}?" if near else ""),
        help=f"A host is written like reddit.com; sources are {', '.join(known)}.",
    )
