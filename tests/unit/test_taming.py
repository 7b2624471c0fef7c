"""Words of a model that nobody checked are repeated only as far as they can do no harm."""

import pytest

from openassay.verification.terms import LEFT_OUT, collect_words, mask_unverified_terms

KNOWN = collect_words("How large is Lake Marrow?", "The survey of 2019 was made in Ostrey.")


@pytest.mark.requirement("W-17")
@pytest.mark.parametrize(
    "word",
    ["CANARY7F3A", "Xq7", "https://evil.example/?q=secret", "www.evil.example", "<script>alert(1)</script>",
     "evil.example/canary", "a@b.example", "{{template}}", "CANARY", "snake_case", "mid-Sentence"],
)  # fmt: skip
def test_a_code_an_address_or_an_unknown_abbreviation_is_left_out(word: str) -> None:
    assert (
        mask_unverified_terms(f"the section should mention {word} once", KNOWN)
        == f"the section should mention {LEFT_OUT} once"
    )


@pytest.mark.requirement("W-17")
@pytest.mark.parametrize(
    "text",
    ["The summary repeats the size of Lake Marrow.", "covered 999 square kilometres in 2019, or 12.5%",
     "Say it plainly: the survey (Ostrey) isn't cited.", ""],
)  # fmt: skip
def test_plain_words_figures_and_known_names_stay(text: str) -> None:
    assert mask_unverified_terms(text, KNOWN) == text
