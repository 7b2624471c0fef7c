"""What tells a right composition from a wrong one, in numbers: the words and periods of its rows and columns, how much
of the question they explain, and the order they stand in."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from openassay.reasoning.rules.tables.composing import Composition
from openassay.reasoning.rules.tables.matching import Fit, Question, Weigh, tokenize

Floats = npt.NDArray[np.float32]
_TOKEN = re.compile(r"[a-z]+|%|\d[\d,.]*")
_GROUPS = (("lookup",), ("list",), ("difference", "change"), ("ratio", "share"), ("sum",), ("average",), ("count",),
           ("highest", "lowest"), ("above", "below"), ("heads",), ("none",))  # fmt: skip


def read_ngrams(question: Question, labels: frozenset[str]) -> list[str]:
    """Runs of one to three words of a question; words of the table stand as one sign, so that what is learned is not
    of what was asked about."""
    signs = list[str]()
    for word in _TOKEN.findall(question.text.lower()):
        if word[0].isdigit():
            sign = "<year>" if re.fullmatch(r"(?:19|20)\d\d", word.rstrip(".,")) else "<figure>"
        else:
            sign = "<label>" if word in labels else word
        if not (signs and signs[-1] == sign == "<label>"):
            signs.append(sign)
    signs = ["<begin>", *signs, "<end>"]
    runs = [" ".join(signs[at : at + size]) for size in (1, 2, 3) for at in range(len(signs) - size + 1)]
    return [*dict.fromkeys(runs), f"<years {min(len(question.years), 3)}>"]


def describe(fit: Fit, compositions: Sequence[Composition], chances: dict[str, float], weigh: Weigh) -> Floats:
    """A line of numbers for each composition."""
    context = _Context(fit, weigh)
    return np.array([_describe_one(context, one, chances) for one in compositions], dtype=np.float32)


class _Context:
    def __init__(self, fit: Fit, weigh: Weigh) -> None:
        self.fit, self.weigh = fit, weigh
        self.total = sum(map(weigh, fit.question.stems)) or 1.0
        self.best = max((match.score for match in fit.rows), default=0.0)
        self.dated = sum(bool(match.year) for match in fit.columns)
        self.kinds = len({match.kind for match in fit.columns})
        self.asks_total = "total" in fit.question.stems
        self.caption = frozenset(token.stem for token in tokenize(fit.table.caption))
        covered = frozenset().union(*(match.stems for match in fit.rows), *(match.line.stems for match in fit.columns))
        self.known = sum(map(weigh, covered)) / self.total
        years = {match.year for match in fit.columns if match.year}
        self.missing = len(set(fit.question.years) - years)
        self.found = len(set(fit.question.years) & years)


def _describe_one(context: _Context, one: Composition, chances: dict[str, float]) -> list[float]:
    fit, question = context.fit, context.fit.question
    places = one.places or one.picks
    rows = list(dict.fromkeys(at.row for at in places))
    columns = list(dict.fromkeys(at.column for at in places))
    matches = [fit.rows[row] for row in rows]
    heads = [fit.columns[column] for column in columns]
    stems = frozenset().union(*(match.stems for match in matches), *(match.line.stems for match in heads))
    picks_rows = len(columns) == 1 and one.operation in ("highest", "lowest", "above", "below", "heads", "count")
    years = {head.year for head in heads if head.year}
    asked = set(question.years)
    cells = [cell.value for at in one.places if (cell := fit.table.rows[at.row].cells[at.column]) and cell.value]
    numbers = [cell.number for cell in cells]
    one_row, one_column = float(len(rows) == 1), float(len(columns) == 1)
    pair = len(places) == 2 and one.operation in ("difference", "change", "ratio", "share")
    first, second = (places[0], places[1]) if pair else (None, None)
    in_row = pair and len(rows) == 1
    in_column = pair and len(columns) == 1
    starts = (-1, -1)
    if in_row:
        starts = (heads[0].start, heads[1].start)
    elif in_column:
        starts = (matches[0].start, matches[1].start)
    order = 0.0 if min(starts) < 0 or starts[0] == starts[1] else (1.0 if starts[0] < starts[1] else -1.0)
    later = 0.0
    if in_row and heads[0].year and heads[1].year and heads[0].year != heads[1].year:
        later = 1.0 if heads[0].year > heads[1].year else -1.0
    total_second = float(in_column and second is not None and fit.table.rows[second.row].is_total)
    total_first = float(in_column and first is not None and fit.table.rows[first.row].is_total)
    larger = float(pair and len(numbers) == 2 and abs(numbers[0]) > abs(numbers[1]))
    percents = sum(cell.is_percent for cell in cells)
    totals = sum(fit.table.rows[row].is_total for row in rows)
    chance = chances.get(one.operation, 0.0)
    plain = [
        np.log(chance + 1e-4),
        min((match.covered for match in matches), default=0.0),
        max((match.covered for match in matches), default=0.0),
        sum(match.covers for match in matches),
        min((match.phrase for match in matches), default=0.0),
        max((match.phrase for match in matches), default=0.0),
        float(all(match.is_whole for match in matches)) if matches else 0.0,
        max((match.group for match in matches), default=0.0),
        context.best - min((match.score for match in matches), default=0.0),
        context.best - max((match.score for match in matches), default=0.0),
        sum(map(context.weigh, stems)) / context.total,
        context.known - sum(map(context.weigh, stems)) / context.total,
        context.known,
        len(asked & years) / len(asked) if asked else 0.0,
        len(years & asked) / len(years) if years else 0.0,
        float(not asked),
        float(context.missing > 0),
        float(context.found),
        sum(head.asked for head in heads) / len(heads) if heads else 0.0,
        min((head.asked for head in heads), default=0.0),
        max((head.line.covered for head in heads), default=0.0),
        sum(head.line.covers for head in heads) / len(heads) if heads else 0.0,
        float(len({head.kind for head in heads}) > 1),
        float(any(not head.year for head in heads) and context.dated > 0),
        len(columns) / max(len(fit.columns), 1),
        float(len(columns) == len(fit.columns)),
        float(len(columns) == context.dated),
        one_row,
        one_column,
        float(len(rows) == 2),
        float(len(rows) > 2),
        float(len(columns) == 2),
        float(len(columns) > 2),
        float(picks_rows),
        order,
        order * float(in_row),
        order * float(in_column),
        later,
        later * float(not asked),
        float(in_row),
        float(in_column),
        float(in_column and rows[0] < rows[1]),
        float(pair and not in_row and not in_column),
        total_second,
        total_first,
        larger,
        larger * float(one.operation == "share"),
        total_second * float(one.operation == "share"),
        float(percents > 0),
        float(0 < percents < len(cells)),
        float(percents > 0) * float(one.operation == "change"),
        float(percents > 0) * float(one.operation == "difference"),
        float(any(cell.is_dash for cell in cells)),
        float(one.is_absolute),
        float(bool(numbers) and min(numbers) < 0),
        float(bool(numbers) and max(numbers) < 0),
        float(one.is_absolute and max(numbers, default=0) > 0),
        totals / len(rows) if rows else 0.0,
        (totals / len(rows) if rows else 0.0) * float(context.asks_total),
        float(context.asks_total),
        float(any(not fit.table.rows[row].label for row in rows)),
        float(fit.table.is_transposed),
        float(context.kinds > 1),
        float(bool(question.limits)),
        float(one.operation == "count" and one.value == 0),
        len(rows) / 10,
        len(one.picks) / 10,
        float(columns[0] == 0) if columns else 0.0,
        float(max(columns, default=-1) == len(fit.columns) - 1),
    ]
    return [*plain, *(float(one.operation in group) for group in _GROUPS), float(one.operation == "change")]
