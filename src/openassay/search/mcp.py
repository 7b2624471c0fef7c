"""MCP servers as sources: each is asked under the name it has in the settings, on the same terms as other providers.

Its `tool` searches; its `fetch`, where it has one, gives the text of a result, which is then read as it is and not
looked for on the web. A process has one connection to a server, opened when it is first asked and shared by all runs.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from pydantic import AliasChoices, Field, TypeAdapter, field_validator

from openassay.errors import SourceError
from openassay.models.evidence import ProviderResult, ProviderTerms, SearchRequest
from openassay.search import base
from openassay.search.fields import parse_date, to_line
from openassay.search.http import (
    MAX_BYTES,
    HttpRequest,
    HttpResponse,
    timeout_error,
    too_large_error,
    unreachable_error,
)
from openassay.settings import McpSourceSettings
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, Tool

    from openassay.search.registry import SourceContext

MAX_TEXTS = 8  # fetched for one search
MAX_CALLS = 4  # at once
PER_MINUTE = 120.0
MAX_PAGES = 20  # of a list of tools
CLOSE_SECONDS = 10.0  # a program that does not end when asked to is killed well before that
_CONNECTION_LOST = frozenset({-32000, -32001})  # the connection is closed, or nothing came in time
_TITLE_LENGTH = 80  # characters of a text's first line, where nothing else says what it is
_LIST_NAMES = ("results", "result", "items", "documents", "hits", "data")  # under which servers give a list
_COUNT_NAMES = ("limit", "max_results", "num_results", "count", "top_k")  # what servers call the number of results
_RESULTS = TypeAdapter(tuple[ProviderResult, ...])


class McpServerSource(base.ApiSource):
    """The base of one class per server, as `make_source` makes it."""

    server: ClassVar[McpSourceSettings]
    one_site = True  # one collection, whatever it calls itself
    min_text = 1  # what is not on the web cannot be read anywhere else

    def build_request(self, search: SearchRequest) -> base.ProviderRequest:
        return base.ProviderRequest(json={"query": search.query, "limit": search.limit})

    def parse_results(self, body: str) -> Sequence[ProviderResult]:
        return _RESULTS.validate_json(body)

    def is_reachable(self) -> bool:
        return super().is_reachable() if self.server.url else shutil.which(self.server.command[0]) is not None

    @property
    def address(self) -> str:
        return self.server.url or ""

    def _describe(self, request: base.ProviderRequest) -> str:
        """Identify the server by a hash: its address and command may hold keys."""
        server = hashlib.sha256(repr((self.server.url, self.server.command)).encode()).hexdigest()[:12]
        return f"mcp {server} {self.server.tool} {self.server.fetch} {dict(request.json or {})}"

    def _to_http_request(self, request: base.ProviderRequest) -> HttpRequest:
        return HttpRequest(self.address, {}, {}, request.json)

    async def fetch(self, request: HttpRequest, seconds: float) -> HttpResponse:
        """Call the server's tools; how long that may take is the server's own setting."""
        asked = dict(request.json or {})
        query, limit = str(asked["query"]), int(asked["limit"])
        async with self.context.links.connect(self.name, self.server) as connection:
            tools = await connection.tools()
            if self.server.tool not in tools:
                raise SourceError(
                    f"{self.name} has no tool called {self.server.tool!r}",
                    help=f"Set search.mcp.{self.name}.tool to one of: {', '.join(sorted(tools))[:300]}.",
                    provider=self.name,
                )
            parameters = tools[self.server.tool].input_schema.get("properties", {})
            count = next((name for name in _COUNT_NAMES if name in parameters), None)
            answer = await connection.call(self.server.tool, {"query": query, **({count: limit} if count else {})})
            if answer.is_error:
                raise rejection_error(self.name)
            results = read_results(answer)[:limit]
            fetch = self.server.fetch if self.server.fetch in tools else None
            first = await _fetch_texts(connection, fetch, results[:MAX_TEXTS])
        found = tuple(normalise_results([*first, *results[MAX_TEXTS:]], self.name))
        body = _RESULTS.dump_json(found).decode()
        if len(body) > MAX_BYTES:
            raise too_large_error(self.name)
        return HttpResponse(200, {}, body)

    def _parse_body(self, body: str) -> tuple[ProviderResult, ...]:
        return tuple(self.parse_results(body))  # `fetch` has cleaned them

    def _document_host(self, url: str) -> str:
        return self.name


def make_source(name: str, server: McpSourceSettings, context: "SourceContext") -> McpServerSource:
    """Make a provider of a server, like those that have a file of their own."""
    terms = ProviderTerms(per_minute=PER_MINUTE, at_once=MAX_CALLS, usd=server.usd_per_request)
    fields = {"name": name, "types": (server.kind,), "kind": server.kind, "own_terms": terms, "server": server}
    source: type[McpServerSource] = type(f"McpServer_{name}", (McpServerSource,), fields)
    return source(context)


async def _fetch_texts(
    connection: "McpConnection", fetch: str | None, results: Sequence["McpResult"]
) -> list["McpResult"]:
    """Fetch the whole texts of results, where the server gives them; the others stay as they are."""
    slots = asyncio.Semaphore(MAX_CALLS)

    async def fetch_one(result: McpResult) -> McpResult:
        text = ""
        async with slots:
            if fetch and result.id:
                answer = await connection.call(fetch, {"id": result.id})
                text = "" if answer.is_error else read_text(answer)
            elif result.url and not result.text and not base.page_host(result.url.strip()):  # a resource of the server
                text = await connection.read_text(result.url)
        return McpFullResult.model_construct(**{**dict(result), "text": text}) if text else result

    return list(await asyncio.gather(*map(fetch_one, results)))


# The answers of servers: structured, JSON in a text, plain text, or links to resources.


def _alias_field(*names: str) -> Any:
    return Field(default="", validation_alias=AliasChoices(*names))


class McpResult(base.ProviderEntry):
    """One result, by whatever names its fields have; `id` is what the server's own fetch takes."""

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
    """A result with all of its text: no page of it has to be fetched."""


def read_results(answer: "CallToolResult") -> list[McpResult]:
    """Read the results of a search, best first; a text in no known form is one result."""
    from mcp_types import EmbeddedResource, ResourceLink, TextContent, TextResourceContents

    structured = _results_in_json(answer.structured_content)
    if structured is not None:
        return structured
    results: list[McpResult] = []
    for block in answer.content:
        if isinstance(block, TextContent):
            results += _results_in_text(block.text)
        elif isinstance(block, ResourceLink):
            results.append(
                McpResult(id="", name=block.title or block.name, uri=block.uri, description=block.description or "")
            )
        elif isinstance(block, EmbeddedResource) and isinstance(block.resource, TextResourceContents):
            results.append(McpResult(uri=block.resource.uri, text=block.resource.text))
    return results


def read_text(answer: "CallToolResult") -> str:
    """Read the text that a fetch gave."""
    structured = answer.structured_content
    blocks = [block.text for block in answer.content if block.type == "text"]
    whole = structured.get("result", structured) if isinstance(structured, dict) else None
    for item in (whole, *map(_parse_json, blocks)):
        if isinstance(item, dict) and (results := base.parse_leniently(McpResult, [item])) and results[0].text:
            return results[0].text
    return "\n\n".join([result.text for result in read_results(answer) if result.text] or blocks)


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


def _results_in_json(value: object) -> list[McpResult] | None:
    """Return the results in a list or an object; None where there is no list of them."""
    if isinstance(value, dict):
        if value and not value.keys() & set(_LIST_NAMES):
            one = base.parse_leniently(McpResult, [value])
            return one if one and (one[0].text or one[0].url) else None
        value = next((value[name] for name in _LIST_NAMES if name in value), None)
        if isinstance(value, dict | str):
            return _results_in_json(value) if isinstance(value, dict) else _results_in_text(value)
    if not isinstance(value, list):
        return None
    items = [{"text": item} if isinstance(item, str) else item for item in value]
    return base.parse_leniently(McpResult, [item for item in items if isinstance(item, dict)])


def normalise_results(results: Sequence[McpResult], name: str) -> Iterator[ProviderResult]:
    """Clean and bound results, each address once.

    A result with an address of the web is a page like any other; one without gets an address of its own for the text
    that was given; one with neither address nor text is dropped."""
    seen = set()
    for result in results:
        text = clean_text(result.text)[: base.MAX_TEXT].rstrip()
        url = result.url.strip()
        is_page = bool(base.page_host(url))
        if not (is_page or text):
            continue
        if not is_page:
            id = result.id or result.url or hashlib.sha256(text.encode()).hexdigest()[:12]
            url = f"mcp://{name}/{quote(id, safe='')[: base.MAX_TITLE]}"
        if url in seen:
            continue
        seen.add(url)
        first_line = text.split("\n", 1)[0].strip("# ")
        if len(first_line) > _TITLE_LENGTH:
            first_line = f"{first_line[: _TITLE_LENGTH - 1].rstrip()}…"
        snippet = to_line(result.snippet, base.MAX_SNIPPET) or to_line(text, base.MAX_SNIPPET)
        text = text if not is_page or len(text) >= base.READABLE else ""  # a few words are no substitute for the page
        yield ProviderResult(
            url=url,
            title=to_line(result.title, base.MAX_TITLE) or first_line or url,
            snippet=snippet,
            published=parse_date(result.date),
            author=to_line(result.author, base.MAX_TITLE) or None,
            text=text,
            fulltext=url if is_page and text and not isinstance(result, McpFullResult) else None,
        )


# Connections to servers.


class McpConnection:
    """A connection to one server. Once it `is_over`, another one has to be opened.

    It belongs to a task of its own, since the task that opens one must close it; any task may use it."""

    def __init__(self, name: str, server: McpSourceSettings) -> None:
        self.name = name
        self._server = server
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        self._tools: dict[str, Tool] | None = None
        self.task = asyncio.create_task(self._run(), name=f"mcp {name}")

    @property
    def is_over(self) -> bool:
        return self._over.is_set() or self.task.done()

    @property
    def is_open(self) -> bool:
        return self._client.done()

    def disconnect(self) -> None:
        self._over.set()
        if not self.is_open:  # a server that never answers
            self.task.cancel()

    async def tools(self) -> Mapping[str, "Tool"]:
        if self._tools is None:
            client, cursor = await self._get_client(), None
            found: dict[str, Tool] = {}
            for _ in range(MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                found |= {tool.name: tool for tool in page.tools}
                cursor = page.next_cursor
                if cursor is None:
                    break
            self._tools = found
        return self._tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        return await (await self._get_client()).call_tool(tool, dict(arguments))

    async def read_text(self, uri: str) -> str:
        """Read a resource that the server has named; empty for one that is no text."""
        contents = (await (await self._get_client()).read_resource(uri)).contents
        return "\n\n".join(text for content in contents if (text := getattr(content, "text", "")))

    async def _get_client(self) -> "Client":
        return await asyncio.shield(self._client)  # a caller that gives up does not cancel it for the others

    async def _run(self) -> None:
        try:
            from mcp import Client

            # What a server prints beside the protocol would be shown as a traceback, once a line.
            logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
            async with (
                _open_transport(self._server) as transport,
                Client(transport, read_timeout_seconds=self._server.seconds, cache=None) as client,
            ):
                self._client.set_result(client)
                await self._over.wait()
        except Exception:  # noqa: BLE001  # whatever a program, a network or a protocol can do
            self._over.set()
            if not self.is_open:
                self._client.set_exception(unreachable_error(self.name))
                self._client.exception()  # nobody may be waiting any more


@asynccontextmanager
async def _open_transport(server: McpSourceSettings) -> AsyncIterator["Transport"]:
    """Connect by HTTP or to a program. A program sees none of our keys: it gets PATH, HOME and the like, and `env`."""
    import httpx2
    from mcp import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if server.url:
        headers = {"Authorization": f"Bearer {server.token.get_secret_value()}"} if server.token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=server.seconds, trust_env=False) as http:
            yield streamable_http_client(server.url, http_client=http)
        return
    program, *arguments = server.command
    env = {name: value.get_secret_value() for name, value in server.env.items()}
    with open(os.devnull, "w") as silent:  # noqa: ASYNC230  # nothing to wait for
        yield stdio_client(StdioServerParameters(command=program, args=arguments, env=env), errlog=silent)


class McpConnectionPool:
    """All connections of a process."""

    def __init__(self) -> None:
        self._connections: dict[str, McpConnection] = {}
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def connect(self, name: str, server: McpSourceSettings) -> AsyncIterator[McpConnection]:
        """Use the connection to a server. Every failure is a SourceError, and after most the next call reconnects."""
        from mcp import MCPError

        connection = self._connections.get(name)
        if connection is None or connection.is_over:
            connection = self._connections[name] = McpConnection(name, server)
        try:
            async with asyncio.timeout(server.seconds):
                yield connection
        except SourceError:
            raise
        except TimeoutError:
            self._drop(connection)
            raise timeout_error(name, server.seconds, sent=connection.is_open) from None
        except MCPError as error:
            if connection.is_over or error.code in _CONNECTION_LOST:
                self._drop(connection)
                raise unreachable_error(name) from None
            raise rejection_error(name) from None
        except Exception:  # noqa: BLE001  # a stream that broke, or an invalid answer
            self._drop(connection)
            raise unreachable_error(name) from None

    def _drop(self, connection: McpConnection) -> None:
        connection.disconnect()
        if self._connections.get(connection.name) is connection:
            del self._connections[connection.name]
        self._ending.add(connection.task)
        connection.task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        for connection in list(self._connections.values()):
            self._drop(connection)
        if self._ending:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(self._ending, timeout=CLOSE_SECONDS)


def rejection_error(name: str) -> SourceError:
    """Return the error of a server that refused a call; its own words are not repeated, as they may hold anything."""
    return SourceError(
        f"{name} rejected the query", help=f"Check search.mcp.{name}: its tool, and what it needs.", provider=name
    )
