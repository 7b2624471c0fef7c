"""From a provider's results to hits: checked one by one, cleaned, and without what could not be fetched."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import urlsplit

from assay.model.inquiry import Found
from assay.model.source import Document, Hit, Kind
from assay.search.entries import E, readable
from assay.text.clean import clean

READABLE = 200  # characters from which on a text can be read by itself
LONGEST_TITLE = 300
LONGEST_SNIPPET = 2_000
LONGEST_TEXT = 100_000
LONGEST_URL = 2_000


def valid(model: type[E], items: Sequence[object]) -> list[E]:
    """The items that are as documented; ValueError when there are some and none is."""
    kept = readable(model, items)
    if items and not kept:
        raise ValueError("no result is as documented")
    return kept


def tidy(found: Iterable[Found]) -> Iterator[Found]:
    """Cleaned and bounded results, each address once, only such as can be fetched."""
    seen = set()
    for result in found:
        url = result.url.strip()
        if _host(url) and (place := url.partition("#")[0]) not in seen:
            seen.add(place)
            yield Found(
                url=url,
                title=line(result.title, LONGEST_TITLE) or _host(url),
                snippet=line(result.snippet, LONGEST_SNIPPET),
                published=result.published,
                author=line(result.author or "", LONGEST_TITLE) or None,
                text=clean(result.text)[:LONGEST_TEXT].rstrip(),
                fulltext=result.fulltext if result.fulltext and _host(result.fulltext) else None,
            )


def document_of(found: Found, kind: Kind, fetched: datetime) -> Document | None:
    if len(found.text) < READABLE:
        return None
    return Document(
        hash=hashlib.sha256(found.text.encode()).hexdigest(), text=found.text, url=found.url, title=found.title,
        host=_host(found.url), author=found.author, published=found.published, fetched=fetched, kind=kind,
    )  # fmt: skip


def hit_of(found: Found, document: Document | None, provider: str, kind: Kind, query: str, rank: int) -> Hit:
    hit = Hit(
        provider=provider, query=query, rank=rank, url=found.url, title=found.title, snippet=found.snippet,
        host=_host(found.url), kind=kind, published=found.published, author=found.author, fulltext=found.fulltext,
    )  # fmt: skip
    if document is None:
        return hit
    return hit.model_copy(update={"document": document.hash, "start": 0, "end": len(document.text)})


def _host(url: str) -> str:
    """ "" for what is no address of a page."""
    try:
        place = urlsplit(url)
        place.port  # noqa: B018 - raises where it is no number
    except ValueError:
        return ""
    seen = not any(character.isspace() or not character.isprintable() for character in url)
    fetched = seen and place.scheme in ("http", "https") and len(url) <= LONGEST_URL
    return (place.hostname or "") if fetched else ""


def line(text: str, longest: int) -> str:
    return " ".join(clean(text).split())[:longest].rstrip()
