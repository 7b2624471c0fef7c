"""The ledger: every paid call, written before it is made. The caps of a run hold for all processes that work on it."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from openassay.errors import BudgetError, StorageError
from openassay.models.base import utc_now
from openassay.models.spend import MICRO, Caps, Charge, LedgerCall, ModelSpend, Reservation, Spend
from openassay.models.thread import LOCAL, ResearchOptions
from openassay.storage.database import ACCOUNTS, CALLS, RUNS, THREADS, run_in_thread, timestamp
from openassay.storage.sealed_rows import Row, Rows, RowStore, Writer

# Why a call ended without an answer; a line without an error has one, or may still get one.
NEVER_SENT = "never sent: its caller died"
LOST = "no answer: its caller died"
BILLED = "billed without an answer"

_HELP = {
    "usd": "Raise budget.usd (OPENASSAY_BUDGET__USD or --budget), or choose a cheaper model.",
    "tokens": "Raise budget.tokens (OPENASSAY_BUDGET__TOKENS), or ask for less depth.",
    "requests": "Raise budget.requests (OPENASSAY_BUDGET__REQUESTS), or ask for less depth.",
}


class Amounts(NamedTuple):
    """An amount of each thing that has a cap."""

    micros: int
    tokens: int
    requests: int


class LedgerAccount(NamedTuple):
    caps: Caps
    used: Amounts  # booked and reserved together
    refused: bool


def limits(caps: Caps, *, research: bool) -> Amounts:
    """Return what may be used in all; research leaves a share for finishing."""
    share = 1 - _to_fraction(caps.finish_share if research else 0.0)
    return Amounts(*(math.floor(cap * share) for cap in (caps.micros, caps.tokens, caps.requests)))


def is_larger(caps: Caps, before: Caps) -> bool:
    """Return whether research may use more of anything than before."""
    pairs = zip(limits(caps, research=True), limits(before, research=True), strict=True)
    return any(now > then for now, then in pairs)


def has_share(wanted: Reservation) -> bool:
    return wanted.research and wanted.share < 1 and bool(wanted.task)


def caps_error(wanted: Reservation, account: LedgerAccount) -> BudgetError | None:
    """Say why the call does not fit into what is left of the caps, or return None."""
    purpose = " for research" if wanted.research else ""
    amounts = Amounts(wanted.micros, wanted.tokens, 1)
    maxima = limits(account.caps, research=wanted.research)
    for cap, amount, used, limit in zip(_HELP, amounts, account.used, maxima, strict=True):
        if not amount or used + amount <= limit:
            continue
        left = max(limit - used, 0)
        if cap == "requests":
            message = f"all of the {limit:,} requests{purpose} have been made"
        elif cap == "tokens":
            message = f"this call could use {amount:,} tokens and only {left:,} of the {limit:,}{purpose} are left"
        else:
            cost, rest, whole = format_dollars(amount), format_dollars(left), format_dollars(limit)
            message = f"this call could cost {cost} and only {rest} of the {whole}{purpose} are left"
        return BudgetError(message, help=_HELP[cap], cap=cap, run=wanted.run, provider=wanted.provider)
    return None


def share_error(wanted: Reservation, caps: Caps, used: Amounts) -> BudgetError | None:
    """Say why this task may not make another research call: it has used its share. The worst case of the call does not
    count, since it may be more than a share of which the call needs a tenth; the caps hold all the same."""
    shares = (math.floor(limit * _to_fraction(wanted.share)) for limit in limits(caps, research=True))
    for cap, amount, spent, share in zip(_HELP, (wanted.micros, wanted.tokens), used, shares, strict=False):
        if amount and spent >= share:
            message = f"task {wanted.task} has used its share of the {cap} for research"
            return BudgetError(message, help=_HELP[cap], cap=cap, run=wanted.run, provider=wanted.provider)
    return None


def fits_after_settlement(wanted: Reservation, account: LedgerAccount, open: Amounts) -> bool:
    """Return whether only open reservations prevent a call: once they are settled it may fit."""
    booked = Amounts(*(used - reserved for used, reserved in zip(account.used, open, strict=True)))
    return caps_error(wanted, account._replace(used=booked)) is None


def book_charge(charge: Charge, micros: int, tokens: int) -> dict[str, int]:
    """Book what a call was charged; the worst case, which is given, where its usage is missing, or more than that."""
    used = charge.prompt_tokens + charge.completion_tokens
    if charge.micros is None or charge.micros > micros or used > tokens:
        return {"micros": micros, "tokens": tokens, "prompt_tokens": 0, "completion_tokens": 0, "confirmed": 0}
    counted = {"prompt_tokens": charge.prompt_tokens, "completion_tokens": charge.completion_tokens}
    return {"micros": charge.micros, "tokens": used, **counted, "confirmed": 1}


def format_dollars(micros: int) -> str:
    whole, rest = divmod(micros, MICRO)
    return f"${whole:,}.{f'{rest:06}'.rstrip('0').ljust(2, '0')}"


def no_account(run: str) -> StorageError:
    return StorageError(f"run {run} has no account", help="Open it with its caps before the first call.", run=run)


def no_row(missing: KeyError) -> StorageError:
    return StorageError(f"a row of the ledger lacks {missing}", help="Restore what was exported, as it is.")


def call_state_error(key: str, verb: str, state: str | None) -> StorageError:
    """Refuse a caller that reserves what is in use or answered, or continues what is no longer its own."""
    reason = f"it is {state}" if state else "there is none"
    return StorageError(
        f"call {key} cannot be {verb}: {reason}",
        help="Ask for its answer first, then reserve it, and send it only once.",
        key=key,
    )


@lru_cache(maxsize=64)
def _to_fraction(share: float) -> Fraction:
    """Return 0.15 as it was written: a float would be off by a micro-dollar."""
    return Fraction(str(share))


# A line of the ledger is one attempt at a call, from its reservation to its end. Each step is a function that returns
# what changes, or None where it is not allowed. A lost call can still be answered, settled or released: its caller was
# only slow. Amounts are of the type of their column: a row is sealed over what comes back from the database.

LineChanges = dict[str, object]

_OPEN = ("reserved", "sent")
_UNFINISHED = ("sent", "lost")
_VOID: LineChanges = {"state": "void", "micros": 0, "tokens": 0, "confirmed": 1}


def new_line(id: int, wanted: Reservation, now: datetime) -> Row:
    names = ("key", "run", "step", "task", "provider", "model", "micros", "tokens", "research")
    given = {name: getattr(wanted, name) for name in names}
    counts = {"requests": 1, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0, "confirmed": 1}
    times = {"time": timestamp(now), "expires": now.timestamp() + wanted.seconds}
    return {"id": id, **given, **times, **counts, "state": "reserved", "answer": None, "error": ""}


def changes_on_settle(line: Row, charge: Charge) -> LineChanges | None:
    if line["state"] not in _UNFINISHED:
        return None
    error = BILLED if line["answer"] is None else ""
    booked = book_charge(charge, line["micros"], line["tokens"])
    return {**booked, "state": "settled", "seconds": float(charge.seconds), "error": error}


def changes_on_release(line: Row, error: str) -> LineChanges | None:
    if line["state"] == "settled" or line["answer"] is not None:
        return None
    requests = 0 if line["state"] == "reserved" else line["requests"]
    return {**_VOID, "requests": requests, "error": error}


def changes_on_expiry(line: Row) -> LineChanges:
    """End a call whose caller died: what was sent may have been billed, what was not cannot have been."""
    if line["state"] == "reserved":
        return {**_VOID, "requests": 0, "error": NEVER_SENT}
    return {"state": "lost", "confirmed": 0, "error": LOST if line["answer"] is None else ""}


_MAX_CAP = 2**62  # databases count to 2**63
_OWNER = "SELECT threads.owner AS owner FROM runs JOIN threads ON threads.id = runs.thread WHERE runs.id = ?"

_SUM_USAGE = """
SELECT coalesce(sum(micros), 0) AS micros, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(requests), 0) AS requests
FROM calls WHERE run = ?
"""
_SUM_TASK_USAGE = f"{_SUM_USAGE} AND task = ? AND research = 1"
_SUM_OPEN_USAGE = f"{_SUM_USAGE} AND state IN ('reserved', 'sent')"
_OVERDUE = "WHERE run = ? AND state IN ('reserved', 'sent') AND expires <= ? ORDER BY id"

_SUM_BY_MODEL = """
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
_COUNTED = ("calls", "failed", "prompt_tokens", "completion_tokens", "seconds")


class SqlLedger(RowStore):
    """A Ledger. `on_change` is called with accounts and calls that have changed, in the thread that changed them.

    What was committed survives kill -9. Only a power cut can undo the last lines, on SQLite: with WAL and synchronous =
    NORMAL they are in the hands of the operating system.
    """

    def __init__(
        self,
        rows: Rows,
        now: Callable[[], datetime] = utc_now,
        on_change: Callable[[Mapping[str, object]], None] = lambda row: None,
    ) -> None:
        super().__init__(rows, now)
        self._on_change = on_change
        self._checked: set[str] = set()

    @run_in_thread
    def open(self, run: str, caps: Caps) -> None:
        self._check(run)
        values = {f"cap_{name}": min(getattr(caps, name), _MAX_CAP) for name in Amounts._fields}
        values["finish_share"] = float(caps.finish_share)
        with self._rows.open_writer("ledger", run) as writer:
            before = writer.find(ACCOUNTS, run)
            stays_refused = before and before["refused"] and not is_larger(caps, _caps(before))
            # Whose run it is stays in the ledger when the thread is deleted.
            found = writer.connection.execute(_OWNER, (run,)).fetchone()
            owner = str(found["owner"]) if found else LOCAL
            account = {"run": run, **values, "refused": int(bool(stays_refused)), "owner": owner}
            writer.insert(ACCOUNTS, account, on_conflict="replace")
        self._checked.add(run)
        self._on_change(account)

    async def reserve(self, reservation: Reservation) -> None:
        """Reserve a call. A key may be reserved again unless it has an answer, or a caller that still works on it."""
        refusal = await asyncio.to_thread(self._reserve, reservation)
        if refusal:
            raise refusal

    @run_in_thread
    def record_send(self, key: str) -> None:
        self._change(key, "sent", lambda line: {"state": "sent"} if line["state"] == "reserved" else None)

    @run_in_thread
    def store_answer(self, key: str, answer: str) -> None:
        changes: LineChanges = {"answer": answer, "error": ""}
        self._change(key, "answered", lambda line: changes if line["state"] in _UNFINISHED else None)

    @run_in_thread
    def settle(self, key: str, charge: Charge) -> None:
        self._change(key, "settled", lambda line: changes_on_settle(line, charge))

    @run_in_thread
    def release(self, key: str, error: str) -> None:
        self._change(key, "released", lambda line: changes_on_release(line, error or "no reason given"))

    @run_in_thread
    def get_answer(self, key: str) -> str | None:
        line = _latest_line(self._rows, key)
        return line["answer"] if line else None

    @run_in_thread
    def recover(self, run: str, *, all: bool = False) -> int:
        return self._recover(run, math.inf if all else self._now().timestamp())

    @run_in_thread
    def get_spend(self, run: str) -> Spend:
        self._check(run)
        found = self._rows.database.query(_SUM_BY_MODEL, (run,))
        return Spend(
            usd=int(sum(row["micros"] for row in found)) / MICRO,
            tokens=int(sum(row["tokens"] for row in found)),
            requests=int(sum(row["calls"] for row in found)),
            unconfirmed_usd=int(sum(row["unconfirmed"] for row in found)) / MICRO,
            by_model={
                row["label"]: ModelSpend(usd=int(row["micros"]) / MICRO, **{name: row[name] for name in _COUNTED})
                for row in found
            },
        )

    @run_in_thread
    def has_refusals(self, run: str) -> bool:
        """Return whether research had to stop for lack of money, tokens or requests."""
        account = self._rows.find(ACCOUNTS, run)
        return account is not None and bool(account["refused"])

    @run_in_thread
    def calls(self, run: str) -> list[LedgerCall]:
        """List the calls of a run, oldest first; each attempt has a line of its own."""
        found = _all_lines(self._rows, run)
        return [LedgerCall.model_validate({name: line[name] for name in LedgerCall.model_fields}) for line in found]

    @run_in_thread
    def forget(self, run: str) -> None:
        if self._rows.find(ACCOUNTS, run) is None:
            return
        with self._rows.open_writer("ledger", run) as writer:
            for line in writer.read(CALLS, "WHERE run = ? AND answer IS NOT NULL", (run,)):
                writer.update(CALLS, (line["id"],), {"answer": None})

    @run_in_thread
    def export(self, run: str) -> list[dict[str, object]]:
        """Return the account and its calls, without their ids, which are those of this database."""
        account = self._rows.find(ACCOUNTS, run)
        if account is None:
            return []
        return [account, *({name: line[name] for name in line if name != "id"} for line in _all_lines(self._rows, run))]

    @run_in_thread
    def restore(self, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        account, calls = rows[0], rows[1:]
        try:
            run = str(account["run"])
            with self._rows.open_writer("ledger", run) as writer:
                writer.insert(ACCOUNTS, {"owner": LOCAL, **account}, on_conflict="keep")
                known = {(line["key"], line["time"]) for line in _all_lines(writer, run)}
                for call in calls:
                    if (call["key"], call["time"]) not in known:
                        id = self._rows.database.next_id(writer.connection, CALLS.name)
                        writer.insert(CALLS, {**call, "id": id})
        except KeyError as error:
            raise no_row(error) from error

    def _check(self, run: str) -> None:
        """Check every seal of an account once, since sums over its calls do not."""
        if run not in self._checked and self._rows.find(ACCOUNTS, run):
            self._rows.check("ledger", run, deep=True)
            self._checked.add(run)

    def _reserve(self, wanted: Reservation) -> BudgetError | None:
        """Reserve a call, or return the refusal: raising it would undo the transaction that records it."""
        now = self._now()
        line = _latest_line(self._rows, wanted.key)
        if line and line["state"] in _OPEN and line["expires"] <= now.timestamp():
            self._recover(line["run"], now.timestamp())  # on its own: the dead caller may have been of another run
        with self._rows.open_writer("ledger", wanted.run) as writer:
            line = _latest_line(writer, wanted.key)
            if line and (line["state"] in _OPEN or line["answer"] is not None):
                raise call_state_error(wanted.key, "reserved", line["state"])
            account = _account(writer, wanted.run)
            refusal = _refusal(writer, wanted, account)
            if refusal and _recover(writer, wanted.run, now.timestamp()):
                account = _account(writer, wanted.run)
                refusal = _refusal(writer, wanted, account)
            if refusal is None:
                id = self._rows.database.next_id(writer.connection, CALLS.name)
                writer.insert(CALLS, new_line(id, wanted, now))
            # Research has no money left, unless a call need only wait for others, or a task has used its share.
            elif caps_error(wanted, account):
                open_usage = _amounts(writer, _SUM_OPEN_USAGE, wanted.run)
                refusal.retryable = fits_after_settlement(wanted, account, open_usage)
                if wanted.research and wanted.last and not (refusal.retryable or account.refused):
                    writer.update(ACCOUNTS, (wanted.run,), {"refused": 1})
        return refusal

    def _change(self, key: str, verb: str, step: Callable[[Row], LineChanges | None]) -> None:
        found = _latest_line(self._rows, key)
        if found is None:
            raise call_state_error(key, verb, None)
        with self._rows.open_writer("ledger", found["run"]) as writer:
            line = _latest_line(writer, key) or found
            changes = step(line)
            if changes is None:
                raise call_state_error(key, verb, line["state"])
            changed = writer.update(CALLS, (line["id"],), changes)
        self._on_change(changed or line)

    def _recover(self, run: str, until: float) -> int:
        if self._rows.find(ACCOUNTS, run) is None:
            return 0
        with self._rows.open_writer("ledger", run) as writer:
            return _recover(writer, run, until)


def _latest_line(reader: Rows | Writer, key: str) -> Row | None:
    found = reader.read(CALLS, "WHERE key = ? ORDER BY id DESC LIMIT 1", (key,))
    return found[0] if found else None


def _all_lines(reader: Rows | Writer, run: str) -> list[Row]:
    return reader.read(CALLS, "WHERE run = ? ORDER BY id", (run,))


def _caps(account: Row) -> Caps:
    return Caps(**{name: account[f"cap_{name}"] for name in Amounts._fields}, finish_share=account["finish_share"])


def _account(writer: Writer, run: str) -> LedgerAccount:
    row = writer.find(ACCOUNTS, run)
    if row is None:
        raise no_account(run)
    return LedgerAccount(_caps(row), _amounts(writer, _SUM_USAGE, run), bool(row["refused"]))


def _amounts(writer: Writer, sql: str, *values: object) -> Amounts:
    row = writer.connection.execute(sql, values).fetchone()
    return Amounts(*(int(row[name]) for name in Amounts._fields))


def _refusal(writer: Writer, wanted: Reservation, account: LedgerAccount) -> BudgetError | None:
    refusal = caps_error(wanted, account)
    if refusal or not has_share(wanted):
        return refusal
    return share_error(wanted, account.caps, _amounts(writer, _SUM_TASK_USAGE, wanted.run, wanted.task))


def _recover(writer: Writer, run: str, until: float) -> int:
    """End the calls that have expired by then; return how many."""
    overdue = writer.read(CALLS, _OVERDUE, (run, until))
    for line in overdue:
        writer.update(CALLS, (line["id"],), changes_on_expiry(line))
    return len(overdue)


# What is reserved for an unfinished call counts as spent.
_SUM_OWNER = """
SELECT coalesce(sum(calls.micros), 0) AS micros FROM accounts JOIN calls ON calls.run = accounts.run
WHERE accounts.owner = ? AND calls.micros > 0 AND calls.time >= ?
"""
_ACTIVE = """
WHERE status IN ('queued', 'running', 'waiting') AND thread IN (SELECT id FROM threads WHERE owner = ?)
"""
_SUM_ACTIVE = f"""
SELECT run, sum(micros) AS used FROM calls WHERE run IN (SELECT id FROM runs {_ACTIVE}) GROUP BY run
"""  # noqa: S608  # ours
_COUNT_ACTIVE = f"SELECT count(*) AS runs FROM runs {_ACTIVE} AND id <> ?"  # noqa: S608  # ours


class OpenRun(NamedTuple):
    """A run that has not ended; its options say what it may cost."""

    run: str
    options: ResearchOptions
    used: int  # micro-dollars


class SqlSpending(RowStore):
    """What a user has spent and may still spend, over all their runs. The ledger keeps a run's spending when its thread
    is deleted."""

    @run_in_thread
    def owner_total(self, owner: str, since: datetime) -> int:
        """Return what a user has spent since then, in micro-dollars."""
        return self._sum(_SUM_OWNER, (owner, timestamp(since)))

    @run_in_thread
    def run_total(self, run: str) -> int:
        """Return what a run has spent, in micro-dollars."""
        return self._sum(_SUM_USAGE, (run,))

    @run_in_thread
    def thread_owner(self, thread: str) -> str:
        row = self._rows.find(THREADS, thread)
        return str(row["owner"]) if row else ""

    @run_in_thread
    def open_runs(self, owner: str) -> list[OpenRun]:
        used = {row["run"]: int(row["used"]) for row in self._rows.database.query(_SUM_ACTIVE, (owner,))}
        return [
            OpenRun(row["id"], ResearchOptions.model_validate_json(row["options"]), used.get(row["id"], 0))
            for row in self._rows.read(RUNS, _ACTIVE, (owner,))
        ]

    @run_in_thread
    def count_active(self, owner: str, without: str = "") -> int:
        """Count the runs that are queued, running or waiting for an answer."""
        return int(self._rows.database.query_one(_COUNT_ACTIVE, (owner, without))["runs"])

    def _sum(self, sql: str, values: tuple[object, ...]) -> int:
        return int(self._rows.database.query_one(sql, values)["micros"])
