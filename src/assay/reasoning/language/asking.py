"""Questions to the person before planning."""

from collections.abc import Collection, Mapping, Sequence
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
ALWAYS_THERE = frozenset({"custom", "other", "something else"})  # an answer of one's own can be given anyway
LONGEST_CONTEXT = 1500  # characters


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
    understanding: Understanding, known: Mapping[str, str], floor: Sequence[PlannerQuestion], small: bool
) -> Job[Backs, None, Sequence[PlannerQuestion]]:
    most = 2 if small else 4
    said = {about for about in ABOUT if known.get(about)}
    said |= {"timeframe"} if understanding.temporal_scope else set()

    def build(_: Sequence[None]) -> dict[str, str]:
        question = tagged("message", understanding.question)
        return {"question": question, "known": _known(understanding, known), "most": str(most)}

    return Job(STEP, Backs, schema(Backs, "Questions", {"questions": most}), build,
               convert=lambda answer, _: convert(answer, understanding.question, floor, most, said))  # fmt: skip


def _known(understanding: Understanding, known: Mapping[str, str]) -> str:
    facts = {
        "Period": understanding.temporal_scope,
        "About": understanding.topic_focus,
        "Subjects": ", ".join(understanding.subjects),
        **known,
    }
    lines = [f"{name}: {value[:LONGEST_CONTEXT]}" for name, value in facts.items() if value]
    return tagged("conversation", "\n".join(lines)) if lines else "Nothing more is known."


def convert(
    answer: Backs, asked: str, floor: Sequence[PlannerQuestion], most: int, said: Collection[str] = ()
) -> Sequence[PlannerQuestion]:
    """What was `said` is not asked. Small models give the person's own question back: its options are good, and the
    floor knows how to ask."""
    words = {question.about: question.text for question in floor}
    made: dict[str, PlannerQuestion] = {}
    for back in answer.questions:
        about = nearest(back.about, ABOUT, "scope")
        options = _options(back)
        text = back.text if fold(back.text) != fold(asked) else words.get(about, "")
        if text and len(options) == OPTIONS and about not in made and about not in said:
            several = back.several and not any(fold(option) == ALL for option in options)
            made[about] = PlannerQuestion(id=about, about=about, text=text, options=options, all_of_the_above=several)
    if not made:
        raise ReasoningError("no question about what is still open has four different, short options a, b, c, d")
    return list(made.values())[:most]


def _options(back: Back) -> tuple[str, ...]:
    """Those that can be told apart and read at a glance."""
    given = {fold(option).strip(" ."): option for option in (back.a, back.b, back.c, back.d) if option}
    return tuple(given[key] for key in given if key not in ALWAYS_THERE and len(given[key]) <= LONGEST_OPTION)
