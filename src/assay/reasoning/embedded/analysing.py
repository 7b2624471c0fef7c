"""What a round of reading brought: confidence by section, gaps, disagreements, and what to ask next."""

from collections import Counter
from collections.abc import Mapping, Sequence

from assay.model.evidence import ANSWERED, Analysis, Disagreement, Gap
from assay.model.plan import SubQuestion
from assay.reasoning.embedded.aspects import is_about_a_company
from assay.reasoning.embedded.disagreeing import about
from assay.reasoning.embedded.missing import CONFIRMATION, SETTLEMENT, missing, queries
from assay.reasoning.embedded.synthesis import key_findings, themes
from assay.reasoning.protocol import AnalysisRequest, Evidence
from assay.reasoning.trusted import is_known, words_of
from assay.text.names import names
from assay.text.relations import relate
from assay.text.sense import Sense, sense
from assay.text.words import content_words, stems

AT_ONCE = 3  # new queries for one gap; the others are left for the round after
ENOUGH = 0.6  # confidence below which another round is worth a try: about what one good source gives
COMPARED = 40  # findings compared with each other, since pairs grow by the square

Lacks = dict[str, tuple[str, ...]]


def analyse(request: AnalysisRequest) -> Analysis:
    by_question = _by_question(request.evidence)
    confidence = request.coverage
    sections = _by_section(request.plan.questions, confidence)
    unanswered = [question for question in request.plan.questions if confidence[question.id] < ANSWERED]
    conflicts = _conflicts(request.evidence)
    lacks = _lacks(request, by_question, _disputed(conflicts, request.evidence))
    wanting = _wanting(request, lacks)
    gaps = tuple(
        Gap(section=question.section, severity="major" if question in unanswered else "minor", question=question.id)
        for question in wanting
    )
    return Analysis(
        section_confidence=sections,
        confidence=round(sum(sections.values()) / len(sections), 4) if sections else 0.0,
        previous_confidence=request.previous.confidence if request.previous else 0.0,
        key_findings=key_findings(request.plan.questions, request.evidence, conflicts, unanswered),
        themes=themes(request.plan.questions, by_question),
        gaps=gaps,
        disagreements=tuple(conflicts),
        unanswered=tuple(question.text for question in unanswered),
        refinements=_refinements(wanting, lacks, by_question, request),
        sufficiency=_sufficiency(gaps, len(request.plan.questions)),
        feedback=_feedback(wanting, by_question, lacks, unanswered),
    )


def _by_question(evidence: Sequence[Evidence]) -> dict[str, list[Evidence]]:
    found: dict[str, list[Evidence]] = {}
    for item in evidence:
        found.setdefault(item.finding.question, []).append(item)
    return found


def _by_section(questions: Sequence[SubQuestion], confidence: Mapping[str, float]) -> dict[str, float]:
    sections: dict[str, list[float]] = {}
    for question in questions:
        sections.setdefault(question.section, []).append(confidence[question.id])
    return {section: sum(values) / len(values) for section, values in sections.items()}


def _lacks(request: AnalysisRequest, by_question: Mapping[str, Sequence[Evidence]], disputed: set[str]) -> Lacks:
    """By sub-question, what would make it surer: what nothing found has, and what would settle a dispute, or somebody
    else who says so."""
    quotes = {id: [item.finding.span.quote for item in found] for id, found in by_question.items()}
    lacks = missing(request.plan, quotes)
    for question in request.plan.questions:
        own = lacks.get(question.id, ())
        if question.id in disputed and request.coverage[question.id] >= ANSWERED:
            own = (*own, SETTLEMENT)
        elif by_question.get(question.id) and request.coverage[question.id] < ENOUGH:
            own = (*own, CONFIRMATION)
        if own:
            lacks[question.id] = own
    return lacks


def _wanting(request: AnalysisRequest, lacks: Lacks) -> list[SubQuestion]:
    """Sub-questions another round could help: those not sure enough, those in dispute, and sides of a company that
    nothing speaks of."""
    company = is_about_a_company(request.plan.sections)
    return [
        question
        for question in request.plan.questions
        if request.coverage[question.id] < ENOUGH
        or SETTLEMENT in lacks.get(question.id, ())
        or (company and question.id in lacks)
    ]


def _conflicts(evidence: Sequence[Evidence]) -> list[Disagreement]:
    """Pairs among the most relevant findings that cannot both hold."""
    ordered = sorted(evidence, key=lambda item: -item.finding.relevance)[:COMPARED]
    distinct = list({item.finding.span.quote: item for item in ordered}.values())
    found = []
    for at, left in enumerate(distinct):
        for right in distinct[at + 1 :]:
            if relate(left.finding.span.quote, right.finding.span.quote) == "disagree":
                found.append(
                    Disagreement(about=about(left.finding.span.quote, right.finding.span.quote),
                                 sides=((left.finding.id,), (right.finding.id,)), resolution="unresolved")
                )  # fmt: skip
    return found[:10]


def _disputed(conflicts: Sequence[Disagreement], evidence: Sequence[Evidence]) -> set[str]:
    """Sub-questions whose findings contradict each other."""
    home = {item.finding.id: item.finding.question for item in evidence}
    return {home[id] for conflict in conflicts for side in conflict.sides for id in side}


def _refinements(
    wanting: Sequence[SubQuestion],
    lacks: Lacks,
    by_question: Mapping[str, Sequence[Evidence]],
    request: AnalysisRequest,
) -> dict[str, tuple[str, ...]]:
    """New queries for what is missing, then the question in fewer words: all from the plan, never from page text, and
    none that asks the same as one before."""
    refined = {}
    known = words_of(request.plan)
    seen: set[Sense] = {sense(text) for text in request.asked}
    for question in wanting:
        wanted = queries(question, lacks.get(question.id, ()), found=bool(by_question.get(question.id)))
        texts = [text for text in (*wanted, *_in_fewer_words(question)) if text and is_known(text, known)]
        distinct = {meant: text for text in reversed(texts) if (meant := sense(text)) not in seen}
        fresh = list(distinct.values())[::-1][:AT_ONCE]
        seen.update(map(sense, fresh))
        if fresh:
            refined[question.id] = tuple(fresh)
    return refined


def _in_fewer_words(question: SubQuestion) -> list[str]:
    """Where the question names something, no query goes without a name; what it only means, its topic says."""
    words, topic = content_words(question.text), content_words(question.topic)[:3]
    fewer = [words[:3], words[-3:], sorted(words, key=len, reverse=True)[:2]]
    texts = [" ".join(dict.fromkeys([*topic, *some])) for some in fewer]
    named = {stem for name in names(question.in_context) for stem in stems(name)}
    return [text for text in texts if not named or named & set(stems(text))]


def _sufficiency(gaps: Sequence[Gap], questions: int) -> str:
    if not gaps:
        return "sufficient"
    severities = Counter(gap.severity for gap in gaps)
    return "gaps_major" if severities["major"] * 2 > questions else "gaps_minor"


def _feedback(
    wanting: Sequence[SubQuestion],
    by_question: Mapping[str, Sequence[Evidence]],
    lacks: Lacks,
    unanswered: Sequence[SubQuestion],
) -> str:
    lines = []
    for question in wanting:
        found = "does not have enough evidence" if question in unanswered else "could be surer"
        if not by_question.get(question.id):
            found = "has no evidence yet"
        wanted = f"; missing: {', '.join(lacks[question.id])}" if question.id in lacks else ""
        lines.append(f"{question.text} {found}{wanted}.")
    return " ".join(lines)
