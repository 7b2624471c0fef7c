"""The three styles: what a report calls its parts, what it puts first and how long its paragraphs are."""

import re
from collections.abc import Collection
from typing import NamedTuple

from assay.model.claim import Claim, Mark
from assay.model.plan import Style
from assay.text.quantities import quantities
from assay.text.sentences import is_row


class Voice(NamedTuple):
    abstract: str
    conclusion: str
    paragraph: int  # sentences
    joints: bool = True  # whether sentences are joined by light words
    figures_first: bool = False
    brief: bool = (
        False  # the surest and shortest statements are taken, told point by point, with the conclusion beside them
    )


VOICES: dict[Style, Voice] = {
    "academic": Voice("Abstract", "Conclusion", paragraph=5),
    "technical": Voice("Summary of findings", "Conclusion and limits", paragraph=4, joints=False, figures_first=True),
    "executive": Voice("In brief", "How sure this is", paragraph=3, brief=True),
}
LONG = 30  # words from which on a sentence is long for somebody in a hurry
SURER, ROW, WORDY = 0.1, 0.2, 0.15  # of relevance


def worth(claim: Claim, voice: Voice) -> float:
    """Relevance, and a little for being borne out: of two statements a reader wants the surer one. A row of a table is
    evidence, but reads badly."""
    value = claim.relevance - ROW * is_row(claim.text)
    if claim.mark is Mark.CORROBORATED:
        value += SURER * (3 if voice.brief else 1)
    return value - WORDY * (voice.brief and len(claim.text.split()) > LONG)


def has_figure(claim: Claim) -> bool:
    """Dates alone are none."""
    return any(quantity.kind not in ("year", "date", "decade", "time") for quantity in quantities(claim.text))


def allowed(text: str, banned: Collection[str]) -> bool:
    """Whether words of our own are free of those a person does not want to read."""
    return not any(re.search(rf"\b{re.escape(word)}", text, re.I) for word in banned)
