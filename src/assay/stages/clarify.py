"""Asking the person what was meant. A node that interrupts does nothing else."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.stages.asking import ask
from assay.state import State


async def clarify(state: State, runtime: Runtime[Deps]) -> State:
    deps, question = runtime.context, str(state["clarification_question"])
    answer = {"skipped": "nobody"} if not deps.options.interactive else ask(
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
