"""The findings that matter most, with how well each is borne out, and what several sources have in common (F-05)."""

from collections.abc import Mapping, Sequence

from assay.model.evidence import Disagreement, KeyFinding, Theme
from assay.model.plan import SubQuestion
from assay.reasoning.protocol import Evidence
from assay.text.names import names
from assay.text.relations import relate, same
from assay.text.turns import in_turn
from assay.text.words import fold, stems

MOST_FINDINGS = 10
FEWEST_THEMES, MOST_THEMES = 3, 5
LONGEST_UNIT = 3  # letters of what looks like a name and may be a unit: Mpc, GHz
LIKELY = 0.5  # relevance of a quote that speaks to the question


def key_findings(
    questions: Sequence[SubQuestion],
    evidence: Sequence[Evidence],
    conflicts: Sequence[Disagreement],
    unanswered: Sequence[SubQuestion],
) -> tuple[KeyFinding, ...]:
    """Up to ten: the best of every sub-question first, none that says what another has said."""
    disputed = {id for conflict in conflicts for side in conflict.sides for id in side}
    lacking = {question.id for question in unanswered}
    chosen: list[Evidence] = []
    for item in _in_turn(questions, evidence):
        if len(chosen) < MOST_FINDINGS and not any(_same(item, other) for other in chosen):
            chosen.append(item)
    return tuple(
        KeyFinding(finding=item.finding.id, grade=_grade(item, evidence, disputed, lacking)) for item in chosen
    )


def _in_turn(questions: Sequence[SubQuestion], evidence: Sequence[Evidence]) -> list[Evidence]:
    """The best of each sub-question, then the second best of each, and so on."""
    known = {question.id for question in questions}
    asked = [item for item in evidence if item.finding.question in known]
    best = sorted(asked, key=lambda item: (-item.finding.relevance, item.finding.id))
    return in_turn(best, lambda item: item.finding.question)


def _grade(item: Evidence, evidence: Sequence[Evidence], disputed: set[str], lacking: set[str]) -> str:
    """Strong: another document says the same and nobody the contrary. Moderate: others speak to the matter too. Weak:
    one source alone, or a dispute. Gap: the best there is for a sub-question that has no answer."""
    finding = item.finding
    if finding.question in lacking:
        return "gap"
    if finding.id in disputed:
        return "weak"
    elsewhere = [other for other in evidence if other.finding.span.document != finding.span.document]
    if any(relate(finding.span.quote, other.finding.span.quote) == "same" for other in elsewhere):
        return "strong"
    others = any(other.finding.question == finding.question for other in elsewhere)
    return "moderate" if others and finding.relevance >= LIKELY else "weak"


def _same(one: Evidence, other: Evidence) -> bool:
    return same(one.finding.span.quote, other.finding.span.quote)


def themes(questions: Sequence[SubQuestion], by_question: Mapping[str, Sequence[Evidence]]) -> tuple[Theme, ...]:
    """A sub-question that two or more documents speak to is a theme; where these are few, so is a name that two or
    more bring up."""
    found = [theme for question in questions if (theme := _theme(question.text, by_question.get(question.id, ())))]
    if len(found) < FEWEST_THEMES:
        every = [item for items in by_question.values() for item in items]
        found += _named(every, questions)[: FEWEST_THEMES - len(found)]
    return tuple(found[:MOST_THEMES])


def _theme(title: str, behind: Sequence[Evidence]) -> Theme | None:
    documents = {item.finding.span.document for item in behind}
    if len(documents) < 2:
        return None
    ids = tuple(dict.fromkeys(item.finding.id for item in behind))
    return Theme(title=title, findings=ids, sources=len(documents))


def _named(evidence: Sequence[Evidence], questions: Sequence[SubQuestion]) -> list[Theme]:
    """By names that no sub-question has, those of most documents first."""
    asked = {stem for question in questions for stem in stems(question.in_context)}
    behind: dict[str, list[Evidence]] = {}
    spelled: dict[str, str] = {}
    for item in evidence:
        for name in names(item.finding.span.quote):
            if set(stems(name)) - asked and (len(name) > LONGEST_UNIT or name.isupper()):
                behind.setdefault(fold(name), []).append(item)
                spelled.setdefault(fold(name), name)
    made = [theme for key, items in behind.items() if (theme := _theme(spelled[key], items))]
    return sorted(made, key=lambda theme: (-theme.sources, -len(theme.findings), theme.title))
