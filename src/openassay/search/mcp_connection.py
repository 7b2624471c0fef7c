"""Connections to MCP servers: one each, opened when it is first asked, shared by all runs, closed with the process.

A connection is held by a task of its own, since what opens one must close it; whoever asks does so from any task.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from openassay.errors import SourceError
from openassay.search.http import timeout_error, unreachable_error
from openassay.settings import McpSourceSettings

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, Tool

MOST_PAGES = 20  # of a list of tools
CLOSING_SECONDS = 10.0  # a program that does not end when it is told to is killed well before that


class McpConnection:
    """One server. It is of no use any more once `is_over`: another one has to be opened."""

    def __init__(self, name: str, said: McpSourceSettings) -> None:
        self.name = name
        self._said = said
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
            for _ in range(MOST_PAGES):
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
        """Of a resource the server has spoken of; "" for one that is no text."""
        contents = (await (await self._get_client()).read_resource(uri)).contents
        return "\n\n".join(text for content in contents if (text := getattr(content, "text", "")))

    async def _get_client(self) -> "Client":
        return await asyncio.shield(self._client)  # who gives up waiting does not take it from the others

    async def _run(self) -> None:
        try:
            async with self._connect() as client:
                self._client.set_result(client)
                await self._over.wait()
        except Exception:  # noqa: BLE001  # whatever a program, a network or a protocol can do
            self._over.set()
            if not self.is_open:
                self._client.set_exception(unreachable_error(self.name))
                self._client.exception()  # nobody may be waiting any more

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator["Client"]:
        from mcp import Client

        # What a server prints beside the protocol would be shown as a traceback, once a line.
        logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
        async with (
            _open_transport(self._said) as transport,
            Client(transport, read_timeout_seconds=self._said.seconds, cache=None) as client,
        ):
            yield client


@asynccontextmanager
async def _open_transport(said: McpSourceSettings) -> AsyncIterator["Transport"]:
    """A program sees none of our keys: of the environment it gets PATH, HOME and the like, and what was set for it."""
    import httpx2
    from mcp import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if said.url:
        headers = {"Authorization": f"Bearer {said.token.get_secret_value()}"} if said.token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=said.seconds, trust_env=False) as http:
            yield streamable_http_client(said.url, http_client=http)
        return
    program, *arguments = said.command
    own = {name: value.get_secret_value() for name, value in said.env.items()}
    with open(os.devnull, "w") as silent:  # noqa: ASYNC230  # nothing to wait for
        yield stdio_client(StdioServerParameters(command=program, args=arguments, env=own), errlog=silent)


class McpConnectionPool:
    """All connections of a process."""

    def __init__(self) -> None:
        self._links: dict[str, McpConnection] = {}
        self._left: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def connect(self, name: str, said: McpSourceSettings) -> AsyncIterator[McpConnection]:
        """What goes wrong inside is a SourceError; after most things that can, the server is connected to anew."""
        from mcp import MCPError

        link = self._get_connection(name, said)
        try:
            async with asyncio.timeout(said.seconds):
                yield link
        except SourceError:
            raise
        except TimeoutError:
            self._drop(link)
            raise timeout_error(name, said.seconds, sent=link.is_open) from None
        except MCPError as error:
            if link.is_over or error.code in _LOST:
                self._drop(link)
                raise unreachable_error(name) from None
            raise rejection_error(name) from None
        except Exception:  # noqa: BLE001  # a stream that broke, an answer that is none
            self._drop(link)
            raise unreachable_error(name) from None

    def _get_connection(self, name: str, said: McpSourceSettings) -> McpConnection:
        held = self._links.get(name)
        if held is None or held.is_over:
            held = self._links[name] = McpConnection(name, said)
        return held

    def _drop(self, link: McpConnection) -> None:
        link.disconnect()
        if self._links.get(link.name) is link:
            del self._links[link.name]
        self._left.add(link.task)
        link.task.add_done_callback(self._left.discard)

    async def close(self) -> None:
        for link in list(self._links.values()):
            self._drop(link)
        if self._left:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(self._left, timeout=CLOSING_SECONDS)


_LOST = frozenset({-32000, -32001})  # the connection is closed, or nothing came in time


def rejection_error(name: str) -> SourceError:
    """Its own words are not repeated: they may hold anything."""
    return SourceError(
        f"{name} did not accept the question", help=f"Check search.mcp.{name}: its tool, and what it needs.",
        provider=name,
    )  # fmt: skip
