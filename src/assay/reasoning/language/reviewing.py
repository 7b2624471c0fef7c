"""Reviewing a draft: the model's scores, with what can be counted on top. Checks add doubt, they never take it away."""

from collections.abc import Sequence
from typing import NamedTuple, get_args

from assay.model.report import Critique, Issue
from assay.reasoning.embedded.critique import APPROVE, REVISE, WEIGHTS, Counted, held, recommend, weighed
from assay.reasoning.language.answer import Answer, Line, Phrase, Score, Text, nearest, one_of, schema
from assay.reasoning.language.prompt import numbered, tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import CritiqueRequest

STEP = Step("critique", stage="review", role="reviewer", thing="review",
            variables=("question", "questions", "draft", "open", "words", "most", "today"),
            purpose="finish")  # fmt: skip
CATEGORIES = get_args(Issue.model_fields["category"].annotation)
SEVERITIES = get_args(Issue.model_fields["severity"].annotation)
MOST, MOST_IN_LITTLE_ROOM = 10, 3


class Found(Answer):
    category: Text = one_of(CATEGORIES)
    severity: Text = one_of(("minor", *(name for name in SEVERITIES if name != "minor")))
    location: Phrase = ""
    description: Line
    fix: Line = ""


class Reviewed(Answer):
    accuracy: Score
    completeness: Score
    coherence: Score
    citation: Score
    methodology: Score
    style: Score
    issues: list[Found] = []
    potential: Score = 0.0


class Told(NamedTuple):
    section: str
    text: str
    behind: str  # the claims it rests on, where it says them in other words


def job(request: CritiqueRequest, counted: Counted, small: bool) -> Job[Reviewed, Told, Critique]:
    most = MOST_IN_LITTLE_ROOM if small else MOST

    def build(shown: Sequence[Told]) -> dict[str, str]:
        return {
            "question": tagged("message", request.plan.goal),
            "questions": tagged("message", numbered(question.text for question in request.plan.questions)),
            "draft": tagged("draft", _draft(shown)),
            "open": "; ".join(request.unanswered) or "none",
            "words": str(request.words),
            "most": str(most),
            "today": request.today.isoformat() if request.today else "not known",
        }

    severities = [name for name in SEVERITIES if not (small and name == "critical")]
    form = schema(Reviewed, "Review", {"issues": most}, {"severity": severities})
    return Job(STEP, Reviewed, form, build,
               lambda answer, _: convert(answer, counted, severities, revisions=request.revisions, excused=small),
               sources=_lines(request), shorten=_halved)  # fmt: skip


def _lines(request: CritiqueRequest) -> list[Told]:
    texts = {claim.id: claim.text for claim in request.claims}
    return [
        Told(section.title, sentence.text, _behind(sentence.text, [texts[id] for id in sentence.claims if id in texts]))
        for section in request.draft.sections
        for sentence in section.sentences
    ]


def _behind(text: str, claims: Sequence[str]) -> str:
    return "" if text in claims else "; ".join(claims)


def _draft(lines: Sequence[Told]) -> str:
    told, section = [], None
    for line in lines:
        if line.section != section:
            section = line.section
            told.append(f"## {section}")
        told.append(f"{line.text} (rests on: {line.behind})" if line.behind else line.text)
    return "\n".join(told)


def _halved(line: Told) -> Told:
    return line._replace(text=line.text[: max(1, len(line.text) // 2)], behind="")


def convert(
    answer: Reviewed, counted: Counted, severities: Sequence[str], *, revisions: int = 0, excused: bool = False
) -> Critique:
    """A low mark without a reason is a fault of its own, unless a small model gave it: those mark at random. Whatever
    it gives, no criterion has more than the checks leave it, and the whole no more than the evidence allows."""
    issues = tuple(_issue(item, severities) for item in answer.issues if item.description)
    unexplained = [
        name for name in WEIGHTS if getattr(answer, name) < APPROVE and all(issue.category != name for issue in issues)
    ]
    given = {name: APPROVE if excused and name in unexplained else getattr(answer, name) for name in WEIGHTS}
    issues += () if excused else tuple(_marked_down(name, given[name]) for name in unexplained)
    scores = held({name: min(given[name], counted.scores[name]) for name in WEIGHTS}, counted.most)
    total = weighed(scores)
    every = (*counted.issues, *issues)
    return Critique(
        scores=scores,
        score=total,
        issues=every,
        recommendation=recommend(total, every, revisions),
        improvement_potential=round(answer.potential / 10, 2),
    )


def _issue(item: Found, severities: Sequence[str]) -> Issue:
    severity = nearest(item.severity, SEVERITIES, "minor")
    return Issue(
        category=nearest(item.category, CATEGORIES, "coherence"),
        severity=severity if severity in severities else "major",
        location=item.location or "whole report",
        description=item.description,
        fix=item.fix,
    )


def _marked_down(name: str, score: float) -> Issue:
    return Issue.model_validate(
        {
            "category": name,
            "severity": "minor" if score >= REVISE else "major",
            "location": "whole report",
            "description": f"The reviewer gave {score:g} of 10 for {name} and named no fault.",
            "fix": f"Improve the {name}.",
        }
    )
