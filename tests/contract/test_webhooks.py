"""What is to be told to whom: nothing twice, nothing left out, and nothing of other people's."""

from datetime import UTC, datetime, timedelta

import pytest

from openassay.errors import NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.thread import Review, Run, Thread
from openassay.models.user import MAX_WEBHOOK_TESTS, Webhook, WebhookEvent
from openassay.storage.events import SqlReviews
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from openassay.storage.webhooks import MAX_WEBHOOKS, RETENTION, SKEW, SqlWebhooks

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
LEASE = timedelta(seconds=40)


class World:
    """Ada's thread `t` and Ben's thread `u`, and a clock that stands still unless it is moved."""

    def __init__(self, rows: Rows) -> None:
        self.now = NOON
        self.rows = rows
        self.threads = SqlThreads(rows, lambda: self.now)
        self.reviews = SqlReviews(rows)
        self.store = SqlWebhooks(rows, lambda: self.now)

    async def ended(self, run: str, thread: str = "t", status: RunStatus = RunStatus.DONE) -> None:
        self.now += timedelta(seconds=1)
        await self.threads.begin(Run(id=run, thread=thread, question="?", started=self.now))
        await self.threads.update(run, status=status)

    async def asked(self, id: str, thread: str = "t") -> None:
        self.now += timedelta(seconds=1)
        question = Review(id=id, thread=thread, run="r", kind="approve_plan", question="Go on?", opened=self.now)
        await self.reviews.open(question)

    async def taken(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        while taken := await self.store.claim_due(100, LEASE):
            found += [one.body for one in taken]
        return found


@pytest.fixture
async def world(keyed_rows: Rows) -> World:
    world = World(keyed_rows)
    for id, owner in {"t": "ada", "u": "ben"}.items():
        await world.threads.create(Thread(id=id, title="", created=NOON, updated=NOON, owner=owner))
    return world


async def hook(world: World, *events: WebhookEvent, owner: str = "ada") -> Webhook:
    return await world.store.add(owner, "https://hooks.example/x", events or tuple(WebhookEvent))


async def test_each_end_and_question_is_told_once_and_to_its_owner(world: World) -> None:
    await world.ended("before")
    world.now += timedelta(seconds=1)
    mine = await hook(world)
    theirs = await hook(world, owner="ben")
    await world.ended("r1")
    await world.asked("q1")
    await world.ended("r2", status=RunStatus.FAILED)
    assert [await world.store.schedule_deliveries(mine) for _ in range(3)] == [3, 0, 0]
    assert await world.store.schedule_deliveries(theirs) == 0
    bodies = await world.taken()
    assert {(body["type"], body["data"]["runId"]) for body in bodies} == {  # type: ignore[index]
        ("run.finished", "r1"), ("run.finished", "r2"), ("run.question", "r"),
    }  # fmt: skip
    asked = next(body for body in bodies if body["type"] == "run.question")
    assert asked["data"]["question"] == "Go on?"  # type: ignore[index]


async def test_only_what_was_wished_for_is_told(world: World) -> None:
    only = await hook(world, WebhookEvent.QUESTION)
    await world.ended("r1")
    await world.asked("q1")
    assert await world.store.schedule_deliveries(only) == 1


async def test_what_happened_while_nobody_looked_is_told_later(world: World) -> None:
    made = await hook(world)
    await world.ended("r0")
    assert await world.store.schedule_deliveries(made) == 1
    for number in range(1, 5):
        world.now += timedelta(days=9)
        await world.ended(f"r{number}")
    again = SqlWebhooks(world.rows, lambda: world.now)
    assert await again.schedule_deliveries(made) == 4
    assert await again.schedule_deliveries(made) == 0


async def test_an_end_that_was_written_late_is_not_missed(world: World) -> None:
    made = await hook(world)
    world.now += timedelta(hours=1)
    await world.ended("r1")
    assert await world.store.schedule_deliveries(made) == 1
    world.now -= SKEW / 2  # a process whose clock is behind
    await world.ended("r2")
    assert await world.store.schedule_deliveries(made) == 1


async def test_a_run_that_is_gone_on_with_ends_again(world: World) -> None:
    made = await hook(world)
    await world.ended("r1", status=RunStatus.CANCELLED)
    assert await world.store.schedule_deliveries(made) == 1
    await world.threads.update("r1", status=RunStatus.RUNNING)
    world.now += timedelta(seconds=5)
    await world.threads.update("r1", status=RunStatus.DONE)
    assert await world.store.schedule_deliveries(made) == 1


async def test_what_is_taken_is_nobody_elses_until_its_time_is_up(world: World) -> None:
    made = await hook(world)
    await world.ended("r1")
    await world.store.schedule_deliveries(made)
    [first] = await world.store.claim_due(10, LEASE)
    assert (first.attempts, await world.store.claim_due(10, LEASE)) == (1, [])
    world.now += LEASE
    [second] = await world.store.claim_due(10, LEASE)
    assert (second.id, second.attempts) == (first.id, 2)
    await world.store.record_failure(second.id, "answered 500", timedelta(seconds=10))
    assert await world.taken() == []
    world.now += timedelta(seconds=10)
    [third] = await world.store.claim_due(10, LEASE)
    await world.store.record_failure(third.id, "answered 500", None)
    world.now += timedelta(days=1)
    assert await world.taken() == []
    [shown] = await world.store.deliveries(made.id)
    assert (shown.status, shown.error, shown.attempts) == ("given up", "answered 500", 3)


async def test_what_was_asked_is_not_kept_once_it_was_told(world: World) -> None:
    made = await hook(world)
    await world.asked("q1")
    await world.store.schedule_deliveries(made)
    [taken] = await world.store.claim_due(1, LEASE)
    await world.store.confirm_delivery(taken.id)
    [shown] = await world.store.deliveries(made.id)
    assert shown.status == "delivered"
    assert shown.body["data"]["questionId"] == "q1"
    assert "question" not in shown.body["data"]


async def test_what_was_told_is_shown_for_a_month(world: World) -> None:
    made = await hook(world)
    for number in range(3):
        await world.ended(f"r{number}")
        await world.store.schedule_deliveries(made)
        [taken] = await world.store.claim_due(1, LEASE)
        await world.store.confirm_delivery(taken.id)
        world.now += RETENTION / 2 + timedelta(days=1)
    assert len(await world.store.deliveries(made.id)) == 2


async def test_what_was_told_long_ago_goes_though_nothing_happens(world: World) -> None:
    made = await hook(world)
    for number in range(2):
        await world.ended(f"r{number}")
        world.now += timedelta(days=1)
    await world.store.add_test(made.id, {"type": "test", "data": {}})
    await world.store.schedule_deliveries(made)
    while taken := await world.store.claim_due(9, LEASE):
        for one in taken:
            await world.store.confirm_delivery(one.id)
    world.now += RETENTION + timedelta(days=1)
    assert await world.store.schedule_deliveries(made) == 0
    [left] = await world.store.deliveries(made.id)
    assert left.body["data"]["runId"] == "r1", "the last one tells how far this has come"


async def test_one_of_each_person_is_taken_at_a_time(world: World) -> None:
    mine, theirs = [await hook(world), await hook(world)], await hook(world, owner="ben")
    for made in (*mine, *mine, theirs):
        await world.store.add_test(made.id, {"type": "test", "data": {}})
    assert {one.webhook for one in await world.store.claim_due(9, LEASE, ["ada"])} == {theirs.id}
    first, second = [await world.store.claim_due(9, LEASE) for _ in range(2)]
    assert [one.webhook in {made.id for made in mine} for one in (*first, *second)] == [True, True]
    await world.store.delete("ada", mine[0].id)
    assert len(await world.taken()) <= 2


async def test_few_tests_wait_at_a_time(world: World) -> None:
    made = await hook(world)
    body = {"type": "test", "data": {}}
    assert [bool(await world.store.add_test(made.id, body)) for _ in range(MAX_WEBHOOK_TESTS + 1)] == [
        True
    ] * MAX_WEBHOOK_TESTS + [False]
    [taken] = await world.store.claim_due(9, LEASE)
    await world.store.record_failure(taken.id, "answered 500", timedelta(seconds=10))
    assert await world.store.add_test(made.id, body) is None
    await world.store.confirm_delivery(taken.id)
    assert await world.store.add_test(made.id, body)


async def test_a_test_does_not_hide_what_happened_before_it(world: World) -> None:
    made = await hook(world)
    await world.ended("r1")
    world.now += timedelta(days=1)
    await world.store.add_test(made.id, {"type": "test", "data": {}})
    assert await world.store.schedule_deliveries(made) == 1


async def test_an_address_goes_with_all_that_was_to_be_told_to_it(world: World) -> None:
    made = await hook(world)
    await world.ended("r1")
    await world.store.schedule_deliveries(made)
    with pytest.raises(NotFoundError):
        await world.store.delete("ben", made.id)
    await world.store.delete("ada", made.id)
    assert await world.taken() == []
    assert await world.store.list_for("ada") == []
    with pytest.raises(NotFoundError):
        await world.store.get("ada", made.id)


async def test_a_person_has_only_so_many(world: World) -> None:
    for _ in range(MAX_WEBHOOKS):
        await hook(world)
    with pytest.raises(UsageError, match="20 webhooks"):
        await hook(world)
    assert len(await world.store.list_for("ada")) == MAX_WEBHOOKS
    await hook(world, owner="ben")
    assert len({one.secret for one in await world.store.all()}) == MAX_WEBHOOKS + 1
