"""Which documents are one source: syndicated, copied or republished text counts once."""

from collections.abc import Mapping
from zlib import crc32

from assay.text.words import words

SHINGLE = 4
# Containment, not Jaccard: a copy inside other boilerplate has a low Jaccard but is still a copy. Unrelated
# pages stay below .2, full copies above .8; half a document in common is not two independent witnesses.
COPIED = 0.5
LONGEST = 20_000  # words looked at; more would only slow the comparison


def groups(texts: Mapping[str, str]) -> dict[str, str]:
    """Document hash -> group id (G1, G2, ...), numbered in the order given."""
    shingles = {name: _shingles(text) for name, text in texts.items()}
    found: dict[str, str] = {}
    heads: list[str] = []
    for name in texts:
        head = next((head for head in heads if _copied(shingles[name], shingles[head])), None)
        if head is None:
            heads.append(name)
            found[name] = f"G{len(heads)}"
        else:
            found[name] = found[head]
    return found


def _shingles(text: str) -> frozenset[int]:
    line = words(text)[:LONGEST]
    return frozenset(crc32(" ".join(line[at : at + SHINGLE]).encode()) for at in range(max(1, len(line) - SHINGLE + 1)))


def _copied(left: frozenset[int], right: frozenset[int]) -> bool:
    return len(left & right) >= COPIED * min(len(left), len(right))
