"""When a page was published, as search engines say it: 2024-03-05, Tue, 05 Mar 2024 10:00:00 GMT, 3 days ago."""

import re
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime

from assay.search.entries import day

_AGO = re.compile(r"(\d{1,3})\s+(minute|min|hour|day|week|month|year)s?\s+ago")
_DAYS = {"minute": 0.0, "min": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_SPELT = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")


def published(text: str | None, now: datetime | None = None) -> date | None:
    said = (text or "").strip()
    if re.match(r"\d{4}-\d\d", said):
        return day(said)
    if match := _AGO.match(said.lower()):
        return ((now or datetime.now(UTC)) - timedelta(days=int(match[1]) * _DAYS[match[2]])).date()
    for form in _SPELT:
        try:
            return datetime.strptime(said, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(said).date()
    except (ValueError, TypeError, OverflowError, IndexError):  # the last two of numbers that no date can have
        return None
