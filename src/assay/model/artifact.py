"""What came of a thread and a person may edit and keep: texts and tables."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, FiniteFloat, model_validator

from assay.model.record import Record

Kind = Literal["markdown", "table"]


def _whole(text: str) -> str:
    if any("\ud800" <= mark <= "\udfff" for mark in text):
        raise ValueError("half a character is no text")
    return text


Writing = Annotated[str, AfterValidator(_whole)]
Cell = Writing | bool | int | FiniteFloat | None
MOST_COLUMNS, MOST_ROWS = 200, 20_000


class Column(Record):
    key: Writing = Field(max_length=80)
    title: Writing = Field(max_length=200)


class Table(Record):
    columns: tuple[Column, ...] = Field(max_length=MOST_COLUMNS)
    rows: tuple[tuple[Cell, ...], ...] = Field(default=(), max_length=MOST_ROWS)

    @model_validator(mode="after")
    def _is_even(self) -> "Table":
        if len({column.key for column in self.columns}) < len(self.columns):
            raise ValueError("two columns have the same key")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("every row has a cell for each column")
        return self


class Artifact(Record):
    """One version of it. `content` is Markdown, or a table as JSON; `author` is nobody where Assay has made it."""

    thread: str
    name: str
    version: int
    kind: Kind
    title: str
    content: str
    created: datetime
    author: str = ""
