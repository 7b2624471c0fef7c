"""Names that were read otherwise than they were written, so that nobody reads about another company unawares."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from assay.engine import Engine
from assay.text.words import fold

ALIKE = 0.75  # "Aple" and "Apple" are 0.89 alike, "AAPL" and "Apple" 0.67


async def misspelt(engine: Engine, thread: str) -> list[str]:
    """What to note about the question that is being worked on."""
    values = await engine.state(thread)
    understood = values.get("understanding") or {}
    pairs = taken_for(str(values.get("original_query", "")), understood.get("subjects", ()))
    return [f"“{written}” was taken for {meant}." for written, meant in pairs]


def taken_for(message: str, subjects: list[str] | tuple[str, ...]) -> Iterator[tuple[str, str]]:
    words = re.findall(r"[^\W_]+(?:[-'’.&][^\W_]+)*", message)
    for subject in subjects:
        if fold(subject) in fold(message):
            continue
        size = len(subject.split())
        runs = [" ".join(words[at : at + size]).removesuffix("'s") for at in range(len(words) - size + 1)]
        nearest = max(runs, key=lambda run: _alike(run, subject), default="")
        if _alike(nearest, subject) >= ALIKE:
            yield nearest, subject


def _alike(one: str, other: str) -> float:
    return SequenceMatcher(None, fold(one), fold(other)).ratio()
