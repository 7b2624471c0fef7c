"""Copies among documents: the same text at another address, with other things around it, or as a part of the whole."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest

from assay.text.shingles import SIZE, containment, shingles

# Of one page read by different extractors, .997 of the pairs share this much; of two articles .28 at most, and two
# quarterly reports of one company, which repeat each other but are not the same, up to .71.
THRESHOLD = 0.8
SHORTEST = 12 - SIZE + 1  # shingles, for 12 words; shorter texts are alike by chance ("page not found"), or equal
PART = 3.0  # a text this many times longer has more to say: it is kept, whichever came first
PROBES = 24  # shingles of a text that are looked for in all others; at .8 shared, 8 are missed once in a million
FOUND = 8

Shingles = frozenset[int]


def duplicates(texts: Iterable[tuple[str, str]], order: Sequence[str] = ()) -> dict[str, str]:
    """(id, text) pairs -> the id of a copy -> the id that is kept instead of it.

    Of two copies the one named first in `order` is kept; what it does not name comes after, longest first. Whatever
    the order the texts arrive in, the result is the same, and what is kept is never itself a copy."""
    known = {name: shingles(text) for name, text in texts}
    place = {name: at for at, name in reversed(list(enumerate(order)))}
    ranked = sorted(known, key=lambda name: (place.get(name, len(order)), -len(known[name]), name))
    alike = _alike(known)
    kept: dict[str, list[str]] = {}  # with its copies; in order of preference
    for name in ranked:
        rivals = [other for other in kept if other in alike[name]]
        better = next((other for other in rivals if len(known[name]) < PART * len(known[other])), None)
        if better is not None:
            kept[better].append(name)
        else:
            kept[name] = [copy for other in rivals for copy in (other, *kept.pop(other))]
    return {copy: name for name, copies in kept.items() for copy in copies}


def _alike(known: Mapping[str, Shingles]) -> dict[str, set[str]]:
    """Which texts are copies of which, both ways. Only those that share probes are compared in full, so the work grows
    with the amount of text and not with the number of pairs."""
    alike: dict[str, set[str]] = {name: set() for name in known}
    for one, other in _candidates(known):
        left, right = known[one], known[other]
        short = min(len(left), len(right)) < SHORTEST
        if left == right if short else containment(left, right) >= THRESHOLD:
            alike[one].add(other)
            alike[other].add(one)
    return alike


def _candidates(known: Mapping[str, Shingles]) -> Iterable[tuple[str, str]]:
    wanted: dict[int, list[str]] = {}
    for name, own in known.items():
        for probe in nsmallest(PROBES, own):
            wanted.setdefault(probe, []).append(name)
    for name, own in known.items():
        found = Counter(other for probe in wanted.keys() & own for other in wanted[probe])
        for other, count in found.items():
            if other != name and count >= min(FOUND, len(known[other]) / 3):
                yield other, name
