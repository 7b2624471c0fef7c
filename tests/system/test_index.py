"""`openassay sources index` in its own processes: stopped, killed, started twice, and on folders that are not as they
should."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.conftest import PostgresServer
from tests.system.command import OPENASSAY, PATIENCE, Command, Ran, environment

FILES, PASSAGES = 1_200, 12  # of each
PARAGRAPH = "Kiln {0} of yard {1} was fired to {0} degrees, and its glaze was grey. " * 8
POSTGRES = {"OPENASSAY_PERSISTENCE__BACKEND": "postgres"}


def write_many(folder: Path, files: int = FILES, passages: int = PASSAGES) -> Path:
    folder.mkdir()
    for number in range(files):
        text = "\n\n".join(PARAGRAPH.format(place, number) for place in range(passages))
        (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
    return folder


def indexing(openassay: Command, *args: str, env: dict[str, str] | None = None) -> Ran:
    """From its first import on, since it starts processes that are to be like it."""
    return openassay("sources", "index", *args, env=env, installed=True, timeout=2 * PATIENCE)


@contextmanager
def under_way(openassay: Command, *args: str, env: dict[str, str] | None = None) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(
        [str(OPENASSAY), "sources", "index", *args],
        cwd=openassay.folder,
        env=environment(openassay.data, **(env or {})),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


Count = Callable[[], int]


def files_in(openassay: Command) -> int:
    """Of all indexes on SQLite, as far as they were kept."""
    total = 0
    for file in (openassay.data / "libraries").glob("*.sqlite3"):
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=5)) as connection:
                total += connection.execute("SELECT count(*) FROM files").fetchone()[0]
        except sqlite3.OperationalError:  # its tables are being made
            continue
    return total


def rows_in(address: str) -> int:
    with closing(psycopg.connect(address)) as connection:
        row = connection.execute("SELECT count(*) FROM library_files").fetchone()
        return int(row[0]) if row else 0


def wait_until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < ends, "it never came to be"
        time.sleep(0.02)


def children(process: "subprocess.Popen[bytes]") -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# Ahead of time ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_folder_that_was_indexed_costs_a_question_a_walk(openassay: Command) -> None:
    done = indexing(openassay, "tiny")
    assert done.code == 0, done.err
    assert "tiny: 2 files, 2 passages; 2 new or changed, 0 removed" in done.out

    told = openassay("ask", "How high are the tides in the Bay of Fundy?", "--docs", "tiny")
    assert told.code == 0, told.err
    assert "2 files, 0 new or changed" in told.err
    again = indexing(openassay, "tiny", "--json").json
    assert (again[0]["files"], again[0]["new"], again[0]["removed"], again[0]["skipped"]) == (2, 0, 0, [])


@pytest.mark.slow
def test_only_what_has_changed_is_read_and_what_is_gone_leaves(openassay: Command) -> None:
    indexing(openassay, "tiny")
    (openassay.folder / "tiny" / "moon.txt").unlink()
    (openassay.folder / "tiny" / "tides.md").write_text("Tides are gone.\n", encoding="utf-8")
    (openassay.folder / "tiny" / "new.txt").write_text("Kilns are new.\n", encoding="utf-8")
    (told,) = indexing(openassay, "tiny", "--json").json
    assert (told["files"], told["passages"], told["new"], told["removed"]) == (2, 2, 2, 1)


@pytest.mark.slow
def test_what_is_indexed_is_shown_and_can_be_forgotten(openassay: Command) -> None:
    assert "Nothing is indexed yet" in openassay("sources", "index").err
    indexing(openassay, "tiny", "tiny/moon.txt")
    shown = openassay("sources", "index", "--status")
    assert shown.out == openassay("sources", "index").out
    assert f"{openassay.folder / 'tiny'} " in shown.out
    listed = openassay("sources", "index", "--status", "--json").json
    assert {one["root"]: (one["files"], one["passages"], one["vectors"]) for one in listed} == {
        str(openassay.folder / "tiny"): (2, 2, 0),
        str(openassay.folder / "tiny" / "moon.txt"): (1, 1, 0),
    }
    assert all(one["kept"] and one["bytes"] > 10_000 for one in listed)
    assert len(openassay("sources", "index", "tiny", "--status", "--json").json) == 1
    openassay("sources", "index", "elsewhere", "--status").refused(
        2, "elsewhere is not indexed", "openassay sources index"
    )

    assert openassay("sources", "index", "tiny", "--forget").code == 0
    assert [one["root"] for one in openassay("sources", "index", "--json").json] == [
        str(openassay.folder / "tiny" / "moon.txt")
    ]
    openassay("sources", "index", "tiny", "--forget").refused(2, "not indexed")


@pytest.mark.slow
def test_an_index_made_on_purpose_outlives_the_threads_that_asked_it(openassay: Command) -> None:
    indexing(openassay, "tiny")
    asked = openassay("ask", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json").json
    assert openassay("threads", "delete", asked["provenance"]["thread"], "--yes").code == 0
    assert len(openassay("sources", "index", "--json").json) == 1


@pytest.mark.slow
def test_vectors_are_made_for_each_passage(openassay: Command) -> None:
    (told,) = indexing(openassay, "tiny", "--vectors", "--json").json
    assert (told["passages"], told["vectors"]) == (2, 2)
    (openassay.folder / "tiny" / "new.txt").write_text("Kilns are new.\n", encoding="utf-8")
    answered = openassay("ask", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json")
    assert answered.code == 0, answered.err
    (after,) = openassay("sources", "index", "--json").json
    assert (after["passages"], after["vectors"]) == (3, 2), "no question waits for vectors"
    assert "openassay sources index --vectors" in answered.err
    (completed,) = indexing(openassay, "tiny", "--vectors", "--json").json
    assert (completed["passages"], completed["vectors"]) == (3, 3)


# Stopped and killed -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("F-10")
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_killed_in_the_middle_it_goes_on_where_it_was(
    where: str, openassay: Command, request: pytest.FixtureRequest
) -> None:
    write_many(openassay.folder / "many")
    address = request.getfixturevalue("postgres_address") if where == "postgres" else ""
    env = {**POSTGRES, "DATABASE_URL": address} if address else {}
    kept: Count = (lambda: rows_in(address)) if address else (lambda: files_in(openassay))
    with under_way(openassay, "many", "--jobs", "2", env=env) as process:
        wait_until(lambda: kept() > 0)
        started = children(process)
        process.kill()
        process.wait()
    assert len(started) >= 2, "files are read in processes of their own"
    wait_until(lambda: not any(map(is_alive, started)))
    before = kept()
    assert 0 < before < FILES

    (told,) = indexing(openassay, "many", "--json", env=env).json
    assert (told["files"], told["new"], told["skipped"]) == (FILES, FILES - before, [])
    assert told["passages"] == FILES * PASSAGES
    (again,) = indexing(openassay, "many", "--json", env=env).json
    assert (again["new"], again["passages"]) == (0, FILES * PASSAGES)
    if not address:
        check_whole(openassay)


def check_whole(openassay: Command) -> None:
    (file,) = (openassay.data / "libraries").glob("*.sqlite3")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO passages_fts (passages_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


@pytest.mark.slow
def test_stopped_by_a_person_it_says_how_to_go_on(openassay: Command) -> None:
    write_many(openassay.folder / "many")
    with under_way(openassay, "many", "--jobs", "2") as process:
        wait_until(lambda: files_in(openassay) > 0)
        indexing(openassay, "many").refused(1, "being indexed by another process", "goes on where it was")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told.decode()
    assert "continues from there" in told.decode()
    assert b"Traceback" not in told
    before = files_in(openassay)
    (after,) = indexing(openassay, "many", "--json").json
    assert (after["files"], after["new"]) == (FILES, FILES - before)


@pytest.mark.slow
def test_its_memory_does_not_grow_with_the_folder(openassay: Command) -> None:
    """Measured: 3 MB more for ten times as many passages, which are 12 MB of text and 60 MB as objects."""
    most = []
    for files in (200, 2_000):
        write_many(openassay.folder / f"of{files}", files, 10)
        with under_way(openassay, f"of{files}", "--jobs", "2") as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        most.append(used.ru_maxrss / 1024)
    assert most[1] - most[0] < 30, most


# Folders that are not as they should be ---------------------------------------------------------------


@pytest.mark.slow
def test_a_wrong_path_is_told_before_anything_is_done(openassay: Command) -> None:
    (openassay.folder / "empty").mkdir()
    indexing(openassay, "tiny", "nowhere").refused(2, "nowhere does not exist")
    indexing(openassay, "tiny", "empty").refused(2, "holds no file that OpenAssay reads")
    assert "Nothing is indexed yet" in openassay("sources", "index").err


@pytest.mark.slow
def test_what_cannot_be_read_is_listed_at_the_end(openassay: Command) -> None:
    folder = openassay.folder / "tiny"
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 not at all")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    done = indexing(openassay, "tiny")
    assert done.code == 0
    assert "tiny: 2 files, 2 passages" in done.out
    lines = done.err.splitlines()
    assert any("broken.pdf: not a readable PDF" in line for line in lines)
    assert any("empty.txt: holds no text" in line for line in lines)
    assert "left out  1 file of kinds that OpenAssay does not read" in lines
    (folder / "tides.md").unlink()
    (folder / "moon.txt").unlink()
    indexing(openassay, "tiny").refused(2, "no document could be read")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_any_file_name_will_do(where: str, openassay: Command, request: pytest.FixtureRequest) -> None:
    env = {**POSTGRES, "DATABASE_URL": request.getfixturevalue("postgres_address")} if where == "postgres" else {}
    folder = openassay.folder / "odd\n\x1b[31m'; DROP TABLE files; --"
    folder.mkdir()
    names = [b"a\nb.txt", b"\x1b[2J.txt", b"caf\xe9.txt", "क़ाफ़.txt".encode(), b"'\"$(id).txt", b"x" * 200 + b".txt"]
    for number, name in enumerate(names):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text(f"Kiln {number} is hot.", encoding="utf-8")
    done = indexing(openassay, str(folder), "--json", env=env)
    assert done.code == 0, done.err
    assert (done.json[0]["files"], done.json[0]["skipped"]) == (len(names), [])
    assert indexing(openassay, str(folder), "--json", env=env).json[0]["new"] == 0
    shown = openassay("sources", "index", env=env)
    assert "\x1b[31m" not in shown.out + done.err
    assert openassay("sources", "index", str(folder), "--forget", env=env).code == 0


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_full_disk_is_told_and_nothing_is_lost(openassay: Command) -> None:
    indexing(openassay, "tiny")
    write_many(openassay.folder / "tiny" / "more", 150, 20)
    limited = ("bash", "-c", 'ulimit -f 400; exec "$0" "$@"')
    full = openassay("sources", "index", "tiny", prefix=limited)
    assert full.code == 1, full.err
    assert "full" in full.err or "room" in full.err
    (told,) = indexing(openassay, "tiny", "--json").json
    assert (told["files"], told["passages"]) == (152, 2 + 150 * 20)


def test_nothing_is_indexed_that_would_be_gone_at_once(openassay: Command) -> None:
    openassay("sources", "index", "tiny", env={"OPENASSAY_PERSISTENCE__BACKEND": "memory"}).refused(
        2, "memory", "sqlite or postgres"
    )


# A fleet ----------------------------------------------------------------------------------------------


def shared(openassay: Command, address: str) -> Callable[..., Any]:
    return lambda *args: openassay(*args, env={**POSTGRES, "DATABASE_URL": address}, installed=True)


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_what_another_machine_has_indexed_is_searched_where_the_folder_is_not(
    openassay: Command, postgres_address: str, tmp_path: Path
) -> None:
    here = shared(openassay, postgres_address)
    assert here("sources", "index", "tiny").code == 0
    (openassay.folder / "tiny").rename(tmp_path / "moved")
    there = shared(Command(openassay.folder, tmp_path / "other machine"), postgres_address)

    told = there("ask", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json")

    assert told.code == 0, told.err
    assert "16.3 metres" in json.dumps(told.json)
    assert any("tiny is not on this machine" in notice for notice in told.json["notices"])
    there("ask", "How high are the tides in the Bay of Fundy?", "--docs", "never", "--json").refused(2, "not exist")


@pytest.mark.slow
def test_an_encrypted_database_holds_no_words_in_the_clear(openassay: Command, postgres_address: str) -> None:
    env = {**POSTGRES, "DATABASE_URL": postgres_address, "OPENASSAY_PERSISTENCE__ENCRYPT": "true"}
    done = indexing(openassay, "tiny", env={**env, "OPENASSAY_STORAGE_KEY": "a key that only this test has"})
    assert done.code == 0, done.err
    assert "stays on this machine" in done.err
    assert rows_in(postgres_address) == 0
    assert files_in(openassay) == 2


@pytest.mark.slow
def test_where_there_can_be_no_vectors_it_says_so(
    openassay: Command, postgres_address: str, postgres_server: PostgresServer, request: pytest.FixtureRequest
) -> None:
    name = f"nobody_{os.getpid()}"
    postgres_server.execute(f"CREATE ROLE {name} LOGIN")
    request.addfinalizer(lambda: postgres_server.execute(f"DROP ROLE {name}"))
    with closing(psycopg.connect(postgres_address, autocommit=True)) as owner:
        owner.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {name}".encode())
        owner.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}".encode())
        done = shared(openassay, postgres_address.replace("://postgres:", f"://{name}:"))(
            "sources", "index", "tiny", "--vectors"
        )
        owner.execute(f"DROP OWNED BY {name}".encode())
    assert done.code == 0, done.err
    assert "No vectors were made, so passages are found by their words alone: " in done.err
    assert "tiny: 2 files, 2 passages; 2 new" in done.out
