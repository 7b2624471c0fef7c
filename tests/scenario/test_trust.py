"""Whatever a reasoner says, only what stands in a snapshot is published as fact."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from openassay.export import Report
from openassay.models.evidence import Claim, Judgement, Verdict
from openassay.models.plan import Plan
from openassay.reasoning.base import (
    ClaimExtraction,
    Draft,
    DraftClaim,
    DraftSection,
    DraftSentence,
    Evidence,
    JudgementBatch,
    Quote,
    ReadRequest,
    WriteRequest,
)
from openassay.testing import make_document
from tests.scenario.conftest import Lab, LibraryRun
from tests.scenario.material import GAZETTE, GUIDE, LAKE, QUESTION, SURVEY

Make = Callable[..., Lab]


def believes(real: object, statements: Sequence[object]) -> JudgementBatch:
    """A judge who says yes to everything."""
    yes = Judgement(verdict=Verdict.SUPPORTED, score=1.0, reason="if you say so")
    return JudgementBatch(judgements=(yes,) * len(statements))


def claiming(text: str, *, about: str) -> Callable[..., Any]:
    """A reasoner that adds a statement of its own to those it drew, and names a finding for it."""

    async def claims(real: Any, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
        findings = tuple(item.finding.id for item in evidence if about in item.finding.span.quote)
        own = DraftClaim(wordings=(text,), findings=findings, questions=(plan.questions[0].id,), relevance=1.0)
        return ClaimExtraction(claims=(own, *(await real(plan, evidence)).claims))

    return claims


def writing(*added: Callable[[Sequence[Claim]], DraftSentence]) -> Callable[..., Any]:
    """A reasoner that adds sentences of its own to the draft, beside a statement that holds."""

    async def write(real: Any, request: WriteRequest) -> Draft:
        draft: Draft = await real(request)
        sound = next(sentence for section in draft.sections for sentence in section.sentences if sentence.claims)
        own = DraftSection(title="Also", sentences=(sound, *(make(request.claims) for make in added)))
        return draft.model_copy(update={"sections": (*draft.sections, own)})

    return write


def facts(report: Report) -> list[str]:
    return [s.text for section in report.sections for s in section.sentences if s.kind == "fact"]


def everything(report: Report) -> str:
    return " ".join(s.text for section in report.sections for s in section.sentences)


def verdict_of(report: Report, text: str) -> Verdict:
    return next(claim.verdict for claim in report.claims if claim.text == text)


# from page to sentence


@pytest.mark.requirement("X-01", "S-10")
async def test_every_fact_of_a_report_stands_verbatim_in_its_snapshot(lab: Make) -> None:
    here = lab()
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert any("Lake Marrow covered 412 square kilometres in 2019" in text for text in facts(report))
    for text in facts(report):
        assert any(text.rstrip(".") in document.text for document in LAKE), text


@pytest.mark.requirement("X-01")
async def test_a_quote_that_is_not_in_its_passage_is_dropped_and_said_to_be(lab: Make) -> None:
    invented = "Lake Marrow is the home of a large plesiosaur."

    async def read(real: Any, request: ReadRequest) -> list[Quote]:
        return [Quote(passage=0, text=invented, relevance=1.0), *await real(request)]

    here = lab(read=read, judge=believes)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert "plesiosaur" not in outcome.report.model_dump_json()
    assert "plesiosaur" not in str((await here.state(outcome))["findings"])
    said = [event.data["text"] for event in await here.log(outcome.run.id) if event.kind == "notice"]
    assert any("1 quotes for Q1 do not stand in their passage" in str(text) for text in said)


@pytest.mark.requirement("X-01")
@pytest.mark.parametrize("number", [99, -99])
async def test_a_quote_from_a_passage_that_was_not_given_costs_only_itself(lab: Make, number: int) -> None:
    async def read(real: Any, request: ReadRequest) -> list[Quote]:
        own = await real(request)
        return [own[0].model_copy(update={"passage": number}), *own]

    here = lab(read=read)
    here.holds(*LAKE)

    outcome = await here.ask(QUESTION)

    assert outcome.report is not None
    assert outcome.report.status == "complete"
    assert (await here.state(outcome))["failures"] == {}


@pytest.mark.requirement("X-01", "X-02")
@pytest.mark.parametrize("about", ["nothing that was ever found", "carries 60 passengers"])
async def test_a_statement_without_a_span_that_says_it_is_not_found(lab: Make, about: str) -> None:
    text = "Lake Marrow holds the oldest salt of the continent."
    here = lab(extract_claims=claiming(text, about=about))
    here.holds(*LAKE)

    report = await here.report("How large is Lake Marrow, and who runs the ferry that carries passengers?")

    assert verdict_of(report, text) is not Verdict.SUPPORTED
    assert text not in everything(report)
    assert facts(report)


@pytest.mark.requirement("X-01", "X-03")
async def test_a_sentence_retold_with_another_number_falls_back_to_the_words_of_its_claim(lab: Make) -> None:
    def retold(claims: Sequence[Claim]) -> DraftSentence:
        area = next(claim for claim in claims if "412" in claim.text)
        return DraftSentence(text=area.text.replace("412", "421"), claims=(area.id,))

    here = lab(write=writing(retold), judge=believes)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert "421" not in everything(report)  # the ids of a run may hold any digits
    *_, replaced = next(section for section in report.sections if section.title == "Also").sentences
    assert "412 square kilometres" in replaced.text
    assert replaced.kind == "fact"


@pytest.mark.requirement("X-01")
async def test_a_sentence_bound_to_what_is_not_supported_or_not_known_is_dropped(lab: Make) -> None:
    wrong = "Lake Marrow covered 999 square kilometres in 2019."

    def unsupported(claims: Sequence[Claim]) -> DraftSentence:
        return DraftSentence(text=wrong, claims=(next(claim.id for claim in claims if claim.text == wrong),))

    def unknown(claims: Sequence[Claim]) -> DraftSentence:
        return DraftSentence(text="Lake Marrow is bottomless.", claims=("C999",))

    here = lab(extract_claims=claiming(wrong, about="412"), write=writing(unsupported, unknown), judge=believes)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert "999" not in everything(report)
    assert "bottomless" not in everything(report)
    assert report.status == "complete"


@pytest.mark.requirement("X-01")
@pytest.mark.parametrize(
    "text", ["Lake Marrow will be gone by 2031.", "The engineer Ilse Brandt drained it on purpose."]
)
async def test_a_fact_that_is_bound_to_nothing_is_not_published(lab: Make, text: str) -> None:
    here = lab(write=writing(lambda claims: DraftSentence(text=text)), judge=believes)
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert text not in everything(report)
    assert facts(report)


# verdicts and coverage


@pytest.mark.slow
@pytest.mark.requirement("X-02")
async def test_verdicts_are_typed_and_coverage_counts_what_was_dropped(lab: Make) -> None:
    plain = lab()
    plain.holds(*LAKE)
    before = (await plain.report(QUESTION)).coverage
    wrong = "Lake Marrow covered 999 square kilometres in 2019."
    here = lab(extract_claims=claiming(wrong, about="412"))
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert verdict_of(report, wrong) is Verdict.PARTLY
    assert before.checked == before.total > 0
    assert (report.coverage.checked, report.coverage.total) == (before.checked, before.total + 1)
    assert report.hallucination_score == pytest.approx(1 / report.coverage.total, abs=1e-3)


@pytest.mark.requirement("X-02")
async def test_coverage_counts_a_retold_sentence_that_failed(lab: Make) -> None:
    def retold(number: str) -> Callable[[Sequence[Claim]], DraftSentence]:
        def make(claims: Sequence[Claim]) -> DraftSentence:
            area = next(claim for claim in claims if "412" in claim.text)
            return DraftSentence(text=f"In 2019 Lake Marrow covered {number} square kilometres.", claims=(area.id,))

        return make

    here = lab(write=writing(retold("412"), retold("7")))
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert report.coverage.total == len(report.claims) + 2
    assert report.coverage.checked == report.coverage.total - 1


@pytest.mark.slow
@pytest.mark.requirement("X-02")
async def test_coverage_stays_sane_when_most_of_a_draft_is_unsupported(lab: Make) -> None:
    wrong = [f"Lake Marrow covered {number} square kilometres in 2019." for number in range(900, 930)]

    async def claims(real: Any, plan: Plan, evidence: Sequence[Evidence]) -> ClaimExtraction:
        own = (await real(plan, evidence)).claims
        findings = next(draft.findings for draft in own if "412" in str(draft.wordings))
        added = (DraftClaim(wordings=(t,), findings=findings, questions=("Q1",), relevance=0.5) for t in wrong)
        return ClaimExtraction(claims=(*own, *added))

    def bound(text: str) -> Callable[[Sequence[Claim]], DraftSentence]:
        return lambda claims: DraftSentence(text=text, claims=(next(c.id for c in claims if c.text == text),))

    here = lab(extract_claims=claims, write=writing(*map(bound, wrong)))
    here.holds(*LAKE)

    report = await here.report(QUESTION)

    assert report.coverage.total == len(report.claims)
    assert report.coverage.checked == len(report.claims) - len(wrong)


# deterministic checks overrule any judge


@pytest.mark.slow
@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    ("text", "about", "verdict"),
    [
        ("Lake Marrow covered 512 square kilometres in 2019.", "412", Verdict.PARTLY),
        ("Lake Marrow covered 412 square miles in 2019.", "412", Verdict.PARTLY),
        ("Lake Marrow covered 412 square kilometres in 2009.", "412", Verdict.PARTLY),
        ("Lake Marrow did not cover 412 square kilometres in 2019.", "412", Verdict.CONTRADICTED),
        ("Lake Marrow grew because a long drought dried up the river Tamsel.", "drought", Verdict.CONTRADICTED),
        ("Lake Marrow shrank because a long drought dried up the river Oder.", "drought", Verdict.PARTLY),
        ("The survey office detected a leak in the bed of Lake Marrow.", "leak", Verdict.CONTRADICTED),
        ("Children and their teachers enjoy tournaments of chess.", "drought", Verdict.PARTLY),
    ],
    ids=["number", "unit", "year", "negation", "direction", "name", "negation dropped", "another matter"],
)
async def test_a_false_figure_name_or_negation_is_caught_though_the_judge_believes_it(
    lab: Make, text: str, about: str, verdict: Verdict
) -> None:
    here = lab(extract_claims=claiming(text, about=about), judge=believes)
    here.holds(SURVEY, GUIDE)

    report = await here.report("How large is Lake Marrow, why did it shrink, and did the survey find a leak?")

    assert about in " ".join(document.text for document in (SURVEY, GUIDE))
    assert verdict_of(report, text) is verdict
    assert text not in everything(report)


@pytest.mark.requirement("X-03")
async def test_the_same_statement_without_the_fault_is_published(lab: Make) -> None:
    text = "Lake Marrow covered 412 square kilometres in the year 2019."
    here = lab(extract_claims=claiming(text, about="412"), judge=believes)
    here.holds(SURVEY, GUIDE)

    report = await here.report(QUESTION)

    assert verdict_of(report, text) is Verdict.SUPPORTED
    assert text in facts(report)


# Independence


@pytest.mark.requirement("S-10", "X-02")
async def test_two_independent_sources_earn_two_ticks(lab: Make) -> None:
    here = lab()
    here.holds(SURVEY, GAZETTE)

    report = await here.report("How large is Lake Marrow?", depth="quick")

    area = next(claim for claim in report.claims if "412" in claim.text)
    assert area.mark == "✓✓"
    assert {span.document for span in area.spans} == {SURVEY.hash, GAZETTE.hash}


@pytest.mark.requirement("S-10")
@pytest.mark.parametrize("how", ["syndicated", "same host", "digest"])
async def test_a_copy_or_the_same_publisher_is_no_second_witness(lab: Make, how: str) -> None:
    area = "Lake Marrow covered 412 square kilometres in 2019."
    copies = {
        "syndicated": [
            SURVEY,
            make_document(f"From our wire service. {SURVEY.text}", url="https://copy.example/1", title="Wire"),
        ],
        "same host": [
            make_document(f"{area} Anglers like the lake.", url="https://one.example/a", title="First"),
            make_document(f"A page on water. {area}", url="https://one.example/b", title="Second"),
        ],
        # A digest copies two pages that have nothing to do with each other, and vouches for neither.
        "digest": [
            make_document(
                f"{GUIDE.text} Lake Marrow is known for its ferry.", url="https://a.example/", title="Lake guide"
            ),
            SURVEY,
            make_document(f"{GUIDE.text} {SURVEY.text}", url="https://b.example/", title="Lake digest"),
        ],
    }
    here = lab()
    here.holds(*copies[how])

    report = await here.report("How large is Lake Marrow?", depth="quick")

    claim = next(claim for claim in report.claims if "412" in claim.text)
    assert len({span.document for span in claim.spans}) == 2
    assert claim.mark in ("✓", "⚠")
    groups = {card.document: card.group for card in report.sources}
    assert len({groups[span.document] for span in claim.spans}) == 1


# The example library has a syndicated copy, a contradiction, an outdated figure and an unanswered corner


@pytest.mark.slow
@pytest.mark.requirement("S-10")
def test_the_syndicated_wire_report_of_the_library_is_one_group_with_its_copy(library: LibraryRun) -> None:
    groups = {card.url.rsplit("/", 1)[-1]: card.group for card in library.report.sources}

    assert groups["wire-webb-rules-out-crowding.md"] == groups["courier-cosmic-puzzle-deepens.md"]
    assert len(set(groups.values())) == len(groups) - 1


@pytest.mark.requirement("S-10", "X-02")
def test_the_library_shows_a_disagreement_with_both_sides(library: LibraryRun) -> None:
    claims = {claim.id: claim for claim in library.report.claims}
    sides = [(c, claims[name]) for c in claims.values() for name in c.disputed_by]
    [section] = [s for s in library.report.sections if s.role == "disagreements"]
    shown = {name for sentence in section.sentences for name in sentence.claims}

    assert any("67.4 ± 0.5" in one.text and "73.04 ± 1.04" in other.text for one, other in sides)
    for one, other in sides:
        assert one.id in other.disputed_by
        assert one.id in shown or other.id in shown
    assert any({one.id, other.id} <= shown for one, other in sides)


def test_an_outdated_figure_is_said_to_be_superseded_and_not_stated_as_current(library: LibraryRun) -> None:
    claims = {claim.id: claim for claim in library.report.claims}
    old = next(c for c in claims.values() if "67.3 ± 1.2" in c.text and c.superseded_by)

    assert "67.4 ± 0.5" in claims[str(old.superseded_by)].text
    stating = {s.role for s in library.report.sections for sentence in s.sentences if old.id in sentence.claims}
    assert stating == {"disagreements"}


@pytest.mark.requirement("S-10")
def test_what_could_not_be_found_is_owned_up_to(library: LibraryRun) -> None:
    [section] = [s for s in library.report.sections if s.role == "not_found"]

    assert [s.text for s in section.sentences] == [
        "No source read in this run answered: “When will the disagreement be settled?”"
    ]
    assert library.state["analysis"]["unanswered"] == ["When will the disagreement be settled?"]
