"""MCP servers as sources: each is asked under the name it has in the settings, and on the same terms as any other
provider. Its `tool` searches; its `fetch`, where it has one, gives the text of a result, which is then read as it is
and not looked for on the web.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar

from pydantic import TypeAdapter

from assay.errors import SourceError
from assay.model.inquiry import Found, Inquiry, Terms
from assay.model.source import Document, Hit
from assay.search.api import ApiSource, Findings, Request
from assay.search.http import LARGEST, Outgoing, Reply, too_large
from assay.search.mcp_answers import Result, Whole, found, is_page, results, text_in
from assay.search.mcp_link import Link, refused
from assay.search.registry import Bench
from assay.search.results import hit_of
from assay.settings import McpSource

FETCHED = 8  # texts for one search
AT_ONCE = 4
PER_MINUTE = 120.0
_COUNTS = ("limit", "max_results", "num_results", "count", "top_k")  # what servers call the number of results
_FOUND = TypeAdapter(tuple[Found, ...])


class McpServer(ApiSource):
    """The base of one class a server, as `source` makes it."""

    said: ClassVar[McpSource]
    one_site = True  # one collection, whatever it calls itself: asked beside a search of the web, never instead of it

    def request(self, inquiry: Inquiry) -> Request:
        return Request(json={"query": inquiry.query, "limit": inquiry.limit})

    def found(self, body: str) -> Sequence[Found]:
        return _FOUND.validate_json(body)

    def reachable(self) -> bool:
        return super().reachable() if self.said.url else shutil.which(self.said.command[0]) is not None

    @property
    def address(self) -> str:
        return self.said.url or ""

    def _shown(self, request: Request) -> str:
        """Addresses and commands may hold keys: only what tells one from another is stored."""
        place = hashlib.sha256(repr((self.said.url, self.said.command)).encode()).hexdigest()[:12]
        return f"mcp {place} {self.said.tool} {self.said.fetch} {dict(request.json or {})}"

    def _outgoing(self, request: Request) -> Outgoing:
        return Outgoing(self.address, {}, {}, request.json)

    async def fetch(self, outgoing: Outgoing, seconds: float) -> Reply:
        """How long it may take is the server's own setting."""
        asked = dict(outgoing.json or {})
        async with self._bench.links.to(self.name, self.said) as link:
            found = await self._asked(link, str(asked["query"]), int(asked["limit"]))
        body = _FOUND.dump_json(found).decode()
        if len(body) > LARGEST:
            raise too_large(self.name)
        return Reply(200, {}, body)

    def _read(self, body: str) -> tuple[Found, ...]:
        return tuple(self.found(body))  # it was read before, see `fetch`

    async def _asked(self, link: Link, query: str, limit: int) -> tuple[Found, ...]:
        tools = await link.tools()
        if self.said.tool not in tools:
            raise no_tool(self.name, self.said.tool, sorted(tools))
        takes = tools[self.said.tool].input_schema.get("properties", {})
        count = next((name for name in _COUNTS if name in takes), None)
        answer = await link.call(self.said.tool, {"query": query, **({count: limit} if count else {})})
        if answer.is_error:
            raise refused(self.name)
        given = results(answer)[:limit]
        fetches = self.said.fetch if self.said.fetch in tools else None
        first = await _with_texts(link, fetches, given[:FETCHED])
        return tuple(found([*first, *given[FETCHED:]], self.name))

    async def _hits(self, results: Findings, inquiry: Inquiry) -> list[Hit]:
        """What has no address of the web is a document however short it is: nothing else can be read of it."""
        hits = []
        for rank, result in enumerate(results.found[: inquiry.limit], 1):
            document = self._document(result, results.asked) if result.text else None
            if document is not None:
                await self._bench.store.put(document)
            hit = hit_of(result, document, self.name, self.kind, inquiry.query, rank)
            hits.append(hit if hit.host else hit.model_copy(update={"host": self.name}))
        return hits

    def _document(self, found: Found, fetched: datetime) -> Document:
        return Document(
            hash=hashlib.sha256(found.text.encode()).hexdigest(), text=found.text, url=found.url, title=found.title,
            host=self.name, author=found.author, published=found.published, fetched=fetched.astimezone(UTC),
            kind=self.kind,
        )  # fmt: skip


async def _with_texts(link: Link, fetch: str | None, given: Sequence[Result]) -> list[Result]:
    """Results with their whole text, where the server gives it; one of which it gives none stays as it was found."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def whole(result: Result) -> Result:
        async with turns:
            text = await _text(link, fetch, result)
        return Whole.model_construct(**{**dict(result), "text": text}) if text else result

    return list(await asyncio.gather(*map(whole, given)))


async def _text(link: Link, fetch: str | None, result: Result) -> str:
    if fetch and result.id:
        answer = await link.call(fetch, {"id": result.id})
        return "" if answer.is_error else text_in(answer)
    is_resource = result.url and not result.text and not is_page(result.url)
    return await link.text_of(result.url) if is_resource else ""


def source(name: str, said: McpSource, bench: Bench) -> McpServer:
    """A provider like those that have a file of their own."""
    terms = Terms(per_minute=PER_MINUTE, at_once=AT_ONCE, usd=said.usd_per_request)
    made = {"name": name, "types": (said.kind,), "kind": said.kind, "own_terms": terms, "endpoint": "", "said": said}
    kind: type[McpServer] = type(f"McpServer_{name}", (McpServer,), made)
    return kind(bench)


def no_tool(name: str, tool: str, tools: Sequence[str]) -> SourceError:
    return SourceError(
        f"{name} has no tool called {tool!r}", help=f"Set search.mcp.{name}.tool to one of: {', '.join(tools)[:300]}.",
        provider=name,
    )  # fmt: skip
