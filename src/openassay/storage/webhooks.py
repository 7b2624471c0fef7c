"""Addresses that are told when a run ends or asks, and what is still to be told to them.

What happened is read from the runs and questions themselves: whatever ended or was asked since the last thing that an
address was told of, by whatever process. Each has an id of its own, so that looking twice tells nothing twice, and a
server that was away takes up where it was.
"""

import asyncio
import hashlib
import json
import logging
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from openassay.errors import IntegrityError, NotFoundError, UsageError
from openassay.models.user import Delivery, Webhook, WebhookEvent
from openassay.storage.database import DELIVERIES, REVIEWS, RUNS, WEBHOOKS, Connection, TableSpec, timestamp, utc_now
from openassay.storage.rows import Row, Rows, Writer

_log = logging.getLogger("openassay")
PREFIX = "whsec_"
MOST = 20  # of one person
MOST_TESTS = 3  # of one address that were not told yet
LIST_LIMIT = 100
SKEW = timedelta(minutes=5)  # the clocks of processes that write runs may differ by, and one may be slow to commit
RETENTION = timedelta(days=30)  # what was told, or given up, can be looked at
_OWNED = "thread IN (SELECT id FROM threads WHERE owner = ?)"
_ENDED = f"SELECT id, finished AS moment FROM runs WHERE finished >= ? AND {_OWNED}"  # noqa: S608  # ours
_ASKED = f"SELECT id, opened AS moment FROM reviews WHERE opened >= ? AND {_OWNED}"  # noqa: S608
_PULSE = "SELECT (SELECT max(finished) FROM runs) AS ended, (SELECT max(opened) FROM reviews) AS asked"
_COUNT = "SELECT count(*) AS count FROM webhooks WHERE owner = ?"
_LAST_DELIVERY = "SELECT max(created) AS heard FROM deliveries WHERE webhook = ? AND id LIKE 'msg%'"
_KNOWN = "SELECT id FROM deliveries WHERE webhook = ? AND created >= ?"
_TESTS = "SELECT count(*) AS count FROM deliveries WHERE webhook = ? AND id LIKE 'test%' AND due IS NOT NULL"
# The time is asked of the row itself too: of two who wait for the same one, the second finds it taken.
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
# What was heard last tells how far this has come, and stays; tests tell nothing of that.
_OLD = "WHERE due IS NULL AND webhook = ? AND created < ? AND (created < ? OR id LIKE 'test%')"


class _WebhookEvent(NamedTuple):
    """Something an address is to be told of."""

    moment: str
    table: TableSpec
    key: str
    id: str  # of the delivery: the same however often it is looked at


class SqlWebhooks:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now
        self._damaged: set[str] = set()  # what cannot be told, since its row is not what was written; logged once

    async def add(self, owner: str, url: str, events: Sequence[WebhookEvent]) -> Webhook:
        """UsageError where a person has as many as they may."""
        return await asyncio.to_thread(self._add, owner, url, events)

    async def get(self, owner: str, id: str) -> Webhook:
        return await asyncio.to_thread(self._get, owner, id)

    async def list_for(self, owner: str) -> list[Webhook]:
        return await asyncio.to_thread(self._read, "WHERE owner = ? ORDER BY created, id", (owner,))

    async def all(self) -> list[Webhook]:
        return await asyncio.to_thread(self._read, "ORDER BY owner, created, id", ())

    async def delete(self, owner: str, id: str) -> None:
        """With all that is still to be told to it."""
        await asyncio.to_thread(self._delete, owner, id)

    async def deliveries(self, webhook: str, limit: int = LIST_LIMIT) -> list[Delivery]:
        """The newest first."""
        return await asyncio.to_thread(self._deliveries, webhook, limit)

    async def latest_times(self) -> tuple[str, str]:
        """Changes whenever a run ends or asks."""
        return await asyncio.to_thread(self._latest_times)

    async def schedule_deliveries(self, webhook: Webhook) -> int:
        """Write down what an address is to be told of that has happened since; how much is new."""
        return await asyncio.to_thread(self._schedule_deliveries, webhook)

    async def add_test(self, webhook: str, body: dict[str, Any]) -> Delivery | None:
        """A test, to be told at once; None where there are as many already as may be."""
        return await asyncio.to_thread(self._add_test, webhook, body)

    async def claim_due(self, limit: int, lease: timedelta, without: Sequence[str] = ()) -> list[Delivery]:
        """What is due, one of each person except for some, each counted as tried. Nobody else takes it for as long as
        the lease lasts; if nothing is said of it by then, it is due again."""
        return await asyncio.to_thread(self._claim_due, limit, lease, without)

    async def confirm_delivery(self, id: str) -> None:
        await asyncio.to_thread(
            self._update_delivery, id, {"due": None, "delivered": timestamp(self._now()), "error": ""}
        )

    async def record_failure(self, id: str, error: str, again: timedelta | None) -> None:
        """None: it is given up."""
        due = timestamp(self._now() + again) if again is not None else None
        await asyncio.to_thread(self._update_delivery, id, {"due": due, "error": error})

    # -- addresses ----------------------------------------------------------------------------------------

    def _add(self, owner: str, url: str, events: Sequence[WebhookEvent]) -> Webhook:
        secret = b64encode(secrets.token_bytes(32)).decode()
        made = Webhook(
            id=secrets.token_hex(6), owner=owner, url=url, secret=f"{PREFIX}{secret}",
            events=tuple(dict.fromkeys(events)), created=self._now(),
        )  # fmt: skip
        with self._rows.open_writer("user", owner) as writer:
            if int(writer.connection.execute(_COUNT, (owner,)).fetchone()["count"]) >= MOST:
                raise UsageError(f"there are {MOST} webhooks already", help="Delete one that is not used any more.")
            row = {**dict(made), "events": " ".join(made.events), "created": timestamp(made.created)}
            writer.insert(WEBHOOKS, row)
        return made

    def _get(self, owner: str, id: str) -> Webhook:
        found = self._read("WHERE id = ? AND owner = ?", (id, owner))
        if not found:
            raise no_webhook(id)
        return found[0]

    def _read(self, rest: str, values: Sequence[object]) -> list[Webhook]:
        return [_webhook(row) for row in self._rows.read(WEBHOOKS, rest, values)]

    def _delete(self, owner: str, id: str) -> None:
        with self._rows.open_writer("user", owner) as writer:
            if not writer.delete(WEBHOOKS, "WHERE id = ? AND owner = ?", (id, owner)):
                raise no_webhook(id)
            with self._rows.open_writer("") as others:
                others.delete(DELIVERIES, "WHERE webhook = ?", (id,))

    # -- what is to be told -------------------------------------------------------------------------------

    def _latest_times(self) -> tuple[str, str]:
        with self._rows.database.connection() as connection:
            row = connection.execute(_PULSE).fetchone()
        return str(row["ended"]), str(row["asked"])

    def _schedule_deliveries(self, webhook: Webhook) -> int:
        """In the order in which it happened, all or nothing: what was written down last tells how far this has come."""
        with self._rows.database.connection() as connection:
            heard = connection.execute(_LAST_DELIVERY, (webhook.id,)).fetchone()["heard"]
            mark = datetime.fromisoformat(heard) - SKEW if heard else webhook.created
            since = timestamp(max(mark, webhook.created))
            known = {row["id"] for row in connection.execute(_KNOWN, (webhook.id, since)).fetchall()} | self._damaged
            news = [one for one in _find_events(connection, webhook, since) if one.id not in known]
            past = (webhook.id, timestamp(self._now() - RETENTION), since)
            old = connection.execute(f"SELECT id FROM deliveries {_OLD} LIMIT 1", past).fetchone()  # noqa: S608
        made = [self._build_delivery(webhook, one) for one in sorted(news)]
        if not made and old is None:
            return 0
        with self._rows.open_writer("") as writer:
            writer.delete(DELIVERIES, _OLD, past)
            return sum(_insert_delivery(writer, one) for one in made if one)

    def _build_delivery(self, webhook: Webhook, news: _WebhookEvent) -> Delivery | None:
        try:
            row = self._rows.find(news.table, news.key)
        except IntegrityError as error:  # it holds up no other
            _log.warning("nobody is told of it: %s", error.message)
            self._damaged.add(news.id)
            return None
        if row is None:  # its thread was deleted just now
            return None
        body = _run_payload(row) if news.table is RUNS else _question_payload(row)
        created = datetime.fromisoformat(news.moment)
        return Delivery(id=news.id, webhook=webhook.id, body=body, created=created, due=self._now())

    def _add_test(self, webhook: str, body: dict[str, Any]) -> Delivery | None:
        now = self._now()
        made = Delivery(id=f"test_{secrets.token_hex(12)}", webhook=webhook, body=body, created=now, due=now)
        with self._rows.open_writer("") as writer:
            if int(writer.connection.execute(_TESTS, (webhook,)).fetchone()["count"]) >= MOST_TESTS:
                return None
            _insert_delivery(writer, made)
        return made

    def _deliveries(self, webhook: str, limit: int) -> list[Delivery]:
        rest = "WHERE webhook = ? ORDER BY created DESC, id LIMIT ?"
        return [_delivery(row) for row in self._rows.read(DELIVERIES, rest, (webhook, limit))]

    def _claim_due(self, limit: int, lease: timedelta, without: Sequence[str]) -> list[Delivery]:
        now, marks = self._now(), ", ".join("?" for _ in without)
        due = _DUE.format(apart=f"AND coalesce(webhooks.owner, '') NOT IN ({marks})" if without else "")
        values = (timestamp(now), timestamp(now), *without, limit)
        if not self._rows.read(DELIVERIES, due, values):
            return []
        with self._rows.open_writer("") as writer:
            rows = writer.read(DELIVERIES, f"{due}{self._rows.database.for_update}", values)
            return [_delivery(self._count_attempt(writer, row, now + lease)) for row in rows]

    def _count_attempt(self, writer: Writer, row: Row, until: datetime) -> Row:
        changes = {"attempts": row["attempts"] + 1, "due": timestamp(until)}
        writer.update(DELIVERIES, (row["id"],), changes)
        return {**row, **changes}

    def _update_delivery(self, id: str, changes: dict[str, Any]) -> None:
        with self._rows.open_writer("") as writer:
            row = writer.find(DELIVERIES, id)
            if row is None:  # its address was deleted meanwhile
                return
            if changes["due"] is None:
                changes = {**changes, "body": json.dumps(_strip_question(json.loads(row["body"])))}
            writer.update(DELIVERIES, (id,), changes)


def no_webhook(id: str) -> NotFoundError:
    return NotFoundError("no such webhook", help="Look at the list of webhooks for its id.", webhook=id)


def _find_events(connection: Connection, webhook: Webhook, since: str) -> Iterator[_WebhookEvent]:
    told = {WebhookEvent.FINISHED: (RUNS, _ENDED), WebhookEvent.QUESTION: (REVIEWS, _ASKED)}
    for event in webhook.events:
        table, sql = told[event]
        for row in connection.execute(sql, (since, webhook.owner)).fetchall():
            named = f"{webhook.id} {table.name} {row['id']} {row['moment']}"  # a run may end more than once
            id = "msg_" + hashlib.sha256(named.encode()).hexdigest()[:24]
            yield _WebhookEvent(row["moment"], table, row["id"], id)


def _insert_delivery(writer: Writer, made: Delivery) -> bool:
    times = {
        name: timestamp(time) if (time := getattr(made, name)) else None for name in ("created", "due", "delivered")
    }
    return writer.insert(DELIVERIES, {**dict(made), **times, "body": json.dumps(made.body)}, on_conflict="keep")


def _run_payload(run: Row) -> dict[str, Any]:
    data = {"threadId": run["thread"], "runId": run["id"], "status": run["status"]}
    return {"type": "run.finished", "timestamp": _format_time(run["finished"]), "data": data}


def _question_payload(review: Row) -> dict[str, Any]:
    data = {
        "threadId": review["thread"],
        "runId": review["run"],
        "status": "waiting",
        "questionId": review["id"],
        "kind": review["kind"],
        "question": review["question"],
        "due": _format_time(review["due"]) if review["due"] else None,
    }
    return {"type": "run.question", "timestamp": _format_time(review["opened"]), "data": data}


def _strip_question(body: dict[str, Any]) -> dict[str, Any]:
    """What stays once it was told, or given up: nothing that was said."""
    return {**body, "data": {name: value for name, value in body["data"].items() if name != "question"}}


def _format_time(time: str) -> str:
    return datetime.fromisoformat(time).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _webhook(row: Row) -> Webhook:
    return Webhook.model_validate({**row, "events": tuple(row["events"].split())})


def _delivery(row: Row) -> Delivery:
    return Delivery.model_validate({**row, "body": json.loads(row["body"])})
