"""Reviewing a draft by checks that can be counted, for six criteria.

Every criterion begins at 10 and loses what its faults cost; the weighted sum is at most what the evidence allows. So a
score means something: from 8 on, most statements are confirmed or come from credible sources. A report half of which
rests on single sources of unknown credit stays below 8 however well it reads; one beside the question never passes.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from math import floor
from typing import Literal, NamedTuple

from openassay.models.evidence import Claim, Mark, Verdict
from openassay.models.plan import Depth
from openassay.models.report import Critique, Issue, SectionRole, SourceCard
from openassay.reasoning.base import CritiqueRequest, recommend
from openassay.text.language import detect_language
from openassay.text.questions import find_cutoff
from openassay.text.words import fold, jaccard, split_unspaced, stem, stems, words

# A draft laid out for its reviewer: each statement with the claims, passages and sources behind it.

Category = Literal["accuracy", "completeness", "coherence", "citation", "methodology", "style"]
Severity = Literal["critical", "major", "minor", "suggestion"]

COST: dict[Severity, float] = {"critical": 5.0, "major": 2.5, "minor": 1.0, "suggestion": 0.25}
LONGEST_SHOWN = 80  # characters of a sentence in an issue


class DraftFault(NamedTuple):
    """An issue, and the points of its criterion that it takes; one that no writer can mend has no fix."""

    issue: Issue
    cost: float


def is_snippet(text: str) -> bool:
    return len(split_unspaced(text).split()) < 4 or not _ENDED.search(text) or text[:1] in "-•*|…" or text[:1].islower()


def make_fault(
    category: Category, severity: Severity, place: str, description: str, fix: str = "", cost: float | None = None
) -> DraftFault:
    issue = Issue(category=category, severity=severity, location=place, description=description, fix=fix)
    return DraftFault(issue, COST[severity] if cost is None else round(cost, 2))


def truncate(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


class DraftStatement(NamedTuple):
    """A statement about the world where it stands."""

    place: str
    role: SectionRole
    text: str
    claims: tuple[Claim | None, ...]  # None: bound to a claim there is not
    sources: tuple[SourceCard, ...]
    derived: tuple[str, ...] = ()  # figures that the sentence computes
    is_synthesis: bool = False
    in_table: bool = False

    @property
    def quotes(self) -> list[str]:
        return [span.quote for claim in self.claims if claim for span in claim.spans]

    @property
    def origins(self) -> list[str]:
        """When the sources were published, and their titles: "a study of 2021" rests on these."""
        dates = [part.lstrip("0") for card in self.sources for part in (card.published or "").split("-")]
        return [*(card.title.replace("-", " ") for card in self.sources), *dates]

    @property
    def holds(self) -> bool:
        return all(claim is not None and claim.verdict is Verdict.SUPPORTED for claim in self.claims)

    @property
    def mark(self) -> Mark:
        """That of the weakest claim."""
        marks = {claim.mark if claim else None for claim in self.claims}
        if marks == {Mark.CORROBORATED}:
            return Mark.CORROBORATED
        return Mark.VERIFIED if marks and marks <= {Mark.CORROBORATED, Mark.VERIFIED} else Mark.SINGLE


class ReviewCase:
    """Everything a check may look at."""

    def __init__(self, request: CritiqueRequest) -> None:
        self.request = request
        self.question = request.question or request.plan.goal
        self._claims = {claim.id: claim for claim in request.claims}
        self._sources = {source.document: source for source in request.sources}

    @cached_property
    def facts(self) -> list[DraftStatement]:
        found = []
        for section in self.request.draft.sections:
            for sentence in (sentence for sentence in section.sentences if sentence.claims):
                bound = tuple(self._claims.get(id) for id in sentence.claims)
                documents = dict.fromkeys(span.document for claim in bound if claim for span in claim.spans)
                sources = tuple(self._sources[name] for name in documents if name in self._sources)
                # As they may be rounded in a sentence.
                values = [round(figure.value, places) for figure in sentence.derived for places in (4, 1, 0)]
                derived = tuple(f"{value:,.15g} {value:.15g}" for value in values)
                marks = (sentence.kind == "synthesis", sentence.cell is not None)
                found.append(
                    DraftStatement(section.title, section.role, sentence.text, bound, sources, derived, *marks)
                )
        return found

    @cached_property
    def statements(self) -> list[DraftStatement]:
        """Each once: a summary says again what the sections say."""
        return list({fact.text: fact for fact in self.facts}.values())

    @cached_property
    def cited_sources(self) -> list[SourceCard]:
        return list({source.document: source for fact in self.facts for source in fact.sources}.values())

    @cached_property
    def frames(self) -> list[tuple[str, str]]:
        """Section and text of the sentences that speak of the research."""
        return [
            (section.title, sentence.text)
            for section in self.request.draft.sections
            for sentence in section.sentences
            if not sentence.claims
        ]

    def share(self, mark: Mark) -> float:
        """Of the statements that hold."""
        marks = [fact.mark for fact in self.statements if fact.holds]
        return marks.count(mark) / len(marks) if marks else 0.0

    def own_texts(self) -> Iterator[str]:
        """Words that are no source's: titles, and sentences about the research."""
        yield self.request.draft.title
        yield from (section.title for section in self.request.draft.sections)
        yield from (text for _, text in self.frames)

    def count_words(self) -> int:
        every = [*self.own_texts(), *(fact.text for fact in self.facts)]
        return sum(len(text.split()) for text in every)


def collect_stems(texts: Sequence[str]) -> set[str]:
    return {stem for text in texts for stem in stems(text)}


# Accuracy: statements are borne out, figures stand in the passages, nothing is concluded that no source concludes.

_FIGURE = re.compile(r"(?<![\w.])\d[\d,\u00a0\u202f]*(?:\.\d+)?")
_CONCLUDES = re.compile(r"\b(?:therefore|thus|hence|consequently|proves?|proven|it follows)\b", re.I)


def check_accuracy(case: ReviewCase) -> Iterator[DraftFault]:
    for fact in case.facts:
        if not fact.holds:
            issue = f"not supported: {truncate(fact.text)}"
            yield make_fault("accuracy", "critical", fact.place, issue, "drop the sentence")
            continue
        given = _find_figures(" ".join([*fact.quotes, *fact.origins, *fact.derived]))
        # Those of a composed report were held against their passages with its dates: "last year" of 2025 is 2024.
        if not case.request.draft.composed and (strange := _find_figures(fact.text) - given):
            issue = f"no passage behind it has {', '.join(sorted(strange))}: {truncate(fact.text)}"
            yield make_fault("accuracy", "critical", fact.place, issue, "give the figure as the passage has it")
        said = _CONCLUDES.search(fact.text)
        # Of what follows from several passages a judge has said that it does.
        if said and not fact.is_synthesis and not _CONCLUDES.search(" ".join(fact.quotes)):
            issue = f"concludes (“{said.group().lower()}”) what no passage concludes: {truncate(fact.text)}"
            fix = "say what the source says and leave the conclusion out"
            yield make_fault("accuracy", "major", fact.place, issue, fix)
    if dropped := case.request.dropped:
        issue = f"{dropped} drafted sentences did not hold against their passages"
        fix = "they were replaced by the claim's own words or left out"
        yield make_fault("accuracy", "minor", "whole report", issue, fix)


def _find_figures(text: str) -> set[str]:
    """In one spelling, without separators."""
    found = {re.sub(r"[,\u00a0\u202f]", "", match).rstrip(".") for match in _FIGURE.findall(text)}
    return {figure.rstrip("0").rstrip(".") if "." in figure else figure for figure in found}


# Citation: every statement has a passage, references are complete, and more than one voice is heard.

CONFIRMATION_COST = 1.0  # points where no statement is confirmed by a second source
SEVERAL = 3  # statements a section has before one source is little for it
MOST_SECTION_FAULTS = 2

_MARKS = re.compile(r"\[\d{1,3}(?:\s*[,–-]\s*\d{1,3})*\]|\((?:see )?(?:fig|table|eq|ref)s?\. ?\d+\)", re.I)


def check_citation(case: ReviewCase) -> Iterator[DraftFault]:
    known = {source.document for source in case.request.sources}
    for fact in case.facts:
        spans = [span for claim in fact.claims if claim for span in claim.spans]
        if not spans:
            yield make_fault("citation", "critical", fact.place, f"no span: {truncate(fact.text)}", "drop the sentence")
        elif known and any(span.document not in known for span in spans):
            issue = f"cites what was never read: {truncate(fact.text)}"
            yield make_fault("citation", "critical", fact.place, issue, "drop the sentence")
    sure, total = case.share(Mark.CORROBORATED), len(case.statements)
    if case.facts and sure < 1:
        issue = f"{round(sure * total)} of {total} statements are confirmed by a second, independent source"
        yield make_fault("citation", "suggestion", "whole report", issue, cost=CONFIRMATION_COST * (1 - sure))
    # Sections on a single independent source, where the report has several.
    named = 0
    several = len({source.group for source in case.cited_sources}) > 1
    for place in dict.fromkeys(fact.place for fact in case.facts if fact.role == "body" and several):
        facts = [fact for fact in case.facts if fact.place == place]
        one = len(facts) >= SEVERAL and len({source.group for fact in facts for source in fact.sources}) == 1
        if one and named < MOST_SECTION_FAULTS:
            named += 1
            issue = "the section rests on one independent source"
            yield make_fault("citation", "suggestion", place, issue, "add what others say")
    bare = [source for source in case.cited_sources if not source.title.strip() or not source.url.strip()]
    if bare:
        issue = f"{len(bare)} references lack a title or an address: {', '.join(source.id for source in bare[:5])}"
        yield make_fault("citation", "minor", "sources", issue, "complete the reference")
    marked = [fact for fact in case.statements if _MARKS.search(fact.text)]
    if marked:
        issue = f"{len(marked)} statements carry reference marks of their source: {truncate(marked[0].text)}"
        yield make_fault("citation", "minor", marked[0].place, issue, "drop the marks", 0.5)


# Coherence: a summary where one is due, parts in their order, each thing said once, and sentences that stand alone.

TWICE, MOST_REPETITIONS = 0.8, 4
DUE, LONGEST_SUMMARY = 600, 250  # words from which on a report needs a summary, and the most it may have
SNIPPETS = 0.2
IN_A_ROW = 3

_ORDER = {"abstract": 0, "body": 1, "disagreements": 2, "not_found": 2, "conclusion": 3, "notice": 4}
_DANGLING = re.compile(r"(?:it|they|he|she|this|these|those|such|its|their|his|her)\b", re.I)
_ENDED = re.compile(r"[.!?…:。！？][ \u00a0\u202f]?[\"'”’“»」』）)\]]*$")
_SPELLED = re.compile(r"\b[A-Z][A-Za-z]*(?:[- ]?\d+)?\b")


def check_coherence(case: ReviewCase) -> Iterator[DraftFault]:
    draft, quick = case.request.draft, case.request.plan.depth is Depth.QUICK
    summaries = [section for section in draft.sections if section.role == "abstract"]
    if not summaries and not quick and not draft.answers and case.count_words() >= DUE:
        yield make_fault("coherence", "minor", "whole report", "a long report has no summary", "begin with a summary")
    for section in summaries:
        words = sum(len(sentence.text.split()) for sentence in section.sentences)
        if words > LONGEST_SUMMARY:
            yield make_fault("coherence", "minor", section.title, f"a summary of {words} words", "shorten the summary")
    # A briefing says at once how sure it is.
    brief = case.request.plan.style == "executive"
    ranks = [_ORDER[one.role] for one in draft.sections if not (brief and one.role == "conclusion")]
    planned = {fold(title): place for place, title in enumerate(case.request.plan.sections)}
    places = [planned[fold(s.title)] for s in draft.sections if s.role == "body" and fold(s.title) in planned]
    if ranks != sorted(ranks) or places != sorted(places):
        issue = "the parts do not stand in the order of the plan"
        yield make_fault("coherence", "minor", "whole report", issue, "keep to the order of the plan")
    bodies = [fact.text for fact in case.facts if fact.role == "body"]
    twice = [left for at, left in enumerate(bodies) if any(jaccard(left, right) > TWICE for right in bodies[at + 1 :])]
    for text in twice[:MOST_REPETITIONS]:
        yield make_fault("coherence", "minor", "body", f"said twice: {truncate(text)}", "keep one of them")
    # A section that begins with a word for something named elsewhere.
    first = {fact.place: fact for fact in reversed(case.facts)}
    loose = [fact for fact in first.values() if _DANGLING.match(fact.text)]
    if loose:
        issue = f"begins with a word that refers to nothing: {truncate(loose[0].text)}"
        cost = min(2.0, 0.5 * len(loose))
        yield make_fault("coherence", "minor", loose[0].place, issue, "name what is spoken of", cost)
    broken = [fact for fact in case.statements if not fact.in_table and is_snippet(fact.text.strip())]
    if len(broken) > SNIPPETS * len(case.statements):
        total, shown = len(case.statements), truncate(broken[0].text)
        issue = f"{len(broken)} of {total} statements are snippets and no sentences: {shown}"
        cost = 3 * len(broken) / total
        yield make_fault("coherence", "minor", broken[0].place, issue, "write whole sentences, or leave them out", cost)
    for place in dict.fromkeys(fact.place for fact in case.facts):
        begins = [tuple(fold(fact.text).split()[:3]) for fact in case.facts if fact.place == place]
        rows = (begins[at : at + IN_A_ROW] for at in range(len(begins) - IN_A_ROW + 1))
        if any(len(set(row)) == 1 for row in rows):
            issue = "several sentences in a row begin alike"
            yield make_fault("coherence", "suggestion", place, issue, "join or vary them")
            break
    # One name in two spellings, as in Covid-19 and COVID 19.
    spelled: dict[str, set[str]] = {}
    for fact in case.statements:
        for name in _SPELLED.findall(fact.text):
            if len(name) > 3 and re.search(r"[A-Z].*[A-Z\d]", name):
                spelled.setdefault(re.sub(r"[- ]", "", name).casefold(), set()).add(name)
    if several := sorted(min(forms) for forms in spelled.values() if len(forms) > 1):
        issue = f"spelled in more than one way: {', '.join(several[:5])}"
        yield make_fault("coherence", "suggestion", "wording", issue, "keep to one spelling")


# Whether a report is about what was asked: it names the subject, and says the question's own words.

FEW_WORDS, HALF_ON_TOPIC = 0.25, 0.5  # of the question's words; of the statements
ENOUGH = 3  # words of a question that can be missed

# Words a question is asked with: an answer need not repeat them.
_ASKING = frozenset(
    stems(
        "much many large big long far old often high happen happened happening change changed role impact effect "
        "affect difference compare comparison overview analysis analyse explain describe summary summarise report "
        "latest recent current currently today history future main key important best good explain reason cause why "
        "know known find state work use mean define figure give given uncertain dispute disputed expect expected drive "
        "drove develop development speak said evidence common limit step need"
    )
)
_LEGAL_FORM = frozenset("inc corp corporation ltd plc llc co company group holdings ag se sa gmbh".split())


def check_relevance(case: ReviewCase) -> Iterator[DraftFault]:
    if not case.statements or _is_foreign(case):
        return
    texts = _list_texts(case.statements)
    missing = [subject for subject in case.request.subjects if not mentions_subject(subject, texts)]
    if missing:
        every = len(missing) == len(case.request.subjects)
        fix = "add sources on the subject" if every else "say that nothing was found on it, or add sources"
        issue = f"says nothing of {' or '.join(missing)}"
        yield make_fault("completeness", "critical" if every else "major", "whole report", issue, fix)
        return
    said = collect_stems(texts)
    wanted = list(dict.fromkeys(part for part in stems(case.question) if part not in _ASKING))
    if len(wanted) >= ENOUGH and sum(part in said for part in wanted) / len(wanted) < FEW_WORDS:
        issue = "hardly a word of the question occurs in the report"
        yield make_fault("completeness", "critical", "whole report", issue, "add sources that speak of it")
        return
    topical = [fact for fact in case.statements if not set(wanted).isdisjoint(_statement_stems([fact]))]
    share = len(topical) / len(case.statements)
    if wanted and share < HALF_ON_TOPIC:
        off = len(case.statements) - len(topical)
        issue = f"{off} of {len(case.statements)} statements have nothing to do with the question"
        severity: Severity = "critical" if share < FEW_WORDS else "major"
        yield make_fault("completeness", severity, "whole report", issue, "leave them out")


def mentions_questions(case: ReviewCase, questions: Sequence[str]) -> bool:
    """Whether the report has words that these questions ask with, besides those of the subject."""
    about = collect_stems([case.request.plan.topic, *case.request.subjects])
    own = collect_stems(questions) - about - _ASKING
    return not own or _is_foreign(case) or not own.isdisjoint(_statement_stems(case.statements))


def _is_foreign(case: ReviewCase) -> bool:
    """Words cannot be compared across languages."""
    asked = detect_language(case.question)
    told = detect_language(" ".join(fact.text for fact in case.statements[:10]))
    return asked not in (None, "en") or told not in (None, "en")


def _list_texts(facts: Sequence[DraftStatement]) -> list[str]:
    """The statements, their passages, and the titles these stand under."""
    told = [text for fact in facts for text in (fact.text, *fact.quotes)]
    return [*told, *(source.title for fact in facts for source in fact.sources)]


def _statement_stems(facts: Sequence[DraftStatement]) -> set[str]:
    return collect_stems(_list_texts(facts))


def mentions_subject(subject: str, texts: Sequence[str]) -> bool:
    """By all its words, by the last of a name (Merkel for Angela Merkel), or by its initials (WHO)."""
    said, parts = set(collect_stems(texts)), [word for word in words(subject) if word not in _LEGAL_FORM]
    said |= {stem(word.partition(".")[0]) for word in said if "." in word}  # Amazon.com is Amazon
    telling = [stem(part) for part in parts if stems(part)] or [stem(part) for part in parts]
    if not telling or said.issuperset(telling):
        return True
    if len(telling) == 1 or not all(part[:1].isupper() for part in subject.split() if stems(part)):
        return False
    initials = "".join(part[0] for part in parts if stems(part)).upper()
    return telling[-1] in said or (len(initials) > 2 and re.search(rf"\b{initials}\b", "\n".join(texts)) is not None)


# Completeness: sub-questions answered, planned sections there or owned up to, the subject spoken of, evidence.

ALL_OPEN = 6.0  # points where no sub-question is answered
MOST_OPEN = 0.5
ELSEWHERE, NOWHERE = 0.5, 2.0  # for a section that was not written, by whether its words stand in others


def check_completeness(case: ReviewCase) -> Iterator[DraftFault]:
    if not case.facts:
        issue = "no factual statement could be verified"
        yield make_fault("completeness", "critical", "whole report", issue, "add sources")
    asked = max(len(case.request.plan.questions), len(case.request.unanswered), 1)
    for question in case.request.unanswered:
        cost = ALL_OPEN / asked
        severity: Severity = "major" if cost >= COST["major"] else "minor"
        fix = "add sources that speak to it"
        yield make_fault("completeness", severity, "What could not be found", f"unanswered: {question}", fix, cost)
    if asked > 1 and len(case.request.unanswered) / asked > MOST_OPEN:
        yield make_fault("completeness", "major", "whole report", "most of what was asked is open", "add sources")
    # Planned sections that are not there, and of which nothing says why.
    draft, plan = case.request.draft, case.request.plan
    there = {fold(section.title) for section in draft.sections}
    owned = fold(" ".join(text for _, text in case.frames))
    named = {name for section in draft.sections for sentence in section.sentences for name in sentence.claims}
    answered = {id for claim in case.request.claims if claim.id in named for id in claim.questions}
    # A report by themes has the headings of what was found; sub-questions that are open are told by themselves.
    for title in () if plan.asks_for_themes else plan.sections:
        questions = [question for question in plan.questions if question.section == title]
        texts = [question.text for question in questions]
        told = any(fold(text) in owned for text in (title, *texts))
        # A writer who composes has sections of his own.
        told = told or (draft.composed and any(question.id in answered for question in questions))
        if case.facts and fold(title) not in there and not told and plan.depth is not Depth.QUICK:
            issue = f"planned and not written: {title}"
            cost = ELSEWHERE if mentions_questions(case, texts) else NOWHERE
            yield make_fault("completeness", "minor", title, issue, "write it, or say that nothing was found", cost)
    yield from check_relevance(case)
    if plan.depth is Depth.QUICK:
        return
    body = [section for section in case.request.draft.sections if section.role == "body"]
    lone = [section for section in body if sum(bool(s.claims) for s in section.sentences) == 1]
    if len(body) > 1 and len(lone) > len(body) / 2:
        issue = f"{len(lone)} of {len(body)} sections have one statement"
        yield make_fault("completeness", "suggestion", lone[0].title, issue, "say more, or join them")


# How high a score may be, however well a report is written: what one source alone says is not known to be right.

BEST, UNSURE = 10.0, 2.1  # the ceiling, and what it loses where half of the statements or more are unconfirmed
ONE_SOURCE = THIN = 0.1  # and besides, where all of it rests on one source, or there is little of it
LITTLE = 6.0  # confidence of 10 below which an answer is based on limited information
HALF_SINGLE = 0.5


def compute_ceiling(case: ReviewCase) -> float:
    unconfirmed = UNSURE * min(1.0, case.share(Mark.SINGLE) / HALF_SINGLE)
    lost = max(unconfirmed, UNSURE if _has_thin_evidence(case) else 0.0)
    if unconfirmed:
        lost += ONE_SOURCE * _has_one_source(case) + THIN * _has_thin_evidence(case)
    return round(BEST - lost, 2)


def _has_one_source(case: ReviewCase) -> bool:
    return len({source.group for source in case.cited_sources}) == 1


def _has_thin_evidence(case: ReviewCase) -> bool:
    return bool(case.facts) and case.request.confidence is not None and case.request.confidence < LITTLE


def check_evidence(case: ReviewCase) -> Iterator[DraftFault]:
    """Told as issues that take few points or none: the ceiling does."""
    weak, total = case.share(Mark.SINGLE), len(case.statements)
    if weak:
        issue = f"{round(weak * total)} of {total} statements rest on one source that is not known to be reliable"
        yield make_fault("accuracy", "major" if weak >= HALF_SINGLE else "minor", "whole report", issue, cost=0.0)
    if _has_one_source(case):
        yield make_fault("citation", "minor", "whole report", "everything rests on one independent source", cost=0.5)
    if _has_thin_evidence(case):
        issue = f"the evidence is thin: confidence {case.request.confidence:g} of 10"
        yield make_fault("completeness", "minor", "whole report", issue, cost=0.0)


# How recent sources must be for a question, and whether they are.

OUTSIDE = 0.5


def check_recency(case: ReviewCase) -> Iterator[DraftFault]:
    today = case.request.today
    wanted = find_cutoff(case.question, today) if today else None
    if wanted is None or not case.cited_sources:
        return
    known = [date.fromisoformat(source.published[:10]) for source in case.cited_sources if source.published]
    old = sum(day < wanted for day in known)
    if not known:
        yield make_fault("methodology", "minor", "sources", "what is asked is changing, and no source has a date")
    elif old == len(known):
        issue = "all dated sources are older than what is asked for"
        yield make_fault("methodology", "minor", "sources", issue, cost=2.0)
    elif old > OUTSIDE * len(known):
        issue = f"{old} of {len(known)} dated sources are older than what is asked for"
        yield make_fault("methodology", "minor", "sources", issue, "prefer newer sources")


# Methodology: how it was done is told, gaps are owned up to, both sides of a dispute are shown, sources are recent.

FEW_KINDS = 3  # sources from which on one kind alone is worth a word


def check_methodology(case: ReviewCase) -> Iterator[DraftFault]:
    request = case.request
    owned = any(section.role == "not_found" for section in request.draft.sections)
    if request.unanswered and not owned:
        issue = "open questions are not owned up to"
        yield make_fault("methodology", "major", "whole report", issue, "add what could not be found")
    if request.plan.depth is not Depth.QUICK and not request.plan.methodology:
        yield make_fault("methodology", "minor", "plan", "no methodology stated")
    # Of a dispute that nothing settles, a report tells both sides or neither.
    told = {claim.id for fact in case.facts for claim in fact.claims if claim}
    for matter in (matter for matter in request.disagreements if not matter.resolved):
        shown = [bool(told.intersection(side)) for side in matter.sides]
        if any(shown) and not all(shown):
            issue = f"one side of a disagreement is told and the other is not: {truncate(matter.about)}"
            yield make_fault("methodology", "major", "What the sources disagree on", issue, "give both sides")
        elif not any(shown):
            issue = f"a disagreement is not shown: {truncate(matter.about)}"
            yield make_fault("methodology", "suggestion", "What the sources disagree on", issue, "give both sides")
    yield from check_recency(case)
    cited = case.cited_sources
    if len(cited) >= FEW_KINDS and len({source.kind for source in cited}) == 1 and not any(s.primary for s in cited):
        issue = f"all {len(cited)} sources are of one kind ({cited[0].kind}) and none speaks at first hand"
        yield make_fault("methodology", "suggestion", "sources", issue, "add a primary source")


# Style: plain and of the length asked for, no banned word, a sober tone, sentences that can be read.

TOO_LONG, MUCH_TOO_SHORT = 1.25, 0.25  # of the words asked for
LONG_SENTENCE, LONGEST_SENTENCE = 32, 60  # words: on average, and of one

_LOUD = re.compile(r"!|\b(?:amazing|incredible|stunning|obviously|of course|undoubtedly|needless to say)\b", re.I)
_TWICE = re.compile(r"\b(the|a|an|of|and|to|in|is|was|for)\s+\1\b", re.I)


def check_style(case: ReviewCase) -> Iterator[DraftFault]:
    # Our own words only: quotes may have them, and so may the question.
    ours, quoted = fold(" ".join(case.own_texts())), fold(case.request.plan.model_dump_json())
    for word in case.request.banned:
        own = rf"\b{re.escape(fold(word))}\b"
        if re.search(own, ours) and not re.search(own, quoted):
            yield make_fault("style", "minor", "wording", f"banned word: {word}", "say it plainly")
    length, wanted = case.count_words(), case.request.plan.target(case.request.words)
    if length > wanted * TOO_LONG:
        yield make_fault("style", "minor", "whole report", f"{length} words where {wanted} were asked for", "shorten")
    told = {claim.id for fact in case.facts for claim in fact.claims if claim}
    untold = [claim for claim in case.request.claims if claim.verdict == "supported" and claim.id not in told]
    if length < wanted * MUCH_TOO_SHORT and len(untold) > len(told):
        issue = f"{length} words where {wanted} were asked for, and {len(untold)} verified statements are untold"
        yield make_fault("style", "suggestion", "whole report", issue, "say more")
    lengths = [len(fact.text.split()) for fact in case.statements]
    if lengths and sum(lengths) / len(lengths) > LONG_SENTENCE:
        issue = f"sentences of {round(sum(lengths) / len(lengths))} words on average"
        yield make_fault("style", "minor", "whole report", issue, "shorten the sentences")
    elif lengths and max(lengths) > LONGEST_SENTENCE:
        yield make_fault("style", "suggestion", "whole report", f"a sentence of {max(lengths)} words", "shorten it")
    if loud := _LOUD.search(" ".join(text for _, text in case.frames)):
        yield make_fault("style", "minor", "wording", f"not a sober tone: “{loud.group()}”", "say it plainly")
    stumbles = [fact for fact in case.statements if _TWICE.search(fact.text)]
    if stumbles:
        issue = f"a word twice in a row: {truncate(stumbles[0].text)}"
        yield make_fault("style", "suggestion", stumbles[0].place, issue, "mend the sentence")


WEIGHTS = {
    "accuracy": 0.25,
    "completeness": 0.20,
    "coherence": 0.20,
    "citation": 0.15,
    "methodology": 0.10,
    "style": 0.10,
}
CHECKS: tuple[Callable[[ReviewCase], Iterator[DraftFault]], ...] = (
    check_evidence, check_accuracy, check_completeness, check_coherence, check_citation, check_methodology, check_style,
)  # fmt: skip
EVIDENCE_CRITERIA = ("accuracy", "citation")  # what a ceiling is held by
FAULT_SHARE = 0.25  # of what faults take counts below a ceiling too
_RANK = {"critical": 0, "major": 1, "minor": 2, "suggestion": 3}


class CheckResult(NamedTuple):
    """What the checks have found: issues, the points left to each criterion, and the most the whole may have."""

    issues: tuple[Issue, ...]
    scores: dict[str, float]
    most: float


def run_checks(request: CritiqueRequest) -> CheckResult:
    case = ReviewCase(request)
    faults = [fault for check in CHECKS for fault in check(case)]
    scores = {
        name: round(max(0.0, 10.0 - sum(fault.cost for fault in faults if fault.issue.category == name)), 2)
        for name in WEIGHTS
    }
    issues = tuple(sorted((fault.issue for fault in faults), key=lambda issue: _RANK[issue.severity]))
    return CheckResult(issues, scores, compute_ceiling(case) - FAULT_SHARE * (10 - weigh_scores(scores)))


def critique_draft(request: CritiqueRequest) -> Critique:
    counted = run_checks(request)
    scores = cap_scores(counted.scores, counted.most)
    total = weigh_scores(scores)
    return Critique(
        scores=scores,
        score=total,
        issues=counted.issues,
        recommendation=recommend(total, counted.issues, request.revisions),
        improvement_potential=estimate_potential(total, counted.issues),
    )


def cap_scores(scores: Mapping[str, float], most: float) -> dict[str, float]:
    """The scores, accuracy and citation lowered until the whole is no more than the evidence allows."""
    lowered = dict(scores)
    excess = weigh_scores(scores) - most
    for name in EVIDENCE_CRITERIA if excess > 0 else ():
        share = WEIGHTS[name] / sum(WEIGHTS[one] for one in EVIDENCE_CRITERIA)
        lowered[name] = max(0.0, floor((scores[name] - excess * share / WEIGHTS[name]) * 100) / 100)
    return lowered


def weigh_scores(scores: Mapping[str, float]) -> float:
    return round(sum(weight * scores[name] for name, weight in WEIGHTS.items()), 2)


def estimate_potential(score: float, issues: Sequence[Issue]) -> float:
    """The share of the points missing that a revision may win: small faults are mended easily, critical ones hardly."""
    if score >= 10:
        return 0.0
    major = min(0.15 * _count_severity(issues, "major"), 0.5)
    minor = min(0.05 * _count_severity(issues, "minor"), 0.3)
    share = (1 - 0.3 * _count_severity(issues, "critical")) * (0.5 + minor - major)
    return round(max(0.0, min(1.0, share)), 2)


def _count_severity(issues: Sequence[Issue], severity: str) -> int:
    return sum(issue.severity == severity for issue in issues)
