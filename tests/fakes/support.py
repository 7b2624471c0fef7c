"""A scorer for tests of the machinery: it counts words, at no cost."""

from collections.abc import Sequence

from openassay.protocols import SupportScore
from openassay.text.negation import has_negation
from openassay.text.words import stems


class WordScorer:
    """Evidence bears out a statement whose words it has."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        return [self._score(*pair) for pair in pairs]

    def follows(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [one.supported for one in self.scores(pairs)]

    def dependence(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [0.0 for _ in pairs]

    def _score(self, statement: str, evidence: str) -> SupportScore:
        said = set(stems(statement))
        share = len(said & set(stems(evidence))) / len(said) if said and evidence.strip() else 0.0
        denied = has_negation(statement) and not has_negation(evidence)
        supported = max(0.0, min(1.0, 2.5 * share - 1.25)) * (0.4 if denied else 1.0)
        return SupportScore(supported, 0.0)
