"""Sentences that draw claims together: figures that are computed again, and what stands in no passage."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openassay.models.evidence import Claim, ContextItem, QuoteSpan, Verdict
from openassay.models.report import DerivedFigure
from openassay.verification.synthesis import check_synthesis, compute_figure, settle_figures, spell_numbers
from openassay.verification.terms import find_addresses


def make_claim(name: str, quote: str, text: str = "", **more: object) -> Claim:
    span = QuoteSpan(document=f"doc-{name}", start=0, end=len(quote), quote=quote)
    fields = {"id": name, "text": text or quote, "questions": (), "spans": (span,), "verdict": Verdict.SUPPORTED}
    return Claim.model_validate({**fields, **more})


RIVER = make_claim("C1", "The Wend carried 190.1 million tonnes in 2021.")
CANAL = make_claim("C2", "The Orrin canal carried 182.4 million tonnes in 2021.")
RAIL = make_claim("C3", "Rail freight fell to 61 million tonnes in March 2020.")


def problems(text: str, *claims: Claim, derived: tuple[DerivedFigure, ...] = ()) -> list[str]:
    return [problem.text for problem in check_synthesis(text, claims, derived, {"doc-C1": date(2022, 3, 9)})]


def derive(value: float, operation: str, *operands: float | str) -> DerivedFigure:
    return DerivedFigure.model_validate({"value": value, "operation": operation, "operands": operands})


def test_a_comparison_in_its_passages_figures_holds() -> None:
    assert not problems("In 2021 the Wend carried 190.1 million tonnes, more than the canal's 182.4.", RIVER, CANAL)


def test_a_figure_that_was_computed_right_holds_and_one_that_was_not_does_not() -> None:
    text = "The Wend carried {} million tonnes more than the canal."
    right, wrong = derive(7.7, "difference", 190.1, 182.4), derive(8.9, "difference", 190.1, 182.4)

    assert not problems(text.format("7.7"), RIVER, CANAL, derived=(right,))
    assert problems(text.format("8.9"), RIVER, CANAL, derived=(wrong,)) == ["8.9 comes to 7.7 (difference)"]
    assert "stands in no passage" in problems(text.format("7.7"), RIVER, CANAL)[0], "nobody said how it comes about"


def test_what_is_computed_from_figures_that_stand_nowhere_is_refused() -> None:
    made_up = derive(10, "difference", 192.4, 182.4)
    [problem] = problems("The river led by 10 million tonnes.", RIVER, CANAL, derived=(made_up,))
    assert "192.4, from which 10 is computed" in problem


def test_a_step_of_a_calculation_is_computed_again_and_not_told() -> None:
    both = derive(372.5, "sum", 190.1, 182.4)
    half = derive(51, "share", 190.1, 372.5)
    text = "Of the 372.5 million tonnes on both, just over half went by the river."

    settled = settle_figures(text, (both, half), (RIVER, CANAL))
    assert settled == (both,), "the reader finds no 372.5 in the passages"
    assert not problems(text, RIVER, CANAL, derived=settled)


def test_a_difference_from_a_sum_is_told_by_what_was_summed_up() -> None:
    text = "Together they carried 202 million tonnes, 98 million short of the goal."
    goal = make_claim("C9", "The goal is 300 million tonnes.")
    both = derive(202, "sum", 190, 12)
    short = derive(98, "difference", 300, 202)
    first, second = (
        make_claim("C7", "The river carried 190 million tonnes."),
        make_claim("C8", "The canal carried 12 million."),
    )
    settled = settle_figures(text, (both, short), (first, second, goal))

    assert settled[1].operands == (300, -190, -12)
    assert compute_figure(settled[1]) == 98
    assert not problems(text, first, second, goal, derived=settled)
    wrong = derive(203, "sum", 190, 12)
    strange = derive(97, "difference", 300, 203)
    assert problems(text, first, second, goal, derived=settle_figures(text, (wrong, strange), (first, second, goal)))


@pytest.mark.parametrize(
    "wrong",
    [
        derive(71, "share", 190.1, 372.5),  # does not come to that
        derive(51, "share", 190.1, 371.9),  # of what stands nowhere
    ],
)
def test_a_step_that_is_wrong_is_refused(wrong: DerivedFigure) -> None:
    both = derive(372.5, "sum", 190.1, 182.4)
    text = "Of the 372.5 million tonnes on both, just over half went by the river."
    assert problems(text, RIVER, CANAL, derived=settle_figures(text, (both, wrong), (RIVER, CANAL)))


def test_a_figure_in_digits_is_not_told_of_steps() -> None:
    both, share = derive(372.5, "sum", 190.1, 182.4), derive(51, "share", 190.1, 372.5)
    text = "The river had 51 per cent of both."
    assert problems(text, RIVER, CANAL, derived=settle_figures(text, (both, share), (RIVER, CANAL)))


def test_what_is_left_of_a_share_is_told_in_words() -> None:
    closed = make_claim("C4", "By 2019 the state collected 86 per cent of the tax due.")
    rest = derive(14, "difference", 100, 86)
    text = "One seventh of the tax due was still missing in 2019, when the minister called the gap closed."
    assert settle_figures(text, (rest,), (closed, RIVER)) == ()


def test_releases_are_counted_by_their_numbers() -> None:
    first = make_claim("C6", "Resource claims came as alpha in v1.26.")
    last = make_claim("C7", "In v1.34 the core of resource claims was stable.")
    assert settle_figures("Eight releases lay between.", (derive(8, "difference", 34, 26),), (first, last)) == ()
    wrong = derive(9, "difference", 35, 26)
    assert settle_figures("Nine releases lay between.", (wrong,), (first, last)) == (wrong,)


def test_versions_are_spelled_as_the_passages_spell_them() -> None:
    first = make_claim("C6", "Resource claims came as alpha in v1.26 and cost 1.5 per cent.")
    last = make_claim("C7", "In Kubernetes 1.34 the core was stable; v1.34 is the last.")
    text = "Alpha in 1.26, stable in 1.34, at 1.5 per cent; 11.26, 1.26.3 and $1.26 are none of them."
    assert spell_numbers(text, (first, last)) == text.replace("in 1.26", "in v1.26")


def test_thousands_are_spelled_as_their_passage_spells_them() -> None:
    users = make_claim("C1", "It has 370k users and costs $1.2M, of which £82K are given.")
    text = "It has 370,000 users, costs $1,200,000 and was given £82,000 by 1370,000 people."
    assert spell_numbers(text, (users,)) == ("It has 370k users, costs $1.2M and was given £82K by 1370,000 people.")
    both = make_claim("C2", "It has 370k users, or 370,000 in all.")
    assert spell_numbers("It has 370,000 users.", (both,)) == "It has 370,000 users."


def test_a_span_of_years_is_worked_out_where_two_years_lie_so_far_apart() -> None:
    built, closed = (
        make_claim("C1", "It was built in 1871."),
        make_claim("C2", "It closed in 1933 after 12 years of loss."),
    )
    [figure] = settle_figures("It ran for 62 years.", (), (built, closed))
    assert (figure.operation, figure.value, figure.operands) == ("difference", 62, (1933, 1871))
    assert settle_figures("It lost for 12 years.", (), (built, closed)) == (), "a passage says so"
    assert settle_figures("It ran for 61 years.", (), (built, closed)) == ()
    told = derive(62, "difference", 1933, 1871)
    assert settle_figures("It ran for 62 years.", (told,), (built, closed)) == (told,)


def test_a_half_may_be_rounded_up() -> None:
    slow = make_claim("C5", "Pay rose by 2.1 per cent, prices by 4.0 per cent.")
    [settled] = settle_figures("About half as fast.", (derive(53, "share", 2.1, 4.0),), (slow, RIVER))
    assert settled.value == 52.5


def test_one_claim_makes_no_synthesis() -> None:
    assert "it rests on fewer than two claims" in problems("The Wend carried the most.", RIVER)


def test_a_count_names_what_it_counts() -> None:
    text = "Five waterways carried freight in 2021."
    assert "comes to 2" in problems(text, RIVER, CANAL, derived=(derive(5, "count", "C1", "C2"),))[0]
    assert not problems("Two waterways carried freight.", RIVER, CANAL, derived=(derive(2, "count", "C1", "C2"),))
    strange = problems("Two carried freight.", RIVER, CANAL, derived=(derive(2, "count", "C1", "the lake"),))
    assert "the lake" in strange[0]


def test_a_day_told_by_the_date_of_the_document_holds() -> None:
    dated = make_claim(
        "C1",
        "The lock closed on Tuesday.",
        context=(ContextItem(document="doc-C1", field="published", value="2022-03-09"),),
    )
    assert not problems("The lock closed on 8 March 2022, after a year of 182.4 million tonnes.", dated, CANAL)
    assert problems("The lock closed on 15 March 2019, after a year of 182.4 million tonnes.", dated, CANAL)


@pytest.mark.parametrize(
    ("operation", "operands", "value"),
    [
        ("sum", (1, 2, 3.5), 6.5),
        ("ratio", (9, 3), 3),
        ("share", (25, 200), 12.5),
        ("percent_change", (80, 100), 25),
        ("days", ("2024-02-01", "2024-03-01"), 29),
        ("count", ("C1", "C2", "C1"), 2),
        ("ratio", (9, 0), None),
        ("share", (9,), None),
        ("difference", ("nine", 3), None),
        ("days", ("soon", "2024-03-01"), None),
    ],
)
def test_operations(operation: str, operands: tuple[float | str, ...], value: float | None) -> None:
    assert compute_figure(derive(0, operation, *operands)) == value


@given(st.floats(1, 1e6), st.floats(1, 1e6), st.sampled_from(["difference", "ratio", "share", "percent_change", "sum"]))
def test_what_was_computed_by_the_operation_it_names_always_comes_out(one: float, two: float, operation: str) -> None:
    first, second = round(one, 1), round(two, 1)
    value = compute_figure(derive(0, operation, first, second))
    assert value is not None
    claims = make_claim("C1", f"It was {first:.1f}."), make_claim("C2", f"It was {second:.1f}.")
    found = [*check_synthesis("They differ.", claims, [derive(round(value, 1), operation, first, second)], {})]
    assert not found


@pytest.mark.requirement("W-17")
def test_an_address_or_markup_wants_a_passage_that_has_it() -> None:
    passage = "The survey is at https://lakes.example/survey, p < 0.05."
    assert find_addresses("It stands at https://lakes.example/survey (p<0.05).", [passage]) == []
    assert find_addresses("See http://other.example <script>x</script> now", [passage]) == [
        "http://other.example",
        "<script>x</script>",
    ]
