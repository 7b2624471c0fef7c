"""How sure a report may call itself."""

from typing import Any

import pytest

from benchmarks.evaluation.confidence import contains_answer
from openassay.models.evidence import Claim, Disagreement, Mark, QuoteSpan, Verdict
from openassay.models.plan import Plan, SubQuestion
from openassay.models.report import Section, Sentence, SourceCard
from openassay.nodes.confidence import (
    Lead,
    LeadSigns,
    describe_lead,
    find_lead,
    find_level,
    find_level_by_rule,
    rate_lead,
)
from openassay.reasoning.base import DraftAnswer

QUESTION = "Which area does Lake Marrow cover?"


def claim(name: str = "C1", document: str = "a", **changes: Any) -> Claim:
    text = "Lake Marrow covers an area of 310 square kilometres."
    span = QuoteSpan(document=document, start=0, end=len(text), quote=text)
    fields: dict[str, Any] = {"verdict": Verdict.SUPPORTED, "relevance": 1.0, "spans": (span,), "questions": ("Q1",)}
    return Claim(**{"id": name, "text": text, **fields, **changes})


def card(document: str, group: str) -> SourceCard:
    return SourceCard(id=document, title="Lakes", url="", document=document, group=group, why_used="")


def plan(*names: str) -> Plan:
    asked = tuple(SubQuestion(id=name, text=QUESTION, section="Size", topic="Lake Marrow") for name in names)
    fields: dict[str, Any] = {"goal": QUESTION, "questions": asked}
    return Plan.model_construct(**fields)


@pytest.mark.requirement("F-13")
def test_a_report_leads_with_its_answer_or_its_first_statement() -> None:
    claims = {"C1": claim(), "C2": claim("C2", "b")}
    said = (
        Sentence(text="This is based on limited information.", kind="frame"),
        Sentence(text="So.", kind="fact", claims=("C2",)),
    )
    sections = [Section(title="Size", sentences=said)]
    answer = DraftAnswer(text="310 square kilometres", claims=("C1",), documents=("a", "b"))

    assert find_lead(sections, [answer], claims) == Lead(answer.text, (claims["C1"],), ("a", "b"))
    assert find_lead(sections, [], claims) == Lead("So.", (claims["C2"],), ("b",))
    assert find_lead([Section(title="Nothing")], [], claims) is None


@pytest.mark.requirement("F-13", "W-09")
def test_only_what_a_second_independent_source_says_is_of_high_confidence() -> None:
    confirmed = Lead("310 square kilometres", (claim(mark=Mark.CORROBORATED),), ("a", "b"))
    one_voice = Lead("310 square kilometres", (claim(mark=Mark.VERIFIED),), ("a", "b"))
    copies, apart = (
        {name: card(name, group) for name, group in zip("ab", groups, strict=True)} for groups in ("xx", "xy")
    )

    def level(lead: Lead, sources: dict[str, SourceCard], borne_out: float) -> str:
        return find_level(rate_lead(describe_lead(QUESTION, lead, sources, borne_out)), lead)

    assert level(confirmed, apart, 0.9) == "high"
    assert level(one_voice, apart, 0.9) == "medium"
    assert level(one_voice, copies, 1.0) == "medium"
    assert level(confirmed, apart, 0.1) != "high"


@pytest.mark.requirement("F-13")
def test_every_sign_raises_the_chance() -> None:
    none = LeadSigns(0.0, 0.0, 0.0, 0.0, 0.0)
    assert find_level(rate_lead(none), Lead("So.", (claim(),), ())) == "low"
    assert all(rate_lead(none._replace(**{name: 1.0})) > rate_lead(none) for name in none._fields)


@pytest.mark.requirement("F-13")
def test_where_a_model_judges_each_part_needs_two_sources_or_one_at_first_hand() -> None:
    first, second = claim(mark=Mark.CORROBORATED), claim("C2", "b", questions=("Q2",), mark=Mark.SINGLE)
    dispute = Disagreement(about="size", sides=(("C1",), ("C2",)), resolution="unresolved")
    asked = plan("Q1", "Q2")

    assert find_level_by_rule(asked, [first, second], [], {"b"}) == "high"
    assert find_level_by_rule(asked, [first, second], [], ()) == "medium"
    assert find_level_by_rule(asked, [first, second], [dispute], {"b"}) == "medium"
    assert find_level_by_rule(asked, [first], [], {"b"}) == "low"
    assert find_level_by_rule(asked, [first, second.model_copy(update={"verdict": Verdict.PARTLY})], [], {"b"}) == "low"


@pytest.mark.parametrize(
    ("text", "answer", "right"),
    [
        ("It was Elia Kazan.", "Elia Kazan", True),
        ("2019: (0.1); 2018: (0.1).", "0", False),
        ("Sales were $1,496.5 million.", "$1,496.5", True),
        ("Sales fell by 12.6.", "-12.6", True),
        ("It covers 31 hectares.", "310", False),
    ],
)
def test_an_answer_is_found_by_its_words_or_its_value(text: str, answer: str, right: bool) -> None:
    assert contains_answer(text, [answer]) is right
