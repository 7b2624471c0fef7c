"""Claims that give one quantity different figures in other words."""

from collections.abc import Sequence

import pytest

from openassay.models.evidence import Claim, QuoteSpan, Verdict
from openassay.protocols import SupportScore
from openassay.reasoning.rules.rival_figures import find_rivals


def claim(id: str, text: str) -> Claim:
    span = QuoteSpan(document=f"document of {id}", start=0, end=len(text), quote=text)
    return Claim(id=id, text=text, questions=("Q1",), spans=(span,), verdict=Verdict.SUPPORTED, relevance=0.5)


def find(*texts: str, bears_out: Sequence[tuple[str, str]] = ()) -> set[frozenset[str]]:
    """With a verifier that bears out these pairs and refutes all others."""

    def score(pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        return [SupportScore(0.9, 0.0) if pair in bears_out else SupportScore(0.1, 0.8) for pair in pairs]

    return find_rivals([claim(f"C{number}", text) for number, text in enumerate(texts, 1)], score)


LAW = "The minimum wage in Norhaven rose to €13.90 an hour in January 2026."
PAGE = "Workers in Norhaven earn at least €21.50 an hour."


@pytest.mark.requirement("F-05")
def test_a_claim_that_is_borne_out_with_the_figure_of_another_is_its_rival() -> None:
    exchanged = ("Workers in Norhaven earn at least €13.90 an hour.", LAW)

    assert find(PAGE, LAW, bears_out=[exchanged]) == {frozenset({"C1", "C2"})}
    assert find(LAW, PAGE, bears_out=[exchanged]) == {frozenset({"C1", "C2"})}
    assert find(PAGE, LAW) == set()


@pytest.mark.requirement("F-05")
def test_a_yearly_figure_is_held_against_one_of_a_year() -> None:
    yearly, told = "The Ostrel ferry carries 5,600 people a year.", "The Ostrel ferry carried 2,840 people in 2025."

    assert find(yearly, told, bears_out=[("The Ostrel ferry carries 2,840 people in 2025.", told)]) == {
        frozenset({"C1", "C2"})
    }


@pytest.mark.requirement("F-05")
def test_other_years_units_and_names_are_no_rivals() -> None:
    def score(pairs: Sequence[tuple[str, str]]) -> list[SupportScore]:
        assert not pairs, pairs
        return []

    for other in (
        "The minimum wage in Norhaven rose to €11.20 an hour in January 2022.",
        "The minimum wage in Norhaven rose by 4% in January 2026.",
        "The minimum wage in Ostrey rose to €11.20 an hour in January 2026.",
    ):
        assert find_rivals([claim("C1", LAW), claim("C2", other)], score) == set()
