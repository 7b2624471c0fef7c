"""Searches and pages are paid for like a model's calls: once, before they are made, and within the caps."""

import asyncio
from typing import Any

import pytest

from openassay.errors import BudgetError, SourceError, StorageError
from openassay.llm import budget as accounts
from openassay.llm.budget import RunAccount
from openassay.models.spend import Caps, Fee, ModelReply, Reservation, TokenUsage
from tests.fakes.ledger import MemoryLedger

CAPS = Caps(micros=20_000, tokens=1000, requests=10)
FEE = Fee(step="search", provider="tavily", request="lake marrow", micros=8_000)
FREE = Fee(step="search", provider="wikipedia", request="lake marrow")


class Shop:
    def __init__(
        self,
        caps: Caps = CAPS,
        ledger: MemoryLedger | None = None,
        run: str = "run",
        lineage: tuple[str, ...] = (),
    ) -> None:
        self.ledger = ledger or MemoryLedger()
        self.events: list[tuple[str, dict[str, object]]] = []
        self.asked = 0
        self.account = RunAccount(run, self.ledger, caps, self._emit, lineage=lineage)

    async def _emit(self, kind: Any, stage: str, data: dict[str, object]) -> None:
        self.events.append((kind, data))

    async def request(self) -> str:
        self.asked += 1
        await asyncio.sleep(0.01)
        return '{"results": []}'

    def failing(self, error: BaseException) -> Any:
        async def request() -> str:
            raise error

        return request


@pytest.mark.requirement("W-15", "X-06")
async def test_a_search_is_paid_once_however_many_want_it_at_once_or_later() -> None:
    shop = Shop()
    answers = await asyncio.gather(*(shop.account.buy(FEE, shop.request) for _ in range(3)))
    later = await Shop(ledger=shop.ledger).account.buy(FEE, shop.request)

    assert {*answers, later} == {'{"results": []}'}
    assert shop.asked == 1
    spent = await shop.account.get_spend()
    assert (spent.usd, spent.requests) == (0.008, 1)
    assert spent.by_model["tavily:search"].calls == 1
    assert [(kind, data["model"]) for kind, data in shop.events] == [("spend", "tavily")]


@pytest.mark.requirement("W-15")
async def test_the_cap_holds_and_those_who_cost_nothing_are_still_asked() -> None:
    shop = Shop()
    for text in ("one", "two"):
        await shop.account.buy(FEE.model_copy(update={"request": text}), shop.request)
    with pytest.raises(BudgetError):
        await shop.account.buy(FEE.model_copy(update={"request": "three"}), shop.request)

    assert await shop.account.buy(FREE, shop.request)
    assert not await shop.account.is_exhausted()
    assert (await shop.account.get_spend()).usd == 0.016


@pytest.mark.requirement("W-15")
async def test_requests_have_a_cap_too() -> None:
    shop = Shop(Caps(micros=20_000, tokens=1000, requests=2, finish_share=0))
    for text in ("one", "two"):
        await shop.account.buy(FREE.model_copy(update={"request": text}), shop.request)
    with pytest.raises(BudgetError):
        await shop.account.buy(FREE, shop.request)
    assert await shop.account.is_exhausted()


async def test_who_could_not_be_asked_is_not_paid_unless_he_may_bill_it() -> None:
    shop = Shop()
    with pytest.raises(SourceError):
        await shop.account.buy(FEE, shop.failing(SourceError("tavily answered 500", retryable=True)))
    assert (await shop.account.get_spend()).usd == 0
    with pytest.raises(SourceError):
        await shop.account.buy(FEE, shop.failing(SourceError("tavily did not answer", retryable=True, billed=True)))
    spent = await shop.account.get_spend()
    assert (spent.usd, spent.unconfirmed_usd) == (0.008, 0.008)
    assert await shop.account.buy(FEE, shop.request)  # and may be asked again


@pytest.mark.requirement("W-16")
async def test_a_process_that_died_between_answer_and_booking_is_booked_and_answered_by_the_next() -> None:
    shop = Shop()

    class Died(BaseException):
        pass

    async def dies(*_: object, **__: object) -> None:
        raise Died

    shop.ledger.settle = dies  # type: ignore[method-assign]
    with pytest.raises(Died):
        await shop.account.buy(FEE, shop.request)
    del shop.ledger.settle

    heir = Shop(ledger=shop.ledger)
    heir.account._price = lambda model: pytest.fail("no model has this price")  # a model takes part as well

    assert await heir.account.buy(FEE, heir.request) == '{"results": []}'
    assert heir.asked == 0
    spent = await heir.account.get_spend()
    assert (spent.usd, spent.unconfirmed_usd) == (0.008, 0)


@pytest.mark.requirement("W-16", "X-06")
async def test_what_an_earlier_run_bought_is_not_bought_again() -> None:
    first = Shop()
    await first.account.buy(FEE, first.request)
    second = Shop(ledger=first.ledger, run="run-2", lineage=("run",))
    third = Shop(ledger=first.ledger, run="run-3", lineage=("run-2", "run"))
    for heir in (second, third):
        assert await heir.account.buy(FEE, heir.request) == '{"results": []}'
        assert heir.asked == 0
        assert heir.events == []
        assert (await heir.account.get_spend()).requests == 0
    stranger = Shop(ledger=first.ledger, run="run-4")
    await stranger.account.buy(FEE, stranger.request)
    assert stranger.asked == 1


@pytest.mark.requirement("W-16")
async def test_what_an_earlier_run_failed_to_buy_is_bought() -> None:
    first = Shop()
    with pytest.raises(SourceError):
        await first.account.buy(FEE, first.failing(SourceError("tavily answered 500", retryable=True)))
    second = Shop(ledger=first.ledger, run="run-2", lineage=("run",))
    await second.account.buy(FEE, second.request)
    assert second.asked == 1
    assert (await second.account.get_spend()).usd == 0.008


class Busy(MemoryLedger):
    """Cannot be written for a while when an answer has arrived."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    async def store_answer(self, key: str, answer: str) -> None:
        if self.times > 0:
            self.times -= 1
            raise StorageError("the database is locked", help="Wait.", retryable=True)
        await super().store_answer(key, answer)


@pytest.mark.requirement("W-16")
async def test_an_answer_that_cannot_be_stored_at_once_is_stored_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "STORE_PAUSES", (0.0,) * 5)
    shop = Shop(ledger=Busy(5))
    assert await shop.account.buy(FEE, shop.request) == '{"results": []}'
    heir = Shop(ledger=shop.ledger)
    assert await heir.account.buy(FEE, heir.request) == '{"results": []}'
    spent = await heir.account.get_spend()
    assert (shop.asked, heir.asked, spent.usd, spent.unconfirmed_usd) == (1, 0, 0.008, 0)


@pytest.mark.requirement("W-16")
async def test_an_answer_that_cannot_be_stored_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wanted it fails and is tried again: a page, and a model's words."""
    monkeypatch.setattr(accounts, "STORE_PAUSES", ())
    shop = Shop(ledger=Busy(2))
    reply = ModelReply(text="16.3 metres", usage=TokenUsage(prompt_tokens=5, completion_tokens=5), model="m")
    said = []

    async def speak() -> ModelReply:
        said.append(reply)
        return reply

    async def ask() -> ModelReply:
        for before in await shop.account.load_replies("run read"):
            return before
        key = await shop.account.next_attempt_key("run read")
        wanted = Reservation(key=key, run="run", step="read", provider="p", model="p:m", micros=90, tokens=50)
        return await shop.account.pay(wanted, lambda prompt, completion: 10, speak)

    for buy in (lambda: shop.account.buy(FEE, shop.request), ask):
        with pytest.raises(StorageError):
            await buy()
        await buy()
    assert (shop.asked, len(said)) == (1, 1)
    assert await ask() == reply
