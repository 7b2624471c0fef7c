"""Questions over tables asked of a whole run, as a user asks them: over a folder, without a language model.

Quarterly reports stand in their folder as PDF, beside texts on other things; of each question whose answer gives an
amount that a table has we ask for the first it gives. It is found when the answer line or the first thing that is told
from tables has it, and an answer line is right when it has it. Of annual reports each table stands as a page with its
paragraphs in a folder of its own, with the page of the next table beside it.

Questions with an even number and tables with an even place were looked at, the others not.
"""

import asyncio
import re
import tempfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from html import escape
from pathlib import Path
from shutil import copy
from statistics import fmean
from typing import NamedTuple

from benchmarks.evaluation.filings import Headline, find_headline, has_cell, is_same_amount, read_sources
from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from benchmarks.evaluation.reports import open_offline_engine
from benchmarks.evaluation.tables import find_place
from benchmarks.table_questions import AskedQuestion, AskedTable, are_parts_right, is_close, is_value_right, load_tables
from openassay.engine.engine import Engine
from openassay.export import Report
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.reasoning.rules.tables.cells import SCALES, parse_cell

EVERY, QUICK_EVERY = 1, 6  # of the questions on quarterly reports
TABLES, QUICK = 12, 2  # of annual reports
UNRELATED = {
    "museum.txt": "The museum of waterworks opened in spring. Visitors walk through the old pumping hall on Sundays.",
    "garden.txt": "The quarter by the river has 3,120 gardens. Revenue from their fair went to the school in 2023.",
    "notes.md": "# Notes on a third quarter\n\nThe third quarter of the town was built in 1923 by an apple grower.\n",
}
FOUND, PRECISION, ANSWERED = "first amount told", "answer lines right", "questions with an answer line"
ARITHMETIC, ALL = "calculations right", "all right"
_FIGURE = re.compile(r"[-−(]*[$€£]?\(?\d[\d,]*(?:\.\d+)?\)?(?:\s?%)?(?:\s(?:thousand|million|billion))?")


class ToldFigure(NamedTuple):
    value: float
    scale: str


class RunScore(NamedTuple):
    is_found: bool
    has_line: bool
    is_line_right: bool
    is_calculation: bool = False
    is_in_table: bool = True


def read_figures(text: str) -> list[ToldFigure]:
    """The amounts of a text, with their scales."""
    found = list[ToldFigure]()
    for match in _FIGURE.finditer(text):
        figure, _, scale = match[0].partition(" ")
        value = parse_cell(figure.strip())
        if value is not None:
            found.append(ToldFigure(value.number, "percent" if value.is_percent else scale))
    return found


async def ask(engine: Engine, question: str, docs: Path) -> Report | None:
    run = await engine.start(question, ResearchOptions(docs=(str(docs),), depth=Depth.QUICK))
    return (await engine.wait(run.id)).report


def list_told(report: Report) -> Iterator[str]:
    """The answer lines, what is told of the cells of tables, and the first statement."""
    yield from (answer.text for answer in report.answers)
    stated = [one for section in report.sections for one in section.sentences if one.claims]
    yield from (one.cell.text for one in stated if one.cell)
    yield from (one.text.rpartition(": ")[2] or one.text for one in stated[:2])


def has_amount(wanted: Headline, texts: Sequence[str]) -> bool:
    return any(_is_same(wanted, one) for text in texts for one in read_figures(text))


def _is_same(wanted: Headline, told: ToldFigure) -> bool:
    """An amount is wanted in full, and told with its scale or as its table has it."""
    if "percent" in (wanted.scale, told.scale) or told.scale not in ("thousand", "million", "billion"):
        return is_same_amount(wanted, told.value, told.scale)
    return is_close(wanted.number, abs(told.value) * SCALES[told.scale])


async def score_reports(data: Path, part: int, every: int = EVERY) -> list[RunScore]:
    """Over all reports and a few other texts in one folder; questions of even or odd number that give an amount."""
    sources, scores = read_sources(data), list[RunScore]()
    with tempfile.TemporaryDirectory() as home:
        docs = Path(home) / "docs"
        docs.mkdir()
        for file in (data / "sec-10q/docs").glob("*.pdf"):
            copy(file, docs)
        for name, text in UNRELATED.items():
            (docs / name).write_text(text, encoding="utf-8")
        async with open_offline_engine(Path(home) / "data") as engine:
            for asked in load_rows(data / "sec-10q/questions.jsonl")[part :: 2 * every]:
                wanted = find_headline(asked["Answer"])
                if wanted is None:
                    continue
                report = await ask(engine, asked["Question"], docs)
                lines = [answer.text for answer in report.answers] if report else []
                meant = [one for one in sources if fnmatch(one.title, asked["Source Docs"].strip())]
                scores.append(
                    RunScore(
                        is_found=report is not None and has_amount(wanted, list(list_told(report))),
                        has_line=bool(lines),
                        is_line_right=has_amount(wanted, lines),
                        is_in_table=has_cell(wanted, meant),
                    )
                )
    return scores


def average_reports(scores: Sequence[RunScore]) -> dict[str, float]:
    lines = [one for one in scores if one.has_line]
    in_table = [one for one in scores if one.is_in_table]
    return {
        FOUND: fmean(one.is_found for one in in_table) if in_table else 0.0,
        PRECISION: fmean(one.is_line_right for one in lines) if lines else 1.0,
        ANSWERED: len(lines) / len(scores) if scores else 0.0,
    }


# Tables of annual reports --------------------------------------------------------------------------------------


def write_page(table: AskedTable) -> str:
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in table.cells if any(line)
    )
    told, at = [f"<p>{escape(text)}</p>" for text in table.paragraphs], find_place(table.paragraphs)
    body = f"{''.join(told[:at])}<table>{rows}</table>{''.join(told[at:])}"
    return f"<html><head><title>Annual report</title></head><body><article>{body}</article></body></html>"


def is_answer_right(asked: AskedQuestion, lines: Sequence[str]) -> bool:
    """Whether the answer lines say what is wanted, with its scale."""
    if asked.kind not in ("arithmetic", "count"):
        parts = [line.removesuffix(f" {asked.scale}").strip() for line in lines]
        return are_parts_right(asked, parts, asked.scale)
    figures = read_figures(lines[0]) if len(lines) == 1 else []
    if len(figures) != 1:
        return False
    value, scale = figures[0]
    if scale == asked.scale:
        return is_value_right(asked.answer[0], value)
    wanted = float(asked.answer[0]) * SCALES[asked.scale]
    return bool(wanted) and is_close(wanted, value * SCALES[scale])


async def score_tables(tables: Sequence[AskedTable], strangers: Sequence[AskedTable]) -> list[RunScore]:
    scores = list[RunScore]()
    with tempfile.TemporaryDirectory() as home:
        async with open_offline_engine(Path(home) / "data") as engine:
            for number, (table, other) in enumerate(zip(tables, strangers, strict=True)):
                docs = Path(home) / str(number)
                docs.mkdir()
                for name, page in (("report", table), ("other", other)):
                    (docs / f"{name}.html").write_text(write_page(page), encoding="utf-8")
                for asked in table.questions:
                    report = await ask(engine, asked.text, docs)
                    lines = [answer.text for answer in report.answers] if report else []
                    right = is_answer_right(asked, lines)
                    scores.append(RunScore(right, bool(lines), right, asked.kind == "arithmetic"))
    return scores


def average_tables(scores: Sequence[RunScore]) -> dict[str, float]:
    lines = [one for one in scores if one.has_line]
    return {
        ARITHMETIC: fmean(one.is_found for one in scores if one.is_calculation),
        ALL: fmean(one.is_found for one in scores),
        PRECISION: fmean(one.is_line_right for one in lines) if lines else 1.0,
        ANSWERED: len(lines) / len(scores),
    }


def measure_reports(data: Path, quick: bool) -> EvalValues:
    every = QUICK_EVERY if quick else EVERY
    unseen, seen = (average_reports(asyncio.run(score_reports(data, part, every))) for part in (1, 0))
    return {name: EvalValue(unseen[name], {"even questions, looked at": seen[name]}) for name in unseen}


def measure_tables(data: Path, quick: bool) -> EvalValues:
    tables, most = load_tables(data / "tatqa/dev.json"), QUICK if quick else TABLES
    halves = []
    for part in (1, 0):
        half = tables[part::2]
        chosen = list(range(0, len(half), len(half) // most))[:most]
        own, others = [half[at] for at in chosen], [half[at - 1] for at in chosen]
        halves.append(average_tables(asyncio.run(score_tables(own, others))))
    unseen, seen = halves
    return {name: EvalValue(unseen[name], {"half looked at": seen[name]}) for name in unseen}


MEASURES = {
    "filing-runs": EvalMeasure(
        name="filing-runs",
        about="The first amount of an answer from quarterly reports, asked of a run over their folder.",
        needs=("sec-10q",),
        licence="MIT; filings are public",
        whole="the odd ones of 116 questions whose answers give an amount, over 12 reports among other texts",
        quick="a sixth of these",
        figures=(
            Figure(FOUND, floor=0.15, quick=0.0),
            Figure(PRECISION, floor=0.2, quick=0.0),
            Figure(ANSWERED, floor=0.0, quick=0.0),
        ),
        run=measure_reports,
        notes="An answer line is right when it has the first amount of the given answer; where that tells several, "
        "another of them counts as wrong.",
    ),
    "table-runs": EvalMeasure(
        name="table-runs",
        about="Questions over a table and its paragraphs, asked of a run over a folder with them.",
        needs=("tatqa",),
        licence="CC BY 4.0",
        whole=f"{TABLES} tables of annual reports",
        quick=f"{QUICK} tables of annual reports",
        figures=(
            Figure(ARITHMETIC, floor=0.4, quick=0.2),
            Figure(ALL, floor=0.25, quick=0.1),
            Figure(PRECISION, floor=0.55, quick=0.4),
            Figure(ANSWERED, floor=0.3, quick=0.1),
        ),
        run=measure_tables,
    ),
}
