"""What can be seen of a thread at any moment: its state with everything the ids in it stand for."""

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from openassay.engine.state_view import MAX_ITEMS, StateView, build_view
from openassay.errors import NotFoundError, ReasoningError
from openassay.models.event import RunStatus
from openassay.models.evidence import Claim
from openassay.models.plan import Mode
from openassay.testing import FakeRemote, MemoryDocuments, make_document
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY
from tests.scenario.test_web import hit, on_the_web

Make = Callable[..., Lab]

pytestmark = pytest.mark.requirement("W-04")


async def seen(here: Lab, thread: str) -> StateView:
    found = await here.engine.view(thread)
    assert StateView.model_validate_json(found.model_dump_json()) == found
    return found


async def test_a_finished_question_shows_the_way_from_goal_to_draft(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION)
    assert outcome.report is not None

    found = await seen(here, outcome.run.thread)

    assert found.user_inputs.goal == QUESTION
    assert found.user_inputs.gate is not None
    assert found.user_inputs.gate.auto
    assert found.plan is not None
    assert [step.text for step in found.plan.dag] == list(outcome.report.provenance.sub_questions)
    assert {query for step in found.plan.dag for query in step.queries} <= set(found.queries)
    assert set(found.queries) >= set(outcome.report.provenance.queries)
    assert {result.url for result in found.search_results} == {document.url for document in LAKE}
    assert found.draft is not None
    assert 0 < found.draft.confidence <= 1
    assert set(found.draft.citations) == {card.id for card in outcome.report.sources}
    for section in outcome.report.sections:
        assert all(sentence.text in found.draft.text for sentence in section.sentences)
    assert (found.draft.title, len(found.draft.sections) > 1) == (outcome.report.title, True)
    assert found.draft.sections == outcome.report.sections[: len(found.draft.sections)], "with citations and marks"
    assert (found.status, found.clarity_status, found.next) == ("completed", "clear", ())
    assert [turn.role for turn in found.messages] == ["user", "assistant"]
    assert found.checkpoint
    assert found.left_out == {}


async def test_evidence_is_resolved_from_the_snapshots(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION)
    texts = {document.hash: document for document in LAKE}

    found = await seen(here, outcome.run.thread)

    assert {one.content_hash for one in found.evidence} == set(texts)
    for one in found.evidence:
        document = texts[one.content_hash]
        assert (one.url, one.title, one.problem) == (document.url, document.title, None)
        day = document.published.isoformat() if document.published else None
        assert (one.host, one.kind, one.published, one.author) == (document.host, document.kind, day, document.author)
        assert one.snippet
        assert one.snippet in document.text
        assert one.chunks
        assert all(chunk.text == document.text[chunk.start : chunk.end] != "" for chunk in one.chunks)
    kept = json.dumps(await here.engine.state(outcome.run.thread))
    assert GUIDE.text not in kept


async def test_before_there_is_a_plan_there_is_a_goal(lab: Make) -> None:
    here = lab()
    outcome = await here.ask("lakes?", interactive=True)
    assert outcome.questions[0].kind == "clarification"

    found = await seen(here, outcome.run.thread)

    assert found.user_inputs.goal == "lakes?"
    assert (found.plan, found.draft, found.evidence, found.queries) == (None, None, (), ())
    assert (found.next, found.clarity_status) == (("clarify",), "needs_clarification")


async def test_planning_answers_and_the_mode_are_among_the_inputs(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    waiting = await here.ask(QUESTION, mode="plan", interactive=True)
    answered = waiting.questions[0]
    waiting = await here.answer(waiting, "Only the last ten years")

    inputs = (await seen(here, waiting.run.thread)).user_inputs

    assert inputs.mode_override == "plan"
    assert inputs.gate is not None
    assert not inputs.gate.auto
    assert inputs.planner_answers == {answered.shown["id"]: "Only the last ten years"}


async def test_the_mode_of_the_thread_is_shown_where_the_question_came_without_one() -> None:
    for options, mode, shown in (
        ({"mode": None}, Mode.PLAN, "plan"), ({}, Mode.PLAN, "plan"), ({"mode": "auto"}, Mode.PLAN, "auto"),
        ({"mode": None}, None, None), ({"mode": "odd"}, Mode.PLAN, "plan"),
    ):  # fmt: skip
        found = await build_view({"options": options}, MemoryDocuments(), thread="t", mode=mode)
        assert found.user_inputs.mode_override == shown


@pytest.mark.slow
@pytest.mark.requirement("W-06")
async def test_results_are_there_before_the_harvest_and_evidence_after_it(lab: Make) -> None:
    here = on_the_web(
        lab(settings={"breakpoints": {"before_harvest": True}}),
        FakeRemote("tavily", [hit(SURVEY), hit(GAZETTE, url=f"{GAZETTE.url}?utm_source=mail")]),
        FakeRemote("exa", [hit(GAZETTE), hit(GUIDE)]),
    )
    waiting = await here.ask(QUESTION, interactive=True)
    assert waiting.questions[0].kind == "approve_harvest"

    before = await seen(here, waiting.run.thread)
    outcome = await here.answer(waiting, "approve")
    after = await seen(here, outcome.run.thread)

    assert before.evidence == ()
    assert [(one.host, one.title) for one in before.search_results].count((GAZETTE.host, GAZETTE.title)) == 1
    assert {one.host for one in before.search_results} == {document.host for document in LAKE}
    assert {one.published for one in before.search_results} == {str(document.published) for document in LAKE}
    assert all(one.provider for one in before.search_results)
    assert {one.content_hash for one in after.evidence} == {document.hash for document in LAKE}
    by_title = {one.title: one for one in after.search_results}
    assert by_title[SURVEY.title].snippet.startswith("Lake Marrow covered 412 square kilometres")


async def test_what_the_review_found_is_told_in_words(lab: Make) -> None:
    issue = {"category": "accuracy", "severity": "critical", "location": "Size", "description": "It is a pond."}
    values = {"issues": [issue], "notices": {"a": "The budget was spent."}}

    found = await build_view(values, MemoryDocuments(), thread="t")

    assert found.issues == ("critical, accuracy (Size): It is a pond.",)
    assert found.notices == ("The budget was spent.",)


async def test_a_failed_run_can_be_looked_at(lab: Make) -> None:
    async def broken(*_: Any) -> None:
        raise ReasoningError("no plan today")

    here = lab(plan=broken)
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION)
    assert outcome.run.status is RunStatus.FAILED

    found = await seen(here, outcome.run.thread)

    assert found.user_inputs.goal == QUESTION
    assert (found.plan, found.next) == (None, ("plan",))


async def test_a_snapshot_that_is_gone_or_altered_is_told(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION)
    del here.documents.stored[SURVEY.hash]
    here.documents.stored[GAZETTE.hash] = GAZETTE.model_copy(update={"text": "Lake Marrow is dry."})

    found = await seen(here, outcome.run.thread)

    problems = {one.content_hash: one for one in found.evidence}
    assert problems[SURVEY.hash].problem == f"no document {SURVEY.hash}"
    assert problems[SURVEY.hash].title == SURVEY.title
    assert "is not the text" in str(problems[GAZETTE.hash].problem)
    assert problems[GAZETTE.hash].chunks == ()
    assert problems[GUIDE.hash].problem is None
    assert sum(bool(one.problem) for one in found.search_results) == 2
    assert "dry" not in found.model_dump_json()


async def test_no_state_is_a_state_too(lab: Make) -> None:
    found = await build_view({}, MemoryDocuments(), thread="t")

    assert (found.status, found.clarity_status, found.plan, found.draft) == ("pending", "pending", None, None)
    with pytest.raises(NotFoundError):
        await lab().engine.view("nowhere")


async def test_long_lists_and_texts_are_cut_and_counted() -> None:
    """An abstract can be as long as a book, and a thread may have been searched for days."""
    documents = MemoryDocuments()
    long = make_document("word " * 10_000, title="Long", url="https://long.example/")
    await documents.put(long)
    hits = [hit(long, url=f"https://long.example/{n}", rank=n).model_dump(mode="json") for n in range(1, 1001)]
    places = [{"document": long.hash, "start": n, "end": n + 5_000} for n in range(100)]
    values = {
        "searched": {"0:Q1": {"question": "Q1", "queries": [{"text": f"query {n}"} for n in range(500)], "hits": hits}},
        "selected": {"Q1": places},
        "messages": [{"role": "user", "content": f"{n} " + "x" * 5_000} for n in range(150)],
        "asked": [],
    }

    found = await build_view(values, documents, thread="t")

    assert len(found.queries) == MAX_ITEMS["queries"]
    assert [one.url for one in found.search_results] == [f"https://long.example/{n}" for n in range(1, 201)]
    assert len(found.evidence[0].chunks) == MAX_ITEMS["chunks"]
    assert found.messages[-1].content.startswith("149 ")
    assert found.left_out.pop("characters") > 40 * 3_000
    assert found.left_out == {"queries": 300, "search_results": 800, "chunks": 60, "messages": 50}
    assert len(found.model_dump_json()) < 1_000_000


async def test_a_draft_keeps_what_there_is_room_for_and_the_rest_is_counted() -> None:
    sentence = {"text": "x" * 1_000, "claims": ["C1", "C9"], "opens": True}
    spans = [{"document": name, "start": 0, "end": 1, "quote": "x"} for name in "abcdef"]
    claim = Claim.model_validate({"id": "C1", "text": "x", "questions": [], "spans": spans, "mark": "✓"}).plain()
    values = {
        "sources": [{"document": name, "id": f"S{n}", "title": name} for n, name in enumerate("abcdef", 1)],
        "claims": [claim],
        "draft": {"title": "Deep", "sections": [{"title": "A", "role": "body", "sentences": [sentence] * 150}] * 2},
    }

    found = await build_view(values, MemoryDocuments(), thread="t")

    assert found.draft is not None
    assert [len(section.sentences) for section in found.draft.sections] == [150, 49]
    assert found.left_out.pop("characters") > 100_000
    assert found.left_out == {"sentences": 101}
    [shown] = {one.model_dump_json() for section in found.draft.sections for one in section.sentences}
    told = json.loads(shown)
    assert (told["kind"], told["mark"], told["opens"]) == ("fact", "✓", True)
    assert (told["claims"], told["citations"]) == (["C1", "C9"], ["S1", "S2", "S3", "S4"])


@pytest.mark.slow
@pytest.mark.requirement("X-01")
async def test_the_claims_of_a_moment_come_with_their_passages_those_of_the_draft_first(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    outcome = await here.ask(QUESTION)
    assert outcome.report is not None

    found = await seen(here, outcome.run.thread)

    told = {name for section in outcome.report.sections for one in section.sentences for name in one.claims}
    assert told
    assert {claim.id: claim for claim in found.claims if claim.id in told} == {
        claim.id: claim for claim in outcome.report.claims if claim.id in told
    }

    [one, *_] = found.claims
    span = one.spans[0].model_dump(exclude={"source"})
    claims = [{**one.plain(), "id": f"C{n}", "spans": [span] * 20, "against": []} for n in range(600)]
    last = {"text": "x", "claims": ["C599"]}
    values = {"claims": claims, "draft": {"title": "", "sections": [{"title": "A", "sentences": [last]}]}}
    short = await build_view(values, MemoryDocuments(), thread="t")
    assert (short.claims[0].id, len(short.claims)) == ("C599", MAX_ITEMS["claims"])
    assert short.left_out == {"claims": 100, "passages": 8 * MAX_ITEMS["claims"]}


# States that hold what they cannot -------------------------------------------------------------------


@pytest.mark.requirement("C-15")
async def test_what_cannot_be_read_is_left_out_and_counted() -> None:
    issue = {"category": "accuracy", "severity": "minor", "location": "Size", "description": "It is a pond."}
    values = {
        "subject": 5,
        "status": "odd",
        "gate": {"clarity": 1},
        "planner_answers": {"scope": 7, "use": "A talk"},
        "messages": [{"role": "robot", "content": 3}, {"role": "user", "content": "Lakes?"}],
        "issues": [{"severity": "minor"}, issue],
    }

    found = await build_view(values, MemoryDocuments(), thread="t")

    assert (found.subject, found.status, found.user_inputs.gate) == (None, "pending", None)
    assert found.user_inputs.planner_answers == {"use": "A talk"}
    assert [turn.content for turn in found.messages] == ["Lakes?"]
    assert len(found.issues) == 1
    assert found.left_out == {f"unreadable in {name}": 1 for name in values}


ODD: tuple[Any, ...] = (None, 5, "x", [], {}, [5], {"a": 5}, {5: "a"}, [[]], float("nan"))


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a state, of a list only to its first item."""
    if way:
        yield way
    for key, inner in value.items() if isinstance(value, dict) else list(enumerate(value))[:1]:
        yield from places(inner, (*way, key)) if isinstance(inner, dict | list) else [(*way, key)]


def spoilt(values: dict[str, Any], way: tuple[Any, ...], odd: Any) -> dict[str, Any]:
    copy = deepcopy(values)
    inner: Any = copy
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = odd
    return copy


@pytest.mark.slow
@pytest.mark.requirement("C-15")
async def test_a_state_with_anything_odd_in_it_can_be_looked_at(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    values = await here.engine.state((await here.ask(QUESTION)).run.thread)
    whole = await build_view(values, here.documents, thread="t")
    deep = [way for way in places(values) if len(way) > 1 and way[0] not in ("report", "critique", "analysis")]
    chosen = [(way, odd) for way in random.Random(15).sample(deep, min(150, len(deep))) for odd in ODD]

    for way, odd in [*(((name,), odd) for name in values for odd in ODD), *random.Random(16).sample(chosen, 400)]:
        found = await build_view(spoilt(values, way, odd), here.documents, thread="t")

        assert StateView.model_validate_json(found.model_dump_json()) == found, (way, odd)
        assert found.user_inputs.goal == whole.user_inputs.goal or way == ("original_query",)
        assert found.plan == whole.plan or way[0] == "plan", (way, odd)
