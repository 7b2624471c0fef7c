"""Reading without a model: which sentences of the passages answer a sub-question."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from assay.model.plan import SubQuestion
from assay.model.source import Passage
from assay.ports import Embedder
from assay.reasoning.embedded.attribute import ASKING, Asked, alike, asked
from assay.reasoning.embedded.context import begin
from assay.reasoning.embedded.focus import focus, weight_of
from assay.reasoning.embedded.rarity import rarity, recall
from assay.reasoning.embedded.understanding import classify
from assay.reasoning.protocol import Quote
from assay.text.asked import Years, span
from assay.text.instructions import asks_what_to_do, instructions, is_order
from assay.text.overlap import jaccard
from assay.text.quantities import Quantity, quantities
from assay.text.relations import years
from assay.text.sentences import Piece, is_row, is_statement, sentences
from assay.text.words import fold, stems

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Encoding is the slow part (under a hundred sentences a second on two cores), so words choose what is encoded.
ENCODED = 60
FLOOR = 0.34  # below this a sentence is about something else
NEAR_BEST = 0.8  # a pointed question is answered by its best sentences; an overview takes all that is above the floor
NEAR_BEST_OF_ITS_OWN = 0.4  # for the best sentence of a document: each is heard
TOO_ALIKE = 0.75  # two quotes this alike from one document say the same
PER_DOCUMENT = 3  # quotes from one document, so that others are heard too
OFF_MATTER = 0.22  # taken from what names the subject and says nothing of what is asked of it, where others do
UNNAMED = 0.1  # taken from what stands in a document that does not name the subject
OTHER_YEARS = 0.2  # taken from what speaks of other years than those asked about
FEEDBACK_FROM, FEEDBACK = 5, 0.35  # the best sentences pull the question towards their own words

_DANGLING = re.compile(
    r"^(?:it|its|they|their|this|these|that|those|he|she|his|her|such|both|here|there|however|but|also|thus|hence|"
    r"therefore|instead|nevertheless|meanwhile|similarly|likewise|moreover|furthermore|in addition|as a result|"
    r"for example|for instance|by contrast|in contrast|on the other hand|either|neither|another|"
    r"the (?:latter|former|same|result|difference|second|third|other|new|study|team|company))\b",
    re.I,
)
_POINTER = re.compile(
    r"^(?:refer to|see|please see|for (?:a|an|more|further|additional)\b[^.]*\b(?:see|refer to))\b|"
    r"\b(?:refer to|see) (?:item|note|part|section|figure|table|appendix)\b",
    re.I,
)
_CAUSAL = re.compile(
    r"\b(?:because|due to|caused? by|causes?|caused|driven by|drove|owing to|result(?:s|ed)? (?:of|from)|explain\w*|"
    r"reason\w*|attribut\w+|stems? from|reflect\w*|partially offset|primarily|systematic|bias\w*|account for)\b",
    re.I,
)
_FUTURE = re.compile(
    r"\b(?:will|expect\w*|plan(?:s|ned)?|schedul\w+|forecast\w*|by (?:19|20)\d{2}|due in|aims?)\b", re.I
)
_AMOUNT = re.compile(
    r"\bhow (?:much|many|fast|big|large|long|far|high|old|often|deep|tall|wide|heavy|hot|cold|strong|expensive)\b|"
    r"\bfigures?\b|"
    r"\b(?:value|price|rate|cost|size|number) of\b|\bhow (?:did|has|have|do|does) .*\bchang",
    re.I,
)
_TOTAL = re.compile(r"\b(?:total|overall)\b", re.I)
_WHEN = re.compile(r"^when\b")
_WHEN_WILL = re.compile(r"^when (?:will\b|(?:is|are)\b.*\b(?:going to|expected|due)\b)")
_WHY = re.compile(r"^why\b|\bdrove\b|\bexplan|\bcause|\breason")


class _Candidate(NamedTuple):
    passage: int
    piece: Piece
    words: float


def read(
    question: SubQuestion,
    passages: Sequence[Passage],
    limit: int,
    embedder: Embedder,
    titles: Mapping[str, str] | None = None,
) -> list[Quote]:
    """The best sentences, most relevant first, without repeating one document's own words. `titles` are those of the
    documents: they may name what the text calls "it"."""
    wanted = focus(question.in_context)
    own = set(stems(focus(question.text)))
    named = _naming(asked(question.text, question.in_context), passages, titles or {})
    if _absent(own, passages) or not named:
        return []
    candidates = [c for c in _by_words(wanted, own, passages) if could_answer(question.text, c.piece.text)][:ENCODED]
    if not candidates:
        return []
    meaning = _meaning(wanted, candidates, embedder)
    weigh = _weigher(question, [passage.document in named for passage in passages], candidates)
    scored = sorted(
        ((weigh(candidate, cosine), candidate) for candidate, cosine in zip(candidates, meaning, strict=True)),
        key=lambda item: (-item[0], item[1].passage, item[1].piece.start),
    )
    return _distinct(_answering(question, scored, passages), passages, limit)


def _answering(
    question: SubQuestion, scored: Sequence[tuple[float, _Candidate]], passages: Sequence[Passage]
) -> list[tuple[float, _Candidate]]:
    """What is relevant enough. A pointed question is answered by its best sentences and by the best of each document;
    what speaks of other years than those asked about only where nothing else is left."""
    # "Latest news about Apple" asks for no one thing of it.
    pointed = classify(question.text) != "overview" and bool(asked(question.text, question.in_context).matter)
    floor, first_floor = (max(FLOOR, share * pointed * scored[0][0]) for share in (NEAR_BEST, NEAR_BEST_OF_ITS_OWN))
    firsts: dict[str, _Candidate] = {}
    for _, candidate in scored:
        firsts.setdefault(passages[candidate.passage].document, candidate)
    kept = [
        (score, candidate)
        for score, candidate in scored
        if score >= (first_floor if firsts[passages[candidate.passage].document] is candidate else floor)
    ]
    period = span(question.in_context)
    timely = [item for item in kept if not _elsewhen(period, item[1].piece.text)]
    return timely or kept


def _elsewhen(period: Years | None, text: str) -> bool:
    """A row of a table may be of a fiscal year, whose first quarter ends in the year before."""
    said = years(text)
    told = said | {year + 1 for year in said} if is_row(text) else said
    return period is not None and bool(said) and not period.meet(told)


def _absent(own: set[str], passages: Sequence[Passage]) -> bool:
    """Whether most of what is asked about is named nowhere: what is left would answer for something else."""
    wanted = own - ASKING
    known = {stem for passage in passages for stem in stems(passage.text)}
    return 2 * sum(not alike(stem) & known for stem in wanted) > len(wanted)


def _by_words(question: str, own: set[str], passages: Sequence[Passage]) -> list[_Candidate]:
    """Sentences of passages with at least one of the sub-question's own words: its topic alone makes no answer."""
    weights = rarity(passage.text for passage in passages)
    wanted = weight_of(question)
    found: dict[str, _Candidate] = {}
    for number, passage in enumerate(passages):
        if own and not own & set(stems(passage.text)):
            continue
        around = recall(wanted, passage.text, weights)
        for piece in _statements(passage.text):
            said = recall(wanted, piece.text, weights)
            found.setdefault(f"{passage.document} {piece.text}", _Candidate(number, piece, 0.75 * said + 0.25 * around))
    return sorted(found.values(), key=lambda candidate: -candidate.words)


def _statements(text: str) -> Iterator[Piece]:
    """What may be quoted; orders to a machine tell nothing of the subject. A sentence that speaks of "it" comes with
    those before it, which say of what."""
    orders = set(instructions(text))
    pieces = sentences(text)
    for at, piece in enumerate(pieces):
        if is_statement(piece.text) and piece not in orders:
            start = begin(text, pieces, at)
            if any(start <= order.start < piece.start for order in orders):
                start = piece.start
            yield Piece(start, piece.end, text[start : piece.end])


def could_answer(question: str, sentence: str) -> bool:
    """A question for a time needs one in its answer; a question for a time to come needs one that lies ahead; an order
    answers only who asks what to do."""
    plain = fold(question)
    if is_order(sentence) and not asks_what_to_do(question):
        return False
    if _WHEN.match(plain) and not any(_is_time(quantity, sentence) for quantity in quantities(sentence)):
        return False
    return not _WHEN_WILL.match(plain) or bool(_FUTURE.search(sentence))


def _is_time(quantity: Quantity, sentence: str) -> bool:
    """A date, a clock time, or four digits that can be a year: before 1900 they are read as a plain number."""
    if quantity.kind in ("year", "date", "time", "decade"):
        return True
    digits = sentence[quantity.start : quantity.end]
    return quantity.kind == "number" and bool(re.fullmatch(r"\d{4}", digits)) and 1000 <= quantity.value <= 2100


def _meaning(question: str, candidates: Sequence[_Candidate], embedder: Embedder) -> list[float]:
    """Cosines to the question, moved a little towards its best answers: their words are the topic's own."""
    vectors = embedder.embed([question, *(candidate.piece.text for candidate in candidates)])
    asked, said = vectors[0], vectors[1:]
    first = 0.5 * (said @ asked) + 0.5 * _column([candidate.words for candidate in candidates])
    best = first.argsort()[::-1][:FEEDBACK_FROM]
    moved = asked + FEEDBACK * said[best].mean(axis=0)
    moved /= (moved @ moved) ** 0.5
    cosines: list[float] = (said @ moved).tolist()
    return cosines


def _column(values: Sequence[float]) -> "NDArray[np.float32]":
    import numpy as np

    return np.array(values, dtype=np.float32)


def _weigher(
    question: SubQuestion, named: Sequence[bool], candidates: Sequence[_Candidate]
) -> Callable[[_Candidate, float], float]:
    """Words and meaning, plus what an answer of the asked kind must have."""
    amount, why = bool(_AMOUNT.search(question.text)), bool(_WHY.search(fold(question.text)))
    wanted, period = asked(question.text, question.in_context), span(question.in_context)
    most = max(wanted.speaks(stems(candidate.piece.text)) for candidate in candidates)

    def weigh(candidate: _Candidate, cosine: float) -> float:
        text = candidate.piece.text
        score = 0.35 * candidate.words + 0.65 * max(0.0, cosine)
        score -= OFF_MATTER * (most - wanted.speaks(stems(text)))
        score -= 0.0 if named[candidate.passage] else UNNAMED
        if amount:
            score += 0.12 if _has_amount(text) else -0.08
            score += 0.12 if _TOTAL.search(text) else 0.0  # an unqualified question is about the whole
        if period and years(text):
            score += -OTHER_YEARS if _elsewhen(period, text) else 0.05
        if why:
            score += 0.10 if _CAUSAL.search(text) else -0.05
        if _DANGLING.match(text):
            score -= 0.15  # without its neighbour the reader cannot tell what it speaks of
        if _POINTER.search(text):
            score -= 0.25  # it says where something is told, not what
        return min(1.0, max(0.0, score))

    return weigh


def _naming(wanted: Asked, passages: Sequence[Passage], titles: Mapping[str, str]) -> set[str]:
    """Documents that name what the question is about."""
    return {
        passage.document for passage in passages if wanted.named(f"{titles.get(passage.document, '')}\n{passage.text}")
    }


def _has_amount(text: str) -> bool:
    return any(
        quantity.unit or quantity.kind in ("percent", "money")
        for quantity in quantities(text)
        if quantity.kind not in ("year", "date")
    )


def _distinct(scored: Sequence[tuple[float, _Candidate]], passages: Sequence[Passage], limit: int) -> list[Quote]:
    kept: list[tuple[str, Quote]] = []
    taken: list[_Candidate] = []
    for score, candidate in scored:
        if len(kept) >= limit:
            break
        document = passages[candidate.passage].document
        mine = [quote.text for other, quote in kept if other == document]
        if len(mine) >= PER_DOCUMENT or any(jaccard(candidate.piece.text, text) >= TOO_ALIKE for text in mine):
            continue
        if any(_overlap(candidate, other) for other in taken):
            continue
        taken.append(candidate)
        kept.append((document, Quote(passage=candidate.passage, text=candidate.piece.text, relevance=round(score, 4))))
    return [quote for _, quote in kept]


def _overlap(one: _Candidate, other: _Candidate) -> bool:
    """A sentence may be offered twice, alone and as the lead of the next."""
    return one.passage == other.passage and one.piece.start < other.piece.end and other.piece.start < one.piece.end
