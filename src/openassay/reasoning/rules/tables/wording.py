"""What was worked out, in words: the answer, and the calculation with its figures."""

from collections.abc import Sequence

from openassay.reasoning.rules.tables.cells import write_number, write_scaled
from openassay.reasoning.rules.tables.composing import Composition, Place
from openassay.reasoning.rules.tables.matching import Fit


def name_parts(fit: Fit, one: Composition) -> tuple[str, ...]:
    """The pieces of an answer: a figure as its cell has it, the heads or labels that were picked."""
    if one.operation in ("lookup", "list"):
        return tuple(_read_text(fit, at) for at in one.places)
    if one.operation in ("highest", "lowest", "above", "below", "heads"):
        return tuple(_name_pick(fit, one, at) for at in one.picks)
    return () if one.value is None else (write_number(one.value),)


def _read_text(fit: Fit, at: Place) -> str:
    cell = fit.table.rows[at.row].cells[at.column]
    return cell.text if cell else ""


def _name_pick(fit: Fit, one: Composition, at: Place) -> str:
    """A column is called by its year where that tells it from the others, a row by its label."""
    among = one.places or one.picks
    if len({place.column for place in among}) == 1 and len({place.row for place in among}) > 1:
        return fit.table.rows[at.row].label
    years = [fit.columns[place.column].year for place in among]
    if all(years) and len(set(years)) == len(years):
        return str(fit.columns[at.column].year)
    return fit.table.heads[at.column]


def write_answer(fit: Fit, one: Composition, scale: str) -> str:
    """The answer by itself, with its scale."""
    if one.operation in ("lookup", "list"):
        texts = [_add_scale(_read_text(fit, at), scale) for at in one.places]
        return "; ".join(texts)
    if one.picks and one.operation != "count":
        return "; ".join(name_parts(fit, one))
    return "" if one.value is None else write_scaled(one.value, scale)


def _add_scale(text: str, scale: str) -> str:
    if scale == "percent":
        return text if "%" in text else f"{text}%"
    return f"{text} {scale}" if scale and scale not in text else text


def write_calculation(fit: Fit, one: Composition) -> str:
    """The calculation with the figures of its cells: (1,496 − 1,202) / 1,202 = 24.46%."""
    numbers = [_write_operand(fit, at, is_absolute=one.is_absolute) for at in one.places]
    if one.operation == "count":
        return f"{len(one.picks)} of {len(one.places or one.picks)}: {', '.join(_name_all(fit, one))}".rstrip(": ")
    if one.value is None or one.operation in ("lookup", "list"):
        return _write_comparison(fit, one, numbers)
    told = write_number(one.value)
    if one.operation == "difference":
        return f"{numbers[0]} − {_bracket(numbers[1])} = {told}"
    if one.operation == "change":
        return f"({numbers[0]} − {_bracket(numbers[1])}) / {_bracket(numbers[1])} = {told}%"
    if one.operation in ("ratio", "share"):
        return f"{numbers[0]} / {_bracket(numbers[1])} = {told}{'%' if one.operation == 'share' else ''}"
    total = " + ".join([numbers[0], *map(_bracket, numbers[1:])])
    return f"{total} = {told}" if one.operation == "sum" else f"({total}) / {len(numbers)} = {told}"


def _name_all(fit: Fit, one: Composition) -> Sequence[str]:
    return [_name_pick(fit, one, at) for at in one.picks]


def _write_operand(fit: Fit, at: Place, *, is_absolute: bool) -> str:
    cell = fit.table.rows[at.row].cells[at.column]
    if cell is None or cell.value is None:
        return ""
    number = abs(cell.value.number) if is_absolute else cell.value.number
    exact = f"{number:,.10f}".rstrip("0").rstrip(".").replace("-", "−")
    return f"{exact}%" if cell.value.is_percent else exact


def _bracket(number: str) -> str:
    return f"({number})" if number.startswith("−") else number


def _write_comparison(fit: Fit, one: Composition, numbers: Sequence[str]) -> str:
    """What was compared, for a pick; nothing for what only was read."""
    if one.operation not in ("highest", "lowest", "above", "below"):
        return ""
    names = [_name_pick(fit, one, at) for at in one.places]
    return "; ".join(f"{name}: {number}" for name, number in zip(names, numbers, strict=True))
