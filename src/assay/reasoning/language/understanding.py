"""Understanding a message: what is asked, about what, and whether it can be asked at all."""

import json
from collections.abc import Sequence
from datetime import date
from typing import get_args

from assay.errors import ReasoningError
from assay.model.question import LONGEST, SHORTEST, Intent, Turn, Understanding
from assay.reasoning.language.answer import Answer, Line, Phrase, Score, Text, Texts, nearest, one_of, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Conversation
from assay.text.words import fold

STEP = Step("understand", stage="understand", role="planner", thing="understanding of the question",
            variables=("today", "conversation", "message", "guess"))  # fmt: skip
INTENTS: tuple[Intent, ...] = ("research", "follow_up", "compare", "more", "cancel", "small_talk", "unclear")
CLASSES = get_args(Understanding.model_fields["query_class"].annotation)
COMPLEXITIES = get_args(Understanding.model_fields["complexity"].annotation)
LONGEST_TURN = 700  # characters; how an answer begins says what it was about
RESEARCHED = ("research", "follow_up", "compare", "more")


class Understood(Answer):
    intent: Text = one_of(INTENTS)
    subjects: Texts = []
    question: Text
    kind: Text = one_of(CLASSES)
    topic: Phrase = ""
    period: Phrase = ""
    complexity: Text = one_of(COMPLEXITIES)
    ambiguity: Score = 0.0
    must_ask: bool = False
    ask: Line = ""
    suggestions: Texts = []


def job(
    message: str, conversation: Conversation, today: date, floor: Understanding, small: bool
) -> Job[Understood, Turn, Understanding]:
    """A small model is given the floor's reading to correct: left to itself it took thanks for a question, and "the
    company" for a name. Of an empty message, what was answered when it was asked back is the message."""
    if not message.strip() and conversation.clarified:
        *before, message = conversation.clarified
        conversation = conversation.model_copy(update={"clarified": tuple(before)})

    def build(shown: Sequence[Turn]) -> dict[str, str]:
        return {
            "today": today.isoformat(),
            "conversation": _conversation(conversation, shown),
            "message": tagged("message", message),
            "guess": _guess(floor) if small else "",
        }

    most = {"subjects": 4, "suggestions": 0 if small else 3}
    return Job(
        STEP, Understood, schema(Understood, "Understood", most), build,
        convert=lambda answer, _: convert(answer, message, conversation, floor if small else None),
        sources=tuple(reversed(conversation.turns)), shorten=_halved,
    )  # fmt: skip


def _conversation(conversation: Conversation, newest_first: Sequence[Turn]) -> str:
    lines = [f"Earlier: {conversation.summary}"] if conversation.summary else []
    lines += [f"{turn.role}: {turn.content[:LONGEST_TURN]}" for turn in reversed(newest_first)]
    if conversation.subject:
        lines.append(f"The conversation is about: {conversation.subject}")
    lines += [f"Asked back about the new message, the person answered: {answer}" for answer in conversation.clarified]
    return tagged("conversation", "\n".join(lines)) if lines else "There is no conversation before this message."


def _guess(floor: Understanding) -> str:
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
    told = tagged("message", json.dumps(guess, ensure_ascii=False))
    return f"A first guess by simple rules. Keep what is right, correct what is wrong:\n{told}"


def _halved(turn: Turn) -> Turn:
    return turn.model_copy(update={"content": turn.content[: len(turn.content) // 2]})


def convert(
    answer: Understood, message: str, conversation: Conversation, floor: Understanding | None = None
) -> Understanding:
    """Where a small model names nothing that was said, the doubt of the `floor` counts."""
    subjects = tuple(answer.subjects[:4])
    question = _named(answer.question or " ".join(message.split()), subjects)
    if len(question) > LONGEST:
        raise ReasoningError(f"the question has more than {LONGEST} characters")
    intent = nearest(answer.intent, INTENTS, "research")
    ask = _ask(answer, intent, question, conversation)
    if floor and not _said(subjects, message, conversation):
        ask = ask or floor.clarification_question
    return Understanding(
        question=question,
        intent="unclear" if ask else "research" if intent == "unclear" else intent,
        query_class=nearest(answer.kind, CLASSES, "overview"),
        primary_subject=subjects[0] if subjects else answer.topic or None,
        subjects=subjects,
        topic_focus=answer.topic or ", ".join(subjects),
        temporal_scope=answer.period or None,
        complexity=nearest(answer.complexity, COMPLEXITIES, "moderate"),
        ambiguity_level=max(answer.ambiguity / 10, 0.7) if ask else min(answer.ambiguity / 10, 0.6),
        clarification_question=ask,
        suggested_questions=tuple(answer.suggestions[:3]),
    )


def _named(question: str, subjects: Sequence[str]) -> str:
    """A question stands alone if it names what it is about."""
    if not subjects or any(fold(subject) in fold(question) for subject in subjects):
        return question
    return f"{question.rstrip('?!. ')} ({', '.join(subjects)})?"


def _said(subjects: Sequence[str], message: str, conversation: Conversation) -> bool:
    turns = (turn.content for turn in conversation.turns)
    said = fold(" ".join([message, conversation.summary, conversation.subject or "", *conversation.clarified, *turns]))
    return any(fold(subject) in said for subject in subjects)


def _ask(answer: Understood, intent: Intent, question: str, conversation: Conversation) -> str | None:
    """What the person is asked back, where something has to be known before anything can be looked for."""
    if intent not in (*RESEARCHED, "unclear"):
        return None
    before = conversation.turns or conversation.summary or conversation.subject or conversation.clarified
    nothing_to_lean_on = intent in ("follow_up", "more") and not before and not answer.subjects
    if answer.must_ask or intent == "unclear" or nothing_to_lean_on or len(question) < SHORTEST:
        return answer.ask or f"What exactly would you like to know about “{answer.topic or question}”?"
    return None
