"""Loops end where the settings say, and the status of a run is always current."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from openassay.errors import ConfigurationError, SourceError
from openassay.models.event import RunStatus, Status
from openassay.models.plan import SearchQuery
from openassay.models.report import Critique, Issue
from openassay.settings import load
from openassay.text.words import query_key
from tests.scenario.conftest import Lab
from tests.scenario.material import LAKE, QUESTION

Make = Callable[..., Lab]


def always_revise(real: object, request: object) -> Critique:
    issue = Issue(category="style", severity="major", location="everywhere", description="dull", fix="sing it")
    return Critique(scores={"style": 6.0}, score=6.0, issues=(issue,), recommendation="revise")


def rewriting() -> Callable[..., Any]:
    """A writer whose every draft differs from the one before."""
    drafts: list[object] = []

    async def write(real: Any, request: Any) -> Any:
        draft = await real(request)
        drafts.append(draft)
        first, *rest = draft.sections
        titles = ("Overview", "Background", "Context", "Discussion", "Assessment")
        renamed = first.model_copy(update={"title": titles[len(drafts) % len(titles)]})
        return draft.model_copy(update={"sections": (renamed, *rest)})

    return write


def never_satisfied(rounds: list[int]) -> Callable[..., Any]:
    """An analysis that always finds a gap, always has a new query, and gains enough each time to go on."""

    async def analyse(real: Any, request: Any) -> Any:
        rounds.append(len(rounds) + 1)
        analysis = await real(request)
        gap = {"section": request.plan.sections[0], "severity": "major", "question": "Q1"}
        refinements = {"Q1": [f"lake marrow attempt {len(rounds)}"]}
        confidence = 0.1 * len(rounds)
        return analysis.model_validate(
            {**analysis.plain(), "gaps": [gap], "refinements": refinements, "confidence": confidence}
        )

    return analyse


# F-08


@pytest.mark.slow
@pytest.mark.requirement("F-08")
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
async def test_drafts_end_at_max_iterations(lab: Make, limit: int) -> None:
    here = lab(critique=always_revise, write=rewriting(), settings={"max_iterations": limit})
    here.holds(*LAKE)

    report = await here.report("How large is Lake Marrow?", depth="quick")

    drafts = [arguments for name, arguments in here.reasoner.calls if name == "write"]
    assert len(drafts) == limit
    assert all(request.fixes == ("sing it",) for [request] in drafts[1:])
    assert report.metadata.iterations == limit
    assert report.status == "partial"


@pytest.mark.requirement("F-08")
@pytest.mark.parametrize(("recommendation", "status"), [("revise", "partial"), ("approve", "complete")])
async def test_a_revision_that_changes_nothing_is_the_last(lab: Make, recommendation: str, status: str) -> None:
    reviews: list[object] = []

    def critique(real: object, request: object) -> Critique:
        reviews.append(request)
        first = always_revise(real, request)
        return first if len(reviews) == 1 else first.model_copy(update={"recommendation": recommendation})

    here = lab(critique=critique, settings={"max_iterations": 10})
    here.holds(*LAKE)

    outcome = await here.ask("How large is Lake Marrow?", depth="quick")

    assert outcome.report is not None
    assert (outcome.report.metadata.iterations, outcome.report.status) == (2, status)
    assert (await here.state(outcome))["stuck"] is True


async def test_a_report_that_is_too_long_is_shortened(lab: Make) -> None:
    def critique(real: object, request: Any) -> Critique:
        issue = Issue(category="style", severity="minor", location="all", description="long", fix="shorten")
        return Critique(scores={}, score=6.0, issues=(issue,), recommendation="revise")

    here = lab(critique=critique, settings={"max_iterations": 10})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION, words=60)

    [first], [second], *_ = [arguments for name, arguments in here.reasoner.calls if name == "write"]
    assert (first.fixes, second.fixes) == ((), ("shorten",))
    assert outcome.report is not None
    assert outcome.report.status == "partial"


@pytest.mark.requirement("F-08")
@pytest.mark.parametrize(("limit", "rounds"), [(0, 1), (1, 2), (2, 3)])
async def test_rounds_end_at_max_gap_searches_and_never_pass_three(lab: Make, limit: int, rounds: int) -> None:
    analysed: list[int] = []
    here = lab(analyse=never_satisfied(analysed), settings={"max_gap_searches": limit})
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert len(analysed) + 1 == rounds == outcome.report.metadata.rounds  # what comes after the last changes nothing
    assert sum("attempt" in query for query in source.queries) == rounds - 1
    assert (await here.state(outcome))["research_attempts"] == rounds


@pytest.mark.requirement("F-08")
@pytest.mark.parametrize(("limit", "rounds"), [(1, 1), (2, 2), (100, 3)])
async def test_failing_searches_end_at_max_search_errors(lab: Make, limit: int, rounds: int) -> None:
    """One sub-question fails in each round."""

    async def outage(query: str) -> None:
        if "shrink" in query or "attempt" in query:
            raise SourceError("the archive is closed", retryable=True)

    analysed: list[int] = []
    here = lab(analyse=never_satisfied(analysed), settings={"max_search_errors": limit, "max_gap_searches": 2})
    here.holds(*LAKE, before=outage)

    outcome = await here.ask("How large is Lake Marrow, and why did the shore shrink?")

    assert outcome.report is not None
    assert outcome.report.metadata.rounds == rounds
    assert len((await here.state(outcome))["failures"]) == min(limit, rounds)


@pytest.mark.requirement("F-08", "F-13")
@pytest.mark.parametrize("limit", [1, 2])
async def test_a_sub_question_asks_at_most_max_search_iterations_queries(lab: Make, limit: int) -> None:
    here = lab(settings={"max_search_iterations": limit, "max_gap_searches": 0})
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    searches = [event for event in await here.log(outcome.run.id) if event.kind == "search" and "query" in event.data]
    asked: dict[object, list[object]] = {}
    for event in searches:
        asked.setdefault(event.data["question"], []).append(event.data["query"])
    assert len(asked) == 3
    assert all(len(queries) == limit for queries in asked.values())
    # The preview of the gate is the one search more; the provenance names what was asked and nothing else.
    assert len(source.queries) == 3 * limit + 1
    assert set(outcome.report.provenance.queries) == set(source.queries[1:])


@pytest.mark.requirement("F-08")
@pytest.mark.parametrize(
    ("key", "value"),
    [("max_iterations", 0), ("max_search_iterations", 0), ("max_gap_searches", -1), ("max_search_errors", 0)],
)
def test_a_bound_that_bounds_nothing_is_refused(key: str, value: int) -> None:
    with pytest.raises(ConfigurationError, match=key):
        load(**{key: value})


# F-01


@pytest.mark.requirement("F-01")
async def test_the_status_of_a_run_is_current_at_every_step(lab: Make) -> None:
    during: list[tuple[str, Status]] = []

    def noting(name: str, then: Callable[..., Any] | None = None) -> Callable[..., Any]:
        async def step(real: Any, *args: Any) -> Any:
            [thread] = await here.threads.list_recent(limit=1)
            [run] = await here.threads.runs(thread.id)
            during.append((name, run.stage))
            return then(real, *args) if then else await real(*args)

        return step

    steps = ("understand", "plan", "propose_queries", "read", "analyse", "extract_claims", "judge", "write")
    here = lab(
        settings={"max_iterations": 2},
        critique=noting("critique", always_revise),
        **{name: noting(name) for name in steps},
    )
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert dict(during[:-2]) | {"critique": Status.REVIEWING, "write": Status.WRITING} == {
        "understand": Status.PLANNING, "plan": Status.PLANNING, "propose_queries": Status.SEARCHING,
        "read": Status.SEARCHING,
        "analyse": Status.ANALYZING, "extract_claims": Status.ANALYZING, "judge": Status.ANALYZING,
        "write": Status.WRITING, "critique": Status.REVIEWING,
    }  # fmt: skip
    assert during[-4:] == [
        ("write", Status.WRITING),
        ("critique", Status.REVIEWING),
        ("write", Status.REVISING),
        ("critique", Status.REVIEWING),
    ]
    assert (outcome.run.status, outcome.run.stage) == (RunStatus.DONE, Status.COMPLETED)
    assert (await here.state(outcome))["status"] == "completed"


@pytest.mark.requirement("F-01")
async def test_every_entry_says_the_status_and_they_come_in_order(lab: Make) -> None:
    here = lab(settings={"max_gap_searches": 0})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    entered = [event for event in await here.log(outcome.run.id) if event.kind == "enter"]
    stages = list(dict.fromkeys(event.stage for event in entered))
    assert stages == [
        "understand", "gate", "plan", "dispatch", "search", "fuse", "read", "consolidate", "verify", "write", "review",
        "publish",
    ]  # fmt: skip
    statuses = [str(event.data["status"]) for event in entered if event.stage != "publish"]
    assert list(dict.fromkeys(statuses)) == ["planning", "searching", "analyzing", "writing", "reviewing"]
    assert statuses == sorted(statuses, key=list(dict.fromkeys(statuses)).index)


@pytest.mark.requirement("F-01")
@pytest.mark.parametrize("question", ["What's happening with Zorblax Industries?", "What's happening with Apple?"])
async def test_the_run_and_the_state_end_with_the_same_status(lab: Make, question: str) -> None:
    here = lab()

    outcome = await here.ask(question, depth="quick")

    assert outcome.run.stage == (await here.state(outcome))["status"]


@pytest.mark.requirement("F-01")
async def test_a_run_that_breaks_is_failed_and_says_why(lab: Make) -> None:
    def broken(real: object, request: object) -> None:
        raise RuntimeError("the planner has left the building")

    here = lab(plan=broken)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert (outcome.run.status, outcome.run.stage) == (RunStatus.FAILED, Status.FAILED)
    assert "the planner has left the building" in (outcome.run.error or "")
    assert outcome.report is None


@pytest.mark.requirement("F-01")
@pytest.mark.parametrize(
    "wrong", [{"type": "rumour"}, {"priority": 0}, {"priority": 6}, {"status": "maybe"}, {"text": ""}]
)
def test_a_search_query_has_a_type_a_priority_and_a_status(wrong: dict[str, Any]) -> None:
    fields = {"id": "K1", "text": "lake marrow", "question": "Q1"}
    query = SearchQuery.model_validate({**fields, "type": "news", "priority": 5})

    assert (query.type, query.priority, query.status) == ("news", 5, "pending")
    with pytest.raises(ValidationError):
        SearchQuery.model_validate({**fields, **wrong})


@pytest.mark.requirement("F-01")
async def test_queries_end_as_completed_or_failed(lab: Make) -> None:
    async def outage(query: str) -> None:
        if "measured" in query or "shrink" in query:
            raise SourceError("the archive is closed")

    here = lab(settings={"max_gap_searches": 0})
    source = here.holds(*LAKE, before=outage)

    report = await here.report("How large is Lake Marrow, and why did the shore shrink?")

    assert report.plan is not None
    statuses = {query.text: query.status for query in report.plan.queries if query.type == "web"}
    assert set(statuses.values()) == {"completed", "failed"}
    for text, status in statuses.items():
        assert query_key(text) in set(map(query_key, source.queries)), "a query in other words was asked once"
        assert status == ("failed" if "measured" in text or "shrink" in text else "completed")
