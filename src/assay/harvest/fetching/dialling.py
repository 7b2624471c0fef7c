"""Connections to checked addresses: a name is looked up once, all it leads to is judged, and that is what is dialled.

Nothing looks a name up a second time, so an answer that changes between check and connection (rebinding) has no effect.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, zip_longest

from httpcore2 import AnyIOBackend, AsyncNetworkBackend, AsyncNetworkStream, ConnectError, ConnectTimeout

from assay.errors import FetchError, RefusedError
from assay.harvest.fetching.guard import IP, Address, Guard

Resolve = Callable[[str], Awaitable[Sequence[str]]]  # a host name -> its addresses; OSError when it has none
Dial = Callable[[str, int], Awaitable[AsyncNetworkStream]]  # an IP address and a port

_LOOKUP_SECONDS = 8.0
_DIAL_SECONDS = 6.0  # one address
_TRIES = 4  # addresses of one name
_LOOKUPS = 16  # at once; a name server that hangs must not take the threads of everything else


class Dialler(AsyncNetworkBackend):
    """The only way out. Raises RefusedError, or FetchError when nobody answers."""

    def __init__(self, guard: Guard, resolve: Resolve | None = None, dial: Dial | None = None) -> None:
        self._guard = guard
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="lookup")
        self._resolve = resolve or self._lookup
        self._dial = dial or _dial

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[object] | None = None,
    ) -> AsyncNetworkStream:
        address = self._guard.check_host(host, port)
        for ip in await self._located(address):
            try:
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await self._dial(str(ip), port)
            except (TimeoutError, OSError, ConnectError, ConnectTimeout):
                continue
        raise FetchError("could not be reached", help="The site may be down.", retryable=True, url=address.url)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        socket_options: Iterable[object] | None = None,
    ) -> AsyncNetworkStream:
        raise RefusedError("is a socket of this machine", help="Only pages of the public web are fetched.")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _located(self, address: Address) -> list[IP]:
        if address.ip is not None:
            return [address.ip]
        try:
            async with asyncio.timeout(_LOOKUP_SECONDS):
                answers = await self._resolve(address.host)
        except TimeoutError as error:
            raise _unknown(address, retryable=True) from error
        except (OSError, UnicodeError) as error:
            again = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
            raise _unknown(address, retryable=again) from error
        if not answers:
            raise _unknown(address, retryable=False)
        return _alternating(self._guard.check_answers(address, answers))[:_TRIES]

    async def _lookup(self, host: str) -> list[str]:
        name = host.encode("ascii")  # as bytes: the parser has done IDNA already, and better
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        )
        return [str(sockaddr[0]) for *_, sockaddr in found]


async def _dial(address: str, port: int) -> AsyncNetworkStream:
    return await AnyIOBackend().connect_tcp(address, port)


def _alternating(ips: list[IP]) -> list[IP]:
    """Both families early: a machine with a broken IPv6 gets through all the same."""
    first = [ip for ip in ips if ip.version == ips[0].version]
    second = [ip for ip in ips if ip.version != ips[0].version]
    return [ip for ip in chain.from_iterable(zip_longest(first, second)) if ip is not None]


def _unknown(address: Address, *, retryable: bool) -> FetchError:
    reason = "has a host name that could not be looked up" if retryable else "has a host name that does not exist"
    return FetchError(reason, help="Check the spelling and the connection.", retryable=retryable, url=address.url)
