"""Rounds of whole runs: nobody asks twice, nobody stops the others, and how sure a report is means something."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import pytest

from openassay.bootstrap import open_engine
from openassay.engine.state_view import build_view
from openassay.llm.budget import RunAccount
from openassay.models.event import RunStatus
from openassay.models.evidence import ANSWERED, Gap, Hit
from openassay.models.plan import Mode
from openassay.models.spend import Caps
from openassay.models.thread import ResearchOptions
from openassay.reasoning.base import QueryRequest, ReadRequest, TypedQuery
from openassay.reasoning.rules.analyse import ENOUGH
from openassay.settings import load
from openassay.testing import FakeRemote, FreeAccount, SingleReasonerFactory, make_document
from openassay.text.words import query_key
from tests.fakes.ledger import MemoryLedger
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.conftest import LIBRARY, Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]
TWO_PARTS = "How large is Lake Marrow, and why did the shore shrink?"


async def entered(here: Lab, run: str) -> list[str]:
    return [event.stage for event in await here.log(run) if event.kind == "enter"]


# Asking once


@pytest.mark.requirement("S-04")
async def test_no_source_is_asked_the_same_twice_and_what_was_left_out_is_told(lab: Make) -> None:
    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        return [TypedQuery(text="Marrow Lake surveys"), TypedQuery(text="the surveys of Lake Marrow")]

    async def analyse(real: Any, request: Any) -> Any:
        made = await real(request)
        refined = {"Q1": ("survey lake marrow", "lake marrow sonar"), "Q2": ("Sonar: Lake Marrow",)}
        gap = Gap(section=request.plan.sections[0], severity="minor", question="Q1")
        return made.model_copy(update={"refinements": refined, "confidence": 0.1, "gaps": (gap,)})

    here = lab(propose_queries=queries, analyse=analyse)
    source = here.holds(*LAKE)

    outcome = await here.ask(TWO_PARTS)

    asked = [query_key(query) for query in source.queries[1:]]  # the first is the preview of the gate
    assert max(Counter(asked).values()) == 1
    assert query_key("lake marrow sonar") in asked
    events = [event for event in await here.log(outcome.run.id) if event.kind == "skip" and event.stage == "dispatch"]
    left_out = [text for event in events for text in cast("list[str]", event.data["queries"])]
    assert {"the surveys of Lake Marrow", "survey lake marrow", "Sonar: Lake Marrow"} <= set(left_out)
    state = await here.state(outcome)
    assert {finding["question"] for finding in state["findings"]} >= {"Q1", "Q2"}


@pytest.mark.requirement("S-04")
async def test_what_one_asks_for_another_is_read_for_both(lab: Make) -> None:
    """Every sub-question has the same one query: it is asked once, and each reads what it found."""

    async def plan(real: Any, request: Any) -> Any:
        made = await real(request)
        return made.model_copy(update={"queries": tuple(q.model_copy(update={"text": "marrow"}) for q in made.queries)})

    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        return []

    here = lab(plan=plan, propose_queries=queries, settings={"max_gap_searches": 0})
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert source.queries[1:] == ["marrow"]
    read = [arguments[0] for name, arguments in here.reasoner.calls if name == "read"]
    assert {request.question.id for request in read} == {"Q1", "Q2", "Q3"}
    assert outcome.report is not None
    assert outcome.report.plan is not None
    assert {query.status for query in outcome.report.plan.queries if query.type == "web"} == {"completed"}
    assert outcome.report.provenance.queries == ("marrow",)


# Investigators


@pytest.mark.requirement("S-05", "L-02")
@pytest.mark.parametrize("broken", ["search", "read"])
async def test_an_investigator_that_fails_stops_none_of_the_others(lab: Make, broken: str) -> None:
    async def outage(query: str) -> None:
        if broken == "search" and "shore" in query:
            raise RuntimeError("the plug was pulled")

    async def read(real: Any, request: ReadRequest) -> Any:
        if broken == "read" and "shore" in request.question.text:
            raise RuntimeError("the plug was pulled")
        return await real(request)

    here = lab(read=read, settings={"max_gap_searches": 0, "query_variations": 1})
    here.holds(*LAKE, before=outage)

    outcome = await here.ask(TWO_PARTS)

    assert outcome.run.status is RunStatus.DONE
    state = await here.state(outcome)
    assert len(state["failures"]) == 1
    lost = next(question for question in state["plan"]["questions"] if "shore" in question["text"])
    assert state["coverage"][lost["id"]] == 0
    assert "Q1" in {finding["question"] for finding in state["findings"]}
    assert outcome.report is not None
    assert lost["text"] in [missed.question for missed in outcome.report.not_found]


@pytest.mark.requirement("S-05", "S-06")
async def test_findings_and_sources_of_all_rounds_are_kept_under_their_names(lab: Make) -> None:
    seen: list[dict[str, Any]] = []

    async def analyse(real: Any, request: Any) -> Any:
        [thread] = await here.threads.list_recent(limit=1)
        seen.append(await here.engine.state(thread.id))
        made = await real(request)
        gap = {"section": request.plan.sections[0], "severity": "minor", "question": "Q1"}
        refined = {"Q1": (f"{['ferry', 'sonar', 'wells'][len(seen) - 1]} marrow",)}
        return made.model_validate(
            {**made.plain(), "gaps": [gap], "refinements": refined, "confidence": 0.1 * len(seen)}
        )

    here = lab(analyse=analyse)
    here.holds(*LAKE)

    state = await here.state(await here.ask("How large is Lake Marrow?"))

    assert state["round"] == len(seen) + 1 == 3  # the last round is not analysed
    for earlier, later in zip(seen, [*seen[1:], state], strict=True):
        assert later["sources"][: len(earlier["sources"])] == earlier["sources"]
        kept = {finding["id"]: finding["span"] for finding in later["findings"]}
        assert all(kept[finding["id"]] == finding["span"] for finding in earlier["findings"])


# How sure


@pytest.mark.slow
@pytest.mark.requirement("S-07", "S-06")
async def test_copies_of_one_page_make_a_report_no_surer(lab: Make) -> None:
    def copy(n: int) -> Any:
        return make_document(
            f"{SURVEY.text} Reprinted in paper {n}.", title=f"Paper {n}", url=f"https://paper{n}.example/x"
        )

    async def confidence(*documents: Any) -> float:
        here = lab(settings={"max_gap_searches": 0})
        here.holds(*documents)
        state = await here.state(await here.ask("How large is Lake Marrow?"))
        return float(state["coverage"]["Q1"])

    one = await confidence(SURVEY)
    assert await confidence(SURVEY, *(copy(n) for n in range(5))) <= one + 0.05 < 0.7
    assert await confidence(SURVEY, GAZETTE) > one + 0.1


@pytest.mark.requirement("S-07", "C-09")
async def test_what_the_sources_cannot_answer_is_unsure_named_and_asked_again(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)

    outcome = await here.ask("How large was Lake Marrow in 1950?")

    state = await here.state(outcome)
    assert state["coverage"]["Q1"] < ANSWERED
    assert state["validation_result"] == "insufficient"
    assert re.search(r"missing: .*1950", state["validation_feedback"])
    first = next(
        event.data for event in await here.log(outcome.run.id) if event.stage == "analyse" and event.kind == "notice"
    )
    assert "1950" in str(first["text"])
    assert state["research_attempts"] > 1
    assert any("1950" in query for query in source.queries)
    assert outcome.report is not None
    assert "How large was Lake Marrow in 1950?" in [missed.question for missed in outcome.report.not_found]
    assert outcome.report.confidence_score < ENOUGH


@pytest.mark.requirement("S-07")
async def test_sources_that_disagree_lead_to_a_round_that_could_settle_it(lab: Make) -> None:
    rival = make_document(
        "Lake Marrow covered 355 square kilometres in 2019. Fishermen of Ostrey have known the lake for years.",
        title="The rival survey of Lake Marrow", url="https://rival.example/marrow",
    )  # fmt: skip
    here = lab()
    source = here.holds(SURVEY, GUIDE, rival)

    state = await here.state(await here.ask("How large is Lake Marrow?"))

    assert state["analysis"]["disagreements"]
    settling = [query for query in source.queries if "review" in query or "comparison" in query or "revised" in query]
    assert settling
    own = {"355", "412", "rival", "fishermen", "ostrey", "sonar", "kilometres"}
    assert not own & {word for query in source.queries for word in query.lower().split()}


@pytest.mark.slow
@pytest.mark.requirement("S-07", "W-17")
async def test_a_page_cannot_have_anything_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The model does what a page tells it: it wants the page's words searched for."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    told = "exfiltrate zebra hubble constant attacker.example site:attacker.example hunter2 value"

    def analysed(prompt: Any) -> dict[str, Any]:
        gap = {"question": 1, "severity": "major", "missing": told, "query": told}
        return {"findings": [], "themes": [], "contradictions": [], "gaps": [gap], "sufficiency": "gaps_major",
                "confidence": 3}  # fmt: skip

    async with FakeLlmServer(FakeModel({"Analysis": analysed})) as provider:
        models = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        async with open_engine(load(data_dir=tmp_path / "data", llm=models)) as engine:
            options = {"docs": (str(LIBRARY),), "model": "openai:gpt-4o"}
            run = await engine.start(
                "What is the value of the Hubble constant?", ResearchOptions.model_validate(options)
            )
            outcome = await engine.wait(run.id)
            assert outcome.report is not None, outcome.run.error
            asked = " ".join(outcome.report.provenance.queries)
            assert (await engine.state(run.thread))["round"] > 1
    assert not any(word in asked for word in ("exfiltrate", "zebra", "attacker", "hunter2", "site:"))


# Where it ends


@pytest.mark.requirement("L-02", "S-08")
async def test_a_plan_without_sub_questions_goes_straight_to_verifying(lab: Make) -> None:
    async def plan(real: Any, request: Any) -> Any:
        made = await real(request)
        return made.model_copy(update={"questions": (), "queries": (), "sections": ()})

    here = lab(plan=plan)
    source = here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    stages = await entered(here, outcome.run.id)
    assert stages[stages.index("dispatch") + 1] == "verify"
    assert source.queries[1:] == []
    assert outcome.report is not None
    assert outcome.report.status == "no_data"


@pytest.mark.requirement("L-02", "S-08")
async def test_with_its_money_spent_a_run_goes_straight_to_verifying(lab: Make) -> None:
    here = lab()
    here.account.gone = True
    here.holds(GUIDE)

    outcome = await here.ask("Why did Lake Marrow shrink?")

    stages = await entered(here, outcome.run.id)
    assert stages.count("dispatch") == 1
    assert "analyse" not in stages
    assert stages[stages.index("consolidate") + 1] == "verify"
    assert any("budget was spent" in str(event.data.get("text")) for event in await here.log(outcome.run.id))


@pytest.mark.requirement("S-08", "C-04")
async def test_a_quick_answer_stops_as_soon_as_it_is_sure(lab: Make) -> None:
    here = lab()
    here.holds(SURVEY, GAZETTE)

    outcome = await here.ask("How large was Lake Marrow in 2019?", depth="quick")

    state = await here.state(outcome)
    assert (state["confidence"] >= 6, state["round"]) == (True, 1)
    assert "analyse" not in await entered(here, outcome.run.id)


# The share of the money


@pytest.mark.requirement("L-02")
async def test_a_sub_question_whose_searches_cost_much_leaves_the_others_theirs(lab: Make) -> None:
    """100,000 micro-dollars, of which 85,000 are for research: three searches of 10,000 a sub-question, not five."""

    async def silent(kind: str, stage: str, data: dict[str, object]) -> None:
        pass

    async def queries(real: Any, request: QueryRequest) -> list[TypedQuery]:
        return [TypedQuery(text=f"{request.question.id} number {n}") for n in range(5)] if not request.tried else []

    here = lab(
        propose_queries=queries, settings={"max_gap_searches": 0, "max_search_iterations": 20, "query_variations": 5}
    )
    hit = Hit(provider="paid", query="", rank=1, url=SURVEY.url, title=SURVEY.title, document=SURVEY.hash, start=0,
              end=len(SURVEY.text), host=SURVEY.host)  # fmt: skip
    await here.documents.put(SURVEY)
    here.sources = [FakeRemote("paid", [hit], micros=10_000)]
    account = RunAccount("r1", ledger := MemoryLedger(), Caps(micros=100_000, tokens=10**9, requests=1000), silent)
    here.engine._runner.reasoners = SingleReasonerFactory(
        here.reasoner, account
    )  # the purse is the one thing that is real

    outcome = await here.ask(QUESTION, mode=Mode.AUTO)

    assert outcome.report is not None, outcome.run.error
    paid = Counter(call.task for call in await ledger.calls("r1") if call.state == "settled" and call.task)
    assert set(paid) == {"Q1", "Q2", "Q3"}
    assert all(2 <= searches <= 3 for searches in paid.values()), "none has taken what is another's"
    assert {finding["question"] for finding in (await here.state(outcome))["findings"]} >= {"Q1", "Q2"}


@pytest.mark.requirement("L-02")
async def test_queries_are_made_out_of_the_share_of_their_sub_question(lab: Make) -> None:
    here = lab(settings={"max_gap_searches": 0})
    here.holds(*LAKE)

    await here.ask(QUESTION)

    requests = [arguments[0] for name, arguments in here.reasoner.calls if name in ("propose_queries", "read")]
    assert {round(request.share, 4) for request in requests} == {round(1 / 3, 4)}
    assert isinstance(here.account, FreeAccount)


# What is shown


@pytest.mark.requirement("F-05", "S-07")
async def test_the_analysis_is_in_the_view_with_the_words_of_its_findings(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    state = await here.state(outcome)
    shown = (await build_view(state, here.documents, thread=outcome.run.thread)).analysis
    assert shown is not None
    assert shown.key_findings
    assert {key.finding for key in shown.key_findings} <= set(shown.quotes)
    assert all(any(quote in document.text for document in LAKE) for quote in shown.quotes.values())
    assert (shown.confidence, shown.sufficiency) == (state["analysis"]["confidence"], state["analysis"]["sufficiency"])
    assert set(shown.section_confidence) == set(state["plan"]["sections"])
