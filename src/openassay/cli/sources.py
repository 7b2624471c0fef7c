"""`openassay sources`: what can be searched; folders indexed ahead of time; single pages, documents and companies."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openassay.cli.options import Quiet, group, json_option
from openassay.cli.runtime import run_with_engine
from openassay.cli.screen import format_dollars, open_console, print_json, print_message, to_one_line, wrap_line
from openassay.errors import NotFoundError, ReadError
from openassay.protocols import IndexProgress, PageResult, RemoteSource
from openassay.settings import Settings, load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.maintenance import IndexResult

MAX_SKIPPED = 50  # files that are listed by name; --json has them all
LOG_SECONDS = 10.0  # between two lines of a log
LOG_WIDTH = 10_000  # columns where there is no terminal: a script wants a line a folder
OTHER_KINDS = "not a kind of file OpenAssay reads"

app = group("List what can be searched; index folders, fetch pages, find documents and companies.")


@app.callback()
def sources(context: typer.Context, json: Annotated[bool, json_option("the sources")] = False) -> None:
    """List every source: whether it can be used, what it serves, its price and its limits."""
    if context.invoked_subcommand is not None:
        return None
    from openassay.cli.admin import keep_nothing

    found = asyncio.run(describe_sources(keep_nothing(load())))
    if json:
        return print_json(found)
    for row in found:
        if not row["remote"]:
            terms = "on this machine" if row["available"] else "needs --docs PATH"
        else:
            parts = [
                f"{format_dollars(row['usd'])} a search" if row["usd"] else "free",
                f"{row['per_minute']:g} a minute",
                f"{row['per_day']} a day" if row["per_day"] else "",
                f"{'needs' if row['key_required'] else 'better with'} {row['key']}" if row["key"] else "",
                f"needs {row['needs']}" if row["needs"] else "",
            ]
            terms = ", ".join(filter(None, parts))
        state = "ok " if row["available"] else "-  "
        typer.echo(wrap_line(f"{state} {row['name']:17} {', '.join(row['types']):9} {terms}", 32))
    return None


async def describe_sources(settings: Settings) -> list[dict[str, Any]]:
    from openassay.bootstrap import open_resources

    rows: list[dict[str, Any]] = []
    async with open_resources(settings) as resources:
        for source in resources.sources.list_sources():
            row = {"name": source.name, "available": source.is_available(), "remote": False, "types": ["own"]}
            if isinstance(source, RemoteSource):
                terms = source.terms
                row |= {
                    "remote": True,
                    "types": list(source.types),
                    "available": row["available"] and not settings.offline,
                    "usd": terms.usd,
                    "per_minute": terms.per_minute,
                    "per_day": terms.per_day,
                    "key": terms.key.upper() if terms.key else None,
                    "key_required": terms.key_required,
                    "needs": terms.needs,
                }
            rows.append(row)
    return rows


@app.command()
def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="A page of the open web.")],
    json: Annotated[bool, json_option("the document")] = False,
) -> None:
    """Read one page as research would, and say why if it cannot be read."""
    settings = load()
    if settings.offline:
        raise ReadError(f"{url}: offline is set, so no page is fetched", help="Set offline to false.")

    async def read() -> PageResult:
        from openassay.bootstrap import open_resources

        async with open_resources(settings) as resources:
            return await resources.pages.read(url)

    page = asyncio.run(read())
    if page.document is None:
        raise ReadError(f"{url}: {to_one_line(page.reason)}", help="Nothing of it would be used in a report.")
    document = page.document
    if json:
        return print_json(document)
    facts = (document.host, document.author, document.published, "from the cache" if page.cached else "")
    line = " · ".join(str(fact) for fact in facts if fact)
    return typer.echo(f"{document.title}\n{document.url}\n{line}\n\n{document.text}")


@app.command()
def document(
    hash: Annotated[str, typer.Argument(metavar="HASH", help="The snapshot's sha256, or the start of it.")],
) -> None:
    """Print a snapshot's text exactly as it was read."""
    text = run_with_engine(lambda engine: engine.document(hash)).text
    # Byte for byte: no newline is added and none is translated.
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


@app.command()
def company(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name, a ticker, or a description.")],
    json: Annotated[bool, json_option("the company, or the candidates,")] = False,
) -> None:
    """Find the company a name, a ticker or a description stands for; exits with 1 unless it is one."""
    from openassay.engine.maintenance import find_company

    found, candidates = find_company(name)
    if json:
        listed = [one.model_dump(mode="json") for one in candidates]
        print_json({"company": found and found.model_dump(mode="json"), "candidates": listed})
    else:
        for one in [found] if found else candidates:
            typer.echo(f"{one.cik:010}  {one.short:28}  {' '.join(one.tickers[:3]):16}  {one.name}")
    if not found:
        said = to_one_line(name.strip())[:80]
        typer.echo(f"{said!r} may be any of these." if candidates else f"no company is called {said!r}", err=True)
        raise typer.Exit(1)


# -- indexes ------------------------------------------------------------------------------------------------


@app.command()
def index(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="PATH...", help="Folders or files.", show_default=False)
    ] = None,
    vectors: Annotated[
        bool, typer.Option("--vectors", help="Make a vector of each passage, too: found by meaning, not only by words.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Files read at once; by default all processors.", min=1, max=64)
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="Show what is indexed, and change nothing.")] = False,
    forget: Annotated[bool, typer.Option("--forget", help="Delete the index of each PATH; its files stay.")] = False,
    json: Annotated[bool, json_option("what was indexed, or is,")] = False,
    quiet: Quiet = False,
) -> None:
    """Index folders ahead of time. It can be stopped at any moment, and continues where it was."""
    if status or not paths:
        return show_indexes(paths or [], as_json=json)
    if forget:
        return _forget_indexes([path.resolve() for path in paths])
    done = index_folders(paths, jobs, vectors=vectors, quiet=quiet)
    if not json:
        for one in done:
            _show_result(one)
        return None
    return print_json(
        [
            {
                "root": str(one.folder.root),
                **one.holdings._asdict(),
                "new": one.indexed.new,
                "removed": one.indexed.removed,
                "seconds": round(one.seconds, 3),
                "notices": list(one.indexed.notices),
                "skipped": [{"path": path, "reason": reason} for path, reason in one.indexed.skipped],
            }
            for one in done
        ]
    )


def index_folders(paths: Sequence[Path], jobs: int | None, *, vectors: bool, quiet: bool) -> list[IndexResult]:
    from openassay.engine.maintenance import open_folder_indexes, scan_folder

    folders = [scan_folder(path) for path in paths]  # a wrong path is refused before an hour's work on the others
    done = []
    with open_folder_indexes(load()) as indexes:
        if indexes.notice:
            print_message(f"note: {indexes.notice}")
        try:
            for folder in folders:
                name = folder.root.name
                with _IndexMeter(name, "files", quiet) as files, _IndexMeter(name, "vectors", quiet) as made:
                    watch = made.show if vectors else None
                    done.append(indexes.update(folder, jobs=jobs, watch=files.show, watch_vectors=watch))
                for notice in done[-1].indexed.notices:
                    print_message(f"note: {notice}")
        except KeyboardInterrupt:
            print_message("Stopped. What was indexed is kept; the same command continues from there.")
            raise
    return done


def _forget_indexes(roots: Sequence[Path]) -> None:
    from openassay.engine.maintenance import open_folder_indexes

    with open_folder_indexes(load()) as indexes:
        indexes.forget(roots)
    for root in roots:
        print_message(to_one_line(f"Forgotten: {root}"))


class _IndexMeter:
    """Shows progress: a moving line on a terminal, elsewhere a line now and then."""

    def __init__(self, name: str, unit: str, quiet: bool) -> None:
        self._name = to_one_line(name)
        self._unit = unit
        self._console = Console(stderr=True, quiet=quiet, highlight=False, markup=False, emoji=False)
        self._status = self._console.status(Text(f"{self._name}: looking through it"))
        self._began = self._shown = 0.0

    def __enter__(self) -> _IndexMeter:
        if self._unit == "files":  # vectors come after them
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def _start(self) -> None:
        self._began = self._shown = time.monotonic()
        if self._console.is_terminal:
            self._status.start()

    def show(self, progress: IndexProgress) -> None:
        if not self._began:
            self._start()
        now = time.monotonic()
        seconds = now - self._began
        parts = [f"{progress.done:,} of {progress.total:,} {self._unit}"]
        if self._unit == "files":
            parts.append(pluralize(progress.passages, "passage"))
        parts.append(f"{progress.passages / max(seconds, 0.001):,.0f}/s")
        if 0 < progress.share < 1:
            parts.append(f"{_format_seconds(seconds * (1 - progress.share) / progress.share)} left")
        line = Text(f"{self._name}: {' · '.join(parts)}")
        if self._console.is_terminal:
            self._status.update(line)
            if progress.done == progress.total:
                self._status.stop()
        elif now - self._shown >= LOG_SECONDS:
            self._shown = now
            self._console.print(line, soft_wrap=True)


def _format_seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show_result(done: IndexResult) -> None:
    found, counts = done.indexed, done.holdings
    vectors = f", {pluralize(counts.vectors, 'vector')}" if counts.vectors else ""
    sizes = f"{pluralize(found.files, 'file')}, {pluralize(counts.passages, 'passage')}{vectors}"
    changes = f"{found.new:,} new or changed, {found.removed:,} removed, in {_format_seconds(done.seconds)}"
    typer.echo(to_one_line(f"{done.folder.root}: {sizes}; {changes}"))
    others = sum(reason == OTHER_KINDS for _, reason in found.skipped)
    skipped = [(path, reason) for path, reason in found.skipped if reason != OTHER_KINDS]
    for path, reason in skipped[:MAX_SKIPPED]:
        print_message(to_one_line(f"left out  {path}: {reason.removeprefix(f'{Path(path).name}: ')}"))
    if skipped[MAX_SKIPPED:]:
        print_message(f"left out  {len(skipped) - MAX_SKIPPED:,} more; --json lists all of them")
    if others:
        print_message(f"left out  {pluralize(others, 'file')} of kinds that OpenAssay does not read")


def show_indexes(paths: Sequence[Path], *, as_json: bool) -> None:
    from openassay.engine.maintenance import open_folder_indexes

    wanted = {str(path.resolve()) for path in paths}
    with open_folder_indexes(load()) as indexes:
        known = [one for one in indexes.list() if not wanted or one.root in wanted]
    for path in sorted(wanted - {one.root for one in known}):
        raise NotFoundError(f"{path} is not indexed", help=f"Index it with: openassay sources index {path}")
    if as_json:
        return print_json(
            [
                {
                    "root": one.root,
                    **one.holdings._asdict(),
                    "bytes": one.bytes,
                    "updated": one.updated.isoformat(),
                    "machine": one.machine,
                    "kept": one.kept,
                }
                for one in known
            ]
        )
    if not known:
        return print_message("Nothing is indexed yet. Index a folder with: openassay sources index PATH")
    console = open_console()
    if not console.is_terminal:
        console.width = LOG_WIDTH
    rows = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("files", "passages", "vectors", "MB"):
        rows.add_column(Text(heading, style="dim"), justify="right", no_wrap=True)
    rows.add_column(Text("updated (UTC)", style="dim"), no_wrap=True)
    rows.add_column(Text("folder", style="dim"), overflow="fold")
    for one in sorted(known, key=attrgetter("root")):
        counts, where = one.holdings, f" on {one.machine}" if one.machine else ""
        sizes = [f"{counts.files:,}", f"{counts.passages:,}", f"{counts.vectors:,}" if counts.vectors else "-"]
        root = Text(f"{to_one_line(one.root) or '(made before indexes knew their folder)'}{where}")
        rows.add_row(*sizes, f"{one.bytes / 1e6:,.1f}", f"{one.updated:%Y-%m-%d %H:%M}", root)
    return console.print(rows)
