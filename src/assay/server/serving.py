"""Running the server: what is open while it runs, and how it stops."""

import asyncio
import gc
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from assay.bootstrap import open_premises
from assay.errors import ConfigurationError
from assay.server.app import create_app
from assay.server.hooks import Hooks
from assay.server.listening import bound, listening
from assay.server.service import Service
from assay.settings import Serving, Settings
from assay.worker.schema import check_fleet, prepare

_log = logging.getLogger("assay")


class Served(NamedTuple):
    url: str
    service: Service


@asynccontextmanager
async def open_server(settings: Settings) -> AsyncIterator[Served]:
    """A server that answers in here; its address is told, since it may have chosen the port. At the end no request is
    taken any more, streams end where they are, and runs after the step they are at: the next server goes on."""
    if settings.server.runs == "workers":
        check_fleet(settings)
    with bound(settings.server.host, settings.server.port) as listener:
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
                listening(create_app(service), service, listener),
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
