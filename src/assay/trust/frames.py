"""Sentences that speak of the research and not of the world. One that is bound to no claim may be nothing else."""

import re
from collections.abc import Sequence

from assay.trust.figures import check

_FIGURE = re.compile(r"\d[\d.,]*")
_COUNTS = 100  # figures up to here may count sources, rounds or statements


class Told:
    """What is known without a source: the question, the plan and the titles."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._text = "\n".join(texts)
        self._figures = _figures(self._text)

    def covers(self, sentence: str) -> bool:
        """Whether the sentence has no figure and no name of its own. It may still be false; it is no statement
        that a reader could take for a finding with a source behind it."""
        own = {figure for figure in _figures(sentence) if not (figure.isdigit() and int(figure) <= _COUNTS)}
        if own - self._figures:
            return False
        return not any(problem.kind == "name" for problem in check(sentence, [self._text]).problems)


def _figures(text: str) -> set[str]:
    return {match.rstrip(".,") for match in _FIGURE.findall(text)}
