"""What has become of the sources of a report since it was made: each is read again, and its passages looked for.

Nothing of the thread is altered. A source that cannot be reached has not vanished: it could not be checked.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from openassay.models.base import Record
from openassay.models.report import ReportData, ReportSpan, SourceCard
from openassay.protocols import PageResult
from openassay.text.sentences import split_sentences
from openassay.verification.corroboration import find_best_sentences
from openassay.verification.quotes import find_quote

PassageStatus = Literal["stands", "moved", "changed", "vanished", "unchecked"]
WORST: tuple[PassageStatus, ...] = ("stands", "moved", "unchecked", "changed", "vanished")
LIKE = 0.5  # of the words in order; what is less like a passage is not what it has become
CANDIDATES = 4  # places that are held against a passage
MAX_SOURCE_CHARS = 2_000_000  # characters of a source in which something like a passage is looked for
_GONE = re.compile(r"answered (?:404|410)\b")


class RereadResult(NamedTuple):
    """What reading a source again has given: its text, or why there is none. `gone`: it is not there any more."""

    text: str | None = None
    reason: str = ""
    gone: bool = False


class PassageCheck(Record):
    """`statements` are the sentences of the report that rest on it; `now` is what stands there in its place."""

    claims: tuple[str, ...]
    statements: tuple[str, ...]
    quote: str
    state: PassageStatus
    now: str = ""
    likeness: float | None = None


class SourceCheck(Record):
    """A source; its state is that of its worst passage."""

    source: str
    title: str
    url: str
    state: PassageStatus
    reason: str = ""
    passages: tuple[PassageCheck, ...]


ReadSource = Callable[[SourceCard], Awaitable[RereadResult]]


async def check_sources(report: ReportData, reread: ReadSource) -> list[SourceCheck]:
    """Every source that a statement of the report rests on."""
    resting = _group_passages(report)
    cards = [card for card in report.sources if card.id in {source for source, *_ in resting}]
    found = await asyncio.gather(*map(reread, cards))
    return [
        await asyncio.to_thread(_check_source, card, again, resting) for card, again in zip(cards, found, strict=True)
    ]


def from_page(page: PageResult, *, ours: bool) -> RereadResult:
    """`ours`: the snapshot was read from this page, and not from what a search provider knows of it."""
    if page.document is not None:
        moved = f"is at {page.document.url} now" if page.document.url != page.address else ""
        return RereadResult(page.document.text, moved if ours else _PROVIDED)
    return RereadResult(reason=page.reason, gone=bool(_GONE.search(page.reason)))


_PROVIDED = "was read in a search provider's words, which its page need not have"
_Key = tuple[str, str, int]  # source, quote, start


def _group_passages(report: ReportData) -> dict[_Key, tuple[list[str], list[str]]]:
    """For each passage the claims it supports, and the sentences that rest on those."""
    said: dict[str, list[str]] = {}
    for section in report.sections:
        for sentence in section.sentences:
            for name in sentence.claims:
                said.setdefault(name, []).append(sentence.text)
    found: dict[_Key, tuple[list[str], list[str]]] = {}
    for claim in report.claims:
        for span in claim.spans if claim.id in said else ():
            claims, statements = found.setdefault(_key(span), ([], []))
            claims.append(claim.id)
            statements += [text for text in said[claim.id] if text not in statements]
    return found


def _key(span: ReportSpan) -> _Key:
    return span.source, span.quote, span.start


def _check_source(
    card: SourceCard, again: RereadResult, resting: Mapping[_Key, tuple[Sequence[str], Sequence[str]]]
) -> SourceCheck:
    passages = []
    for (source, quote, start), (claims, statements) in resting.items():
        if source == card.id:
            state, now, likeness = _locate_quote(again, quote, start)
            passages.append(
                PassageCheck(
                    claims=tuple(claims), statements=tuple(statements), quote=quote, state=state, now=now,
                    likeness=likeness,
                )
            )  # fmt: skip
    worst = max((passage.state for passage in passages), key=WORST.index)
    return SourceCheck(
        source=card.id, title=card.title, url=card.url, state=worst, reason=again.reason, passages=tuple(passages)
    )


class _QuoteLocation(NamedTuple):
    state: PassageStatus
    now: str = ""
    likeness: float | None = None


def _locate_quote(again: RereadResult, quote: str, start: int) -> _QuoteLocation:
    text = again.text
    if text is None:
        return _QuoteLocation("vanished" if again.gone else "unchecked")
    if text[start : start + len(quote)] == quote:
        return _QuoteLocation("stands")
    if find_quote(quote, text) is not None:
        return _QuoteLocation("moved")
    if again.reason == _PROVIDED:
        return _QuoteLocation("unchecked")
    now, likeness = find_nearest(quote, text)
    return _QuoteLocation("changed", now, likeness) if likeness >= LIKE else _QuoteLocation("vanished")


def find_nearest(quote: str, text: str) -> tuple[str, float]:
    """What stands there that is most like the passage, and how like it is, 0 to 1."""
    pieces, length = split_sentences(text[:MAX_SOURCE_CHARS]), max(1, len(split_sentences(quote)))
    wanted, top = quote.split(), ("", 0.0)
    for at in find_best_sentences(quote, [piece.text for piece in pieces], CANDIDATES):
        for first in range(max(0, at - length + 1), at + 1):
            window = pieces[first : first + length]
            now = text[window[0].start : window[-1].end]
            likeness = SequenceMatcher(None, wanted, now.split(), autojunk=False).ratio()
            top = max(top, (now, round(likeness, 2)), key=lambda one: one[1])
    return top
