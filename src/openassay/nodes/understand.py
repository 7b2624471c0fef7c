"""Understand a question: what is asked, about what, and whether it can be researched as it stands."""

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import Field, TypeAdapter, ValidationError

from openassay.context import ResearchContext
from openassay.models.base import Record
from openassay.models.event import Status
from openassay.models.plan import SHORTEST, Clarity, ThreadMessage, Understanding
from openassay.nodes.plan import ask_person
from openassay.reasoning.base import Conversation
from openassay.state import Plain, State, load_messages
from openassay.text.small_talk import is_indifferent


async def clarify(state: State, runtime: Runtime[ResearchContext]) -> State:
    """Ask the person what was meant. A node that interrupts does nothing else."""
    context, question = runtime.context, str(state["clarification_question"])
    settings, attempts = context.settings, state["clarification_attempts"]
    if not context.options.interactive:
        answer = {"skipped": "nobody"}
    else:
        answer = ask_person(
            "clarification",
            question,
            context.now(),
            seconds=settings.breakpoints.question_timeout,
            on_timeout="guess",
            options=list((state["understanding"] or {}).get("clarification_options", ())),
            number=attempts + 1,
            of=settings.max_clarifications,
        )
    if "skipped" in answer:  # nobody is there: no use in asking again
        return {"clarification_attempts": settings.max_clarifications, "current_agent": "clarify"}
    return {
        "clarified": [*state["clarified"], {"question": question, "answer": answer["text"]}],
        "clarification_attempts": attempts + 1,
        "current_agent": "clarify",
    }


async def understand(state: State, runtime: Runtime[ResearchContext]) -> State:
    context = runtime.context
    update: State = {"current_agent": "understand", "status": Status.PLANNING}
    if invalid := find_invalid_fields(state):
        # Go on as if the thread had never held these fields.
        message = {"role": "user", "content": state["original_query"]}
        empty: Plain = {"subject": None, "conversation_summary": "", "clarification_attempts": 0, "clarified": []}
        reset = {name: value for name, value in {"messages": [message], **empty}.items() if name in invalid}
        note = f"The thread could not be read in full and was started afresh: {', '.join(reset)}"
        await context.emit("notice", "understand", text=note, fields=list(reset))
        notices = {**state["notices"], "thread": note}
        replaced = {**reset, "messages": {"replace": [message]}} if "messages" in reset else reset
        state, update = {**state, **reset, "notices": notices}, {**update, **replaced, "notices": notices}  # type: ignore[typeddict-item]
    answers = tuple(item["answer"] for item in state["clarified"])
    conversation = Conversation(
        turns=tuple(load_messages(state)[:-1]),
        summary=state.get("conversation_summary", ""),
        subject=state.get("subject"),
        clarified=answers,
    )
    understanding = await context.reasoner.understand(state["original_query"], conversation)
    if understanding.intent in ("cancel", "small_talk"):
        return {**update, "understanding": understanding.plain(), "clarity_status": Clarity.CLEAR}
    if understanding.needs_clarification:
        attempts_left = state["clarification_attempts"] < context.settings.max_clarifications
        # A person who has nothing to say ("whatever") is not asked again.
        if context.options.interactive and attempts_left and not (answers and is_indifferent(answers[-1])):
            return {
                **update,
                "understanding": understanding.plain(),
                "clarity_status": Clarity.NEEDS_CLARIFICATION,
                "clarification_question": understanding.clarification_question,
            }
        understanding = guess_question(understanding, answers, state.get("subject"))
        note = f"The question was not clear; it was taken as: {understanding.question}"
        await context.emit("notice", "understand", text=note)
        update["notices"] = {**state["notices"], "understand": note}
    return {
        **update,
        "understanding": understanding.plain(),
        "clarity_status": Clarity.CLEAR,
        "clarification_question": None,
        "subject": understanding.primary_subject or state.get("subject"),
        "enriched_context": build_context(state, context.options.context),
    }


class Clarification(Record):
    question: str
    answer: str


# What outlives a question, and what an unclear question has gathered while it waited for answers.
_VALIDATORS: dict[str, TypeAdapter[Any]] = {
    "messages": TypeAdapter(list[ThreadMessage]),
    "subject": TypeAdapter(str | None),
    "conversation_summary": TypeAdapter(str),
    "clarification_attempts": TypeAdapter(Annotated[int, Field(strict=True, ge=0)]),
    "clarified": TypeAdapter(list[Clarification]),
}


def find_invalid_fields(state: State) -> list[str]:
    """List the fields of the thread whose values are not valid; all others are new with every question."""
    invalid = []
    for name in (name for name in _VALIDATORS if name in state):
        try:
            _VALIDATORS[name].validate_python(state[name])  # type: ignore[literal-required]
        except ValidationError:
            invalid.append(name)
    return invalid


def build_context(state: State, context: str) -> str:
    """Write down what the planner should know besides the question as it was understood."""
    said = [item for item in state["clarified"] if not is_indifferent(item["answer"])]
    lines = [f"Asked: {state['original_query']}"]
    lines += [f"Asked back: {item['question']} Answer: {item['answer']}" for item in said]
    if summary := state.get("conversation_summary"):
        lines.append(f"The conversation so far: {summary}")
    return "\n".join([*lines, context.strip()]).strip()


def guess_question(understanding: Understanding, answers: Sequence[str], subject: str | None) -> Understanding:
    """Take the likeliest of what was offered, else the words as they are with the thread's subject if there is one:
    nobody can or will say more."""
    words = " ".join((*(text for text in answers if not is_indifferent(text)), understanding.question)).strip(" ?.!")
    subject = next(iter(understanding.clarification_options), None) or subject
    guess = f"Tell me about {subject or understanding.topic_focus or words}"
    return understanding.model_copy(
        update={
            "question": guess.ljust(SHORTEST),
            "intent": "research",
            "primary_subject": subject or words or None,
            "topic_focus": understanding.topic_focus or words,
            "clarification_question": None,
            "clarification_options": (),
        }
    )
