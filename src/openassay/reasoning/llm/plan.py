"""Prompts for understanding a question and planning its research: what a message asks, what to ask back, the plan and
its search queries; and older turns in short.

The model proposes, code numbers its proposals and keeps them within bounds. `baseline` is what the rules made of the
same input.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple, get_args

from openassay.errors import ReasoningError
from openassay.models.plan import (
    LONGEST,
    MOST_QUERIES,
    MOST_QUESTIONS,
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
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.text.sentences import split_sentences
from openassay.text.words import content_words, fold, stems

UNDERSTAND_STEP = ReasoningStep(
    "understand", stage="understand", role="planner", output="understanding of the question"
)
QUESTIONS_STEP = ReasoningStep("questions", stage="gate", role="planner", output="questions to you")
PLAN_STEP = ReasoningStep("plan", stage="plan", role="planner", output="plan")
QUERIES_STEP = ReasoningStep("queries", stage="search", role="searcher", output="search queries")
CONDENSE_STEP = ReasoningStep(
    "condense", stage="publish", role="searcher", output="summary of the conversation", purpose="finish"
)
INTENTS: tuple[Intent, ...] = ("research", "follow_up", "compare", "more", "cancel", "small_talk", "unclear")
RESEARCH_INTENTS = ("research", "follow_up", "compare", "more")
QUERY_CLASSES = get_args(Understanding.model_fields["query_class"].annotation)
COMPLEXITIES = get_args(Understanding.model_fields["complexity"].annotation)
QUESTION_TOPICS = get_args(PlannerQuestion.model_fields["about"].annotation)
OPTIONS = 4  # of a planner question
ALL_OPTION = "all of the above"
IMPLICIT_OPTIONS = frozenset({"custom", "other", "something else"})  # an answer of one's own can be given anyway
SUMMARY_WORDS = 120
# Characters.
MAX_TURN = 700  # how an answer begins says what it was about
MAX_OLD_TURN = 1500
MAX_OPTION = 80
MAX_KNOWN = 1500
# Sub-questions of a plan.
FEWEST = {Depth.QUICK: 1, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MOST = {Depth.QUICK: 3, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_SMALL = {Depth.QUICK: 2, Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MIN_OWN_WORDS = 0.75  # share of a sub-question's words that are the question's, for it to be a part of the question
MAX_MISSING_SIDES = 2  # sub-questions of the baseline that take the place of the model's last ones
MAX_BACKGROUND = 3000  # characters
MAX_QUERY = 200  # characters
LONGEST_QUERY = 380  # of one with the words of the whole question; some providers take 400
WHOLE_WORDS = 25  # from which on a question is searched as a whole, too
SHAPES = {
    Depth.QUICK: "A short answer is wanted: few sub-questions, one section if that is enough.",
    Depth.STANDARD: "A report is wanted: each sub-question in the section it belongs to, three sections or more.",
    Depth.COMPREHENSIVE: "A thorough report is wanted: five sections or more, opposing views and limits among them.",
}
_PERIOD = re.compile(r"\d|\b(?:days?|weeks?|months?|quarters?|years?|decades?|today|recent\w*|now)\b", re.I)
_ADDRESS = re.compile(r"https?:|www\.|\bsite:", re.I)


class UnderstandingForm(forms.OutputForm):
    intent: forms.Text = forms.choice_field(INTENTS)
    subjects: forms.Texts = []
    question: forms.Text
    kind: forms.Text = forms.choice_field(QUERY_CLASSES)
    topic: forms.Phrase = ""
    period: forms.Phrase = ""
    complexity: forms.Text = forms.choice_field(COMPLEXITIES)
    ambiguity: forms.Score = 0.0
    must_ask: bool = False
    ask: forms.Line = ""
    suggestions: forms.Texts = []


def build_understand_job(
    question: str, conversation: Conversation, today: date, baseline: Understanding, small: bool
) -> Job[UnderstandingForm, ThreadMessage, Understanding]:
    """Ask what a question means.

    A small model is given the baseline to correct: left to itself it took thanks for a question, and "the company" for
    a name. Where it is empty, the answer to the last clarifying question stands for it.
    """
    if not question.strip() and conversation.clarified:
        *before, question = conversation.clarified
        conversation = conversation.model_copy(update={"clarified": tuple(before)})
    guess = {
        "intent": baseline.intent,
        "subjects": baseline.subjects,
        "question": baseline.question,
        "kind": baseline.query_class,
        "topic": baseline.topic_focus,
        "period": baseline.temporal_scope or "",
        "must_ask": baseline.needs_clarification,
        "ask": baseline.clarification_question or "",
    }
    hint = "A first guess by simple rules. Keep what is right, correct what is wrong:\n"

    def build(newest_first: Sequence[ThreadMessage]) -> dict[str, str]:
        lines = [f"Earlier: {conversation.summary}"] if conversation.summary else []
        lines += [f"{turn.role}: {turn.content[:MAX_TURN]}" for turn in reversed(newest_first)]
        if conversation.subject:
            lines.append(f"The conversation is about: {conversation.subject}")
        lines += [f"Asked back about the new message, the person answered: {text}" for text in conversation.clarified]
        nothing = "There is no conversation before this message."
        return {
            "today": today.isoformat(),
            "conversation": wrap_tag("conversation", "\n".join(lines)) if lines else nothing,
            "message": wrap_tag("message", question),
            "guess": hint + wrap_tag("message", json.dumps(guess, ensure_ascii=False)) if small else "",
        }

    return Job(
        UNDERSTAND_STEP,
        UnderstandingForm,
        forms.build_schema(UnderstandingForm, "Understood", {"subjects": 4, "suggestions": 0 if small else 3}),
        build,
        convert=lambda answer, _: convert_understanding(answer, question, conversation, baseline if small else None),
        sources=tuple(reversed(conversation.turns)),
        shorten=_halve_turn,
    )


def convert_understanding(
    answer: UnderstandingForm, asked: str, conversation: Conversation, baseline: Understanding | None = None
) -> Understanding:
    """Check an answer. Where a small model names nothing that was said, the doubt of the baseline counts."""
    subjects = tuple(answer.subjects[:4])
    question = answer.question or " ".join(asked.split())
    if subjects and not any(fold(subject) in fold(question) for subject in subjects):
        question = f"{question.rstrip('?!. ')} ({', '.join(subjects)})?"  # so that it stands alone
    if len(question) > LONGEST:
        raise ReasoningError(f"the question has more than {LONGEST} characters")
    intent = forms.match_option(answer.intent, INTENTS, "research")
    ask = None
    before = conversation.turns or conversation.summary or conversation.subject or conversation.clarified
    lacks_reference = intent in ("follow_up", "more") and not before and not answer.subjects
    must_ask = answer.must_ask or intent == "unclear" or lacks_reference or len(question) < SHORTEST
    if must_ask and intent in (*RESEARCH_INTENTS, "unclear"):
        ask = answer.ask or f"What exactly would you like to know about “{answer.topic or question}”?"
    if baseline and not ask:
        turns = (turn.content for turn in conversation.turns)
        texts = [asked, conversation.summary, conversation.subject or "", *conversation.clarified, *turns]
        context = fold(" ".join(texts))
        if not any(fold(subject) in context for subject in subjects):
            ask = baseline.clarification_question
    return Understanding(
        question=question,
        intent="unclear" if ask else "research" if intent == "unclear" else intent,
        query_class=forms.match_option(answer.kind, QUERY_CLASSES, "overview"),
        primary_subject=subjects[0] if subjects else answer.topic or None,
        subjects=subjects,
        topic_focus=answer.topic or ", ".join(subjects),
        temporal_scope=answer.period or None,
        complexity=forms.match_option(answer.complexity, COMPLEXITIES, "moderate"),
        ambiguity_level=max(answer.ambiguity / 10, 0.7) if ask else min(answer.ambiguity / 10, 0.6),
        clarification_question=ask,
        suggested_questions=tuple(answer.suggestions[:3]),
    )


class QuestionForm(forms.OutputForm):
    about: forms.Text = forms.choice_field(QUESTION_TOPICS)
    text: forms.Line
    a: forms.Phrase
    b: forms.Phrase
    c: forms.Phrase
    d: forms.Phrase
    several: bool = False


class QuestionsForm(forms.OutputForm):
    questions: list[QuestionForm]


def build_questions_job(
    understanding: Understanding, known: Mapping[str, str], baseline: Sequence[PlannerQuestion], small: bool
) -> Job[QuestionsForm, None, Sequence[PlannerQuestion]]:
    """Ask what to ask the person before planning."""
    most = 2 if small else 4
    settled = {about for about in QUESTION_TOPICS if known.get(about)}
    settled |= {"timeframe"} if understanding.temporal_scope else set()
    facts = {
        "Period": understanding.temporal_scope,
        "About": understanding.topic_focus,
        "Subjects": ", ".join(understanding.subjects),
        **known,
    }
    lines = [f"{name}: {value[:MAX_KNOWN]}" for name, value in facts.items() if value]
    values = {
        "question": wrap_tag("message", understanding.question),
        "known": wrap_tag("conversation", "\n".join(lines)) if lines else "Nothing more is known.",
        "most": str(most),
    }
    return Job(
        QUESTIONS_STEP,
        QuestionsForm,
        forms.build_schema(QuestionsForm, "Questions", {"questions": most}),
        build=lambda _: values,
        convert=lambda answer, _: convert_questions(answer, understanding.question, baseline, most, settled),
    )


def convert_questions(
    answer: QuestionsForm,
    question: str,
    baseline: Sequence[PlannerQuestion],
    most: int,
    settled: Collection[str] = (),
) -> Sequence[PlannerQuestion]:
    """Check the questions; topics that are `settled` are not asked about.

    Small models give the person's own question back: its options are good, and the baseline has the words.
    """
    baseline_texts = {item.about: item.text for item in baseline}
    questions: dict[str, PlannerQuestion] = {}
    for item in answer.questions:
        about = forms.match_option(item.about, QUESTION_TOPICS, "scope")
        distinct = {fold(text).strip(" ."): text for text in (item.a, item.b, item.c, item.d) if text}
        options = tuple(
            text for key, text in distinct.items() if key not in IMPLICIT_OPTIONS and len(text) <= MAX_OPTION
        )
        text = item.text if fold(item.text) != fold(question) else baseline_texts.get(about, "")
        if text and len(options) == OPTIONS and about not in questions and about not in settled:
            several = item.several and not any(fold(option) == ALL_OPTION for option in options)
            questions[about] = PlannerQuestion(
                id=about, about=about, text=text, options=options, all_of_the_above=several
            )
    if not questions:
        raise ReasoningError("no question about what is still open has four different, short options a, b, c, d")
    return list(questions.values())[:most]


class SubQuestionForm(forms.OutputForm):
    text: forms.Line
    section: forms.Phrase = ""
    query1: forms.Phrase = ""
    query2: forms.Phrase = ""
    query3: forms.Phrase = ""


class PlanOutputForm(forms.OutputForm):
    reasoning: forms.Texts = []
    questions: list[SubQuestionForm]
    method: forms.Text = ""
    complexity: forms.Text = forms.choice_field(COMPLEXITIES)
    confidence: forms.Score = 7.0
    warnings: forms.Texts = []


class PlanPart(NamedTuple):
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
        forms.build_schema(PlanOutputForm, "Plan", lists, {"section": preset} if preset else {}),
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
    if rated and request.depth is not Depth.QUICK and len(parts) < MOST_QUESTIONS:
        parts += _ask_whole(request.understanding.question, parts[0].section)
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
            "estimated_complexity": forms.match_option(answer.complexity, COMPLEXITIES, "moderate"),
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


def _ask_whole(question: str, section: str) -> list[PlanPart]:
    """A long question as a part of its own: of the passages that a search by its own words finds, those by its parts
    found half."""
    if len(question.split()) < WHOLE_WORDS:
        return []
    query = ""
    for word in dict.fromkeys(content_words(question)):
        if len(f"{query} {word}") > LONGEST_QUERY:
            break
        query = f"{query} {word}".strip()
    return [PlanPart(question, section, [query])]


def _build_queries(parts: Sequence[PlanPart], request: PlanRequest) -> tuple[SearchQuery, ...]:
    """Send each sub-question's first query to every kind of source and its other words to the web; of all that is too
    much, each keeps its first words for two kinds and its second for the web.

    The last of its queries names the person's region, unless one does anyway.
    """
    types = TYPES_BY_DEPTH[request.depth]
    region = content_words(request.preferences.region or "")
    queries: list[tuple[int, int, int, str, QueryType]] = []
    for number, part in enumerate(parts, 1):
        first, *others = list(dict.fromkeys(part.queries))[:3]
        named = set(stems(" ".join([*part.queries, request.understanding.question])))
        if region and not set(stems(" ".join(region))) <= named:
            others = [*others[:1], f"{first} {' '.join(region)}"]
        queries += [
            (at, 1 if at == 0 else 2, number, first, kind) for at, kind in zip((0, 1, 3, 4), types, strict=False)
        ]
        queries += [(at, 3, number, text, types[0]) for at, text in zip((2, 5), others, strict=False)]
    queries.sort(key=lambda query: query[0])
    return tuple(
        SearchQuery(id=f"K{position}", text=text, question=f"Q{number}", type=kind, priority=priority)
        for position, (_, priority, number, text, kind) in enumerate(queries[:MOST_QUERIES], 1)
    )


class QueryForm(forms.OutputForm):
    text: forms.Phrase
    type: forms.Text = "web"


class QueriesForm(forms.OutputForm):
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
        forms.build_schema(QueriesForm, "Queries", {"queries": count}, {"type": request.types}),
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
        kind = forms.match_option(item.type, request.types, request.types[0])
        key = (fold(item.text), kind)
        if is_searchable(item.text) and key not in tried and (request.tried or key[0] not in planned):
            queries.setdefault(key, TypedQuery(text=item.text, type=kind))
    if not queries:
        raise ReasoningError("no query differs from those already asked")
    return tuple(queries.values())[:count]


def is_searchable(text: str) -> bool:
    """Tell whether a text is words to search for: no address, which a model may not have fetched, and no markup."""
    return 0 < len(text) <= MAX_QUERY and not _ADDRESS.search(text) and not set(text) & set("<>{}[]|\\`")


class SummaryForm(forms.OutputForm):
    summary: forms.Text


def build_condense_job(turns: Sequence[ThreadMessage], summary: str) -> Job[SummaryForm, ThreadMessage, str]:

    def build(newest_first: Sequence[ThreadMessage]) -> dict[str, str]:
        lines = (f"{turn.role}: {turn.content[:MAX_OLD_TURN]}" for turn in reversed(newest_first))
        return {
            "summary": wrap_tag("conversation", summary or "(nothing yet)"),
            "turns": wrap_tag("conversation", "\n".join(lines)),
            "words": str(SUMMARY_WORDS),
        }

    return Job(
        CONDENSE_STEP,
        SummaryForm,
        forms.build_schema(SummaryForm, "Summary"),
        build,
        convert=lambda answer, _: convert_summary(answer),
        sources=tuple(reversed(turns)),
        shorten=_halve_turn,
    )


def convert_summary(answer: SummaryForm) -> str:
    """Return whole sentences, as many as the words allow."""
    sentences: list[str] = []
    for piece in split_sentences(answer.summary):
        if len(" ".join([*sentences, piece.text]).split()) > SUMMARY_WORDS:
            break
        sentences.append(piece.text)
    if not sentences:
        raise ReasoningError(f"the summary is empty, or has no sentence of at most {SUMMARY_WORDS} words")
    return " ".join(sentences)


def _halve_turn(turn: ThreadMessage) -> ThreadMessage:
    return turn.model_copy(update={"content": turn.content[: len(turn.content) // 2]})
