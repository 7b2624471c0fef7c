"""One planning question at a time, until all are answered or nobody wants to be asked any more.

What calls off a whole question elsewhere ("it doesn't matter", "none of the above") may mean this one alone here: only
plain words end everything, and the rest leaves the matter to defaults.
"""

import re

from langgraph.runtime import Runtime

from assay.deps import Deps
from assay.reasoning.embedded.small_talk import is_cancelled
from assay.stages.asking import ask
from assay.stages.gate import may_wait
from assay.state import Plain, State
from assay.text.words import fold

ALL = "All of the above"
CUSTOM = "Custom"
_UNASKED = {
    "mode": "The mode was changed to auto: what had not been asked yet was left to defaults.",
    "nobody": "Nobody could be asked: planning questions that were open were left to defaults.",
    "timer": "Nobody answered a planning question in time: what was still open was left to defaults.",
}
_ENDS = re.compile(r"\b(?:never ?mind|cancel|abort|stop|quit|exit|forget|call (?:it|this|that|everything) off)\b")
_ANY = re.compile(
    r"(?:(?:it|that|this) )?(?:really )?(?:doesn'?t|does not) (?:really )?matter|no matter|any(?:thing|one|way)?"
    r"|any of (?:them|these|those|the above)|either|whatever|whichever|all the same|(?:it'?s )?up to you"
    r"|you (?:choose|decide|pick)|i (?:really )?(?:don'?t|do not) (?:care|mind|know)|don'?t (?:care|mind|know)|not sure"
    r"|no (?:idea|opinion|preferences?|thanks?|thank you)|no|nope|none|nothing(?: special| in particular)?"
    r"|none of (?:them|these|those|the above)|skip(?: (?:it|this|that|this one|this question))?|pass|next|default"
    r"|(?:the )?defaults|not (?:needed|necessary|important|relevant)|n/a"
)
_TRIMMING = re.compile(
    r"^(?:ok|okay|oh|well|no|honestly|actually|just|please)[,.!]* (?=\S)|(?:,? (?:to me|please|thanks))$"
)


async def question(state: State, runtime: Runtime[Deps]) -> State:
    deps, given, all_of_them = runtime.context, state["planner_answers"], state["planner_questions"]
    asked = to_be_asked(state)[0]
    answer = {"skipped": "nobody"} if not may_wait(deps) else ask(
        "planning", asked["text"], deps.now(), seconds=deps.settings.breakpoints.question_timeout, on_timeout="guess",
        options=[*asked["options"], *([ALL] if asked["all_of_the_above"] else []), CUSTOM],
        id=asked["id"], number=all_of_them.index(asked) + 1, of=len(all_of_them),
    )  # fmt: skip
    if "skipped" in answer:
        note = _UNASKED[answer["skipped"]]
        await deps.emit("notice", "question", text=note)
        return {
            "planner_questions": [one for one in all_of_them if one not in to_be_asked(state)],
            "notices": {**state["notices"], "planning": note},
            "current_agent": "question",
        }
    if ends(answer["text"]):
        understanding = {**(state["understanding"] or {}), "intent": "cancel"}
        return {"understanding": understanding, "planner_questions": [], "current_agent": "question"}
    if leaves_open(answer["text"]):
        await deps.emit("notice", "question", text=f"No preference: {asked['about']} is left to defaults.")
        left = [{**one, "left_open": True} if one == asked else one for one in all_of_them]
        return {"planner_questions": left, "current_agent": "question"}
    return {"planner_answers": {**given, asked["id"]: answer["text"]}, "current_agent": "question"}


def was_cut_short(state: State) -> bool:
    """Whether the person has turned to auto rather than answer: they want no more questions about the plan."""
    return state["notices"].get("planning") == _UNASKED["mode"]


def to_be_asked(state: State) -> list[Plain]:
    """Planning questions that were neither answered nor left open."""
    given = state["planner_answers"]
    return [one for one in state["planner_questions"] if one["id"] not in given and not one.get("left_open")]


def ends(text: str) -> bool:
    return is_cancelled(text) and bool(_ENDS.search(_plain(text)))


def leaves_open(text: str) -> bool:
    """Whether no preference was said: nothing is to follow from it."""
    said = _plain(text)
    return is_cancelled(text) or bool(_ANY.fullmatch(said) or _ANY.fullmatch(_TRIMMING.sub("", said)))


def _plain(text: str) -> str:
    return " ".join(fold(text).replace("’", "'").split()).rstrip(" .!?")
