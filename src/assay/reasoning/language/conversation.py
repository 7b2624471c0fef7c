"""Older turns of a thread in a few lines."""

from collections.abc import Sequence

from assay.errors import ReasoningError
from assay.model.question import Turn
from assay.reasoning.language.answer import Answer, Text, schema
from assay.reasoning.language.prompt import tagged
from assay.reasoning.language.step import Job, Step
from assay.text.sentences import sentences

STEP = Step("condense", stage="publish", role="searcher", thing="summary of the conversation",
            variables=("summary", "turns", "words"), purpose="finish")  # fmt: skip
MOST_WORDS = 120
LONGEST_TURN = 1500  # characters


class Condensed(Answer):
    summary: Text


def job(turns: Sequence[Turn], summary: str) -> Job[Condensed, Turn, str]:
    def build(newest_first: Sequence[Turn]) -> dict[str, str]:
        lines = (f"{turn.role}: {turn.content[:LONGEST_TURN]}" for turn in reversed(newest_first))
        return {
            "summary": tagged("conversation", summary or "(nothing yet)"),
            "turns": tagged("conversation", "\n".join(lines)),
            "words": str(MOST_WORDS),
        }

    return Job(STEP, Condensed, schema(Condensed, "Summary"), build, lambda answer, _: convert(answer),
               sources=tuple(reversed(turns)), shorten=_halved)  # fmt: skip


def _halved(turn: Turn) -> Turn:
    return turn.model_copy(update={"content": turn.content[: len(turn.content) // 2]})


def convert(answer: Condensed) -> str:
    """Whole sentences, as many as the words allow."""
    kept: list[str] = []
    for piece in sentences(answer.summary):
        if len(" ".join([*kept, piece.text]).split()) > MOST_WORDS:
            break
        kept.append(piece.text)
    if not kept:
        raise ReasoningError(f"the summary is empty, or has no sentence of at most {MOST_WORDS} words")
    return " ".join(kept)
