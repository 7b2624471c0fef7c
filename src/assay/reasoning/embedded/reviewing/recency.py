"""How recent sources must be for a question, and whether they are."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

from assay.reasoning.embedded.reviewing.case import Case, Fault, fault
from assay.text.period import moves, period

MOVING = timedelta(days=730)  # where a question asks for what is current and says no more
OUTSIDE = 0.5

_YEAR = re.compile(r"\b20\d\d\b")


def since(question: str, today: date) -> date | None:
    """The day before which a source is too old for the question; None where it may be of any age."""
    if asked := period(question, today).since:
        return asked
    if not moves(question, today):
        return None
    recent = [int(year) for year in _YEAR.findall(question) if today.year - 2 <= int(year) <= today.year]
    return date(max(recent), 1, 1) if recent else today - MOVING


def dates(published: Sequence[str | None]) -> list[date]:
    return [date.fromisoformat(day[:10]) for day in published if day]


def recency(case: Case) -> Iterator[Fault]:
    today = case.request.today
    wanted = since(case.question, today) if today else None
    if wanted is None or not case.cited:
        return
    known = dates([source.published for source in case.cited])
    old = sum(day < wanted for day in known)
    if not known:
        yield fault("methodology", "minor", "sources", "what is asked is changing, and no source has a date")
    elif old == len(known):
        yield fault("methodology", "minor", "sources", "all dated sources are older than what is asked for", cost=2.0)
    elif old > OUTSIDE * len(known):
        yield fault("methodology", "minor", "sources",
                    f"{old} of {len(known)} dated sources are older than what is asked for",
                    "prefer newer sources")  # fmt: skip
