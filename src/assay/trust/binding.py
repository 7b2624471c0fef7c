"""Which claims bear a sentence out: those it names, or, where the writer named the wrong ones, those that say it."""

import re
from collections.abc import Iterable, Mapping, Sequence

from assay.model.claim import Claim, Verdict
from assay.text.words import stems
from assay.trust.figures import check
from assay.trust.wording import grounded, share

CANDIDATES = 4  # claims that are tried where those named do not bear a sentence out
ELSEWHERE = 0.6  # of its words; a sentence that has more of them in the claim it names speaks of that claim
IDLE = 0.25  # of a sentence's words; a claim that has fewer, where others have the rest, is not what it rests on
WORD_FOR_WORD = 0.9  # of its words; a claim that a sentence does not name must have almost all of them
# What points at something said before is understood only beside its own claim.
_POINTS = re.compile(r"(?:this|that|these|those|it|its|he|she|his|her|they|their|such|there)\b", re.I)
SOMEWHERE = "There, "  # stands for a source that was named: what follows does not begin the sentence
_ATTRIBUTED = re.compile(r"^(?:according to|as reported by|as stated in) ([^,]{2,120}), (?=\S)", re.I)
_SOME_SOURCE = re.compile(
    r"(?:the|this|that|its|one|a) (?:\w+ )?(?:source|report|article|study|document|page|filing|author)s?", re.I
)
_SAYING = re.compile(
    r"\b(?:according|say|says|said|state[ds]?|report(?:s|ed)|told|tells|writes|wrote|announced|found|claim(?:s|ed)|shows?)\b",
    re.I,
)


class Binding:
    """The supported claims of a run. `titles` are the documents' by hash: a sentence may say where it is from."""

    def __init__(self, claims: Iterable[Claim], titles: Mapping[str, str]) -> None:
        self._claims = {claim.id: claim for claim in claims if claim.verdict is Verdict.SUPPORTED and claim.spans}
        self._stems = {name: set(stems(claim.text)) for name, claim in self._claims.items()}
        self._titles = titles

    def named(self, names: Iterable[str]) -> tuple[Claim, ...]:
        return tuple(self._claims[name] for name in dict.fromkeys(names) if name in self._claims)

    def bears(self, text: str, bound: Sequence[Claim]) -> bool:
        """Whether every check holds of the sentence against what these claims say and quote."""
        if not bound:
            return False
        said, passages = self._unattributed(text, bound), _passages(bound)
        if said.removeprefix(SOMEWHERE) in passages:
            return True
        return _says_so(said, passages) and grounded(said, passages) and check(said, passages).agrees

    def found(self, text: str, names: Sequence[str]) -> tuple[Claim, ...]:
        """The claims that bear the sentence out, those named before others; none where no claim does."""
        bound = self.named(names)
        if self.bears(text, bound):
            return self._needed(text, bound)
        # What speaks of the claim named and says it wrongly is not what another claim says.
        if (bound and share(text, _passages(bound)) >= ELSEWHERE) or _POINTS.match(text):
            return ()
        return next(((claim,) for claim in self._nearest(text) if self.bears(text, [claim])), ())

    def _needed(self, text: str, bound: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """Without those that have nothing to do with it: they would lend it citations."""
        if len(bound) == 1:
            return bound
        kept = tuple(claim for claim in bound if share(text, _passages([claim])) >= IDLE)
        return kept if len(kept) == len(bound) or self.bears(text, kept) else bound

    def _nearest(self, text: str) -> list[Claim]:
        said = set(stems(text))
        ranked = sorted(self._stems, key=lambda name: -len(said & self._stems[name]))
        nearest = [self._claims[name] for name in ranked[:CANDIDATES]]
        return [
            claim for claim in nearest if share(self._unattributed(text, [claim]), _passages([claim])) >= WORD_FOR_WORD
        ]

    def _unattributed(self, text: str, bound: Sequence[Claim]) -> str:
        """Without "According to …," where that is a source of these claims, or no source in particular."""
        match = _ATTRIBUTED.match(text)
        # A figure of a sentence has to stand in its spans, and a title does not.
        if not match or text in _passages(bound) or any(character.isdigit() for character in match[1]):
            return text
        titles = {self._titles.get(span.document, "") for claim in bound for span in claim.spans}
        if not _SOME_SOURCE.fullmatch(match[1]) and match[1] not in titles:
            return text
        return SOMEWHERE + text[match.end() :]


def _says_so(text: str, passages: Sequence[str]) -> bool:
    """A sentence that is attributed to somebody wants a passage that attributes something to them."""
    match = _ATTRIBUTED.match(text)
    if not match:
        return True
    whom = set(stems(match[1]))
    return any(whom <= set(stems(passage)) and _SAYING.search(passage) for passage in passages)


def _passages(bound: Sequence[Claim]) -> list[str]:
    """What a sentence may draw on: the quotes, and the claims themselves, which name what a quote calls "it"."""
    return [*(span.quote for claim in bound for span in claim.spans), *(claim.text for claim in bound)]
