"""What events tell of those outside: a model, a provider of searches, the sites of one sort."""

from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from assay.model.event import Event
from assay.text.hosts import class_of

Kind = Literal["model", "search", "pages"]
FEES = ("search", "harvest")  # steps of which a `spend` is for a request, not for a model


class Asked(NamedTuple):
    """What one event tells of somebody outside."""

    kind: Kind
    party: str
    seconds: float | None = None  # None: nobody was asked, or gave no answer
    failures: int = 0
    cached: bool | None = None  # whether the cache knew; None: it was not asked
    usd: float = 0.0


def asked(event: Event) -> Asked | None:
    """None for what happened in here."""
    data = event.data
    if event.kind == "spend":
        return _paid(event)
    if event.kind == "notice" and data.get("failed"):
        return Asked("model", str(data["failed"]), failures=1)
    if event.kind == "search" and event.stage == "search" and data.get("remote"):
        return Asked("search", str(data["source"]), _seconds(event), cached=bool(data.get("cached")))
    if event.kind == "error" and event.stage == "search" and data.get("source"):
        return Asked("search", str(data["source"]), failures=int(number(event, "queries")) or 1, cached=False)
    if event.kind in ("read", "skip") and event.stage == "harvest":
        cached = bool(data.get("cached"))
        failures = int(event.kind == "skip" and not cached)
        return Asked("pages", _publisher(event), _seconds(event), failures, cached)
    return None


def _paid(event: Event) -> Asked:
    """A search that was paid for is told of by an event of its own, with its time."""
    name, usd = str(event.data.get("model", "")), number(event, "usd")
    if event.data.get("step") in FEES:
        return Asked("search", name, usd=usd)
    answered = event.data.get("confirmed") or number(event, "seconds")  # else it is booked, and was in vain
    return Asked("model", name, _seconds(event) if answered else None, usd=usd)


def _publisher(event: Event) -> str:
    """Sites by what sort they are known to be: there are too many to tell them apart."""
    host = str(event.data.get("host") or "")
    if not host:
        try:
            host = urlsplit(str(event.data.get("path", ""))).hostname or ""
        except ValueError:
            host = ""
    return class_of(host) or "other"


def number(event: Event, name: str) -> float:
    value = event.data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _seconds(event: Event) -> float | None:
    return number(event, "seconds") if "seconds" in event.data else None
