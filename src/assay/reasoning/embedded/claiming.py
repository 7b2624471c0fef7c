"""Claims from findings: a source's own sentence is the statement; sentences that say the same become one."""

import re
from collections.abc import Sequence

from assay.model.plan import Plan
from assay.reasoning.protocol import DraftClaim, Evidence
from assay.text.relations import relate

MOST_WORDINGS = 5

_LEAD = re.compile(
    r"^(?:however|moreover|furthermore|in addition|additionally|meanwhile|nevertheless|nonetheless|by contrast|"
    r"in contrast|similarly|likewise|as a result|consequently|therefore|thus|indeed|notably|importantly|in fact|"
    r"of course|also|still|and|but|so|yet)\b,?\s+",
    re.I,
)


def claims(plan: Plan, evidence: Sequence[Evidence]) -> list[DraftClaim]:
    """One claim a fact, best first."""
    ordered = sorted(evidence, key=lambda item: (-item.finding.relevance, item.finding.id))
    groups: list[list[Evidence]] = []
    for item in ordered:
        for group in groups:
            if _same(group[0].finding.span.quote, item.finding.span.quote):
                group.append(item)
                break
        else:
            groups.append([item])
    return [_claim(group) for group in groups]


def _same(left: str, right: str) -> bool:
    """One fact in two wordings; opposites never are, however alike their words."""
    return left == right or relate(left, right) == "same"


def _claim(group: Sequence[Evidence]) -> DraftClaim:
    return DraftClaim(
        wordings=tuple(dict.fromkeys(wording(item.finding.span.quote) for item in group))[:MOST_WORDINGS],
        findings=tuple(dict.fromkeys(item.finding.id for item in group)),
        questions=tuple(dict.fromkeys(item.finding.question for item in group)),
        relevance=group[0].finding.relevance,
    )


def wording(quote: str) -> str:
    """A quote as a sentence of a report: one line, no connective to a neighbour that is not there."""
    text = _LEAD.sub("", " ".join(quote.split()))
    first = text.split(" ", 1)[0]
    text = text[:1].upper() + text[1:] if first.islower() else text  # "the team" but not "iPad"
    return text if text.endswith((".", "!", "?", "。", "”", '"')) else f"{text}."
