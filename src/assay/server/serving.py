"""Running the server: what is open while it runs, and how it stops."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvicorn

from assay.bootstrap import open_premises
from assay.errors import AssayError, ConfigurationError
from assay.server.app import create_app
from assay.server.hooks import Hooks
from assay.server.service import Service
from assay.settings import Serving, Settings
from assay.worker.schema import check_fleet, prepare

_log = logging.getLogger("assay")
CLOSING = 3  # seconds that requests under way are given to end when the server stops


class Served(NamedTuple):
    url: str
    service: Service


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are for whoever runs this to heed."""
        yield


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Served]:
    """A server that answers in here; its address is told, since it may have chosen the port. At the end no request is
    taken any more, streams end where they are, and runs after the step they are at: the next server goes on."""
    if settings.server.runs == "workers":
        check_fleet(settings)
    with _bound(settings.server) as listener:
        async with open_premises(settings) as premises:
            if settings.server.runs == "workers":
                await asyncio.to_thread(prepare, premises.world.rows.database)
            known = await premises.users.anybody()
            if not known:
                _refuse_strangers(listener, settings.server)
            service = Service(premises=premises, open_to_all=await premises.users.nobody())
            hooks = Hooks(premises)
            _collect_less()
            async with (
                _listening(service, listener),
                _beside(dispatching=service.dispatcher.run(), webhooks=hooks.run()),
            ):
                yield Served(_address(settings.server, listener), service)
            await premises.engine.drain(seconds=settings.server.drain_seconds)


def _collect_less() -> None:
    """Garbage is collected in fewer and shorter pauses: one over all that was imported held up every request for
    138 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@asynccontextmanager
async def _listening(service: Service, listener: socket.socket) -> AsyncIterator[None]:
    config = uvicorn.Config(
        create_app(service), log_config=None, access_log=False, lifespan="off", ws="none", server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=CLOSING,
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


@asynccontextmanager
async def _beside(**works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """What goes on all the time, until the server stops."""
    tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
    for task in tasks:
        task.add_done_callback(_tell)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _tell(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("%s has failed: %s: %s", task.get_name(), type(error).__name__, error, exc_info=error)


@contextlib.contextmanager
def _bound(settings: Serving) -> Iterator[socket.socket]:
    """Before anything else is opened: a port that is taken is told at once."""
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)  # asyncio sends at once, not after 40 ms, if it is told TCP
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"{settings.host} is no address to listen on ({error})", help="Set server.host, or --host."
        ) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {settings.host}, port {settings.port}: {(error.strerror or str(error)).lower()}",
                help="Is another server running? Choose another port with --port (0: any that is free).",
            ) from error
        yield listener


def _refuse_strangers(listener: socket.socket, settings: Serving) -> None:
    """Names under which others come in, through a proxy on this machine, say, are as good as an address for them."""
    address = listener.getsockname()[0].partition("%")[0]
    names = [urlsplit(settings.public_url).hostname or ""] if settings.public_url else []
    if not all(map(_is_here, [address, *names, *settings.allow_hosts])):
        raise ConfigurationError(
            "nobody has a token, so only this machine may reach the server",
            help="Add somebody: assay users add NAME. Or listen on 127.0.0.1, without public_url and allow_hosts.",
        )


def _is_here(host: str) -> bool:
    name = host.lower().strip("[]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _address(settings: Serving, listener: socket.socket) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}"
