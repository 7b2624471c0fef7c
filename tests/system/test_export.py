"""`openassay threads export`: a run's report in every format, opened by its reader; what is refused, and nothing half-
written."""

import json
import os
import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from openassay.export import FORMATS
from tests import readers
from tests.system.command import Command, Ran


def thread_of(ran: Ran) -> str:
    return str(ran.json["provenance"]["thread"])


@pytest.mark.slow
@pytest.mark.requirement("F-13", "L-11")
def test_a_run_is_exported_in_every_format_and_each_can_be_opened(office: Command, tides: Ran, tmp_path: Path) -> None:
    thread, report = thread_of(tides), tides.json
    had = {}
    for name, format in FORMATS.items():
        target = tmp_path / f"{name}{format.ending}"
        written = office("threads", "export", thread, "--format", name, "--out", target)
        assert written.code == 0, written.err
        assert f"Report written to {target}" in written.err
        had[name] = target.read_bytes()
    quote = report["claims"][0]["spans"][0]["quote"]
    assert readers.read_json(had["json"]) == report
    assert had["md"].decode().startswith(f"# {report['title']}")
    assert readers.markdown_shape(had["md"].decode())
    assert readers.read_front_matter(had["obsidian"])[0]["title"] == report["title"]
    assert "citationId" in json.dumps(readers.read_quarto(had["quarto"]))
    assert readers.flat(quote) in readers.flat(readers.read_page(had["html"]).text_content())
    printed = readers.read_pdf(had["pdf"])
    assert readers.flat(quote) in printed.text
    assert "References" in printed.outline
    assert any(readers.flat(quote) in note for note in readers.read_docx(had["docx"]).footnotes)
    works = len(report["sources"])
    assert len(readers.read_bibtex(had["bibtex"])) == len(readers.read_ris(had["ris"])) == works
    assert len(readers.read_csl(had["csl"])) == works
    assert [row[0] for row in readers.read_csv(had["csv"])[1:]] == [claim["id"] for claim in report["claims"]]


@pytest.mark.slow
def test_where_it_goes_is_named_by_the_ending_by_the_report_or_by_nobody(openassay: Command) -> None:
    asked = openassay("ask", "What's happening with Apple?", "--json", "--quiet")
    thread, title = thread_of(asked), asked.json["title"]
    assert "Report written to" in openassay("threads", "export", thread).err
    (own,) = openassay.folder.glob("*.md")
    assert own.read_text("utf-8").startswith(f"# {title}")
    openassay("threads", "export", thread).refused(2, "exists", "--force")
    own.write_text("mine", encoding="utf-8")
    assert openassay("threads", "export", thread, "--force").code == 0
    assert own.read_text("utf-8").startswith("# ")
    assert openassay("threads", "export", thread, "--out", "a.pdf").code == 0
    assert readers.read_pdf((openassay.folder / "a.pdf").read_bytes()).pages
    shown = openassay("threads", "export", thread, "--format", "csl", "--out", "-")
    assert (json.loads(shown.stdout)[0]["id"], shown.err) == (shown.json[0]["id"], "")
    assert openassay("threads", "export", thread, "-f", "pdf", "--out", "-").stdout.startswith(b"%PDF-")
    assert openassay("threads", "export", thread, "--format", "zip").code == 0
    with ZipFile(openassay.folder / f"{thread}.zip") as bundle:
        assert "report.json" in bundle.namelist()
    run = asked.json["provenance"]["run"]
    assert openassay("threads", "export", thread, "--run", run, "-f", "json", "--out", "-").json == asked.json


@pytest.mark.slow
def test_what_cannot_be_exported_is_refused_in_a_line(office: Command, tides: Ran, tmp_path: Path) -> None:
    thread, here = thread_of(tides), tmp_path / "here"
    here.mkdir()
    office("threads", "export", "nosuch").refused(2, "no thread nosuch")
    office("threads", "export", thread, "--format", "pdff").refused(2, "there is no format “pdff”", "Did you mean pdf?")
    office("threads", "export", thread, "--out", here / "a.xlsx").refused(2, "OpenAssay writes .md, .qmd")
    office("threads", "export", thread, "--out", here).refused(2, "is a folder")
    office("threads", "export", thread, "--out", here / "no" / "a.pdf").refused(2, "does not exist")
    office("threads", "export", thread, "--run", "nosuch").refused(2, "nosuch")
    office("threads", "export", thread, "-f", "zip", "--out", "-").refused(2, "--out - does not go with zip")
    (here / "there.pdf").write_bytes(b"mine")
    office("threads", "export", thread, "--out", here / "there.pdf").refused(2, "exists")
    assert (here / "there.pdf").read_bytes() == b"mine"
    assert os.listdir(here) == ["there.pdf"]


def test_bytes_are_not_shown_to_a_terminal_and_text_is(office: Command, tides: Ran) -> None:
    thread = thread_of(tides)
    with office.typed("threads", "export", thread, "-f", "pdf", "--out", "-") as terminal:
        terminal.expect("nothing a terminal can show")
        assert terminal.ends() == 2
    with office.typed("threads", "export", thread, "-f", "ris", "--out", "-") as terminal:
        terminal.expect("TY  - ")
        assert terminal.ends() == 0


@pytest.mark.slow
def test_while_a_run_is_going_there_is_no_report_or_the_one_before(openassay: Command, tmp_path: Path) -> None:
    """A run that is killed in its middle stands as it was then: nothing of it is exported."""
    question = ("research", "How high are the tides in the Bay of Fundy?", "--docs", "tiny", "--json", "--quiet")
    with openassay.started(*question) as process:
        thread = openassay.wait_for_event("enter", "read")
        process.kill()
        process.wait()
    assert openassay.statuses(thread) == ["running"]
    here = tmp_path / "here"
    here.mkdir()
    openassay("threads", "export", thread, "--out", here / "report.pdf").refused(
        1, f"thread {thread} has no report yet: the process that worked on it is gone", f"openassay resume {thread}"
    )
    openassay("threads", "bundle", thread, "--out", here / "report.openassay").refused(
        1, "has no report yet", f"openassay resume {thread}"
    )
    assert os.listdir(here) == []

    first = openassay("resume", thread, "--json", "--quiet").json
    seen = len(openassay.rows("SELECT * FROM runs"))
    with openassay.started(*question, "--thread", thread) as process:
        while len(openassay.rows("SELECT * FROM runs")) == seen:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
        process.wait()
    going = openassay("threads", "export", thread, "-f", "json", "--out", "-")
    assert going.json == first
    assert "A later run on this thread has not ended: this is the report before it" in going.err
    other = openassay.rows("SELECT id FROM runs WHERE status != 'done'")[0][0]
    openassay("threads", "export", thread, "--run", str(other)).refused(1, "has no report yet")


@pytest.mark.slow
def test_an_open_question_is_named(openassay: Command) -> None:
    asked = openassay(
        "research", "Tell me about tides in the bay, please?", "--docs", "tiny", "--mode", "plan", "--ask"
    )
    assert asked.code == 3, asked.err
    (thread,) = openassay.threads()
    openassay("threads", "export", thread).refused(1, "it waits for an answer", f"openassay review show {thread}")
