"""A measure: data of others, the figures taken on them, what to beat, and what must hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Measured(NamedTuple):
    """A figure of ours; beside it those of others, by name, on the same sample."""

    value: float
    beside: Mapping[str, float] = {}


Values = Mapping[str, Measured]


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

    def bound(self, quick: bool) -> float | None:
        return self.quick if quick else self.floor

    def holds(self, value: float, quick: bool) -> bool:
        bound = self.bound(quick)
        return bound is None or (value <= bound if self.less_is_better else value >= bound)

    def shown(self, value: float) -> str:
        """.983 and not 0.983."""
        text = format(value, self.form)
        return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


@dataclass(frozen=True)
class Measure:
    """`run(data, quick)` takes the figures; `needs` are the folders under `data` that it reads. `notes` say what has to
    be known to read the figures, such as what was tuned on what."""

    name: str
    about: str
    needs: tuple[str, ...]
    licence: str
    whole: str  # how much is measured, as "181 pages"
    quick: str
    figures: tuple[Figure, ...]
    run: Callable[[Path, bool], Values]
    notes: str = ""
    command: str = ""  # of more detail than the figures

    def missing(self, data: Path) -> list[str]:
        return [name for name in self.needs if not (data / name).is_dir()]

    def sample(self, quick: bool) -> str:
        return self.quick if quick else self.whole

    def missed(self, values: Values, quick: bool) -> Sequence[str]:
        """Figures that do not hold, in words; so is one that should have been taken and was not."""
        lines = []
        for figure in self.figures:
            bound = figure.bound(quick)
            if bound is None:
                continue
            word = "above" if figure.less_is_better else "below"
            if figure.name not in values:
                lines.append(f"{self.name}, {figure.name}: not measured")
            elif not figure.holds(value := values[figure.name].value, quick):
                lines.append(f"{self.name}, {figure.name}: {figure.shown(value)} is {word} {figure.shown(bound)}")
        return lines
