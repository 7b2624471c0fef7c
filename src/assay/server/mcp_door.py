"""MCP over HTTP at /mcp: the tools of mcp_server for whoever has a token of the API, acting for that person.

Every request stands for itself: there are no sessions that another could take over, and any process of a team can
answer any of them. What a caller stops waiting for goes on as a run.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from assay.bootstrap import Premises
from assay.mcp_server.house import Guest
from assay.mcp_server.tools import create
from assay.model.event import Event
from assay.model.thread import Options, Run
from assay.server.access import Principal, person, principal
from assay.server.asking import ask
from assay.server.paths import hidden, unplaced
from assay.server.problems import UnknownCallerError
from assay.server.service import Service

PATH = "/mcp"
_CALLER = "assay.caller"  # where in a request's scope it stands who calls
# Host, Origin and the size of bodies have been seen to (guard.py), for this door as for all others.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def mount(app: FastAPI, service: Service) -> None:
    """Only requests: there is no session whose news could be listened for (GET), or that could be ended (DELETE)."""
    app.router.routes.append(DoorRoute(PATH, Door(service), methods=["POST"], include_in_schema=False))


class DoorRoute(Route):
    """Requests are counted, and told in the log, by the route; FastAPI names none but its own."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


class Door:
    def __init__(self, service: Service) -> None:
        self._service = service
        # The tools are MCP's; its transport, which serves many sessions, is opened for each request anew.
        self._server = create(ManyPeople(service))._lowlevel_server  # nothing public leads to it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_CALLER] = await person(await principal(Request(scope), self._service))
        manager = StreamableHTTPSessionManager(self._server, stateless=True, security_settings=_GUARDED)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


class Known(Guest):
    """With what the server knows of them: how much they may have."""

    principal: Principal


class ManyPeople:
    """A mcp_server House: documents are what people have uploaded, and runs wait in line."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def premises(self) -> Premises:
        return self._service.premises

    def guest(self, request: object) -> Guest:
        if not isinstance(request, Request):
            raise UnknownCallerError
        caller: Principal = request.scope[_CALLER]
        return Known(user=caller.user, scopes=caller.scopes, principal=caller)

    async def ask(self, guest: Guest, question: str, options: Options, thread: str | None) -> Run:
        caller = guest.principal if isinstance(guest, Known) else Principal(user=guest.user, scopes=guest.scopes)
        return await ask(self._service, caller, question, options, thread)

    def events(self, run: str) -> AsyncIterator[Event]:
        return self._service.feeds.read(run)

    async def documents(self, guest: Guest, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self.premises.uploads.paths(guest.user, names))

    def shown(self, data: Any) -> Any:
        return hidden(data)

    def said(self, message: str) -> str:
        return str(unplaced(message))
