"""Questions about two things, and those for yes or no: what is asked of each side, and what is told."""

from collections.abc import Sequence
from datetime import date

import pytest

from openassay.models.evidence import Claim, QuoteSpan, Verdict
from openassay.models.plan import Depth, Plan, Understanding
from openassay.models.report import DerivedFigure
from openassay.nodes.report import select_answers
from openassay.protocols import SupportScore
from openassay.reasoning.base import DraftAnswer, PlanRequest, WriteRequest
from openassay.reasoning.rules import RuleReasoner
from openassay.reasoning.rules.pair_answers import PairAnswer, find_pair_answer
from openassay.reasoning.rules.plan import make_plan
from openassay.reasoning.rules.short_answers.options import exclude_other
from openassay.text.answer_reader import AnswerReader
from openassay.text.days import DayRange, find_days
from openassay.text.pairs import parse_pair
from openassay.text.questions import state_question

READER = AnswerReader()
KESTREL = "The Kestrel satellite was launched on 12 June 2008 from a base on the coast."
HERON = "The Heron satellite was launched last Friday after two delays."
OWL = "The Owl satellite weighs two tonnes and will watch the sea."
PUBLISHED = "2008-07-07"


@pytest.mark.parametrize(
    ("question", "kind", "asked"),
    [
        ("Which was launched first, Kestrel or Heron?", "order",
         ("When was it that Kestrel was launched?", "When was it that Heron was launched?")),
        ("Of Kestrel and Heron, which was launched later?", "order",
         ("When was it that Kestrel was launched?", "When was it that Heron was launched?")),
        ("Which came first, the vote or the strike?", "order", ("When was the vote?", "When was the strike?")),
        ("Did the fire end before the roof fell?", "order",
         ("When did the fire end?", "When was it that the roof fell?")),
        ("Did the fire start before the explosion?", "order", ("When did the fire start?", "When was the explosion?")),
        ("How long after the crash was the report published?", "span",
         ("When was the crash?", "When was the report published?")),
        ("How many days passed between the vote and the signing?", "span",
         ("When was the vote?", "When was the signing?")),
        ("Which city has the larger population, Ostrey or Quill?", "more",
         ("What is the population of Ostrey?", "What is the population of Quill?")),
        ("Which crash cost more lives, the one in Ostrey or the one in Quill?", "more",
         ("How many lives, the one in Ostrey?", "How many lives, the one in Quill?")),
        ("Did Ada Quill live to a greater age than Tom Varn?", "more",
         ("What age Ada Quill live to?", "What age Tom Varn?")),
        ("How many more people were killed in Ostrey than in Quill?", "more",
         ("How many people were killed in Ostrey?", "How many people were killed in Quill?")),
        ("How many days apart were the crash in Ostrey and the one in Quill?", "span",
         ("When was the crash in Ostrey?", "When was the one in Quill?")),
        ("On 4 May 2009, did Ostrey or Quill have more cases, and how many more?", "more",
         ("On 4 May 2009, how many cases did Ostrey have?", "On 4 May 2009, how many cases did Quill have?")),
        ("Which of the two ships was launched first, the Kestrel or the Heron?", "order",
         ("When was it that the Kestrel was launched?", "When was it that the Heron was launched?")),
    ],
)  # fmt: skip
def test_each_side_is_asked_alone(question: str, kind: str, asked: tuple[str, str]) -> None:
    found = parse_pair(question)
    assert found is not None
    assert (found.kind, found.asked) == (kind, asked)


@pytest.mark.parametrize(
    "question",
    [
        "When was the tower built?",
        "Who was the first president?",
        "Is the town on a lake or on a river?",
        "Which disaster was worse, and why?",
        "Had it passed a test not long before the fire?",
        "How long did it take to build the tower?",
        "How many days lay between Ostrey beating Quill and knocking out Lund?",
    ],
)
def test_other_questions_have_no_sides(question: str) -> None:
    assert parse_pair(question) is None


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("12 June 2008", date(2008, 6, 12), date(2008, 6, 12)),
        ("December 30", date(2007, 12, 30), date(2007, 12, 30)),
        ("May 2008", date(2008, 5, 1), date(2008, 5, 31)),
        ("1999", date(1999, 1, 1), date(1999, 12, 31)),
        ("last Friday evening", date(2008, 1, 4), date(2008, 1, 4)),
        ("today", date(2008, 1, 7), date(2008, 1, 7)),
        ("yesterday", date(2008, 1, 6), date(2008, 1, 6)),
        ("March 7", date(2008, 3, 7), date(2008, 3, 7)),
        ("May 7", date(2007, 5, 7), date(2007, 5, 7)),
    ],
)
def test_a_day_is_told_by_itself_or_by_that_of_publication(text: str, first: date, last: date) -> None:
    assert find_days(text, date(2008, 1, 7)) == DayRange(first, last)


def test_several_days_and_none_are_no_day() -> None:
    assert find_days("7 July or 8 July 2008", None) is None
    assert find_days("last Friday", None) is None
    assert find_days("after two delays", date(2008, 1, 7)) is None


def build_claim(number: int, quote: str, document: str) -> Claim:
    span = QuoteSpan(document=document, start=0, end=len(quote), quote=quote)
    return Claim(id=f"C{number}", text=quote, questions=("Q1",), spans=(span,), verdict=Verdict.SUPPORTED)


def plan_for(question: str) -> Plan:
    understanding = Understanding(question=question, query_class="fact")
    return make_plan(PlanRequest(understanding=understanding, depth=Depth.STANDARD), company=False)


def find_pair(question: str, quotes: Sequence[str]) -> PairAnswer | None:
    claims = [build_claim(number, quote, f"d{number}") for number, quote in enumerate(quotes)]
    dates = {span.document: PUBLISHED for claim in claims for span in claim.spans}
    return find_pair_answer(plan_for(question), claims, READER, {}, dates, {})


def test_a_plan_has_a_sub_question_for_each_side_and_asks_one_thing() -> None:
    plan = plan_for("Which was launched first, Kestrel or Heron?")
    assert [question.text for question in plan.questions] == [
        "When was it that Kestrel was launched?",
        "When was it that Heron was launched?",
    ]
    assert plan.asks_one_thing
    assert len(plan.sections) == 1


def test_what_came_first_is_told_by_both_days() -> None:
    found = find_pair("Which was launched first, Kestrel or Heron?", (KESTREL, HERON))
    assert found is not None
    assert found.answer.text == "Kestrel"
    assert found.answer.derived == (DerivedFigure(value=22, operation="days", operands=("2008-06-12", "2008-07-04")),)
    assert found.told == ("C0", "C1")
    assert "2008-07-04" in found.note.text


def test_which_came_later_and_whether_one_came_before() -> None:
    later = find_pair("Which was launched later, Kestrel or Heron?", (KESTREL, HERON))
    before = find_pair("Was Kestrel launched after Heron was launched?", (KESTREL, HERON))
    assert later is not None
    assert before is not None
    assert (later.answer.text, before.answer.text) == ("Heron", "No")


def test_how_long_lay_between_is_counted_in_days() -> None:
    found = find_pair("How long after Kestrel was launched was Heron launched?", (KESTREL, HERON))
    assert found is not None
    assert found.answer.text == "22 days"


def test_of_one_side_alone_nothing_is_told() -> None:
    assert find_pair("Which was launched first, Kestrel or Owl?", (KESTREL, OWL)) is None
    assert find_pair("Which was launched first, Kestrel or Heron?", (KESTREL,)) is None


def test_the_day_of_a_document_stands_in_where_its_title_names_the_side() -> None:
    claims = [build_claim(0, KESTREL, "d0"), build_claim(1, OWL, "d1")]
    question = "Which was launched first, Kestrel or Owl?"
    dates, titles = {"d1": "2008-07-20"}, {"d1": "Owl satellite in orbit"}
    found = find_pair_answer(plan_for(question), claims, READER, titles, dates, {})
    assert found is not None
    assert found.answer.text == "Kestrel"
    assert "the day on which a document was published, 2008-07-20" in found.note.text
    # Within a week of each other its report does not tell which came first.
    assert find_pair_answer(plan_for(question), claims, READER, titles, {"d1": "2008-06-16"}, {}) is None


def test_who_has_more_is_told_by_both_figures() -> None:
    quotes = ("Ostrey has a population of 3,559 people.", "Quill has a population of 12,400 people.")
    found = find_pair("Which town has the larger population, Ostrey or Quill?", quotes)
    assert found is not None
    assert found.answer.text == "Quill"
    fewer = find_pair("Which town has the smaller population, Ostrey or Quill?", quotes)
    assert fewer is not None
    assert fewer.answer.text == "Ostrey"


def test_how_far_apart_two_things_are_is_told_besides() -> None:
    asked = parse_pair("Which was launched first, Kestrel or Heron, and how many days lay between them?")
    assert asked is not None
    assert asked.difference == "besides"
    found = find_pair(
        "Which was launched first, Kestrel or Heron, and how many days lay between them?", (KESTREL, HERON)
    )
    assert found is not None
    assert found.answer.text == "Kestrel, by 22 days"


def test_how_many_more_is_the_difference() -> None:
    quotes = ("In Ostrey 1,250 people were killed by the flood.", "In Quill 1,200 people were killed by the flood.")
    found = find_pair("How many more people were killed in Ostrey than in Quill?", quotes)
    assert found is not None
    assert found.answer.text == "50"


def test_a_choice_stands_only_if_its_figure_comes_about() -> None:
    claims = {"C1": build_claim(1, "Ostrey has 12 ferries.", "d1"), "C2": build_claim(2, "Quill has 5 ferries.", "d2")}

    def choose(value: float, *operands: float) -> tuple[DraftAnswer, ...]:
        figure = DerivedFigure(value=value, operation="difference", operands=operands)
        return select_answers([DraftAnswer(text="Ostrey", claims=("C1", "C2"), derived=(figure,), chosen=True)], claims)

    assert choose(7, 12, 5)
    assert not choose(8, 12, 5)
    assert not choose(8, 13, 5)


def test_of_two_answers_that_cannot_both_hold_each_is_less_likely() -> None:
    assert exclude_other(0.8, 0.0) == pytest.approx(0.8)
    assert exclude_other(0.8, 0.5) == pytest.approx(2 / 3)
    assert exclude_other(0.7, 0.65) < 0.5
    assert exclude_other(1.0, 0.9) == 1.0


@pytest.mark.parametrize(
    ("question", "statement"),
    [
        ("Was Ada Quill born in Ostrey?", "Ada Quill born in Ostrey."),
        ("According to the ministry, did the ferry sink?", "According to the ministry, the ferry sink."),
        ("When was Ada Quill born?", None),
        ("Is it a lake or a river?", None),
    ],
)
def test_a_question_for_yes_or_no_states_something(question: str, statement: str | None) -> None:
    assert state_question(question) == statement


class OneScore:
    """A verifier that is of one mind."""

    name = "one"

    def __init__(self, supported: float, refuted: float) -> None:
        self._score = SupportScore(supported, refuted)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        return [self._score for _ in pairs]

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [one.supported for one in self.scores(pairs)]

    def dependence(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.0 for _ in pairs]


@pytest.mark.parametrize(
    ("supported", "refuted", "told"),
    [(0.9, 0.1, ["Yes"]), (0.2, 0.8, ["No"]), (0.6, 0.2, []), (0.9, 0.6, []), (0.5, 0.8, [])],
)
async def test_yes_or_no_is_told_where_the_verifier_is_sure(supported: float, refuted: float, told: list[str]) -> None:
    reasoner = RuleReasoner(None, OneScore(supported, refuted), None, READER)  # type: ignore[arg-type]
    request = WriteRequest(
        plan=plan_for("Was the Kestrel satellite launched in June?"), claims=(build_claim(1, KESTREL, "d1"),)
    )
    draft = await reasoner.write(request)
    assert [answer.text for answer in draft.answers] == told
