"""What every reader of one format hands back."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

Want = Literal["javascript", "access"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """Clean text and what the file says about itself; `notes` tells what was left out."""

    text: str
    title: str = ""
    author: str | None = None
    published: date | None = None
    origin: str | None = None
    notes: tuple[str, ...] = ()
    language: str | None = None  # as in "de"
    wants: Want | None = None  # the page shows its content only to scripts, or only to those let in
