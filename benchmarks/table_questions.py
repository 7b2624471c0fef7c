"""Questions over tables with their answers, and whether an answer is right.

The set is TAT-QA (CC BY 4.0): tables of annual reports, the paragraphs around them, and questions. Its tables are in
halves by their place in the file: even ones were looked at and learned from, odd ones only measured on.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from openassay.reasoning.rules.tables.cells import SCALES, parse_cell
from openassay.reasoning.rules.tables.composing import Operation
from openassay.reasoning.rules.tables.grid import Table

TOLERANCE = 0.005  # of the figure
_SCALE_WORD = re.compile(r"\b(thousand|million|billion|percent)s?\b")


class AskedQuestion(NamedTuple):
    text: str
    answer: tuple[str, ...]
    kind: str  # span, multi-span, count or arithmetic
    scale: str
    derivation: str
    origin: str  # table, text or table-text


class AskedTable(NamedTuple):
    """A table with the paragraphs around it, and what was asked of both."""

    cells: Sequence[Sequence[str]]
    paragraphs: Sequence[str]
    questions: Sequence[AskedQuestion]

    @property
    def table(self) -> Table:
        return Table.from_cells(self.cells)


def load_tables(file: Path) -> list[AskedTable]:
    """All tables of a file of the set."""
    return [_read_item(item) for item in json.loads(file.read_text(encoding="utf-8"))]


def _read_item(item: dict[str, Any]) -> AskedTable:
    ordered = sorted(item["paragraphs"], key=lambda one: one["order"])
    questions = [
        AskedQuestion(
            asked["question"],
            tuple(map(str, asked["answer"] if isinstance(asked["answer"], list) else [asked["answer"]])),
            asked["answer_type"],
            asked["scale"],
            asked["derivation"],
            asked["answer_from"],
        )
        for asked in item["questions"]
    ]
    return AskedTable(item["table"]["table"], [one["text"] for one in ordered], questions)


def are_parts_right(asked: AskedQuestion, parts: Sequence[str], scale: str) -> bool:
    """Whether pieces of an answer are those that were wanted, in any order; figures by what they come to."""
    left = list(parts)
    for wanted in asked.answer:
        same = next((part for part in left if is_part_right(wanted, asked.scale, part, scale)), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def is_part_right(wanted: str, wanted_scale: str, given: str, given_scale: str) -> bool:
    """Whether two pieces say the same: the same words, or the same figure on the same scale."""
    if _plain(wanted) == _plain(given) and wanted_scale == given_scale:
        return True
    first, second = _read_amount(wanted, wanted_scale), _read_amount(given, given_scale)
    if first is None or second is None:
        return _plain(wanted) == _plain(given) != ""
    return is_close(first, second)


def is_close(wanted: float, given: float) -> bool:
    return abs(wanted - given) <= TOLERANCE * abs(wanted) + 1e-9


def is_value_right(wanted: str, value: float) -> bool:
    """Whether a figure is the wanted one, on whatever scale: within the tolerance, or equal when it is rounded so."""
    number = float(wanted)
    decimals = len(wanted.split(".")[1]) if "." in wanted else 0
    return is_close(number, value) or abs(round(value, decimals) - number) < 1e-9


def _read_amount(text: str, scale: str) -> float | None:
    """The figure of a piece with its scale; what the text names goes before what it comes with."""
    named = _SCALE_WORD.search(text.lower())
    found = parse_cell(_SCALE_WORD.sub("", text.lower()).replace("approximately", "").strip())
    if found is None:
        return None
    own = named[1] if named else "percent" if found.is_percent else scale
    return found.number * SCALES.get(own, 1.0)


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[^\w%.\-]+", " ", text.casefold()).split()).strip(". ")


def read_operations(asked: AskedQuestion) -> set[Operation]:
    """The operations that a derivation may be; none where it is of another kind."""
    if asked.kind == "arithmetic":
        return _read_arithmetic(asked)
    if asked.kind == "count":
        return {"count"}
    numeric = all(parse_cell(piece) for piece in asked.answer)
    if asked.origin == "text":
        return {"none"}
    if numeric:
        return {"lookup"} if len(asked.answer) == 1 else {"list"}
    return {"highest", "lowest", "above", "below", "heads", "lookup"}


def _read_arithmetic(asked: AskedQuestion) -> set[Operation]:
    years = re.sub(r"\(((?:19|20)\d\d)-((?:19|20)\d\d)\+1\)", _count_years, asked.derivation)
    plain = re.sub(r"\((-?[\d,.]+)\)|[$€£%\s]|million|thousand|billion", r"\1", years)
    plain = re.sub(r"(?<![\d)])-(?=[\d(])", "", plain)
    sums, minus, over = plain.count("+"), len(re.findall(r"-", plain)), plain.count("/")
    if minus and over:
        return {"change"} if over == 1 and not sums else {"none"}
    if minus:
        return {"difference"} if minus == 1 and not sums else {"none"}
    if sums and re.search(rf"/{sums + 1}(?![\d.,])", plain):
        return {"average"}
    if over == 1 and not sums:
        return {"share" if asked.scale == "percent" else "ratio"}
    return {"sum"} if sums and not over and "*" not in plain else {"none"}


def _count_years(match: re.Match[str]) -> str:
    """(2019-2017+1) is how many years there are."""
    return str(int(match[1]) - int(match[2]) + 1)
