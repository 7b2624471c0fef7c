"""The ground holds: locks, paths, the one command, the list of requirements, the tests' isolation."""

import os
import re
import socket
import subprocess
import symtable
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import traceability

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
FAMILIES = {"C": 17, "W": 19, "S": 10, "F": 15, "L": 11, "X": 10}

# Written so that this file does not match itself.
HOME_PATH = re.compile(r"(?<![\w.~-])/(?:roo[t]/|home/[\w.-]+/|User[s]/[\w.-]+)")


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: which files belong to the project is not known")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_pin_of_a_lock_has_hashes_and_no_address(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text

    pins = re.split(r"\n(?=\S)", text.strip())
    assert pins
    for pin in pins:
        assert re.match(r"[\w.-]+==\S+", pin), f"not a pin: {pin[:60]}"
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", pin), f"no hash: {pin[:60]}"


def test_there_is_a_lock_for_each_step_of_the_install() -> None:
    assert [lock.stem for lock in LOCKS] == ["bootstrap", "dev", "fleet", "local", "runtime"]


def test_the_other_locks_hold_the_very_pins_of_the_runtime_lock() -> None:
    pins = {
        lock.stem: set(re.findall(r"^[\w.-]+==\S+", lock.read_text(encoding="utf-8"), re.MULTILINE)) for lock in LOCKS
    }
    assert pins["runtime"] <= pins["dev"]
    assert pins["runtime"] <= pins["local"]
    assert pins["runtime"] <= pins["fleet"] <= pins["dev"], "the image has what was tested"


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = []
    for path in tracked_files():
        content = path.read_bytes()
        if b"\0" in content[:8192]:
            continue
        match = HOME_PATH.search(content.decode("utf-8", errors="replace"))
        if match:
            found.append(f"{path.relative_to(ROOT)}: {match.group()}")
    assert found == []


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("see /" + "root/notes", True),
        ("'/" + "home/ada/src'", True),
        ("/" + "Users/ada", True),
        ("https://example.org/" + "home/ada/", False),
        ("the docs/" + "root/ folder", False),
        ("~/" + "home/x/", False),
    ],
)
def test_what_counts_as_such_a_place(text: str, matches: bool) -> None:
    assert bool(HOME_PATH.search(text)) is matches


def test_ci_runs_all_tests_and_nothing_else() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make thorough"]


def test_the_list_of_requirements_is_complete() -> None:
    expected = [f"{family}-{number:02}" for family, last in FAMILIES.items() for number in range(1, last + 1)]
    assert len(expected) == 82
    assert traceability.read_ids(ROOT / "docs" / "requirements.md") == expected


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_tests_cannot_connect_to_another_machine(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as outside, pytest.raises(AssertionError, match="tests never call out"):
        outside.connect((host, 80))


def test_tests_cannot_ask_a_name_server() -> None:
    with pytest.raises(AssertionError, match="tests never call out"):
        socket.create_connection(("example.org", 80), timeout=1)


def test_tests_may_talk_to_their_own_machine() -> None:
    # Nobody listens, and without a network even loopback may be down: the system refuses, not the guard.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match=r"refused|unreachable"):
            socket.create_connection(silent.getsockname(), timeout=5)


def test_tests_see_no_setting_of_the_person_running_them(tmp_path: Path) -> None:
    ours = {name for name in os.environ if name.startswith(("OPENASSAY_", "LANGSMITH_")) or name.endswith("_API_KEY")}
    assert ours == {"OPENASSAY_CONFIG", "OPENASSAY_DATA_DIR"}
    assert Path(os.environ["OPENASSAY_DATA_DIR"]).is_relative_to(tmp_path)


_COMPREHENSIONS = ("listcomp", "setcomp", "dictcomp")


def _confused(scope: symtable.SymbolTable) -> Iterator[str]:
    """Functions in which one comprehension binds a name that another reads as a global."""
    inside = [child for child in scope.get_children() if child.get_name() in _COMPREHENSIONS]
    for one in inside:
        bound = {symbol.get_name() for symbol in one.get_symbols() if symbol.is_local()}
        read = {s.get_name() for other in inside if other is not one for s in other.get_symbols() if s.is_global()}
        yield from (f"{scope.get_name()}, line {one.get_lineno()}: {name}" for name in bound & read)
    for child in scope.get_children():
        yield from _confused(child)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there comprehensions have no scope that could be looked at")
def test_no_comprehension_takes_a_name_that_another_beside_it_reads() -> None:
    """Python 3.12 (tried: 3.12.1, 3.12.3) then reads the local one, and ends with an UnboundLocalError."""
    example = "def f(xs): return {stem for stem in xs} | {x for x in xs if stem(x)}"
    assert list(_confused(symtable.symtable(example, "example", "exec")))
    for file in sorted((ROOT / "src").rglob("*.py")):
        found = list(_confused(symtable.symtable(file.read_text(encoding="utf-8"), str(file), "exec")))
        assert not found, f"{file.relative_to(ROOT)}: {found}"
