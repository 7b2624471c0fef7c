"""Ids by their beginnings or as `last`, and what a shell completes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from openassay.cli.app import app
from openassay.cli.options import complete_format, complete_source, complete_thread
from openassay.cli.runtime import match_id
from openassay.errors import NotFoundError, OpenAssayError, StorageError, UsageError

APPLE = "What's happening with Apple?"
Typed = Callable[..., Result]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def typed(data: Path) -> Typed:
    def run(*words: str) -> Result:
        done = CliRunner().invoke(app, list(words))
        if isinstance(done.exception, OpenAssayError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done

    return run


@pytest.fixture
def report(typed: Typed) -> dict[str, str]:
    provenance = json.loads(typed("ask", APPLE, "--json", "--quiet").stdout)["provenance"]
    return {"thread": provenance["thread"], "run": provenance["run"]}


@pytest.mark.slow
def test_a_thread_goes_by_the_start_of_its_id_or_as_the_last(typed: Typed, report: dict[str, str]) -> None:
    thread, run = report["thread"], report["run"]
    for name in (thread, thread[:5], "last"):
        assert json.loads(typed("threads", "show", name, "--json").stdout)["provenance"]["thread"] == thread
    for name in (run, run[:5], "last"):
        assert json.loads(typed("threads", "timings", "last", "--run", name, "--json").stdout)["run"] == run
    newer = typed("threads", "new", "Newer").stdout.strip()
    assert f"--thread {newer}" in typed("threads", "show", "last").stderr
    assert "They state the same" in typed("threads", "diff", thread[:6], thread[:7]).stdout
    typed("threads", "delete", newer[:8], "--yes")
    assert json.loads(typed("threads", "show", "last", "--json").stdout)["provenance"]["thread"] == thread


def test_an_unknown_or_ambiguous_start_is_refused(typed: Typed, report: dict[str, str]) -> None:
    with pytest.raises(NotFoundError, match="no thread nosuch"):
        typed("threads", "show", "nosuch")
    with pytest.raises(NotFoundError):
        typed("threads", "timings", "last", "--run", "nosuch")
    with pytest.raises(UsageError, match="the ids of 2 threads begin with a1") as caught:
        match_id("a1", ["a1b2", "a1c3", "b111"], "threads")
    assert "a1b2, a1c3" in caught.value.help
    assert match_id("a1b2", ["a1b2", "a1b2c3"], "threads") == "a1b2"


def test_without_threads_there_is_no_last(typed: Typed) -> None:
    with pytest.raises(NotFoundError, match="there is no thread yet"):
        typed("threads", "show", "last")


def test_threads_are_completed(typed: Typed, report: dict[str, str]) -> None:
    thread = report["thread"]
    assert complete_thread(thread[:3]) == [(thread, APPLE)]
    assert [id for id, _ in complete_thread("")] == [thread, "last"]
    assert complete_thread("zz") == []


def test_completion_needs_no_data_folder_and_no_good_settings(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete_thread("") == [("last", "the newest of them")]
    assert not data.exists()
    data.mkdir()
    (data / "openassay.sqlite3").write_bytes(b"not a database at all, but something else")
    assert complete_thread("x") == []
    monkeypatch.setenv("OPENASSAY_DEPTH", "bottomless")
    assert complete_thread("x") == []
    assert complete_source("arx") == ["arxiv"]


def test_sources_and_formats_are_completed(data: Path) -> None:
    assert "tavily" in complete_source("")
    assert complete_source("tavily,arx") == ["tavily,arxiv"]
    assert complete_format("p") == ["pdf"]
    assert "zip" in complete_format("")


def test_the_shell_is_given_threads(typed: Typed, report: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"_OPENASSAY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "openassay threads show "}
    shown = CliRunner().invoke(app, [], env=given, prog_name="openassay")
    assert report["thread"] in shown.stdout


def test_a_data_directory_of_version_0_1_is_refused(typed: Typed, data: Path) -> None:
    data.mkdir()
    (data / "assay.db").touch()
    with pytest.raises(StorageError, match=r"was written by version 0\.1") as caught:
        typed("threads")
    assert "OPENASSAY_DATA_DIR" in caught.value.help
