"""A page of figures: what stands between its marks is written from the record, all else by people."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from benchmarks.evaluation.measure import (
    EvalCurve,
    EvalMeasure,
    EvalRecord,
    EvalTable,
    Figure,
    MeasureResult,
    dump_record,
    load_measures,
)
from openassay.errors import PathError, UsageError
from openassay.export import open_atomically

# Curves as pictures: SVG that is drawn here, readable on light and dark pages and without colour.

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 50, 50  # around the axes; names of lines stand on the right
MARKS = ("circle", "square", "diamond", "triangle")
DASHES = ("none", "6 4", "2 3", "8 3 2 3")
LINE, NAME = 15, 90  # height and width that the name of a line takes
FEW = 2  # decades; with fewer, 2 and 5 have ticks of their own
STYLE = """
.paper { fill: #ffffff } .ink { fill: #24292f } .faint { fill: #57606a } .grid { stroke: #d0d7de }
.c0 { stroke: #0550ae } .c1 { stroke: #953800 } .c2 { stroke: #116329 } .c3 { stroke: #6639ba }
.f0 { fill: #0550ae } .f1 { fill: #953800 } .f2 { fill: #116329 } .f3 { fill: #6639ba }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117 } .ink { fill: #e6edf3 } .faint { fill: #9198a1 } .grid { stroke: #3d444d }
.c0 { stroke: #79c0ff } .c1 { stroke: #ffa657 } .c2 { stroke: #7ee787 } .c3 { stroke: #d2a8ff }
.f0 { fill: #79c0ff } .f1 { fill: #ffa657 } .f2 { fill: #7ee787 } .f3 { fill: #d2a8ff }
}"""


class Axis(NamedTuple):
    """From values to places along a line from `start` to `end`."""

    ticks: tuple[float, ...]
    start: float
    end: float
    log: bool

    def place(self, value: float) -> float:
        low, high = self._scale(self.ticks[0]), self._scale(self.ticks[-1])
        return self.start + (self.end - self.start) * (self._scale(value) - low) / (high - low)

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.log else value


def build_axis(values: Iterable[float], start: float, end: float, *, log: bool) -> Axis:
    found = list(values)
    if log and min(found) <= 0:
        raise ValueError("a logarithmic axis has no place for 0 and less")
    return Axis(_log_ticks(min(found), max(found)) if log else _linear_ticks(max(found)), start, end, log)


def _log_ticks(low: float, high: float) -> tuple[float, ...]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    each = (1, 2, 5) if last - first < FEW else (1,)
    return (*(number * 10.0**power for power in range(first, last) for number in each), 10.0**last)


def _linear_ticks(high: float) -> tuple[float, ...]:
    """From 0 on, four to eight of them."""
    rough = (high or 1) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return tuple(step * number for number in range(math.ceil(round(high / step, 9)) + 1))


def draw_curve(curve: EvalCurve) -> str:
    points = [point for line in curve.lines.values() for point in line]
    across = build_axis((x for x, _ in points), LEFT, WIDTH - RIGHT, log=curve.log)
    up = build_axis((y for _, y in points), HEIGHT - BOTTOM, TOP, log=curve.log)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<title id="t">{escape(curve.title)}</title><desc id="d">{escape(describe_curve(curve))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="ink" x="{LEFT}" y="26" font-size="15" font-weight="600">{escape(curve.title)}</text>',
        *_draw_grid(curve, across, up),
    ]
    named = _place_labels([(across.place(line[-1][0]), up.place(line[-1][1])) for line in curve.lines.values()])
    for kind, (name, line) in enumerate(curve.lines.items()):
        highest = [y >= max(other for at, other in points if at == x) for x, y in line]
        places = [(across.place(x), up.place(y), y) for x, y in line]
        parts += _draw_line(kind % len(MARKS), places, highest)
        x, y = named[kind]
        label = f'x="{x + 12:.1f}" y="{y + 5:.1f}" font-weight="600"'
        parts.append(f'<text class="f{kind % len(MARKS)}" {label}>{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_grid(curve: EvalCurve, across: Axis, up: Axis) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in across.ticks:
        x = f"{across.place(value):.1f}"
        parts.append(f'<path class="grid" d="M{x} {TOP}V{bottom}"/>')
        parts.append(
            f'<text class="faint" x="{x}" y="{bottom + 18}" text-anchor="middle">{format_number(value)}</text>'
        )
    for value in up.ticks:
        y = up.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(
            f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_number(value)}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(f'<text class="ink" x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(curve.x)}</text>')
    parts.append(
        f'<text class="ink" transform="translate(16 {(TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(curve.y)}</text>"
    )
    return parts


def _place_labels(ends: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where the names of lines stand: beside their ends, and a line of text apart where they end near each other."""
    placed: dict[int, tuple[float, float]] = {}
    for number in sorted(range(len(ends)), key=lambda at: ends[at][1]):
        x, y = ends[number]
        above = [other for at, other in placed.values() if abs(at - x) < NAME and other + LINE > y]
        placed[number] = (x, max(above) + LINE if above else y)
    return [placed[number] for number in range(len(ends))]


def _draw_line(kind: int, points: Sequence[tuple[float, float, float]], highest: Sequence[bool]) -> list[str]:
    """What a point stands for is written above the highest line and below the others."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    parts = [f'<path class="c{kind}" fill="none" stroke-width="2" stroke-dasharray="{DASHES[kind]}" d="M{path}"/>']
    for (x, y, value), above in zip(points, highest, strict=True):
        anchor, right = ("start", 5) if x == LEFT else ("middle", 0)
        place = f'x="{x + right:.1f}" y="{y - 9 if above else y + 18:.1f}" text-anchor="{anchor}"'
        parts.append(f'<path class="f{kind}" d="{_mark_path(MARKS[kind], x, y)}"/>')
        parts.append(f'<text class="f{kind}" {place}>{format_number(value)}</text>')
    return parts


def _mark_path(kind: str, x: float, y: float) -> str:
    if kind == "circle":
        return f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
    }[kind]
    return "M" + "L".join(f"{x + right:.1f} {y + down:.1f}" for right, down in corners) + "z"


def format_number(value: float) -> str:
    """As people write it on an axis: 10,000 and 1 M, 1.6 and 221."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:,g} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def describe_curve(curve: EvalCurve) -> str:
    """The picture in words, for who does not see it."""
    lines = "; ".join(
        f"{name}: " + ", ".join(f"{format_number(y)} at {format_number(x)}" for x, y in line)
        for name, line in curve.lines.items()
    )
    return f"{curve.y} by {curve.x}. {lines}."


def embed_curve(name: str, curve: EvalCurve, folder: str) -> str:
    """The picture on a page."""
    alt = f"{curve.title}. {describe_curve(curve)}".replace("[", "(").replace("]", ")")
    note = f" {curve.note}" if curve.note else ""
    return f"![{alt}]({folder}/{name}.svg)\n\n`{curve.command}`, {curve.date}.{note}"


# Figures in a table: rows for a terminal, Markdown for a page.

COLUMNS = ("measure", "figure", "OpenAssay", "to beat", "must be")


class EvalRow(NamedTuple):
    measure: str
    figure: str
    ours: str
    to_beat: str
    bound: str
    holds: bool


def build_rows(measure: EvalMeasure, taken: MeasureResult) -> list[EvalRow]:
    """Figures that were taken, in the order of the measure."""
    return [_build_row(measure, figure, taken) for figure in measure.figures if figure.name in taken.figures]


def _build_row(measure: EvalMeasure, figure: Figure, taken: MeasureResult) -> EvalRow:
    found = taken.figures[figure.name]
    here, published = _format_values(figure, found.beside), _format_values(figure, figure.published)
    bound = figure.limit(taken.quick)
    return EvalRow(
        measure.name,
        figure.name,
        figure.format_value(found.value),
        "; ".join(part for part in (here, published and f"given with the data: {published}") if part),
        "" if bound is None else f"{'≤' if figure.less_is_better else '≥'} {figure.format_value(bound)}",
        figure.holds(found.value, taken.quick),
    )


def _format_values(figure: Figure, values: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {figure.format_value(value)}" for name, value in values.items())


def render_measures(measures: Iterable[EvalMeasure], record: EvalRecord) -> str:
    """All figures of a record in one table, then for each measure what was measured and what to know about it."""
    known = [(measure, record.measures[measure.name]) for measure in measures if measure.name in record.measures]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for measure, taken in known:
        for place, row in enumerate(build_rows(measure, taken)):
            name = f"[{measure.name}](#{measure.name})" if place == 0 else ""
            ours = f"**{row.ours}**" if row.holds else f"**{row.ours}** (does not hold)"
            lines.append(f"| {name} | {row.figure} | {ours} | {row.to_beat} | {row.bound} |")
    if not known:
        return "\n".join(lines)
    common, _ = Counter(_describe_environment(taken) for _, taken in known).most_common(1)[0]
    parts = ["\n".join(lines), f"Measured with {common}, unless said.", *(_render_notes(*one, common) for one in known)]
    return "\n\n".join(parts)


def render_table(table: EvalTable) -> str:
    """A table of a benchmark, with how it was made."""
    lines = [f"| {' | '.join(cells)} |" for cells in (table.columns, *table.rows)]
    lines.insert(1, "|---" * len(table.columns) + "|")
    note = f" {table.note}" if table.note else ""
    made_with = ", ".join(f"{name} {table.versions[name]}" for name in ("python", "openassay"))
    return "\n".join(lines) + f"\n\n`{table.command}`, {table.date}, {made_with}, {table.machine}.{note}"


def _describe_environment(taken: MeasureResult) -> str:
    return f"{', '.join(f'{name} {number}' for name, number in taken.versions.items())} on {taken.machine}"


def _render_notes(measure: EvalMeasure, taken: MeasureResult, common: str) -> str:
    how = f"python -m benchmarks.evaluation {measure.name}{' --quick' if taken.quick else ''}"
    otherwise = f", with {_describe_environment(taken)}" if _describe_environment(taken) != common else ""
    more = f" More detail: `{measure.command}`." if measure.command else ""
    data = ", ".join(f"`{name}/`" for name in measure.needs)
    parts = [
        f"### {measure.name}",
        f"{measure.about} Data: {data} ({measure.licence}), sha256 `{taken.data[:12]}`.",
        measure.notes,
        f"`{how}`: {taken.sample}; {taken.seconds:.0f} s on {taken.date}{otherwise}.{more}",
    ]
    return "\n\n".join(part for part in parts if part)


EMPTY_PAGE = "# How well it does, in figures\n\n<!-- eval -->\n<!-- /eval -->\n"
PAGE, PICTURES = ".md", "images"


def record_path(page: Path) -> Path:
    """docs/quality.json stands beside docs/quality.md; of a record that is the record itself."""
    return page.with_suffix(".json")


def render_page(text: str, record: EvalRecord) -> str:
    """The page with what the record says: all measures in one place, each table and curve where the page wants it."""
    text = _replace_part(text, "eval", render_measures(load_measures(), record))
    for name, curve in record.curves.items():
        text = _replace_part(text, f"curve {name}", embed_curve(name, curve, PICTURES))
    for name, table in record.tables.items():
        text = _replace_part(text, f"table {name}", render_table(table))
    return text


def read_page(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else EMPTY_PAGE


def write_record(out: Path, record: EvalRecord) -> None:
    """The record, and where that is a page, the page and its pictures."""
    files = {record_path(out): dump_record(record)}
    if out.suffix == PAGE:
        files |= {**draw_pictures(out, record), out: render_page(read_page(out), record)}
    for file, text in files.items():
        try:
            file.parent.mkdir(exist_ok=True)
            with open_atomically(file) as opened:
                opened.write(text.encode())
        except OSError as error:
            raise PathError(f"cannot write {file}: {error.strerror}", help="Choose another --out.") from error


def draw_pictures(page: Path, record: EvalRecord) -> dict[Path, str]:
    return {page.parent / PICTURES / f"{name}.svg": draw_curve(curve) for name, curve in record.curves.items()}


def _replace_part(text: str, part: str, content: str) -> str:
    first, last = f"<!-- {part} -->", f"<!-- /{part} -->"
    before, begins, rest = text.partition(first)
    _, ends, after = rest.partition(last)
    if not begins or not ends:
        raise UsageError(
            f"the page has no place for what was measured: {first} and {last} are missing",
            help="Write both marks into the page, each on a line of its own, or name a new file with --out.",
        )
    return f"{before}{first}\n{content}\n{last}{after}"
