"""The model router: which model a step asks, and what happens when it does not answer.

A role's models are asked in order. Each has a few attempts with growing pauses, as the kind of error allows; a provider
that keeps failing is left alone for a while; near the cap the budget model comes first. All retries are here: the
vendors' own are off.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiolimiter import AsyncLimiter

from assay.errors import (
    BudgetError,
    Category,
    ConfigurationError,
    ContextOverflowError,
    KeyRejectedError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    RefusalError,
    failure,
)
from assay.llm.account import Micros, Paid, RunAccount
from assay.llm.breaker import Breaker
from assay.llm.lineup import Lineup
from assay.llm.names import ModelName, base_url, on_this_machine, parse
from assay.llm.prices import Price, price, worst_case
from assay.llm.tracing import traced
from assay.llm.vendors import Request, Unsupported, Vendor, open_vendor
from assay.model.exchange import Method, Prompt, Reply, Role
from assay.model.spend import Caps, Reservation
from assay.ports import Bucket, Emit, Ledger, Rates, Stream
from assay.settings import RoleTuning, Settings

METHODS: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode")
LONGEST_PAUSE = 60.0  # a provider that wants to be left alone for longer is passed over
TURN_SECONDS = 300.0  # a call waits so long for the rate of its vendor


# Pauses between the attempts at one model, by what went wrong (requirement F-11). Other errors are not tried again.
PAUSES: dict[Category, tuple[float, ...]] = {
    Category.RATE_LIMIT: (10.0, 20.0, 40.0),
    Category.TIMEOUT: (1.0, 2.0),
    Category.API: (1.0, 2.0, 4.0),
}


class Limits(NamedTuple):
    """How much one call to a model may hold, write and take."""

    room: int  # tokens of a prompt
    answer: int  # the most tokens of an answer
    seconds: float
    at_once: int


# A model on this machine reads some 40 tokens a second on two cores, has a window of 4,000 or 8,000, and one slot.
NEARBY = Limits(room=3_000, answer=1_500, seconds=900.0, at_once=1)
HOSTED = Limits(room=24_000, answer=8_000, seconds=120.0, at_once=16)


class Provider:
    """Who is behind a model: its connection, its rate, and whether it has been failing. `rates` are those of all
    processes, where they share any."""

    def __init__(
        self, model: ModelName, settings: Settings, clock: Callable[[], float], rates: Rates | None = None
    ) -> None:
        self.breaker = Breaker(clock)
        self.limits = limits(model, settings)
        self.slots = asyncio.Semaphore(self.limits.at_once)
        self._a_minute = settings.llm.requests_per_minute.get(model.vendor)
        self._rate = AsyncLimiter(self._a_minute, 60) if self._a_minute else None
        self._rates = rates
        self._model = model
        self._settings = settings
        self._opening = asyncio.Lock()
        self._vendor: Vendor | None = None

    async def vendor(self) -> Vendor:
        """Imported and connected when first needed, in a thread: an SDK takes a second to import."""
        async with self._opening:
            if self._vendor is not None and getattr(self._vendor, "ended", False):
                await self._vendor.close()
                self._vendor = None
            if self._vendor is None:
                try:
                    self._vendor = await asyncio.to_thread(open_vendor, self._model, self._settings)
                except ConfigurationError as error:  # a file that cannot be loaded: this step goes on without it
                    raise ModelError(error.message, help=error.help) from error
        return self._vendor

    async def turn(self) -> None:
        """Until it may be asked once more; RateLimitError where that takes too long."""
        if self._a_minute is None or self._rate is None:
            return
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._rate.acquire()
                if self._rates is not None:
                    await self._rates.turn(f"llm:{self._model.vendor}", Bucket(self._a_minute, self._a_minute / 60))
        except TimeoutError:
            raise RateLimitError(
                f"{self._model.vendor} has too many calls waiting",
                help=f"Raise llm.requests_per_minute for {self._model.vendor} if your plan allows more.",
            ) from None

    async def close(self) -> None:
        if self._vendor is not None:
            await self._vendor.close()


def limits(model: ModelName, settings: Settings) -> Limits:
    usual = NEARBY if on_this_machine(model, settings) else HOSTED
    return usual._replace(
        room=settings.llm.prompt_tokens or usual.room, seconds=settings.llm.call_seconds or usual.seconds
    )


class Router:
    """What all runs of a process share: providers, their breakers and rates, and what each model can do."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        rates: Rates | None = None,
    ) -> None:
        self.settings = settings
        self.ledger = ledger
        self.sleep = sleep
        self.clock = clock
        self.all = asyncio.Semaphore(settings.llm.at_once)  # each vendor has its own bound below that
        self._rates = rates
        self._providers: dict[str, Provider] = {}
        self._prices: dict[ModelName, Price] = {}
        self._refused: dict[ModelName, set[Method]] = {}  # ways of asking for JSON a model's server does not know

    def models(self, run: str, lineup: Lineup, caps: Caps, emit: Emit, *, lineage: tuple[str, ...] = ()) -> "RunModels":
        account = RunAccount(run, self.ledger, caps, emit, self._micros, lineage=lineage)
        return RunModels(self, run, lineup, account, emit)

    def _micros(self, model: str) -> Micros:
        return price(parse(model), self.settings).micros

    async def price(self, model: ModelName) -> Price:
        """Looked up once, in a thread: the list of prices takes long to import."""
        if model not in self._prices:
            self._prices[model] = await asyncio.to_thread(price, model, self.settings)
        return self._prices[model]

    def provider(self, model: ModelName) -> Provider:
        # A .gguf file is a server of its own; of other vendors one connection serves all models.
        key = str(model) if model.vendor == "local" else f"{model.vendor} {base_url(model, self.settings)}"
        if key not in self._providers:
            self._providers[key] = Provider(model, self.settings, self.clock, self._rates)
        return self._providers[key]

    def methods(self, model: ModelName, avoid: tuple[Method, ...]) -> list[Method]:
        known = [method for method in METHODS if method not in self._refused.get(model, ())] or ["json_mode"]
        return [method for method in known if method not in avoid] or known[-1:]

    def refuses(self, model: ModelName, method: Method) -> None:
        self._refused.setdefault(model, set()).add(method)

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


class RunModels:
    """A ports.LanguageModel for one run."""

    def __init__(self, router: Router, run: str, lineup: Lineup, account: RunAccount, emit: Emit) -> None:
        self.account = account
        self._router = router
        self._run = run
        self._lineup = lineup
        self._emit = emit
        self._asking: dict[str, asyncio.Lock] = {}
        self._rejected: dict[ModelName, KeyRejectedError] = {}
        self._cheaper = False  # said once that the budget model has taken over

    def room(self, role: Role) -> int:
        """What the first model of the role can hold; the others are given the same prompt."""
        models = self._lineup.by_role[role]
        return limits(models[0], self._router.settings).room if models else NEARBY.room

    def words(self, role: Role) -> int:
        """Three words are about four tokens, and JSON takes its share."""
        models = self._lineup.by_role[role]
        return self._answer_tokens(models[0], role) // 2 if models else NEARBY.answer // 2

    async def ask(self, prompt: Prompt, stream: Stream | None = None) -> Reply:
        call = _call(self._run, prompt)
        # The same call twice at once is made once: the second finds the answer of the first.
        async with self._asking.setdefault(call, asyncio.Lock()):
            earlier = await self.account.earlier(call)
            for reply in earlier:
                if reply.finish != "refusal":
                    return reply
            return await self._through_tiers(call, prompt, stream, {reply.model for reply in earlier})

    async def _through_tiers(self, call: str, prompt: Prompt, stream: Stream | None, refused: set[str]) -> Reply:
        """`refused` are models that declined to answer before the run was resumed; they were paid for that."""
        models = [model for model in await self._candidates(prompt.role) if str(model) not in refused]
        last: ModelError | BudgetError | None = None
        for position, model in enumerate(models):
            if model in self._rejected:
                last = self._rejected[model]
                continue
            try:
                return await self._tries(call, model, prompt, stream, is_last=position + 1 == len(models))
            except ContextOverflowError:
                raise  # the reasoner has fewer or shorter sources to offer; another model would get the same
            except (ModelError, BudgetError) as error:
                last = error
                if isinstance(error, KeyRejectedError):
                    self._rejected[model] = error  # the key will not be better at the next step
                if position + 1 < len(models):
                    text = f"{model}: {error.message}. Going on with {models[position + 1]}."
                    await self._notice(prompt, text, **failure(error))
        if last is not None:
            raise last
        if refused:
            raise RefusalError(f"{', '.join(sorted(refused))} declined to answer")
        raise ModelError(f"no model may be the {prompt.role} here", help="Name one with llm.model or --model.")

    async def _candidates(self, role: Role) -> list[ModelName]:
        usual = list(self._lineup.by_role[role])
        budget = self._lineup.budget
        if budget is None or not await self.account.near(self._router.settings.budget.near):
            return usual
        if not self._cheaper:
            self._cheaper = True
            await self._emit("notice", "", {"text": f"The cap is near: {budget} is asked from here on."})
        return [budget, *(model for model in usual if model != budget)]

    async def _tries(
        self, call: str, model: ModelName, prompt: Prompt, stream: Stream | None, *, is_last: bool
    ) -> Reply:
        """One model, with pauses between its attempts. Pauses and timeouts count, not the wait for a free slot."""
        provider, settings = self._router.provider(model), self._router.settings
        left = settings.llm.step_seconds or 4 * provider.limits.seconds
        tried = dict.fromkeys(PAUSES, 0)
        while True:
            try:
                with provider.breaker.watched(model.vendor):
                    return await self._once(call, model, prompt, stream, is_last)
            except ModelError as error:
                left -= provider.limits.seconds if isinstance(error, ModelTimeoutError) else 0.0
                error.context["model"] = str(model)
                pause = _pause(error, tried, left)
                if pause is None:
                    raise
                await self._notice(prompt, f"{model}: {error.message}. Trying again in {pause:g} s.", **failure(error))
                await self._router.sleep(pause)
                left -= pause

    async def _once(self, call: str, model: ModelName, prompt: Prompt, stream: Stream | None, is_last: bool) -> Reply:
        """One attempt, in the first way of asking for JSON that the model's server knows."""
        provider = self._router.provider(model)
        *methods, last = self._router.methods(model, prompt.avoid)
        async with provider.slots:
            for method in methods:
                try:
                    return await self._sent(call, model, method, prompt, stream, is_last)
                except Unsupported:
                    self._router.refuses(model, method)
            return await self._sent(call, model, last, prompt, stream, is_last)

    async def _sent(
        self, call: str, model: ModelName, method: Method, prompt: Prompt, stream: Stream | None, is_last: bool
    ) -> Reply:
        provider, settings = self._router.provider(model), self._router.settings
        tuning: RoleTuning = getattr(settings.llm, prompt.role)
        request = Request(
            model=model.name, prompt=prompt, method=method, temperature=tuning.temperature,
            max_tokens=self._answer_tokens(model, prompt.role), seconds=provider.limits.seconds,
        )  # fmt: skip
        vendor = await provider.vendor()
        cost = await self._router.price(model)
        reservation = await self._reservation(call, model, request, cost)
        paid = Paid(reservation.model_copy(update={"last": is_last}), cost.micros)
        await provider.turn()
        async with self._router.all:
            # What a broken attempt has said is not part of the next one's answer: each has a listener of its own.
            reply = await self.account.pay(paid, lambda: traced(vendor, model, request, stream() if stream else None))
        if reply.finish == "refusal":  # an answer, and paid for, but nothing can be made of it
            raise RefusalError(f"{model} declined to answer", help="Ask in other words, or choose another model.")
        return reply

    async def _reservation(self, call: str, model: ModelName, request: Request, cost: Price) -> Reservation:
        tokens = worst_case(request)
        return Reservation(
            key=await self.account.attempt(call), run=self._run, step=request.prompt.step, task=request.prompt.task,
            provider=model.vendor, model=str(model), micros=cost.micros(tokens, request.max_tokens),
            tokens=tokens + request.max_tokens, research=request.prompt.purpose == "research",
            share=request.prompt.share, seconds=request.seconds + 60,
        )  # fmt: skip

    def _answer_tokens(self, model: ModelName, role: Role) -> int:
        tuning: RoleTuning = getattr(self._router.settings.llm, role)
        return min(tuning.max_tokens, limits(model, self._router.settings).answer)

    async def _notice(self, prompt: Prompt, text: str, **more: object) -> None:
        await self._emit("notice", "", {"text": text, "step": prompt.step, "task": prompt.task, **more})


def _pause(error: ModelError, tried: dict[Category, int], left: float) -> float | None:
    """Seconds until the next attempt at the same model, or None when there is none."""
    if not error.retryable or error.category not in PAUSES:
        return None
    pauses = PAUSES[error.category]
    number = tried[error.category]
    tried[error.category] += 1
    if number >= len(pauses):
        return None
    pause = pauses[number]
    if isinstance(error, RateLimitError) and error.retry_after is not None:
        pause = error.retry_after
    return pause if pause <= LONGEST_PAUSE and pause < left else None


def _call(run: str, prompt: Prompt) -> str:
    content = json.dumps(prompt.plain(), sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{run}/{prompt.step}/{prompt.task}/{digest}"
