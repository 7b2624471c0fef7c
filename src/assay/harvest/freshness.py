"""How long an answer may be used again without asking, as RFC 9111 has it for a cache of one user."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

_DIRECTIVE = re.compile(r'([^\s=,;"]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,;"]*)))?')
_HEURISTIC = 0.1  # of the time since the page was last changed, as the standard suggests
_LONGEST = 30 * 86_400.0  # a page that says "a year" is asked again after a month

Headers = Mapping[str, str]


class Freshness(NamedTuple):
    """Seconds for which an answer is fresh from now on; None: it may not be kept at all."""

    seconds: float | None
    etag: str = ""
    modified: str = ""

    @property
    def validators(self) -> dict[str, str]:
        """The headers that ask whether it has changed."""
        asked = {"if-none-match": self.etag, "if-modified-since": self.modified}
        return {name: value for name, value in asked.items() if value}

    def without_validators(self) -> "Freshness":
        """Of a page whose content came from elsewhere than the answer."""
        return Freshness(self.seconds)

    def with_validators(self, other: "Freshness") -> "Freshness":
        """Of an answer that says no more than that nothing has changed."""
        return Freshness(self.seconds, self.etag or other.etag, self.modified or other.modified)


def freshness(headers: Headers, now: datetime, *, default: float) -> Freshness:
    """`default` counts for answers that say nothing, and is the most that is guessed for the others."""
    fields = {name.lower(): value for name, value in headers.items()}
    control = _directives(fields.get("cache-control", fields.get("pragma", "")))
    if "no-store" in control:
        return Freshness(None)
    etag, modified = fields.get("etag", "").strip(), fields.get("last-modified", "").strip()
    if "no-cache" in control or fields.get("vary", "").strip() == "*":
        return Freshness(0.0, etag, modified)
    sent = _moment(fields.get("date", "")) or now
    lifetime = _lifetime(fields, control, sent, default)
    age = max(_number(fields.get("age", "")) or 0.0, (now - sent).total_seconds(), 0.0)
    return Freshness(min(max(lifetime - age, 0.0), _LONGEST), etag, modified)


def _lifetime(fields: Headers, control: Mapping[str, str], sent: datetime, default: float) -> float:
    if "max-age" in control:  # s-maxage is for caches that many share
        return _number(control["max-age"]) or 0.0  # one that cannot be read is stale
    if "expires" in fields:
        expires = _moment(fields["expires"])
        return (expires - sent).total_seconds() if expires else 0.0  # "0" and "-1": gone already
    changed = _moment(fields.get("last-modified", ""))
    if changed is None or changed > sent:
        return default
    return min(_HEURISTIC * (sent - changed).total_seconds(), default)


def _directives(text: str) -> dict[str, str]:
    """Names to values; of two that differ the smaller counts."""
    found: dict[str, str] = {}
    for name, quoted, plain in _DIRECTIVE.findall(text):
        name, value = name.lower(), quoted or plain
        found[name] = min(found.get(name, value), value, key=lambda one: _number(one) or 0.0)
    return found


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}", text.strip()) else None


def _moment(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
