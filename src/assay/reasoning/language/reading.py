"""Reading: the model points at numbered sentences, so every quote is verbatim.

A sentence that orders a model about is shown as what it is and has no number, so it cannot be quoted.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from assay.errors import ReasoningError
from assay.model.source import Passage
from assay.reasoning.language.answer import Answer, Number, Score, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.reasoning.protocol import Quote, ReadRequest
from assay.text.instructions import asks_what_to_do, instructions, is_order
from assay.text.sentences import Piece, is_statement, sentences

STEP = Step("read", stage="read", role="searcher", thing="choice of quotes",
            variables=("question", "sources", "most"))  # fmt: skip
MOST_IN_LITTLE_ROOM = 6
MOST_TOGETHER = 3  # sentences of one quote
RELEVANT = 3.0  # of 10; below this a sentence is about something else
MARKED = "⟦instruction-like text of the page: {}⟧"
LONGEST_MARKED = 200  # characters shown of one
_BRACKETS = str.maketrans("⟦⟧", "[]")


class Pick(Answer):
    first: Number
    last: Number = 0
    score: Score


class Picks(Answer):
    picks: list[Pick]


class Shown(NamedTuple):
    """A passage with the sentences of it that may be quoted, and those that are only shown, marked."""

    passage: int
    title: str
    pieces: tuple[Piece, ...]
    marked: tuple[Piece, ...] = ()


def job(request: ReadRequest, shortlist: Sequence[Quote], small: bool) -> Job[Picks, Shown, Sequence[Quote]]:
    """In little room the model chooses among what the floor has found, and its scores count half: of whole passages a
    small model called nearly every sentence a perfect answer."""
    most = min(request.limit, MOST_IN_LITTLE_ROOM) if small else request.limit
    counted = {(quote.passage, quote.text): quote.relevance for quote in shortlist} if small else {}

    def build(shown: Sequence[Shown]) -> dict[str, str]:
        question = tagged("message", request.question.in_context)
        return {"question": question, "sources": _sources(shown), "most": str(most)}

    return Job(
        STEP, Picks, schema(Picks, "Picks", {"picks": most}), build,
        lambda answer, shown: convert(answer, shown, request.passages, most, counted),
        sources=_shortlisted(request, counted) if counted else _shown(request), shorten=_halved,
        task=request.question.id, share=request.share,
    )  # fmt: skip


def _shown(request: ReadRequest) -> tuple[Shown, ...]:
    """Passages overlap: a sentence is shown once. What only tells people to do something is no answer, unless that was
    asked."""
    advice = asks_what_to_do(request.question.in_context)
    seen: set[tuple[str, str]] = set()
    found = []
    for number, passage in enumerate(request.passages):
        orders = set(instructions(passage.text))
        fresh = [piece for piece in sentences(passage.text) if (passage.document, piece.text) not in seen]
        told = [piece for piece in fresh if piece not in orders and is_statement(piece.text)]
        pieces = [piece for piece in told if advice or not is_order(piece.text)]
        seen |= {(passage.document, piece.text) for piece in (*pieces, *orders)}
        marked = tuple(piece for piece in fresh if piece in orders)
        if pieces or marked:
            found.append(Shown(number, _title(request, passage), tuple(pieces), marked))
    return tuple(found) if any(shown.pieces for shown in found) else ()


def _title(request: ReadRequest, passage: Passage) -> str:
    title = request.titles.get(passage.document, "")
    return "" if instructions(title) else title


def _shortlisted(request: ReadRequest, quotes: Iterable[tuple[int, str]]) -> tuple[Shown, ...]:
    found: dict[int, list[Piece]] = {}
    for number, text in quotes:
        start = request.passages[number].text.find(text)
        if start >= 0:
            found.setdefault(number, []).append(Piece(start, start + len(text), text))
    return tuple(
        Shown(number, _title(request, request.passages[number]), tuple(sorted(pieces)))
        for number, pieces in found.items()
    )


def _halved(shown: Shown) -> Shown:
    return shown._replace(pieces=shown.pieces[: (len(shown.pieces) + 1) // 2], marked=())


def _sources(shown: Sequence[Shown]) -> str:
    blocks, number = [], 0
    for source in shown:
        lines = [f"Title: {source.title}"] if source.title else []
        for piece in sorted((*source.pieces, *source.marked)):
            said = " ".join(piece.text.split())
            if piece in source.marked:
                lines.append(MARKED.format(said[:LONGEST_MARKED].translate(_BRACKETS)))
            else:
                number += 1
                lines.append(f"[{number}] {said}")
        blocks.append(tagged("source", "\n".join(lines)))
    return "\n".join(blocks)


def convert(
    answer: Picks,
    shown: Sequence[Shown],
    passages: Sequence[Passage],
    most: int,
    counted: Mapping[tuple[int, str], float],
) -> Sequence[Quote]:
    places = [(source, at) for source in shown for at in range(len(source.pieces))]
    named = [pick for pick in answer.picks if 1 <= pick.first <= len(places)]
    if answer.picks and not named:
        raise ReasoningError(f"sentences are numbered 1 to {len(places)}")
    quotes: list[Quote] = []
    taken: set[tuple[int, int]] = set()
    for pick in sorted(named, key=lambda pick: -pick.score):
        source, at = places[pick.first - 1]
        last = _last(source, at, pick, passages[source.passage])
        span = {(source.passage, n) for n in range(at, last + 1)}
        if pick.score >= RELEVANT and not span & taken:
            taken |= span
            text = passages[source.passage].text[source.pieces[at].start : source.pieces[last].end]
            given = pick.score / 10
            relevance = (given + counted.get((source.passage, source.pieces[at].text), given)) / 2
            quotes.append(Quote(passage=source.passage, text=text, relevance=round(relevance, 4)))
    return sorted(quotes, key=lambda quote: -quote.relevance)[:most]


def _last(source: Shown, at: int, pick: Pick, passage: Passage) -> int:
    """Where a quote ends: neighbours of the same paragraph only."""
    last = at
    while last + 1 < len(source.pieces) and last - at < min(pick.last - pick.first, MOST_TOGETHER - 1):
        between = passage.text[source.pieces[last].end : source.pieces[last + 1].start]
        if between.strip() or "\n" in between:
            break
        last += 1
    return last
