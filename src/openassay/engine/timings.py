"""Where the time of a run went: its stages, whoever outside was asked, what the caches have saved, and its waiting."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Literal, NamedTuple

from pydantic import Field

from openassay.models.base import Record
from openassay.models.event import Event, RunStatus
from openassay.models.thread import Run
from openassay.text.urls import host_class, host_of

# What events tell of those outside: a model, a provider of searches, the sites of one sort.

PartyKind = Literal["model", "search", "pages"]
FEES = ("search", "harvest")  # steps of which a `spend` is for a request, not for a model


class ExternalCall(NamedTuple):
    kind: PartyKind
    party: str
    seconds: float | None = None  # None: nobody was asked, or gave no answer
    failures: int = 0
    cached: bool | None = None  # whether the cache knew; None: it was not asked
    usd: float = 0.0


def parse_external_call(event: Event) -> ExternalCall | None:
    """None for what happened in here."""
    data = event.data
    if event.kind == "spend":
        return _parse_spend(event)
    if event.kind == "notice" and data.get("failed"):
        return ExternalCall("model", str(data["failed"]), failures=1)
    if event.kind == "search" and event.stage == "search" and data.get("remote"):
        return ExternalCall("search", str(data["source"]), _read_seconds(event), cached=bool(data.get("cached")))
    if event.kind == "error" and event.stage == "search" and data.get("source"):
        return ExternalCall(
            "search", str(data["source"]), failures=int(read_number(event, "queries")) or 1, cached=False
        )
    if event.kind in ("read", "skip") and event.stage == "harvest":
        cached = bool(data.get("cached"))
        failures = int(event.kind == "skip" and not cached)
        return ExternalCall("pages", _publisher(event), _read_seconds(event), failures, cached)
    return None


def _parse_spend(event: Event) -> ExternalCall:
    """A search that was paid for is told of by an event of its own, with its time."""
    name, usd = str(event.data.get("model", "")), read_number(event, "usd")
    if event.data.get("step") in FEES:
        return ExternalCall("search", name, usd=usd)
    answered = event.data.get("confirmed") or read_number(event, "seconds")  # else it is booked, and was in vain
    return ExternalCall("model", name, _read_seconds(event) if answered else None, usd=usd)


def _publisher(event: Event) -> str:
    """Sites by what sort they are known to be: there are too many to tell them apart."""
    host = event.data.get("host") or host_of(str(event.data.get("path", "")))
    return host_class(str(host)) or "other"


def read_number(event: Event, name: str) -> float:
    value = event.data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _read_seconds(event: Event) -> float | None:
    return read_number(event, "seconds") if "seconds" in event.data else None


class RunDurations(Record):
    """In seconds. `working` has nobody waiting for a person, `stopped` is after a run was cut off and gone on with."""

    total: float = Field(examples=[42.1])
    queued: float = Field(examples=[0.2])
    working: float = Field(examples=[11.7])
    waiting: float = Field(examples=[30.2], description="For people to answer.")
    stopped: float = Field(examples=[0.0])


class NodeTiming(Record):
    stage: str = Field(examples=["search"])
    count: int = Field(examples=[3])
    unfinished: int = Field(examples=[0], description="Failed, cut off, under way, or waiting for an answer.")
    seconds: float = Field(examples=[4.82])
    longest: float = Field(examples=[2.01])


class ExternalParty(Record):
    """Somebody outside: a model, a provider of searches, or the sites of one sort."""

    kind: PartyKind
    party: str = Field(examples=["openai:gpt-5-mini"])
    calls: int = Field(examples=[12], description="That were answered.")
    failures: int = Field(examples=[1])
    seconds: float = Field(examples=[9.3])
    median: float | None = Field(examples=[0.71])
    longest: float | None = Field(examples=[1.9])
    usd: float = Field(examples=[0.0132])


class CacheUse(Record):
    cache: Literal["searches", "pages"]
    asked: int = Field(examples=[20])
    hits: int = Field(examples=[14])
    rate: float | None = Field(examples=[0.7], description="None where it was not asked.")


class Timings(Record):
    """Of one run, however often it was gone on with."""

    thread: str = Field(examples=["4f1c2a9b7d3e"])
    run: str = Field(examples=["9e0b6a1c55d2"])
    request: str = Field(examples=["5f0c9d1e"], description="The id of the request that began it, if one did.")
    status: RunStatus
    began: datetime
    attempts: int = Field(examples=[1], description="How often somebody took it up.")
    events: int = Field(examples=[131])
    seconds: RunDurations
    stages: tuple[NodeTiming, ...]
    parties: tuple[ExternalParty, ...]
    caches: tuple[CacheUse, ...]
    errors: dict[str, int] = Field(examples=[{"rate_limit": 1}], description="By category.")


def measure_timings(run: Run, events: Sequence[Event], now: datetime) -> Timings:
    found = [told for event in events if (told := parse_external_call(event)) is not None]
    begun = [event for event in events if _read_status(event) is RunStatus.RUNNING]
    return Timings(
        thread=run.thread,
        run=run.id,
        request=run.options.request,
        status=run.status,
        began=run.started,
        attempts=len(begun),
        events=len(events),
        seconds=measure_durations(run, events, now),
        stages=tuple(_time_nodes(events)),
        parties=tuple(_time_parties(found)),
        caches=(_count_cache_use("searches", "search", found), _count_cache_use("pages", "pages", found)),
        errors=dict(Counter(str(event.data["category"]) for event in events if event.data.get("category"))),
    )


def _read_status(event: Event) -> RunStatus | None:
    try:
        return RunStatus(str(event.data["status"])) if event.kind == "run" else None
    except (KeyError, ValueError):
        return None


_PASSING = {RunStatus.RUNNING: "working", RunStatus.WAITING: "waiting", RunStatus.QUEUED: "queued"}


def measure_durations(run: Run, events: Sequence[Event], now: datetime) -> RunDurations:
    """A run that was cut off has worked until its last event. What is open is open until now, save work: whether
    anybody is at it is not known here."""
    spent = dict.fromkeys(("queued", "working", "waiting", "stopped"), 0.0)
    doing, since, last = "queued", run.started, run.started
    for event in events:
        becomes = _read_status(event)
        if becomes is not None:
            if doing == "working" and becomes is RunStatus.RUNNING:
                spent["working"] += _seconds_between(since, last)
                doing, since = "stopped", last
            spent[doing] += _seconds_between(since, event.time)
            doing, since = _PASSING.get(becomes, "stopped"), event.time
        last = event.time
    if doing == "working":
        spent[doing] += _seconds_between(since, last)
    elif run.status in (RunStatus.QUEUED, RunStatus.WAITING):
        spent[doing] += _seconds_between(since, now)
    return RunDurations(total=round(sum(spent.values()), 3), **{name: round(value, 3) for name, value in spent.items()})


def _seconds_between(start: datetime, end: datetime) -> float:
    return max((end - start) / timedelta(seconds=1), 0.0)


def _time_nodes(events: Sequence[Event]) -> Iterable[NodeTiming]:
    """In the order in which they were first entered."""
    entered = Counter(event.stage for event in events if event.kind == "enter")
    for stage, count in entered.items():
        took = [read_number(event, "seconds") for event in events if event.stage == stage and is_node_exit(event)]
        yield NodeTiming(
            stage=stage, count=len(took), unfinished=max(count - len(took), 0), seconds=round(sum(took), 3),
            longest=max(took, default=0.0),
        )  # fmt: skip


def is_node_exit(event: Event) -> bool:
    """A stage may tell what it decided by a `leave` of its own, which has no time."""
    return event.kind == "leave" and "seconds" in event.data


def _time_parties(found: Sequence[ExternalCall]) -> list[ExternalParty]:
    """Whoever took most of the time comes first."""
    parties = []
    for kind, party in dict.fromkeys((one.kind, one.party) for one in found):
        mine = [one for one in found if (one.kind, one.party) == (kind, party)]
        took = [one.seconds for one in mine if one.seconds is not None]
        parties.append(ExternalParty(
            kind=kind, party=party, calls=len(took), failures=sum(one.failures for one in mine),
            seconds=round(sum(took), 3), median=round(median(took), 3) if took else None,
            longest=max(took, default=None), usd=round(sum(one.usd for one in mine), 6),
        ))  # fmt: skip
    return sorted((one for one in parties if one.calls or one.failures or one.usd), key=lambda one: -one.seconds)


def _count_cache_use(name: Literal["searches", "pages"], kind: PartyKind, found: Sequence[ExternalCall]) -> CacheUse:
    mine = [one for one in found if one.kind == kind and one.cached is not None]
    asked, hits = sum(one.failures or 1 for one in mine), sum(bool(one.cached) for one in mine)
    return CacheUse(cache=name, asked=asked, hits=hits, rate=round(hits / asked, 3) if asked else None)
