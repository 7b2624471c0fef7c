"""Questions to the person before planning."""

from collections.abc import Sequence
from typing import get_args

from assay.errors import ReasoningError
from assay.model.question import PlannerQuestion, Understanding
from assay.reasoning.language.answer import Answer, Line, Phrase, Text, nearest, one_of, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.text.words import fold

STEP = Step("questions", stage="gate", role="planner", thing="questions to you",
            variables=("question", "known", "most"))  # fmt: skip
ABOUT = get_args(PlannerQuestion.model_fields["about"].annotation)
OPTIONS = 4
LONGEST_OPTION = 80  # characters
ALL = "all of the above"


class Back(Answer):
    about: Text = one_of(ABOUT)
    text: Line
    a: Phrase
    b: Phrase
    c: Phrase
    d: Phrase
    several: bool = False


class Backs(Answer):
    questions: list[Back]


def job(
    understanding: Understanding, floor: Sequence[PlannerQuestion], small: bool
) -> Job[Backs, None, Sequence[PlannerQuestion]]:
    most = 2 if small else 4

    def build(_: Sequence[None]) -> dict[str, str]:
        known = [f"Period: {understanding.temporal_scope}"] if understanding.temporal_scope else []
        known += [f"About: {understanding.topic_focus}"] if understanding.topic_focus else []
        question = tagged("message", understanding.question)
        return {"question": question, "known": "\n".join(known) or "Nothing more is known.", "most": str(most)}

    return Job(STEP, Backs, schema(Backs, "Questions", {"questions": most}), build,
               convert=lambda answer, _: convert(answer, understanding.question, floor, most))  # fmt: skip


def convert(answer: Backs, asked: str, floor: Sequence[PlannerQuestion], most: int) -> Sequence[PlannerQuestion]:
    """Small models give the person's own question back: its options are good, and the floor knows how to ask."""
    words = {question.about: question.text for question in floor}
    made: dict[str, PlannerQuestion] = {}
    for back in answer.questions:
        options = tuple(dict.fromkeys(option for option in (back.a, back.b, back.c, back.d) if option))
        about = nearest(back.about, ABOUT, "scope")
        text = back.text if fold(back.text) != fold(asked) else words.get(about, "")
        short = all(len(option) <= LONGEST_OPTION for option in options)
        if text and len(options) == OPTIONS and short and about not in made:
            several = back.several and not any(fold(option) == ALL for option in options)
            made[about] = PlannerQuestion(id=about, about=about, text=text, options=options, all_of_the_above=several)
    if not made:
        raise ReasoningError("no question has a text and four different, short options a, b, c, d")
    return list(made.values())[:most]
