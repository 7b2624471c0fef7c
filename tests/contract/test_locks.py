"""One worker a thread, whoever holds the lock: files on one machine, leases of a database on many."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from openassay.errors import NotFoundError, StorageError, ThreadBusyError
from openassay.protocols import Lease, RunLocks
from openassay.storage.locks import FileLocks, Leases
from openassay.storage.postgres import PostgresDatabase
from tests.conftest import PostgresServer

SECONDS = 2.0  # of a lease
PATIENCE = 30.0  # for a machine that is busy


@pytest.fixture
def leases(postgres_database: PostgresDatabase) -> Iterator[Leases]:
    with closing(Leases(postgres_database, seconds=SECONDS)) as leases:
        yield leases


@pytest.fixture
def process(postgres_address: str) -> Iterator[Callable[..., Leases]]:
    """process() has leases as another process would, with connections of its own."""
    with ExitStack() as stack:

        def start(seconds: float = SECONDS) -> Leases:
            database = stack.enter_context(PostgresDatabase(postgres_address))
            return stack.enter_context(closing(Leases(database, seconds=seconds)))

        yield start


@pytest.fixture(params=["files", "postgres"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> RunLocks:
    made: dict[str, Callable[[], RunLocks]] = {
        "files": lambda: FileLocks(tmp_path / "locks"),
        "postgres": lambda: request.getfixturevalue("leases"),
    }
    return made[request.param]()


def test_a_taken_lock_is_refused_until_it_is_released(locks: RunLocks) -> None:
    assert locks.acquire("t").thread == "t"
    with pytest.raises(ThreadBusyError):
        locks.acquire("t")
    locks.acquire("another")
    locks.release("t")
    locks.acquire("t")


def test_what_is_held_is_known(locks: RunLocks) -> None:
    locks.acquire("t")
    assert [locks.holds("t"), locks.holds("another")] == [True, False]
    locks.release("t")
    assert not locks.holds("t")


def test_looking_takes_nothing(locks: RunLocks) -> None:
    assert locks.is_free("t")
    assert locks.is_free("t")
    locks.acquire("t")
    assert not locks.is_free("t")
    locks.release("t")
    assert locks.is_free("t")


def test_releasing_what_is_not_held_is_nothing(locks: RunLocks) -> None:
    locks.release("t")


def test_what_was_released_in_good_order_has_not_fallen(locks: RunLocks) -> None:
    for _ in range(3):
        assert locks.acquire("t", forgive=False).falls == 0
        locks.release("t")


# Processes -------------------------------------------------------------------------------------------

HOLDER = """
import sys, time
from pathlib import Path
kind, where, seconds, hours = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])

if hours:  # a clock that is wrong, for whoever asks it from here on
    import datetime
    time_of, moment = time.time, datetime.datetime
    time.time = lambda: time_of() + hours * 3600

    class Wrong(moment):
        @classmethod
        def now(cls, tz=None):
            return moment.now(tz) + datetime.timedelta(hours=hours)

    datetime.datetime = Wrong

from openassay.errors import ThreadBusyError
from openassay.storage.locks import Leases
from openassay.storage.locks import FileLocks
from openassay.storage.postgres import PostgresDatabase
locks = FileLocks(Path(where)) if kind == "files" else Leases(PostgresDatabase(where), seconds=seconds)
try:
    print("held", locks.acquire("t", forgive=False).falls, flush=True)
except ThreadBusyError:
    print("busy", flush=True)
sys.stdin.read()
"""


@contextmanager
def holder(kind: str, where: str, *, hours: float = 0) -> Iterator[str]:
    """What a process says that has tried for the thread `t`; it is killed at the end."""
    command = [sys.executable, "-c", HOLDER, kind, where, str(SECONDS), str(hours)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


@pytest.fixture(params=["files", "postgres"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str, RunLocks]:
    """A kind of locks that other processes have, too; where they are; and those of this one."""
    if request.param == "files":
        return "files", str(tmp_path), FileLocks(tmp_path)
    return "postgres", request.getfixturevalue("postgres_address"), request.getfixturevalue("leases")


@pytest.mark.requirement("F-10")
def test_another_process_is_kept_out_until_the_holder_dies(tmp_path: Path) -> None:
    locks = FileLocks(tmp_path)
    with holder("files", str(tmp_path)) as said:
        assert said == "held 0"
        assert not locks.is_free("t")
        with pytest.raises(ThreadBusyError):
            locks.acquire("t")
    locks.acquire("t")


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_those_who_die_with_a_thread_are_counted_until_it_is_given_back(shared: tuple[str, str, RunLocks]) -> None:
    kind, where, locks = shared
    for falls in range(2):
        _free(locks)
        with holder(kind, where) as said:
            assert said == f"held {falls}"
    _free(locks)

    assert locks.acquire("t", forgive=False).falls == 2
    locks.release("t")
    assert locks.acquire("t", forgive=False).falls == 0


@pytest.mark.requirement("W-16")
def test_a_person_who_wants_it_tried_forgives_those_who_died(tmp_path: Path) -> None:
    with holder("files", str(tmp_path)) as said:
        assert said == "held 0"
    locks = FileLocks(tmp_path)

    assert locks.acquire("t").falls == 0
    locks.release("t")
    assert locks.acquire("t", forgive=False).falls == 0


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_whoever_gets_further_than_those_who_died_begins_anew(shared: tuple[str, str, RunLocks]) -> None:
    kind, where, locks = shared
    assert locks.crash_count("t") == 0
    for _ in range(2):
        _free(locks)
        with holder(kind, where):
            pass
    assert locks.crash_count("t") == 2
    _free(locks)
    assert locks.acquire("t", forgive=False).falls == 2
    assert locks.crash_count("t") == 3, "were this one to die, too"

    locks.reset_crash_count("t")
    assert locks.crash_count("t") == 1
    locks.reset_crash_count("another")
    locks.release("t")
    assert locks.crash_count("t") == 0


def _taken_in_a_moment(locks: RunLocks) -> None:
    _free(locks)
    locks.acquire("t")


def _free(locks: RunLocks) -> None:
    _until(lambda: locks.is_free("t"), "the lock of a dead process was not freed")


def _until(done: Callable[[], bool], otherwise: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < ends, otherwise
        time.sleep(0.02)


# Leases ----------------------------------------------------------------------------------------------


def _asked(database: PostgresDatabase, sql: str, *values: object) -> Any:
    with database.connection() as connection:
        row = connection.execute(sql, values).fetchone()
        return row and row["found"]


def _end(database: PostgresDatabase, thread: str = "t") -> Any:
    """When the server takes a thread for free unless it hears of its holder."""
    return _asked(database, "SELECT until AS found FROM leases WHERE thread = ?", thread)


def _expire(database: PostgresDatabase, thread: str = "t") -> None:
    """As if nothing had been heard of its holder."""
    with database.connection() as connection:
        connection.execute("UPDATE leases SET until = clock_timestamp() - interval '1 s' WHERE thread = ?", (thread,))


def _succeeded(database: PostgresDatabase, leases: Leases, *, forgive: bool = False) -> Lease:
    """The thread `t`, taken over from a holder who may be heard of just then."""
    ends = time.monotonic() + PATIENCE
    while True:
        _expire(database)
        try:
            return leases.acquire("t", forgive=forgive)
        except ThreadBusyError:
            assert time.monotonic() < ends, "it could not be taken over"


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
def test_what_a_killed_process_held_is_free_when_its_lease_ends_and_not_before(
    postgres_database: PostgresDatabase, postgres_address: str, leases: Leases
) -> None:
    with holder("postgres", postgres_address) as said:
        assert said == "held 0"
        assert not leases.is_free("t")
        with pytest.raises(ThreadBusyError):
            leases.acquire("t")
    ends = _end(postgres_database)

    _taken_in_a_moment(leases)

    assert _asked(postgres_database, "SELECT clock_timestamp() >= ? AS found", ends)
    assert leases.holds("t")


def test_whoever_comes_too_early_is_told_how_long_to_wait(
    postgres_database: PostgresDatabase, process: Callable[..., Leases]
) -> None:
    process().acquire("t")
    with pytest.raises(ThreadBusyError) as refused:
        process().acquire("t")

    assert "openassay threads stop t" in refused.value.help
    assert "free in at most 2 s" in refused.value.help
    assert refused.value.retryable
    assert f"process {os.getpid()} on" in _asked(postgres_database, "SELECT holder AS found FROM leases")


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_a_lease_is_renewed_as_long_as_it_is_held(postgres_database: PostgresDatabase, leases: Leases) -> None:
    leases.acquire("t")
    leases.acquire("another")
    first = _end(postgres_database), _end(postgres_database, "another")
    leases.release("another")

    for _ in range(3):
        before = _end(postgres_database)
        _until(lambda before=before: _end(postgres_database) > before, "it was not renewed")  # type: ignore[misc]

    assert _end(postgres_database) > first[0]
    assert _end(postgres_database, "another") is None


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_a_process_that_hangs_holds_nothing_for_long(
    postgres_database: PostgresDatabase, process: Callable[..., Leases], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread that renews goes on when all else stands still."""
    monkeypatch.setattr("openassay.storage.locks.MAX_SILENT_LEASES", 1)
    hanging, other = process(), process()
    hanging.acquire("t")
    _until(lambda: other.is_free("t"), "it is held for ever")
    assert other.acquire("t", forgive=False).falls == 1
    for _ in range(20):  # one that asks keeps it
        time.sleep(SECONDS / 10)
        assert other.holds("t")
    assert not other.is_free("t")


def test_renewing_waits_for_nobody(postgres_address: str, postgres_database: PostgresDatabase) -> None:
    """Neither for a connection of the pool nor for a write that is under way."""
    with ExitStack() as stack:
        database = stack.enter_context(PostgresDatabase(postgres_address, connections=1))
        leases = stack.enter_context(closing(Leases(database, seconds=SECONDS)))
        leases.acquire("t")
        connection = stack.enter_context(database.transaction())
        connection.execute("SELECT token FROM leases WHERE thread = 't' FOR KEY SHARE")

        before = _end(postgres_database)
        _until(lambda: _end(postgres_database) > before, "it was not renewed")


@pytest.mark.requirement("W-16")
@pytest.mark.parametrize("was_held", [False, True])
def test_of_many_who_take_a_thread_at_once_one_has_it(
    was_held: bool, process: Callable[..., Leases], postgres_database: PostgresDatabase
) -> None:
    many = [process() for _ in range(5)]
    for thread in map(str, range(10)):
        if was_held:  # by one who is gone
            with postgres_database.connection() as connection:
                connection.execute("INSERT INTO leases VALUES (?, 0, '', now() - interval '1 s', 0)", (thread,))
        barrier = threading.Barrier(len(many))

        def tried(leases: Leases, thread: str = thread, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            try:
                return leases.acquire(thread).token
            except ThreadBusyError:
                return 0

        with ThreadPoolExecutor(len(many)) as pool:
            tokens = sorted(pool.map(tried, many))

        assert tokens[:-1] == [0] * (len(many) - 1)
        assert tokens[-1] > 0


@pytest.mark.slow
@pytest.mark.requirement("W-16", "F-10")
@pytest.mark.parametrize("seconds", [0.0, 2 * SECONDS])
def test_a_server_that_is_away_for_a_while_loses_no_lease(
    seconds: float, process: Callable[..., Leases], postgres_server: PostgresServer, postgres_address: str
) -> None:
    first, second = process(), process()
    token = first.acquire("t").token
    postgres_server.stop()
    time.sleep(seconds)
    postgres_server.start()

    with PostgresDatabase(postgres_address) as database:
        alive = "SELECT until > clock_timestamp() AS found FROM leases WHERE thread = 't' AND token = ?"
        _until(lambda: bool(_asked(database, alive, token)), "nothing was heard of the holder again")
    assert first.holds("t")
    with pytest.raises(ThreadBusyError):
        second.acquire("t")
    first.acquire("another")
    first.release("t")
    second.acquire("t")


@pytest.mark.requirement("W-16", "F-10")
def test_a_lease_that_another_has_taken_over_is_lost_at_once(
    process: Callable[..., Leases], postgres_database: PostgresDatabase
) -> None:
    first, second = process(), process()
    before = first.acquire("t")
    first.acquire("kept")
    _expire(postgres_database, "kept")

    after = _succeeded(postgres_database, second)

    assert after.token > before.token
    assert after.falls == 1
    assert [first.holds("t"), second.holds("t")] == [False, True]
    assert first.holds("kept"), "its time was over, and nobody has taken it"
    with pytest.raises(ThreadBusyError):
        first.acquire("t")
    first.release("t")
    assert second.holds("t"), "it was not the first one's to give back"


def test_a_lease_that_was_lost_is_not_renewed(
    process: Callable[..., Leases], postgres_database: PostgresDatabase
) -> None:
    first, second = process(), process(600.0)
    first.acquire("t")
    first.acquire("kept")
    _succeeded(postgres_database, second)
    far = _end(postgres_database)

    before = _end(postgres_database, "kept")
    _until(lambda: _end(postgres_database, "kept") > before, "what is kept was not renewed")
    assert _end(postgres_database) == far


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_no_clock_counts_but_the_servers(postgres_address: str, process: Callable[..., Leases]) -> None:
    """Neither that of a holder who thinks it is early nor that of another who thinks it is late."""
    here = process()
    with PostgresDatabase(postgres_address) as database:
        with holder("postgres", postgres_address, hours=-5) as said:
            assert said == "held 0"
            before = _end(database)
            _until(lambda: _end(database) > before, "it was not renewed")
            assert _asked(
                database, "SELECT until < clock_timestamp() + interval '3 s' AS found FROM leases WHERE thread = 't'"
            )
            with pytest.raises(ThreadBusyError):
                here.acquire("t")
        _taken_in_a_moment(here)
        with holder("postgres", postgres_address, hours=5) as said:
            assert said == "busy"


def test_a_person_who_wants_it_tried_forgives_those_who_were_lost(
    process: Callable[..., Leases], postgres_database: PostgresDatabase
) -> None:
    first, second, third = process(), process(), process()
    first.acquire("t")
    assert _succeeded(postgres_database, second, forgive=True).falls == 0
    assert _succeeded(postgres_database, third).falls == 1


def test_closing_gives_back_what_is_held(process: Callable[..., Leases]) -> None:
    one, two = process(), process()
    one.acquire("t")
    one.close()
    assert two.acquire("t", forgive=False).falls == 0


@pytest.mark.slow
def test_a_lease_that_cannot_be_given_back_is_told_and_ends_by_itself(
    process: Callable[..., Leases], postgres_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with PostgresDatabase(postgres_address) as database:
        leases = Leases(database, seconds=SECONDS)
        leases.acquire("t")
    leases.close()

    assert "thread t is free in at most 2 s" in caplog.text
    _taken_in_a_moment(process())


def test_a_server_that_is_gone_is_not_waited_for_for_ever(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as database:
        said = database.session().info.get_parameters()
    with PostgresDatabase(f"{postgres_address}{'&' if '?' in postgres_address else '?'}connect_timeout=7") as database:
        wanted = database.session().info.get_parameters()
    assert (said["connect_timeout"], said["tcp_user_timeout"]) == ("15", "30000")
    assert (wanted["connect_timeout"], wanted["tcp_user_timeout"]) == ("7", "30000")


# Files -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that root may not write either")
def test_a_folder_for_locks_that_cannot_be_made() -> None:
    with pytest.raises(StorageError, match="/proc/self/locks") as caught:
        FileLocks(Path("/proc/self/locks")).acquire("t")
    assert "writable" in caught.value.help


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "..", "", "a" * 300])
def test_what_is_no_id_becomes_no_file(name: str, tmp_path: Path) -> None:
    locks = FileLocks(tmp_path / "locks")
    with pytest.raises(NotFoundError):
        locks.acquire(name)
    with pytest.raises(NotFoundError):
        locks.is_free(name)
    assert list(tmp_path.rglob("*.lock")) == []


def test_what_stands_in_a_lock_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "t.lock").write_text("not a number")
    assert FileLocks(tmp_path).acquire("t", forgive=False).falls == 0
