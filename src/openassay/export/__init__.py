"""Renders reports for people and programs: the list of formats, and the writing of files.

The structure in `models.report` is the report; everything here is a view of it.
"""

import os
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from openassay.errors import PathError, UsageError
from openassay.export.citations import to_bibtex, to_csl, to_ris
from openassay.export.html import render_fragment, render_page
from openassay.export.layout import render_claims_csv
from openassay.export.markdown import render_markdown, render_obsidian, render_quarto
from openassay.export.pdf_docx import find_pandoc, list_caveats, render_docx, render_pdf, require_typst
from openassay.models.report import ReportData

FormatName = Literal["md", "obsidian", "quarto", "html", "pdf", "docx", "json", "bibtex", "ris", "csl", "csv"]
MAX_STEM = 80  # characters of a file's name


class Report(ReportData):
    """What `research()` returns: the data of a report, and how it looks. In a notebook it shows itself."""

    @property
    def markdown(self) -> str:
        return render_markdown(self)

    @property
    def html(self) -> str:
        return render_fragment(self)

    def _repr_html_(self) -> str:
        return self.html

    def _repr_markdown_(self) -> str:
        return self.markdown


class ExportFormat(NamedTuple):
    """A format that a report is exported in.

    Another program makes a file that `is_binary`. `caveats` lists what a reader of the file would miss, and `need`
    raises ConfigurationError where something is not installed.
    """

    ending: str
    media: str
    render: Callable[[ReportData], str | bytes]
    is_binary: bool = False
    caveats: Callable[[ReportData], Sequence[str]] = lambda report: ()
    need: Callable[[], object] = lambda: None

    def write(self, report: ReportData) -> bytes:
        content = self.render(report)
        return content.encode() if isinstance(content, str) else content


_MARKDOWN = "text/markdown; charset=utf-8"
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# Every format there is: the command line, the server and the page offer what is in this table.
FORMATS: dict[str, ExportFormat] = {
    "md": ExportFormat(".md", _MARKDOWN, render_markdown),
    "obsidian": ExportFormat(".md", _MARKDOWN, render_obsidian),
    "quarto": ExportFormat(".qmd", _MARKDOWN, render_quarto),
    "html": ExportFormat(".html", "text/html; charset=utf-8", render_page),
    "pdf": ExportFormat(".pdf", "application/pdf", render_pdf, True, list_caveats, require_typst),
    "docx": ExportFormat(".docx", _DOCX, render_docx, True, need=find_pandoc),
    "json": ExportFormat(".json", "application/json", lambda report: f"{report.model_dump_json(indent=2)}\n"),
    "bibtex": ExportFormat(".bib", "text/x-bibtex; charset=utf-8", to_bibtex),
    "ris": ExportFormat(".ris", "application/x-research-info-systems; charset=utf-8", to_ris),
    "csl": ExportFormat(".csl.json", "application/vnd.citationstyles.csl+json", to_csl),
    "csv": ExportFormat(".csv", "text/csv; charset=utf-8; header=present", render_claims_csv),
}
# Of two formats with the same ending, the first has it.
_ENDINGS = {format.ending: name for name, format in reversed(FORMATS.items())}
_ENDINGS |= {".htm": "html", ".markdown": "md", ".txt": "md", "": "md"}
ZIP = "zip"  # everything of a thread, which is more than a report


def get_format(name: str) -> ExportFormat:
    """Return the format of this name. UsageError where there is none."""
    if name in FORMATS:
        return FORMATS[name]
    near = get_close_matches(name.lower(), [*FORMATS, ZIP], n=1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"there is no format “{name}”", help=f"{hint}Formats: {', '.join([*FORMATS, ZIP])}.")


def get_file_format(path: Path) -> ExportFormat:
    """Return the format that a file's ending stands for. PathError where it stands for none."""
    ending = ".csl.json" if path.name.lower().endswith(".csl.json") else path.suffix.lower()
    if ending not in _ENDINGS:
        endings = dict.fromkeys(format.ending for format in FORMATS.values())
        raise PathError(f"{path}: OpenAssay writes {', '.join(endings)}", help="Choose one of these endings for --out.")
    return FORMATS[_ENDINGS[ending]]


def to_file_stem(title: str) -> str:
    """Return a title as a file name that every system accepts."""
    name = re.sub(r"[^\w ()+,.-]+", " ", unicodedata.normalize("NFC", title))
    return " ".join(name.split())[:MAX_STEM].strip(" .-") or "report"


@contextmanager
def open_atomically(path: Path, help: str = "Choose another file with --out.") -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place at the end, unless an error was raised.

    A link stays a link; a device or a pipe is written to, never replaced. PathError where nothing can be written."""
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        target = path.resolve()
        handle, part = tempfile.mkstemp(dir=target.parent, prefix=".openassay-", suffix=".part")
        os.close(handle)
        try:
            with open(part, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)  # it can only be read by setting it
            os.umask(umask)
            Path(part).chmod(target.stat().st_mode if target.exists() else 0o666 & ~umask)
            os.replace(part, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise PathError(f"cannot write {path}: {error.strerror}", help=help) from error


def write_zip(path: Path, files: Mapping[str, bytes]) -> None:
    """Write several files as one zip that is complete or not there at all."""
    with open_atomically(path) as file, ZipFile(file, "w", ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
