"""Which documents are one source, and which passages one voice: copies, one publisher, or one origin count once."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from assay.model.evidence import Span
from assay.model.source import Document
from assay.text.hosts import registered
from assay.text.shingles import containment, shingles
from assay.text.words import fold
from assay.trust.credibility import Credibility

T = TypeVar("T")

# Unrelated pages stay below .3, full copies above .8; half a document in common is not two independent witnesses.
COPIED = 0.5
# Two passages of so many words do not come to say the same in the same words by chance; shorter ones may.
LONG, SAME_WORDS = 10, 0.8
A_TITLE = 2  # words; one alone names too much

_NAME = r"((?:[A-Z][\w&’'-]+|[A-Z]{2,})(?:\s+(?:of|for|the|and|de|[A-Z][\w&’'-]+|[A-Z]{2,})){0,6})"
_ATTRIBUTED = (
    re.compile(rf"\b(?:[Aa]ccording to|[Cc]iting|[Rr]eported by|[Aa]nnounced by|[Pp]ublished by)\s+(?:the\s+)?{_NAME}"),
    re.compile(
        rf"\b(?:[Tt]he\s+)?{_NAME}(?:\s(?:Inc|Corp|Ltd|Co|plc|AG|SE|GmbH)\b\.?)?,?\s+(?:(?:has|have|had|today|also|now)\s+)*(?:said|says|told|reported|reports|announced|stated|estimates|estimated)\b"
    ),
    re.compile(r"\(((?:Reuters|AP|AFP|dpa|Xinhua|Bloomberg|PTI|ANI|UPI|TASS|Kyodo|Yonhap))\)"),
)
_FILLING = re.compile(r"(?:\s+(?:of|for|the|and|de))+$")


def groups(documents: Iterable[Document]) -> dict[str, str]:
    """Document hash -> group id (G1, G2, ...), numbered in the order given. One publisher is one witness too.

    A digest of two documents joins them: it is independent of neither, and a group can say no more than that."""
    known = [(document, shingles(document.text)) for document in documents]
    heads = _joined(known, lambda one, other: _one_source(*one, *other))
    names = {head: f"G{n}" for n, head in enumerate(dict.fromkeys(heads), 1)}
    return {document.hash: names[head] for (document, _), head in zip(known, heads, strict=True)}


def _one_source(document: Document, own: frozenset[int], other: Document, known: frozenset[int]) -> bool:
    publisher = registered(document.host) if document.host else ""
    return bool(publisher and publisher == registered(other.host)) or containment(own, known) >= COPIED


def voices(
    spans: Sequence[Span], together: Mapping[str, str], credibility: Mapping[str, Credibility]
) -> dict[str, tuple[str, ...]]:
    """The independent voices behind one statement: the first document of each, and all documents that speak with it.

    Sources that are independent as a whole may still repeat each other in one matter: they use the same words, name the
    same informant, or report on the same publication. Such are one voice, whatever their groups."""
    said = [(span, together[span.document], shingles(span.quote), attributed(span.quote)) for span in spans]
    heads = _joined(said, lambda one, other: one[1] == other[1] or _retold(one, other, credibility))
    found: dict[int, list[str]] = {}
    for span, head in zip(spans, heads, strict=True):
        found.setdefault(head, []).append(span.document)
    return {documents[0]: tuple(dict.fromkeys(documents)) for documents in found.values()}


_Said = tuple[Span, str, frozenset[int], frozenset[str]]


def _retold(one: _Said, other: _Said, credibility: Mapping[str, Credibility]) -> bool:
    (first, _, own, named), (second, _, known, also_named) = one, other
    long = min(len(first.quote.split()), len(second.quote.split())) >= LONG
    if (long and containment(own, known) >= SAME_WORDS) or named & also_named:
        return True
    ours, theirs = credibility[first.document], credibility[second.document]
    if ours.origin and ours.origin == theirs.origin:
        return True
    return _is_behind(ours, theirs, also_named) or _is_behind(theirs, ours, named)


def _is_behind(one: Credibility, other: Credibility, named: frozenset[str]) -> bool:
    """Whether one is the publication that the other repeats, or speaks at first hand for whom the other names."""
    title = f" {one.title} "
    if one.title and len(one.title.split()) >= A_TITLE and title in f" {other.origin} ":
        return True
    return one.primary and any(f" {name} " in title for name in named)


def attributed(quote: str) -> frozenset[str]:
    """Whom a passage names as having said what it says."""
    return frozenset(
        fold(_FILLING.sub("", match[1])).removeprefix("the ") for form in _ATTRIBUTED for match in form.finditer(quote)
    )


def _joined(items: Sequence[T], same: Callable[[T, T], bool]) -> list[int]:
    """For each item the index of the first it belongs with, in whatever order they came."""
    heads: list[int] = []
    for at, item in enumerate(items):
        joined = {heads[before] for before in range(at) if same(item, items[before])}
        head = min(joined, default=at)
        heads = [head if known in joined else known for known in heads]
        heads.append(head)
    return heads
