"""The caller's account: limits, memory, share links and webhooks."""

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import AfterValidator, Field, field_validator

from openassay.engine.memory import parse_hosts_or_sources
from openassay.engine.webhooks import check_address
from openassay.errors import AddressPolicyError, NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import FEWEST_WORDS, MOST_WORDS, Style
from openassay.models.spend import MICRO
from openassay.models.user import (
    LONGEST_FACT,
    MAX_WEBHOOK_TESTS,
    MOST_NAMED,
    Delivery,
    Preferences,
    Scope,
    WebhookEvent,
)
from openassay.server.auth import OwnThread, Person, Reader, Sharer, Visitor, Writer
from openassay.server.bodies import (
    Body,
    ReadableText,
    created_links,
    redact_report_for_link,
    refusals,
    with_examples,
)
from openassay.server.responses import (
    MalformedError,
    Refusal,
    TooManyError,
    respond_with_message,
    respond_with_page,
)
from openassay.server.service import ServiceDep
from openassay.text.language import language_code
from openassay.text.words import clean_text, is_readable

account_router = APIRouter(responses=refusals(), tags=["account"])
memory_router = APIRouter(prefix="/api/memory", responses=refusals(), tags=["memory"])
shares_router = APIRouter(responses=refusals(), tags=["shares"])
webhooks_router = APIRouter(prefix="/api/webhooks", responses=refusals(), tags=["webhooks"])
UNKNOWN_LANGUAGE = "The planner knows it, but sources cannot be searched in this language."
MAX_SHARE_DAYS = 365
MAX_SHARES = 100  # valid links to one thread
TEST_RETRY_SECONDS = 10.0  # after a failure the next attempt is made no sooner

# Account ------------------------------------------------------------------------------------------------------


class BudgetBody(Body):
    """Of this calendar month (UTC), in dollars. Without a cap nothing is held and `left` is null."""

    cap: float | None = Field(examples=[20.0])
    spent: float = Field(examples=[3.25], description="By all your runs, also those of deleted threads.")
    held: float = Field(examples=[2.0], description="What runs that have not ended may still spend.")
    left: float | None = Field(examples=[14.75])


class Allowance(Body):
    requests_per_minute: int = Field(examples=[600])
    runs: int = Field(examples=[50], description="Active, queued or waiting for an answer.")
    runs_at_work: int = Field(examples=[1])
    streams: int = Field(examples=[100])


class AccountBody(Body):
    user: str = Field(examples=["ada"])
    scopes: list[Scope] = Field(examples=[["read", "write", "share"]])
    budget: BudgetBody
    limits: Allowance


@account_router.get("/api/account", operation_id="account", summary="Get your account and budget")
async def get_account(caller: Person, service: ServiceDep) -> AccountBody:
    """The owner of the token, with this month's budget and their limits."""
    limits, server = service.limits, service.settings.server
    money = await limits.get_budget(caller)
    cap, left = (None if amount is None else amount / MICRO for amount in (money.cap, money.left))
    return AccountBody(
        user=caller.user,
        scopes=sorted(caller.scopes),
        budget=BudgetBody(cap=cap, spent=money.spent / MICRO, held=money.held / MICRO, left=left),
        limits=Allowance(
            requests_per_minute=caller.requests_per_minute or server.requests_per_minute,
            runs=server.runs_per_user,
            runs_at_work=await limits.count_active(caller),
            streams=server.streams_per_user,
        ),
    )


# Memory ---------------------------------------------------------------------------------------------------------


def _normalize_words(text: str) -> str:
    words = " ".join(text.split())
    if not is_readable(words) or not any(map(str.isalnum, words)):
        raise ValueError("this is not readable text")
    return words


Words = Annotated[str, AfterValidator(_normalize_words)]
Party = Annotated[str, Field(max_length=253)]
FactId = Annotated[str, Path(alias="factId", description="The id of a fact.", examples=["M2"])]


class PreferencesBody(Body):
    """What is left out is decided by the settings."""

    style: Style | None = Field(default=None, examples=["executive"])
    words: int | None = Field(default=None, ge=FEWEST_WORDS, le=MOST_WORDS, examples=[800])
    prefer: list[Party] = Field(default=[], max_length=MOST_NAMED, examples=[["nasa.gov", "arxiv"]])
    avoid: list[Party] = Field(default=[], max_length=MOST_NAMED, examples=[["reddit.com"]])
    region: Annotated[Words, Field(max_length=80)] | None = Field(default=None, examples=["Switzerland"])
    language: Annotated[Words, Field(max_length=40)] | None = Field(default=None, examples=["German"])


class PreferencesResult(PreferencesBody):
    notices: list[str] = Field(default=[], examples=[[UNKNOWN_LANGUAGE]])


class FactText(Body):
    text: Annotated[ReadableText, Field(min_length=1, max_length=LONGEST_FACT, examples=["We report in euros"])]

    @field_validator("text")
    @classmethod
    def _require_words(cls, text: str) -> str:
        if not any(map(str.isalnum, clean_text(text))):
            raise ValueError("this is not readable text")
        return text


class FactBody(Body):
    id: str = Field(examples=["M2"])
    text: str = Field(examples=["We report in euros"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    updated: datetime = Field(examples=["2026-03-01T12:00:00Z"])


class MemoryBody(Body):
    preferences: PreferencesBody
    facts: list[FactBody]


@memory_router.get("", summary="Get what is remembered about you")
async def get_memory(caller: Reader, service: ServiceDep) -> MemoryBody:
    memory = service.engine.memory
    preferences, facts = await memory.preferences(caller.user), await memory.facts(caller.user)
    return MemoryBody.model_validate({"preferences": preferences, "facts": facts})


@memory_router.put("/preferences", summary="Set your preferences")
async def set_preferences(caller: Writer, service: ServiceDep, body: PreferencesBody) -> PreferencesResult:
    """All of them: what is left out is deleted."""
    try:
        prefer, avoid = (parse_hosts_or_sources(names, service.settings) for names in (body.prefer, body.avoid))
    except UsageError as error:
        raise MalformedError(error.message, help=error.help) from error
    if both := sorted({*prefer} & {*avoid}):
        raise MalformedError(f"{both[0]} is both preferred and avoided", help="Leave it out of one of the two.")
    values = {**body.model_dump(by_alias=False), "prefer": prefer, "avoid": avoid}
    preferences = Preferences.model_validate(values)
    await service.engine.memory.set_preferences(caller.user, preferences)
    notices = [UNKNOWN_LANGUAGE] if preferences.language and language_code(preferences.language) is None else []
    return PreferencesResult.model_validate({**preferences.plain(), "notices": notices})


@memory_router.post("/facts", status_code=201, summary="Remember a fact", responses=refusals(409))
async def add_fact(caller: Writer, service: ServiceDep, body: FactText) -> FactBody:
    """A fact that differs only in case from a known one is that one."""
    return FactBody.model_validate(await service.engine.memory.remember(caller.user, body.text))


@memory_router.patch("/facts/{factId}", summary="Edit a fact", responses=refusals(404, 409))
async def edit_fact(id: FactId, caller: Writer, service: ServiceDep, body: FactText) -> FactBody:
    return FactBody.model_validate(await service.engine.memory.edit(caller.user, id, body.text))


@memory_router.delete("/facts/{factId}", status_code=204, summary="Forget a fact", responses=refusals(404))
async def forget_fact(id: FactId, caller: Writer, service: ServiceDep) -> Response:
    await service.engine.memory.forget(caller.user, id)
    return Response(status_code=204)


@memory_router.delete("", status_code=204, summary="Forget everything about you")
async def forget_all(caller: Writer, service: ServiceDep) -> Response:
    await service.engine.memory.forget_all(caller.user)
    return Response(status_code=204)


# Share links ----------------------------------------------------------------------------------------------------

_PENDING = {
    RunStatus.QUEUED: "It is queued.",
    RunStatus.RUNNING: "It is running.",
    RunStatus.WAITING: "It waits for an answer from the person who asked.",
    RunStatus.CANCELLED: "It was cancelled and can be resumed.",
    RunStatus.FAILED: "It has failed.",
}
_SHARE_LINKS = created_links(
    open_share={"secret": "$response.body#/secret"},
    revoke_share={"threadId": "$request.path.threadId", "shareId": "$response.body#/id"},
)
ShareId = Annotated[str, Path(alias="shareId", description="The id of a link.", examples=["5d1f08ac"])]


class NewShare(Body):
    days: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SHARE_DAYS,
        allow_inf_nan=False,
        examples=[7],
        description="How long the link is valid, if not as the settings say.",
    )


class ShareWithSecret(Body):
    """The secret is returned only this once: it cannot be looked up."""

    id: str = Field(examples=["5d1f08ac"])
    url: str = Field(examples=["https://openassay.example/s/share_5d1f08ac_Zm9v"])
    secret: str = Field(examples=["share_5d1f08ac_Zm9v"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])


class ShareBody(Body):
    id: str = Field(examples=["5d1f08ac"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])
    revoked: datetime | None = None
    good: bool = Field(examples=[True], description="Whether it is valid.")


class ShareList(Body):
    shares: list[ShareBody]


@shares_router.post(
    "/api/threads/{threadId}/shares",
    status_code=201,
    summary="Create a link to a thread",
    responses={**_SHARE_LINKS, **refusals(404, 409)},
)
async def share_thread(
    thread: OwnThread, caller: Sharer, service: ServiceDep, request: Request, body: NewShare | None = None
) -> ShareWithSecret:
    """Read-only: anyone with the link sees the report, and nothing else of yours."""
    lifetime = timedelta(days=(body.days if body else None) or service.settings.server.share_days)
    shares = service.resources.shares
    if sum(share.is_valid(service.now()) for share in await shares.list_for(thread.id)) >= MAX_SHARES:
        raise UsageError(f"a thread has at most {MAX_SHARES} links", help="Revoke one of them.")
    share, secret = await shares.create(thread.id, lifetime)
    base = service.settings.server.public_url or str(request.base_url)
    return ShareWithSecret(id=share.id, url=f"{base.rstrip('/')}/s/{secret}", secret=secret, expires=share.expires)


@shares_router.get("/api/threads/{threadId}/shares", summary="List the links to a thread", responses=refusals(404))
async def list_shares(thread: OwnThread, caller: Sharer, service: ServiceDep) -> ShareList:
    fields, found = {"id", "created", "expires", "revoked"}, await service.resources.shares.list_for(thread.id)
    shares = [ShareBody(**share.model_dump(include=fields), good=share.is_valid(service.now())) for share in found]
    return ShareList(shares=shares)


@shares_router.delete(
    "/api/threads/{threadId}/shares/{shareId}", status_code=204, summary="Revoke a link", responses=refusals(404)
)
async def revoke_share(thread: OwnThread, id: ShareId, caller: Sharer, service: ServiceDep) -> Response:
    await service.resources.shares.revoke(thread.id, id)
    return Response(status_code=204)


@shares_router.get(
    "/s/{secret}",
    response_class=HTMLResponse,
    summary="Open a link",
    responses={404: {"description": "The link is not valid.", "content": {"text/html": {}}}},
    dependencies=[Visitor],
)
async def open_share(
    secret: Annotated[str, Path(description="The secret of a link.", examples=["share_5d1f08ac_Zm9v"])],
    service: ServiceDep,
) -> HTMLResponse:
    """The report as a page. Links that have expired, were revoked or never existed are answered alike."""
    share = await service.resources.shares.find_by_secret(secret)
    if share is None or not share.is_valid(service.now()):
        reason = "This link has expired, was revoked, or is not complete."
        return respond_with_message(
            "There is nothing here", reason, "Ask the person who sent it for a new one.", status=404
        )
    try:
        report = redact_report_for_link(await service.engine.history.report(share.thread), service.redaction)
    except NotFoundError:
        runs = await service.engine.threads.runs(share.thread)
        status = _PENDING.get(runs[-1].status, "") if runs else "Nothing was asked yet."
        return respond_with_message("Not finished yet", status, "Come back later: the report will be shown here.")
    return respond_with_page(report.title, report.html)


# Webhooks -------------------------------------------------------------------------------------------------------

_WEBHOOK_EXAMPLE = json.loads("""
    {"id": "9f2c1b7a0d3e", "url": "https://hooks.team.example/openassay", "events": ["finished", "question"],
    "created": "2026-11-15T12:30:00Z"}
    """)
_DELIVERY_EXAMPLE = json.loads("""
    {"id": "msg_0f6d3b1c2a9b7d3e4f1c2a9b", "type": "run.finished", "status": "waiting", "threadId": "4f1c2a9b7d3e",
    "runId": "0c7a55b1d2e3", "created": "2026-11-15T12:30:00Z", "attempts": 2, "due": "2026-11-15T12:31:10Z",
    "delivered": null, "error": "answered 503"}
    """)


class NewWebhook(Body):
    url: ReadableText = Field(min_length=1, max_length=2000, examples=["https://hooks.team.example/openassay"])
    events: tuple[WebhookEvent, ...] = Field(
        default=tuple(WebhookEvent), min_length=1, max_length=len(WebhookEvent), examples=[["finished", "question"]]
    )


class WebhookBody(Body):
    model_config = with_examples(_WEBHOOK_EXAMPLE)

    id: str
    url: str
    events: tuple[WebhookEvent, ...]
    created: datetime


class WebhookWithSecret(WebhookBody):
    model_config = with_examples({**_WEBHOOK_EXAMPLE, "secret": "whsec_..."})

    secret: str = Field(description="Signs what is sent; returned only this once.")


class WebhookList(Body):
    model_config = with_examples({"webhooks": [_WEBHOOK_EXAMPLE]})

    webhooks: list[WebhookBody]


class DeliveryBody(Body):
    model_config = with_examples(_DELIVERY_EXAMPLE)

    id: str
    type: str
    status: Literal["waiting", "delivered", "given up"]
    thread_id: str | None = None
    run_id: str | None = None
    created: datetime = Field(description="When it happened.")
    attempts: int
    due: datetime | None = Field(default=None, description="The next attempt, if there is one.")
    delivered: datetime | None = None
    error: str = ""


class DeliveryList(Body):
    model_config = with_examples({"deliveries": [_DELIVERY_EXAMPLE]})

    deliveries: list[DeliveryBody]


WebhookId = Annotated[
    str,
    Path(
        alias="webhookId",
        description="The id of a webhook.",
        pattern="^[0-9a-f]{1,32}$",
        examples=[_WEBHOOK_EXAMPLE["id"]],
    ),
]


@webhooks_router.post("", status_code=201, summary="Add a webhook", responses=refusals(400, 409))
async def add_webhook(body: NewWebhook, caller: Writer, service: ServiceDep) -> WebhookWithSecret:
    """It is notified when a run of yours ends or asks a question. Private addresses are refused, unless the settings
    name their network."""
    try:
        url = check_address(body.url, service.settings)
    except AddressPolicyError as error:
        raise Refusal(f"the address {error.message}", help=error.help, status=422, kind="address") from error
    made = await service.resources.webhooks.add(caller.user, url, body.events)
    return WebhookWithSecret.model_validate(made)


@webhooks_router.get("", summary="List your webhooks")
async def list_webhooks(caller: Reader, service: ServiceDep) -> WebhookList:
    return WebhookList.model_validate({"webhooks": await service.resources.webhooks.list_for(caller.user)})


@webhooks_router.delete("/{webhookId}", status_code=204, summary="Delete a webhook", responses=refusals(404))
async def delete_webhook(id: WebhookId, caller: Writer, service: ServiceDep) -> None:
    """With its pending deliveries."""
    await service.resources.webhooks.delete(caller.user, id)


@webhooks_router.get("/{webhookId}/deliveries", summary="List the deliveries of a webhook", responses=refusals(404))
async def list_deliveries(id: WebhookId, caller: Reader, service: ServiceDep) -> DeliveryList:
    """The newest 100, for 30 days."""
    webhook = await service.resources.webhooks.get(caller.user, id)
    found = await service.resources.webhooks.deliveries(webhook.id)
    return DeliveryList(deliveries=list(map(_to_delivery, found)))


@webhooks_router.post(
    "/{webhookId}/test", status_code=202, summary="Send a test delivery", responses=refusals(404, 429)
)
async def check_webhook(id: WebhookId, caller: Writer, service: ServiceDep) -> DeliveryBody:
    """Of the type `test`. Its result is in the deliveries; a few may be pending at a time."""
    webhook = await service.resources.webhooks.get(caller.user, id)
    now = service.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = {"type": "test", "timestamp": now, "data": {"webhookId": webhook.id}}
    made = await service.resources.webhooks.add_test(webhook.id, body)
    if made is None:
        raise TooManyError(
            f"{MAX_WEBHOOK_TESTS} tests of this webhook are pending",
            retry_after=TEST_RETRY_SECONDS,
            help="Look at its deliveries.",
        )
    return _to_delivery(made)


def _to_delivery(delivery: Delivery) -> DeliveryBody:
    data = delivery.body["data"]
    return DeliveryBody.model_validate(
        {
            **delivery.model_dump(exclude={"webhook", "body"}),
            "type": delivery.body["type"],
            "status": delivery.status,
            "thread_id": data.get("threadId"),
            "run_id": data.get("runId"),
        }
    )
