"""A broad question without a language model: themes of what was found, each thing said once, to the point."""

from collections.abc import Callable

import pytest

from openassay.export import Report
from openassay.testing import make_document
from tests.scenario.conftest import Lab

Make = Callable[..., Lab]

QUESTION = "Tell me about wind farms in Ostrey."
DOCUMENTS = (
    "Wind farms in Ostrey kill about two hundred sea birds in a year, the survey of birds found. It was the first one. "
    "This was not expected by anybody who had planned them.",
    "The survey of birds counted fewer sea birds near the wind farms of Ostrey than in the years before. "
    "I would not have thought so when you asked me about wind farms in Ostrey.",
    "Sea birds avoid the wind farms of Ostrey by night, as radar pictures of the birds show.",
    "Electricity from the wind farms of Ostrey costs less than electricity from the old coal plant of the town.",
    "The price of electricity fell when the wind farms of Ostrey had paid back their loans to the bank.",
    "Households in Ostrey pay the lowest price for electricity because the wind farms belong to the town.",
    "The bakery of Ostrey sells bread, and its oven was built by a baker from the south who liked the town.",
)


@pytest.fixture
async def report(lab: Make) -> Report:
    here = lab()
    titles = ("Night count", "Harbour notes", "Radar", "Meter", "Ledger", "Household letter", "Bread")
    here.holds(*(
        make_document(text, title=title, url=f"https://{at}.example/page")
        for at, (title, text) in enumerate(zip(titles, DOCUMENTS, strict=True))
    ))  # fmt: skip
    return await here.report(QUESTION)


def facts(report: Report) -> list[str]:
    return [one.text for section in report.sections for one in section.sentences if one.kind != "frame"]


@pytest.mark.slow
@pytest.mark.requirement("F-05", "F-06")
async def test_what_was_found_is_told_by_theme_under_the_documents_own_words(report: Report) -> None:
    bodies = [section for section in report.sections if section.role == "body"]
    assert bodies
    asked = {question.text for question in report.plan.questions} if report.plan else set()
    assert not asked & {section.title for section in bodies}
    words = f"{' '.join(DOCUMENTS)} Also found".lower()
    assert all(section.title.lower() in words for section in bodies)
    told = [[one.text for one in section.sentences if one.kind != "frame"] for section in bodies]
    assert not any(any("birds" in text for text in one) and any("price" in text for text in one) for one in told)
    counts = [one.text for section in bodies for one in section.sentences if one.kind == "frame"]
    assert any(text.endswith("documents speak of this.") for text in counts)


@pytest.mark.slow
@pytest.mark.requirement("F-06")
async def test_nothing_is_said_twice_beside_the_point_or_by_someone_unnamed(report: Report) -> None:
    told = facts(report)
    assert len(told) == len(set(told))
    assert not any("bakery" in text for text in told)
    assert not any(text.startswith(("It ", "This ", "I ")) for text in told)


@pytest.mark.requirement("F-02", "F-06")
async def test_the_plan_asks_what_was_asked_and_a_person_who_edits_it_gets_its_sections(report: Report) -> None:
    assert report.plan is not None
    assert 3 <= len(report.plan.questions) <= 7
    assert all("wind farms in Ostrey" in question.text for question in report.plan.questions)
    assert report.plan.asks_for_themes
    assert not report.plan.model_copy(update={"edited": True}).asks_for_themes
