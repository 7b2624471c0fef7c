"""Statements of cells and calculations over them: what is borne out, and what is refused."""

from collections.abc import Sequence

import pytest

from openassay.models.evidence import Claim, Passage, QuoteSpan, Verdict
from openassay.models.report import DerivedFigure
from openassay.nodes.report import select_answers
from openassay.reasoning.base import DraftAnswer, Quote
from openassay.reasoning.rules.table_answers import (
    MOST_BESIDE,
    BoundCell,
    FoundAnswer,
    add_row_quotes,
    asks_for_row,
    is_cell_borne_out,
    tell_cells,
)
from openassay.reasoning.rules.tables import Operand, read_cell
from openassay.text.answer_reader import AnswerReader, PassageReading, PassageText
from openassay.verification.synthesis import check_calculation

ROW = (
    "Net sales: Pumps (in millions) — Three Months Ended July 1, 2023: 21,213; Three Months Ended June 25, 2022: "
    "19,604; Margin: 12.5%; Table: Statements of Operations; Company: Acme Inc."
)
THIS, LAST = "Three Months Ended July 1, 2023: 21,213", "Three Months Ended June 25, 2022: 19,604"
TOLD = "Net sales: Pumps of Acme Inc., Three Months Ended July 1, 2023: 21,213 million."


def make_claim(name: str, cell: str, verdict: Verdict = Verdict.SUPPORTED) -> Claim:
    span = QuoteSpan(document="a" * 64, start=0, end=len(ROW), quote=ROW)
    (text,) = tell_cells(ROW, [cell])
    return Claim(id=name, text=text, questions=("Q1",), spans=(span,), verdict=verdict)


CLAIMS = [make_claim("C1", THIS), make_claim("C2", LAST)]
BY_ID = {claim.id: claim for claim in CLAIMS}
CHANGE = DerivedFigure(value=8.21, operation="percent_change", operands=(19604.0, 21213.0))


def test_each_cell_is_stated_with_its_head_and_scale() -> None:
    assert tell_cells(ROW, [THIS, "Margin: 12.5%"]) == [TOLD, "Net sales: Pumps of Acme Inc., Margin: 12.5%."]


@pytest.mark.parametrize(
    ("statement", "is_borne_out"),
    [
        (TOLD, True),
        (TOLD.replace("21,213", "19,604"), False),  # of the column beside it
        (TOLD.replace("21,213", "21,231"), False),
        (TOLD.replace("million", "thousand"), False),
        (TOLD.replace("Pumps", "Valves"), None),  # of no row here: for the verifier to say
        ("Acme sold more pumps.", None),
    ],
)
def test_a_figure_is_compared_with_its_row(statement: str, is_borne_out: bool | None) -> None:
    assert is_cell_borne_out(statement, f"A line before.\n{ROW}\nA line after.") is is_borne_out


def test_a_calculation_that_comes_about_may_be_told() -> None:
    text = "Net sales: Pumps of Acme Inc. changed by 8.21% between June 25, 2022 and July 1, 2023."
    assert not list(check_calculation(text, CLAIMS, [CHANGE]))


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("Net sales: Pumps changed by 9.4%.", CHANGE.model_copy(update={"value": 9.4})),  # it comes to 8.21
        ("Net sales: Pumps changed by 9.4%.", CHANGE),  # another figure than the one that was computed
        ("Pumps changed by 8.21% thanks to brilliant managers.", CHANGE),  # more than a calculation
        (
            "Net sales: Pumps changed by 8.21%.",
            CHANGE.model_copy(update={"operands": (1960.4, 2121.3)}),  # in no row
        ),
    ],
)
def test_what_does_not_come_about_is_refused(text: str, figure: DerivedFigure) -> None:
    assert list(check_calculation(text, CLAIMS, [figure]))


@pytest.mark.parametrize(
    ("text", "derived", "is_kept"),
    [
        ("21,213 million", (), True),
        ("8.21%", (CHANGE,), True),
        ("20,408.5 million", (DerivedFigure(value=20408.5, operation="average", operands=(21213.0, 19604.0)),), True),
        ("8.21%", (), False),
        ("9.4%", (CHANGE,), False),
        ("9.4%", (CHANGE.model_copy(update={"value": 9.4}),), False),
        ("8.21% of all pumps on earth", (CHANGE,), False),
    ],
)
def test_an_answer_line_has_a_figure_of_its_claims_or_one_that_comes_about(
    text: str, derived: tuple[DerivedFigure, ...], is_kept: bool
) -> None:
    answer = DraftAnswer(text=text, claims=("C1", "C2"), derived=derived)
    assert bool(select_answers([answer], BY_ID)) is is_kept


def test_an_answer_rests_on_supported_claims() -> None:
    doubtful = {**BY_ID, "C2": make_claim("C2", LAST, Verdict.PARTLY)}
    answer = DraftAnswer(text="8.21%", claims=("C1", "C2"), derived=(CHANGE,))
    assert not select_answers([answer], doubtful)


# Rows of reports -----------------------------------------------------------------------------------------------


class ReaderOf(AnswerReader):
    """Takes every figure for the answer by one margin, and remembers what it was asked."""

    def __init__(self, margin: float) -> None:
        super().__init__()
        self.margin, self.texts = margin, list[str]()

    def read(self, question: str, passages: Sequence[PassageText]) -> list[PassageReading]:
        self.texts += [one.text for one in passages]
        margin = self.margin

        class Reading(PassageReading):
            def weigh(self, start: int, end: int) -> float:
                return margin

        return [Reading([]) for _ in passages]


def make_row(confidence: float, *, is_series: bool = False) -> tuple[FoundAnswer, list[BoundCell]]:
    cells = (THIS, LAST) if is_series else (THIS,)
    figures = [one.rpartition(": ")[2] for one in cells]
    operands = [Operand("", "Pumps", "", one, 0.0, ROW.find(one), "a" * 64) for one in figures]
    bound = [
        BoundCell(operand, written, make_claim(f"C{at}", cell))
        for at, (operand, cell) in enumerate(zip(operands, cells, strict=True))
        if (written := read_cell(ROW, ROW.find(cell) + len(cell) - 1))
    ]
    found = FoundAnswer("list", tuple(operands), None, "", (), confidence, is_row=True, is_series=is_series)
    return found, bound


@pytest.mark.parametrize(
    ("confidence", "margin", "is_series", "is_told"),
    [
        (0.9, 2.0, False, True),
        (0.9, -2.0, False, False),  # the question asks for something else than a figure
        (0.4, 2.0, False, False),  # it may be the wrong row
        (0.9, -2.0, True, True),
        (0.7, 2.0, True, False),
    ],
)
def test_a_row_is_the_answer_where_it_is_sure_and_a_figure_is_asked_for(
    confidence: float, margin: float, is_series: bool, is_told: bool
) -> None:
    found, bound = make_row(confidence, is_series=is_series)
    assert asks_for_row("What did Acme earn with pumps?", found, bound, ReaderOf(margin)) is is_told


def test_the_reader_is_not_asked_which_quarter_is_meant() -> None:
    reader = ReaderOf(2.0)
    asks_for_row("What did Acme earn with pumps?", *make_row(0.9), reader)
    assert reader.texts == ["Net sales: Pumps of Acme Inc. in the quarter: 21,213 million."]


@pytest.mark.parametrize(("confidence", "count"), [(0.4, 5), (0.9, 1 + MOST_BESIDE)])
def test_prose_stays_beside_a_row_that_is_less_sure(confidence: float, count: int) -> None:
    found, _ = make_row(confidence)
    passages = [Passage(document="a" * 64, start=0, end=10, text="Prose.") for _ in range(4)]
    quotes = [Quote(passage=at, text=f"Prose {at}.", relevance=0.5) for at in range(len(passages))]
    assert len(add_row_quotes(found, {"a" * 64: ROW}, quotes, passages)) == count
