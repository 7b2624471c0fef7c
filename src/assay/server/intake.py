"""What comes in: how large it may be, how deep, and how long it is waited for. Anything but files is read before it is
given on, so that a route never waits for a caller."""

import asyncio
import re

import numpy
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.server.problems import MalformedError, Refusal, SlowError, TooLargeError, foreseen
from assay.settings import Serving

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


class Intake:
    def __init__(self, app: ASGIApp, settings: Serving) -> None:
        self._app = app
        self._most = round(settings.body_mb * MB)
        self._most_files = round(settings.uploads_mb * MB) + SLACK

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else {}
        if "content-length" not in headers and "transfer-encoding" not in headers:
            return await self._app(scope, receive, send)
        try:
            receive = await self._taken(scope, Headers(scope=scope), receive)
        except Refusal as error:
            answer = await foreseen(Request(scope), error)
            return await answer(scope, receive, send)
        await self._app(scope, receive, send)

    async def _taken(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        """Files are counted as they come; anything else is read before it is given on."""
        files = scope["path"] == UPLOADS and scope["method"] == "POST"
        most = self._most_files if files else self._most
        length = int(headers.get("content-length", "0"))  # the server itself has seen to it that it is a number
        if length > most:
            await _drain(receive, length)
            raise _too_large(most)
        if files:
            return _counted(receive, most)
        body = await _whole(receive, most)
        if "json" in headers.get("content-type", "").lower() and is_deep(body):
            raise MalformedError(f"this JSON is more than {DEEPEST} levels deep", help="Send less.")
        return _replayed(body, receive)


def is_deep(body: bytes) -> bool:
    """Whether brackets are nested deeper than anything we take. A megabyte of them takes 10 ms; taking pairs away level
    by level took 180, which would hold up everybody."""
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return False
    left = _TEXTS.sub(b"", body).translate(_STEPS, _NOT_BRACKETS)
    return bool(left) and int(numpy.max(numpy.frombuffer(left, numpy.int8).cumsum(dtype=numpy.int32))) > DEEPEST


async def _whole(receive: Receive, most: int) -> bytes:
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
        raise _too_slow() from None
    await _drain(receive)
    raise _too_large(most)


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


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _counted(receive: Receive, most: int) -> Receive:
    size = 0

    async def counted() -> Message:
        nonlocal size
        try:
            async with asyncio.timeout(BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            raise _too_slow() from None
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large(most)
        return message

    return counted


def _too_large(most: int) -> TooLargeError:
    return TooLargeError(
        f"the body is larger than {most / MB:g} MB", help="Send less.", headers={"Connection": "close"}
    )


def _too_slow() -> SlowError:
    message = f"the body did not come within {BODY_SECONDS:g} seconds"
    return SlowError(message, help="Send it again.", headers={"Connection": "close"})
