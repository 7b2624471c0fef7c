"""What a question is after, apart from which document it wants it from."""

import re

from assay.text.names import names
from assay.text.words import fold, stems

# "in its Q3 2023 10-Q", "as disclosed in these quarterly reports": they choose the document, and sentences that repeat
# them are title pages and signatures.
_DOCUMENT = re.compile(
    r",?\s*\b(?:(?:as )?(?:reported|disclosed|discussed|stated|described) )?(?:in|for|from|of|across|over)\s+"
    r"(?:(?:its|the|their|these|this|those|all)\s+)?"
    r"(?:(?:latest|most recent|last|reported|quarterly|annual|provided)\s+)*"
    r"(?:(?:Q[1-4]|H[12]|FY)\s*(?:\d{4})?\s*)?(?:10-[QK]s?|reports?|filings?|documents?|quarters|periods)\b,?",
    re.I,
)
_PERIOD = re.compile(r",?\s*\b(?:in|for|during)\s+(?:Q[1-4]|H[12]|FY)\s*\d{4}\b,?", re.I)
# Words of reporting: every filing reports and discloses.
GENERIC = frozenset(stems("report disclose discuss state mention describe analyze identify significant major key any"))
NAMED = 0.4  # weight of a subject's name: it has already chosen the documents


def focus(question: str) -> str:
    """The question without its references to documents; as it is where nothing else would be left."""
    text = " ".join(_PERIOD.sub(" ", _DOCUMENT.sub(" ", question)).split())
    return text if len(stems(text)) >= 2 else question


def weight_of(question: str) -> dict[str, float]:
    """How much each stem of a question counts against the others, before rarity."""
    named = {stem for name in names(question) for stem in stems(fold(name))}
    weights = {}
    for stem in stems(question):
        weights[stem] = 0.2 if stem in GENERIC else NAMED if stem in named else 1.0
    return weights
