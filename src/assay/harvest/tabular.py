"""CSV files: a line that names the columns, then one line per row that stands alone."""

import csv
import io
from collections.abc import Iterator
from itertools import islice

from assay.errors import ReadError
from assay.harvest import rows
from assay.harvest.extracted import Extracted
from assay.harvest.text import decode
from assay.text.clean import clean

_ROWS = 50_000
_DELIMITERS = ",;\t|"


def extract(data: bytes) -> Extracted:
    text = decode(data)
    try:
        return _extract(text)
    except csv.Error as error:
        raise ReadError(f"not a readable CSV file: {error}", help="Save it again as CSV with quoted fields.") from error


def _extract(text: str) -> Extracted:
    table = _records(text)
    header = next(table, None)
    if header is None:
        return Extracted("")
    body = list(islice(table, _ROWS))
    notes = (f"only the first {_ROWS:,} rows were read",) if next(table, None) is not None else ()
    if not rows.is_header(header):
        body.insert(0, header)
        header = [f"Column {number}" for number in range(1, len(header) + 1)]
    lines = ["Columns: " + ", ".join(name for name in header if name), "", *rows.sentences(header, body)]
    return Extracted(clean("\n".join(lines)), notes=notes)


def _records(text: str) -> Iterator[list[str]]:
    for record in csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text[:65_536])):
        cells = [" ".join(cell.split()) for cell in record]
        if any(cells):
            yield cells


def _delimiter(sample: str) -> str:
    try:
        return csv.Sniffer().sniff(sample, delimiters=_DELIMITERS).delimiter
    except csv.Error:  # one column, or too few rows to tell
        first = sample.split("\n", 1)[0]
        return max(_DELIMITERS, key=first.count)
