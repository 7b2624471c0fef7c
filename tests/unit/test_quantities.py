"""Figures are read with value, unit and kind, whatever their spelling."""

from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openassay.text.quantities import PartialDate, Quantity, find_quantities
from tests.growth import LINEAR, growth


def _one(text: str) -> Quantity:
    [quantity] = find_quantities(text)
    return quantity


@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    ("text", "value", "unit", "kind"),
    [
        ("1,234.50", "1234.5", "", "number"),
        ("1.234,56 euros", "1234.56", "EUR", "money"),
        ("1 234 people", "1234", "", "number"),
        ("12,34,567 voters", "1234567", "", "number"),
        ("3,2 %", "3.2", "%", "percent"),
        ("p < .05", "0.05", "", "number"),
        ("-5 °C", "-5", "°C", "number"),
        ("−12.5%", "-12.5", "%", "percent"),
        ("minus 5 degrees Celsius", "-5", "°C", "number"),
        ("fell (1)%", "-1", "%", "percent"),
        ("$(1,234)", "-1234", "USD", "money"),
        ("a share (12) of", "12", "", "number"),
        ("$6.4 billion", "6400000000", "USD", "money"),
        ("$6,400 million", "6400000000", "USD", "money"),
        ("6.4bn", "6400000000", "", "number"),
        ("$89.5B", "89500000000", "USD", "money"),
        ("US$5m", "5000000", "USD", "money"),
        ("$1.5-billion", "1500000000", "USD", "money"),
        ("EUR 3.2 million", "3200000", "EUR", "money"),
        ("5 million euros", "5000000", "EUR", "money"),
        ("£300", "300", "GBP", "money"),
        ("A$20", "20", "AUD", "money"),
        ("5K", "5000", "", "number"),
        ("5 K", "5", "K", "number"),
        ("5 per cent", "5", "%", "percent"),
        ("twenty-five percent", "25", "%", "percent"),
        ("25 basis points", "0.25", "points", "points"),
        ("2 percentage points", "2", "points", "points"),
        ("twelve", "12", "", "number"),
        ("a dozen eggs", "12", "", "number"),
        ("three hundred and six thousand", "306000", "", "number"),
        ("two and a half million", "2500000", "", "number"),
        ("half a million", "500000", "", "number"),
        ("half of them", "0.5", "", "fraction"),
        ("two halves of them", "1", "", "fraction"),
        ("a quarter of them", "0.25", "", "fraction"),
        ("the third-largest", "3", "", "ordinal"),
        ("its 21st year", "21", "", "ordinal"),
        ("67.4 km/s/Mpc", "67.4", "km/s/Mpc", "number"),
        ("67.4 km s−1 Mpc−1", "67.4", "km/s/Mpc", "number"),
        ("67.4 kilometres per second per megaparsec", "67.4", "km/s/Mpc", "number"),
        ("250 Wh/kg", "250", "Wh/kg", "number"),
        ("90 km/h", "90", "km/h", "number"),
        ("a five-year plan", "5", "year", "number"),
        ("16 GB", "16", "GB", "number"),
        ("5 metric tons", "5", "t", "number"),
        ("2021", "2021", "", "year"),
        ("the 1990s", "1990", "", "decade"),
    ],
)
def test_reads_value_unit_and_kind(text: str, value: str, unit: str, kind: str) -> None:
    quantity = _one(text)
    assert (quantity.value, quantity.unit, quantity.kind) == (Decimal(value), unit, kind)


def test_equal_values_print_alike() -> None:
    assert str(_one("$6.4 billion").value) == str(_one("$6,400 million").value) == "6400000000"


@pytest.mark.requirement("X-03")
@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("29 July 2021", PartialDate(2021, 7, 29)),
        ("the 29th of July, 2021", PartialDate(2021, 7, 29)),
        ("July 29, 2021", PartialDate(2021, 7, 29)),
        ("Sept. 3, 2020", PartialDate(2020, 9, 3)),
        ("2021-07-29", PartialDate(2021, 7, 29)),
        ("July 2021", PartialDate(2021, 7)),
        ("30 June", PartialDate(None, 6, 30)),
        ("in May", PartialDate(None, 5)),
        ("Q3 2023", PartialDate(2023, part="Q3")),
        ("third quarter of 2023", PartialDate(2023, part="Q3")),
        ("the first half of 2023", PartialDate(2023, part="H1")),
        ("fiscal 2023", PartialDate(2023, fiscal=True)),
        ("FY23", PartialDate(2023, fiscal=True)),
        ("the third quarter of fiscal 2023", PartialDate(2023, part="Q3", fiscal=True)),
    ],
)
def test_reads_dates(text: str, when: PartialDate) -> None:
    assert _one(text).when == when


def test_spans_of_years_are_two_years() -> None:
    assert [quantity.value for quantity in find_quantities("2019–21")] == [2019, 2021]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2-3%", [("2", "%"), ("3", "%")]),
        ("between 5 and 7 km", [("5", "km"), ("7", "km")]),
        ("5 to 7 million", [("5000000", ""), ("7000000", "")]),
        ("$5-7 million", [("5000000", "USD"), ("7000000", "USD")]),
        ("$20–$25 million", [("20000000", "USD"), ("25000000", "USD")]),
        ("between £3 and £4 billion", [("3000000000", "GBP"), ("4000000000", "GBP")]),
        ("$900 to $1.2 million", [("900", "USD"), ("1200000", "USD")]),
        ("5%-7%", [("5", "%"), ("7", "%")]),
    ],
)
def test_ends_of_a_range_share_unit_and_magnitude(text: str, expected: list[tuple[str, str]]) -> None:
    found = find_quantities(text)
    assert [(str(quantity.value), quantity.unit) for quantity in found] == expected
    assert all(quantity.ranged for quantity in found)


def test_a_change_is_not_a_range() -> None:
    assert [quantity.ranged for quantity in find_quantities("rose from 10 to 20")] == [False, False]


@pytest.mark.parametrize("text", ["67.4 ± 0.5 km/s/Mpc", "67.4 +/- 0.5 km/s/Mpc", "67.4±0.5 km/s/Mpc"])
def test_uncertainty(text: str) -> None:
    value, error = find_quantities(text)
    assert (value.value, value.unit, value.kind) == (Decimal("67.4"), "km/s/Mpc", "number")
    assert (error.value, error.kind) == (Decimal("0.5"), "uncertainty")


@pytest.mark.parametrize("text", ["about 5 million", "roughly 40%", "~300", "nearly half of"])
def test_approximate(text: str) -> None:
    assert _one(text).approximate


@pytest.mark.parametrize("text", ["[S1]", "see [3]", "[2, 4]", "1. First", "one of them", "COVID-19", "GPT-4"])
def test_no_figures(text: str) -> None:
    assert find_quantities(text) == ()


@pytest.mark.parametrize(("text", "label"), [("10:30", "10:30"), ("5 pm", "17:00"), ("1.2.3", "1.2.3")])
def test_what_is_compared_as_printed(text: str, label: str) -> None:
    assert _one(text).label == label


@given(st.text())
def test_any_text_is_read_and_offsets_lie_within(text: str) -> None:
    for quantity in find_quantities(text):
        assert 0 <= quantity.start < quantity.end <= len(text)


_PIECES = [
    "1",
    "1,",
    "1.",
    "1 000 ",
    "$",
    "(",
    "July ",
    "two ",
    "half a ",
    "-",
    "±",
    "[S1",
    "2021-",
    "Q3 ",
    "\n",
    " ",
]


_serials = count()


def read_afresh(text: str) -> object:
    """Short texts are remembered, so each time it is another one."""
    return find_quantities(f"{text} {next(_serials)}")


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4))
def test_hostile_repetition_takes_polynomial_time(pieces: list[str]) -> None:
    text = "".join(pieces) * 3_200
    assert growth(lambda size: read_afresh(text[:size]), 800) < 200  # some pieces take the square; none for ever


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["1", "1,000", "9.", "July ", "two ", "million ", " ", "\n", "(", "$", "a-1"])
def test_a_long_run_of_one_piece_is_read(piece: str) -> None:
    assert growth(lambda size: read_afresh(piece * size), 1_000) < LINEAR
