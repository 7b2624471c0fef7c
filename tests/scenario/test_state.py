"""What a thread remembers: the fields of C-02, what a new question resets, and that pages stay out of it."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks import bench_state as bench
from openassay.bootstrap import open_engine
from openassay.errors import IntegrityError
from openassay.graph import build_graph
from openassay.models.evidence import Document
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions, Run
from openassay.reasoning.base import AnalysisRequest, ReadRequest
from openassay.settings import load
from openassay.state import append_messages, question_input
from openassay.storage.database import TableSpec
from openassay.storage.sealed_rows import Rows
from openassay.testing import FakeSource, make_document
from tests.fakes.web import LargeRemote
from tests.scenario.checking import check_report, stored_texts
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]

CONVERSATION = {
    "messages", "conversation_summary", "original_query", "clarity_status", "clarification_attempts",
    "clarification_question", "subject", "findings", "confidence", "research_attempts", "validation_result",
    "validation_feedback", "final_summary", "current_agent",
}  # fmt: skip


@pytest.mark.requirement("C-02")
async def test_a_finished_question_leaves_every_field_of_the_conversation_with_its_meaning(lab: Make) -> None:
    here = lab()

    outcome = await here.ask("What's happening with Apple?", depth="quick")

    assert outcome.report is not None
    state = await here.state(outcome)
    assert set(state) >= CONVERSATION
    assert state["original_query"] == "What's happening with Apple?"
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"]
    assert state["messages"][0]["content"] == state["original_query"]
    assert state["messages"][1]["content"] == state["final_summary"]
    assert outcome.report.sections[0].sentences[0].text in state["final_summary"]
    assert (state["clarity_status"], state["clarification_attempts"], state["clarification_question"]) == (
        "clear", 0, None,
    )  # fmt: skip
    assert state["subject"] == "Apple"
    assert {finding["question"] for finding in state["findings"]} == {"Q1"}
    assert state["research_attempts"] == 1
    assert state["current_agent"] == "synthesis"


@pytest.mark.requirement("C-02")
@pytest.mark.parametrize(
    ("question", "depth", "result", "attempts"),
    [
        ("What's happening with Apple?", "quick", "pending", (1,)),  # sure enough: the validator is not asked
        ("What's happening with Zorblax Industries?", "quick", "insufficient", (2, 3)),
        ("What is happening with Apple?", "standard", "sufficient", (1,)),
    ],
)
async def test_the_validators_result_and_the_attempts_are_kept(
    lab: Make, question: str, depth: str, result: str, attempts: tuple[int, ...]
) -> None:
    here = lab()

    state = await here.state(await here.ask(question, depth=depth))

    assert state["validation_result"] == result
    assert state["research_attempts"] in attempts
    assert bool(state["validation_feedback"]) == (result == "insufficient")
    assert "Zorblax Industries" in state["validation_feedback"] or result != "insufficient"


@pytest.mark.requirement("C-02")
async def test_confidence_runs_from_0_to_10_with_what_was_found(lab: Make) -> None:
    here = lab()
    known = await here.state(await here.ask("What's happening with Apple?", depth="quick"))
    unknown = await here.state(await here.ask("What's happening with Zorblax Industries?", depth="quick"))
    here.holds(GUIDE)
    little = await here.state(await here.ask("How large is Lake Marrow?", depth="quick"))

    assert unknown["confidence"] == 0
    assert 0 < little["confidence"] < known["confidence"] <= 10
    for state in (known, little):
        assert state["confidence"] == pytest.approx(10 * sum(state["coverage"].values()) / len(state["coverage"]), 0.1)


@pytest.mark.requirement("C-02")
def test_messages_are_appended_and_a_question_starts_pending() -> None:
    one, two = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    run = Run(id="r1", thread="t", question="How large is it?", started=datetime(2026, 1, 1, tzinfo=UTC))
    fresh = question_input(run, {})

    assert append_messages(append_messages(None, [one]), [two]) == [one, two]
    assert append_messages([one, two], {"replace": [two]}) == [two]
    assert set(fresh) | {"conversation_summary", "subject"} >= CONVERSATION
    assert (fresh["clarity_status"], fresh["validation_result"], fresh["status"]) == ("pending",) * 3


# C-03

THREAD_FIELDS = {"messages", "conversation_summary", "subject"}


@pytest.mark.requirement("C-03")
async def test_a_new_question_resets_its_fields_and_keeps_those_of_the_thread(lab: Make) -> None:
    here = lab()
    first = await here.ask("What's happening with Apple?", depth="quick")
    before = await here.state(first)

    second = await here.ask("never mind", thread=first.run.thread, interactive=True)  # nothing is researched

    after = await here.state(second)
    told = {"report", "final_summary", "status", "current_agent", "understanding", "clarity_status"}
    fresh = question_input(second.run, {})
    expected = {name: value if value is not None else after[name] for name, value in fresh.items()}
    for name in set(fresh) - THREAD_FIELDS - told:
        assert after[name] == expected[name], name
    for name in ("searched", "read", "failures", "plan", "gate", "analysis", "draft", "critique"):
        assert not after[name], name
    assert before["findings"]
    assert before["searched"]
    assert after["subject"] == before["subject"] == "Apple"
    assert after["messages"][:2] == before["messages"]
    assert [message["content"] for message in after["messages"][2:]] == ["never mind", after["final_summary"]]


@pytest.mark.requirement("C-03")
async def test_evidence_of_the_question_before_does_not_reach_the_next_report(lab: Make) -> None:
    here = lab()
    first = await here.ask("What's happening with Apple?", depth="quick")

    second = await here.ask("What's happening with Tesla?", depth="quick", thread=first.run.thread)

    assert second.report is not None
    assert [card.id for card in second.report.sources] == ["S1", "S2", "S3"]
    assert all("Tesla" in card.title for card in second.report.sources)
    assert all("apple" not in query.lower() for query in second.report.provenance.queries)
    state = await here.state(second)
    assert state["subject"] == "Tesla"
    assert len(state["messages"]) == 4
    assert state["round"] == 1


@pytest.mark.requirement("C-03")
async def test_a_follow_up_inherits_the_subject(lab: Make) -> None:
    here = lab()
    first = await here.ask("What's happening with Apple?", depth="quick")

    second = await here.ask("What about their stock?", depth="quick", thread=first.run.thread)

    assert second.report is not None
    assert "Apple" in second.report.question
    assert any("AAPL" in s.text for section in second.report.sections for s in section.sentences)


@pytest.mark.requirement("C-03")
async def test_the_summary_of_a_long_conversation_stays(lab: Make) -> None:
    here = lab()
    outcome = await here.ask("What's happening with Apple?", depth="quick")
    for _ in range(5):
        outcome = await here.ask("hello", thread=outcome.run.thread)
    summary = (await here.state(outcome))["conversation_summary"]

    outcome = await here.ask("thank you", thread=outcome.run.thread)

    state = await here.state(outcome)
    assert "What's happening with Apple?" in summary
    assert state["conversation_summary"] == summary
    assert state["messages"][-2]["content"] == "thank you"
    assert state["subject"] == "Apple"


# S-06


@pytest.mark.requirement("S-06")
async def test_sources_and_evidence_are_numbered_once_each(lab: Make) -> None:
    here = lab()
    source = here.holds(*LAKE)

    state = await here.state(await here.ask(QUESTION))

    assert len(source.queries) > len(LAKE)  # the same pages were found again and again
    assert [card["id"] for card in state["sources"]] == ["S1", "S2", "S3"]
    assert {card["document"] for card in state["sources"]} == {document.hash for document in LAKE}
    ids = [finding["id"] for finding in state["findings"]]
    assert sorted(ids, key=lambda name: int(name[1:])) == [f"E{n}" for n in range(1, len(ids) + 1)]
    spans = [(f["question"], f["span"]["document"], f["span"]["start"]) for f in state["findings"]]
    assert len(spans) == len(set(spans)) > 3


@pytest.mark.requirement("S-06")
async def test_coverage_is_counted_for_every_section(lab: Make) -> None:
    async def read(real: Any, request: ReadRequest) -> Any:
        return [] if "chess" in request.question.text else await real(request)

    here = lab(read=read)
    here.holds(SURVEY, GAZETTE)

    state = await here.state(await here.ask("How large is Lake Marrow, and who won the chess olympiad of 2031?"))

    plan, coverage = state["plan"], state["coverage"]
    assert set(coverage) == {question["id"] for question in plan["questions"]}
    by_text = {question["text"]: coverage[question["id"]] for question in plan["questions"]}
    assert by_text["How large is Lake Marrow?"] > 0.5
    assert by_text["Who won the chess olympiad of 2031?"] == 0
    sections = state["analysis"]["section_confidence"]
    assert set(sections) == set(plan["sections"])
    for question in plan["questions"]:
        assert sections[question["section"]] == pytest.approx(coverage[question["id"]])


@pytest.mark.requirement("S-06")
async def test_numbers_given_in_one_round_stay_in_the_next(lab: Make) -> None:
    """The second round finds another page, with better answers than those of the first."""
    seen: list[dict[str, Any]] = []

    async def analyse(real: Any, request: AnalysisRequest) -> Any:
        [thread] = await here.threads.list_recent(limit=1)
        seen.append(await here.engine.state(thread.id))
        analysis = await real(request)
        gap = {"section": request.plan.sections[0], "severity": "minor", "question": "Q1"}
        refinements = {"Q1": ("sonar survey",)} if len(seen) == 1 else {}
        return analysis.model_validate(
            {**analysis.plain(), "gaps": [gap], "refinements": refinements, "confidence": 0.1}
        )

    async def queries(real: Any, *args: Any) -> list[str]:
        return []

    async def plan(real: Any, request: Any) -> Any:
        made = await real(request)
        texts = {"text": "ferry train fishermen"}
        return made.model_copy(update={"queries": tuple(q.model_copy(update=texts) for q in made.queries)})

    here = lab(analyse=analyse, propose_queries=queries, plan=plan)
    here.holds(GUIDE, GAZETTE, SURVEY.model_copy(update={"title": "Sonar"}))

    outcome = await here.ask("How large is Lake Marrow according to the sonar survey?")

    first, last = seen[0], await here.state(outcome)
    assert len(seen) == 2
    assert SURVEY.hash not in {card["document"] for card in first["sources"]}
    assert SURVEY.hash in {card["document"] for card in last["sources"]}
    assert last["sources"][: len(first["sources"])] == first["sources"]
    later = {finding["id"]: finding["span"] for finding in last["findings"]}
    assert len(later) == len(last["findings"]) > len(first["findings"]) > 0
    for finding in first["findings"]:
        assert later[finding["id"]] == finding["span"]


# L-05

LARGEST = 64 * 1024  # bytes of a checkpoint


def _logs(paragraphs: int) -> list[Document]:
    """Six pages of prose; every sentence is unlike every other, so none can hide in a quote."""
    pages = []
    for page in range(6):
        lines = [
            f"Station {page}-{n} on Lake Marrow reported a depth of {n + 3} metres and water of grade q{page}x{n}. "
            + " ".join(f"Reading w{page}x{n}x{k} of the buoy was taken by observer v{n}x{k}." for k in range(12))
            for n in range(paragraphs)
        ]
        pages.append(make_document("\n\n".join(lines), title=f"Log {page}"))
    return pages


async def _run_on(pages: Sequence[Document], data: Path) -> tuple[str, list[bench.Step]]:
    """The state as people see it, and the checkpoints as they are kept."""
    async with open_engine(load(data_dir=data)) as engine:
        options = ResearchOptions(source="logs", depth=Depth.QUICK)
        run = await engine.start("How deep is Lake Marrow at the stations?", options)
        outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        check_report(outcome.report, stored_texts(data))
        state = json.dumps(await engine.state(run.thread), ensure_ascii=False)
    return state, await bench.steps(data, run.thread)


@pytest.mark.slow
@pytest.mark.requirement("L-05")
async def test_state_and_checkpoints_stay_small_while_documents_grow_tenfold(
    tmp_path: Path, plugin: Callable[..., None]
) -> None:
    few, many = _logs(6), _logs(60)
    plugin("logs", lambda bench: FakeSource(bench.store, few))
    small, few_kept = await _run_on(few, tmp_path / "small")
    plugin("logs", lambda bench: FakeSource(bench.store, many))
    large, many_kept = await _run_on(many, tmp_path / "large")

    text = sum(len(page.text) for page in many)
    assert text > 9 * sum(len(page.text) for page in few)
    assert len(large) < 1.5 * len(small)
    assert len(large) < text / 3
    assert max(step.held for step in many_kept) < 1.5 * max(step.held for step in few_kept)
    assert max(step.stored for step in many_kept) < 1.5 * max(step.stored for step in few_kept)
    for page in many:  # a passage is several sentences; only single ones may be quoted
        for paragraph in page.text.split("\n\n"):
            assert paragraph[:300] not in large


@pytest.mark.slow
@pytest.mark.requirement("L-05")
async def test_a_checkpoint_does_not_grow_with_the_pages_that_are_read(tmp_path: Path) -> None:
    """50 and 500 of them: benchmarks/bench_state.py."""
    few, many = [
        await bench.reading(
            load(
                data_dir=tmp_path / f"{pages}", max_gap_searches=0, harvest={"pages_per_question": limit},
                reading={"documents_per_question": limit},
            ),
            LargeRemote(pages),
            "What do the stations on Lake Marrow report?",
        )
        for pages, limit in ((12, 4), (300, 50))
    ]  # fmt: skip

    assert many.read > 7 * few.read > 0
    assert many.whole > 4 * LARGEST  # what the stages were given
    assert max(step.held for step in many.steps) < 1.2 * max(step.held for step in few.steps) < LARGEST / 3
    assert max(step.stored for step in many.steps) < LARGEST


@pytest.mark.requirement("L-05", "C-15")
async def test_a_note_that_was_altered_stops_whoever_reads_the_state(tmp_path: Path) -> None:
    async with open_engine(load(data_dir=tmp_path)) as engine:
        run = await engine.start("What's happening with Apple?", ResearchOptions(source="demo", depth=Depth.QUICK))
        before = (await engine.wait(run.id)).report
        assert await engine.history.report(run.thread) == before
        with closing(sqlite3.connect(tmp_path / "openassay.sqlite3")) as database, database:
            database.execute("UPDATE notes SET content = ?", (b"x",))

        with pytest.raises(IntegrityError, match=f"notes {run.thread}/"):
            await engine.history.report(run.thread)


@pytest.mark.slow
@pytest.mark.requirement("C-11", "L-05")
async def test_what_a_turn_reads_does_not_grow_with_the_turns_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the list of the thread's runs and checkpoints. 100 turns, timed: benchmarks/bench_state.py."""
    opened: Counter[str] = Counter()
    real = Rows.decode

    def counted(self: Rows, table: TableSpec, row: Any) -> Any:
        opened[table.name] += 1
        return real(self, table, row)

    monkeypatch.setattr(Rows, "decode", counted)
    async with open_engine(load(data_dir=tmp_path)) as engine:
        thread = await bench.ask(engine, "What's happening with Apple?", None)
        turns = []
        for _ in range(14):
            opened.clear()
            await bench.ask(engine, "hello", thread)
            await engine.view(thread)
            await engine.history.report(thread)
            turns.append(dict(opened))
        state = await engine.state(thread)

    early, late = turns[2], turns[-1]  # the first ones still fill the conversation
    lists = len(turns) - 3
    assert late.pop("runs") <= early.pop("runs") + 5 * lists
    assert sum(late.values()) <= sum(early.values()) + lists
    assert len(state["messages"]) <= 10
    assert len(json.dumps(state)) < LARGEST / 4


# C-15


@pytest.mark.slow
@pytest.mark.requirement("C-15")
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subject", 7),
        ("subject", ["Apple"]),
        ("conversation_summary", {"text": "They spoke of Apple."}),
        ("conversation_summary", None),
        ("messages", {"replace": ["What's happening with Apple?", 3]}),
        ("messages", {"replace": [{"role": "oracle", "content": "Buy."}]}),
    ],
)
async def test_a_thread_field_that_holds_what_it_cannot_is_reset_and_said_to_be(
    lab: Make, field: str, value: object
) -> None:
    here = lab()
    first = await here.ask("What's happening with Apple?", depth="quick")
    config: Any = {"configurable": {"thread_id": first.run.thread}}
    await build_graph(here.checkpointer).aupdate_state(config, {field: value}, as_node="publish")

    second = await here.ask("What's happening with Tesla?", depth="quick", thread=first.run.thread)

    assert second.report is not None, second.run.error
    assert second.report.status == "complete"
    note = f"The thread could not be read in full and was started afresh: {field}"
    assert note in second.report.notices
    assert note in [event.data.get("text") for event in await here.log(second.run.id)]
    state = await here.state(second)
    assert state["subject"] == "Tesla"
    assert state["conversation_summary"] == ""
    questions = [message["content"] for message in state["messages"] if message["role"] == "user"]
    assert (
        questions
        == ["What's happening with Apple?", "What's happening with Tesla?"][-1 if field == "messages" else 0 :]
    )


@pytest.mark.requirement("C-15")
def test_messages_that_are_no_list_do_not_stop_the_next_one() -> None:
    one = {"role": "user", "content": "a"}
    assert append_messages("garbage", [one]) == append_messages(7, [one]) == [one]  # type: ignore[arg-type]
