"""Renderings of a report. The structure in `model.report` is the report; everything here is a view of it."""

import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, get_args
from zipfile import ZIP_DEFLATED, ZipFile

from openassay.errors import PathError, UsageError
from openassay.models.report import ReportData

# A file for people: complete and with their usual rights, or not there at all.


def write_atomically(path: Path, content: bytes) -> None:
    """A device or a pipe is written to, never replaced."""
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with open_atomically(path) as file:
        file.write(content)


@contextmanager
def open_atomically(path: Path) -> Iterator[BinaryIO]:
    """A file beside it, which takes its place at the end, unless something was wrong with it. A link stays a link."""
    path = path.resolve()
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=".openassay-", suffix=".part")
    os.close(handle)
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(path.stat().st_mode if path.exists() else 0o666 & ~_read_umask())
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Several files in one: a zip that is complete or not there at all.


def write_zip(path: Path, files: Mapping[str, bytes]) -> None:
    try:
        with open_atomically(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as bundle:
            for name, content in files.items():
                bundle.writestr(name, content)
    except OSError as error:
        raise make_write_error(path, error) from error


def make_write_error(path: Path, error: OSError) -> PathError:
    return PathError(f"cannot write {path}: {error.strerror}", help="Choose another file with --out.")


# What a file is called that has no name yet.

LONGEST = 80  # characters


def to_file_stem(title: str) -> str:
    """The title, as far as every system takes it for a file's name."""
    name = re.sub(r"[^\w ()+,.-]+", " ", unicodedata.normalize("NFC", title))
    return " ".join(name.split())[:LONGEST].strip(" .-") or "report"


# Every format a report is exported in: one list, which the command line, the server and the pages go by.
#
# A format is a pure function of the report. What it needs is imported when it is asked for.

FormatName = Literal["md", "obsidian", "quarto", "html", "pdf", "docx", "json", "bibtex", "ris", "csl", "csv"]


class ExportFormat(NamedTuple):
    """`ending` is that of its files. A slow one takes a program of its own, and its time. `caveats` tells what a reader
    of this file would miss; `need` refuses where something is not installed."""

    name: FormatName
    ending: str
    media: str
    about: str
    write: Callable[[ReportData], bytes]
    is_text: bool = True
    is_slow: bool = False
    caveats: Callable[[ReportData], Sequence[str]] = lambda report: ()
    need: Callable[[], object] = lambda: None


def _to_markdown(report: ReportData) -> bytes:
    from openassay.export.markdown import render_markdown

    return render_markdown(report).encode()


def _to_obsidian(report: ReportData) -> bytes:
    from openassay.export.markdown import render_obsidian

    return render_obsidian(report).encode()


def _to_quarto(report: ReportData) -> bytes:
    from openassay.export.markdown import render_quarto

    return render_quarto(report).encode()


def _to_html(report: ReportData) -> bytes:
    from openassay.export.html import render_page

    return render_page(report).encode()


def _to_pdf(report: ReportData) -> bytes:
    from openassay.export.pages import render_pdf

    return render_pdf(report)


def _list_pdf_caveats(report: ReportData) -> Sequence[str]:
    from openassay.export.pages import list_caveats

    return list_caveats(report)


def _need_typst() -> None:
    from openassay.export.pages import require_typst

    require_typst()


def _to_docx(report: ReportData) -> bytes:
    from openassay.export.pages import render_docx

    return render_docx(report)


def _need_pandoc() -> None:
    from openassay.export.pages import find_pandoc

    find_pandoc()


def _to_json(report: ReportData) -> bytes:
    return f"{report.model_dump_json(indent=2)}\n".encode()


def _to_bibtex(report: ReportData) -> bytes:
    from openassay.export.citations import to_bibtex

    return to_bibtex(report).encode()


def _to_ris(report: ReportData) -> bytes:
    from openassay.export.citations import to_ris

    return to_ris(report).encode()


def _to_csl(report: ReportData) -> bytes:
    from openassay.export.citations import to_csl

    return to_csl(report).encode()


def _to_csv(report: ReportData) -> bytes:
    from openassay.export.markdown import as_csv, build_claims_table

    return as_csv(build_claims_table(report)).encode()


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_UTF8 = "; charset=utf-8"
_ALL = (
    ExportFormat("md", ".md", f"text/markdown{_UTF8}", "Markdown", _to_markdown),
    ExportFormat("obsidian", ".md", f"text/markdown{_UTF8}", "a note for an Obsidian vault", _to_obsidian),
    ExportFormat("quarto", ".qmd", f"text/markdown{_UTF8}", "a Quarto document with its bibliography", _to_quarto),
    ExportFormat("html", ".html", f"text/html{_UTF8}", "one page that needs nothing else", _to_html),
    ExportFormat(
        "pdf",
        ".pdf",
        "application/pdf",
        "for print, with the passages as footnotes",
        _to_pdf,
        is_text=False,
        is_slow=True,
        caveats=_list_pdf_caveats,
        need=_need_typst,
    ),
    ExportFormat(
        "docx",
        ".docx",
        _DOCX,
        "a Word document, with the passages as footnotes",
        _to_docx,
        is_text=False,
        is_slow=True,
        need=_need_pandoc,
    ),
    ExportFormat("json", ".json", "application/json", "the report as data", _to_json),
    ExportFormat("bibtex", ".bib", f"text/x-bibtex{_UTF8}", "the sources for LaTeX", _to_bibtex),
    ExportFormat(
        "ris", ".ris", f"application/x-research-info-systems{_UTF8}", "the sources for EndNote and others", _to_ris
    ),
    ExportFormat(
        "csl", ".csl.json", "application/vnd.citationstyles.csl+json", "the sources for Zotero and pandoc", _to_csl
    ),
    ExportFormat("csv", ".csv", f"text/csv{_UTF8}; header=present", "the statements, with what each rests on", _to_csv),
)
FORMATS: dict[str, ExportFormat] = {format.name: format for format in _ALL}
_ENDINGS = {".htm": "html", ".markdown": "md", ".txt": "md", "": "md"} | {
    format.ending: format.name
    for format in reversed(_ALL)  # of two with the same ending it is the first
}
ZIP = "zip"  # everything of a thread, which is more than a report


def get_format(name: str) -> ExportFormat:
    """UsageError where there is no such format."""
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name.lower(), [*FORMATS, ZIP], n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no format “{name}”", help=f"{hint}Formats: {', '.join([*FORMATS, ZIP])}.")


def get_file_format(path: Path) -> ExportFormat:
    """By the ending of its name; PathError where that is none of ours."""
    name = path.name.lower()
    ending = next((ending for ending in (".csl.json", path.suffix.lower()) if ending and name.endswith(ending)), "")
    if ending not in _ENDINGS:
        raise PathError(
            f"{path}: OpenAssay writes {', '.join(list_endings())}", help="Choose one of these endings for --out."
        )
    return FORMATS[_ENDINGS[ending]]


def list_endings() -> list[str]:
    return list(dict.fromkeys(FORMATS[name].ending for name in get_args(FormatName)))
