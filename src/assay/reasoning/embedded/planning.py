"""Planning by rules: clauses of the question become sub-questions, its class adds the facets it lacks."""

import re
from collections.abc import Sequence

from assay.model.plan import MOST_QUERIES, MOST_QUESTIONS, TYPES_BY_DEPTH, Plan, QueryType, SearchQuery, SubQuestion
from assay.model.question import Depth, Understanding
from assay.reasoning.embedded.focus import focus
from assay.reasoning.embedded.matter import clause, is_clause, matter
from assay.reasoning.embedded.sides import filled
from assay.reasoning.embedded.understanding import topic_of
from assay.reasoning.embedded.wishes import Wishes, wishes
from assay.reasoning.protocol import PlanRequest
from assay.text.words import content_words, fold, stem, stems

# Sub-questions a depth gives. What a person chose comes on top of them, up to what a plan may hold.
MOST = {Depth.QUICK: 1, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
FEWEST = {Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MORE = 2  # sub-questions where all there is, is wanted

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
        "What evidence is there: {asked}?",
        "Which explanations are disputed: {asked}?",
        "Which figures are given: {asked}?",
        "What were the consequences: {asked}?",
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
        "What is needed to {act}?",
        "Which steps does it take to {act}?",
        "What can go wrong for those who {act}?",
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

_CODE: tuple[QueryType, ...] = ("code",)
_ON_CODE = re.compile(
    r"\bgit(?:hub|lab)\b|\bopen[- ]source\b|\bsource code\b|\brepositor(?:y|ies)\b|\b(?:software|programming|python|"
    r"javascript|typescript|rust|java|golang) (?:librar(?:y|ies)|packages?|frameworks?|tools?|languages?|sdks?)\b",
    re.I,
)

COMPANY_SECTIONS: tuple[str, ...] = ("Overview", "Recent news", "Financial snapshot")


def plan(request: PlanRequest, *, company: bool) -> Plan:
    wanted, depth = wishes(request, company=company), request.depth
    understanding = request.understanding
    if wanted.period:
        understanding = understanding.model_copy(update={"temporal_scope": wanted.period})
    texts, reasoning = _sub_questions(understanding, depth, wanted)
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
    return Plan(
        goal=understanding.question,
        topic=", ".join(part for part in (matter(understanding), understanding.temporal_scope) if part),
        depth=depth,
        constraints=wanted.constraints,
        deliverable=request.deliverable,
        questions=questions,
        queries=_plan_queries(questions, understanding, depth, wanted),
        sections=sections,
        methodology="Each sub-question is searched on its own; sentences of the sources that answer it are "
        "quoted, compared across independent sources and checked against their passages.",
        reasoning=(*reasoning, *wanted.reasoning),
        confidence=round(1 - understanding.ambiguity_level, 2),
        warnings=_warnings(understanding),
        estimated_complexity=understanding.complexity,
        words=wanted.words,
        style=wanted.style,
    )


def _sub_questions(understanding: Understanding, depth: Depth, wanted: Wishes) -> tuple[list[str], list[str]]:
    """What is asked itself, then what a person chose, then the facets that are missing."""
    clauses = list(dict.fromkeys(_clauses(understanding.question)))
    if depth is Depth.QUICK:
        texts = list(dict.fromkeys([understanding.question, *wanted.sides]))
        return texts[:MOST_QUESTIONS], ["A quick answer follows the question as it stands."]
    reasoning = [f"The question has {len(clauses)} part{'s' * (len(clauses) > 1)}."]
    if understanding.query_class == "comparison" and len(understanding.subjects) > 1:
        clauses += [f"What is known about {subject}?" for subject in understanding.subjects]
    own = list(dict.fromkeys(clauses))[: MOST[depth]]
    chosen = list(dict.fromkeys([*wanted.sides, *wanted.facets]))
    missing = max(0, min(FEWEST[depth], MOST[depth]) - len(own)) + MORE * wanted.thorough
    facets = [facet for facet in _facets(understanding) if facet not in (*own, *chosen)][:missing]
    if facets:
        reasoning.append(f"As a question about {_ABOUT[understanding.query_class]} it also needs: {'; '.join(facets)}")
    return [*own, *(text for text in (*chosen, *facets) if text not in own)][:MOST_QUESTIONS], reasoning


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
    """The parts of a compound question, each ended by a question mark; an order is turned into a question."""
    parts = [_TRAILING.sub("", part.strip(" .?!,؟？")) for part in _CLAUSE.split(question)]
    parts = [part.removeprefix("and ").strip(" ,") for part in parts if len(content_words(part)) >= 1]
    kept = [part for part in parts if len(part.split()) >= 3] or [question.strip(" .?!؟？")]
    about = topic_of(question)
    first, rest = kept[0], [_LEANING.sub(_article(about, question), part) for part in kept[1:]]
    asked = [_question(part) for part in (first, *rest)]
    return [f"{part[:1].upper()}{part[1:]}?" for part in asked]


def _question(part: str) -> str:
    if compared := _COMPARE.match(part):
        return f"how do {compared[1]} and {compared[2]} compare"
    return _ORDER.sub("what is known about ", part)


_ORDER = re.compile(
    r"^(?:please\s+)?(?:now\s+)?(?:tell me(?: more)? about|describe|explain|give me an? (?:overview|summary) of|"
    r"research|investigate|report on|summari[sz]e)\s+(?!(?:how|why|what|when|who|where|which|if|whether)\b)",
    re.I,
)
_COMPARE = re.compile(r"^(?:please\s+)?compare\s+(.+?)\s+(?:and|with|to|versus|vs\.?)\s+(.+)$", re.I)
_TRAILING = re.compile(r",?\s*(?:and\s+)?if (?:so|yes|not|any)$", re.I)
_LEANING = re.compile(r"\b(?:it|them|they)\b(?!\s+(?:is|was|has)\b)", re.I)


def _article(matter: str, question: str) -> str:
    return f"the {matter}" if f"the {matter}" in question else matter


def _facets(understanding: Understanding) -> list[str]:
    when = f" {understanding.temporal_scope}" if understanding.temporal_scope else ""
    if is_clause(understanding) and understanding.query_class not in ("cause", "comparison", "procedure"):
        return [f"{side}: {clause(understanding)}" for side in _SIDES_OF_A_CLAUSE]
    return [filled(facet, understanding).replace("{when}", when) for facet in _FACETS[understanding.query_class]]


_SIDES_OF_A_CLAUSE = ("Background", "Figures", "Open or disputed")


def _warnings(understanding: Understanding) -> tuple[str, ...]:
    warnings = []
    if understanding.ambiguity_level > 0.5:
        warnings.append("The question is ambiguous; this plan is a best guess.")
    if understanding.complexity == "complex":
        warnings.append("The question has many parts; some may get few sources.")
    return tuple(warnings)


def _plan_queries(
    questions: Sequence[SubQuestion], understanding: Understanding, depth: Depth, wanted: Wishes
) -> tuple[SearchQuery, ...]:
    """One query per sub-question, one with what narrows the search, one for every other kind of source in turn, then
    second variations until there are enough. A period that was chosen stands in all of them."""
    first, *others = (
        (*TYPES_BY_DEPTH[depth], *_CODE) if _ON_CODE.search(understanding.question) else TYPES_BY_DEPTH[depth]
    )
    due: list[tuple[int, SubQuestion, str, QueryType]] = []
    for number, question in enumerate(questions):
        texts = [_with(text, content_words(wanted.period or "")) for text in queries(question, understanding, 3)]
        texts = list(dict.fromkeys(texts))
        due.append((1, question, texts[0], first))
        if wanted.narrowing:
            due.append((2, question, _with(texts[0], wanted.narrowing), first))
        turned = [others[(number + turn) % len(others)] for turn in range(len(others))]
        due += [(3 + turn, question, texts[0], kind) for turn, kind in enumerate(turned)]
        due += [(9, question, text, first) for text in texts[1:]]
    due.sort(key=lambda item: item[0])
    distinct = {(question.id, text, kind): (rank, question, text, kind) for rank, question, text, kind in reversed(due)}
    return tuple(
        SearchQuery(id=f"K{n}", text=text, question=question.id, type=kind, priority=_PRIORITY.get(rank, 2))
        for n, (rank, question, text, kind) in enumerate(list(distinct.values())[::-1][:MOST_QUERIES], 1)
    )


_PRIORITY = {1: 1, 9: 3}  # 2: what narrows, and other kinds of source


def _with(text: str, words: Sequence[str]) -> str:
    return " ".join(_distinct([*text.split(), *words])) if words else text


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
