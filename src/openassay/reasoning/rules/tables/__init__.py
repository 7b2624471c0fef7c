"""Questions over tables, answered exactly: which rows and columns are meant, what is calculated of them, and how sure
that is. No language model is needed, and nothing is looked up."""

from openassay.reasoning.rules.tables.answering import (
    SURE,
    Operand,
    RankedRow,
    Series,
    SeriesPoint,
    TableAnswer,
    answer_from_tables,
    rank_rows,
    read_series,
)
from openassay.reasoning.rules.tables.grid import Cell, Row, Table
from openassay.reasoning.rules.tables.reading import WrittenCell, read_cell, read_cells, read_tables
from openassay.reasoning.rules.tables.sources import (
    Source,
    SourcedAnswer,
    answer_from_sources,
    asks_for_latest,
    choose_sources,
)

__all__ = [
    "SURE", "Cell", "Operand", "RankedRow", "Row", "Series", "SeriesPoint", "Source", "SourcedAnswer", "Table",
    "TableAnswer", "WrittenCell", "answer_from_sources", "answer_from_tables", "asks_for_latest", "choose_sources",
    "rank_rows", "read_cell", "read_cells", "read_series", "read_tables",
]  # fmt: skip
