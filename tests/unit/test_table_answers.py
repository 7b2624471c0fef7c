"""Questions over tables: what is read, what is calculated, and when nothing is said."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openassay.reasoning.rules.table_answers import LEAST_TOLD
from openassay.reasoning.rules.tables import (
    SURE,
    Source,
    Table,
    answer_from_sources,
    answer_from_tables,
    choose_sources,
    rank_rows,
    read_series,
    read_tables,
)
from openassay.reasoning.rules.tables.cells import parse_cell, write_number
from openassay.reasoning.rules.tables.periods import find_periods, find_years

SALES = [
    ["", "", "Years Ended September 30,", ""],
    ["", "2019", "2018", "2017"],
    ["Fixed Price", "$  1,452.4", "$  1,146.2", "$  1,036.9"],
    ["Other", "44.1", "56.7", "70.8"],
    ["Total sales", "$1,496.5", "$1,202.9", "$1,107.7"],
]
WRITTEN = """Revenue grew in every region.
Fixed Price (in millions) — Year Ended May 31, 2019: $1,452.4; Year Ended May 31, 2018: $1,146.2; Table: Sales
Other (in millions) — Year Ended May 31, 2019: 44.1; Year Ended May 31, 2018: 56.7; Table: Sales
Total sales (in millions) — Year Ended May 31, 2019: $1,496.5; Year Ended May 31, 2018: $1,202.9; Table: Sales
"""
IN_MILLIONS = ["The following table shows sales by contract type (in millions):"]


# Cells ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234", 1234),
        ("$  1,452.4", 1452.4),
        ("(114)", -114),
        ("$(53)", -53),
        ("(123 )", -123),
        ("−136", -136),
        ("1,234(1)", 1234),
        ("1,234 [a]", 1234),
        ("12.5%", 12.5),
        ("(248%)", -248),
        ("—", 0),
        ("- - %", 0),
        (".114", 0.114),
    ],
)
def test_a_figure_is_read_from_its_cell(text: str, number: float) -> None:
    value = parse_cell(text)
    assert value is not None
    assert value.number == pytest.approx(number)


@pytest.mark.parametrize("text", ["", "n/a", "NM", "2019", "Indefinite", "(in millions)", "Note 5"])
def test_words_years_and_nothing_are_no_figures(text: str) -> None:
    assert parse_cell(text) is None


@given(st.integers(-(10**12), 10**12))
def test_what_is_written_is_read_again(number: int) -> None:
    value = parse_cell(write_number(number))
    assert number == 2019 or value is None or value.number == number


@given(st.text(max_size=40))
def test_any_text_may_stand_in_a_cell(text: str) -> None:
    parse_cell(text)


# Periods -------------------------------------------------------------------------------------------------------


def test_years_are_found_in_the_order_they_are_named() -> None:
    assert find_years("2019 against 2018, FY17") == [2019, 2018, 2017]
    assert find_years("from 2017 to 2019") == [2017, 2019, 2018]


def test_a_quarter_belongs_to_its_year() -> None:
    (period,) = find_periods("the third quarter of 2022")
    assert (period.year, period.quarter) == (2022, 3)


def test_an_amount_is_no_year() -> None:
    assert find_years("$2,019 and 2018.5 and 2,017") == []


# Tables --------------------------------------------------------------------------------------------------------


def test_heads_of_two_lines_stand_over_each_column() -> None:
    table = Table.from_cells(SALES, "Sales")
    assert table.heads[0] == "Years Ended September 30, 2019"
    assert [row.label for row in table.rows] == ["Fixed Price", "Other", "Total sales"]


def test_merged_heads_stand_over_their_columns() -> None:
    table = Table.from_cells(
        [
            ["", "Domestic", "", "International", ""],
            ["", "2019", "2018", "2019", "2018"],
            ["Rate", "4%", "3%", "2%", "1%"],
        ]
    )
    assert table.heads == ("Domestic 2019", "Domestic 2018", "International 2019", "International 2018")


def test_a_row_keeps_the_heading_of_its_group() -> None:
    table = Table.from_cells(
        [["", "2019"], ["Services:", ""], ["Maintenance", "5"], ["Total services", "7"], ["Tax", "1"]]
    )
    assert [row.group for row in table.rows] == ["Services", "Services", ""]


def test_periods_down_the_side_are_turned() -> None:
    table = Table.from_cells([["", "High", "Low"], ["2019", "3", "1"], ["2018", "4", "2"]])
    assert table.is_transposed
    assert table.heads == ("2019", "2018")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["", "2019", "Revenue", "5", "(3)", "—", "n/a", "in thousands"]), max_size=5),
        max_size=6,
    )
)
def test_any_grid_can_be_asked(cells: list[list[str]]) -> None:
    answer = answer_from_tables("What was the change in revenue from 2018 to 2019?", [Table.from_cells(cells)], [])
    assert answer is None or 0 <= answer.confidence <= 1


def test_written_rows_are_read_as_a_table() -> None:
    (table,) = read_tables(WRITTEN)
    assert table.caption == "Sales"
    assert [row.label for row in table.rows] == ["Fixed Price", "Other", "Total sales"]
    cell = table.rows[1].cells[0]
    assert cell is not None
    assert WRITTEN[cell.start :].startswith("44.1;")


def test_prose_is_no_table() -> None:
    assert read_tables("Revenue rose by 5 per cent.\n\nIt was a good year: 2019.") == []


# Answers -------------------------------------------------------------------------------------------------------


def ask(question: str) -> tuple[float, str]:
    answer = answer_from_tables(question, [Table.from_cells(SALES)], IN_MILLIONS)
    assert answer is not None
    assert answer.value is not None
    return round(answer.value, 2), answer.scale


def test_a_difference_is_of_the_later_and_the_earlier_year() -> None:
    assert ask("What is the change in Other in 2019 from 2018?") == (-12.6, "million")


def test_a_percentage_change_is_over_the_earlier_year() -> None:
    assert ask("What is the percentage change in Total sales from 2018 to 2019?") == (24.41, "percent")


def test_an_average_is_of_the_years_that_are_named() -> None:
    assert ask("What was the average Fixed Price for 2018 and 2019?") == (1299.3, "million")


def test_the_calculation_and_its_cells_are_shown() -> None:
    answer = answer_from_tables("What is the percentage change in Other from 2018 to 2019?", read_tables(WRITTEN), [])
    assert answer is not None
    assert answer.calculation == "(44.1 − 56.7) / 56.7 = −22.22%"
    assert answer.text == "−22.22%"
    assert [(one.row, one.column[-4:], one.text) for one in answer.operands] == [
        ("Other", "2019", "44.1"),
        ("Other", "2018", "56.7"),
    ]
    assert all(WRITTEN[one.start :].startswith(one.text) for one in answer.operands)
    assert answer.confidence >= SURE


def test_the_year_of_the_highest_figure_is_named() -> None:
    answer = answer_from_tables("In which year was Other the largest?", [Table.from_cells(SALES)], [])
    assert answer is not None
    assert answer.parts == ("2017",)


def test_one_cell_is_read_with_its_scale() -> None:
    answer = answer_from_tables("What is the amount of total sales in 2019?", read_tables(WRITTEN), [])
    assert answer is not None
    assert answer.text == "$1,496.5 million"


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(2, 5)))
def test_the_order_of_rows_changes_nothing(order: list[int]) -> None:
    table = Table.from_cells([*SALES[:2], *(SALES[at] for at in order)])
    answer = answer_from_tables("What is the change in Other in 2019 from 2018?", [table], IN_MILLIONS)
    assert answer is not None
    assert answer.value == pytest.approx(-12.6)


def test_a_footnote_and_an_empty_cell_change_nothing() -> None:
    table = Table.from_cells(
        [["", "2019", "2018"], ["Income (1)", "1,234(1)", "1,000"], ["Costs", "", "n/a"], ["Tax", "—", "5"]]
    )
    answer = answer_from_tables("What was the change in income from 2018 to 2019?", [table], [])
    assert answer is not None
    assert answer.value == 234


def test_a_question_on_something_else_is_not_answered_with_confidence() -> None:
    answer = answer_from_tables("Who founded the city of Rome?", [Table.from_cells(SALES)], [])
    assert answer is None or answer.confidence < SURE


@pytest.mark.parametrize("question", ["", "?", "the of and"])
def test_a_question_without_words_has_no_answer(question: str) -> None:
    assert answer_from_tables(question, [Table.from_cells(SALES)], []) is None


def test_without_tables_and_paragraphs_there_is_no_answer() -> None:
    assert answer_from_tables("What was revenue in 2019?", [], []) is None


# Rows ----------------------------------------------------------------------------------------------------------


def test_the_row_that_is_asked_about_comes_first() -> None:
    first = rank_rows("How much were total sales?", [Table.from_cells(SALES)])[0]
    assert first.table.rows[first.row].label == "Total sales"


def test_a_row_is_a_series_in_the_order_of_time() -> None:
    series = read_series("How did total sales develop?", [Table.from_cells(SALES)])
    assert series is not None
    assert [point.value for point in series.points] == [1107.7, 1202.9, 1496.5]


def test_no_series_of_what_no_row_has() -> None:
    assert read_series("How did rainfall develop?", [Table.from_cells(SALES)]) is None


# Reports -------------------------------------------------------------------------------------------------------


def write_report(company: str, quarter: str, ended: str, sales: int, research: int) -> Source:
    head, year_to_date = f"Three Months Ended {ended}", f"Nine Months Ended {ended}"
    rows = [("Total net sales", sales), ("Research and development", research), ("Inventories", sales // 10)]
    text = "\n".join(
        f"{label} (in millions) — {head}: {value:,}; {year_to_date}: {3 * value:,}; Table: Operations"
        for label, value in rows
    )
    return Source.make(f"{quarter} {company[:4]}", company, read_tables(text))


REPORTS = [
    write_report("Apple Inc.", "2023 Q2", "April 1, 2023", 94_836, 7_457),
    write_report("Apple Inc.", "2023 Q3", "July 1, 2023", 81_797, 7_442),
    write_report("Amazon.com, Inc.", "2023 Q3", "September 30, 2023", 143_083, 21_203),
]


@pytest.mark.parametrize(
    ("question", "titles"),
    [
        ("What were Apple's net sales in Q2 2023?", ["2023 Q2 Appl"]),
        ("What were Apple's net sales in the latest quarter?", ["2023 Q3 Appl"]),
        ("What were Amazon's net sales in the most recent 10-Q?", ["2023 Q3 Amaz"]),
        ("By how much did Apple's net sales change from Q2 to Q3 2023?", ["2023 Q2 Appl", "2023 Q3 Appl"]),
        ("What were Apple's net sales in Q3 2022?", ["2023 Q3 Appl"]),  # which tells them beside its own
        ("What were Apple's net sales in Q1 2019?", []),
        ("How have Apple's net sales changed?", ["2023 Q2 Appl", "2023 Q3 Appl"]),
        ("What were net sales in the quarter ended April 1, 2023?", ["2023 Q2 Appl"]),
    ],
)
def test_a_report_is_chosen_by_company_and_quarter(question: str, titles: list[str]) -> None:
    assert [one.title for one in choose_sources(question, REPORTS)] == titles


def test_a_row_is_followed_over_the_quarters() -> None:
    found = answer_from_sources("How have Apple's total net sales changed over time?", REPORTS)
    assert found.series is not None
    assert [point.value for point in found.series.points] == [94_836, 81_797]


def test_the_quarter_is_taken_and_not_the_months_before_it() -> None:
    found = answer_from_sources("How much did Amazon spend on R&D in Q3 2023?", REPORTS)
    assert found.series is not None
    assert [(point.period, point.value) for point in found.series.points] == [
        ("Three Months Ended September 30, 2023", 21_203)
    ]


def test_without_reports_nothing_is_found() -> None:
    found = answer_from_sources("What were net sales?", [])
    assert (found.answer, found.series, found.sources) == (None, None, ())


def write_rows(*rows: tuple[str, int]) -> Source:
    text = "\n".join(
        f"{label} (in millions) — Three Months Ended July 1, 2023: {value:,}; Table: {table}; Company: Acme Inc."
        for table, (label, value) in enumerate(rows)
    )
    return Source.make("2023 Q3", "Acme Inc.", read_tables(text))


def ask_rows(question: str, *rows: tuple[str, int]) -> list[str]:
    return [one.label for one in answer_from_sources(question, [write_rows(*rows)]).rows]


def test_rows_that_fit_about_as_well_are_told_together() -> None:
    rows = [("Operating expenses: Services", 310), ("Net sales: Services", 720), ("Income taxes", 80)]
    assert set(ask_rows("How much did Acme's services make?", *rows)) == {
        "operating expenses: services",
        "net sales: services",
    }


def test_no_more_than_three_rows_are_told() -> None:
    rows = [(f"Services {place}", number) for number, place in enumerate(["north", "south", "east", "west"], 70)]
    assert len(ask_rows("How much did Acme's services make?", *rows)) == 3


def test_the_same_figure_of_another_table_is_no_second_row() -> None:
    rows = [("Research and development", 7_442), ("Research and development expense", -7_442)]
    assert len(ask_rows("How much did Acme spend on research and development?", *rows)) == 1


def test_a_row_is_less_sure_beside_one_like_it_and_where_its_words_are_not_asked_for() -> None:
    asked, source = "What were Acme's inventories?", write_rows(("Inventories", 310), ("Income taxes", 80))
    alone = answer_from_sources(asked, [source]).rows[0].confidence
    beside = answer_from_sources(asked, [write_rows(("Inventories", 310), ("Inventories sold", 80))]).rows[0].confidence
    strange = answer_from_sources("Which risks did Acme name?", [source]).rows[0].confidence
    assert alone > beside > strange
    assert alone >= SURE > LEAST_TOLD > strange
