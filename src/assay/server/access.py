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

from assay.errors import NotFoundError
from assay.model.record import Record
from assay.model.thread import Thread, is_id
from assay.model.user import Scope
from assay.server.problems import ForbiddenError, UnknownCallerError
from assay.server.service import Service, Serving
from assay.storage.shares import PREFIX as SHARE
from assay.storage.threads import no_thread
from assay.storage.users import PREFIX as TOKEN

BEARER = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="What `assay users add` printed; not needed on one's own machine.",
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


async def principal(request: Request, service: Serving, _: Annotated[object, Security(BEARER)] = None) -> Principal:
    """Whoever calls, counted; UnknownCallerError for somebody nobody knows, TooManyError for who calls too often."""
    share = request.query_params.get("share")
    address = request.client.host if request.client else ""
    try:
        caller = await _named(service, _secret(request, share))
    except UnknownCallerError:
        await service.limits.failure(address)
        raise
    request.state.user, request.state.caller = caller.name, caller
    request.state.rate = await service.limits.request(caller, address)
    return caller


def _secret(request: Request, share: str | None) -> str:
    """A token comes in a header alone: addresses are written down in too many places. A link is one."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    if secret and scheme.lower() != "bearer":
        raise UnknownCallerError("only bearer tokens are understood")
    if not secret.strip() and share and not share.startswith(f"{SHARE}_"):
        raise UnknownCallerError("this is not the secret of a link")
    return secret.strip() or share or ""


async def _named(service: Service, secret: str) -> Principal:
    if secret.startswith(f"{SHARE}_"):
        return await _with_link(service, secret)
    # Clients that cannot do without a key send one of their own making.
    if (not secret or not secret.startswith(f"{TOKEN}_")) and await is_open(service):
        return Principal(user=service.settings.user, scopes=frozenset(Scope))
    if secret:
        return await _with_token(service, secret)
    raise UnknownCallerError


async def is_open(service: Service) -> bool:
    """Whether nobody has to say who they are: until the first user is added, by whatever process."""
    if service.open_to_all and not await service.premises.users.nobody():
        service.open_to_all = False
    return service.open_to_all


async def still_good(service: Service, caller: Principal) -> bool:
    """Whether somebody who was let in would be let in now; for what stays open."""
    now = service.now()
    if caller.share is not None:
        links = await service.premises.shares.of(caller.share)
        return any(link.id == caller.token and link.is_good(now) for link in links)
    if caller.token is None:
        return await is_open(service)
    found = await service.premises.users.holder(caller.token)
    return found is not None and found[0].is_good(now) and not found[1].disabled


async def _with_token(service: Service, secret: str) -> Principal:
    found = await service.premises.users.known(secret)
    if found is None:
        raise UnknownCallerError("this token is not known")
    token, user = found
    if not token.is_good(service.now()) or user.disabled:
        raise UnknownCallerError("this token is not good any more")
    return Principal(
        user=user.name, scopes=frozenset(token.scopes), token=token.id, usd=user.usd,
        requests_per_minute=user.requests_per_minute,
    )  # fmt: skip


async def _with_link(service: Service, secret: str) -> Principal:
    found = await service.premises.shares.known(secret)
    if found is None or not found.is_good(service.now()):
        raise UnknownCallerError("this link is not good any more")
    return Principal(share=found.thread, token=found.id)


Caller = Annotated[Principal, Depends(principal)]


def needs(scope: Scope) -> Callable[[Principal], Awaitable[Principal]]:
    async def check(caller: Caller) -> Principal:
        if scope not in caller.scopes:
            raise ForbiddenError(f"this token may not {scope}", help="Use one with that scope.")
        return caller

    return check


async def visitor(request: Request, service: Serving) -> None:
    """Whoever need not say who they are is counted by where they come from."""
    request.state.rate = await service.limits.request(Principal(), request.client.host if request.client else "")


Visitor = Depends(visitor)


async def person(caller: Caller) -> Principal:
    if caller.share is not None:
        raise ForbiddenError("a link shows a thread, and nothing else", help="Send a token.")
    return caller


Person = Annotated[Principal, Depends(person)]
Reader = Annotated[Principal, Depends(needs(Scope.READ))]
Writer = Annotated[Principal, Depends(needs(Scope.WRITE))]
Sharer = Annotated[Principal, Depends(needs(Scope.SHARE))]
Watcher = Annotated[Principal, Depends(needs(Scope.METRICS))]
ThreadId = Annotated[str, Path(alias="threadId", description="The id of a thread.", examples=["4f1c2a9b7d3e"])]


async def own_thread(id: ThreadId, caller: Reader, service: Serving) -> Thread:
    return await _owned(id, caller, service)


async def changed_thread(id: ThreadId, caller: Writer, service: Serving) -> Thread:
    return await _owned(id, caller, service)


async def seen_thread(
    id: ThreadId,
    caller: Caller,
    service: Serving,
    share: Annotated[str | None, Query(description="The secret of a link, instead of a token.")] = None,
) -> Thread:
    if caller.share is not None:
        if caller.share != id:
            raise no_thread(id)
        return await service.engine.threads.get(id)
    if Scope.READ not in caller.scopes:
        raise ForbiddenError("this token may not read", help="Use one with that scope.")
    return await _owned(id, caller, service)


async def _owned(id: str, caller: Principal, service: Service) -> Thread:
    if not is_id(id):
        raise NotFoundError("no such thread", help="Look at the list of threads for its id.")
    return await service.engine.threads.get(id, owner=caller.user)


OwnThread = Annotated[Thread, Depends(own_thread)]
ChangedThread = Annotated[Thread, Depends(changed_thread)]
SeenThread = Annotated[Thread, Depends(seen_thread)]
