"""Research on a small web with a primary source among copies, spam, older figures and a paywall."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from openassay.bootstrap import open_engine
from openassay.export import Report
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes.local_web import Fact, LocalPage, LocalWeb, make_family, render_page, serve_local_web
from tests.fakes.local_web_report import Judged, judge_report

FACT = Fact(
    id="pumps",
    question="How many pumps did Hallmere Works sell?",
    who="Hallmere Works",
    host="hallmere-works.example",
    title="Pumps sold by Hallmere Works",
    own="Hallmere Works sold {value} pumps in {when}.",
    told="Hallmere Works sold {value} pumps in {when}.",
    plain="Hallmere Works sells {value} pumps a year.",
    background=(
        "The works make pumps for wells and for ships, and have done so for three generations.",
        "Most of the pumps went to farms on the other side of the river.",
        "A second hall for the assembly of pumps is to be built beside the canal.",
    ),
    value="48,300",
    when="2025",
    published=date(2026, 2, 19),
    old_value="31,750",
    old_when="2019",
    old_published=date(2020, 2, 20),
    wrong_value="97,000",
)
OTHERS = [
    LocalPage(f"http://{host}/page", title, render_page(title, text, None, host))
    for host, title, text in (
        ("gardens.example", "Watering a garden", ["A pump lifts water from a well.", "Water the beds in the evening."]),
        (
            "rivers.example",
            "Rivers and canals",
            ["Canals were dug by hand.", "Works on the river bank last all summer."],
        ),
        ("shops.example", "What shops sell", ["Shops sell what people want to buy, and how many they sell depends."]),
    )
]


async def ask(question: str, folder: Path, web: LocalWeb) -> Report:
    async with open_engine(load(data_dir=folder, **web.settings)) as engine:
        run = await engine.start(question, ResearchOptions(source="tavily"))
        outcome = await engine.wait(run.id)
    assert outcome.report is not None
    return outcome.report


async def research(fact: Fact, question: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Judged:
    """The provider obeys neither hosts nor dates."""
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-local-not-a-key")
    pages = [*make_family(fact, datetime.now(UTC).date()), *OTHERS]
    async with serve_local_web(pages, careless=True) as web:
        return judge_report(await ask(question, folder, web), fact, web)


@pytest.mark.slow
async def test_the_primary_source_and_the_newest_figure_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = await research(FACT, FACT.question, tmp_path, monkeypatch)

    assert judged.answered
    assert judged.primary_first
    assert judged.newest_first
    assert (judged.undated, judged.spam, judged.paywall, judged.copies) == ([], [], [], [])


@pytest.mark.slow
async def test_sites_and_dates_are_obeyed_though_the_provider_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = make_family(FACT, datetime.now(UTC).date())
    spam = [page.host for page in pages if page.role == "spam"]
    confined = Fact(**{**vars(FACT), "deny": tuple(spam), "since": date(2024, 1, 1)})
    question = " ".join([f"{FACT.question[:-1]} since 2024?", *(f"-site:{host}" for host in spam)])

    denied = await research(confined, question, tmp_path / "denied", monkeypatch)
    allowed_fact = Fact(**{**vars(FACT), "allow": (FACT.host,)})
    allowed = await research(allowed_fact, f"{FACT.question} site:{FACT.host}", tmp_path / "allowed", monkeypatch)

    assert denied.answered
    assert allowed.answered
    assert allowed.primary_first
    assert denied.disobeyed == allowed.disobeyed == []
