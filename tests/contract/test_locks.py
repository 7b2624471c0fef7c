"""One worker a thread, whoever holds the lock."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.errors import NotFoundError, StorageError, ThreadBusyError
from assay.ports import RunLocks
from assay.storage.locks import FileLocks, PostgresLocks
from assay.storage.postgres import PostgresDatabase
from assay.testing import MemoryLocks
from tests.conftest import PostgresServer


@pytest.fixture(params=["files", "memory", "postgres"])
def locks(request: pytest.FixtureRequest, tmp_path: Path) -> RunLocks:
    made: dict[str, Callable[[], RunLocks]] = {
        "files": lambda: FileLocks(tmp_path / "locks"),
        "memory": MemoryLocks,
        "postgres": lambda: PostgresLocks(request.getfixturevalue("postgres_database")),
    }
    return made[request.param]()


def test_a_taken_lock_is_refused_until_it_is_released(locks: RunLocks) -> None:
    locks.take("t")
    with pytest.raises(ThreadBusyError):
        locks.take("t")
    locks.take("another")
    locks.release("t")
    locks.take("t")


def test_what_is_held_is_known(locks: RunLocks) -> None:
    locks.take("t")
    assert [locks.holds("t"), locks.holds("another")] == [True, False]
    locks.release("t")
    assert not locks.holds("t")


def test_releasing_what_is_not_held_is_nothing(locks: RunLocks) -> None:
    locks.release("t")


HOLDER = """
import sys, time
from pathlib import Path
from assay.storage.locks import FileLocks, PostgresLocks
from assay.storage.postgres import PostgresDatabase
kind, where = sys.argv[1:]
locks = FileLocks(Path(where)) if kind == "files" else PostgresLocks(PostgresDatabase(where))
locks.take("t")
print("held", flush=True)
time.sleep(60)
"""


@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("kind", ["files", "postgres"])
def test_another_process_is_kept_out_until_the_holder_dies(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path) if kind == "files" else request.getfixturevalue("postgres_address")
    locks: RunLocks = (
        FileLocks(tmp_path) if kind == "files" else PostgresLocks(request.getfixturevalue("postgres_database"))
    )
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, kind, where], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ThreadBusyError):
            locks.take("t")
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    _taken_in_a_moment(locks)


def _taken_in_a_moment(locks: RunLocks) -> None:
    """The server notices the end of a connection a little after the operating system does."""
    for _ in range(100):
        try:
            return locks.take("t")
        except ThreadBusyError:
            time.sleep(0.05)
    pytest.fail("the lock of a dead process was not freed")


def test_two_engines_of_one_process_keep_each_other_out(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as one, PostgresDatabase(postgres_address) as two:
        first, second = PostgresLocks(one), PostgresLocks(two)
        first.take("t")
        with pytest.raises(ThreadBusyError):
            second.take("t")
        first.release("t")
        second.take("t")


def test_closing_the_database_frees_its_locks(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as one:
        PostgresLocks(one).take("t")
    with PostgresDatabase(postgres_address) as two:
        _taken_in_a_moment(PostgresLocks(two))


def test_locks_outlive_a_restart_of_the_server(postgres_address: str, postgres_server: PostgresServer) -> None:
    with PostgresDatabase(postgres_address) as one, PostgresDatabase(postgres_address) as two:
        first, second = PostgresLocks(one), PostgresLocks(two)
        first.take("t")
        postgres_server.stop()
        postgres_server.start()
        first.take("another")
        with pytest.raises(ThreadBusyError):
            second.take("t")
        first.release("t")
        second.take("t")


@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("how", ["holds", "take"])
def test_a_lock_that_was_lost_to_another_is_known_to_be(postgres_address: str, how: str) -> None:
    with PostgresDatabase(postgres_address) as one, PostgresDatabase(postgres_address) as two:
        first, second = PostgresLocks(one), PostgresLocks(two)
        first.take("t")
        first.take("kept")
        with two.connection() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND pid <> ?",
                (two.session().info.backend_pid,),
            )
        _taken_in_a_moment(second)
        if how == "take":
            first.take("another")
        assert not first.holds("t")
        assert first.holds("kept"), "nobody else has taken it meanwhile"
        first.release("t")
        with pytest.raises(ThreadBusyError):
            first.take("t")


def test_a_server_that_is_gone_is_not_waited_for_for_ever(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as database:
        said = database.session().info.get_parameters()
    with PostgresDatabase(f"{postgres_address}{'&' if '?' in postgres_address else '?'}connect_timeout=7") as database:
        wanted = database.session().info.get_parameters()
    assert (said["connect_timeout"], said["tcp_user_timeout"]) == ("15", "30000")
    assert (wanted["connect_timeout"], wanted["tcp_user_timeout"]) == ("7", "30000")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that root may not write either")
def test_a_folder_for_locks_that_cannot_be_made() -> None:
    with pytest.raises(StorageError, match="/proc/self/locks") as caught:
        FileLocks(Path("/proc/self/locks")).take("t")
    assert "writable" in caught.value.help


@pytest.mark.parametrize("name", ["../elsewhere", "a/b", "..", "", "a" * 300])
def test_what_is_no_id_becomes_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        FileLocks(tmp_path / "locks").take(name)
    assert list(tmp_path.rglob("*.lock")) == []
