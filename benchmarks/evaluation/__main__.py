"""`python -m benchmarks.evaluation`: measure quality on third-party data, one measure after the other."""

import json as jsonlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from benchmarks.evaluation.measure import (
    MEASURE_MODULES,
    EvalMeasure,
    EvalRecord,
    MeasureResult,
    load_measure,
    load_measures,
    read_record,
    require_data_folder,
    resolve_data_folder,
    run_measure,
)
from benchmarks.evaluation.page import COLUMNS, PAGE, build_rows, read_page, record_path, render_page, write_record
from openassay.cli import report_errors
from openassay.cli.export import check_place
from openassay.cli.screen import open_console, print_message
from openassay.errors import PathError, UsageError

RECORD = ".json"
WIDE = 10_000  # columns where nobody looks: a script wants a line a figure


class EvalOptions(NamedTuple):
    data: Path | None
    quick: bool
    out: Path | None
    json: bool


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def run(
    measures: Annotated[
        list[str] | None,
        typer.Argument(metavar="MEASURE...", help="Which to take; by default all.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The data; by default OPENASSAY_EVAL_DATA.", file_okay=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take samples in seconds each; they have floors of their own.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the figures as they come: a .json record, or a .md page with its record beside it."),
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Measure nothing: write the page of --out again from its record.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the measures, and take none.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures, or the list, as JSON.")] = False,
) -> None:
    """Measure quality on third-party data. Exits with 1 where a figure is worse than it may be."""
    options = EvalOptions(data=data, quick=quick, out=out, json=json)
    if listing:
        show_measures(options)
    elif render:
        rewrite_page(options)
    else:
        evaluate(measures or [], options)


class MeasureRun(NamedTuple):
    measure: EvalMeasure
    taken: MeasureResult


def evaluate(names: Sequence[str], options: EvalOptions) -> None:
    """What can be refused is refused before hours of work."""
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # a line for every page it makes nothing of
    chosen = [load_measure(name) for name in dict.fromkeys(names or MEASURE_MODULES)]
    data = require_data_folder(options.data)
    kept = _open_record(options.out)
    skipped = {one.name: missing for one in chosen if (missing := one.missing(data))}
    for name, missing in skipped.items():
        print_message(f"{name}: skipped, {data} has no {' and no '.join(missing)}")
    if len(skipped) == len(chosen):
        raise PathError(
            f"none of it can be measured: {data} has none of the data",
            help="See what each measure needs with: python -m benchmarks.evaluation --list",
        )
    done: list[MeasureRun] = []
    try:
        for one in chosen:
            if one.name not in skipped:
                done.append(_run_and_store(one, data, options, kept))
    except KeyboardInterrupt:
        where = f" They are kept in {options.out}." if options.out and done else ""
        print_message(f"Stopped; {len(done)} of {len(chosen) - len(skipped)} measures were taken.{where}")
        _show_results(done, skipped, options)
        raise
    _show_results(done, skipped, options)
    missed = [line for one in done for line in one.measure.list_failures(one.taken.values(), options.quick)]
    for line in missed:
        print_message(line, "red")
    if missed:
        raise typer.Exit(1)


def _run_and_store(one: EvalMeasure, data: Path, options: EvalOptions, kept: EvalRecord) -> MeasureRun:
    print_message(f"{one.name}: {one.sample(options.quick)} ...", "dim")
    try:
        found = run_measure(one, data, quick=options.quick)
    except (OSError, UnicodeDecodeError, jsonlib.JSONDecodeError) as error:
        raise PathError(
            f"{one.name}: the data at {data} cannot be read: {error}",
            help="See what belongs there in docs/howto/evaluate.md.",
        ) from error
    kept.measures[one.name] = found
    if options.out is not None:
        write_record(options.out, kept)
    print_message(f"{one.name}: {found.seconds:.0f} s", "dim")
    return MeasureRun(one, found)


# What is kept ----------------------------------------------------------------------------------------


def _open_record(out: Path | None) -> EvalRecord:
    if out is None:
        return EvalRecord()
    if out.suffix not in (PAGE, RECORD):
        raise UsageError(f"--out {out} is neither a page nor a record", help="Name a file that ends in .md or .json.")
    check_place(out)
    record = read_record(record_path(out))
    if out.suffix == PAGE:
        render_page(read_page(out), EvalRecord())  # a page without a place for figures is refused now
    return record


def rewrite_page(options: EvalOptions) -> None:
    if options.out is None or options.out.suffix != PAGE:
        raise UsageError(
            "--render writes a page again",
            help="Name it: python -m benchmarks.evaluation --render --out docs/quality.md",
        )
    if not record_path(options.out).is_file():
        raise PathError(f"{record_path(options.out)} is not there", help="Measure first: leave out --render.")
    write_record(options.out, _open_record(options.out))
    print_message(f"{options.out} says what {record_path(options.out)} has.")


# What a person sees ----------------------------------------------------------------------------------


def _show_results(done: Sequence[MeasureRun], skipped: dict[str, list[str]], options: EvalOptions) -> None:
    if options.json:
        plain = {one.measure.name: _run_as_json(one) for one in done}
        typer.echo(jsonlib.dumps({"measures": plain, "skipped": skipped}, indent=2))
        return
    if not done:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in COLUMNS:
        table.add_column(Text(heading, style="dim"), justify="right" if heading == "OpenAssay" else "left")
    for one in done:
        for number, row in enumerate(build_rows(one.measure, one.taken)):
            style = "green" if row.holds else "bold red"
            table.add_row(
                row.measure if number == 0 else "", row.figure, Text(row.ours, style=style), row.to_beat, row.bound
            )
    _print_table(table)


def _print_table(table: Table) -> None:
    console = open_console()
    if not console.is_terminal:
        console.width = WIDE
    console.print(table)


def _run_as_json(one: MeasureRun) -> dict[str, Any]:
    plain = one.taken.model_dump(mode="json")
    for figure in one.measure.figures:
        if figure.name in plain["figures"]:
            value = plain["figures"][figure.name]
            value["bound"] = figure.limit(one.taken.quick)
            value["less_is_better"] = figure.less_is_better
            value["holds"] = figure.holds(value["value"], one.taken.quick)
            value["published"] = dict(figure.published)
    return plain


def show_measures(options: EvalOptions) -> None:
    data = resolve_data_folder(options.data)
    if options.json:
        typer.echo(jsonlib.dumps([_describe_measure(one, data) for one in load_measures()], indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("measure", "what", "whole, quick", "data"):
        table.add_column(Text(heading, style="dim"), overflow="fold")
    for one in load_measures():
        there = "" if not one.missing(data) else " (not there)"
        table.add_row(one.name, one.about, f"{one.whole}; {one.quick}", ", ".join(one.needs) + there)
    _print_table(table)


def _describe_measure(one: EvalMeasure, data: Path) -> dict[str, Any]:
    return {
        "name": one.name, "about": one.about, "needs": one.needs, "licence": one.licence, "whole": one.whole,
        "quick": one.quick, "figures": [figure.name for figure in one.figures], "missing": one.missing(data),
    }  # fmt: skip


if __name__ == "__main__":
    report_errors(app)
