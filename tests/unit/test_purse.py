"""Searches and pages are paid for like a model's calls: once, before they are made, and within the caps."""

import asyncio
from typing import Any

import pytest

from assay.errors import BudgetError, SourceError
from assay.llm.account import RunAccount
from assay.model.spend import Caps, Fee
from assay.testing import MemoryLedger

CAPS = Caps(micros=20_000, tokens=1000, requests=10)
FEE = Fee(step="search", provider="tavily", request="lake marrow", micros=8_000)
FREE = Fee(step="search", provider="wikipedia", request="lake marrow")


class Shop:
    def __init__(self, caps: Caps = CAPS, ledger: MemoryLedger | None = None) -> None:
        self.ledger = ledger or MemoryLedger()
        self.events: list[tuple[str, dict[str, object]]] = []
        self.asked = 0
        self.account = RunAccount("run", self.ledger, caps, self._emit)

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
    spent = await shop.account.spent()
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
    assert not await shop.account.exhausted()
    assert (await shop.account.spent()).usd == 0.016


@pytest.mark.requirement("W-15")
async def test_requests_have_a_cap_too() -> None:
    shop = Shop(Caps(micros=20_000, tokens=1000, requests=2, finish_share=0))
    for text in ("one", "two"):
        await shop.account.buy(FREE.model_copy(update={"request": text}), shop.request)
    with pytest.raises(BudgetError):
        await shop.account.buy(FREE, shop.request)
    assert await shop.account.exhausted()


async def test_who_could_not_be_asked_is_not_paid_unless_he_may_bill_it() -> None:
    shop = Shop()
    with pytest.raises(SourceError):
        await shop.account.buy(FEE, shop.failing(SourceError("tavily answered 500", retryable=True)))
    assert (await shop.account.spent()).usd == 0
    with pytest.raises(SourceError):
        await shop.account.buy(FEE, shop.failing(SourceError("tavily did not answer", retryable=True, billed=True)))
    spent = await shop.account.spent()
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
    spent = await heir.account.spent()
    assert (spent.usd, spent.unconfirmed_usd) == (0.008, 0)
