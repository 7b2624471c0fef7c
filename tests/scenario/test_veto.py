"""A source is taken out of a finished report: what rested on it is derived again, and nothing else."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from openassay.errors import NotFoundError, UsageError
from openassay.export import Report
from openassay.models.thread import ResearchOptions
from openassay.reasoning.base import JudgementBatch
from openassay.testing import make_document
from tests.scenario.conftest import Lab
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY

pytestmark = pytest.mark.requirement("X-09")

Make = Callable[..., Lab]
STEPS = ("understand", "plan", "propose_queries", "read", "analyse", "extract_claims", "write", "critique", "condense")


def source(report: Report, title: str) -> str:
    return next(card.id for card in report.sources if card.title == title)


def facts(report: Report) -> dict[str, str]:
    """What is stated, and the mark it has."""
    return {s.text: str(s.mark) for section in report.sections for s in section.sentences if s.kind == "fact"}


class Counted:
    """A laboratory whose reasoner's steps are counted, and what its judge was asked."""

    def __init__(self, lab: Make) -> None:
        self.taken: list[str] = []
        self.judged: list[str] = []
        self.here = lab(judge=self._judge, **{name: self._step(name) for name in STEPS})

    def _step(self, name: str) -> Callable[..., Any]:
        async def step(real: Any, *args: Any) -> Any:
            self.taken.append(name)
            return await real(*args)

        return step

    async def _judge(self, real: Any, statements: Sequence[tuple[str, Sequence[str]]]) -> JudgementBatch:
        self.judged += [text for text, _ in statements]
        return await real(statements)  # type: ignore[no-any-return]

    def forget(self) -> None:
        self.taken, self.judged = [], []


async def veto(here: Lab, thread: str, *names: str) -> Report:
    outcome = await here.settled((await here.engine.vetoes.begin(thread, names)).id)
    assert outcome.report is not None, outcome.run.error
    return outcome.report


async def test_only_what_rested_on_a_source_is_derived_again(lab: Make) -> None:
    counted = Counted(lab)
    counted.here.holds(*LAKE)
    before = await counted.here.report(QUESTION)
    thread = before.provenance.thread
    touched = {claim.id for claim in before.claims if any(span.document == SURVEY.hash for span in claim.spans)}
    untouched = {claim.id: claim for claim in before.claims if claim.id not in touched}
    counted.forget()

    after = await veto(counted.here, thread, source(before, SURVEY.title))

    assert touched, "the report rested on it"
    assert counted.taken == []  # nothing was planned, searched, read, claimed, written or reviewed again
    known = {claim.text for claim in before.claims if claim.id in touched}
    quotes = {span.quote for claim in before.claims if claim.id in touched for span in claim.spans}
    assert set(counted.judged) <= known | quotes
    assert {claim.id: claim for claim in after.claims if claim.id in untouched} == untouched
    assert all(card.document != SURVEY.hash for card in after.sources)
    assert all(span.document != SURVEY.hash for claim in after.claims for span in claim.spans)


@pytest.mark.slow
async def test_a_statement_with_another_source_stays_with_a_weaker_mark(lab: Make) -> None:
    here = lab()
    here.holds(SURVEY, GAZETTE)
    before = await here.report(QUESTION)
    size = next(text for text in facts(before) if "412" in text)
    cause = next(text for text in facts(before) if "drought" in text)

    after = await veto(here, before.provenance.thread, source(before, SURVEY.title))

    assert facts(before)[size] == "✓✓"
    told = {text: mark for text, mark in facts(after).items() if "412" in text}
    assert told
    assert set(told.values()) <= {"✓", "⚠"}
    assert cause not in facts(after), "nothing else says so"
    assert any("Taken out: “Survey of Lake Marrow”" in notice for notice in after.notices)
    assert any("shrink" in missing.question for missing in after.not_found)


@pytest.mark.slow
async def test_what_would_change_is_told_and_changes_nothing(lab: Make) -> None:
    here = lab()
    here.holds(SURVEY, GAZETTE)
    before = await here.report(QUESTION)
    thread = before.provenance.thread

    found = await here.engine.vetoes.consequences(thread, [source(before, SURVEY.title)])

    after = await veto(here, thread, source(before, SURVEY.title))
    left = {claim.id for claim in after.claims if claim.verdict == "supported"}
    assert found.lost
    assert not set(found.lost) & left
    assert set(found.weaker) <= left
    assert {sentence.text for section in before.sections for sentence in section.sentences} >= set(found.sentences)
    assert [one.title for one in found.sources] == [SURVEY.title]


@pytest.mark.slow
async def test_the_next_question_does_without_it_too(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    before = await here.report(QUESTION)
    thread = before.provenance.thread
    await veto(here, thread, SURVEY.url)

    outcome = await here.ask("Why did Lake Marrow shrink in the drought, says the survey?", thread=thread)

    assert outcome.report is not None
    assert all(card.document != SURVEY.hash for card in outcome.report.sources)
    skipped = [event for event in await here.log(outcome.run.id) if event.kind == "skip"]
    assert any(event.data.get("reason") == "you vetoed this source" for event in skipped)


async def test_without_any_source_nothing_is_asserted(lab: Make) -> None:
    here = lab()
    here.holds(SURVEY)
    before = await here.report(QUESTION)

    after = await veto(here, before.provenance.thread, "survey.example")

    assert after.status == "no_data"
    assert facts(after) == {}


@pytest.mark.slow
async def test_two_vetoes_add_up_and_the_conversation_holds_the_last_answer_only(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    before = await here.report("How large is Lake Marrow, why did it shrink, and how do visitors get there?")
    thread = before.provenance.thread

    await veto(here, thread, source(before, SURVEY.title))
    last = await veto(here, thread, GAZETTE.url)

    assert {card.document for card in last.sources} <= {GUIDE.hash}
    state = await here.engine.state(thread)
    assert [message["role"] for message in state["messages"]] == ["user", "assistant"]
    assert {one["document"] for one in state["vetoed"]} == {SURVEY.hash, GAZETTE.hash}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["S99", "nowhere.example", "", "https://gazette.example/other", "0" * 64])
async def test_a_source_the_report_has_not_is_refused(lab: Make, name: str) -> None:
    here = lab()
    here.holds(*LAKE)
    before = await here.report(QUESTION)

    with pytest.raises(NotFoundError, match="has no source"):
        await here.engine.vetoes.begin(before.provenance.thread, [name])


@pytest.mark.slow
async def test_a_thread_without_a_report_has_nothing_to_veto(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)
    before = await here.report(QUESTION)
    thread = before.provenance.thread
    asked = await here.engine.start("And how deep is Lake Marrow?", ResearchOptions(), thread=thread)

    with pytest.raises(UsageError, match="no report yet"):
        await here.engine.vetoes.begin(thread, [source(before, SURVEY.title)])
    await here.engine.wait(asked.id)


async def test_copies_of_a_text_that_was_taken_out_are_named(lab: Make) -> None:
    copy = make_document(f"{SURVEY.text} Printed with permission.", title="A reprint", url="https://reprint.example/")
    here = lab()
    here.holds(SURVEY, GUIDE, copy)
    before = await here.report(QUESTION)

    after = await veto(here, before.provenance.thread, source(before, SURVEY.title))

    [notice] = [notice for notice in after.notices if "Taken out" in notice]
    assert "Much of the same text stays in “A reprint”" in notice
    assert GUIDE.title not in notice
