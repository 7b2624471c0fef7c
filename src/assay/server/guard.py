"""What stands before every route: whom a request is for and where it comes from, and what every answer tells a browser.

A page in somebody's browser can send requests to a server on the same machine. It cannot name another Host than its own
address, and says where it comes from whenever it wants to change something.
"""

import asyncio
import logging
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.errors import AssayError
from assay.server.access import Principal, still_good
from assay.server.intake import Intake
from assay.server.problems import ForbiddenError, MisdirectedError, foreseen, unforeseen
from assay.server.service import Service
from assay.settings import Serving

_log = logging.getLogger("assay")
MCP = "/mcp"
STREAM = "text/event-stream"
LOOK = 2.0  # seconds after which it is asked again whether whoever reads a stream may

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SENT = (
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID",
    "Mcp-Protocol-Version", "Mcp-Session-Id", "X-Request-ID",
)  # fmt: skip
EXPOSED = (
    "Content-Disposition", "ETag", "Idempotency-Replayed", "Location", "Mcp-Session-Id", "RateLimit-Limit",
    "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "X-Assay-Thread", "X-Request-ID",
)  # fmt: skip
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def install(app: FastAPI, settings: Serving) -> None:
    """The last is the outermost."""
    app.add_middleware(Intake, settings=settings)
    if origins := sorted({_origin(one) for one in settings.allow_origins} - {""}):
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=METHODS, allow_headers=SENT, expose_headers=EXPOSED,
            max_age=600,
        )  # fmt: skip
    app.add_middleware(Front, settings=settings)


class Front:
    def __init__(self, app: ASGIApp, settings: Serving) -> None:
        self._app = app
        self._hosts = _hosts(settings)
        self._origins = {_origin(one) for one in (*settings.allow_origins, settings.public_url or "")} - {""}
        self._streams = _Streams()
        self._headers = dict(HEADERS)
        if (settings.public_url or "").lower().startswith("https://"):
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        scope.setdefault("state", {})
        answer = _Answer(send, lambda headers: self._dress(scope, headers))
        try:
            self._check(Request(scope))
            await self._while_good(scope, receive, answer)
        except ClientDisconnect:
            return
        except Exception as error:
            if answer.begun:
                raise
            told = await (foreseen if isinstance(error, AssayError) else unforeseen)(Request(scope), error)
            await told(scope, receive, answer)

    async def _while_good(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """A stream ends when whoever reads it would not be let in any more."""
        open_until = asyncio.timeout(None)
        try:
            async with open_until:
                answer.on_stream = lambda: self._streams.add(scope, open_until)
                try:
                    await self._pass_on(scope, receive, answer)
                finally:
                    self._streams.drop(scope, open_until)
        except TimeoutError:
            if not open_until.expired():
                raise
            await answer.end()

    async def _pass_on(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """HEAD is a GET of which the headers are sent alone; what goes on and on is given up once they are."""
        if scope["method"] != "HEAD":
            return await self._app(scope, receive, answer)
        answer.headers_only = True
        inner = {**scope, "method": "GET"}
        try:
            await self._app(inner, receive, answer)
        finally:
            scope.update({name: inner[name] for name in ("route", "path_params") if name in inner})

    def _check(self, request: Request) -> None:
        host = request.headers.get("host", "")
        if not self._answers_to(_name(host), request.scope.get("server")):
            raise MisdirectedError(
                f"this server does not answer to {host[:200] or 'no name'}",
                help="Use its own address, or add the name to server.allow_hosts.",
            )
        origin = request.headers.get("origin")
        matters = request.method not in ("GET", "HEAD") or request.url.path.startswith(MCP)
        if origin and matters and not self._is_ours(_origin(origin), host):
            raise ForbiddenError(
                f"requests of pages from {origin[:200]} are not taken", help="Add it to server.allow_origins."
            )

    def _is_ours(self, origin: str, host: str) -> bool:
        """Whether a page came from here, or from where pages may. The scheme may be that of a proxy."""
        return bool(origin) and (origin.partition("://")[2] == host.lower() or origin in self._origins)

    def _answers_to(self, name: str, server: tuple[str, int] | None) -> bool:
        """An address is no name that somebody else could have pointed here."""
        if name in self._hosts or name.endswith(".localhost") or (server and name == server[0]):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False

    def _dress(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "private, no-cache" if "etag" in headers else "no-store")
        if rate := scope["state"].get("rate"):
            for name, value in rate.headers.items():
                headers.setdefault(name, value)


class _Answer:
    """A `send` that knows whether it was used."""

    def __init__(self, send: Send, dress: Callable[[MutableHeaders], None]) -> None:
        self.begun = False
        self.headers_only = False
        self.on_stream: Callable[[], None] = lambda: None
        self._send = send
        self._dress = dress

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif not self.headers_only:
            await self._send(message)
        elif message.get("more_body"):
            raise ClientDisconnect  # as if nobody read it any more

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self, message: Message) -> None:
        self.begun = True
        headers = MutableHeaders(scope=message)
        self._dress(headers)
        await self._send(message)
        if self.headers_only:
            await self.end()
        elif headers.get("content-type", "").startswith(STREAM):
            self.on_stream()


class _Streams:
    """Those that are open, by whose they are: each token, or link, is looked at once for all its streams."""

    def __init__(self) -> None:
        self._open: dict[Principal, set[asyncio.Timeout]] = {}
        self._looking: dict[Principal, asyncio.Task[None]] = {}

    def add(self, scope: Scope, stream: asyncio.Timeout) -> None:
        caller: Principal | None = scope["state"].get("caller")
        if caller is None:
            return
        self._open.setdefault(caller, set()).add(stream)
        if caller not in self._looking:
            looking = self._look(scope["app"].state.service, caller)
            self._looking[caller] = asyncio.create_task(looking, name="watching")

    def drop(self, scope: Scope, stream: asyncio.Timeout) -> None:
        caller: Principal | None = scope["state"].get("caller")
        if caller is None or stream not in self._open.get(caller, ()):
            return
        self._open[caller].discard(stream)
        if not self._open[caller]:
            del self._open[caller]
            self._looking.pop(caller).cancel()

    async def _look(self, service: Service, caller: Principal) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                if not await still_good(service, caller):
                    break
            except AssayError:  # a database that is busy now may not be at the next look
                continue
            except Exception:  # noqa: BLE001  # nobody would look any more, and nobody be told
                _log.exception("whether a stream of %s may stay open could not be seen", caller.name)
        del self._looking[caller]
        for stream in self._open.pop(caller):
            stream.reschedule(asyncio.get_running_loop().time())


def _hosts(settings: Serving) -> set[str]:
    public = urlsplit(settings.public_url).netloc if settings.public_url else ""
    names = {_name(one) for one in ("localhost", settings.host, public, *settings.allow_hosts)}
    return names - {"", "0.0.0.0", "::"}  # noqa: S104  # every address, and no name


def _name(host: str) -> str:
    """Without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _origin(address: str) -> str:
    """Scheme, host and port; nothing for what has none of these, as `null` and `*`."""
    try:
        parts = urlsplit(address.strip().lower())
    except ValueError:  # no address at all
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""
