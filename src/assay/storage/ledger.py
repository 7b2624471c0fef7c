"""Every paid call, written before it is made; the caps of a run hold for all processes that work on it."""

import asyncio
import math
import sqlite3
from collections.abc import Callable
from datetime import datetime

from assay.errors import BudgetError
from assay.model.spend import MICRO, Call, Caps, Charge, ModelSpend, Reservation, Spend
from assay.storage.caps import (
    BILLED,
    LOST,
    NEVER_SENT,
    Account,
    Amounts,
    booked,
    has_share,
    is_larger,
    no_account,
    out_of_turn,
    over_caps,
    over_share,
    stands_open,
)
from assay.storage.sqlite import Database, timestamp
from assay.storage.threads import utc_now

_MOST = 2**62  # of anything: SQLite counts to 2**63

_OPEN = """
INSERT INTO accounts (run, cap_micros, cap_tokens, cap_requests, finish_share) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run) DO UPDATE SET
    cap_micros = excluded.cap_micros, cap_tokens = excluded.cap_tokens, cap_requests = excluded.cap_requests,
    finish_share = excluded.finish_share
"""

_RESERVE = """
INSERT INTO calls (key, run, time, expires, step, task, provider, model, research, state, micros, tokens)
VALUES (:key, :run, :time, :expires, :step, :task, :provider, :model, :research, 'reserved', :micros, :tokens)
"""

# A call given up for lost can still be answered, settled or released: its caller was only slow.
_SENT = "UPDATE calls SET state = 'sent' WHERE id = :id AND state = 'reserved'"
_ANSWERED = "UPDATE calls SET answer = :answer, error = '' WHERE id = :id AND state IN ('sent', 'lost')"
_SETTLED = """
UPDATE calls SET
    state = 'settled', micros = :micros, tokens = :tokens, prompt_tokens = :prompt_tokens,
    completion_tokens = :completion_tokens, seconds = :seconds, confirmed = :confirmed,
    error = iif(answer IS NULL, :billed, '')
WHERE id = :id AND state IN ('sent', 'lost')
"""
_RELEASED = """
UPDATE calls SET
    state = 'void', micros = 0, tokens = 0, requests = iif(state = 'reserved', 0, requests), confirmed = 1,
    error = :error
WHERE id = :id AND state <> 'settled' AND answer IS NULL
"""

# What was sent may have been billed, what was not cannot have been.
_RECOVER = """
UPDATE calls SET
    state = iif(state = 'sent', 'lost', 'void'), confirmed = state <> 'sent',
    micros = iif(state = 'sent', micros, 0), tokens = iif(state = 'sent', tokens, 0), requests = state = 'sent',
    error = CASE WHEN state = 'reserved' THEN :unsent WHEN answer IS NULL THEN :lost ELSE '' END
WHERE run = :run AND state IN ('reserved', 'sent') AND expires <= :until
"""

_HELD = """
SELECT coalesce(sum(micros), 0), coalesce(sum(tokens), 0), count(*) FROM calls
WHERE run = ? AND state IN ('reserved', 'sent')
"""

_OF_TASK = """
SELECT coalesce(sum(micros), 0), coalesce(sum(tokens), 0), 0 FROM calls WHERE run = ? AND task = ? AND research
"""

_SPENT = """
WITH lines AS (
    SELECT *, state IN ('settled', 'lost') AS booked, iif(state = 'reserved', 0, requests) AS made,
        iif(substr(model, 1, length(provider) + 1) = provider || ':', model, provider || ':' || model) AS label
    FROM calls WHERE run = ?
)
SELECT label, sum(made) AS calls, sum(made AND error <> '') AS failed, sum(iif(booked, micros, 0)) AS micros,
    sum(iif(booked, tokens, 0)) AS tokens, sum(iif(booked AND NOT confirmed, micros, 0)) AS unconfirmed,
    sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens, sum(seconds) AS seconds
FROM lines GROUP BY label HAVING sum(made) > 0 ORDER BY label
"""


class SqliteLedger:
    """A ports.Ledger.

    What was committed outlives kill -9: with WAL and synchronous = NORMAL it is in the hands of the operating
    system. Only a power cut can take the last lines back.
    """

    def __init__(self, database: Database, now: Callable[[], datetime] = utc_now) -> None:
        self._database = database
        self._now = now

    async def open(self, run: str, caps: Caps) -> None:
        await asyncio.to_thread(self._open, run, caps)

    async def reserve(self, reservation: Reservation) -> None:
        """A key may be reserved again unless it has an answer, or a caller who is still at work on it."""
        refusal = await asyncio.to_thread(self._reserve, reservation)
        if refusal:
            raise refusal

    async def sent(self, key: str) -> None:
        await asyncio.to_thread(self._change, key, "sent", _SENT)

    async def answered(self, key: str, answer: str) -> None:
        await asyncio.to_thread(self._change, key, "answered", _ANSWERED, answer=answer)

    async def settle(self, key: str, charge: Charge) -> None:
        await asyncio.to_thread(self._settle, key, charge)

    async def release(self, key: str, error: str) -> None:
        await asyncio.to_thread(self._change, key, "released", _RELEASED, error=error or "no reason given")

    async def answer(self, key: str) -> str | None:
        return await asyncio.to_thread(self._answer, key)

    async def recover(self, run: str, *, all: bool = False) -> int:
        return await asyncio.to_thread(self._recover, run, all)

    async def spent(self, run: str) -> Spend:
        return await asyncio.to_thread(self._spent, run)

    async def refused(self, run: str) -> bool:
        """Whether research had to stop for want of money, tokens or requests."""
        return await asyncio.to_thread(self._refused, run)

    async def calls(self, run: str) -> list[Call]:
        """Oldest first; each attempt has a line of its own."""
        return await asyncio.to_thread(self._calls, run)

    def _open(self, run: str, caps: Caps) -> None:
        values = [min(cap, _MOST) for cap in (caps.micros, caps.tokens, caps.requests)]
        with self._database.transaction() as connection:
            before = _account(connection, run)
            connection.execute(_OPEN, (run, *values, caps.finish_share))
            if before and is_larger(caps, before.caps):
                connection.execute("UPDATE accounts SET refused = 0 WHERE run = ?", (run,))

    def _reserve(self, wanted: Reservation) -> BudgetError | None:
        """A refusal is returned, not raised: that would undo the transaction that remembers it."""
        now = self._now()
        expires = now.timestamp() + wanted.seconds
        with self._database.transaction() as connection:
            _make_way(connection, wanted.key, now.timestamp())
            refusal = _refusal(connection, wanted)
            if refusal and _recover(connection, wanted.run, now.timestamp()):
                refusal = _refusal(connection, wanted)
            if refusal is None:
                values = {**wanted.model_dump(), "time": timestamp(now), "expires": expires}
                connection.execute(_RESERVE, values)
            else:
                _remember(connection, wanted, refusal)
        return refusal

    def _change(self, key: str, verb: str, sql: str, **values: object) -> None:
        with self._database.transaction() as connection:
            line = _latest(connection, key)
            if line is None or not connection.execute(sql, {"id": line["id"], **values}).rowcount:
                raise out_of_turn(key, verb, line["state"] if line else None)

    def _settle(self, key: str, charge: Charge) -> None:
        with self._database.transaction() as connection:
            line = _latest(connection, key)
            worst = Amounts(line["micros"], line["tokens"], 1) if line else Amounts(0, 0, 0)
            booking = booked(charge, worst)._asdict()
            self._change(key, "settled", _SETTLED, **booking, seconds=charge.seconds, billed=BILLED)

    def _answer(self, key: str) -> str | None:
        with self._database.connection() as connection:
            line = _latest(connection, key)
        return line["answer"] if line else None

    def _recover(self, run: str, all: bool) -> int:
        with self._database.transaction() as connection:
            return _recover(connection, run, math.inf if all else self._now().timestamp())

    def _spent(self, run: str) -> Spend:
        with self._database.connection() as connection:
            rows = connection.execute(_SPENT, (run,)).fetchall()
        return Spend(
            usd=sum(row["micros"] for row in rows) / MICRO,
            tokens=sum(row["tokens"] for row in rows),
            requests=sum(row["calls"] for row in rows),
            unconfirmed_usd=sum(row["unconfirmed"] for row in rows) / MICRO,
            by_model={row["label"]: _of_model(row) for row in rows},
        )

    def _refused(self, run: str) -> bool:
        with self._database.connection() as connection:
            account = _account(connection, run)
        return account is not None and account.refused

    def _calls(self, run: str) -> list[Call]:
        with self._database.connection() as connection:
            rows = connection.execute("SELECT * FROM calls WHERE run = ? ORDER BY id", (run,)).fetchall()
        return [Call.model_validate({name: row[name] for name in Call.model_fields}) for row in rows]


def _account(connection: sqlite3.Connection, run: str) -> Account | None:
    row = connection.execute("SELECT * FROM accounts WHERE run = ?", (run,)).fetchone()
    if row is None:
        return None
    caps = Caps(
        micros=row["cap_micros"],
        tokens=row["cap_tokens"],
        requests=row["cap_requests"],
        finish_share=row["finish_share"],
    )
    return Account(caps, Amounts(row["micros"], row["tokens"], row["requests"]), bool(row["refused"]))


def _standing(connection: sqlite3.Connection, run: str) -> Account:
    account = _account(connection, run)
    if account is None:
        raise no_account(run)
    return account


def _latest(connection: sqlite3.Connection, key: str) -> sqlite3.Row | None:
    rows = connection.execute("SELECT * FROM calls WHERE key = ? ORDER BY id DESC LIMIT 1", (key,)).fetchall()
    return rows[0] if rows else None


def _make_way(connection: sqlite3.Connection, key: str, now: float) -> None:
    line = _latest(connection, key)
    if line and _is_open(line) and line["expires"] <= now:
        _recover(connection, line["run"], now)
        line = _latest(connection, key)
    if line and (_is_open(line) or line["answer"] is not None):
        raise out_of_turn(key, "reserved", line["state"])


def _is_open(line: sqlite3.Row) -> bool:
    return line["state"] in ("reserved", "sent")


def _refusal(connection: sqlite3.Connection, wanted: Reservation) -> BudgetError | None:
    account = _standing(connection, wanted.run)
    refusal = over_caps(wanted, account)
    if refusal or not has_share(wanted):
        return refusal
    used = connection.execute(_OF_TASK, (wanted.run, wanted.task)).fetchone()
    return over_share(wanted, account.caps, Amounts(*used))


def _remember(connection: sqlite3.Connection, wanted: Reservation, refusal: BudgetError) -> None:
    """Research has no money left, unless a call need only wait for others, or a task has had its share."""
    account = _standing(connection, wanted.run)
    if not over_caps(wanted, account):
        return
    held = connection.execute(_HELD, (wanted.run,)).fetchone()
    refusal.retryable = stands_open(wanted, account, Amounts(*held))
    if wanted.research and wanted.last and not refusal.retryable:
        connection.execute("UPDATE accounts SET refused = 1 WHERE run = ?", (wanted.run,))


def _recover(connection: sqlite3.Connection, run: str, until: float) -> int:
    """End the calls that were to be over by then; says how many."""
    values = {"run": run, "until": until, "unsent": NEVER_SENT, "lost": LOST}
    return connection.execute(_RECOVER, values).rowcount


def _of_model(row: sqlite3.Row) -> ModelSpend:
    known = {name: row[name] for name in ("calls", "failed", "prompt_tokens", "completion_tokens", "seconds")}
    return ModelSpend(**known, usd=row["micros"] / MICRO)
