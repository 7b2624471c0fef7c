"""Requests that may be sent again: with an Idempotency-Key the same request is executed once, and answered alike.

Only successful answers are stored; a caller who was refused may correct the request and use the key again.
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

_KEY = re.compile(r"[ -~]{1,255}")
RETRY_SECONDS = 2
STORED_HEADERS = ("location",)
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Of your choice, at most 255 characters: the same request with the same key is executed once. "
        "Kept for 24 hours.",
        examples=["c4d1f0b2-2b9e-4b7d-9d7e-0a3c1f5e8a11"],
    ),
]


class IdempotentRequest:
    """`name` is the id of the run that the request makes, so that it is found if its process died.

    `again`: an earlier attempt may have been executed before its process died."""

    def __init__(self, service: Service, caller: Principal, key: str | None, digest: str) -> None:
        self.name = uuid4().hex[:12]
        self.again = False
        self._service = service
        self._caller = caller
        self._key = key
        self._digest = digest

    async def __call__(self, work: Callable[[], Awaitable[Response]]) -> Response:
        """Execute the request, or repeat the answer that it got before."""
        if self._key is None:
            return await work()
        replies, owner = self._service.resources.replies, self._caller.user
        reply, is_ours = await replies.claim(owner, self._key, self._digest, self.name)
        if not is_ours and reply.request != self._digest:
            raise MalformedError(
                "this Idempotency-Key was used for another request", help="Use a new key for each request."
            )
        if not is_ours and not reply.pending:
            stored = json.loads(reply.body)
            headers = {**stored["headers"], "Idempotency-Replayed": "true"}
            return Response(stored["content"], reply.status, headers=headers, media_type="application/json")
        if not is_ours:
            self.again, self.name = True, reply.body
            if await self.find_run():  # a run that was made is answered with, whether or not its process lives
                return await work()
            raise UnderWayError(
                "this very request is being answered",
                help="Send it again in a moment.",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self.again, self.name = reply.body != self.name, reply.body
        try:
            answer = await work()
        except OpenAssayError:
            if await self.find_run() is None:
                await replies.release(owner, self._key)
            raise
        headers = {name: answer.headers[name] for name in STORED_HEADERS if name in answer.headers}
        stored = {"headers": headers, "content": bytes(answer.body).decode()}
        await replies.store(owner, self._key, answer.status_code, json.dumps(stored))
        return answer

    async def find_run(self) -> Run | None:
        """Return the run that an earlier attempt has made, if any."""
        if self._key is None:
            return None
        try:
            return await self._service.engine.threads.run(self.name)
        except NotFoundError:
            return None


async def get_idempotent_request(
    request: Request, caller: Writer, service: ServiceDep, key: IdempotencyKey = None
) -> IdempotentRequest:
    if key is not None and not _KEY.fullmatch(key):
        raise MalformedError("an Idempotency-Key has 1 to 255 printable characters")
    content = b"\n".join([request.method.encode(), request.url.path.encode(), await request.body()])
    return IdempotentRequest(service, caller, key, hashlib.sha256(content).hexdigest())


Idempotency = Annotated[IdempotentRequest, Depends(get_idempotent_request)]
