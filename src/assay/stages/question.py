"""One planning question at a time, until all are answered or nobody wants to be asked any more."""

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.reasoning.embedded.small_talk import is_cancelled
from assay.stages.asking import ask
from assay.state import State

ALL = "All of the above"
CUSTOM = "Custom"
_UNASKED = {
    "mode": "The mode was changed to auto: what had not been asked yet was left to defaults.",
    "timer": "Nobody answered a planning question in time: what was still open was left to defaults.",
}


async def question(state: State, runtime: Runtime[Deps]) -> State:
    deps, given = runtime.context, state["planner_answers"]
    asked = state["planner_questions"][len(given)]
    answer = ask(
        "planning", asked["text"], deps.now(), seconds=deps.settings.breakpoints.question_timeout, on_timeout="guess",
        options=[*asked["options"], *([ALL] if asked["all_of_the_above"] else []), CUSTOM],
        id=asked["id"], number=len(given) + 1, of=len(state["planner_questions"]),
    )  # fmt: skip
    if "skipped" in answer:
        note = _UNASKED[answer["skipped"]]
        await deps.emit("notice", "question", text=note)
        return {
            "planner_questions": state["planner_questions"][: len(given)],
            "notices": {**state["notices"], "planning": note},
            "current_agent": "question",
        }
    if is_cancelled(answer["text"]):
        understanding = {**(state["understanding"] or {}), "intent": "cancel"}
        return {"understanding": understanding, "planner_questions": [], "current_agent": "question"}
    return {"planner_answers": {**given, asked["id"]: answer["text"]}, "current_agent": "question"}
