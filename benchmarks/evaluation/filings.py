"""Questions on quarterly reports, answered from their tables without a language model.

Of each question whose answer gives an amount, we ask for the first that the answer gives, its headline: is it what was
found, or one of the quarters of a row that was found? No more than three rows are told, the likeliest first, and
how often that one alone has it is counted too. A third of these amounts stand in sentences alone; the first
figure is of those that a cell of a table has, the second of all. The reports are read as a person's own documents are,
from PDF; the text is kept in a folder for temporary files, because reading takes a while.

Questions with an even number were looked at, those with an odd one not. The reader of PDF was written while looking at
these reports.
"""

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from benchmarks.evaluation.measure import EvalMeasure, EvalValue, EvalValues, Figure, load_rows
from benchmarks.table_questions import is_close
from openassay.fetch.documents import LocalFileReader
from openassay.reasoning.rules.read import find_synonyms
from openassay.reasoning.rules.tables import SURE, Series, Source, SourcedAnswer, answer_from_sources, read_tables
from openassay.reasoning.rules.tables.cells import SCALES
from openassay.reasoning.rules.tables.features import Floats
from openassay.text.embeddings import EmbeddingCache, MiniLM

Embed = Callable[[Sequence[str]], Floats]
COMPANIES = {"AAPL": "Apple Inc.", "AMZN": "Amazon.com, Inc.", "NVDA": "NVIDIA Corporation"}
HEADLINE, FIRST, ANY, REPORTS = (
    "headline right",
    "headline right, in the first row",
    "headline right, in text or table",
    "asked of the right reports",
)
_AMOUNT = re.compile(
    r"(?P<money>[$€£]\s?)?(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)\s*(?P<scale>%|percent|thousand|million|billion)?"
)


class Headline(NamedTuple):
    number: float
    scale: str  # percent; nothing for an amount, which is in full


class ScoredQuestion(NamedTuple):
    question: str
    headline: Headline
    found: SourcedAnswer
    is_right: bool
    is_first: bool  # whether the first row that is told has it
    is_in_table: bool  # whether a table of the reports that are meant has the amount
    has_reports: bool  # whether it was looked for in the reports that the set names, and in no others


def read_sources(data: Path) -> list[Source]:
    """The reports, each with its tables."""
    sources = []
    for file in sorted((data / "sec-10q/docs").glob("*.pdf")):
        company = next((name for sign, name in COMPANIES.items() if sign in file.stem), "")
        sources.append(Source.make(file.stem, company, read_tables(_read_text(file))))
    return sources


def _read_text(file: Path) -> str:
    kept = Path(tempfile.gettempdir()) / "openassay-filings" / f"{sha256(file.read_bytes()).hexdigest()}.txt"
    if not kept.is_file():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(LocalFileReader().read(file).text, encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def find_headline(answer: str) -> Headline | None:
    """The first amount of an answer: of money, with a scale or in per cent. Years, dates and counts are none."""
    for match in _AMOUNT.finditer(re.sub(r"\(?SOURCE.*", "", answer)):
        scale = (match["scale"] or "").replace("%", "percent")
        if match["money"] or scale:
            number = float(match["number"].replace(",", ""))
            return Headline(number, scale) if scale == "percent" else Headline(number * SCALES[scale], "")
    return None


def is_headline_right(wanted: Headline, found: SourcedAnswer) -> bool:
    """Whether the amount is what was found, on whichever scale the table has."""
    answer = found.answer
    if answer is not None and answer.confidence >= SURE:
        values = [answer.value] if answer.value is not None else [operand.value for operand in answer.operands]
        return any(is_same_amount(wanted, value, answer.scale) for value in values)
    return any(has_point(wanted, row) for row in found.rows)


def has_point(wanted: Headline, row: Series) -> bool:
    return any(is_same_amount(wanted, point.value, "") for point in row.points)


def has_cell(wanted: Headline, sources: Sequence[Source]) -> bool:
    """Whether a cell of some table has an amount."""
    rows = (row for one in sources for table in one.tables for row in table.rows)
    return any(
        is_same_amount(wanted, cell.value.number, "percent" if cell.value.is_percent else "")
        for row in rows
        for cell in row.cells
        if cell is not None and cell.value is not None
    )


def is_same_amount(wanted: Headline, value: float, scale: str) -> bool:
    """Whether an amount is the one that is wanted, on whichever scale a table has."""
    if wanted.scale or scale:
        return (
            (wanted.scale == scale or not scale) and is_close(wanted.number, abs(value) * SCALES.get(scale, 1.0))
        ) or (wanted.scale == scale == "percent" and is_close(wanted.number, abs(value)))
    return any(is_close(wanted.number, abs(value) * factor) for factor in (1, 1e3, 1e6))


def score_questions(data: Path, sources: Sequence[Source], part: int, embed: Embed) -> list[ScoredQuestion]:
    """Those of even or odd number, whose answers give an amount."""
    scored = []
    for asked in load_rows(data / "sec-10q/questions.jsonl")[part::2]:
        headline = find_headline(asked["Answer"])
        if headline is not None:
            found = answer_from_sources(asked["Question"], sources, find_synonyms, embed)
            meant = [one for one in sources if fnmatch(one.title, asked["Source Docs"].strip())]
            has_reports = {one.title for one in found.sources} == {one.title for one in meant}
            right, in_table = is_headline_right(headline, found), has_cell(headline, meant)
            first = right and (found.series is None or has_point(headline, found.series))
            scored.append(ScoredQuestion(asked["Question"], headline, found, right, first, in_table, has_reports))
    return scored


def average_scores(scored: Sequence[ScoredQuestion]) -> dict[str, float]:
    return {
        HEADLINE: fmean(one.is_right for one in scored if one.is_in_table),
        FIRST: fmean(one.is_first for one in scored if one.is_in_table),
        ANY: fmean(one.is_right for one in scored),
        REPORTS: fmean(one.has_reports for one in scored),
    }


def measure_filings(data: Path, quick: bool) -> EvalValues:
    sources = read_sources(data)
    with closing_cache() as embed:
        unseen, seen = (average_scores(score_questions(data, sources, part, embed)) for part in (1, 0))
    return {name: EvalValue(unseen[name], {"even questions, looked at": seen[name]}) for name in unseen}


@contextmanager
def closing_cache() -> Iterator[Embed]:
    """The sentence encoder with a cache of its own, since many rows come again."""
    with tempfile.TemporaryDirectory() as folder:
        cache = EmbeddingCache(MiniLM(), Path(folder) / "vectors.sqlite3")
        try:
            yield cache.embed
        finally:
            cache.close()


MEASURES = {
    "filings": EvalMeasure(
        name="filings",
        about="The first amount of an answer from quarterly reports, found in their tables.",
        needs=("sec-10q",),
        licence="MIT; filings are public",
        whole="the odd ones of 116 questions whose answers give an amount, over 12 reports",
        quick="the same",
        figures=(
            Figure(HEADLINE, floor=0.35, quick=0.35),
            Figure(FIRST, floor=0.2, quick=0.2),
            Figure(ANY, floor=0.28, quick=0.28),
            Figure(REPORTS, floor=0.8, quick=0.8),
        ),
        run=measure_filings,
        notes="Half of the answers that give an amount are in words for the rest; only the first amount is asked for.",
    )
}
