"""A report as the answer of a chat: its marks [S1] lead to the sources themselves, and each is told apart as well."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from assay.export.report import Report
from assay.model.report import SourceCard

_MARK = re.compile(r"\[\[(S\d+)\]\]\(#s\d+\)")  # only ours: what sources say has its brackets escaped
_ANCHOR = re.compile(r'<a id="s\d+"></a>')
_UNSAFE = re.compile(r"[\s<>()\\`\"]")


class Citation(NamedTuple):
    """Where in the answer a source is cited; `end` is behind the last character."""

    start: int
    end: int
    url: str
    title: str


class Answer(NamedTuple):
    text: str
    citations: tuple[Citation, ...]
    urls: tuple[str, ...]  # of all sources, in their order


def answer(report: Report) -> Answer:
    """Files of the server's disk are named in the list of sources, and led to from nowhere."""
    cards = {card.id: card for card in report.sources}
    parts, citations, length = list[str](), list[Citation](), 0
    for piece, card in _pieces(_ANCHOR.sub("", report.markdown), cards):
        if card is not None and _is_open(card):
            citations.append(Citation(length, length + len(piece), card.url, card.title))
        parts.append(piece)
        length += len(piece)
    return Answer("".join(parts), tuple(citations), tuple(card.url for card in cards.values() if _is_open(card)))


def _pieces(text: str, cards: dict[str, SourceCard]) -> Iterator[tuple[str, SourceCard | None]]:
    """The text as it goes out: what stands between marks, and marks with what they stand for."""
    at = 0
    for mark in _MARK.finditer(text):
        yield text[at : mark.start()], None
        card = cards.get(mark[1])
        yield (_linked(mark[1], card) if card else f"[{mark[1]}]"), card
        at = mark.end()
    yield text[at:], None


def _linked(name: str, card: SourceCard) -> str:
    """A link only where it can do nothing but open a page."""
    if not re.match(r"https?://", card.url):
        return f"[{name}]"
    address = _UNSAFE.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), card.url)
    return f"[[{name}]]({address})"


def _is_open(card: SourceCard) -> bool:
    return not card.url.startswith("file:")


def pieces(text: str) -> Iterator[str]:
    """As it is sent: a paragraph at a time."""
    for piece in re.split(r"(?<=\n\n)", text):
        if piece:
            yield piece
