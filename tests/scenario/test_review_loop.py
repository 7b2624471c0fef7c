"""Drafts that are reviewed, revised, held against standards, published or given up."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from openassay.engine.engine import RunOutcome
from openassay.errors import SourceError
from openassay.export import Report
from openassay.models.evidence import Judgement, Verdict
from openassay.models.report import Critique, Issue
from openassay.reasoning.base import Draft, DraftSection, DraftSentence, JudgementBatch, recommend
from openassay.testing import make_document
from tests.scenario.conftest import Lab, LibraryRun
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY
from tests.scenario.test_bounds import never_satisfied

Make = Callable[..., Lab]
SIZE = "How large is Lake Marrow?"


def scoring(*scores: float, severity: str = "major") -> Callable[..., Critique]:
    """A reviewer who gives these scores in turn, and draws the lines where they are."""
    given: list[float] = []

    def critique(real: Any, request: Any) -> Critique:
        given.append(scores[min(len(given), len(scores) - 1)])
        issue = Issue(category="style", severity=severity, location="all", description="dull", fix="sing it")  # type: ignore[arg-type]
        found = (issue,)
        advice = recommend(given[-1], found, request.revisions)
        return Critique(scores={}, score=given[-1], issues=found, recommendation=advice)

    return critique


def numbering(real: Any, request: Any) -> Any:
    """A writer whose every draft says which it is."""

    async def write() -> Draft:
        draft: Draft = await real(request)
        number = (request.previous.version if request.previous else 0) + 1
        line = DraftSentence(text=f"After {number} attempts this is the answer.")
        last = DraftSection(title="Conclusion", role="conclusion", sentences=(line,))
        return draft.model_copy(update={"sections": (*draft.sections, last)})

    return write()


def versions(here: Lab) -> int:
    return sum(name == "write" for name, _ in here.reasoner.calls)


async def revised(lab: Make, *scores: float, limit: int = 3, **more: Any) -> tuple[Lab, RunOutcome]:
    here = lab(critique=scoring(*scores, **more), write=numbering, settings={"max_iterations": limit})
    here.holds(*LAKE)
    return here, await here.ask(SIZE, depth="quick")


ATLAS = make_document(
    "Lake Marrow covered an area of 412 square kilometres in 2019. Eels are caught there with nets.",
    title="Atlas of the north", url="https://atlas.example/north", published=date(2021, 1, 1),
)  # fmt: skip


def published(outcome: RunOutcome) -> int:
    """Which of the drafts of numbering() went out."""
    assert outcome.report is not None, outcome.run.error
    [line] = [
        s.text for section in outcome.report.sections for s in section.sentences if "this is the answer" in s.text
    ]
    return int(line.split()[1])


def told(report: Report) -> str:
    """What a report says of itself, at its top or where it tells what it lacks."""
    own = [section for section in report.sections if section.role in ("notice", "not_found")]
    return " ".join(sentence.text for section in own for sentence in section.sentences)


# The loop


@pytest.mark.requirement("F-08")
@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_as_many_drafts_as_allowed_and_no_more(lab: Make, limit: int) -> None:
    here, outcome = await revised(lab, 6.0, limit=limit)

    assert versions(here) == limit
    assert outcome.report is not None
    assert (outcome.report.status, outcome.report.confidence, outcome.report.basis) == ("partial", "low", "draft")
    assert outcome.report.metadata.iterations == limit
    requests = [arguments[0] for name, arguments in here.reasoner.calls if name == "critique"]
    assert [request.revisions for request in requests] == list(range(limit - 1, -1, -1))


@pytest.mark.slow
@pytest.mark.requirement("F-07", "F-08")
async def test_the_writer_is_told_what_to_mend_and_an_approved_draft_ends_it(lab: Make) -> None:
    here, outcome = await revised(lab, 6.0, 8.5)

    first, second = [arguments[0] for name, arguments in here.reasoner.calls if name == "write"]
    assert (first.fixes, first.issues, first.previous) == ((), (), None)
    assert second.fixes == ("sing it",)
    assert [issue.description for issue in second.issues] == ["dull"]
    assert second.previous is not None
    assert outcome.report is not None
    assert (outcome.report.status, published(outcome)) == ("complete", 2)


@pytest.mark.slow
@pytest.mark.requirement("F-07", "F-08")
@pytest.mark.parametrize(
    ("scores", "taken"),
    [((6.0, 5.5, 5.2), 1), ((5.5, 6.0, 5.2), 2), ((5.5, 5.7, 6.0), 3), ((6.0, 6.0, 6.0), 3), ((7.0, 8.0), 2)],
)
async def test_of_several_versions_the_best_is_taken(lab: Make, scores: tuple[float, ...], taken: int) -> None:
    here, outcome = await revised(lab, *scores)

    assert published(outcome) == taken
    assert outcome.report is not None
    assert outcome.report.metadata.score == max(scores)
    assert outcome.report.review is not None
    assert outcome.report.review.score == max(scores)
    assert outcome.report.metadata.iterations == len(scores), "all that were written count"
    state = await here.state(outcome)
    assert state["best"] is None, "nothing is kept once it is published"


@pytest.mark.requirement("F-07")
async def test_a_version_with_a_critical_fault_is_not_the_best_whatever_its_score(lab: Make) -> None:
    severities = iter(["critical", "minor", "minor"])
    scores = iter([9.5, 6.0, 6.0])

    def critique(real: Any, request: Any) -> Critique:
        return scoring(next(scores), severity=next(severities))(real, request)

    here = lab(critique=critique, write=numbering)
    here.holds(*LAKE)

    outcome = await here.ask(SIZE, depth="quick")

    assert published(outcome) == 3


@pytest.mark.slow
@pytest.mark.requirement("F-07")
async def test_a_poor_draft_is_revised_while_rounds_remain_and_then_rejected(lab: Make) -> None:
    here, outcome = await revised(lab, 2.0)

    assert versions(here) == 3
    assert outcome.report is not None
    assert outcome.report.review is not None
    assert outcome.report.review.recommendation == "reject"
    assert "The last review did not approve it." in told(outcome.report)
    assert "Three versions were written" in told(outcome.report)


@pytest.mark.requirement("F-07")
async def test_a_reviewer_who_rejects_outright_ends_it(lab: Make) -> None:
    def critique(real: Any, request: Any) -> Critique:
        return Critique(scores={}, score=1.0, recommendation="reject")

    here = lab(critique=critique, write=numbering)
    here.holds(*LAKE)

    outcome = await here.ask(SIZE, depth="quick")

    assert versions(here) == 1
    assert outcome.report is not None
    assert outcome.report.status == "partial"


@pytest.mark.requirement("F-07", "F-09")
async def test_a_version_a_person_has_sent_back_does_not_come_again(lab: Make) -> None:
    here = lab(critique=scoring(9.0, 6.0), write=numbering, settings={"hitl_before_output": True, "max_iterations": 2})
    here.holds(*LAKE)

    waiting = await here.ask(SIZE, depth="quick", interactive=True)
    again = await here.answer(waiting, {"decision": "modify", "fixes": ["Say it better."]})
    outcome = await here.answer(again, "approve")

    assert published(outcome) == 2


@pytest.mark.requirement("F-08")
async def test_a_writer_who_goes_round_in_circles_is_stopped(lab: Make) -> None:
    """The third draft is the first again."""

    async def write(real: Any, request: Any) -> Draft:
        draft: Draft = await real(request)
        number = (request.previous.version if request.previous else 0) % 2 + 1
        line = DraftSentence(text=f"After {number} attempts this is the answer.")
        last = DraftSection(title="Conclusion", role="conclusion", sentences=(line,))
        body = [section for section in draft.sections if section.role == "body"][:1]
        return draft.model_copy(update={"sections": (*body, last)})

    here = lab(critique=scoring(6.0), write=write, settings={"max_iterations": 10})
    here.holds(ATLAS)

    outcome = await here.ask(SIZE, depth="quick")

    assert versions(here) == 3
    assert (await here.state(outcome))["stuck"] is True
    assert outcome.report is not None
    assert outcome.report.status == "partial"


# What the score means, from question to report


@pytest.mark.slow
@pytest.mark.requirement("F-07", "F-13", "S-10")
async def test_confidence_follows_what_the_evidence_is_worth(lab: Make) -> None:
    levels = {}
    for name, documents in {"confirmed": (GAZETTE, ATLAS), "one page": (SURVEY,), "beside the point": (GUIDE,)}.items():
        here = lab()
        here.holds(*documents)
        report = await here.report("What is the area of Lake Marrow?" if name != "beside the point" else QUESTION,
                                   depth="quick" if name != "beside the point" else "standard")  # fmt: skip
        levels[name] = (report.status, report.confidence, report.metadata.score)

    assert levels["confirmed"][:2] == ("complete", "high")
    assert levels["one page"][:2] == ("complete", "medium")
    assert levels["beside the point"][1] != "high"
    assert levels["confirmed"][2] >= 8 > levels["one page"][2] > levels["beside the point"][2]


@pytest.mark.requirement("F-07", "S-10")
def test_a_report_carries_its_review(library: LibraryRun) -> None:
    review = library.report.review

    assert review is not None
    assert set(review.scores) == {"accuracy", "completeness", "coherence", "citation", "methodology", "style"}
    assert review.score == library.report.metadata.score
    assert 0 < review.improvement_potential <= 1
    assert all(issue.location and issue.description for issue in review.issues)
    assert library.report.basis == "report"
    assert library.report.errors == ()


# Standards


@pytest.mark.requirement("W-10")
async def test_too_few_citations_are_told_where_there_are_no_more(lab: Make) -> None:
    here = lab(settings={"standards": {"min_citations": 5}})
    here.holds(*LAKE)

    outcome = await here.ask(SIZE, depth="quick")

    report = outcome.report
    assert report is not None
    assert report.status == "complete"
    assert report.confidence != "high"
    assert 7.5 <= report.metadata.score <= 7.9
    assert "cites fewer sources than it should" in told(report)
    assert any(issue.severity == "major" and "at least 5" in issue.description for issue in report.issues)
    assert versions(here) == 1, "no writer could mend it"
    notices = [event.data["text"] for event in await here.log(outcome.run.id) if event.kind == "notice"]
    assert any(str(text).startswith("standards: ") for text in notices)


@pytest.mark.requirement("W-10")
async def test_what_a_writer_can_mend_goes_back_to_the_writer(lab: Make) -> None:
    async def write(real: Any, request: Any) -> Draft:
        draft: Draft = await real(request)
        if "cite more" in " ".join(request.fixes):
            return draft
        alone = {claim.id for claim in request.claims if len(claim.spans) == 1}
        [fact, *_] = [
            sentence
            for section in draft.sections
            for sentence in section.sentences
            if sentence.claims and alone.issuperset(sentence.claims)
        ]
        [first, *_] = draft.sections
        return draft.model_copy(update={"sections": (first.model_copy(update={"sentences": (fact,)}),)})

    here = lab(write=write, settings={"standards": {"min_citations": 2}})
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert versions(here) == 2
    assert len({name for section in report.sections for s in section.sentences for name in s.citations}) >= 2
    assert "fewer sources" not in told(report)


def aged(days: int) -> Any:
    published = datetime.now(UTC).date() - timedelta(days=days)
    return [document.model_copy(update={"published": published}) for document in LAKE]


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize(
    ("question", "days", "limit", "fails"),
    [
        (SIZE, 4000, None, False),
        (SIZE, 400, 365, True),
        (SIZE, 300, 365, False),
        ("How large is Lake Marrow today?", 4000, None, True),
        ("How large is Lake Marrow today?", 30, None, False),
    ],
)
async def test_sources_must_be_as_recent_as_asked(
    lab: Make, question: str, days: int, limit: int | None, fails: bool
) -> None:
    here = lab(settings={"standards": {"recency_days": limit}})
    here.holds(*aged(days))

    report = await here.report(question, depth="quick")

    assert ("as recent as it should be" in told(report)) is fails
    assert any("as recent as it should be" in issue.description for issue in report.issues) is fails
    assert not (fails and report.confidence == "high")


PILLS = (
    make_document(
        "Paracetamol overdose damages the liver. The highest dose of paracetamol for adults is 4 grams a day. "
        "Adults should take paracetamol with water.",
        title="Paracetamol", url="https://pills.example/paracetamol", published=date(2024, 1, 1),
    ),
    make_document(
        "In adults the highest dose of paracetamol is 4 grams a day. Paracetamol overdose damages the liver.",
        title="The dose of paracetamol", url="https://clinic.example/dose", published=date(2024, 1, 1),
    ),
)  # fmt: skip
DOSE = "What is the highest dose of paracetamol for adults?"


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize("wanted", [True, False])
async def test_a_sensitive_question_has_a_disclaimer_whoever_writes(lab: Make, wanted: bool) -> None:
    here = lab(settings={"standards": {"disclaimers": wanted}})
    here.holds(*PILLS)

    report = await here.report(DOSE, depth="quick")

    assert report.status == "complete"
    assert ("not medical advice" in told(report)) is wanted
    assert ("not medical advice" in report.markdown) is wanted


@pytest.mark.requirement("W-10")
async def test_a_report_that_was_given_up_has_its_disclaimer_too(lab: Make) -> None:
    here = lab(critique=scoring(3.0))
    here.holds(*PILLS)

    report = await here.report(DOSE, depth="quick")

    assert report.status == "partial"
    assert "not medical advice" in told(report)


@pytest.mark.requirement("W-10")
@pytest.mark.parametrize("listens", [True, False])
async def test_bare_advice_goes_back_and_is_told_if_it_stays(lab: Make, listens: bool) -> None:
    def write(real: Any, request: Any) -> Draft:
        claims = [claim for claim in request.claims if claim.verdict is Verdict.SUPPORTED]
        if listens and any("leave it out" in fix for fix in request.fixes):
            claims = [claim for claim in claims if "should" not in claim.text]
        facts = tuple(DraftSentence(text=claim.text, claims=(claim.id,)) for claim in claims)
        return Draft(title="Paracetamol", sections=(DraftSection(title="Answer", sentences=facts),))

    here = lab(write=write)
    here.holds(*PILLS)

    report = await here.report("How should adults take paracetamol, and what is the highest dose?", depth="quick")

    said = " ".join(s.text for section in report.sections if section.role == "body" for s in section.sentences)
    assert "4 grams" in said
    assert versions(here) == 2
    assert ("Adults should take paracetamol with water." in said) is not listens
    assert ("it is the advice of the source" in told(report)) is not listens
    assert any("advice as if nobody" in issue.description for issue in report.issues) is not listens
    assert "not medical advice" in told(report)


# The fallback


def nothing_holds(real: Any, statements: Any) -> JudgementBatch:
    return JudgementBatch(judgements=tuple(Judgement(verdict=Verdict.NOT_FOUND, score=0.0) for _ in statements))


@pytest.mark.requirement("F-12")
async def test_a_draft_is_the_best_there_is(lab: Make) -> None:
    _, outcome = await revised(lab, 4.0, severity="critical")

    report = outcome.report
    assert report is not None
    assert (report.basis, report.status, report.confidence, report.metadata.score) == ("draft", "partial", "low", 4.0)
    assert "1 critical issue could not be fixed" in told(report)
    assert "about 4 of 10 points" in told(report)
    assert not [one for one in report.sections if one.role == "notice"], "it is not disowned at its top"


@pytest.mark.requirement("F-12")
async def test_without_a_draft_the_analysis_is(lab: Make) -> None:
    stop = {"name": "claims", "at": "claims"}
    here = lab(settings={"breakpoints": {"custom": [stop]}})
    here.holds(*LAKE)

    waiting = await here.ask(QUESTION, interactive=True)
    report = (await here.answer(waiting, "reject")).report

    assert report is not None
    assert (report.basis, report.status) == ("analysis", "partial")
    facts = [s for section in report.sections for s in section.sentences if s.kind == "fact"]
    assert facts
    assert report.plan is not None
    assert {section.title for section in report.sections if section.role == "body"} <= set(report.plan.sections)
    assert "It was not written out" in told(report)
    assert "It was rejected at a review." in told(report)


@pytest.mark.requirement("F-12", "C-10")
async def test_without_verified_statements_the_results_are_listed_and_nothing_is_asserted(lab: Make) -> None:
    here = lab(judge=nothing_holds)
    here.holds(SURVEY, GAZETTE)

    report = await here.report(QUESTION)

    assert (report.basis, report.status) == ("results", "no_data")
    assert not [s for section in report.sections for s in section.sentences if s.kind == "fact"]
    assert {card.url for card in report.sources} == {SURVEY.url, GAZETTE.url}
    assert all("found, not verified" in card.why_used or "nothing in it" in card.why_used for card in report.sources)
    assert any("412 square kilometres" in card.why_used for card in report.sources), "what was found can be seen"
    assert "Sorry, no source had an answer" in told(report)
    assert "[S1]" in told(report)
    assert report.metadata.sources == 2


@pytest.mark.requirement("F-12", "C-10")
async def test_without_anything_it_says_so_and_what_to_do(lab: Make) -> None:
    here = lab()
    here.holds()

    report = await here.report(QUESTION)

    assert (report.basis, report.status, report.sources) == ("nothing", "no_data", ())
    assert "Sorry, no source had an answer" in told(report)
    assert "You could check the spelling" in told(report)


@pytest.mark.requirement("F-12")
async def test_the_last_errors_are_told_each_once(lab: Make) -> None:
    count = iter(range(100))

    async def outage(query: str) -> None:
        raise SourceError(f"archive {next(count)} is closed")

    here = lab()
    here.holds(*LAKE, before=outage)

    report = await here.report(QUESTION)

    assert 1 <= len(report.errors) <= 5
    assert len(set(report.errors)) == len(report.errors)
    assert all("is closed" in error for error in report.errors)


@pytest.mark.requirement("C-10", "F-12")
async def test_attempts_that_ran_out_are_told_by_the_fallback_too(lab: Make) -> None:
    here = lab(judge=nothing_holds, analyse=never_satisfied([]))
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert report.status == "no_data"
    assert "It was searched in 3 attempts" in told(report)


@pytest.mark.requirement("C-10", "F-12")
async def test_statements_given_up_before_they_were_written_say_how_often_was_tried(lab: Make) -> None:
    here = lab(analyse=never_satisfied([]), settings={"breakpoints": {"custom": [{"name": "claims", "at": "claims"}]}})
    here.holds(SURVEY)

    waiting = await here.ask(QUESTION, interactive=True)
    report = (await here.answer(waiting, "reject")).report

    assert report is not None
    assert report.basis == "analysis"
    assert "After 3 attempts not everything that was asked could be verified." in told(report)
