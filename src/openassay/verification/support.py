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
from openassay.text.words import stems
from openassay.verification.wording import find_copied_sentence

if TYPE_CHECKING:
    from openassay.protocols import Entailment

MOST_WORDS = 230  # of the evidence; the cross-encoder reads 320 tokens of both texts
MOST_SCORES = 20_000  # pairs that are remembered: a claim is judged, and its sentences again
# From the margin of "supported" over the rest to a probability, fitted on statements the model had not seen.
SLOPE, OFFSET = 1.0, 0.0


# A statement that copies a sentence of the evidence is borne out by it. The model is not asked: it mistrusts a copy,
# since those who wrote false statements for it to learn from kept to the words of their passage, and those who wrote
# true ones did not. Whether the rest of the document refutes the sentence ("Myth 1: ...") it cannot tell well enough:
# asked that, it also took other measurements of the same thing for a refutation.
COPIED = 0.9


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
            readable = [pair for pair in missing if pair[0].strip() and pair[1].strip()]
            copies = {pair for pair in readable if find_copied_sentence(pair[0], _split(pair[1]))}
            found |= dict.fromkeys(copies, SupportScore(COPIED, 0.0))
            asked = [pair for pair in readable if pair not in copies]
            logits = self._entailment.scores([(said, narrow_text(said, text)) for said, text in asked])
            found |= {pair: _score(*row) for pair, row in zip(asked, logits.tolist(), strict=True)}
            self._known |= found
            scores = [self._known[pair] for pair in pairs]
            while len(self._known) > MOST_SCORES:
                self._known.popitem(last=False)
            return scores


def _score(supported: float, refuted: float, neither: float) -> SupportScore:
    others = max(refuted, neither) + math.log1p(math.exp(-abs(refuted - neither)))
    chance = 1 / (1 + math.exp(-(SLOPE * (supported - others) + OFFSET)))
    return SupportScore(chance, (1 - chance) / (1 + math.exp(neither - refuted)))


@lru_cache(maxsize=2048)
def _split(text: str) -> tuple[str, ...]:
    return tuple(piece.text for piece in split_sentences(text)) or (text,)


def narrow_text(statement: str, text: str) -> str:
    """Return the first line and the sentences of a long text that bear on a statement, in their order: chosen one by
    one for the rare words of the statement that they or their neighbours add."""
    if len(text.split()) <= MOST_WORDS:
        return text
    pieces = _split(text)
    wanted = set(stems(statement))
    shared = [wanted & set(stems(piece)) for piece in pieces]
    counts = Counter(word for words in shared for word in words)
    rarity = {word: math.log(1 + len(pieces) / count) for word, count in counts.items()}
    worth = [sum(rarity[word] for word in words) for words in shared]
    left, chosen, length = dict(rarity), {0}, len(pieces[0].split())
    while length < MOST_WORDS and len(chosen) < len(pieces):
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
