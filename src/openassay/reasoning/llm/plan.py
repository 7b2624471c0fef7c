"""Prompts for a plan and its search queries: the model proposes them, code numbers them and keeps them within bounds.

`baseline` is what the rules made of the same input.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from openassay.errors import ReasoningError
from openassay.models.plan import MOST_QUERIES, TYPES_BY_DEPTH, Depth, Plan, QueryType, SearchQuery, SubQuestion
from openassay.reasoning.base import PlanRequest, QueryRequest, TypedQuery
from openassay.reasoning.llm.forms import (
    Line,
    OutputForm,
    Phrase,
    Score,
    Text,
    Texts,
    build_schema,
    choice_field,
    match_option,
)
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.reasoning.llm.understand import COMPLEXITIES
from openassay.text.words import content_words, fold, stems

PLAN_STEP = ReasoningStep(
    "plan",
    stage="plan",
    role="planner",
    output="plan",
    variables=("today", "question", "facts", "fewest", "most", "shape"),
)
QUERIES_STEP = ReasoningStep(
    "queries",
    stage="search",
    role="searcher",
    output="search queries",
    variables=("question", "topic", "tried", "task", "count", "types"),
)
# Sub-questions of a plan.
FEWEST = {Depth.QUICK: 1, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MOST = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_SMALL = {Depth.QUICK: 2, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MIN_OWN_WORDS = 0.75  # share of a sub-question's words that are the question's, for it to be a part of the question
MAX_MISSING_SIDES = 2  # sub-questions of the baseline that take the place of the model's last ones
MAX_BACKGROUND = 3000  # characters
MAX_QUERY = 200  # characters
SHAPES = {
    Depth.QUICK: "A short answer is wanted: few sub-questions, one section if that is enough.",
    Depth.STANDARD: "A report is wanted: each sub-question in the section it belongs to, three sections or more.",
    Depth.COMPREHENSIVE: "A thorough report is wanted: five sections or more, opposing views and limits among them.",
}
_PERIOD = re.compile(r"\d|\b(?:days?|weeks?|months?|quarters?|years?|decades?|today|recent\w*|now)\b", re.I)
_ADDRESS = re.compile(r"https?:|www\.|\bsite:", re.I)


class SubQuestionForm(OutputForm):
    text: Line
    section: Phrase = ""
    query1: Phrase = ""
    query2: Phrase = ""
    query3: Phrase = ""


class PlanOutputForm(OutputForm):
    reasoning: Texts = []
    questions: list[SubQuestionForm]
    method: Text = ""
    complexity: Text = choice_field(COMPLEXITIES)
    confidence: Score = 7.0
    warnings: Texts = []


class PlanPart(NamedTuple):
    """A sub-question with its section and its queries."""

    text: str
    section: str
    queries: list[str]


def build_plan_job(request: PlanRequest, baseline: Plan, today: str, small: bool) -> Job[PlanOutputForm, None, Plan]:
    """Ask for a plan, with all that is known besides the question, the person's own answers among it (S-02)."""
    depth, understanding = request.depth, request.understanding
    preset = _preset_sections(baseline)
    most = max((MOST_SMALL if small else MOST)[depth], len(preset))
    known = {
        "About": understanding.topic_focus or understanding.primary_subject,
        "Subjects": ", ".join(understanding.subjects),
        "Kind of question": understanding.query_class,
        "Period": understanding.temporal_scope,
        "Fields": ", ".join(request.domains),
        "Wanted": request.deliverable,
        "Background": request.context[:MAX_BACKGROUND],
        "Region of the person": request.preferences.region,
        "Language of the person": request.preferences.language,
    }
    facts = [f"{name}: {value}" for name, value in known.items() if value]
    facts += [f"Remembered of the person: {fact}" for fact in request.facts]
    facts += [f"The person was asked about {about} and answered: {answer}" for about, answer in request.answers.items()]
    values = {
        # A small model takes the day for the period that is asked about.
        "today": "" if small else f"Today is {today}.",
        "question": wrap_tag("message", understanding.question),
        "facts": wrap_tag("message", "\n".join(facts)),
        "fewest": str(FEWEST[depth]),
        "most": str(most),
        "shape": f"A short answer is wanted, with the sections {', '.join(preset)}." if preset else SHAPES[depth],
    }
    lists = {"questions": most, "reasoning": 0 if small else 4, "warnings": 0 if small else 3}
    lists |= {"method": 0, "confidence": 0} if small else {}
    return Job(
        PLAN_STEP,
        PlanOutputForm,
        build_schema(PlanOutputForm, "Plan", lists, {"section": preset} if preset else {}),
        build=lambda _: values,
        convert=lambda answer, _: convert_plan(answer, request, baseline, rated=not small),
    )


def _preset_sections(baseline: Plan) -> tuple[str, ...]:
    """Return the sections that people expect of an overview of a known company (C-10)."""
    return baseline.sections if baseline.depth is Depth.QUICK and len(baseline.sections) > 1 else ()


def convert_plan(answer: PlanOutputForm, request: PlanRequest, baseline: Plan, *, rated: bool = True) -> Plan:
    """Make a plan of an answer. `rated`: the model was asked how sure it is.

    What the person said holds, whatever the model made of it.
    """
    parts = _select_parts(answer, request, baseline, careful=request.depth is Depth.QUICK and not rated)
    subject = request.understanding.primary_subject or request.understanding.topic_focus
    period = request.answers.get("timeframe", "")
    period = period if _PERIOD.search(period) else ""
    questions = []
    for number, part in enumerate(parts, 1):
        own = set(stems(part.text))
        topic = ["" if set(stems(subject)) & own else subject, "" if set(stems(period)) <= own else period]
        named = ", ".join(filter(None, topic))
        questions.append(SubQuestion(id=f"Q{number}", text=part.text, section=part.section, topic=named))
    reasoning = tuple(answer.reasoning[:6])
    if reasoning:
        reasoning += tuple(f"Taken into account: {line}" for line in baseline.constraints)
    return Plan.model_validate(
        {
            **dict(baseline),
            "questions": tuple(questions),
            "queries": _build_queries(parts, request),
            "sections": tuple(dict.fromkeys((*_preset_sections(baseline), *(part.section for part in parts)))),
            "methodology": answer.method or baseline.methodology,
            "reasoning": reasoning or baseline.reasoning,
            "confidence": round(answer.confidence / 10, 2) if rated else baseline.confidence,
            "warnings": tuple(dict.fromkeys((*answer.warnings[:5], *baseline.warnings))),
            "estimated_complexity": match_option(answer.complexity, COMPLEXITIES, "moderate"),
        }
    )


def _select_parts(answer: PlanOutputForm, request: PlanRequest, baseline: Plan, *, careful: bool) -> list[PlanPart]:
    """Return the model's sub-questions and, where they are too few or miss a side the person chose, the baseline's."""
    own = []
    for item in answer.questions:
        queries = [text for query in (item.query1, item.query2, item.query3) if (text := query.strip(" ?!.\"'"))]
        if item.text:
            own.append(PlanPart(item.text, item.section or item.text.rstrip("?"), queries or [item.text]))
    if not own:
        raise ReasoningError("the plan has no sub-question")
    spare = [
        PlanPart(question.text, question.section, [q.text for q in baseline.queries if q.question == question.id])
        for question in baseline.questions
    ]
    if careful:  # a small model may take a question apart, but not turn it into another
        asked = set(stems(f"{baseline.goal} {' '.join(question.topic for question in baseline.questions)}"))
        stems_of = {part.text: set(stems(part.text)) for part in own}
        parts = [part for part in own if len(asked & stems_of[part.text]) >= MIN_OWN_WORDS * len(stems_of[part.text])]
        as_it_stands = spare[0]._replace(queries=[*spare[0].queries[:1], *(part.queries[0] for part in own)])
        own = parts if len(parts) > 1 else [as_it_stands]
    parts = list({fold(part.text): part for part in reversed(own)}.values())[::-1]
    asked = set(stems(request.understanding.question))
    planned = {stem for part in parts for stem in stems(" ".join((part.text, part.section, *part.queries)))}
    chosen = [set(stems(side)) - asked for side in request.answers.get("scope", "").split(";")]
    missing = [side for side in chosen if not side & planned]  # sides of which no word is in the model's plan
    forgotten = [part for part in spare if any(side & set(stems(part.text)) for side in missing)][:MAX_MISSING_SIDES]
    parts = [*parts[: MOST[request.depth] - len(forgotten)], *forgotten]
    texts = {fold(part.text) for part in parts}
    fewest = 1 if request.depth is Depth.QUICK else 3
    return parts + [part for part in spare if fold(part.text) not in texts][: max(0, fewest - len(parts))]


def _build_queries(parts: Sequence[PlanPart], request: PlanRequest) -> tuple[SearchQuery, ...]:
    """Send each sub-question's first query to every kind of source, then its other words to the web.

    The last of its queries names the person's region, unless one does anyway.
    """
    types = TYPES_BY_DEPTH[request.depth]
    region = content_words(request.preferences.region or "")
    queries: list[tuple[int, int, str, QueryType]] = []
    for number, part in enumerate(parts, 1):
        first, *others = list(dict.fromkeys(part.queries))[:3]
        named = set(stems(" ".join([*part.queries, request.understanding.question])))
        if region and not set(stems(" ".join(region))) <= named:
            others = [*others[:1], f"{first} {' '.join(region)}"]
        queries += [(1 if kind == types[0] else 2, number, first, kind) for kind in types]
        queries += [(3, number, text, types[0]) for text in others]
    queries.sort(key=lambda query: query[0])
    return tuple(
        SearchQuery(id=f"K{position}", text=text, question=f"Q{number}", type=kind, priority=priority)
        for position, (priority, number, text, kind) in enumerate(queries[:MOST_QUERIES], 1)
    )


class QueryForm(OutputForm):
    text: Phrase
    type: Text = "web"


class QueriesForm(OutputForm):
    queries: list[QueryForm]


def build_queries_job(request: QueryRequest, count: int) -> Job[QueriesForm, None, Sequence[TypedQuery]]:
    """Ask for variations of a sub-question, or for other words or sources where results were poor."""
    understanding = request.understanding
    about = [understanding.question, *understanding.subjects, understanding.temporal_scope or ""]
    tried = [f"{item.query.text} ({item.query.type}): {item.hits} results" for item in request.tried]
    tried += [text for text in request.planned if all(text != item.query.text for item in request.tried)]
    values = {
        "question": wrap_tag("message", request.question.in_context),
        "topic": wrap_tag("message", "\n".join(filter(None, about))),
        "tried": wrap_tag("asked", number_lines(tried) or "none"),
        "task": "The queries so far brought too little: use other words, or another type."
        if request.tried
        else "Vary the words: synonyms, technical terms, names, the words an answer would use.",
        "count": str(count),
        "types": ", ".join(request.types),
    }
    return Job(
        QUERIES_STEP,
        QueriesForm,
        build_schema(QueriesForm, "Queries", {"queries": count}, {"type": request.types}),
        build=lambda _: values,
        convert=lambda answer, _: convert_queries(answer, request, count),
        task=request.question.id,
        share=request.share,
    )


def convert_queries(answer: QueriesForm, request: QueryRequest, count: int) -> Sequence[TypedQuery]:
    """Return the queries that can be searched for and were not asked before."""
    tried = {(fold(item.query.text), item.query.type) for item in request.tried}
    planned = {fold(text) for text in request.planned}
    queries: dict[tuple[str, str], TypedQuery] = {}
    for item in answer.queries:
        kind = match_option(item.type, request.types, request.types[0])
        key = (fold(item.text), kind)
        if is_searchable(item.text) and key not in tried and (request.tried or key[0] not in planned):
            queries.setdefault(key, TypedQuery(text=item.text, type=kind))
    if not queries:
        raise ReasoningError("no query differs from those already asked")
    return tuple(queries.values())[:count]


def is_searchable(text: str) -> bool:
    """Tell whether a text is words to search for: no address, which a model may not have fetched, and no markup."""
    return 0 < len(text) <= MAX_QUERY and not _ADDRESS.search(text) and not set(text) & set("<>{}[]|\\`")
