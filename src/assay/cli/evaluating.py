"""Measures that are taken at a person's request, one after the other, and kept as they come."""

import json as jsonlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from assay.cli.delivery import check_place
from assay.cli.screen import open_console, tell
from assay.errors import PathError, UsageError
from assay.evaluation.data import folder, place
from assay.evaluation.measure import Measure
from assay.evaluation.page import PAGE, keep, record_of, text_of, written
from assay.evaluation.record import Record, Taken, read, taken
from assay.evaluation.registry import MODULES, every, measure
from assay.evaluation.table import COLUMNS, rows

RECORD = ".json"
UNBROKEN = 10_000  # columns where nobody looks: a script wants a line a figure


class Wishes(NamedTuple):
    data: Path | None
    quick: bool
    out: Path | None
    json: bool


class Done(NamedTuple):
    measure: Measure
    taken: Taken


def evaluate(names: Sequence[str], wishes: Wishes) -> None:
    """What can be refused is refused before hours of work."""
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # a line for every page it makes nothing of
    chosen = [measure(name) for name in dict.fromkeys(names or MODULES)]
    data = folder(wishes.data)
    kept = _kept(wishes.out)
    skipped = {one.name: missing for one in chosen if (missing := one.missing(data))}
    for name, missing in skipped.items():
        tell(f"{name}: skipped, {data} has no {' and no '.join(missing)}")
    if len(skipped) == len(chosen):
        raise PathError(
            f"none of it can be measured: {data} has none of the data",
            help="See what each measure needs with: assay eval --list",
        )
    done: list[Done] = []
    try:
        for one in chosen:
            if one.name not in skipped:
                done.append(_taken(one, data, wishes, kept))
    except KeyboardInterrupt:
        where = f" They are kept in {wishes.out}." if wishes.out and done else ""
        tell(f"Stopped; {len(done)} of {len(chosen) - len(skipped)} measures were taken.{where}")
        _show(done, skipped, wishes)
        raise
    _show(done, skipped, wishes)
    missed = [line for one in done for line in one.measure.missed(one.taken.values(), wishes.quick)]
    for line in missed:
        tell(line, "red")
    if missed:
        raise typer.Exit(1)


def _taken(one: Measure, data: Path, wishes: Wishes, kept: Record) -> Done:
    tell(f"{one.name}: {one.sample(wishes.quick)} ...", "dim")
    try:
        found = taken(one, data, quick=wishes.quick)
    except (OSError, UnicodeDecodeError, jsonlib.JSONDecodeError) as error:
        raise PathError(
            f"{one.name}: the data at {data} cannot be read: {error}",
            help="See what belongs there in docs/howto/evaluate.md.",
        ) from error
    kept.measures[one.name] = found
    if wishes.out is not None:
        keep(wishes.out, kept)
    tell(f"{one.name}: {found.seconds:.0f} s", "dim")
    return Done(one, found)


# What is kept ----------------------------------------------------------------------------------------


def _kept(out: Path | None) -> Record:
    if out is None:
        return Record()
    if out.suffix not in (PAGE, RECORD):
        raise UsageError(f"--out {out} is neither a page nor a record", help="Name a file that ends in .md or .json.")
    check_place(out)
    record = read(record_of(out))
    if out.suffix == PAGE:
        written(text_of(out), Record())  # a page without a place for figures is refused now
    return record


def render(wishes: Wishes) -> None:
    if wishes.out is None or wishes.out.suffix != PAGE:
        raise UsageError("--render writes a page again", help="Name it: assay eval --render --out docs/quality.md")
    if not record_of(wishes.out).is_file():
        raise PathError(f"{record_of(wishes.out)} is not there", help="Measure first: leave out --render.")
    keep(wishes.out, _kept(wishes.out))
    tell(f"{wishes.out} says what {record_of(wishes.out)} has.")


# What a person sees ----------------------------------------------------------------------------------


def _show(done: Sequence[Done], skipped: dict[str, list[str]], wishes: Wishes) -> None:
    if wishes.json:
        plain = {one.measure.name: _plain(one) for one in done}
        typer.echo(jsonlib.dumps({"measures": plain, "skipped": skipped}, indent=2))
        return
    if not done:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in COLUMNS:
        table.add_column(Text(heading, style="dim"), justify="right" if heading == "Assay" else "left")
    for one in done:
        for number, row in enumerate(rows(one.measure, one.taken)):
            style = "green" if row.holds else "bold red"
            table.add_row(
                row.measure if number == 0 else "", row.figure, Text(row.ours, style=style), row.to_beat, row.bound
            )
    _print(table)


def _print(table: Table) -> None:
    console = open_console()
    if not console.is_terminal:
        console.width = UNBROKEN
    console.print(table)


def _plain(one: Done) -> dict[str, Any]:
    plain = one.taken.model_dump(mode="json")
    for figure in one.measure.figures:
        if figure.name in plain["figures"]:
            value = plain["figures"][figure.name]
            value["bound"] = figure.bound(one.taken.quick)
            value["less_is_better"] = figure.less_is_better
            value["holds"] = figure.holds(value["value"], one.taken.quick)
            value["published"] = dict(figure.published)
    return plain


def show_measures(wishes: Wishes) -> None:
    data = place(wishes.data)
    if wishes.json:
        typer.echo(jsonlib.dumps([_described(one, data) for one in every()], indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("measure", "what", "whole, quick", "data"):
        table.add_column(Text(heading, style="dim"), overflow="fold")
    for one in every():
        there = "" if not one.missing(data) else " (not there)"
        table.add_row(one.name, one.about, f"{one.whole}; {one.quick}", ", ".join(one.needs) + there)
    _print(table)


def _described(one: Measure, data: Path) -> dict[str, Any]:
    return {
        "name": one.name, "about": one.about, "needs": one.needs, "licence": one.licence, "whole": one.whole,
        "quick": one.quick, "figures": [figure.name for figure in one.figures], "missing": one.missing(data),
    }  # fmt: skip
