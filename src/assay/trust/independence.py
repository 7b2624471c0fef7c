"""Which documents are one source: syndicated, copied or republished text counts once."""

from collections.abc import Iterable

from assay.model.source import Document
from assay.text.shingles import containment, shingles

# Unrelated pages stay below .3, full copies above .8; half a document in common is not two independent witnesses.
COPIED = 0.5


def groups(documents: Iterable[Document]) -> dict[str, str]:
    """Document hash -> group id (G1, G2, ...), numbered in the order given. One publisher is one witness too.

    A digest of two documents joins them: it is independent of neither, and a group can say no more than that."""
    heads: dict[str, str] = {}
    seen: list[tuple[Document, frozenset[int]]] = []
    for document in documents:
        own = shingles(document.text)
        joined = {heads[other.hash] for other, known in seen if _one_source(document, own, other, known)}
        heads = {name: document.hash if head in joined else head for name, head in heads.items()}
        heads[document.hash] = document.hash
        seen.append((document, own))
    names = {head: f"G{n}" for n, head in enumerate(dict.fromkeys(heads.values()), 1)}
    return {name: names[head] for name, head in heads.items()}


def _one_source(document: Document, own: frozenset[int], head: Document, known: frozenset[int]) -> bool:
    return bool(document.host and document.host == head.host) or containment(own, known) >= COPIED
