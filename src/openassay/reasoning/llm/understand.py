"""Prompts about the conversation: what a message asks, what to ask back before planning, and older turns in short.

`baseline` is what the rules made of the same input.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import get_args

from openassay.errors import ReasoningError
from openassay.models.plan import LONGEST, SHORTEST, Intent, PlannerQuestion, ThreadMessage, Understanding
from openassay.reasoning.base import Conversation
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
from openassay.reasoning.llm.step import Job, ReasoningStep, wrap_tag
from openassay.text.sentences import split_sentences
from openassay.text.words import fold

UNDERSTAND_STEP = ReasoningStep(
    "understand",
    stage="understand",
    role="planner",
    output="understanding of the question",
    variables=("today", "conversation", "message", "guess"),
)
QUESTIONS_STEP = ReasoningStep(
    "questions", stage="gate", role="planner", output="questions to you", variables=("question", "known", "most")
)
CONDENSE_STEP = ReasoningStep(
    "condense",
    stage="publish",
    role="searcher",
    output="summary of the conversation",
    variables=("summary", "turns", "words"),
    purpose="finish",
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
    message: str, conversation: Conversation, today: date, baseline: Understanding, small: bool
) -> Job[UnderstandingForm, ThreadMessage, Understanding]:
    """Ask what a message means.

    A small model is given the baseline to correct: left to itself it took thanks for a question, and "the company" for
    a name. Where the message is empty, the answer to the last clarifying question is the message.
    """
    if not message.strip() and conversation.clarified:
        *before, message = conversation.clarified
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
            "message": wrap_tag("message", message),
            "guess": hint + wrap_tag("message", json.dumps(guess, ensure_ascii=False)) if small else "",
        }

    return Job(
        UNDERSTAND_STEP,
        UnderstandingForm,
        build_schema(UnderstandingForm, "Understood", {"subjects": 4, "suggestions": 0 if small else 3}),
        build,
        convert=lambda answer, _: convert_understanding(answer, message, conversation, baseline if small else None),
        sources=tuple(reversed(conversation.turns)),
        shorten=_halve_turn,
    )


def convert_understanding(
    answer: UnderstandingForm, message: str, conversation: Conversation, baseline: Understanding | None = None
) -> Understanding:
    """Check an answer. Where a small model names nothing that was said, the doubt of the baseline counts."""
    subjects = tuple(answer.subjects[:4])
    question = answer.question or " ".join(message.split())
    if subjects and not any(fold(subject) in fold(question) for subject in subjects):
        question = f"{question.rstrip('?!. ')} ({', '.join(subjects)})?"  # so that it stands alone
    if len(question) > LONGEST:
        raise ReasoningError(f"the question has more than {LONGEST} characters")
    intent = match_option(answer.intent, INTENTS, "research")
    ask = None
    before = conversation.turns or conversation.summary or conversation.subject or conversation.clarified
    lacks_reference = intent in ("follow_up", "more") and not before and not answer.subjects
    must_ask = answer.must_ask or intent == "unclear" or lacks_reference or len(question) < SHORTEST
    if must_ask and intent in (*RESEARCH_INTENTS, "unclear"):
        ask = answer.ask or f"What exactly would you like to know about “{answer.topic or question}”?"
    if baseline and not ask:
        turns = (turn.content for turn in conversation.turns)
        texts = [message, conversation.summary, conversation.subject or "", *conversation.clarified, *turns]
        context = fold(" ".join(texts))
        if not any(fold(subject) in context for subject in subjects):
            ask = baseline.clarification_question
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
        build_schema(QuestionsForm, "Questions", {"questions": most}),
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
        about = match_option(item.about, QUESTION_TOPICS, "scope")
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


class SummaryForm(OutputForm):
    summary: Text


def build_condense_job(turns: Sequence[ThreadMessage], summary: str) -> Job[SummaryForm, ThreadMessage, str]:
    """Ask for a summary of older turns."""

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
        build_schema(SummaryForm, "Summary"),
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
