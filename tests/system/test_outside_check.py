"""Reports re-checked by a program that shares no code with OpenAssay, and the demo without any network."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.system.command import LIBRARY, ROOT, Command, Ran, environment


def demo_question() -> str:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^DEMO_QUESTION := (.+)$", makefile, re.M)
    assert found
    return " ".join(found[1].split())


def checked(shared: Path, openassay: Command, report: Ran) -> Any:
    """What the outside check found wrong must be nothing. It reads documents as the command has printed them."""
    spans = [span for claim in report.json["claims"] for span in claim["spans"]]
    with tempfile.TemporaryDirectory() as folder:
        for name in {span["document"] for span in spans}:
            (Path(folder) / name).write_bytes(openassay("sources", "document", name).stdout)
        (Path(folder) / "report.json").write_bytes(report.stdout)
        done = subprocess.run(
            [sys.executable, str(shared / "check" / "check_report.py"), "report.json", "--document", "cat {}"],
            cwd=folder, env=environment(openassay.data), capture_output=True, timeout=100, check=False,
        )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return report.json


@pytest.mark.slow
@pytest.mark.requirement("X-01", "X-02")
def test_the_demo_holds(openassay: Command, shared: Path) -> None:
    asked = openassay("research", demo_question(), "--docs", LIBRARY, "--yes", "--json")
    report = checked(shared, openassay, asked)
    marks = {sentence["mark"] for section in report["sections"] for sentence in section["sentences"]}
    assert asked.code == 0
    assert "✓" in marks
    assert {"disagreements", "not_found"} <= {section["role"] for section in report["sections"]}


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_short_answers_hold(office: Command, shared: Path, apple: Ran, tides: Ran) -> None:
    checked(shared, office, apple)
    checked(shared, office, tides)


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_figures_of_real_filings_hold(openassay: Command, shared: Path, eval_data: Path) -> None:
    folder = openassay.folder / "filings"
    folder.mkdir()
    for file in sorted((eval_data / "sec-10q" / "docs").glob("* AAPL.pdf")):
        shutil.copy(file, folder)
    asked = openassay(
        "research", "How did Apple's net sales change over 2023?", "--docs", "filings", "--json", timeout=200
    )
    report = checked(shared, openassay, asked)
    claims = {claim["id"]: claim for claim in report["claims"]}
    cited = {name for section in report["sections"] for sentence in section["sentences"] for name in sentence["claims"]}
    quotes = " ".join(span["quote"] for name in cited for span in claims[name]["spans"])
    # Apple's total net sales of the quarters to April 2023 and July 2023, in millions of dollars.
    missing = [total for total in ("94,836", "81,797") if total not in quotes]
    assert not missing, json.dumps([claims[name]["text"] for name in cited], indent=1)


@pytest.mark.slow
@pytest.mark.requirement("X-10")
def test_the_demo_needs_no_network(openassay: Command) -> None:
    alone = ("unshare", "--net")
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a machine without network can only be made with `unshare --net`, which is not allowed here")
    shown = openassay("research", demo_question(), "--docs", LIBRARY, "--yes", prefix=alone)
    assert shown.code == 0, shown.err
    assert "67.4 ± 0.5" in shown.out
    facts = re.findall(r"[.”] (?:✓✓|✓|⚠) (?:\[\[S\d+\]\]\(#s\d+\))+", shown.out.split("## References")[0])
    assert len(facts) > 10
