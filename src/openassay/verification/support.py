"""How likely a document bears a statement out, without a language model: a cross-encoder reads both together.

How it was trained, and on what: docs/decisions/0038 and 0039.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from openassay.protocols import SupportScore
from openassay.text.sentences import split_sentences
from openassay.text.words import stems, words

if TYPE_CHECKING:
    from openassay.protocols import Entailment

# Of the evidence. With 230, for which there is room (384 tokens), a pair takes half as long again (.43 s on two cores)
# and is told apart no better: AUC .81 against .80 on a strong model's claims, .67 and .71 against .69 and .71 on two
# public sets.
MOST_WORDS = 150
# Of the evidence of a sentence that stands in it word for word. Of 39 sentences of articles 37 are supported, with 150
# words 35, and a pair takes .16 s on one core instead of .38 s.
MOST_COPY_WORDS = 60
MOST_SCORES = 20_000  # pairs that are remembered: a claim is judged, and its sentences again
# From the margin of "supported" over the rest to a probability: fitted on 120 statements written by hand and on 588
# claims of a strong model and corruptions of them, true and false weighing alike (docs/decisions/0040).
SLOPE, OFFSET = 0.41, 0.28


SURELY_TWO = -1.0  # the logit of one voice under which two documents are not read in the other order too
COPY = "Quoted: "
# Taken off the margin of a copy: "Myth 1: Vaccines cause autism." stands in its document and would pass on 0. Of
# 89 sentences of speeches, posts and press releases, copied, .09 are then refused (.045 without it).
COPY_DOUBT = 1.0


def mark_copy(statement: str, evidence: str) -> str:
    """Mark a statement that stands in the evidence word for word. Of such a one the question is whether the document
    stands by it; of any other, whether it says so. The verifier learns them apart, because those who write false
    statements keep to the words of a passage, and those who write true ones do not: it would take copies for false."""
    said = " ".join(words(statement))
    return f"{COPY}{statement}" if said and f" {said} " in f" {' '.join(words(evidence))} " else statement


class CrossEncoderScorer:
    """Probabilities that evidence bears a statement out, and that it says otherwise.

    A pair's scores do not depend on the pairs beside it. Evidence may begin with a line that says what document it is.
    """

    def __init__(self, entailment: Entailment) -> None:
        self._entailment = entailment
        self._lock = Lock()
        self._known: OrderedDict[tuple[str, str], SupportScore] = OrderedDict()

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        with self._lock:
            missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
            found = dict.fromkeys(missing, SupportScore(0.0, 0.0))
            asked = [pair for pair in missing if pair[0].strip() and pair[1].strip()]
            shown = [_prepare_pair(*pair) for pair in asked]
            logits = self._entailment.scores(shown).tolist()
            for pair, (statement, _), row in zip(asked, shown, logits, strict=True):
                found[pair] = _score(*row[:3], doubt=COPY_DOUBT if statement.startswith(COPY) else 0.0)
            self._known |= found
            scores = [self._known[pair] for pair in pairs]
            while len(self._known) > MOST_SCORES:
                self._known.popitem(last=False)
            return scores

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """How likely sentences follow from claims, which stand in lines, taken together."""
        asked = [pair for pair in dict.fromkeys(pairs) if pair[0].strip() and pair[1].strip()]
        logits = self._entailment.synthesis_scores([(mark_copy(*pair), pair[1]) for pair in asked]).tolist()
        found = {pair: 1 / (1 + math.exp(-_subtract_others(*row[:3]))) for pair, row in zip(asked, logits, strict=True)}
        return [found.get(pair, 0.0) for pair in pairs]

    def dependence(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """A pair is read in both orders, unless the first reading is sure that they are two."""
        logits = self._entailment.scores(pairs)[:, 3].tolist()
        again = [at for at, value in enumerate(logits) if value >= SURELY_TWO]
        seconds = self._entailment.scores([pairs[at][::-1] for at in again])[:, 3].tolist()
        for at, second in zip(again, seconds, strict=True):
            logits[at] = (logits[at] + second) / 2
        return [1 / (1 + math.exp(-value)) for value in logits]


def _prepare_pair(statement: str, evidence: str) -> tuple[str, str]:
    text = narrow_text(statement, evidence)
    marked = mark_copy(statement, text)
    return marked, text if marked == statement else narrow_text(statement, text, MOST_COPY_WORDS)


def _score(supported: float, refuted: float, neither: float, *, doubt: float) -> SupportScore:
    margin = _subtract_others(supported, refuted, neither)
    chance = 1 / (1 + math.exp(-(SLOPE * (margin - doubt) + OFFSET)))
    return SupportScore(chance, (1 - chance) / (1 + math.exp(neither - refuted)))


def _subtract_others(supported: float, refuted: float, neither: float) -> float:
    """How much likelier supported is than the others together."""
    return supported - max(refuted, neither) - math.log1p(math.exp(-abs(refuted - neither)))


@lru_cache(maxsize=2048)
def _split(text: str) -> tuple[str, ...]:
    return tuple(piece.text for piece in split_sentences(text)) or (text,)


def narrow_text(statement: str, text: str, most: int = MOST_WORDS) -> str:
    """Return the first line and the sentences of a long text that bear on a statement, in their order: chosen one by
    one for the rare words of the statement that they or their neighbours add."""
    if len(text.split()) <= most:
        return text
    pieces = _split(text)
    wanted = set(stems(statement))
    shared = [wanted & set(stems(piece)) for piece in pieces]
    counts = Counter(word for some in shared for word in some)
    rarity = {word: math.log(1 + len(pieces) / count) for word, count in counts.items()}
    worth = [sum(rarity[word] for word in some) for some in shared]
    left, chosen, length = dict(rarity), {0}, len(pieces[0].split())
    while length < most and len(chosen) < len(pieces):
        gains = {}
        for at in range(len(pieces)):
            if at not in chosen:
                beside = max((worth[near] for near in (at - 1, at + 1) if 0 <= near < len(pieces)), default=0.0)
                gains[at] = sum(left[word] for word in shared[at]) + 0.25 * worth[at] + 0.2 * beside
        best = max(gains, key=gains.__getitem__)
        chosen.add(best)
        length += len(pieces[best].split())
        for word in shared[best]:
            left[word] *= 0.3
    return "\n".join(pieces[at] for at in sorted(chosen))
