"""Planning by rules: clauses of the question become sub-questions, its class adds the facets it lacks."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from openassay.models.plan import (
    MOST_QUERIES,
    MOST_QUESTIONS,
    TYPES_BY_DEPTH,
    Depth,
    Plan,
    PlannerQuestion,
    QueryType,
    SearchQuery,
    Style,
    SubQuestion,
    Understanding,
)
from openassay.reasoning.base import PlanRequest
from openassay.reasoning.rules.phrases import LENGTH_PATTERN as LENGTH_STATED
from openassay.reasoning.rules.phrases import USE_PATTERN as USE_STATED
from openassay.reasoning.rules.phrases import (
    Field,
    address_topic,
    asks_for_everything,
    classify_field,
    describe_topic,
    find_action,
    find_matter,
    first_clause,
    is_clause,
    list_lengths,
    list_uses,
    parse_length,
    parse_use,
    strip_document_references,
)
from openassay.reasoning.rules.understand import extract_topic, find_period
from openassay.text.frames import frame
from openassay.text.other_languages import find_other_language
from openassay.text.pairs import PairQuestion, parse_pair
from openassay.text.questions import is_pointed
from openassay.text.words import content_words, find_names, fold, stem, stems, words

# The sides of a matter a person can choose, and the sub-question each adds.

MOST_OPTIONS = 4

ScopeKind = Field | Literal["comparison", "cause", "procedure"]


class ScopeOption(NamedTuple):
    """What the person sees, what is asked for it, and words of a question that asks it already."""

    label: str
    text: str
    said: str = ""


# A line a side: its label, its sub-question, and words by which a question asks for it.
_TABLES: dict[ScopeKind, str] = {
    "general": """
        The facts and figures on {topic} | Which figures are given for {topic}? | figures statistics numbers much many
        Why: causes and explanations of {topic} | Which causes and explanations of {topic} are given? | why cause reason
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        What comes next for {topic} | What is expected for {topic}? | will expected forecast future outlook next
        How {topic} came about | What is the history of {topic}? | history origin began
        Who is affected by {topic} | Who is affected by {topic}, and how? | affect
        How {topic} differs from place to place | How does {topic} differ between countries and regions? | countries
        """,
    "company": """
        Business and products of {topic} | What does {topic} make and sell? | products business
        Results and share price of {topic} | Which revenue, profit and share price does {topic} report? | revenue \
            profit earnings stock share sales
        Recent news and plans of {topic} | What has {topic} announced recently? | news recent happening
        Risks, lawsuits and rivals of {topic} | Which risks, lawsuits and competitors does {topic} face? | risk \
            lawsuit competitor rival
        Who leads and owns {topic} | Who leads and owns {topic}? | ceo own lead management
        How {topic} became what it is | What is the history of {topic}? | history origin founded
        """,
    "law": """
        What the rules on {topic} say | What do the rules on {topic} require? | require say
        Whom the rules apply to, and exceptions | To whom does {topic} apply, and which exceptions are there? | apply \
            exception whom
        Court decisions and practice | How have courts and authorities applied {topic}? | court ruling
        Deadlines and penalties | Which deadlines and penalties does {topic} set? | deadline penalty fine
        What is disputed or about to change | Which changes to {topic} are proposed or disputed? | change disputed
        How other countries handle {topic} | How do other countries regulate {topic}? | countries
        """,
    "medicine": """
        How well it works | How effective is {topic} in trials? | effective efficacy work
        Side effects and risks | Which side effects and risks of {topic} are known? | safe safety risk harm effects
        What guidelines recommend | What do guidelines recommend on {topic}? | guideline recommend
        For whom it is suited and for whom not | For which patients is {topic} suitable or not? | patients suitable
        Alternatives to {topic} | Which alternatives to {topic} are there? | alternative
        What is not known yet | What is uncertain or disputed about {topic}? | disputed uncertain
        """,
    "software": """
        What {topic} can do and what not | Which features and limits does {topic} have? | feature limit
        How fast and reliable {topic} is | Which benchmarks and measurements of {topic} are given? | benchmark fast
        Cost, licence and upkeep of {topic} | What do licence, use and maintenance of {topic} cost? | cost licence price
        Alternatives to {topic} | Which alternatives to {topic} are there? | alternative
        Security and known problems of {topic} | Which security issues and known problems does {topic} have? | security
        """,
    "science": """
        The evidence on {topic} and how it was measured | Which measurements and evidence are there on {topic}? | \
            evidence measured
        Theories and explanations of {topic} | Which theories explain {topic}? | why explain theory cause
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        The newest results on {topic} | What are the most recent results on {topic}? | new newest recent latest
        What follows from {topic} in practice | Which applications or consequences does {topic} have? | application use
        How {topic} was discovered | What is the history of {topic}? | history discovered
        """,
    "economy": """
        The facts and figures on {topic} | Which figures are given for {topic}? | figures statistics numbers much many
        What drives {topic} | Which causes and explanations of {topic} are given? | why cause reason drive
        Who gains and who loses by {topic} | Who is affected by {topic}, and how? | affect gain lose
        What comes next for {topic} | What is expected for {topic}? | will expected forecast future outlook next
        How countries compare in {topic} | How does {topic} differ between countries? | countries
        What is disputed about {topic} | What is uncertain or disputed about {topic}? | disputed disagree controversy
        """,
    "place": """
        Size, nature and climate of {topic} | What are the size, nature and climate of {topic}? | large size area
        People and economy of {topic} | What is known about the people and the economy of {topic}? | population people
        History of {topic} | What is the history of {topic}? | history founded
        Problems and plans in {topic} | Which problems and plans are reported for {topic}? | problem plan
        Visiting {topic} | What do visitors find at {topic}? | visit see travel
        """,
    "comparison": """
        Figures side by side | Which figures set {topic} apart? | figures numbers
        Strengths and weaknesses of each | What are the strengths and weaknesses of {topic}? | strength weakness better
        Costs and benefits of each | What are the costs and benefits of {topic}? | cost price benefit
        For whom or for what each is better | For whom or for what is each of {topic} better? | suit purpose
        What they have in common | What do {topic} have in common? | common alike similar
        How they have changed | How have {topic} changed over time? | change
        """,
    "cause": """
        The immediate causes | Which immediate causes are given: {asked}? |
        Deeper, long-term causes | Which long-term causes are given: {asked}? |
        Where explanations disagree | Which explanations are disputed: {asked}? | disputed disagree
        What followed from it | What were the consequences: {asked}? | consequence effect followed
        The figures behind it | Which figures are given: {asked}? | figures
        """,
    "procedure": """
        What I need before I start | What is needed to {act}? | need require
        The steps one by one | Which steps does it take to {act}? | step
        What it costs in time and money | How long does it take and what does it cost to {act}? | cost expensive
        What can go wrong | What can go wrong for those who {act}? | wrong mistake problem
        Other ways to do it | Which other ways are there to {act}? | alternative
        """,
}


_OPTIONS = {
    kind: [ScopeOption(*map(str.strip, line.split("|"))) for line in table.strip().splitlines()]
    for kind, table in _TABLES.items()
}


def list_scope_options(understanding: Understanding, *, company: bool = False) -> list[ScopeOption]:
    """The four that fit the question best, ready to be shown; what it asks for itself is offered last."""
    asked = {*words(understanding.question), *stems(understanding.question)}
    kind: ScopeKind = classify_field(understanding, company=company)
    if understanding.query_class == "comparison":
        kind = "comparison"
    elif understanding.query_class == "cause" and fold(understanding.question).startswith("why"):
        kind = "cause"
    elif find_action(understanding):
        kind = "procedure"
    elif understanding.query_class == "change":
        kind = "general"
    every = _OPTIONS[kind]
    stated = [side for side in every if asked & {form for word in side.said.split() for form in (word, stem(word))}]
    chosen = [*(side for side in every if side not in stated), *stated][:MOST_OPTIONS]
    about = address_topic(understanding)
    return [
        ScopeOption(side.label.replace("{topic}", about), fill_template(side.text, understanding)) for side in chosen
    ]


def fill_template(template: str, understanding: Understanding) -> str:
    return (
        template.replace("{topic}", describe_topic(understanding))
        .replace("{asked}", first_clause(understanding))
        .replace("{act}", find_action(understanding) or describe_topic(understanding))
    )


# Questions to the person before planning, about what the question leaves open and nothing else.

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


def build_planner_questions(
    understanding: Understanding, known: Mapping[str, str] | None = None, *, company: bool = False
) -> list[PlannerQuestion]:
    """`known`: what was said besides the question, by what it is about (scope, timeframe, depth, use), and under
    `context` in the person's own words."""
    field = classify_field(understanding, company=company)
    about = address_topic(understanding)
    sides = list_scope_options(understanding, company=company)
    scope = _SCOPE.get(understanding.query_class, _SCOPE["overview"]).format(about)
    uses = tuple(list_uses(field, to_do=find_action(understanding) is not None))
    offered: dict[Literal["scope", "timeframe", "depth", "use"], tuple[str, tuple[str, ...]]] = {
        "scope": (scope, tuple(side.label for side in sides)),
        "timeframe": (f"Which period should count for {about}?", (*_PERIODS[field], ANY_TIME)),
        "use": (f"What will you use the report on {about} for?", uses),
        "depth": (f"How deep should the report on {about} go?", list_lengths(understanding.query_class, about)),
    }
    every = [
        PlannerQuestion(id=topic, about=topic, text=text, options=options, all_of_the_above=topic == "scope")
        for topic, (text, options) in offered.items()
    ]
    # What need not be asked: the question says it, the person said it before, or it makes no difference.
    known = known or {}
    text = f"{understanding.question} {known.get('context', '')}"
    says = {
        "scope": len(set(map(str.lower, _PARTS.findall(understanding.question)))) >= SAYS_ITS_SCOPE,
        "timeframe": bool(understanding.temporal_scope or find_period(text) or _TIMELESS.search(text))
        or find_action(understanding) is not None,
        "use": bool(USE_STATED.search(text)),
        "depth": understanding.complexity == "simple" or bool(LENGTH_STATED.search(text)),
    }
    said = {about for about, holds in says.items() if holds or known.get(about)}
    return [question for question in every if question.about not in said] or every[:1]


# What a person wants of a plan: read from their answers, their own words and what is remembered of them.

EVERY = "All of the above"
MOST_NARROWING = 6  # words; of more than that only the names
LONGEST_LINE = 200  # characters of what is repeated in a plan
FOLLOWED = "; one query of each sub-question asks for it"

_NUMBERS = re.compile(r"^\W*[1-4](?:\W+(?:and\W+)?[1-4])*\W*$")
_LAST = re.compile(r"\bthe (?:last|past|previous) [\w ]*?(?:day|week|month|quarter|year|decade)s?\b", re.I)
# What the stage before puts around a person's words.
_ASKED_BACK = re.compile(r"^Asked back: .*? Answer: (?P<answer>.*)$")
_HISTORY = re.compile(r"^(?:Asked|Answered|The conversation so far): ")


class PlanRequirements(NamedTuple):
    sides: tuple[str, ...] = ()  # sub-questions that were chosen
    facets: tuple[str, ...] = ()  # sub-questions that what it is for asks
    period: str | None = None
    words: int | None = None
    style: Style | None = None
    thorough: bool = False  # all there is, is wanted
    narrowing: tuple[str, ...] = ()  # words one query of each sub-question carries
    constraints: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()


def collect_requirements(request: PlanRequest, *, company: bool) -> PlanRequirements:
    asked, answers, given = request.understanding, request.answers, request.answers.items()
    offered = list_scope_options(asked, company=company)
    depth, use = answers.get("depth", ""), parse_use(answers.get("use", ""))
    # A sub-question for each side that was chosen, by its label or number, or named in words of their own.
    scope, texts = answers.get("scope", ""), list[str]()
    numbered = _NUMBERS.match(scope)
    if numbered:
        texts += [offered[int(number) - 1].text for number in re.findall(r"\d", scope)]
    for part in () if numbered else (" ".join(part.split()).strip(" .?!") for part in re.split(r"[;\n]", scope)):
        if fold(part) == fold(EVERY):
            texts += [side.text for side in offered]
        elif named := [side.text for side in offered if fold(side.label) in fold(part)]:
            texts += named
        elif part:
            texts.append(fill_template(f"What is known about {{topic}} with regard to {part}?", asked))
    chosen = list(dict.fromkeys(texts))
    facets = (fill_template(use.text, asked),) if use else ()
    purpose = " ".join(answers.get("use", "").split()).strip(" .?!").removeprefix("for ").removeprefix("For ")
    of_purpose = (fill_template(f"What matters about {{topic}} for {purpose}?", asked),) if purpose and not use else ()
    period: str | None = " ".join(answers.get("timeframe", "").split()).strip(" .?!")
    if not period or fold(period) in (fold(ANY_TIME), fold(EVERY)):
        period = None
    elif last := _LAST.search(period):  # "The last year" is asked for as "over the last year"
        period = f"over {last[0][:1].lower()}{last[0][1:]}"
    words = parse_length(depth) if depth else use and use.words
    said = _collect_context(request)
    length = f"about {words:,} words" if words else "as long as the sources allow"
    told = {
        "scope": f"asked as well: {'; '.join(chosen)}",
        "timeframe": f"every query asks {period}" if period else "no period is left out",
        "depth": f"the report is to be {length}",
        "use": f"{f'in the {use.style} style; ' if use else ''}asked as well: {'; '.join(facets or of_purpose)}",
    }
    reasons = [f"You chose for {key}: {_flatten(text)}: {told.get(key, 'kept in mind')}" for key, text in given]
    for line, text in said.items():
        reasons.append(f"Taken into account: {line}{FOLLOWED if any(_narrow_words({line: text}, asked)) else ''}")
    return PlanRequirements(
        sides=tuple(dict.fromkeys((*chosen, *of_purpose))),
        facets=facets,
        period=period,
        words=words,
        style=use.style if use else None,
        thorough=asks_for_everything(depth),
        narrowing=tuple(_narrow_words(said, asked)),
        constraints=(*(f"{key}: {_flatten(text)}" for key, text in given), *said),
        reasoning=tuple(reasons),
    )


def _collect_context(request: PlanRequest) -> dict[str, str]:
    """What was said besides the question and is remembered, line by line, and what of each line narrows a search."""
    preferences, lines = request.preferences, dict[str, str]()
    for line in request.context.splitlines():
        if back := _ASKED_BACK.match(line):
            lines[f"clarified: {_flatten(back['answer'])}"] = back["answer"]
        elif line.strip() and not _HISTORY.match(line):
            lines[f"context: {_flatten(line)}"] = line
    if preferences.region:
        lines[f"remembered: region {_flatten(preferences.region)}"] = preferences.region
    others = {
        "language": preferences.language,
        "sources first": ", ".join(preferences.prefer),
        "sources avoided": ", ".join(preferences.avoid),
    }
    lines |= {f"remembered: {name} {_flatten(value)}": "" for name, value in others.items() if value}
    lines |= {f"remembered: {_flatten(fact)}": "" for fact in request.facts}
    return lines | {f"field: {field}": field for field in request.domains}


def _narrow_words(said: dict[str, str], understanding: Understanding) -> Iterator[str]:
    """Words that are not the question's own. A long text narrows by the names in it."""
    known = set(stems(understanding.question))
    for text in said.values():
        words = content_words(text)
        if len(words) > MOST_NARROWING:
            words = content_words(" ".join(find_names(text)))[:MOST_NARROWING]
        for word in words:
            if not known & set(stems(word)):
                known |= set(stems(word))
                yield word


def _flatten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST_LINE else f"{flat[: LONGEST_LINE - 1]}…"


# Sub-questions a depth gives. What a person chose comes on top of them, up to what a plan may hold.
MOST = {Depth.QUICK: 1, Depth.STANDARD: 5, Depth.COMPREHENSIVE: 7}
FEWEST = {Depth.STANDARD: 3, Depth.COMPREHENSIVE: 5}
MORE = 2  # sub-questions where all there is, is wanted
# Queries of a sub-question. Of 20 pointed questions of two hops, two find as much as the three of any other.
VARIATIONS, POINTED_VARIATIONS = 3, 2

_CLAUSE = re.compile(
    r"\s*(?:[;?]|,?\s+and(?=\s+(?:how|why|what|when|who|where|which|is|are|do|does|did|will)\b)|,(?=\s*(?:and\s+)?"
    r"(?:how|why|what|when|who|where|which)\b))\s*",
    re.I,
)

# What is asked besides the question itself; {topic} is filled with the question's own words. Of a comparison and of how
# to do something there are sides that everybody wants. Of any other broad question nobody knows beforehand what there
# is to find, and a question about a side would only bring what shares a word with it (docs/decisions/0050).
_FACETS: dict[str, tuple[str, ...]] = {
    "comparison": (
        "What do {topic} have in common?",
        "Which figures set {topic} apart?",
        "What are the limits of comparing {topic}?",
    ),
    "procedure": (
        "What is needed to {act}?",
        "Which steps does it take to {act}?",
        "What can go wrong for those who {act}?",
    ),
}
_PLAIN = (
    "What is known about {topic}?",
    "What happened with {topic}, and when?",
    "What came of {topic}?",
    "What do the documents say about {topic}?",
    "What is new about {topic}?",
    "What is still unknown about {topic}?",
)
_PLAIN_OF_A_CLAUSE = (
    "What is known of this: {asked}?",
    "What happened, and when: {asked}?",
    "What came of it: {asked}?",
    "What do the documents say of this: {asked}?",
    "What is new here: {asked}?",
    "What is still unknown: {asked}?",
)

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


def make_plan(request: PlanRequest, *, company: bool) -> Plan:
    wanted, depth = collect_requirements(request, company=company), request.depth
    understanding = request.understanding
    if wanted.period:
        understanding = understanding.model_copy(update={"temporal_scope": wanted.period})
    texts, reasoning = _build_sub_questions(understanding, depth, wanted)
    pair = _find_pair(understanding, depth, wanted)
    sections = (understanding.question,) if pair else tuple(texts)
    if depth is Depth.QUICK:
        sections = COMPANY_SECTIONS if company else (frame("Answer", understanding.question),)
    scope, topic = understanding.temporal_scope, understanding.topic_focus
    broad, questions = not company and _asks_broadly(understanding, depth, wanted), list[SubQuestion]()
    for n, text in enumerate(texts, 1):
        # The topic, for a clause that leans on another: 'why do the measurements disagree?'
        context = [] if set(stems(topic)) & set(stems(text)) else [topic]
        if scope and scope not in text:
            context.append(scope)
        section = text if text in sections else sections[0]
        about = ", ".join(filter(None, context))
        questions.append(SubQuestion(id=f"Q{n}", text=text, section=section, topic=about, broad=broad))
    warnings = []
    if understanding.ambiguity_level > 0.5:
        warnings.append("The question is ambiguous; this plan is a best guess.")
    if understanding.complexity == "complex":
        warnings.append("The question has many parts; some may get few sources.")
    return Plan(
        goal=understanding.question,
        topic=", ".join(part for part in (describe_topic(understanding), understanding.temporal_scope) if part),
        depth=depth,
        constraints=wanted.constraints,
        deliverable=request.deliverable,
        questions=tuple(questions),
        queries=_build_queries(questions, understanding, depth, wanted),
        sections=sections,
        methodology="Each sub-question is searched on its own; sentences of the sources that answer it are "
        "quoted, compared across independent sources and checked against their passages.",
        reasoning=(*reasoning, *wanted.reasoning),
        confidence=round(1 - understanding.ambiguity_level, 2),
        warnings=tuple(warnings),
        estimated_complexity=understanding.complexity,
        words=wanted.words,
        style=wanted.style,
        # Facets are asked in English, so a question in another language has none.
        pointed=_asks_one_thing(understanding, depth, wanted) or bool(find_other_language(understanding.question)),
        paired=pair is not None,
    )


def _asks_one_thing(understanding: Understanding, depth: Depth, wanted: PlanRequirements) -> bool:
    """Whether one sub-question does: facets would be read and verified, and answer nothing. Who wants a comprehensive
    report, or has chosen sides of the matter, gets them all the same."""
    return not _asks_for_more(depth, wanted) and (
        is_pointed(understanding.question) or parse_pair(understanding.question) is not None
    )


def _asks_for_more(depth: Depth, wanted: PlanRequirements) -> bool:
    return depth is Depth.COMPREHENSIVE or wanted.thorough or bool(wanted.sides or wanted.facets)


def _find_pair(understanding: Understanding, depth: Depth, wanted: PlanRequirements) -> PairQuestion | None:
    """The two things of which one thing is asked, each to be researched by itself."""
    if _asks_for_more(depth, wanted) or find_other_language(understanding.question):
        return None
    return parse_pair(understanding.question)


def _asks_broadly(understanding: Understanding, depth: Depth, wanted: PlanRequirements) -> bool:
    """Whether the report may be arranged by what is found. Who has chosen sides of the matter gets a section for each,
    and a comparison or a procedure has sides of its own."""
    own = wanted.sides or wanted.facets or understanding.query_class in _FACETS
    # Of several things that are asked each gets its section.
    own = own or len(split_question(understanding.question)) > 1
    return not own and depth is not Depth.QUICK and not _asks_one_thing(understanding, depth, wanted)


def split_question(question: str) -> list[str]:
    """The parts of a compound question."""
    parts = [_TRAILING.sub("", part.strip(" .?!,؟？")) for part in _CLAUSE.split(question)]
    parts = [part.removeprefix("and ").strip(" ,") for part in parts if len(content_words(part)) >= 1]
    return [part for part in parts if len(part.split()) >= 3] or [question.strip(" .?!؟？")]


def _build_sub_questions(
    understanding: Understanding, depth: Depth, wanted: PlanRequirements
) -> tuple[list[str], list[str]]:
    """What is asked itself, then what a person chose, then the facets that are missing."""
    question = understanding.question
    if find_other_language(question):
        texts = list(dict.fromkeys([question, *wanted.sides]))
        return texts[:MOST_QUESTIONS], ["The question is not in English, and is researched as it stands."]
    if pair := _find_pair(understanding, depth, wanted):
        return list(pair.asked), ["One thing is asked of two, and each is researched by itself."]
    # The parts of a compound question, each ended by a question mark; an order is turned into a question.
    parts = [question.strip(" .?!")] if is_pointed(question) else split_question(question)
    about = extract_topic(question)
    about = f"the {about}" if f"the {about}" in question else about
    parts[1:] = [_LEANING.sub(about, part) for part in parts[1:]]
    for at, part in enumerate(parts):
        asked = _ORDER.sub("what is known about ", part)
        if compared := _COMPARE.match(part):
            asked = f"how do {compared[1]} and {compared[2]} compare"
        parts[at] = f"{asked[:1].upper()}{asked[1:]}?"
    clauses = list(dict.fromkeys(parts))
    if depth is Depth.QUICK:
        texts = list(dict.fromkeys([understanding.question, *wanted.sides]))
        return texts[:MOST_QUESTIONS], ["A quick answer follows the question as it stands."]
    reasoning = [f"The question has {len(clauses)} part{'s' * (len(clauses) > 1)}."]
    if understanding.query_class == "comparison" and len(understanding.subjects) > 1:
        clauses += [f"What is known about {subject}?" for subject in understanding.subjects]
    own = list(dict.fromkeys(clauses))[: MOST[depth]]
    chosen = list(dict.fromkeys([*wanted.sides, *wanted.facets]))
    missing = max(0, min(FEWEST[depth], MOST[depth]) - len(own)) + MORE * wanted.thorough
    if _asks_one_thing(understanding, depth, wanted):
        missing, reasoning = 0, ["The question asks for one thing, and is researched as it stands."]
    if templates := _FACETS.get(understanding.query_class):
        facets = [fill_template(template, understanding) for template in templates]
    else:
        # "What is known of this: how high are the tides?" asks nothing that a question for one thing has not asked.
        topic = _find_matter(understanding) or (about if is_pointed(question) else "")
        asked = first_clause(understanding)
        plain = _PLAIN if topic else _PLAIN_OF_A_CLAUSE
        facets = [text.replace("{topic}", topic).replace("{asked}", asked) for text in plain]
    facets = [facet for facet in facets if facet not in (*own, *chosen)][:missing]
    if facets:
        reasoning.append(f"As a question about {_ABOUT[understanding.query_class]} it also needs: {'; '.join(facets)}")
    return [*own, *(text for text in (*chosen, *facets) if text not in own)][:MOST_QUESTIONS], reasoning


_OF_DOING = re.compile(r"^(?:how|why|when|where)\b", re.I)
_ABOUT = {
    "change": "a change over time", "cause": "causes", "comparison": "a comparison", "fact": "a fact",
    "overview": "the state of a matter", "procedure": "how to do something", "yes_no": "whether something holds",
}  # fmt: skip


_ORDER = re.compile(
    r"^(?:please\s+)?(?:now\s+)?(?:tell me(?: more)? about|describe|explain|give me an? (?:overview|summary) of|"
    r"research|investigate|report on|summari[sz]e)\s+(?!(?:how|why|what|when|who|where|which|if|whether)\b)",
    re.I,
)
_COMPARE = re.compile(r"^(?:please\s+)?compare\s+(.+?)\s+(?:and|with|to|versus|vs\.?)\s+(.+)$", re.I)
_TRAILING = re.compile(r",?\s*(?:and\s+)?if (?:so|yes|not|any)$", re.I)
_LEANING = re.compile(r"\b(?:it|them|they)\b(?!\s+(?:is|was|has)\b)", re.I)


def _find_matter(understanding: Understanding) -> str:
    """What a question is about, as it can stand in another question; empty where nothing can."""
    if (told := find_matter(understanding.question)) != understanding.question:
        return told
    topic = describe_topic(understanding)
    # "How did Rome fall" is about no "Rome fall", and "how has remote work changed cities" about no "remote".
    verbal = _OF_DOING.match(understanding.question) and first_clause(understanding).endswith(topic)
    named = any(fold(topic) == fold(name) for name in understanding.subjects)
    unsure = not named and (verbal or len(topic.split()) == 1)
    return "" if unsure or is_clause(understanding) else topic


_PRIORITY = {1: 1, 9: 3}  # 2: what narrows, and other kinds of source


def _build_queries(
    questions: Sequence[SubQuestion], understanding: Understanding, depth: Depth, wanted: PlanRequirements
) -> tuple[SearchQuery, ...]:
    """One query per sub-question, one with what narrows the search, one for every other kind of source in turn, then
    second variations until there are enough. A period that was chosen stands in all of them."""
    first, *others = (
        (*TYPES_BY_DEPTH[depth], *_CODE) if _ON_CODE.search(understanding.question) else TYPES_BY_DEPTH[depth]
    )
    due: list[tuple[int, SubQuestion, str, QueryType]] = []
    for number, question in enumerate(questions):
        count = POINTED_VARIATIONS if _asks_one_thing(understanding, depth, wanted) else VARIATIONS
        when, varied = content_words(wanted.period or ""), vary_queries(question, understanding, count)
        texts = list(dict.fromkeys(_append_words(text, when) for text in varied))
        due.append((1, question, texts[0], first))
        if wanted.narrowing:
            due.append((2, question, _append_words(texts[0], wanted.narrowing), first))
        turned = [others[(number + turn) % len(others)] for turn in range(len(others))]
        due += [(3 + turn, question, texts[0], kind) for turn, kind in enumerate(turned)]
        due += [(9, question, text, first) for text in texts[1:]]
    due.sort(key=lambda item: item[0])
    distinct = {(question.id, text, kind): (rank, question, text, kind) for rank, question, text, kind in reversed(due)}
    return tuple(
        SearchQuery(id=f"K{n}", text=text, question=question.id, type=kind, priority=_PRIORITY.get(rank, 2))
        for n, (rank, question, text, kind) in enumerate(list(distinct.values())[::-1][:MOST_QUERIES], 1)
    )


def _append_words(text: str, words: Sequence[str]) -> str:
    return " ".join(_distinct_words([*text.split(), *words])) if words else text


def vary_queries(question: SubQuestion, understanding: Understanding, count: int) -> list[str]:
    """Variations of one sub-question: its own words, with the subject, and with words answers tend to use. In another
    language than English the sub-question itself: whoever searches has to see which language that is."""
    if find_other_language(question.text):
        return [question.text.strip(" .?!¿？。！") or question.text]
    own = content_words(strip_document_references(question.text))
    context = content_words(strip_document_references(" ".join([*understanding.subjects, understanding.topic_focus])))
    when = content_words(f"{understanding.temporal_scope or ''} {question.topic}")
    query_class = "cause" if fold(question.text).startswith("why") else understanding.query_class
    variations = (
        [*own, *context] if len(own) < 3 else own,
        [*context, *own, *when],
        [*context, *own, *_ANSWER_WORDS[query_class].split()],
        [*context, *when],
    )
    texts = (" ".join(_distinct_words(words)) for words in variations)
    return list(dict.fromkeys(text for text in texts if text))[:count] or [question.text]


def _distinct_words(words: Sequence[str]) -> list[str]:
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(stem(word), word)
    return list(seen.values())


# The sides of a company that somebody who asks about it expects, each a section of a quick answer (C-10).

OVERVIEW, NEWS, FINANCE = COMPANY_SECTIONS

# What a section that has nothing is said to lack, in words that can be searched for.
ASPECT_QUERIES = {OVERVIEW: "key developments", NEWS: "recent news", FINANCE: "stock price and revenue"}

_FINANCE = re.compile(
    r"\b(?:stock|shares?|trad(?:ed|es at|ing)|market (?:cap\w*|value)|price-(?:to-)?earnings|P/E|dividends?|"
    r"year to date)\b",
    re.I,
)
_NEWS = re.compile(
    r"\b(?:launch\w*|announc\w*|report\w*|quarter\w*|deliver\w*|earnings|revenue|ruling|unveil\w*|exceed\w*)\b", re.I
)


def is_about_a_company(sections: Iterable[str]) -> bool:
    """Whether a plan has these sections; a model may have added others behind them."""
    return tuple(sections)[: len(COMPANY_SECTIONS)] == COMPANY_SECTIONS


def classify_aspect(statement: str) -> str:
    """The section a statement about a company belongs to."""
    return FINANCE if _FINANCE.search(statement) else NEWS if _NEWS.search(statement) else OVERVIEW


def find_empty_aspects(statements: Iterable[str]) -> list[str]:
    """The sections none of the statements belongs to, in their order."""
    there = {classify_aspect(statement) for statement in statements}
    return [section for section in COMPANY_SECTIONS if section not in there]
