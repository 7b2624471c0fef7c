"""Extracts Word documents straight from the package: no entities, no network, no bombs."""

import re
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import error as ZlibError

from openassay.errors import ReadError
from openassay.fetch import formats
from openassay.fetch.formats import Extraction, parse_day
from openassay.text.words import clean_text

if TYPE_CHECKING:
    from lxml.etree import _Element

_MEMBER_LIMIT = 50_000_000
_RATIO_LIMIT = 200  # deflate reaches about 1,000 on zeros; document.xml of a real file stays below 40
_RATIO_FROM = 5_000_000

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_MC_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_INVISIBLE = (_W + "del", _W + "moveFrom", _W + "instrText", _MC_FALLBACK, _W + "pPr")
_DC = "{http://purl.org/dc/elements/1.1/}"
_CREATED = "{http://purl.org/dc/terms/}created"


def extract(source: Path | bytes) -> Extraction:
    try:
        with zipfile.ZipFile(BytesIO(source) if isinstance(source, bytes) else source) as package:
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
    return Extraction(
        text=clean_text("\n".join(_document_lines(_parse_xml(document)))),
        title=properties.get("title", ""),
        author=properties.get("creator") or None,
        published=parse_day(properties.get("created", "")),
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
    pending = list(reversed(body))
    while pending:
        block = pending.pop()
        if block.tag in (_W + "sdt", _W + "sdtContent", _W + "ins", _W + "customXml"):
            pending += reversed(block)  # content controls and tracked insertions hold blocks, too
        elif block.tag == _W + "tbl":
            rows = [[_element_text(cell) for cell in row.iterfind(_W + "tc")] for row in block.iterfind(_W + "tr")]
            rows = [row for row in rows if any(row)]
            marked = block.find(f"{_W}tr/{_W}trPr/{_W}tblHeader") is not None
            has_header = len(rows) > 1 and len(rows[0]) > 1 and (marked or formats.is_header_row(rows[0]))
            yield from formats.rows_to_lines(rows[0], rows[1:]) if has_header else formats.rows_to_lines([], rows)
            yield ""
        elif block.tag == _W + "p" and (text := _element_text(block)):
            style = block.find(f"{_W}pPr/{_W}pStyle")
            is_heading = style is not None and re.match(r"(?i)heading|title", style.get(_W + "val") or "") is not None
            is_item = block.find(f"{_W}pPr/{_W}numPr") is not None and not is_heading
            yield f"- {text}" if is_item else text
            if not is_item:
                yield ""


def _element_text(element: "_Element") -> str:
    parts: list[str] = []
    pending = [element]
    while pending:
        node = pending.pop()
        if node.tag == _W + "t":
            parts.append(node.text or "")
        elif node.tag in (_W + "tab", _W + "br", _W + "cr"):
            parts.append(" ")
        elif node.tag in _INVISIBLE or (node.tag == _W + "r" and node.find(f"{_W}rPr/{_W}vanish") is not None):
            continue
        else:
            pending += reversed(node)
            if node.tag == _W + "p" and node is not element:
                parts.append(" ")
    return " ".join("".join(parts).split())
