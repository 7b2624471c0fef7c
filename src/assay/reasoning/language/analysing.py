"""What a round of reading brought. What is counted bounds what is judged: a model can add doubt, not confidence."""

from collections.abc import Sequence

from assay.model.evidence import Analysis, Disagreement, Gap, KeyFinding, Theme
from assay.reasoning.language.answer import Answer, Line, Number, Numbers, Phrase, Score, Text, nearest, one_of, schema
from assay.reasoning.language.evidence import Listed, balanced, halved, listed, questions, sources
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.querying import searchable
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import AnalysisRequest, Evidence
from assay.reasoning.trusted import in_known_words, words_of
from assay.text.sense import sense
from assay.text.words import stems

STEP = Step("analyse", stage="analyse", role="analyst", thing="analysis",
            variables=("questions", "sources", "asked", "wanted"))  # fmt: skip
GRADES = ("moderate", "strong", "weak", "gap")
SEVERITIES = ("minor", "major")
SUFFICIENCIES = ("sufficient", "gaps_minor", "gaps_major")  # from good to bad
HOLDS = ("neither", "first", "second")
WELL_ANSWERED = 0.6  # counted coverage from which on a sub-question is not without an answer, whatever a model says
SHOWN_ASKED = 20
BESIDES = 2  # queries of the floor that are asked besides a model's

IN_FULL = (
    "findings: the 5 to 10 quotes that matter most, each with its grade; strong needs two sources that agree. "
    "themes: 3 to 5, each with quotes of at least two sources. contradictions: quotes that cannot both be true; first "
    "or second holds only if it is newer and replaces the other, or is a study against a report of it, else neither."
)
IN_LITTLE_ROOM = "Answer for the sub-questions only."


class Key(Answer):
    quote: Number
    grade: Text = one_of(GRADES)


class Themed(Answer):
    title: Phrase
    quotes: Numbers


class Contradiction(Answer):
    about: Phrase = ""
    first: Numbers
    second: Numbers
    holds: Text = one_of(HOLDS)


class Missing(Answer):
    question: Number
    severity: Text = one_of(SEVERITIES)
    missing: Line = ""
    query: Phrase = ""


class Analysed(Answer):
    findings: list[Key] = []
    themes: list[Themed] = []
    contradictions: list[Contradiction] = []
    gaps: list[Missing] = []
    sufficiency: Text = one_of(SUFFICIENCIES)
    confidence: Score


def job(request: AnalysisRequest, floor: Analysis, small: bool) -> Job[Analysed, Evidence, Analysis]:
    def build(shown: Sequence[Evidence]) -> dict[str, str]:
        return {
            "questions": questions(request.plan),
            "sources": sources(shown, request.plan),
            "asked": tagged("asked", "; ".join(request.asked[-SHOWN_ASKED:]) or "none"),
            "wanted": IN_LITTLE_ROOM if small else IN_FULL,
        }

    most = {"gaps": min(3, len(request.plan.questions)) if small else 7}
    most |= dict.fromkeys(("findings", "themes", "contradictions"), 0) if small else {"findings": 10, "themes": 5}
    return Job(
        STEP, Analysed, schema(Analysed, "Analysis", most), build,
        lambda answer, shown: convert(answer, listed(shown), request, floor),
        sources=balanced(request.evidence), shorten=halved,
    )  # fmt: skip


def convert(answer: Analysed, shown: Listed, request: AnalysisRequest, floor: Analysis) -> Analysis:
    found = _gaps(answer, request)
    gaps = _worse([*floor.gaps, *(gap for gap, _ in found)])
    lacking = {gap.question for gap in gaps if gap.severity == "major"}
    texts = (question.text for question in request.plan.questions if question.id in lacking)
    worse = max(floor.sufficiency, nearest(answer.sufficiency, SUFFICIENCIES, "sufficient"), key=SUFFICIENCIES.index)
    return floor.model_copy(
        update={
            "confidence": round(min(floor.confidence, answer.confidence / 10), 4),
            "key_findings": _key_findings(answer, shown) or floor.key_findings,
            "themes": _themes(answer, shown) or floor.themes,
            "disagreements": _disagreements(answer, shown, floor.disagreements),
            "gaps": gaps,
            "unanswered": tuple(dict.fromkeys((*floor.unanswered, *texts))),
            "refinements": _refinements(found, request, floor),
            "sufficiency": worse,
            "feedback": " ".join(dict.fromkeys([*filter(None, [floor.feedback]), *(text for _, text in _said(found))])),
        }
    )


def _gaps(answer: Analysed, request: AnalysisRequest) -> list[tuple[Gap, Missing]]:
    found: dict[str, tuple[Gap, Missing]] = {}
    for item in answer.gaps:
        if 1 <= item.question <= len(request.plan.questions):
            question = request.plan.questions[item.question - 1]
            answered = request.coverage.get(question.id, 0.0) >= WELL_ANSWERED
            severity = "minor" if answered else nearest(item.severity, SEVERITIES, "minor")
            gap = Gap(section=question.section, severity=severity, question=question.id)
            found.setdefault(question.id, (gap, item))
    return list(found.values())


def _worse(gaps: Sequence[Gap]) -> tuple[Gap, ...]:
    """One a sub-question, as grave as either finds it."""
    worst: dict[str, Gap] = {}
    for gap in gaps:
        if gap.question not in worst or gap.severity == "major":
            worst[gap.question] = gap
    return tuple(worst.values())


def _said(found: Sequence[tuple[Gap, Missing]]) -> list[tuple[str, str]]:
    return [(gap.question, f"Missing: {item.missing.rstrip('.')}.") for gap, item in found if item.missing]


def _key_findings(answer: Analysed, shown: Listed) -> tuple[KeyFinding, ...]:
    """One document alone is no strong evidence: another quote of the same theme has to come from elsewhere."""
    graded = {}
    for item in answer.findings[:10]:
        for evidence in shown.find([item.quote]):
            grade = nearest(item.grade, GRADES, "moderate")
            strong = grade != "strong" or _backed(item.quote, answer, shown)
            graded[evidence.finding.id] = KeyFinding(finding=evidence.finding.id, grade=grade if strong else "moderate")
    return tuple(graded.values())


def _backed(number: int, answer: Analysed, shown: Listed) -> bool:
    together = [n for theme in answer.themes if number in theme.quotes for n in theme.quotes]
    return len({item.finding.span.document for item in shown.find(together)}) >= 2


def _themes(answer: Analysed, shown: Listed) -> tuple[Theme, ...]:
    themes = []
    for item in answer.themes[:5]:
        behind = shown.find(item.quotes)
        documents = {evidence.finding.span.document for evidence in behind}
        if item.title and len(documents) >= 2:
            ids = tuple(evidence.finding.id for evidence in behind)
            themes.append(Theme(title=item.title, findings=ids, sources=len(documents)))
    return tuple(themes)


def _disagreements(answer: Analysed, shown: Listed, counted: Sequence[Disagreement]) -> tuple[Disagreement, ...]:
    made = list(counted)
    for item in answer.contradictions:
        first = shown.find(item.first)
        second = [other for other in shown.find(item.second) if other not in first]
        ids = {evidence.finding.id for evidence in (*first, *second)}
        if first and second and not any(ids <= {id for side in known.sides for id in side} for known in made):
            made.append(_matter(item, first, second))
    return tuple(made[:10])


def _matter(item: Contradiction, first: Sequence[Evidence], second: Sequence[Evidence]) -> Disagreement:
    """Settled only where the side that is said to hold is in fact the newer one; else both stand."""
    holds = nearest(item.holds, HOLDS, "neither")
    if holds == "second":
        first, second = second, first
    settled = holds != "neither" and _newest(first) > _newest(second) > ""
    return Disagreement(
        about=item.about,
        sides=(tuple(e.finding.id for e in first), tuple(e.finding.id for e in second)),
        resolution="newer supersedes older" if settled else "unresolved",
        resolved=settled,
    )


def _newest(side: Sequence[Evidence]) -> str:
    return max(item.published or "" for item in side)


def _refinements(
    found: Sequence[tuple[Gap, Missing]], request: AnalysisRequest, floor: Analysis
) -> dict[str, tuple[str, ...]]:
    """The model's query first, then the floor's; none that was asked before. The analyst has seen pages, so of its
    query only words stay that were in the question or the plan: a page must not be able to have something asked."""
    known = words_of(request.plan, request.asked)
    asked = {sense(text) for text in request.asked}
    own = {question.id: set(stems(question.in_context)) for question in request.plan.questions}
    refined = {question: texts[:BESIDES] for question, texts in floor.refinements.items()}
    for gap, item in found:
        query = in_known_words(item.query, known) if searchable(item.query) else ""
        if own[gap.question] & set(stems(query)) and sense(query) not in asked:
            refined[gap.question] = tuple(dict.fromkeys((query, *refined.get(gap.question, ()))))
    return refined
