"""What was measured, when, with which versions and on what data: a JSON file that pages are written from."""

import os
import platform
import time
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assay.errors import PathError
from assay.evaluation.data import digest
from assay.evaluation.measure import Measure, Measured, Values

DIGITS = 4
WITH = ("assay", "numpy", "onnxruntime", "trafilatura")  # what figures depend on


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Value(Part):
    value: float
    beside: dict[str, float] = {}


class Taken(Part):
    """One measure, as it was taken."""

    date: date
    quick: bool
    sample: str
    seconds: float
    versions: dict[str, str]
    machine: str
    data: str  # a hash over all files
    figures: dict[str, Value]

    def values(self) -> Values:
        return {name: Measured(one.value, one.beside) for name, one in self.figures.items()}


class Curve(Part):
    """How something grows: for each line its points, in the units that the axes name."""

    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    date: date
    command: str
    log: bool = True  # both axes
    note: str = ""


class Table(Part):
    """What a benchmark found, a row for each thing it looked at."""

    columns: list[str]
    rows: list[list[str]]
    date: date
    command: str
    versions: dict[str, str]
    machine: str
    note: str = ""


class Record(Part):
    measures: dict[str, Taken] = {}
    curves: dict[str, Curve] = Field(default={}, description="by the name of the picture")
    tables: dict[str, Table] = {}


def taken(measure: Measure, data: Path, *, quick: bool) -> Taken:
    """Measure it now."""
    began = time.perf_counter()
    values = measure.run(data, quick)
    seconds = time.perf_counter() - began
    return Taken(
        date=datetime.now(UTC).date(),
        quick=quick,
        sample=measure.sample(quick),
        seconds=round(seconds, 1),
        versions=versions(),
        machine=machine(),
        data=digest(data, measure.needs),
        figures={name: _value(one) for name, one in values.items()},
    )


def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in WITH}}


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _value(one: Measured) -> Value:
    rounded = {name: round(value, DIGITS) for name, value in one.beside.items()}
    return Value(value=round(one.value, DIGITS), beside=rounded)


def read(file: Path) -> Record:
    """A file that is not there is a record of nothing."""
    try:
        return Record.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return Record()
    except OSError as error:
        raise PathError(f"cannot read {file}: {error.strerror}", help="Name another file with --out.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise PathError(
            f"{file} is no record of figures: {where}: {first['msg']}",
            help="Correct it, or name another file with --out.",
        ) from error


def as_json(record: Record) -> str:
    return record.model_dump_json(indent=2) + "\n"
