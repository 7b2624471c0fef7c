"""`assay watch THREAD`: whether the sources of a report still say what it quotes."""

import asyncio
import json as jsonlib
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import typer

from assay.bootstrap import Premises, open_pages, open_premises
from assay.cli.lines import fitted, one_line
from assay.errors import NotFoundError, ReadError
from assay.model.report import ReportData, SourceCard
from assay.model.thread import Run
from assay.model.upload import SCHEME
from assay.ports import Pages
from assay.settings import load
from assay.storage.cache import Forgetful
from assay.text.words import counted
from assay.threads.watch import Again, Watched, WatchedPassage, of_page
from assay.threads.watch import watch as watched

CHANGED, UNCHECKED = 6, 7  # exit codes
_LABELS = {"stands": "ok", "moved": "ok", "changed": "CHANGED", "vanished": "GONE", "unchecked": "unknown"}
_LONGEST = 300  # characters of a passage that are shown
_WEB = ("http://", "https://")


def watch(thread: str, *, json: bool) -> None:
    report, found = asyncio.run(_watch(thread))
    if json:
        typer.echo(jsonlib.dumps(_plain(report, found), indent=2, ensure_ascii=False).encode())
    else:
        for line in _lines(found):
            typer.echo(fitted(line, 9))
    states = {one.state for one in found}
    if states & {"changed", "vanished"}:
        raise typer.Exit(CHANGED)
    if "unchecked" in states:
        raise typer.Exit(UNCHECKED)


async def _watch(thread: str) -> tuple[ReportData, list[Watched]]:
    settings = load()
    async with open_premises(settings) as premises, open_pages(settings, Forgetful()) as pages:
        await premises.engine.threads.get(thread)
        report = await premises.engine.report(thread)
        run = await premises.engine.threads.run(report.provenance.run)
        rereading = Rereading(premises, pages, run, await _fetched(premises, run))
        return report, await watched(report, rereading)


async def _fetched(premises: Premises, run: Run) -> set[str]:
    """The pages that were read by us, for this question or before it; of others, a provider has told the text."""
    lineage = cast("list[str]", run.options.get("lineage", ()))
    return {
        str(event.data.get("url"))
        for one in (run.id, *lineage)
        async for event in premises.engine.events(one)
        if (event.kind, event.stage) == ("read", "harvest")
    }


class Rereading:
    """Sources as a run reads them: pages through the guarded client, files from the disk, uploads from the store."""

    def __init__(self, premises: Premises, pages: Pages, run: Run, fetched: set[str]) -> None:
        self._premises = premises
        self._pages = pages
        self._docs = cast("list[str]", run.options.get("docs", ()))
        self._fetched = fetched

    async def __call__(self, card: SourceCard) -> Again:
        if card.url.startswith(_WEB):
            if self._premises.engine.settings.offline:
                return Again(reason="offline is set, so no page is fetched")
            return of_page(await self._pages.read(card.url), ours=card.url in self._fetched)
        if card.url.startswith("file:"):
            return await asyncio.to_thread(self._file, Path(url2pathname(urlsplit(card.url).path)))
        if card.url.startswith(SCHEME):
            return await asyncio.to_thread(self._upload, card.url)
        if card.kind == "demo":
            kept = await self._premises.engine.document(card.document)
            return Again(kept.text, "is demo data, which are a part of Assay and do not change")
        return Again(reason="it has no address that could be asked again")

    def _file(self, path: Path) -> Again:
        if not path.parent.is_dir():
            return Again(reason=f"its folder {path.parent} is not there")
        if not path.exists():
            return Again(reason="the file is no longer there", gone=True)
        try:
            return Again(self._premises.world.sources.reader.read(path).text)
        except ReadError as error:
            return Again(reason=error.message)

    def _upload(self, url: str) -> Again:
        """`upload:ID/NAME` is what a report calls it, `upload:OWNER/ID` what the run was given."""
        id, _, name = url.removeprefix(SCHEME).partition("/")
        for given in self._docs:
            if given.startswith(SCHEME) and given.endswith(f"/{id}"):
                try:
                    return self._file(self._premises.world.files.located(given) / unquote(name))
                except NotFoundError:
                    break
        return Again(reason="the upload was deleted", gone=True)


# -- telling ----------------------------------------------------------------------------------------------


def _lines(found: Sequence[Watched]) -> Iterator[str]:
    for one in found:
        reason = f": {one_line(one.reason)}" if one.reason else ""
        yield f"{_LABELS[one.state]:7}  {one.source} {one_line(one.title)} ({one_line(one.url)}){reason}"
        for passage in one.passages:
            if passage.state not in ("stands", "moved"):
                yield from _passage(passage)
    states = [passage.state for one in found for passage in one.passages]
    counts = ", ".join(f"{states.count(state)} {state}" for state in _LABELS if state in states)
    yield f"{counted(len(states), 'passage')} of {counted(len(found), 'source')}: {counts or 'nothing to look at'}"


def _passage(passage: WatchedPassage) -> Iterator[str]:
    yield f"         {passage.state} {', '.join(passage.claims)}: “{_cut(passage.quote)}”"
    if passage.now:
        yield f"         now ({passage.likeness:.0%} alike): “{_cut(_differing(passage.quote, passage.now))}”"
    yield from (f"         rests on it: {one_line(statement)}" for statement in passage.statements)


def _differing(old: str, new: str) -> str:
    """What is new in brackets: [+added+], [-dropped-]."""
    before, after = old.split(), new.split()
    parts: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += after[start:end]
            continue
        parts += [f"[-{' '.join(before[first:last])}-]"] * (last > first)
        parts += [f"[+{' '.join(after[start:end])}+]"] * (end > start)
    return " ".join(parts)


def _cut(text: str) -> str:
    line = one_line(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _plain(report: ReportData, found: Sequence[Watched]) -> dict[str, Any]:
    made = report.provenance
    return {"thread": made.thread, "run": made.run, "sources": [one.plain() for one in found]}
