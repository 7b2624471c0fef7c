"""Table rows as lines that stand alone as evidence: `Header: cell; Header: cell`."""

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"[-+$€£(]*\d[\d.,]*[)%]*")


def sentences(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """One line per body row; a table without a header row keeps its cells joined by ` | `."""
    if not any(header):
        return [" | ".join(row) for row in rows if any(row)]
    if not rows:
        return [" | ".join(header)]
    return [line for row in rows if (line := sentence(header, row))]


def sentence(header: Sequence[str], row: Sequence[str]) -> str:
    names = [*header, *[""] * (len(row) - len(header))]
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell)


def is_header(row: Sequence[str]) -> bool:
    """Whether a first row names its columns: filled, distinct and not figures."""
    named = [cell for cell in row if cell]
    return (
        len(named) >= max(1, len(row) - 1)
        and len(set(named)) == len(named)
        and not any(_NUMBER.fullmatch(cell) for cell in named)
    )
