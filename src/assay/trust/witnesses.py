"""Who else says so, and where a statement is said at all: sentences of all that was read, by figure and by words."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from assay.model.evidence import Span
from assay.model.source import Passage
from assay.text.instructions import instructions, is_order
from assay.text.negation import opposed
from assay.text.relations import Measure, measure, relate
from assay.text.sentences import Piece, is_statement, sentences
from assay.trust.evidence import Bearing, Block, SentenceIndex, parts
from assay.trust.figures import check

# Of a statement's words by weight, for a sentence to say the same; its figures, names and negation must agree as well.
# On FEVER-symmetric, made so that words cannot tell, 96% of those that pass support the claim (.8: 90%, .7: 82%).
ALIKE = 0.9
FEWEST = 3  # distinct words, below which a statement may be of anything
LOOKED_AT = 12  # sentences for each statement
BEARS = (
    0.3  # of a statement's words, to be offered: on WiCE 80% of those are what people chose (.2: 73%, .5: 95% of few)
)
OFFERED = 2


class _Sentence(NamedTuple):
    passage: Passage
    before: Piece | None
    piece: Piece

    def span(self, start: int | None = None) -> Span:
        begin = self.piece.start if start is None else start
        return Span(
            document=self.passage.document,
            start=self.passage.start + begin,
            end=self.passage.start + self.piece.end,
            quote=self.passage.text[begin : self.piece.end],
        )

    def in_context(self) -> Span:
        """With the sentence before where this one only points back to whom it is about."""
        return self.span(self.before.start if self.before and _POINTS_BACK.match(self.piece.text) else None)


class Witnesses:
    """The sentences of all passages read. `titles`, by document, tell what its sentences need not repeat."""

    def __init__(self, passages: Iterable[Passage], titles: Mapping[str, str] | None = None) -> None:
        known = titles or {}
        self._by_figure: dict[tuple[float, str], list[Span]] = {}
        self._read: list[list[_Sentence]] = []
        blocks = []
        for passage in passages:
            read = _sentences(passage)
            self._read.append(read)
            blocks.append(Block([sentence.piece.text for sentence in read], known.get(passage.document, "")))
            for sentence in read:
                self._note_figure(sentence)
        self._index = SentenceIndex(blocks)
        self._titles = known

    def of(self, statement: Span) -> list[Span]:
        """One span of every other document that states the same."""
        found = [span for span in self._with_its_figure(statement.quote) if span.document != statement.document]
        found += self.saying(statement.quote, but={statement.document})
        return list({span.document: span for span in reversed(found)}.values())[::-1]

    def saying(self, statement: str, *, but: Collection[str] = ()) -> list[Span]:
        """One sentence of every document, except for some, that says all of a statement and nothing against it."""
        if len(set(parts(statement))) < FEWEST or _POINTS_BACK.match(statement):
            return []
        found: dict[str, Span] = {}
        for bearing in self._index.bearing(statement, LOOKED_AT):
            span = self._at(bearing).span()
            if span.document in found or span.document in but or bearing.share < ALIKE:
                continue
            if is_statement(span.quote) and _told(statement, span.quote) and self._agrees(statement, span):
                found[span.document] = span
        return list(found.values())

    def offered(self, statement: str, limit: int = OFFERED) -> list[Span]:
        """The sentences that bear on a statement most, for one whose own passage does not bear it out. They are
        candidates to be judged like any other, not proof."""
        found = [self._at(bearing) for bearing in self._index.bearing(statement, limit) if bearing.share >= BEARS]
        return [sentence.in_context() for sentence in found if _told(statement, sentence.piece.text)]

    def _note_figure(self, sentence: _Sentence) -> None:
        text = sentence.piece.text
        figure = measure(text) if is_statement(text) else None
        if figure is not None:
            self._by_figure.setdefault(_key(figure), []).append(sentence.span())

    def _with_its_figure(self, statement: str) -> list[Span]:
        figure = measure(statement)
        spans = self._by_figure.get(_key(figure), []) if figure else []
        return [span for span in spans if _told(statement, span.quote) and relate(statement, span.quote) == "same"]

    def _at(self, bearing: Bearing) -> _Sentence:
        return self._read[bearing.block][bearing.sentence]

    def _agrees(self, statement: str, span: Span) -> bool:
        known = self._titles.get(span.document, "").split()
        return not opposed(statement, span.quote) and check(statement, [span.quote], known=known).agrees


def _sentences(passage: Passage) -> list[_Sentence]:
    """Without those that order a model about: they bear nothing out, and nothing is told before or after them."""
    pieces, orders = sentences(passage.text), set(instructions(passage.text))
    return [
        _Sentence(passage, None if before in orders else before, piece)
        for before, piece in zip([None, *pieces], pieces, strict=False)
        if piece not in orders
    ]


def _told(statement: str, sentence: str) -> bool:
    """An order to anybody states nothing; advice may be borne out by the same advice."""
    return is_order(statement) or not is_order(sentence)


def _key(figure: Measure) -> tuple[float, str]:
    return figure.value, figure.unit


_POINTS_BACK = re.compile(r"(?:he|she|it|they|his|her|its|their|this|these|that|those|such|there|here)\b", re.I)
