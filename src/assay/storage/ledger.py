"""Every paid call, written before it is made; the caps of a run hold for all processes that work on it."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial

from assay.errors import BudgetError
from assay.model.spend import MICRO, Call, Caps, Charge, ModelSpend, Reservation, Spend
from assay.model.thread import LOCAL
from assay.storage import lines
from assay.storage.caps import (
    Account,
    Amounts,
    has_share,
    is_larger,
    no_account,
    no_row,
    out_of_turn,
    over_caps,
    over_share,
    stands_open,
)
from assay.storage.database import utc_now
from assay.storage.rows import Row, Rows, Writer
from assay.storage.tables import ACCOUNTS, CALLS

_MOST = 2**62  # of anything: databases count to 2**63
MOST_OWNERS = 10_000  # calls whose run is remembered; that of another is looked up
_OWNER = "SELECT threads.owner AS owner FROM runs JOIN threads ON threads.id = runs.thread WHERE runs.id = ?"

_USED = """
SELECT coalesce(sum(micros), 0) AS micros, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(requests), 0) AS requests
FROM calls WHERE run = ?
"""
_OF_TASK = f"{_USED} AND task = ? AND research = 1"
_HELD = f"{_USED} AND state IN ('reserved', 'sent')"
_OVERDUE = "WHERE run = ? AND state IN ('reserved', 'sent') AND expires <= ? ORDER BY id"

_SPENT = """
WITH lines AS (
    SELECT micros, tokens, confirmed, error, prompt_tokens, completion_tokens, seconds,
        CASE WHEN state IN ('settled', 'lost') THEN 1 ELSE 0 END AS booked,
        CASE WHEN state = 'reserved' THEN 0 ELSE requests END AS made,
        CASE WHEN substr(model, 1, length(provider) + 1) = provider || ':' THEN model
            ELSE provider || ':' || model END AS label
    FROM calls WHERE run = ?
)
SELECT label, sum(made) AS calls, sum(CASE WHEN error <> '' THEN made ELSE 0 END) AS failed,
    sum(booked * micros) AS micros, sum(booked * tokens) AS tokens,
    sum(booked * (1 - confirmed) * micros) AS unconfirmed, sum(prompt_tokens) AS prompt_tokens,
    sum(completion_tokens) AS completion_tokens, sum(seconds) AS seconds
FROM lines GROUP BY label HAVING sum(made) > 0 ORDER BY label
"""


class SqlLedger:
    """A ports.Ledger. `tell` is told of accounts and of calls whenever they have changed, in the thread that did it.

    What was committed outlives kill -9. Only a power cut can take the last lines back, on SQLite: with WAL and
    synchronous = NORMAL they are in the hands of the operating system.
    """

    def __init__(
        self,
        rows: Rows,
        now: Callable[[], datetime] = utc_now,
        tell: Callable[[Mapping[str, object]], None] = lambda row: None,
    ) -> None:
        self._rows = rows
        self._now = now
        self._tell = tell
        self._checked: set[str] = set()
        self._owners: dict[str, str] = {}  # key -> run, of the last calls of this process that are under way

    async def open(self, run: str, caps: Caps) -> None:
        await asyncio.to_thread(self._open, run, caps)

    async def reserve(self, reservation: Reservation) -> None:
        """A key may be reserved again unless it has an answer, or a caller who is still at work on it."""
        refusal = await asyncio.to_thread(self._reserve, reservation)
        if refusal:
            raise refusal

    async def sent(self, key: str) -> None:
        await asyncio.to_thread(self._change, key, "sent", lines.sent)

    async def answered(self, key: str, answer: str) -> None:
        await asyncio.to_thread(self._change, key, "answered", partial(lines.answered, answer=answer))

    async def settle(self, key: str, charge: Charge) -> None:
        await asyncio.to_thread(self._change, key, "settled", partial(lines.settled, charge=charge))

    async def release(self, key: str, error: str) -> None:
        step = partial(lines.released, error=error or "no reason given")
        await asyncio.to_thread(self._change, key, "released", step)

    async def answer(self, key: str) -> str | None:
        line = await asyncio.to_thread(_latest, self._rows, key)
        return line["answer"] if line else None

    async def recover(self, run: str, *, all: bool = False) -> int:
        return await asyncio.to_thread(self._recover, run, math.inf if all else self._now().timestamp())

    async def spent(self, run: str) -> Spend:
        return await asyncio.to_thread(self._spent, run)

    async def refused(self, run: str) -> bool:
        """Whether research had to stop for want of money, tokens or requests."""
        account = await asyncio.to_thread(self._rows.one, ACCOUNTS, run)
        return account is not None and bool(account["refused"])

    async def calls(self, run: str) -> list[Call]:
        """Oldest first; each attempt has a line of its own."""
        found = await asyncio.to_thread(_all, self._rows, run)
        return [Call.model_validate({name: line[name] for name in Call.model_fields}) for line in found]

    async def forget(self, run: str) -> None:
        await asyncio.to_thread(self._forget, run)

    async def export(self, run: str) -> list[dict[str, object]]:
        return await asyncio.to_thread(self._export, run)

    async def restore(self, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        try:
            await asyncio.to_thread(self._restore, rows[0], rows[1:])
        except KeyError as error:
            raise no_row(error) from error

    def _open(self, run: str, caps: Caps) -> None:
        self._check(run)
        micros, tokens, requests = (min(cap, _MOST) for cap in (caps.micros, caps.tokens, caps.requests))
        share = float(caps.finish_share)
        values = {"cap_micros": micros, "cap_tokens": tokens, "cap_requests": requests, "finish_share": share}
        with self._rows.writing("ledger", run) as writer:
            before = writer.one(ACCOUNTS, run)
            keeps = before and before["refused"] and not is_larger(caps, _caps(before))
            account = {"run": run, **values, "refused": int(bool(keeps)), "owner": _owner(writer, run)}
            writer.insert(ACCOUNTS, account, on_conflict="replace")
        self._checked.add(run)
        self._tell(account)

    def _check(self, run: str) -> None:
        """What is used is summed up without a look at the seals, so each is looked at once before."""
        if run not in self._checked and self._rows.one(ACCOUNTS, run):
            self._rows.check("ledger", run, deep=True)
            self._checked.add(run)

    def _reserve(self, wanted: Reservation) -> BudgetError | None:
        """A refusal is returned, not raised: that would undo the transaction that remembers it."""
        now = self._now()
        self._make_way(wanted.key, now.timestamp())
        with self._rows.writing("ledger", wanted.run) as writer:
            line = _latest(writer, wanted.key)
            if line and (lines.is_open(line) or line["answer"] is not None):
                raise out_of_turn(wanted.key, "reserved", line["state"])
            account = _account(writer, wanted.run)
            refusal = _refusal(writer, wanted, account)
            if refusal and _recover(writer, wanted.run, now.timestamp()):
                account = _account(writer, wanted.run)
                refusal = _refusal(writer, wanted, account)
            if refusal is None:
                id = self._rows.database.next_id(writer.connection, CALLS.name)
                writer.insert(CALLS, lines.reserved(id, wanted, now))
            else:
                _remember(writer, wanted, account, refusal)
        if refusal is None:
            if len(self._owners) >= MOST_OWNERS:  # most of them were never settled: their callers are gone
                self._owners.clear()
            self._owners[wanted.key] = wanted.run
        return refusal

    def _make_way(self, key: str, now: float) -> None:
        """In a transaction of its own: the dead caller may have been of another run."""
        line = _latest(self._rows, key)
        if line and lines.is_open(line) and line["expires"] <= now:
            self._recover(line["run"], now)

    def _change(self, key: str, verb: str, step: Callable[[Row], lines.Changes | None]) -> None:
        with self._rows.writing("ledger", self._owner(key, verb)) as writer:
            line = _latest(writer, key)
            changes = step(line) if line else None
            if line is None or changes is None:
                raise out_of_turn(key, verb, line["state"] if line else None)
            changed = writer.update(CALLS, (line["id"],), changes)
        self._tell(changed or line)

    def _owner(self, key: str, verb: str) -> str:
        """The run a call is of; most were reserved a moment ago."""
        run = self._owners.pop(key, None) if verb in ("settled", "released") else self._owners.get(key)
        if run is not None:
            return run
        line = _latest(self._rows, key)
        if line is None:
            raise out_of_turn(key, verb, None)
        return str(line["run"])

    def _recover(self, run: str, until: float) -> int:
        if self._rows.one(ACCOUNTS, run) is None:
            return 0
        with self._rows.writing("ledger", run) as writer:
            return _recover(writer, run, until)

    def _spent(self, run: str) -> Spend:
        self._check(run)
        with self._rows.database.connection() as connection:
            found = connection.execute(_SPENT, (run,)).fetchall()
        return Spend(
            usd=int(sum(row["micros"] for row in found)) / MICRO,
            tokens=int(sum(row["tokens"] for row in found)),
            requests=int(sum(row["calls"] for row in found)),
            unconfirmed_usd=int(sum(row["unconfirmed"] for row in found)) / MICRO,
            by_model={row["label"]: _of_model(row) for row in found},
        )

    def _forget(self, run: str) -> None:
        if self._rows.one(ACCOUNTS, run) is None:
            return
        with self._rows.writing("ledger", run) as writer:
            for line in writer.read(CALLS, "WHERE run = ? AND answer IS NOT NULL", (run,)):
                writer.update(CALLS, (line["id"],), {"answer": None})

    def _export(self, run: str) -> list[dict[str, object]]:
        """Without the numbers of the calls, which are those of this database."""
        account = self._rows.one(ACCOUNTS, run)
        if account is None:
            return []
        return [account, *({name: line[name] for name in line if name != "id"} for line in _all(self._rows, run))]

    def _restore(self, account: Mapping[str, object], calls: Sequence[Mapping[str, object]]) -> None:
        run = str(account["run"])
        with self._rows.writing("ledger", run) as writer:
            writer.insert(ACCOUNTS, {"owner": LOCAL, **account}, on_conflict="keep")
            known = {(line["key"], line["time"]) for line in _all(writer, run)}
            for call in calls:
                if (call["key"], call["time"]) not in known:
                    id = self._rows.database.next_id(writer.connection, CALLS.name)
                    writer.insert(CALLS, {**call, "id": id})


def _latest(reader: Rows | Writer, key: str) -> Row | None:
    found = reader.read(CALLS, "WHERE key = ? ORDER BY id DESC LIMIT 1", (key,))
    return found[0] if found else None


def _all(reader: Rows | Writer, run: str) -> list[Row]:
    return reader.read(CALLS, "WHERE run = ? ORDER BY id", (run,))


def _caps(account: Row) -> Caps:
    return Caps(
        micros=account["cap_micros"],
        tokens=account["cap_tokens"],
        requests=account["cap_requests"],
        finish_share=account["finish_share"],
    )


def _owner(writer: Writer, run: str) -> str:
    """Whose run it is; it stays in the books when the thread is deleted."""
    found = writer.connection.execute(_OWNER, (run,)).fetchone()
    return str(found["owner"]) if found else LOCAL


def _account(writer: Writer, run: str) -> Account:
    row = writer.one(ACCOUNTS, run)
    if row is None:
        raise no_account(run)
    return Account(_caps(row), _amounts(writer, _USED, run), bool(row["refused"]))


def _amounts(writer: Writer, sql: str, *values: object) -> Amounts:
    row = writer.connection.execute(sql, values).fetchone()
    return Amounts(int(row["micros"]), int(row["tokens"]), int(row["requests"]))


def _refusal(writer: Writer, wanted: Reservation, account: Account) -> BudgetError | None:
    refusal = over_caps(wanted, account)
    if refusal or not has_share(wanted):
        return refusal
    return over_share(wanted, account.caps, _amounts(writer, _OF_TASK, wanted.run, wanted.task))


def _remember(writer: Writer, wanted: Reservation, account: Account, refusal: BudgetError) -> None:
    """Research has no money left, unless a call need only wait for others, or a task has had its share."""
    if not over_caps(wanted, account):
        return
    refusal.retryable = stands_open(wanted, account, _amounts(writer, _HELD, wanted.run))
    if wanted.research and wanted.last and not (refusal.retryable or account.refused):
        writer.update(ACCOUNTS, (wanted.run,), {"refused": 1})


def _recover(writer: Writer, run: str, until: float) -> int:
    """End the calls that were to be over by then; says how many."""
    overdue = writer.read(CALLS, _OVERDUE, (run, until))
    for line in overdue:
        writer.update(CALLS, (line["id"],), lines.given_up(line))
    return len(overdue)


def _of_model(row: Row) -> ModelSpend:
    counts = {name: int(row[name]) for name in ("calls", "failed", "prompt_tokens", "completion_tokens")}
    return ModelSpend(**counts, usd=int(row["micros"]) / MICRO, seconds=row["seconds"])
