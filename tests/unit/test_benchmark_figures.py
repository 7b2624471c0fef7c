"""What a benchmark finds is put on a page by the benchmark itself, with how it was called."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.evaluation.measure import read_record
from benchmarks.evaluation.page import record_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "quality.md"
PLACES = """# Ours

<!-- eval -->
<!-- /eval -->

Words.

<!-- table made -->
old
<!-- /table made -->

<!-- curve made -->
<!-- /curve made -->
"""

pytestmark = pytest.mark.requirement("L-11")


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "quality.md"
    file.write_text(PLACES, encoding="utf-8")
    monkeypatch.setenv("FIGURES", str(file))
    monkeypatch.setattr(sys, "argv", ["/elsewhere/benchmarks/bench_made.py", "20", "--quick"])
    return file


def test_a_table_is_on_the_page_with_its_command(page: Path) -> None:
    figures.keep("made", ("kept in", "runs"), [("SQLite", 1_000), ("a | b", "**0**")], "A note.")
    text = page.read_text(encoding="utf-8")
    assert "\n\nWords.\n\n<!-- table made -->\n| kept in | runs |\n|---|---|\n| SQLite | 1,000 |\n" in text
    assert r"| a \| b | **0** |" in text
    assert re.search(
        r"\n`benchmarks/bench_made\.py 20 --quick`, \d{4}-\d\d-\d\d, python 3\S+, openassay .* cores.* A note\.", text
    )
    assert "old" not in text


def test_a_curve_is_drawn_beside_it(page: Path) -> None:
    figures.keep("made", ("runs",), [(1,)])
    figures.keep_curve("made", ("Growth", "runs", "seconds"), {"SQLite": [(10, 1.23456), (100, 14)]})
    record = read_record(record_path(page))
    assert record.curves["made"].lines == {"SQLite": [(10, 1.23), (100, 14)]}
    assert set(record.tables) == {"made"}
    assert "<title" in (page.parent / "images" / "made.svg").read_text(encoding="utf-8")
    assert "1.23 at 10" in page.read_text(encoding="utf-8")


def test_without_a_page_nothing_is_kept(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIGURES")
    figures.keep("made", ("runs",), [(1,)])
    assert page.read_text(encoding="utf-8") == PLACES
    assert not record_path(page).exists()


@pytest.mark.slow
def test_a_page_that_is_not_there_is_told_before_anything_is_measured(page: Path) -> None:
    page.unlink()
    tried = subprocess.run(
        [sys.executable, "benchmarks/bench_kills.py"], cwd=ROOT, env={**os.environ, "PYTHONPATH": "."}, check=False,
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (tried.returncode, tried.stderr.strip()) == (1, f"FIGURES={page}: there is no such page")


@pytest.mark.slow
def test_benchmarks_that_end_at_once_do_not_lose_each_others(page: Path) -> None:
    page.write_text(
        PLACES + "".join(f"<!-- table t{n} -->\n<!-- /table t{n} -->\n" for n in range(2)), encoding="utf-8"
    )
    script = "import sys; from benchmarks.figures import keep; keep(sys.argv[1], ('n',), [(1,)])"
    writers = [subprocess.Popen([sys.executable, "-c", script, f"t{number}"], cwd=ROOT) for number in range(2)]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert set(read_record(record_path(page)).tables) == {"t0", "t1"}


def test_every_table_of_the_page_of_figures_is_made_by_a_benchmark_in_full() -> None:
    record, text = read_record(record_path(PAGE)), PAGE.read_text(encoding="utf-8")
    sources = {file.name: file.read_text(encoding="utf-8") for file in (ROOT / "benchmarks").glob("*.py")}
    kept = {name for source in sources.values() for name in re.findall(r'\bkeep\(\s*"(\w+)"', source)}
    assert set(re.findall(r"<!-- table (\w+) -->", text)) == set(record.tables) == kept
    commands = {one.command for one in record.tables.values()} | {one.command for one in record.curves.values()}
    for command in commands:
        assert command.removeprefix("benchmarks/") in sources, f"{command} was not asked for all it does"
