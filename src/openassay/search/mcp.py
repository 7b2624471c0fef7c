"""MCP servers as sources: each is asked under the name it has in the settings, and on the same terms as any other
provider. Its `tool` searches; its `fetch`, where it has one, gives the text of a result, which is then read as it is
and not looked for on the web.
"""

import asyncio
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from mcp_types import CallToolResult, EmbeddedResource, ResourceLink, TextContent, TextResourceContents
from pydantic import AliasChoices, Field, TypeAdapter, field_validator

from openassay.errors import SourceError
from openassay.models.evidence import Document, Hit, ProviderResult, ProviderTerms, SearchRequest
from openassay.search.base import (
    LONGEST_SNIPPET,
    LONGEST_TEXT,
    LONGEST_TITLE,
    LONGEST_URL,
    READABLE,
    ApiSource,
    ProviderEntry,
    ProviderRequest,
    ProviderResults,
    parse_date,
    parse_leniently,
    to_hit,
    to_line,
)
from openassay.search.http import MAX_BYTES, HttpRequest, HttpResponse, too_large_error
from openassay.search.mcp_connection import McpConnection, rejection_error
from openassay.search.registry import SourceContext
from openassay.settings import McpSourceSettings
from openassay.text.words import clean_text

# What MCP servers answer a search with, as results: structured, JSON in a text, plain text, or links to resources.

_LISTS = ("results", "result", "items", "documents", "hits", "data")  # under which name servers give a list
TITLE = 80  # characters of a text's first line, where nothing else says what it is


def _alias_field(*names: str) -> Any:
    return Field(default="", validation_alias=AliasChoices(*names))


class McpResult(ProviderEntry):
    """One result in whatever names it was given; `id` is what the server's own fetch takes."""

    id: str = ""
    title: str = _alias_field("title", "name")
    url: str = _alias_field("url", "link", "href", "uri")
    text: str = _alias_field("text", "content", "body")
    snippet: str = _alias_field("snippet", "description", "summary", "excerpt")
    date: str = _alias_field("published", "published_date", "publishedDate", "date")
    author: str = ""

    @field_validator("*", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> str:
        return str(value) if isinstance(value, str | int | float) else ""


class McpFullResult(McpResult):
    """With all of its text: nothing more is to be looked for elsewhere."""


def read_results(answer: CallToolResult) -> list[McpResult]:
    """Best first; a text that is none of the forms below is one result."""
    structured = _results_in_json(answer.structured_content)
    if structured is not None:
        return structured
    found: list[McpResult] = []
    for block in answer.content:
        if isinstance(block, TextContent):
            found += _results_in_text(block.text)
        elif isinstance(block, ResourceLink):
            found.append(
                McpResult(id="", name=block.title or block.name, uri=block.uri, description=block.description or "")
            )
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            found.append(McpResult(uri=block.resource.uri, text=block.resource.text))
    return found


def read_text(answer: CallToolResult) -> str:
    """What a fetch gave."""
    given = answer.structured_content
    blocks = [block.text for block in answer.content if isinstance(block, TextContent)]
    for whole in (given.get("result", given) if isinstance(given, dict) else None, *map(_parse_json, blocks)):
        if isinstance(whole, dict) and (read := parse_leniently(McpResult, [whole])) and read[0].text:
            return read[0].text
    return "\n\n".join([one.text for one in read_results(answer) if one.text] or blocks)


def _results_in_text(text: str) -> list[McpResult]:
    listed = _results_in_json(_parse_json(text))
    if listed is not None:
        return listed
    return [McpResult(text=text)] if text.strip() else []


def _parse_json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _results_in_json(given: object) -> list[McpResult] | None:
    """None for what is no list of results, and holds none."""
    if isinstance(given, dict):
        if given and not given.keys() & set(_LISTS):
            one = parse_leniently(McpResult, [given])
            return one if one and (one[0].text or one[0].url) else None
        given = next((given[name] for name in _LISTS if name in given), None)
        if isinstance(given, dict | str):
            return _results_in_json(given) if isinstance(given, dict) else _results_in_text(given)
    if not isinstance(given, list):
        return None
    texts = [{"text": item} if isinstance(item, str) else item for item in given]
    return parse_leniently(McpResult, [item for item in texts if isinstance(item, dict)])


def normalise_results(given: Sequence[McpResult], name: str) -> Iterator[ProviderResult]:
    """Cleaned, bounded, each address once. What has an address of the web is a page like any other; what has none is
    what was given of it, under an address of its own; what has neither is nothing."""
    seen = set()
    for result in given:
        text = clean_text(result.text)[:LONGEST_TEXT].rstrip()
        page = is_web_page(result.url)
        if not (page or text):
            continue
        address = result.url.strip() if page else make_address(name, result, text)
        if address in seen:
            continue
        seen.add(address)
        kept = text if not page or len(text) >= READABLE else ""  # a few words are no substitute for the page
        snippet = to_line(result.snippet, LONGEST_SNIPPET) or to_line(text, LONGEST_SNIPPET)
        yield ProviderResult(
            url=address,
            title=to_line(result.title, LONGEST_TITLE) or _first_line(text) or address,
            snippet=snippet,
            published=parse_date(result.date),
            author=to_line(result.author, LONGEST_TITLE) or None,
            text=kept,
            fulltext=address if page and kept and not isinstance(result, McpFullResult) else None,
        )


def make_address(name: str, result: McpResult, text: str) -> str:
    id = result.id or result.url or hashlib.sha256(text.encode()).hexdigest()[:12]
    return f"mcp://{name}/{quote(id, safe='')[:LONGEST_TITLE]}"


def is_web_page(url: str) -> bool:
    try:
        place = urlsplit(url.strip())
        whole = place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
    except ValueError:
        return False
    return whole and len(url) <= LONGEST_URL and all(letter.isprintable() and letter != " " for letter in url.strip())


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0].strip("# ")
    return line if len(line) <= TITLE else f"{line[: TITLE - 1].rstrip()}…"


MAX_TEXTS = 8  # texts for one search
AT_ONCE = 4
PER_MINUTE = 120.0
_COUNTS = ("limit", "max_results", "num_results", "count", "top_k")  # what servers call the number of results
_FOUND = TypeAdapter(tuple[ProviderResult, ...])


class McpServerSource(ApiSource):
    """The base of one class a server, as `source` makes it."""

    said: ClassVar[McpSourceSettings]
    one_site = True  # one collection, whatever it calls itself: asked beside a search of the web, never instead of it

    def build_request(self, inquiry: SearchRequest) -> ProviderRequest:
        return ProviderRequest(json={"query": inquiry.query, "limit": inquiry.limit})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return _FOUND.validate_json(body)

    def is_reachable(self) -> bool:
        return super().is_reachable() if self.said.url else shutil.which(self.said.command[0]) is not None

    @property
    def address(self) -> str:
        return self.said.url or ""

    def _describe(self, request: ProviderRequest) -> str:
        """Addresses and commands may hold keys: only what tells one from another is stored."""
        place = hashlib.sha256(repr((self.said.url, self.said.command)).encode()).hexdigest()[:12]
        return f"mcp {place} {self.said.tool} {self.said.fetch} {dict(request.json or {})}"

    def _to_http_request(self, request: ProviderRequest) -> HttpRequest:
        return HttpRequest(self.address, {}, {}, request.json)

    async def fetch(self, outgoing: HttpRequest, seconds: float) -> HttpResponse:
        """How long it may take is the server's own setting."""
        asked = dict(outgoing.json or {})
        async with self._bench.links.connect(self.name, self.said) as link:
            found = await self._call_tools(link, str(asked["query"]), int(asked["limit"]))
        body = _FOUND.dump_json(found).decode()
        if len(body) > MAX_BYTES:
            raise too_large_error(self.name)
        return HttpResponse(200, {}, body)

    def _parse_body(self, body: str) -> tuple[ProviderResult, ...]:
        return tuple(self.parse_results(body))  # it was read before, see `fetch`

    async def _call_tools(self, link: McpConnection, query: str, limit: int) -> tuple[ProviderResult, ...]:
        tools = await link.tools()
        if self.said.tool not in tools:
            raise no_tool_error(self.name, self.said.tool, sorted(tools))
        takes = tools[self.said.tool].input_schema.get("properties", {})
        count = next((name for name in _COUNTS if name in takes), None)
        answer = await link.call(self.said.tool, {"query": query, **({count: limit} if count else {})})
        if answer.is_error:
            raise rejection_error(self.name)
        given = read_results(answer)[:limit]
        fetches = self.said.fetch if self.said.fetch in tools else None
        first = await _fetch_texts(link, fetches, given[:MAX_TEXTS])
        return tuple(normalise_results([*first, *given[MAX_TEXTS:]], self.name))

    async def _to_hits(self, results: ProviderResults, inquiry: SearchRequest) -> list[Hit]:
        """What has no address of the web is a document however short it is: nothing else can be read of it."""
        hits = []
        for rank, result in enumerate(results.found[: inquiry.limit], 1):
            document = self._to_document(result, results.asked) if result.text else None
            if document is not None:
                await self._bench.store.put(document)
            hit = to_hit(result, document, self.name, self.kind, inquiry.query, rank)
            hits.append(hit if hit.host else hit.model_copy(update={"host": self.name}))
        return hits

    def _to_document(self, found: ProviderResult, fetched: datetime) -> Document:
        return Document(
            hash=hashlib.sha256(found.text.encode()).hexdigest(), text=found.text, url=found.url, title=found.title,
            host=self.name, author=found.author, published=found.published, fetched=fetched.astimezone(UTC),
            kind=self.kind,
        )  # fmt: skip


async def _fetch_texts(link: McpConnection, fetch: str | None, given: Sequence[McpResult]) -> list[McpResult]:
    """Results with their whole text, where the server gives it; one of which it gives none stays as it was found."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def whole(result: McpResult) -> McpResult:
        async with turns:
            text = await _fetch_text(link, fetch, result)
        return McpFullResult.model_construct(**{**dict(result), "text": text}) if text else result

    return list(await asyncio.gather(*map(whole, given)))


async def _fetch_text(link: McpConnection, fetch: str | None, result: McpResult) -> str:
    if fetch and result.id:
        answer = await link.call(fetch, {"id": result.id})
        return "" if answer.is_error else read_text(answer)
    is_resource = result.url and not result.text and not is_web_page(result.url)
    return await link.read_text(result.url) if is_resource else ""


def make_source(name: str, said: McpSourceSettings, bench: SourceContext) -> McpServerSource:
    """A provider like those that have a file of their own."""
    terms = ProviderTerms(per_minute=PER_MINUTE, at_once=AT_ONCE, usd=said.usd_per_request)
    made = {"name": name, "types": (said.kind,), "kind": said.kind, "own_terms": terms, "endpoint": "", "said": said}
    kind: type[McpServerSource] = type(f"McpServer_{name}", (McpServerSource,), made)
    return kind(bench)


def no_tool_error(name: str, tool: str, tools: Sequence[str]) -> SourceError:
    return SourceError(
        f"{name} has no tool called {tool!r}", help=f"Set search.mcp.{name}.tool to one of: {', '.join(tools)[:300]}.",
        provider=name,
    )  # fmt: skip
