"""A run of which only its journal is left."""

import shutil
from pathlib import Path

import pytest

from tests.system.command import LIBRARY, Command

QUESTION = "How fast is the universe expanding, and why do the measurements disagree?"


@pytest.mark.slow
@pytest.mark.requirement("L-07", "L-08", "W-16")
def test_a_killed_run_is_finished_on_another_machine_from_its_journal_alone(openassay: Command, tmp_path: Path) -> None:
    (openassay.folder / "sky").mkdir()
    for file in sorted(LIBRARY.glob("*.md"))[:5]:
        shutil.copy(file, openassay.folder / "sky")
    with openassay.started("research", QUESTION, "--docs", "sky") as process:
        thread = openassay.wait_for_event("enter", "consolidate")
        process.kill()
        process.communicate()
    [run] = [path.name for path in (openassay.data / "checkpoints").iterdir()]
    moved = tmp_path / "moved"
    shutil.move(openassay.data / "checkpoints" / run, moved)
    shutil.rmtree(openassay.data)
    page = (moved / "progress.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {QUESTION}")
    assert page.count("\n## Q") >= 3
    assert f"openassay resume {thread}" in page

    there = Command(openassay.folder, tmp_path / "there")
    resumed = there("resume", "--from", moved, "--json")

    assert resumed.code == 0, resumed.err
    assert resumed.json["status"] == "complete"
    assert resumed.json["provenance"]["run"] == run
    assert there.statuses(thread) == ["done"]
    entered = [row[0] for row in there.rows("SELECT stage FROM events WHERE kind = 'enter' ORDER BY seq")]
    first = entered[: entered.index("consolidate")]
    counts = {first.count("search"), first.count("read"), page.count("\n- Q")}
    assert len(counts) == 1, "what was finished is not done again"
    assert "## Finished" in (there.data / "checkpoints" / run / "progress.md").read_text(encoding="utf-8")
    there("resume", "--from", moved).refused(2, "here already", f"openassay resume {thread}")
    there("resume").refused(2, "--from")
    path = moved / "checkpoint_3.json"
    path.write_bytes(path.read_bytes().replace(b"universe", b"univerze", 1))
    elsewhere = Command(openassay.folder, tmp_path / "elsewhere")
    elsewhere("resume", "--from", moved).refused(1, "checkpoint_3.json")
    assert elsewhere.threads() == []
