"""Which of the facts somebody wants remembered bear on a question."""

import re
from collections import Counter
from collections.abc import Sequence
from math import log

from assay.model.memory import Fact
from assay.text.words import stems

GENERAL = 1.5  # what a fact about the person is worth for any question: a word that every third or fourth fact has
_ABOUT_ONESELF = re.compile(
    r"^\W*(?:i|ich|je|yo)\b|\b(?:we|my|our|always|never|wir|mein\w*|unser\w*|immer|nie|nous|notre|toujours|jamais"
    r"|nosotros|nuestr[oa]s?|siempre|nunca)\b",
    re.I,
)


def related(facts: Sequence[Fact], question: str) -> list[Fact]:
    """Those that share a word with a question, the rarer among the facts the better, and those about the person, which
    bear on everything; of equals the newest first."""
    said = {fact.id: set(stems(fact.text)) for fact in facts}
    common = Counter(word for words in said.values() for word in words)
    asked = set(stems(question))

    def worth(fact: Fact) -> float:
        shared = sorted(asked & said[fact.id])
        general = GENERAL if _ABOUT_ONESELF.search(fact.text) else 0.0
        return round(general + sum(log(1 + len(facts) / common[word]) for word in shared), 9)

    counting = [fact for fact in facts if worth(fact) > 0]
    return sorted(counting, key=lambda fact: (-worth(fact), -number(fact)))


def number(fact: Fact) -> int:
    return int(fact.id[1:])
