"""Whether a figure of a table can be found, and read, by its row alone.

A row is quoted, indexed and judged as one line. Of the figures that answer a question we ask: does the line that holds
the figure name what it is (the row's label), when (the year over its column) and in what unit; and is the line among
the first five passages that are found for the question? Half of each set, by a hash of its ids, was looked at while
the reader of tables was written; the figures are of the other half.
"""

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatch
from hashlib import sha256
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from openassay.fetch import html
from openassay.fetch.documents import LocalFileReader
from openassay.models.evidence import Document
from openassay.protocols import FileStamp
from openassay.search.ranking import rank
from openassay.storage.index_sqlite import SqliteIndex
from openassay.text.embeddings import EmbeddingCache, MiniLM
from openassay.text.sentences import is_table_row, split_passages

FIRST = 5  # passages that are looked at
QUICK, SEARCHED = 20, 50  # tables of a quick run, and those that are searched: the others take minutes to encode
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
CELL = re.compile(r"[\s$€£(]*(\d[\d,]*(?:\.\d+)?)[\s)%]*")
UNITS = {
    "thousand": re.compile(r"thousand|['’]?000s?\b|\bk\b", re.I),
    "million": re.compile(r"million|\bmn?\b|[$€£]m\b|\bmm\b", re.I),
    "billion": re.compile(r"billion|\bbn\b", re.I),
    "percent": re.compile(r"%|percent|per cent", re.I),
}
SCALE_WORD = re.compile(r"\b(?:thousand|million|billion)s?\b|%|per share|\bshares\b|[$€£]\d+\.\d\d\b", re.I)
FILERS = {"AAPL": "apple", "AMZN": "amazon", "NVDA": "nvidia"}


class GoldRow(NamedTuple):
    """A figure that answers a question: the row that holds it, and what has to be said of it."""

    figure: str
    label: str  # empty: whatever stands there
    year: str  # empty: the table gives none
    unit: str  # a name in UNITS; "any" for whichever; empty where none is given


class TableQuestion(NamedTuple):
    text: str
    documents: tuple[str, ...]  # addresses
    golds: tuple[tuple[GoldRow, ...], ...]  # a figure each, with the rows that it may be taken from


class TableSet(NamedTuple):
    documents: Mapping[str, Document]  # by address
    questions: Sequence[TableQuestion]


def is_for_development(name: str) -> bool:
    return int(sha256(name.encode()).hexdigest(), 16) % 2 == 0


# Tables of annual reports, each with its paragraphs as a page ----------------------------------------------


def load_annual_reports(data: Path, development: bool, *, raw: bool = False, most: int | None = None) -> TableSet:
    """`raw`: rows as they stand in the file instead of read from a page, to compare with."""
    items = json.loads((data / "tatqa/dev.json").read_text(encoding="utf-8"))
    chosen = [item for item in items if is_for_development(item["table"]["uid"]) == development][:most]
    documents, questions = dict[str, Document](), list[TableQuestion]()
    for item in chosen:
        name, grid = item["table"]["uid"], item["table"]["table"]
        paragraphs = [one["text"] for one in sorted(item["paragraphs"], key=lambda one: one["order"])]
        documents[name] = make_document(name, write_raw(grid, paragraphs) if raw else read_page(grid, paragraphs))
        for asked in item["questions"]:
            golds = find_gold_rows(grid, asked) if asked["answer_from"] != "text" else ()
            if golds:
                questions.append(TableQuestion(asked["question"], (name,), golds))
    return TableSet(documents, questions)


def read_page(grid: Sequence[Sequence[str]], paragraphs: Sequence[str]) -> str:
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in grid)
    told, at = [f"<p>{escape(text)}</p>" for text in paragraphs], find_place(paragraphs)
    body = f"{''.join(told[:at])}<table>{rows}</table>{''.join(told[at:])}"
    return html.extract(
        f"<html><head><title>Report</title></head><body><article>{body}</article></body></html>", ""
    ).text


def write_raw(grid: Sequence[Sequence[str]], paragraphs: Sequence[str]) -> str:
    at = find_place(paragraphs)
    return "\n".join([*paragraphs[:at], *(" | ".join(row) for row in grid), *paragraphs[at:]])


def find_place(paragraphs: Sequence[str]) -> int:
    """After which paragraph the table stands, which the set does not say: the first that ends in a colon or is a note
    in brackets, else the first."""
    leads = (at for at, text in enumerate(paragraphs, 1) if re.search(r":\s*$|^\([^()]*\)$", text.strip()))
    return next(leads, 1)


def make_document(name: str, text: str) -> Document:
    digest = sha256(text.encode()).hexdigest()
    return Document(hash=digest, text=text or "-", url=name, title="Report", fetched=datetime.now(UTC))


def find_gold_rows(grid: Sequence[Sequence[str]], asked: Mapping[str, Any]) -> tuple[tuple[GoldRow, ...], ...]:
    """The cells whose figures an answer gives, or is calculated from."""
    given = asked["answer"] if isinstance(asked["answer"], list) else []
    stated = asked["derivation"] if asked["answer_type"] == "arithmetic" else " ".join(map(str, given))
    worked_out = asked["answer_type"] == "arithmetic" and asked["scale"] == "percent"
    unit = "" if worked_out else asked["scale"]
    body = next((number for number, row in enumerate(grid) if _has_figures(row)), len(grid))
    golds = []
    for figure in dict.fromkeys(NUMBER.findall(stated)):
        rows = tuple(
            GoldRow(figure, row[0], _find_year(grid[:body], column), unit)
            for row in grid[body:]
            for column, cell in enumerate(row)
            if column and row[0].strip() and (found := CELL.fullmatch(cell)) and _plain(found[1]) == _plain(figure)
        )
        golds += [rows] if rows else []
    return tuple(golds)


def _plain(figure: str) -> str:
    return figure.replace(",", "")


def _has_figures(row: Sequence[str]) -> bool:
    return any((found := CELL.fullmatch(cell)) and not YEAR.fullmatch(found[1]) for cell in row[1:])


def _find_year(heads: Sequence[Sequence[str]], column: int) -> str:
    """The year that stands nearest over a column, in whichever line of the heads."""
    for line in reversed(heads):
        dated = [(abs(at - column), at, years[-1]) for at, cell in enumerate(line) if (years := YEAR.findall(cell))]
        if dated:
            return str(min(dated)[2])
    return ""


# Quarterly reports, as PDF ----------------------------------------------------------------------------------


def read_quarterly_reports(data: Path) -> dict[str, Document]:
    reader = LocalFileReader()
    return {file.stem: reader.read(file) for file in sorted((data / "sec-10q/docs").glob("*.pdf"))}


def load_quarterly_reports(data: Path, documents: Mapping[str, Document], development: bool) -> TableSet:
    questions = []
    for asked in load_rows(data / "sec-10q/questions.jsonl"):
        if is_for_development(asked["Question"]) != development:
            continue
        pattern = asked["Source Docs"].strip("*")
        about = tuple(name for name in documents if fnmatch(name, f"*{pattern}*"))
        said = re.sub(r"\(?SOURCE.*", "", asked["Answer"])
        golds = tuple(
            (GoldRow(figure, "", "", "any"),)
            for figure in dict.fromkeys(NUMBER.findall(said))
            if "," in figure and any(find_rows(documents[name].text, figure) for name in about)
        )
        if golds:
            questions.append(TableQuestion(asked["Question"], about, golds))
    return TableSet(documents, questions)


def find_rows(text: str, figure: str) -> list[str]:
    """Lines of tables that hold a figure."""
    whole = re.compile(rf"(?<![\d,.]){re.escape(figure)}(?![\d,]|\.\d)")
    return [line for line in text.split("\n") if whole.search(line) and not is_prose(line)]


def is_prose(line: str) -> bool:
    return line.endswith(".") and not is_table_row(line)


# What is measured -------------------------------------------------------------------------------------------


def holds_row(text: str, gold: GoldRow) -> bool:
    """Whether the figure and its label stand in a text."""
    label = _letters(gold.label)[:24]
    return label in _letters(text) and any(_plain(found) == _plain(gold.figure) for found in NUMBER.findall(text))


def _letters(text: str) -> str:
    return re.sub(r"[\W\d_]+", "", text).casefold()


def names_all(text: str, gold: GoldRow) -> bool:
    when = bool(YEAR.search(text)) if gold.unit == "any" else gold.year in text
    unit = SCALE_WORD if gold.unit == "any" else UNITS.get(gold.unit)
    return when and (unit is None or unit.search(text) is not None)


def measure_rows(tables: TableSet) -> dict[str, float]:
    """The share of figures whose row, and whose passage, say all; and that name their table and their company."""
    rows, passages, titled, filed = list[bool](), list[bool](), list[bool](), list[bool]()
    cut = {name: [one.text for one in split_passages(name, one.text)] for name, one in tables.documents.items()}
    for question in tables.questions:
        for golds in question.golds:
            lines = [
                (name, line, gold)
                for name in question.documents
                for gold in golds
                for line in tables.documents[name].text.split("\n")
                if holds_row(line, gold) and not is_prose(line)
            ]
            texts = [(text, gold) for name in question.documents for gold in golds for text in cut[name]]
            rows.append(any(names_all(line, gold) for _, line, gold in lines))
            passages.append(any(holds_row(text, gold) and names_all(text, gold) for text, gold in texts))
            titled.append(any("Table: " in line for _, line, _ in lines))
            filed.append(any(FILERS.get(name[-4:], "\n") in line.casefold() for name, line, _ in lines))
    return {
        ROWS: fmean(rows),
        PASSAGES: fmean(passages),
        TITLED: fmean(titled),
        SIGNED: fmean(filed),
    }


def measure_retrieval(tables: TableSet) -> float:
    """The share of questions for which the first passages hold one of the rows."""
    found = []
    with tempfile.TemporaryDirectory() as folder, SqliteIndex(Path(folder) / "index.sqlite3") as index:
        with index.batch():
            for name, one in tables.documents.items():
                index.replace(name, FileStamp(1, 1), one, split_passages(one.hash, one.text))
        embedder = EmbeddingCache(MiniLM(), Path(folder) / "vectors.sqlite3")
        for question in tables.questions:
            right = {tables.documents[name].hash for name in question.documents}
            passages = [one.match.passage for one in rank(question.text, [index], embedder, FIRST)]
            texts = [passage.text for passage in passages if passage.document in right]
            golds = [gold for golds in question.golds for gold in golds]
            found.append(any(holds_row(text, gold) for text in texts for gold in golds))
        embedder.close()
    return fmean(found)


ROWS, PASSAGES, FOUND = "rows that name label, period and unit", "passages that do", "right row in the first five"
TITLED, SIGNED = "rows that name their table", "rows that name their company"


def measure_tables(data: Path, quick: bool) -> EvalValues:
    most = QUICK if quick else None
    told, seen = (measure_rows(load_annual_reports(data, half, most=most)) for half in (False, True))
    plain = measure_rows(load_annual_reports(data, False, raw=True, most=most))
    values = {
        name: EvalValue(told[name], {"rows as they stand": plain[name], "half looked at": seen[name]})
        for name in (ROWS, PASSAGES, TITLED)
    }
    if quick:
        return values
    found, beside_found = (
        measure_retrieval(load_annual_reports(data, False, raw=raw, most=SEARCHED)) for raw in (False, True)
    )
    values[FOUND] = EvalValue(found, {"rows as they stand": beside_found})
    documents = read_quarterly_reports(data)
    reports, known = (load_quarterly_reports(data, documents, half) for half in (False, True))
    beside = measure_rows(known)
    for name, value in measure_rows(reports).items():
        values[f"PDF, {name}"] = EvalValue(value, {"half looked at": beside[name]})
    return values


MEASURES = {
    "tables": EvalMeasure(
        name="tables",
        about="Figures of tables that answer a question: whether the row alone says what they are, and is found.",
        needs=("tatqa", "sec-10q"),
        licence="CC BY 4.0; MIT, filings are public",
        whole="140 tables of annual reports and 12 quarterly reports",
        quick=f"{QUICK} tables of annual reports",
        figures=(
            Figure(ROWS, floor=0.87, quick=0.7),
            Figure(PASSAGES, floor=0.9, quick=0.7),
            Figure(TITLED, floor=0.77, quick=0.5),
            Figure(FOUND, floor=0.82),
            Figure(f"PDF, {ROWS}", floor=0.98),
            Figure(f"PDF, {PASSAGES}", floor=0.98),
            Figure(f"PDF, {TITLED}", floor=0.98),
            Figure(f"PDF, {SIGNED}", floor=0.98),
        ),
        run=measure_tables,
        notes="The tables have no company, and where they stand among their paragraphs is our guess. The reader of PDF "
        "was written while looking at these twelve reports, so only the questions are in halves there. "
        "Rows that say all are longer, and fewer go into a passage: more of a small table as it stands is among five.",
    )
}
