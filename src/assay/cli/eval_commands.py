"""`assay eval`: how well it does on data of others."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    measures: Annotated[
        list[str] | None,
        typer.Argument(metavar="MEASURE...", help="Which to take; all unless said.", show_default=False),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The data; ASSAY_EVAL_DATA unless said.", file_okay=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Samples that take seconds each; they have own floors.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Keep the figures as they come: a .json record, or a .md page with its record beside it."),
    ] = None,
    render: Annotated[
        bool, typer.Option("--render", help="Measure nothing: write the page of --out again from its record.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the measures, and take none.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Measure quality on third-party data. Ends with 1 where a figure is worse than it may be."""
    from assay.cli import evaluating

    wishes = evaluating.Wishes(data=data, quick=quick, out=out, json=json)
    if listing:
        evaluating.show_measures(wishes)
    elif render:
        evaluating.render(wishes)
    else:
        evaluating.evaluate(measures or [], wishes)
