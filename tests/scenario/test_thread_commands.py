"""`openassay threads` and `openassay admin`, typed without a terminal: list, begin, show, rename, export, delete,
check."""

import asyncio
import fcntl
import json
import sqlite3
from collections.abc import Callable, Coroutine
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from zipfile import ZipFile

import pytest
from typer.testing import CliRunner, Result

from openassay.bootstrap import open_engine
from openassay.cli import admin
from openassay.cli.app import app
from openassay.engine.engine import Engine
from openassay.errors import (
    ConfigurationError,
    IntegrityError,
    NotFoundError,
    OpenAssayError,
    PathError,
    ThreadBusyError,
    UsageError,
)
from openassay.models.event import RunStatus
from openassay.settings import load
from openassay.storage.database import ALL_TABLES, MAIN_SCHEMA, load_migrations

APPLE = "What's happening with Apple?"
KEY, OTHER = "a key that only these tests have", "another key that only these tests have"

Typed = Callable[..., Result]
T = TypeVar("T")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def typed(data: Path) -> Typed:
    def run(*words: str, code: int = 0) -> Result:
        done = CliRunner().invoke(app, list(words))
        if isinstance(done.exception, OpenAssayError):
            raise done.exception
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture
def thread(typed: Typed) -> str:
    report = json.loads(typed("ask", APPLE, "--json", "--quiet").stdout)
    return str(report["provenance"]["thread"])


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_thread_is_begun_asked_renamed_and_listed(typed: Typed) -> None:
    made = typed("threads", "new").stdout.strip()
    typed("ask", APPLE, "--thread", made, "--quiet")
    before = typed("threads").stdout.splitlines()[1]
    typed("threads", "rename", made, "Fruit\ncompany")

    head, row = typed("threads").stdout.splitlines()
    [summary] = json.loads(typed("threads", "--json").stdout)

    assert head.split() == ["thread", "status", "age", "cost", "question"]
    assert before.endswith(f"$0.00  {APPLE}"), "it is called after its first question"
    assert row.startswith(f"{made}  done")
    assert row.endswith(f"Fruit company · {APPLE}")
    assert (summary["id"], summary["title"], summary["turns"]) == (made, "Fruit company", 1)
    assert "Nothing is running" in typed("threads", "--active").stderr


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_what_is_long_is_cut_short_unless_all_is_asked_for(typed: Typed, thread: str) -> None:
    long = " ".join(["What is happening with Apple and its stock, its products, its news?"] * 6)
    typed("ask", long, "--thread", thread, "--quiet", "--yes")

    short, full = (typed("threads", "show", thread, *how).stdout for how in ((), ("--full",)))

    assert long not in short
    assert "…" in short
    assert long in full
    assert len(short) < len(full)


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_thread_is_taken_out_as_one_file(typed: Typed, thread: str, tmp_path: Path) -> None:
    typed("threads", "export", thread, "--format", "zip")
    with ZipFile(tmp_path / f"{thread}.zip") as bundle:
        names = bundle.namelist()
        report = json.loads(bundle.read("report.json"))
        [run] = [json.loads(bundle.read(name)) for name in names if name.count("/") == 2 and name.endswith("/run.json")]
        events = bundle.read(f"runs/{run['id']}/events.jsonl").decode().splitlines()
        texts = {name[10:74]: bundle.read(name).decode() for name in names if name.endswith(".txt")}

    assert {"README.md", "thread.json", "report.md", "report.html"} <= set(names)
    assert run["question"] == APPLE
    assert [json.loads(line)["seq"] for line in events] == list(range(1, len(events) + 1))
    for claim in report["claims"]:
        for span in claim["spans"]:
            assert texts[span["document"]][span["start"] : span["end"]] == span["quote"]
    with pytest.raises(PathError, match="does not exist"):
        typed("threads", "export", thread, "--out", str(tmp_path / "no" / "where.zip"))
    assert [path.name for path in tmp_path.glob("*.part")] == []


@pytest.mark.slow
def test_what_is_not_there_or_done_is_not_gone_on_with(typed: Typed, thread: str) -> None:
    for command in (["resume"], ["threads", "stop"], ["threads", "follow"]):
        with pytest.raises(NotFoundError, match="no thread nosuch"):
            typed(*command, "nosuch")
    with pytest.raises(UsageError, match="already answered"):
        typed("resume", thread)
    with pytest.raises(UsageError, match="nothing is running on this thread"):
        typed("threads", "stop", thread)
    for words in ((), (thread, "--all")):
        with pytest.raises(UsageError, match="give one of THREAD, --from DIR and --all"):
            typed("resume", *words)
    assert json.loads(typed("threads", "follow", thread, "--json").stdout)["status"] == "complete"
    typed("threads", "delete", thread, "--yes")
    with pytest.raises(NotFoundError):
        typed("resume", thread)


@pytest.mark.slow
def test_several_threads_are_deleted_or_none(typed: Typed, thread: str) -> None:
    other = typed("threads", "new", "Another").stdout.strip()
    with pytest.raises(NotFoundError):
        typed("threads", "delete", thread, "nosuch", "--yes")
    assert len(json.loads(typed("threads", "--json").stdout)) == 2

    typed("threads", "delete", thread, other, "--yes")

    assert json.loads(typed("threads", "--json").stdout) == []


@pytest.mark.slow
def test_threads_are_kept_for_ever_unless_somebody_says_otherwise(
    typed: Typed, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="for ever"):
        typed("threads", "expire")
    monkeypatch.setenv("OPENASSAY_PERSISTENCE__TTL_HOURS", "0.0000001")

    assert typed("threads", "expire").stderr.count("1 thread deleted.") == 1

    assert json.loads(typed("threads", "--json").stdout) == []


@pytest.mark.slow
@pytest.mark.requirement("W-18")
def test_a_thread_on_which_nothing_was_asked_has_no_past(typed: Typed, thread: str) -> None:
    empty = typed("threads", "new", "Nothing yet").stdout.strip()
    for words in (
        ("threads", "history", empty),
        ("threads", "fork", empty),
        ("threads", "diff", empty, thread),
        ("threads", "state", empty, "--at", "1"),
    ):
        with pytest.raises(UsageError, match="nothing was asked on thread") as caught:
            typed(*words)
        assert f"--thread {empty}" in caught.value.help


@pytest.mark.slow
@pytest.mark.requirement("W-18")
def test_moments_are_told_in_few_columns_and_branches_by_what_they_changed(
    typed: Typed, thread: str, tmp_path: Path
) -> None:
    run, first, second, *_, last = typed("threads", "history", thread).stdout.splitlines()
    assert run.split()[::2] == ["run", f"{datetime.now(UTC):%Y-%m-%d}"]
    assert first.split()[3:5] == ["asked", "asked:"]
    assert second.split()[3:] == ["begun", "→", "understand"]
    assert last.split()[3:5] == ["publish", "report"]
    assert "$" not in run + first + last

    typed("threads", "fork", thread, "--words", "50", "--yes", "--quiet")
    assert f"↳ 50 words · {APPLE}" in typed("threads").stdout

    edits = tmp_path / "edits.json"
    for text, message in (("[]", "nothing is changed"), ("[", "not JSON"), ("1", "neither a list")):
        edits.write_text(text)
        with pytest.raises(UsageError, match=message) as caught:
            typed("threads", "fork", thread, "--plan", str(edits))
        assert "docs/howto/branches.md" in caught.value.help
    with pytest.raises(UsageError, match="follows the @"):
        typed("threads", "diff", f"{thread}@", thread)


@pytest.mark.slow
def test_nothing_is_deleted_where_nobody_can_be_asked(typed: Typed, thread: str) -> None:
    with pytest.raises(UsageError, match="nobody is there") as caught:
        typed("threads", "delete", thread)
    assert "--yes" in caught.value.help
    assert thread in typed("threads").stdout


def in_the_database(work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with open_engine(load()) as engine:
            return await work(engine)

    return asyncio.run(run())


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_a_run_whose_process_is_gone_is_told_from_one_at_work(typed: Typed, thread: str, data: Path) -> None:
    async def stands(engine: Engine, status: RunStatus) -> None:
        [run] = await engine.threads.runs(thread)
        await engine.threads.update(run.id, status=status)

    in_the_database(lambda engine: stands(engine, RunStatus.RUNNING))
    with (data / "locks" / f"{thread}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"{thread}  running" in typed("threads").stdout
    assert f"{thread}  stopped" in typed("threads").stdout
    assert json.loads(typed("threads", "--json").stdout)[0]["left"] is True

    in_the_database(lambda engine: stands(engine, RunStatus.CANCELLED))
    told = typed("resume", "--all").stderr
    assert f"Stopped by a person, and not resumed: {thread}." in told


@pytest.mark.slow
def test_a_question_on_a_thread_that_is_at_work_is_not_asked(
    typed: Typed, thread: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.runner.LOCK_WAIT_SECONDS", 0.1)
    with (data / "locks" / f"{thread}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ThreadBusyError, match="your question was not asked"):
            typed("ask", APPLE, "--thread", thread)
    assert len(json.loads(typed("threads", "--json").stdout)) == 1


@pytest.mark.requirement("C-15")
def test_the_doctor_looks_at_the_database(typed: Typed, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def database() -> tuple[bool, str]:
        [found] = [one for one in admin.run_checks([admin.check_database]) if one.name == "database"]
        return found.good, found.detail

    assert database() == (True, "none yet; the first question makes one")
    typed("threads", "new")
    schema = f"schema {load_migrations(MAIN_SCHEMA.migrations)[-1].version}"
    assert database() == (True, f"{data / 'openassay.sqlite3'}, sqlite, {schema}, sealed without a key, not encrypted")
    rows(data, "UPDATE threads SET title = 'x'")
    good, detail = database()
    assert not good
    assert "row threads" in detail
    (data / "openassay.sqlite3").write_bytes((data / "openassay.sqlite3").read_bytes()[:9000])
    assert not database()[0]


@pytest.mark.slow
@pytest.mark.requirement("C-15")
def test_a_damaged_thread_is_marked_and_can_be_deleted(typed: Typed, thread: str, data: Path) -> None:
    other = typed("threads", "new", "Another").stdout.strip()
    rows(data, "UPDATE threads SET title = 'x' WHERE title LIKE '%Apple%'")
    assert f"{thread}  damaged" in typed("threads").stdout
    typed("threads", "delete", thread, "--yes")
    assert [one["id"] for one in json.loads(typed("threads", "--json").stdout)] == [other]


@pytest.mark.slow
@pytest.mark.requirement("W-16")
def test_what_is_amiss_with_a_journal_is_told_by_its_name(
    typed: Typed, thread: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [journal] = (data / "checkpoints").iterdir()
    events = journal / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-9])
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match="there is no folder nowhere"):
        typed("resume", "--from", "nowhere")
    told = typed("resume", "--from", str(journal)).stderr
    assert "Restored from its journal" in told
    assert "events.jsonl was cut off" in told

    events.write_bytes(events.read_bytes().replace(b"understand", b"misread", 1))
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path / "third"))
    with pytest.raises(IntegrityError, match=f"{journal}: "):
        typed("resume", "--from", str(journal))


def rows(data: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(data / "openassay.sqlite3")) as connection, connection:
        return connection.execute(sql).fetchall()


@pytest.mark.slow
@pytest.mark.requirement("F-10", "C-15")
def test_what_is_wrong_is_named_row_by_row(typed: Typed, thread: str, data: Path) -> None:
    assert "is what was written" in typed("admin", "check", thread).stderr
    rows(data, "UPDATE events SET stage = 'x' WHERE seq = 4")

    for command in (("admin", "check", thread), ("admin", "check")):
        found = typed(*command, code=1)
        assert "row events" in found.stdout
        assert "/4 is not what was written" in found.stdout
        assert "1 problem." in found.stderr
    with pytest.raises(NotFoundError):
        typed("admin", "check", "nosuch")


@pytest.mark.slow
@pytest.mark.requirement("F-10")
def test_a_key_is_turned_on_changed_and_turned_off(
    typed: Typed, thread: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY)
    with pytest.raises(ConfigurationError, match="not sealed with a key yet"):
        typed("threads")
    typed("admin", "seal")
    assert thread in typed("threads").stdout

    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", OTHER)
    with pytest.raises(ConfigurationError, match="another key"):
        typed("admin", "seal")
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY_BEFORE", KEY)
    assert "persistence.encrypt to true" in typed("admin", "seal", "--encrypt").stderr
    assert all(APPLE not in question for [question] in rows(data, "SELECT question FROM runs"))

    monkeypatch.setenv("OPENASSAY_PERSISTENCE__ENCRYPT", "true")
    monkeypatch.delenv("OPENASSAY_STORAGE_KEY_BEFORE")
    assert APPLE in typed("threads").stdout
    assert "is what was written" in typed("admin", "check").stderr

    monkeypatch.setenv("OPENASSAY_STORAGE_KEY_BEFORE", OTHER)
    monkeypatch.delenv("OPENASSAY_STORAGE_KEY")
    monkeypatch.setenv("OPENASSAY_PERSISTENCE__ENCRYPT", "false")
    typed("admin", "seal")
    monkeypatch.delenv("OPENASSAY_STORAGE_KEY_BEFORE")
    assert APPLE in typed("threads").stdout


def test_what_was_altered_is_not_sealed_anew(
    typed: Typed, thread: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows(data, "UPDATE events SET stage = 'x' WHERE seq = 4")
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY)

    with pytest.raises(IntegrityError, match="row events"):
        typed("admin", "seal")


@pytest.mark.slow
@pytest.mark.requirement("C-15")
def test_what_has_no_seals_is_refused(typed: Typed, thread: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever removes all seals must not have edits signed by the advice that the error gives."""
    for name in ("meta", "heads"):
        rows(data, f"DELETE FROM {name}")  # noqa: S608
    for table in ALL_TABLES:
        rows(data, f"UPDATE {table.name} SET seal = ''")  # noqa: S608
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY)

    for command in (("threads",), ("admin", "seal")):
        with pytest.raises(IntegrityError, match="row meta sealing is missing"):
            typed(*command)
