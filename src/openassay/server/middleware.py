"""What stands before every route: whom a request is for and where it comes from, and what every answer tells a browser.

A page in somebody's browser can send requests to a server on the same machine. It cannot name another Host than its own
address, and says where it comes from whenever it wants to change something.
"""

import asyncio
import logging
import re
from collections.abc import Callable
from ipaddress import ip_address
from time import perf_counter
from urllib.parse import urlsplit
from uuid import uuid4

import numpy
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openassay.errors import OpenAssayError
from openassay.models.thread import is_id
from openassay.server.auth import Principal, is_still_valid
from openassay.server.problems import (
    ForbiddenError,
    MalformedError,
    MisdirectedError,
    Refusal,
    SlowError,
    TooLargeError,
    handle_crash,
    handle_error,
)
from openassay.server.service import Service
from openassay.settings import ServerSettings
from openassay.telemetry import logs, request_id, traceparent
from openassay.telemetry.endpoint import attach_metrics
from openassay.telemetry.metrics import METHODS, Metrics
from openassay.telemetry.traces import RequestTrace, Traces

# What comes in: how large it may be, how deep, and how long it is waited for. Anything but files is read before it is
# given on, so that a route never waits for a caller.

MB = 1_000_000
SLACK = 1 * MB  # what a form adds to its files
DEEPEST = 64  # levels of JSON; Python's own parser gives up, or is given up on, at several hundred
BODY_SECONDS = 30.0  # a body is waited for; of files, each piece of them
DRAIN_BYTES, DRAIN_SECONDS = 16 * MB, 5.0  # of what is too large is read, so that whoever sends it hears why
UPLOADS = "/api/documents"
# Possessive, and a text may lack its end: otherwise one that never ends is looked for again from each of its quotes.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as int8: one level more, one less
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class BodyLimitMiddleware:
    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._most = round(settings.body_mb * MB)
        self._most_files = round(settings.uploads_mb * MB) + SLACK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return await self._app(scope, receive, send)
        try:
            receive = await self._wrap_receive(scope, Headers(scope=scope), receive)
        except Refusal as error:
            answer = await handle_error(Request(scope), error)
            return await answer(scope, receive, send)
        await self._app(scope, receive, send)

    async def _wrap_receive(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Files are counted as they come; anything else is read before it is given on."""
        files = scope["path"] == UPLOADS and scope["method"] == "POST"
        most = self._most_files if files else self._most
        length = int(headers.get("content-length", "0"))  # the server itself has seen to it that it is a number
        if length > most:
            await _drain(receive, length)
            raise _too_large_error(most)
        if files:
            return _limit_size(receive, most)
        body = await _read_body(receive, most)
        if "json" in headers.get("content-type", "").lower() and is_deep(body):
            raise MalformedError(f"this JSON is more than {DEEPEST} levels deep", help="Send less.")
        return _replay_body(body, receive)


def is_deep(body: bytes) -> bool:
    """Whether brackets are nested deeper than anything we take. A megabyte of them takes 10 ms; taking pairs away level
    by level took 180, which would hold up everybody."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    left = _TEXTS.sub(b"", body).translate(_STEPS, _NOT_BRACKETS)
    return bool(left) and int(numpy.max(numpy.frombuffer(left, numpy.int8).cumsum(dtype=numpy.int32))) > DEEPEST


async def _read_body(receive: Receive, most: int) -> bytes:
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    break
                if not message.get("more_body"):
                    return b"".join(parts)
    except TimeoutError:
        raise _too_slow_error() from None
    await _drain(receive)
    raise _too_large_error(most)


async def _drain(receive: Receive, length: int = 0) -> None:
    """A connection that is closed in the middle of a body takes the answer with it."""
    size = length if length > DRAIN_BYTES else 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= DRAIN_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body"):
                    return
    except TimeoutError:
        return


def _replay_body(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _limit_size(receive: Receive, most: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise _too_slow_error() from None
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large_error(most)
        return message

    return counted


def _too_large_error(most: int) -> TooLargeError:
    return TooLargeError(
        f"the body is larger than {most / MB:g} MB", help="Send less.", headers={"Connection": "close"}
    )


def _too_slow_error() -> SlowError:
    message = f"the body did not come within {BODY_SECONDS:g} seconds"
    return SlowError(message, help="Send it again.", headers={"Connection": "close"})


_log = logging.getLogger("openassay")
MCP = "/mcp"
STREAM_TYPE = "text/event-stream"
LOOK = 2.0  # seconds after which it is asked again whether whoever reads a stream may

ALLOW_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
ALLOW_HEADERS = (
    "Authorization", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID",
    "Mcp-Protocol-Version", "Mcp-Session-Id", "X-Request-ID",
)  # fmt: skip
EXPOSE_HEADERS = (
    "Content-Disposition", "ETag", "Idempotency-Replayed", "Location", "Mcp-Session-Id", "RateLimit-Limit",
    "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "X-OpenAssay-Thread", "X-Request-ID",
)  # fmt: skip
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def install_guard(app: FastAPI, settings: ServerSettings) -> None:
    """The last is the outermost."""
    app.add_middleware(BodyLimitMiddleware, settings=settings)
    if origins := sorted({_parse_origin(one) for one in settings.allow_origins} - {""}):
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=ALLOW_METHODS,
            allow_headers=ALLOW_HEADERS,
            expose_headers=EXPOSE_HEADERS,
            max_age=600,
        )
    app.add_middleware(GuardMiddleware, settings=settings)


class GuardMiddleware:
    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._hosts = _own_hosts(settings)
        self._origins = {_parse_origin(one) for one in (*settings.allow_origins, settings.public_url or "")} - {""}
        self._streams = _OpenStreams()
        self._headers = dict(HEADERS)
        if (settings.public_url or "").lower().startswith("https://"):
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        scope.setdefault("state", {})
        answer = _ResponseSender(send, lambda headers: self._add_headers(scope, headers))
        try:
            self._check(Request(scope))
            await self._run_while_valid(scope, receive, answer)
        except ClientDisconnect:
            return
        except Exception as error:
            if answer.begun:
                raise
            told = await (handle_error if isinstance(error, OpenAssayError) else handle_crash)(Request(scope), error)
            await told(scope, receive, answer)

    async def _run_while_valid(self, scope: Scope, receive: Receive, answer: "_ResponseSender") -> None:
        """A stream ends when whoever reads it would not be let in any more."""
        open_until = asyncio.timeout(None)
        try:
            async with open_until:
                answer.on_stream = lambda: self._streams.add(scope, open_until)
                try:
                    await self._forward(scope, receive, answer)
                finally:
                    self._streams.drop(scope, open_until)
        except TimeoutError:
            if not open_until.expired():
                raise
            await answer.end()

    async def _forward(self, scope: Scope, receive: Receive, answer: "_ResponseSender") -> None:
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
        if not self._is_own_host(_strip_port(host), request.scope.get("server")):
            raise MisdirectedError(
                f"this server does not answer to {host[:200] or 'no name'}",
                help="Use its own address, or add the name to server.allow_hosts.",
            )
        origin = request.headers.get("origin")
        matters = request.method not in ("GET", "HEAD") or request.url.path.startswith(MCP)
        if origin and matters and not self._is_own_origin(_parse_origin(origin), host):
            raise ForbiddenError(
                f"requests of pages from {origin[:200]} are not taken", help="Add it to server.allow_origins."
            )

    def _is_own_origin(self, origin: str, host: str) -> bool:
        """Whether a page came from here, or from where pages may. The scheme may be that of a proxy."""
        return bool(origin) and (origin.partition("://")[2] == host.lower() or origin in self._origins)

    def _is_own_host(self, name: str, server: tuple[str, int] | None) -> bool:
        """An address is no name that somebody else could have pointed here."""
        if name in self._hosts or name.endswith(".localhost") or (server and name == server[0]):
            return True
        try:
            return ip_address(name).is_loopback
        except ValueError:
            return False

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "private, no-cache" if "etag" in headers else "no-store")
        if rate := scope["state"].get("rate"):
            for name, value in rate.headers.items():
                headers.setdefault(name, value)


class _ResponseSender:
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
        elif headers.get("content-type", "").startswith(STREAM_TYPE):
            self.on_stream()


class _OpenStreams:
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
            looking = self._watch(scope["app"].state.service, caller)
            self._looking[caller] = asyncio.create_task(looking, name="watching")

    def drop(self, scope: Scope, stream: asyncio.Timeout) -> None:
        caller: Principal | None = scope["state"].get("caller")
        if caller is None or stream not in self._open.get(caller, ()):
            return
        self._open[caller].discard(stream)
        if not self._open[caller]:
            del self._open[caller]
            self._looking.pop(caller).cancel()

    async def _watch(self, service: Service, caller: Principal) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                if not await is_still_valid(service, caller):
                    break
            except OpenAssayError:  # a database that is busy now may not be at the next look
                continue
            except Exception:  # noqa: BLE001  # nobody would look any more, and nobody be told
                _log.exception("whether a stream of %s may stay open could not be seen", caller.name)
        del self._looking[caller]
        for stream in self._open.pop(caller):
            stream.reschedule(asyncio.get_running_loop().time())


def _own_hosts(settings: ServerSettings) -> set[str]:
    public = urlsplit(settings.public_url).netloc if settings.public_url else ""
    names = {_strip_port(one) for one in ("localhost", settings.host, public, *settings.allow_hosts)}
    return names - {"", "0.0.0.0", "::"}  # noqa: S104  # every address, and no name


def _strip_port(host: str) -> str:
    """Without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _parse_origin(address: str) -> str:
    """Scheme, host and port; nothing for what has none of these, as `null` and `*`."""
    try:
        parts = urlsplit(address.strip().lower())
    except ValueError:  # no address at all
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""


# What stands around every request to see what becomes of it: counted for /metrics, told in the log and in a trace.

UNMATCHED = "unmatched"  # an address that no route has
GONE = 499  # the caller went away before there was an answer; no status of HTTP, but known from other servers
STREAM_TYPE_BYTES = b"text/event-stream"
PROBES = frozenset(("/healthz", "/readyz", "/metrics"))  # asked again and again, and never of interest in a trace


def install_observation(app: FastAPI, service: Service) -> None:
    metrics = app.state.metrics = attach_metrics(service.engine, service.resources.rows.database)
    app.add_middleware(ObservationMiddleware, metrics=metrics, traces=service.resources.traces)


class ObservationMiddleware:
    """Pure ASGI: it wraps one function, and adds no task and no copy of anything."""

    def __init__(self, app: ASGIApp, metrics: Metrics, traces: Traces | None) -> None:
        self._app = app
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status, answered = perf_counter(), GONE, None
        received = self._start_trace(scope)

        async def noted(message: Message) -> None:
            nonlocal status, answered
            if message["type"] == "http.response.start":
                status = message["status"]
                if is_stream(message):
                    answered = perf_counter() - began
                    self._metrics.streams.inc()
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:
            status = 500
            raise
        finally:
            if answered is not None:
                self._metrics.streams.dec()
            self._record(scope, status, perf_counter() - began, answered, received)

    def _start_trace(self, scope: Scope) -> RequestTrace | None:
        """Set for the rest of the request, which has a context of its own."""
        if self._traces is None or scope["path"] in PROBES:
            return None
        received = self._traces.begin_request(Headers(scope=scope))
        traceparent.set(received.traceparent)
        return received

    def _record(
        self, scope: Scope, status: int, seconds: float, answered: float | None, received: RequestTrace | None
    ) -> None:
        route = getattr(scope.get("route"), "path", None) or scope.get("root_path") or UNMATCHED
        self._metrics.record_request(route, scope["method"], status, seconds if answered is None else answered)
        if self._traces is not None and received is not None:
            method = scope["method"] if scope["method"] in METHODS else "_OTHER"  # as OpenTelemetry has it
            self._traces.end_request(received, route, method, status)
        if logs.should_log_request(status):
            thread = scope.get("path_params", {}).get("threadId", "")
            logs.log_request(
                status, method=scope["method"], route=route, ms=round(seconds * 1000, 1),
                user=scope.get("state", {}).get("user", ""), thread=thread if is_id(thread) else "",
            )  # fmt: skip


def is_stream(message: Message) -> bool:
    for name, value in message.get("headers", ()):
        if name == b"content-type":
            return bool(value.startswith(STREAM_TYPE_BYTES))
    return False


# Every request has an id: the caller's own, if it sends a usable one. It is in the answer, in the log, and in what the
# request has set going.

HEADER = "X-Request-ID"
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestIdMiddleware:
    """Outermost: everything inside may ask for `request_id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        id = given if _USABLE.fullmatch(given) else uuid4().hex
        token = request_id.set(id)

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = id
            await send(message)

        try:
            await self._app(scope, receive, named)
        finally:
            request_id.reset(token)
