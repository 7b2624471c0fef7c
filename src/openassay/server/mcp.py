"""MCP over HTTP at /mcp: the tools of mcp_server, for anyone with a token of the API.

Requests are stateless: there are no sessions that another caller could take over, and any process of a team can answer
any of them. A run that a caller stops waiting for continues.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from openassay.mcp_server.tools import ToolCaller, create_server
from openassay.models.event import Event
from openassay.models.thread import ResearchOptions, Run
from openassay.server.auth import authenticate, require_person
from openassay.server.bodies import hide_file_urls, hide_paths
from openassay.server.responses import UnknownCallerError
from openassay.server.runs import ask
from openassay.server.service import Principal, Service

PATH = "/mcp"
# Host, Origin and the size of bodies are checked by the middleware.
_GUARDED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


def mount(app: FastAPI, service: Service) -> None:
    """Accept POST alone: there is no session to listen to (GET) or to end (DELETE)."""
    app.router.routes.append(McpRoute(PATH, McpEndpoint(service), methods=["POST"], include_in_schema=False))


class McpRoute(Route):
    """A route that metrics and logs know: FastAPI puts only its own into the scope."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


class McpEndpoint:
    def __init__(self, service: Service) -> None:
        self._service = service
        # The transport, which serves many sessions, is opened for each request anew.
        self._server = create_server(ServerHost(service))._lowlevel_server  # nothing public leads to it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await require_person(await authenticate(Request(scope), self._service))
        manager = StreamableHTTPSessionManager(self._server, stateless=True, security_settings=_GUARDED)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


class ServerCaller(ToolCaller):
    principal: Principal


class ServerHost:
    """A ToolHost whose documents are uploads, and whose runs are queued."""

    def __init__(self, service: Service) -> None:
        self.resources = service.resources
        self._service = service

    def identify(self, request: object) -> ToolCaller:
        if not isinstance(request, Request):
            raise UnknownCallerError
        principal: Principal = request.state.caller
        return ServerCaller(user=principal.user, scopes=principal.scopes, principal=principal)

    async def ask(self, caller: ToolCaller, question: str, options: ResearchOptions, thread: str | None) -> Run:
        assert isinstance(caller, ServerCaller)  # noqa: S101  # `identify` returns no other
        return await ask(self._service, caller.principal, question, options, thread)

    def events(self, run: str) -> AsyncIterator[Event]:
        return self._service.feeds.read(run)

    async def resolve_documents(self, caller: ToolCaller, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self.resources.uploads.paths(caller.user, names))

    def redact(self, data: Any) -> Any:
        return hide_file_urls(data)

    def redact_message(self, message: str) -> str:
        return str(hide_paths(message))
