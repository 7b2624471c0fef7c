"""Questions over tables of annual reports, answered by calculation and without a language model.

Each question is asked over its own table and the paragraphs around it. A figure is right when it is within half a per
cent of the wanted one, or equal when it is rounded as that, on the same scale; words when they are the same words, of a
list all of them.

Tables stand in halves by their place in the file. Even ones were looked at, and weights were learned from them and from
276 tables of the training part of the set; the figures are of the odd ones, which nobody looked at.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure
from benchmarks.evaluation.tables import read_page
from benchmarks.table_questions import AskedQuestion, AskedTable, are_parts_right, is_close, is_value_right, load_tables
from openassay.reasoning.rules.tables import SURE, Table, TableAnswer, answer_from_tables, read_tables
from openassay.reasoning.rules.tables.cells import SCALES

QUICK = 20  # tables of a half
ARITHMETIC, ALL, PRECISION, ANSWERED = (
    "calculations right",
    "all right",
    "right of what is answered with confidence",
    "answered with confidence",
)
STRANGE = "questions of another table answered with confidence"


class Scored(NamedTuple):
    asked: AskedQuestion
    given: TableAnswer | None
    is_right: bool

    @property
    def is_sure(self) -> bool:
        return self.given is not None and self.given.confidence >= SURE


def is_answer_right(asked: AskedQuestion, given: TableAnswer | None) -> bool:
    """Whether an answer is the wanted one, with its scale."""
    if given is None:
        return False
    if asked.kind not in ("arithmetic", "count"):
        return are_parts_right(asked, given.parts, given.scale)
    if given.value is None:
        return False
    if given.scale == asked.scale:
        return is_value_right(asked.answer[0], given.value)
    wanted = float(asked.answer[0]) * SCALES[asked.scale]
    return bool(wanted) and is_close(wanted, given.value * SCALES[given.scale])


def ask_table(one: AskedTable, tables: Sequence[Table]) -> Iterator[Scored]:
    for asked in one.questions:
        given = answer_from_tables(asked.text, tables, one.paragraphs)
        yield Scored(asked, given, is_answer_right(asked, given))


def score_half(half: Sequence[AskedTable], *, is_written: bool = False) -> dict[str, float]:
    """`is_written`: the tables as the reader of pages writes them into text, instead of their cells."""
    scored = [
        one
        for table in half
        for one in ask_table(
            table, read_tables(read_page(table.cells, table.paragraphs)) if is_written else [table.table]
        )
    ]
    sure = [one for one in scored if one.is_sure]
    return {
        ARITHMETIC: fmean(one.is_right for one in scored if one.asked.kind == "arithmetic"),
        ALL: fmean(one.is_right for one in scored),
        PRECISION: fmean(one.is_right for one in sure) if sure else 0.0,
        ANSWERED: len(sure) / len(scored),
    }


def score_strangers(half: Sequence[AskedTable]) -> float:
    """The share of questions that are answered although they were asked of the table before."""
    given = [
        answer_from_tables(asked.text, [table.table], table.paragraphs)
        for table, other in zip(half, [*half[1:], half[0]], strict=True)
        for asked in other.questions[:2]
    ]
    return fmean(one is not None and one.confidence >= SURE for one in given)


def measure_tatqa(data: Path, quick: bool) -> EvalValues:
    tables = load_tables(data / "tatqa/dev.json")
    most = QUICK if quick else None
    unseen, seen = tables[1::2][:most], tables[::2][:most]
    found, known, written = score_half(unseen), score_half(seen), score_half(unseen, is_written=True)
    values = {
        name: EvalValue(found[name], {"half looked at": known[name], "as the reader writes them": written[name]})
        for name in found
    }
    strange = EvalValue(score_strangers(unseen), {"half looked at": score_strangers(seen)})
    return values | {STRANGE: strange}


MEASURES = {
    "tatqa": EvalMeasure(
        name="tatqa",
        about="Questions over a table and the paragraphs around it, answered by calculation.",
        needs=("tatqa",),
        licence="CC BY 4.0",
        whole="139 tables of annual reports",
        quick=f"{QUICK} tables of annual reports",
        figures=(
            Figure(ARITHMETIC, floor=0.62, quick=0.5),
            Figure(ALL, floor=0.5, quick=0.4),
            Figure(PRECISION, floor=0.80, quick=0.65),
            Figure(ANSWERED, floor=0.40, quick=0.25),
            Figure(STRANGE, floor=0.04, quick=0.1, less_is_better=True),
        ),
        run=measure_tatqa,
        notes="Weights were learned from the half looked at, so its figures flatter. A fifth of the questions ask for "
        "a stretch of a paragraph, which is not what this answers. Published, on all questions of another part: TagOp "
        "58.0 F1, people 90.8.",
    )
}
