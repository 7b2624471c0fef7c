"""A plan made for the question: the model's sub-questions and queries, numbered and kept within bounds by code."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from assay.errors import ReasoningError
from assay.model.plan import MOST_QUERIES, TYPES_BY_DEPTH, Plan, QueryType, SearchQuery, SubQuestion
from assay.model.question import Depth
from assay.reasoning.language.answer import Answer, Line, Phrase, Score, Text, Texts, nearest, one_of, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.language.understanding import COMPLEXITIES
from assay.reasoning.protocol import PlanRequest
from assay.text.words import content_words, fold, stems

STEP = Step("plan", stage="plan", role="planner", thing="plan",
            variables=("today", "question", "facts", "fewest", "most", "shape"))  # fmt: skip
FEWEST = {Depth.QUICK: 1, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MOST = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_IN_LITTLE_ROOM = {Depth.QUICK: 2, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
OWN_WORDS = 0.75  # of a sub-question, for it to be a part of the question
MOST_FORGOTTEN = 2  # sides of the floor's that take the place of the model's last sub-questions
LONGEST_CONTEXT = 3000  # characters
SHAPES = {
    Depth.QUICK: "A short answer is wanted: few sub-questions, one section if that is enough.",
    Depth.STANDARD: "A report is wanted: each sub-question in the section it belongs to, three sections or more.",
    Depth.COMPREHENSIVE: "A thorough report is wanted: five sections or more, opposing views and limits among them.",
}


class PlannedQuestion(Answer):
    text: Line
    section: Phrase = ""
    query1: Phrase = ""
    query2: Phrase = ""
    query3: Phrase = ""


class Planned(Answer):
    reasoning: Texts = []
    questions: list[PlannedQuestion]
    method: Text = ""
    complexity: Text = one_of(COMPLEXITIES)
    confidence: Score = 7.0
    warnings: Texts = []


class _Part(NamedTuple):
    text: str
    section: str
    queries: list[str]


def job(request: PlanRequest, floor: Plan, today: str, small: bool) -> Job[Planned, None, Plan]:
    depth = request.depth
    given = _given(floor)
    most = max((MOST_IN_LITTLE_ROOM if small else MOST)[depth], len(given))

    def build(_: Sequence[None]) -> dict[str, str]:
        return {
            # A small model takes the day for the period that is asked about.
            "today": "" if small else f"Today is {today}.",
            "question": tagged("message", request.understanding.question),
            "facts": _facts(request),
            "fewest": str(FEWEST[depth]),
            "most": str(most),
            "shape": SHAPES[depth] if not given else f"A short answer is wanted, with the sections {', '.join(given)}.",
        }

    lists = {"questions": most, "reasoning": 0 if small else 4, "warnings": 0 if small else 3}
    lists |= {"method": 0, "confidence": 0} if small else {}
    form = schema(Planned, "Plan", lists, {"section": given} if given else {})
    return Job(STEP, Planned, form, build, lambda answer, _: convert(answer, request, floor, judged=not small))


def _given(floor: Plan) -> tuple[str, ...]:
    """A known company's overview has sections of its own, which people who ask for one expect (C-10)."""
    return floor.sections if floor.depth is Depth.QUICK and len(floor.sections) > 1 else ()


def _facts(request: PlanRequest) -> str:
    """What is known besides the question, the person's own answers among it (S-02)."""
    asked = request.understanding
    known = {
        "About": asked.topic_focus or asked.primary_subject,
        "Subjects": ", ".join(asked.subjects),
        "Kind of question": asked.query_class,
        "Period": asked.temporal_scope,
        "Fields": ", ".join(request.domains),
        "Wanted": request.deliverable,
        "Background": request.context[:LONGEST_CONTEXT],
        "Region of the person": request.preferences.region,
        "Language of the person": request.preferences.language,
    }
    lines = [f"{name}: {value}" for name, value in known.items() if value]
    lines += [f"Remembered of the person: {fact}" for fact in request.facts]
    lines += [f"The person was asked about {about} and answered: {answer}" for about, answer in request.answers.items()]
    return tagged("message", "\n".join(lines))


def convert(answer: Planned, request: PlanRequest, floor: Plan, *, judged: bool = True) -> Plan:
    """`judged`: the model was asked how sure it is. What the person said holds whatever the model made of it."""
    depth = request.depth
    parts = _parts(answer, request, floor, careful=depth is Depth.QUICK and not judged)
    questions = tuple(
        SubQuestion(id=f"Q{n}", text=part.text, section=part.section, topic=_topic(part.text, request))
        for n, part in enumerate(parts, 1)
    )
    return Plan.model_validate(
        {
            **dict(floor),
            "questions": questions,
            "queries": _queries([_placed(part, request) for part in parts], depth),
            "sections": tuple(dict.fromkeys((*_given(floor), *(part.section for part in parts)))),
            "methodology": answer.method or floor.methodology,
            "reasoning": _reasoning(answer, floor),
            "confidence": round(answer.confidence / 10, 2) if judged else floor.confidence,
            "warnings": tuple(dict.fromkeys((*answer.warnings[:5], *floor.warnings))),
            "estimated_complexity": nearest(answer.complexity, COMPLEXITIES, "moderate"),
        }
    )


def _reasoning(answer: Planned, floor: Plan) -> tuple[str, ...]:
    own = tuple(answer.reasoning[:6])
    return (*own, *(f"Taken into account: {line}" for line in floor.constraints)) if own else floor.reasoning


def _parts(answer: Planned, request: PlanRequest, floor: Plan, *, careful: bool) -> list[_Part]:
    """The model's sub-questions, made up by those of the floor: to the fewest a plan may have, and with the sides the
    person chose where the model forgot them."""
    own = [_part(item) for item in answer.questions if item.text]
    if not own:
        raise ReasoningError("the plan has no sub-question")
    spare = [
        _Part(question.text, question.section, [q.text for q in floor.queries if q.question == question.id])
        for question in floor.questions
    ]
    if careful:
        own = _kept_to(floor, own)
    distinct = list({fold(part.text): part for part in reversed(own)}.values())[::-1]
    forgotten = [part for part in spare if _forgotten(part, request, distinct)][:MOST_FORGOTTEN]
    distinct = [*distinct[: MOST[request.depth] - len(forgotten)], *forgotten]
    known = {fold(part.text) for part in distinct}
    fewest = 1 if request.depth is Depth.QUICK else 3
    distinct += [part for part in spare if fold(part.text) not in known][: max(0, fewest - len(distinct))]
    return distinct


def _forgotten(part: _Part, request: PlanRequest, made: Sequence[_Part]) -> bool:
    """Whether it stands for a side the person chose, of which no word is left in the model's plan."""
    asked, text = set(stems(request.understanding.question)), set(stems(part.text))
    planned = {stem for other in made for stem in stems(" ".join((other.text, other.section, *other.queries)))}
    sides = (set(stems(side)) - asked for side in request.answers.get("scope", "").split(";"))
    return any(side & text and not side & planned for side in sides)


def _kept_to(floor: Plan, own: Sequence[_Part]) -> list[_Part]:
    """A small model may take a question apart, but not turn it into another: where its sub-questions are no parts of
    it, the question is asked as it stands, with the model's words among the queries."""
    asked = set(stems(f"{floor.goal} {' '.join(question.topic for question in floor.questions)}"))
    parts = [part for part in own if len(asked & set(said := stems(part.text))) >= OWN_WORDS * len(set(said))]
    if len(parts) > 1:
        return parts
    first = floor.questions[0]
    planned = [query.text for query in floor.queries if query.question == first.id]
    return [_Part(first.text, first.section, [*planned[:1], *(part.queries[0] for part in own)])]


def _part(item: PlannedQuestion) -> _Part:
    queries = [text for query in (item.query1, item.query2, item.query3) if (text := query.strip(" ?!.\"'"))]
    return _Part(item.text, item.section or item.text.rstrip("?"), queries or [item.text])


_PERIOD = re.compile(r"\d|\b(?:days?|weeks?|months?|quarters?|years?|decades?|today|recent\w*|now)\b", re.I)


def _topic(text: str, request: PlanRequest) -> str:
    """What the whole question is about, for a sub-question that does not name it, and the period the person chose."""
    asked = request.understanding
    period = chosen if _PERIOD.search(chosen := request.answers.get("timeframe", "")) else ""
    subject = asked.primary_subject or asked.topic_focus
    parts = ["" if set(stems(subject)) & set(stems(text)) else subject]
    parts.append("" if set(stems(period)) <= set(stems(text)) else period)
    return ", ".join(part for part in parts if part)


def _placed(part: _Part, request: PlanRequest) -> _Part:
    """The last of its queries with the person's region, unless one has it."""
    region = content_words(request.preferences.region or "")
    named = set(stems(" ".join([*part.queries, request.understanding.question])))
    if not region or set(stems(" ".join(region))) <= named:
        return part
    queries = list(dict.fromkeys(part.queries))
    return part._replace(queries=[queries[0], *queries[1:2], f"{queries[0]} {' '.join(region)}"])


def _queries(parts: Sequence[_Part], depth: Depth) -> tuple[SearchQuery, ...]:
    """Each sub-question's first query to every kind of source, then its other words to the web."""
    types = TYPES_BY_DEPTH[depth]
    wanted: list[tuple[int, int, str, QueryType]] = []
    for number, part in enumerate(parts, 1):
        first, *others = list(dict.fromkeys(part.queries))[:3]
        wanted += [(1 if kind == types[0] else 2, number, first, kind) for kind in types]
        wanted += [(3, number, text, types[0]) for text in others]
    wanted.sort(key=lambda item: item[0])
    return tuple(
        SearchQuery(id=f"K{n}", text=text, question=f"Q{number}", type=kind, priority=priority)
        for n, (priority, number, text, kind) in enumerate(wanted[:MOST_QUERIES], 1)
    )
