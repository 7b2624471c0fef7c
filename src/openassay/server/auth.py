"""Who is calling, and what they may do. A route names what it needs as the type of a parameter:

    Person                            somebody with a token
    Reader, Writer, Sharer, Watcher   somebody with that scope
    OwnThread                         a thread of theirs, to look at
    ChangedThread                     a thread of theirs, to change
    SeenThread                        a thread of theirs, or the one their link shows

Whose a thread is is part of the query that fetches it: another's id is as unknown as one that never was.

A token is looked up at each request, which takes 0.2 ms: one that was revoked is not good for another request.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Security
from fastapi.security import HTTPBearer

from openassay.errors import NotFoundError
from openassay.models.base import Record
from openassay.models.thread import Thread, is_id
from openassay.models.user import Scope
from openassay.server.problems import ForbiddenError, UnknownCallerError
from openassay.server.service import Service, ServiceDep
from openassay.storage.threads import no_thread
from openassay.storage.users import SHARE_PREFIX as SHARE
from openassay.storage.users import TOKEN_PREFIX as TOKEN

BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="What `openassay admin users add` printed; not needed on one's own machine.",
)


class Principal(Record):
    """`share` is the one thread that somebody with a link may look at; they have no name and no scopes."""

    user: str = ""
    scopes: frozenset[Scope] = frozenset()
    token: str | None = None  # its id, or that of the link; None where nobody has to say who they are
    share: str | None = None
    requests_per_minute: int | None = None
    usd: float | None = None

    @property
    def name(self) -> str:
        """What is counted under: a person, or a link."""
        return self.user or f"link:{self.share}"


async def authenticate(
    request: Request, service: ServiceDep, _: Annotated[object, Security(BEARER)] = None
) -> Principal:
    """Whoever calls, counted; UnknownCallerError for somebody nobody knows, TooManyError for who calls too often."""
    share = request.query_params.get("share")
    address = request.client.host if request.client else ""
    try:
        caller = await _identify(service, _read_secret(request, share))
    except UnknownCallerError:
        await service.limits.count_failure(address)
        raise
    request.state.user, request.state.caller = caller.name, caller
    request.state.rate = await service.limits.count_request(caller, address)
    return caller


def _read_secret(request: Request, share: str | None) -> str:
    """A token comes in a header alone: addresses are written down in too many places. A link is one."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if secret and scheme.lower() != "bearer":
        raise UnknownCallerError("only bearer tokens are understood")
    if not secret.strip() and share and not share.startswith(f"{SHARE}_"):
        raise UnknownCallerError("this is not the secret of a link")
    return secret.strip() or share or ""


async def _identify(service: Service, secret: str) -> Principal:
    if secret.startswith(f"{SHARE}_"):
        return await _identify_by_link(service, secret)
    # Clients that cannot do without a key send one of their own making.
    if (not secret or not secret.startswith(f"{TOKEN}_")) and await is_open(service):
        return Principal(user=service.settings.user, scopes=frozenset(Scope))
    if secret:
        return await _identify_by_token(service, secret)
    raise UnknownCallerError


async def is_open(service: Service) -> bool:
    """Whether nobody has to say who they are: until the first user is added, by whatever process."""
    if service.open_to_all and not await service.premises.users.is_empty():
        service.open_to_all = False
    return service.open_to_all


async def is_still_valid(service: Service, caller: Principal) -> bool:
    """Whether somebody who was let in would be let in now; for what stays open."""
    now = service.now()
    if caller.share is not None:
        links = await service.premises.shares.list_for(caller.share)
        return any(link.id == caller.token and link.is_valid(now) for link in links)
    if caller.token is None:
        return await is_open(service)
    found = await service.premises.users.find_by_token_id(caller.token)
    return found is not None and found[0].is_valid(now) and not found[1].disabled


async def _identify_by_token(service: Service, secret: str) -> Principal:
    found = await service.premises.users.find_by_secret(secret)
    if found is None:
        raise UnknownCallerError("this token is not known")
    token, user = found
    if not token.is_valid(service.now()) or user.disabled:
        raise UnknownCallerError("this token is not good any more")
    return Principal(
        user=user.name, scopes=frozenset(token.scopes), token=token.id, usd=user.usd,
        requests_per_minute=user.requests_per_minute,
    )  # fmt: skip


async def _identify_by_link(service: Service, secret: str) -> Principal:
    found = await service.premises.shares.find_by_secret(secret)
    if found is None or not found.is_valid(service.now()):
        raise UnknownCallerError("this link is not good any more")
    return Principal(share=found.thread, token=found.id)


Caller = Annotated[Principal, Depends(authenticate)]


def require_scope(scope: Scope) -> Callable[[Principal], Awaitable[Principal]]:
    async def check(caller: Caller) -> Principal:
        if scope not in caller.scopes:
            raise ForbiddenError(f"this token may not {scope}", help="Use one with that scope.")
        return caller

    return check


async def count_visitor(request: Request, service: ServiceDep) -> None:
    """Whoever need not say who they are is counted by where they come from."""
    request.state.rate = await service.limits.count_request(Principal(), request.client.host if request.client else "")


Visitor = Depends(count_visitor)


async def require_person(caller: Caller) -> Principal:
    if caller.share is not None:
        raise ForbiddenError("a link shows a thread, and nothing else", help="Send a token.")
    return caller


Person = Annotated[Principal, Depends(require_person)]
Reader = Annotated[Principal, Depends(require_scope(Scope.READ))]
Writer = Annotated[Principal, Depends(require_scope(Scope.WRITE))]
Sharer = Annotated[Principal, Depends(require_scope(Scope.SHARE))]
Watcher = Annotated[Principal, Depends(require_scope(Scope.METRICS))]
ThreadId = Annotated[str, Path(alias="threadId", description="The id of a thread.", examples=["4f1c2a9b7d3e"])]


async def get_own_thread(id: ThreadId, caller: Reader, service: ServiceDep) -> Thread:
    return await _get_thread(id, caller, service)


async def get_writable_thread(id: ThreadId, caller: Writer, service: ServiceDep) -> Thread:
    return await _get_thread(id, caller, service)


async def get_visible_thread(
    id: ThreadId,
    caller: Caller,
    service: ServiceDep,
    share: Annotated[str | None, Query(description="The secret of a link, instead of a token.")] = None,
) -> Thread:
    if caller.share is not None:
        if caller.share != id:
            raise no_thread(id)
        return await service.engine.threads.get(id)
    if Scope.READ not in caller.scopes:
        raise ForbiddenError("this token may not read", help="Use one with that scope.")
    return await _get_thread(id, caller, service)


async def _get_thread(id: str, caller: Principal, service: Service) -> Thread:
    if not is_id(id):
        raise NotFoundError("no such thread", help="Look at the list of threads for its id.")
    return await service.engine.threads.get(id, owner=caller.user)


OwnThread = Annotated[Thread, Depends(get_own_thread)]
WritableThread = Annotated[Thread, Depends(get_writable_thread)]
VisibleThread = Annotated[Thread, Depends(get_visible_thread)]
