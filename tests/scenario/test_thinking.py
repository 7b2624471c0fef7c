"""What a run makes of a reasoner that costs money and time: few calls, side by side, and an end when it is spent."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import pytest

from openassay.engine.engine import RunOutcome
from openassay.models.event import Event, RunStatus
from openassay.models.evidence import Claim, Judgement, Verdict
from openassay.models.plan import Plan
from openassay.models.spend import Spend
from openassay.reasoning.base import (
    ClaimExtraction,
    Conflict,
    Draft,
    DraftSection,
    DraftSentence,
    JudgementBatch,
    PlanRequest,
    QueryRequest,
    SourceRating,
    TypedQuery,
    WriteRequest,
)
from openassay.testing import FakeSource, make_document
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]

UNANSWERED = "How large is Lake Marrow, and who won the chess olympiad of 2031?"


def methods(here: Lab) -> list[str]:
    return [name for name, _ in here.reasoner.calls]


async def entered(here: Lab, outcome: RunOutcome) -> list[str]:
    return [event.stage for event in await here.log(outcome.run.id) if event.kind == "enter"]


async def said(here: Lab, outcome: RunOutcome) -> list[str]:
    return [str(event.data.get("text")) for event in await here.log(outcome.run.id) if event.kind == "notice"]


# The budget


@pytest.mark.requirement("L-02", "X-06")
@pytest.mark.parametrize("when", ["read", "analyse"])
async def test_with_its_budget_spent_a_run_verifies_what_it_has_and_names_what_it_left_out(
    lab: Make, when: str
) -> None:
    async def spends_the_last(real: Any, request: Any) -> Any:
        here.account.gone = True
        return await real(request)

    here = lab(**{when: spends_the_last})
    here.holds(*LAKE)

    outcome = await here.ask(UNANSWERED)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert outcome.report.metadata.rounds == 1
    [note] = [note for note in outcome.report.notices if "budget" in note]
    assert note.startswith("The budget was spent after round 1: ")
    assert "not searched again" in note
    assert "Who won the chess olympiad of 2031?" in note
    assert note in await said(here, outcome)
    assert methods(here).count("analyse") == (when == "analyse")
    assert (await entered(here, outcome)).count("search") == 3


@pytest.mark.requirement("L-02")
async def test_the_first_round_is_searched_with_no_money_at_all(lab: Make) -> None:
    here = lab()
    here.account.gone = True
    here.holds(*LAKE)

    outcome = await here.ask("How large is Lake Marrow?", depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert not any("budget" in note for note in outcome.report.notices)


@pytest.mark.requirement("L-02")
async def test_a_plan_without_sub_questions_goes_straight_to_an_honest_end(lab: Make) -> None:
    async def plan(real: Any, request: PlanRequest) -> Plan:
        made: Plan = await real(request)
        return Plan.model_validate({**made.plain(), "questions": [], "queries": []})

    here = lab(plan=plan)
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.run.status is RunStatus.DONE, outcome.run.error
    assert outcome.report is not None
    assert outcome.report.status == "no_data"
    assert len(source.queries) == 1  # the gate's preview
    assert (await entered(here, outcome))[-3:] == ["dispatch", "verify", "fallback"]
    assert not {"judge", "write"} & set(methods(here))


@pytest.mark.requirement("L-02")
async def test_each_sub_question_has_its_share_and_reads_with_titles(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)

    await here.ask(QUESTION)

    requests = [request for name, [request] in _with_one_argument(here) if name == "read"]
    assert {round(request.share, 4) for request in requests} == {round(1 / 3, 4)}
    titles = {document.hash: document.title for document in LAKE}
    for request in requests:
        assert request.titles == {passage.document: titles[passage.document] for passage in request.passages}


def _with_one_argument(here: Lab) -> list[tuple[str, tuple[Any, ...]]]:
    return [(name, arguments) for name, arguments in here.reasoner.calls if len(arguments) == 1]


# Searching in other words


def speechless(plan: Plan) -> Plan:
    """The plan with queries that find nothing."""
    return plan.model_copy(
        update={"queries": tuple(q.model_copy(update={"text": f"zzz {q.question}"}) for q in plan.queries)}
    )


async def planless(real: Any, request: PlanRequest) -> Plan:
    return speechless(await real(request))


@pytest.mark.requirement("F-04")
async def test_few_results_are_asked_for_in_other_words(lab: Make) -> None:
    requests: list[QueryRequest] = []

    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        if not request.tried:
            return []
        requests.append(request)
        return [TypedQuery(text=request.tried[0].query.text), TypedQuery(text="area of Lake Marrow")]

    here = lab(propose_queries=queries, plan=planless, settings={"max_gap_searches": 0})
    source = here.holds(*LAKE)

    outcome = await here.ask("How large is Lake Marrow?", depth="quick")

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert source.queries[1:] == ["zzz Q1", "area of Lake Marrow"]
    assert set(outcome.report.provenance.queries) == set(source.queries[1:])
    [request] = requests  # then there was enough
    assert [(item.query.text, item.hits) for item in request.tried] == [("zzz Q1", 0)]
    [event] = [event for event in await here.log(outcome.run.id) if "queries" in event.data and event.kind == "notice"]
    assert event.data["question"] == "Q1"
    assert event.data["queries"] == ["area of Lake Marrow"]
    assert "asked in other words: area of Lake Marrow" in str(event.data["text"])
    [result] = (await here.state(outcome))["searched"].values()
    assert [query["text"] for query in result["queries"]] == ["zzz Q1", "area of Lake Marrow"]


@pytest.mark.requirement("F-04")
async def test_no_source_is_asked_the_same_twice_even_as_another_kind_of_query(lab: Make) -> None:
    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        return [TypedQuery(text=item.query.text, type="academic") for item in request.tried]

    here = lab(propose_queries=queries, plan=planless, settings={"max_gap_searches": 0})
    source = here.holds(*LAKE)
    source.types = ("web", "academic")  # type: ignore[attr-defined]

    await here.ask("How large is Lake Marrow?", depth="quick")

    assert source.queries[1:] == ["zzz Q1"]


@pytest.mark.requirement("F-04", "F-08")
@pytest.mark.parametrize(("limit", "asked", "turns"), [(1, 1, 0), (2, 2, 1), (5, 5, 2), (20, 7, 2)])
async def test_other_words_are_bounded_in_turns_and_queries(lab: Make, limit: int, asked: int, turns: int) -> None:
    made: list[QueryRequest] = []

    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        if not request.tried:
            return []
        made.append(request)
        return [TypedQuery(text=f"zzz turn{len(made)} {n}") for n in range(3)]

    here = lab(propose_queries=queries, plan=planless, settings={"max_gap_searches": 0, "max_search_iterations": limit})
    source = here.holds(*LAKE)

    await here.ask("How large is Lake Marrow?", depth="quick")

    assert len(source.queries[1:]) == len(set(source.queries[1:])) == asked
    assert len(made) == turns
    assert all(request.count <= limit - len(request.tried) for request in made)


@pytest.mark.requirement("F-04")
async def test_another_kind_of_source_is_asked_only_what_is_meant_for_it(lab: Make) -> None:
    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        assert request.types == ("web", "academic")
        if not request.tried:
            return []
        return [TypedQuery(text="marrow lake treatise", type="academic"), TypedQuery(text="marrow gossip", type="news")]

    here = lab(propose_queries=queries, plan=planless, settings={"max_gap_searches": 0})
    web = FakeSource(here.documents, [], name="web")
    scholars = FakeSource(here.documents, LAKE, name="scholars")
    scholars.types = ("academic",)  # type: ignore[attr-defined]  # what a source says of itself, where it does
    here.sources = [web, scholars]

    report = await here.report("How large is Lake Marrow?", depth="quick")

    assert report.status == "complete"
    assert web.queries[1:] == ["zzz Q1"]
    assert scholars.queries[1:] == ["marrow lake treatise"]


@pytest.mark.requirement("F-04", "S-04")
async def test_what_a_search_asked_by_itself_is_not_asked_in_a_later_round(lab: Make) -> None:
    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        return [TypedQuery(text="zzz ferry")] if request.tried else []

    async def analyse(real: Any, request: Any) -> Any:
        analysis = await real(request)
        asked.append(request.asked)
        refinements = {"Q1": ["zzz ferry", "zzz train"]}
        return analysis.model_validate({**analysis.plain(), "refinements": refinements})

    asked: list[tuple[str, ...]] = []
    here = lab(propose_queries=queries, plan=planless, analyse=analyse, settings={"max_gap_searches": 1})
    source = here.holds(*LAKE)

    await here.ask("How large is Lake Marrow?", depth="quick")

    assert source.queries[1:] == ["zzz Q1", "zzz ferry", "zzz train"]
    assert set(asked[0]) == {"zzz Q1", "zzz ferry"}


@pytest.mark.requirement("F-04")
async def test_a_model_keeps_queries_in_hand_for_other_words(lab: Make) -> None:
    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        mark = "tried" if request.tried else "first"
        return [TypedQuery(text=f"zzz {mark} {n}") for n in range(request.count)]

    here = lab(propose_queries=queries, plan=planless, settings={"max_gap_searches": 0})
    here.reasoner.name = "some:model"
    source = here.holds(*LAKE)

    await here.ask("How large is Lake Marrow?", depth="quick")

    assert [query.split()[1] for query in source.queries[1:]] == ["Q1", "first", "first", "tried", "tried"]


# Verifying


@pytest.mark.requirement("S-09")
async def test_verifying_takes_two_calls_and_writing_one_at_most(lab: Make) -> None:
    def retold(claim: Claim) -> DraftSentence:
        return DraftSentence(text=f"It is certain: {claim.text}", claims=(claim.id,))

    async def write(real: Any, request: WriteRequest) -> Draft:
        draft: Draft = await real(request)
        usable = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
        own = DraftSection(title="Also", sentences=tuple(map(retold, usable)))
        return draft.model_copy(update={"sections": (*draft.sections, own, own)})

    here = lab(write=write)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    calls = [name for name in methods(here) if name in ("extract_claims", "judge", "write", "critique")]
    # The embedded verifier is asked for another wording only where the first is not borne out.
    assert [one for one, _ in groupby(calls)] == ["extract_claims", "judge", "write", "judge", "critique"]
    judged = [arguments[0] for name, arguments in here.reasoner.calls if name == "judge"][-1]
    told = [claim for claim in report.claims if claim.verdict == "supported"]
    assert len(judged) == len({text for text, _ in judged}) >= len(told)
    assert all(text.startswith("It is certain") for text, _ in judged)


@pytest.mark.requirement("S-09", "X-01")
async def test_of_sentences_judged_together_each_stands_or_falls_alone(lab: Make) -> None:
    def judge(real: Any, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        bad = Judgement(verdict=Verdict.NOT_FOUND, score=0.0)
        good = Judgement(verdict=Verdict.SUPPORTED, score=0.9)
        return JudgementBatch(judgements=tuple(bad if "rumoured" in text else good for text, _ in statements))

    async def write(real: Any, request: WriteRequest) -> Draft:
        draft: Draft = await real(request)
        area = next(claim for claim in request.claims if "412" in claim.text)
        texts = (f"It is rumoured: {area.text}", f"It is certain: {area.text}", f"In all, 7 agree: {area.text}")
        own = DraftSection(title="Also", sentences=tuple(DraftSentence(text=t, claims=(area.id,)) for t in texts))
        return draft.model_copy(update={"sections": (*draft.sections, own)})

    here = lab(write=write, judge=judge)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    area = next(claim.text for claim in report.claims if "412" in claim.text)
    [also] = [section for section in report.sections if section.title == "Also"]
    assert [sentence.text for sentence in also.sentences] == [area, f"It is certain: {area}"], (
        "what failed twice is told once"
    )
    assert report.coverage.total - report.coverage.checked == 2


@pytest.mark.slow
@pytest.mark.requirement("S-09")
async def test_an_opinion_lowers_credibility_and_never_raises_it(lab: Make) -> None:
    async def claims(real: Any, *args: Any) -> ClaimExtraction:
        own: ClaimExtraction = await real(*args)
        opinions = {
            SURVEY.hash: SourceRating(score=0.1, reason="sells sonars"),
            GAZETTE.hash: SourceRating(score=1.0, reason="a fine paper"),
            "no such document": SourceRating(score=0.0),
        }
        return own.model_copy(update={"credibility": opinions})

    plain, here = lab(), lab(extract_claims=claims)
    for one in (plain, here):
        one.holds(*LAKE)

    before = {card.document: card for card in (await plain.report(QUESTION)).sources}
    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    after = {card.document: card for card in outcome.report.sources}
    assert after[SURVEY.hash].credibility == 0.1 < before[SURVEY.hash].credibility
    assert any("sells sonars" in reason for reason in after[SURVEY.hash].credibility_reasons)
    assert after[GAZETTE.hash] == before[GAZETTE.hash]
    assert (await here.state(outcome))["credibility"] == {SURVEY.hash: {"score": 0.1, "reason": "sells sonars"}}
    lone = next(claim for claim in outcome.report.claims if "drought" in claim.text)
    trusted = next(claim for claim in (await plain.report(QUESTION)).claims if "drought" in claim.text)
    assert lone.confidence < trusted.confidence


@pytest.mark.requirement("S-09")
async def test_a_conflict_only_a_judge_can_see_is_shown_with_both_sides(lab: Make) -> None:
    drought, leak = "long drought", "did not detect any leak"

    async def judge(real: Any, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        judged: JudgementBatch = await real(statements)
        texts = [text for text, _ in statements]
        first = next((text for text in texts if drought in text), "")
        second = next((text for text in texts if leak in text), "")
        conflicts = (Conflict(first=first, second=second, about="the cause"), Conflict(first=first, second="a dream"))
        return judged.model_copy(update={"conflicts": conflicts})

    cause = "Lake Marrow shrank because a long drought dried up the river Tamsel."
    bed = "The survey office did not detect any leak in the bed of Lake Marrow."
    here = lab(judge=judge)
    here.holds(
        make_document(cause, title="Why Lake Marrow shrank", url="https://survey.example/marrow"),
        make_document(bed, title="The bed of Lake Marrow", url="https://bed.example/marrow"),
    )

    report = await here.report("Why did Lake Marrow shrink, and did the survey office detect a leak?")

    claims = {claim.id: claim for claim in report.claims}
    disputed = next(claim for claim in claims.values() if drought in claim.text)
    assert [leak in claims[name].text for name in disputed.disputed_by] == [True]
    [section] = [section for section in report.sections if section.role == "disagreements"]
    assert {disputed.id, *disputed.disputed_by} <= {name for sentence in section.sentences for name in sentence.claims}


@pytest.mark.slow
async def test_judgements_that_are_not_one_a_statement_fail_the_run(lab: Make) -> None:
    here = lab(judge=lambda real, statements: JudgementBatch(judgements=()))
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.run.status is RunStatus.FAILED
    assert "0 judgements were given" in (outcome.run.error or "")


# Side by side


@pytest.mark.requirement("S-08")
async def test_the_last_round_is_not_analysed_since_nobody_is_sent_out_again(lab: Make) -> None:
    here = lab(settings={"max_gap_searches": 0})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None, outcome.run.error
    assert outcome.report.status == "complete"
    assert "analyse" not in [name for name, _ in here.reasoner.calls]
    assert "analyse" not in await entered(here, outcome)
    state = await here.state(outcome)
    assert (state["analysis"], state["validation_result"]) == (None, "sufficient")
    assert state["claims"]


@pytest.mark.requirement("C-04")
async def test_a_quick_answer_that_is_sure_is_not_analysed_even_in_its_last_round(lab: Make) -> None:
    here = lab(settings={"max_gap_searches": 0})

    outcome = await here.ask("What's happening with Apple?", depth="quick")

    assert "analyse" not in await entered(here, outcome)


async def test_variations_of_all_sub_questions_are_thought_of_at_once(lab: Make) -> None:
    met = asyncio.Barrier(3)

    async def queries(real: Any, request: QueryRequest) -> Any:
        async with asyncio.timeout(10):
            await met.wait()
        return await real(request)

    here = lab(propose_queries=queries, settings={"max_gap_searches": 0})
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None, outcome.run.error


# What the planner is told


@pytest.mark.requirement("S-02", "F-02")
async def test_the_planner_sees_clarifications_context_and_fields(lab: Make) -> None:
    here = lab()
    asked = await here.ask(
        "Tell me about the company", depth="quick", interactive=True, context="For an investor.", domains=("finance",)
    )
    answered = await here.answer(asked, "Tesla")

    [[request]] = [arguments for name, arguments in here.reasoner.calls if name == "plan"]
    assert request.context == (
        "Asked: Tell me about the company\nAsked back: Which company do you mean? Answer: Tesla\nFor an investor."
    )
    assert request.domains == ("finance",)
    assert (await here.state(answered))["enriched_context"] == request.context


@pytest.mark.requirement("S-02")
async def test_the_planner_sees_what_was_said_before_and_nothing_of_it_in_another_thread(lab: Make) -> None:
    here = lab(condense=lambda real, turns, summary: "They greeted each other at length.")
    outcome = await here.ask("hello")
    for _ in range(5):
        outcome = await here.ask("hello", thread=outcome.run.thread)
    await here.ask("What's happening with Apple?", depth="quick", thread=outcome.run.thread)
    await here.ask("What's happening with Apple?", depth="quick")

    old, new = [arguments[0].context for name, arguments in here.reasoner.calls if name == "plan"]
    assert "The conversation so far: They greeted each other at length." in old
    assert new == "Asked: What's happening with Apple?"


# What it cost


@pytest.mark.requirement("X-06")
@pytest.mark.parametrize(
    ("spend", "spent"), [(Spend(), False), (Spend(usd=0.01, tokens=900, requests=1), True), (Spend(tokens=9), True)]
)
async def test_a_cancelled_question_says_nothing_was_spent_only_if_so(lab: Make, spend: Spend, spent: bool) -> None:
    here = lab()
    here.account.spend = spend

    report = await here.report("never mind", interactive=True)

    text = report.sections[0].sentences[0].text
    assert "nothing was researched" in text
    assert ("nothing was spent" in text) is not spent
    assert report.spend == spend


@pytest.mark.requirement("X-06", "C-15")
async def test_the_report_says_what_was_spent_who_thought_and_what_is_not_certain(lab: Make) -> None:
    async def write(real: Any, request: WriteRequest) -> Draft:
        [thread] = await here.threads.list_recent(limit=1)
        [run] = await here.threads.runs(thread.id)
        for by in ("some:model", "some:model", "embedded"):
            event = Event(run=run.id, time=datetime.now(UTC), kind="think", stage="write", data={"by": by})
            await here.events.append(event)
        draft: Draft = await real(request)
        return draft

    here = lab(write=write)
    here.account.spend = Spend(usd=0.42, tokens=9000, requests=3, unconfirmed_usd=0.02)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert report.spend.usd == 0.42
    assert report.metadata.reasoning == {"some:model": 2, "embedded": 1}
    assert any(note.startswith("1 of 3 reasoning steps were done by the embedded reasoner") for note in report.notices)
    assert any(note.startswith("$0.0200 of the spend could not be confirmed") for note in report.notices)


async def test_a_run_without_a_model_says_nothing_of_steps_or_money(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert report.notices == ()
    assert report.metadata.reasoning == {}
    assert report.spend == Spend()


@pytest.mark.requirement("X-06")
@pytest.mark.parametrize(
    ("usd", "cap", "waits"), [(0.9, None, False), (1.1, None, True), (0.1, 0.1, True), (0.1, 5, False)]
)
async def test_what_would_take_half_the_cap_is_asked_about_first(
    lab: Make, usd: float, cap: float | None, waits: bool
) -> None:
    here = lab()
    here.reasoners.usd = usd
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION, interactive=True, usd=cap)

    assert (await here.state(outcome))["gate"]["estimated_usd"] == usd
    assert (outcome.run.status is RunStatus.WAITING) is waits
