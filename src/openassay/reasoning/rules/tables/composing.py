"""What can be worked out from a table: every operation over the rows and columns that a question may mean."""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Literal, NamedTuple, get_args

from openassay.reasoning.rules.tables.cells import CellValue
from openassay.reasoning.rules.tables.matching import Fit

Operation = Literal[
    "lookup", "list", "difference", "change", "ratio", "share", "sum", "average", "count", "highest", "lowest", "above",
    "below", "heads", "none",
]  # fmt: skip
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
PAIRED: tuple[Operation, ...] = ("difference", "change", "ratio", "share")
MERGED: tuple[Operation, ...] = ("sum", "average", "list")
_MOST_ROWS, _MOST_COLUMNS, _MOST_MERGED = 8, 8, 12
_FAR = 20  # times the largest figure; a limit beyond is on another scale


class Place(NamedTuple):
    row: int
    column: int


class Composition(NamedTuple):
    """An operation over cells. `is_absolute`: over the figures without their signs, as a label like "Cash used" may
    have them meant. `picks` are the cells whose heads are the answer, of one that picks or counts."""

    operation: Operation
    places: tuple[Place, ...]
    value: float | None
    is_absolute: bool = False
    picks: tuple[Place, ...] = ()


def compose(fit: Fit, operations: Sequence[Operation]) -> Iterator[Composition]:
    """Everything that some operations may mean here."""
    wanted = set(operations)
    values = _Values(fit)
    rows = _choose_rows(fit)
    columns = _choose_columns(fit)
    if "lookup" in wanted:
        yield from (Composition("lookup", (at,), values[at].number) for at in _cross(rows, columns) if at in values)
    if wanted & set(PAIRED):
        for row in rows:
            for alike in _list_alike_columns(fit, columns):
                yield from _compose_pairs(values, [Place(row, column) for column in alike], wanted)
        for column in columns:
            yield from _compose_pairs(values, [Place(row, column) for row in rows], wanted)
    if wanted & set(MERGED):
        yield from _compose_merged(fit, values, rows, columns, wanted)
    yield from _compose_picks(fit, values, rows, columns, wanted)
    if "none" in wanted:
        yield Composition("none", (), None)


class _Values(dict[Place, CellValue]):
    def __init__(self, fit: Fit) -> None:
        super().__init__()
        for number, row in enumerate(fit.table.rows):
            for column, cell in enumerate(row.cells):
                if cell is not None and cell.value is not None:
                    self[Place(number, column)] = cell.value


def _choose_rows(fit: Fit) -> list[int]:
    totals = [number for number, row in enumerate(fit.table.rows) if row.is_total]
    return list(dict.fromkeys([*fit.order[:_MOST_ROWS], *totals[-2:]]))


def _choose_columns(fit: Fit) -> list[int]:
    numbered = range(len(fit.columns))
    best = sorted(numbered, key=lambda at: (-fit.columns[at].asked - fit.columns[at].line.score, at))
    return sorted(best[:_MOST_COLUMNS])


def _cross(rows: Sequence[int], columns: Sequence[int]) -> Iterator[Place]:
    return (Place(row, column) for row in rows for column in columns)


def calculate(operation: Operation, numbers: Sequence[float]) -> float | None:
    """The value of an operation; None where it has none."""
    if operation == "sum":
        return sum(numbers)
    if operation == "average":
        return sum(numbers) / len(numbers) if numbers else None
    if operation in PAIRED and len(numbers) == 2:
        first, second = numbers
        if operation == "difference":
            return first - second
        if not second:
            return None
        if operation == "change":
            return 100 * (first - second) / second
        return first / second * (100 if operation == "share" else 1)
    return numbers[0] if operation == "lookup" and numbers else None


def _compose_pairs(values: _Values, places: Sequence[Place], wanted: set[Operation]) -> Iterator[Composition]:
    for pair in permutations([at for at in places if at in values], 2):
        numbers = [values[at].number for at in pair]
        for operation in PAIRED:
            if operation not in wanted:
                continue
            value = calculate(operation, numbers)
            if value is not None:
                yield Composition(operation, pair, value)
            if min(numbers) < 0 and operation in ("difference", "ratio", "share"):
                value = calculate(operation, list(map(abs, numbers)))
                if value is not None:
                    yield Composition(operation, pair, value, is_absolute=True)


def _compose_merged(
    fit: Fit, values: _Values, rows: Sequence[int], columns: Sequence[int], wanted: set[Operation]
) -> Iterator[Composition]:
    groups = list[tuple[Place, ...]]()
    for row in rows:
        groups += (tuple(Place(row, column) for column in group) for group in group_columns(fit, columns))
    for column in columns:
        groups += (tuple(Place(row, column) for row in group) for group in _group_rows(fit, rows))
    for group in group_columns(fit, columns):  # several rows over several columns
        groups += (tuple(_cross(pair, group)) for pair in combinations(rows[:3], 2) if len(group) <= 3)
    for cells in dict.fromkeys(groups):
        places = tuple(at for at in cells if at in values)
        if len(places) < 2 or len(places) > _MOST_MERGED:
            continue
        numbers = [values[at].number for at in places]
        for operation in MERGED:
            if operation in wanted:
                yield Composition(operation, places, calculate(operation, numbers))
                if operation != "list" and min(numbers) < 0:
                    yield Composition(operation, places, calculate(operation, list(map(abs, numbers))), True)


def _list_alike_columns(fit: Fit, columns: Sequence[int]) -> list[list[int]]:
    """Columns that may be held against each other: three months are not held against nine."""
    lengths = {at: max((period.months for period in fit.columns[at].periods), default=0) for at in columns}
    return [[at for at in columns if lengths[at] == length] for length in dict.fromkeys(lengths.values())]


def group_columns(fit: Fit, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """Columns that may be added up: all of one kind, those of the periods that are asked for, and any two or three."""
    groups = _list_whole_groups(fit, columns)
    for kind in dict.fromkeys(fit.columns[at].kind for at in columns):
        alike = tuple(at for at in columns if fit.columns[at].kind == kind)
        if len(alike) <= 6:
            groups += combinations(alike, 2)
            groups += combinations(alike, 3)
    if len(columns) <= 5:
        groups += combinations(columns, 2)
    return [group for group in dict.fromkeys(groups) if len(group) > 1]


def _list_whole_groups(fit: Fit, columns: Sequence[int]) -> list[tuple[int, ...]]:
    """All columns of one kind, those of them that are asked for, and all there are."""
    groups = list[tuple[int, ...]]()
    for kind in dict.fromkeys(fit.columns[at].kind for at in columns):
        alike = tuple(at for at in columns if fit.columns[at].kind == kind)
        groups += [alike, tuple(at for at in alike if fit.columns[at].asked)]
    groups += [tuple(columns), tuple(at for at in columns if fit.columns[at].asked)]
    return [group for group in dict.fromkeys(groups) if len(group) > 1]


def _group_rows(fit: Fit, rows: Sequence[int]) -> list[tuple[int, ...]]:
    """Rows that may be added up: those that are named, all of one group, and any two or three of the best."""
    groups = [*_list_row_groups(fit, rows), *combinations(sorted(rows[:6]), 2), *combinations(sorted(rows[:5]), 3)]
    return list(dict.fromkeys(groups))


def _list_row_groups(fit: Fit, rows: Sequence[int]) -> list[tuple[int, ...]]:
    table = fit.table.rows
    groups = [tuple(sorted(row for row in rows if fit.rows[row].is_whole or fit.rows[row].covered >= 0.8))]
    for heading in dict.fromkeys(row.group for row in table):
        groups.append(tuple(at for at, row in enumerate(table) if row.group == heading and not row.is_total))
    return [group for group in dict.fromkeys(groups) if len(group) > 1]


def _compose_picks(
    fit: Fit, values: _Values, rows: Sequence[int], columns: Sequence[int], wanted: set[Operation]
) -> Iterator[Composition]:
    lines = list[tuple[Place, ...]]()
    whole = _list_whole_groups(fit, columns)
    for row in rows:
        lines += (tuple(Place(row, at) for at in group) for group in whole)
    for column in columns:
        lines += (tuple(Place(row, column) for row in group) for group in _list_row_groups(fit, rows))
    for line in dict.fromkeys(lines):
        places = [at for at in line if at in values]
        if len(places) < 2:
            continue
        ordered = sorted(places, key=lambda at: values[at].number)
        if "highest" in wanted:
            yield Composition("highest", tuple(places), None, picks=(ordered[-1],))
        if "lowest" in wanted:
            yield Composition("lowest", tuple(places), None, picks=(ordered[0],))
        if fit.question.limits:
            yield from _compose_limits(values, places, fit.question.limits[-1], wanted)
        elif "count" in wanted:
            yield Composition("count", tuple(places), float(len(places)), picks=tuple(places))
    if "heads" in wanted and rows:
        for group in whole:
            yield Composition("heads", (), None, picks=tuple(Place(rows[0], at) for at in group))
    if columns and ("heads" in wanted or "count" in wanted):
        for heading in dict.fromkeys(row.group for row in fit.table.rows):
            labels = tuple(
                Place(at, 0) for at, row in enumerate(fit.table.rows) if row.group == heading and not row.is_total
            )
            if len(labels) > 1 and "heads" in wanted:
                yield Composition("heads", (), None, picks=labels)
            if len(labels) > 1 and "count" in wanted:
                yield Composition("count", (), float(len(labels)), picks=labels)


def _compose_limits(
    values: _Values, places: Sequence[Place], limit: float, wanted: set[Operation]
) -> Iterator[Composition]:
    limit = _scale_limit(limit, [abs(values[at].number) for at in places])
    above = tuple(at for at in places if values[at].number > limit)
    below = tuple(at for at in places if values[at].number < limit)
    if "count" in wanted:
        yield Composition("count", tuple(places), float(len(above)), picks=above)
        yield Composition("count", tuple(places), float(len(below)), picks=below)
    if above and "above" in wanted:
        yield Composition("above", tuple(places), None, picks=above)
    if below and "below" in wanted:
        yield Composition("below", tuple(places), None, picks=below)


def _scale_limit(limit: float, numbers: Sequence[float]) -> float:
    """The limit on the scale of the figures: "1.5 million" among thousands is 1,500."""
    least, most = min(numbers) / _FAR, max(numbers) * _FAR
    return next((limit * factor for factor in (1, 1e3, 1e-3, 1e6) if least <= limit * factor <= most), limit)
