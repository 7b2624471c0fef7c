"""Asking the person what was meant. A node that interrupts does nothing else."""

from langgraph.types import interrupt

from assay.state import State


async def clarify(state: State) -> State:
    answer = interrupt({"kind": "clarification", "question": state["clarification_question"]})
    return {
        "clarified": [*state["clarified"], {"question": state["clarification_question"], "answer": str(answer)}],
        "clarification_attempts": state["clarification_attempts"] + 1,
        "current_agent": "clarify",
    }
