"""A page of figures: what stands between its marks is written from the record, all else by people."""

from pathlib import Path

from assay.errors import UsageError
from assay.evaluation.curves import drawn, shown
from assay.evaluation.record import Record
from assay.evaluation.registry import every
from assay.evaluation.table import markdown

EMPTY = "# How well it does, in figures\n\n<!-- eval -->\n<!-- /eval -->\n"
PICTURES = "images"


def record_of(page: Path) -> Path:
    """docs/quality.json stands beside docs/quality.md."""
    return page.with_suffix(".json")


def written(text: str, record: Record) -> str:
    """The page with what the record says: all figures in one place, each curve where the page wants it."""
    text = _put(text, "eval", markdown(every(), record))
    for name, curve in record.curves.items():
        text = _put(text, f"curve {name}", shown(name, curve, PICTURES))
    return text


def pictures(page: Path, record: Record) -> dict[Path, str]:
    return {page.parent / PICTURES / f"{name}.svg": drawn(curve) for name, curve in record.curves.items()}


def _put(text: str, part: str, content: str) -> str:
    first, last = f"<!-- {part} -->", f"<!-- /{part} -->"
    before, begins, rest = text.partition(first)
    _, ends, after = rest.partition(last)
    if not begins or not ends:
        raise UsageError(
            f"the page has no place for what was measured: {first} and {last} are missing",
            help="Write both marks into the page, each on a line of its own, or name a new file with --out.",
        )
    return f"{before}{first}\n{content}\n{last}{after}"
