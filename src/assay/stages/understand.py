"""Clarity: what is asked, about what, and whether it can be researched as it stands."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.model.event import Status
from assay.model.question import SHORTEST, Clarity, Turn, Understanding
from assay.reasoning.protocol import Conversation
from assay.state import State


async def understand(state: State, runtime: Runtime[Deps]) -> State:
    deps = runtime.context
    understanding = await deps.reasoner.understand(state["original_query"], conversation(state))
    update: State = {"current_agent": "understand", "status": Status.PLANNING}
    if understanding.intent in ("cancel", "small_talk"):
        return {**update, "understanding": understanding.plain(), "clarity_status": Clarity.CLEAR}
    if understanding.needs_clarification and _may_ask(state, deps):
        return {
            **update,
            "understanding": understanding.plain(),
            "clarity_status": Clarity.NEEDS_CLARIFICATION,
            "clarification_question": understanding.clarification_question,
        }
    if understanding.needs_clarification:
        understanding = best_guess(understanding, state)
        note = f"The question was not clear; it was taken as: {understanding.question}"
        await deps.emit("notice", "understand", text=note)
        update["notices"] = {**state["notices"], "understand": note}
    return {
        **update,
        "understanding": understanding.plain(),
        "clarity_status": Clarity.CLEAR,
        "clarification_question": None,
        "subject": understanding.primary_subject or state.get("subject"),
    }


def conversation(state: State) -> Conversation:
    """What was said before this message."""
    turns = tuple(Turn.model_validate(turn) for turn in state["messages"][:-1])
    return Conversation(
        turns=turns,
        summary=state.get("conversation_summary", ""),
        subject=state.get("subject"),
        clarified=tuple(state["clarified"]),
    )


def _may_ask(state: State, deps: Deps) -> bool:
    return deps.options.interactive and state["clarification_attempts"] < deps.settings.max_clarifications


def best_guess(understanding: Understanding, state: State) -> Understanding:
    """Nobody can or will say more: take the words as they are, with the thread's subject if there is one."""
    words = " ".join((*state["clarified"], understanding.question)).strip(" ?.!")
    subject = state.get("subject")
    guess = f"Tell me about {subject or understanding.topic_focus or words}"
    return understanding.model_copy(
        update={
            "question": guess.ljust(SHORTEST),
            "intent": "research",
            "primary_subject": subject or words or None,
            "topic_focus": understanding.topic_focus or words,
            "clarification_question": None,
        }
    )
