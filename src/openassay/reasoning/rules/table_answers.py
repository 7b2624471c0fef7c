"""Answers from tables in a run: the rows of what is calculated become quotes, each of their cells a statement, and the
answer is told with its calculation over these statements."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from openassay.models.evidence import Claim, Passage, Verdict
from openassay.models.report import DerivedFigure, TableCell
from openassay.models.report import Operation as FigureOperation
from openassay.protocols import Embedder
from openassay.reasoning.base import Draft, DraftAnswer, DraftSection, DraftSentence, Quote
from openassay.reasoning.rules.read import find_synonyms
from openassay.reasoning.rules.tables import (
    SURE,
    Operand,
    Source,
    WrittenCell,
    answer_from_sources,
    asks_for_latest,
    read_cell,
    read_cells,
)
from openassay.reasoning.rules.tables.cells import parse_cell, write_number, write_scaled
from openassay.reasoning.rules.tables.composing import Operation, calculate
from openassay.reasoning.rules.tables.matching import Question
from openassay.reasoning.rules.tables.model import load_model
from openassay.reasoning.rules.tables.periods import find_years
from openassay.text.answer_reader import AnswerReader, PassageText
from openassay.text.sentences import is_table_row

MOST_CELLS = 12  # of a calculation that is told: each is a statement, and is verified
# Of a row of reports that is told beside prose: of 58 even questions over quarterly reports, rows below it are mostly
# about something else, rows above it seldom.
LEAST_TOLD = 0.35
# Of a row over several quarters that is the answer itself: of these questions 4 of 4 are right, 4 of 6 from .75 on.
SURE_OF_COURSE = 0.85
MOST_BESIDE = 3  # other quotes, where the tables answer
_ROW = re.compile(r"^[^\n]*: [^\n]*\d[^\n]*; ", re.MULTILINE)
_PICKED: tuple[Operation, ...] = ("highest", "lowest", "above", "below", "heads")
_LATEST = "Of the documents that were read the newest is taken; the figure names its date."


class FoundAnswer(NamedTuple):
    """What the tables answer. `cells` are those it is calculated of, `value` is None for one that names or lists. A row
    over several periods is a series."""

    operation: Operation
    cells: tuple[Operand, ...]
    value: float | None
    scale: str
    parts: tuple[str, ...]
    confidence: float
    is_absolute: bool = False
    is_row: bool = False  # of reports, each for its own quarter; the first row is what was asked for
    is_series: bool = False
    is_latest: bool = False


def find_table_answer(
    question: str, texts: Mapping[str, str], titles: Mapping[str, str], embedder: Embedder
) -> FoundAnswer | None:
    """The answer from the tables of some documents, by hash; None where none is sure enough to be told."""
    sources = [_read_source(name, titles.get(name, ""), text) for name, text in texts.items() if _ROW.search(text)]
    sources = [one for one in sources if one.tables]
    if not sources:
        return None
    found = answer_from_sources(question, sources, find_synonyms, embedder.embed)
    latest = asks_for_latest(question)
    answer, rows = found.answer, [row for row in found.rows if row.confidence >= LEAST_TOLD]
    least = max([SURE, *(row.confidence for row in rows)])
    if answer is not None and answer.confidence >= least and 0 < len(answer.operands) <= MOST_CELLS:
        return FoundAnswer(
            answer.operation,
            answer.operands,
            answer.value,
            answer.scale,
            answer.parts,
            answer.confidence,
            answer.is_absolute,
            is_latest=latest,
        )
    cells = tuple(point.cell for row in rows for point in row.points if point.cell is not None)
    if not cells or len(cells) > MOST_CELLS:
        return None
    is_series = len(rows[0].points) > 1
    confidence = rows[0].confidence
    return FoundAnswer("list", cells, None, "", (), confidence, is_row=True, is_series=is_series, is_latest=latest)


@lru_cache(maxsize=32)
def _read_source(name: str, title: str, text: str) -> Source:
    """A document's tables, which a run asks for when it reads and when it writes."""
    return Source.read(name, title, text)


# Reading: each row of the answer is a quote of the highest relevance, and tells which of its figures answer.


def add_row_quotes(
    found: FoundAnswer | None, texts: Mapping[str, str], quotes: Sequence[Quote], passages: Sequence[Passage]
) -> list[Quote]:
    """The rows that an answer is calculated of, before a few other quotes of the same documents; before all of them
    where the answer is less sure, and these alone where there is none."""
    if found is None:
        return list(quotes)
    rows = dict[tuple[str, str], list[str]]()
    for cell in found.cells:
        line, at = _find_line(texts[cell.source], cell.start)
        written = read_cell(line, at)
        if written is None:
            return list(quotes)
        rows.setdefault((cell.source, line), []).append(_join_cell(written))
    own = {name for name, _ in rows}
    plain = (quote for quote in quotes if not is_table_row(quote.text))
    is_sure = found.confidence >= SURE
    beside = [quote for quote in plain if not is_sure or passages[quote.passage].document in own]
    most = MOST_BESIDE if is_sure else len(beside)
    return [
        *(Quote(text=line, relevance=1.0, document=name, cells=tuple(cells)) for (name, line), cells in rows.items()),
        *beside[:most],
    ]


def _find_line(text: str, place: int) -> tuple[str, int]:
    """The line around a place, and where in the line that is."""
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", place)
    return text[start : end if end >= 0 else len(text)], place - start


def _join_cell(cell: WrittenCell) -> str:
    return f"{cell.head}: {cell.text}" if cell.head else cell.text


def tell_cells(row: str, cells: Sequence[str]) -> list[str]:
    """State the cells of a row, each by itself: "Net sales of Apple Inc., Three Months Ended July 1, 2023: 81,797
    million."."""
    told = list[str]()
    for cell in cells:
        at = row.find(f"; {cell}")
        at = at + 2 if at >= 0 else row.find(cell)
        written = read_cell(row, at + len(cell) - len(cell.rpartition(": ")[2])) if at >= 0 else None
        if written is not None:
            told.append(tell_cell(written))
    return told


def tell_cell(cell: WrittenCell) -> str:
    """State a figure with what its row says of it."""
    return f"{', '.join(part for part in (_name_row(cell), cell.head) if part)}: {write_figure(cell)}."


def write_figure(cell: WrittenCell) -> str:
    return f"{cell.text} {cell.scale}" if cell.scale not in ("", "percent") else cell.text


def _name_row(cell: WrittenCell) -> str:
    if cell.company:
        return f"{cell.label} of {cell.company}"
    return f"{cell.label} ({cell.caption})" if cell.caption and cell.label else cell.label or cell.caption


def is_cell_borne_out(statement: str, passage: str) -> bool | None:
    """Whether the rows of a passage have the figure that a statement of a cell gives; None where it states none of
    their cells. A model does not tell this row's figures from each other."""
    said, colon, _ = statement.rpartition(": ")
    told = set[str]()
    for line in passage.split("\n") if colon else ():
        told |= {one for one in _tell_row(line) if one.rpartition(": ")[0] == said}
    return statement in told if told else None


@lru_cache(maxsize=512)
def _tell_row(line: str) -> tuple[str, ...]:
    return tuple(map(tell_cell, read_cells(line)))


def are_other_cells(claims: Sequence[Claim]) -> bool:
    """Whether claims state figures of different cells, which both hold however alike they are told."""
    in_rows = all(claim.spans and all(is_table_row(span.quote) for span in claim.spans) for claim in claims)
    return in_rows and len({claim.text.rpartition(": ")[0] for claim in claims}) > 1


def is_to_be_calculated(question: str) -> bool:
    """Whether no words of a text can answer a question over tables: it asks for something to be worked out."""
    return load_model().asks_to_calculate(Question.parse(question))


def is_from_row(answer: DraftAnswer, claims: Sequence[Claim]) -> bool:
    """Whether an answer is a figure out of the row of a table, which somebody took who reads prose."""
    spans = [span for claim in claims if claim.id in answer.claims for span in claim.spans]
    return parse_cell(answer.text) is not None and bool(spans) and all(is_table_row(span.quote) for span in spans)


# Writing: the answer and its calculation, over the statements that were verified.


class BoundCell(NamedTuple):
    operand: Operand
    written: WrittenCell
    claim: Claim


def bind_cells(found: FoundAnswer, claims: Sequence[Claim], texts: Mapping[str, str]) -> list[BoundCell]:
    """Each cell with the supported claim that states it; nothing where one has none."""
    usable = [claim for claim in claims if claim.verdict is Verdict.SUPPORTED]
    bound = list[BoundCell]()
    for cell in found.cells:
        line, at = _find_line(texts.get(cell.source, ""), cell.start)
        written = read_cell(line, at)
        told = tell_cell(written) if written else ""
        claim = next((one for one in usable if one.text == told and _rests_on(one, cell)), None)
        if written is None or claim is None:
            return []
        bound.append(BoundCell(cell, written, claim))
    return bound


def _rests_on(claim: Claim, cell: Operand) -> bool:
    return any(span.document == cell.source and span.start <= cell.start < span.end for span in claim.spans)


def asks_for_row(question: str, found: FoundAnswer, bound: Sequence[BoundCell], reader: AnswerReader) -> bool:
    """Whether the cells of a row are the answer itself, and not only what that rests on. Of a single figure the reader
    says so; which quarter it is of is not left to it."""
    if len({one.written.label for one in bound}) > 1:  # it may as well be another row
        return False
    if found.is_series:
        return found.confidence >= SURE_OF_COURSE
    written = bound[0].written
    head, figure = f"{_name_row(written)} in the quarter: ", write_figure(written)
    [reading] = reader.read(question, [PassageText(f"{head}{figure}.")])
    return found.confidence >= SURE and reading.weigh(len(head), len(head) + len(figure)) > 0


def write_table_answer(draft: Draft, found: FoundAnswer, bound: Sequence[BoundCell], *, is_told: bool) -> Draft:
    """A draft that begins with what the tables answer. `is_told`: the answer lines too."""
    sentence = _tell_calculation(found, bound)
    facts = _tell_facts(bound, in_table=len(bound) > 1)
    frames = (DraftSentence(text=_LATEST, opens=True),) if found.is_latest else ()
    opening = (sentence,) if sentence else ()
    first, *others = draft.sections or (DraftSection(title="Answer"),)
    body = next((section for section in (first, *others) if section.role == "body"), None)
    if body is None:
        body = DraftSection(title="Answer")
        others = [first, *others]
        first = body
    sections = []
    for section in (first, *others):
        if section.role == "not_found":  # the rest of the claims had nothing for it
            left = tuple(one for one in section.sentences if f"“{body.title}”" not in one.text)
            section = section.model_copy(update={"sentences": left})
            if not left:
                continue
        before = (*(opening if section is first else ()), *((*facts, *frames) if section is body else ()))
        rest = section.sentences
        if before and rest and section is body:
            rest = (rest[0].model_copy(update={"opens": True}), *rest[1:])
        sections.append(section.model_copy(update={"sentences": (*before, *rest)}))
    answers = tuple(_list_answers(found, bound)) if is_told else ()
    return draft.model_copy(update={"sections": tuple(sections), "answers": answers})


def _tell_facts(bound: Sequence[BoundCell], *, in_table: bool) -> tuple[DraftSentence, ...]:
    """The cells as a table, a row to a period; one cell is a sentence."""
    told = dict[str, DraftSentence]()
    for _, cell, claim in bound:
        place = TableCell(row=cell.head or cell.label, column=cell.label, text=write_figure(cell)) if in_table else None
        told.setdefault(claim.id, DraftSentence(text=claim.text, claims=(claim.id,), cell=place))
    return tuple(told.values())


def _list_answers(found: FoundAnswer, bound: Sequence[BoundCell]) -> Iterator[DraftAnswer]:
    """The answer in a line, or one for each thing that is listed."""
    ids = tuple(dict.fromkeys(one.claim.id for one in bound))
    documents = tuple(dict.fromkeys(one.operand.source for one in bound))
    if found.operation in ("lookup", "list"):
        for one in reversed(bound) if found.is_series else bound:  # the newest first
            yield DraftAnswer(text=write_figure(one.written), claims=(one.claim.id,), documents=(one.operand.source,))
    elif found.operation in _PICKED:
        for part in found.parts:
            own = [
                one.claim.id
                for one in bound
                if part in (one.written.label, one.written.head) or part in one.written.head
            ]
            if own:
                yield DraftAnswer(text=part, claims=(own[0],), documents=documents)
    elif found.value is not None and (figure := _derive(found, bound, is_answer=True)):
        text = write_scaled(found.value, found.scale)
        yield DraftAnswer(text=text, claims=ids, derived=(figure,), documents=documents)


_FIGURES: dict[Operation, FigureOperation] = {
    "difference": "difference", "change": "percent_change", "ratio": "ratio", "share": "share", "sum": "sum",
}  # fmt: skip


def _derive(found: FoundAnswer, bound: Sequence[BoundCell], *, is_answer: bool) -> DerivedFigure | None:
    """How the figure comes about, as it is computed again; of an average its sum, where no answer line tells it."""
    numbers = [abs(one.operand.value) if found.is_absolute else one.operand.value for one in bound]
    value, operation = found.value, found.operation
    if value is None:
        return None
    if operation == "count":
        names = tuple(one.claim.id for one in bound)
        return DerivedFigure(value=value, operation="count", operands=names) if len(set(names)) == value else None
    if operation == "average":
        if is_answer:
            return DerivedFigure(value=_round(value), operation="average", operands=tuple(numbers))
        operation, value = "sum", calculate("sum", numbers) or 0.0
    if operation not in _FIGURES:
        return None
    operands = tuple(reversed(numbers)) if operation == "change" else tuple(numbers)
    return DerivedFigure(value=_round(value), operation=_FIGURES[operation], operands=operands)


def _round(value: float) -> float:
    """As it is told."""
    return float(write_number(value).replace(",", "").replace("−", "-"))


def _tell_calculation(found: FoundAnswer, bound: Sequence[BoundCell]) -> DraftSentence | None:
    """One sentence with the figure and how it comes about; None where nothing is calculated."""
    ids = tuple(dict.fromkeys(one.claim.id for one in bound))
    if len(ids) < 2:
        return None
    if found.is_series:
        return _tell_course([one for one in bound if one.written.label == bound[0].written.label])
    figure = _derive(found, bound, is_answer=False)
    if figure is None or figure.operation == "count":
        return None
    numbers = [_write_exact(abs(one.operand.value) if found.is_absolute else one.operand.value) for one in bound]
    scale = found.scale if found.operation not in ("ratio", "share", "change") else ""
    value = write_scaled(figure.value, "percent" if found.operation in ("share", "change") else scale)
    names, heads = [one.written.label for one in bound], [one.written.head for one in bound]
    one_row, company = len(set(names)) == 1, _name_company(bound)
    first, second = numbers[0], _bracket(numbers[1])
    row = f"{names[0]}{company}"
    match found.operation:
        case "change" | "difference" if one_row:
            how = f"({first} − {second}) / {second}" if found.operation == "change" else f"{first} − {second}"
            verb = "changed" if find_years(heads[0]) != find_years(heads[1]) else "differs"
            text = f"{row} {verb} by {value} between {heads[1]} and {heads[0]}: {how}."
        case "difference":
            text = f"{names[0]} less {names[1]}{company} comes to {value}{_tell_when(heads)}: {first} − {second}."
        case "change":
            when = f"{_tell_when(heads)}: ({first} − {second}) / {second}"
            text = f"{names[0]} differs from {names[1]}{company} by {value}{when}."
        case "ratio" | "share":
            part, whole = (heads[0], heads[1]) if one_row else (names[0], names[1])
            when = f" of {row}" if one_row else f"{company}{_tell_when(heads)}"
            noun = "share" if found.operation == "share" else "ratio"
            joint = "in" if noun == "share" else "to"
            text = f"The {noun} of {part} {joint} {whole}{when} is {value}: {first} / {second}."
        case _:
            what = (
                f"{row} over {_join_names(heads)}" if one_row else f"{_join_names(names)}{company}{_tell_when(heads)}"
            )
            how = " + ".join([first, *map(_bracket, numbers[1:])])
            text = f"Together, {what} comes to {value}: {how}."
    return DraftSentence(text=text, claims=ids, kind="synthesis", derived=(figure,))


def _tell_course(bound: Sequence[BoundCell]) -> DraftSentence | None:
    """How a row went from its first period to its last."""
    first, last = bound[0], bound[-1]
    old, new = first.operand.value, last.operand.value
    value = calculate("difference" if first.written.text.endswith("%") else "change", [new, old])
    several = len({one.written.company for one in bound}) > 1  # that one has more than another is no change
    if value is None or several or first.claim.id == last.claim.id or old < 0 or new < 0:
        return None
    is_rate = first.written.text.endswith("%")
    operation: FigureOperation = "difference" if is_rate else "percent_change"
    figure = DerivedFigure(value=_round(value), operation=operation, operands=(new, old) if is_rate else (old, new))
    change = f"{write_number(value)} points" if is_rate else f"{write_number(value)}%"
    text = (
        f"{first.written.label}{_name_company(bound)} went from {write_figure(first.written)} "
        f"({first.written.head}) to {write_figure(last.written)} ({last.written.head}), a change of {change}."
    )
    return DraftSentence(text=text, claims=(first.claim.id, last.claim.id), kind="synthesis", derived=(figure,))


def _name_company(bound: Sequence[BoundCell]) -> str:
    names = {one.written.company for one in bound}
    return f" of {names.pop()}" if len(names) == 1 and "" not in names else ""


def _tell_when(heads: Sequence[str]) -> str:
    return f" in {heads[0]}" if len(set(heads)) == 1 and heads[0] else ""


def _join_names(names: Sequence[str]) -> str:
    *most, last = dict.fromkeys(names)
    return f"{', '.join(most)} and {last}" if most else last


def _write_exact(number: float) -> str:
    return f"{number:,.10f}".rstrip("0").rstrip(".").replace("-", "−")


def _bracket(number: str) -> str:
    return f"({number})" if number.startswith("−") else number
