"""Requests that may be sent again: with an Idempotency-Key the same request is carried out once, and answered alike.

Only what was carried out is kept; who was refused may correct the request and use the key again.
"""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from typing import Annotated
from uuid import uuid4

from fastapi import Depends, Header, Request
from fastapi.responses import Response

from openassay.errors import NotFoundError, OpenAssayError
from openassay.models.thread import Run
from openassay.server.auth import Principal, Writer
from openassay.server.problems import MalformedError, UnderWayError
from openassay.server.service import Service, ServiceDep
from openassay.storage.users import IdempotentReply

_KEY = re.compile(r"[ -~]{1,255}")
RETRY = 2  # seconds
KEPT = ("location",)  # headers of an answer
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Of your choice, at most 255 characters: the same request with the same key is carried out once. "
        "Kept for 24 hours.",
        examples=["c4d1f0b2-2b9e-4b7d-9d7e-0a3c1f5e8a11"],
    ),
]


class IdempotentRequest:
    """`name` is what the work goes by: a run that is made carries it, so that it is found if its maker died."""

    def __init__(self, service: Service, caller: Principal, key: str | None, request: str) -> None:
        self.name = uuid4().hex[:12]
        self.again = False  # whether somebody began with it who may have died over it
        self._service = service
        self._caller = caller
        self._key = key
        self._request = request

    async def __call__(self, work: Callable[[], Awaitable[Response]]) -> Response:
        if self._key is None:
            return await work()
        replies, owner = self._service.resources.replies, self._caller.user
        held, is_ours = await replies.claim(owner, self._key, self._request, self.name)
        if not is_ours:
            return await self._adopt(held, work) or self._replay(held)
        self.again, self.name = held.body != self.name, held.body
        try:
            answer = await work()
        except OpenAssayError:
            if await self.find_run() is None:
                await replies.release(owner, self._key)
            raise
        headers = {name: answer.headers[name] for name in KEPT if name in answer.headers}
        kept = {"headers": headers, "content": bytes(answer.body).decode()}
        await replies.store(owner, self._key, answer.status_code, json.dumps(kept))
        return answer

    async def _adopt(self, held: IdempotentReply, work: Callable[[], Awaitable[Response]]) -> Response | None:
        """A run that was made under this key is told of at once, whether or not its maker still lives."""
        if not held.pending or held.request != self._request:
            return None
        self.again, self.name = True, held.body
        return await work() if await self.find_run() else None

    async def find_run(self) -> Run | None:
        """The run that was made under this name, by whoever could not say so any more."""
        if self._key is None:
            return None
        try:
            return await self._service.engine.threads.run(self.name)
        except NotFoundError:
            return None

    def _replay(self, held: IdempotentReply) -> Response:
        if held.request != self._request:
            raise MalformedError(
                "this Idempotency-Key was used for another request", help="Use a new key for each request."
            )
        if held.pending:
            raise UnderWayError(
                "this very request is being answered", help="Send it again in a moment.",
                headers={"Retry-After": str(RETRY)},
            )  # fmt: skip
        kept = json.loads(held.body)
        headers = {**kept["headers"], "Idempotency-Replayed": "true"}
        return Response(kept["content"], held.status, headers=headers, media_type="application/json")


async def get_idempotent_request(
    request: Request, caller: Writer, service: ServiceDep, key: IdempotencyKey = None
) -> IdempotentRequest:
    if key is not None and not _KEY.fullmatch(key):
        raise MalformedError("an Idempotency-Key has 1 to 255 printable characters")
    said = b"\n".join([request.method.encode(), request.url.path.encode(), await request.body()])
    return IdempotentRequest(service, caller, key, hashlib.sha256(said).hexdigest())


Idempotency = Annotated[IdempotentRequest, Depends(get_idempotent_request)]
