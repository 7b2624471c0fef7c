"""The scale of a table's figures: thousands, millions, per cent, as heads, labels, notes and paragraphs state it."""

import re
from collections.abc import Sequence

from openassay.reasoning.rules.tables.composing import Composition, Place
from openassay.reasoning.rules.tables.grid import Table

_STATED = {
    "thousand": re.compile(
        r"\bin\s*thousands?\b|\bthousands of\b|['’‘´`]\s?0{3}s?\b|[$€£¥]\s?0{3}s?\b|\b0{3}['’]?s\b|[$€£¥]k\b|"
        r"^\(?(?:[a-z$€£¥.]+ )?thousands?\)?$|\bin k[€$£]",
        re.I | re.M,
    ),
    "million": re.compile(
        r"\bin\s*millions?\b|\bmillions of\b|[$€£¥]\s?(?:m|mn|mm|millions?)\b|\b(?:m|mn|mm|millions?)\s?[$€£¥]|"
        r"\b(?:RMB|USD|EUR|GBP|CHF|RM|Rs)['’\s]*(?:millions?|m)\b|"
        r"^\(?(?:[a-z$€£¥.]+ )?millions?\)?$|\b[€$£¥] ?in m\b",
        re.I | re.M,
    ),
    "billion": re.compile(r"\bin\s*billions?\b|\bbillions of\b|[$€£¥]\s?(?:bn|billions?)\b", re.I),
}  # fmt: skip
_PERCENT = re.compile(r"%|\bper ?cent", re.I)
_UNSCALED = re.compile(
    r"\bper\b(?! ?cent)|\bnumber of\b|\bheadcount\b|\bemployees\b|\bEPS\b|\bbasis points\b|\bratio\b|"
    r"\b(?:years|months|days)\)|"
    r"\bweighted[- ]average (?:exercise|grant|remaining)|\b(?:exercise|share|stock) prices?\b|\bterm\b|\blife\b|"
    r"\btimes\b",
    re.I,
)
_SHARES = re.compile(r"\bshares?\b", re.I)
_EXCEPT_SHARES = re.compile(r"\bexcept\b[^()]*\bshares?\b(?! and)", re.I)


def find_stated_scale(text: str) -> str:
    """The first scale that a text states; nothing where it states none."""
    found = [(match.start(), name) for name, pattern in _STATED.items() if (match := pattern.search(text))]
    return min(found)[1] if found else ""


def find_cell_scale(table: Table, place: Place, paragraphs: Sequence[str] = ()) -> str:
    """The scale of one figure: what its cell or its row says, its column, the table, and last what stands around it."""
    row = table.rows[place.row]
    cell = row.cells[place.column]
    head = table.heads[place.column] if place.column < len(table.heads) else ""
    if cell is not None and cell.value is not None:
        if cell.value.is_percent:
            return "percent"
        if cell.value.scale:
            return cell.value.scale
    label = f"{row.group} {row.label}"
    if row.unit is not None:
        return find_stated_scale(row.unit)
    own = find_stated_scale(row.label) or find_stated_scale(head)
    if own:
        return own
    if "%" in row.label or (_PERCENT.search(head) and not all(map(_PERCENT.search, table.heads))):
        return "percent"
    around = " \n".join([*table.notes, table.corner, table.caption])
    stated = find_stated_scale(around)
    if not stated:
        around = next((text for text in paragraphs if find_stated_scale(text)), "")
        stated = find_stated_scale(around)
    if not stated or _UNSCALED.search(f"{label} {head}"):
        return ""
    if _SHARES.search(row.label) and _EXCEPT_SHARES.search(around):
        return ""
    return stated


def find_scale(table: Table, composition: Composition, paragraphs: Sequence[str] = ()) -> str:
    """The scale of what is worked out."""
    if composition.operation in ("change", "share"):
        return "percent"
    if composition.operation not in ("lookup", "list", "difference", "sum", "average"):
        return ""
    return find_cell_scale(table, composition.places[0], paragraphs)
