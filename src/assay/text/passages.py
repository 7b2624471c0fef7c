"""Cutting a document into passages that can be found and read on their own."""

from assay.model.source import Passage
from assay.text.sentences import Piece, sentences

# About 80 words: long enough to hold a statement with its context, short enough for a 256-token encoder
# and for BM25 to tell one paragraph from the next.
TARGET = 500
LONGEST = 1000


def passages(document: str, text: str) -> list[Passage]:
    """Consecutive passages of whole sentences. They cover every sentence and never overlap."""
    groups: list[list[Piece]] = []
    for piece in _pieces(text):
        if groups and _joins(text, groups[-1], piece):
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return [
        Passage(document=document, start=group[0].start, end=group[-1].end, text=text[group[0].start : group[-1].end])
        for group in groups
    ]


def _joins(text: str, group: list[Piece], piece: Piece) -> bool:
    """A sentence joins while the passage is short; a blank line ends one that is long enough."""
    size = group[-1].end - group[0].start
    if piece.end - group[0].start > LONGEST:
        return False
    blank = "\n\n" in text[group[-1].end : piece.start]
    return size < (TARGET // 2 if blank else TARGET)


def _pieces(text: str) -> list[Piece]:
    """Sentences; a line without any (a long table row) is cut at LONGEST so that nothing is lost."""
    pieces: list[Piece] = []
    covered = 0
    for piece in sentences(text):
        pieces.extend(_cuts(text, covered, piece.start))
        pieces.append(piece)
        covered = piece.end
    pieces.extend(_cuts(text, covered, len(text)))
    return pieces


def _cuts(text: str, start: int, end: int) -> list[Piece]:
    if end - start < LONGEST:
        return []
    cuts = []
    while start < end:
        stop = min(end, start + LONGEST)
        space = text.rfind(" ", start, stop)
        stop = space if stop < end and space > start else stop
        if text[start:stop].strip():
            cuts.append(Piece(start, stop, text[start:stop]))
        start = stop
    return cuts
