"""Folders indexed at a person's request, with how far it is."""

import asyncio
import json as jsonlib
import time
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openassay.bootstrap import build_file_reader, open_resources, scan_folder
from openassay.cli.screen import format_dollars, open_console, print_message, to_one_line, wrap_line
from openassay.companies.register import open_companies
from openassay.errors import NotFoundError, PathError, ReadError, StorageError
from openassay.models.evidence import Company
from openassay.protocols import DocumentFolder, IndexCounts, IndexUpdate, PageResult, PassageIndex, RemoteSource, Source
from openassay.search.index import IndexProgress, add_vectors, synchronise
from openassay.settings import Settings, load
from openassay.storage.index_store import IndexStore, IndexSummary, open_index_store
from openassay.text.words import pluralize

# `openassay sources company`: which company a name, a ticker or a description stands for.


def show_company(name: str, as_json: bool) -> None:
    """Exits with 1 where no company is meant, and where several may be."""
    register = open_companies()
    found = register.resolve(name)
    candidates = [] if found else register.candidates(name)
    if as_json:
        shown = {
            "company": found and found.model_dump(mode="json"),
            "candidates": [_company_to_dict(one) for one in candidates],
        }
        typer.echo(jsonlib.dumps(shown, indent=2, ensure_ascii=False))
    elif found:
        typer.echo(_format_company(found))
    for one in candidates if not as_json else ():
        typer.echo(_format_company(one))
    if not found:
        said = to_one_line(name.strip())[:80]
        typer.echo(f"{said!r} may be any of these." if candidates else f"no company is called {said!r}", err=True)
        raise typer.Exit(1)


def _company_to_dict(company: Company) -> dict[str, object]:
    return company.model_dump(mode="json")


def _format_company(company: Company) -> str:
    return f"{company.cik:010}  {company.short:28}  {' '.join(company.tickers[:3]):16}  {company.name}"


LISTED = 50  # files that were left out, by name; --json has them all
EVERY = 10.0  # seconds between two lines of a log
UNBROKEN = 10_000  # columns where nobody looks: a script wants a line a folder
_OTHER_KINDS = "not a kind of file OpenAssay reads"


class IndexOptions(NamedTuple):
    vectors: bool
    jobs: int | None
    json: bool
    quiet: bool


class IndexResult(NamedTuple):
    folder: DocumentFolder
    indexed: IndexUpdate
    holdings: IndexCounts
    seconds: float


def index_folders(paths: Sequence[Path], wishes: IndexOptions) -> None:
    settings = load()
    folders = [scan_folder(path) for path in paths]  # a wrong path is told before an hour's work on the others
    with open_index_store(settings) as shelf:
        if settings.persistence.backend == "postgres" and not shelf.are_shared:
            print_message("note: persistence.encrypt is set, so the index stays on this machine, in the clear.")
        try:
            done = [_index_folder(shelf, settings, folder, wishes) for folder in folders]
        except KeyboardInterrupt:
            print_message("Stopped. What was indexed is kept; the same command goes on from there.")
            raise
    if wishes.json:
        typer.echo(jsonlib.dumps([_result_to_dict(one) for one in done], indent=2))
    else:
        for one in done:
            _show_result(one)


def _index_folder(shelf: IndexStore, settings: Settings, folder: DocumentFolder, wishes: IndexOptions) -> IndexResult:
    began = time.monotonic()
    library = shelf.libraries.open(folder.root)
    with library.lock_updates(wait=0) as mine:
        if not mine:
            raise StorageError(
                f"{folder.root} is being indexed by another process",
                help="Wait for it to end; or stop it, and this one goes on where it was.",
                retryable=True,
            )
        reader = build_file_reader(settings, shelf.uploads)
        with _IndexMeter(folder.root.name, "files", quiet=wishes.quiet) as meter:
            found = synchronise(folder, library, reader, jobs=wishes.jobs, watch=meter.show)
        if not found.files:
            path, reason = found.skipped[0]
            raise PathError(
                f"{folder.root}: no document could be read, such as {Path(path).name} ({reason})",
                help="Give a folder with .md .txt .html .pdf .docx or .csv files.",
            )
        shelf.libraries.keep(folder.root)
        notices = _make_vectors(library, folder, wishes) if wishes.vectors else []
    for notice in notices:
        print_message(f"note: {notice}")
    return IndexResult(folder, found._replace(notices=notices), library.count_contents(), time.monotonic() - began)


def _make_vectors(library: PassageIndex, folder: DocumentFolder, wishes: IndexOptions) -> list[str]:
    """What there is to say against it."""
    from openassay.text.embeddings import MiniLM

    if refusal := library.vector_problem():
        return [f"No vectors were made, so passages are found by their words alone: {refusal}."]
    with _IndexMeter(folder.root.name, "vectors", quiet=wishes.quiet) as meter:
        if add_vectors(library, MiniLM(threads=wishes.jobs), watch=meter.show):
            library.optimize()
    return []


# What a person sees -----------------------------------------------------------------------------------


class _IndexMeter:
    """A line that moves on a terminal; elsewhere one now and then."""

    def __init__(self, name: str, unit: str, *, quiet: bool) -> None:
        self._name = to_one_line(name)
        self._unit = unit
        self._console = Console(stderr=True, quiet=quiet, highlight=False, markup=False, emoji=False)
        self._status = self._console.status(Text(f"{self._name}: looking through it"))
        self._began = self._told = time.monotonic()

    def __enter__(self) -> "_IndexMeter":
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, progress: IndexProgress) -> None:
        now = time.monotonic()
        line = f"{self._name}: {describe_progress(progress, self._unit, now - self._began)}"
        if self._console.is_terminal:
            self._status.update(Text(line))
        elif now - self._told >= EVERY:
            self._told = now
            self._console.print(Text(line), soft_wrap=True)


def describe_progress(progress: IndexProgress, unit: str, seconds: float) -> str:
    rate = progress.passages / max(seconds, 0.001)
    parts = [f"{progress.done:,} of {progress.total:,} {unit}"]
    if unit == "files":
        parts.append(pluralize(progress.passages, "passage"))
    parts.append(f"{rate:,.0f}/s")
    if 0 < progress.share < 1:
        parts.append(f"{_format_seconds(seconds * (1 - progress.share) / progress.share)} left")
    return " · ".join(parts)


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show_result(done: IndexResult) -> None:
    found, held = done.indexed, done.holdings
    vectors = f", {pluralize(held.vectors, 'vector')}" if held.vectors else ""
    typer.echo(
        to_one_line(
            f"{done.folder.root}: {pluralize(found.files, 'file')}, {pluralize(held.passages, 'passage')}{vectors}; "
            f"{found.new:,} new or changed, {found.removed:,} removed, in {_format_seconds(done.seconds)}"
        )
    )
    others = sum(reason == _OTHER_KINDS for _, reason in found.skipped)
    left_out = [(path, reason) for path, reason in found.skipped if reason != _OTHER_KINDS]
    for path, reason in left_out[:LISTED]:
        print_message(to_one_line(f"left out  {path}: {reason.removeprefix(f'{Path(path).name}: ')}"))
    if left_out[LISTED:]:
        print_message(f"left out  {len(left_out) - LISTED:,} more; --json lists all of them")
    if others:
        print_message(f"left out  {pluralize(others, 'file')} of kinds that OpenAssay does not read")


def _result_to_dict(done: IndexResult) -> dict[str, object]:
    return {
        "root": str(done.folder.root), **done.holdings._asdict(), "new": done.indexed.new,
        "removed": done.indexed.removed, "seconds": round(done.seconds, 3), "notices": list(done.indexed.notices),
        "skipped": [{"path": path, "reason": reason} for path, reason in done.indexed.skipped],
    }  # fmt: skip


# What there is ----------------------------------------------------------------------------------------


def show_indexes(paths: Sequence[Path], *, as_json: bool) -> None:
    wanted = {str(path.resolve()) for path in paths}
    with open_index_store(load()) as shelf:
        known = [library for library in shelf.libraries.all() if not wanted or library.root in wanted]
    for path in sorted(wanted - {library.root for library in known}):
        raise NotFoundError(f"{path} is not indexed", help=f"Index it with: openassay sources index {path}")
    if as_json:
        typer.echo(jsonlib.dumps([_index_to_dict(library) for library in known], indent=2))
    elif known:
        console = open_console()
        if not console.is_terminal:
            console.width = UNBROKEN
        console.print(_make_index_table(known))
    else:
        print_message("Nothing is indexed yet. Index a folder with: openassay sources index PATH")


def forget_indexes(paths: Iterable[Path]) -> None:
    roots = [path.resolve() for path in paths]
    with open_index_store(load()) as shelf:
        known = {library.root for library in shelf.libraries.all()}
        for root in roots:
            if str(root) not in known:
                raise NotFoundError(f"{root} is not indexed", help="See what is: openassay sources index --status")
        for root in roots:
            with shelf.libraries.open(root).lock_updates(wait=0) as mine:
                if not mine:
                    raise StorageError(f"{root} is being indexed by another process", help="Stop that first.")
                shelf.libraries.forget({root}, kept=True)
            print_message(to_one_line(f"Forgotten: {root}"))


def _index_to_dict(library: IndexSummary) -> dict[str, object]:
    return {
        "root": library.root, **library.holdings._asdict(), "bytes": library.bytes,
        "updated": library.updated.isoformat(), "machine": library.machine, "kept": library.kept,
    }  # fmt: skip


def _make_index_table(libraries: Sequence[IndexSummary]) -> Table:
    rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("files", "passages", "vectors", "MB"):
        rows.add_column(Text(heading, style="dim"), justify="right", no_wrap=True)
    rows.add_column(Text("updated (UTC)", style="dim"), no_wrap=True)
    rows.add_column(Text("folder", style="dim"), overflow="fold")
    for library in sorted(libraries, key=attrgetter("root")):
        held, where = library.holdings, f" on {library.machine}" if library.machine else ""
        rows.add_row(
            f"{held.files:,}", f"{held.passages:,}", f"{held.vectors:,}" if held.vectors else "-",
            f"{library.bytes / 1e6:,.1f}", f"{library.updated:%Y-%m-%d %H:%M}",
            Text(f"{to_one_line(library.root) or '(made before indexes knew their folder)'}{where}"),
        )  # fmt: skip
    return rows


# `openassay sources`: who can be asked. `openassay sources fetch`: one page, read as research reads it.

KEEP_NOTHING: dict[str, Any] = {
    "persistence": {"backend": "memory"}, "cache": {"backend": "memory"}, "fleet": {"signals": "process"}
}  # fmt: skip


def list_sources(as_json: bool) -> None:
    settings = load(**KEEP_NOTHING)
    listed = asyncio.run(describe_sources(settings))
    if as_json:
        typer.echo(jsonlib.dumps(listed, indent=2))
        return
    for row in listed:
        state = "ok " if row["available"] else "-  "
        typer.echo(wrap_line(f"{state} {row['name']:17} {', '.join(row['types']):9} {_format_terms(row)}", 32))


async def describe_sources(settings: Settings) -> list[dict[str, Any]]:
    async with open_resources(settings) as resources:
        return [_describe_source(source, settings) for source in resources.sources.list_sources()]


def _describe_source(source: Source, settings: Settings) -> dict[str, Any]:
    row: dict[str, Any] = {"name": source.name, "available": source.is_available(), "remote": False, "types": ["own"]}
    if not isinstance(source, RemoteSource):
        return row
    terms = source.terms
    return {
        **row, "remote": True, "types": list(source.types), "available": row["available"] and not settings.offline,
        "usd": terms.usd, "per_minute": terms.per_minute, "per_day": terms.per_day,
        "key": terms.key.upper() if terms.key else None, "key_required": terms.key_required,
        "needs": terms.needs,
    }  # fmt: skip


def _format_terms(row: dict[str, Any]) -> str:
    if not row["remote"]:
        return "on this machine" if row["available"] else "needs --docs PATH"
    price = f"{format_dollars(row['usd'])} a search" if row["usd"] else "free"
    parts = [price, f"{row['per_minute']:g} a minute"]
    if row["per_day"]:
        parts.append(f"{row['per_day']} a day")
    if row["key"]:
        parts.append(f"{'needs' if row['key_required'] else 'better with'} {row['key']}")
    if row["needs"]:
        parts.append(f"needs {row['needs']}")
    return ", ".join(parts)


def fetch_page(url: str, as_json: bool) -> None:
    page = asyncio.run(_read_page(url, load()))
    if page.document is None:
        raise ReadError(f"{url}: {to_one_line(page.reason)}", help="Nothing of it would be used in a report.")
    if as_json:
        typer.echo(page.document.model_dump_json(indent=2))
        return
    document = page.document
    facts: Sequence[object] = (
        document.host,
        document.author,
        document.published,
        "from the cache" if page.cached else "",
    )
    typer.echo(
        f"{document.title}\n{document.url}\n{' · '.join(str(fact) for fact in facts if fact)}\n\n{document.text}"
    )


async def _read_page(url: str, settings: Settings) -> PageResult:
    if settings.offline:
        return PageResult(url, reason="offline is set, so no page is fetched")
    async with open_resources(settings) as resources:
        return await resources.pages.read(url)
