"""The budget of a run: every call is reserved, made, stored and settled here, and nowhere else."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256

from openassay.errors import BudgetError, FetchError, ModelError, SourceError, StorageError
from openassay.models.spend import MICRO, Caps, Charge, Fee, ModelReply, Reservation, Spend, TokenUsage
from openassay.protocols import Emit, Ledger

# A price: prompt and completion tokens to micro-dollars, rounded up. Some rise with the length of the prompt.
Micros = Callable[[int, int], int]

POLL_SECONDS = 1.0  # after which a waiting call tries again by itself: another process may have settled
STORE_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)  # between attempts to store an answer: a server may restart

_log = logging.getLogger("openassay.llm")


class RunAccount:
    """A `protocols.Account`. Reservations of an earlier process of the run are recovered when it is first used.

    `lineage` are the runs that this one continues, the nearest first: what one of them has paid for is read from the
    ledger, costs nothing and is not written again.
    """

    def __init__(
        self,
        run: str,
        ledger: Ledger,
        caps: Caps,
        emit: Emit,
        price: Callable[[str], Micros] | None = None,
        *,
        lineage: tuple[str, ...] = (),
    ) -> None:
        self._run = run
        self._ledger = ledger
        self._caps = caps
        self._emit = emit
        self._price = price
        self._lineage = lineage
        self._opening = asyncio.Lock()
        self._purchase_locks: dict[str, asyncio.Lock] = {}
        self._settle_lock = asyncio.Lock()
        self._settled = asyncio.Event()
        self._attempts: dict[str, list[str]] | None = None  # call -> keys of its attempts so far
        self._inherited: dict[str, list[str]] = {}  # call -> keys of the attempts that earlier runs made at it
        self._unstored: dict[str, str] = {}  # key -> an answer that could not be stored yet

    async def get_spend(self) -> Spend:
        await self._open()
        return await self._ledger.get_spend(self._run)

    async def is_exhausted(self) -> bool:
        await self._open()
        return await self._ledger.has_refusals(self._run)

    async def is_near_cap(self, share: float) -> bool:
        """Tell whether this share of a cap is used."""
        spent = await self.get_spend()
        caps = self._caps
        return (
            spent.usd * MICRO >= share * caps.micros > 0
            or spent.tokens >= share * caps.tokens > 0
            or spent.requests >= share * caps.requests > 0
        )

    async def load_replies(self, call: str) -> list[ModelReply]:
        """Return the answers to a call that were paid for before, by this process, an earlier one or an earlier run."""
        return [ModelReply.model_validate_json(stored) for stored in await self._load_answers(call) if stored]

    async def next_attempt_key(self, call: str) -> str:
        """Return the key of a call's next attempt: `call#3` is its fourth."""
        attempts = (await self._open()).setdefault(call, [])
        attempts.append(f"{call}#{len(attempts)}")
        return attempts[-1]

    async def pay(
        self, reservation: Reservation, micros: Micros, call: Callable[[], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Make a call and settle it: at its worst case where it may have been billed, for nothing where it was not."""

        async def ask() -> tuple[str, Charge]:
            reply = await call()
            # JSON can spell half of a surrogate pair, which cannot be stored.
            reply = reply.model_copy(update={"text": reply.text.encode("utf-8", "replace").decode()})
            return reply.model_dump_json(), _to_charge(reply, micros)

        return ModelReply.model_validate_json(await self._send(reservation, ask))

    def task_budget(self, task: str, share: float) -> "TaskBudget":
        """Return a budget for one task, whose calls may use no more than its share of the research budget."""
        return TaskBudget(self, task, share)

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]], *, share: float = 1.0) -> str:
        """Buy a request once, as `protocols.Budget`: a second buyer, then or later, gets the same answer."""
        call = f"{self._run} {fee.step} {fee.provider} {sha256(fee.request.encode()).hexdigest()[:24]}"
        async with self._purchase_locks.setdefault(call, asyncio.Lock()):
            for stored in await self._load_answers(call):
                return stored
            reservation = Reservation(
                key=await self.next_attempt_key(call),
                run=self._run,
                step=fee.step,
                task=fee.task,
                provider=fee.provider,
                model=fee.step,
                micros=fee.micros,
                tokens=0,
                share=share,
                last=not fee.micros,  # without money there are still providers that cost nothing
            )

            async def ask() -> tuple[str, Charge]:
                began = time.monotonic()
                answer = await request()
                return answer, Charge(micros=fee.micros, seconds=time.monotonic() - began)

            # A page or a free search costs nothing but a request, and has an event of its own.
            return await self._send(reservation, ask, quietly=not fee.micros)

    async def _send(
        self, reservation: Reservation, ask: Callable[[], Awaitable[tuple[str, Charge]]], *, quietly: bool = False
    ) -> str:
        """Reserve, ask, store the answer and settle what it costs."""
        await self._reserve(reservation)
        await self._ledger.record_send(reservation.key)
        charge: Charge | None = Charge()  # for a request that is cancelled: it may be billed
        try:
            answer, paid = await ask()
            await self._store(reservation.key, answer)
            charge = paid
        except (ModelError, SourceError, FetchError) as error:
            if isinstance(error, FetchError) or not error.billed:
                charge = None
                await self._ledger.release(reservation.key, error.message)
                self._settled.set()
                _log.info("%s %s failed: %s", reservation.model, reservation.step, error.message)
            raise
        finally:
            if charge is not None:
                await asyncio.shield(self._settle(reservation, charge, quietly=quietly))
        return answer

    async def _load_answers(self, call: str) -> list[str]:
        attempts = await self._open()
        keys = [*attempts.get(call, []), *self._inherited.get(call, [])]
        found = [self._unstored.get(key) or await self._ledger.get_answer(key) for key in keys]
        return [stored for stored in found if stored is not None]

    async def _store(self, key: str, answer: str) -> None:
        """Store an answer. It is paid for: as long as this process lives it is not asked for again, stored or not."""
        self._unstored[key] = answer
        for pause in (*STORE_PAUSES, None):
            try:
                await self._ledger.store_answer(key, answer)
            except StorageError as error:
                if pause is None or not error.retryable:
                    raise
                await asyncio.sleep(pause)
            else:
                del self._unstored[key]
                return

    async def _reserve(self, reservation: Reservation) -> None:
        """Reserve the worst case of a call; wait while only the worst cases of calls under way leave no room for it."""
        until = time.monotonic() + reservation.seconds
        while True:
            self._settled.clear()
            try:
                return await self._ledger.reserve(reservation)
            except BudgetError as error:
                if not error.retryable or time.monotonic() > until:
                    raise
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._settled.wait()

    async def _settle(self, reservation: Reservation, charge: Charge, *, quietly: bool) -> None:
        async with self._settle_lock:  # one after the other, so that each event has a larger total
            await self._ledger.settle(reservation.key, charge)
            self._settled.set()
            if not quietly:
                spent = await self._ledger.get_spend(self._run)
                micros = reservation.micros if charge.micros is None else min(charge.micros, reservation.micros)
                model = reservation.provider if reservation.model == reservation.step else reservation.model
                data: dict[str, object] = {
                    "model": model,
                    "step": reservation.step,
                    "task": reservation.task,
                    "usd": micros / MICRO,
                    "confirmed": charge.micros is not None,
                    "prompt_tokens": charge.prompt_tokens,
                    "completion_tokens": charge.completion_tokens,
                    "seconds": round(charge.seconds, 3),
                    "total_usd": spent.usd,
                    "total_tokens": spent.tokens,
                    "requests": spent.requests,
                    "cap_usd": self._caps.micros / MICRO,
                }
                _log.info("%s %s: %s", reservation.model, reservation.step, data)
                await self._emit("spend", reservation.step, data)

    async def _open(self) -> dict[str, list[str]]:
        async with self._opening:
            if self._attempts is None:
                await self._ledger.open(self._run, self._caps)
                await self._ledger.recover(self._run, all=True)
                attempts: dict[str, list[str]] = {}
                for call in await self._ledger.calls(self._run):
                    attempts.setdefault(call.key.rpartition("#")[0], []).append(call.key)
                    # A process may have died between storing an answer and settling its call.
                    stored = await self._ledger.get_answer(call.key) if call.state == "lost" else None
                    if stored is not None and call.model == call.step:  # a fee, which is its own price
                        await self._ledger.settle(call.key, Charge(micros=call.micros))
                    elif stored is not None and self._price:
                        reply = ModelReply.model_validate_json(stored)
                        await self._ledger.settle(call.key, _to_charge(reply, self._price(call.model)))
                for run in self._lineage:  # a call of an earlier run is the same call under that run's name
                    for call in await self._ledger.calls(run):
                        name = self._run + call.key.rpartition("#")[0].removeprefix(run)
                        self._inherited.setdefault(name, []).append(call.key)
                self._attempts = attempts
        return self._attempts


class TaskBudget:
    """A `protocols.Budget` that books what it pays to its task."""

    def __init__(self, account: RunAccount, task: str, share: float) -> None:
        self._account = account
        self._task = task
        self._share = share

    async def buy(self, fee: Fee, request: Callable[[], Awaitable[str]]) -> str:
        return await self._account.buy(fee.model_copy(update={"task": self._task}), request, share=self._share)


def _to_charge(reply: ModelReply, micros: Micros) -> Charge:
    usage = reply.usage or TokenUsage()
    # Text without a single token is not credible either.
    known = reply.usage is not None and usage.prompt_tokens > 0 and (usage.completion_tokens > 0 or not reply.text)
    return Charge(
        micros=micros(usage.prompt_tokens, usage.completion_tokens) if known else None,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=reply.seconds,
    )
