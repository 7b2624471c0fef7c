"""A source that a person will not have, and what a report loses with it."""

from assay.model.record import Record


class Vetoed(Record):
    """Kept with the thread: later questions do without it too."""

    document: str
    url: str
    title: str = ""


class Consequences(Record):
    """What would change: statements by claim id, sentences by their text, sub-questions in their own words."""

    sources: tuple[Vetoed, ...]
    lost: tuple[str, ...] = ()  # claims that rest on nothing else
    weaker: tuple[str, ...] = ()  # claims that keep other sources
    sentences: tuple[str, ...] = ()  # of the report, that are checked again or go
    unanswered: tuple[str, ...] = ()  # sub-questions that nothing else answers
    untouched: int = 0  # claims that stay as they are, unpaid for
