"""Questions to the person before planning, about what the question leaves open and nothing else."""

import re
from collections.abc import Mapping

from assay.model.question import PlannerQuestion, Understanding
from assay.reasoning.embedded.length import STATED as LENGTH_STATED
from assay.reasoning.embedded.length import lengths
from assay.reasoning.embedded.matter import Field, act, field_of, spoken
from assay.reasoning.embedded.sides import sides
from assay.reasoning.embedded.understanding import temporal_scope
from assay.reasoning.embedded.use import STATED as USE_STATED
from assay.reasoning.embedded.use import offered

ANY_TIME = "All of it"

# How far back each field looks.
_PERIODS: dict[Field, tuple[str, str, str]] = {
    "company": ("The last three months", "The last year", "The last five years"),
    "law": ("What is in force today", "The last year", "The last ten years"),
    "medicine": ("The last two years", "The last five years", "The last twenty years"),
    "software": ("The last six months", "The last two years", "The last five years"),
    "science": ("The last two years", "The last ten years", "The last fifty years"),
    "economy": ("The last year", "The last three years", "The last ten years"),
    "place": ("The last year", "The last ten years", "The last hundred years"),
    "general": ("The last year", "The last three years", "The last ten years"),
}
_SCOPE = {
    "overview": "Which side of {} matters most?",
    "comparison": "What matters most in comparing {}?",
    "procedure": "What matters most about {}?",
}
# A question about the past, or about all of time.
_TIMELESS = re.compile(
    r"^why (?:did|was|were)\b|\b(?:histor(?:y|ical)|ever|always|of all time|timeline|centur(?:y|ies))\b", re.I
)
_PARTS = re.compile(r"\b(?:how|why|what|when|who|where|which)\b", re.I)
SAYS_ITS_SCOPE = 3  # parts of a question from which on it says itself which sides it wants


def planner_questions(
    understanding: Understanding, known: Mapping[str, str] | None = None, *, company: bool = False
) -> list[PlannerQuestion]:
    """`known`: what was said besides the question, by what it is about (scope, timeframe, depth, use), and under
    `context` in the person's own words."""
    field = field_of(understanding, company=company)
    about = spoken(understanding)
    every = [
        PlannerQuestion(
            id="scope", about="scope", text=_SCOPE.get(understanding.query_class, _SCOPE["overview"]).format(about),
            options=tuple(side.label for side in sides(understanding, company=company)), all_of_the_above=True,
        ),
        PlannerQuestion(
            id="timeframe", about="timeframe", text=f"Which period should count for {about}?",
            options=(*_PERIODS[field], ANY_TIME),
        ),
        PlannerQuestion(
            id="use", about="use", text=f"What will you use the report on {about} for?",
            options=tuple(offered(field, to_do=act(understanding) is not None)),
        ),
        PlannerQuestion(
            id="depth", about="depth", text=f"How deep should the report on {about} go?",
            options=lengths(understanding.query_class, about),
        ),
    ]  # fmt: skip
    said = _said(understanding, known or {})
    return [question for question in every if question.about not in said] or every[:1]


def _said(understanding: Understanding, known: Mapping[str, str]) -> set[str]:
    """What need not be asked: the question says it, the person said it before, or it makes no difference."""
    text = f"{understanding.question} {known.get('context', '')}"
    says = {
        "scope": len(set(map(str.lower, _PARTS.findall(understanding.question)))) >= SAYS_ITS_SCOPE,
        "timeframe": bool(understanding.temporal_scope or temporal_scope(text) or _TIMELESS.search(text))
        or act(understanding) is not None,
        "use": bool(USE_STATED.search(text)),
        "depth": understanding.complexity == "simple" or bool(LENGTH_STATED.search(text)),
    }
    return {about for about, holds in says.items() if holds or known.get(about)}
