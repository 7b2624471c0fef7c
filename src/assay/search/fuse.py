"""Many result lists into one: reciprocal rank fusion, duplicates removed, order independent of arrival."""

from collections.abc import Iterable, Sequence
from urllib.parse import urldefrag

from assay.model.source import Hit

K = 60  # the usual constant: how much a first place outweighs a tenth

Key = tuple[str, int]


def key(hit: Hit) -> Key:
    """What makes two hits the same: one passage of one document, else one address."""
    if hit.document:
        return hit.document, hit.start or 0
    return urldefrag(hit.url).url.rstrip("/").lower(), 0


def fuse(lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Best first. Ties are broken by what the hits are, so any order of arrival gives the same result."""
    scores: dict[Key, float] = {}
    best: dict[Key, Hit] = {}
    for hits in lists:
        for hit in hits:
            name = key(hit)
            scores[name] = scores.get(name, 0.0) + 1 / (K + hit.rank)
            if name not in best or _better(hit, best[name]):
                best[name] = hit
    ranked = sorted(best, key=lambda name: (-round(scores[name], 12), -best[name].score, name))
    return [best[name].model_copy(update={"score": round(scores[name], 6)}) for name in ranked]


def _better(hit: Hit, other: Hit) -> bool:
    return (-hit.score, hit.rank, hit.query, hit.provider) < (-other.score, other.rank, other.query, other.provider)
