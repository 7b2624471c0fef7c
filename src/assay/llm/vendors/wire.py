"""The connection below every SDK: what may leave, how much may come back, and how long a connection may take.

Redirects are not followed and proxies of the environment are not used. Answers are asked for uncompressed, since a few
compressed kilobytes can unpack to gigabytes.
"""

import codecs
import ssl
from collections.abc import AsyncIterator
from contextvars import ContextVar
from functools import cache

import httpx2

from assay.errors import ModelError

MOST_BYTES = 32_000_000  # of one response; 8,000 tokens arrive as some 3 MB of events
CONNECT_SECONDS = 10.0

# What an SDK adds on its own (the system's name, headers of the environment) stays here.
SENT = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding",
     "user-agent", "authorization", "x-api-key", "x-goog-api-key", "anthropic-version"}
)  # fmt: skip


class Exchange:
    """One call on the wire, seen from below the SDK."""

    def __init__(self, seconds: float) -> None:
        # Address and TLS each have this long, so that a deadline that passes passes on a connection that stood.
        self.connect = min(CONNECT_SECONDS, seconds / 3)
        self.response: httpx2.Response | None = None

    async def close(self) -> None:
        """Whatever the SDK does with a stream that nobody reads to its end, the connection is closed."""
        if self.response is not None:
            await self.response.aclose()


EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


@cache
def certificates() -> ssl.SSLContext:
    """Read once, and in a thread: it takes longer than all else that stands between a call and its connection."""
    return httpx2.create_ssl_context(trust_env=False)


def client() -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=16)
    transport = _Transport(verify=certificates(), limits=limits, trust_env=False)
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


class _Transport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        exchange = EXCHANGE.get()
        for name in set(request.headers) - SENT:
            del request.headers[name]
        request.headers["accept-encoding"] = "identity"
        request.extensions["timeout"] = {"connect": exchange.connect, "read": None, "write": None, "pool": None}
        response = await super().handle_async_request(request)
        response.headers.pop("content-encoding", None)  # bytes we did not ask for are not unpacked
        response.stream = _Body(response.stream, text=response.status_code == 200)
        exchange.response = response
        return response


class _Body(httpx2.AsyncByteStream):
    def __init__(self, inner: object, *, text: bool) -> None:
        if not isinstance(inner, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous transport gave a synchronous stream")
        self._inner = inner
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")()
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MOST_BYTES:
                raise ModelError(f"the answer is longer than {MOST_BYTES // 1_000_000} MB", billed=True)
            if self._text:
                decoder.decode(chunk)  # some SDKs put U+FFFD for broken bytes, and a broken answer would pass for whole
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
