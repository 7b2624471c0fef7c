"""How many words two texts share."""

from assay.text.words import stems


def jaccard(left: str, right: str) -> float:
    a, b = set(stems(left)), set(stems(right))
    return len(a & b) / len(a | b) if a or b else 0.0
