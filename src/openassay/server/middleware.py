"""What is done for every request: checks of its host, origin and body, security headers, metrics, logs and an id.

A page in somebody's browser can send requests to a server on the same machine. It cannot name another Host than its own
address, and sends its Origin whenever it wants to change something.
"""

import asyncio
import logging
import re
from collections.abc import Iterator
from ipaddress import ip_address
from time import perf_counter
from typing import TYPE_CHECKING
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
from openassay.server import responses
from openassay.server.auth import is_still_valid
from openassay.server.service import Principal, Service
from openassay.settings import ServerSettings
from openassay.telemetry import logs, request_id
from openassay.telemetry.metrics import METHODS, Metrics

if TYPE_CHECKING:
    from openassay.telemetry.traces import Traces

_log = logging.getLogger("openassay")
MB = 1_000_000
FORM_OVERHEAD = 1 * MB  # what a form adds to its files
MAX_DEPTH = 64  # levels of JSON; Python's own parser fails at several hundred
BODY_SECONDS = 30.0  # for a body; of files, for each piece
DRAIN_BYTES, DRAIN_SECONDS = 16 * MB, 5.0  # of a body that is too large are read, so that its sender hears why
UPLOADS = "/api/documents"
STREAM_TYPE = "text/event-stream"
# Possessive, and a text may lack its end: otherwise one that never ends is looked for again from each of its quotes.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\(?:.|\Z)[^"\\]*+)*+"?', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # as int8: one level more, one less
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class BodyLimitMiddleware:
    """Limits the size, depth and duration of bodies. Anything but files is read first: routes never wait for it."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._max_bytes = round(settings.body_mb * MB)
        self._max_upload_bytes = round(settings.uploads_mb * MB) + FORM_OVERHEAD

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return await self._app(scope, receive, send)
        has_files = scope["path"] == UPLOADS and scope["method"] == "POST"
        limit = self._max_upload_bytes if has_files else self._max_bytes
        length = int(headers.get("content-length", "0"))  # uvicorn has checked that it is a number
        try:
            if length > limit:
                await _drain(receive, length)
                raise _too_large_error(limit)
            if has_files:  # they are counted as they arrive
                receive = _limit_size(receive, limit)
            else:
                body = await _read_body(scope, receive, limit)
                if "json" in headers.get("content-type", "").lower() and is_deep(body):
                    raise responses.MalformedError(f"this JSON is more than {MAX_DEPTH} levels deep", help="Send less.")
                receive = _replay_body(body, receive)
        except responses.Refusal as error:
            answer = await responses.handle_error(Request(scope), error)
            return await answer(scope, receive, send)
        await self._app(scope, receive, send)


def is_deep(body: bytes) -> bool:
    """Return whether brackets are nested too deeply. A megabyte of them takes 10 ms; removing pairs level by level took
    180, which would hold up everybody."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    steps = _TEXTS.sub(b"", body).translate(_STEPS, _NOT_BRACKETS)
    return bool(steps) and int(numpy.max(numpy.frombuffer(steps, numpy.int8).cumsum(dtype=numpy.int32))) > MAX_DEPTH


async def _read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await Request(scope, _limit_size(receive, limit)).body()
    except TimeoutError:
        raise _too_slow_error() from None
    except responses.TooLargeError:
        await _drain(receive)
        raise


async def _drain(receive: Receive, length: int = 0) -> None:
    """Read on: a connection that is closed in the middle of a body takes the answer with it."""
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
    messages: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(messages, None) or await receive()

    return receive_again


def _limit_size(receive: Receive, limit: int) -> Receive:
    size = 0

    async def receive_counted() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise _too_slow_error() from None
        size += len(message.get("body", b""))
        if size > limit:
            raise _too_large_error(limit)
        return message

    return receive_counted


def _too_large_error(limit: int) -> responses.TooLargeError:
    message = f"the body is larger than {limit / MB:g} MB"
    return responses.TooLargeError(message, help="Send less.", headers={"Connection": "close"})


def _too_slow_error() -> responses.Refusal:
    message = f"the body did not arrive within {BODY_SECONDS:g} seconds"
    return responses.Refusal(message, help="Send it again.", headers={"Connection": "close"}, status=408, kind="slow")


# Hosts, origins and headers -----------------------------------------------------------------------------------

MCP_PATH = "/mcp"
RECHECK_SECONDS = 2.0  # after which it is checked again whether the reader of a stream may still read it
ALLOW_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
ALLOW_HEADERS = (
    "Authorization Content-Type Idempotency-Key If-Match If-None-Match Last-Event-ID Mcp-Protocol-Version "
    "Mcp-Session-Id X-Request-ID"
).split()
EXPOSE_HEADERS = (
    "Content-Disposition ETag Idempotency-Replayed Location Mcp-Session-Id RateLimit-Limit "
    "RateLimit-Remaining RateLimit-Reset Retry-After X-OpenAssay-Thread X-Request-ID"
).split()
_END: Message = {"type": "http.response.body", "body": b""}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def install_guard(app: FastAPI, settings: ServerSettings) -> None:
    """Install the middlewares; the last is the outermost."""
    app.add_middleware(BodyLimitMiddleware, settings=settings)
    if origins := sorted({_parse_origin(origin) for origin in settings.allow_origins} - {""}):
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
        public = urlsplit(settings.public_url).netloc if settings.public_url else ""
        hosts = {_strip_port(host) for host in (settings.host, public, *settings.allow_hosts)}
        self._hosts = hosts - {"", "0.0.0.0", "::"}  # noqa: S104  # every address, and no name
        origins = (*settings.allow_origins, settings.public_url or "")
        self._origins = {_parse_origin(origin) for origin in origins} - {""}
        self._streams = _OpenStreams()
        self._headers = dict(HEADERS)
        if (settings.public_url or "").lower().startswith("https://"):
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})
        open_until = asyncio.timeout(None)  # a stream ends when its reader would not be let in any more
        # HEAD is a GET of which only the headers are sent; a stream is ended after them.
        headers_only, has_begun = scope["method"] == "HEAD", False
        inner = {**scope, "method": "GET"} if headers_only else scope

        async def answer(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                self._add_headers(scope, headers)
                await send(message)
                if headers_only:
                    await send(_END)
                elif headers.get("content-type", "").startswith(STREAM_TYPE):
                    self._streams.add(scope, open_until)
            elif not headers_only:
                await send(message)
            elif message.get("more_body"):
                raise ClientDisconnect  # as if nobody read it any more

        try:
            self._check(Request(scope))
            async with open_until:
                try:
                    await self._app(inner, receive, answer)
                finally:
                    self._streams.drop(scope, open_until)
                    scope.update({name: inner[name] for name in ("route", "path_params") if name in inner})
        except ClientDisconnect:
            return
        except Exception as error:
            if isinstance(error, TimeoutError) and open_until.expired():
                return await send(_END)
            if has_begun:
                raise
            handle = responses.handle_error if isinstance(error, OpenAssayError) else responses.handle_crash
            await (await handle(Request(scope), error))(scope, receive, answer)

    def _check(self, request: Request) -> None:
        host = request.headers.get("host", "")
        name, server = _strip_port(host), request.scope.get("server")
        if not (name in self._hosts or is_local(name) or (server and name == server[0])):
            message = f"this server does not answer to {host[:200] or 'no name'}"
            help = "Use its own address, or add the name to server.allow_hosts."
            raise responses.Refusal(message, help=help, status=421, kind="misdirected")
        origin = request.headers.get("origin")
        if not origin or (request.method in ("GET", "HEAD") and not request.url.path.startswith(MCP_PATH)):
            return
        parsed = _parse_origin(origin)
        is_own = parsed.partition("://")[2] == host.lower()  # the scheme may be that of a proxy
        if not parsed or not (is_own or parsed in self._origins):
            raise responses.ForbiddenError(
                f"requests from {origin[:200]} are not accepted", help="Add it to server.allow_origins."
            )

    def _add_headers(self, scope: Scope, headers: MutableHeaders) -> None:
        for name, value in {**self._headers, **scope["state"].get("rate", {})}.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "private, no-cache" if "etag" in headers else "no-store")


class _OpenStreams:
    """The open streams by caller: each token, or link, is checked once for all its streams."""

    def __init__(self) -> None:
        self._streams: dict[Principal, set[asyncio.Timeout]] = {}
        self._checks: dict[Principal, asyncio.Task[None]] = {}

    def add(self, scope: Scope, stream: asyncio.Timeout) -> None:
        caller: Principal | None = scope["state"].get("caller")
        if caller is None:
            return
        self._streams.setdefault(caller, set()).add(stream)
        if caller not in self._checks:
            check = self._check_repeatedly(scope["app"].state.service, caller)
            self._checks[caller] = asyncio.create_task(check, name="watching")

    def drop(self, scope: Scope, stream: asyncio.Timeout) -> None:
        caller: Principal | None = scope["state"].get("caller")
        if caller is None or stream not in self._streams.get(caller, ()):
            return
        self._streams[caller].discard(stream)
        if not self._streams[caller]:
            del self._streams[caller]
            self._checks.pop(caller).cancel()

    async def _check_repeatedly(self, service: Service, caller: Principal) -> None:
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            try:
                if not await is_still_valid(service, caller):
                    break
            except OpenAssayError:  # a database that is busy now may not be next time
                continue
            except Exception:  # noqa: BLE001  # the streams of a revoked token would stay open
                _log.exception("whether a stream of %s may stay open could not be checked", caller.name)
        del self._checks[caller]
        for stream in self._streams.pop(caller):
            stream.reschedule(asyncio.get_running_loop().time())


def is_local(host: str) -> bool:
    """Return whether a host is this machine. An address cannot have been pointed here by somebody else."""
    try:
        return ip_address(host).is_loopback
    except ValueError:  # it is a name
        return host == "localhost" or host.endswith(".localhost")


def _strip_port(host: str) -> str:
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host if host.count(":") > 1 else host.partition(":")[0]


def _parse_origin(address: str) -> str:
    """Return scheme, host and port; an empty text for what has none of these, such as `null` and `*`."""
    try:
        parts = urlsplit(address.strip().lower())
    except ValueError:  # no address at all
        return ""
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""


# Metrics, logs and traces -------------------------------------------------------------------------------------

UNMATCHED = "unmatched"  # an address that no route has
GONE = 499  # the caller went away before there was an answer; not a status of HTTP, but known from other servers
PROBES = frozenset(("/healthz", "/readyz", "/metrics"))  # requested again and again, and of no interest in a trace


class ObservationMiddleware:
    """Records every request. Pure ASGI: it wraps one function, and adds no task and no copy of anything."""

    def __init__(self, app: ASGIApp, metrics: Metrics, traces: "Traces | None") -> None:
        self._app = app
        self._metrics = metrics
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status, stream_began = perf_counter(), GONE, None
        trace = None
        if self._traces is not None and scope["path"] not in PROBES:
            trace = self._traces.begin_request(Headers(scope=scope))

        async def send_observed(message: Message) -> None:
            nonlocal status, stream_began
            if message["type"] == "http.response.start":
                status = message["status"]
                content_type = Headers(raw=message.get("headers", [])).get("content-type", "")
                if content_type.startswith(STREAM_TYPE):
                    stream_began = perf_counter() - began
                    self._metrics.streams.inc()
            await send(message)

        try:
            await self._app(scope, receive, send_observed)
        except Exception:
            status = 500
            raise
        finally:
            seconds, method = perf_counter() - began, scope["method"]
            route = getattr(scope.get("route"), "path", None) or scope.get("root_path") or UNMATCHED
            if stream_began is not None:
                self._metrics.streams.dec()
            self._metrics.record_request(route, method, status, seconds if stream_began is None else stream_began)
            if self._traces is not None and trace is not None:  # a method is named as OpenTelemetry has it
                self._traces.end_request(trace, route, method if method in METHODS else "_OTHER", status)
            thread = scope.get("path_params", {}).get("threadId", "")
            logs.log_request(
                status,
                method=method,
                route=route,
                ms=round(seconds * 1000, 1),
                user=scope.get("state", {}).get("user", ""),
                thread=thread if is_id(thread) else "",
            )


# Request ids --------------------------------------------------------------------------------------------------

REQUEST_ID_HEADER = "X-Request-ID"
_USABLE_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestIdMiddleware:
    """Gives every request an id, or takes the caller's if it is usable, for its answer, the log and its run.

    It is the outermost: everything inside may ask for `request_id`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        id = given if _USABLE_ID.fullmatch(given) else uuid4().hex
        token = request_id.set(id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            request_id.reset(token)
