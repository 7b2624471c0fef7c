"""A bundle that another machine has made, checked on one that knows nothing of it."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
import zipfile
from pathlib import Path

import pytest

from tests.system.command import PATIENCE, Command, Ran
from tests.system.conftest import write_docs

pytestmark = pytest.mark.requirement("X-04")
QUESTION = "How high are the tides in the Bay of Fundy?"
ABROAD = {"LC_ALL": "C", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by another person's command, in another place, language and time; only the file is left of it."""
    home = tmp_path_factory.mktemp("abroad")
    write_docs(home / "tiny")
    theirs = Command(home, home / "data")
    env = {**ABROAD, "HOME": str(home)}
    report = theirs("research", QUESTION, "--docs", "tiny", "--json", env=env)
    thread = report.json["provenance"]["thread"]
    made = theirs("threads", "bundle", thread, "--out", "tides.openassay", env=env)
    assert made.code == 0, made.err
    file = tmp_path_factory.mktemp("post") / "tides.openassay"
    shutil.move(home / "tides.openassay", file)
    shutil.rmtree(home)
    return file


@pytest.fixture
def mine(tmp_path: Path) -> Command:
    (tmp_path / "desk").mkdir()
    return Command(tmp_path / "desk", tmp_path / "no-data")


def without_network() -> tuple[str, ...]:
    alone = ("unshare", "--net")
    works = (
        shutil.which("unshare") and not subprocess.run([*alone, "true"], capture_output=True, check=False).returncode
    )
    return alone if works else ()


@pytest.mark.slow
def test_it_is_verified_where_nothing_else_is(mine: Command, sent: Path) -> None:
    found = mine("verify", sent, prefix=without_network())
    assert found.code == 0, found.out + found.err
    lines = [line.split() for line in found.out.splitlines() if line]
    assert all(line[0] == "ok" for line in lines[:14]), found.out
    assert found.out.rstrip().endswith("is intact.")
    assert not mine.data.exists(), "no data directory is made"
    assert list(mine.folder.iterdir()) == []


@pytest.mark.slow
def test_a_changed_byte_is_refused_and_named(mine: Command, sent: Path) -> None:
    whole = sent.read_bytes()
    spoiled = mine.folder / "spoiled.openassay"
    at = whole.index(b"16.3 metres")  # of a snapshot, or of the report
    for place in (at, *random.Random(11).sample(range(len(whole)), 5)):
        spoiled.write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        found = mine("verify", spoiled)
        assert found.code == 1, place
        assert "FAILED" in found.out
        assert "Refused" in found.out
    spoiled.write_bytes(whole.replace(b"16.3 metres", b"19.3 metres"))
    told = mine("verify", spoiled, "--json")
    assert told.code == 1
    assert told.json["ok"] is False
    assert any("snapshots/" in line for row in told.json["checks"] for line in row["problems"])
    refused = mine("verify", "--open", spoiled, "--no-browser")
    refused.refused(1, "is damaged or was altered", "openassay verify")


@pytest.mark.slow
def test_what_is_no_bundle_is_told_in_a_line(mine: Command) -> None:
    (mine.folder / "page.openassay").write_bytes(b"<html>")
    mine("verify", "absent.openassay").refused(2, "absent.openassay")
    mine("verify", ".").refused(2, "cannot read")
    assert mine("verify", "page.openassay").code == 1
    mine("verify", "page.openassay", "--key", "1234").refused(2, "1234", "fingerprint")


@pytest.mark.slow
def test_the_signer_is_held_to(mine: Command, sent: Path) -> None:
    who = mine("verify", sent, "--json").json["manifest"]["fingerprint"]
    assert mine("verify", sent, "--key", who).code == 0
    other = "-".join(["0000"] * 8)
    assert mine("verify", sent, "--key", other).code == 1


def test_the_checker_outside_agrees(mine: Command, sent: Path, shared: Path) -> None:
    with zipfile.ZipFile(sent) as zip:
        zip.extractall(mine.folder)
    checker = [sys.executable, str(shared / "check" / "check_report.py"), "report.json"]
    done = subprocess.run(
        [*checker, "--document", "cat snapshots/{}.txt"], cwd=mine.folder, capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    report = json.loads((mine.folder / "report.json").read_text(encoding="utf-8"))
    assert any(sentence["kind"] == "fact" for section in report["sections"] for sentence in section["sentences"])
    assert str(sent.parent) not in (mine.folder / "report.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_same_run_makes_the_same_file(office: Command, tides: Ran, tmp_path: Path) -> None:
    thread = tides.json["provenance"]["thread"]
    for name in ("one", "two"):
        assert office("threads", "bundle", thread, "--out", tmp_path / name).code == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert office("threads", "bundle", thread, "--unsigned", "--out", tmp_path / "bare").code == 0
    assert "nobody has signed it" in office("verify", tmp_path / "bare").out
    assert str(office.folder).encode() not in (tmp_path / "one").read_bytes(), "where files stand is nobody's business"


@pytest.mark.slow
def test_what_cannot_be_bundled_leaves_nothing(office: Command, tides: Ran, mine: Command) -> None:
    thread = tides.json["provenance"]["thread"]
    empty, out = mine("threads", "new").out.strip(), mine.folder / "x.openassay"
    mine("threads", "bundle", empty, "--out", out).refused(2, "no finished report")
    mine("threads", "bundle", "nonsense", "--out", out).refused(2, "nonsense")
    office("threads", "bundle", thread, "--run", "nonsense", "--out", out).refused(2, "nonsense")
    office("threads", "bundle", thread, "--out", mine.folder / "absent" / "x.openassay").refused(2, "cannot write")
    office("threads", "bundle", thread, "--out", mine.folder).refused(2, "folder")
    assert list(mine.folder.iterdir()) == []


@pytest.mark.slow
def test_a_run_that_is_going_is_not_bundled_in_halves(openassay: Command) -> None:
    """Refused as long as it has no report; later questions leave the report there is as it was."""
    with openassay.started("research", QUESTION, "--docs", "tiny", "--quiet") as process:
        thread = openassay.wait_for_event("enter", "understand")
        while (at_work := process.poll()) is None:
            made = openassay("threads", "bundle", thread, "--out", "x.openassay")
            if made.code:
                made.refused(1, "it is still being researched", f"openassay threads follow {thread}")
                assert not (openassay.folder / "x.openassay").exists()
            else:
                break
        assert at_work is None or process.wait(PATIENCE) == 0
        process.communicate(timeout=PATIENCE)
    assert openassay("threads", "bundle", thread, "--out", "x.openassay").code == 0
    first = (openassay.folder / "x.openassay").read_bytes()
    with openassay.started(
        "ask", "How high are spring tides?", "--docs", "tiny", "--thread", thread, "--quiet"
    ) as process:
        while process.poll() is None and openassay.statuses(thread)[-1] != "running":
            time.sleep(0.02)
        again = openassay("threads", "bundle", thread, "--out", "y.openassay")
        process.communicate(timeout=PATIENCE)
    assert again.code == 0, again.err
    assert openassay("verify", "y.openassay").code == 0
    if "has not ended" in again.err:
        assert (openassay.folder / "y.openassay").read_bytes() == first


@pytest.mark.slow
def test_it_is_opened_to_be_looked_at_until_it_is_ended(mine: Command, sent: Path) -> None:
    with mine.started("verify", "--open", sent, "--no-browser") as process:
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        base, _, thread = address.rpartition("/t/")
        with urllib.request.urlopen(f"{base}/api/threads/{thread}/report", timeout=PATIENCE) as answer:  # noqa: S310
            assert json.load(answer)["provenance"]["thread"] == thread
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err.decode()
    assert "Traceback" not in err.decode()
    assert not mine.data.exists()
    assert list(mine.folder.iterdir()) == []
