"""Extracts plain text, Markdown, CSV and Word documents; the last straight from the package: no entities, no bombs."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING
from zlib import error as ZlibError

from openassay.errors import ReadError
from openassay.fetch.formats import ContentFormat, Extraction, is_header_row, parse_day, reflow, rows_to_lines
from openassay.fetch.table_notes import add_company, find_company, find_filer, is_unit_note
from openassay.fetch.tables import GridCell, write_grid
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from lxml.etree import _Element
    from markdown_it.token import Token


_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")

# The Markdown parser does about 1 MB a second; a larger file is no hand-written document.
_MARKDOWN_LIMIT = 4_000_000
_FRONT_MATTER_LIMIT = 65_536


_CONTROL = bytes(byte for byte in range(32) if byte not in b"\t\n\v\f\r\x1b")


def decode_file(data: bytes) -> str:
    """Decode a file that does not say its encoding; raises ReadError for binary content."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    sample = data[:65_536]
    control = len(sample) - len(sample.translate(None, _CONTROL))
    if b"\x00" in sample or control > len(sample) // 20:
        raise ReadError("the content is binary, not text", help="Save it as text, Markdown, HTML, PDF or DOCX.")
    for encoding in ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    return data.decode("latin-1")


# A text may begin as a letter does, with a line for each thing it says of itself: "Date: 2024-03-05".
_HEADER_LINE = re.compile(r"(title|headline|author|by|date|published|publisher|source|url)[ \t]*:[ \t]*(\S.*)", re.I)
_HEADER_LINES, _LONGEST_TITLE = 12, 200


def extract_plain(data: bytes) -> Extraction:
    text = _normalise_newlines(decode_file(data))
    meta, body = split_header_lines(text)
    return _describe(meta, clean_text(reflow(body)))


def split_header_lines(text: str) -> tuple[Mapping[str, object], str]:
    """Split off the lines at the top that say what a text is, where there are two or more of them; a title may stand
    above them, and stays."""
    lines = text.lstrip("\n\ufeff").split("\n", _HEADER_LINES)
    titled = not _HEADER_LINE.fullmatch(lines[0].strip())
    found: dict[str, object] = {"title": lines[0].strip("# \t")} if titled else {}
    last = 0
    for at, line in enumerate(lines[:_HEADER_LINES]):
        if match := _HEADER_LINE.fullmatch(line.strip()):
            found.setdefault(match[1].lower(), match[2].strip())
            last = at + 1
        elif line.strip() and at:
            break
    if len(found) < 2 + titled or len(lines[0]) > _LONGEST_TITLE:
        return {}, text
    return found, "\n".join([*lines[:titled], *lines[last:]])


def _describe(meta: Mapping[str, object], text: str, title: str = "", notes: tuple[str, ...] = ()) -> Extraction:
    """What a file says of itself, by the names that people give such lines."""

    def find(*keys: str) -> str:
        return next(filter(None, (_meta_string(meta, key) for key in keys)), "")

    return Extraction(
        text=text,
        title=find("title", "headline") or title,
        author=find("author", "authors", "by") or None,
        published=parse_day(str(meta.get("published") or meta.get("date")).strip()),
        origin=find("source") or None,
        publisher=find("publisher") or None,
        notes=notes,
    )


def extract_markdown(data: bytes) -> Extraction:
    meta, body = split_front_matter(_normalise_newlines(decode_file(data)))
    if not meta:
        meta, body = split_header_lines(body)
    if len(body) > _MARKDOWN_LIMIT:
        text, heading = reflow(body), ""
        notes: tuple[str, ...] = ("too large to parse as Markdown; read as plain text",)
    else:
        from markdown_it import MarkdownIt

        writer = _MarkdownWriter()
        for token in MarkdownIt("commonmark").enable("table").parse(body):
            writer.add_token(token)
        text, heading, notes = "\n".join(writer.lines), writer.heading, ()
    return _describe(meta, clean_text(text), heading, notes)


def split_front_matter(text: str) -> tuple[Mapping[str, object], str]:
    """Split off the YAML block at the top; a block that is not valid YAML is dropped, not an error."""
    match = _FRONT_MATTER.match(text, 0, _FRONT_MATTER_LIMIT)
    if match is None:
        return {}, text
    import yaml

    try:
        meta = yaml.safe_load(clean_text(match[1]) if "\x00" in match[1] else match[1])
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: a date such as 2024-02-31
        meta = None
    if not isinstance(meta, dict):
        # Two thematic breaks around prose look like front matter but hold no `key:` line: content.
        return {}, text[match.end() :] if re.search(r"^\w+:", match[1], re.MULTILINE) else text
    return {str(key).lower(): value for key, value in meta.items()}, text[match.end() :]


def _meta_string(meta: Mapping[str, object], key: str) -> str:
    value = meta.get(key)
    if isinstance(value, list):
        value = ", ".join(str(item) for item in value)
    return " ".join(clean_text(str(value)).split()) if isinstance(value, (str, int, float)) else ""


def _normalise_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass
class _MarkdownWriter:
    """Collects lines from the parser's flat list of tokens."""

    lines: list[str] = field(default_factory=list)
    heading: str = ""
    _item: bool = False
    _heading: bool = False
    _section: str = ""  # the last heading
    _table: list[list[str]] | None = None

    def add_token(self, token: "Token") -> None:
        match token.type:
            case "inline":
                breaks = ("softbreak", "hardbreak")
                parts = [child for child in token.children or () if child.type in ("text", "code_inline", *breaks)]
                pieces = "".join(" " if child.type in breaks else child.content for child in parts)
                text = " ".join(pieces.split())
                if self._table:
                    self._table[-1].append(text)
                elif self._item:
                    self._item = False
                    self.lines.append(f"- {text}")
                elif text:
                    self._add_block(text)
                    if self._heading:
                        self.heading, self._section = self.heading or text, text if self.heading else ""
            case "fence" | "code_block":
                fence = token.markup if token.type == "fence" else "```"
                self._add_block(fence + token.info.strip(), *token.content.rstrip("\n").split("\n"), fence)
            case "heading_open":
                self._heading = True
            case "heading_close":
                self._heading = False
            case "list_item_open":
                self._item = True
            case "list_item_close":
                self._item = False
            case "bullet_list_close" | "ordered_list_close":
                self.lines.append("")
            case "html_block":
                self._add_block(_TAG.sub(" ", _COMMENT.sub("", token.content)).strip())
            case "table_open":
                self._table = []
            case "tr_open" if self._table is not None:
                self._table.append([])
            case "table_close" if self._table:
                rows = [[GridCell(text, is_head=not at) for text in row] for at, row in enumerate(self._table)]
                above = [line for line in self.lines[-2 * _MAX_ABOVE :] if line][-_MAX_ABOVE:]
                lines = write_grid(rows, above, self._section)
                self._add_block(*lines or rows_to_lines(self._table[0], self._table[1:]))
                self._table = None

    def _add_block(self, *lines: str) -> None:
        if any(lines):
            self.lines += [*lines, ""]


_MAX_ROWS = 50_000
_MAX_ABOVE = 3  # lines before a table that may say what it shows
_DELIMITERS = ",;\t|"


def extract_csv(data: bytes) -> Extraction:
    """Write a line that names the columns, then one line per row that stands alone."""
    text = decode_file(data)
    sample = text[:65_536]
    try:
        delimiter = csv.Sniffer().sniff(sample, delimiters=_DELIMITERS).delimiter
    except csv.Error:  # one column, or too few rows to tell
        delimiter = max(_DELIMITERS, key=sample.split("\n", 1)[0].count)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        records = ([" ".join(cell.split()) for cell in record] for record in reader)
        table = (cells for cells in records if any(cells))
        header = next(table, None)
        if header is None:
            return Extraction("")
        body = list(islice(table, _MAX_ROWS))
        notes = (f"only the first {_MAX_ROWS:,} rows were read",) if next(table, None) is not None else ()
        is_plain = is_header_row(header) and all(header[1:]) and not is_unit_note(header[0])
        if not is_plain or (body and not body[0][0]):
            # Titles above the headings, headings of several lines, or none; this takes six times as long.
            grid = write_grid([[GridCell(cell) for cell in row] for row in (header, *body)])
            if grid is not None:
                return Extraction(clean_text("\n".join(grid)), notes=notes)
        if not is_header_row(header):
            body.insert(0, header)
            header = [f"Column {number}" for number in range(1, len(header) + 1)]
        lines = ["Columns: " + ", ".join(name for name in header if name), "", *rows_to_lines(header, body)]
        return Extraction(clean_text("\n".join(lines)), notes=notes)
    except csv.Error as error:
        raise ReadError(f"not a readable CSV file: {error}", help="Save it again as CSV with quoted fields.") from error


_MEMBER_LIMIT = 50_000_000
_RATIO_LIMIT = 200  # deflate reaches about 1,000 on zeros; document.xml of a real file stays below 40
_RATIO_FROM = 5_000_000

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_MC_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_INVISIBLE = (_W + "del", _W + "moveFrom", _W + "instrText", _MC_FALLBACK, _W + "pPr")
_MARK = re.compile(r"[\[(]?(?:\d{1,2}|[a-z*†‡§])[\])]?", re.IGNORECASE)
_DC = "{http://purl.org/dc/elements/1.1/}"
_CREATED = "{http://purl.org/dc/terms/}created"


def extract_docx(data: bytes) -> Extraction:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            document = _read_member(package, "word/document.xml")
            core = _read_member(package, "docProps/core.xml") if "docProps/core.xml" in package.namelist() else b""
    except KeyError as error:
        raise _corrupt_error("it holds no Word document") from error
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ZlibError) as error:
        # RuntimeError: an encrypted member; NotImplementedError: an unknown compression
        raise _corrupt_error(str(error)) from error
    properties: dict[str, str] = {}
    if core:
        root = _parse_xml(core)
        tags = {"title": _DC + "title", "creator": _DC + "creator", "created": _CREATED}
        properties = {name: " ".join(clean_text(root.findtext(tag) or "").split()) for name, tag in tags.items()}
    text, title = clean_text("\n".join(_document_lines(_parse_xml(document)))), properties.get("title", "")
    return Extraction(
        text=add_company(text, find_company(title, text)),
        title=title,
        author=properties.get("creator") or None,
        published=parse_day(properties.get("created", "")),
        publisher=find_filer(text) or None,
    )


def _corrupt_error(reason: str) -> ReadError:
    return ReadError(f"not a readable Word document: {reason}", help="Open it in a word processor and save it again.")


def _read_member(package: zipfile.ZipFile, name: str) -> bytes:
    info = package.getinfo(name)
    ratio = info.file_size / max(1, info.compress_size)
    if info.file_size > _MEMBER_LIMIT or (info.file_size > _RATIO_FROM and ratio > _RATIO_LIMIT):
        raise _corrupt_error("it decompresses to an absurd size")
    with package.open(info) as member:  # the declared size may lie
        data = member.read(_MEMBER_LIMIT + 1)
    if len(data) > _MEMBER_LIMIT:
        raise _corrupt_error("it decompresses to an absurd size")
    return data


def _parse_xml(data: bytes) -> "_Element":
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(data.replace(_STRICT.encode(), _W[1:-1].encode()), parser)
    except etree.XMLSyntaxError as error:
        raise _corrupt_error("its XML is broken") from error


def _document_lines(root: "_Element") -> Iterator[str]:
    body = root.find(_W + "body")
    if body is None:
        raise _corrupt_error("it has no body")
    pending, above, heading = list(reversed(body)), list[str](), ""
    while pending:
        block = pending.pop()
        if block.tag in (_W + "sdt", _W + "sdtContent", _W + "ins", _W + "customXml"):
            pending += reversed(block)  # content controls and tracked insertions hold blocks, too
        elif block.tag == _W + "tbl":
            rows = [row for row in _table_rows(block) if any(cell.text for cell in row)]
            yield from write_grid(rows, above, heading) or rows_to_lines(
                [], [[cell.text for cell in row] for row in rows]
            )
            yield ""
            above = []
        elif block.tag == _W + "p" and (text := _element_text(block)):
            style = block.find(f"{_W}pPr/{_W}pStyle")
            is_heading = style is not None and re.match(r"(?i)heading|title", style.get(_W + "val") or "") is not None
            is_item = block.find(f"{_W}pPr/{_W}numPr") is not None and not is_heading
            above, heading = [*above, text][-_MAX_ABOVE:], text if is_heading else heading
            yield f"- {text}" if is_item else text
            if not is_item:
                yield ""


def _table_rows(table: "_Element") -> Iterator[list[GridCell]]:
    above: dict[int, str] = {}  # by column, the text of the cell that goes on below
    for row in table.iterfind(_W + "tr"):
        is_head, column, cells = row.find(f"{_W}trPr/{_W}tblHeader") is not None, 0, list[GridCell]()
        for cell in row.iterfind(_W + "tc"):
            span, merge = cell.find(f"{_W}tcPr/{_W}gridSpan"), cell.find(f"{_W}tcPr/{_W}vMerge")
            columns = (span.get(_W + "val") or "") if span is not None else ""
            is_below = merge is not None and merge.get(_W + "val") != "restart"
            text = above.get(column, "") if is_below else _element_text(cell, in_table=True)
            above[column] = text
            cells.append(GridCell(text, int(columns) if columns.isdecimal() else 1, is_head=is_head))
            column += cells[-1].columns
        yield cells


def _element_text(element: "_Element", *, in_table: bool = False) -> str:
    """The text of an element; of a cell without raised marks, which would read as part of its figure."""
    parts: list[str] = []
    pending = [element]
    while pending:
        node = pending.pop()
        if node.tag == _W + "t":
            parts.append(node.text or "")
        elif node.tag in (_W + "tab", _W + "br", _W + "cr"):
            parts.append(" ")
        elif node.tag in _INVISIBLE or (node.tag == _W + "r" and _is_left_out(node, in_table)):
            continue
        else:
            pending += reversed(node)
            if node.tag == _W + "p" and node is not element:
                parts.append(" ")
    return " ".join("".join(parts).split())


def _is_left_out(run: "_Element", in_table: bool) -> bool:
    if run.find(f"{_W}rPr/{_W}vanish") is not None:
        return True
    raised = run.find(f"{_W}rPr/{_W}vertAlign[@{_W}val='superscript']")
    return in_table and raised is not None and _MARK.fullmatch("".join(map(str, run.itertext())).strip()) is not None


EXTRACTORS: dict[ContentFormat, Callable[[bytes], Extraction]] = {
    ContentFormat.PLAIN: extract_plain,
    ContentFormat.MARKDOWN: extract_markdown,
    ContentFormat.CSV: extract_csv,
    ContentFormat.DOCX: extract_docx,
}
