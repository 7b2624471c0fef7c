"""A report as blocks of text with notes under it: what the formats that are set on pages (PDF, DOCX) are made of.

Strings stay strings: who sets the page is handed data and never markup.
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
    LEGEND,
    SHOWN,
    describe_quality,
    describe_source,
    ends_body,
    format_searches,
    format_support,
    get_web_address,
    split_paragraphs,
    to_printable,
)
from openassay.models.evidence import Mark
from openassay.models.report import (
    KeyFigure,
    OpenSubQuestion,
    ReportClaim,
    ReportData,
    ReportSpan,
    ReportStatus,
    Section,
    Sentence,
    ShortAnswer,
    SourceCard,
)

Look = Literal["plain", "strong", "faint"]
Place = Literal["text", "answer", "dispute", "notice", "faint"]


@dataclass(frozen=True, slots=True)
class TextRun:
    text: str
    look: Look = "plain"
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class Sign:
    """How well a statement is supported: ✓✓, ✓ or ⚠."""

    mark: str
    kind: Literal["sign"] = "sign"


@dataclass(frozen=True, slots=True)
class CitationLink:
    """Leads to a reference."""

    source: str
    number: int
    kind: Literal["cite"] = "cite"


@dataclass(frozen=True, slots=True)
class WebLink:
    """Leads to a page of the web."""

    url: str
    kind: Literal["link"] = "link"


@dataclass(frozen=True, slots=True)
class Footnote:
    """What stands at the foot of the page: the passages behind a statement."""

    lines: tuple[tuple["TextRun | CitationLink | WebLink", ...], ...]
    kind: Literal["note"] = "note"


Inline: TypeAlias = TextRun | Sign | CitationLink | WebLink | Footnote
Line: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True, slots=True)
class Paragraph:
    line: Line
    place: Place = "text"
    kind: Literal["paragraph"] = "paragraph"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. `widths` are shares of the line; without a head its first column names the rows."""

    rows: tuple[tuple[Line, ...], ...]
    widths: tuple[int, ...]
    head: tuple[str, ...] = ()
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True, slots=True)
class Reference:
    """`number` is what a Cite leads to."""

    number: int
    lines: tuple[Line, ...]
    kind: Literal["reference"] = "reference"


Block: TypeAlias = Heading | Paragraph | Grid | Reference


@dataclass(frozen=True, slots=True)
class PrintDocument:
    title: str
    day: str  # it was finished, as 2026-11-16; empty where that is not known
    blocks: tuple[Block, ...] = field(default=())


def build_document(report: ReportData, remarks: Sequence[str] = ()) -> PrintDocument:
    """`remarks` are about the export itself, and stand at its end."""
    day = report.metadata.finished[:10]
    return PrintDocument(
        to_printable(report.title) or "Report", day, tuple(_DocumentBuilder(report).build_blocks(remarks))
    )


class _DocumentBuilder:
    """Numbers notes as they come, so that what was quoted once is referred to afterwards."""

    def __init__(self, report: ReportData) -> None:
        self.report = report
        self.claims = {claim.id: claim for claim in report.claims}
        self.cards = {card.id: card for card in report.sources}
        self.numbers = {card.id: number for number, card in enumerate(report.sources, 1)}
        self.noted: dict[str, int] = {}  # claim -> the note with its passages
        self.notes = 0

    def build_blocks(self, remarks: Sequence[str]) -> Iterator[Block]:
        report = self.report
        notices = [section for section in report.sections if section.role == "notice"]
        others = [section for section in report.sections if section.role != "notice"]
        if report.status is not ReportStatus.CANCELLED:
            yield Paragraph((TextRun(_format_summary(report)),), "faint")
            yield from _build_legend(report)
            yield from self._build_answers(report.answers)
        for section in notices:
            yield from self._build_notice(section)
        for section in others:
            yield from self._build_section(section)
        if report.status is not ReportStatus.CANCELLED:
            yield from self._build_references()
            yield from _build_review(report)
            yield from _build_about(report)
        yield from (Paragraph((TextRun(to_printable(remark)),), "notice") for remark in remarks)

    # -- text ---------------------------------------------------------------------------------------------

    def _build_answers(self, answers: Sequence[ShortAnswer]) -> Iterator[Block]:
        """What is asserted first; what sources disagree on is shown apart, and no side of it first."""
        yield from (Paragraph(self._build_answer(answer), "answer") for answer in answers if not answer.disputed)
        if disputed := [answer for answer in answers if answer.disputed]:
            line: Line = (TextRun("Sources disagree:", "strong"),)
            for answer in disputed:
                line = (*line, TextRun(" " if len(line) == 1 else "; "), *self._build_answer(answer))
            yield Paragraph(line, "dispute")

    def _build_answer(self, answer: ShortAnswer) -> Line:
        about = f" ({to_printable(answer.about)})" if answer.about else ""
        return (
            TextRun(to_printable(answer.text) + about),
            *self._build_support(answer.mark, answer.citations, answer.claims),
        )

    def _build_notice(self, section: Section) -> Iterator[Block]:
        if section.title:
            yield Paragraph((TextRun(to_printable(section.title), "strong"),), "notice")
        yield from (Paragraph(self._build_sentence(sentence), "notice") for sentence in section.sentences)

    def _build_section(self, section: Section) -> Iterator[Block]:
        if section.title:
            yield Heading(to_printable(section.title))
        missing = self.report.not_found if section.role == "not_found" else ()
        for part in split_paragraphs(section.sentences):
            yield Paragraph(_join_lines([self._build_sentence(sentence) for sentence in part]))
            yield from _build_searches(part, missing)
        if section.role == "disagreements":
            yield from self._build_disputes()
        if ends_body(section, self.report):
            yield from self._build_figures()

    def _build_sentence(self, sentence: Sentence) -> Line:
        text = TextRun(to_printable(sentence.text))
        if sentence.kind == "frame":
            return (text,)
        return (text, *self._build_support(sentence.mark, sentence.citations, sentence.claims))

    def _build_support(self, mark: Mark | None, citations: Sequence[str], claims: Sequence[str]) -> Line:
        """The mark, the note with the passages, and the sources."""
        signs: Line = (TextRun(" "), Sign(mark)) if mark else ()
        return (*signs, *self._build_footnote(claims), *self._build_citations(citations))

    def _build_citations(self, sources: Sequence[str]) -> Iterator[Inline]:
        known = [source for source in sources if source in self.numbers]
        for at, source in enumerate(known):
            yield TextRun(" " if at == 0 else "\N{NARROW NO-BREAK SPACE}")
            yield CitationLink(source, self.numbers[source])

    def _build_footnote(self, claims: Sequence[str]) -> Iterator[Footnote]:
        found = [self.claims[name] for name in claims if name in self.claims and self.claims[name].spans]
        if not found:
            return
        self.notes += 1
        lines = [line for claim in found for line in self._build_passages(claim)]
        yield Footnote(tuple(lines))

    def _build_passages(self, claim: ReportClaim) -> Iterator[tuple[TextRun | CitationLink | WebLink, ...]]:
        """Word for word, once; where several sources have the same words, they are named together."""
        if claim.id in self.noted:
            yield (TextRun(f"{to_printable(claim.id)}: see note {self.noted[claim.id]}."),)
            return
        self.noted[claim.id] = self.notes
        by_quote: dict[str, list[ReportSpan]] = {}
        for span in claim.spans:
            by_quote.setdefault(to_printable(span.quote), []).append(span)
        for at, (quote, spans) in enumerate(by_quote.items()):
            name = (TextRun(f"{to_printable(claim.id)} ", "strong"),) if at == 0 else ()
            yield (*name, TextRun(f"“{quote}” "), *self._build_places(spans))

    def _build_places(self, spans: Sequence[ReportSpan]) -> Iterator[TextRun | CitationLink]:
        for at, span in enumerate(spans):
            card = self.cards.get(span.source)
            if at:
                yield TextRun("; ")
            if card is not None:
                yield CitationLink(card.id, self.numbers[card.id])
            title = f" {to_printable(card.title)}" if card else to_printable(span.source)
            yield TextRun(f"{title}, characters {span.start}–{span.end}", "faint")

    # -- tables and lists ---------------------------------------------------------------------------------

    def _build_disputes(self) -> Iterator[Block]:
        open_ones = [dispute for dispute in self.report.disputes if not dispute.resolved]
        for number, dispute in enumerate(open_ones, 1):
            for at, side in enumerate(dispute.sides, 1):
                name = f"Point {number}, view {at}" if len(open_ones) > 1 else f"View {at}"
                known = [source for source in side.sources if source in self.cards]
                more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
                titles: Line = ()
                for source in known[:SHOWN]:
                    between = (TextRun("; "),) if titles else ()
                    title = TextRun(f" {to_printable(self.cards[source].title)}")
                    titles = (*titles, *between, CitationLink(source, self.numbers[source]), title)
                yield Paragraph((TextRun(f"{name}: {format_support(side)}: "), *titles, TextRun(more)), "faint")

    def _build_figures(self) -> Iterator[Block]:
        if self.report.figures:
            yield Heading("Key figures")
            rows = tuple(map(self._build_figure, self.report.figures))
            yield Grid(rows, (44, 22, 14, 20), ("What", "Value", "When", "Source"))

    def _build_figure(self, figure: KeyFigure) -> tuple[Line, ...]:
        """Noted only where no sentence has said the same."""
        disputed = (TextRun(" (disputed)", "faint"),) if figure.disputed else ()
        fresh = [name for name in figure.claims if name not in self.noted]
        return (
            (TextRun(to_printable(figure.what)),),
            (TextRun(to_printable(figure.value)), *disputed),
            (TextRun(to_printable(figure.when)),),
            self._build_support(figure.mark, figure.citations, fresh)[1:],
        )

    def _build_references(self) -> Iterator[Block]:
        if self.report.sources:
            yield Heading("References")
            yield from (_build_reference(number, card) for number, card in enumerate(self.report.sources, 1))


def _join_lines(lines: Sequence[Line]) -> Line:
    line: Line = ()
    for part in lines:
        line = (*line, TextRun(" "), *part) if line else part
    return line


def _format_summary(report: ReportData) -> str:
    checked = f"{report.coverage.checked} of {report.coverage.total} statements checked"
    day = f" · {to_printable(report.metadata.finished[:10])}" if report.metadata.finished else ""
    return f"{report.status} · confidence {report.confidence} · {checked}{day}"


def _build_legend(report: ReportData) -> Iterator[Paragraph]:
    """Before the first mark."""
    if report.claims:
        signs = [(Sign(mark), TextRun(f" {meaning}   ")) for mark, meaning in LEGEND.items()]
        yield Paragraph(tuple(part for pair in signs for part in pair), "faint")


def _build_searches(part: Sequence[Sentence], missing: Sequence[OpenSubQuestion]) -> Iterator[Paragraph]:
    """Beside a question nobody answered, what was done to find an answer."""
    for item in missing:
        if any(sentence.kind == "frame" and f"“{item.question}”" in sentence.text for sentence in part):
            yield Paragraph((TextRun(f"Searched for: {format_searches(item, to_printable)}"),), "faint")


def _build_reference(number: int, card: SourceCard) -> Reference:
    by = [to_printable(part) for part in (card.author, card.host) if part]
    named = ", ".join([to_printable(card.title), *by])
    lines: list[Line] = [(TextRun(f"{to_printable(card.id)} ", "strong"), TextRun(named))]
    lines.append((TextRun(to_printable(", ".join(describe_source(card))), "faint"),))
    url = get_web_address(card)
    where: Line = (WebLink(url),) if url else (TextRun(to_printable(card.url), "faint"),)
    lines.append((*where, TextRun(f" · SHA-256 {to_printable(card.document)[:16]}…", "faint")))
    return Reference(number, tuple(lines))


def _build_review(report: ReportData) -> Iterator[Block]:
    """What a reviewer thought of it, and what went wrong on the way."""
    if report.review is not None and report.review.scores:
        yield Heading("Review")
        rows = [(name, f"{score:.1f} of 10") for name, score in report.review.scores.items()]
        rows += [("all", f"{report.review.score:.1f} of 10")]
        rows += [("improvement potential", f"{report.review.improvement_potential:.2f} of 1")]
        yield _build_key_value_grid(rows)
        for issue in report.review.issues:
            told = f"{issue.severity}, {to_printable(issue.location)}: {to_printable(issue.description)}"
            yield Paragraph((TextRun(told),), "faint")
    if report.errors:
        yield Heading("What went wrong")
        yield from (Paragraph((TextRun(to_printable(error)),)) for error in report.errors)


def _build_about(report: ReportData) -> Iterator[Block]:
    yield Heading("About this report")
    yield _build_key_value_grid(list(describe_quality(report).items()))
    yield from (Paragraph((TextRun(to_printable(notice)),), "faint") for notice in report.notices)


def _build_key_value_grid(rows: Sequence[tuple[str, str]]) -> Grid:
    lines = tuple(((TextRun(to_printable(name), "strong"),), (TextRun(to_printable(value)),)) for name, value in rows)
    return Grid(lines, (28, 72))


# A report as a Word document, written by pandoc: headings, tables, links, and the passages as footnotes.
#
# Pandoc is handed the document as its own syntax tree, in which strings are data; in its sandbox it reads no file, asks
# nobody, and does not know the time, so that the same report gives the same file. The program comes in the wheel
# pypandoc-binary, or stands on the PATH.

SECONDS = 60.0
MEMORY = "1G"
ENVIRONMENT = None if os.name == "nt" else {"LANG": "C.UTF-8"}  # keys stay here; Windows starts nothing without one
API = [1, 23, 1]  # version of the syntax tree; pandoc 3 reads every 1.23
_PLAIN: list[Any] = ["", [], []]
_QUOTED = frozenset({"answer", "dispute", "notice"})


def render_docx(report: ReportData) -> bytes:
    made = build_document(report)
    command = [find_pandoc(), "--from=json", "--to=docx", "--sandbox", "--output=-", "+RTS", f"-M{MEMORY}", "-RTS"]
    tree = json.dumps(_build_tree(made)).encode()
    try:
        done = subprocess.run(command, input=tree, capture_output=True, timeout=SECONDS, check=False, env=ENVIRONMENT)
    except subprocess.TimeoutExpired as error:
        raise OpenAssayError(
            f"pandoc has not written the document in {SECONDS:.0f} s", help="Choose html or md.", retryable=True
        ) from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it says nothing"]
        raise OpenAssayError(f"pandoc could not write the document: {told[0]}", help="Choose html or md.")
    return done.stdout


def find_pandoc() -> str:
    """The one in the wheel is known to fit, so it comes first."""
    spec = find_spec("pypandoc")
    if spec is not None and spec.origin:
        for name in ("pandoc", "pandoc.exe"):
            if (inside := Path(spec.origin).parent / "files" / name).is_file():
                return str(inside)
    if found := shutil.which("pandoc"):
        return found
    raise ConfigurationError("DOCX needs the extra `export`", help=install_help("export"))


def _build_tree(made: PrintDocument) -> dict[str, Any]:
    inlines = {"t": "MetaInlines"}
    about = {
        "title": {**inlines, "c": _convert_text(made.title)},
        "date": {**inlines, "c": _convert_text(made.day)},
        "lang": {**inlines, "c": _convert_text("en")},
    }
    if not made.day:
        del about["date"]
    return {
        "pandoc-api-version": API,
        "meta": about,
        "blocks": [part for one in made.blocks for part in _convert_block(one)],
    }


def _convert_block(block: Block) -> Iterable[dict[str, Any]]:
    match block:
        case Heading(text=text):
            return [{"t": "Header", "c": [1, _PLAIN, _convert_text(text)]}]
        case Paragraph(line=line, place=place):
            set_off = place in _QUOTED
            return [{"t": "BlockQuote", "c": [_convert_paragraph(line)]}] if set_off else [_convert_paragraph(line)]
        case Grid():
            return [_convert_grid(block)]
        case Reference(number=number, lines=lines):
            anchor = {"t": "Span", "c": [[f"ref-{number}", [], []], _convert_line(lines[0])]}
            rest = [part for line in lines[1:] for part in ({"t": "LineBreak"}, *_convert_line(line))]
            return [{"t": "Para", "c": [anchor, *rest]}]


def _convert_grid(grid: Grid) -> dict[str, Any]:
    whole = sum(grid.widths)
    columns = [[{"t": "AlignLeft"}, {"t": "ColWidth", "c": width / whole}] for width in grid.widths]
    head = [_convert_row([[{"t": "Strong", "c": _convert_text(name)}] for name in grid.head])] if grid.head else []
    rows = [_convert_row(map(_convert_line, row)) for row in grid.rows]
    return {"t": "Table", "c": [_PLAIN, [None, []], columns, [_PLAIN, head], [[_PLAIN, 0, [], rows]], [_PLAIN, []]]}


def _convert_row(cells: Iterable[list[dict[str, Any]]]) -> list[Any]:
    return [_PLAIN, [[_PLAIN, {"t": "AlignDefault"}, 1, 1, [{"t": "Plain", "c": cell}]] for cell in cells]]


def _convert_paragraph(line: Line) -> dict[str, Any]:
    return {"t": "Para", "c": _convert_line(line)}


def _convert_line(line: Iterable[Inline]) -> list[dict[str, Any]]:
    return [part for inline in line for part in _convert_inline(inline)]


def _convert_inline(inline: Inline) -> list[dict[str, Any]]:
    match inline.kind:
        case "text":
            words = _convert_text(inline.text)
            return [{"t": "Strong", "c": words}] if inline.look == "strong" else words
        case "sign":
            return [{"t": "Strong", "c": _convert_text(inline.mark)}]
        case "cite":
            return [{"t": "Link", "c": [_PLAIN, _convert_text(f"[{inline.source}]"), [f"#ref-{inline.number}", ""]]}]
        case "link":
            return [{"t": "Link", "c": [_PLAIN, _convert_text(inline.url), [inline.url, ""]]}]
        case "note":
            return [{"t": "Note", "c": [_convert_paragraph(line) for line in inline.lines]}]


def _convert_text(text: str) -> list[dict[str, Any]]:
    return [{"t": "Str", "c": text}] if text else []


# A report as PDF, set by Typst: contents, bookmarks, marks, and the passages as footnotes.
#
# The template is a file of ours, and the report is handed to it as data: no text in it can become markup. The fonts are
# those that come with Typst, so that a PDF is the same on every machine; a machine's own are asked only for writing
# that
# those lack.

SHORT = 90  # characters of the title at the foot of a page
# Scripts that the fonts in the wheel of Typst have letters of; told by the first word of a character's name.
_SHOWN = frozenset("LATIN GREEK CYRILLIC HEBREW ARABIC DEVANAGARI ARMENIAN GEORGIAN MATHEMATICAL MODIFIER".split())
_NAMES = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
_BEYOND = re.compile(r"[\u0500-\U0010ffff]")


def render_pdf(report: ReportData) -> bytes:
    require_typst()
    import typst

    unknown = list_caveats(report)
    made = build_document(report, unknown)
    title = made.title if len(made.title) <= SHORT else f"{made.title[: SHORT - 1]}…"
    data = {**asdict(made), "short": title, "date": _parse_date(made.day)}
    template = files("openassay.export").joinpath("report.typ").read_bytes()
    try:
        return typst.compile(
            template,
            format="pdf",
            sys_inputs={"report": json.dumps(data)},
            ignore_system_fonts=not unknown,
        )
    except typst.TypstError as error:
        raise OpenAssayError(f"the PDF could not be set: {error.message}", help="Choose another format.") from error


def require_typst() -> None:
    if find_spec("typst") is None:
        raise ConfigurationError("PDF needs the extra `export`", help=install_help("export"))


def list_caveats(report: ReportData) -> list[str]:
    """What a reader would miss, said in the PDF as well."""
    scripts = _find_scripts(json.dumps(asdict(build_document(report)), ensure_ascii=False))
    if not scripts:
        return []
    return [
        f"This report has {', '.join(scripts)} writing, which the fonts of a PDF lack: where this machine has no font "
        "for it, boxes stand in its place. The HTML, DOCX and Markdown files show it."
    ]


def _find_scripts(text: str) -> list[str]:
    """Those that our fonts cannot show, the most frequent first."""
    found = Counter(map(_name_script, _BEYOND.findall(text)))
    return [name for name, _ in found.most_common() if name]


def _name_script(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "So" and character >= "\U0001f000":
        return "emoji"
    name = unicodedata.name(character, "").split()[:1]
    if kind[0] != "L" or not name or name[0] in _SHOWN:
        return ""
    return _NAMES.get(name[0], name[0].capitalize())


def _parse_date(day: str) -> tuple[int, int, int] | None:
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return None
    return found.year, found.month, found.day
