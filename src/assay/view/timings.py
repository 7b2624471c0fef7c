"""Where the time of a run went: its stages, whoever outside was asked, what the caches have saved, and its waiting."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Literal

from pydantic import Field

from assay.model.event import Event, RunStatus
from assay.model.record import Record
from assay.model.thread import Run
from assay.view.outside import Asked, Kind, asked, number


class Clock(Record):
    """In seconds. `working` has nobody waiting for a person, `stopped` is after a run was cut off and gone on with."""

    total: float = Field(examples=[42.1])
    queued: float = Field(examples=[0.2])
    working: float = Field(examples=[11.7])
    waiting: float = Field(examples=[30.2], description="For people to answer.")
    stopped: float = Field(examples=[0.0])


class StageTime(Record):
    stage: str = Field(examples=["search"])
    count: int = Field(examples=[3])
    unfinished: int = Field(examples=[0], description="Failed, cut off, under way, or waiting for an answer.")
    seconds: float = Field(examples=[4.82])
    longest: float = Field(examples=[2.01])


class Party(Record):
    """Somebody outside: a model, a provider of searches, or the sites of one sort."""

    kind: Kind
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
    seconds: Clock
    stages: tuple[StageTime, ...]
    parties: tuple[Party, ...]
    caches: tuple[CacheUse, ...]
    errors: dict[str, int] = Field(examples=[{"rate_limit": 1}], description="By category.")


def timings(run: Run, events: Sequence[Event], now: datetime) -> Timings:
    found = [told for event in events if (told := asked(event)) is not None]
    begun = [event for event in events if _becomes(event) is RunStatus.RUNNING]
    return Timings(
        thread=run.thread,
        run=run.id,
        request=str(run.options.get("request") or ""),
        status=run.status,
        began=run.started,
        attempts=len(begun),
        events=len(events),
        seconds=clock(run, events, now),
        stages=tuple(_stages(events)),
        parties=tuple(_parties(found)),
        caches=(_cache("searches", "search", found), _cache("pages", "pages", found)),
        errors=dict(Counter(str(event.data["category"]) for event in events if event.data.get("category"))),
    )


def _becomes(event: Event) -> RunStatus | None:
    try:
        return RunStatus(str(event.data["status"])) if event.kind == "run" else None
    except (KeyError, ValueError):
        return None


_PASSING = {RunStatus.RUNNING: "working", RunStatus.WAITING: "waiting", RunStatus.QUEUED: "queued"}


def clock(run: Run, events: Sequence[Event], now: datetime) -> Clock:
    """A run that was cut off has worked until its last event. What is open is open until now, save work: whether
    anybody is at it is not known here."""
    spent = dict.fromkeys(("queued", "working", "waiting", "stopped"), 0.0)
    doing, since, last = "queued", run.started, run.started
    for event in events:
        becomes = _becomes(event)
        if becomes is not None:
            if doing == "working" and becomes is RunStatus.RUNNING:
                spent["working"] += _between(since, last)
                doing, since = "stopped", last
            spent[doing] += _between(since, event.time)
            doing, since = _PASSING.get(becomes, "stopped"), event.time
        last = event.time
    if doing == "working":
        spent[doing] += _between(since, last)
    elif run.status in (RunStatus.QUEUED, RunStatus.WAITING):
        spent[doing] += _between(since, now)
    return Clock(total=round(sum(spent.values()), 3), **{name: round(value, 3) for name, value in spent.items()})


def _between(start: datetime, end: datetime) -> float:
    return max((end - start) / timedelta(seconds=1), 0.0)


def _stages(events: Sequence[Event]) -> Iterable[StageTime]:
    """In the order in which they were first entered."""
    entered = Counter(event.stage for event in events if event.kind == "enter")
    for stage, count in entered.items():
        took = [number(event, "seconds") for event in events if event.stage == stage and is_left(event)]
        yield StageTime(
            stage=stage, count=len(took), unfinished=max(count - len(took), 0), seconds=round(sum(took), 3),
            longest=max(took, default=0.0),
        )  # fmt: skip


def is_left(event: Event) -> bool:
    """A stage may tell what it decided by a `leave` of its own, which has no time."""
    return event.kind == "leave" and "seconds" in event.data


def _parties(found: Sequence[Asked]) -> list[Party]:
    """Whoever took most of the time comes first."""
    parties = []
    for kind, party in dict.fromkeys((one.kind, one.party) for one in found):
        mine = [one for one in found if (one.kind, one.party) == (kind, party)]
        took = [one.seconds for one in mine if one.seconds is not None]
        parties.append(Party(
            kind=kind, party=party, calls=len(took), failures=sum(one.failures for one in mine),
            seconds=round(sum(took), 3), median=round(median(took), 3) if took else None,
            longest=max(took, default=None), usd=round(sum(one.usd for one in mine), 6),
        ))  # fmt: skip
    return sorted((one for one in parties if one.calls or one.failures or one.usd), key=lambda one: -one.seconds)


def _cache(name: Literal["searches", "pages"], kind: Kind, found: Sequence[Asked]) -> CacheUse:
    mine = [one for one in found if one.kind == kind and one.cached is not None]
    asked, hits = sum(one.failures or 1 for one in mine), sum(bool(one.cached) for one in mine)
    return CacheUse(cache=name, asked=asked, hits=hits, rate=round(hits / asked, 3) if asked else None)
