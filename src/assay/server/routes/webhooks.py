"""Addresses that are told when a run ends or asks."""

from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Path
from pydantic import ConfigDict, Field

from assay.errors import RefusedError
from assay.model.webhook import Delivery, Told, Webhook
from assay.server.access import Principal, Reader, Writer
from assay.server.bodies import Body, Text, refusals
from assay.server.hooks import check_address
from assay.server.problems import Refusal, TooManyError
from assay.server.service import Service, Serving
from assay.storage.webhooks import MOST_TESTS

router = APIRouter(tags=["webhooks"])
AGAIN = 10.0  # seconds: after a failure the next attempt is made no sooner
_MADE: dict[str, Any] = {
    "id": "9f2c1b7a0d3e",
    "url": "https://hooks.team.example/assay",
    "events": ["finished", "question"],
    "created": "2026-11-15T12:30:00Z",
}
_TRIED: dict[str, Any] = {
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
    url: Text = Field(min_length=1, max_length=2000, examples=["https://hooks.team.example/assay"])
    events: tuple[Told, ...] = Field(
        default=tuple(Told), min_length=1, max_length=len(Told), examples=[["finished", "question"]]
    )


class KnownWebhook(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [_MADE]})

    id: str
    url: str
    events: tuple[Told, ...]
    created: datetime


class MadeWebhook(KnownWebhook):
    model_config = ConfigDict(json_schema_extra={"examples": [{**_MADE, "secret": "whsec_..."}]})

    secret: str = Field(description="Signs what is sent; told this once.")


class Webhooks(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"webhooks": [_MADE]}]})

    webhooks: list[KnownWebhook]


class KnownDelivery(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [_TRIED]})

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


class Deliveries(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"deliveries": [_TRIED]}]})

    deliveries: list[KnownDelivery]


WebhookId = Annotated[
    str, Path(alias="webhookId", description="The id of a webhook.", pattern="^[0-9a-f]{1,32}$", examples=[_MADE["id"]])
]


@router.post(
    "/api/webhooks", status_code=201, operation_id="add_webhook", summary="Have an address told of ends and questions",
    responses=refusals(400, 409),
)  # fmt: skip
async def add_webhook(body: NewWebhook, caller: Writer, service: Serving) -> MadeWebhook:
    """It is told of what happens from now on, on every thread of yours. Private addresses are refused, unless the
    settings name their network."""
    try:
        url = check_address(body.url, service.settings)
    except RefusedError as error:
        raise AddressError(f"the address {error.message}", help=error.help) from error
    made = await service.premises.webhooks.add(caller.user, url, body.events)
    return MadeWebhook(secret=made.secret, **_known(made).model_dump())


@router.get("/api/webhooks", operation_id="list_webhooks", summary="Your webhooks", responses=refusals())
async def list_webhooks(caller: Reader, service: Serving) -> Webhooks:
    return Webhooks(webhooks=[_known(one) for one in await service.premises.webhooks.of(caller.user)])


@router.delete(
    "/api/webhooks/{webhookId}", status_code=204, operation_id="delete_webhook", summary="Tell an address nothing more",
    responses=refusals(404),
)  # fmt: skip
async def delete_webhook(id: WebhookId, caller: Writer, service: Serving) -> None:
    """What was still to be told to it goes too."""
    await service.premises.webhooks.delete(caller.user, id)


@router.get(
    "/api/webhooks/{webhookId}/deliveries", operation_id="list_deliveries",
    summary="What an address was told, or could not be told", responses=refusals(404),
)  # fmt: skip
async def list_deliveries(id: WebhookId, caller: Reader, service: Serving) -> Deliveries:
    """The newest 100, for 30 days."""
    webhook = await _own(service, caller, id)
    return Deliveries(deliveries=[_tried(one) for one in await service.premises.webhooks.deliveries(webhook.id)])


@router.post(
    "/api/webhooks/{webhookId}/test", status_code=202, operation_id="check_webhook",
    summary="Send an address something now", responses=refusals(404, 429),
)  # fmt: skip
async def check_webhook(id: WebhookId, caller: Writer, service: Serving) -> KnownDelivery:
    """Of the type `test`. How it went stands in the deliveries; a few may wait to be told at a time."""
    webhook = await _own(service, caller, id)
    now = service.now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body = {"type": "test", "timestamp": now, "data": {"webhookId": webhook.id}}
    made = await service.premises.webhooks.put(webhook.id, body)
    if made is None:
        raise TooManyError(
            f"{MOST_TESTS} tests of this webhook wait to be told", retry_after=AGAIN, help="Look at its deliveries."
        )
    return _tried(made)


async def _own(service: Service, caller: Principal, id: str) -> Webhook:
    return await service.premises.webhooks.get(caller.user, id)


def _known(webhook: Webhook) -> KnownWebhook:
    return KnownWebhook(id=webhook.id, url=webhook.url, events=webhook.events, created=webhook.created)


def _tried(delivery: Delivery) -> KnownDelivery:
    data = delivery.body["data"]
    return KnownDelivery.model_validate(
        {
            **delivery.model_dump(exclude={"webhook", "body"}),
            "type": delivery.body["type"],
            "status": delivery.status,
            "thread_id": data.get("threadId"),
            "run_id": data.get("runId"),
        }
    )
