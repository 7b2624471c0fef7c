"""One planning question at a time, until all are answered."""

from langgraph.types import interrupt

from assay.state import State

ALL = "All of the above"
CUSTOM = "Custom"


async def question(state: State) -> State:
    asked = state["planner_questions"][len(state["planner_answers"])]
    options = [*asked["options"], *([ALL] if asked["all_of_the_above"] else []), CUSTOM]
    answer = interrupt(
        {"kind": "planning", "id": asked["id"], "question": asked["text"], "options": options,
         "number": len(state["planner_answers"]) + 1, "of": len(state["planner_questions"])}
    )  # fmt: skip
    return {"planner_answers": {**state["planner_answers"], asked["id"]: str(answer)}, "current_agent": "question"}
