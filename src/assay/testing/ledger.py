"""A ledger in memory: the caps of a run hold for all tasks of one event loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assay.errors import BudgetError
from assay.model.spend import MICRO, Call, Caps, Charge, ModelSpend, Reservation, Spend
from assay.model.thread import LOCAL
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
    no_row,
    out_of_turn,
    over_caps,
    over_share,
    stands_open,
)
from assay.storage.database import timestamp, utc_now


@dataclass
class Line:
    """A call, with what it takes from its account as it stands."""

    call: Call
    research: bool
    time: str
    expires: float
    tokens: int
    requests: int = 1
    answer: str | None = None

    @property
    def open(self) -> bool:
        return self.call.state in ("reserved", "sent")

    @property
    def made(self) -> bool:
        return self.call.state != "reserved" and self.requests > 0

    @property
    def booked(self) -> bool:
        return self.call.state in ("settled", "lost")

    @property
    def label(self) -> str:
        prefix = f"{self.call.provider}:"
        return self.call.model if self.call.model.startswith(prefix) else prefix + self.call.model

    @property
    def row(self) -> dict[str, object]:
        """As a database has it."""
        return {
            **self.call.model_dump(), "time": self.time, "expires": self.expires, "research": int(self.research),
            "tokens": self.tokens, "requests": self.requests, "confirmed": int(self.call.confirmed),
            "answer": self.answer,
        }  # fmt: skip

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Line":
        call = Call.model_validate({name: row[name] for name in Call.model_fields})
        rest = {name: row[name] for name in ("time", "expires", "tokens", "requests", "answer")}
        return cls(call, research=bool(row["research"]), **rest)

    def end(self, **changes: object) -> None:
        self.call = self.call.model_copy(update=changes)

    def void(self, error: str) -> None:
        self.requests = int(self.made)
        self.tokens = 0
        self.end(state="void", micros=0, confirmed=True, error=error)


class MemoryLedger:
    """A ports.Ledger."""

    def __init__(self, now: Callable[[], datetime] = utc_now) -> None:
        self._now = now
        self._caps: dict[str, Caps] = {}
        self._refused: set[str] = set()
        self._lines: list[Line] = []

    async def open(self, run: str, caps: Caps) -> None:
        if run in self._caps and is_larger(caps, self._caps[run]):
            self._refused.discard(run)
        self._caps[run] = caps

    async def reserve(self, reservation: Reservation) -> None:
        now = self._now().timestamp()
        self._make_way(reservation.key, now)
        refusal = self._refusal(reservation)
        if refusal and self._recover(reservation.run, now):
            refusal = self._refusal(reservation)
        if refusal:
            self._remember(reservation, refusal)
            raise refusal
        self._lines.append(self._line(reservation))

    async def sent(self, key: str) -> None:
        self._latest(key, "sent", "reserved").end(state="sent")

    async def answered(self, key: str, answer: str) -> None:
        line = self._latest(key, "answered", "sent", "lost")
        line.answer = answer
        line.end(error="")

    async def settle(self, key: str, charge: Charge) -> None:
        line = self._latest(key, "settled", "sent", "lost")
        booking = booked(charge, Amounts(line.call.micros, line.tokens, 1))._asdict()
        line.tokens = booking.pop("tokens")
        line.end(state="settled", **booking, seconds=charge.seconds, error=BILLED if line.answer is None else "")

    async def release(self, key: str, error: str) -> None:
        line = self._latest(key, "released", "reserved", "sent", "lost", "void")
        if line.answer is not None:
            raise out_of_turn(key, "released", line.call.state)
        line.void(error or "no reason given")

    async def answer(self, key: str) -> str | None:
        lines = self._of_key(key)
        return lines[-1].answer if lines else None

    async def recover(self, run: str, *, all: bool = False) -> int:
        return self._recover(run, float("inf") if all else self._now().timestamp())

    async def spent(self, run: str) -> Spend:
        lines = [line for line in self._of_run(run) if line.made]
        paid = [line for line in lines if line.booked]
        labels = sorted({line.label for line in lines})
        return Spend(
            usd=_micros(paid) / MICRO,
            tokens=sum(line.tokens for line in paid),
            requests=len(lines),
            unconfirmed_usd=_micros(line for line in paid if not line.call.confirmed) / MICRO,
            by_model={label: _of_model([line for line in lines if line.label == label]) for label in labels},
        )

    async def refused(self, run: str) -> bool:
        return run in self._refused

    async def calls(self, run: str) -> list[Call]:
        return [line.call for line in self._of_run(run)]

    async def forget(self, run: str) -> None:
        for line in self._of_run(run):
            line.answer = None

    async def export(self, run: str) -> list[dict[str, object]]:
        if run not in self._caps:
            return []
        caps = self._caps[run]
        account: dict[str, object] = {
            "run": run, "cap_micros": caps.micros, "cap_tokens": caps.tokens, "cap_requests": caps.requests,
            "finish_share": caps.finish_share, "refused": int(run in self._refused), "owner": LOCAL,
        }  # fmt: skip
        return [account, *(line.row for line in self._of_run(run))]

    async def restore(self, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        try:
            self._restore(rows[0], [Line.of(row) for row in rows[1:]])
        except KeyError as error:
            raise no_row(error) from error

    def _restore(self, account: Mapping[str, Any], lines: list[Line]) -> None:
        run = str(account["run"])
        caps = {name: account[f"cap_{name}"] for name in ("micros", "tokens", "requests")}
        if run not in self._caps:
            self._caps[run] = Caps(**caps, finish_share=account["finish_share"])
            self._refused.update([run] if account["refused"] else [])
        known = {(line.call.key, line.time) for line in self._of_run(run)}
        self._lines += [line for line in lines if (line.call.key, line.time) not in known]

    def _line(self, wanted: Reservation) -> Line:
        now = self._now()
        names = ("key", "run", "step", "task", "provider", "model", "micros")
        call = Call(state="reserved", **{name: getattr(wanted, name) for name in names})
        return Line(call, wanted.research, timestamp(now), now.timestamp() + wanted.seconds, wanted.tokens)

    def _of_run(self, run: str) -> list[Line]:
        return [line for line in self._lines if line.call.run == run]

    def _of_key(self, key: str) -> list[Line]:
        return [line for line in self._lines if line.call.key == key]

    def _latest(self, key: str, verb: str, *states: str) -> Line:
        lines = self._of_key(key)
        if not lines or lines[-1].call.state not in states:
            raise out_of_turn(key, verb, lines[-1].call.state if lines else None)
        return lines[-1]

    def _make_way(self, key: str, now: float) -> None:
        for line in self._of_key(key)[-1:]:
            if line.open and line.expires <= now:
                self._recover(line.call.run, now)
            if line.open or line.answer is not None:
                raise out_of_turn(key, "reserved", line.call.state)

    def _account(self, run: str) -> Account:
        if run not in self._caps:
            raise no_account(run)
        return Account(self._caps[run], _used(self._of_run(run)), run in self._refused)

    def _refusal(self, wanted: Reservation) -> BudgetError | None:
        refusal = over_caps(wanted, self._account(wanted.run))
        if refusal or not has_share(wanted):
            return refusal
        same = [line for line in self._of_run(wanted.run) if line.research and line.call.task == wanted.task]
        return over_share(wanted, self._caps[wanted.run], _used(same))

    def _remember(self, wanted: Reservation, refusal: BudgetError) -> None:
        account = self._account(wanted.run)
        if not over_caps(wanted, account):
            return
        refusal.retryable = stands_open(
            wanted, account, _used([line for line in self._of_run(wanted.run) if line.open])
        )
        if wanted.research and wanted.last and not refusal.retryable:
            self._refused.add(wanted.run)

    def _recover(self, run: str, until: float) -> int:
        expired = [line for line in self._of_run(run) if line.open and line.expires <= until]
        for line in expired:
            if line.call.state == "reserved":
                line.void(NEVER_SENT)
            else:
                line.end(state="lost", confirmed=False, error=LOST if line.answer is None else "")
        return len(expired)


def _micros(lines: Iterable[Line]) -> int:
    return sum(line.call.micros for line in lines)


def _used(lines: list[Line]) -> Amounts:
    return Amounts(_micros(lines), sum(line.tokens for line in lines), sum(line.requests for line in lines))


def _of_model(lines: list[Line]) -> ModelSpend:
    return ModelSpend(
        calls=len(lines),
        failed=sum(bool(line.call.error) for line in lines),
        prompt_tokens=sum(line.call.prompt_tokens for line in lines),
        completion_tokens=sum(line.call.completion_tokens for line in lines),
        usd=_micros(line for line in lines if line.booked) / MICRO,
        seconds=sum(line.call.seconds for line in lines),
    )
