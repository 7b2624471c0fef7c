"""Every request has an id: the caller's own, if it sends a usable one. It is in the answer, in the log, and in what the
request has set going."""

import re
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.telemetry.ids import request_id

HEADER = "X-Request-ID"
_USABLE = re.compile(r"[A-Za-z0-9._:-]{1,64}")


class RequestIds:
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
