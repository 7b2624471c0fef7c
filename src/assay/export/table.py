"""Tables of a report, and a table as text: for spreadsheets, and for people."""

import csv
import io
import re
from collections.abc import Iterable

from assay.model.artifact import Cell, Column, Table
from assay.model.report import ReportClaim, ReportData

# What a spreadsheet takes for a formula, also in wide characters; a plain number is none.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?")


def claims(report: ReportData) -> Table:
    """A matrix: a row for each statement, a column for each source."""
    cards = [card.id for card in report.sources]
    fixed = "id: Id, statement: Statement, verdict: Verdict, mark: Mark, confidence: Confidence"
    rows = [
        (one.id, one.text, one.verdict, one.mark, round(one.confidence, 2), *(_stand(one, card) for card in cards))
        for one in report.claims
    ]
    return tabled(", ".join([fixed, *(f"{card}: {card}" for card in cards)]), rows)


def _stand(claim: ReportClaim, source: str) -> str:
    if any(span.source == source for span in claim.against):
        return "against"
    return "for" if any(span.source == source for span in claim.spans) else ""


def tabled(columns: str, rows: Iterable[tuple[Cell, ...]]) -> Table:
    named = (column.split(": ") for column in columns.split(", "))
    return Table(columns=tuple(Column(key=key, title=title) for key, title in named), rows=tuple(rows))


def as_csv(table: Table) -> str:
    """RFC 4180; a cell that a spreadsheet would calculate is marked as text by an apostrophe."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\r\n")
    writer.writerow([_defused(column.title) for column in table.columns])
    writer.writerows([_defused(_text(cell)) for cell in row] for row in table.rows)
    return file.getvalue()


def as_markdown(table: Table) -> str:
    lines = [[column.title for column in table.columns], ["---"] * len(table.columns)]
    shown = ["| " + " | ".join(map(_plain, lines[0])) + " |", "|" + "|".join(lines[1]) + "|"]
    shown += ["| " + " | ".join(_plain(_text(cell)) for cell in row) + " |" for row in table.rows]
    return "\n".join(shown) + "\n"


def _text(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return "" if cell is None else str(cell)


def _defused(text: str) -> str:
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", " ".join(text.split()))
