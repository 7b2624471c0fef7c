"""What the answers of catalogues have in common: entries of which some are broken, names, partial dates, markup."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Self, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from assay.text.words import content_words

_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_BLOCK = r"(?:jats:)?(?:p|title|sec|list|list-item|disp-formula)|br|div"
_INLINE = r"(?:jats|mml):[\w-]+|i|b|u|em|sc|scp|sub|sup|tt|strong|italic|bold|span|inline-formula|xref|ext-link"
_ATTRIBUTES = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))*\s*/?"""
# Only tags that titles and abstracts have: "p < 0.05" and "a <b or c> d" are text.
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.I)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.I)
_HEADING = re.compile(r"\A(?:abstract|summary) ?[:.]?\n", re.I)
_DATE = re.compile(r"(\d{4})(?:-?(\d{2})(?:-?(\d{2}))?)?")


class Entry(BaseModel):
    """The base of what is read from an answer: what we do not know of is none of our business."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    @classmethod
    def read(cls, body: str) -> Self:
        return cls.model_validate_json(mended(body))


def mended(body: str, *, strict: bool = True) -> str:
    """JSON in which a "?" stands for half an emoji: where a provider cuts a text it may leave that much of one, no
    encoding can hold it, and all results would be lost for one. Unless `strict`, strings may have line breaks."""
    if strict and "\\ud" not in body.lower():
        return body
    return json.dumps(json.loads(body, strict=strict), ensure_ascii=False).encode(errors="replace").decode()


E = TypeVar("E", bound=Entry)


def readable(model: type[E], items: Iterable[object]) -> list[E]:
    """The items that are as documented; a broken one is left out."""
    kept = []
    for item in items:
        try:
            kept.append(model.model_validate(item))
        except ValidationError:
            continue
    return kept


def byline(names: Iterable[str | None]) -> str | None:
    """All of up to three authors, else the first two: "Ada Obi, Bo Li et al."."""
    known = [" ".join(name.split()) for name in names if name and name.strip()]
    if len(known) > 3:
        return f"{known[0]}, {known[1]} et al."
    return ", ".join(known) or None


def day(text: str | None) -> date | None:
    """The date a text begins with, as 2024, 2024-05, 2024-05-03 or 20240503; the first day of what it names."""
    match = _DATE.match(text or "")
    return on(*(int(part) for part in match.groups() if part)) if match else None


def on(*parts: int | None) -> date | None:
    """A date of a year, a month and a day, of which the last may be missing; None for one that cannot be."""
    year, month, number = (*parts, None, None, None)[:3]
    try:
        return date(year or 0, month or 1, number or 1)
    except (ValueError, OverflowError):
        return None


def today() -> date:
    return datetime.now(UTC).date()


def doi_address(doi: str) -> str:
    """Where a DOI leads; old ones have characters that an address may not."""
    bare = re.sub(r"\A(?:https?://(?:dx\.)?doi\.org/|doi:\s*)", "", doi.strip(), flags=re.I)
    return f"https://doi.org/{quote(bare, safe='/:;().,-_~!$&*+=@')}"


def plain(marked: str) -> str:
    """A title or an abstract without its tags (HTML, JATS, MathML), also where they were escaped once more."""
    lines = _untagged(html.unescape(_untagged(marked))).splitlines()
    return _HEADING.sub("", "\n".join(line.strip() for line in lines if line.strip()))


def _untagged(marked: str) -> str:
    return _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", marked))


def keywords(query: str, most: int) -> list[str]:
    """The first words of a question that carry meaning, as they are spelt: "US" is a country, "us" is nobody."""
    shouted = query.isupper()
    first: dict[str, str] = {}
    for word in _WORD.findall(query):
        if word not in _OPERATORS:
            first.setdefault(word.casefold(), word)
    words = list(first.values())
    kept = [word for word in words if content_words(word) or (word.isupper() and len(word) > 1 and not shouted)]
    return (kept or words or query.split())[:most]


def combined(terms: Sequence[str], *, all_of: int, together: str = " AND ", longest: int = 1000) -> str:
    """Few terms must all be found; of many any may, since an index that wants them all finds nothing. The last are
    left out where there is no room for them."""
    query = (together if len(terms) <= all_of else " OR ").join(terms)
    if len(query) > longest and len(terms) > 1:
        return combined(terms[:-1], all_of=all_of, together=together, longest=longest)
    return query[:longest]
