"""A ledger in memory: the caps of a run hold for all tasks of one event loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from openassay.errors import BudgetError
from openassay.models.base import utc_now
from openassay.models.spend import MICRO, Caps, Charge, LedgerCall, ModelSpend, Reservation, Spend
from openassay.models.thread import LOCAL
from openassay.storage.database import timestamp
from openassay.storage.ledger import (
    BILLED,
    LOST,
    NEVER_SENT,
    Amounts,
    LedgerAccount,
    book_charge,
    call_state_error,
    caps_error,
    fits_after_settlement,
    has_share,
    is_larger,
    no_account,
    no_row,
    share_error,
)


@dataclass
class MemoryLedgerEntry:
    """A call, with what it takes from its account as it stands."""

    call: LedgerCall
    research: bool
    time: str
    expires: float
    tokens: int
    requests: int = 1
    answer: str | None = None

    @property
    def is_open(self) -> bool:
        return self.call.state in ("reserved", "sent")

    @property
    def is_request(self) -> bool:
        return self.call.state != "reserved" and self.requests > 0

    @property
    def is_final(self) -> bool:
        return self.call.state in ("settled", "lost")

    @property
    def label(self) -> str:
        prefix = f"{self.call.provider}:"
        return self.call.model if self.call.model.startswith(prefix) else prefix + self.call.model

    @property
    def as_row(self) -> dict[str, object]:
        """As a database has it."""
        return {
            **self.call.model_dump(), "time": self.time, "expires": self.expires, "research": int(self.research),
            "tokens": self.tokens, "requests": self.requests, "confirmed": int(self.call.confirmed),
            "answer": self.answer,
        }  # fmt: skip

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "MemoryLedgerEntry":
        call = LedgerCall.model_validate({name: row[name] for name in LedgerCall.model_fields})
        rest = {name: row[name] for name in ("time", "expires", "tokens", "requests", "answer")}
        return cls(call, research=bool(row["research"]), **rest)

    def update(self, **changes: object) -> None:
        self.call = self.call.model_copy(update=changes)

    def void(self, error: str) -> None:
        self.requests = int(self.is_request)
        self.tokens = 0
        self.update(state="void", micros=0, confirmed=True, error=error)


class MemoryLedger:
    """A ports.Ledger."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._caps: dict[str, Caps] = {}
        self._refused: set[str] = set()
        self._lines: list[MemoryLedgerEntry] = []

    async def open(self, run: str, caps: Caps) -> None:
        if run in self._caps and is_larger(caps, self._caps[run]):
            self._refused.discard(run)
        self._caps[run] = caps

    async def reserve(self, reservation: Reservation) -> None:
        now = self._now().timestamp()
        self._check_key_free(reservation.key, now)
        refusal = self._find_refusal(reservation)
        if refusal and self._recover(reservation.run, now):
            refusal = self._find_refusal(reservation)
        if refusal:
            self._record_refusal(reservation, refusal)
            raise refusal
        self._lines.append(self._build_entry(reservation))

    async def record_send(self, key: str) -> None:
        self._latest_entry(key, "sent", "reserved").update(state="sent")

    async def store_answer(self, key: str, answer: str) -> None:
        line = self._latest_entry(key, "answered", "sent", "lost")
        line.answer = answer
        line.update(error="")

    async def settle(self, key: str, charge: Charge) -> None:
        line = self._latest_entry(key, "settled", "sent", "lost")
        booking = book_charge(charge, line.call.micros, line.tokens)
        line.tokens = booking.pop("tokens")
        error, confirmed = BILLED if line.answer is None else "", bool(booking.pop("confirmed"))
        line.update(state="settled", **booking, confirmed=confirmed, seconds=charge.seconds, error=error)

    async def release(self, key: str, error: str) -> None:
        line = self._latest_entry(key, "released", "reserved", "sent", "lost", "void")
        if line.answer is not None:
            raise call_state_error(key, "released", line.call.state)
        line.void(error or "no reason given")

    async def get_answer(self, key: str) -> str | None:
        lines = self._key_entries(key)
        return lines[-1].answer if lines else None

    async def recover(self, run: str, *, all: bool = False) -> int:
        return self._recover(run, float("inf") if all else self._now().timestamp())

    async def get_spend(self, run: str) -> Spend:
        lines = [line for line in self._run_entries(run) if line.is_request]
        paid = [line for line in lines if line.is_final]
        labels = sorted({line.label for line in lines})
        return Spend(
            usd=_sum_micros(paid) / MICRO,
            tokens=sum(line.tokens for line in paid),
            requests=len(lines),
            unconfirmed_usd=_sum_micros(line for line in paid if not line.call.confirmed) / MICRO,
            by_model={label: _sum_model_spend([line for line in lines if line.label == label]) for label in labels},
        )

    async def has_refusals(self, run: str) -> bool:
        return run in self._refused

    async def calls(self, run: str) -> list[LedgerCall]:
        return [line.call for line in self._run_entries(run)]

    async def forget(self, run: str) -> None:
        for line in self._run_entries(run):
            line.answer = None

    async def export(self, run: str) -> list[dict[str, object]]:
        if run not in self._caps:
            return []
        caps = self._caps[run]
        account: dict[str, object] = {
            "run": run, "cap_micros": caps.micros, "cap_tokens": caps.tokens, "cap_requests": caps.requests,
            "finish_share": caps.finish_share, "refused": int(run in self._refused), "owner": LOCAL,
        }  # fmt: skip
        return [account, *(line.as_row for line in self._run_entries(run))]

    async def restore(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        try:
            self._restore(rows[0], [MemoryLedgerEntry.from_row(row) for row in rows[1:]])
        except KeyError as error:
            raise no_row(error) from error

    def _restore(self, account: Mapping[str, Any], lines: list[MemoryLedgerEntry]) -> None:
        run = str(account["run"])
        caps = {name: account[f"cap_{name}"] for name in ("micros", "tokens", "requests")}
        if run not in self._caps:
            self._caps[run] = Caps(**caps, finish_share=account["finish_share"])
            self._refused.update([run] if account["refused"] else [])
        known = {(line.call.key, line.time) for line in self._run_entries(run)}
        self._lines += [line for line in lines if (line.call.key, line.time) not in known]

    def _build_entry(self, wanted: Reservation) -> MemoryLedgerEntry:
        now = self._now()
        names = ("key", "run", "step", "task", "provider", "model", "micros")
        call = LedgerCall(state="reserved", **{name: getattr(wanted, name) for name in names})
        return MemoryLedgerEntry(call, wanted.research, timestamp(now), now.timestamp() + wanted.seconds, wanted.tokens)

    def _run_entries(self, run: str) -> list[MemoryLedgerEntry]:
        return [line for line in self._lines if line.call.run == run]

    def _key_entries(self, key: str) -> list[MemoryLedgerEntry]:
        return [line for line in self._lines if line.call.key == key]

    def _latest_entry(self, key: str, verb: str, *states: str) -> MemoryLedgerEntry:
        lines = self._key_entries(key)
        if not lines or lines[-1].call.state not in states:
            raise call_state_error(key, verb, lines[-1].call.state if lines else None)
        return lines[-1]

    def _check_key_free(self, key: str, now: float) -> None:
        for line in self._key_entries(key)[-1:]:
            if line.is_open and line.expires <= now:
                self._recover(line.call.run, now)
            if line.is_open or line.answer is not None:
                raise call_state_error(key, "reserved", line.call.state)

    def _account(self, run: str) -> LedgerAccount:
        if run not in self._caps:
            raise no_account(run)
        return LedgerAccount(self._caps[run], _sum_amounts(self._run_entries(run)), run in self._refused)

    def _find_refusal(self, wanted: Reservation) -> BudgetError | None:
        refusal = caps_error(wanted, self._account(wanted.run))
        if refusal or not has_share(wanted):
            return refusal
        same = [line for line in self._run_entries(wanted.run) if line.research and line.call.task == wanted.task]
        return share_error(wanted, self._caps[wanted.run], _sum_amounts(same))

    def _record_refusal(self, wanted: Reservation, refusal: BudgetError) -> None:
        account = self._account(wanted.run)
        if not caps_error(wanted, account):
            return
        refusal.retryable = fits_after_settlement(
            wanted, account, _sum_amounts([line for line in self._run_entries(wanted.run) if line.is_open])
        )
        if wanted.research and wanted.last and not refusal.retryable:
            self._refused.add(wanted.run)

    def _recover(self, run: str, until: float) -> int:
        expired = [line for line in self._run_entries(run) if line.is_open and line.expires <= until]
        for line in expired:
            if line.call.state == "reserved":
                line.void(NEVER_SENT)
            else:
                line.update(state="lost", confirmed=False, error=LOST if line.answer is None else "")
        return len(expired)


def _sum_micros(lines: Iterable[MemoryLedgerEntry]) -> int:
    return sum(line.call.micros for line in lines)


def _sum_amounts(lines: list[MemoryLedgerEntry]) -> Amounts:
    return Amounts(_sum_micros(lines), sum(line.tokens for line in lines), sum(line.requests for line in lines))


def _sum_model_spend(lines: list[MemoryLedgerEntry]) -> ModelSpend:
    return ModelSpend(
        calls=len(lines),
        failed=sum(bool(line.call.error) for line in lines),
        prompt_tokens=sum(line.call.prompt_tokens for line in lines),
        completion_tokens=sum(line.call.completion_tokens for line in lines),
        usd=_sum_micros(line for line in lines if line.is_final) / MICRO,
        seconds=sum(line.call.seconds for line in lines),
    )
