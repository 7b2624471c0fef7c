import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import traceability
from tests.traceability import Mark

ROOT = Path(__file__).resolve().parents[2]
LISTING = "| id | part |\n|---|---|\n| A-01 | one |\n| A-02 | two |\n| A-03 | three |\n| A-04 | four |\n"


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.md"
    path.write_text(LISTING, encoding="utf-8")
    return path


def record(folder: Path, **outcomes: tuple[str, str]) -> Path:
    tests = {f"t.py::{test}": {"requirements": [name], "outcome": result} for test, (name, result) in outcomes.items()}
    path = folder / "record.json"
    path.write_text(json.dumps({"tests": tests}), encoding="utf-8")
    return path


def run(listing: Path, path: Path, *flags: str) -> int:
    return traceability.main(["--list", str(listing), "--record", str(path), *flags])


def test_one_passing_test_covers_and_skipped_ones_do_not_count(
    listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record(tmp_path, test_a=("A-01", "passed"), test_b=("A-01", "skipped"), test_c=("A-02", "skipped"))

    assert run(listing, path) == 0

    covered, skipped, bare, _, summary = capsys.readouterr().out.splitlines()
    assert covered.split() == "A-01 covered 1 passed, 1 skipped: test_a, test_b".split()
    assert skipped.split() == "A-02 uncovered (all 1 skipped) 1 skipped: test_c".split()
    assert bare.split() == ["A-03", "uncovered"]
    assert summary == "requirements: 1 covered, 3 uncovered of 4"


def test_one_failure_outweighs_any_pass(listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = record(tmp_path, test_a=("A-01", "passed"), test_b=("A-01", "failed"))

    assert run(listing, path) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["A-01", "failing"]
    assert lines[-1] == "requirements: 0 covered, 1 failing, 3 uncovered of 4"


def test_long_lists_of_tests_are_cut_and_cases_of_one_test_named_once(
    listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {f"test_{letter}": ("A-01", "passed") for letter in "abcd"} | {"test_a[2]": ("A-01", "passed")}
    path = record(tmp_path, **outcomes)

    run(listing, path)
    assert capsys.readouterr().out.splitlines()[0].endswith("5 passed: test_a, test_b, test_c, and 1 more")

    run(listing, path, "--all")
    assert capsys.readouterr().out.splitlines()[0].endswith("5 passed: test_a, test_b, test_c, test_d")


def test_strict_fails_until_everything_is_covered(
    listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = {f"test_{n}": (f"A-0{n}", "passed") for n in range(1, 4)}
    assert run(listing, record(tmp_path, **outcomes), "--strict") == 1
    assert capsys.readouterr().err == "error: A-04 is uncovered\n"

    assert run(listing, record(tmp_path, **outcomes, test_4=("A-04", "skipped")), "--strict") == 1
    assert capsys.readouterr().err == "error: A-04 is uncovered (all 1 skipped)\n"

    assert run(listing, record(tmp_path, **outcomes, test_4=("A-04", "failed")), "--strict") == 1
    assert run(listing, record(tmp_path, **outcomes, test_4=("A-04", "passed")), "--strict") == 0


def test_strict_fails_where_nothing_was_run(listing: Path, tmp_path: Path) -> None:
    assert run(listing, tmp_path / "absent.json", "--strict") == 1


def test_make_requirements_is_strict_and_writes_the_page() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^requirements:.*\n\t@\$\(BIN\)/python tests/traceability\.py --write --strict$", makefile, re.M)


MARKS = {Mark("A-01", "t/x.py", "test_a"), Mark("A-01", "t/y.py", "TestZ::test_b"), Mark("A-03", "t/x.py", "test_a")}


def test_the_page_says_what_it_was_given() -> None:
    text = traceability.page("# Requirements\n\n## A: letters\n\n" + LISTING, MARKS)

    assert traceability.listed(text) == MARKS
    assert "## A: letters\n\n**A-01** one\n\n- [t/x.py](../t/x.py): `test_a`\n- [t/y.py]" in text
    assert "**A-02** two\n\n- no test\n" in text


def test_the_committed_page_names_the_tests_that_carry_the_marks(request: pytest.FixtureRequest) -> None:
    """As far as tests were collected; in a whole run these are all."""
    listed = traceability.listed(traceability.PAGE.read_text(encoding="utf-8"))
    collected = traceability.marked(request.session.items)

    assert not collected - listed, "make requirements writes the page anew"
    assert not [mark.file for mark in listed if not (ROOT / mark.file).is_file()]
    if not is_narrowed(request.config):
        files = {item.nodeid.partition("::")[0] for item in request.session.items}
        assert not {mark for mark in listed if mark.file in files} - collected


def is_narrowed(config: pytest.Config) -> bool:
    """Whether some tests of a file may have been left out."""
    options = ("keyword", "markexpr", "deselect", "lf", "without")
    return any(config.getoption(name, None) for name in options) or any("::" in place for place in config.args)


def test_every_requirement_has_a_test_on_the_page() -> None:
    text = traceability.PAGE.read_text(encoding="utf-8")
    ids = traceability.read_ids(ROOT / "docs" / "requirements.md")

    assert {mark.requirement for mark in traceability.listed(text)} == set(ids)
    assert "- no test" not in text


def test_an_unknown_id_is_an_error(listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(listing, record(tmp_path, test_a=("A-99", "passed"))) == 1
    assert "t.py::test_a is marked A-99, which is no requirement" in capsys.readouterr().err


def test_an_id_listed_twice_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "requirements.md"
    path.write_text(LISTING + "| A-02 | again |\n", encoding="utf-8")

    assert run(path, record(tmp_path)) == 1
    assert "lists A-02 more than once" in capsys.readouterr().err


def test_without_a_record_it_says_what_to_do(listing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(listing, tmp_path / "absent.json") == 0
    assert "run make test first" in capsys.readouterr().err


SUITE = """
import pytest

pytestmark = pytest.mark.requirement("A-01")

def test_passes(): ...

@pytest.mark.requirement("A-02", "A-03")
def test_fails(): assert False

@pytest.mark.skip
def test_is_skipped(): ...

def test_skips_itself(): pytest.skip("no reason")

@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail(): assert False

@pytest.fixture
def broken_on_leaving():
    yield
    assert False

def test_fails_on_leaving(broken_on_leaving): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_run_records_ids_and_outcomes(tmp_path: Path, workers: str) -> None:
    suite = tmp_path / "tests"
    suite.mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", suite)
    (suite / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (suite / "test_unmarked.py").write_text("def test_unmarked(): ...\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\nmarkers = requirement(id)\n", encoding="utf-8")
    target = tmp_path / ".requirements.json"

    def pytest_run(*arguments: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider", *arguments]
        environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return result.stdout + result.stderr

    pytest_run("-n", workers, "-k", "passes")
    assert not target.exists(), "a partial run must not replace the record of a whole one"

    output = pytest_run("-n", workers)
    tests = json.loads(target.read_text(encoding="utf-8"))["tests"]
    assert {name.rsplit("::", 1)[1]: result["outcome"] for name, result in tests.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_is_skipped": "skipped",
        "test_skips_itself": "skipped",
        "test_is_expected_to_fail": "skipped",
        "test_fails_on_leaving": "failed",
    }, output
    assert tests["tests/test_suite.py::test_fails"]["requirements"] == ["A-01", "A-02", "A-03"]
