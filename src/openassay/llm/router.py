"""The model router: which model a step asks, and what happens when it does not answer.

A role's models are asked in order. Each has a few attempts with growing pauses, as the kind of error allows; a provider
that keeps failing is not asked for a while; near the cap the budget model comes first. All retries are here: the
vendors' own are off.
"""

import asyncio
import hashlib
import json
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiolimiter import AsyncLimiter

from openassay.errors import (
    ApiKeyError,
    BudgetError,
    Category,
    ConfigurationError,
    ContextOverflowError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    RefusalError,
    failure_details,
)
from openassay.llm.budget import Micros, RunAccount
from openassay.llm.names import LOCAL_LIMITS, ModelName, base_url, call_limits, parse_name
from openassay.llm.prices import find_price, max_prompt_tokens
from openassay.llm.selection import ModelSelection
from openassay.llm.tracing import ask_vendor
from openassay.llm.vendors import ModelRequest, ParameterError, Vendor, open_vendor
from openassay.models.spend import Caps, Method, ModelPrompt, ModelReply, ModelRole, Reservation
from openassay.protocols import Emit, Ledger, RateLimiter, Stream, TokenBucket
from openassay.settings import RoleTuning, Settings

BREAKER_FAILURES = 5  # in a row, after which a provider is not asked
BREAKER_SECONDS = 30.0  # before one call may try again
METHODS: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode")
MAX_PAUSE = 60.0  # a provider that asks for a longer pause is passed over
TURN_SECONDS = 300.0  # a call waits so long for the rate of its vendor
# Pauses between the attempts at one model, by what went wrong (requirement F-11). Other errors are not retried.
PAUSES: dict[Category, tuple[float, ...]] = {
    Category.RATE_LIMIT: (10.0, 20.0, 40.0),
    Category.TIMEOUT: (1.0, 2.0),
    Category.API: (1.0, 2.0, 4.0),
}


class CircuitBreaker:
    """Lets every call through while closed, none while open; after a while one call may try, and decides."""

    def __init__(
        self, clock: Callable[[], float], failures: int = BREAKER_FAILURES, seconds: float = BREAKER_SECONDS
    ) -> None:
        self._clock = clock
        self._max_failures = failures
        self._seconds = seconds
        self._failures = 0
        self._opened: float | None = None
        self._trial: object | None = None

    @contextmanager
    def guard(self, provider: str) -> Iterator[None]:
        """Guard a call to the provider; it is refused while the breaker is open."""
        trial = object()
        if self._opened is not None:
            if self._trial is not None or self._clock() - self._opened < self._seconds:
                raise ModelError(f"{provider} is failing; it will be retried later")
            self._trial = trial
        try:
            yield
            self._close()
        except ModelError as error:
            # A provider that answers, if only with a rate limit or a refusal, has not failed.
            if not isinstance(error, RateLimitError) and not error.retryable:
                self._close()
            elif not isinstance(error, RateLimitError):
                self._failures += 1
                if self._opened is not None or self._failures >= self._max_failures:
                    self._opened = self._clock()
            raise
        finally:
            if self._trial is trial:
                self._trial = None

    def _close(self) -> None:
        self._failures, self._opened = 0, None


class ModelProvider:
    """The provider of a model: its connection, its rate, and whether it has been failing.

    `rates` are shared by all processes, where there are any."""

    def __init__(
        self, model: ModelName, settings: Settings, clock: Callable[[], float], rates: RateLimiter | None = None
    ) -> None:
        self.breaker = CircuitBreaker(clock)
        self.limits = call_limits(model, settings)
        self.slots = asyncio.Semaphore(self.limits.at_once)
        self._per_minute = settings.llm.requests_per_minute.get(model.vendor)
        self._rate = AsyncLimiter(self._per_minute, 60) if self._per_minute else None
        self._rates = rates
        self._model = model
        self._settings = settings
        self._opening = asyncio.Lock()
        self._vendor: Vendor | None = None

    async def get_vendor(self) -> Vendor:
        """Return the vendor, imported and connected when first needed, in a thread: an SDK takes a second to import."""
        async with self._opening:
            if self._vendor is not None and getattr(self._vendor, "ended", False):
                await self._vendor.close()
                self._vendor = None
            if self._vendor is None:
                try:
                    self._vendor = await asyncio.to_thread(open_vendor, self._model, self._settings)
                except ConfigurationError as error:  # a file that cannot be loaded: this step continues without it
                    raise ModelError(error.message, help=error.help) from error
        return self._vendor

    async def wait_for_rate(self) -> None:
        """Wait until the vendor may be asked once more; RateLimitError where that takes too long."""
        if self._per_minute is None or self._rate is None:
            return
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._rate.acquire()
                if self._rates is not None:
                    await self._rates.acquire(
                        f"llm:{self._model.vendor}", TokenBucket(self._per_minute, self._per_minute / 60)
                    )
        except TimeoutError:
            raise RateLimitError(
                f"{self._model.vendor} has too many queued calls",
                help=f"Raise llm.requests_per_minute for {self._model.vendor} if your plan allows more.",
            ) from None

    async def close(self) -> None:
        if self._vendor is not None:
            await self._vendor.close()


class ModelRouter:
    """Shares providers, their breakers and rates, and what each model can do among the runs of a process."""

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        rates: RateLimiter | None = None,
    ) -> None:
        self.settings = settings
        self.ledger = ledger
        self.sleep = sleep
        self.clock = clock
        self.all = asyncio.Semaphore(settings.llm.at_once)  # each vendor has its own bound below that
        self._rates = rates
        self._providers: dict[str, ModelProvider] = {}
        self._prices: dict[ModelName, Micros] = {}
        # Ways of asking for JSON that a model's server does not know.
        self.refused: defaultdict[ModelName, set[Method]] = defaultdict(set)

    def models_for_run(
        self, run: str, selection: ModelSelection, caps: Caps, emit: Emit, *, lineage: tuple[str, ...] = ()
    ) -> "RunModels":
        account = RunAccount(
            run, self.ledger, caps, emit, lambda name: find_price(parse_name(name), self.settings), lineage=lineage
        )
        return RunModels(self, run, selection, account, emit)

    async def get_price(self, model: ModelName) -> Micros:
        """Return the price, looked up once, in a thread: the list of prices takes long to import."""
        if model not in self._prices:
            self._prices[model] = await asyncio.to_thread(find_price, model, self.settings)
        return self._prices[model]

    def get_provider(self, model: ModelName) -> ModelProvider:
        # A .gguf file is a server of its own; of other vendors one connection serves all models.
        key = str(model) if model.vendor == "local" else f"{model.vendor} {base_url(model, self.settings)}"
        if key not in self._providers:
            self._providers[key] = ModelProvider(model, self.settings, self.clock, self._rates)
        return self._providers[key]

    async def close(self) -> None:
        for provider in self._providers.values():
            await provider.close()


class RunModels:
    """A `protocols.LanguageModel` for one run."""

    def __init__(
        self, router: ModelRouter, run: str, selection: ModelSelection, account: RunAccount, emit: Emit
    ) -> None:
        self.account = account
        self._router = router
        self._run = run
        self._selection = selection
        self._emit = emit
        self._locks: dict[str, asyncio.Lock] = {}
        self._rejected: dict[ModelName, ApiKeyError] = {}
        self._told_cheaper = False  # whether a notice has said that the budget model is used

    def max_prompt_tokens(self, role: ModelRole) -> int:
        """Return what the first model of the role can hold; the others get the same prompt."""
        models = self._selection.by_role[role]
        return call_limits(models[0], self._router.settings).prompt_tokens if models else LOCAL_LIMITS.prompt_tokens

    def max_words(self, role: ModelRole) -> int:
        """Return the length of an answer in words: three words are about four tokens, and JSON takes its share."""
        models = self._selection.by_role[role]
        return self._answer_tokens(models[0], role) // 2 if models else LOCAL_LIMITS.answer_tokens // 2

    async def ask(self, prompt: ModelPrompt, stream: Stream | None = None) -> ModelReply:
        """Ask the models of the role in turn, save those that declined before the run was resumed."""
        content = json.dumps(prompt.plain(), sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        call = f"{self._run}/{prompt.step}/{prompt.task}/{digest}"
        # The same call twice at once is made once: the second finds the answer of the first.
        async with self._locks.setdefault(call, asyncio.Lock()):
            earlier = await self.account.load_replies(call)
            for reply in earlier:
                if reply.finish != "refusal":
                    return reply
            refused = {reply.model for reply in earlier}
            models = [model for model in await self._candidates(prompt.role) if str(model) not in refused]
            last: ModelError | BudgetError | None = None
            for position, model in enumerate(models):
                if model in self._rejected:
                    last = self._rejected[model]
                    continue
                is_last = position + 1 == len(models)
                try:
                    return await self._ask_with_retries(call, model, prompt, stream, is_last=is_last)
                except ContextOverflowError:
                    raise  # the reasoner has fewer or shorter sources to offer; another model would get the same
                except (ModelError, BudgetError) as error:
                    last = error
                    if isinstance(error, ApiKeyError):
                        self._rejected[model] = error  # the key will not be better at the next step
                    if not is_last:
                        text = f"{model}: {error.message}. Continuing with {models[position + 1]}."
                        await self._emit_notice(prompt, text, **failure_details(error))
            if last is not None:
                raise last
            if refused:
                raise RefusalError(f"{', '.join(sorted(refused))} declined to answer")
            raise ModelError(f"no model is available as {prompt.role}", help="Name one with llm.model or --model.")

    async def _candidates(self, role: ModelRole) -> list[ModelName]:
        usual = list(self._selection.by_role[role])
        budget = self._selection.budget
        if budget is None or not await self.account.is_near_cap(self._router.settings.budget.near):
            return usual
        if not self._told_cheaper:
            self._told_cheaper = True
            await self._emit("notice", "", {"text": f"The cap is near: {budget} is used from here on."})
        return [budget, *(model for model in usual if model != budget)]

    async def _ask_with_retries(
        self, call: str, model: ModelName, prompt: ModelPrompt, stream: Stream | None, *, is_last: bool
    ) -> ModelReply:
        """Ask one model, with pauses between attempts. Pauses and timeouts count, not the wait for a free slot."""
        provider, settings = self._router.get_provider(model), self._router.settings
        left = settings.llm.step_seconds or 4 * provider.limits.seconds
        tried: Counter[Category] = Counter()
        while True:
            try:
                with provider.breaker.guard(model.vendor):
                    return await self._ask_once(call, model, prompt, stream, is_last)
            except ModelError as error:
                left -= provider.limits.seconds if isinstance(error, ModelTimeoutError) else 0.0
                error.context["model"] = str(model)
                pauses = PAUSES.get(error.category, ()) if error.retryable else ()
                number = tried[error.category]
                tried[error.category] += 1
                if number >= len(pauses):
                    raise
                wanted = error.retry_after if isinstance(error, RateLimitError) else None
                pause = pauses[number] if wanted is None else wanted
                if pause > MAX_PAUSE or pause >= left:
                    raise
                await self._emit_notice(
                    prompt, f"{model}: {error.message}. Retrying in {pause:g} s.", **failure_details(error)
                )
                await self._router.sleep(pause)
                left -= pause

    async def _ask_once(
        self, call: str, model: ModelName, prompt: ModelPrompt, stream: Stream | None, is_last: bool
    ) -> ModelReply:
        """Make one attempt, in the first way of asking for JSON that the model's server knows."""
        provider = self._router.get_provider(model)
        refused = self._router.refused[model]
        known = [method for method in METHODS if method not in refused] or ["json_mode"]
        *methods, last = [method for method in known if method not in prompt.avoid] or known[-1:]
        async with provider.slots:
            for method in methods:
                try:
                    return await self._send(call, model, method, prompt, stream, is_last)
                except ParameterError:
                    refused.add(method)
            return await self._send(call, model, last, prompt, stream, is_last)

    async def _send(
        self, call: str, model: ModelName, method: Method, prompt: ModelPrompt, stream: Stream | None, is_last: bool
    ) -> ModelReply:
        provider, settings = self._router.get_provider(model), self._router.settings
        tuning: RoleTuning = getattr(settings.llm, prompt.role)
        request = ModelRequest(
            model=model.name,
            prompt=prompt,
            method=method,
            temperature=tuning.temperature,
            max_tokens=self._answer_tokens(model, prompt.role),
            seconds=provider.limits.seconds,
        )
        vendor = await provider.get_vendor()
        price = await self._router.get_price(model)
        tokens = max_prompt_tokens(request)
        reservation = Reservation(
            key=await self.account.next_attempt_key(call),
            run=self._run,
            step=prompt.step,
            task=prompt.task,
            provider=model.vendor,
            model=str(model),
            micros=price(tokens, request.max_tokens),
            tokens=tokens + request.max_tokens,
            research=prompt.purpose == "research",
            share=prompt.share,
            seconds=request.seconds + 60,
            last=is_last,
        )
        await provider.wait_for_rate()
        async with self._router.all:
            # The text of a broken attempt is not part of the next one's answer: each has a listener of its own.
            reply = await self.account.pay(
                reservation, price, lambda: ask_vendor(vendor, model, request, stream() if stream else None)
            )
        if reply.finish == "refusal":  # an answer, and paid for, but nothing can be made of it
            raise RefusalError(f"{model} declined to answer", help="Rephrase the question, or choose another model.")
        return reply

    def _answer_tokens(self, model: ModelName, role: ModelRole) -> int:
        tuning: RoleTuning = getattr(self._router.settings.llm, role)
        return min(tuning.max_tokens, call_limits(model, self._router.settings).answer_tokens)

    async def _emit_notice(self, prompt: ModelPrompt, text: str, **more: object) -> None:
        await self._emit("notice", "", {"text": text, "step": prompt.step, "task": prompt.task, **more})
