"""Prompts for reading pages and for analysing what a round of reading brought.

A model points at numbered sentences, so that every quote is verbatim; what is counted bounds what it judges: it can add
doubt, not confidence. `baseline` is what the rules made of the same input.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from openassay.errors import ReasoningError
from openassay.models.evidence import Analysis, Disagreement, Gap, KeyFinding, Passage, Theme
from openassay.models.plan import Plan
from openassay.reasoning.base import (
    AnalysisRequest,
    Evidence,
    Quote,
    ReadRequest,
    collect_known_stems,
    keep_known_words,
)
from openassay.reasoning.llm import forms
from openassay.reasoning.llm.plan import is_searchable
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.text.injection import asks_for_advice, find_instructions, is_order
from openassay.text.sentences import TextSpan, is_statement, split_sentences
from openassay.text.words import interleave_groups, query_key, stems

READ_STEP = ReasoningStep("read", stage="read", role="searcher", output="choice of quotes")
ANALYSE_STEP = ReasoningStep("analyse", stage="analyse", role="analyst", output="analysis")
MAX_PICKS_SMALL = 6
MAX_SENTENCES = 3  # of one quote
MIN_SCORE = 3.0  # of 10; below this a sentence is about something else
INSTRUCTION_TEMPLATE = "⟦instruction-like text of the page: {}⟧"
MAX_INSTRUCTION = 200  # characters shown of one
MAX_QUOTE = 1200  # characters; of a speech of the 19th century one sentence
GRADES = ("moderate", "strong", "weak", "gap")
SEVERITIES = ("minor", "major")
SUFFICIENCIES = ("sufficient", "gaps_minor", "gaps_major")  # from good to bad
HOLDS = ("neither", "first", "second")
WELL_ANSWERED = 0.6  # counted coverage from which on a sub-question is not without an answer, whatever a model says
MAX_PAST_QUERIES = 20
MAX_BASELINE_QUERIES = 2  # that are asked besides a model's
_BRACKETS = str.maketrans("⟦⟧", "[]")

FULL_INSTRUCTIONS = (
    "findings: the 5 to 10 quotes that matter most, each with its grade; strong needs two sources that agree. "
    "themes: 3 to 5, each with quotes of at least two sources. contradictions: quotes that cannot both be true; first "
    "or second holds only if it is newer and replaces the other, or is a study against a report of it, else neither."
)
SHORT_INSTRUCTIONS = "Answer for the sub-questions only."


class PickForm(forms.OutputForm):
    first: forms.Number
    last: forms.Number = 0
    score: forms.Score


class PicksForm(forms.OutputForm):
    picks: list[PickForm]


class PassageExcerpt(NamedTuple):
    """A passage with the sentences of it that may be quoted, and those that are only shown, marked."""

    passage: int
    document: str
    start: int
    title: str
    pieces: tuple[TextSpan, ...]
    marked: tuple[TextSpan, ...] = ()

    def halve(self) -> "PassageExcerpt":
        return self._replace(pieces=self.pieces[: (len(self.pieces) + 1) // 2], marked=())


def arrange_excerpts(shown: Sequence[PassageExcerpt]) -> list[PassageExcerpt]:
    """Put what is of one document together, as it stands there, the best document first."""
    order = {excerpt.document: at for at, excerpt in reversed(list(enumerate(shown)))}
    return sorted(shown, key=lambda excerpt: (order[excerpt.document], excerpt.start))


def build_read_job(
    request: ReadRequest, shortlist: Sequence[Quote], small: bool
) -> Job[PicksForm, PassageExcerpt, Sequence[Quote]]:
    """Ask which sentences answer a sub-question.

    A small model chooses from the shortlist of the rules, and its scores count half: of whole passages it called nearly
    every sentence a perfect answer. A sentence that gives orders to a model is shown as what it is and has no number,
    so that it cannot be quoted.
    """
    most = min(request.limit, MAX_PICKS_SMALL) if small else request.limit
    counted = {(quote.passage, quote.text): quote.relevance for quote in shortlist} if small else {}
    listed: dict[int, list[TextSpan]] = {}
    for passage, text in counted:
        start = request.passages[passage].text.find(text)
        if start >= 0:
            listed.setdefault(passage, []).append(TextSpan(start, start + len(text), text))
    excerpts = tuple(_build_excerpt(request, passage, sorted(pieces)) for passage, pieces in listed.items())

    def build(shown: Sequence[PassageExcerpt]) -> dict[str, str]:
        documents: dict[str, list[str]] = {}
        number = 0
        for excerpt in arrange_excerpts(shown):
            lines = documents.setdefault(excerpt.document, [f"Title: {excerpt.title}"] if excerpt.title else [])
            for piece in sorted((*excerpt.pieces, *excerpt.marked)):
                text = " ".join(piece.text.split())
                if piece in excerpt.marked:
                    lines.append(INSTRUCTION_TEMPLATE.format(text[:MAX_INSTRUCTION].translate(_BRACKETS)))
                else:
                    number += 1
                    lines.append(f"[{number}] {text}")
        blocks = (wrap_tag("source", "\n".join(lines)) for lines in documents.values())
        question = wrap_tag("message", request.question.in_context)
        return {"question": question, "sources": "\n".join(blocks), "most": str(most)}

    return Job(
        READ_STEP,
        PicksForm,
        forms.build_schema(PicksForm, "Picks", {"picks": most}),
        build,
        convert=lambda answer, shown: convert_picks(answer, shown, request.passages, most, counted),
        sources=excerpts if counted else _build_excerpts(request),
        shorten=PassageExcerpt.halve,
        task=request.question.id,
        share=request.share,
    )


def _build_excerpts(request: ReadRequest) -> tuple[PassageExcerpt, ...]:
    """Show each sentence once, since passages overlap; what only tells people what to do is no answer, unless asked."""
    wants_advice = asks_for_advice(request.question.in_context)
    seen: set[tuple[str, str]] = set()
    excerpts = []
    for number, passage in enumerate(request.passages):
        instructions = set(find_instructions(passage.text))
        fresh = [piece for piece in split_sentences(passage.text) if (passage.document, piece.text) not in seen]
        pieces = [
            piece
            for piece in fresh
            if piece not in instructions and is_statement(piece.text) and (wants_advice or not is_order(piece.text))
        ]
        seen |= {(passage.document, piece.text) for piece in (*pieces, *instructions)}
        marked = tuple(piece for piece in fresh if piece in instructions)
        if pieces or marked:
            excerpts.append(_build_excerpt(request, number, pieces, marked))
    return tuple(excerpts) if any(excerpt.pieces for excerpt in excerpts) else ()


def _build_excerpt(
    request: ReadRequest, number: int, pieces: Iterable[TextSpan], marked: tuple[TextSpan, ...] = ()
) -> PassageExcerpt:
    """Take a passage with the title and the date of its document, unless the title gives orders."""
    document, start = request.passages[number].document, request.passages[number].start
    title, date = request.titles.get(document, ""), request.dates.get(document, "")
    title = "" if find_instructions(title) else f"{title} ({date})" if date else title
    return PassageExcerpt(number, document, start, title, tuple(pieces), marked)


def convert_picks(
    answer: PicksForm,
    shown: Sequence[PassageExcerpt],
    passages: Sequence[Passage],
    most: int,
    counted: Mapping[tuple[int, str], float],
) -> Sequence[Quote]:
    """Return the quotes that the numbers of an answer stand for, best first."""
    places = [(excerpt, at) for excerpt in arrange_excerpts(shown) for at in range(len(excerpt.pieces))]
    picks = [pick for pick in answer.picks if 1 <= pick.first <= len(places)]
    if answer.picks and not picks:
        raise ReasoningError(f"sentences are numbered 1 to {len(places)}")
    quotes: list[Quote] = []
    used: set[tuple[int, int]] = set()
    for pick in sorted(picks, key=lambda pick: -pick.score):
        excerpt, first = places[pick.first - 1]
        text, pieces, last = passages[excerpt.passage].text, excerpt.pieces, first
        # A quote goes on over neighbours, in the next paragraph too: those of the news are a sentence each.
        while last + 1 < len(pieces) and last - first < min(pick.last - pick.first, MAX_SENTENCES - 1):
            if text[pieces[last].end : pieces[last + 1].start].strip():
                break
            last += 1
        span = {(excerpt.passage, at) for at in range(first, last + 1)}
        if pick.score >= MIN_SCORE and not span & used:
            used |= span
            score = pick.score / 10
            relevance = round((score + counted.get((excerpt.passage, pieces[first].text), score)) / 2, 4)
            quote = text[pieces[first].start : pieces[last].end]
            quotes.append(Quote(passage=excerpt.passage, text=quote, relevance=relevance))
    return sorted(quotes, key=lambda quote: -quote.relevance)[:most]


class EvidenceList(NamedTuple):
    """The evidence in the order of its numbers in a prompt, and the documents in theirs."""

    items: list[Evidence]
    documents: list[str]

    def find(self, numbers: Sequence[int]) -> list[Evidence]:
        return [self.items[number - 1] for number in numbers if 1 <= number <= len(self.items)]


def balance_evidence(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Sort the best of every sub-question first, then the second best of each, so that none lacks room."""
    best = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))
    return tuple(interleave_groups(best, lambda item: item.finding.question))


def list_evidence(shown: Sequence[Evidence]) -> EvidenceList:
    documents = list(dict.fromkeys(item.finding.span.document for item in shown))
    place = {document: number for number, document in enumerate(documents)}
    return EvidenceList(sorted(shown, key=lambda item: place[item.finding.span.document]), documents)


def format_sources(shown: Sequence[Evidence], plan: Plan) -> str:
    """Write each document between tags of its own, with numbered quotes that name their sub-questions."""
    question_numbers = {question.id: number for number, question in enumerate(plan.questions, 1)}
    items, documents = list_evidence(shown)
    blocks = []
    for position, document in enumerate(documents, 1):
        quotes = [(number, item) for number, item in enumerate(items, 1) if item.finding.span.document == document]
        first = quotes[0][1]
        told = ", ".join(filter(None, (first.author, first.published)))
        lines = [f"Source {position}: {first.title}{f' ({told})' if told else ''}"]
        for number, item in quotes:
            question = question_numbers.get(item.finding.question, 0)
            quote = " ".join(item.finding.span.quote.split())[:MAX_QUOTE]
            lines.append(f"[{number}] (question {question}) {quote}")
        blocks.append(wrap_tag("source", "\n".join(lines)))
    return "\n".join(blocks)


def halve_quote(item: Evidence) -> Evidence:
    """Halve a quote for the prompt; the evidence stays the whole quote, found by the finding's id."""
    span = item.finding.span
    length = max(1, len(span.quote) // 2)
    short = span.model_copy(update={"quote": span.quote[:length], "end": span.start + length})
    return item.model_copy(update={"finding": item.finding.model_copy(update={"span": short})})


def format_questions(plan: Plan) -> str:
    """Write the goal and the numbered sub-questions of a plan."""
    return wrap_tag("message", f"{plan.goal}\n{number_lines(question.in_context for question in plan.questions)}")


class KeyFindingForm(forms.OutputForm):
    quote: forms.Number
    grade: forms.Text = forms.choice_field(GRADES)


class ThemeForm(forms.OutputForm):
    title: forms.Phrase
    quotes: forms.Numbers


class ContradictionForm(forms.OutputForm):
    about: forms.Phrase = ""
    first: forms.Numbers
    second: forms.Numbers
    holds: forms.Text = forms.choice_field(HOLDS)


class GapForm(forms.OutputForm):
    question: forms.Number
    severity: forms.Text = forms.choice_field(SEVERITIES)
    missing: forms.Line = ""
    query: forms.Phrase = ""


class AnalysisForm(forms.OutputForm):
    findings: list[KeyFindingForm] = []
    themes: list[ThemeForm] = []
    contradictions: list[ContradictionForm] = []
    gaps: list[GapForm] = []
    sufficiency: forms.Text = forms.choice_field(SUFFICIENCIES)
    confidence: forms.Score


def build_analysis_job(
    request: AnalysisRequest, baseline: Analysis, small: bool
) -> Job[AnalysisForm, Evidence, Analysis]:
    """Ask how well the evidence answers the sub-questions."""

    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        return {
            "questions": format_questions(request.plan),
            "sources": format_sources(shown, request.plan),
            "asked": wrap_tag("asked", "; ".join(request.asked[-MAX_PAST_QUERIES:]) or "none"),
            "wanted": SHORT_INSTRUCTIONS if small else FULL_INSTRUCTIONS,
        }

    most = {"gaps": min(3, len(request.plan.questions)) if small else 7}
    most |= dict.fromkeys(("findings", "themes", "contradictions"), 0) if small else {"findings": 10, "themes": 5}
    return Job(
        ANALYSE_STEP,
        AnalysisForm,
        forms.build_schema(AnalysisForm, "Analysis", most),
        build,
        convert=lambda answer, shown: convert_analysis(answer, list_evidence(shown), request, baseline),
        sources=balance_evidence(request.evidence),
        shorten=halve_quote,
    )


def convert_analysis(
    answer: AnalysisForm, shown: EvidenceList, request: AnalysisRequest, baseline: Analysis
) -> Analysis:
    """Merge an answer into the baseline: gaps are as grave as either finds them, confidence as low."""
    gaps = list(baseline.gaps)
    gap_items: dict[str, GapForm] = {}
    missing = list[str]()
    for item in answer.gaps:
        if not 1 <= item.question <= len(request.plan.questions):
            continue
        missing += [item.missing.rstrip(".")] if item.missing else []
        question = request.plan.questions[item.question - 1]
        if question.id not in gap_items:
            answered = request.coverage.get(question.id, 0.0) >= WELL_ANSWERED
            severity = "minor" if answered else forms.match_option(item.severity, SEVERITIES, "minor")
            gaps.append(Gap(section=question.section, severity=severity, question=question.id))
            gap_items[question.id] = item
    worst: dict[str, Gap] = {}
    for gap in gaps:
        if gap.question not in worst or gap.severity == "major":
            worst[gap.question] = gap
    lacking = {gap.question for gap in worst.values() if gap.severity == "major"}
    unanswered = (question.text for question in request.plan.questions if question.id in lacking)
    feedback = [f"Missing: {item.missing.rstrip('.')}." for item in gap_items.values() if item.missing]
    sufficiency = forms.match_option(answer.sufficiency, SUFFICIENCIES, "sufficient")
    key_findings, themes = _convert_findings(answer, shown)
    return baseline.model_copy(
        update={
            "confidence": round(min(baseline.confidence, answer.confidence / 10), 4),
            "key_findings": key_findings or baseline.key_findings,
            "themes": themes or baseline.themes,
            "disagreements": _merge_disagreements(answer, shown, baseline.disagreements),
            "gaps": tuple(worst.values()),
            "unanswered": tuple(dict.fromkeys((*baseline.unanswered, *unanswered))),
            "missing": tuple(dict.fromkeys(missing)),
            "refinements": _merge_refinements(gap_items, request, baseline),
            "sufficiency": max(baseline.sufficiency, sufficiency, key=SUFFICIENCIES.index),
            "feedback": " ".join(dict.fromkeys([*filter(None, [baseline.feedback]), *feedback])),
        }
    )


def _convert_findings(answer: AnalysisForm, shown: EvidenceList) -> tuple[tuple[KeyFinding, ...], tuple[Theme, ...]]:
    """Check key findings and themes.

    A theme has two documents or more, and so has strong evidence: another quote of its theme comes from elsewhere.
    """
    graded = {}
    for item in answer.findings[:10]:
        for evidence in shown.find([item.quote]):
            grade = forms.match_option(item.grade, GRADES, "moderate")
            related = [number for theme in answer.themes if item.quote in theme.quotes for number in theme.quotes]
            if grade == "strong" and len({other.finding.span.document for other in shown.find(related)}) < 2:
                grade = "moderate"
            graded[evidence.finding.id] = KeyFinding(finding=evidence.finding.id, grade=grade)
    themes = []
    for theme in answer.themes[:5]:
        behind = shown.find(theme.quotes)
        documents = {evidence.finding.span.document for evidence in behind}
        if theme.title and len(documents) >= 2:
            ids = tuple(evidence.finding.id for evidence in behind)
            themes.append(Theme(title=theme.title, findings=ids, sources=len(documents)))
    return tuple(graded.values()), tuple(themes)


def _merge_disagreements(
    answer: AnalysisForm, shown: EvidenceList, counted: Sequence[Disagreement]
) -> tuple[Disagreement, ...]:
    """Add contradictions; one is settled only where the side that is said to hold is in fact the newer one."""
    merged = list(counted)
    for item in answer.contradictions:
        first = shown.find(item.first)
        second = [other for other in shown.find(item.second) if other not in first]
        ids = {evidence.finding.id for evidence in (*first, *second)}
        if not first or not second or any(ids <= {id for side in known.sides for id in side} for known in merged):
            continue
        holds = forms.match_option(item.holds, HOLDS, "neither")
        sides = (second, first) if holds == "second" else (first, second)
        newer, older = (max(evidence.published or "" for evidence in side) for side in sides)
        settled = holds != "neither" and newer > older > ""
        merged.append(
            Disagreement(
                about=item.about,
                sides=tuple(tuple(evidence.finding.id for evidence in side) for side in sides),
                resolution="newer supersedes older" if settled else "unresolved",
                resolved=settled,
            )
        )
    return tuple(merged[:10])


def _merge_refinements(
    gap_items: Mapping[str, GapForm], request: AnalysisRequest, baseline: Analysis
) -> dict[str, tuple[str, ...]]:
    """Take the model's queries; the baseline's, which are words of the question in another order, where it has none."""
    queries = QueryFilter(request.plan, request.asked, request.leads)
    refined: dict[str, tuple[str, ...]] = {
        question: (query,) for question, item in gap_items.items() if (query := queries.clean(question, item.query))
    }
    return refined or {question: texts[:MAX_BASELINE_QUERIES] for question, texts in baseline.refinements.items()}


class QueryFilter:
    """Cleans the queries of somebody who has seen pages: a page must not be able to have something searched for. Only
    words of the question, the plan and the leads stay, and one of them is the sub-question's. Where `leads` is None
    nothing leaves the machine, and any word may be asked for."""

    def __init__(self, plan: Plan, asked: Sequence[str], leads: Sequence[str] | None) -> None:
        self._known = collect_known_stems(plan, (*asked, *(leads or ())))
        self._asked = {query_key(text) for text in asked}
        self._own = {question.id: set(stems(question.in_context)) for question in plan.questions}
        self._is_free = leads is None

    def clean(self, question: str, query: str) -> str:
        """Return what may be asked of a query; empty if nothing, or if it was asked before."""
        query = query if is_searchable(query) else ""
        if not self._is_free:
            query = keep_known_words(query, self._known)
            query = query if self._own[question] & set(stems(query)) else ""
        return query if query and query_key(query) not in self._asked else ""
