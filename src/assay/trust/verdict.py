"""From spans to a verdict: the quote exists, the figures agree, the passage supports, the sources are independent.

Deterministic checks may overrule a judgement towards doubt, never the other way.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.model.claim import Claim, Judgement, Mark, Verdict
from assay.model.evidence import Span
from assay.trust.credibility import CREDIBLE, Credibility
from assay.trust.figures import FiguresResult
from assay.trust.independence import voices

FLOOR = 0.15  # below this a passage speaks of something else, whatever a model says of it
OPPOSED = frozenset({"negation", "direction"})


class Weighed(NamedTuple):
    """One span with what was found about it."""

    span: Span
    figures: FiguresResult
    judgement: Judgement
    support: float  # by the embedded scorer, whoever judges

    @property
    def verdict(self) -> Verdict:
        if self.judgement.verdict is not Verdict.SUPPORTED:
            return self.judgement.verdict
        if any(problem.kind in OPPOSED for problem in self.figures.problems):
            return Verdict.CONTRADICTED
        return Verdict.SUPPORTED if self.figures.agrees and self.support >= FLOOR else Verdict.PARTLY


def decide(
    claim: Claim, weighed: Sequence[Weighed], groups: Mapping[str, str], credibility: Mapping[str, Credibility]
) -> Claim:
    """The claim with its verdict, the spans that carry it, confidence, mark and reasons."""
    supporting = [item for item in weighed if item.verdict is Verdict.SUPPORTED]
    against = [item for item in weighed if item.verdict is Verdict.CONTRADICTED]
    if not supporting:
        return _unsupported(claim, weighed, against)
    heard = voices([item.span for item in supporting], groups, credibility)
    documents = {item.span.document for item in supporting}
    best = [max(_strength(item, credibility) for item in supporting if item.span.document in voice)
            for voice in heard.values()]  # fmt: skip
    return claim.model_copy(
        update={
            "spans": _distinct(supporting),
            "against": _distinct(against),
            "verdict": Verdict.SUPPORTED,
            "confidence": combined(best),
            "mark": mark(len(heard), max(credibility[document].score for document in documents)),
            "reasons": _counted(len(heard), documents, credibility),
        }
    )


def _counted(heard: int, documents: Collection[str], credibility: Mapping[str, Credibility]) -> tuple[str, ...]:
    """How many say so, and how many of them count: a copy, or a second report on one publication, does not."""
    told = f"{len(documents)} source{'s' * (len(documents) != 1)}"
    independent = f"{heard} independent" if len(documents) > 1 else "no other says so"
    first_hand = sum(credibility[document].primary for document in documents)
    return (f"{told}, {independent}", f"{first_hand} at first hand" if first_hand else "none at first hand")


def _unsupported(claim: Claim, weighed: Sequence[Weighed], against: Sequence[Weighed]) -> Claim:
    partly = [item for item in weighed if item.verdict is Verdict.PARTLY]
    verdict = Verdict.CONTRADICTED if against else Verdict.PARTLY if partly else Verdict.NOT_FOUND
    reasons = [problem.text for item in weighed for problem in item.figures.problems]
    best = max((item.judgement.score for item in partly), default=0.0)
    return claim.model_copy(
        update={
            "spans": _distinct(partly or against),
            "against": _distinct(against),
            "verdict": verdict,
            "confidence": round(best * 0.5, 4),
            "mark": None,
            "reasons": tuple(dict.fromkeys(reasons)) or ("no passage says this",),
        }
    )


def _strength(item: Weighed, credibility: Mapping[str, Credibility]) -> float:
    return item.judgement.score * (0.5 + 0.5 * credibility[item.span.document].score)


def combined(strengths: Iterable[float]) -> float:
    """Independent witnesses add up as chances to be wrong multiply; nothing is ever certain."""
    doubt = 1.0
    for strength in strengths:
        doubt *= 1 - min(0.95, strength)
    return round(min(0.99, 1 - doubt), 4)


def mark(independent: int, credibility: float) -> Mark:
    if independent >= 2:
        return Mark.CORROBORATED
    return Mark.VERIFIED if credibility >= CREDIBLE else Mark.SINGLE


def _distinct(items: Sequence[Weighed]) -> tuple[Span, ...]:
    return tuple({(item.span.document, item.span.start): item.span for item in items}.values())
