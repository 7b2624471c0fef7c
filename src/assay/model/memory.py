"""What is remembered of a person beyond one thread."""

from datetime import datetime

from pydantic import Field

from assay.model.plan import FEWEST_WORDS, MOST_WORDS, Style
from assay.model.record import Record

LONGEST_FACT = 500  # characters
MOST_NAMED = 50  # sources that may be preferred, or avoided


class Preferences(Record):
    """None or nothing: no preference, so the settings decide. What a question itself asks for always comes first."""

    style: Style | None = None
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS)
    prefer: tuple[str, ...] = Field(default=(), max_length=MOST_NAMED)  # hosts, or names of sources
    avoid: tuple[str, ...] = Field(default=(), max_length=MOST_NAMED)
    region: str | None = Field(default=None, max_length=80)
    language: str | None = Field(default=None, max_length=40)


class Fact(Record):
    """Something worth knowing for many questions: "We report in euros"."""

    id: str
    text: str = Field(min_length=1, max_length=LONGEST_FACT)
    created: datetime
    updated: datetime
