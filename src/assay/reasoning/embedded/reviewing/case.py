"""A draft laid out for its reviewer: each statement with the claims, passages and sources behind it."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.claim import Claim, Mark, Verdict
from assay.model.report import Issue, Role, SourceCard
from assay.reasoning.protocol import CritiqueRequest, DraftSentence
from assay.text.words import stems

Category = Literal["accuracy", "completeness", "coherence", "citation", "methodology", "style"]
Severity = Literal["critical", "major", "minor", "suggestion"]

COST: dict[Severity, float] = {"critical": 5.0, "major": 2.5, "minor": 1.0, "suggestion": 0.25}
LONGEST_SHOWN = 80  # characters of a sentence in an issue


class Fault(NamedTuple):
    """An issue, and the points of its criterion that it takes. One that no writer can mend has no fix: those are what
    the writer is asked for."""

    issue: Issue
    cost: float


def fault(
    category: Category, severity: Severity, place: str, description: str, fix: str = "", cost: float | None = None
) -> Fault:
    issue = Issue(category=category, severity=severity, location=place, description=description, fix=fix)
    return Fault(issue, COST[severity] if cost is None else round(cost, 2))


def graded(cost: float) -> Severity:
    """The severity of a fault that is measured."""
    return "major" if cost >= COST["major"] else "minor" if cost >= COST["minor"] else "suggestion"


def short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


class Fact(NamedTuple):
    """A statement about the world where it stands."""

    place: str
    role: Role
    text: str
    claims: tuple[Claim | None, ...]  # None: bound to a claim there is not
    sources: tuple[SourceCard, ...]

    @property
    def quotes(self) -> list[str]:
        return [span.quote for claim in self.claims if claim for span in claim.spans]

    @property
    def holds(self) -> bool:
        return all(claim is not None and claim.verdict is Verdict.SUPPORTED for claim in self.claims)

    @property
    def mark(self) -> Mark:
        """That of the weakest claim."""
        marks = {claim.mark if claim else None for claim in self.claims}
        return next((mark for mark in (Mark.CORROBORATED, Mark.VERIFIED) if marks == {mark}), self._mixed(marks))

    @staticmethod
    def _mixed(marks: Iterable[Mark | None]) -> Mark:
        return Mark.VERIFIED if set(marks) == {Mark.CORROBORATED, Mark.VERIFIED} else Mark.SINGLE


class Case:
    """Everything a check may look at."""

    def __init__(self, request: CritiqueRequest) -> None:
        self.request = request
        self.question = request.question or request.plan.goal
        self._claims = {claim.id: claim for claim in request.claims}
        self._sources = {source.document: source for source in request.sources}

    @cached_property
    def facts(self) -> list[Fact]:
        return [
            self._fact(section.title, section.role, sentence)
            for section in self.request.draft.sections
            for sentence in section.sentences
            if sentence.claims
        ]

    def _fact(self, place: str, role: Role, sentence: DraftSentence) -> Fact:
        bound = tuple(self._claims.get(id) for id in sentence.claims)
        documents = dict.fromkeys(span.document for claim in bound if claim for span in claim.spans)
        sources = tuple(self._sources[name] for name in documents if name in self._sources)
        return Fact(place, role, sentence.text, bound, sources)

    @cached_property
    def statements(self) -> list[Fact]:
        """Each once: a summary says again what the sections say."""
        return list({fact.text: fact for fact in self.facts}.values())

    @cached_property
    def cited(self) -> list[SourceCard]:
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

    def ours(self) -> Iterator[str]:
        """Words that are no source's: titles, and sentences about the research."""
        yield self.request.draft.title
        yield from (section.title for section in self.request.draft.sections)
        yield from (text for _, text in self.frames)

    def words(self) -> int:
        every = [*self.ours(), *(fact.text for fact in self.facts)]
        return sum(len(text.split()) for text in every)


def stems_of(texts: Sequence[str]) -> set[str]:
    return {stem for text in texts for stem in stems(text)}
