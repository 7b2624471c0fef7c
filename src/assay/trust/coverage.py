"""How sure a sub-question is answered: counted, not judged, so it is the same whoever reasons.

Independent sources that speak to it add up as chances to be wrong multiply. What a source adds depends on how well its
best quote answers, whether that has the kind of answer and the years asked for, and how far the source can be relied
on.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import combinations
from typing import NamedTuple

from assay.model.evidence import Finding
from assay.model.plan import SubQuestion
from assay.model.source import Document
from assay.text.asked import Years, has_name, kinds, matter, named, proper, shows, span
from assay.text.language import language
from assay.text.relations import relate, years
from assay.text.turns import in_turn
from assay.text.words import stems
from assay.trust.verdict import combined

GOOD = 0.75  # relevance of a quote that answers outright
MOST = 8  # quotes weighed for a sub-question: pairs of them are compared
WITNESSES = 3  # that count: many who are beside the point must not add up to an answer
# One undated page that answers outright reaches .58, a dated one .6, an official one .7; two that agree .85 and more.
RELIED_ON, BY_CREDIBILITY, AGREES = 0.38, 0.45, 0.1
DISPUTED = 0.8  # of what is left where sources contradict each other
# What is left of a quote without the kind of answer asked for; reasons go unmarked at times.
LACKS = {"figures": 0.2, "date": 0.2, "reason": 0.4}
# Where years are asked for: of one that names others; of one that names none, by whether it was written then.
OTHER_YEARS, WRITTEN_THEN, NO_YEARS = 0.2, 0.9, 0.35
NAMELESS, ABSENT = 0.5, 0.7  # what is left without any name of the question, and lost with a name that nobody has
OPENING, NEARBY = 1500, 400  # characters of a document that say what a quote in it speaks of


class Witness(NamedTuple):
    """A finding and what is known of where it stands."""

    finding: Finding
    group: str  # of documents that are one source
    credibility: float
    around: str  # title, opening and neighbourhood: what the quote need not say again
    year: int | None  # of publication


def witness(finding: Finding, document: Document, group: str, credibility: float) -> Witness:
    start, end = finding.span.start, finding.span.end
    nearby = document.text[max(0, start - NEARBY) : end + NEARBY]
    around = f"{document.title}\n{document.text[:OPENING]}\n{nearby}"
    return Witness(finding, group, credibility, around, document.published.year if document.published else None)


def weighed(findings: Iterable[Finding]) -> list[Finding]:
    """Those of one sub-question that its confidence is counted from: the best of every document, then the next."""
    best = sorted(findings, key=lambda finding: (-finding.relevance, finding.id))
    return in_turn(best, lambda finding: finding.span.document)[:MOST]


def confidence_of(question: SubQuestion, witnesses: Sequence[Witness], today: date | None = None) -> float:
    """`today` is needed where a question says "in the last two years"."""
    if not witnesses:
        return 0.0
    worth = worths(question, witnesses, today)
    agreeing, disputed = _related(witnesses)
    best: dict[str, float] = {}
    for item, value in zip(witnesses, worth, strict=True):
        reliance = RELIED_ON + BY_CREDIBILITY * item.credibility + AGREES * (item.group in agreeing)
        best[item.group] = max(best.get(item.group, 0.0), value * reliance)
    sure = combined(sorted(best.values(), reverse=True)[:WITNESSES])
    return round(sure * (DISPUTED if disputed else 1), 4)


def worths(question: SubQuestion, witnesses: Sequence[Witness], today: date | None = None) -> list[float]:
    """How far each quote answers, 0 to 1."""
    fit = _Fit(question, today)
    known = fit.known(witnesses)
    return [min(1.0, item.finding.relevance / GOOD) * known * fit.of(item) for item in witnesses]


class _Fit:
    """What a quote has of what is asked for. Of another language than English only the years can be told."""

    def __init__(self, question: SubQuestion, today: date | None) -> None:
        foreign = language(question.text) not in (None, "en")
        self.kinds = () if foreign else kinds(question.text)
        # What the whole question is about need not be what this part of it is about.
        names = [] if foreign else named(question.text) or named(question.topic)[:1]
        self.names = [proper(name) for name in names]
        self.words = frozenset() if foreign else frozenset(stems(" ".join(matter(question.text))))
        self.years = span(question.in_context, today)

    def known(self, witnesses: Sequence[Witness]) -> float:
        """Less where a name of the question is found nowhere: what was found is of something else."""
        there = [_stems(item) for item in witnesses]
        absent = sum(not any(has_name(name, words) for words in there) for name in self.names)
        return 1 - ABSENT * absent / len(self.names) if self.names else 1.0

    def of(self, item: Witness) -> float:
        quote, there = item.finding.span.quote, _stems(item)
        fit = 1.0 if not self.names or any(has_name(name, there) for name in self.names) else NAMELESS
        for kind in self.kinds:
            fit *= 1.0 if shows(kind, quote) else LACKS[kind]
        if self.words:
            fit *= min(1.0, 0.4 + len(self.words & there) / len(self.words))
        return fit * (_in_years(self.years, item) if self.years else 1.0)


def _in_years(asked: Years, item: Witness) -> float:
    """By the years the quote names, else by those around it, else by when it was published."""
    if said := years(item.finding.span.quote):
        return 1.0 if asked.meet(said) else OTHER_YEARS
    if asked.meet(years(item.around)):
        return 1.0
    return WRITTEN_THEN if item.year is not None and asked.meet(frozenset({item.year, item.year - 1})) else NO_YEARS


def _related(witnesses: Sequence[Witness]) -> tuple[set[str], bool]:
    """Sources of which another says the same, and whether any two contradict each other."""
    agreeing: set[str] = set()
    disputed = False
    for one, other in combinations(witnesses, 2):
        if one.group != other.group:
            relation = relate(one.finding.span.quote, other.finding.span.quote)
            agreeing |= {one.group, other.group} if relation == "same" else set()
            disputed = disputed or relation == "disagree"
    return agreeing, disputed


def _stems(item: Witness) -> frozenset[str]:
    return frozenset(stems(f"{item.around}\n{item.finding.span.quote}"))
