"""Where the time of a run went, read from its events alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from openassay.engine.timings import ExternalCall, RunDurations, measure_durations, measure_timings, parse_external_call
from openassay.models.event import Event, EventKind, RunStatus
from openassay.models.thread import ResearchOptions, Run

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(moment: float, kind: EventKind, stage: str = "", /, **data: Any) -> Event:
    return Event(run="r", time=NOON + timedelta(seconds=moment), kind=kind, stage=stage, data=data)


def run(status: RunStatus, **options: Any) -> Run:
    return Run(id="r", thread="t", question="?", status=status, started=NOON, options=ResearchOptions(**options))


def spent(status: RunStatus, *events: Event, now: float = 100) -> RunDurations:
    return measure_durations(run(status), events, NOON + timedelta(seconds=now))


def test_a_run_in_line_has_done_nothing_else() -> None:
    assert spent(RunStatus.QUEUED) == RunDurations(total=100, queued=100, working=0, waiting=0, stopped=0)


@pytest.mark.requirement("W-13")
def test_waiting_for_people_and_being_stopped_are_no_work() -> None:
    events = (
        at(1, "run", status="running"), at(3, "run", status="waiting"),
        at(10, "run", status="running"), at(14, "run", status="cancelled"),
        at(20, "run", status="running"), at(21, "run", status="done"),
    )  # fmt: skip
    assert spent(RunStatus.DONE, *events) == RunDurations(total=21, queued=1, working=7, waiting=7, stopped=6)
    assert spent(RunStatus.WAITING, *events[:2]) == RunDurations(total=100, queued=1, working=2, waiting=97, stopped=0)


@pytest.mark.requirement("W-13")
def test_a_run_whose_process_died_has_worked_until_its_last_event() -> None:
    events = (at(0, "run", status="running"), at(5, "enter", "search"), at(60, "run", status="running"))
    ended = (*events, at(62, "run", status="done"))
    assert spent(RunStatus.DONE, *ended) == RunDurations(total=62, queued=0, working=7, waiting=0, stopped=55)
    assert spent(RunStatus.RUNNING, *events[:2]) == RunDurations(total=5, queued=0, working=5, waiting=0, stopped=0)


def test_a_drained_run_is_in_line_again() -> None:
    events = (at(0, "run", status="running"), at(2, "run", status="queued"))
    assert spent(RunStatus.QUEUED, *events, now=10) == RunDurations(total=10, queued=8, working=2, waiting=0, stopped=0)


def test_stages_that_were_entered_again_are_one_line() -> None:
    found = measure_timings(
        run(RunStatus.DONE, request="abc"),
        [
            at(0, "run", status="running"),
            at(1, "enter", "question"),
            at(2, "enter", "question"),
            at(2, "leave", "question", seconds=0.5),
            at(3, "enter", "gate"),
            at(3, "leave", "gate", status="planning", mode="auto"),  # what it decided, by an event of its own
            at(3, "leave", "gate", seconds=1.5),
        ],
        NOON,
    )
    question, gate = found.stages
    assert (question.count, question.unfinished, question.seconds) == (1, 1, 0.5)
    assert (gate.count, gate.unfinished, gate.seconds, gate.longest) == (1, 0, 1.5, 1.5)
    assert (found.request, found.attempts, found.parties, found.errors) == ("abc", 1, (), {})
    assert [cache.rate for cache in found.caches] == [None, None]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            at(0, "spend", model="a:b", step="plan", usd=1, confirmed=True, seconds=2),
            ExternalCall("model", "a:b", 2, usd=1),
        ),
        (
            at(0, "spend", model="a:b", step="plan", usd=0.5, confirmed=False, seconds=0),
            ExternalCall("model", "a:b", usd=0.5),
        ),
        (at(0, "spend", model="exa", step="search", usd=0.1, seconds=3), ExternalCall("search", "exa", usd=0.1)),
        (at(0, "notice", failed="a:b", category="api"), ExternalCall("model", "a:b", failures=1)),
        (at(0, "notice", text="something else"), None),
        (at(0, "search", "search", source="exa", remote=True, seconds=1), ExternalCall("search", "exa", 1, 0, False)),
        (at(0, "search", "search", source="exa", remote=True, cached=True), ExternalCall("search", "exa", cached=True)),
        (at(0, "search", "search", source="documents", remote=False, cached=False), None),
        (at(0, "search", "fuse", asked=3, cached=1), None),
        (at(0, "error", "search", source="exa", queries=4), ExternalCall("search", "exa", failures=4, cached=False)),
        (
            at(0, "read", "harvest", host="doi.org", cached=False, seconds=1),
            ExternalCall("pages", "scholarly", 1, 0, False),
        ),
        (
            at(0, "skip", "harvest", path="https://blog.org/x", cached=False),
            ExternalCall("pages", "other", None, 1, False),
        ),
        (at(0, "skip", "harvest", path="http://[", cached=True), ExternalCall("pages", "other", cached=True)),
        (at(0, "skip", "prepare", path="/a/file"), None),
    ],
)
def test_what_an_event_tells_of_those_outside(event: Event, told: ExternalCall | None) -> None:
    assert parse_external_call(event) == told


@pytest.mark.requirement("W-13")
def test_a_party_is_told_with_its_median_its_longest_and_its_failures() -> None:
    searches = [at(0, "search", "search", source="exa", remote=True, seconds=seconds) for seconds in (1, 2, 9)]
    hits = [at(0, "search", "search", source="exa", remote=True, cached=True)]
    failed = [at(0, "error", "search", source="exa", queries=2, category="timeout")]
    found = measure_timings(run(RunStatus.DONE), [*searches, *hits, *failed], NOON)
    [party] = found.parties
    assert (party.calls, party.failures, party.median, party.longest, party.seconds) == (3, 2, 2, 9, 12)
    assert (found.caches[0].asked, found.caches[0].hits, found.caches[0].rate) == (6, 1, 0.167)
    assert found.errors == {"timeout": 1}
