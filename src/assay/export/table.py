"""A table as text: for spreadsheets, and for people."""

import csv
import io
import re

from assay.model.artifact import Cell, Table

# What a spreadsheet takes for a formula, also in wide characters; a plain number is none.
_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"[-+]?\d[\d.,]*%?")


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
