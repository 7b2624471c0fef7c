"""What a process of its own says, and where that goes."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from openassay.cli.research import Output, launch_process
from openassay.models.thread import Run
from openassay.settings import load

RUN = Run(id="r", thread="t", question="How high are the tides?", started=datetime(2026, 1, 1, tzinfo=UTC))
TALKING = "#!/bin/sh\necho 16.3 metres; echo 16.3 metres >&2\n"


@pytest.mark.parametrize("encrypt", [False, True])
def test_it_is_written_down_unless_what_is_stored_is_encrypted(
    encrypt: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    start, program = subprocess.Popen, tmp_path / "program"
    program.write_text(TALKING, encoding="utf-8")
    program.chmod(0o755)

    def started(*given: Any, **how: Any) -> None:
        assert start(*given, **how).wait(10) == 0

    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(subprocess, "Popen", started)
    launch_process(load(data_dir=tmp_path / "data", persistence={"encrypt": encrypt}), RUN, Output())

    told = capfd.readouterr()
    assert "16.3" not in told.out + told.err
    if encrypt:
        assert not (tmp_path / "data").exists()
        assert "none, since storage is encrypted" in told.err
    else:
        log = tmp_path / "data" / "logs" / "t.log"
        assert log.read_text(encoding="utf-8") == "16.3 metres\n" * 2
        assert str(log) in told.err
