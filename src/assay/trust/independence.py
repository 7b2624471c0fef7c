"""Which documents are one source: syndicated, copied or republished text counts once."""

from collections.abc import Iterable
from zlib import crc32

from assay.model.source import Document
from assay.text.words import words

SHINGLE = 4
# Containment, not Jaccard: a copy inside other boilerplate has a low Jaccard but is still a copy. Unrelated
# pages stay below .2, full copies above .8; half a document in common is not two independent witnesses.
COPIED = 0.5
LONGEST = 20_000  # words looked at; more would only slow the comparison


def groups(documents: Iterable[Document]) -> dict[str, str]:
    """Document hash -> group id (G1, G2, ...), numbered in the order given. One publisher is one witness too.

    A digest of two documents joins them: it is independent of neither, and a group can say no more than that."""
    heads: dict[str, str] = {}
    seen: list[tuple[Document, frozenset[int]]] = []
    for document in documents:
        shingles = _shingles(document.text)
        joined = {heads[other.hash] for other, known in seen if _one_source(document, shingles, other, known)}
        heads = {name: document.hash if head in joined else head for name, head in heads.items()}
        heads[document.hash] = document.hash
        seen.append((document, shingles))
    names = {head: f"G{n}" for n, head in enumerate(dict.fromkeys(heads.values()), 1)}
    return {name: names[head] for name, head in heads.items()}


def _one_source(document: Document, shingles: frozenset[int], head: Document, known: frozenset[int]) -> bool:
    return bool(document.host and document.host == head.host) or _copied(shingles, known)


def _shingles(text: str) -> frozenset[int]:
    line = words(text)[:LONGEST]
    return frozenset(crc32(" ".join(line[at : at + SHINGLE]).encode()) for at in range(max(1, len(line) - SHINGLE + 1)))


def _copied(left: frozenset[int], right: frozenset[int]) -> bool:
    return len(left & right) >= COPIED * min(len(left), len(right))
