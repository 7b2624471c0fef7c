"""A plan made for the question: the model's sub-questions and queries, numbered and kept within bounds by code."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple, get_args

from openassay.errors import ReasoningError
from openassay.models.plan import (
    LONGEST,
    MOST_QUERIES,
    SHORTEST,
    TYPES_BY_DEPTH,
    Depth,
    Intent,
    Plan,
    PlannerQuestion,
    QueryType,
    SearchQuery,
    SubQuestion,
    ThreadMessage,
    Understanding,
)
from openassay.reasoning.base import Conversation, PlanRequest, QueryRequest, TypedQuery
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
from openassay.text.sentences import split_sentences
from openassay.text.words import content_words, fold, stems

# Questions to the person before planning.

QUESTIONS_STEP = ReasoningStep("questions", stage="gate", role="planner", thing="questions to you",
            variables=("question", "known", "most"))  # fmt: skip
QUESTION_TOPICS = get_args(PlannerQuestion.model_fields["about"].annotation)
OPTIONS = 4
LONGEST_OPTION = 80  # characters
ALL_OPTION = "all of the above"
IMPLICIT_OPTIONS = frozenset({"custom", "other", "something else"})  # an answer of one's own can be given anyway
LONGEST_KNOWN = 1500  # characters


class QuestionForm(OutputForm):
    about: Text = choice_field(QUESTION_TOPICS)
    text: Line
    a: Phrase
    b: Phrase
    c: Phrase
    d: Phrase
    several: bool = False


class QuestionsForm(OutputForm):
    questions: list[QuestionForm]


def build_questions_job(
    understanding: Understanding, known: Mapping[str, str], floor: Sequence[PlannerQuestion], small: bool
) -> Job[QuestionsForm, None, Sequence[PlannerQuestion]]:
    most = 2 if small else 4
    said = {about for about in QUESTION_TOPICS if known.get(about)}
    said |= {"timeframe"} if understanding.temporal_scope else set()

    def build(_: Sequence[None]) -> dict[str, str]:
        question = wrap_tag("message", understanding.question)
        return {"question": question, "known": _format_known(understanding, known), "most": str(most)}

    return Job(
        QUESTIONS_STEP,
        QuestionsForm,
        build_schema(QuestionsForm, "Questions", {"questions": most}),
        build,
        convert=lambda answer, _: convert_questions(answer, understanding.question, floor, most, said),
    )


def _format_known(understanding: Understanding, known: Mapping[str, str]) -> str:
    facts = {
        "Period": understanding.temporal_scope,
        "About": understanding.topic_focus,
        "Subjects": ", ".join(understanding.subjects),
        **known,
    }
    lines = [f"{name}: {value[:LONGEST_KNOWN]}" for name, value in facts.items() if value]
    return wrap_tag("conversation", "\n".join(lines)) if lines else "Nothing more is known."


def convert_questions(
    answer: QuestionsForm, asked: str, floor: Sequence[PlannerQuestion], most: int, said: Collection[str] = ()
) -> Sequence[PlannerQuestion]:
    """What was `said` is not asked. Small models give the person's own question back: its options are good, and the
    floor knows how to ask."""
    words = {question.about: question.text for question in floor}
    made: dict[str, PlannerQuestion] = {}
    for back in answer.questions:
        about = match_option(back.about, QUESTION_TOPICS, "scope")
        options = _distinct_options(back)
        text = back.text if fold(back.text) != fold(asked) else words.get(about, "")
        if text and len(options) == OPTIONS and about not in made and about not in said:
            several = back.several and not any(fold(option) == ALL_OPTION for option in options)
            made[about] = PlannerQuestion(id=about, about=about, text=text, options=options, all_of_the_above=several)
    if not made:
        raise ReasoningError("no question about what is still open has four different, short options a, b, c, d")
    return list(made.values())[:most]


def _distinct_options(back: QuestionForm) -> tuple[str, ...]:
    """Those that can be told apart and read at a glance."""
    given = {fold(option).strip(" ."): option for option in (back.a, back.b, back.c, back.d) if option}
    return tuple(given[key] for key in given if key not in IMPLICIT_OPTIONS and len(given[key]) <= LONGEST_OPTION)


# Older turns of a thread in a few lines.

CONDENSE_STEP = ReasoningStep("condense", stage="publish", role="searcher", thing="summary of the conversation",
            variables=("summary", "turns", "words"), purpose="finish")  # fmt: skip
SUMMARY_WORDS = 120
LONGEST_OLD_TURN = 1500  # characters


class SummaryForm(OutputForm):
    summary: Text


def build_condense_job(turns: Sequence[ThreadMessage], summary: str) -> Job[SummaryForm, ThreadMessage, str]:
    def build(newest_first: Sequence[ThreadMessage]) -> dict[str, str]:
        lines = (f"{turn.role}: {turn.content[:LONGEST_OLD_TURN]}" for turn in reversed(newest_first))
        return {
            "summary": wrap_tag("conversation", summary or "(nothing yet)"),
            "turns": wrap_tag("conversation", "\n".join(lines)),
            "words": str(SUMMARY_WORDS),
        }

    return Job(
        CONDENSE_STEP,
        SummaryForm,
        build_schema(SummaryForm, "Summary"),
        build,
        lambda answer, _: convert_summary(answer),
        sources=tuple(reversed(turns)),
        shorten=_halve_turn,
    )


def _halve_turn(turn: ThreadMessage) -> ThreadMessage:
    return turn.model_copy(update={"content": turn.content[: len(turn.content) // 2]})


def convert_summary(answer: SummaryForm) -> str:
    """Whole sentences, as many as the words allow."""
    kept: list[str] = []
    for piece in split_sentences(answer.summary):
        if len(" ".join([*kept, piece.text]).split()) > SUMMARY_WORDS:
            break
        kept.append(piece.text)
    if not kept:
        raise ReasoningError(f"the summary is empty, or has no sentence of at most {SUMMARY_WORDS} words")
    return " ".join(kept)


# Understanding a message: what is asked, about what, and whether it can be asked at all.

UNDERSTAND_STEP = ReasoningStep("understand", stage="understand", role="planner", thing="understanding of the question",
            variables=("today", "conversation", "message", "guess"))  # fmt: skip
INTENTS: tuple[Intent, ...] = ("research", "follow_up", "compare", "more", "cancel", "small_talk", "unclear")
QUERY_CLASSES = get_args(Understanding.model_fields["query_class"].annotation)
COMPLEXITIES = get_args(Understanding.model_fields["complexity"].annotation)
LONGEST_TURN = 700  # characters; how an answer begins says what it was about
RESEARCH_INTENTS = ("research", "follow_up", "compare", "more")


class UnderstandingForm(OutputForm):
    intent: Text = choice_field(INTENTS)
    subjects: Texts = []
    question: Text
    kind: Text = choice_field(QUERY_CLASSES)
    topic: Phrase = ""
    period: Phrase = ""
    complexity: Text = choice_field(COMPLEXITIES)
    ambiguity: Score = 0.0
    must_ask: bool = False
    ask: Line = ""
    suggestions: Texts = []


def build_understand_job(
    message: str, conversation: Conversation, today: date, floor: Understanding, small: bool
) -> Job[UnderstandingForm, ThreadMessage, Understanding]:
    """A small model is given the floor's reading to correct: left to itself it took thanks for a question, and "the
    company" for a name. Of an empty message, what was answered when it was asked back is the message."""
    if not message.strip() and conversation.clarified:
        *before, message = conversation.clarified
        conversation = conversation.model_copy(update={"clarified": tuple(before)})

    def build(shown: Sequence[ThreadMessage]) -> dict[str, str]:
        return {
            "today": today.isoformat(),
            "conversation": _format_conversation(conversation, shown),
            "message": wrap_tag("message", message),
            "guess": _format_guess(floor) if small else "",
        }

    most = {"subjects": 4, "suggestions": 0 if small else 3}
    return Job(
        UNDERSTAND_STEP, UnderstandingForm, build_schema(UnderstandingForm, "Understood", most), build,
        convert=lambda answer, _: convert_understanding(answer, message, conversation, floor if small else None),
        sources=tuple(reversed(conversation.turns)), shorten=_halve_turn,
    )  # fmt: skip


def _format_conversation(conversation: Conversation, newest_first: Sequence[ThreadMessage]) -> str:
    lines = [f"Earlier: {conversation.summary}"] if conversation.summary else []
    lines += [f"{turn.role}: {turn.content[:LONGEST_TURN]}" for turn in reversed(newest_first)]
    if conversation.subject:
        lines.append(f"The conversation is about: {conversation.subject}")
    lines += [f"Asked back about the new message, the person answered: {answer}" for answer in conversation.clarified]
    return wrap_tag("conversation", "\n".join(lines)) if lines else "There is no conversation before this message."


def _format_guess(floor: Understanding) -> str:
    guess = {
        "intent": floor.intent,
        "subjects": floor.subjects,
        "question": floor.question,
        "kind": floor.query_class,
        "topic": floor.topic_focus,
        "period": floor.temporal_scope or "",
        "must_ask": floor.needs_clarification,
        "ask": floor.clarification_question or "",
    }
    told = wrap_tag("message", json.dumps(guess, ensure_ascii=False))
    return f"A first guess by simple rules. Keep what is right, correct what is wrong:\n{told}"


def convert_understanding(
    answer: UnderstandingForm, message: str, conversation: Conversation, floor: Understanding | None = None
) -> Understanding:
    """Where a small model names nothing that was said, the doubt of the `floor` counts."""
    subjects = tuple(answer.subjects[:4])
    question = _add_subjects(answer.question or " ".join(message.split()), subjects)
    if len(question) > LONGEST:
        raise ReasoningError(f"the question has more than {LONGEST} characters")
    intent = match_option(answer.intent, INTENTS, "research")
    ask = _find_clarification(answer, intent, question, conversation)
    if floor and not _mentions_subjects(subjects, message, conversation):
        ask = ask or floor.clarification_question
    return Understanding(
        question=question,
        intent="unclear" if ask else "research" if intent == "unclear" else intent,
        query_class=match_option(answer.kind, QUERY_CLASSES, "overview"),
        primary_subject=subjects[0] if subjects else answer.topic or None,
        subjects=subjects,
        topic_focus=answer.topic or ", ".join(subjects),
        temporal_scope=answer.period or None,
        complexity=match_option(answer.complexity, COMPLEXITIES, "moderate"),
        ambiguity_level=max(answer.ambiguity / 10, 0.7) if ask else min(answer.ambiguity / 10, 0.6),
        clarification_question=ask,
        suggested_questions=tuple(answer.suggestions[:3]),
    )


def _add_subjects(question: str, subjects: Sequence[str]) -> str:
    """A question stands alone if it names what it is about."""
    if not subjects or any(fold(subject) in fold(question) for subject in subjects):
        return question
    return f"{question.rstrip('?!. ')} ({', '.join(subjects)})?"


def _mentions_subjects(subjects: Sequence[str], message: str, conversation: Conversation) -> bool:
    turns = (turn.content for turn in conversation.turns)
    said = fold(" ".join([message, conversation.summary, conversation.subject or "", *conversation.clarified, *turns]))
    return any(fold(subject) in said for subject in subjects)


def _find_clarification(
    answer: UnderstandingForm, intent: Intent, question: str, conversation: Conversation
) -> str | None:
    """What the person is asked back, where something has to be known before anything can be looked for."""
    if intent not in (*RESEARCH_INTENTS, "unclear"):
        return None
    before = conversation.turns or conversation.summary or conversation.subject or conversation.clarified
    nothing_to_lean_on = intent in ("follow_up", "more") and not before and not answer.subjects
    if answer.must_ask or intent == "unclear" or nothing_to_lean_on or len(question) < SHORTEST:
        return answer.ask or f"What exactly would you like to know about “{answer.topic or question}”?"
    return None


PLAN_STEP = ReasoningStep("plan", stage="plan", role="planner", thing="plan",
            variables=("today", "question", "facts", "fewest", "most", "shape"))  # fmt: skip
FEWEST = {Depth.QUICK: 1, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MOST = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_IN_LITTLE_ROOM = {Depth.QUICK: 2, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
OWN_WORDS = 0.75  # of a sub-question, for it to be a part of the question
MOST_MISSING_SIDES = 2  # sides of the floor's that take the place of the model's last sub-questions
LONGEST_BACKGROUND = 3000  # characters
SHAPES = {
    Depth.QUICK: "A short answer is wanted: few sub-questions, one section if that is enough.",
    Depth.STANDARD: "A report is wanted: each sub-question in the section it belongs to, three sections or more.",
    Depth.COMPREHENSIVE: "A thorough report is wanted: five sections or more, opposing views and limits among them.",
}


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


class _PlanPart(NamedTuple):
    text: str
    section: str
    queries: list[str]


def build_plan_job(request: PlanRequest, floor: Plan, today: str, small: bool) -> Job[PlanOutputForm, None, Plan]:
    depth = request.depth
    given = _preset_sections(floor)
    most = max((MOST_IN_LITTLE_ROOM if small else MOST)[depth], len(given))

    def build(_: Sequence[None]) -> dict[str, str]:
        return {
            # A small model takes the day for the period that is asked about.
            "today": "" if small else f"Today is {today}.",
            "question": wrap_tag("message", request.understanding.question),
            "facts": _format_facts(request),
            "fewest": str(FEWEST[depth]),
            "most": str(most),
            "shape": SHAPES[depth] if not given else f"A short answer is wanted, with the sections {', '.join(given)}.",
        }

    lists = {"questions": most, "reasoning": 0 if small else 4, "warnings": 0 if small else 3}
    lists |= {"method": 0, "confidence": 0} if small else {}
    form = build_schema(PlanOutputForm, "Plan", lists, {"section": given} if given else {})
    return Job(
        PLAN_STEP, PlanOutputForm, form, build, lambda answer, _: convert_plan(answer, request, floor, judged=not small)
    )


def _preset_sections(floor: Plan) -> tuple[str, ...]:
    """A known company's overview has sections of its own, which people who ask for one expect (C-10)."""
    return floor.sections if floor.depth is Depth.QUICK and len(floor.sections) > 1 else ()


def _format_facts(request: PlanRequest) -> str:
    """What is known besides the question, the person's own answers among it (S-02)."""
    asked = request.understanding
    known = {
        "About": asked.topic_focus or asked.primary_subject,
        "Subjects": ", ".join(asked.subjects),
        "Kind of question": asked.query_class,
        "Period": asked.temporal_scope,
        "Fields": ", ".join(request.domains),
        "Wanted": request.deliverable,
        "Background": request.context[:LONGEST_BACKGROUND],
        "Region of the person": request.preferences.region,
        "Language of the person": request.preferences.language,
    }
    lines = [f"{name}: {value}" for name, value in known.items() if value]
    lines += [f"Remembered of the person: {fact}" for fact in request.facts]
    lines += [f"The person was asked about {about} and answered: {answer}" for about, answer in request.answers.items()]
    return wrap_tag("message", "\n".join(lines))


def convert_plan(answer: PlanOutputForm, request: PlanRequest, floor: Plan, *, judged: bool = True) -> Plan:
    """`judged`: the model was asked how sure it is. What the person said holds whatever the model made of it."""
    depth = request.depth
    parts = _select_parts(answer, request, floor, careful=depth is Depth.QUICK and not judged)
    questions = tuple(
        SubQuestion(id=f"Q{n}", text=part.text, section=part.section, topic=_find_topic(part.text, request))
        for n, part in enumerate(parts, 1)
    )
    return Plan.model_validate(
        {
            **dict(floor),
            "questions": questions,
            "queries": _build_queries([_add_region(part, request) for part in parts], depth),
            "sections": tuple(dict.fromkeys((*_preset_sections(floor), *(part.section for part in parts)))),
            "methodology": answer.method or floor.methodology,
            "reasoning": _build_reasoning(answer, floor),
            "confidence": round(answer.confidence / 10, 2) if judged else floor.confidence,
            "warnings": tuple(dict.fromkeys((*answer.warnings[:5], *floor.warnings))),
            "estimated_complexity": match_option(answer.complexity, COMPLEXITIES, "moderate"),
        }
    )


def _build_reasoning(answer: PlanOutputForm, floor: Plan) -> tuple[str, ...]:
    own = tuple(answer.reasoning[:6])
    return (*own, *(f"Taken into account: {line}" for line in floor.constraints)) if own else floor.reasoning


def _select_parts(answer: PlanOutputForm, request: PlanRequest, floor: Plan, *, careful: bool) -> list[_PlanPart]:
    """The model's sub-questions, made up by those of the floor: to the fewest a plan may have, and with the sides the
    person chose where the model forgot them."""
    own = [_to_part(item) for item in answer.questions if item.text]
    if not own:
        raise ReasoningError("the plan has no sub-question")
    spare = [
        _PlanPart(question.text, question.section, [q.text for q in floor.queries if q.question == question.id])
        for question in floor.questions
    ]
    if careful:
        own = _restrict_to_goal(floor, own)
    distinct = list({fold(part.text): part for part in reversed(own)}.values())[::-1]
    forgotten = [part for part in spare if _is_missing_side(part, request, distinct)][:MOST_MISSING_SIDES]
    distinct = [*distinct[: MOST[request.depth] - len(forgotten)], *forgotten]
    known = {fold(part.text) for part in distinct}
    fewest = 1 if request.depth is Depth.QUICK else 3
    distinct += [part for part in spare if fold(part.text) not in known][: max(0, fewest - len(distinct))]
    return distinct


def _is_missing_side(part: _PlanPart, request: PlanRequest, made: Sequence[_PlanPart]) -> bool:
    """Whether it stands for a side the person chose, of which no word is left in the model's plan."""
    asked, text = set(stems(request.understanding.question)), set(stems(part.text))
    planned = {stem for other in made for stem in stems(" ".join((other.text, other.section, *other.queries)))}
    sides = (set(stems(side)) - asked for side in request.answers.get("scope", "").split(";"))
    return any(side & text and not side & planned for side in sides)


def _restrict_to_goal(floor: Plan, own: Sequence[_PlanPart]) -> list[_PlanPart]:
    """A small model may take a question apart, but not turn it into another: where its sub-questions are no parts of
    it, the question is asked as it stands, with the model's words among the queries."""
    asked = set(stems(f"{floor.goal} {' '.join(question.topic for question in floor.questions)}"))
    parts = [part for part in own if len(asked & set(said := stems(part.text))) >= OWN_WORDS * len(set(said))]
    if len(parts) > 1:
        return parts
    first = floor.questions[0]
    planned = [query.text for query in floor.queries if query.question == first.id]
    return [_PlanPart(first.text, first.section, [*planned[:1], *(part.queries[0] for part in own)])]


def _to_part(item: SubQuestionForm) -> _PlanPart:
    queries = [text for query in (item.query1, item.query2, item.query3) if (text := query.strip(" ?!.\"'"))]
    return _PlanPart(item.text, item.section or item.text.rstrip("?"), queries or [item.text])


_PERIOD = re.compile(r"\d|\b(?:days?|weeks?|months?|quarters?|years?|decades?|today|recent\w*|now)\b", re.I)


def _find_topic(text: str, request: PlanRequest) -> str:
    """What the whole question is about, for a sub-question that does not name it, and the period the person chose."""
    asked = request.understanding
    period = chosen if _PERIOD.search(chosen := request.answers.get("timeframe", "")) else ""
    subject = asked.primary_subject or asked.topic_focus
    parts = ["" if set(stems(subject)) & set(stems(text)) else subject]
    parts.append("" if set(stems(period)) <= set(stems(text)) else period)
    return ", ".join(part for part in parts if part)


def _add_region(part: _PlanPart, request: PlanRequest) -> _PlanPart:
    """The last of its queries with the person's region, unless one has it."""
    region = content_words(request.preferences.region or "")
    named = set(stems(" ".join([*part.queries, request.understanding.question])))
    if not region or set(stems(" ".join(region))) <= named:
        return part
    queries = list(dict.fromkeys(part.queries))
    return part._replace(queries=[queries[0], *queries[1:2], f"{queries[0]} {' '.join(region)}"])


def _build_queries(parts: Sequence[_PlanPart], depth: Depth) -> tuple[SearchQuery, ...]:
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


# Search queries: variations of a sub-question, and other words or another kind of source when results were poor.

QUERIES_STEP = ReasoningStep("queries", stage="search", role="searcher", thing="search queries",
            variables=("question", "topic", "tried", "task", "count", "types"))  # fmt: skip
LONGEST_QUERY = 200  # characters
_ADDRESS = re.compile(r"https?:|www\.|\bsite:", re.I)


class QueryForm(OutputForm):
    text: Phrase
    type: Text = "web"


class QueriesForm(OutputForm):
    queries: list[QueryForm]


def build_queries_job(request: QueryRequest, count: int) -> Job[QueriesForm, None, Sequence[TypedQuery]]:
    asked = request.understanding

    def build(_: Sequence[None]) -> dict[str, str]:
        about = [asked.question, *asked.subjects, asked.temporal_scope or ""]
        return {
            "question": wrap_tag("message", request.question.in_context),
            "topic": wrap_tag("message", "\n".join(line for line in about if line)),
            "tried": wrap_tag("asked", _format_attempts(request)),
            "task": "The queries so far brought too little: use other words, or another type."
            if request.tried
            else "Vary the words: synonyms, technical terms, names, the words an answer would use.",
            "count": str(count),
            "types": ", ".join(request.types),
        }

    form = build_schema(QueriesForm, "Queries", {"queries": count}, {"type": request.types})
    return Job(
        QUERIES_STEP,
        QueriesForm,
        form,
        build,
        lambda answer, _: convert_queries(answer, request, count),
        task=request.question.id,
        share=request.share,
    )


def _format_attempts(request: QueryRequest) -> str:
    tried = [f"{item.query.text} ({item.query.type}): {item.hits} results" for item in request.tried]
    lines = [*tried, *(text for text in request.planned if all(text != item.query.text for item in request.tried))]
    return number_lines(lines) or "none"


def convert_queries(answer: QueriesForm, request: QueryRequest, count: int) -> Sequence[TypedQuery]:
    known = {(fold(item.query.text), item.query.type) for item in request.tried}
    planned = {fold(text) for text in request.planned}
    made: dict[tuple[str, str], TypedQuery] = {}
    for item in answer.queries:
        kind = match_option(item.type, request.types, request.types[0])
        key = (fold(item.text), kind)
        if is_searchable(item.text) and key not in known and (request.tried or key[0] not in planned):
            made.setdefault(key, TypedQuery(text=item.text, type=kind))
    if not made:
        raise ReasoningError("no query differs from those already asked")
    return tuple(made.values())[:count]


def is_searchable(text: str) -> bool:
    """Words to look for: an address is nothing that a model may have fetched, and markup nothing that is looked for."""
    return 0 < len(text) <= LONGEST_QUERY and not _ADDRESS.search(text) and not set(text) & set("<>{}[]|\\`")
