"""Curves as pictures: SVG that is drawn here, readable on light and dark pages and without colour."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from assay.evaluation.record import Curve

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
        low, high = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])
        return self.start + (self.end - self.start) * (self._scaled(value) - low) / (high - low)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def axis(values: Iterable[float], start: float, end: float, *, log: bool) -> Axis:
    found = list(values)
    if log and min(found) <= 0:
        raise ValueError("a logarithmic axis has no place for 0 and less")
    return Axis(_decades(min(found), max(found)) if log else _steps(max(found)), start, end, log)


def _decades(low: float, high: float) -> tuple[float, ...]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    each = (1, 2, 5) if last - first < FEW else (1,)
    return (*(number * 10.0**power for power in range(first, last) for number in each), 10.0**last)


def _steps(high: float) -> tuple[float, ...]:
    """From 0 on, four to eight of them."""
    rough = (high or 1) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    return tuple(step * number for number in range(math.ceil(round(high / step, 9)) + 1))


def drawn(curve: Curve) -> str:
    points = [point for line in curve.lines.values() for point in line]
    across = axis((x for x, _ in points), LEFT, WIDTH - RIGHT, log=curve.log)
    up = axis((y for _, y in points), HEIGHT - BOTTOM, TOP, log=curve.log)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<title id="t">{escape(curve.title)}</title><desc id="d">{escape(told(curve))}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>',
        f'<text class="ink" x="{LEFT}" y="26" font-size="15" font-weight="600">{escape(curve.title)}</text>',
        *_grid(curve, across, up),
    ]
    named = _apart([(across.place(line[-1][0]), up.place(line[-1][1])) for line in curve.lines.values()])
    for kind, (name, line) in enumerate(curve.lines.items()):
        highest = [y >= max(other for at, other in points if at == x) for x, y in line]
        places = [(across.place(x), up.place(y), y) for x, y in line]
        parts += _line(kind % len(MARKS), places, highest)
        x, y = named[kind]
        label = f'x="{x + 12:.1f}" y="{y + 5:.1f}" font-weight="600"'
        parts.append(f'<text class="f{kind % len(MARKS)}" {label}>{escape(name)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _grid(curve: Curve, across: Axis, up: Axis) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = []
    for value in across.ticks:
        x = f"{across.place(value):.1f}"
        parts.append(f'<path class="grid" d="M{x} {TOP}V{bottom}"/>')
        parts.append(f'<text class="faint" x="{x}" y="{bottom + 18}" text-anchor="middle">{number(value)}</text>')
    for value in up.ticks:
        y = up.place(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>')
        parts.append(f'<text class="faint" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(value)}</text>')
    middle = (LEFT + right) / 2
    parts.append(f'<text class="ink" x="{middle:.0f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(curve.x)}</text>')
    parts.append(
        f'<text class="ink" transform="translate(16 {(TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(curve.y)}</text>"
    )
    return parts


def _apart(ends: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Where the names of lines stand: beside their ends, and a line of text apart where they end near each other."""
    placed: dict[int, tuple[float, float]] = {}
    for number in sorted(range(len(ends)), key=lambda at: ends[at][1]):
        x, y = ends[number]
        above = [other for at, other in placed.values() if abs(at - x) < NAME and other + LINE > y]
        placed[number] = (x, max(above) + LINE if above else y)
    return [placed[number] for number in range(len(ends))]


def _line(kind: int, points: Sequence[tuple[float, float, float]], highest: Sequence[bool]) -> list[str]:
    """What a point stands for is written above the highest line and below the others."""
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    parts = [f'<path class="c{kind}" fill="none" stroke-width="2" stroke-dasharray="{DASHES[kind]}" d="M{path}"/>']
    for (x, y, value), above in zip(points, highest, strict=True):
        anchor, right = ("start", 5) if x == LEFT else ("middle", 0)
        place = f'x="{x + right:.1f}" y="{y - 9 if above else y + 18:.1f}" text-anchor="{anchor}"'
        parts.append(f'<path class="f{kind}" d="{_mark(MARKS[kind], x, y)}"/>')
        parts.append(f'<text class="f{kind}" {place}>{number(value)}</text>')
    return parts


def _mark(kind: str, x: float, y: float) -> str:
    if kind == "circle":
        return f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
    corners = {
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -5), (5, 0), (0, 5), (-5, 0)),
        "triangle": ((0, -5), (5, 4), (-5, 4)),
    }[kind]
    return "M" + "L".join(f"{x + right:.1f} {y + down:.1f}" for right, down in corners) + "z"


def number(value: float) -> str:
    """As people write it on an axis: 10,000 and 1 M, 1.6 and 221."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:,g} M"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def told(curve: Curve) -> str:
    """The picture in words, for who does not see it."""
    lines = "; ".join(
        f"{name}: " + ", ".join(f"{number(y)} at {number(x)}" for x, y in line) for name, line in curve.lines.items()
    )
    return f"{curve.y} by {curve.x}. {lines}."


def shown(name: str, curve: Curve, folder: str) -> str:
    """The picture on a page."""
    alt = f"{curve.title}. {told(curve)}".replace("[", "(").replace("]", ")")
    note = f" {curve.note}" if curve.note else ""
    return f"![{alt}]({folder}/{name}.svg)\n\n`{curve.command}`, {curve.date}.{note}"
