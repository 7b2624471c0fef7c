"""Connections to MCP servers: one each, opened when it is first asked, shared by all runs, closed with the process.

A connection belongs to a task of its own, since the task that opens one must close it; any task may use it.
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

MAX_PAGES = 20  # of a list of tools
CLOSE_SECONDS = 10.0  # a program that does not end when asked to is killed well before that
_CONNECTION_LOST = frozenset({-32000, -32001})  # the connection is closed, or nothing came in time


class McpConnection:
    """A connection to one server. Once it `is_over`, another one has to be opened."""

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
