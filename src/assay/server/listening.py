"""A socket that is bound, and an application that answers on it, for as long as it is open."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from assay.errors import AssayError, ConfigurationError
from assay.server.service import Service

CLOSING = 3  # seconds that requests under way are given to end when the server stops


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are for whoever runs this to heed."""
        yield


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Before anything else is opened: a port that is taken is told at once."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends at once, not after 40 ms, if it is told TCP
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"{host} is no address to listen on ({error})", help="Set server.host, or --host."
        ) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}, port {port}: {(error.strerror or str(error)).lower()}",
                help="Is another server running? Choose another port with --port (0: any that is free).",
            ) from error
        yield listener


@asynccontextmanager
async def listening(app: FastAPI, service: Service, listener: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=CLOSING,
    )  # fmt: skip
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="serving")
    try:
        while not server.started:  # uvicorn has nothing to wait on
            if serving.done():
                await serving  # which tells why, if it knows
                raise AssayError("the server could not be started")
            await asyncio.sleep(0.01)
        yield
    finally:
        service.feeds.close()
        server.should_exit = True
        await serving
