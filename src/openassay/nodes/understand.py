"""Clarity: what is asked, about what, and whether it can be researched as it stands."""

from collections.abc import Iterable
from typing import Annotated, Any

from langgraph.runtime import Runtime
from pydantic import Field, TypeAdapter, ValidationError

from openassay.context import ResearchContext
from openassay.models.base import Record
from openassay.models.event import Status
from openassay.models.plan import SHORTEST, Clarity, ThreadMessage, Understanding
from openassay.nodes.gate import ask_person
from openassay.reasoning.base import Conversation
from openassay.state import State
from openassay.text.small_talk import is_indifferent

# Asking the person what was meant. A node that interrupts does nothing else.


async def clarify(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps, question = runtime.context, str(state["clarification_question"])
    answer = {"skipped": "nobody"} if not deps.options.interactive else ask_person(
        "clarification", question, deps.now(), seconds=deps.settings.breakpoints.question_timeout, on_timeout="guess",
        options=list((state["understanding"] or {}).get("clarification_options", ())),
        number=state["clarification_attempts"] + 1, of=deps.settings.max_clarifications,
    )  # fmt: skip
    if "skipped" in answer:  # nobody is there: no use in asking again
        return {"clarification_attempts": deps.settings.max_clarifications, "current_agent": "clarify"}
    return {
        "clarified": [*state["clarified"], {"question": question, "answer": answer["text"]}],
        "clarification_attempts": state["clarification_attempts"] + 1,
        "current_agent": "clarify",
    }


async def understand(state: State, runtime: Runtime[ResearchContext]) -> State:
    deps = runtime.context
    update: State = {"current_agent": "understand", "status": Status.PLANNING}
    if unsound := find_invalid_fields(state):
        state, update = await _reset_fields(state, unsound, update, deps)
    understanding = await deps.reasoner.understand(state["original_query"], load_conversation(state))
    if understanding.intent in ("cancel", "small_talk"):
        return {**update, "understanding": understanding.plain(), "clarity_status": Clarity.CLEAR}
    if understanding.needs_clarification and _can_ask(state, deps):
        return {
            **update,
            "understanding": understanding.plain(),
            "clarity_status": Clarity.NEEDS_CLARIFICATION,
            "clarification_question": understanding.clarification_question,
        }
    if understanding.needs_clarification:
        understanding = guess_question(understanding, state)
        note = f"The question was not clear; it was taken as: {understanding.question}"
        await deps.emit("notice", "understand", text=note)
        update["notices"] = {**state["notices"], **update.get("notices", {}), "understand": note}
    return {
        **update,
        "understanding": understanding.plain(),
        "clarity_status": Clarity.CLEAR,
        "clarification_question": None,
        "subject": understanding.primary_subject or state.get("subject"),
        "enriched_context": build_context(state, deps.options.context),
    }


class _Clarification(Record):
    question: str
    answer: str


# What outlives a question, and what a question that was asked back has gathered while it waited.
_VALIDATORS: dict[str, TypeAdapter[Any]] = {
    "messages": TypeAdapter(list[ThreadMessage]),
    "subject": TypeAdapter(str | None),
    "conversation_summary": TypeAdapter(str),
    "clarification_attempts": TypeAdapter(Annotated[int, Field(strict=True, ge=0)]),
    "clarified": TypeAdapter(list[_Clarification]),
}


def find_invalid_fields(state: State) -> list[str]:
    """Fields that hold what they cannot; all others are new with every question."""
    return [name for name in _VALIDATORS if name in state and not _is_valid(name, state[name])]  # type: ignore[literal-required]


def _is_valid(name: str, value: object) -> bool:
    try:
        _VALIDATORS[name].validate_python(value)
    except ValidationError:
        return False
    return True


async def _reset_fields(
    state: State, names: Iterable[str], update: State, deps: ResearchContext
) -> tuple[State, State]:
    """The state as if the thread had never held these fields, and the update that makes it so."""
    message = {"role": "user", "content": state["original_query"]}
    empty: State = {
        "messages": [message], "subject": None, "conversation_summary": "", "clarification_attempts": 0,
        "clarified": [],
    }  # fmt: skip
    reset = {name: value for name, value in empty.items() if name in names}
    note = f"The thread could not be read in full and was started afresh: {', '.join(reset)}"
    await deps.emit("notice", "understand", text=note, fields=list(reset))
    notices = {**state["notices"], "thread": note}
    replaced = {**reset, "messages": {"replace": [message]}} if "messages" in reset else reset
    return {**state, **reset, "notices": notices}, {**update, **replaced, "notices": notices}  # type: ignore[typeddict-item]


def build_context(state: State, context: str) -> str:
    """What the planner is told besides the question as it was understood."""
    lines = [f"Asked: {state['original_query']}"]
    said = [item for item in state["clarified"] if not is_indifferent(item["answer"])]
    lines += [f"Asked back: {item['question']} Answer: {item['answer']}" for item in said]
    if summary := state.get("conversation_summary"):
        lines.append(f"The conversation so far: {summary}")
    return "\n".join([*lines, context.strip()]).strip()


def load_conversation(state: State) -> Conversation:
    """What was said before this message."""
    turns = tuple(ThreadMessage.model_validate(turn) for turn in state["messages"][:-1])
    return Conversation(
        turns=turns,
        summary=state.get("conversation_summary", ""),
        subject=state.get("subject"),
        clarified=tuple(item["answer"] for item in state["clarified"]),
    )


def _can_ask(state: State, deps: ResearchContext) -> bool:
    """Who has nothing to say ("whatever") is not asked again."""
    shrugged = bool(state["clarified"]) and is_indifferent(state["clarified"][-1]["answer"])
    left = state["clarification_attempts"] < deps.settings.max_clarifications
    return deps.options.interactive and left and not shrugged


def guess_question(understanding: Understanding, state: State) -> Understanding:
    """Nobody can or will say more: take the likeliest of what was offered, else the words as they are with the thread's
    subject if there is one."""
    said = [answer for answer in load_conversation(state).clarified if not is_indifferent(answer)]
    words = " ".join((*said, understanding.question)).strip(" ?.!")
    subject = next(iter(understanding.clarification_options), None) or state.get("subject")
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
