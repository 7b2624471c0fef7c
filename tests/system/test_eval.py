"""`python -m benchmarks.evaluation`: made-up data in the format of the real sets, measured in a process of its own."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.system.command import PATIENCE, PIPES, ROOT, Command, Ran, environment


def begin(openassay: Command, *args: str | Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    env = environment(openassay.data, PYTHONPATH=path)
    command = [sys.executable, "-m", "benchmarks.evaluation", *map(str, args)]
    return subprocess.Popen(command, cwd=openassay.folder, env=env, **PIPES)


def measure(openassay: Command, *args: str | Path) -> Ran:
    with begin(openassay, *args) as process:
        out, err = process.communicate(timeout=2 * PATIENCE)
    return Ran(process.returncode, out, err)


BODY = "The harbour board counted {0} ferries in May, a third more than in the year before. " * 4


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two pages with their true text, and addresses, one of which is expected to be what it is not."""
    folder = tmp_path / "sets"
    (folder / "extraction" / "html").mkdir(parents=True)
    truth = {}
    for number, name in enumerate(("one", "two"), 412):
        body = BODY.format(number)
        page = f"<html><title>Ferries</title><body><article><h1>Ferries</h1><p>{body}</p></article></body></html>"
        (folder / "extraction" / "html" / f"{name}.html.gz").write_bytes(gzip.compress(page.encode()))
        truth[name] = {"url": f"https://port.example/{name}", "articleBody": body}
    (folder / "extraction" / "ground-truth.json").write_text(json.dumps(truth), encoding="utf-8")
    (folder / "urls").mkdir()
    good = {
        "input": "https://a.example/x", "base": None, "href": "https://a.example/x", "protocol": "https:",
        "hostname": "a.example", "port": "", "pathname": "/x", "search": "", "hash": "", "username": "",
        "password": "",
    }  # fmt: skip
    (folder / "urls" / "urltestdata.json").write_text(json.dumps(["a comment", good]), encoding="utf-8")
    (folder / "urls" / "toascii.json").write_text(json.dumps([{"input": "a.example", "output": "a.example"}]))
    return folder


@pytest.mark.slow
def test_what_there_is_is_measured_and_the_rest_is_named(openassay: Command, data: Path) -> None:
    ran = measure(openassay, "extraction", "urls", "wice", "--data", data, "--quick")
    assert ran.code == 0, ran.err
    assert f"wice: skipped, {data} has no wice and no fever-symmetric" in ran.err
    assert "http(s) addresses parsed alike" in ran.out
    assert "≥ .975" in ran.out


@pytest.mark.slow
def test_a_figure_below_its_floor_ends_with_1(openassay: Command, data: Path) -> None:
    file = data / "urls" / "urltestdata.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"/x"', '"/y"'), encoding="utf-8")
    ran = measure(openassay, "urls", "--data", data, "--json")
    assert ran.code == 1
    assert "urls, all addresses parsed alike: .000 is below 1.000" in ran.err
    figure = ran.json["measures"]["urls"]["figures"]["all addresses parsed alike"]
    assert (figure["value"], figure["bound"], figure["holds"]) == (0.0, 1.0, False)


@pytest.mark.slow
def test_figures_are_kept_and_a_page_is_written_from_them(openassay: Command, data: Path) -> None:
    assert measure(openassay, "urls", "--data", data, "--out", "page.md").code == 0
    assert measure(openassay, "extraction", "--data", data, "--quick", "--out", "page.md").code == 0
    kept = json.loads((openassay.folder / "page.json").read_text(encoding="utf-8"))
    assert set(kept["measures"]) == {"urls", "extraction"}
    page = openassay.folder / "page.md"
    written = page.read_text(encoding="utf-8")
    assert "| [urls](#urls) |" in written
    assert "`python -m benchmarks.evaluation extraction --quick`" in written
    kept["measures"]["urls"]["figures"]["all addresses parsed alike"]["value"] = 0.123
    (openassay.folder / "page.json").write_text(json.dumps(kept), encoding="utf-8")
    assert measure(openassay, "--render", "--out", "page.md").code == 0
    assert "**.123** (does not hold)" in page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_there_is_to_measure_is_listed(openassay: Command, data: Path) -> None:
    listed = {one["name"]: one for one in measure(openassay, "--list", "--data", data, "--json").json}
    assert listed["extraction"]["missing"] == []
    assert listed["ramdocs"]["missing"] == ["ramdocs"]
    assert "F1" in listed["extraction"]["figures"]
    assert "Short answers from documents" in measure(openassay, "--list").out


@pytest.mark.slow
def test_wrong_wishes_are_refused_in_a_line(openassay: Command, data: Path) -> None:
    measure(openassay, "extracton", "--data", data).refused(
        2, "no measure is called 'extracton'", "Did you mean extraction?"
    )
    measure(openassay, "--data", "nowhere").refused(2, "no evaluation data at nowhere", "OPENASSAY_EVAL_DATA")
    measure(openassay, "urls", "--data", data, "--out", "figures.txt").refused(2, "figures.txt", ".md or .json")
    measure(openassay, "--render").refused(2, "--render", "--out")
    measure(openassay, "--render", "--out", "new.md").refused(2, "new.json is not there")
    (openassay.folder / "bare.md").write_text("# No marks\n", encoding="utf-8")
    measure(openassay, "urls", "--data", data, "--out", "bare.md").refused(2, "<!-- eval -->")
    (data / "urls" / "urltestdata.json").write_text("{", encoding="utf-8")
    broken = measure(openassay, "urls", "--data", data)
    assert broken.code == 2
    assert "urls: the data at" in broken.err


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_measured(openassay: Command, data: Path) -> None:
    """While a measure reads from a pipe that nobody fills, the one before it is kept."""
    slow = data / "extraction" / "ground-truth.json"
    slow.unlink()
    os.mkfifo(slow)
    with begin(openassay, "urls", "extraction", "--data", data, "--out", "kept.json") as process:
        ends = time.monotonic() + PATIENCE
        while not (openassay.folder / "kept.json").exists():
            assert time.monotonic() < ends
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert b"Stopped; 1 of 2 measures were taken. They are kept in kept.json." in err
    assert b"addresses parsed alike" in out
    assert set(json.loads((openassay.folder / "kept.json").read_text(encoding="utf-8"))["measures"]) == {"urls"}
