"""A report against its snapshots: each rule has a report that breaks it and nothing else."""

from typing import Any

import pytest

from openassay.engine.report_check import recheck_report
from openassay.models.evidence import Mark, Verdict
from openassay.models.report import Coverage, ReportData, ReportSpan, Section, Sentence
from tests.unit.test_evidence_bundle import GAZETTE, SURVEY, TEXT, small

pytestmark = pytest.mark.requirement("X-04")
TEXTS = {document.hash: document.text for document in (SURVEY, GAZETTE)}


def broken(report: ReportData) -> dict[str, tuple[str, ...]]:
    return {check.name: check.problems for check in recheck_report(report, TEXTS.__getitem__) if check.problems}


def claim(**changes: Any) -> ReportData:
    report = small()
    return report.model_copy(update={"claims": (report.claims[0].model_copy(update=changes),)})


def first_span(**changes: Any) -> ReportData:
    spans = small().claims[0].spans
    return claim(spans=(spans[0].model_copy(update=changes), spans[1]))


def sentence(**changes: Any) -> ReportData:
    said = small().sections[0].sentences[0].model_copy(update=changes)
    return small(sections=(Section(title="Size", sentences=(said,)),))


def test_a_good_report_breaks_none() -> None:
    assert broken(small()) == {}


@pytest.mark.parametrize(
    ("report", "rule"),
    [
        (first_span(start=1, end=50), "spans"),
        (first_span(start=-50), "spans"),
        (first_span(source="S2"), "spans"),
        (first_span(source="S9"), "spans"),
        (claim(verdict=Verdict.PARTLY), "statements"),
        (sentence(claims=()), "statements"),
        (sentence(claims=("C1", "C7")), "statements"),
        (sentence(text="Lake Marrow covered 413 square kilometres."), "figures"),
        (sentence(text="A ferry of the harbour office carries many passengers across."), "statements"),
        (sentence(citations=()), "citations"),
        (sentence(citations=("S3",)), "citations"),
        (sentence(mark=None), "marks"),
        (small(sources=tuple(one.model_copy(update={"group": "G1"}) for one in small().sources)), "marks"),
        (small(figures=(small().figures[0].model_copy(update={"when": "2020"}),)), "figures"),
        (small(answers=(small().answers[0].model_copy(update={"text": "413 square kilometres"}),)), "figures"),
        (small(coverage=Coverage(checked=0, total=1)), "totals"),
        (small(coverage=Coverage(checked=3, total=2)), "totals"),
        (small(claims=small().claims * 2, coverage=Coverage(checked=2, total=2)), "claims"),
        (small(sections=(*small().sections, Section(title="What Ostrey lost in 1987"))), "frames"),
    ],
)  # fmt: skip
def test_each_rule_is_held_to(report: ReportData, rule: str) -> None:
    assert rule in broken(report)


def test_a_claim_without_a_passage_is_one_that_was_not_found() -> None:
    bare = small().claims[0].model_copy(update={"id": "C2", "spans": (), "verdict": Verdict.CONTRADICTED})
    more = small(claims=(*small().claims, bare), coverage=Coverage(checked=1, total=2))
    assert broken(more) == {"claims": ("C2 is called contradicted, and has no passage",)}
    absent = bare.model_copy(update={"verdict": Verdict.NOT_FOUND})
    assert broken(more.model_copy(update={"claims": (*small().claims, absent)})) == {}


def test_what_speaks_against_a_claim_is_a_span_too() -> None:
    wrong = ReportSpan(source="S1", document=SURVEY.hash, start=0, end=4, quote="Lark")
    assert "spans" in broken(claim(against=(wrong,)))


@pytest.mark.parametrize("text", ["Revenue was 1,234 in all.", "It was said by Henrietta."])
def test_what_is_said_of_the_research_brings_no_figure_and_no_name(text: str) -> None:
    framed = (*small().sections, Section(title="Size", sentences=(Sentence(text=text, kind="frame"),)))
    assert set(broken(small(sections=framed))) == {"frames"}


def test_a_complete_report_states_something() -> None:
    assert "totals" in broken(small(sections=()))
    assert "totals" not in broken(small(sections=(), status="partial"))


def test_a_report_that_ties_everything_to_everything_is_not_gone_through() -> None:
    spans = small().claims[0].spans * 700
    claims = tuple(small().claims[0].model_copy(update={"id": f"C{n}", "spans": spans}) for n in range(30))
    said = small().sections[0].sentences[0].model_copy(update={"claims": tuple(one.id for one in claims)})
    tied = small(claims=claims, sections=(Section(title="Size", sentences=(said,) * 30),))
    assert any("more than 1,000,000 times" in problem for problems in broken(tied).values() for problem in problems)


def test_one_mark_wants_no_second_source() -> None:
    single = (small().claims[0].spans[0],)
    report = claim(spans=single)
    one = {"mark": Mark.VERIFIED, "citations": ("S1",)}
    said = Section(title="Size", sentences=(small().sections[0].sentences[0].model_copy(update=one),))
    assert broken(report.model_copy(update={"sections": (said,), "answers": (), "figures": ()})) == {}
    assert TEXT.startswith("Lake Marrow")
