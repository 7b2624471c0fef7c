"""What the header Retry-After asks for."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 12  # characters of a number that is meant


def retry_after(value: str) -> float | None:
    """Seconds from now; the header holds them, or a date, of UTC where no zone is told. None for anything else."""
    value = value.strip()
    if len(value) <= LONGEST and value.isascii() and value.replace(".", "", 1).isdecimal():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        return max((then.replace(tzinfo=then.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError, IndexError):  # no date, or an impossible one
        return None
