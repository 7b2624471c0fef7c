"""One question and what may be typed at it, whoever puts it."""

from typing import Any, NamedTuple, Protocol

from rich.console import Console, RenderableType


class Said(NamedTuple):
    """What comes of a line: an answer, or something to tell before the next one."""

    answer: Any = None
    told: RenderableType = ""
    again: bool = False  # show what it is about once more


class Dialogue(Protocol):
    """One question and what may be typed at it; it knows nothing of terminals."""

    before: str  # what stands before the cursor

    @property
    def unsent(self) -> int:
        """Changes that were made and go with an answer."""
        ...

    def show(self, console: Console) -> None: ...

    def take(self, line: str) -> Said: ...
