"""How far findings reach: counted, not judged, so it is the same whoever reasons."""

from collections.abc import Sequence

from assay.model.evidence import Finding

ENOUGH = 3  # documents that speak to a sub-question before more of them add nothing
GOOD = 0.75  # relevance of a quote that answers outright


def confidence_of(findings: Sequence[Finding]) -> float:
    """Seven parts how well the three best quotes answer, three parts how many documents do."""
    if not findings:
        return 0.0
    best = sorted((finding.relevance for finding in findings), reverse=True)[:3]
    documents = len({finding.span.document for finding in findings})
    quality = min(1.0, sum(best) / len(best) / GOOD)
    return round(0.7 * quality + 0.3 * min(documents, ENOUGH) / ENOUGH, 4)
