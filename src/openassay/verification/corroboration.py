"""Finds the sentences that support a statement, and other sources that say the same.

By benchmarks/bench_evidence.py, of the sentences people found to support a claim the five chosen here hold .88, the
five best by BM25 .83. MiniLM's cosine was tried beside the words and found less (at .2 .003, at .6 .008).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from openassay.models.evidence import Passage, QuoteSpan
from openassay.text.injection import find_instructions, is_order
from openassay.text.negation import are_opposite
from openassay.text.relations import find_main_figure, relate
from openassay.text.sentences import TextSpan, is_statement, split_sentences
from openassay.text.words import STOP_WORDS, content_words, stem, words
from openassay.verification.statement_check import check_statement

# Reasons are recall at five on WiCE, .880 as it stands (halves .873 and .887). Constants drawn at random and chosen on
# one half find .870 on the other.
SATURATION, LENGTH = 0.7, 0.3  # BM25's k1 and b: at 1.2 and .75 short headings win, .03 less
BEFORE, AFTER = 0.4, 0.2  # of the neighbours' words: "he" is whom the sentence before names; without them .02 less
TITLED = 0.1  # of the title's words, for every sentence below it; 0 found .003 less among many documents
FIGURE, NAME = 1.6, 1.3  # times a plain word; 1 and 1 found .01 less
FRAGMENT = 0.85  # of a sentence's worth, for a heading or a line of a menu; 1 found .006 less
ADDED = 0.75  # for what no sentence chosen before has; 0 found .01 less, 2 .01 to .02 less
POOL = 30  # sentences that are weighed against each other; 15 found as much

WordShares = dict[str, float]  # how much of each word of a statement a sentence holds


class SentenceBlock(NamedTuple):
    """Consecutive sentences of one document."""

    sentences: Sequence[str]
    title: str = ""


class SentenceMatch(NamedTuple):
    block: int
    sentence: int
    share: float  # of the statement's words, by weight, that stand in the sentence itself


class SentenceIndex:
    """Sentences found by their words: those that share none with a statement are never looked at."""

    def __init__(self, blocks: Sequence[SentenceBlock]) -> None:
        self._places = [(b, s) for b, block in enumerate(blocks) for s in range(len(block.sentences))]
        self._titles = [frozenset(stem_parts(block.title)) for block in blocks]
        self._lengths: list[int] = []
        self._completeness: list[float] = []
        self._holders: dict[str, dict[int, int]] = defaultdict(dict)
        for number, text in enumerate(text for block in blocks for text in block.sentences):
            words = stem_parts(text)
            self._lengths.append(len(words))
            # A sentence, not a heading nor a line of a menu.
            whole = len(text.split()) >= 5 and text.rstrip().endswith(_ENDS)
            self._completeness.append(1.0 if whole else FRAGMENT)
            for word, count in Counter(words).items():
                self._holders[word][number] = count
        self._average = max(1.0, sum(self._lengths) / max(1, len(self._lengths)))

    def search(self, statement: str, limit: int) -> list[SentenceMatch]:
        """Return the best sentences, each chosen for what it holds and for what those before it lack."""
        # Rarer words weigh more, together 1; names are words with a capital, but for the first, which any sentence has.
        names = {stem(word) for name in _CAPITALISED.findall(statement) for word in content_words(name)}
        weights: dict[str, float] = {}
        for word in dict.fromkeys(stem_parts(statement)):
            count = len(self._holders.get(word, ()))
            kind = FIGURE if any(letter.isdigit() for letter in word) else NAME if word in names else 1.0
            weights[word] = kind * log(1 + (len(self._places) - count + 0.5) / (count + 0.5))
        whole = sum(weights.values())
        weights = {word: weight / whole for word, weight in weights.items()}
        own: dict[int, WordShares] = defaultdict(dict)
        for word in weights:
            for number, count in self._holders.get(word, {}).items():
                norm = SATURATION * (1 - LENGTH + LENGTH * self._lengths[number] / self._average)
                own[number][word] = count * (SATURATION + 1) / (count + norm)
        # What a sentence holds, and less of what only its neighbours and the title hold.
        held: dict[int, WordShares] = {}
        for number in own:
            block = self._places[number][0]
            shares = {word: TITLED for word in self._titles[block] if word in weights}
            for near, part in ((number + 1, AFTER), (number - 1, BEFORE)):
                if 0 <= near < len(self._places) and self._places[near][0] == block:
                    for word, much in own.get(near, {}).items():
                        shares[word] = max(shares.get(word, 0.0), part * much)
            held[number] = {**shares, **own[number]}
        worth = {
            number: self._completeness[number] * sum(weights[word] * much for word, much in words.items())
            for number, words in held.items()
        }
        pool = sorted(worth, key=lambda number: (-worth[number], number))[:POOL]
        left = dict(weights)
        chosen: list[SentenceMatch] = []
        while pool and len(chosen) < limit:
            total = dict(worth)
            for number in pool:
                gain = sum(left[word] * min(1.0, much) for word, much in held[number].items())
                total[number] += ADDED * self._completeness[number] * gain
            best = max(pool, key=total.__getitem__)
            pool.remove(best)
            left = {word: weight * (1 - min(1.0, own[best].get(word, 0.0))) for word, weight in left.items()}
            chosen.append(SentenceMatch(*self._places[best], share=sum(weights[word] for word in own[best])))
        return chosen


_JOINT = re.compile(r"[-.&'’]")
_CAPITALISED = re.compile(r"(?<!^)\b[A-Z][\w'’.-]*")
_ENDS = (".", "!", "?", ":", '"', "”", "’", "'", ")", "。")


def find_best_sentences(statement: str, sentences: Sequence[str], limit: int = 5) -> list[int]:
    """Return the places of the sentences of one document that bear on a statement most, best first."""
    return [found.sentence for found in SentenceIndex([SentenceBlock(sentences)]).search(statement, limit)]


def stem_parts(text: str) -> list[str]:
    """Stem the content words, and the words that a compound is made of: "top-earning" is "earning" too."""
    found = []
    for word in content_words(text):
        found.append(stem(word))
        pieces = _JOINT.split(word)
        if len(pieces) > 1:
            found += [stem(piece) for piece in pieces if len(piece) > 1 and piece not in STOP_WORDS]
    return found


# Of a statement's words by weight, for a sentence to say the same; its figures, names and negation must agree as well.
# On FEVER-symmetric, made so that words cannot tell, 96% of those that pass support the claim (.8: 90%, .7: 82%).
EQUIVALENT_SHARE = 0.9
FEWEST = 3  # distinct words, below which a statement may be of anything
LOOKED_AT = 12  # sentences for each statement
# Of a statement's words, to be offered: on WiCE 80% of those are what people chose (.2: 73%, .5: 95% of few).
LEAST_SHARE = 0.3
MOST_CANDIDATES = 2
# Of a statement's words, to speak of its matter: sentences that deny one in other words have .3 of them.
LEAST_NEAR = 0.15
SHORTEST = 5  # words of a sentence that is understood alone: "No one died." is not


class NearbyStatement(NamedTuple):
    """A sentence that speaks of the matter of a statement, with its neighbour where it cannot be understood alone."""

    span: QuoteSpan
    added: str  # what it says besides the statement itself


class _PassageSentence(NamedTuple):
    passage: Passage
    before: TextSpan | None
    piece: TextSpan

    def span(self, start: int | None = None) -> QuoteSpan:
        begin = self.piece.start if start is None else start
        return QuoteSpan(
            document=self.passage.document,
            start=self.passage.start + begin,
            end=self.passage.start + self.piece.end,
            quote=self.passage.text[begin : self.piece.end],
        )

    def span_in_context(self, fewest: int = 0) -> QuoteSpan:
        """With the sentence before where this one only points back to whom it is about, or has too few words."""
        text = self.piece.text
        alone = not _POINTS_BACK.match(text) and len(text.split()) >= fewest
        return self.span(self.before.start if self.before and not alone else None)


class CorroborationIndex:
    """The sentences of all passages read. `titles`, by document, tell what its sentences need not repeat."""

    def __init__(self, passages: Iterable[Passage], titles: Mapping[str, str] | None = None) -> None:
        self._titles = titles or {}
        self._by_figure: dict[tuple[float, str], list[QuoteSpan]] = {}
        self._read: list[list[_PassageSentence]] = []
        for passage in passages:
            # Sentences that order a model about support nothing, and are no context of those beside them.
            pieces, orders = split_sentences(passage.text), set(find_instructions(passage.text))
            read = [
                _PassageSentence(passage, None if before in orders else before, piece)
                for before, piece in zip([None, *pieces], pieces, strict=False)
                if piece not in orders
            ]
            self._read.append(read)
            for sentence in read:
                text = sentence.piece.text
                if figure := find_main_figure(text) if is_statement(text) else None:
                    self._by_figure.setdefault((figure.value, figure.unit), []).append(sentence.span())
        self._index = SentenceIndex(
            [
                SentenceBlock(
                    [sentence.piece.text for sentence in read],
                    self._titles.get(read[0].passage.document, "") if read else "",
                )
                for read in self._read
            ]
        )

    def find_corroboration(self, statement: QuoteSpan) -> list[QuoteSpan]:
        """Return one span of every other document that states the same."""
        figure = find_main_figure(statement.quote)
        found = [
            span
            for span in (self._by_figure.get((figure.value, figure.unit), ()) if figure else ())
            if span.document != statement.document
            and _can_corroborate(statement.quote, span.quote)
            and relate(statement.quote, span.quote) == "same"
        ]
        found += self.find_equivalents(statement.quote, but={statement.document})
        return list({span.document: span for span in reversed(found)}.values())[::-1]

    def find_equivalents(self, statement: str, *, but: Collection[str] = ()) -> list[QuoteSpan]:
        """Return one sentence of every document, except for some, that says all of a statement and nothing against
        it."""
        if len(set(stem_parts(statement))) < FEWEST or _POINTS_BACK.match(statement):
            return []
        found: dict[str, QuoteSpan] = {}
        for match in self._index.search(statement, LOOKED_AT):
            span = self._read[match.block][match.sentence].span()
            if span.document in found or span.document in but or match.share < EQUIVALENT_SHARE:
                continue
            known = self._titles.get(span.document, "").split()
            if (
                is_statement(span.quote)
                and _can_corroborate(statement, span.quote)
                and not are_opposite(statement, span.quote)
                and check_statement(statement, [span.quote], known=known).agrees
            ):
                found[span.document] = span
        return list(found.values())

    def find_candidates(self, statement: str, limit: int = MOST_CANDIDATES) -> list[QuoteSpan]:
        """Return the sentences that bear on a statement most, for one whose own passage does not support it. They are
        candidates to be judged like any other, not proof."""
        found = [
            self._read[match.block][match.sentence]
            for match in self._index.search(statement, limit)
            if match.share >= LEAST_SHARE
        ]
        return [sentence.span_in_context() for sentence in found if _can_corroborate(statement, sentence.piece.text)]

    def find_nearby(self, statement: str) -> list[NearbyStatement]:
        """Return what is said elsewhere of the matter of a statement, best first: sentences that are not the statement
        itself, and after one that is, what it is followed by: "Boiling removes lead. Wrong: metals stay behind."."""
        if _POINTS_BACK.match(statement):
            return []  # nobody knows whom it speaks of
        said, found = _plain(statement), dict[tuple[str, int], NearbyStatement]()
        for match in self._index.search(statement, LOOKED_AT):
            read = self._read[match.block]
            sentence = read[match.sentence]
            behind = read[match.sentence + 1] if match.sentence + 1 < len(read) else None
            behind = behind if behind and behind.before == sentence.piece and _leans_back(behind.piece.text) else None
            is_one_line = behind and "\n" not in behind.span(sentence.piece.start).quote
            if behind and is_one_line and match.share >= LEAST_NEAR and _plain(behind.piece.text) not in said:
                span = behind.span(sentence.piece.start)
                found.setdefault((span.document, span.end), NearbyStatement(span, behind.piece.text))
            own = _plain(sentence.piece.text)
            if match.share < LEAST_NEAR or own in said or said in own:
                continue
            span = sentence.span_in_context(SHORTEST)
            span = sentence.span() if "\n" in span.quote else span  # a heading is no sentence before
            if is_statement(span.quote):
                found.setdefault((span.document, span.end), NearbyStatement(span, sentence.piece.text))
        return list(found.values())


def _plain(text: str) -> str:
    """The words of a text, to tell whether one stands in another."""
    return f" {' '.join(words(text))} "


def _leans_back(text: str) -> bool:
    """Whether a sentence says nothing without the one before it."""
    return bool(_POINTS_BACK.match(text) or _REPLIES.match(text)) or len(text.split()) < SHORTEST


def _can_corroborate(statement: str, sentence: str) -> bool:
    """An order to anybody states nothing; advice may be supported by the same advice."""
    return is_order(statement) or not is_order(sentence)


_REPLIES = re.compile(
    r"(?:no|not|nobody|none|never|nothing|wrong|false|untrue|incorrect|nonsense|fact|in (?:fact|reality|truth)|"
    r"actually|rather|instead|on the contrary)\b",
    re.I,
)
_POINTS_BACK = re.compile(r"(?:he|she|it|they|his|her|its|their|this|these|that|those|such|there|here)\b", re.I)
