"""Reads the text of a report as a capable model writes it: paragraphs, lists, tables and timelines in Markdown, with
the numbers of claims in square brackets behind each sentence.

`[3, 8]` stands behind what these claims say, `[=3, 8]` behind what follows from them together, and
`[=3, 8: 7.7 = difference(190.1, 182.4)]` says how a figure comes about that stands in no claim. `[D4]` stands behind
what the passage of a document says and no claim does.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple, Protocol, cast, get_args

from openassay.models.evidence import Claim
from openassay.models.report import DerivedFigure, Operation, TableCell
from openassay.reasoning.base import DraftSentence
from openassay.text.quantities import find_quantities
from openassay.text.sentences import split_sentences

MAX_CLAIMS = 10  # that a sentence names
MAX_DOCUMENTS = 6  # whose passages it says
MAX_COLUMNS = 6  # of a table, beside the one that names its rows
MAX_LABEL, MAX_CELL = 10, 40  # words of the name of a row or column or of a paragraph, and of a cell
MAX_ENTRY = 60  # words of an entry of a timeline
MAX_ROWS_NAME = 3  # words for what the rows of a table are
MAX_QUOTATION = 500  # characters with a quotation in them that may have several sentences
MIN_ENTRIES = 3  # lines that make a timeline

_NUMBER = r"[CD]?\d{1,4}(?:\s*[-–]\s*[CD]?\d{1,4})?"
MARK = re.compile(rf"\[\s*(=?)\s*({_NUMBER}(?:\s*[,;]\s*{_NUMBER})*)\s*(?::\s*([^\]\[]*))?\]")
_FIRST_TOKEN, _LAST_TOKEN = 0xE000, 0xF8FF  # characters for private use, which stand for marks while text is split
_TOKENS = f"[{chr(_FIRST_TOKEN)}-{chr(_LAST_TOKEN)}]"
_TOKEN = re.compile(_TOKENS)
_AFTER_END = re.compile(rf"([.!?]+[”\"’')]*)\s*({_TOKENS}(?:\s*{_TOKENS})*)")
_BEFORE_TOKEN = re.compile(rf"\s+({_TOKENS})")
_EMPHASIS = re.compile(r"(\*\*|\*|`)(?=\S)(.+?)(?<=\S)\1")
_LEAD = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1([.:]?)(?!\w)")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+(?=\S)")
_RULE = re.compile(r"^[\s|:-]+$")
_DERIVED = re.compile(r"(-?[\d.,]+)\s*%?\s*=\s*(\w+)\s*\((.*?)\)")
_PLAIN = re.compile(r"[^\W\d_]?[^\W\d_A-Z]*(?:[ -][^\W\d_A-Z]+)*")
_YEARS = re.compile(r"\b(1[5-9]|20)(\d\d)([-–])(\d\d)\b(?!-)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|-])")
_SIGNS = re.compile(r"\s*[✓⚠]+")
_TIMES = frozenset({"date", "year", "decade", "time"})

LineKind = Literal["heading", "table", "list", "text"]


class ClaimNumbers(Protocol):
    """What a model calls claims."""

    def find(self, numbers: Sequence[int]) -> list[Claim]: ...

    def find_documents(self, numbers: Sequence[int]) -> list[str]: ...


class SentenceMarks(NamedTuple):
    """What stands in the brackets behind a sentence."""

    numbers: tuple[int, ...] = ()
    follows: bool = False
    derived: tuple[str, ...] = ()
    documents: tuple[int, ...] = ()


def read_prose(text: str, claims: ClaimNumbers) -> list[DraftSentence]:
    """Read the text of a section. What stands in no table and names no claim is a sentence without claims."""
    sentences = list[DraftSentence]()
    for kind, lines in _group_lines(text):
        if kind == "table":
            sentences += _read_table(lines, claims)
        elif kind == "list":
            sentences += _read_list(lines, claims)
        elif kind == "text":
            sentences += _read_paragraph("\n".join(lines), claims)
    return sentences


def _group_lines(text: str) -> list[tuple[LineKind, list[str]]]:
    """Put together the lines of each paragraph, table and list. What goes on below an item, or is indented there, is
    a part of it; a blank line ends all but a list."""
    groups = list[tuple[LineKind, list[str]]]([("heading", [])])
    ended = True
    for written in text.splitlines():
        line = written.strip()
        if not line:
            ended = True
            continue
        kind: LineKind = "text"
        if line.startswith("#"):
            kind = "heading"
        elif line.startswith("|"):
            kind = "table"
        elif _ITEM.match(line):
            kind = "list"
        last, lines = groups[-1]
        if kind == "text" and last == "list" and (not ended or written[:2].isspace()):
            lines[-1] += f"\n{line}"
        elif kind == last and (not ended or kind == "list"):
            lines.append(line)
        else:
            groups.append((kind, [line]))
        ended = False
    return groups


def _read_paragraph(text: str, claims: ClaimNumbers, *, item: bool = False) -> Iterator[DraftSentence]:
    lead, text = _read_lead(text)
    first = True
    for plain, marks in split_with_marks(" ".join(text.split())):
        if sentence := build_sentence(plain, marks, claims):
            begins = {"opens": True, "item": item, "lead": lead if plain.startswith(lead) else ""}
            yield sentence.model_copy(update=begins) if first else sentence
            first = False


def _read_lead(text: str) -> tuple[str, str]:
    """Return the words in bold at the beginning of a paragraph or item, and the text in which they are like others.
    A few that end with a full stop, or stand in a line of their own, name what follows: a colon joins the two."""
    match = _LEAD.match(text)
    if not match:
        return "", text
    bold, rest = match[2] + match[3], text[match.end() :].lstrip()
    words, gap = clean_text(remove_marks(bold)), text[match.end() : len(text) - len(rest)]
    has_marks = MARK.search(bold) or MARK.match(rest)  # then it says something by itself
    if rest and not has_marks and len(words.split()) <= MAX_LABEL and not words.endswith(":"):
        first = split_sentences(f"{words} {clean_text(rest)}")[0].text
        if "\n" in gap or (words.endswith(".") and first == words):
            lead = f"{words.rstrip(' .')}:"
            return lead, f"{lead} {rest}"
    return words, f"{bold}{gap}{rest}"


def split_with_marks(text: str) -> Iterator[tuple[str, SentenceMarks]]:
    """Take a paragraph apart into sentences with their marks, which may stand before or behind the full stop."""
    found = list[SentenceMarks]()

    def replace(match: re.Match[str]) -> str:
        found.append(read_mark(match))
        return chr(_FIRST_TOKEN + len(found) - 1)

    bare = MARK.sub(replace, _TOKEN.sub("", text)[: 100 * (_LAST_TOKEN - _FIRST_TOKEN)])
    bare = _BEFORE_TOKEN.sub(r"\1", _AFTER_END.sub(r"\2\1", bare))
    for text in join_quotations([piece.text for piece in split_sentences(bare)]):
        own = [found[ord(token) - _FIRST_TOKEN] for token in _TOKEN.findall(text)]
        yield clean_text(_TOKEN.sub("", text)), join_marks(own)


def join_quotations(pieces: Sequence[str]) -> list[str]:
    """Put sentences together that are one quotation: he answered, "At first. Then we saw that it was enough." """
    joined, is_open = list[str](), False
    for piece in pieces:
        if is_open:
            joined[-1] += f" {piece}"
        else:
            joined.append(piece)
        quotes = joined[-1].count('"') % 2 == 1 or joined[-1].count("“") > joined[-1].count("”")
        is_open = quotes and len(joined[-1]) < MAX_QUOTATION
    return joined


def read_mark(match: re.Match[str]) -> SentenceMarks:
    numbers, documents = list[int](), list[int]()
    for part in re.split(r"[,;]", match[2]):
        first, *rest = [int(digits) for digits in re.findall(r"\d+", part)]
        last = rest[0] if rest else first
        named = documents if "D" in part else numbers
        named += range(first, last + 1) if first <= last < first + MAX_CLAIMS else [first, *rest]
    derived = tuple(found[0] for found in _DERIVED.finditer(match[3] or ""))
    return SentenceMarks(tuple(numbers), bool(match[1]), derived, tuple(documents))


def join_marks(marks: Sequence[SentenceMarks]) -> SentenceMarks:
    """Put the marks of a sentence together, the first of each before the second of any: where not all are shown, each
    part of the sentence keeps one."""

    def take_in_turn(lists: Iterable[Sequence[int]]) -> tuple[int, ...]:
        turns = zip_longest(*lists)
        return tuple(dict.fromkeys(number for turn in turns for number in turn if number is not None))

    return SentenceMarks(
        take_in_turn(mark.numbers for mark in marks),
        any(mark.follows for mark in marks),
        tuple(figure for mark in marks for figure in mark.derived),
        take_in_turn(mark.documents for mark in marks),
    )


def clean_text(text: str) -> str:
    """Without emphasis and signs of support, which are not the writer's to set; a span of years has both in full, since
    each number of a sentence is looked for in its passages."""
    plain = _ESCAPE.sub(r"\1", _SIGNS.sub("", _EMPHASIS.sub(r"\2", text)))
    return " ".join(_YEARS.sub(r"\1\2\3\1\4", plain).split())


def remove_marks(text: str) -> str:
    """The text as a reader sees it."""
    return re.sub(r"\s*" + MARK.pattern, "", text)


def hold_back_mark(text: str) -> str:
    """Text that is still being written, without a mark that is not whole yet."""
    begun = text.rfind("[")
    return text[:begun] if begun > text.rfind("]") else text


def _read_table(rows: Sequence[str], claims: ClaimNumbers) -> Iterator[DraftSentence]:
    """Read a table of Markdown: a sentence for each cell that names a claim, itself or at the head of its row."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if not _RULE.match(row)]
    if len(cells) < 2:
        return
    rows, *columns = [clean_text(MARK.sub("", cell)) for cell in cells[0]][: MAX_COLUMNS + 1]
    # Nobody checks what rows are called, so it is a plain word or two.
    named = rows if _PLAIN.fullmatch(rows) and len(rows.split()) <= MAX_ROWS_NAME else ""
    for row in cells[1:]:
        label, shared = _read_cell(row[0])
        for column, cell in zip(columns, row[1:], strict=False):
            text, marks = _read_cell(cell)
            sentence = build_sentence(text, marks if marks.numbers or marks.documents else shared, claims)
            fits = len(label.split()) <= MAX_LABEL and len(text.split()) <= MAX_CELL
            if sentence and (sentence.claims or sentence.documents) and label and column and fits:
                yield place_in_table(sentence, TableCell(row=label, column=column, text=text, rows=named))


def _read_cell(cell: str) -> tuple[str, SentenceMarks]:
    marks = join_marks([read_mark(match) for match in MARK.finditer(cell)])
    return clean_text(remove_marks(cell)).strip(" -–—"), marks


def _read_list(items: Sequence[str], claims: ClaimNumbers) -> Iterator[DraftSentence]:
    """Read the items of a list. They are a timeline if each fits into one: else their order would be lost."""
    lines = [_ITEM.sub("", item) for item in items]
    entries = [entry for line in lines if (entry := _read_entry(line))]
    dated = any(quantity.kind in _TIMES for when, _ in entries for quantity in find_quantities(when))
    cells = list[DraftSentence]()
    for when, what in entries if dated and len(entries) == len(lines) >= MIN_ENTRIES else ():
        text, marks = _read_cell(what)
        sentence = build_sentence(text, marks, claims)
        if sentence and (sentence.claims or sentence.documents) and len(text.split()) <= MAX_ENTRY:
            cells.append(place_in_table(sentence, TableCell(row=when, text=text)))
    if len(cells) == len(lines):
        yield from cells
        return
    for line in lines:
        yield from _read_paragraph(line, claims, item=True)


def _read_entry(line: str) -> tuple[str, str] | None:
    """When, and what happened then; None for a line that does not begin with a number, as the "EIP-1227" is none."""
    when, colon, what = _EMPHASIS.sub(r"\2", line).partition(":")
    has_number = len(when.split()) <= MAX_LABEL and not MARK.search(when) and bool(find_quantities(when))
    return (when.strip(), what.strip()) if colon and has_number and what.strip() else None


def place_in_table(sentence: DraftSentence, cell: TableCell) -> DraftSentence:
    """Give a sentence its place in a table, and a text that says by itself what the cell says there."""
    place = f"{cell.row}, {cell.column}" if cell.column else cell.row
    return sentence.model_copy(update={"text": f"{place}: {cell.text}", "cell": cell, "opens": False})


def build_sentence(text: str, marks: SentenceMarks, claims: ClaimNumbers) -> DraftSentence | None:
    """Make a sentence of a draft; None where nothing is said."""
    if not text:
        return None
    named = claims.find(marks.numbers)[:MAX_CLAIMS]
    figures = [figure for line in marks.derived if (figure := parse_figure(line, claims))]
    documents = tuple(claims.find_documents(marks.documents))[:MAX_DOCUMENTS]
    draws = len(named) + len(documents) > 1 and (marks.follows or bool(figures))
    return DraftSentence(
        text=text,
        claims=tuple(claim.id for claim in named),
        kind="synthesis" if draws else "fact",
        derived=tuple(figures) if named or documents else (),
        documents=documents,
    )


def parse_figure(line: str, claims: ClaimNumbers) -> DerivedFigure | None:
    """Read "7.7 = difference(190.1, 182.4)"; None where it is no such thing."""
    match = _DERIVED.search(line)
    if not match or match[2].lower() not in get_args(Operation):
        return None
    operation, parts = match[2].lower(), [part.strip(" \"'[]") for part in re.split(r",(?!\d{3}\b)|;", match[3])]
    operands: list[float | str] = []
    for part in filter(None, parts):
        number = part.replace(",", "").removeprefix("C").rstrip("%")
        if operation == "count":
            named = claims.find([int(number)]) if number.isdecimal() else []
            operands.append(named[0].id if named else part)
        elif operation == "days":
            operands.append(part)
        else:
            try:
                operands.append(float(number))
            except ValueError:
                return None
    try:
        value = float(match[1].replace(",", "").rstrip("."))
    except ValueError:
        return None
    return DerivedFigure(value=value, operation=cast(Operation, operation), operands=tuple(operands))
