"""The example notebook is executed as somebody who opens it would, in a copy of its folder."""

import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def read(path: Path) -> Any:
    import nbformat

    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def told(cell: Any) -> str:
    """What the last expression of a cell came to."""
    return str(cell.outputs[0].data["text/plain"])


@pytest.mark.slow
@pytest.mark.requirement("C-17", "X-10")
async def test_the_notebook_runs_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbclient import NotebookClient

    monkeypatch.setenv("OPENASSAY_OFFLINE", "true")
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    folder = Path(shutil.copytree(ROOT / "examples", tmp_path / "examples"))
    notebook = read(folder / "openassay.ipynb")

    await NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).async_execute()

    cells = {cell.id: cell for cell in notebook.cells}
    assert "ReportStatus.COMPLETE" in told(cells["research"])
    assert "text/html" in cells["report"].outputs[0].data
    assert "'C1'" in told(cells["claims"])
    assert all(value in told(cells["disputes"]) for value in ("68.22 ± 0.36", "72.6 ± 2.0")), "both sides"
    assert "Hubble constant" in told(cells["follow-up"])
    thread = told(cells["files"]).strip("'")
    assert thread in (tmp_path / "data" / "hubble.md").read_text(encoding="utf-8")


def test_the_notebook_is_kept_without_what_a_run_leaves() -> None:
    cells = [cell for cell in read(ROOT / "examples" / "openassay.ipynb").cells if cell.cell_type == "code"]

    assert cells
    assert not [cell.id for cell in cells if cell.outputs or cell.execution_count]
