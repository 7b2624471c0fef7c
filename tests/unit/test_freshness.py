"""How long an answer may be used again, case by case."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from openassay.fetch.web_pages import compute_freshness

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DATE = "Sun, 01 Mar 2026 12:00:00 GMT"
DAY = 86_400.0


@pytest.mark.requirement("W-14")
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, DAY),
        ({"cache-control": "max-age=60"}, 60),
        ({"cache-control": 'public, max-age="60"'}, 60),
        ({"cache-control": "max-age=60, max-age=30"}, 30),
        ({"cache-control": "max-age=60, s-maxage=1"}, 60),
        ({"cache-control": "s-maxage=1"}, DAY),
        ({"cache-control": "max-age=sixty"}, 0),
        ({"cache-control": "max-age=60", "expires": DATE}, 60),
        ({"cache-control": "max-age=31536000"}, 30 * DAY),
        ({"cache-control": "max-age=60", "age": "50"}, 10),
        ({"cache-control": "max-age=60", "age": "90"}, 0),
        ({"cache-control": "max-age=60", "date": "Sun, 01 Mar 2026 11:59:30 GMT"}, 30),
        ({"cache-control": "no-store"}, None),
        ({"cache-control": "max-age=60, No-Store"}, None),
        ({"cache-control": "no-cache, max-age=60"}, 0),
        ({"pragma": "no-cache"}, 0),
        ({"vary": "*", "cache-control": "max-age=60"}, 0),
        ({"expires": "Sun, 01 Mar 2026 13:00:00 GMT"}, 3_600),
        ({"expires": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0),
        ({"expires": "0"}, 0),
        ({"expires": "-1", "last-modified": "Sun, 22 Feb 2026 12:00:00 GMT"}, 0),
        ({"last-modified": "Sun, 01 Mar 2026 02:00:00 GMT"}, 3_600),
        ({"last-modified": "Sat, 01 Mar 2025 12:00:00 GMT"}, DAY),  # a tenth of a year: capped
        ({"last-modified": "Mon, 01 Mar 2027 12:00:00 GMT"}, DAY),  # not yet
        ({"last-modified": "yesterday"}, DAY),
    ],
)
def test_freshness(headers: Mapping[str, str], seconds: float | None) -> None:
    found = compute_freshness({"date": DATE, **headers}, NOON, default=DAY)
    assert found.seconds == (None if seconds is None else pytest.approx(seconds))
