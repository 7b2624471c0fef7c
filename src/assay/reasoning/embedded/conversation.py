"""Condensing older turns of a thread into a few lines."""

from collections.abc import Sequence

from assay.model.question import Turn
from assay.text.sentences import sentences

LONGEST = 2000
ASKED, ANSWERED = "Asked: ", "Answered: "


def condense(turns: Sequence[Turn], summary: str) -> str:
    """The earlier summary, then each question with the first sentence of its answer; oldest lines go first."""
    lines = summary.splitlines()
    for turn in turns:
        first = next((piece.text for piece in sentences(turn.content)), turn.content)[:200]
        lines.append(f"{ASKED if turn.role == 'user' else ANSWERED}{first}")
    while lines and len("\n".join(lines)) > LONGEST:
        lines.pop(0)
    return "\n".join(lines)


def remembered(summary: str) -> list[Turn]:
    """The turns a summary tells of, as far as they can be told; other words are taken as an answer."""
    turns = []
    for line in filter(str.strip, summary.splitlines()):
        asked = line.startswith(ASKED)
        turns.append(
            Turn(role="user" if asked else "assistant", content=line.removeprefix(ASKED).removeprefix(ANSWERED))
        )
    return turns
