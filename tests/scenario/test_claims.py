"""Claims through the engine: atomic, understood alone, resting on the passage that says them, or flagged."""

import json
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

import pytest

from openassay.export import Report
from openassay.models.evidence import Verdict
from openassay.models.plan import Plan
from openassay.models.report import ReportClaim
from openassay.reasoning.base import ClaimExtraction, DraftClaim, Evidence
from openassay.testing import make_document
from openassay.verification.statement_check import check_statement
from tests.scenario.conftest import Lab
from tests.scenario.material import GUIDE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]


def stating(*drafted: tuple[str, str]) -> Callable[..., Any]:
    """A reasoner that adds statements of its own, each bound to the finding with certain words in it."""

    async def claims(real: Any, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
        own = [
            DraftClaim(
                wordings=(text,),
                findings=tuple(item.finding.id for item in evidence if about in item.finding.span.quote),
                questions=(plan.questions[0].id,),
                relevance=1.0,
            )
            for text, about in drafted
        ]
        return ClaimExtraction(claims=(*own, *(await real(plan, evidence)).claims))

    return claims


def claim_of(report: Report, words: str) -> ReportClaim:
    return next(claim for claim in report.claims if words in claim.text)


@pytest.mark.slow
@pytest.mark.requirement("W-09", "X-02", "X-03")
async def test_every_claim_has_a_passage_that_bears_it_out_or_says_what_is_wrong_with_it(lab: Make) -> None:
    wrong = {
        "Lake Marrow covered 999 square kilometres in 2019.": Verdict.PARTLY,
        "Lake Marrow did not cover 412 square kilometres in 2019.": Verdict.CONTRADICTED,
        "The duke of Ostrey breeds falcons for sale.": Verdict.NOT_FOUND,
    }
    here = lab(extract_claims=stating(*((text, "412") for text in wrong)))
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    for claim in report.claims:
        if claim.verdict is Verdict.SUPPORTED:
            assert claim.spans
            assert check_statement(claim.text, [span.quote for span in claim.spans]).agrees
        else:
            assert claim.reasons
            assert claim.mark is None
    assert {claim.text: claim.verdict for claim in report.claims if claim.text in wrong} == wrong
    assert claim_of(report, "did not cover").against
    assert not claim_of(report, "falcons").spans
    published = " ".join(sentence.text for section in report.sections for sentence in section.sentences)
    assert not any(text in published for text in wrong)


@pytest.mark.requirement("W-09", "S-09")
async def test_a_claim_bound_to_the_wrong_passage_is_found_in_the_right_one_in_the_same_calls(lab: Make) -> None:
    right = "A long drought dried up the river Tamsel, so Lake Marrow shrank."
    here = lab(extract_claims=stating((right, "412")))
    here.holds(SURVEY, GUIDE)

    report = await here.report(QUESTION)

    claim = claim_of(report, "so Lake Marrow shrank")
    assert any("because a long drought" in span.quote for span in claim.spans)
    assert not any("412" in span.quote for span in claim.spans)
    if claim.verdict is Verdict.SUPPORTED:
        assert "found in another passage than the one it named" in claim.reasons
    asked = [name for name, _ in here.reasoner.calls if name in ("extract_claims", "judge", "write")]
    assert asked[:3] == ["extract_claims", "judge", "write"]


@pytest.mark.slow
@pytest.mark.requirement("S-09")
async def test_all_that_verification_found_is_in_the_report(lab: Make) -> None:
    wrong = "Lake Marrow covered 999 square kilometres in 2019."
    here = lab(extract_claims=stating((wrong, "412")))
    here.holds(*LAKE)

    report = json.loads((await here.report(QUESTION)).model_dump_json())

    claims = report["claims"]
    assert all(0 < card["credibility"] <= 1 and card["credibility_reasons"] for card in report["sources"])
    assert [claim["text"] for claim in claims if claim["verdict"] != "supported"] == [wrong]
    assert any(claim["mark"] == "✓✓" for claim in claims), "cross-validated"
    assert all(0 < claim["confidence"] < 1 for claim in claims if claim["verdict"] == "supported")
    assert report["hallucination_score"] == pytest.approx(1 / len(claims), abs=1e-3)
    cited = {name for s in report["sections"] for sentence in s["sentences"] for name in sentence["citations"]}
    assert cited <= {card["id"] for card in report["sources"]}


async def test_what_it_stands_for_is_told_and_quoted(lab: Make) -> None:
    here = lab()
    here.holds(
        make_document(
            "Lake Marrow lies north of Ostrey. It covered 412 square kilometres in 2019. Boats are for hire.",
            title="Waters of the north", url="https://north.example/", published=date(2020, 1, 1),
        )
    )  # fmt: skip

    report = await here.report("How large is Lake Marrow?", depth="quick")

    claim = claim_of(report, "412")
    assert claim.text == "Lake Marrow covered 412 square kilometres in 2019."
    assert claim.verdict is Verdict.SUPPORTED
    assert [span.quote for span in claim.spans] == [
        "Lake Marrow lies north of Ostrey. It covered 412 square kilometres in 2019."
    ]


async def test_a_name_only_the_title_tells_is_quoted_from_where_it_stands(lab: Make) -> None:
    heading = "Lake Marrow"
    here = lab()
    here.holds(
        make_document(
            f"{heading}\n\nBoats are for hire at the shore.\n\nThe lake covered 412 square kilometres in 2019.",
            title="Lake Marrow", url="https://north.example/", published=date(2020, 1, 1),
        )
    )  # fmt: skip

    report = await here.report("How large is Lake Marrow?", depth="quick")

    claim = claim_of(report, "412")
    assert claim.text == "Lake Marrow covered 412 square kilometres in 2019."
    assert [span.quote for span in claim.spans] == ["The lake covered 412 square kilometres in 2019.", heading]
    assert any(claim.text == sentence.text for section in report.sections for sentence in section.sentences)


async def test_two_facts_of_one_sentence_are_two_claims_and_a_fact_told_twice_is_one(lab: Make) -> None:
    here = lab()
    here.holds(
        make_document(
            "Lake Marrow covered 412 square kilometres in 2019, and Lake Ebb covered 90 square kilometres in 2019.",
            title="Waters of the north", url="https://north.example/", published=date(2020, 1, 1),
        ),
        SURVEY,
    )  # fmt: skip

    report = await here.report("How large is Lake Marrow?", depth="quick")

    [area] = [claim for claim in report.claims if "412" in claim.text]
    [ebb] = [claim for claim in report.claims if "90" in claim.text]
    assert "90" not in area.text
    assert len({span.document for span in area.spans}) == 2
    assert ebb.text == "Lake Ebb covered 90 square kilometres in 2019."
