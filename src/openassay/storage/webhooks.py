"""Webhooks, and the deliveries that are still to be made to them.

What happened is read from the runs and reviews themselves: whatever ended or was asked since the last delivery to a
webhook, in any process. Each delivery has an id made from what happened, so that looking twice delivers nothing twice,
and a server that was away catches up.
"""

import hashlib
import json
import secrets
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any

from openassay.errors import NotFoundError, UsageError
from openassay.models.user import MAX_WEBHOOK_TESTS, WEBHOOK_PREFIX, Delivery, Webhook, WebhookEvent
from openassay.storage.database import (
    DELIVERIES,
    REVIEWS,
    RUNS,
    WEBHOOKS,
    TableSpec,
    run_in_thread,
    timestamp,
)
from openassay.storage.sealed_rows import Row, RowStore, Writer

MAX_WEBHOOKS = 20  # of one user
LIST_LIMIT = 100
SKEW = timedelta(minutes=5)  # by which the clocks of processes may differ, or one may be slow to commit
RETENTION = timedelta(days=30)  # of deliveries that were made, or given up
_OWNED = "thread IN (SELECT id FROM threads WHERE owner = ?)"
_PULSE = "SELECT (SELECT max(finished) FROM runs) AS ended, (SELECT max(opened) FROM reviews) AS asked"
_COUNT = "SELECT count(*) AS count FROM webhooks WHERE owner = ?"
_LAST_DELIVERY = "SELECT max(created) AS heard FROM deliveries WHERE webhook = ? AND id LIKE 'msg%'"
_KNOWN = "SELECT id FROM deliveries WHERE webhook = ? AND created >= ?"
_TESTS = "SELECT count(*) AS count FROM deliveries WHERE webhook = ? AND id LIKE 'test%' AND due IS NOT NULL"
# The time is checked on the row itself too: of two processes that wait for the same one, the second finds it claimed.
_DUE = """
WHERE due <= ? AND id IN (
    SELECT id FROM (
        SELECT deliveries.id AS id,
            row_number() OVER (PARTITION BY webhooks.owner ORDER BY deliveries.due, deliveries.id) AS place
        FROM deliveries LEFT JOIN webhooks ON webhooks.id = deliveries.webhook
        WHERE deliveries.due <= ? {apart}
    ) AS waiting WHERE place = 1
) ORDER BY due, id LIMIT ?
"""
# The last delivery shows how far a webhook has come, and stays; tests do not count.
_OLD = "WHERE due IS NULL AND webhook = ? AND created < ? AND (created < ? OR id LIKE 'test%')"


class SqlWebhooks(RowStore):
    @run_in_thread
    def add(self, owner: str, url: str, events: Sequence[WebhookEvent]) -> Webhook:
        """Add a webhook; UsageError where the user has too many."""
        id, secret = secrets.token_hex(6), WEBHOOK_PREFIX + b64encode(secrets.token_bytes(32)).decode()
        chosen = tuple(dict.fromkeys(events))
        made = Webhook(id=id, owner=owner, url=url, secret=secret, events=chosen, created=self._now())
        with self._rows.open_writer("user", owner) as writer:
            if int(writer.connection.execute(_COUNT, (owner,)).fetchone()["count"]) >= MAX_WEBHOOKS:
                raise UsageError(
                    f"there are {MAX_WEBHOOKS} webhooks already", help="Delete one that is no longer used."
                )
            writer.insert(WEBHOOKS, dict(made))
        return made

    @run_in_thread
    def get(self, owner: str, id: str) -> Webhook:
        found = self._read("WHERE id = ? AND owner = ?", (id, owner))
        if not found:
            raise no_webhook(id)
        return found[0]

    @run_in_thread
    def list_for(self, owner: str) -> list[Webhook]:
        return self._read("WHERE owner = ? ORDER BY created, id", (owner,))

    @run_in_thread
    def all(self) -> list[Webhook]:
        return self._read("ORDER BY owner, created, id")

    @run_in_thread
    def delete(self, owner: str, id: str) -> None:
        with self._rows.open_writer("user", owner) as writer:
            if not writer.delete(WEBHOOKS, "WHERE id = ? AND owner = ?", (id, owner)):
                raise no_webhook(id)
            with self._rows.open_writer("") as others:
                others.delete(DELIVERIES, "WHERE webhook = ?", (id,))

    @run_in_thread
    def deliveries(self, webhook: str, limit: int = LIST_LIMIT) -> list[Delivery]:
        rest = "WHERE webhook = ? ORDER BY created DESC, id LIMIT ?"
        return [_delivery(row) for row in self._rows.read(DELIVERIES, rest, (webhook, limit))]

    @run_in_thread
    def latest_times(self) -> tuple[str, str]:
        """Return times that change whenever a run ends or asks."""
        row = self._rows.database.query_one(_PULSE)
        return str(row["ended"]), str(row["asked"])

    @run_in_thread
    def schedule_deliveries(self, webhook: Webhook) -> int:
        """Store deliveries of what has happened since the last one; return how many are new. They are stored in the
        order in which it happened, all or nothing: the last delivery shows how far the webhook has come."""
        database = self._rows.database
        last = database.query_one(_LAST_DELIVERY, (webhook.id,))["heard"]
        start = datetime.fromisoformat(last) - SKEW if last else webhook.created
        since = timestamp(max(start, webhook.created))
        known = {row["id"] for row in database.query(_KNOWN, (webhook.id, since))}
        made = [delivery for delivery in self._find_news(webhook, since) if delivery.id not in known]
        past = (webhook.id, timestamp(self._now() - RETENTION), since)
        if not made and database.query_one(f"SELECT id FROM deliveries {_OLD} LIMIT 1", past) is None:  # noqa: S608
            return 0
        with self._rows.open_writer("") as writer:
            writer.delete(DELIVERIES, _OLD, past)
            return sum(_insert_delivery(writer, delivery) for delivery in sorted(made, key=attrgetter("created", "id")))

    @run_in_thread
    def add_test(self, webhook: str, body: dict[str, Any]) -> Delivery | None:
        """Add a test delivery, due at once; None where too many are pending."""
        now = self._now()
        made = Delivery(id=f"test_{secrets.token_hex(12)}", webhook=webhook, body=body, created=now, due=now)
        with self._rows.open_writer("") as writer:
            if int(writer.connection.execute(_TESTS, (webhook,)).fetchone()["count"]) >= MAX_WEBHOOK_TESTS:
                return None
            _insert_delivery(writer, made)
        return made

    @run_in_thread
    def claim_due(self, limit: int, lease: timedelta, without: Sequence[str] = ()) -> list[Delivery]:
        """Claim what is due, one delivery per user except for some users, and count an attempt at each. No other
        process claims them while the lease lasts; unless they are confirmed or have failed by then, they are due
        again."""
        now, marks = self._now(), ", ".join("?" for _ in without)
        due = _DUE.format(apart=f"AND coalesce(webhooks.owner, '') NOT IN ({marks})" if without else "")
        values = (timestamp(now), timestamp(now), *without, limit)
        if not self._rows.read(DELIVERIES, due, values):
            return []
        with self._rows.open_writer("") as writer:
            rows = writer.read(DELIVERIES, f"{due}{self._rows.database.for_update}", values)
            for row in rows:
                row |= {"attempts": row["attempts"] + 1, "due": now + lease}
                writer.update(DELIVERIES, (row["id"],), row)
            return [_delivery(row) for row in rows]

    @run_in_thread
    def confirm_delivery(self, id: str) -> None:
        self._update_delivery(id, {"due": None, "delivered": self._now(), "error": ""})

    @run_in_thread
    def record_failure(self, id: str, error: str, again: timedelta | None) -> None:
        """Record a failed attempt; it is given up where `again` is None."""
        self._update_delivery(id, {"due": self._now() + again if again is not None else None, "error": error})

    def _read(self, rest: str, values: Sequence[object] = ()) -> list[Webhook]:
        rows = self._rows.read(WEBHOOKS, rest, values)
        return [Webhook.model_validate({**row, "events": tuple(row["events"].split())}) for row in rows]

    def _find_news(self, webhook: Webhook, since: str) -> Iterator[Delivery]:
        """Yield deliveries of what has happened since then. A damaged row is logged, and holds up no other."""
        if WebhookEvent.FINISHED in webhook.events:
            for row in self._rows.read_lenient(RUNS, f"WHERE finished >= ? AND {_OWNED}", (since, webhook.owner))[0]:
                data = {"threadId": row["thread"], "runId": row["id"], "status": row["status"]}
                yield self._build_delivery(webhook, RUNS, row["id"], row["finished"], data)
        if WebhookEvent.QUESTION in webhook.events:
            for row in self._rows.read_lenient(REVIEWS, f"WHERE opened >= ? AND {_OWNED}", (since, webhook.owner))[0]:
                data = {"threadId": row["thread"], "runId": row["run"], "status": "waiting", "questionId": row["id"]}
                data |= {"kind": row["kind"], "question": row["question"]}
                data["due"] = _format_time(row["due"]) if row["due"] else None
                yield self._build_delivery(webhook, REVIEWS, row["id"], row["opened"], data)

    def _build_delivery(
        self, webhook: Webhook, table: TableSpec, id: str, moment: str, data: dict[str, Any]
    ) -> Delivery:
        named = f"{webhook.id} {table.name} {id} {moment}"  # a run may end more than once
        name = "msg_" + hashlib.sha256(named.encode()).hexdigest()[:24]
        kind = "run.finished" if table is RUNS else "run.question"
        body = {"type": kind, "timestamp": _format_time(moment), "data": data}
        created = datetime.fromisoformat(moment)
        return Delivery(id=name, webhook=webhook.id, body=body, created=created, due=self._now())

    def _update_delivery(self, id: str, changes: dict[str, Any]) -> None:
        with self._rows.open_writer("") as writer:
            row = writer.find(DELIVERIES, id)
            if row is None:  # its webhook was deleted meanwhile
                return
            if changes["due"] is None:  # it was made, or given up: the text of the question goes
                body = json.loads(row["body"])
                body["data"].pop("question", None)
                changes = {**changes, "body": json.dumps(body)}
            writer.update(DELIVERIES, (id,), changes)


def no_webhook(id: str) -> NotFoundError:
    return NotFoundError("no such webhook", help="Look at the list of webhooks for its id.", webhook=id)


def _insert_delivery(writer: Writer, made: Delivery) -> bool:
    return writer.insert(DELIVERIES, {**dict(made), "body": json.dumps(made.body)}, on_conflict="keep")


def _format_time(time: str) -> str:
    return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _delivery(row: Row) -> Delivery:
    return Delivery.model_validate({**row, "body": json.loads(row["body"])})
