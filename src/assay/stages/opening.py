"""How an answer begins: the less there is behind it, the plainer that is said (C-10)."""

from collections.abc import Sequence

from assay.model.question import Depth
from assay.reasoning.protocol import DraftSection, DraftSentence
from assay.stages.analyse import SURE
from assay.state import State
from assay.trust.frames import Told

SAYS_ITSELF, PLAIN = 8.0, 6.0  # confidence from which on nothing need be said, and from which on no doubt


def opening(state: State, depth: Depth, told: Told) -> tuple[DraftSentence, ...]:
    """Whatever the writer wrote: how sure the research is, is counted and not the writer's to say."""
    confidence = state["confidence"]
    about = _about(state, told)
    lines = []
    if confidence < PLAIN:
        lines.append(f"This is based on limited information{about}.")
    elif confidence < SAYS_ITSELF:
        lines.append(f"Here is what was found{about}.")
    if ran_out(state, depth):
        lines.append(f"After {state['research_attempts']} attempts {_wanting(state)}.")
    return tuple(DraftSentence(text=line) for line in lines)


def _wanting(state: State) -> str:
    """What a report says of itself elsewhere it does not contradict here."""
    if state["confidence"] < PLAIN or (state["analysis"] or {}).get("unanswered"):
        return "not everything that was asked could be verified"
    return "the evidence for part of what was asked is still thin"


def ran_out(state: State, depth: Depth) -> bool:
    """Whether research ended although the validator wanted more. Its word is old where the last round was sure."""
    again = state["research_attempts"] > 1
    return again and state["validation_result"] == "insufficient" and state["confidence"] < SURE[depth] * 10


def opened(sections: Sequence[DraftSection], lines: Sequence[DraftSentence]) -> list[DraftSection]:
    """The sections, of which the first begins with these lines."""
    if not sections or not lines:
        return list(sections)
    first, *others = sections
    return [first.model_copy(update={"sentences": (*lines, *first.sentences)}), *others]


def _about(state: State, told: Told) -> str:
    subjects = (state["understanding"] or {}).get("subjects") or [state.get("subject")]
    named = [_as_asked(subject, state["original_query"]) for subject in subjects[:2] if subject]
    about = f" about {' and '.join(named)}" if named else ""
    return about if told.covers(f"This is based on limited information{about}.") else ""


def _as_asked(subject: str, question: str) -> str:
    """With the article that the question gave it."""
    return f"the {subject}" if f"the {subject.lower()}" in question.lower() else subject
