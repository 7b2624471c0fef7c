"""What a round of reading brought. What is counted bounds what is judged: a model can add doubt, not confidence."""

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
from openassay.reasoning.llm.forms import (
    Line,
    Number,
    Numbers,
    OutputForm,
    Phrase,
    Score,
    Text,
    build_schema,
    choice_field,
    match_option,
)
from openassay.reasoning.llm.plan import is_searchable
from openassay.reasoning.llm.step import Job, ReasoningStep, number_lines, wrap_tag
from openassay.text.injection import asks_for_advice, find_instructions, is_order
from openassay.text.sentences import TextSpan, is_statement, split_sentences
from openassay.text.words import interleave_groups, query_key, stems

# Evidence as a prompt shows it: by source, each quote with a number.

LONGEST_QUOTE = 600  # characters


class EvidenceList(NamedTuple):
    """The evidence in the order of its numbers, and the documents in theirs."""

    items: list[Evidence]
    documents: list[str]

    def find(self, numbers: Sequence[int]) -> list[Evidence]:
        return [self.items[number - 1] for number in numbers if 1 <= number <= len(self.items)]


def balance_evidence(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The best of every sub-question first, then the second best of each: whatever room there is, none is left out."""
    best = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))
    return tuple(interleave_groups(best, lambda item: item.finding.question))


def list_evidence(shown: Sequence[Evidence]) -> EvidenceList:
    documents = list(dict.fromkeys(item.finding.span.document for item in shown))
    place = {document: number for number, document in enumerate(documents)}
    return EvidenceList(sorted(shown, key=lambda item: place[item.finding.span.document]), documents)


def format_sources(shown: Sequence[Evidence], plan: Plan) -> str:
    """Each document between tags of its own; a quote names the sub-question it was found for."""
    number_of = {question.id: number for number, question in enumerate(plan.questions, 1)}
    items, documents = list_evidence(shown)
    blocks = []
    for at, document in enumerate(documents, 1):
        mine = [(n, item) for n, item in enumerate(items, 1) if item.finding.span.document == document]
        head = mine[0][1]
        date = f" ({head.published})" if head.published else ""
        lines = [f"Source {at}: {head.title}{date}"]
        lines += [
            f"[{n}] (question {number_of.get(item.finding.question, 0)}) {_format_quote(item)}" for n, item in mine
        ]
        blocks.append(wrap_tag("source", "\n".join(lines)))
    return "\n".join(blocks)


def _format_quote(item: Evidence) -> str:
    return " ".join(item.finding.span.quote.split())[:LONGEST_QUOTE]


def halve_quote(item: Evidence) -> Evidence:
    """Half the words for the prompt; what is kept as evidence is the whole quote, found by the finding's id."""
    span = item.finding.span
    kept = max(1, len(span.quote) // 2)
    short = span.model_copy(update={"quote": span.quote[:kept], "end": span.start + kept})
    return item.model_copy(update={"finding": item.finding.model_copy(update={"span": short})})


def format_questions(plan: Plan) -> str:
    return wrap_tag("message", f"{plan.goal}\n{number_lines(question.in_context for question in plan.questions)}")


ANALYSE_STEP = ReasoningStep("analyse", stage="analyse", role="analyst", thing="analysis",
            variables=("questions", "sources", "asked", "wanted"))  # fmt: skip
GRADES = ("moderate", "strong", "weak", "gap")
SEVERITIES = ("minor", "major")
SUFFICIENCIES = ("sufficient", "gaps_minor", "gaps_major")  # from good to bad
HOLDS = ("neither", "first", "second")
WELL_ANSWERED = 0.6  # counted coverage from which on a sub-question is not without an answer, whatever a model says
MOST_PAST_QUERIES = 20
MOST_RULE_QUERIES = 2  # queries of the floor that are asked besides a model's

FULL_INSTRUCTIONS = (
    "findings: the 5 to 10 quotes that matter most, each with its grade; strong needs two sources that agree. "
    "themes: 3 to 5, each with quotes of at least two sources. contradictions: quotes that cannot both be true; first "
    "or second holds only if it is newer and replaces the other, or is a study against a report of it, else neither."
)
SHORT_INSTRUCTIONS = "Answer for the sub-questions only."


class KeyFindingForm(OutputForm):
    quote: Number
    grade: Text = choice_field(GRADES)


class ThemeForm(OutputForm):
    title: Phrase
    quotes: Numbers


class ContradictionForm(OutputForm):
    about: Phrase = ""
    first: Numbers
    second: Numbers
    holds: Text = choice_field(HOLDS)


class GapForm(OutputForm):
    question: Number
    severity: Text = choice_field(SEVERITIES)
    missing: Line = ""
    query: Phrase = ""


class AnalysisForm(OutputForm):
    findings: list[KeyFindingForm] = []
    themes: list[ThemeForm] = []
    contradictions: list[ContradictionForm] = []
    gaps: list[GapForm] = []
    sufficiency: Text = choice_field(SUFFICIENCIES)
    confidence: Score


def build_analysis_job(request: AnalysisRequest, floor: Analysis, small: bool) -> Job[AnalysisForm, Evidence, Analysis]:
    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        return {
            "questions": format_questions(request.plan),
            "sources": format_sources(shown, request.plan),
            "asked": wrap_tag("asked", "; ".join(request.asked[-MOST_PAST_QUERIES:]) or "none"),
            "wanted": SHORT_INSTRUCTIONS if small else FULL_INSTRUCTIONS,
        }

    most = {"gaps": min(3, len(request.plan.questions)) if small else 7}
    most |= dict.fromkeys(("findings", "themes", "contradictions"), 0) if small else {"findings": 10, "themes": 5}
    return Job(
        ANALYSE_STEP, AnalysisForm, build_schema(AnalysisForm, "Analysis", most), build,
        lambda answer, shown: convert_analysis(answer, list_evidence(shown), request, floor),
        sources=balance_evidence(request.evidence), shorten=halve_quote,
    )  # fmt: skip


def convert_analysis(answer: AnalysisForm, shown: EvidenceList, request: AnalysisRequest, floor: Analysis) -> Analysis:
    found = _convert_gaps(answer, request)
    gaps = _merge_gaps([*floor.gaps, *(gap for gap, _ in found)])
    lacking = {gap.question for gap in gaps if gap.severity == "major"}
    texts = (question.text for question in request.plan.questions if question.id in lacking)
    worse = max(
        floor.sufficiency, match_option(answer.sufficiency, SUFFICIENCIES, "sufficient"), key=SUFFICIENCIES.index
    )
    return floor.model_copy(
        update={
            "confidence": round(min(floor.confidence, answer.confidence / 10), 4),
            "key_findings": _convert_key_findings(answer, shown) or floor.key_findings,
            "themes": _convert_themes(answer, shown) or floor.themes,
            "disagreements": _merge_disagreements(answer, shown, floor.disagreements),
            "gaps": gaps,
            "unanswered": tuple(dict.fromkeys((*floor.unanswered, *texts))),
            "refinements": _merge_refinements(found, request, floor),
            "sufficiency": worse,
            "feedback": " ".join(
                dict.fromkeys([*filter(None, [floor.feedback]), *(text for _, text in _describe_gaps(found))])
            ),
        }
    )


def _convert_gaps(answer: AnalysisForm, request: AnalysisRequest) -> list[tuple[Gap, GapForm]]:
    found: dict[str, tuple[Gap, GapForm]] = {}
    for item in answer.gaps:
        if 1 <= item.question <= len(request.plan.questions):
            question = request.plan.questions[item.question - 1]
            answered = request.coverage.get(question.id, 0.0) >= WELL_ANSWERED
            severity = "minor" if answered else match_option(item.severity, SEVERITIES, "minor")
            gap = Gap(section=question.section, severity=severity, question=question.id)
            found.setdefault(question.id, (gap, item))
    return list(found.values())


def _merge_gaps(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """One a sub-question, as grave as either finds it."""
    worst: dict[str, Gap] = {}
    for gap in gaps:
        if gap.question not in worst or gap.severity == "major":
            worst[gap.question] = gap
    return tuple(worst.values())


def _describe_gaps(found: Sequence[tuple[Gap, GapForm]]) -> list[tuple[str, str]]:
    return [(gap.question, f"Missing: {item.missing.rstrip('.')}.") for gap, item in found if item.missing]


def _convert_key_findings(answer: AnalysisForm, shown: EvidenceList) -> tuple[KeyFinding, ...]:
    """One document alone is no strong evidence: another quote of the same theme has to come from elsewhere."""
    graded = {}
    for item in answer.findings[:10]:
        for evidence in shown.find([item.quote]):
            grade = match_option(item.grade, GRADES, "moderate")
            strong = grade != "strong" or _has_second_source(item.quote, answer, shown)
            graded[evidence.finding.id] = KeyFinding(finding=evidence.finding.id, grade=grade if strong else "moderate")
    return tuple(graded.values())


def _has_second_source(number: int, answer: AnalysisForm, shown: EvidenceList) -> bool:
    together = [n for theme in answer.themes if number in theme.quotes for n in theme.quotes]
    return len({item.finding.span.document for item in shown.find(together)}) >= 2


def _convert_themes(answer: AnalysisForm, shown: EvidenceList) -> tuple[Theme, ...]:
    themes = []
    for item in answer.themes[:5]:
        behind = shown.find(item.quotes)
        documents = {evidence.finding.span.document for evidence in behind}
        if item.title and len(documents) >= 2:
            ids = tuple(evidence.finding.id for evidence in behind)
            themes.append(Theme(title=item.title, findings=ids, sources=len(documents)))
    return tuple(themes)


def _merge_disagreements(
    answer: AnalysisForm, shown: EvidenceList, counted: Sequence[Disagreement]
) -> tuple[Disagreement, ...]:
    made = list(counted)
    for item in answer.contradictions:
        first = shown.find(item.first)
        second = [other for other in shown.find(item.second) if other not in first]
        ids = {evidence.finding.id for evidence in (*first, *second)}
        if first and second and not any(ids <= {id for side in known.sides for id in side} for known in made):
            made.append(_to_disagreement(item, first, second))
    return tuple(made[:10])


def _to_disagreement(item: ContradictionForm, first: Sequence[Evidence], second: Sequence[Evidence]) -> Disagreement:
    """Settled only where the side that is said to hold is in fact the newer one; else both stand."""
    holds = match_option(item.holds, HOLDS, "neither")
    if holds == "second":
        first, second = second, first
    settled = holds != "neither" and _newest_date(first) > _newest_date(second) > ""
    return Disagreement(
        about=item.about,
        sides=(tuple(e.finding.id for e in first), tuple(e.finding.id for e in second)),
        resolution="newer supersedes older" if settled else "unresolved",
        resolved=settled,
    )


def _newest_date(side: Sequence[Evidence]) -> str:
    return max(item.published or "" for item in side)


def _merge_refinements(
    found: Sequence[tuple[Gap, GapForm]], request: AnalysisRequest, floor: Analysis
) -> dict[str, tuple[str, ...]]:
    """The model's query first, then the floor's; none that was asked before. The analyst has seen pages, so of its
    query only words stay that were in the question or the plan: a page must not be able to have something asked."""
    known = collect_known_stems(request.plan, request.asked)
    asked = {query_key(text) for text in request.asked}
    own = {question.id: set(stems(question.in_context)) for question in request.plan.questions}
    refined = {question: texts[:MOST_RULE_QUERIES] for question, texts in floor.refinements.items()}
    for gap, item in found:
        query = keep_known_words(item.query, known) if is_searchable(item.query) else ""
        if own[gap.question] & set(stems(query)) and query_key(query) not in asked:
            refined[gap.question] = tuple(dict.fromkeys((query, *refined.get(gap.question, ()))))
    return refined


# Reading: the model points at numbered sentences, so every quote is verbatim.
#
# A sentence that orders a model about is shown as what it is and has no number, so it cannot be quoted.

READ_STEP = ReasoningStep("read", stage="read", role="searcher", thing="choice of quotes",
            variables=("question", "sources", "most"))  # fmt: skip
MOST_PICKS_SMALL = 6
MOST_TOGETHER = 3  # sentences of one quote
MIN_SCORE = 3.0  # of 10; below this a sentence is about something else
INSTRUCTION_TEMPLATE = "⟦instruction-like text of the page: {}⟧"
LONGEST_INSTRUCTION = 200  # characters shown of one
_BRACKETS = str.maketrans("⟦⟧", "[]")


class PickForm(OutputForm):
    first: Number
    last: Number = 0
    score: Score


class PicksForm(OutputForm):
    picks: list[PickForm]


class PassageExcerpt(NamedTuple):
    """A passage with the sentences of it that may be quoted, and those that are only shown, marked."""

    passage: int
    title: str
    pieces: tuple[TextSpan, ...]
    marked: tuple[TextSpan, ...] = ()


def build_read_job(
    request: ReadRequest, shortlist: Sequence[Quote], small: bool
) -> Job[PicksForm, PassageExcerpt, Sequence[Quote]]:
    """In little room the model chooses among what the floor has found, and its scores count half: of whole passages a
    small model called nearly every sentence a perfect answer."""
    most = min(request.limit, MOST_PICKS_SMALL) if small else request.limit
    counted = {(quote.passage, quote.text): quote.relevance for quote in shortlist} if small else {}

    def build(shown: Sequence[PassageExcerpt]) -> dict[str, str]:
        question = wrap_tag("message", request.question.in_context)
        return {"question": question, "sources": _format_excerpts(shown), "most": str(most)}

    return Job(
        READ_STEP, PicksForm, build_schema(PicksForm, "Picks", {"picks": most}), build,
        lambda answer, shown: convert_picks(answer, shown, request.passages, most, counted),
        sources=_build_shortlist(request, counted) if counted else _build_excerpts(request), shorten=_halve_excerpt,
        task=request.question.id, share=request.share,
    )  # fmt: skip


def _build_excerpts(request: ReadRequest) -> tuple[PassageExcerpt, ...]:
    """Passages overlap: a sentence is shown once. What only tells people to do something is no answer, unless that was
    asked."""
    advice = asks_for_advice(request.question.in_context)
    seen: set[tuple[str, str]] = set()
    found = []
    for number, passage in enumerate(request.passages):
        orders = set(find_instructions(passage.text))
        fresh = [piece for piece in split_sentences(passage.text) if (passage.document, piece.text) not in seen]
        told = [piece for piece in fresh if piece not in orders and is_statement(piece.text)]
        pieces = [piece for piece in told if advice or not is_order(piece.text)]
        seen |= {(passage.document, piece.text) for piece in (*pieces, *orders)}
        marked = tuple(piece for piece in fresh if piece in orders)
        if pieces or marked:
            found.append(PassageExcerpt(number, _safe_title(request, passage), tuple(pieces), marked))
    return tuple(found) if any(shown.pieces for shown in found) else ()


def _safe_title(request: ReadRequest, passage: Passage) -> str:
    title = request.titles.get(passage.document, "")
    return "" if find_instructions(title) else title


def _build_shortlist(request: ReadRequest, quotes: Iterable[tuple[int, str]]) -> tuple[PassageExcerpt, ...]:
    found: dict[int, list[TextSpan]] = {}
    for number, text in quotes:
        start = request.passages[number].text.find(text)
        if start >= 0:
            found.setdefault(number, []).append(TextSpan(start, start + len(text), text))
    return tuple(
        PassageExcerpt(number, _safe_title(request, request.passages[number]), tuple(sorted(pieces)))
        for number, pieces in found.items()
    )


def _halve_excerpt(shown: PassageExcerpt) -> PassageExcerpt:
    return shown._replace(pieces=shown.pieces[: (len(shown.pieces) + 1) // 2], marked=())


def _format_excerpts(shown: Sequence[PassageExcerpt]) -> str:
    blocks, number = [], 0
    for source in shown:
        lines = [f"Title: {source.title}"] if source.title else []
        for piece in sorted((*source.pieces, *source.marked)):
            said = " ".join(piece.text.split())
            if piece in source.marked:
                lines.append(INSTRUCTION_TEMPLATE.format(said[:LONGEST_INSTRUCTION].translate(_BRACKETS)))
            else:
                number += 1
                lines.append(f"[{number}] {said}")
        blocks.append(wrap_tag("source", "\n".join(lines)))
    return "\n".join(blocks)


def convert_picks(
    answer: PicksForm,
    shown: Sequence[PassageExcerpt],
    passages: Sequence[Passage],
    most: int,
    counted: Mapping[tuple[int, str], float],
) -> Sequence[Quote]:
    places = [(source, at) for source in shown for at in range(len(source.pieces))]
    named = [pick for pick in answer.picks if 1 <= pick.first <= len(places)]
    if answer.picks and not named:
        raise ReasoningError(f"sentences are numbered 1 to {len(places)}")
    quotes: list[Quote] = []
    taken: set[tuple[int, int]] = set()
    for pick in sorted(named, key=lambda pick: -pick.score):
        source, at = places[pick.first - 1]
        last = _find_last_piece(source, at, pick, passages[source.passage])
        span = {(source.passage, n) for n in range(at, last + 1)}
        if pick.score >= MIN_SCORE and not span & taken:
            taken |= span
            text = passages[source.passage].text[source.pieces[at].start : source.pieces[last].end]
            given = pick.score / 10
            relevance = (given + counted.get((source.passage, source.pieces[at].text), given)) / 2
            quotes.append(Quote(passage=source.passage, text=text, relevance=round(relevance, 4)))
    return sorted(quotes, key=lambda quote: -quote.relevance)[:most]


def _find_last_piece(source: PassageExcerpt, at: int, pick: PickForm, passage: Passage) -> int:
    """Where a quote ends: neighbours of the same paragraph only."""
    last = at
    while last + 1 < len(source.pieces) and last - at < min(pick.last - pick.first, MOST_TOGETHER - 1):
        between = passage.text[source.pieces[last].end : source.pieces[last + 1].start]
        if between.strip() or "\n" in between:
            break
        last += 1
    return last
