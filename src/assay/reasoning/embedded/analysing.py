"""What a round of reading brought: confidence by section, gaps, disagreements, and what to ask next."""

from collections import Counter
from collections.abc import Mapping, Sequence

from assay.model.claim import Claim
from assay.model.evidence import ANSWERED, Analysis, Disagreement, Gap, KeyFinding, Theme
from assay.model.plan import SubQuestion
from assay.reasoning.embedded.aspects import is_about_a_company
from assay.reasoning.embedded.missing import missing, queries
from assay.reasoning.protocol import AnalysisRequest, Conflict, Evidence
from assay.text.names import names
from assay.text.relations import relate, years
from assay.text.words import content_words, stems

AT_ONCE = 3  # new queries for one gap; the others are left for the round after


def analyse(request: AnalysisRequest) -> Analysis:
    by_question = _by_question(request.evidence)
    confidence = request.coverage
    sections = _by_section(request.plan.questions, confidence)
    unanswered = [question for question in request.plan.questions if confidence[question.id] < ANSWERED]
    quotes = {id: [item.finding.span.quote for item in found] for id, found in by_question.items()}
    lacks = missing(request.plan, quotes)
    company = is_about_a_company(request.plan.sections)
    wanting = [q for q in request.plan.questions if q in unanswered or (company and q.id in lacks)]
    gaps = tuple(
        Gap(
            section=question.section,
            severity="major" if not by_question.get(question.id) else "minor",
            question=question.id,
        )
        for question in wanting
    )
    overall = round(sum(sections.values()) / len(sections), 4) if sections else 0.0
    return Analysis(
        section_confidence=sections,
        confidence=overall,
        previous_confidence=request.previous.confidence if request.previous else 0.0,
        key_findings=_key_findings(request.evidence),
        themes=_themes(request.plan.questions, by_question),
        gaps=gaps,
        disagreements=tuple(_conflicts(request.evidence)),
        unanswered=tuple(question.text for question in unanswered),
        refinements=_refinements(wanting, lacks, by_question, request.asked),
        sufficiency=_sufficiency(gaps, len(request.plan.questions)),
        feedback=_feedback(wanting, by_question, lacks),
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


def _key_findings(evidence: Sequence[Evidence]) -> tuple[KeyFinding, ...]:
    """Up to ten, graded by relevance and by how many documents say alike."""
    ordered = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))[:10]
    return tuple(KeyFinding(finding=item.finding.id, grade=_grade(item, evidence)) for item in ordered)


def _grade(item: Evidence, evidence: Sequence[Evidence]) -> str:
    quote = item.finding.span.quote
    agreeing = {
        other.finding.span.document
        for other in evidence
        if other.finding.span.document != item.finding.span.document
        and relate(quote, other.finding.span.quote) == "same"
    }
    if agreeing:
        return "strong"
    return "moderate" if item.finding.relevance >= 0.5 else "weak"


def _themes(questions: Sequence[SubQuestion], by_question: Mapping[str, Sequence[Evidence]]) -> tuple[Theme, ...]:
    """A sub-question that two or more documents speak to is a theme."""
    themes = []
    for question in questions:
        found = by_question.get(question.id, [])
        documents = {item.finding.span.document for item in found}
        if len(documents) >= 2:
            ids = tuple(dict.fromkeys(item.finding.id for item in found))
            themes.append(Theme(title=question.text, findings=ids, sources=len(documents)))
    return tuple(themes[:5])


def _conflicts(evidence: Sequence[Evidence]) -> list[Disagreement]:
    """Pairs among the most relevant findings that cannot both hold; bounded, since pairs grow by the square."""
    ordered = sorted(evidence, key=lambda item: -item.finding.relevance)[:40]
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


def about(left: str, right: str) -> str:
    """The words two statements share, in the order of the first."""
    shared = set(stems(left)) & set(stems(right))
    kept = [word for word in content_words(left) if set(stems(word)) & shared and not word[0].isdigit()]
    return " ".join(dict.fromkeys(kept))


def disagreements(claims: Sequence[Claim], conflicts: Sequence[Conflict] = ()) -> list[Disagreement]:
    """A newer figure of the same origin settles a matter; of what still stands, opposites are grouped into sides.

    `conflicts` are what a judge saw that words do not show; what is settled stays settled.
    """
    settled = _superseded(claims)
    outdated = {matter.sides[1][0] for matter in settled}
    current = [claim for claim in claims if claim.id not in outdated]
    opposed: list[Disagreement] = []
    for at, left in enumerate(current):
        for right in current[at + 1 :]:
            if relate(left.text, right.text) == "disagree":
                _add(opposed, left, right)
    standing = {claim.text: claim for claim in current}
    for conflict in conflicts:
        if conflict.first != conflict.second and {conflict.first, conflict.second} <= standing.keys():
            _add(opposed, standing[conflict.first], standing[conflict.second], conflict.about)
    return [*opposed, *settled]


def _superseded(claims: Sequence[Claim]) -> list[Disagreement]:
    """Each outdated claim once, with the newest that replaces it."""
    newest: dict[str, Claim] = {}
    by_id = {claim.id: claim for claim in claims}
    for old in claims:
        for new in claims:
            if relate(new.text, old.text) == "newer":
                best = newest.get(old.id)
                if best is None or max(years(new.text)) > max(years(best.text)):
                    newest[old.id] = new
    return [
        Disagreement(
            about=about(new.text, by_id[old].text),
            sides=((new.id,), (old,)),
            resolution="newer supersedes older",
            resolved=True,
        )
        for old, new in newest.items()
    ]


def _add(found: list[Disagreement], left: Claim, right: Claim, matter: str = "") -> None:
    """A claim that already stands on one side of a matter gains an opponent; else a new matter is opened."""
    for at, known in enumerate(found):
        if known.resolved:
            continue
        first, second = known.sides
        for mine, other, claim, opponent in ((first, second, left, right), (second, first, left, right),
                                             (first, second, right, left), (second, first, right, left)):  # fmt: skip
            if claim.id in mine:
                if opponent.id in mine:
                    return
                sides = (mine, tuple(dict.fromkeys((*other, opponent.id))))
                found[at] = known.model_copy(update={"sides": sides if mine is first else sides[::-1]})
                return
    matter = matter or about(left.text, right.text)
    found.append(Disagreement(about=matter, sides=((left.id,), (right.id,)), resolution="unresolved"))


def _refinements(
    wanting: Sequence[SubQuestion],
    lacks: Mapping[str, Sequence[str]],
    by_question: Mapping[str, Sequence[Evidence]],
    asked: Sequence[str],
) -> dict[str, tuple[str, ...]]:
    """New queries for what is missing, then the question in fewer words: all from the plan, never from page text, and
    none that was asked before."""
    refined = {}
    for question in wanting:
        wanted = queries(question, lacks.get(question.id, ()), found=bool(by_question.get(question.id)))
        texts = (*wanted, *_in_fewer_words(question))
        fresh = tuple(dict.fromkeys(text for text in texts if text and text not in asked))
        if fresh:
            refined[question.id] = fresh[:AT_ONCE]
    return refined


def _in_fewer_words(question: SubQuestion) -> list[str]:
    """Where the question names something, no query goes without a name."""
    words = content_words(question.text)
    texts = [" ".join(words[:3]), " ".join(words[-3:]), " ".join(sorted(words, key=len, reverse=True)[:2])]
    named = {stem for name in names(question.text) for stem in stems(name)}
    return [text for text in texts if not named or named & set(stems(text))]


def _sufficiency(gaps: Sequence[Gap], questions: int) -> str:
    if not gaps:
        return "sufficient"
    severities = Counter(gap.severity for gap in gaps)
    return "gaps_major" if severities["major"] * 2 > questions else "gaps_minor"


def _feedback(
    wanting: Sequence[SubQuestion], by_question: Mapping[str, Sequence[Evidence]], lacks: Mapping[str, Sequence[str]]
) -> str:
    lines = []
    for question in wanting:
        found = "does not have enough evidence" if by_question.get(question.id) else "has no evidence yet"
        wanted = f"; missing: {', '.join(lacks[question.id])}" if question.id in lacks else ""
        lines.append(f"{question.text} {found}{wanted}.")
    return " ".join(lines)
