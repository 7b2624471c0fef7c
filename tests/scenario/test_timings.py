"""`openassay threads timings`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from openassay.cli.app import app
from openassay.errors import NotFoundError


@pytest.mark.slow
@pytest.mark.requirement("W-13")
def test_a_person_sees_where_the_time_of_a_run_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(tmp_path))
    runner = CliRunner()
    report = json.loads(runner.invoke(app, ["ask", "What's happening with Apple?", "--json", "-q"]).stdout)
    thread = report["provenance"]["thread"]
    told = json.loads(runner.invoke(app, ["threads", "timings", thread, "--json"]).stdout)
    shown = runner.invoke(app, ["threads", "timings", thread, "--run", told["run"]]).stdout.splitlines()

    assert shown[0] == f"run {told['run']}  done"
    assert shown[1].endswith(" s running")
    assert shown[3].split() == ["stage", "ended", "not", "ended", "seconds", "longest"]
    assert [line.split()[0] for line in shown[4:]] == [one["stage"] for one in told["stages"]]
    assert shown[4].split() == ["understand", "1", *(f"{told['stages'][0]['seconds']:.2f}",) * 2]
    assert isinstance(runner.invoke(app, ["threads", "timings", thread, "--run", "x"]).exception, NotFoundError)
