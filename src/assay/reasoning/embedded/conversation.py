"""Condensing older turns of a thread into a few lines."""

from collections.abc import Sequence

from assay.model.question import Turn
from assay.text.sentences import sentences

LONGEST = 2000


def condense(turns: Sequence[Turn], summary: str) -> str:
    """The earlier summary, then each question with the first sentence of its answer; oldest lines go first."""
    lines = summary.splitlines()
    for turn in turns:
        first = next((piece.text for piece in sentences(turn.content)), turn.content)[:200]
        lines.append(f"{'Asked' if turn.role == 'user' else 'Answered'}: {first}")
    while lines and len("\n".join(lines)) > LONGEST:
        lines.pop(0)
    return "\n".join(lines)
