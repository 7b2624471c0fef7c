"""Servers on 127.0.0.1 that answer requests as they are told to, one task a connection."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from assay.testing.wire import HEAD_LIMIT, Request, Wire


class Listening:
    """`answer` does with a request and its connection what it likes. What it raises, unless the client has gone, ends
    the connection and is raised again when all is closed. Above `most` connections, new ones are closed at once."""

    def __init__(self, answer: Callable[[Wire, Request], Awaitable[None]], *, most: int = 1000) -> None:
        self._answer = answer
        self._most = most
        self._servers: list[asyncio.Server] = []
        self._open: dict[asyncio.Task[None], Wire] = {}
        self._failures: list[BaseException] = []

    async def begin(self, secure: ssl.SSLContext | None = None) -> int:
        """One more server; its port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=HEAD_LIMIT, ssl=secure)
        self._servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    async def end(self, error: BaseException | None) -> None:
        """`error` is what ends it: it is not hidden by another."""
        for server in self._servers:
            server.close()
        for task, wire in self._open.items():
            wire.abort()
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()
        if self._failures and error is None:
            raise self._failures[0]

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= self._most:
            writer.close()
            return
        wire = Wire(reader, writer)
        task = asyncio.create_task(self._serve(wire))
        self._open[task] = wire
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._open[task]
        if not task.cancelled() and (error := task.exception()):
            self._failures.append(error)

    async def _serve(self, wire: Wire) -> None:
        try:
            while (request := await wire.request()) is not None:
                await self._answer(wire, request)
        except (ConnectionError, ssl.SSLError):
            pass  # the client has gone
        finally:
            await wire.closed()
