"""Questions that cannot be researched, and odd ones that can: a clear word, never a traceback, nothing half-written."""

import json
from pathlib import Path

import pytest

from openassay.bootstrap import open_engine
from openassay.errors import QuestionError
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.report import ReportStatus
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.system.command import Command

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "empty"),
    "white space": (" \t\n ", "empty"),
    "too long": ("How? " * 600, "2,000"),
    "control characters": ("What is \x01\x02\x7f this about?", "not readable"),
    "not UTF-8": (b"What is \xff\xfe this about now?", "not readable"),
}
# Text as people write it: emoji with joiners, Arabic, Hebrew with a mark, Persian with its joiner, Chinese, Japanese.
ODD = [
    "🍎🍎🍎",
    "👨\u200d👩\u200d👧 👨\u200d👩\u200d👧 👨\u200d👩\u200d👧",
    "ما هي أعلى موجات المد والجزر في العالم؟",
    "מהם הגאות והשפל הגבוהים בעולם?\u200f",
    "می\u200cخواهم درباره جزر و مد بدانم",
    "芬迪湾的潮汐有多高？",
    "ファンディ湾の潮の高さは？",
    "?!?!?!?!?!?!",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_question_that_is_none_is_refused_before_anything_is_written(openassay: Command, name: str) -> None:
    question, reason = REFUSED[name]
    openassay("research", question).refused(2, reason)
    assert openassay.threads() == []
    assert openassay.rows("SELECT 1 FROM runs UNION ALL SELECT 1 FROM events") == []


def test_a_missing_question_is_a_usage_error(office: Command) -> None:
    missing = office("research")
    assert missing.code == 2
    assert "QUESTION" in missing.err


@pytest.mark.slow
@pytest.mark.requirement("X-10")
def test_one_word_is_taken_for_the_best_guess_and_says_so(office: Command) -> None:
    asked = office("ask", "banana", "--json")
    assert asked.code == 5
    assert asked.json["status"] == "no_data"
    assert any("not clear" in notice for notice in asked.json["notices"])


async def ended(questions: list[str], data: Path, docs: tuple[str, ...] = ()) -> dict[str, str]:
    """How each question ended, all in one process; a refused one must leave no thread behind."""
    outcomes: dict[str, str] = {}
    async with open_engine(load(data_dir=data, offline=True)) as engine:
        for question in questions:
            before = len(await engine.threads.list_recent(limit=1000))
            try:
                run = await engine.start(question, ResearchOptions(depth=Depth.QUICK, docs=docs))
            except QuestionError:
                outcomes[question] = "refused"
                assert len(await engine.threads.list_recent(limit=1000)) == before
                continue
            outcome = await engine.wait(run.id)
            assert outcome.run.status is RunStatus.DONE, (question, outcome.run.error)
            assert outcome.report is not None
            outcomes[question] = str(outcome.report.status)
            assert outcome.report.markdown
            assert outcome.report.html
    return outcomes


@pytest.mark.slow
async def test_other_scripts_and_emoji_are_text(tmp_path: Path, openassay: Command) -> None:
    outcomes = await ended(ODD, tmp_path / "data", (str(openassay.folder / "tiny"),))
    assert set(outcomes) == set(ODD)
    assert "refused" not in outcomes.values()


@pytest.mark.slow
async def test_naughty_strings_end_in_a_report_or_a_refusal(tmp_path: Path, eval_data: Path) -> None:
    file = eval_data / "hostile" / "naughty-strings.json"
    if not file.is_file():
        pytest.skip(f"no {file}")
    strings = json.loads(file.read_text(encoding="utf-8"))
    sample = [text for text in strings[:: max(1, len(strings) // 60)] if isinstance(text, str)]
    outcomes = await ended(sample, tmp_path / "data")
    assert len(outcomes) >= 50
    assert set(outcomes.values()) <= {"refused", *ReportStatus}
