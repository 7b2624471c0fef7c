"""Answer a question from tables and the paragraphs around them, by calculation and without a language model."""

from collections.abc import Sequence
from typing import NamedTuple

from openassay.reasoning.rules.tables.composing import Composition, Operation, Place, compose
from openassay.reasoning.rules.tables.grid import Table
from openassay.reasoning.rules.tables.matching import Fit, Question, fit_table, match_row
from openassay.reasoning.rules.tables.model import TableModel, count_known, load_model
from openassay.reasoning.rules.tables.periods import find_periods
from openassay.reasoning.rules.tables.scales import find_cell_scale, find_scale
from openassay.reasoning.rules.tables.spans import find_span
from openassay.reasoning.rules.tables.wording import name_parts, write_answer, write_calculation

SURE = 0.55  # of answers that are at least so likely, more than four in five are right
_MOST_TABLES = 4  # that are calculated over, of those that know most of the question
_AMOUNT_CONFIDENCE, _SPAN_CONFIDENCE = 0.5, 0.08  # times what its sentence covers: so many are right to the word


class Operand(NamedTuple):
    """A cell that went into an answer. `start` is its place in the text the table was read from, -1 where there is
    none; `source` the name of that text; `scale` that of its figure."""

    table: str
    row: str
    column: str
    text: str
    value: float
    start: int = -1
    source: str = ""
    scale: str = ""


class TableAnswer(NamedTuple):
    """`value` is None for words; `parts` are the pieces of a list. `confidence` is how often such an answer is
    right."""

    text: str
    value: float | None
    scale: str
    calculation: str
    operands: tuple[Operand, ...]
    confidence: float
    parts: tuple[str, ...] = ()
    operation: Operation = "none"
    is_absolute: bool = False


class Choice(NamedTuple):
    fit: Fit
    best: Composition
    confidence: float


def answer_from_tables(question: str, tables: Sequence[Table], paragraphs: Sequence[str]) -> TableAnswer | None:
    """The best answer; None where the tables and paragraphs know nothing of what is asked."""
    return answer_parsed(Question.parse(question), tables, paragraphs)


def answer_parsed(question: Question, tables: Sequence[Table], paragraphs: Sequence[str]) -> TableAnswer | None:
    """The best answer to a question that was read."""
    model = load_model()
    if not question.stems:
        return None
    fits = [fit_table(question, table, model.weigh) for table in tables if table.rows and table.heads]
    fits.sort(key=lambda fit: -_rate_table(fit, model))
    choices = [choose_composition(fit, model) for fit in fits[:_MOST_TABLES]]
    found = max((one for one in choices if one is not None), key=lambda one: one.confidence, default=None)
    span = find_span(question, paragraphs, model.weigh)
    confidence = (_AMOUNT_CONFIDENCE if span.is_amount else _SPAN_CONFIDENCE) * span.covers if span else 0.0
    if found is not None and found.confidence >= confidence:
        return _write(found, paragraphs)
    if span is None:
        return None
    return TableAnswer(span.text, None, "", "", (), confidence, (span.text,))


def _rate_table(fit: Fit, model: TableModel) -> float:
    """How much a table promises: its best row, how much it knows, and whether it has the period."""
    best = fit.rows[fit.order[0]].score
    return best + 0.3 * count_known(fit, model) + 0.2 * max(match.asked for match in fit.columns)


def choose_composition(fit: Fit, model: TableModel) -> Choice | None:
    """The likeliest composition over one table; None where nothing can be worked out."""
    chances = model.guess_operations(fit.question, model.list_label_words(fit.table))
    possible = list(compose(fit, model.choose_operations(chances)))
    rated = model.rate(fit, possible, chances)
    if len(possible) < 2:
        return None
    number, chance = merge_chances(rated, possible)
    return Choice(fit, possible[number], model.calibrate(chance, count_known(fit, model)))


def merge_chances(rated: Sequence[float], possible: Sequence[Composition]) -> tuple[int, float]:
    """The best composition that says something, and how likely its outcome is: of all that come to the same."""
    told = [at for at, one in enumerate(possible) if one.operation != "none"]
    best = max(told, key=lambda at: rated[at])
    outcome = _find_outcome(possible[best])
    return best, sum(rated[at] for at in told if _find_outcome(possible[at]) == outcome)


def _find_outcome(one: Composition) -> object:
    """What a composition comes to: two that come to the same give one answer."""
    if one.operation == "list":
        return frozenset(one.places)
    return one.picks if one.value is None else one.value


def _write(found: Choice, paragraphs: Sequence[str]) -> TableAnswer:
    fit, one = found.fit, found.best
    scale = find_scale(fit.table, one, paragraphs)
    operands = [bind_cell(fit.table, at, paragraphs) for at in one.places or one.picks]
    return TableAnswer(
        text=write_answer(fit, one, scale),
        value=one.value,
        scale=scale,
        calculation=write_calculation(fit, one),
        operands=tuple(operand for operand in operands if operand is not None),
        confidence=found.confidence,
        parts=name_parts(fit, one),
        operation=one.operation,
        is_absolute=one.is_absolute,
    )


def bind_cell(table: Table, at: Place, paragraphs: Sequence[str] = (), source: str = "") -> Operand | None:
    """A cell with what stands around it; None where it has no figure."""
    row = table.rows[at.row]
    cell = row.cells[at.column]
    if cell is None or cell.value is None:
        return None
    scale = find_cell_scale(table, at, paragraphs)
    head = table.heads[at.column]
    return Operand(table.caption, row.name, head, cell.text, cell.value.number, cell.start, source, scale)


class RankedRow(NamedTuple):
    table: Table
    row: int
    score: float


def rank_rows(question: str, tables: Sequence[Table], paragraphs: Sequence[str] = ()) -> list[RankedRow]:
    """All rows, best first: by their labels, the heads over them, and what the paragraphs say of their table."""
    model, parsed = load_model(), Question.parse(question)
    around = Question.parse(" ".join(paragraphs)).stems & parsed.stems
    total = sum(map(model.weigh, parsed.stems)) or 1.0
    found = list[RankedRow]()
    for table in tables:
        fit = fit_table(parsed, table, model.weigh)
        heads = frozenset().union(around, *(match.line.stems for match in fit.columns))
        told = heads | (parsed.stems & Question.parse(table.caption).stems)
        dated = max((match.asked for match in fit.columns), default=0.0)
        over = sum(map(model.weigh, told)) / total
        found += (RankedRow(table, at, match.score + 0.2 * over + 0.1 * dated) for at, match in enumerate(fit.rows))
    return sorted(found, key=lambda one: -one.score)


class SeriesPoint(NamedTuple):
    period: str
    value: float
    cell: Operand | None = None


class Series(NamedTuple):
    """A row over its periods, in the order of time. `confidence`: how often such a row is the one that is asked for."""

    label: str
    points: tuple[SeriesPoint, ...]
    confidence: float = 0.0


def read_series(question: str, tables: Sequence[Table]) -> Series | None:
    """How what is asked about developed: its row over all periods of its table; None where no row is asked about."""
    model, parsed = load_model(), Question.parse(question)
    for ranked in rank_rows(question, tables):
        table, row = ranked.table, ranked.table.rows[ranked.row]
        if not match_row(parsed, row, model.weigh).stems:
            continue
        points = [
            (periods[-1], SeriesPoint(head, cell.value.number))
            for head, cell in zip(table.heads, row.cells, strict=True)
            if cell is not None and cell.value is not None and (periods := find_periods(head))
        ]
        if len(points) > 1:
            return Series(row.name, tuple(point for _, point in sorted(points, key=lambda one: one[0][:4])))
    return None
