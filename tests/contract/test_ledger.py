"""What every ledger does; above all, that booked and reserved together never pass a cap."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openassay.errors import BudgetError, IntegrityError, StorageError
from openassay.models.spend import MICRO, Caps, Charge, LedgerCall, ModelSpend, Reservation, Spend
from openassay.storage.ledger import SqlLedger, format_dollars
from openassay.storage.sealed_rows import Rows
from openassay.storage.sqlite import SqliteDatabase
from tests.fakes.ledger import MemoryLedger

START = datetime(2026, 1, 1, tzinfo=UTC)
AnyLedger = SqlLedger | MemoryLedger
PLENTY = Caps(micros=2_000_000, tokens=1_000_000, requests=1_000, finish_share=0.15)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request: pytest.FixtureRequest, clock: Clock) -> AnyLedger:
    if request.param == "memory":
        return MemoryLedger(now=clock)
    return SqlLedger(Rows(request.getfixturevalue(f"{request.param}_database")), now=clock)


def call(key: str = "k", **changes: Any) -> Reservation:
    usual = Reservation(
        key=key, run="r", step="read", task="1", provider="openai", model="gpt-4o", micros=1000, tokens=100, seconds=60
    )
    return usual.model_copy(update=changes)


def charge(micros: int | None = 400, prompt: int = 30, completion: int = 10, seconds: float = 1.5) -> Charge:
    return Charge(micros=micros, prompt_tokens=prompt, completion_tokens=completion, seconds=seconds)


async def made(ledger: AnyLedger, wanted: Reservation, cost: Charge | None = None, answer: str = "{}") -> None:
    """A call from beginning to end."""
    await ledger.reserve(wanted)
    await ledger.record_send(wanted.key)
    await ledger.store_answer(wanted.key, answer)
    await ledger.settle(wanted.key, cost or charge())


async def line(ledger: AnyLedger, run: str = "r") -> LedgerCall:
    return (await ledger.calls(run))[-1]


async def states(ledger: AnyLedger) -> list[str]:
    return [call.state for call in await ledger.calls("r")]


async def refusal(ledger: AnyLedger, wanted: Reservation) -> BudgetError:
    with pytest.raises(BudgetError) as caught:
        await ledger.reserve(wanted)
    return caught.value


async def left(ledger: AnyLedger, **changes: Any) -> int:
    """The most micro-dollars that one call may still reserve."""
    low, high = 0, 10 * PLENTY.micros
    while low < high:
        middle = (low + high + 1) // 2
        try:
            await ledger.reserve(call("probe", micros=middle, tokens=0, research=False, **changes))
        except BudgetError:
            high = middle - 1
        else:
            await ledger.release("probe", "only asking")
            low = middle
    return low


# One call ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("X-06")
async def test_a_call_from_beginning_to_end(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    assert await ledger.get_spend("r") == Spend(), "what is reserved is not spent"
    assert (await line(ledger)).state == "reserved"
    await ledger.record_send("k")
    assert (await ledger.get_spend("r")).requests == 1
    assert await ledger.get_answer("k") is None
    await ledger.store_answer("k", '{"raw": "\N{FIRE}\x00"}')
    assert await ledger.get_answer("k") == '{"raw": "\N{FIRE}\x00"}'
    await ledger.settle("k", charge())
    assert await ledger.get_answer("k") == '{"raw": "\N{FIRE}\x00"}'
    assert await ledger.calls("r") == [
        LedgerCall(
            key="k",
            run="r",
            step="read",
            task="1",
            provider="openai",
            model="gpt-4o",
            state="settled",
            micros=400,
            prompt_tokens=30,
            completion_tokens=10,
            seconds=1.5,
        )
    ]
    usual = ModelSpend(calls=1, prompt_tokens=30, completion_tokens=10, usd=0.0004, seconds=1.5)
    assert await ledger.get_spend("r") == Spend(usd=0.0004, tokens=40, requests=1, by_model={"openai:gpt-4o": usual})


@pytest.mark.requirement("X-06")
@pytest.mark.parametrize(
    "cost",
    [charge(None), charge(1001), charge(400, 100, 1), charge(0, 10**30, 0), charge(10**30)],
    ids=["missing", "too much", "too many tokens", "absurd tokens", "absurd cost"],
)
async def test_usage_that_is_missing_or_absurd_is_booked_at_its_worst_case(ledger: AnyLedger, cost: Charge) -> None:
    await ledger.open("r", PLENTY)
    await made(ledger, call(), cost)
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.tokens) == (0.001, 0.001, 100)
    assert (await line(ledger)).confirmed is False


async def test_a_charge_of_exactly_the_worst_case_is_believed(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await made(ledger, call(), charge(1000, 60, 40))
    assert (await line(ledger)).confirmed
    assert (await ledger.get_spend("r")).unconfirmed_usd == 0


async def test_a_billed_failure_is_booked_and_may_be_tried_again(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    await ledger.record_send("k")
    await ledger.settle("k", charge())
    assert await ledger.get_answer("k") is None
    assert "without an answer" in (await line(ledger)).error
    await made(ledger, call())
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.requests) == (0.0008, 2)
    assert (spent.by_model["openai:gpt-4o"].calls, spent.by_model["openai:gpt-4o"].failed) == (2, 1)


async def test_an_unbilled_failure_costs_a_request_only_if_it_was_sent(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    await ledger.release("k", "changed its mind")
    assert await ledger.get_spend("r") == Spend()
    await ledger.reserve(call())
    await ledger.record_send("k")
    await ledger.release("k", "429")
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.tokens, spent.requests) == (0, 0, 1)
    assert spent.by_model == {"openai:gpt-4o": ModelSpend(calls=1, failed=1)}
    assert [(call.state, call.micros, call.error) for call in await ledger.calls("r")] == [
        ("void", 0, "changed its mind"),
        ("void", 0, "429"),
    ]
    assert await left(ledger) == PLENTY.micros


async def test_a_released_call_is_reserved_anew(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"requests": 2}))
    await ledger.reserve(call(research=False))
    await ledger.record_send("k")
    await ledger.release("k", "503")
    await made(ledger, call(research=False))
    assert (await ledger.get_spend("r")).requests == 2
    assert (await refusal(ledger, call("other", research=False))).context["cap"] == "requests"


@pytest.mark.parametrize("steps", [["reserve"], ["reserve", "sent"], ["reserve", "sent", "answered"]])
async def test_the_same_call_twice_at_once_is_a_fault(ledger: AnyLedger, steps: list[str]) -> None:
    await ledger.open("r", PLENTY)
    await advance(ledger, steps)
    with pytest.raises(StorageError) as caught:
        await ledger.reserve(call())
    assert caught.value.help
    assert len(await ledger.calls("r")) == 1


async def test_a_settled_call_is_not_paid_again(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await made(ledger, call(), answer="")
    with pytest.raises(StorageError, match="settled"):
        await ledger.reserve(call())
    assert await ledger.get_answer("k") == "", "an empty answer is an answer"
    assert (await ledger.get_spend("r")).requests == 1


async def advance(ledger: AnyLedger, steps: list[str]) -> None:
    doing: dict[str, Callable[[], Any]] = {
        "reserve": lambda: ledger.reserve(call()),
        "sent": lambda: ledger.record_send("k"),
        "answered": lambda: ledger.store_answer("k", "{}"),
        "settle": lambda: ledger.settle("k", charge()),
        "release": lambda: ledger.release("k", "503"),
    }
    for step in steps:
        await doing[step]()


@pytest.mark.slow
@pytest.mark.parametrize(
    "steps",
    [
        ["sent"],
        ["answered"],
        ["settle"],
        ["release"],
        ["reserve", "answered"],
        ["reserve", "settle"],
        ["reserve", "sent", "sent"],
        ["reserve", "sent", "answered", "release"],
        ["reserve", "sent", "settle", "settle"],
        ["reserve", "sent", "settle", "release"],
        ["reserve", "release", "sent"],
        ["reserve", "sent", "release", "settle"],
    ],
    ids=" ".join,
)
async def test_a_step_out_of_turn_is_refused(ledger: AnyLedger, steps: list[str]) -> None:
    await ledger.open("r", PLENTY)
    await advance(ledger, steps[:-1])
    before = await ledger.calls("r")
    with pytest.raises(StorageError, match="cannot be"):
        await advance(ledger, steps[-1:])
    assert await ledger.calls("r") == before


async def test_a_run_without_an_account_may_not_spend_and_has_not(ledger: AnyLedger) -> None:
    with pytest.raises(StorageError, match="no account") as caught:
        await ledger.reserve(call())
    assert caught.value.help
    assert await ledger.get_spend("r") == Spend()
    assert await ledger.calls("r") == []
    assert await ledger.get_answer("k") is None
    assert await ledger.recover("r", all=True) == 0
    assert not await ledger.has_refusals("r")


# Caps -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("X-06", "W-15")
@pytest.mark.parametrize(
    ("caps", "words", "help"),
    [
        ({"micros": 1999}, "could cost $0.001 and only $0.000999 of the $0.001999 are left", "--budget"),
        ({"tokens": 199}, "could use 100 tokens and only 99 of the 199 are left", "OPENASSAY_BUDGET__TOKENS"),
        ({"requests": 1}, "all of the 1 requests have been made", "OPENASSAY_BUDGET__REQUESTS"),
    ],
    ids=["usd", "tokens", "requests"],
)
async def test_each_cap_holds_to_the_last_unit(ledger: AnyLedger, caps: dict[str, int], words: str, help: str) -> None:
    await ledger.open("r", PLENTY.model_copy(update=caps))
    await ledger.reserve(call("a", research=False))
    refused = await refusal(ledger, call("b", research=False))
    assert words in refused.message
    assert help in refused.help
    assert refused.context["run"] == "r"
    assert not await ledger.has_refusals("r"), "research was not refused"
    name, amount = next(iter(caps.items()))
    await ledger.open("r", PLENTY.model_copy(update={name: amount + 1}))
    await ledger.reserve(call("b", research=False))


@pytest.mark.slow
@pytest.mark.requirement("X-06")
@pytest.mark.parametrize(
    ("caps", "cap"), [({"micros": 10_000}, "usd"), ({"tokens": 1_000}, "tokens"), ({"requests": 10}, "requests")]
)
async def test_a_share_is_kept_for_finishing(ledger: AnyLedger, caps: dict[str, int], cap: str) -> None:
    await ledger.open("r", PLENTY.model_copy(update=caps))
    for number in range(8):
        await ledger.reserve(call(str(number)))
        await ledger.record_send(str(number))
        await ledger.settle(str(number), Charge())
        assert not await ledger.has_refusals("r")
    refused = await refusal(ledger, call("8"))
    assert "for research" in refused.message
    assert refused.context["cap"] == cap
    assert await ledger.has_refusals("r")
    for number in (8, 9):
        await ledger.reserve(call(str(number), research=False))
    await refusal(ledger, call("10", research=False))


@pytest.mark.requirement("X-06")
async def test_what_finishing_has_used_is_not_there_for_research(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 10_000}))
    await ledger.reserve(call("a", micros=8_000, research=False))
    await refusal(ledger, call("b", micros=501))
    await ledger.reserve(call("b", micros=500))


@pytest.mark.slow
@pytest.mark.parametrize(("share", "cap", "research"), [(0.9, 10, 1), (0.3, 90, 63), (0.07, 500, 465)])
async def test_shares_are_exact(ledger: AnyLedger, share: float, cap: int, research: int) -> None:
    """10 * (1 - 0.9) is 0.9999999999999998 in floats."""
    await ledger.open("r", Caps(micros=cap, tokens=0, requests=1_000, finish_share=share))
    await refusal(ledger, call(micros=research + 1, tokens=0))
    await ledger.reserve(call(micros=research, tokens=0))


@pytest.mark.requirement("X-06", "L-02")
async def test_a_task_that_has_used_its_share_makes_no_further_research_call(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 10_000}))
    await ledger.reserve(call("a", share=0.2))
    await ledger.reserve(call("b", share=0.2, step="other step"))  # 1,000 of 1,700 were used
    refused = await refusal(ledger, call("c", share=0.2))
    assert "task 1 has used its share of the usd" in refused.message
    assert not refused.retryable
    assert not await ledger.has_refusals("r"), "there is money for other tasks"
    await ledger.reserve(call("d", share=0.2, task="2"))
    await ledger.reserve(call("e", share=0.2, task=""))
    await ledger.reserve(call("f", share=1.0))
    await ledger.reserve(call("g", share=0.2, research=False))


async def test_finishing_does_not_use_up_the_share_of_a_task(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 10_000}))
    await ledger.reserve(call("a", micros=3_000, research=False))
    await ledger.reserve(call("b", micros=2_550, share=0.3))


async def test_a_share_of_the_tokens_is_a_share_too(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"tokens": 1_000}))
    await ledger.reserve(call("a", share=0.1))
    assert (await refusal(ledger, call("b", share=0.1))).context["cap"] == "tokens"
    await ledger.release("a", "503")
    await ledger.reserve(call("b", share=0.1))


@pytest.mark.requirement("X-06")
async def test_a_call_that_only_has_to_wait_for_others_is_told_so(ledger: AnyLedger) -> None:
    """Worst cases of calls under way are not spent money: research is not at its end."""
    await ledger.open("r", Caps(micros=1_500, tokens=10_000, requests=10, finish_share=0))
    await ledger.reserve(call("a"))
    waits = await refusal(ledger, call("b"))
    assert waits.retryable
    assert not await ledger.has_refusals("r")
    await ledger.record_send("a")
    await ledger.settle("a", Charge(micros=400, prompt_tokens=1, completion_tokens=1))
    await ledger.reserve(call("b"))
    await ledger.record_send("b")
    await ledger.settle("b", Charge())
    ends = await refusal(ledger, call("c"))
    assert not ends.retryable
    assert await ledger.has_refusals("r")


async def test_settling_gives_back_what_was_not_used(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 1_400}))
    await ledger.reserve(call("a", research=False))
    await refusal(ledger, call("b", research=False))
    await ledger.record_send("a")
    await ledger.settle("a", charge(400))
    await ledger.reserve(call("b", research=False))


async def test_a_free_call_is_made_whatever_is_left(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await made(ledger, call("a"))
    await ledger.open("r", PLENTY.model_copy(update={"micros": 0}))
    await ledger.reserve(call("b", micros=0))
    await refusal(ledger, call("c", micros=1))


async def test_opening_again_changes_the_caps_and_keeps_what_was_spent(ledger: AnyLedger) -> None:
    small = Caps(micros=1_000, tokens=1_000, requests=10, finish_share=0)
    await ledger.open("r", small)
    await made(ledger, call("a"))
    await refusal(ledger, call("b"))
    await ledger.open("r", small)
    assert await ledger.has_refusals("r"), "the same caps change nothing"
    await ledger.open("r", small.model_copy(update={"micros": 900}))
    assert await ledger.has_refusals("r")
    await ledger.open("r", small.model_copy(update={"micros": 1_400}))
    assert not await ledger.has_refusals("r")
    assert (await ledger.get_spend("r")).usd == 0.0004
    await ledger.reserve(call("b"))
    await refusal(ledger, call("c", micros=1))


async def test_runs_do_not_share_money(ledger: AnyLedger) -> None:
    caps = Caps(micros=1_000, tokens=100, requests=1, finish_share=0)
    await ledger.open("r", caps)
    await ledger.open("s", caps)
    await made(ledger, call("a"))
    await made(ledger, call("b", run="s"))
    assert [call.key for call in await ledger.calls("s")] == ["b"]
    assert (await ledger.get_spend("s")).requests == 1


async def test_caps_and_costs_beyond_counting_are_still_caps(ledger: AnyLedger) -> None:
    await ledger.open("r", Caps(micros=10**30, tokens=10**30, requests=10**30))
    await made(ledger, call("a"))
    await refusal(ledger, call("b", micros=10**31))


async def test_spend_is_told_by_model(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await made(ledger, call("a"))
    await made(ledger, call("b", model="openai:gpt-4o"))
    await made(ledger, call("c", provider="anthropic", model="claude"), charge(None))
    await ledger.reserve(call("d", model="never-sent"))
    spent = await ledger.get_spend("r")
    assert spent == Spend(
        usd=0.0018,
        tokens=180,
        requests=3,
        unconfirmed_usd=0.001,
        by_model={
            "anthropic:claude": ModelSpend(calls=1, usd=0.001, seconds=1.5),
            "openai:gpt-4o": ModelSpend(calls=2, prompt_tokens=60, completion_tokens=20, usd=0.0008, seconds=3.0),
        },
    )


# Callers that die -------------------------------------------------------------------------------------


@pytest.mark.requirement("X-06")
async def test_only_what_is_overdue_is_recovered(ledger: AnyLedger, clock: Clock) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call("unsent"))
    await ledger.reserve(call("sent"))
    await ledger.record_send("sent")
    await ledger.reserve(call("patient", seconds=61))
    clock.pass_by(59.9)
    assert await ledger.recover("r") == 0
    clock.pass_by(0.1)
    assert await ledger.recover("r") == 2
    assert await ledger.recover("r") == 0
    assert await states(ledger) == ["void", "lost", "reserved"]
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.tokens, spent.requests) == (0.001, 0.001, 100, 1)
    assert spent.by_model["openai:gpt-4o"].failed == 1


@pytest.mark.requirement("X-06")
async def test_who_holds_the_run_recovers_everything(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.open("s", PLENTY)
    await ledger.reserve(call("unsent"))
    await ledger.reserve(call("sent"))
    await ledger.record_send("sent")
    await ledger.reserve(call("of another run", run="s"))
    await made(ledger, call("settled"))
    assert await ledger.recover("r", all=True) == 2
    assert await states(ledger) == ["void", "lost", "settled"]
    assert (await line(ledger, "s")).state == "reserved"
    assert await left(ledger) == PLENTY.micros - 1_000 - 400


@pytest.mark.requirement("X-06")
async def test_an_answer_outlives_its_caller(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    await ledger.record_send("k")
    await ledger.store_answer("k", "dear")
    assert await ledger.recover("r", all=True) == 1
    assert await ledger.get_answer("k") == "dear"
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.by_model["openai:gpt-4o"].failed) == (0.001, 0.001, 0)
    with pytest.raises(StorageError, match="lost"):
        await ledger.reserve(call())


@pytest.mark.parametrize("recovered_before", [True, False])
async def test_a_lost_call_is_made_again_and_stays_in_the_books(
    ledger: AnyLedger, clock: Clock, recovered_before: bool
) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    await ledger.record_send("k")
    clock.pass_by(60)
    if recovered_before:
        await ledger.recover("r")
    await made(ledger, call())
    assert await states(ledger) == ["lost", "settled"]
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.requests) == (0.0014, 0.001, 2)
    assert await ledger.get_answer("k") == "{}"


async def test_a_key_of_a_dead_run_is_free_for_another(ledger: AnyLedger, clock: Clock) -> None:
    await ledger.open("r", PLENTY)
    await ledger.open("s", PLENTY)
    await ledger.reserve(call())
    await ledger.record_send("k")
    clock.pass_by(60)
    await made(ledger, call(run="s"))
    assert (await ledger.get_spend("r")).usd == 0.001
    assert (await ledger.get_spend("s")).usd == 0.0004


@pytest.mark.requirement("X-06")
async def test_nobody_is_refused_for_the_money_of_the_dead(ledger: AnyLedger, clock: Clock) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 2_000}))
    await ledger.reserve(call("dead", research=False))
    await ledger.reserve(call("alive", research=False, seconds=100))
    await refusal(ledger, call("next", research=False))
    clock.pass_by(60)
    await ledger.reserve(call("next", research=False))
    assert await states(ledger) == ["void", "reserved", "reserved"]


async def test_the_dead_may_have_spent_too_much(ledger: AnyLedger, clock: Clock) -> None:
    await ledger.open("r", PLENTY.model_copy(update={"micros": 1_999, "finish_share": 0}))
    await ledger.reserve(call("dead"))
    await ledger.record_send("dead")
    clock.pass_by(60)
    await refusal(ledger, call("next"))
    assert await ledger.has_refusals("r")
    assert await states(ledger) == ["lost"], "what was found out on the way is kept"


async def test_a_slow_caller_can_still_settle_what_was_given_up(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call())
    await ledger.record_send("k")
    await ledger.recover("r", all=True)
    await ledger.store_answer("k", "late")
    await ledger.settle("k", charge())
    assert await ledger.get_answer("k") == "late"
    assert (await line(ledger)).error == ""
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.by_model["openai:gpt-4o"].failed) == (0.0004, 0, 0)


async def test_a_slow_caller_can_still_release_what_was_given_up(ledger: AnyLedger) -> None:
    await ledger.open("r", PLENTY)
    await ledger.reserve(call("sent"))
    await ledger.record_send("sent")
    await ledger.reserve(call("unsent"))
    await ledger.recover("r", all=True)
    with pytest.raises(StorageError, match="void"):
        await ledger.record_send("unsent")
    await ledger.release("unsent", "too late")
    await ledger.release("sent", "429")
    spent = await ledger.get_spend("r")
    assert (spent.usd, spent.unconfirmed_usd, spent.requests) == (0, 0, 1)
    assert await left(ledger) == PLENTY.micros


# Always -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("X-06")
async def test_many_at_once_do_not_pass_a_cap(ledger: AnyLedger) -> None:
    await ledger.open("r", Caps(micros=20_000, tokens=10**6, requests=1_000, finish_share=0.15))
    tries = await asyncio.gather(*(ledger.reserve(call(str(n))) for n in range(60)), return_exceptions=True)
    assert sum(outcome is None for outcome in tries) == 17
    assert sum(isinstance(outcome, BudgetError) for outcome in tries) == 43


class Books(RuleBasedStateMachine):
    """Any order of steps, on both ledgers at once: they agree, and no cap is ever passed."""

    keys = st.sampled_from("abcdef")
    amounts = st.integers(0, 40)

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.Runner()
        self.database = SqliteDatabase(Path(self.folder.name) / "main.db")
        self.rows = Rows(self.database)
        self.clock = Clock()
        self.ledgers = (SqlLedger(self.rows, self.clock), MemoryLedger(self.clock))
        self.caps = Caps(micros=0, tokens=0, requests=0, finish_share=0)
        self.raise_caps(100, 100, 8, 0.15)

    def teardown(self) -> None:
        self.rows.check("ledger", "r", deep=True)
        self.loop.close()
        self.database.close()
        self.folder.cleanup()

    def both(self, name: str, *args: Any, **options: Any) -> Any:
        first, second = (self.loop.run(outcome(ledger, name, *args, **options)) for ledger in self.ledgers)
        assert first == second
        return first

    @rule(micros=amounts, tokens=amounts, requests=st.integers(0, 3), share=st.sampled_from([0.0, 0.15, 0.5]))
    def raise_caps(self, micros: int, tokens: int, requests: int, share: float) -> None:
        """Never lowered: a cap below what was spent is passed by definition."""
        old = self.caps
        self.caps = Caps(
            micros=old.micros + micros, tokens=old.tokens + tokens, requests=old.requests + requests,
            finish_share=share,
        )  # fmt: skip
        self.both("open", "r", self.caps)

    @rule(
        key=keys, micros=amounts, tokens=amounts, research=st.booleans(), share=st.sampled_from([0.2, 0.5, 1.0]),
        task=st.sampled_from(["", "1", "2"]), seconds=st.sampled_from([1.0, 10.0]), model=st.sampled_from("mn"),
    )  # fmt: skip
    def reserve(self, **values: Any) -> None:
        self.both("reserve", call(**values))

    @rule(key=keys)
    def send(self, key: str) -> None:
        self.both("record_send", key)

    @rule(key=keys)
    def answer(self, key: str) -> None:
        self.both("store_answer", key, f"answer {key}")

    @rule(key=keys, micros=st.none() | st.integers(0, 60), prompt=st.integers(0, 40), completion=st.integers(0, 20))
    def settle(self, key: str, micros: int | None, prompt: int, completion: int) -> None:
        self.both("settle", key, charge(micros, prompt, completion))

    @rule(key=keys)
    def release(self, key: str) -> None:
        self.both("release", key, "503")

    @rule(all=st.booleans())
    def recover(self, all: bool) -> None:
        self.both("recover", "r", all=all)

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.clock.pass_by(seconds)

    @invariant()
    def no_cap_is_passed_and_the_ledgers_agree(self) -> None:
        _, *lines = self.both("export", "r")
        for name in ("micros", "tokens", "requests"):
            assert sum(line[name] for line in lines) <= getattr(self.caps, name)
        spent = self.both("get_spend", "r")
        assert round(spent.usd * MICRO) <= self.caps.micros

    @rule(key=keys)
    def look_up(self, key: str) -> None:
        self.both("get_answer", key)


async def outcome(ledger: AnyLedger, name: str, *args: Any, **options: Any) -> object:
    try:
        return await getattr(ledger, name)(*args, **options)
    except (BudgetError, StorageError) as error:
        return type(error), error.message, error.help


TestBooks = pytest.mark.slow(pytest.mark.requirement("X-06", "W-15")(Books.TestCase))
TestBooks.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


# What is kept -----------------------------------------------------------------------------------------


@pytest.mark.requirement("X-06")
async def test_what_was_said_can_be_forgotten_and_the_money_stays(ledger: AnyLedger) -> None:
    await ledger.forget("r")
    await ledger.open("r", PLENTY)
    await ledger.open("s", PLENTY)
    await made(ledger, call(), answer="private")
    await made(ledger, call("other", run="s"), answer="kept")
    spent, calls = await ledger.get_spend("r"), await ledger.calls("r")
    await ledger.forget("r")
    assert await ledger.get_answer("k") is None
    assert await ledger.get_answer("other") == "kept"
    assert (await ledger.get_spend("r"), await ledger.calls("r")) == (spent, calls)
    assert "private" not in str(await ledger.export("r"))


@pytest.mark.requirement("W-16", "L-08")
async def test_what_is_exported_can_be_restored_elsewhere(ledger: AnyLedger, clock: Clock, tmp_path: Path) -> None:
    await ledger.open("before", PLENTY)
    await made(ledger, call("before", run="before"))
    await an_eventful_run(ledger, clock)
    exported = json.loads(json.dumps(await ledger.export("r")))
    with SqliteDatabase(tmp_path / "elsewhere.db") as database:
        elsewhere: tuple[AnyLedger, ...] = (SqlLedger(Rows(database), now=clock), MemoryLedger(now=clock))
        for other in elsewhere:
            await other.open("taken", PLENTY)
            await made(other, call("taken", run="taken"))
            await other.restore(exported)
            assert await other.export("r") == exported
            assert await other.get_spend("r") == await ledger.get_spend("r")
            assert await other.get_answer("paid") == "dear \x00"
            assert await other.has_refusals("r")
            await other.recover("r", all=True)
            assert [call.state for call in await other.calls("r")] == ["void", "settled", "lost"]
            assert len(await other.calls("taken")) == 1


async def an_eventful_run(ledger: AnyLedger, clock: Clock) -> None:
    """Its key `paid` was answered at the second attempt, `open` is under way, and there is no money left."""
    await ledger.open("r", Caps(micros=2_000, tokens=1_000, requests=10, finish_share=0))
    await ledger.reserve(call("paid"))
    await ledger.release("paid", "503")
    clock.pass_by(1)
    await made(ledger, call("paid"), charge(600), answer="dear \x00")
    await ledger.reserve(call("open"))
    await ledger.record_send("open")
    await refusal(ledger, call("more", micros=1_500))


@pytest.mark.requirement("W-16")
async def test_restoring_leaves_what_is_there_alone(ledger: AnyLedger, clock: Clock) -> None:
    await an_eventful_run(ledger, clock)
    early = await ledger.export("r")
    await ledger.store_answer("open", "late")
    await ledger.settle("open", charge())
    await ledger.open("r", PLENTY)
    late = await ledger.export("r")
    await ledger.restore(early)
    assert await ledger.export("r") == late
    await ledger.restore([])
    assert await ledger.export("unknown") == []
    with pytest.raises(StorageError, match="lacks 'key'"):
        await ledger.restore([late[0], {"run": "r"}])


@pytest.mark.requirement("X-06")
async def test_books_that_were_altered_are_not_believed(rows: Rows, keyed_rows: Rows) -> None:
    await SqlLedger(keyed_rows).open("r", PLENTY)
    await made(SqlLedger(keyed_rows), call(), answer="private")
    assert await SqlLedger(keyed_rows).get_answer("k") == "private"
    with rows.database.transaction() as connection:
        assert "private" not in str(connection.execute("SELECT answer FROM calls").fetchone()["answer"])
        connection.execute("UPDATE calls SET micros = 1")
    ledger = SqlLedger(keyed_rows)
    for attempt in (ledger.get_spend("r"), ledger.open("r", PLENTY), ledger.calls("r"), ledger.get_answer("k")):
        with pytest.raises(IntegrityError, match="calls 1"):
            await attempt


async def test_the_books_are_there_after_closing(tmp_path: Path) -> None:
    for number in range(2):
        with SqliteDatabase(tmp_path / "main.db") as database:
            ledger = SqlLedger(Rows(database))
            await ledger.open("r", PLENTY)
            await made(ledger, call(str(number)))
            assert (await ledger.get_spend("r")).requests == number + 1


@pytest.mark.parametrize(
    ("micros", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (12_000, "$0.012"), (2_000_000, "$2.00"), (1_234_500_000, "$1,234.50")],
)
def test_dollars_are_told_to_the_micro_dollar(micros: int, text: str) -> None:
    assert format_dollars(micros) == text


@pytest.mark.requirement("X-06")
async def test_encrypted_books_count_what_failed_and_do_not_say_why(keyed_rows: Rows) -> None:
    ledger = SqlLedger(keyed_rows)
    await ledger.open("r", PLENTY)
    await made(ledger, call())
    await ledger.reserve(call("refused"))
    await ledger.record_send("refused")
    await ledger.release("refused", "declined to speak of pomegranates")
    spent = (await ledger.get_spend("r")).by_model["openai:gpt-4o"]
    assert (spent.calls, spent.failed) == (2, 1)
    assert (await line(ledger)).error == "declined to speak of pomegranates"
    with keyed_rows.database.connection() as connection:
        errors = [row["error"] for row in connection.execute("SELECT error FROM calls ORDER BY id").fetchall()]
    assert errors[0] == ""
    assert errors[1].startswith("enc1:")
