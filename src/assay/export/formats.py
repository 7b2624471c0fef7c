"""Every format a report is exported in: one list, which the command line, the server and the pages go by.

A format is a pure function of the report. What it needs is imported when it is asked for.
"""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from assay.errors import PathError, UsageError
from assay.model.report import ReportData

FormatName = Literal["md", "obsidian", "quarto", "html", "pdf", "docx", "json", "bibtex", "ris", "csl", "csv"]


class Format(NamedTuple):
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


def _markdown(report: ReportData) -> bytes:
    from assay.export.markdown import render

    return render(report).encode()


def _obsidian(report: ReportData) -> bytes:
    from assay.export.obsidian import render

    return render(report).encode()


def _quarto(report: ReportData) -> bytes:
    from assay.export.quarto import render

    return render(report).encode()


def _html(report: ReportData) -> bytes:
    from assay.export.html import page

    return page(report).encode()


def _pdf(report: ReportData) -> bytes:
    from assay.export.pdf import render

    return render(report)


def _unset(report: ReportData) -> Sequence[str]:
    from assay.export.pdf import caveats

    return caveats(report)


def _need_typst() -> None:
    from assay.export.pdf import need

    need()


def _docx(report: ReportData) -> bytes:
    from assay.export.docx import render

    return render(report)


def _need_pandoc() -> None:
    from assay.export.docx import program

    program()


def _json(report: ReportData) -> bytes:
    return f"{report.model_dump_json(indent=2)}\n".encode()


def _bibtex(report: ReportData) -> bytes:
    from assay.export.citations import bibtex

    return bibtex(report).encode()


def _ris(report: ReportData) -> bytes:
    from assay.export.citations import ris

    return ris(report).encode()


def _csl(report: ReportData) -> bytes:
    from assay.export.citations import csl

    return csl(report).encode()


def _csv(report: ReportData) -> bytes:
    from assay.export.table import as_csv, claims

    return as_csv(claims(report)).encode()


_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_UTF8 = "; charset=utf-8"
_ALL = (
    Format("md", ".md", f"text/markdown{_UTF8}", "Markdown", _markdown),
    Format("obsidian", ".md", f"text/markdown{_UTF8}", "a note for an Obsidian vault", _obsidian),
    Format("quarto", ".qmd", f"text/markdown{_UTF8}", "a Quarto document with its bibliography", _quarto),
    Format("html", ".html", f"text/html{_UTF8}", "one page that needs nothing else", _html),
    Format("pdf", ".pdf", "application/pdf", "for print, with the passages as footnotes", _pdf, is_text=False,
           is_slow=True, caveats=_unset, need=_need_typst),
    Format("docx", ".docx", _DOCX, "a Word document, with the passages as footnotes", _docx, is_text=False,
           is_slow=True, need=_need_pandoc),
    Format("json", ".json", "application/json", "the report as data", _json),
    Format("bibtex", ".bib", f"text/x-bibtex{_UTF8}", "the sources for LaTeX", _bibtex),
    Format("ris", ".ris", f"application/x-research-info-systems{_UTF8}", "the sources for EndNote and others", _ris),
    Format("csl", ".csl.json", "application/vnd.citationstyles.csl+json", "the sources for Zotero and pandoc", _csl),
    Format("csv", ".csv", f"text/csv{_UTF8}; header=present", "the statements, with what each rests on", _csv),
)  # fmt: skip
FORMATS: dict[str, Format] = {format.name: format for format in _ALL}
_ENDINGS = {".htm": "html", ".markdown": "md", ".txt": "md", "": "md"} | {
    format.ending: format.name
    for format in reversed(_ALL)  # of two with the same ending it is the first
}
ZIP = "zip"  # everything of a thread, which is more than a report


def named(name: str) -> Format:
    """UsageError where there is no such format."""
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name.lower(), [*FORMATS, ZIP], n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no format “{name}”", help=f"{hint}Formats: {', '.join([*FORMATS, ZIP])}.")


def of_file(path: Path) -> Format:
    """By the ending of its name; PathError where that is none of ours."""
    name = path.name.lower()
    ending = next((ending for ending in (".csl.json", path.suffix.lower()) if ending and name.endswith(ending)), "")
    if ending not in _ENDINGS:
        raise PathError(f"{path}: Assay writes {', '.join(endings())}", help="Choose one of these endings for --out.")
    return FORMATS[_ENDINGS[ending]]


def endings() -> list[str]:
    return list(dict.fromkeys(FORMATS[name].ending for name in get_args(FormatName)))
