"""Telling addresses when a run ends or asks: each of them at least once, signed as Standard Webhooks has it, and tried
again for hours. What is told names the thread and the run; the report is fetched with a token."""

import asyncio
import contextlib
import hmac
import json
import logging
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from hashlib import sha256

from openassay.bootstrap import ServerResources
from openassay.errors import (
    AddressPolicyError,
    ConfigurationError,
    FetchError,
    IntegrityError,
    NotFoundError,
    OpenAssayError,
)
from openassay.fetch.client import FetchClient
from openassay.fetch.guard import AddressGuard
from openassay.models.user import Delivery, Webhook
from openassay.settings import Settings
from openassay.storage.database import utc_now
from openassay.storage.webhooks import PREFIX

_log = logging.getLogger("openassay")
LOOK = 1.0  # seconds between two looks
THOROUGH = 30.0  # seconds after which every address is looked after, also where nothing seems to have happened
AT_ONCE = 20  # deliveries under way
OF_ONE = 4  # of them of one person: an address that takes its time holds up nobody else
FIRST, FACTOR, LONGEST = timedelta(seconds=10), 6, timedelta(hours=6)  # 10 s, 1 min, 6 min, 36 min, 3.6 h, 6 h ...
SPARE = timedelta(seconds=30)  # after which a delivery whose process is gone is due again
LARGEST = 10_000  # bytes of an answer, which nobody reads
GONE = 410


class WebhookSender:
    """`look` is how often it is looked whether there is something to tell, and `first` the pause after a failure."""

    def __init__(
        self,
        resources: ServerResources,
        *,
        look: float = LOOK,
        first: timedelta = FIRST,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store = resources.webhooks
        self._users = resources.users
        self._threads = resources.engine.threads
        self._settings = resources.engine.settings
        _create_guard(self._settings)  # what is wrong with it is told before anything runs
        self._look = look
        self._first = first
        self._now = now
        self._pulse = ("", "")
        self._looked = 0.0
        self._under_way: dict[asyncio.Task[None], str] = {}  # and whose it is
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with open_client(self._settings) as client:
            try:
                while True:
                    self._wake.clear()
                    await _log_errors(self._step(client))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self._look):
                            await self._wake.wait()
            finally:
                await self._stop()

    async def _step(self, client: FetchClient) -> None:
        await self.collect_events()
        await self.deliver(client)

    async def _stop(self) -> None:
        """What is under way is due again when its lease has ended."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def collect_events(self) -> None:
        """Write down what is to be told."""
        clock = asyncio.get_running_loop().time
        pulse = await self._store.latest_times()
        if pulse == self._pulse and clock() - self._looked < THOROUGH:
            return
        for webhook in (await self._load_active()).values():
            await self._store.schedule_deliveries(webhook)
        self._pulse, self._looked = pulse, clock()

    async def deliver(self, client: FetchClient) -> None:
        """Begin with what is due now, as far as there is room for it."""
        lease = timedelta(seconds=self._settings.server.webhook_seconds) + SPARE
        while room := AT_ONCE - len(self._under_way):
            people = [owner for owner, count in Counter(self._under_way.values()).items() if count >= OF_ONE]
            taken = await self._store.claim_due(room, lease, people)
            if not taken:
                return
            active = await self._load_active()
            for one in taken:
                self._begin(client, active.get(one.webhook), one)

    def _begin(self, client: FetchClient, webhook: Webhook | None, delivery: Delivery) -> None:
        task = asyncio.create_task(
            _log_errors(self._deliver_one(client, webhook, delivery)), name=f"tell-{delivery.id}"
        )
        self._under_way[task] = webhook.owner if webhook else ""
        task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._wake.set()

    async def _load_active(self) -> dict[str, Webhook]:
        """Those of people who may still come in."""
        disabled = {user.name for user in await self._users.all() if user.disabled}
        return {webhook.id: webhook for webhook in await self._store.all() if webhook.owner not in disabled}

    async def _deliver_one(self, client: FetchClient, webhook: Webhook | None, delivery: Delivery) -> None:
        if webhook is None or not await self._has_thread(delivery):
            await self._store.record_failure(delivery.id, "its thread or its webhook is gone", None)
            return
        try:
            await self._post(client, webhook, delivery)
        except FetchError as error:
            await self._record_failure(webhook, delivery, error)
        else:
            await self._store.confirm_delivery(delivery.id)

    async def _has_thread(self, delivery: Delivery) -> bool:
        thread = delivery.body["data"].get("threadId")
        try:
            return thread is None or bool(await self._threads.get(thread))
        except (NotFoundError, IntegrityError):  # what is not what was written is told nobody
            return False

    async def _post(self, client: FetchClient, webhook: Webhook, delivery: Delivery) -> None:
        check_address(webhook.url, self._settings)
        body = json.dumps(delivery.body, ensure_ascii=False, separators=(",", ":")).encode()
        headers = {"content-type": "application/json", **sign_headers(webhook.secret, delivery.id, self._now(), body)}
        seconds = self._settings.server.webhook_seconds
        await client.post(webhook.url, body, seconds=seconds, max_bytes=LARGEST, headers=headers)

    async def _record_failure(self, webhook: Webhook, delivery: Delivery, error: FetchError) -> None:
        if error.context.get("status") == GONE:
            _log.warning("webhook %s of %s is gone and was removed", webhook.id, webhook.owner)
            await self._store.delete(webhook.owner, webhook.id)
            return
        is_last = delivery.attempts >= self._settings.server.webhook_attempts
        await self._store.record_failure(
            delivery.id, error.message, None if is_last else self._retry_delay(delivery.attempts)
        )

    def _retry_delay(self, attempts: int) -> timedelta:
        return min(self._first * int(FACTOR ** (attempts - 1)), LONGEST)


async def _log_errors(work: Awaitable[None]) -> None:
    """Whatever happens to one, the others are told."""
    try:
        await work
    except OpenAssayError as error:  # a database that is busy now may not be at the next look
        _log.warning("webhooks could not be looked after: %s", error.message)
    except Exception:  # noqa: BLE001
        _log.exception("webhooks could not be looked after")


def open_client(settings: Settings) -> FetchClient:
    """It reaches the public web, and the networks that webhooks may go to; not those that pages are fetched from."""
    return FetchClient(settings.harvest.model_copy(update={"allow_addresses": settings.server.webhook_addresses}))


def _create_guard(settings: Settings) -> AddressGuard:
    try:
        return AddressGuard(settings.server.webhook_addresses)
    except ConfigurationError as error:
        named = error.message.replace("harvest.allow_addresses", "server.webhook_addresses")
        raise ConfigurationError(named, help=error.help) from error


def check_address(url: str, settings: Settings) -> str:
    """The address as it is asked for, or RefusedError. Without encryption only a private network may be told."""
    guard = _create_guard(settings)
    address = guard.check(url)
    is_private = address.inside or (address.ip is not None and guard.is_in_networks(address.ip))
    if address.scheme != "https" and not is_private:
        raise AddressPolicyError("is not an https address", help="Give one that begins with https://.", url=address.url)
    return address.url


def sign_headers(secret: str, id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks; the time is that of the attempt."""
    moment = str(int(now.timestamp()))
    key = b64decode(secret.removeprefix(PREFIX))
    digest = hmac.new(key, f"{id}.{moment}.".encode() + body, sha256).digest()
    return {
        "webhook-id": id, "webhook-timestamp": moment, "webhook-signature": f"v1,{b64encode(digest).decode()}",
    }  # fmt: skip
