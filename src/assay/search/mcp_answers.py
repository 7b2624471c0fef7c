"""What MCP servers answer a search with, as results: structured, JSON in a text, plain text, or links to resources."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents
from pydantic import AliasChoices, Field, field_validator

from assay.model.inquiry import Found
from assay.search.entries import Entry, readable
from assay.search.published import published
from assay.search.results import LONGEST_SNIPPET, LONGEST_TEXT, LONGEST_TITLE, LONGEST_URL, READABLE, line
from assay.text.clean import clean

_LISTS = ("results", "result", "items", "documents", "hits", "data")  # under which name servers give a list
TITLE = 80  # characters of a text's first line, where nothing else says what it is


def _either(*names: str) -> Any:
    return Field(default="", validation_alias=AliasChoices(*names))


class Result(Entry):
    """One result in whatever names it was given; `id` is what the server's own fetch takes."""

    id: str = ""
    title: str = _either("title", "name")
    url: str = _either("url", "link", "href", "uri")
    text: str = _either("text", "content", "body")
    snippet: str = _either("snippet", "description", "summary", "excerpt")
    date: str = _either("published", "published_date", "publishedDate", "date")
    author: str = ""

    @field_validator("*", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> str:
        return str(value) if isinstance(value, str | int | float) else ""


class Whole(Result):
    """With all of its text: nothing more is to be looked for elsewhere."""


def results(answer: CallToolResult) -> list[Result]:
    """Best first; a text that is none of the forms below is one result."""
    structured = _listed(answer.structured_content)
    if structured is not None:
        return structured
    found: list[Result] = []
    for block in answer.content:
        if isinstance(block, TextContent):
            found += _in_text(block.text)
        elif isinstance(block, ResourceLink):
            found.append(
                Result(id="", name=block.title or block.name, uri=block.uri, description=block.description or "")
            )
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            found.append(Result(uri=block.resource.uri, text=block.resource.text))
    return found


def text_in(answer: CallToolResult) -> str:
    """What a fetch gave."""
    given = answer.structured_content
    blocks = [block.text for block in answer.content if isinstance(block, TextContent)]
    for whole in (given.get("result", given) if isinstance(given, dict) else None, *map(_json, blocks)):
        if isinstance(whole, dict) and (read := readable(Result, [whole])) and read[0].text:
            return read[0].text
    return "\n\n".join([one.text for one in results(answer) if one.text] or blocks)


def _in_text(text: str) -> list[Result]:
    listed = _listed(_json(text))
    if listed is not None:
        return listed
    return [Result(text=text)] if text.strip() else []


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _listed(given: object) -> list[Result] | None:
    """None for what is no list of results, and holds none."""
    if isinstance(given, dict):
        if given and not given.keys() & set(_LISTS):
            one = readable(Result, [given])
            return one if one and (one[0].text or one[0].url) else None
        given = next((given[name] for name in _LISTS if name in given), None)
        if isinstance(given, dict | str):
            return _listed(given) if isinstance(given, dict) else _in_text(given)
    if not isinstance(given, list):
        return None
    texts = [{"text": item} if isinstance(item, str) else item for item in given]
    return readable(Result, [item for item in texts if isinstance(item, dict)])


def found(given: Sequence[Result], name: str) -> Iterator[Found]:
    """Cleaned, bounded, each address once. What has an address of the web is a page like any other; what has none is
    what was given of it, under an address of its own; what has neither is nothing."""
    seen = set()
    for result in given:
        text = clean(result.text)[:LONGEST_TEXT].rstrip()
        page = is_page(result.url)
        if not (page or text):
            continue
        address = result.url.strip() if page else own_address(name, result, text)
        if address in seen:
            continue
        seen.add(address)
        kept = text if not page or len(text) >= READABLE else ""  # a few words are no substitute for the page
        snippet = line(result.snippet, LONGEST_SNIPPET) or line(text, LONGEST_SNIPPET)
        yield Found(
            url=address,
            title=line(result.title, LONGEST_TITLE) or _first_line(text) or address,
            snippet=snippet,
            published=published(result.date),
            author=line(result.author, LONGEST_TITLE) or None,
            text=kept,
            fulltext=address if page and kept and not isinstance(result, Whole) else None,
        )


def own_address(name: str, result: Result, text: str) -> str:
    id = result.id or result.url or hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"mcp://{name}/{quote(id, safe='')[:LONGEST_TITLE]}"


def is_page(url: str) -> bool:
    try:
        place = urlsplit(url.strip())
        whole = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:
        return False
    return whole and len(url) <= LONGEST_URL and all(letter.isprintable() and letter != " " for letter in url.strip())


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0].strip("# ")
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"
