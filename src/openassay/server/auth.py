"""Who is calling, and what they may do. A route names what it needs as the type of a parameter:

    Person                            anyone with a token
    Reader, Writer, Sharer, Watcher   anyone with that scope
    OwnThread                         a thread of the caller, to read
    WritableThread                    a thread of the caller, to change
    VisibleThread                     a thread of the caller, or the one their link shows

A thread's owner is part of the query that fetches it: another person's id is as unknown as one that does not exist.

A token is looked up at each request, which takes 0.2 ms: one that was revoked is good for no further request.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Security
from fastapi.security import HTTPBearer

from openassay.errors import NotFoundError, no_thread
from openassay.models.thread import Thread, is_id
from openassay.models.user import SHARE_PREFIX, TOKEN_PREFIX, Scope
from openassay.server.responses import ForbiddenError, UnknownCallerError
from openassay.server.service import Principal, Service, ServiceDep

BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="What `openassay admin users add` printed; not needed on one's own machine.",
)


async def authenticate(
    request: Request, service: ServiceDep, _: Annotated[object, Security(BEARER)] = None
) -> Principal:
    """Return the caller and count the request; raise UnknownCallerError, or TooManyError where they call too often."""
    address = request.client.host if request.client else ""
    # A token comes in a header alone, since addresses are logged in many places; a link is an address.
    share = request.query_params.get("share") or ""
    scheme, _, header = request.headers.get("authorization", "").partition(" ")
    secret = header.strip() or share
    try:
        if header and scheme.lower() != "bearer":
            raise UnknownCallerError("only bearer tokens are supported")
        if not header.strip() and share and not share.startswith(f"{SHARE_PREFIX}_"):
            raise UnknownCallerError("this is not the secret of a link")
        if secret.startswith(f"{SHARE_PREFIX}_"):
            link = await service.resources.shares.find_by_secret(secret)
            if link is None or not link.is_valid(service.now()):
                raise UnknownCallerError("this link is no longer valid")
            caller = Principal(share=link.thread, token=link.id)
        elif not secret.startswith(f"{TOKEN_PREFIX}_") and await is_open(service):
            # Clients that need a key send one that they have made up.
            caller = Principal(user=service.settings.user, scopes=frozenset(Scope))
        elif not secret:
            raise UnknownCallerError
        else:
            found = await service.resources.users.find_by_secret(secret)
            if found is None:
                raise UnknownCallerError("this token is not known")
            token, user = found
            if not token.is_valid(service.now()) or user.disabled:
                raise UnknownCallerError("this token is no longer valid")
            caller = Principal(
                user=user.name,
                scopes=frozenset(token.scopes),
                token=token.id,
                usd=user.usd,
                requests_per_minute=user.requests_per_minute,
            )
    except UnknownCallerError:
        await service.limits.count_failure(address)
        raise
    request.state.user, request.state.caller = caller.name, caller
    request.state.rate = await service.limits.count_request(caller, address)
    return caller


async def is_open(service: Service) -> bool:
    """Return whether no authentication is needed: until the first user is added, by any process."""
    if service.open_to_all and not await service.resources.users.is_empty():
        service.open_to_all = False
    return service.open_to_all


async def is_still_valid(service: Service, caller: Principal) -> bool:
    """Return whether a caller who was let in would be let in now; for streams that stay open."""
    now = service.now()
    if caller.share is not None:
        links = await service.resources.shares.list_for(caller.share)
        return any(link.id == caller.token and link.is_valid(now) for link in links)
    if caller.token is None:
        return await is_open(service)
    found = await service.resources.users.find_by_token_id(caller.token)
    return found is not None and found[0].is_valid(now) and not found[1].disabled


Caller = Annotated[Principal, Depends(authenticate)]


def require_scope(scope: Scope) -> Callable[[Principal], Awaitable[Principal]]:
    async def check(caller: Caller) -> Principal:
        if scope not in caller.scopes:
            raise ForbiddenError(f"this token may not {scope}", help="Use one with that scope.")
        return caller

    return check


async def count_visitor(request: Request, service: ServiceDep) -> None:
    """Count a request that needs no authentication, by its address."""
    request.state.rate = await service.limits.count_request(Principal(), request.client.host if request.client else "")


async def require_person(caller: Caller) -> Principal:
    if caller.share is not None:
        raise ForbiddenError("a link shows a thread, and nothing else", help="Send a token.")
    return caller


require_reader = require_scope(Scope.READ)
Visitor = Depends(count_visitor)
Person = Annotated[Principal, Depends(require_person)]
Reader = Annotated[Principal, Depends(require_reader)]
Writer = Annotated[Principal, Depends(require_scope(Scope.WRITE))]
Sharer = Annotated[Principal, Depends(require_scope(Scope.SHARE))]
Watcher = Annotated[Principal, Depends(require_scope(Scope.METRICS))]
ThreadId = Annotated[str, Path(alias="threadId", description="The id of a thread.", examples=["4f1c2a9b7d3e"])]


async def load_own_thread(service: Service, caller: Principal, id: str) -> Thread:
    if not is_id(id):
        raise NotFoundError("no such thread", help="Look at the list of threads for its id.")
    return await service.engine.threads.get(id, owner=caller.user)


async def get_own_thread(id: ThreadId, caller: Reader, service: ServiceDep) -> Thread:
    return await load_own_thread(service, caller, id)


async def get_writable_thread(id: ThreadId, caller: Writer, service: ServiceDep) -> Thread:
    return await load_own_thread(service, caller, id)


async def get_visible_thread(
    id: ThreadId,
    caller: Caller,
    service: ServiceDep,
    share: Annotated[str | None, Query(description="The secret of a link, instead of a token.")] = None,
) -> Thread:
    if caller.share is None:
        return await load_own_thread(service, await require_reader(caller), id)
    if caller.share != id:
        raise no_thread(id)
    return await service.engine.threads.get(id)


OwnThread = Annotated[Thread, Depends(get_own_thread)]
WritableThread = Annotated[Thread, Depends(get_writable_thread)]
VisibleThread = Annotated[Thread, Depends(get_visible_thread)]
