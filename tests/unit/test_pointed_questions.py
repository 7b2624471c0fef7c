"""Questions for one thing: which they are, and what is spared of them."""

import pytest

from openassay.models.plan import Depth, Understanding
from openassay.reasoning.base import PlanRequest
from openassay.reasoning.rules.plan import make_plan
from openassay.reasoning.rules.understand import classify_question
from openassay.text.questions import is_pointed


@pytest.mark.parametrize(
    "question",
    [
        "Who was the ambassador to Korea in 1970?",
        "When did Japan sign the Okinawa reversion agreement?",
        "In which year was NATO founded?",
        "Where was Napoleon born?",
        "How many people live in Oslo?",
        "What is the population of Seoul?",
        "Which country won the World Cup in 1998?",
        "Who is the CEO of Nvidia?",
        "What position did the captain of the winning team play?",
        "When the minister first resigned after the 2015 election, whom did she suggest as acting leader?",
        f"What proportion of the people who were {'surveyed in 2006 in five large cities ' * 2}feared for their work?",
    ],
)
def test_questions_for_one_thing(question: str) -> None:
    assert is_pointed(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who was Marie Curie?",
        "What is quantum computing?",
        "Why did the Aral Sea shrink?",
        "How is remote work?",
        "Which risks does Apple face?",
        "Which films did Nolan direct?",
        "Who founded Microsoft and when?",
        "How many ships were lost, and why?",
        "What effect did the war have on trade?",
        "What happened in Ostrey?",
        "What did the council decide about the port?",
        "What risks does Apple face?",
    ],
)
def test_questions_for_more(question: str) -> None:
    assert not is_pointed(question)


def plan_for(question: str, depth: Depth, **answers: str) -> tuple[int, bool]:
    understanding = Understanding(
        question=question, query_class=classify_question(question), topic_focus="the ambassador to Korea"
    )
    plan = make_plan(PlanRequest(understanding=understanding, depth=depth, answers=answers), company=False)
    return len(plan.questions), plan.pointed


def test_one_sub_question_does_unless_more_is_wanted() -> None:
    question = "Who was the ambassador to Korea in 1970?"
    assert plan_for(question, Depth.STANDARD) == (1, True)
    assert plan_for(question, Depth.COMPREHENSIVE) == (5, False)
    sub_questions, pointed = plan_for(question, Depth.STANDARD, scope="his staff")
    assert sub_questions > 1
    assert not pointed
