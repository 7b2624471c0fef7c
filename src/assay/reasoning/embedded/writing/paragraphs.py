"""Paragraphs: statements on one matter together, the general before the particular, figures in order of time."""

import re
from collections.abc import Sequence

from assay.model.claim import Claim
from assay.reasoning.embedded.writing.comparison import compared, ranking, side_by_side
from assay.reasoning.embedded.writing.matter import CAUSE, CAVEAT, FIGURE, GENERAL, Likeness, follows, kind
from assay.reasoning.embedded.writing.voice import Voice, has_figure, worth
from assay.text.relations import measure, years
from assay.text.sentences import is_row

ALIKE = 0.12  # from here on two statements are of one matter
UNDATED = 9999
Paragraph = list[Claim]

_CHANGE = re.compile(r"\b(?:chang|grow|grew|rose|fell|trend|over time|evol|histor|develop)", re.I)
_WHY = re.compile(r"\b(?:why|cause|reason|explanation|drove|drives)", re.I)


def paragraphs(title: str, claims: Sequence[Claim], voice: Voice, goal: str) -> list[Paragraph]:
    """`title` is the section's, `goal` the question the whole report answers."""
    groups: list[Sequence[Claim]] = [claims]
    if voice.figures_first:
        groups = [[c for c in claims if has_figure(c)], [c for c in claims if not has_figure(c)]]
    return [paragraph for group in groups for paragraph in _told(title, group, voice, goal)]


def _told(title: str, claims: Sequence[Claim], voice: Voice, goal: str) -> list[Paragraph]:
    """What is ranked or compared comes first, in its own order."""
    first: list[Paragraph] = []
    if order := ranking(f"{goal} {title}"):
        ranked = _ranked(claims, descending=order == "descending")
        first = [ranked[at : at + voice.paragraph] for at in range(0, len(ranked), voice.paragraph)]
    elif sides := compared(goal):
        first = side_by_side(claims, sides, voice.paragraph)
    told = {claim.id for paragraph in first for claim in paragraph}
    return [*first, *_grouped(title, [claim for claim in claims if claim.id not in told], voice)]


def _ranked(claims: Sequence[Claim], *, descending: bool) -> list[Claim]:
    """Statements with a figure in the unit most of them use, by its size."""
    measured = {claim.id: found for claim in claims if (found := measure(claim.text)) is not None}
    units = [found.unit for found in measured.values()]
    common = max(units, key=units.count, default="")
    if units.count(common) < 2:
        return []
    chosen = [claim for claim in claims if claim.id in measured and measured[claim.id].unit == common]
    return sorted(chosen, key=lambda claim: measured[claim.id].value * (-1 if descending else 1))


def _grouped(title: str, claims: Sequence[Claim], voice: Voice) -> list[Paragraph]:
    """Rows of tables come after the prose, each in a line of its own."""
    rows = sorted((c for c in claims if is_row(c.text)), key=lambda c: (max(years(c.text), default=0), c.id))
    return [*_prose(title, [claim for claim in claims if not is_row(claim.text)], voice), *([row] for row in rows)]


def _prose(title: str, claims: Sequence[Claim], voice: Voice) -> list[Paragraph]:
    alike = Likeness(claims)
    left = sorted(claims, key=lambda claim: (_rank(claim, title), -worth(claim, voice), claim.id))
    made: list[Paragraph] = []
    while left:
        paragraph = [left.pop(0)]
        while left and len(paragraph) < voice.paragraph:
            nearest = max(left, key=lambda claim: _closeness(claim, paragraph, alike))
            if _closeness(nearest, paragraph, alike) < ALIKE:
                break
            left.remove(nearest)
            paragraph.append(nearest)
        made.append(paragraph)
    return [_ordered(title, paragraph, voice) for paragraph in _gathered(made, voice.paragraph)]


def _closeness(claim: Claim, paragraph: Paragraph, alike: Likeness) -> float:
    return sum(alike.of(claim, other) for other in paragraph) / len(paragraph)


def _gathered(made: Sequence[Paragraph], most: int) -> list[Paragraph]:
    """Statements that found no companion share paragraphs, in the place of the first: a line each would be a list.
    Caveats keep to themselves."""
    gathered: list[Paragraph] = []
    alone: dict[bool, Paragraph] = {}
    for paragraph in made:
        caveat = kind(paragraph[0]) == CAVEAT
        if len(paragraph) == 1 and caveat in alone and len(alone[caveat]) < most:
            alone[caveat] += paragraph
            continue
        gathered.append(paragraph)
        if len(paragraph) == 1:
            alone[caveat] = paragraph
    return gathered


def _rank(claim: Claim, title: str) -> int:
    """Where a why is asked, the reasons come before what is generally known."""
    found = kind(claim)
    return (
        GENERAL
        if found == CAUSE and _WHY.search(title)
        else CAUSE
        if found == GENERAL and _WHY.search(title)
        else found
    )


def _ordered(title: str, claims: Sequence[Claim], voice: Voice) -> Paragraph:
    """A change is told in order of time; what follows another in its document follows it here."""

    def key(claim: Claim) -> tuple[int, int, float, str]:
        when = min(years(claim.text), default=UNDATED)
        in_time = _CHANGE.search(title) or kind(claim) == FIGURE
        return (
            0 if _CHANGE.search(title) else _rank(claim, title),
            when if in_time else 0,
            -worth(claim, voice),
            claim.id,
        )

    left = sorted(claims, key=key)
    told: Paragraph = []
    while left:
        told.append(left.pop(0))
        while successor := next((claim for claim in left if follows(claim, told[-1])), None):
            left.remove(successor)
            told.append(successor)
    return told
