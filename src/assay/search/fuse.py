"""Many result lists into one: reciprocal rank fusion, duplicates removed, order independent of arrival.

What lists agree on comes first. Recency and authority only tip the balance: together they move a page by at most a
third (by two thirds where the field moves), while a second list that names it doubles what it has. A person's own
documents are ranked by the lists alone.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from math import exp2, fsum

from assay.model.source import Hit
from assay.text.hosts import NEUTRAL, authority
from assay.text.urls import canonical, host_of, unwrap

K = 60  # the usual constant: how much a first place outweighs a tenth
HALF_LIFE = 3 * 365.25  # days after which news is half as new
RECENT = 0.1  # today's page against one of long ago: as much as seven places at the top of a list
MOVING = 3  # times that where the field moves: its last three years are preferred, by twenty places at the top
TRUSTED = 0.2  # a journal against a forum: as much as nine

Key = tuple[str, int]
_PAGES = ("https://", "doi:", "arxiv:", "pmid:", "pmc:")


def key(hit: Hit) -> Key:
    """What makes two hits the same: one page of the web, else one passage of one document, else one address."""
    page = canonical(hit.url)
    if hit.document and not page.startswith(_PAGES):
        return hit.document, hit.start or 0
    return page, 0


def fuse(lists: Iterable[Sequence[Hit]], today: date | None = None, *, moving: bool = False) -> list[Hit]:
    """Best first. Ties are broken by what the hits are, so any order of arrival gives the same result.

    Without `today` the age of a page does not matter; it matters more where the question asks about what moves."""
    places: dict[Key, list[int]] = {}
    same: dict[Key, list[Hit]] = {}
    for hits in lists:
        first: dict[Key, int] = {}  # a list that has a page twice names it once
        for hit in hits:
            name = key(hit)
            first[name] = min(hit.rank, first.get(name, hit.rank))
            same.setdefault(name, []).append(hit)
        for name, rank in first.items():
            places.setdefault(name, []).append(rank)
    best = {name: _merged(hits) for name, hits in same.items()}
    recent = RECENT * MOVING if moving else RECENT
    scores = {name: fsum(1 / (K + rank) for rank in places[name]) * _weight(best[name], today, recent) for name in best}
    ranked = sorted(best, key=lambda name: (-round(scores[name], 12), -best[name].score, name))
    return [best[name].model_copy(update={"score": round(scores[name], 6)}) for name in ranked]


def _weight(hit: Hit, today: date | None, recent: float) -> float:
    """1 where nothing is known for or against; undated counts as three years old."""
    if not _is_page(hit):
        return 1.0
    age = (today - hit.published).days if today and hit.published else HALF_LIFE
    newness = exp2(-max(0.0, age) / HALF_LIFE)
    return (1 + recent * (newness - 0.5)) * (1 + TRUSTED * (authority(hit.host, hit.kind) - NEUTRAL))


def _is_page(hit: Hit) -> bool:
    return canonical(hit.url).startswith(_PAGES)


# Merging ---------------------------------------------------------------------------------------------


def _merged(hits: Sequence[Hit]) -> Hit:
    """The best of them, its gaps filled from the others in turn."""
    best, *others = sorted(hits, key=_order) if len(hits) > 1 else hits
    if not _is_page(best):
        return best
    url = _address([best, *others])
    filled: dict[str, object] = {"url": url, "host": best.host if url == best.url and best.host else host_of(url)}
    for field in ("title", "published", "author", "fulltext"):
        filled[field] = next((value for hit in (best, *others) if (value := getattr(hit, field))), getattr(best, field))
    # "web" says nothing: a page that a scholarly index or a news service names is one of theirs.
    filled["kind"] = next((hit.kind for hit in (best, *others) if hit.kind != "web"), "web")
    filled["snippet"] = max((hit.snippet for hit in (best, *others)), key=len)
    if not best.document:
        kept = next((hit for hit in others if hit.document), best)
        filled.update(document=kept.document, start=kept.start, end=kept.end)
    return best.model_copy(update=filled)


def _address(hits: Sequence[Hit]) -> str:
    """One that can be fetched, over TLS if any of them can; the shortest, which has no trackers on it."""
    urls = sorted((unwrap(hit.url) for hit in hits), key=lambda url: (len(url), url))
    return next((url for scheme in ("https://", "http://") for url in urls if url.lower().startswith(scheme)), urls[0])


def _order(hit: Hit) -> tuple[object, ...]:
    """Best first. Scores of one source can be compared; those of two providers cannot, so there the place counts."""
    placed = (hit.rank, -hit.score) if _is_page(hit) else (-hit.score, hit.rank)
    return *placed, hit.query, hit.provider, hit.model_dump_json()
