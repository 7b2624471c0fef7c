"""Sentences and titles that no claim stands behind."""

import pytest

from openassay.verification.terms import KnownTerms

TOLD = KnownTerms(
    ["How large is Lake Marrow in 2019?", '{"section": "Causes of the drought"}', "Survey of Lake Marrow"]
)

pytestmark = pytest.mark.requirement("X-01", "S-10")


@pytest.mark.parametrize(
    "text",
    [
        "No source read in this run answered: “How large is Lake Marrow in 2019?”",
        "Of 3 sub-questions, 2 have statements that hold against the sources read.",
        "Statements marked ✓✓ rest on two or more independent sources.",
        "Here the sources do not agree, and no source read in this run settles it.",
        "What was published before has been superseded by newer statements of the same origin, told above.",
        "This is based on limited information about Lake Marrow.",
        "After 2 attempts not everything that was asked could be verified.",
        "The sources disagree, as the next 2 statements show.",
        "No source gave a figure for 2019.",
        "61 of 64 statements were checked.",
    ],
)
def test_what_speaks_of_the_research_passes(text: str) -> None:
    assert TOLD.covers(text)


@pytest.mark.parametrize(
    "text",
    [
        "No source gave a figure, but it is 45%.",
        "No source gave a figure, but it is 45.",
        "No source gave a figure for 2031.",
        "All 400 sources agree.",
        "No source gave a figure, but it is falling fast.",
        "As Ilse Brandt found, no source answers this.",
        "Lake Marrow is shrinking.",
        "The sources agree that the lake is poisonous.",
        "Lake Marrow.",
        "",
    ],
)
def test_what_speaks_of_the_world_does_not(text: str) -> None:
    assert not TOLD.covers(text)


@pytest.mark.parametrize("title", ["Lake Marrow", "Causes of the drought", "What the sources disagree on", "In brief"])
def test_titles_of_what_was_asked(title: str) -> None:
    assert TOLD.covers_title(title)


@pytest.mark.parametrize("title", ["Lake Marrow is poisonous", "45 reasons", "Ilse Brandt", " ", "<b>Lake</b> Inc"])
def test_titles_that_state_more(title: str) -> None:
    assert not TOLD.covers_title(title)
