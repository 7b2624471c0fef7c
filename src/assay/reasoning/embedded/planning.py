"""Planning by rules: clauses of the question become sub-questions, its class adds the facets it lacks."""

import re
from collections.abc import Sequence

from assay.model.plan import TYPES_BY_DEPTH, Plan, QueryType, SearchQuery, SubQuestion
from assay.model.question import Depth, PlannerQuestion, Understanding
from assay.reasoning.embedded.focus import focus
from assay.reasoning.embedded.understanding import topic_of
from assay.reasoning.protocol import PlanRequest
from assay.text.words import content_words, fold, stem, stems

MOST_QUESTIONS = {Depth.QUICK: 1, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
MOST_QUERIES = 15
MOST_WITH_SIDES = 7  # sides a person chose come on top of what the depth gives, up to what a plan may hold

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
        "What is known about {topic}?",
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

# The sides of a topic a person can choose, and the sub-question each adds.
_SIDES: tuple[tuple[str, str], ...] = (
    ("The facts and figures on {topic}", "Which figures are given for {topic}?"),
    ("Why: causes and explanations of {topic}", "Which causes and explanations of {topic} are given?"),
    ("What is disputed about {topic}", "What is uncertain or disputed about {topic}?"),
    ("What comes next for {topic}", "What is expected for {topic}?"),
)
_EVERY_SIDE = "All of the above"

# How deep a report should go, in words; None: all there is.
_LENGTHS: dict[str, int | None] = {
    "A one-page answer": 350, "A short report": 800, "A full report": 2000, "All there is": None,
}  # fmt: skip
_WORDS = re.compile(r"\b([1-9]\d{1,4})\s+words\b", re.I)
_ANY_TIME = "All of it"

_CODE: tuple[QueryType, ...] = ("code",)
_ON_CODE = re.compile(
    r"\bgit(?:hub|lab)\b|\bopen[- ]source\b|\bsource code\b|\brepositor(?:y|ies)\b|\b(?:software|programming|python|"
    r"javascript|typescript|rust|java|golang) (?:librar(?:y|ies)|packages?|frameworks?|tools?|languages?|sdks?)\b",
    re.I,
)

COMPANY_SECTIONS: tuple[str, ...] = ("Overview", "Recent news", "Financial snapshot")


def plan(request: PlanRequest, *, company: bool) -> Plan:
    understanding, depth = _in_time(request), request.depth
    texts, reasoning = _sub_questions(understanding, depth, _sides(request))
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
        queries=_plan_queries(questions, understanding, depth, _timeframe(request) or ""),
        sections=sections,
        methodology="Each sub-question is searched on its own; sentences of the sources that answer it are "
        "quoted, compared across independent sources and checked against their passages.",
        reasoning=(*reasoning, *(f"Taken into account: {line}" for line in constraints)),
        confidence=round(1 - understanding.ambiguity_level, 2),
        warnings=_warnings(understanding),
        estimated_complexity=understanding.complexity,
        words=_length(request),
    )


def _timeframe(request: PlanRequest) -> str | None:
    """The period a person chose: 'The last year' is asked for as 'over the last year'."""
    answer = " ".join(request.answers.get("timeframe", "").split()).strip(" .?!")
    if not answer or fold(answer) == fold(_ANY_TIME):
        return None
    return f"over {answer[:1].lower()}{answer[1:]}" if fold(answer).startswith("the last ") else answer


def _in_time(request: PlanRequest) -> Understanding:
    chosen = _timeframe(request)
    return request.understanding.model_copy(update={"temporal_scope": chosen}) if chosen else request.understanding


def _sides(request: PlanRequest) -> list[str]:
    """A sub-question for each side a person chose, or named in words of their own."""
    parts = (" ".join(part.split()).strip(" .?!") for part in request.answers.get("scope", "").split(";"))
    return list(dict.fromkeys(text for part in parts if part for text in _side(part, _topic(request.understanding))))


def _side(answer: str, topic: str) -> list[str]:
    every = fold(answer) == fold(_EVERY_SIDE)
    chosen = [text for option, text in _SIDES if every or fold(answer).startswith(fold(option.partition(" {")[0]))]
    return [text.replace("{topic}", topic) for text in chosen] or [
        f"What is known about {topic} with regard to {answer}?"
    ]


def _length(request: PlanRequest) -> int | None:
    answer = request.answers.get("depth", "").strip()
    if named := _WORDS.search(answer):
        return int(named[1])
    return next((words for option, words in _LENGTHS.items() if fold(answer) == fold(option)), None)


def _sub_questions(understanding: Understanding, depth: Depth, sides: list[str]) -> tuple[list[str], list[str]]:
    """What is asked itself, then the sides a person chose, then the facets that are missing."""
    clauses = _clauses(understanding.question)
    if depth is Depth.QUICK:
        return [understanding.question, *sides][:MOST_WITH_SIDES], ["A quick answer follows the question as it stands."]
    reasoning = [f"The question has {len(clauses)} part{'s' * (len(clauses) > 1)}."]
    texts = list(dict.fromkeys(clauses))
    if understanding.query_class == "comparison" and len(understanding.subjects) > 1:
        texts += [f"What is known about {subject}?" for subject in understanding.subjects]
    missing = max(0, 3 - len(texts)) if depth is Depth.STANDARD else max(0, 5 - len(texts))
    facets = [facet for facet in _facets(understanding) if facet not in (*texts, *sides)][:missing]
    if facets:
        reasoning.append(f"As a question about {_ABOUT[understanding.query_class]} it also needs: {'; '.join(facets)}")
    own = list(dict.fromkeys(texts))[: MOST_QUESTIONS[depth]]
    facets = facets[: MOST_QUESTIONS[depth] - len(own)]
    return list(dict.fromkeys([*own, *sides, *facets]))[:MOST_WITH_SIDES], reasoning


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
    topic = _topic(understanding)
    if _A_CLAUSE.search(topic):
        asked = _clauses(understanding.question)[0].rstrip("?")
        return [f"{side}: {asked[:1].lower()}{asked[1:]}" for side in _SIDES_OF_A_CLAUSE]
    return [facet.format(topic=topic, when=when) for facet in _FACETS[understanding.query_class]]


# A topic that is a clause ("people were injured in the fire") does not fit into a question.
_A_CLAUSE = re.compile(
    r"^(?:how|why|what|who|when|where|which)\b|\b(?:is|are|was|were|did|do|does|has|have|had|will|would|can|could|be|been)\b",
    re.I,
)
_SIDES_OF_A_CLAUSE = ("Background", "Figures", "Open or disputed")


def _topic(understanding: Understanding) -> str:
    return understanding.topic_focus or understanding.question.strip(" .?!")


def _warnings(understanding: Understanding) -> tuple[str, ...]:
    warnings = []
    if understanding.ambiguity_level > 0.5:
        warnings.append("The question is ambiguous; this plan is a best guess.")
    if understanding.complexity == "complex":
        warnings.append("The question has many parts; some may get few sources.")
    return tuple(warnings)


def _plan_queries(
    questions: Sequence[SubQuestion], understanding: Understanding, depth: Depth, timeframe: str
) -> tuple[SearchQuery, ...]:
    """One query per sub-question and source type, then second variations until there are enough. A period that was
    chosen stands in all of them."""
    wanted: list[tuple[SubQuestion, str, QueryType, int]] = []
    types = (*TYPES_BY_DEPTH[depth], *_CODE) if _ON_CODE.search(understanding.question) else TYPES_BY_DEPTH[depth]
    for question in questions:
        variations = queries(question, understanding, 3)
        if timeframe:
            dated = (" ".join(_distinct([*text.split(), *content_words(timeframe)])) for text in variations)
            variations = list(dict.fromkeys(dated))
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
    when = content_words(f"{understanding.temporal_scope or ''} {question.topic}")
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
            options=tuple(option.format(topic=topic) for option, _ in _SIDES), all_of_the_above=True,
        )
    ]  # fmt: skip
    if not understanding.temporal_scope:
        asked.append(
            PlannerQuestion(id="timeframe", about="timeframe", text=f"Which period of {topic} should count?",
                            options=("The last year", "The last three years", "The last ten years", _ANY_TIME))
        )  # fmt: skip
    if understanding.complexity != "simple":
        asked.append(
            PlannerQuestion(id="depth", about="depth", text=f"How deep should the report on {topic} go?",
                            options=tuple(_LENGTHS))
        )  # fmt: skip
    return asked
