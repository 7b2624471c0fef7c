"""An Idempotency-Key is claimed by one, and kept with its answer."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from openassay.storage.sealed_rows import Rows
from openassay.storage.users import REPLY_LEASE, REPLY_LIFETIME, SqlReplies

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replies(keyed_rows: Rows, clock: Callable[[], datetime]) -> SqlReplies:
    return SqlReplies(keyed_rows, clock)


async def test_of_many_at_once_one_does_the_work_and_all_get_its_answer(replies: SqlReplies) -> None:
    claims = await asyncio.gather(*(replies.claim("ann", "k", "hash", f"run{n}") for n in range(8)))
    assert [is_ours for _, is_ours in claims].count(True) == 1
    assert len({held.body for held, _ in claims}) == 1, "the work goes by one name"

    await replies.store("ann", "k", 202, '{"ok": "yes"}')
    held, is_ours = await replies.claim("ann", "k", "other", "run9")
    assert (is_ours, held.pending, held.status, held.body, held.request) == (False, False, 202, '{"ok": "yes"}', "hash")
    assert (await replies.claim("bob", "k", "hash", "run"))[1], "keys are a person's own"


async def test_what_was_given_up_can_be_claimed_again_and_what_was_kept_cannot_be_given_up(replies: SqlReplies) -> None:
    await replies.claim("ann", "k", "hash", "run")
    await replies.release("ann", "k")
    assert (await replies.claim("ann", "k", "other", "run"))[1]
    await replies.store("ann", "k", 200, "{}")
    await replies.release("ann", "k")
    assert not (await replies.claim("ann", "k", "other", "run"))[1]


async def test_a_claim_that_was_left_is_taken_over_under_its_name_by_one(replies: SqlReplies, clock: Clock) -> None:
    await replies.claim("ann", "k", "hash", "first")
    clock.time = NOON + REPLY_LEASE - timedelta(seconds=1)
    assert not (await replies.claim("ann", "k", "hash", "second"))[1]
    clock.time = NOON + REPLY_LEASE
    assert not (await replies.claim("ann", "k", "other", "second"))[1], "another request is not its heir"
    claims = await asyncio.gather(*(replies.claim("ann", "k", "hash", f"run{n}") for n in range(4)))
    assert sorted(is_ours for _, is_ours in claims) == [False, False, False, True]
    assert {held.body for held, _ in claims} == {"first"}


async def test_replies_are_forgotten_in_their_time(replies: SqlReplies, clock: Clock) -> None:
    await replies.claim("ann", "k", "hash", "run")
    await replies.store("ann", "k", 200, "{}")
    clock.time = NOON + REPLY_LIFETIME + timedelta(seconds=1)
    assert (await replies.claim("ann", "k", "hash", "run"))[1]
