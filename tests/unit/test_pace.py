"""Which tests are left out of `make test`, and that none is lost by it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pace
from tests.pace import Function, functions, long

ROOT = Path(__file__).resolve().parents[2]
REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.test_a" name="test_x[1]" time="2.0"><properties>
<property name="requirement" value="A-01"/></properties></testcase>
<testcase classname="tests.unit.test_a" name="test_x[2]" time="3.0"/>
<testcase classname="tests.unit.test_a.TestB" name="test_y" time="1.0"><skipped/><properties>
<property name="requirement" value="A-02"/></properties></testcase>
</testsuite></testsuites>"""


def test_cases_of_one_function_count_together_and_skipped_ones_prove_nothing(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text(REPORT, encoding="utf-8")
    assert functions(tmp_path / "junit.xml") == [
        Function("tests/unit/test_a.py::test_x", 5.0, frozenset({"A-01"})),
        Function("tests/unit/test_a.py::TestB::test_y", 1.0, frozenset()),
    ]


def test_the_longest_go_first_until_the_rest_fits() -> None:
    found = [Function(f"t{seconds}", float(seconds), frozenset()) for seconds in (1, 5, 3, 2)]
    assert [one.name for one in long(found, 6)] == ["t5"]
    assert [one.name for one in long(found, 5)] == ["t5", "t3"]
    assert long(found, 11) == []


def test_a_requirement_keeps_its_last_test() -> None:
    found = [Function("a", 9.0, frozenset({"A-01"})), Function("b", 8.0, frozenset({"A-01", "A-02"}))]
    assert [one.name for one in long(found, 0)] == ["a"]


def test_what_is_left_out_exists() -> None:
    names = [line for line in pace.LONG.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert names
    assert len(set(names)) == len(names)
    for name in names:
        file, *_, function = name.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"\bdef {function}\(|\b{function} = ", text) or function == "runTest", name


TESTS = "def test_long(): pass\n\n\ndef test_short(): pass\n"


@pytest.mark.parametrize(("flags", "told"), [(["--without=long.txt"], "1 passed, 1 deselected"), ([], "2 passed")])
def test_only_the_quick_run_leaves_them_out(tmp_path: Path, flags: list[str], told: str) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "long.txt").write_text("# a line\ntest_some.py::test_long\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told in done.stdout


def test_the_quick_run_leaves_out_what_is_listed_and_ci_nothing() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--without=tests/long.txt" in makefile.partition("\ntest:")[2].partition("\n\n")[0]
    assert "--without" not in makefile.partition("\nthorough:")[2].partition("\n\n")[0]
