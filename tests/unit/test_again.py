"""What `make test` does with a test that failed: once more, alone."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests import again

ONCE = """
from pathlib import Path
import pytest

@pytest.mark.requirement("C-01")
def test_once(tmp_path_factory):
    seen = Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first

def test_never():
    assert {never}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole run of it has left its record; `main` looks there."""
    (tmp_path / ".reports").mkdir()
    shutil.copy(again.ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = requirement(id, ...): what it proves\n", encoding="utf-8")
    for name, place in {"FAILED": "lastfailed", "RECORD": "record.json", "AGAIN": ".reports/again.json"}.items():
        monkeypatch.setattr(again, name, tmp_path / place)
    return tmp_path


def tried(project: Path, *, never: bool) -> int:
    (test := project / "test_it.py").write_text(ONCE.format(never=never), encoding="utf-8")
    (project / "seen").touch()
    (project / "lastfailed").write_text(json.dumps({f"{test}::test_once": True, f"{test}::test_never": True}))
    before = {"requirements": ["C-01"], "outcome": "failed"}
    (project / "record.json").write_text(json.dumps({"tests": {f"{test}::test_other": before}}), encoding="utf-8")
    return again.main()


@pytest.mark.slow
def test_what_passes_alone_is_named_and_counts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tried(project, never=True) == 0

    assert capsys.readouterr().out.count("UNSTEADY") == 2
    outcomes = [one["outcome"] for one in json.loads((project / "record.json").read_text())["tests"].values()]
    assert sorted(outcomes) == ["failed", "passed"]


@pytest.mark.slow
def test_what_fails_again_has_failed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tried(project, never=False) == 1
    assert "UNSTEADY" not in capsys.readouterr().out


@pytest.mark.parametrize("failed", [0, again.MOST + 1])
def test_none_or_many_are_not_tried_again(project: Path, failed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (project / "lastfailed").write_text(json.dumps({f"t.py::test_{n}": True for n in range(failed)}))

    assert again.main() == 1
