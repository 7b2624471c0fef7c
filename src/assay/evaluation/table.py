"""Figures in a table: rows for a terminal, Markdown for a page."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assay.evaluation.measure import Figure, Measure
from assay.evaluation.record import Record, Table, Taken

COLUMNS = ("measure", "figure", "Assay", "to beat", "must be")


class Row(NamedTuple):
    measure: str
    figure: str
    ours: str
    to_beat: str
    bound: str
    holds: bool


def rows(measure: Measure, taken: Taken) -> list[Row]:
    """Figures that were taken, in the order of the measure."""
    return [_row(measure, figure, taken) for figure in measure.figures if figure.name in taken.figures]


def _row(measure: Measure, figure: Figure, taken: Taken) -> Row:
    found = taken.figures[figure.name]
    here, published = _told(figure, found.beside), _told(figure, figure.published)
    bound = figure.bound(taken.quick)
    return Row(
        measure.name,
        figure.name,
        figure.shown(found.value),
        "; ".join(part for part in (here, published and f"given with the data: {published}") if part),
        "" if bound is None else f"{'≤' if figure.less_is_better else '≥'} {figure.shown(bound)}",
        figure.holds(found.value, taken.quick),
    )


def _told(figure: Figure, values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {figure.shown(value)}" for name, value in values.items())


def markdown(measures: Iterable[Measure], record: Record) -> str:
    """All figures of a record in one table, then for each measure what was measured and what to know about it."""
    known = [(measure, record.measures[measure.name]) for measure in measures if measure.name in record.measures]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for measure, taken in known:
        for place, row in enumerate(rows(measure, taken)):
            name = f"[{measure.name}](#{measure.name})" if place == 0 else ""
            ours = f"**{row.ours}**" if row.holds else f"**{row.ours}** (does not hold)"
            lines.append(f"| {name} | {row.figure} | {ours} | {row.to_beat} | {row.bound} |")
    if not known:
        return "\n".join(lines)
    common, _ = Counter(_made_with(taken) for _, taken in known).most_common(1)[0]
    parts = ["\n".join(lines), f"Measured with {common}, unless said.", *(_about(*one, common) for one in known)]
    return "\n\n".join(parts)


def laid_out(table: Table) -> str:
    """A table of a benchmark, with how it was made."""
    lines = [f"| {' | '.join(cells)} |" for cells in (table.columns, *table.rows)]
    lines.insert(1, "|---" * len(table.columns) + "|")
    note = f" {table.note}" if table.note else ""
    made_with = ", ".join(f"{name} {table.versions[name]}" for name in ("python", "assay"))
    return "\n".join(lines) + f"\n\n`{table.command}`, {table.date}, {made_with}, {table.machine}.{note}"


def _made_with(taken: Taken) -> str:
    return f"{', '.join(f'{name} {number}' for name, number in taken.versions.items())} on {taken.machine}"


def _about(measure: Measure, taken: Taken, common: str) -> str:
    how = f"assay eval {measure.name}{' --quick' if taken.quick else ''}"
    otherwise = f", with {_made_with(taken)}" if _made_with(taken) != common else ""
    more = f" More detail: `{measure.command}`." if measure.command else ""
    data = ", ".join(f"`{name}/`" for name in measure.needs)
    parts = [
        f"### {measure.name}",
        f"{measure.about} Data: {data} ({measure.licence}), sha256 `{taken.data[:12]}`.",
        measure.notes,
        f"`{how}`: {taken.sample}; {taken.seconds:.0f} s on {taken.date}{otherwise}.{more}",
    ]
    return "\n\n".join(part for part in parts if part)
