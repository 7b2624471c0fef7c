"""The ways an answer leaves the command: screen, pipe, JSON, file."""

import json
import re
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from tests.system.command import OPENASSAY, Command, Ran, environment, without_privileges

ASK_APPLE = ("ask", "What's happening with Apple?")


@pytest.mark.slow
@pytest.mark.requirement("L-01")
def test_json_has_stdout_to_itself_and_progress_goes_to_stderr(tides: Ran) -> None:
    report = tides.json
    assert tides.code == 0, tides.err
    assert report["status"] == "complete"
    assert "16.3" in tides.out
    for label in ("Documents", "Plan", "Search", "Verify", "Done"):
        assert label in tides.err


@pytest.mark.slow
@pytest.mark.requirement("C-07", "X-10")
def test_without_documents_the_demo_data_answer_and_a_notice_says_so(apple: Ran) -> None:
    report = apple.json
    assert apple.code == 0, apple.err
    assert {source["kind"] for source in report["sources"]} == {"demo"}
    assert any("demo data" in notice for notice in report["notices"])
    assert "demo data" in apple.err


@pytest.mark.slow
@pytest.mark.requirement("C-07")
def test_a_source_can_be_named(office: Command) -> None:
    named = office("ask", "What's happening with Tesla?", "--source", "demo", "--json", "--quiet")
    assert named.code == 0
    assert named.json["notices"] == []


@pytest.mark.slow
@pytest.mark.requirement("L-11")
def test_a_piped_report_is_markdown_with_citations_and_no_escape_codes(office: Command) -> None:
    piped = office(*ASK_APPLE)
    assert piped.code == 0
    assert piped.out.startswith("# ")
    assert "[[S1]](#s1)" in piped.out
    assert "## About this report" in piped.out
    assert b"\x1b" not in piped.stdout + piped.stderr


@pytest.mark.slow
def test_quiet_says_nothing_but_the_answer(office: Command) -> None:
    quiet = office(*ASK_APPLE, "--quiet")
    assert quiet.code == 0
    assert quiet.out.startswith("# ")
    assert quiet.stderr == b""


@pytest.mark.slow
@pytest.mark.requirement("L-11")
@pytest.mark.parametrize("name", ["report.md", "report.json", "report.html"])
def test_out_writes_the_whole_report_to_a_file(openassay: Command, name: str) -> None:
    done = openassay(*ASK_APPLE, "--out", name)
    text = (openassay.folder / name).read_text(encoding="utf-8")
    assert done.code == 0
    assert done.stdout == b""
    assert f"Report written to {name}" in done.err
    assert {".md": "# What", ".json": "{", ".html": "<!doctype html>"}[Path(name).suffix] in text[:20]
    if name.endswith(".json"):
        assert json.loads(text)["status"] == "complete"
    assert stat.S_IMODE((openassay.folder / name).stat().st_mode) & 0o044, (
        "other people's programs may read it as usual"
    )
    assert sorted(path.name for path in openassay.folder.iterdir()) == [name, "tiny"]


@pytest.mark.slow
def test_out_never_replaces_a_device(office: Command) -> None:
    done = office(*ASK_APPLE, "--quiet", "--out", "/dev/stdout")
    assert done.out.startswith("# ")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.slow
def test_out_keeps_the_link_it_was_given(openassay: Command) -> None:
    (openassay.folder / "there").mkdir()
    (openassay.folder / "link.md").symlink_to("there/report.md")
    assert openassay(*ASK_APPLE, "--out", "link.md").code == 0
    assert (openassay.folder / "link.md").is_symlink()
    assert (openassay.folder / "there" / "report.md").read_text(encoding="utf-8").startswith("# ")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["missing/report.md", "report.xls"])
def test_an_impossible_target_is_refused_before_any_work(openassay: Command, target: str) -> None:
    openassay(*ASK_APPLE, "--out", target).refused(2, target, "--out")
    assert openassay.threads() == []


@pytest.mark.slow
def test_a_folder_is_no_target(openassay: Command) -> None:
    refused = openassay(*ASK_APPLE, "--out", "tiny")
    assert refused.code == 2
    assert "directory" in refused.err
    assert openassay.threads() == []


@pytest.mark.slow
def test_a_read_only_target_is_refused_before_any_work(openassay: Command) -> None:
    target = openassay.folder / "report.md"
    target.write_text("mine", encoding="utf-8")
    target.chmod(0o444)
    openassay(*ASK_APPLE, "--out", "report.md", prefix=without_privileges()).refused(2, "is not writable", "--out")
    assert target.read_text(encoding="utf-8") == "mine"
    assert openassay.threads() == []


@pytest.mark.slow
def test_no_color_holds_at_a_terminal(office: Command) -> None:
    with office.typed(*ASK_APPLE, "--quiet") as terminal:
        assert terminal.ends() == 0
        assert "\x1b[" in terminal.raw, "a terminal gets colours"
    uncoloured = subprocess.run(
        ["script", "-qec", f"{OPENASSAY} ask Apple --quiet", "/dev/null"],
        env=environment(office.data, NO_COLOR="1"), cwd=office.folder, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert b"Financial snapshot" in uncoloured.stdout
    assert not re.search(rb"\x1b\[(?:\d+;)*[34]\d", uncoloured.stdout), "NO_COLOR leaves bold and italics only"


@pytest.mark.slow
def test_head_may_leave_early(office: Command, tides: Ran) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{OPENASSAY} research 'How high are the tides in the Bay of Fundy?' --docs tiny | head -1"],
        cwd=office.folder, env=environment(office.data), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.startswith(b"# How high")
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr


@pytest.mark.slow
def test_json_is_utf8_and_marks_degrade_where_a_terminal_speaks_less(office: Command, apple: Ran) -> None:
    env = {"PYTHONIOENCODING": "latin-1"}
    thread = apple.json["provenance"]["thread"]
    assert "⚠" in office("threads", "show", thread, "--json", env=env).out
    assert b"$195, up 45% year to date. ?" in office("threads", "show", thread, env=env).stdout


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_a_document_is_printed_byte_for_byte(office: Command, tides: Ran) -> None:
    name = tides.json["sources"][0]["document"]
    whole = office("sources", "document", name)
    assert whole.code == 0
    assert sha256(whole.stdout).hexdigest() == name
    assert office("sources", "document", name[:8].upper()).stdout == whole.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["0123456789abcdef", ""])
def test_an_unknown_document_is_one_line(office: Command, name: str) -> None:
    office("sources", "document", name).refused(2, "document")


@pytest.mark.slow
@pytest.mark.requirement("X-01")
def test_the_passage_behind_a_statement(office: Command, tides: Ran) -> None:
    report = tides.json
    claim = next(claim for claim in report["claims"] if "16.3" in claim["text"])
    thread = report["provenance"]["thread"]
    shown = office("threads", "passage", thread, claim["id"].lower())
    assert shown.code == 0
    text = " ".join(shown.out.split())
    assert " ".join(claim["spans"][0]["quote"].split()) in text
    assert "The Bay of Fundy has the highest tides" in text, "what stands around the span is shown too"
    office("threads", "passage", thread, "C99").refused(2, "C99", claim["id"])
    office("threads", "passage", "nosuch", "C1").refused(2, "nosuch")
