"""Links that show a thread's report to whoever has them, until they expire or are taken back."""

from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import Field

from assay.errors import NotFoundError, UsageError
from assay.model.event import RunStatus
from assay.model.user import Share
from assay.server.access import OwnThread, Sharer, Visitor
from assay.server.bodies import Body, refusals
from assay.server.pages import message, page
from assay.server.service import Service, Serving
from assay.server.shown import linked_report

router = APIRouter(tags=["shares"])
LONGEST = 365  # days
MOST = 100  # links to one thread that are good
_STATUS = {
    RunStatus.QUEUED: "It waits for its turn.",
    RunStatus.RUNNING: "It is being worked on.",
    RunStatus.WAITING: "It waits for an answer of the person who asked.",
    RunStatus.CANCELLED: "It was stopped, and can be gone on with.",
    RunStatus.FAILED: "It could not be finished.",
}
_MADE: dict[int | str, dict[str, Any]] = {
    201: {
        "links": {
            "open_share": {"operationId": "open_share", "parameters": {"secret": "$response.body#/secret"}},
            "revoke_share": {
                "operationId": "revoke_share",
                "parameters": {"threadId": "$request.path.threadId", "shareId": "$response.body#/id"},
            },
        }
    }
}
ShareId = Annotated[str, Path(alias="shareId", description="The id of a link.", examples=["5d1f08ac"])]


class NewShare(Body):
    days: float | None = Field(
        default=None, gt=0, le=LONGEST, allow_inf_nan=False, examples=[7],
        description="How long the link is good for; what the settings say where nothing is said.",
    )  # fmt: skip


class MadeShare(Body):
    """The secret is told this once: nobody can look it up."""

    id: str = Field(examples=["5d1f08ac"])
    url: str = Field(examples=["https://assay.example/s/share_5d1f08ac_Zm9v"])
    secret: str = Field(examples=["share_5d1f08ac_Zm9v"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])


class KeptShare(Body):
    id: str = Field(examples=["5d1f08ac"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])
    revoked: datetime | None = None
    good: bool = Field(examples=[True], description="Whether it still shows anything.")


class KeptShares(Body):
    shares: list[KeptShare]


@router.post(
    "/api/threads/{threadId}/shares", status_code=201, operation_id="share_thread", summary="Make a link to a thread",
    responses={**_MADE, **refusals(404, 409)},
)  # fmt: skip
async def share_thread(
    thread: OwnThread, caller: Sharer, service: Serving, request: Request, body: NewShare | None = None
) -> MadeShare:
    """Read-only: whoever has the link sees the report, and nothing else of yours."""
    lasts = timedelta(days=(body.days if body else None) or service.settings.server.share_days)
    shares = service.premises.shares
    if sum(share.is_good(service.now()) for share in await shares.of(thread.id)) >= MOST:
        raise UsageError(f"there are {MOST} links to this thread, which is the most", help="Take one of them back.")
    share, secret = await shares.make(thread.id, lasts)
    base = service.settings.server.public_url or str(request.base_url)
    return MadeShare(id=share.id, url=f"{base.rstrip('/')}/s/{secret}", secret=secret, expires=share.expires)


@router.get(
    "/api/threads/{threadId}/shares", operation_id="list_shares", summary="List the links to a thread",
    responses=refusals(404),
)  # fmt: skip
async def list_shares(thread: OwnThread, caller: Sharer, service: Serving) -> KeptShares:
    return KeptShares(shares=[_kept(share, service) for share in await service.premises.shares.of(thread.id)])


@router.delete(
    "/api/threads/{threadId}/shares/{shareId}", status_code=204, operation_id="revoke_share",
    summary="Take a link back", responses=refusals(404),
)  # fmt: skip
async def revoke_share(thread: OwnThread, id: ShareId, caller: Sharer, service: Serving) -> Response:
    """At once: it shows nothing any more."""
    await service.premises.shares.revoke(thread.id, id)
    return Response(status_code=204)


@router.get(
    "/s/{secret}", response_class=HTMLResponse, operation_id="open_share", summary="Open a link",
    responses={404: {"description": "The link is not good, or never was.", "content": {"text/html": {}}}, **refusals()},
    dependencies=[Visitor],
)  # fmt: skip
async def open_share(
    secret: Annotated[str, Path(description="The secret of a link.", examples=["share_5d1f08ac_Zm9v"])],
    service: Serving,
) -> HTMLResponse:
    """The report as a page. One that has expired, was taken back or never was is answered in the same way."""
    share = await service.premises.shares.known(secret)
    if share is None or not share.is_good(service.now()):
        return message(
            "There is nothing here", "This link has expired, was taken back, or is not complete.",
            "Ask the person who sent it for a new one.", status=404,
        )  # fmt: skip
    try:
        report = linked_report(await service.engine.report(share.thread), service.redaction)
    except NotFoundError:
        return await _unfinished(share, service)
    return page(report.title, report.html)


async def _unfinished(share: Share, service: Service) -> HTMLResponse:
    runs = await service.engine.threads.runs(share.thread)
    told = _STATUS.get(runs[-1].status, "") if runs else "Nothing was asked yet."
    return message("Not finished yet", told, "Come back later: this page shows the report as soon as there is one.")


def _kept(share: Share, service: Service) -> KeptShare:
    return KeptShare(
        id=share.id, created=share.created, expires=share.expires, revoked=share.revoked,
        good=share.is_good(service.now()),
    )  # fmt: skip
