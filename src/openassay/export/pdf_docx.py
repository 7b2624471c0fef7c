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
from dataclasses import asdict, dataclass
from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

from openassay.errors import ConfigurationError, OpenAssayError, install_help
from openassay.export.layout import (
    FIGURE_COLUMNS,
    BulletList,
    Paragraph,
    ReportLayout,
    SentenceTable,
    describe_source,
    explain_signs,
    get_web_address,
    split_blocks,
    to_printable,
)
from openassay.models.evidence import Mark
from openassay.models.report import ReportClaim, ReportData, ReportSpan, ReportStatus, Section, Sentence, ShortAnswer

MAX_FOOTER = 90  # characters of the title at the foot of a page
MAX_HEAD = 200  # characters at the head of a column; Typst 0.15 fails where a head is taller than a page
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


@dataclass(frozen=True, slots=True)
class Inline:
    """A piece of a line: words, a mark, a link to the reference `number` or to a page, or a footnote of `lines`."""

    text: str = ""
    look: Literal["plain", "strong", "faint"] = "plain"
    kind: Literal["text", "sign", "cite", "link", "note"] = "text"
    number: int = 0
    lines: tuple["Line", ...] = ()


Line: TypeAlias = tuple[Inline, ...]
Place = Literal["text", "answer", "dispute", "notice", "faint"]


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph set off from the text by its `place`, a list with an item in each line, the reference
    `number`, or a grid of `rows`.

    The `widths` of a grid are shares of the line; without a head, its first column names the rows.
    """

    kind: Literal["heading", "paragraph", "list", "reference", "grid"]
    lines: tuple[Line, ...] = ()
    place: Place = "text"
    number: int = 0
    rows: tuple[tuple[Line, ...], ...] = ()
    widths: tuple[int, ...] = ()
    head: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrintDocument:
    """A report as blocks; the day it was finished is written 2026-11-16, and empty where it is not known."""

    title: str
    day: str
    blocks: tuple[Block, ...]


def render_pdf(report: ReportData) -> bytes:
    """Set a PDF with contents, bookmarks and footnotes.

    The fonts are those that come with Typst, so that a PDF is the same on every machine; the machine's own are used
    only for scripts that those lack.
    """
    require_typst()
    import typst

    caveats = list_caveats(report)
    document = build_document(report, caveats)
    title = _shorten(document.title, MAX_FOOTER)
    try:
        numbers = date.fromisoformat(document.day).timetuple()[:3]
    except ValueError:
        numbers = None
    try:
        return typst.compile(
            files("openassay.export").joinpath("report.typ").read_bytes(),
            format="pdf",
            sys_inputs={"report": json.dumps({**asdict(document), "short": title, "date": numbers})},
            ignore_system_fonts=not caveats,
        )
    except typst.TypstError as error:
        raise OpenAssayError(f"the PDF could not be set: {error.message}", help="Choose another format.") from error


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def require_typst() -> None:
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
    fields = {"title": document.title, "date": document.day, "lang": "en"}
    if not document.day:
        del fields["date"]
    return {
        "pandoc-api-version": _PANDOC_API,
        "meta": {name: {"t": "MetaInlines", "c": _convert_text(value)} for name, value in fields.items()},
        "blocks": list(map(_convert_block, document.blocks)),
    }


def _convert_block(block: Block) -> dict[str, Any]:
    match block.kind:
        case "heading":
            return {"t": "Header", "c": [1, _NO_ATTRIBUTES, _convert_line(block.lines[0])]}
        case "paragraph":
            paragraph = {"t": "Para", "c": _convert_line(block.lines[0])}
            return {"t": "BlockQuote", "c": [paragraph]} if block.place in _QUOTED_PLACES else paragraph
        case "list":
            return {"t": "BulletList", "c": [[{"t": "Para", "c": _convert_line(line)}] for line in block.lines]}
        case "reference":
            anchor = {"t": "Span", "c": [[f"ref-{block.number}", [], []], _convert_line(block.lines[0])]}
            rest = [part for line in block.lines[1:] for part in ({"t": "LineBreak"}, *_convert_line(line))]
            return {"t": "Para", "c": [anchor, *rest]}
        case "grid":
            none, total = _NO_ATTRIBUTES, sum(block.widths)
            columns = [[{"t": "AlignLeft"}, {"t": "ColWidth", "c": width / total}] for width in block.widths]
            titles = [[{"t": "Strong", "c": _convert_text(title)}] for title in block.head]
            head = [_convert_row(titles)] if titles else []
            body = [_convert_row(map(_convert_line, row)) for row in block.rows]
            return {"t": "Table", "c": [none, [None, []], columns, [none, head], [[none, 0, [], body]], [none, []]]}


def _convert_row(cells: Iterable[list[dict[str, Any]]]) -> list[Any]:
    none = _NO_ATTRIBUTES
    return [none, [[none, {"t": "AlignDefault"}, 1, 1, [{"t": "Plain", "c": cell}]] for cell in cells]]


def _convert_line(line: Line) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for inline in line:
        words = _convert_text(inline.text)
        match inline.kind:
            case "text":
                parts += [{"t": "Strong", "c": words}] if inline.look == "strong" else words
            case "sign":
                parts.append({"t": "Strong", "c": words})
            case "cite":
                target = [f"#ref-{inline.number}", ""]
                parts.append({"t": "Link", "c": [_NO_ATTRIBUTES, _convert_text(f"[{inline.text}]"), target]})
            case "link":
                parts.append({"t": "Link", "c": [_NO_ATTRIBUTES, words, [inline.text, ""]]})
            case "note":
                parts.append({"t": "Note", "c": [{"t": "Para", "c": _convert_line(line)} for line in inline.lines]})
    return parts


def _convert_text(text: str) -> list[dict[str, Any]]:
    return [{"t": "Str", "c": text}] if text else []


def build_document(report: ReportData, remarks: Sequence[str] = ()) -> PrintDocument:
    """Build the blocks of a report; `remarks` are about the export itself, and stand at its end."""
    blocks = DocumentBuilder(report).build_blocks(remarks)
    return PrintDocument(to_printable(report.title) or "Report", report.metadata.finished[:10], tuple(blocks))


class DocumentBuilder(ReportLayout):
    """Builds the blocks of a report, and numbers its footnotes: a passage is quoted once and referred to afterwards."""

    def __init__(self, report: ReportData) -> None:
        super().__init__(report)
        self.footnotes = 0
        self.quoted: dict[str, int] = {}  # claim -> the footnote with its passages

    def escape(self, text: str) -> str:
        return to_printable(text)

    def build_blocks(self, remarks: Sequence[str]) -> Iterator[Block]:
        is_reply = self.report.status is ReportStatus.CANCELLED  # with nothing to say about how it was made
        if not is_reply:
            yield from self._build_summary()
        for section in self.sections:
            yield from self._build_section(section)
        if not is_reply:
            yield from self._build_references()
            yield from self._build_quality()
        yield from (_make_paragraph(remark, "notice") for remark in remarks)

    def _build_summary(self) -> Iterator[Block]:
        report = self.report
        day = f" · {report.metadata.finished[:10]}" if report.metadata.finished else ""
        yield _make_paragraph(f"{report.status} · confidence {report.confidence} · {self.checked}{day}", "faint")
        if report.claims:  # the legend comes before the first mark
            signs = [(Inline(mark, kind="sign"), Inline(f" {meaning}   ")) for mark, meaning in explain_signs(report)]
            yield Block("paragraph", (_join_lines(signs),), "faint")
        yield from (Block("paragraph", (self._build_answer(answer),), "answer") for answer in self.answers)
        if self.disputed:
            answers = _join_lines(map(self._build_answer, self.disputed), "; ")
            yield Block("paragraph", ((Inline("Sources disagree:", "strong"), Inline(" "), *answers),), "dispute")

    def _build_answer(self, answer: ShortAnswer) -> Line:
        about = f" ({to_printable(answer.about)})" if answer.about else ""
        support = self._build_support(answer.mark, answer.citations, answer.claims)
        return (Inline(to_printable(answer.text) + about), *support)

    def _build_section(self, section: Section) -> Iterator[Block]:
        title = to_printable(section.title)
        if section.role == "notice":
            if title:
                yield Block("paragraph", ((Inline(title, "strong"),),), "notice")
            yield from (Block("paragraph", (self._build_sentence(one),), "notice") for one in section.sentences)
            return
        if title:
            yield _make_heading(title)
        for block in split_blocks(section.sentences):
            match block:
                case Paragraph(sentences):
                    yield Block("paragraph", (self._build_line(sentences),))
                    yield from (_make_paragraph(line, "faint") for line in self.list_searches(sentences, section))
                case BulletList(items):
                    yield Block("list", tuple(map(self._build_line, items)))
                case SentenceTable():
                    yield self._build_grid(block)
        if section.role == "disagreements":
            for label, sources, others in self.list_dispute_sides():
                titles = [(self._cite(card.id), Inline(f" {to_printable(card.title)}")) for card in sources]
                yield Block("paragraph", ((Inline(label), *_join_lines(titles, "; "), Inline(others)),), "faint")
        if self.shows_figures(section):
            yield _make_heading("Key figures")
            rows: list[tuple[Line, ...]] = []
            for figure in self.report.figures:
                disputed = (Inline(" (disputed)", "faint"),) if figure.disputed else ()
                fresh = [name for name in figure.claims if name not in self.quoted]  # what no sentence has quoted yet
                source = self._build_support(figure.mark, figure.citations, fresh)[1:]
                what, value, when = (Inline(to_printable(text)) for text in (figure.what, figure.value, figure.when))
                rows.append(((what,), (value, *disputed), (when,), source))
            yield Block("grid", rows=tuple(rows), widths=(44, 22, 14, 20), head=FIGURE_COLUMNS)

    def _build_grid(self, table: SentenceTable) -> Block:
        rows = tuple(
            ((Inline(to_printable(name)),), *(self._build_line(cell, "; ") for cell in row))
            for name, row in table.rows.items()
        )
        columns = len(table.titles) - 1
        widths = (24, *(76 // columns for _ in range(columns)))
        head = tuple(_shorten(to_printable(title), MAX_HEAD) for title in table.titles)
        return Block("grid", rows=rows, widths=widths, head=head)

    def _build_line(self, sentences: Sequence[Sentence], between: str = " ") -> Line:
        return _join_lines(map(self._build_sentence, sentences), between)

    def _build_sentence(self, sentence: Sentence) -> Line:
        lead, rest = sentence.split_lead()
        space = " " if lead and rest[:1].isspace() else ""
        plain = Inline(space + to_printable(rest))
        text = (Inline(to_printable(lead), "strong"), plain) if lead else (plain,)
        if sentence.kind == "frame":
            return text
        follows = (Inline(" ∴", "faint"),) if sentence.kind == "synthesis" else ()
        return (*text, *follows, *self._build_support(sentence.mark, sentence.visible_citations, sentence.claims))

    def _build_support(self, mark: Mark | None, citations: Sequence[str], claims: Sequence[str]) -> Line:
        """Build the mark, the footnote with the passages, and the links to the sources."""
        parts = [Inline(" "), Inline(mark, kind="sign")] if mark else []
        if found := [self.claims[name] for name in claims if name in self.claims and self.claims[name].spans]:
            self.footnotes += 1
            passages = tuple(line for claim in found for line in self._build_passages(claim))
            parts.append(Inline(kind="note", lines=passages))
        space = " "
        for source in citations:
            if source in self.numbers:
                parts += [Inline(space), self._cite(source)]
                space = "\N{NARROW NO-BREAK SPACE}"
        return tuple(parts)

    def _build_passages(self, claim: ReportClaim) -> Iterator[Line]:
        """Quote word for word, once; sources that have the same words are named together."""
        name = to_printable(claim.id)
        if claim.id in self.quoted:
            yield (Inline(f"{name}: see note {self.quoted[claim.id]}."),)
            return
        self.quoted[claim.id] = self.footnotes
        by_quote: dict[str, list[ReportSpan]] = {}
        for span in claim.spans:
            by_quote.setdefault(to_printable(span.quote), []).append(span)
        for quote, spans in by_quote.items():
            line = [Inline(f"{name} ", "strong")] if name else []
            line.append(Inline(f"“{quote}” "))
            for span in spans:
                card = self.cards.get(span.source)
                if span is not spans[0]:
                    line.append(Inline("; "))
                if card is not None:
                    line.append(self._cite(card.id))
                title = f" {to_printable(card.title)}" if card else to_printable(span.source)
                line.append(Inline(f"{title}, characters {span.start}–{span.end}", "faint"))
            yield tuple(line)
            name = ""

    def _cite(self, source: str) -> Inline:
        return Inline(source, kind="cite", number=self.numbers[source])

    def _build_references(self) -> Iterator[Block]:
        if self.report.sources:
            yield _make_heading("References")
        for number, card in enumerate(self.report.sources, 1):
            named = ", ".join(map(to_printable, [card.title, *filter(None, (card.author, card.place))]))
            url = get_web_address(card)
            address = Inline(url, kind="link") if url else Inline(to_printable(card.url), "faint")
            lines: tuple[Line, ...] = (
                (Inline(f"{to_printable(card.id)} ", "strong"), Inline(named)),
                (Inline(to_printable(", ".join(describe_source(card))), "faint"),),
                (address, Inline(f" · SHA-256 {to_printable(card.document)[:16]}…", "faint")),
            )
            yield Block("reference", lines, number=number)

    def _build_quality(self) -> Iterator[Block]:
        """Yield what a reviewer thought of the report, what went wrong on the way, and how it was made."""
        if scores := self.list_scores():
            yield _make_heading("Review")
            yield _make_grid(scores)
        for issue in self.issues:
            yield _make_paragraph(f"{issue.severity}, {issue.location}: {issue.description}", "faint")
        if self.report.errors:
            yield _make_heading("What went wrong")
            yield from map(_make_paragraph, self.report.errors)
        yield _make_heading("About this report")
        yield _make_grid(self.describe_quality().items())
        yield from (_make_paragraph(notice, "faint") for notice in self.report.notices)


def _make_heading(text: str) -> Block:
    return Block("heading", ((Inline(text),),))


def _make_paragraph(text: str, place: Place = "text") -> Block:
    return Block("paragraph", ((Inline(to_printable(text)),),), place)


def _make_grid(rows: Iterable[tuple[str, str]]) -> Block:
    lines = tuple(((Inline(to_printable(name), "strong"),), (Inline(to_printable(value)),)) for name, value in rows)
    return Block("grid", rows=lines, widths=(28, 72))


def _join_lines(lines: Iterable[Line], between: str = "") -> Line:
    joined: list[Inline] = []
    for line in lines:
        joined += [Inline(between), *line] if joined and between else line
    return tuple(joined)
