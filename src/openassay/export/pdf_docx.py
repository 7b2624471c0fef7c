"""Renders a report for paper: as PDF by Typst, and as a Word document by pandoc.

Both are made of one list of blocks, with the passages as footnotes. Strings stay strings: the programs that set the
page are handed data, never markup.
"""

import json
import os
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from openassay.errors import ConfigurationError, OpenAssayError, install_help
from openassay.export.common import (
    FIGURE_COLUMNS,
    LEGEND,
    describe_quality,
    describe_source,
    ends_body,
    get_web_address,
    list_dispute_sides,
    list_scores,
    list_searches,
    sort_sections,
    split_answers,
    split_paragraphs,
    to_printable,
)
from openassay.models.evidence import Mark
from openassay.models.report import ReportClaim, ReportData, ReportSpan, ReportStatus, Section, Sentence, ShortAnswer

MAX_FOOTER = 90  # characters of the title at the foot of a page
PANDOC_SECONDS = 60.0
PANDOC_MEMORY = "1G"
# Pandoc is not handed the keys that stand in our environment; Windows starts nothing without one.
_ENVIRONMENT = None if os.name == "nt" else {"LANG": "C.UTF-8"}
_PANDOC_API = [1, 23, 1]  # version of the syntax tree; pandoc 3 reads every 1.23
_NO_ATTRIBUTES: list[Any] = ["", [], []]
_QUOTED_PLACES = frozenset({"answer", "dispute", "notice"})
# Scripts that the fonts in the wheel of Typst can show; a script is the first word of a character's name.
_FONT_SCRIPTS = frozenset(
    "LATIN GREEK CYRILLIC HEBREW ARABIC DEVANAGARI ARMENIAN GEORGIAN MATHEMATICAL MODIFIER".split()
)
_SCRIPT_NAMES = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
_RARE_CHARACTER = re.compile(r"[\u0500-\U0010ffff]")


TextStyle = Literal["plain", "strong", "faint"]
Place = Literal["text", "answer", "dispute", "notice", "faint"]


@dataclass(frozen=True, slots=True)
class TextRun:
    """Words in one style."""

    text: str
    look: TextStyle = "plain"
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Sign:
    """How well a statement is supported: ✓✓, ✓ or ⚠."""

    mark: str
    kind: Literal["sign"] = "sign"


@dataclass(frozen=True, slots=True)
class CitationLink:
    """A link to a reference."""

    source: str
    number: int
    kind: Literal["cite"] = "cite"


@dataclass(frozen=True, slots=True)
class WebLink:
    """A link to a web page."""

    url: str
    kind: Literal["link"] = "link"


@dataclass(frozen=True, slots=True)
class Footnote:
    """The passages behind a statement, at the foot of the page."""

    lines: tuple[tuple["TextRun | CitationLink | WebLink", ...], ...]
    kind: Literal["note"] = "note"


Inline: TypeAlias = TextRun | Sign | CitationLink | WebLink | Footnote
Line: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section."""

    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `place` says how it is set off from the text."""

    line: Line
    place: Place = "text"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; `widths` are shares of the line. Without a head, the first column names the rows."""

    rows: tuple[tuple[Line, ...], ...]
    widths: tuple[int, ...]
    head: tuple[str, ...] = ()
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True, slots=True)
class Reference:
    """A source in the list of references; `number` is what a CitationLink leads to."""

    number: int
    lines: tuple[Line, ...]
    kind: Literal["reference"] = "reference"


Block: TypeAlias = Heading | Paragraph | Grid | Reference


@dataclass(frozen=True, slots=True)
class PrintDocument:
    """A report as blocks; the day it was finished is written 2026-11-16, and empty where it is not known."""

    title: str
    day: str
    blocks: tuple[Block, ...] = field(default=())


def render_pdf(report: ReportData) -> bytes:
    """Set a PDF with contents, bookmarks and footnotes.

    The fonts are those that come with Typst, so that a PDF is the same on every machine; the machine's own are used
    only for scripts that those lack.
    """
    require_typst()
    import typst

    caveats = list_caveats(report)
    document = build_document(report, caveats)
    title = document.title if len(document.title) <= MAX_FOOTER else f"{document.title[: MAX_FOOTER - 1]}…"
    try:
        day = date.fromisoformat(document.day)
    except ValueError:
        numbers = None
    else:
        numbers = day.year, day.month, day.day
    try:
        return typst.compile(
            files("openassay.export").joinpath("report.typ").read_bytes(),
            format="pdf",
            sys_inputs={"report": json.dumps({**asdict(document), "short": title, "date": numbers})},
            ignore_system_fonts=not caveats,
        )
    except typst.TypstError as error:
        raise OpenAssayError(f"the PDF could not be set: {error.message}", help="Choose another format.") from error


def require_typst() -> None:
    """Raise ConfigurationError where Typst is not installed."""
    if find_spec("typst") is None:
        raise ConfigurationError("PDF needs the extra `export`", help=install_help("export"))


def list_caveats(report: ReportData) -> list[str]:
    """Say which scripts a PDF of this report may not show, the most frequent first."""
    scripts: Counter[str] = Counter()
    for character in _RARE_CHARACTER.findall(json.dumps(asdict(build_document(report)), ensure_ascii=False)):
        category = unicodedata.category(character)
        script = unicodedata.name(character, "").partition(" ")[0]
        if category == "So" and character >= "\U0001f000":
            scripts["emoji"] += 1
        elif category.startswith("L") and script and script not in _FONT_SCRIPTS:
            scripts[_SCRIPT_NAMES.get(script, script.capitalize())] += 1
    if not scripts:
        return []
    names = ", ".join(name for name, _ in scripts.most_common())
    return [
        f"This report has {names} writing, which the fonts of a PDF lack: where this machine has no font "
        "for it, boxes stand in its place. The HTML, DOCX and Markdown files show it."
    ]


def render_docx(report: ReportData) -> bytes:
    """Write a Word document with pandoc.

    Pandoc is handed its own syntax tree, in which strings are data; in its sandbox it reads no file, opens no
    connection, and does not know the time, so that the same report gives the same file.
    """
    tree = json.dumps(build_pandoc_tree(build_document(report))).encode()
    command = [find_pandoc(), "--from=json", "--to=docx", "--sandbox", "--output=-"]
    command += ["+RTS", f"-M{PANDOC_MEMORY}", "-RTS"]
    try:
        done = subprocess.run(
            command, input=tree, capture_output=True, timeout=PANDOC_SECONDS, check=False, env=_ENVIRONMENT
        )
    except subprocess.TimeoutExpired as error:
        raise OpenAssayError(
            f"pandoc did not finish within {PANDOC_SECONDS:.0f} s", help="Choose html or md.", retryable=True
        ) from error
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        raise OpenAssayError(f"pandoc could not write the document: {lines[0]}", help="Choose html or md.")
    return done.stdout


def find_pandoc() -> str:
    """Return the path of pandoc: the one in the wheel pypandoc-binary is known to fit, so it comes first."""
    spec = find_spec("pypandoc")
    if spec is not None and spec.origin:
        for name in ("pandoc", "pandoc.exe"):
            if (inside := Path(spec.origin).parent / "files" / name).is_file():
                return str(inside)
    if found := shutil.which("pandoc"):
        return found
    raise ConfigurationError("DOCX needs the extra `export`", help=install_help("export"))


def build_pandoc_tree(document: PrintDocument) -> dict[str, Any]:
    """Convert a document to pandoc's syntax tree."""
    fields = {"title": document.title, "date": document.day, "lang": "en"}
    if not document.day:
        del fields["date"]
    return {
        "pandoc-api-version": _PANDOC_API,
        "meta": {name: {"t": "MetaInlines", "c": _convert_text(value)} for name, value in fields.items()},
        "blocks": list(map(_convert_block, document.blocks)),
    }


def _convert_block(block: Block) -> dict[str, Any]:
    match block:
        case Heading(text=text):
            return {"t": "Header", "c": [1, _NO_ATTRIBUTES, _convert_text(text)]}
        case Paragraph(line=line, place=place):
            paragraph = {"t": "Para", "c": _convert_line(line)}
            return {"t": "BlockQuote", "c": [paragraph]} if place in _QUOTED_PLACES else paragraph
        case Reference(number=number, lines=lines):
            anchor = {"t": "Span", "c": [[f"ref-{number}", [], []], _convert_line(lines[0])]}
            rest = [part for line in lines[1:] for part in ({"t": "LineBreak"}, *_convert_line(line))]
            return {"t": "Para", "c": [anchor, *rest]}
        case Grid(rows=rows, widths=widths, head=titles):
            none = _NO_ATTRIBUTES
            columns = [[{"t": "AlignLeft"}, {"t": "ColWidth", "c": width / sum(widths)}] for width in widths]
            head = [_convert_row([[{"t": "Strong", "c": _convert_text(title)}] for title in titles])] if titles else []
            body = [_convert_row(map(_convert_line, row)) for row in rows]
            return {"t": "Table", "c": [none, [None, []], columns, [none, head], [[none, 0, [], body]], [none, []]]}


def _convert_row(cells: Iterable[list[dict[str, Any]]]) -> list[Any]:
    none = _NO_ATTRIBUTES
    return [none, [[none, {"t": "AlignDefault"}, 1, 1, [{"t": "Plain", "c": cell}]] for cell in cells]]


def _convert_line(line: Iterable[Inline]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for inline in line:
        match inline.kind:
            case "text":
                words = _convert_text(inline.text)
                parts += [{"t": "Strong", "c": words}] if inline.look == "strong" else words
            case "sign":
                parts.append({"t": "Strong", "c": _convert_text(inline.mark)})
            case "cite":
                target = [f"#ref-{inline.number}", ""]
                parts.append({"t": "Link", "c": [_NO_ATTRIBUTES, _convert_text(f"[{inline.source}]"), target]})
            case "link":
                parts.append({"t": "Link", "c": [_NO_ATTRIBUTES, _convert_text(inline.url), [inline.url, ""]]})
            case "note":
                parts.append({"t": "Note", "c": [{"t": "Para", "c": _convert_line(line)} for line in inline.lines]})
    return parts


def _convert_text(text: str) -> list[dict[str, Any]]:
    return [{"t": "Str", "c": text}] if text else []


def build_document(report: ReportData, remarks: Sequence[str] = ()) -> PrintDocument:
    """Build the blocks of a report; `remarks` are about the export itself, and stand at its end."""
    blocks = DocumentBuilder(report).build_blocks(remarks)
    return PrintDocument(to_printable(report.title) or "Report", report.metadata.finished[:10], tuple(blocks))


class DocumentBuilder:
    """Builds the blocks of a report, and numbers its footnotes: a passage is quoted once and referred to afterwards."""

    def __init__(self, report: ReportData) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}
        self.numbers = {card.id: number for number, card in enumerate(report.sources, 1)}
        self.footnotes = 0
        self.quoted: dict[str, int] = {}  # claim -> the footnote with its passages

    def build_blocks(self, remarks: Sequence[str]) -> Iterator[Block]:
        """Yield the whole document."""
        is_reply = self.report.status is ReportStatus.CANCELLED  # with nothing to say about how it was made
        if not is_reply:
            yield from self._build_summary()
        for section in sort_sections(self.report):
            yield from self._build_section(section)
        if not is_reply:
            if self.report.sources:
                yield Heading("References")
            for number, card in enumerate(self.report.sources, 1):
                named = ", ".join(map(to_printable, [card.title, *filter(None, (card.author, card.host))]))
                url = get_web_address(card)
                address = WebLink(url) if url else TextRun(to_printable(card.url), "faint")
                lines: tuple[Line, ...] = (
                    (TextRun(f"{to_printable(card.id)} ", "strong"), TextRun(named)),
                    (TextRun(to_printable(", ".join(describe_source(card))), "faint"),),
                    (address, TextRun(f" · SHA-256 {to_printable(card.document)[:16]}…", "faint")),
                )
                yield Reference(number, lines)
            yield from self._build_quality()
        yield from (_build_paragraph(remark, "notice") for remark in remarks)

    def _build_summary(self) -> Iterator[Block]:
        report = self.report
        checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
        day = f" · {to_printable(report.metadata.finished[:10])}" if report.metadata.finished else ""
        yield Paragraph((TextRun(f"{report.status} · confidence {report.confidence} · {checked}{day}"),), "faint")
        if report.claims:  # the legend comes before the first mark
            signs = [(Sign(mark), TextRun(f" {meaning}   ")) for mark, meaning in LEGEND.items()]
            yield Paragraph(tuple(part for pair in signs for part in pair), "faint")
        asserted, disputed = split_answers(report)
        yield from (Paragraph(self._build_answer(answer), "answer") for answer in asserted)
        if disputed:
            answers = _join_lines(map(self._build_answer, disputed), "; ")
            yield Paragraph((TextRun("Sources disagree:", "strong"), TextRun(" "), *answers), "dispute")

    def _build_answer(self, answer: ShortAnswer) -> Line:
        about = f" ({to_printable(answer.about)})" if answer.about else ""
        support = self._build_support(answer.mark, answer.citations, answer.claims)
        return (TextRun(to_printable(answer.text) + about), *support)

    def _build_section(self, section: Section) -> Iterator[Block]:
        if section.role == "notice":
            if section.title:
                yield Paragraph((TextRun(to_printable(section.title), "strong"),), "notice")
            yield from (Paragraph(self._build_sentence(sentence), "notice") for sentence in section.sentences)
            return
        if section.title:
            yield Heading(to_printable(section.title))
        for part in split_paragraphs(section.sentences):
            yield Paragraph(_join_lines(map(self._build_sentence, part), " "))
            for search in list_searches(part, section, self.report, to_printable):
                yield Paragraph((TextRun(search),), "faint")
        if section.role == "disagreements":
            for label, sources, others in list_dispute_sides(self.report):
                titles = [(self._cite(card.id), TextRun(f" {to_printable(card.title)}")) for card in sources]
                yield Paragraph((TextRun(label), *_join_lines(titles, "; "), TextRun(others)), "faint")
        if self.report.figures and ends_body(section, self.report):
            yield Heading("Key figures")
            rows: list[tuple[Line, ...]] = []
            for figure in self.report.figures:
                disputed = (TextRun(" (disputed)", "faint"),) if figure.disputed else ()
                fresh = [name for name in figure.claims if name not in self.quoted]  # what no sentence has quoted yet
                source = self._build_support(figure.mark, figure.citations, fresh)[1:]
                what, value, when = (TextRun(to_printable(text)) for text in (figure.what, figure.value, figure.when))
                rows.append(((what,), (value, *disputed), (when,), source))
            yield Grid(tuple(rows), (44, 22, 14, 20), FIGURE_COLUMNS)

    def _build_sentence(self, sentence: Sentence) -> Line:
        text = TextRun(to_printable(sentence.text))
        if sentence.kind == "frame":
            return (text,)
        return (text, *self._build_support(sentence.mark, sentence.citations, sentence.claims))

    def _build_support(self, mark: Mark | None, citations: Sequence[str], claims: Sequence[str]) -> Line:
        """Build the mark, the footnote with the passages, and the links to the sources."""
        parts: list[Inline] = [TextRun(" "), Sign(mark)] if mark else []
        if found := [self.claims[name] for name in claims if name in self.claims and self.claims[name].spans]:
            self.footnotes += 1
            parts.append(Footnote(tuple(line for claim in found for line in self._build_passages(claim))))
        space = " "
        for source in citations:
            if source in self.numbers:
                parts += [TextRun(space), self._cite(source)]
                space = "\N{NARROW NO-BREAK SPACE}"
        return tuple(parts)

    def _build_passages(self, claim: ReportClaim) -> Iterator[tuple[TextRun | CitationLink, ...]]:
        """Quote word for word, once; sources that have the same words are named together."""
        name = to_printable(claim.id)
        if claim.id in self.quoted:
            yield (TextRun(f"{name}: see note {self.quoted[claim.id]}."),)
            return
        self.quoted[claim.id] = self.footnotes
        by_quote: dict[str, list[ReportSpan]] = {}
        for span in claim.spans:
            by_quote.setdefault(to_printable(span.quote), []).append(span)
        for quote, spans in by_quote.items():
            line: list[TextRun | CitationLink] = [TextRun(f"{name} ", "strong")] if name else []
            line.append(TextRun(f"“{quote}” "))
            for span in spans:
                card = self.cards.get(span.source)
                if span is not spans[0]:
                    line.append(TextRun("; "))
                if card is not None:
                    line.append(self._cite(card.id))
                title = f" {to_printable(card.title)}" if card else to_printable(span.source)
                line.append(TextRun(f"{title}, characters {span.start}–{span.end}", "faint"))
            yield tuple(line)
            name = ""

    def _cite(self, source: str) -> CitationLink:
        return CitationLink(source, self.numbers[source])

    def _build_quality(self) -> Iterator[Block]:
        """Yield what a reviewer thought of the report, what went wrong on the way, and how it was made."""
        report = self.report
        if report.review is not None and (scores := list_scores(report)):
            yield Heading("Review")
            yield _build_key_value_grid(scores)
            for issue in report.review.issues:
                text = f"{issue.severity}, {to_printable(issue.location)}: {to_printable(issue.description)}"
                yield Paragraph((TextRun(text),), "faint")
        if report.errors:
            yield Heading("What went wrong")
            yield from map(_build_paragraph, report.errors)
        yield Heading("About this report")
        yield _build_key_value_grid(describe_quality(report).items())
        yield from (_build_paragraph(notice, "faint") for notice in report.notices)


def _build_paragraph(text: str, place: Place = "text") -> Paragraph:
    return Paragraph((TextRun(to_printable(text)),), place)


def _join_lines(lines: Iterable[Line], between: str) -> Line:
    joined: list[Inline] = []
    for line in lines:
        joined += [TextRun(between), *line] if joined else line
    return tuple(joined)


def _build_key_value_grid(rows: Iterable[tuple[str, str]]) -> Grid:
    lines = tuple(((TextRun(to_printable(name), "strong"),), (TextRun(to_printable(value)),)) for name, value in rows)
    return Grid(lines, (28, 72))
