"""A data directory that cannot be used: one line that says what to do, and nothing lost afterwards."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.command import Command, without_privileges

APPLE = ("ask", "What's happening with Apple?", "--json", "--quiet")


@pytest.fixture
def thread(openassay: Command) -> str:
    return str(openassay(*APPLE).json["provenance"]["thread"])


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_full_disk_loses_nothing(openassay: Command, thread: str) -> None:
    room = (openassay.data / "openassay.sqlite3").stat().st_size // 1024 + 40
    limited = ("bash", "-c", f'ulimit -f {room}; exec "$0" "$@"')

    full = openassay("research", "What about their stock, and their news?", "--thread", thread, prefix=limited)

    assert full.code == 1, full.err
    assert "openassay.sqlite3" in full.err
    assert "full" in full.err or "room" in full.err
    assert openassay("admin", "check").code == 0
    going_on = openassay("resume", thread, "--json", "--quiet")
    assert going_on.code == 0, going_on.err


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_data_directory_that_may_not_be_written(openassay: Command, thread: str) -> None:
    paths = [openassay.data, *openassay.data.rglob("*")]
    modes = [(path, path.stat().st_mode) for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        refused = openassay(*APPLE, prefix=without_privileges())
    finally:
        for path, mode in modes:
            path.chmod(mode)
    refused.refused(1, "writ")
    assert openassay("threads", "show", thread).code == 0


@pytest.mark.slow
def test_a_database_of_a_newer_version_is_left_alone(openassay: Command, thread: str) -> None:
    with closing(sqlite3.connect(openassay.data / "openassay.sqlite3")) as connection, connection:
        connection.execute(
            "INSERT INTO schema_migrations SELECT max(version) + 1, 'tomorrow', max(applied) FROM schema_migrations"
        )
    before = digest(openassay.data / "openassay.sqlite3")

    openassay("threads").refused(2, "newer", "Upgrade")

    assert digest(openassay.data / "openassay.sqlite3") == before


def digest(path: Path) -> tuple[int, bytes]:
    return os.stat(path).st_size, path.read_bytes()


@pytest.mark.slow
def test_a_database_that_is_kept_locked_is_told(openassay: Command, thread: str) -> None:
    with closing(sqlite3.connect(openassay.data / "openassay.sqlite3", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        refused = openassay(*APPLE)
        connection.execute("ROLLBACK")
    refused.refused(1, "locked", "try again")
    assert openassay.threads() == [thread]
