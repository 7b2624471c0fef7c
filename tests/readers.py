"""Readers of what is exported: the programs and libraries that people open such files with."""

import csv
import io
import json
import re
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import ZipFile

import docx
import jsonschema  # type: ignore[import-untyped]
import pypdfium2
import rispy  # type: ignore[import-untyped]
import yaml
from bibtexparser.entrypoint import parse_string
from citeproc import (  # type: ignore[import-untyped]
    Citation,
    CitationItem,
    CitationStylesBibliography,
    CitationStylesStyle,
    formatter,
)
from citeproc.source.json import CiteProcJSON  # type: ignore[import-untyped]
from lxml import html as lxml_html
from markdown_it import MarkdownIt

from openassay.export.pdf_docx import find_pandoc

SCHEMA = Path(__file__).resolve().parents[1] / "docs/reference/report.schema.json"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@dataclass(frozen=True)
class Pdf:
    pages: int
    text: str
    title: str
    outline: list[str]


def read_pdf(content: bytes) -> Pdf:
    with pypdfium2.PdfDocument(content) as file:
        text = "\n".join(page.get_textpage().get_text_range() for page in file)
        outline = [mark.get_title() for mark in file.get_toc()]
        return Pdf(len(file), flat(text), file.get_metadata_value("Title"), outline)


@dataclass(frozen=True)
class Docx:
    text: str
    headings: list[str]
    footnotes: list[str]
    tables: int
    links: set[str]
    title: str


def read_docx(content: bytes) -> Docx:
    file = docx.Document(io.BytesIO(content))
    with ZipFile(io.BytesIO(content)) as parts:
        notes = ElementTree.fromstring(parts.read("word/footnotes.xml"))  # noqa: S314  # of our own making
    told = [flat("".join(text.text or "" for text in note.iter(f"{WORD}t"))) for note in notes]
    return Docx(
        text=flat(" ".join(paragraph.text for paragraph in file.paragraphs)),
        headings=[one.text for one in file.paragraphs if str(one.style and one.style.name).startswith("Heading")],
        footnotes=[note for note in told if note],
        tables=len(file.tables),
        links={rel.target_ref for rel in file.part.rels.values() if rel.is_external},
        title=file.core_properties.title,
    )


def read_front_matter(content: bytes) -> tuple[dict[str, Any], str]:
    empty, front, body = content.decode().split("---\n", 2)
    assert empty == ""
    about = yaml.safe_load(front)
    assert isinstance(about, dict)
    return about, body


def markdown_shape(text: str) -> list[str]:
    """What its blocks are, and what stands in them that is more than text."""
    shape = []
    for block in MarkdownIt("commonmark").enable("table").parse(text):
        inlines = [one for one in block.children or () if one.type not in ("text", "softbreak", "hardbreak")]
        shape += [f"{block.type} {block.tag}".strip(), *(one.type for one in inlines)]
        for one in inlines:
            if one.type == "link_open":
                assert re.match(r"#|https?:|file:|demo:", str(one.attrs["href"])), one.attrs
            if one.type == "html_inline":
                assert re.fullmatch(r'<a id="[a-z0-9-]+">|</a>', one.content), one.content
    return shape


def read_quarto(content: bytes) -> Any:
    """As Quarto has it read: by pandoc, with its citations."""
    done = subprocess.run(
        [find_pandoc(), "--from=markdown-smart", "--to=json", "--citeproc", "--sandbox", "--fail-if-warnings"],
        input=content, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def read_json(content: bytes) -> Any:
    """As the published schema has it."""
    plain = json.loads(content)
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(plain)
    return plain


def read_page(content: bytes) -> Any:
    """An element of lxml; whatever it asks for is in it."""
    page: Any = lxml_html.document_fromstring(content.decode())
    assert not page.xpath("//script|//link|//img|//iframe|//@src|//@style|//@*[starts-with(name(), 'on')]")
    return page


def read_bibtex(content: bytes) -> list[dict[str, str]]:
    library = parse_string(content.decode())
    assert not library.failed_blocks
    return [
        {"type": one.entry_type, "key": one.key, **{field.key: str(field.value) for field in one.fields}}
        for one in library.entries
    ]


def read_ris(content: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rispy.loads(content.decode())
    return found


def read_csl(content: bytes) -> list[str]:
    """Each work as a line of a bibliography."""
    items = json.loads(content)
    with warnings.catch_warnings():  # fields that it does not know, and those of its own code
        warnings.simplefilter("ignore")
        style = CitationStylesStyle("harvard-cite-them-right", validate=False)
        made = CitationStylesBibliography(style, CiteProcJSON(items), formatter.plain)
        for item in items:
            made.register(Citation([CitationItem(item["id"])]))
        return [flat("".join(entry)) for entry in made.bibliography()]


def read_csv(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def flat(text: str) -> str:
    return " ".join(text.split())
