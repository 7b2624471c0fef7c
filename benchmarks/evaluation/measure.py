"""A measure: data of others, the figures taken on them, what to beat, and what must hold."""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openassay.errors import NotFoundError, PathError
from openassay.settings import eval_data

# The data that is measured on: where it lies, what is in it, which it was.

CHECKOUT_DATA = Path(__file__).resolve().parents[3] / "shared" / "data"  # a checkout, where it is run from one


def resolve_data_folder(given: Path | None = None) -> Path:
    """The folder that was named, in whatever way."""
    return given or eval_data() or CHECKOUT_DATA


def require_data_folder(given: Path | None = None) -> Path:
    """It has to be there."""
    found = resolve_data_folder(given)
    if not found.is_dir():
        raise PathError(
            f"no evaluation data at {found}",
            help=(
                "Name the folder with --data DIR or OPENASSAY_EVAL_DATA; "
                "docs/howto/evaluate.md says what belongs in it."
            ),
        )
    return found


def load_rows(file: Path) -> list[dict[str, Any]]:
    """Of a file with a JSON object in each line."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def hash_data(data: Path, folders: Iterable[str]) -> str:
    """Over the names and bytes of all files, so that figures of other data are not compared unawares."""
    sum = hashlib.sha256()
    for name in sorted(folders):
        for file in sorted(path for path in (data / name).rglob("*") if path.is_file()):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            sum.update(f"{file.relative_to(data).as_posix()} {content}\n".encode())
    return sum.hexdigest()


class EvalValue(NamedTuple):
    """A figure of ours; beside it those of others, by name, on the same sample."""

    value: float
    beside: Mapping[str, float] = {}


EvalValues = Mapping[str, EvalValue]


@dataclass(frozen=True)
class Figure:
    """One number. `floor` holds for a whole run and `quick` for a quick one, which leaves the figure out where there is
    none; where less is better they are ceilings. `published` is what to beat, as it came with the data."""

    name: str
    floor: float
    quick: float | None = None
    less_is_better: bool = False
    form: str = ".3f"
    published: Mapping[str, float] = field(default_factory=dict)

    def limit(self, quick: bool) -> float | None:
        return self.quick if quick else self.floor

    def holds(self, value: float, quick: bool) -> bool:
        bound = self.limit(quick)
        return bound is None or (value <= bound if self.less_is_better else value >= bound)

    def format_value(self, value: float) -> str:
        """.983 and not 0.983."""
        text = format(value, self.form)
        return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


@dataclass(frozen=True)
class EvalMeasure:
    """`run(data, quick)` takes the figures; `needs` are the folders under `data` that it reads. `notes` say what has to
    be known to read the figures, such as what was tuned on what."""

    name: str
    about: str
    needs: tuple[str, ...]
    licence: str
    whole: str  # how much is measured, as "181 pages"
    quick: str
    figures: tuple[Figure, ...]
    run: Callable[[Path, bool], EvalValues]
    notes: str = ""
    command: str = ""  # of more detail than the figures

    def missing(self, data: Path) -> list[str]:
        return [name for name in self.needs if not (data / name).is_dir()]

    def sample(self, quick: bool) -> str:
        return self.quick if quick else self.whole

    def list_failures(self, values: EvalValues, quick: bool) -> Sequence[str]:
        """Figures that do not hold, in words; so is one that should have been taken and was not."""
        lines = []
        for figure in self.figures:
            bound = figure.limit(quick)
            if bound is None:
                continue
            word = "above" if figure.less_is_better else "below"
            if figure.name not in values:
                lines.append(f"{self.name}, {figure.name}: not measured")
            elif not figure.holds(value := values[figure.name].value, quick):
                lines.append(
                    f"{self.name}, {figure.name}: {figure.format_value(value)} is {word} {figure.format_value(bound)}"
                )
        return lines


# What was measured, when, with which versions and on what data: a JSON file that pages are written from.

DIGITS = 4
PACKAGES = ("openassay", "numpy", "onnxruntime", "trafilatura")  # what figures depend on


class EvalBaseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class EvalFigure(EvalBaseModel):
    value: float
    beside: dict[str, float] = {}


class MeasureResult(EvalBaseModel):
    """One measure, as it was taken."""

    date: date
    quick: bool
    sample: str
    seconds: float
    versions: dict[str, str]
    machine: str
    data: str  # a hash over all files
    figures: dict[str, EvalFigure]

    def values(self) -> EvalValues:
        return {name: EvalValue(one.value, one.beside) for name, one in self.figures.items()}


class EvalCurve(EvalBaseModel):
    """How something grows: for each line its points, in the units that the axes name."""

    title: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    date: date
    command: str
    log: bool = True  # both axes
    note: str = ""


class EvalTable(EvalBaseModel):
    """What a benchmark found, a row for each thing it looked at."""

    columns: list[str]
    rows: list[list[str]]
    date: date
    command: str
    versions: dict[str, str]
    machine: str
    note: str = ""


class EvalRecord(EvalBaseModel):
    measures: dict[str, MeasureResult] = {}
    curves: dict[str, EvalCurve] = Field(default={}, description="by the name of the picture")
    tables: dict[str, EvalTable] = {}


def run_measure(measure: EvalMeasure, data: Path, *, quick: bool) -> MeasureResult:
    """Measure it now."""
    began = time.perf_counter()
    values = measure.run(data, quick)
    seconds = time.perf_counter() - began
    return MeasureResult(
        date=datetime.now(UTC).date(),
        quick=quick,
        sample=measure.sample(quick),
        seconds=round(seconds, 1),
        versions=package_versions(),
        machine=describe_machine(),
        data=hash_data(data, measure.needs),
        figures={name: _round_value(one) for name, one in values.items()},
    )


def package_versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def describe_machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _round_value(one: EvalValue) -> EvalFigure:
    rounded = {name: round(value, DIGITS) for name, value in one.beside.items()}
    return EvalFigure(value=round(one.value, DIGITS), beside=rounded)


def read_record(file: Path) -> EvalRecord:
    """A file that is not there is a record of nothing."""
    try:
        return EvalRecord.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return EvalRecord()
    except OSError as error:
        raise PathError(f"cannot read {file}: {error.strerror}", help="Name another file with --out.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise PathError(
            f"{file} is no record of figures: {where}: {first['msg']}",
            help="Correct it, or name another file with --out.",
        ) from error


def dump_record(record: EvalRecord) -> str:
    return record.model_dump_json(indent=2) + "\n"


# Every measure by name. The modules load what they measure, so they are imported when they are needed.

# In the order of the table: reading, judging, finding, answering, withstanding.
MEASURE_MODULES = {
    "extraction": "web_pages",
    "duplicates": "duplicates",
    "urls": "web_pages",
    "companies": "companies",
    "wice": "support",
    "fever": "support",
    "news": "news",
    "independence": "statements",
    "statements": "statements",
    "syntheses": "syntheses",
    "evidence": "retrieval",
    "hotpotqa": "retrieval",
    "deepscholar": "retrieval",
    "languages": "languages",
    "related": "recall",
    "ramdocs": "ramdocs",
    "followups": "followups",
    "sec10q": "reports",
    "tables": "tables",
    "tatqa": "tatqa",
    "filings": "filings",
    "filing-runs": "table_runs",
    "table-runs": "table_runs",
    "hotpot-answers": "answers",
    "unanswerable": "answers",
    "news-answers": "answers",
    "nuggets": "reports",
    "injection": "injection",
    "hostile": "hostile",
    "speed": "speed",
}


def load_measure(name: str) -> EvalMeasure:
    """Each module has its measures in `MEASURES`."""
    if name not in MEASURE_MODULES:
        near = get_close_matches(name, MEASURE_MODULES, n=1, cutoff=0.5)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise NotFoundError(f"no measure is called {name!r}", help=f"{meant}--list names them.")
    found: dict[str, EvalMeasure] = import_module(f"benchmarks.evaluation.{MEASURE_MODULES[name]}").MEASURES
    return found[name]


def load_measures() -> list[EvalMeasure]:
    return [load_measure(name) for name in MEASURE_MODULES]
