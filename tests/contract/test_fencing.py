"""What is written for a thread that another process has taken over is refused, whatever it is and whenever it comes."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from contextvars import copy_context
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from langgraph.checkpoint.base import empty_checkpoint

from openassay.engine.checkpoints import SqlCheckpointSaver
from openassay.errors import StaleLeaseError, StorageError, ThreadBusyError
from openassay.models.event import Event, RunStatus
from openassay.models.spend import Caps, Charge, Reservation
from openassay.models.thread import ResearchOptions, Review, Run, StopRequest, Thread
from openassay.protocols import Lease
from openassay.storage.database import ALL_TABLES
from openassay.storage.events import SqlEvents, SqlNotes, SqlReviews
from openassay.storage.ledger import SqlLedger
from openassay.storage.locks import Leases, fence
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads

pytestmark = pytest.mark.requirement("W-16")

NOON = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
CAPS = Caps(micros=1_000_000, tokens=1_000_000, requests=1_000, finish_share=0.15)
LONG = 600.0  # seconds of a lease that nobody renews during a test
PATIENCE = 30.0  # for a machine that is busy


class Kept(NamedTuple):
    """All that is kept of a thread."""

    rows: Rows
    threads: SqlThreads
    log: SqlEvents
    saver: SqlCheckpointSaver
    ledger: SqlLedger
    notes: SqlNotes
    reviews: SqlReviews

    def all(self) -> dict[str, list[Any]]:
        """Every row there is."""
        with self.rows.database.connection() as connection:
            tables = [*(table.name for table in ALL_TABLES), "heads"]
            found = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
        return {name: sorted(map(str, rows)) for name, rows in found.items()}


def kept_in(database: PostgresDatabase) -> Kept:
    rows = Rows(database)
    return Kept(
        rows,
        SqlThreads(rows),
        SqlEvents(rows),
        SqlCheckpointSaver(rows),
        SqlLedger(rows),
        SqlNotes(rows),
        SqlReviews(rows),
    )


def call(key: str) -> Reservation:
    return Reservation(
        key=key, run="r", step="read", task="1", provider="openai", model="gpt-4o", micros=1000, tokens=100, seconds=600
    )


def config(checkpoint: str = "") -> Any:
    return {
        "configurable": {"thread_id": "t", "checkpoint_ns": "", **({"checkpoint_id": checkpoint} if checkpoint else {})}
    }


def review(id: str) -> Review:
    return Review(id=id, thread="t", run="r", kind="approve_plan", question="Go on?", opened=NOON)


async def begin(kept: Kept) -> None:
    """The thread `t` with a run that is at work, has asked something, and has sent a call."""
    await kept.threads.create(Thread(id="t", title="", created=NOON, updated=NOON))
    await kept.threads.begin(Run(id="r", thread="t", question="?", started=NOON, status=RunStatus.RUNNING))
    for number in range(2):
        await kept.saver.aput(config(), {**empty_checkpoint(), "id": f"0{number}"}, {"step": number}, {})
    await kept.ledger.open("r", CAPS)
    await kept.ledger.reserve(call("sent"))
    await kept.ledger.record_send("sent")
    await kept.reviews.open(review("open"))


WRITES: dict[str, Callable[[Kept], Awaitable[Any]]] = {
    "an event": lambda kept: kept.log.append(Event(run="r", time=NOON, kind="notice", stage="", data={"text": "."})),
    "how it ended": lambda kept: kept.threads.update("r", status=RunStatus.DONE),
    "what was chosen": lambda kept: kept.threads.set_options("r", ResearchOptions()),
    "a stop": lambda kept: kept.threads.request_stop("r", StopRequest.CANCEL),
    "a title": lambda kept: kept.threads.rename("t", "Another"),
    "a checkpoint": lambda kept: kept.saver.aput(config(), {**empty_checkpoint(), "id": "9"}, {"step": 9}, {}),
    "a result": lambda kept: kept.saver.aput_writes(config("00"), [("read", {"1": []})], "task"),
    "a pruning": lambda kept: kept.saver.prune_run("t", "", keep=1),
    "a note": lambda kept: kept.notes.put("t", [{"said": "something"}]),
    "an account": lambda kept: kept.ledger.open("r", CAPS.model_copy(update={"micros": 5})),
    "a reservation": lambda kept: kept.ledger.reserve(call("another")),
    "an answer of a model": lambda kept: kept.ledger.store_answer("sent", "{}"),
    "a charge": lambda kept: kept.ledger.settle("sent", Charge(micros=400)),
    "a question": lambda kept: kept.reviews.open(review("new")),
    "an answer": lambda kept: kept.reviews.accept_answer("open", {"decision": "approve"}, "timer", NOON),
    "a deletion": lambda kept: kept.threads.delete("t"),
}


@pytest.fixture
def kept(postgres_database: PostgresDatabase) -> Kept:
    found = kept_in(postgres_database)
    asyncio.run(begin(found))
    return found


@pytest.fixture
def process(postgres_address: str) -> Iterator[Callable[[], Leases]]:
    """process() has leases as another process would, with connections of its own."""
    with ExitStack() as stack:

        def start() -> Leases:
            database = stack.enter_context(PostgresDatabase(postgres_address))
            return stack.enter_context(closing(Leases(database, seconds=LONG)))

        yield start


def expire(rows: Rows, thread: str = "t") -> None:
    """As if nothing had been heard of its holder."""
    with rows.database.connection() as connection:
        connection.execute("UPDATE leases SET until = clock_timestamp() - interval '1 s' WHERE thread = ?", (thread,))


def until(done: Callable[[], object], otherwise: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < ends, otherwise
        time.sleep(0.02)


def is_taken(leases: Leases, thread: str = "t") -> bool:
    try:
        leases.acquire(thread)
    except ThreadBusyError:
        return False
    return True


# What is refused --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_for_a_thread_that_another_has(name: str, kept: Kept, process: Callable[[], Leases]) -> None:
    first, second = process(), process()
    lost = first.acquire("t")
    expire(kept.rows)
    mine = second.acquire("t")
    before = kept.all()

    with fence(lost), pytest.raises(StaleLeaseError) as refused:
        asyncio.run(_awaited(WRITES[name](kept)))

    assert kept.all() == before
    assert "another process has taken over thread t" in refused.value.message
    assert not refused.value.retryable
    with fence(mine):
        asyncio.run(_awaited(WRITES[name](kept)))
    assert kept.all() != before


async def _awaited(work: Awaitable[Any]) -> None:
    await work


def test_nor_for_one_that_was_given_back(kept: Kept, process: Callable[[], Leases]) -> None:
    leases = process()
    lease = leases.acquire("t")
    leases.release("t")

    for name in ("an event", "a title"):
        with fence(lease), pytest.raises(StaleLeaseError):
            asyncio.run(_awaited(WRITES[name](kept)))


def test_those_who_hold_nothing_may_write(kept: Kept, process: Callable[[], Leases]) -> None:
    """A person asks from another process for a run to be stopped."""
    process().acquire("t")
    asyncio.run(_awaited(WRITES["a stop"](kept)))
    assert asyncio.run(kept.threads.get_stop_request("r")) is StopRequest.CANCEL


def test_a_fence_is_of_its_thread_alone(kept: Kept, process: Callable[[], Leases]) -> None:
    """A process that has lost one thread goes on with another, also from inside."""
    leases, other = process(), process()
    asyncio.run(kept.threads.create(Thread(id="u", title="", created=NOON, updated=NOON)))
    asyncio.run(kept.threads.begin(Run(id="s", thread="u", question="?", started=NOON)))
    lost = leases.acquire("t")
    expire(kept.rows)
    other.acquire("t")

    with fence(lost), fence(leases.acquire("u")):
        asyncio.run(kept.log.append(Event(run="s", time=NOON, kind="notice", stage="", data={})))
        asyncio.run(kept.threads.update("s", status=RunStatus.RUNNING))
        for name in ("an event", "how it ended"):
            with pytest.raises(StaleLeaseError):
                asyncio.run(_awaited(WRITES[name](kept)))


def test_a_lock_that_cannot_be_lost_needs_no_fence(rows: Rows) -> None:
    """On SQLite there is nothing to look into."""
    threads = SqlThreads(rows)
    with fence(Lease("t")):
        asyncio.run(threads.create(Thread(id="t", title="kept", created=NOON, updated=NOON)))
    assert asyncio.run(threads.get("t")).title == "kept"


# What is under way ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("scope", "owner"), [("thread", "t"), ("run", "r"), ("ledger", "r")])
def test_nobody_takes_a_thread_over_in_the_middle_of_a_write(
    scope: str, owner: str, kept: Kept, process: Callable[[], Leases]
) -> None:
    first, second = process(), process()
    lease = first.acquire("t")
    written, gate = threading.Event(), threading.Event()

    def write() -> None:
        with fence(lease), kept.rows.open_writer(scope, owner) as writer:
            writer.connection.execute("UPDATE threads SET title = 'written'")
            written.set()
            gate.wait(PATIENCE)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        written.wait(PATIENCE)
        expire(kept.rows)
        assert not is_taken(second), "it is told to come back, and does not wait"
        gate.set()
        writing.result(PATIENCE)
    assert is_taken(second)


@pytest.mark.parametrize("name", ["how it ended", "an event", "a charge"])
def test_what_is_written_while_a_thread_is_taken_over_waits_for_that(
    name: str, kept: Kept, process: Callable[[], Leases], postgres_database: PostgresDatabase
) -> None:
    first = process()
    taking = closing(Leases(postgres_database, seconds=LONG))
    lost = first.acquire("t")
    expire(kept.rows)

    def write() -> None:
        with fence(lost):
            asyncio.run(_awaited(WRITES[name](kept)))

    with ThreadPoolExecutor(1) as pool, taking as second:
        with postgres_database.transaction():  # which its statement becomes part of
            second.acquire("t")
            writing = pool.submit(copy_context().run, write)
            until(lambda: _waiting(first), "the write did not wait")
        with pytest.raises(StaleLeaseError):
            writing.result(PATIENCE)


def _waiting(leases: Leases) -> bool:
    with leases._database.connection() as connection:
        sql = (
            "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return bool(connection.execute(sql).fetchone()["n"])


# Processes --------------------------------------------------------------------------------------------

ZOMBIE = "import sys; from tests.contract.test_fencing import zombie; zombie(*sys.argv[1:])"


def zombie(address: str, how: str) -> None:
    """Takes the thread `t`; when it is told to, tries everything a run writes, and says how each went."""
    idle = 1.0 if how == "within" else PATIENCE
    with PostgresDatabase(address, idle_seconds=idle) as database, closing(Leases(database, seconds=1)) as leases:
        kept = kept_in(database)
        with fence(leases.acquire("t")):
            if how == "between":
                _said("ready")
                for name, write in WRITES.items():
                    _said(f"{name}: {_tried(lambda write=write: asyncio.run(_awaited(write(kept))))}")  # type: ignore[misc]
            else:
                _said(f"the rest: {_tried(lambda: _half(kept))}")
            _said(f"held: {leases.holds('t')}")


def _half(kept: Kept) -> None:
    with kept.rows.open_writer("thread", "t") as writer:
        writer.connection.execute("UPDATE threads SET title = 'of the dead'")
        _said("ready")


def _said(line: str) -> None:
    """And waits to be told to go on."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    sys.stdin.readline()


def _tried(write: Callable[[], object]) -> str:
    try:
        write()
    except StorageError as error:
        return type(error).__name__
    return "written"


@contextmanager
def stopped(address: str, how: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that has stopped with the thread `t` in its hands."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", ZOMBIE, address, how]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdin is not None
    with process.stdin, process.stdout:
        try:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGSTOP)
            yield process
        finally:
            process.kill()
            process.wait()


def told(process: "subprocess.Popen[str]") -> list[str]:
    """What it says once it goes on."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write("\n" * 100)
        process.stdin.flush()
    process.send_signal(signal.SIGCONT)
    return process.stdout.read().splitlines()


@pytest.mark.slow
def test_a_process_that_was_stopped_writes_nothing_when_it_wakes_up(
    kept: Kept, process: Callable[[], Leases], postgres_address: str
) -> None:
    with stopped(postgres_address, "between") as zombie:
        leases = process()
        until(lambda: is_taken(leases), "its lease did not end")
        before = kept.all()

        said = told(zombie)

    assert said == [*(f"{name}: StaleLeaseError" for name in WRITES), "held: False"]
    assert kept.all() == before
    assert leases.holds("t"), "what it gave back was not its own"


@pytest.mark.slow
def test_a_process_that_was_stopped_in_the_middle_of_a_write_holds_nobody_up_for_ever(
    kept: Kept, process: Callable[[], Leases], postgres_address: str
) -> None:
    before = kept.all()
    with stopped(postgres_address, "within") as zombie:
        leases = process()
        until(lambda: is_taken(leases), "its transaction did not end")
        with fence(Lease("t", leases._held["t"])):
            asyncio.run(_awaited(WRITES["how it ended"](kept)))

        assert told(zombie) == ["the rest: StorageError", "held: False"]

    assert kept.all()["threads"] != before["threads"]
    assert "of the dead" not in str(kept.all())


def test_a_transaction_that_stood_still_for_too_long_may_be_tried_again(kept: Kept, postgres_address: str) -> None:
    def stand_still() -> None:
        with database.transaction() as connection:
            connection.execute("UPDATE threads SET title = 'too late'")
            time.sleep(1)

    with PostgresDatabase(postgres_address, idle_seconds=0.1) as database:
        with pytest.raises(StorageError, match="idle") as refused:
            stand_still()
        assert refused.value.retryable
        asyncio.run(kept_in(database).threads.rename("t", "in time"))
    assert asyncio.run(kept.threads.get("t")).title == "in time"


def test_whoever_waits_longer_than_a_lease_gives_up_and_may_try_again(kept: Kept, postgres_address: str) -> None:
    """Or a process that is stopped with two writes, one of which waits for the other, would keep its thread twice."""
    with PostgresDatabase(postgres_address, idle_seconds=0.5) as database, closing(Leases(database)) as leases:
        lease = leases.acquire("t")
        with kept.rows.open_writer("thread", "t"):
            began = time.monotonic()
            with fence(lease), pytest.raises(StorageError, match="lock timeout") as refused:
                asyncio.run(kept_in(database).threads.rename("t", "too late"))
            assert time.monotonic() - began < PATIENCE
        assert refused.value.retryable
        with fence(lease):
            asyncio.run(kept_in(database).threads.rename("t", "in time"))
    assert asyncio.run(kept.threads.get("t")).title == "in time"


# At no time two ---------------------------------------------------------------------------------------


class Claims(RuleBasedStateMachine):
    """Processes that take a thread, lose it, give it back and write for it, in any order."""

    rows: Rows
    start: Callable[[], Leases]

    def __init__(self) -> None:
        super().__init__()
        self.thread = uuid4().hex[:12]
        self.processes = [self.start() for _ in range(3)]
        self.leases: list[tuple[int, Lease]] = []  # all there ever were, with whose they are
        self.holder: Lease | None = None  # who may write
        self.ended = False  # whether the holder's time is over
        self.threads = SqlThreads(self.rows)
        asyncio.run(self.threads.create(Thread(id=self.thread, title="0", created=NOON, updated=NOON)))

    @rule(who=st.integers(0, 2))
    def take(self, who: int) -> None:
        mine = who in [
            owner for owner, lease in self.leases if self.processes[owner]._held.get(self.thread) == lease.token
        ]
        free = self.holder is None or self.ended
        try:
            lease = self.processes[who].acquire(self.thread)
        except ThreadBusyError:
            assert mine or not free
            return
        assert free
        assert not mine
        assert lease.token not in [before.token for _, before in self.leases]
        self.leases.append((who, lease))
        self.holder, self.ended = lease, False

    @rule(who=st.integers(0, 2))
    def release(self, who: int) -> None:
        token = self.processes[who]._held.get(self.thread)
        self.processes[who].release(self.thread)
        if self.holder is not None and self.holder.token == token:
            self.holder = None

    @rule()
    def time_passes(self) -> None:
        expire(self.rows, self.thread)
        self.ended = True

    @rule()
    def all_write(self) -> None:
        accepted = []
        for _, lease in self.leases:
            with suppress(StaleLeaseError), fence(lease):
                asyncio.run(self.threads.rename(self.thread, str(lease.token)))
                accepted.append(lease)
        assert accepted == ([self.holder] if self.holder else [])

    @rule()
    def all_know(self) -> None:
        holding = [process.holds(self.thread) for process in self.processes]
        assert sum(holding) == (self.holder is not None)

    def teardown(self) -> None:
        for process in self.processes:
            process.release(self.thread)


@pytest.mark.slow
def test_at_no_time_two_may_write(process: Callable[[], Leases], postgres_database: PostgresDatabase) -> None:
    three = [process() for _ in range(3)]
    given = iter(three * 10_000)

    class Machine(Claims):
        rows = Rows(postgres_database)

        @staticmethod
        def start() -> Leases:
            return next(given)

    run_state_machine_as_test(Machine, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))


@pytest.mark.slow
def test_those_who_race_for_a_thread_write_one_after_the_other(kept: Kept, process: Callable[[], Leases]) -> None:
    """Each writes as fast as it can with whatever it took last, while leases end under everybody's hands."""
    ends = time.monotonic() + 3.0

    def race(leases: Leases) -> int:
        lease, refused = Lease("t", -1), 0
        while time.monotonic() < ends:
            if not leases.holds("t"):
                leases.release("t")
            with suppress(ThreadBusyError):
                lease = leases.acquire("t")
            for _ in range(5):
                try:
                    with fence(lease):
                        event = Event(run="r", time=NOON, kind="notice", stage="", data={"token": lease.token})
                        asyncio.run(kept.log.append(event))
                except StaleLeaseError:
                    refused += 1
        return refused

    def disturb() -> None:
        while time.monotonic() < ends:
            expire(kept.rows)
            time.sleep(0.02)

    many = [process() for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        disturbing = pool.submit(disturb)
        refused = sum(pool.map(lambda leases: copy_context().run(race, leases), many))
        disturbing.result()

    tokens = [int(str(event.data["token"])) for event in asyncio.run(kept.log.since("r", 0))]
    in_turn = [token for token, _ in groupby(tokens)]
    assert len(in_turn) == len(set(in_turn)), "nobody writes once another has"
    assert len(set(tokens)) > 3
    assert refused > 3
