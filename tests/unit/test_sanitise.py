"""Sanitising and reflowing text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.fetch.extractor import score
from openassay.fetch.formats import reflow
from openassay.text.words import clean_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
HIDDEN = [
    "\x00",
    "\x1b",
    "\u00ad",
    "\u200b",
    "\u2060",
    "\ufeff",
    "\u202e",
    "\u2066",
    "\U000e0041",
    "\U000e0101",
]


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once


@given(ANY_TEXT)
def test_clean_text_is_encodable_and_composed(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert unicodedata.is_normalized("NFC", cleaned)
    assert "\r" not in cleaned
    assert "  " not in cleaned
    assert "\n\n\n" not in cleaned


@pytest.mark.parametrize("character", HIDDEN)
def test_invisible_characters_go(character: str) -> None:
    assert clean_text(f"ig{character}nore") == "ignore"


def test_a_letter_composes_across_a_removed_character() -> None:
    assert clean_text("e\u200b\u0301") == "\u00e9"


def test_joiners_that_spell_words_stay() -> None:
    assert clean_text("می\u200cخواهم") == "می\u200cخواهم"


def test_spaces_lines_and_surrogates() -> None:
    assert clean_text("a\u00a0\u2003 b \r\nc\rd\n\n\n\ne\udc80") == "a b\nc\nd\n\ne\ufffd"


@given(ANY_TEXT)
def test_reflow_loses_no_word_character(text: str) -> None:
    def letters(value: str) -> str:
        return "".join(character for character in value if character.isalnum())

    assert letters(reflow(text)) == letters(text)


def test_wrapped_paragraph_becomes_one_line() -> None:
    text = "The quick brown fox jumps over the lazy dog\nand runs away. Nobody saw it again until\nMonday."
    assert reflow(text) == text.replace("\n", " ")


def test_paragraphs_lists_headings_and_rows_stay() -> None:
    text = (
        "Results\n\nFirst paragraph ends here.\n\n- one item\n- another item\n1. first\n2. second\n\n"
        "| a | b |\n| 1 | 2 |\nTotal net sales $ 81,797 $ 82,959\nCost of sales 45,384 47,074"
    )
    assert reflow(text) == text


def test_heading_above_a_wrapped_paragraph_stays() -> None:
    text = "Americas\nAmericas net sales decreased during the third quarter of 2023\ndue to lower net sales."
    assert reflow(text).split("\n")[0] == "Americas"
    assert reflow(text).count("\n") == 1


def test_a_heading_before_a_name_in_lower_case_stays() -> None:
    text = "iPhone\niPhone net sales decreased during the third quarter and the first nine months of 2023."
    assert reflow(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the long and winding sentence has a consid-\nerable length", "a considerable length"),
        (
            "the expense for the whole year is all stock-\nbased compensation",
            "is all stock-based compensation",
        ),
        ("it was written about in the press by Smith-\nJones and others", "by Smith-Jones and others"),
        ("this is what grew at the fastest rate: Year-\nover-year sales", "rate: Year-over-year sales"),
    ],
)
def test_hyphens_at_line_ends(text: str, expected: str) -> None:
    assert reflow(text).endswith(expected)


def test_lines_that_are_whole_paragraphs_are_not_joined() -> None:
    text = "\n".join("Sentence after sentence fills this paragraph to its end. " * 5 for _ in range(3))
    assert len(reflow(text).split("\n")) == 3


PROSE = (
    "The company opened a plant in Leipzig in 2021. It employs four hundred people, most of whom "
    "came from the closed works nearby. Output rose by a fifth in the first year, "
    "although energy prices doubled. "
    "Analysts had expected the opposite and were slow to change their forecasts. A second line will follow."
)


def test_prose_scores_well_above_the_floor() -> None:
    assert score(PROSE * 2) > 0.6


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Home\nAbout\nContact\nLogin\n" * 20,
        "Accept all cookies\nManage preferences\nPrivacy policy",
        "0101 1100 2231 9912 !!! ### 4451 " * 40,
        "buy now " * 200,
    ],
)
def test_menus_and_noise_score_below_the_floor(text: str) -> None:
    assert score(text) < 0.3


@given(ANY_TEXT)
def test_score_is_a_share(text: str) -> None:
    assert 0 <= score(text) <= 1
