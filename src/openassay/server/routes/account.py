"""Who one is here, and what one may have."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import AfterValidator, Field, field_validator

from openassay.errors import AddressPolicyError, NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import FEWEST_WORDS, MOST_WORDS, Style
from openassay.models.spend import MICRO
from openassay.models.user import (
    LONGEST_FACT,
    MOST_NAMED,
    Delivery,
    MemoryFact,
    Preferences,
    Scope,
    ShareLink,
    Webhook,
    WebhookEvent,
)
from openassay.nodes.preferences import language_code
from openassay.search.base import parse_host_or_source
from openassay.server.auth import OwnThread, Person, Principal, Reader, Sharer, Visitor, Writer
from openassay.server.bodies import Body, ReadableText, refusals, with_examples
from openassay.server.problems import MalformedError, Refusal, TooManyError
from openassay.server.redact import redact_report_for_link
from openassay.server.responses import respond_with_message, respond_with_page
from openassay.server.service import Service, ServiceDep
from openassay.server.webhooks import check_address
from openassay.settings import Settings
from openassay.storage.webhooks import MOST_TESTS
from openassay.text.words import clean_text, is_readable

account_router = APIRouter(tags=["account"])


class BudgetBody(Body):
    """Of this calendar month (UTC), in dollars. Without a cap nothing is held back and `left` is null."""

    cap: float | None = Field(examples=[20.0])
    spent: float = Field(examples=[3.25], description="By all your runs, those of deleted threads too.")
    held: float = Field(examples=[2.0], description="What runs that have not ended may still spend.")
    left: float | None = Field(examples=[14.75])


class Allowance(Body):
    requests_per_minute: int = Field(examples=[600])
    runs: int = Field(examples=[50], description="At work, in line, or waiting for an answer.")
    runs_at_work: int = Field(examples=[1])
    streams: int = Field(examples=[100])


class AccountBody(Body):
    user: str = Field(examples=["ada"])
    scopes: list[Scope] = Field(examples=[["read", "write", "share"]])
    budget: BudgetBody
    limits: Allowance


@account_router.get("/api/account", operation_id="account", summary="Who am I, and what is left", responses=refusals())
async def get_account(caller: Person, service: ServiceDep) -> AccountBody:
    """The owner of the token that was sent, with this month's money and the limits that hold for them."""
    limits, server = service.limits, service.settings.server
    money = await limits.get_budget(caller)
    return AccountBody(
        user=caller.user,
        scopes=sorted(caller.scopes),
        budget=BudgetBody(
            cap=None if money.cap is None else money.cap / MICRO,
            spent=money.spent / MICRO,
            held=money.held / MICRO,
            left=None if money.left is None else money.left / MICRO,
        ),
        limits=Allowance(
            requests_per_minute=caller.requests_per_minute or server.requests_per_minute,
            runs=server.runs_per_user,
            runs_at_work=await limits.count_active(caller),
            streams=server.streams_per_user,
        ),
    )


# What is remembered of the person who calls, across threads: shown, changed and forgotten by them alone.

memory_router = APIRouter(tags=["memory"])
UNKNOWN_LANGUAGE = "The planner is told; sources cannot be asked in this language."


def _normalize_words(text: str) -> str:
    said = " ".join(text.split())
    if not is_readable(said) or not any(map(str.isalnum, said)):
        raise ValueError("this is not readable text")
    return said


Words = Annotated[str, AfterValidator(_normalize_words)]
Party = Annotated[str, Field(max_length=253)]
FactId = Annotated[str, Path(alias="factId", description="The id of a fact.", examples=["M2"])]


class PreferencesBody(Body):
    """Nothing: no preference, so the settings decide."""

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


@memory_router.get("/api/memory", summary="Look at what is remembered of you", responses=refusals())
async def get_memory(caller: Reader, service: ServiceDep) -> MemoryBody:
    memory = service.engine.memory
    preferences, facts = await memory.preferences(caller.user), await memory.facts(caller.user)
    return MemoryBody(
        preferences=PreferencesBody.model_validate(preferences.plain()), facts=[_to_fact(one) for one in facts]
    )


@memory_router.put("/api/memory/preferences", summary="Set your preferences", responses=refusals())
async def set_preferences(caller: Writer, service: ServiceDep, body: PreferencesBody) -> PreferencesResult:
    """All of them: what is left out is no preference any more."""
    preferences = _to_preferences(body, service.engine.settings)
    await service.engine.memory.set_preferences(caller.user, preferences)
    notices = [UNKNOWN_LANGUAGE] if preferences.language and language_code(preferences) is None else []
    return PreferencesResult.model_validate({**preferences.plain(), "notices": notices})


@memory_router.post("/api/memory/facts", status_code=201, summary="Have a fact remembered", responses=refusals(409))
async def add_fact(caller: Writer, service: ServiceDep, body: FactText) -> FactBody:
    """One that is remembered already, in other letters, is the fact it was."""
    return _to_fact(await service.engine.memory.remember(caller.user, body.text))


@memory_router.patch("/api/memory/facts/{factId}", summary="Put a fact in other words", responses=refusals(404, 409))
async def edit_fact(id: FactId, caller: Writer, service: ServiceDep, body: FactText) -> FactBody:
    return _to_fact(await service.engine.memory.edit(caller.user, id, body.text))


@memory_router.delete("/api/memory/facts/{factId}", status_code=204, summary="Forget a fact", responses=refusals(404))
async def forget_fact(id: FactId, caller: Writer, service: ServiceDep) -> Response:
    await service.engine.memory.forget(caller.user, id)
    return Response(status_code=204)


@memory_router.delete("/api/memory", status_code=204, summary="Forget everything about you", responses=refusals())
async def forget_all(caller: Writer, service: ServiceDep) -> Response:
    await service.engine.memory.forget_all(caller.user)
    return Response(status_code=204)


def _to_preferences(body: PreferencesBody, settings: Settings) -> Preferences:
    try:
        prefer, avoid = ([parse_host_or_source(one, settings) for one in said] for said in (body.prefer, body.avoid))
    except UsageError as error:
        raise MalformedError(error.message, help=error.help) from error
    if both := sorted({*prefer} & {*avoid}):
        raise MalformedError(f"{both[0]} is both preferred and avoided", help="Leave it out of one of the two.")
    named = {"prefer": tuple(dict.fromkeys(prefer)), "avoid": tuple(dict.fromkeys(avoid))}
    return Preferences.model_validate({**body.model_dump(by_alias=False), **named})


def _to_fact(fact: MemoryFact) -> FactBody:
    return FactBody.model_validate(fact.plain())


# Links that show a thread's report to whoever has them, until they expire or are taken back.

shares_router = APIRouter(tags=["shares"])
LONGEST = 365  # days
MOST = 100  # links to one thread that are good
_STATUS = {
    RunStatus.QUEUED: "It waits for its turn.",
    RunStatus.RUNNING: "It is being worked on.",
    RunStatus.WAITING: "It waits for an answer of the person who asked.",
    RunStatus.CANCELLED: "It was stopped, and can be gone on with.",
    RunStatus.FAILED: "It could not be finished.",
}
_SHARE_LINKS: dict[int | str, dict[str, Any]] = {
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
        default=None,
        gt=0,
        le=LONGEST,
        allow_inf_nan=False,
        examples=[7],
        description="How long the link is good for; what the settings say where nothing is said.",
    )


class ShareWithSecret(Body):
    """The secret is told this once: nobody can look it up."""

    id: str = Field(examples=["5d1f08ac"])
    url: str = Field(examples=["https://openassay.example/s/share_5d1f08ac_Zm9v"])
    secret: str = Field(examples=["share_5d1f08ac_Zm9v"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])


class ShareBody(Body):
    id: str = Field(examples=["5d1f08ac"])
    created: datetime = Field(examples=["2026-03-01T12:00:00Z"])
    expires: datetime = Field(examples=["2026-03-08T12:00:00Z"])
    revoked: datetime | None = None
    good: bool = Field(examples=[True], description="Whether it still shows anything.")


class ShareList(Body):
    shares: list[ShareBody]


@shares_router.post(
    "/api/threads/{threadId}/shares",
    status_code=201,
    summary="Make a link to a thread",
    responses={**_SHARE_LINKS, **refusals(404, 409)},
)
async def share_thread(
    thread: OwnThread, caller: Sharer, service: ServiceDep, request: Request, body: NewShare | None = None
) -> ShareWithSecret:
    """Read-only: whoever has the link sees the report, and nothing else of yours."""
    lasts = timedelta(days=(body.days if body else None) or service.settings.server.share_days)
    shares = service.resources.shares
    if sum(share.is_valid(service.now()) for share in await shares.list_for(thread.id)) >= MOST:
        raise UsageError(f"there are {MOST} links to this thread, which is the most", help="Take one of them back.")
    share, secret = await shares.create(thread.id, lasts)
    base = service.settings.server.public_url or str(request.base_url)
    return ShareWithSecret(id=share.id, url=f"{base.rstrip('/')}/s/{secret}", secret=secret, expires=share.expires)


@shares_router.get("/api/threads/{threadId}/shares", summary="List the links to a thread", responses=refusals(404))
async def list_shares(thread: OwnThread, caller: Sharer, service: ServiceDep) -> ShareList:
    return ShareList(shares=[_to_share(share, service) for share in await service.resources.shares.list_for(thread.id)])


@shares_router.delete(
    "/api/threads/{threadId}/shares/{shareId}", status_code=204, summary="Take a link back", responses=refusals(404)
)
async def revoke_share(thread: OwnThread, id: ShareId, caller: Sharer, service: ServiceDep) -> Response:
    """At once: it shows nothing any more."""
    await service.resources.shares.revoke(thread.id, id)
    return Response(status_code=204)


@shares_router.get(
    "/s/{secret}",
    response_class=HTMLResponse,
    summary="Open a link",
    responses={404: {"description": "The link is not good, or never was.", "content": {"text/html": {}}}, **refusals()},
    dependencies=[Visitor],
)
async def open_share(
    secret: Annotated[str, Path(description="The secret of a link.", examples=["share_5d1f08ac_Zm9v"])],
    service: ServiceDep,
) -> HTMLResponse:
    """The report as a page. One that has expired, was taken back or never was is answered in the same way."""
    share = await service.resources.shares.find_by_secret(secret)
    if share is None or not share.is_valid(service.now()):
        return respond_with_message(
            "There is nothing here",
            "This link has expired, was taken back, or is not complete.",
            "Ask the person who sent it for a new one.",
            status=404,
        )
    try:
        report = redact_report_for_link(await service.engine.report(share.thread), service.redaction)
    except NotFoundError:
        return await _respond_pending(share, service)
    return respond_with_page(report.title, report.html)


async def _respond_pending(share: ShareLink, service: Service) -> HTMLResponse:
    runs = await service.engine.threads.runs(share.thread)
    told = _STATUS.get(runs[-1].status, "") if runs else "Nothing was asked yet."
    return respond_with_message(
        "Not finished yet", told, "Come back later: this page shows the report as soon as there is one."
    )


def _to_share(share: ShareLink, service: Service) -> ShareBody:
    return ShareBody(
        id=share.id,
        created=share.created,
        expires=share.expires,
        revoked=share.revoked,
        good=share.is_valid(service.now()),
    )


# Addresses that are told when a run ends or asks.

webhooks_router = APIRouter(tags=["webhooks"])
AGAIN = 10.0  # seconds: after a failure the next attempt is made no sooner
_WEBHOOK_EXAMPLE: dict[str, Any] = {
    "id": "9f2c1b7a0d3e",
    "url": "https://hooks.team.example/openassay",
    "events": ["finished", "question"],
    "created": "2026-11-15T12:30:00Z",
}
_DELIVERY_EXAMPLE: dict[str, Any] = {
    "id": "msg_0f6d3b1c2a9b7d3e4f1c2a9b",
    "type": "run.finished",
    "status": "waiting",
    "threadId": "4f1c2a9b7d3e",
    "runId": "0c7a55b1d2e3",
    "created": "2026-11-15T12:30:00Z",
    "attempts": 2,
    "due": "2026-11-15T12:31:10Z",
    "delivered": None,
    "error": "answered 503",
}


class AddressError(Refusal):
    """An address that may not be told anything."""

    status: ClassVar[int] = 422


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

    secret: str = Field(description="Signs what is sent; told this once.")


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
    due: datetime | None = Field(default=None, description="The next attempt; none is made without it.")
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


@webhooks_router.post(
    "/api/webhooks", status_code=201, summary="Have an address told of ends and questions", responses=refusals(400, 409)
)
async def add_webhook(body: NewWebhook, caller: Writer, service: ServiceDep) -> WebhookWithSecret:
    """It is told of what happens from now on, on every thread of yours. Private addresses are refused, unless the
    settings name their network."""
    try:
        url = check_address(body.url, service.settings)
    except AddressPolicyError as error:
        raise AddressError(f"the address {error.message}", help=error.help) from error
    made = await service.resources.webhooks.add(caller.user, url, body.events)
    return WebhookWithSecret(secret=made.secret, **_to_webhook(made).model_dump())


@webhooks_router.get("/api/webhooks", summary="Your webhooks", responses=refusals())
async def list_webhooks(caller: Reader, service: ServiceDep) -> WebhookList:
    return WebhookList(webhooks=[_to_webhook(one) for one in await service.resources.webhooks.list_for(caller.user)])


@webhooks_router.delete(
    "/api/webhooks/{webhookId}", status_code=204, summary="Tell an address nothing more", responses=refusals(404)
)
async def delete_webhook(id: WebhookId, caller: Writer, service: ServiceDep) -> None:
    """What was still to be told to it goes too."""
    await service.resources.webhooks.delete(caller.user, id)


@webhooks_router.get(
    "/api/webhooks/{webhookId}/deliveries",
    summary="What an address was told, or could not be told",
    responses=refusals(404),
)
async def list_deliveries(id: WebhookId, caller: Reader, service: ServiceDep) -> DeliveryList:
    """The newest 100, for 30 days."""
    webhook = await _get_webhook(service, caller, id)
    return DeliveryList(
        deliveries=[_to_delivery(one) for one in await service.resources.webhooks.deliveries(webhook.id)]
    )


@webhooks_router.post(
    "/api/webhooks/{webhookId}/test",
    status_code=202,
    summary="Send an address something now",
    responses=refusals(404, 429),
)
async def check_webhook(id: WebhookId, caller: Writer, service: ServiceDep) -> DeliveryBody:
    """Of the type `test`. How it went stands in the deliveries; a few may wait to be told at a time."""
    webhook = await _get_webhook(service, caller, id)
    now = service.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = {"type": "test", "timestamp": now, "data": {"webhookId": webhook.id}}
    made = await service.resources.webhooks.add_test(webhook.id, body)
    if made is None:
        raise TooManyError(
            f"{MOST_TESTS} tests of this webhook wait to be told", retry_after=AGAIN, help="Look at its deliveries."
        )
    return _to_delivery(made)


async def _get_webhook(service: Service, caller: Principal, id: str) -> Webhook:
    return await service.resources.webhooks.get(caller.user, id)


def _to_webhook(webhook: Webhook) -> WebhookBody:
    return WebhookBody(id=webhook.id, url=webhook.url, events=webhook.events, created=webhook.created)


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
