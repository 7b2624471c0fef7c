"""What a judge reads of a document: the quotes in their surroundings, under what the document says of itself.

A quote alone has no date, and "the court", "she" and "the measure" name nothing in it; and what it says may be what the
next sentence refutes.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from openassay.models.evidence import Claim, Document, QuoteSpan
from openassay.text.injection import find_instructions
from openassay.text.sentences import TextSpan, is_table_row, split_sentences
from openassay.text.words import STOP_WORDS, stems, words
from openassay.verification.figures import check_figures, find_numbers_by_day
from openassay.verification.names import check_names
from openassay.verification.polarity import StatementProblem, check_polarity
from openassay.verification.statement_check import check_statement, extract_numbers
from openassay.verification.wording import check_word_order, check_wording, find_copied_sentence

MOST_WORDS = 230  # of the text; what the cross-encoder reads, and about 300 tokens for a language model
REACH = 2_000  # characters on either side of a quote in which its neighbours are looked for
LEAD = 1_500  # characters at the beginning of a document: how it begins
MOST_NAMING = 60  # words of a sentence that names something
MOST_ADDED = 3  # sentences that are shown to the reader besides the quotes
# Stems of a statement that its context lacks and a sentence elsewhere in the document has: it bears on it. A figure
# counts twice; of a statement of a few words two will do.
BEARING, BEARING_SHORT, FEW_STEMS = 3, 2, 8
QUOTED = 0.5  # words that a quote is ahead of a sentence nobody quoted
LONGEST = 50_000  # characters of a document in which a name is looked for
LONGEST_AUTHOR = 80  # characters
VOICE_WORDS, OPENING_WORDS, CLOSING_WORDS = 130, 50, 25  # by which two documents are compared
GAP, NEIGHBOURS = "\n…\n", 4  # stands where sentences are left out; characters between two that follow each other


class EvidenceContext(NamedTuple):
    """Sentences of one document around its quotes."""

    document: str
    spans: tuple[QuoteSpan, ...]
    head: str  # title | publisher | author | date
    pieces: tuple[TextSpan, ...]  # in their order; the quotes are among them
    published: date | None = None
    whole: str = ""  # the document's text
    author: str = ""
    publisher: str = ""

    @property
    def text(self) -> str:
        parts, last, is_row = list[str](), 0, False
        for piece in self.pieces:
            apart = piece.start - last  # more than one character between two: another line
            is_line = apart > 1 or is_row or is_table_row(piece.text)
            parts += [GAP if apart > NEIGHBOURS else "\n" if is_line else " ", piece.text]
            last, is_row = piece.end, is_table_row(piece.text)
        return "".join(parts[1:])

    def render(self) -> str:
        return f"{self.head}\n{self.text}" if self.head else self.text

    def add_names(self, statement: str) -> "EvidenceContext":
        """With the first sentences of the document that have names of a statement which the context lacks: "the
        hospital" of a paper is named once, in its methods."""
        known = set(words(f"{self.text} {self.head}"))
        told = {word for name in statement.split()[1:] if name[:1].isupper() for word in words(name)} - known
        added = list[TextSpan]()
        for piece in _split(self.whole, 0, LONGEST) if told else ():
            if len(added) < MOST_ADDED and len(piece.text.split()) <= MOST_NAMING and told & set(words(piece.text)):
                told -= set(words(piece.text))
                added.append(piece)
        pieces = sorted({*self.pieces, *added}, key=lambda piece: piece.start)
        return self._replace(pieces=tuple(pieces)) if added else self

    def add_bearing(self, statement: str) -> "EvidenceContext":
        """With the sentences of the document that have most of a statement's words which the context lacks: who wrote
        it had read more than the quotes."""
        wanted = set(stems(statement)) - STOP_WORDS
        missing = wanted - set(stems(f"{self.text} {self.head}"))
        least = BEARING_SHORT if len(wanted) < FEW_STEMS else BEARING

        def count(said: set[str]) -> int:
            return sum(1 + word.isdigit() for word in missing & said)

        places = {piece.start for piece in self.pieces}
        left = [(piece, set(stems(piece.text))) for piece in _split(self.whole, 0, LONGEST)] if missing else []
        left = [(piece, said) for piece, said in left if piece.start not in places and count(said) >= least]
        added = list[TextSpan]()
        while left and len(added) < MOST_ADDED:
            best, said = max(left, key=lambda one: count(one[1]))
            if count(said) < least:
                break
            missing -= said
            added.append(best)
            left.remove((best, said))
        pieces = sorted({*self.pieces, *added}, key=lambda piece: piece.start)
        return self._replace(pieces=tuple(pieces)) if added else self

    def render_voice(self) -> str:
        """How the document begins and ends, what it quotes from, and who made it: what tells whose voice it is."""
        text = self.whole.split()
        if len(text) > VOICE_WORDS:
            quotes = " ".join(span.quote for span in self.spans).split()
            text = [
                *text[:OPENING_WORDS],
                "…",
                *quotes[: VOICE_WORDS - OPENING_WORDS - CLOSING_WORDS],
                "…",
                *text[-CLOSING_WORDS:],
            ]
        return f"{self.head}\n{' '.join(text)}"

    def find_objections(self, statement: str, *, weak: bool = False) -> list[StatementProblem]:
        """Find what is certain to be wrong in a statement that copies a sentence but for a word or two: what was
        exchanged in it. After a `weak` judge, the embedded one, figures, dates and names of a free wording that its
        document does not have count as well; a language model may have worked a figure out.

        Of 196 true claims of a strong model on 341 papers and 982 press releases figures object to .5% and names to
        1%; of the same claims with a figure, a date or a name exchanged to .62, .65 and .57."""
        copied = find_copied_sentence(statement, [piece.text for piece in self.pieces], kept=0)
        if statement == copied:
            return []
        known = self.head.replace("|", " ").split()
        names = [self.text, self.head, self.whole[:LONGEST]]  # a surname stands for the name that is given elsewhere
        told = [self.text, self.head]
        if copied is not None:
            return [
                *check_figures(statement, told, self.published, strict=True),
                *check_names(statement, names, known, strict=True),
                *check_word_order(statement, [copied]),
                *(problem for problem in self._find_opposition(statement) if problem.kind in OPPOSED),
            ]
        if weak:
            return [
                *check_figures(statement, told, self.published),
                *check_names(statement, names, known, strict=False),
            ]
        return []

    def _find_opposition(self, statement: str) -> Iterator[StatementProblem]:
        """A "not" counts only where it stands among the words that were copied: it may be another clause's."""
        copied = find_copied_sentence(statement, [piece.text for piece in self.pieces], kept=0)
        return check_polarity(statement, [keep_copied_clauses(statement, copied)] if copied else [statement])

    def find_differences(self, statement: str) -> tuple[StatementProblem, ...]:
        """Find what in a statement may not be borne out, for a reader of a refusal."""
        known = self.head.replace("|", " ").split()
        return check_statement(statement, [self.text, self.head], known, self.published).problems


PUNCTUATION = ".,;:!?()[]'\"“”‘’"
SHORT_GAP = 4  # words; of what was left out, a longer stretch is a clause of its own


def keep_copied_clauses(statement: str, sentence: str) -> str:
    """A sentence without the stretches that a statement which copies it leaves out."""
    said, there = statement.split(), sentence.split()
    ours, theirs = ([word.lower().strip(PUNCTUATION) for word in some] for some in (said, there))
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    kept, last = list[str](), 0
    for _, start, size in matcher.get_matching_blocks():
        if size or start == len(there):
            kept += there[last:start] if start - last <= SHORT_GAP else []
            kept += there[start : start + size]
            last = start + size
    return " ".join(kept)


OPPOSED = frozenset({"negation", "direction"})


def describe_document(document: Document) -> str:
    """What a document says of itself in a line."""
    published = document.published.isoformat() if document.published else ""
    place = document.publisher or document.host
    return " | ".join(part for part in (document.title, place, tell_author(document), published) if part)


def tell_author(document: Document) -> str:
    """Who wrote it; empty where what stands there is no name."""
    author = " ".join((document.author or "").split())
    return author if len(author) <= LONGEST_AUTHOR and not find_instructions(author) else ""


def read_context(document: Document, spans: Sequence[QuoteSpan], most: int = MOST_WORDS) -> EvidenceContext:
    """Take in the quotes, then their neighbours, nearest first, then how the document begins, while there is room."""
    text = document.text
    spans = [take_whole_row(text, span) for span in spans]
    chosen: dict[int, TextSpan] = {}
    length = 0
    around: list[tuple[int, int, TextSpan]] = []  # how far from a quote, and the sentence
    for number, span in enumerate(spans):
        if any(span.start < other.end and other.start < span.end for other in chosen.values()):
            continue
        chosen[span.start] = TextSpan(span.start, span.end, span.quote)
        length += len(span.quote.split())
        # Of a stretch that begins or ends anywhere, the sentence there is not whole.
        before = _split(text, max(0, span.start - REACH), span.start)[int(span.start > REACH) :]
        after = _split(text, span.end, span.end + REACH)
        after = after[: len(after) - (span.end + REACH < len(text))]
        around += [(2 * far + 1, number, piece) for far, piece in enumerate(reversed(before))]
        around += [(2 * far, number, piece) for far, piece in enumerate(after)]
    lead = _split(text, 0, LEAD)[:2]
    around += [(5, len(spans), piece) for piece in lead]
    for _, _, piece in sorted(around, key=lambda item: item[:2]):
        size = len(piece.text.split())
        overlaps = any(piece.start < other.end and other.start < piece.end for other in chosen.values())
        if not overlaps and length + size <= most:
            chosen[piece.start] = piece
            length += size
    return EvidenceContext(
        document.hash,
        tuple(spans),
        describe_document(document),
        tuple(chosen[start] for start in sorted(chosen)),
        document.published,
        text,
        document.author or "",
        document.publisher or "",
    )


def take_whole_row(text: str, span: QuoteSpan) -> QuoteSpan:
    """A quote of part of a table's row up to the end of the row, which names its table and its company."""
    first, last = text.rfind("\n", 0, span.start) + 1, text.find("\n", span.end)
    last = last if last >= 0 else len(text)
    if "\n" in span.quote or last == span.end or not is_table_row(text[first:last]):
        return span
    return span.model_copy(update={"end": last, "quote": text[span.start : last]})


@lru_cache(maxsize=256)
def _split(text: str, start: int, end: int) -> tuple[TextSpan, ...]:
    """The sentences of a stretch; those that order a model about are nobody's context."""
    orders = {piece.text for piece in find_instructions(text[start:end])}
    return tuple(piece for piece in split_sentences(text, start, min(len(text), end)) if piece.text not in orders)


def find_needed_sentences(statement: str, context: EvidenceContext) -> list[QuoteSpan]:
    """Return the sentences that bear a statement out, its quotes before others: each has figures, names or words of it
    that those before it lack."""
    figures = set(extract_numbers(statement, worded=False))
    names = {word for name in statement.split() if name[:1].isupper() for word in words(name)}
    content, chosen = set(stems(statement)), list[QuoteSpan]()
    quotes = {span.start for span in context.spans}
    left = [
        QuoteSpan(document=context.document, start=piece.start, end=piece.end, quote=piece.text)
        for piece in context.pieces
    ]
    while left and len(chosen) < len(quotes) + MOST_ADDED:
        worth = {
            span: 3 * len(figures & extract_numbers(span.quote, worded=True))
            + 2 * len(names & set(words(span.quote)))
            + len(content & set(stems(span.quote)))
            + (QUOTED if span.start in quotes else -QUOTED)
            for span in left
        }
        best = max(worth, key=worth.__getitem__)
        if worth[best] <= QUOTED:
            break
        left.remove(best)
        chosen.append(best)
        figures -= extract_numbers(best.quote, worded=True)
        names -= set(words(best.quote))
        content -= set(stems(best.quote))
    chosen += find_figures(statement, context, figures)
    return chosen or list(context.spans)


def find_figures(statement: str, context: EvidenceContext, figures: set[float]) -> list[QuoteSpan]:
    """Return sentences anywhere in a document that have figures of a statement, those with most of its words first:
    "Flight 200" is what a report calls it once, and a value of a table is far from what is said of it."""
    content, chosen = set(stems(statement)), list[QuoteSpan]()
    pieces = _split(context.whole, 0, LONGEST) if figures else ()
    holding = [piece for piece in pieces if figures & extract_numbers(piece.text, worded=True)]
    for piece in sorted(holding, key=lambda piece: -len(content & set(stems(piece.text)))):
        if found := figures & extract_numbers(piece.text, worded=True):
            chosen.append(QuoteSpan(document=context.document, start=piece.start, end=piece.end, quote=piece.text))
            figures = figures - found
    return chosen


def find_gaps(claim: Claim, contexts: Sequence[EvidenceContext]) -> Iterator[str]:
    """Say what keeps a claim from being published though it may be true: figures that stand neither in its spans nor
    in what its documents say of themselves, or hardly a word in common. A reader, and any program, looks for them
    there."""
    told = [item.value for item in claim.context]
    quotes = "\n".join(span.quote for span in claim.spans)
    missing = set(extract_numbers(claim.text, worded=False) - extract_numbers("\n".join([quotes, *told]), worded=True))
    for found in contexts:
        missing -= find_numbers_by_day(claim.text, quotes, found.published) if found.published else set()
    if missing:
        yield f"{', '.join(f'{number:.15g}' for number in sorted(missing))} is not spelled so in the quoted passage"
    elif all(any(_find_wrong_figures(claim.text, [quotes, one.text, one.head], one.published)) for one in contexts):
        yield from _find_wrong_figures(claim.text, [quotes], contexts[0].published)
    yield from (problem.text for problem in check_wording(claim.text, [quotes]))


# "The third annual message" is a title, and whether a thing is the third of its kind is a judge's to say.
_RANK = re.compile(r"the figure (?:first|second|third|[a-z-]+th|\d+(?:st|nd|rd|th))\b", re.I)


def _find_wrong_figures(text: str, quotes: Sequence[str], published: date | None) -> Iterator[str]:
    problems = check_figures(text, quotes, published)
    yield from (problem.text for problem in problems if not _RANK.match(problem.text))
