"""Planning by rules: clauses of the question become sub-questions, its class adds the facets it lacks."""

import re
from collections.abc import Sequence
from typing import Literal

from assay.model.plan import TYPES_BY_DEPTH, Plan, QueryType, SearchQuery, SubQuestion
from assay.model.question import Depth, PlannerQuestion, Understanding
from assay.reasoning.embedded.focus import focus
from assay.reasoning.embedded.understanding import topic_of
from assay.reasoning.protocol import PlanRequest
from assay.text.words import content_words, fold, stem, stems

MOST_QUESTIONS = {Depth.QUICK: 1, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_QUERIES = 15

_CLAUSE = re.compile(
    r"\s*(?:[;?]|,?\s+and(?=\s+(?:how|why|what|when|who|where|which|is|are|do|does|did|will)\b)|,(?=\s*(?:and\s+)?"
    r"(?:how|why|what|when|who|where|which)\b))\s*",
    re.I,
)

# What is worth asking besides the question itself; {topic} is filled with the question's own words.
_FACETS: dict[str, tuple[str, ...]] = {
    "change": (
        "What were the figures for {topic}{when}?",
        "What drove the change in {topic}?",
        "How does {topic} compare with earlier periods?",
        "What is expected for {topic}?",
    ),
    "cause": (
        "What is known about {topic}?",
        "What evidence is there on {topic}?",
        "Which explanations of {topic} are disputed?",
    ),
    "comparison": (
        "What do {topic} have in common?",
        "Which figures set {topic} apart?",
        "What are the limits of comparing {topic}?",
    ),
    "fact": (
        "Which figures are given for {topic}?",
        "How was {topic} established?",
        "What is uncertain or disputed about {topic}?",
        "What has changed recently in {topic}?",
    ),
    "overview": (
        "What are the key developments in {topic}?",
        "Which figures are given for {topic}?",
        "What is the recent news on {topic}?",
        "What is uncertain or disputed about {topic}?",
    ),
    "procedure": (
        "What does {topic} require?",
        "Which steps does {topic} have?",
        "What can go wrong with {topic}?",
    ),
    "yes_no": (
        "What is said about {topic}?",
        "Which figures are given for {topic}?",
        "What speaks against {topic}?",
    ),
}  # fmt: skip

# Words that tend to stand in answers to a kind of question; one of the query variations carries them.
_ANSWER_WORDS: dict[str, str] = {
    "change": "increase decrease compared higher lower",
    "cause": "because due explanation reason",
    "comparison": "compared higher lower difference",
    "fact": "measured value reported",
    "overview": "recent developments reported",
    "procedure": "steps require",
    "yes_no": "evidence shows",
}

COMPANY_SECTIONS: tuple[str, ...] = ("Overview", "Recent news", "Financial snapshot")


def plan(request: PlanRequest, *, company: bool) -> Plan:
    understanding, depth = request.understanding, request.depth
    texts, reasoning = _sub_questions(understanding, depth, company)
    sections = tuple(texts)
    if depth is Depth.QUICK:
        sections = COMPANY_SECTIONS if company else ("Answer",)
    questions = tuple(
        SubQuestion(
            id=f"Q{n}",
            text=text,
            section=text if text in sections else sections[0],
            topic=_context(text, understanding),
        )
        for n, text in enumerate(texts, 1)
    )
    constraints = tuple(f"{key}: {answer}" for key, answer in request.answers.items())
    return Plan(
        goal=understanding.question,
        depth=depth,
        constraints=constraints,
        deliverable=request.deliverable,
        questions=questions,
        queries=_plan_queries(questions, understanding, depth),
        sections=sections,
        methodology="Each sub-question is searched on its own; sentences of the sources that answer it are "
        "quoted, compared across independent sources and checked against their passages.",
        reasoning=(*reasoning, *(f"Taken into account: {line}" for line in constraints)),
        confidence=round(1 - understanding.ambiguity_level, 2),
        warnings=_warnings(understanding),
        estimated_complexity=understanding.complexity,
    )


def _sub_questions(understanding: Understanding, depth: Depth, company: bool) -> tuple[list[str], list[str]]:
    clauses = _clauses(understanding.question)
    if depth is Depth.QUICK:
        return [understanding.question], ["A quick answer follows the question as it stands."]
    reasoning = [f"The question has {len(clauses)} part{'s' * (len(clauses) > 1)}."]
    texts = list(dict.fromkeys(clauses))
    if understanding.query_class == "comparison" and len(understanding.subjects) > 1:
        texts += [f"What is known about {subject}?" for subject in understanding.subjects]
    missing = max(0, 3 - len(texts)) if depth is Depth.STANDARD else max(0, 5 - len(texts))
    facets = [facet for facet in _facets(understanding) if facet not in texts][:missing]
    if facets:
        reasoning.append(f"As a question about {_ABOUT[understanding.query_class]} it also needs: {'; '.join(facets)}")
    texts += facets
    return list(dict.fromkeys(texts))[: MOST_QUESTIONS[depth]], reasoning


_ABOUT = {
    "change": "a change over time", "cause": "causes", "comparison": "a comparison", "fact": "a fact",
    "overview": "the state of a matter", "procedure": "how to do something", "yes_no": "whether something holds",
}  # fmt: skip


def _context(text: str, understanding: Understanding) -> str:
    """The topic, for a clause that leans on another: 'why do the measurements disagree?'"""
    topic = set(stems(understanding.topic_focus))
    parts = [] if topic & set(stems(text)) else [understanding.topic_focus]
    if understanding.temporal_scope and understanding.temporal_scope not in text:
        parts.append(understanding.temporal_scope)
    return ", ".join(part for part in parts if part)


def _clauses(question: str) -> list[str]:
    """The parts of a compound question, each ended by a question mark."""
    parts = [_TRAILING.sub("", part.strip(" .?!,؟？")) for part in _CLAUSE.split(question)]
    parts = [part.removeprefix("and ").strip(" ,") for part in parts if len(content_words(part)) >= 1]
    kept = [part for part in parts if len(part.split()) >= 3] or [question.strip(" .?!؟？")]
    matter = topic_of(question)
    first, rest = kept[0], [_LEANING.sub(_article(matter, question), part) for part in kept[1:]]
    return [f"{part[:1].upper()}{part[1:]}?" for part in (first, *rest)]


_TRAILING = re.compile(r",?\s*(?:and\s+)?if (?:so|yes|not|any)$", re.I)
_LEANING = re.compile(r"\b(?:it|them|they)\b(?!\s+(?:is|was|has)\b)", re.I)


def _article(matter: str, question: str) -> str:
    return f"the {matter}" if f"the {matter}" in question else matter


def _facets(understanding: Understanding) -> list[str]:
    when = f" {understanding.temporal_scope}" if understanding.temporal_scope else ""
    topic = understanding.topic_focus or understanding.question.strip(" .?!")
    return [facet.format(topic=topic, when=when) for facet in _FACETS[understanding.query_class]]


def _warnings(understanding: Understanding) -> tuple[str, ...]:
    warnings = []
    if understanding.ambiguity_level > 0.5:
        warnings.append("The question is ambiguous; this plan is a best guess.")
    if understanding.complexity == "complex":
        warnings.append("The question has many parts; some may get few sources.")
    return tuple(warnings)


def _plan_queries(
    questions: Sequence[SubQuestion], understanding: Understanding, depth: Depth
) -> tuple[SearchQuery, ...]:
    """One query per sub-question and source type, then second variations until there are enough."""
    wanted: list[tuple[SubQuestion, str, QueryType, int]] = []
    types = TYPES_BY_DEPTH[depth]
    for question in questions:
        variations = queries(question, understanding, 3)
        wanted.append((question, variations[0], types[0], 1))
        wanted.extend((question, text, "web", 3) for text in variations[1:])
        wanted.extend((question, variations[0], kind, 2) for kind in types[1:])
    wanted.sort(key=lambda item: item[3])
    return tuple(
        SearchQuery(id=f"K{n}", text=text, question=question.id, type=kind, priority=priority)
        for n, (question, text, kind, priority) in enumerate(wanted[:MOST_QUERIES], 1)
    )


def queries(question: SubQuestion, understanding: Understanding, count: int) -> list[str]:
    """Variations of one sub-question: its own words, with the subject, and with words answers tend to use."""
    own = content_words(focus(question.text))
    context = content_words(focus(" ".join([*understanding.subjects, understanding.topic_focus])))
    when = content_words(understanding.temporal_scope or "")
    variations = (
        [*own, *context] if len(own) < 3 else own,
        [*context, *own, *when],
        [*context, *own, *_ANSWER_WORDS[_kind(question.text, understanding)].split()],
        [*context, *when],
    )
    texts = (" ".join(_distinct(words)) for words in variations)
    return list(dict.fromkeys(text for text in texts if text))[:count] or [question.text]


def _kind(text: str, understanding: Understanding) -> str:
    return "cause" if fold(text).startswith("why") else understanding.query_class


def _distinct(words: Sequence[str]) -> list[str]:
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(stem(word), word)
    return list(seen.values())


def planner_questions(understanding: Understanding) -> list[PlannerQuestion]:
    """What a person is asked before planning: only what the question leaves open."""
    topic = understanding.topic_focus or understanding.question
    asked = [
        PlannerQuestion(
            id="scope", about="scope", text=f"Which side of {topic} matters most?",
            options=(f"The facts and figures on {topic}", f"Why: causes and explanations of {topic}",
                     f"What is disputed about {topic}", f"What comes next for {topic}"),
            all_of_the_above=True,
        )
    ]  # fmt: skip
    if not understanding.temporal_scope:
        asked.append(
            PlannerQuestion(id="timeframe", about="timeframe", text=f"Which period of {topic} should count?",
                            options=("The last year", "The last three years", "The last ten years", "All of it"))
        )  # fmt: skip
    if understanding.complexity != "simple":
        asked.append(
            PlannerQuestion(id="depth", about="depth", text=f"How deep should the report on {topic} go?",
                            options=("A one-page answer", "A short report", "A full report", "All there is"))
        )  # fmt: skip
    asked.append(
        PlannerQuestion(id="use", about="use", text=f"What will you use the report on {topic} for?",
                        options=("To decide something", "To brief others", "To write about it", "To learn about it"))
    )  # fmt: skip
    return asked


def length_of(answers: dict[str, str]) -> Literal["short", "normal"]:
    return "short" if "one-page" in fold(answers.get("depth", "")) else "normal"
