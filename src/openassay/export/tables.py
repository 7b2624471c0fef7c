"""Tables of a report, written as CSV for spreadsheets and as Markdown for people."""

import csv
import io
import re
from collections.abc import Iterable

from openassay.models.report import ArtifactTable, Cell, Column, ReportData

# What a spreadsheet takes for a formula, also in wide characters; a plain number is none.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?")


def build_claims_table(report: ReportData) -> ArtifactTable:
    """Build a matrix with a row for each statement and a column for each source."""
    sources = [card.id for card in report.sources]
    rows = []
    for claim in report.claims:
        stances = {span.source: "for" for span in claim.spans} | {span.source: "against" for span in claim.against}
        fields = (claim.id, claim.text, claim.verdict, claim.mark, round(claim.confidence, 2))
        rows.append((*fields, *(stances.get(source, "") for source in sources)))
    fixed = "id: Id, statement: Statement, verdict: Verdict, mark: Mark, confidence: Confidence"
    return build_table(", ".join([fixed, *(f"{source}: {source}" for source in sources)]), rows)


def render_claims_csv(report: ReportData) -> str:
    """Write the statements of a report, with the sources for and against each, as CSV."""
    return as_csv(build_claims_table(report))


def build_table(columns: str, rows: Iterable[tuple[Cell, ...]]) -> ArtifactTable:
    """Build a table whose columns are given as "key: Title, key: Title"."""
    pairs = (column.split(": ") for column in columns.split(", "))
    return ArtifactTable(columns=tuple(Column(key=key, title=title) for key, title in pairs), rows=tuple(rows))


def as_csv(table: ArtifactTable) -> str:
    """Write RFC 4180; a cell that a spreadsheet would calculate is marked as text by an apostrophe."""
    file = io.StringIO()
    for row in _format_rows(table):
        cells = (f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text for text in row)
        csv.writer(file, lineterminator="\r\n").writerow(cells)
    return file.getvalue()


def as_markdown(table: ArtifactTable) -> str:
    """Write a table as GitHub's Markdown has it; nothing in a cell becomes markup."""
    lines = [
        "| " + " | ".join(re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split())) for text in row) + " |"
        for row in _format_rows(table)
    ]
    return "\n".join([lines[0], "|" + "|".join(["---"] * len(table.columns)) + "|", *lines[1:]]) + "\n"


def _format_rows(table: ArtifactTable) -> Iterable[list[str]]:
    """Yield the titles of the columns, then the rows, as text."""
    yield [column.title for column in table.columns]
    words = {None: "", True: "yes", False: "no"}
    for row in table.rows:
        yield [words[cell] if cell is None or isinstance(cell, bool) else str(cell) for cell in row]
