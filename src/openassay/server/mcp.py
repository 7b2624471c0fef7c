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

from openassay.bootstrap import ServerResources
from openassay.mcp_server.host import ToolCaller
from openassay.mcp_server.tools import create_server
from openassay.models.event import Event
from openassay.models.thread import ResearchOptions, Run
from openassay.server.auth import Principal, authenticate, require_person
from openassay.server.problems import UnknownCallerError
from openassay.server.redact import hide_file_urls, hide_paths
from openassay.server.runs import ask
from openassay.server.service import Service

PATH = "/mcp"
_CALLER = "openassay.caller"  # where in a request's scope it stands who calls
# Host, Origin and the size of bodies have been seen to (guard.py), for this door as for all others.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def mount(app: FastAPI, service: Service) -> None:
    """Only requests: there is no session whose news could be listened for (GET), or that could be ended (DELETE)."""
    app.router.routes.append(McpRoute(PATH, McpEndpoint(service), methods=["POST"], include_in_schema=False))


class McpRoute(Route):
    """Requests are counted, and told in the log, by the route; FastAPI names none but its own."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


class McpEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service
        # The tools are MCP's; its transport, which serves many sessions, is opened for each request anew.
        self._server = create_server(ServerHost(service))._lowlevel_server  # nothing public leads to it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_CALLER] = await require_person(await authenticate(Request(scope), self._service))
        manager = StreamableHTTPSessionManager(self._server, stateless=True, security_settings=_GUARDED)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


class ServerCaller(ToolCaller):
    """With what the server knows of them: how much they may have."""

    principal: Principal


class ServerHost:
    """A mcp_server House: documents are what people have uploaded, and runs wait in line."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @property
    def resources(self) -> ServerResources:
        return self._service.resources

    def identify(self, request: object) -> ToolCaller:
        if not isinstance(request, Request):
            raise UnknownCallerError
        caller: Principal = request.scope[_CALLER]
        return ServerCaller(user=caller.user, scopes=caller.scopes, principal=caller)

    async def ask(self, guest: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run:
        caller = guest.principal if isinstance(guest, ServerCaller) else Principal(user=guest.user, scopes=guest.scopes)
        return await ask(self._service, caller, question, options, thread)

    def events(self, run: str) -> AsyncIterator[Event]:
        return self._service.feeds.read(run)

    async def resolve_documents(self, guest: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self.resources.uploads.paths(guest.user, names))

    def redact(self, data: Any) -> Any:
        return hide_file_urls(data)

    def redact_message(self, message: str) -> str:
        return str(hide_paths(message))
