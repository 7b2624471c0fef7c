"""Folders indexed at a person's request, with how far it is."""

import json as jsonlib
import time
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from assay.choosing import file_reader, folder_at
from assay.cli.lines import one_line
from assay.cli.screen import open_console, tell
from assay.errors import NotFoundError, PathError, StorageError
from assay.ports import Folder, Holdings, Indexed, PassageIndex
from assay.search.indexing import Progress, add_vectors, synchronise
from assay.settings import Settings, load
from assay.storage.libraries import Library
from assay.storage.shelf import Shelf, open_shelf
from assay.text.words import counted

LISTED = 50  # files that were left out, by name; --json has them all
EVERY = 10.0  # seconds between two lines of a log
UNBROKEN = 10_000  # columns where nobody looks: a script wants a line a folder
_OTHER_KINDS = "not a kind of file Assay reads"


class Wishes(NamedTuple):
    vectors: bool
    jobs: int | None
    json: bool
    quiet: bool


class Done(NamedTuple):
    folder: Folder
    indexed: Indexed
    holdings: Holdings
    seconds: float


def index(paths: Sequence[Path], wishes: Wishes) -> None:
    settings = load()
    folders = [folder_at(path) for path in paths]  # a wrong path is told before an hour's work on the others
    with open_shelf(settings) as shelf:
        if settings.persistence.backend == "postgres" and not shelf.are_shared:
            tell("note: persistence.encrypt is set, so the index stays on this machine, in the clear.")
        try:
            done = [_indexed(shelf, settings, folder, wishes) for folder in folders]
        except KeyboardInterrupt:
            tell("Stopped. What was indexed is kept; the same command goes on from there.")
            raise
    if wishes.json:
        typer.echo(jsonlib.dumps([_plain(one) for one in done], indent=2))
    else:
        for one in done:
            _show(one)


def _indexed(shelf: Shelf, settings: Settings, folder: Folder, wishes: Wishes) -> Done:
    began = time.monotonic()
    library = shelf.libraries.open(folder.root)
    with library.turn(wait=0) as mine:
        if not mine:
            raise StorageError(
                f"{folder.root} is being indexed by another process",
                help="Wait for it to end; or stop it, and this one goes on where it was.",
                retryable=True,
            )
        reader = file_reader(settings, shelf.uploads)
        with _Meter(folder.root.name, "files", quiet=wishes.quiet) as meter:
            found = synchronise(folder, library, reader, jobs=wishes.jobs, watch=meter.show)
        if not found.files:
            path, reason = found.skipped[0]
            raise PathError(
                f"{folder.root}: no document could be read, such as {Path(path).name} ({reason})",
                help="Give a folder with .md .txt .html .pdf .docx or .csv files.",
            )
        shelf.libraries.keep(folder.root)
        notices = _with_vectors(library, folder, wishes) if wishes.vectors else []
    for notice in notices:
        tell(f"note: {notice}")
    return Done(folder, found._replace(notices=notices), library.holdings(), time.monotonic() - began)


def _with_vectors(library: PassageIndex, folder: Folder, wishes: Wishes) -> list[str]:
    """What there is to say against it."""
    from assay.embedding.minilm import MiniLM

    if refusal := library.without_vectors():
        return [f"No vectors were made, so passages are found by their words alone: {refusal}."]
    with _Meter(folder.root.name, "vectors", quiet=wishes.quiet) as meter:
        if add_vectors(library, MiniLM(threads=wishes.jobs), watch=meter.show):
            library.settle()
    return []


# What a person sees -----------------------------------------------------------------------------------


class _Meter:
    """A line that moves on a terminal; elsewhere one now and then."""

    def __init__(self, name: str, unit: str, *, quiet: bool) -> None:
        self._name = one_line(name)
        self._unit = unit
        self._console = Console(stderr=True, quiet=quiet, highlight=False, markup=False, emoji=False)
        self._status = self._console.status(Text(f"{self._name}: looking through it"))
        self._began = self._told = time.monotonic()

    def __enter__(self) -> "_Meter":
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        line = f"{self._name}: {described(progress, self._unit, now - self._began)}"
        if self._console.is_terminal:
            self._status.update(Text(line))
        elif now - self._told >= EVERY:
            self._told = now
            self._console.print(Text(line), soft_wrap=True)


def described(progress: Progress, unit: str, seconds: float) -> str:
    rate = progress.passages / max(seconds, 0.001)
    parts = [f"{progress.done:,} of {progress.total:,} {unit}"]
    if unit == "files":
        parts.append(counted(progress.passages, "passage"))
    parts.append(f"{rate:,.0f}/s")
    if 0 < progress.share < 1:
        parts.append(f"{_span(seconds * (1 - progress.share) / progress.share)} left")
    return " · ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _show(done: Done) -> None:
    found, held = done.indexed, done.holdings
    vectors = f", {counted(held.vectors, 'vector')}" if held.vectors else ""
    typer.echo(
        one_line(
            f"{done.folder.root}: {counted(found.files, 'file')}, {counted(held.passages, 'passage')}{vectors}; "
            f"{found.new:,} new or changed, {found.removed:,} removed, in {_span(done.seconds)}"
        )
    )
    others = sum(reason == _OTHER_KINDS for _, reason in found.skipped)
    left_out = [(path, reason) for path, reason in found.skipped if reason != _OTHER_KINDS]
    for path, reason in left_out[:LISTED]:
        tell(one_line(f"left out  {path}: {reason.removeprefix(f'{Path(path).name}: ')}"))
    if left_out[LISTED:]:
        tell(f"left out  {len(left_out) - LISTED:,} more; --json lists all of them")
    if others:
        tell(f"left out  {counted(others, 'file')} of kinds that Assay does not read")


def _plain(done: Done) -> dict[str, object]:
    return {
        "root": str(done.folder.root), **done.holdings._asdict(), "new": done.indexed.new,
        "removed": done.indexed.removed, "seconds": round(done.seconds, 3), "notices": list(done.indexed.notices),
        "skipped": [{"path": path, "reason": reason} for path, reason in done.indexed.skipped],
    }  # fmt: skip


# What there is ----------------------------------------------------------------------------------------


def status(paths: Sequence[Path], *, as_json: bool) -> None:
    wanted = {str(path.resolve()) for path in paths}
    with open_shelf(load()) as shelf:
        known = [library for library in shelf.libraries.all() if not wanted or library.root in wanted]
    for path in sorted(wanted - {library.root for library in known}):
        raise NotFoundError(f"{path} is not indexed", help=f"Index it with: assay index {path}")
    if as_json:
        typer.echo(jsonlib.dumps([_listed(library) for library in known], indent=2))
    elif known:
        console = open_console()
        if not console.is_terminal:
            console.width = UNBROKEN
        console.print(_table(known))
    else:
        tell("Nothing is indexed yet. Index a folder with: assay index PATH")


def forget(paths: Iterable[Path]) -> None:
    roots = [path.resolve() for path in paths]
    with open_shelf(load()) as shelf:
        known = {library.root for library in shelf.libraries.all()}
        for root in roots:
            if str(root) not in known:
                raise NotFoundError(f"{root} is not indexed", help="See what is: assay index --status")
        for root in roots:
            with shelf.libraries.open(root).turn(wait=0) as mine:
                if not mine:
                    raise StorageError(f"{root} is being indexed by another process", help="Stop that first.")
                shelf.libraries.forget({root}, kept=True)
            tell(one_line(f"Forgotten: {root}"))


def _listed(library: Library) -> dict[str, object]:
    return {
        "root": library.root, **library.holdings._asdict(), "bytes": library.bytes,
        "updated": library.updated.isoformat(), "machine": library.machine, "kept": library.kept,
    }  # fmt: skip


def _table(libraries: Sequence[Library]) -> Table:
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
            Text(f"{one_line(library.root) or '(made before indexes knew their folder)'}{where}"),
        )  # fmt: skip
    return rows
