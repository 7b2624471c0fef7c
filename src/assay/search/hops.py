"""The second hop: passages that the first hits speak of, and passages that speak of the first hits.

A question often names one thing and asks about another that only the answer to its first half names.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from assay.ports import IndexedPassage, PassageIndex
from assay.search.matches import Ranked, match
from assay.text.names import names
from assay.text.words import content_words, fold, stem, words

# Reasons are shares of two-hop questions with all gold passages in the top five; .95 as it stands.
HOPS = 5  # first hits that are followed; 3 and 7 found as much
HOP_CANDIDATES = 20  # 10 found .01 less, 40 no more
HOP_NAMES = 10
HOP_WORDS = 12
INHERITED = 0.6  # of the first hit's weight, for a passage found through its names; without it .04 less, .8 no more
NAMED = 0.5  # for a passage whose title a first hit names, since a hit names few things; .3 found .06 less, .7 no more
NAMING = 0.1  # for a passage that names the first hit's title, as many may; without it .01 less, .2 no more


def follow(
    asked: Sequence[str], found: Sequence[Ranked], heads: Sequence[Ranked], indexes: Sequence[PassageIndex]
) -> list[Ranked]:
    """The passages found and those the heads lead to; each keeps the best that any head makes of it."""
    own = {ranked.key: ranked.score for ranked in found}
    credited = {ranked.key: ranked for ranked in found}
    for head in heads[:HOPS]:
        weight = head.score / heads[0].score
        again = dict.fromkeys([*asked, *_hop_words(asked, head.match)])
        for hop, link in _links(head, match(list(again), indexes, HOP_CANDIDATES)):
            score = max(own.get(hop.key, 0.0), INHERITED * weight * hop.score) + weight * link
            if hop.key not in credited or score > credited[hop.key].score:
                credited[hop.key] = hop.scored(score)
    return list(credited.values())


def _hop_words(asked: Sequence[str], head: IndexedPassage) -> list[str]:
    """Names and title of a first hit that the query did not have."""
    have = {stem(word) for word in asked}
    named = (word for name in (*names(head.passage.text)[:HOP_NAMES], head.title) for word in content_words(name))
    return [word for word in dict.fromkeys(named) if stem(word) not in have][:HOP_WORDS]


def _links(head: Ranked, hops: Sequence[Ranked]) -> Iterator[tuple[Ranked, float]]:
    """A head speaks of a document, not of each of its passages: the best one is linked, the others are not."""
    linked = {head.match.passage.document}
    for hop in hops:
        if hop.key == head.key:
            continue
        document = hop.match.passage.document
        link = 0.0 if document in linked else _link(head.match, hop.match)
        if link:
            linked.add(document)
        yield hop, link


def _link(head: IndexedPassage, hop: IndexedPassage) -> float:
    if names_title(head.passage.text, hop.title):
        return NAMED
    return NAMING if names_title(hop.passage.text, head.title) else 0.0


def names_title(text: str, title: str) -> bool:
    """Whether the text has the title as a phrase, and as a name: a title of one word needs its capital in both,
    since any text may speak of a report and mean no file that is called so."""
    name = _name(title)
    return has_title(text, title) and (" " in name or (name in text and name != fold(name)))


def has_title(text: str, title: str) -> bool:
    wanted = _phrase(_name(title))
    return bool(wanted.strip()) and wanted in _phrase(text)


def _name(title: str) -> str:
    return title.split(" (")[0].strip()


@lru_cache(maxsize=1024)  # a head's text is asked for every hop's title, and the same texts for every query
def _phrase(text: str) -> str:
    return " ".join(["", *(word.removesuffix("'s").removesuffix("’s") for word in words(text)), ""])
