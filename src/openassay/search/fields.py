"""Turns a question into a provider's query, and the fields of a provider's answer into clean values.

queries   shorten, query_keywords, join_terms, add_site_filters
dates     parse_date, parse_iso_date, date_from_parts, today
texts     to_line, strip_markup, format_byline, doi_url, repair_json
"""

import html
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

from openassay.models.evidence import SearchRequest
from openassay.text.words import clean_text, content_words

_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_OPERATORS = frozenset({"AND", "OR", "NOT"})


def shorten(text: str, max_length: int) -> str:
    """Put a text on one line of at most `max_length` characters, cut at a word where there is one."""
    line = " ".join(clean_text(text).split())
    if len(line) <= max_length:
        return line
    return line[: max_length + 1].rpartition(" ")[0] or line[:max_length]


def query_keywords(query: str, max_words: int) -> list[str]:
    """Return the first words of a question that carry meaning, as they are spelt: "US" is a country, "us" is not."""
    shouted = query.isupper()
    first: dict[str, str] = {}
    for word in _WORD.findall(query):
        if word not in _OPERATORS:
            first.setdefault(word.casefold(), word)
    words = list(first.values())
    keywords = [word for word in words if content_words(word) or (word.isupper() and len(word) > 1 and not shouted)]
    return (keywords or words or query.split())[:max_words]


def join_terms(terms: Sequence[str], *, all_of: int, together: str = " AND ", longest: int = 1000) -> str:
    """Join up to `all_of` terms so that all must match, more so that any may: an index that wants many finds nothing.

    The last terms are dropped where the query would be longer than `longest`."""
    query = (together if len(terms) <= all_of else " OR ").join(terms)
    if len(query) > longest and len(terms) > 1:
        return join_terms(terms[:-1], all_of=all_of, together=together, longest=longest)
    return query[:longest]


def add_site_filters(search: SearchRequest, *, characters: int, words: int = 1000) -> str:
    """Write the hosts of a search into its query, as site: and -site:. Where both do not fit, the query is cut."""
    only = " OR ".join(f"site:{site}" for site in search.sites)
    parts = [f"({only})" if len(search.sites) > 1 else only, *(f"-site:{site}" for site in search.without)]
    filters = " ".join(part for part in parts if part)
    room = characters - len(filters) - 1
    query = " ".join(shorten(search.query, max(room, 1)).split()[: max(words - len(filters.split()), 1)])
    return f"{query} {filters}".rstrip()


# Dates, as search engines write them: 2024-03-05, Tue, 05 Mar 2024 10:00:00 GMT, 3 days ago.
_ISO_DATE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?")
_AGO = re.compile(r"(\d{1,3})\s+(minute|min|hour|day|week|month|year)s?\s+ago")
_DAYS = {"minute": 0.0, "min": 0.0, "hour": 1 / 24, "day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_DATE_FORMATS = ("%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d %B %Y")


def parse_date(text: str | None, now: datetime | None = None) -> date | None:
    """Parse the date of a result in any of the usual forms; None where it is none of them."""
    text = (text or "").strip()
    if re.match(r"\d{4}-\d\d|\d{8}T", text):
        return parse_iso_date(text)
    if match := _AGO.match(text.lower()):
        return ((now or datetime.now(UTC)) - timedelta(days=int(match[1]) * _DAYS[match[2]])).date()
    for form in _DATE_FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).date()
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(text).date()
    except (ValueError, TypeError, OverflowError, IndexError):  # the last two for numbers that no date can have
        return None


def parse_iso_date(text: str | None) -> date | None:
    """Parse the start of a text as 2024, 2024-05, 2024-05-03 or 20240503; what is missing counts as the first."""
    match = _ISO_DATE.match(text or "")
    return date_from_parts(*(int(part) for part in match.groups() if part)) if match else None


def date_from_parts(*parts: int | None) -> date | None:
    """Make a date of a year, a month and a day, of which the last may be missing; None for an impossible one."""
    year, month, day = (*parts, None, None, None)[:3]
    try:
        return date(year or 0, month or 1, day or 1)
    except (ValueError, OverflowError):
        return None


def today() -> date:
    return datetime.now(UTC).date()


_BLOCK = r"(?:jats:)?(?:p|title|sec|list|list-item|disp-formula)|br|div"
_INLINE = r"(?:jats|mml):[\w-]+|i|b|u|em|sc|scp|sub|sup|tt|strong|italic|bold|span|inline-formula|xref|ext-link"
_ATTRIBUTES = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))*\s*/?"""
# Only tags that titles and abstracts have: "p < 0.05" and "a <b or c> d" are text.
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.I)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.I)
_HEADING = re.compile(r"\A(?:abstract|summary) ?[:.]?\n", re.I)


def to_line(text: str, max_length: int) -> str:
    """Clean a text and put it on one line of at most `max_length` characters."""
    return " ".join(clean_text(text).split())[:max_length].rstrip()


def strip_markup(text: str) -> str:
    """Remove the tags of a title or an abstract (HTML, JATS, MathML), also where they were escaped once more."""
    once = _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", text))
    lines = _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", html.unescape(once))).splitlines()
    return _HEADING.sub("", "\n".join(line.strip() for line in lines if line.strip()))


def format_byline(names: Iterable[str | None]) -> str | None:
    """Join up to three authors, else the first two: "Ada Obi, Bo Li et al."."""
    known = [" ".join(name.split()) for name in names if name and name.strip()]
    if len(known) > 3:
        return f"{known[0]}, {known[1]} et al."
    return ", ".join(known) or None


def doi_url(doi: str) -> str:
    """Return the address of a DOI; old ones hold characters that an address may not."""
    bare = re.sub(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", "", doi.strip(), flags=re.I)
    return f"https://doi.org/{quote(bare, safe='/:;().,-_~!$&*+=@')}"


def repair_json(body: str, *, strict: bool = True) -> str:
    """Replace half an emoji by "?": a provider that cuts a text may leave one, which no encoding can hold.

    Unless `strict`, strings may hold line breaks."""
    if strict and "\\ud" not in body.lower():
        return body
    return json.dumps(json.loads(body, strict=strict), ensure_ascii=False).encode(errors="replace").decode()
