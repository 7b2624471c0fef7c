"""A page of figures: what stands between its marks is written from the record, all else by people."""

from pathlib import Path

from assay.errors import PathError, UsageError
from assay.evaluation.curves import drawn, shown
from assay.evaluation.record import Record, as_json
from assay.evaluation.registry import every
from assay.evaluation.table import laid_out, markdown
from assay.export.whole import write_whole

EMPTY = "# How well it does, in figures\n\n<!-- eval -->\n<!-- /eval -->\n"
PAGE, PICTURES = ".md", "images"


def record_of(page: Path) -> Path:
    """docs/quality.json stands beside docs/quality.md; of a record that is the record itself."""
    return page.with_suffix(".json")


def written(text: str, record: Record) -> str:
    """The page with what the record says: all measures in one place, each table and curve where the page wants it."""
    text = _put(text, "eval", markdown(every(), record))
    for name, curve in record.curves.items():
        text = _put(text, f"curve {name}", shown(name, curve, PICTURES))
    for name, table in record.tables.items():
        text = _put(text, f"table {name}", laid_out(table))
    return text


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8") if page.exists() else EMPTY


def keep(out: Path, record: Record) -> None:
    """The record, and where that is a page, the page and its pictures."""
    files = {record_of(out): as_json(record)}
    if out.suffix == PAGE:
        files |= {**pictures(out, record), out: written(text_of(out), record)}
    for file, text in files.items():
        try:
            file.parent.mkdir(exist_ok=True)
            write_whole(file, text.encode())
        except OSError as error:
            raise PathError(f"cannot write {file}: {error.strerror}", help="Choose another --out.") from error


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
