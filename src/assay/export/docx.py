"""A report as a Word document, written by pandoc: headings, tables, links, and the passages as footnotes.

Pandoc is handed the document as its own syntax tree, in which strings are data; in its sandbox it reads no file, asks
nobody, and does not know the time, so that the same report gives the same file. The program comes in the wheel
pypandoc-binary, or stands on the PATH.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from assay.errors import AssayError, ConfigurationError, install
from assay.export.document import Block, Document, Grid, Heading, Inline, Line, Paragraph, Reference, document
from assay.model.report import ReportData

SECONDS = 60.0
MEMORY = "1G"
ENVIRONMENT = None if os.name == "nt" else {"LANG": "C.UTF-8"}  # keys stay here; Windows starts nothing without one
API = [1, 23, 1]  # version of the syntax tree; pandoc 3 reads every 1.23
_PLAIN: list[Any] = ["", [], []]
_QUOTED = frozenset({"answer", "dispute", "notice"})


def render(report: ReportData) -> bytes:
    made = document(report)
    command = [program(), "--from=json", "--to=docx", "--sandbox", "--output=-", "+RTS", f"-M{MEMORY}", "-RTS"]
    tree = json.dumps(_tree(made)).encode()
    try:
        done = subprocess.run(command, input=tree, capture_output=True, timeout=SECONDS, check=False, env=ENVIRONMENT)
    except subprocess.TimeoutExpired as error:
        raise AssayError(
            f"pandoc has not written the document in {SECONDS:.0f} s", help="Choose html or md.", retryable=True
        ) from error
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it says nothing"]
        raise AssayError(f"pandoc could not write the document: {told[0]}", help="Choose html or md.")
    return done.stdout


def program() -> str:
    """The one in the wheel is known to fit, so it comes first."""
    spec = find_spec("pypandoc")
    if spec is not None and spec.origin:
        for name in ("pandoc", "pandoc.exe"):
            if (inside := Path(spec.origin).parent / "files" / name).is_file():
                return str(inside)
    if found := shutil.which("pandoc"):
        return found
    raise ConfigurationError("DOCX needs the extra `export`", help=install("export"))


def _tree(made: Document) -> dict[str, Any]:
    inlines = {"t": "MetaInlines"}
    about = {
        "title": {**inlines, "c": _words(made.title)},
        "date": {**inlines, "c": _words(made.day)},
        "lang": {**inlines, "c": _words("en")},
    }
    if not made.day:
        del about["date"]
    return {"pandoc-api-version": API, "meta": about, "blocks": [part for one in made.blocks for part in _block(one)]}


def _block(block: Block) -> Iterable[dict[str, Any]]:
    match block:
        case Heading(text=text):
            return [{"t": "Header", "c": [1, _PLAIN, _words(text)]}]
        case Paragraph(line=line, place=place):
            set_off = place in _QUOTED
            return [{"t": "BlockQuote", "c": [_para(line)]}] if set_off else [_para(line)]
        case Grid():
            return [_table(block)]
        case Reference(number=number, lines=lines):
            anchor = {"t": "Span", "c": [[f"ref-{number}", [], []], _line(lines[0])]}
            rest = [part for line in lines[1:] for part in ({"t": "LineBreak"}, *_line(line))]
            return [{"t": "Para", "c": [anchor, *rest]}]


def _table(grid: Grid) -> dict[str, Any]:
    whole = sum(grid.widths)
    columns = [[{"t": "AlignLeft"}, {"t": "ColWidth", "c": width / whole}] for width in grid.widths]
    head = [_row([[{"t": "Strong", "c": _words(name)}] for name in grid.head])] if grid.head else []
    rows = [_row(map(_line, row)) for row in grid.rows]
    return {"t": "Table", "c": [_PLAIN, [None, []], columns, [_PLAIN, head], [[_PLAIN, 0, [], rows]], [_PLAIN, []]]}


def _row(cells: Iterable[list[dict[str, Any]]]) -> list[Any]:
    return [_PLAIN, [[_PLAIN, {"t": "AlignDefault"}, 1, 1, [{"t": "Plain", "c": cell}]] for cell in cells]]


def _para(line: Line) -> dict[str, Any]:
    return {"t": "Para", "c": _line(line)}


def _line(line: Iterable[Inline]) -> list[dict[str, Any]]:
    return [part for inline in line for part in _inline(inline)]


def _inline(inline: Inline) -> list[dict[str, Any]]:
    match inline.kind:
        case "text":
            words = _words(inline.text)
            return [{"t": "Strong", "c": words}] if inline.look == "strong" else words
        case "sign":
            return [{"t": "Strong", "c": _words(inline.mark)}]
        case "cite":
            return [{"t": "Link", "c": [_PLAIN, _words(f"[{inline.source}]"), [f"#ref-{inline.number}", ""]]}]
        case "link":
            return [{"t": "Link", "c": [_PLAIN, _words(inline.url), [inline.url, ""]]}]
        case "note":
            return [{"t": "Note", "c": [_para(line) for line in inline.lines]}]


def _words(text: str) -> list[dict[str, Any]]:
    return [{"t": "Str", "c": text}] if text else []
