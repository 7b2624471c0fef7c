"""Notifies webhooks when a run ends or asks a question: at least once, signed as Standard Webhooks has it, and retried
for hours. A notification names the thread and the run; the report is fetched with a token."""

import asyncio
import contextlib
import hmac
import json
import logging
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Awaitable
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
from openassay.models.base import utc_now
from openassay.models.user import WEBHOOK_PREFIX, Delivery, Webhook
from openassay.settings import Settings

_log = logging.getLogger("openassay")
POLL_SECONDS = 1.0
FULL_SCAN_SECONDS = 30.0  # after which every webhook is checked, even if nothing seems to have happened
MAX_DELIVERIES = 20  # at once
MAX_DELIVERIES_PER_USER = 4  # of them: a slow address holds up nobody else
FIRST_RETRY, RETRY_FACTOR, MAX_RETRY = timedelta(seconds=10), 6, timedelta(hours=6)  # 10 s, 1 min, 6 min ... 6 h
LEASE_MARGIN = timedelta(seconds=30)  # after which a delivery whose process is gone is due again
MAX_RESPONSE_BYTES = 10_000  # which nobody reads
GONE = 410


class WebhookSender:
    """Sends deliveries. `poll_seconds`: between looks for events; `first_retry`: the pause after a first failure."""

    def __init__(self, resources: ServerResources) -> None:
        self.poll_seconds, self.first_retry = POLL_SECONDS, FIRST_RETRY
        self._store = resources.webhooks
        self._users = resources.users
        self._threads = resources.engine.threads
        self._settings = resources.engine.settings
        _create_guard(self._settings)  # an error in the settings is raised before anything runs
        self._latest = ("", "")
        self._scanned_at = 0.0
        self._tasks: dict[asyncio.Task[None], str] = {}  # with their owners
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Collect and deliver until cancelled. Deliveries that are active then are due again after their lease.

        They reach the public web and the networks of `server.webhook_addresses`."""
        networks = {"allow_addresses": self._settings.server.webhook_addresses}
        async with FetchClient(self._settings.harvest.model_copy(update=networks)) as client:
            try:
                while True:
                    self._wake.clear()
                    await _log_errors(self.collect_events())
                    await _log_errors(self.deliver(client))
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(self.poll_seconds):
                            await self._wake.wait()
            finally:
                tasks = list(self._tasks)
                for task in tasks:
                    task.cancel()
                if tasks:
                    await asyncio.wait(tasks)

    async def collect_events(self) -> None:
        """Schedule deliveries for new events."""
        clock = asyncio.get_running_loop().time
        latest = await self._store.latest_times()
        if latest == self._latest and clock() - self._scanned_at < FULL_SCAN_SECONDS:
            return
        for webhook in (await self._load_active()).values():
            await self._store.schedule_deliveries(webhook)
        self._latest, self._scanned_at = latest, clock()

    async def deliver(self, client: FetchClient) -> None:
        """Start the deliveries that are due now, as far as there is room."""
        lease = timedelta(seconds=self._settings.server.webhook_seconds) + LEASE_MARGIN
        while room := MAX_DELIVERIES - len(self._tasks):
            counts = Counter(self._tasks.values())
            busy = [owner for owner, count in counts.items() if count >= MAX_DELIVERIES_PER_USER]
            # So few at a time that nobody can exceed their share, whoever they turn out to belong to.
            most_active = max((count for count in counts.values() if count < MAX_DELIVERIES_PER_USER), default=0)
            claimed = await self._store.claim_due(min(room, MAX_DELIVERIES_PER_USER - most_active), lease, busy)
            if not claimed:
                return
            active = await self._load_active()
            for delivery in claimed:
                webhook = active.get(delivery.webhook)
                work = _log_errors(self._deliver_one(client, webhook, delivery))
                task = asyncio.create_task(work, name=f"tell-{delivery.id}")
                self._tasks[task] = webhook.owner if webhook else ""
                task.add_done_callback(self._forget_task)

    def _forget_task(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._wake.set()

    async def _load_active(self) -> dict[str, Webhook]:
        """Return the webhooks of users who are not disabled."""
        disabled = {user.name for user in await self._users.all() if user.disabled}
        return {webhook.id: webhook for webhook in await self._store.all() if webhook.owner not in disabled}

    async def _deliver_one(self, client: FetchClient, webhook: Webhook | None, delivery: Delivery) -> None:
        thread = delivery.body["data"].get("threadId")
        try:
            has_thread = thread is None or webhook is None or bool(await self._threads.get(thread))
        except (NotFoundError, IntegrityError):  # damaged data is sent to nobody
            has_thread = False
        if webhook is None or not has_thread:
            await self._store.record_failure(delivery.id, "its thread or its webhook is gone", None)
            return
        server = self._settings.server
        try:
            check_address(webhook.url, self._settings)
            body = json.dumps(delivery.body, ensure_ascii=False, separators=(",", ":")).encode()
            signature = sign_headers(webhook.secret, delivery.id, utc_now(), body)
            headers = {"content-type": "application/json", **signature}
            await client.post(
                webhook.url, body, seconds=server.webhook_seconds, max_bytes=MAX_RESPONSE_BYTES, headers=headers
            )
        except FetchError as error:
            if error.context.get("status") == GONE:
                _log.warning("webhook %s of %s is gone and was removed", webhook.id, webhook.owner)
                await self._store.delete(webhook.owner, webhook.id)
                return
            delay = min(self.first_retry * int(RETRY_FACTOR ** (delivery.attempts - 1)), MAX_RETRY)
            is_last = delivery.attempts >= server.webhook_attempts
            await self._store.record_failure(delivery.id, error.message, None if is_last else delay)
        else:
            await self._store.confirm_delivery(delivery.id)


async def _log_errors(work: Awaitable[None]) -> None:
    """Log errors of one delivery, so that the others are still sent."""
    try:
        await work
    except OpenAssayError as error:  # a database that is busy now may not be at the next step
        _log.warning("webhooks could not be sent: %s", error.message)
    except Exception:  # noqa: BLE001
        _log.exception("webhooks could not be sent")


def _create_guard(settings: Settings) -> AddressGuard:
    try:
        return AddressGuard(settings.server.webhook_addresses)
    except ConfigurationError as error:
        named = error.message.replace("harvest.allow_addresses", "server.webhook_addresses")
        raise ConfigurationError(named, help=error.help) from error


def check_address(url: str, settings: Settings) -> str:
    """Return the address as it is requested, or raise AddressPolicyError. Only private networks may do without TLS."""
    guard = _create_guard(settings)
    address = guard.check(url)
    is_private = address.is_private_name or (address.ip is not None and guard.is_in_networks(address.ip))
    if address.scheme != "https" and not is_private:
        raise AddressPolicyError("is not an https address", help="Give one that begins with https://.", url=address.url)
    return address.url


def sign_headers(secret: str, id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks; the time is that of the attempt."""
    time = str(int(now.timestamp()))
    key = b64decode(secret.removeprefix(WEBHOOK_PREFIX))
    digest = hmac.new(key, f"{id}.{time}.".encode() + body, sha256).digest()
    return {"webhook-id": id, "webhook-timestamp": time, "webhook-signature": f"v1,{b64encode(digest).decode()}"}
