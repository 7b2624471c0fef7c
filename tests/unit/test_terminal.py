"""What is told at a terminal, looked at without one."""

import io
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from openassay.cli.chat import adapt_help
from openassay.cli.research import match_subjects
from openassay.cli.screen import ProgressDisplay, _show_section, is_command, unescape_line
from openassay.export.markdown import render_markdown
from openassay.models.event import Event, EventKind
from openassay.models.evidence import Mark
from openassay.models.report import ReportData, ReportStatus, Section, Sentence, TableCell
from openassay.models.thread import Run

NOW = datetime(2026, 11, 15, tzinfo=UTC)
RUN = Run(id="r", thread="t", question="What is happening with Apple?", started=NOW)
DEMO = "this answer comes from demo data"


def event(kind: EventKind, stage: str = "", **data: Any) -> Event:
    return Event(run="r", time=NOW, kind=kind, stage=stage, data=data)


def told(capsys: pytest.CaptureFixture[str], *events: Event, noted: set[str] | None = None) -> str:
    progress = ProgressDisplay(RUN, noted=noted)
    for one in events:
        progress.show(one)
    return capsys.readouterr().err


ENDED = {"confidence": "low", "checked": 0, "total": 0}


def test_small_talk_gets_a_reply_and_no_notes(capsys: pytest.CaptureFixture[str]) -> None:
    beginning = event("notice", text=DEMO), event("enter", "understand")
    assert (
        told(capsys, *beginning, event("enter", "publish"), event("done", "publish", status="cancelled", **ENDED)) == ""
    )
    assert DEMO in told(capsys, *beginning, event("enter", "gate"))
    assert DEMO in told(capsys, *beginning, event("error", message="the disk is full"))


def test_what_was_called_off_is_a_reply_in_markdown_too() -> None:
    reply = Section(title="", role="notice", sentences=(Sentence(text="Hello!", kind="frame"),))
    told: dict[str, Any] = {"title": "hi", "status": ReportStatus.CANCELLED, "sections": (reply,), "sources": ()}
    report = ReportData.model_construct(**told)
    assert render_markdown(report) == "Hello!\n"


def test_a_section_with_a_list_and_a_table_is_told_in_order() -> None:
    cell = TableCell(row="2020", column="Range", text="16.3 metres")
    lines = (
        Sentence(text="Two ways are open.", kind="frame", opens=True),
        Sentence(text="2020, Range: 16.3 metres", kind="fact", mark=Mark.SINGLE, citations=("S1",), cell=cell),
        Sentence(
            text="Cost: [b]it[/b] fell.", kind="fact", mark=Mark.SINGLE, citations=("S1",), item=True, lead="Cost:"
        ),
        Sentence(text="And so on.", kind="frame", opens=True),
    )
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor")
    _show_section(console, Section(title="Ways", sentences=lines))
    written = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[1mCost:\x1b[0m" in written
    plain = [line.strip() for line in re.sub(r"\x1b\[[\d;]*m", "", written).splitlines() if line.strip(" ─")]
    assert plain == [
        "Ways", "Two ways are open.", "Range", "2020   16.3 metres ⚠ [S1]",
        "• Cost: [b]it[/b] fell. ⚠ [S1]", "And so on.",
    ]  # fmt: skip


def test_what_holds_for_a_whole_conversation_is_noted_once(capsys: pytest.CaptureFixture[str]) -> None:
    noted: set[str] = set()
    question = event("notice", text=DEMO), event("enter", "plan"), event("notice", "plan", text="planned")
    assert [told(capsys, *question, noted=noted).count("note ") for _ in range(2)] == [2, 1]
    assert noted == {DEMO}


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    ("message", "subjects", "pairs"),
    [
        ("What's happening with Aple?", ["Apple"], [("Aple", "Apple")]),
        ("Compare Gogle's margin and Tesla", ["Google", "Tesla"], [("Gogle", "Google")]),
        ("How is Berkshire Hathway doing?", ["Berkshire Hathaway"], [("Berkshire Hathway", "Berkshire Hathaway")]),
        ("What is happening with AAPL?", ["Apple"], []),
        ("What about their stock?", ["Apple"], []),
        ("how is apple doing", ["Apple"], []),
        ("", ["Apple"], []),
    ],
)
def test_a_spelling_that_was_taken_for_a_name_is_noted(
    message: str, subjects: list[str], pairs: list[tuple[str, str]]
) -> None:
    assert list(match_subjects(message, subjects)) == pairs


def test_two_slashes_send_one() -> None:
    assert [is_command(line) for line in (" /what about", "//what about", "what/about")] == [True, False, False]
    assert [unescape_line(line) for line in ("//what about ", "what//about", "///")] == [
        "/what about",
        "what//about",
        "//",
    ]


def test_hints_name_what_can_be_typed_in_a_conversation() -> None:
    assert adapt_help("Go on with: openassay resume 0123456789ab") == "Go on with: /resume"
    assert adapt_help("Ask a new one: openassay ask ... --thread 0123456789ab") == "Ask a new one."
    assert adapt_help("See: openassay sources") == "See: openassay sources"
