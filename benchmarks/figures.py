"""What benchmarks find, for a page: FIGURES=docs/quality.md python benchmarks/bench_kills.py puts it there.

`make bench` names the page; without FIGURES a benchmark only prints. How it was called is kept with what it found, so
that a short trial cannot pass for a whole one.
"""

import fcntl
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.evaluation.measure import (
    EvalCurve,
    EvalRecord,
    EvalTable,
    describe_machine,
    package_versions,
    read_record,
)
from benchmarks.evaluation.page import record_path
from benchmarks.evaluation.page import write_record as keep_record

Points = Sequence[tuple[float, float]]
DIGITS = 3  # of a point

if (_named := os.environ.get("FIGURES")) and not Path(_named).is_file():  # now, and not after hours of measuring
    sys.exit(f"FIGURES={_named}: there is no such page")


def keep(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> None:
    """A table, between <!-- table NAME --> and <!-- /table NAME --> of the page."""
    with _changing() as record:
        if record:
            record.tables[name] = EvalTable(
                columns=list(columns),
                rows=[[_shown(cell) for cell in row] for row in rows],
                note=note,
                date=datetime.now(UTC).date(),
                command=_command(),
                versions=package_versions(),
                machine=describe_machine(),
            )


def keep_curve(
    name: str, axes: tuple[str, str, str], lines: Mapping[str, Points], *, log: bool = True, note: str = ""
) -> None:
    """A picture, where the page has its marks. The axes: what all of it shows, what is across, what is up."""
    with _changing() as record:
        if record:
            title, across, up = axes
            record.curves[name] = EvalCurve(
                title=title, x=across, y=up, log=log, note=note, date=datetime.now(UTC).date(), command=_command(),
                lines={line: [(x, float(f"{y:.{DIGITS}g}")) for x, y in points] for line, points in lines.items()},
            )  # fmt: skip


@contextmanager
def _changing() -> Iterator[EvalRecord | None]:
    """One at a time, since two benchmarks may end at once."""
    if not (page := os.environ.get("FIGURES")):
        yield None
        return
    folder = os.open(Path(page).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        record = read_record(record_path(Path(page)))
        yield record
        keep_record(Path(page), record)
    finally:
        os.close(folder)


def _shown(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell).replace("|", "\\|")


def _command() -> str:
    return " ".join(["benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]])
