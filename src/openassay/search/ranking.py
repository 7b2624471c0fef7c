"""Ranks what was found: passages for a query, hits of several sources in one list, and copies among documents.

`rank` orders passages by words and meaning, so that together they cover the query. It follows a question to what its
first hits name, and asks a request that fills a paragraph again in their words. Where passages have vectors, those
nearest in meaning are found besides. By benchmarks/bench_retrieval.py, the share of two-hop questions with all gold
passages in the top five is .62 for BM25, .71 for `rank_without_hops` and .96 for `rank`; precision@20 on related work
is .50, .635 and .657.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import date
from functools import lru_cache
from heapq import nsmallest
from math import exp2, fsum, log
from typing import TYPE_CHECKING, NamedTuple, Self

from openassay.models.evidence import Document, Hit, Passage
from openassay.protocols import Embedder, FileStamp, PassageIndex, PassageMatch
from openassay.text.language import list_small_words
from openassay.text.other_languages import WordMatcher, find_other_language, strip_asking
from openassay.text.sentences import SHINGLE_SIZE, containment, shingles, split_passages
from openassay.text.urls import NEUTRAL, canonicalize_url, host_authority, host_of, unwrap_url
from openassay.text.words import content_words, find_names, fold, stem, stem_set, words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Copies among documents ------------------------------------------------------------------------------

# Of one page read by different extractors, .997 of the pairs share this much; of two articles .28 at most, and two
# quarterly reports of one company, which repeat each other but are not the same, up to .71.
THRESHOLD = 0.8
# In shingles, for 12 words; shorter texts are alike by chance ("page not found"), or equal.
MIN_SHINGLES = 12 - SHINGLE_SIZE + 1
LONGER_FACTOR = 3.0  # a text this many times longer has more to say: it is kept, whichever came first
PROBES = 24  # shingles of a text that are searched for in all others; at .8 shared, 8 are missed once in a million
MIN_PROBES = 8

Shingles = frozenset[int]


def find_duplicates(texts: Iterable[tuple[str, str]], order: Sequence[str] = ()) -> dict[str, str]:
    """Map the id of each copy among (id, text) pairs to the id that is kept instead of it.

    A copy is the same text at another address, with other things around it, or a part of the whole. Of two copies the
    one named first in `order` is kept; ids it does not name come after, longest first. The result does not depend on
    the order in which the texts arrive, and what is kept is never itself a copy."""
    known = {name: shingles(text) for name, text in texts}
    position = {name: at for at, name in reversed(list(enumerate(order)))}
    ranked = sorted(known, key=lambda name: (position.get(name, len(order)), -len(known[name]), name))
    # Only texts that share probes are compared in full, so the work grows with the amount of text and not with the
    # number of pairs.
    probes: dict[int, list[str]] = {}
    for name, own in known.items():
        for probe in nsmallest(PROBES, own):
            probes.setdefault(probe, []).append(name)
    alike: dict[str, set[str]] = {name: set() for name in known}
    for name, own in known.items():
        shared = Counter(other for probe in probes.keys() & own for other in probes[probe])
        for other, count in shared.items():
            if other == name or count < min(MIN_PROBES, len(known[other]) / 3):
                continue
            short = min(len(known[other]), len(own)) < MIN_SHINGLES
            if known[other] == own if short else containment(known[other], own) >= THRESHOLD:
                alike[other].add(name)
                alike[name].add(other)
    kept: dict[str, list[str]] = {}  # with its copies; in order of preference
    for name in ranked:
        rivals = [other for other in kept if other in alike[name]]
        better = next((other for other in rivals if len(known[name]) < LONGER_FACTOR * len(known[other])), None)
        if better is not None:
            kept[better].append(name)
        else:
            kept[name] = [copy for other in rivals for copy in (other, *kept.pop(other))]
    return {copy: name for name, copies in kept.items() for copy in copies}


# Passages found by their words ------------------------------------------------------------------------

REPEATS = 8  # related work, precision@20: without repeats .57, with 3 .62, with 8 .635; only long requests have them

Key = tuple[str, int]


class RankedPassage(NamedTuple):
    """A passage, with the index it is from, as the ranking weighs it."""

    origin: PassageIndex
    match: PassageMatch

    @property
    def key(self) -> Key:
        return self.match.passage.document, self.match.passage.start

    @property
    def score(self) -> float:
        return self.match.score

    @property
    def text(self) -> str:
        return f"{self.match.title}. {self.match.passage.text}"

    def with_score(self, score: float) -> Self:
        return self._replace(match=self.match._replace(score=score))


def sort_by_score(found: Sequence[RankedPassage]) -> list[RankedPassage]:
    return sorted(found, key=lambda ranked: (-ranked.score, ranked.key))


def match_words(wanted: Sequence[str], indexes: Sequence[PassageIndex], limit: int) -> list[RankedPassage]:
    """Match words, best first, with scores relative to the best. A word counts as often as it is given.

    The indexes take a word once. BM25 is a sum over words, so those given twice are asked again and added."""
    counts = Counter(wanted)
    repeated = [word for word, _ in counts.most_common()]
    found: dict[Key, RankedPassage] = {}
    for times in range(1, REPEATS + 1):
        repeated = [word for word in repeated if counts[word] >= times]
        for index in indexes if repeated else ():
            for hit in index.match(repeated, limit=limit):
                ranked = RankedPassage(index, hit)
                before = found[ranked.key].score if ranked.key in found else 0.0
                found[ranked.key] = ranked.with_score(before + hit.score)
    ordered = sort_by_score(list(found.values()))[:limit]
    return [ranked.with_score(ranked.score / ordered[0].score) for ranked in ordered]


# Feedback: papers on one matter share a vocabulary that no single abstract has in full.
# Reasons are precision@20 on related work, .657 as it stands and .635 without.
FEEDBACK_HEADS = 8  # first hits whose words are used; 5 and 12 found .01 less
FEEDBACK_WORDS = 40  # 30 found .005 less, 60 .01 less
FEEDBACK_WEIGHT = 0.6  # and the rest for the request's own words; .5 and .7 found .01 less


def expand_with_feedback(
    found: Sequence[RankedPassage], matched: Sequence[RankedPassage], indexes: Sequence[PassageIndex], limit: int
) -> list[RankedPassage]:
    """Ask a long request again in the words of what it found first; scores are relative to the best."""
    own = {ranked.key: ranked for ranked in matched}
    second = {ranked.key: ranked for ranked in match_words(distinctive_words(found), indexes, limit)}
    weighed = []
    for key, ranked in {**second, **own}.items():
        first_score = own[key].score if key in own else 0.0
        second_score = second[key].score if key in second else 0.0
        weighed.append(ranked.with_score((1 - FEEDBACK_WEIGHT) * first_score + FEEDBACK_WEIGHT * second_score))
    ordered = sort_by_score(weighed)[:limit]
    return [ranked.with_score(ranked.score / ordered[0].score) for ranked in ordered]


def distinctive_words(found: Sequence[RankedPassage]) -> list[str]:
    """Return words that are common among the best and rare among the others; a word of one passage tells nothing."""
    texts = [content_words(ranked.text) for ranked in found]
    forms = {stem(word): word for text in texts for word in text}
    holders = Counter(root for text in texts for root in {stem(word) for word in text})
    telling: dict[str, float] = {}
    for text in texts[:FEEDBACK_HEADS]:
        for root, count in Counter(stem(word) for word in text).items():
            rarity = log(1 + (len(texts) - holders[root] + 0.5) / (holders[root] + 0.5))
            if holders[root] > 1:
                telling[root] = telling.get(root, 0.0) + count / len(text) * rarity
    return [forms[root] for root in sorted(telling, key=lambda root: (-telling[root], root))[:FEEDBACK_WORDS]]


# Many result lists into one ---------------------------------------------------------------------------

K = 60  # the usual constant: how much a first place outweighs a tenth
HALF_LIFE = 3 * 365.25  # days after which news is half as new
RECENCY_WEIGHT = 0.1  # today's page against one of long ago: as much as seven ranks at the top of a list
MOVING_FACTOR = 3  # times that where the field moves: its last three years are preferred, by twenty ranks at the top
AUTHORITY_WEIGHT = 0.2  # a journal against a forum: as much as nine ranks

_PAGES = ("https://", "doi:", "arxiv:", "pmid:", "pmc:")


def hit_key(hit: Hit) -> Key:
    """Identify a hit by its page of the web, else its passage of a document, else its address."""
    page = canonicalize_url(hit.url)
    if hit.document and not page.startswith(_PAGES):
        return hit.document, hit.start or 0
    return page, 0


def fuse(lists: Iterable[Sequence[Hit]], today: date | None = None, *, moving: bool = False) -> list[Hit]:
    """Merge lists by reciprocal rank fusion, best first, without duplicates and whatever the order of arrival.

    What lists agree on comes first. Recency and authority only tip the balance: together they move a page by at most a
    third (by two thirds where the field is `moving`), while a second list that names it doubles its score. A person's
    own documents are ranked by the lists alone. Without `today` the age of a page does not matter."""
    ranks: dict[Key, list[int]] = {}
    same: dict[Key, list[Hit]] = {}
    for hits in lists:
        first: dict[Key, int] = {}  # a list that has a page twice names it once
        for hit in hits:
            name = hit_key(hit)
            first[name] = min(hit.rank, first.get(name, hit.rank))
            same.setdefault(name, []).append(hit)
        for name, rank in first.items():
            ranks.setdefault(name, []).append(rank)
    best = {name: _merge_hits(hits) for name, hits in same.items()}
    recency = RECENCY_WEIGHT * MOVING_FACTOR if moving else RECENCY_WEIGHT
    scores = {name: fsum(1 / (K + rank) for rank in ranks[name]) for name in best}
    for name, hit in best.items():
        if _is_page(hit):  # undated counts as three years old
            age = (today - hit.published).days if today and hit.published else HALF_LIFE
            newness = exp2(-max(0.0, age) / HALF_LIFE)
            authority = host_authority(hit.host, hit.kind) - NEUTRAL
            scores[name] *= (1 + recency * (newness - 0.5)) * (1 + AUTHORITY_WEIGHT * authority)
    ranked = sorted(best, key=lambda name: (-round(scores[name], 12), -best[name].score, name))
    return [best[name].model_copy(update={"score": round(scores[name], 6)}) for name in ranked]


def _is_page(hit: Hit) -> bool:
    return canonicalize_url(hit.url).startswith(_PAGES)


def _merge_hits(hits: Sequence[Hit]) -> Hit:
    """Take the best of the same hits and fill its gaps from the others in turn."""
    best, *others = sorted(hits, key=_sort_key) if len(hits) > 1 else hits
    if not _is_page(best):
        return best
    # A URL that can be fetched, over TLS if any can; the shortest, which has no trackers on it.
    urls = sorted((unwrap_url(hit.url) for hit in hits), key=lambda url: (len(url), url))
    schemes = ("https://", "http://")
    url = next((url for scheme in schemes for url in urls if url.lower().startswith(scheme)), urls[0])
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


def _sort_key(hit: Hit) -> tuple[object, ...]:
    """Order the same hits: scores of one source can be compared; those of two providers cannot, so the rank counts."""
    order = (hit.rank, -hit.score) if _is_page(hit) else (-hit.score, hit.rank)
    return *order, hit.query, hit.provider, hit.model_dump_json()


# The second hop: a question often names one thing and asks about another that only the answer to its first half names.

# Reasons are shares of two-hop questions with all gold passages in the top five; .95 as it stands.
HOPS = 5  # first hits that are followed; 3 and 7 found as much
HOP_CANDIDATES = 20  # 10 found .01 less, 40 no more
HOP_NAMES = 10
HOP_WORDS = 12
INHERITED = 0.6  # of the first hit's weight, for a passage found through its names; without it .04 less, .8 no more
NAMED = 0.5  # for a passage whose title a first hit names, since a hit names few things; .3 found .06 less, .7 no more
NAMING = 0.1  # for a passage that names the first hit's title, as many may; without it .01 less, .2 no more


def follow_hops(
    wanted: Sequence[str],
    found: Sequence[RankedPassage],
    heads: Sequence[RankedPassage],
    indexes: Sequence[PassageIndex],
) -> list[RankedPassage]:
    """Add passages that the heads name, and passages that name the heads; each keeps its best score."""
    own = {ranked.key: ranked.score for ranked in found}
    credited = {ranked.key: ranked for ranked in found}
    for head in heads[:HOPS]:
        weight = head.score / heads[0].score
        # Words of a first hit's names and title that the query did not have.
        have = {stem(word) for word in wanted}
        named = (
            word
            for name in (*find_names(head.match.passage.text)[:HOP_NAMES], head.match.title)
            for word in content_words(name)
        )
        again = dict.fromkeys([*wanted, *[word for word in dict.fromkeys(named) if stem(word) not in have][:HOP_WORDS]])
        # A head speaks of a document, not of each of its passages: the best one is linked, the others are not.
        linked = {head.match.passage.document}
        for hop in match_words(list(again), indexes, HOP_CANDIDATES):
            if hop.key == head.key:
                continue
            document = hop.match.passage.document
            link = 0.0
            if document not in linked and mentions_title(head.match.passage.text, hop.match.title):
                link = NAMED
            elif document not in linked and mentions_title(hop.match.passage.text, head.match.title):
                link = NAMING
            if link:
                linked.add(document)
            score = max(own.get(hop.key, 0.0), INHERITED * weight * hop.score) + weight * link
            if hop.key not in credited or score > credited[hop.key].score:
                credited[hop.key] = hop.with_score(score)
    return list(credited.values())


def mentions_title(text: str, title: str) -> bool:
    """Tell whether the text has the title as a phrase, and as a name.

    A title of one word needs its capital in both: any text may speak of a report and mean no file of that name."""
    name = _short_title(title)
    return has_title(text, title) and (" " in name or (name in text and name != fold(name)))


def has_title(text: str, title: str) -> bool:
    wanted = _phrase(_short_title(title))
    return bool(wanted.strip()) and wanted in _phrase(text)


def _short_title(title: str) -> str:
    return title.split(" (")[0].strip()


@lru_cache(maxsize=1024)  # a head's text is asked for every hop's title, and the same texts for every query
def _phrase(text: str) -> str:
    return " ".join(["", *(word.removesuffix("'s").removesuffix("’s") for word in words(text)), ""])


# Passages by words and meaning -------------------------------------------------------------------------

MATCHED = 150  # by words, which is quick: a document that is wanted later must be among them
ENCODED = 30  # by meaning, which is slow; 20 cost related work .02, 60 found no more
ENCODED_AGAIN = 60  # of those a long request finds the second time; 30 cost related work .01, 100 found no more
LONG = 40  # distinct words from which a query is a request with its own background, not a question
NEAR = 150  # by the vectors of an index, where it has any
MEANING = 0.5  # and the rest for words; .3 found .01 less with the hop, .7 found .04 less without it
WORDS_ALONE = 0.5  # of the score by words where there are no vectors; .75 found .02 less, 1 .07 less
TITLED = 0.2  # for a passage whose title the query has; without it .01 to .04 less, most of it comparisons
COVERING = 0.4  # for a passage with all words of the query; .2 found .03 less without the hop, .8 .01 more
COVERED = 60  # passages that are ordered by what they add, the others follow; 30 found as much, long requests .002 less
PER_DOCUMENT = 8  # passages of one document among the results, so that one long file cannot fill them


def rank_without_hops(
    query: str, indexes: Sequence[PassageIndex], embedder: Embedder, limit: int
) -> list[RankedPassage]:
    """Rank the passages of one search, without the hop."""
    found = _search_once(query, indexes, embedder, encode=True)
    return _limit_per_document(_order_by_coverage(query, found), limit)


def rank(query: str, indexes: Sequence[PassageIndex], embedder: Embedder, limit: int) -> list[RankedPassage]:
    """Rank the passages of the indexes for a query, best first.

    For a question by words and by the vectors that the indexes have, and no passage is encoded on the way: 30 of them
    take 0.5 s on one core, and of two-hop questions .95 were found with them and .96 are without. For a request that
    fills a paragraph they are worth it."""
    if language := find_other_language(query):
        return _limit_per_document(_rank_in_language(query, language, indexes), limit)
    if len(set(content_words(query))) >= LONG:
        matched = match_words(content_words(query), indexes, MATCHED)
        vector = _embed_query(query, indexes, embedder)
        again = []
        if matched:
            again = expand_with_feedback(score_by_meaning(vector, matched, embedder), matched, indexes, MATCHED)
        found = _boost_titles(query, score_by_meaning(vector, again, embedder, ENCODED_AGAIN))
        return _limit_per_document(_order_by_coverage(query, found), limit)
    found = _search_once(query, indexes, embedder, encode=False)
    followed = follow_hops(content_words(query), found, _order_by_coverage(query, found), indexes)
    return _limit_per_document(_order_by_coverage(query, sort_by_score(followed)), limit)


def _rank_in_language(query: str, language: str, indexes: Sequence[PassageIndex]) -> list[RankedPassage]:
    """Rank by words alone, in another language than English, which is all that the encoder knows. The index finds them
    as they stand; those found are weighed by their stems and the parts of compounds. The share of questions whose
    paragraph comes first among 240: German .90 without, Spanish .93."""
    small = list_small_words(language)
    found = match_words([word for word in words(strip_asking(query)) if word not in small], indexes, MATCHED)
    scores = WordMatcher(query, language, [ranked.text for ranked in found]).score_texts()
    best = max(scores, default=0.0) or 1.0
    return sort_by_score([ranked.with_score(score / best) for ranked, score in zip(found, scores, strict=True)])


def _search_once(
    query: str, indexes: Sequence[PassageIndex], embedder: Embedder, *, encode: bool
) -> list[RankedPassage]:
    matched = match_words(content_words(query), indexes, MATCHED)
    if not encode and not any(index.count_contents().vectors for index in indexes):
        return _boost_titles(query, [ranked.with_score(WORDS_ALONE * ranked.score) for ranked in matched])
    vector = _embed_query(query, indexes, embedder)
    scored = score_by_meaning(vector, matched, embedder, ENCODED if encode else 0)
    return _boost_titles(query, scored)


class QueryVector(NamedTuple):
    """The vector of a query, with the passages nearest to it."""

    vector: "NDArray[np.float32]"
    near: Sequence[RankedPassage]


def _embed_query(query: str, indexes: Sequence[PassageIndex], embedder: Embedder) -> QueryVector:
    vector = embedder.embed([query])[0]
    near = [
        RankedPassage(index, hit) for index in indexes for hit in index.find_nearest(embedder.name, vector, limit=NEAR)
    ]
    return QueryVector(vector, near)


def _boost_titles(query: str, found: Sequence[RankedPassage]) -> list[RankedPassage]:
    return sort_by_score(
        [
            ranked.with_score(ranked.score + TITLED) if has_title(query, ranked.match.title) else ranked
            for ranked in found
        ]
    )


def score_by_meaning(
    query: QueryVector, found: Sequence[RankedPassage], embedder: Embedder, max_encoded: int = ENCODED
) -> list[RankedPassage]:
    """Score by words and meaning the first by words and those near; the others count as far as the farthest of them.

    A passage that is only near has nothing for its words. Two-hop questions, with vectors: .96; by the ranks in both
    lists (reciprocal rank fusion) .91, since how near a passage is says more than how many are nearer."""
    near = query.near
    cosines = {ranked.key: max(0.0, ranked.score) for ranked in near}
    neighbours = Counter(id(ranked.origin) for ranked in near)  # of an index that has many, what is not near is far
    encoded = [
        ranked for ranked in found[:max_encoded] if ranked.key not in cosines and neighbours[id(ranked.origin)] < NEAR
    ]
    if encoded:
        made = (embedder.embed([ranked.text for ranked in encoded]) @ query.vector).tolist()
        cosines |= {ranked.key: max(0.0, cosine) for ranked, cosine in zip(encoded, made, strict=True)}
    farthest = min(cosines.values(), default=0.0)
    matched = {ranked.key for ranked in found}
    by_words = [*found, *(ranked.with_score(0.0) for ranked in near if ranked.key not in matched)]
    return sort_by_score(
        [
            ranked.with_score((1 - MEANING) * ranked.score + MEANING * cosines.get(ranked.key, farthest))
            for ranked in by_words
        ]
    )


def _order_by_coverage(query: str, found: Sequence[RankedPassage]) -> list[RankedPassage]:
    """Order passages so that one is worth more for words of the query that none before it has.

    Five passages about the same half of a question are worth less than two that have both."""
    left, chosen = list(found[:COVERED]), []
    has = {ranked.key: stem_set(ranked.text) for ranked in left}
    # Of the query's words that any passage has: those that few have tell more.
    counts = {
        word: sum(word in text for text in has.values())
        for word in sorted({stem(word) for word in content_words(query)})
    }
    missing = {word: log(1 + (len(has) - count + 0.5) / (count + 0.5)) for word, count in counts.items() if count}
    whole = sum(missing.values())
    while left and missing:
        added = [sum(missing[word] for word in missing if word in has[ranked.key]) / whole for ranked in left]
        best = max(range(len(left)), key=lambda number: left[number].score + COVERING * added[number])
        chosen.append(left[best].with_score(left[best].score + COVERING * added[best]))
        missing = {word: rarity for word, rarity in missing.items() if word not in has[left[best].key]}
        del left[best]
    return [*chosen, *left, *found[COVERED:]]


def _limit_per_document(ranked: Sequence[RankedPassage], limit: int) -> list[RankedPassage]:
    seen: dict[str, int] = {}
    kept = []
    for item in ranked:
        document = item.match.passage.document
        seen[document] = seen.get(document, 0) + 1
        if seen[document] <= PER_DOCUMENT:
            kept.append(item)
    return kept[:limit]


class IndexRanker:
    """A `protocols.PassageRanker` for pages that were just fetched, in an index that is made for them and dropped."""

    def __init__(self, open_index: Callable[[], AbstractContextManager[PassageIndex]], embedder: Embedder) -> None:
        self._open_index = open_index
        self._embedder = embedder

    async def rank(self, documents: Sequence[Document], questions: Sequence[str], *, limit: int) -> list[list[Passage]]:
        return await asyncio.to_thread(self._rank, documents, questions, limit)

    def _rank(self, documents: Sequence[Document], questions: Sequence[str], limit: int) -> list[list[Passage]]:
        with self._open_index() as index:
            for document in documents:
                index.replace(document.hash, FileStamp(0, 0), document, split_passages(document.hash, document.text))
            return [
                [found.match.passage for found in rank(question, [index], self._embedder, limit)]
                for question in questions
            ]
