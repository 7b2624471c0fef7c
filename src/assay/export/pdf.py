"""A report as PDF, set by Typst: contents, bookmarks, marks, and the passages as footnotes.

The template is a file of ours, and the report is handed to it as data: no text in it can become markup. The fonts are
those that come with Typst, so that a PDF is the same on every machine; a machine's own are asked only for writing that
those lack.
"""

import json
import re
import unicodedata
from collections import Counter
from dataclasses import asdict
from datetime import date
from importlib.resources import files
from importlib.util import find_spec

from assay.errors import AssayError, ConfigurationError, install
from assay.export.document import document
from assay.model.report import ReportData

SHORT = 90  # characters of the title at the foot of a page
# Scripts that the fonts in the wheel of Typst have letters of; told by the first word of a character's name.
_SHOWN = frozenset("LATIN GREEK CYRILLIC HEBREW ARABIC DEVANAGARI ARMENIAN GEORGIAN MATHEMATICAL MODIFIER".split())
_NAMES = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
_BEYOND = re.compile(r"[\u0500-\U0010ffff]")


def render(report: ReportData) -> bytes:
    need()
    import typst

    unknown = caveats(report)
    made = document(report, unknown)
    title = made.title if len(made.title) <= SHORT else f"{made.title[: SHORT - 1]}…"
    data = {**asdict(made), "short": title, "date": _date(made.day)}
    template = files("assay.export").joinpath("report.typ").read_bytes()
    try:
        return typst.compile(
            template,
            format="pdf",
            sys_inputs={"report": json.dumps(data)},
            ignore_system_fonts=not unknown,
        )
    except typst.TypstError as error:
        raise AssayError(f"the PDF could not be set: {error.message}", help="Choose another format.") from error


def need() -> None:
    if find_spec("typst") is None:
        raise ConfigurationError("PDF needs the extra `export`", help=install("export"))


def caveats(report: ReportData) -> list[str]:
    """What a reader would miss, said in the PDF as well."""
    scripts = _scripts(json.dumps(asdict(document(report)), ensure_ascii=False))
    if not scripts:
        return []
    return [
        f"This report has {', '.join(scripts)} writing, which the fonts of a PDF lack: where this machine has no font "
        "for it, boxes stand in its place. The HTML, DOCX and Markdown files show it."
    ]


def _scripts(text: str) -> list[str]:
    """Those that our fonts cannot show, the most frequent first."""
    found = Counter(map(_script, _BEYOND.findall(text)))
    return [name for name, _ in found.most_common() if name]


def _script(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "So" and character >= "\U0001f000":
        return "emoji"
    name = unicodedata.name(character, "").split()[:1]
    if kind[0] != "L" or not name or name[0] in _SHOWN:
        return ""
    return _NAMES.get(name[0], name[0].capitalize())


def _date(day: str) -> tuple[int, int, int] | None:
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return None
    return found.year, found.month, found.day
