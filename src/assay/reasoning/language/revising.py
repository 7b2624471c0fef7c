"""Revising: what a reviewer asks of the next version, and what became of each item."""

from collections.abc import Mapping, Sequence

from assay.model.report import Issue
from assay.reasoning.language.prompt import numbered, tagged
from assay.reasoning.protocol import Draft, DraftSentence, WriteRequest
from assay.text.words import fold

LONGEST_PREVIOUS = 12_000  # characters of the version that is revised
OWN_WORDS = "nothing was changed, so this is told in the claims' own words"


def fixes(request: WriteRequest) -> str:
    """The last version and what was wrong with it, so that each item can be answered."""
    items = wanted(request)
    if not items:
        return "This is the first version."
    before = f"The last version:\n{tagged('draft', _told(request.previous))}\n" if request.previous else ""
    return (
        f"{before}A reviewer asks for these changes. Make each, and say in notes, in this order, what you did about it:"
        f"\n{tagged('draft', numbered(items))}"
    )


def wanted(request: WriteRequest) -> list[str]:
    items = [f"{item.severity}, {item.location}: {item.description} {item.fix}".strip() for item in ordered(request)]
    return items or list(request.fixes)


def ordered(request: WriteRequest) -> list[Issue]:
    """Critical and major items first."""
    return sorted(request.issues, key=lambda issue: issue.severity == "minor")


def _told(draft: Draft) -> str:
    lines = [f"## {section.title}\n" + " ".join(s.text for s in section.sentences) for section in draft.sections]
    return "\n".join(lines)[:LONGEST_PREVIOUS]


def answered(notes: Sequence[str], request: WriteRequest, ignored: Mapping[int, str]) -> tuple[str, ...]:
    """One note an item, and an item that has none is said to have none."""
    items = wanted(request)
    told = [OWN_WORDS if at in ignored else note for at, note in enumerate([*notes, *[""] * len(items)])]
    return tuple(f"{item} → {note or 'no note'}" for item, note in zip(items, told, strict=False))


def ignored(
    notes: Sequence[str], written: Mapping[str, Sequence[DraftSentence]], request: WriteRequest
) -> dict[int, str]:
    """Critical and major items that a model neither notes nor has changed anything for, with the sections they name.
    Those are told in the claims' own words."""
    before = {fold(section.title): section for section in request.previous.sections} if request.previous else {}
    found: dict[int, str] = {}
    for at, item in enumerate(ordered(request)):
        place = next((title for title in written if fold(title) == fold(item.location)), None)
        noted = at < len(notes) and notes[at].strip()
        if item.severity == "minor" or noted or place is None or fold(place) not in before or len(written) == 1:
            continue
        old = {sentence.text for sentence in before[fold(place)].sentences}
        if {sentence.text for sentence in written[place]} <= old and place not in found.values():
            found[at] = place
    return found
