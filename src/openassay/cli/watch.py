"""`openassay threads watch`: whether the sources of a report still say what it quotes."""

from __future__ import annotations

import asyncio
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

import typer

from openassay.cli.options import ThreadId, json_option
from openassay.cli.runtime import find_thread
from openassay.cli.screen import print_json, shorten, to_one_line, wrap_line
from openassay.errors import NotFoundError, ReadError
from openassay.models.report import ReportData, SourceCard
from openassay.models.thread import Run
from openassay.models.user import SCHEME
from openassay.protocols import PageReader
from openassay.settings import load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.bootstrap import ServerResources
    from openassay.engine.watch import RereadResult, SourceCheck

CHANGED, UNCHECKED = 6, 7  # exit codes
MAX_QUOTE = 300  # characters of a passage that are shown
_LABELS = {"stands": "ok", "moved": "ok", "changed": "CHANGED", "vanished": "GONE", "unchecked": "unknown"}


def watch(thread: ThreadId, json: Annotated[bool, json_option("every source and its passages")] = False) -> None:
    """Read a report's sources again: which statements rest on passages that changed or vanished?"""
    report, found = asyncio.run(_reread_sources(thread))
    if json:
        made = report.provenance
        print_json({"thread": made.thread, "run": made.run, "sources": [one.plain() for one in found]})
    else:
        for source in found:
            reason = f": {to_one_line(source.reason)}" if source.reason else ""
            head = f"{source.source} {to_one_line(source.title)} ({to_one_line(source.url)}){reason}"
            lines = [f"{_LABELS[source.state]:7}  {head}"]
            for passage in source.passages:
                if passage.state in ("stands", "moved"):
                    continue
                claims = ", ".join(passage.claims)
                lines.append(f"         {passage.state} {claims}: “{shorten(passage.quote, MAX_QUOTE)}”")
                if passage.now:
                    changes = shorten(_mark_changes(passage.quote, passage.now), MAX_QUOTE)
                    lines.append(f"         now ({passage.likeness:.0%} alike): “{changes}”")
                lines += [f"         rests on it: {to_one_line(statement)}" for statement in passage.statements]
            for line in lines:
                typer.echo(wrap_line(line, 9))
        passages = [passage.state for one in found for passage in one.passages]
        counts = ", ".join(f"{passages.count(state)} {state}" for state in _LABELS if state in passages)
        size = f"{pluralize(len(passages), 'passage')} of {pluralize(len(found), 'source')}"
        typer.echo(wrap_line(f"{size}: {counts or 'nothing to look at'}", 9))
    states = {one.state for one in found}
    if states & {"changed", "vanished"}:
        raise typer.Exit(CHANGED)
    if "unchecked" in states:
        raise typer.Exit(UNCHECKED)


async def _reread_sources(thread: str) -> tuple[ReportData, list[SourceCheck]]:
    from openassay.bootstrap import open_pages, open_server_resources
    from openassay.engine.watch import check_sources

    settings = load()
    async with open_server_resources(settings) as resources, open_pages(settings) as pages:
        engine = resources.engine
        thread = await find_thread(engine, thread)
        await engine.threads.get(thread)
        report = await engine.report(thread)
        run = await engine.threads.run(report.provenance.run)
        # Pages that were fetched for this question or before it; of others, a provider has given the text.
        fetched = {
            str(event.data.get("url"))
            for one in (run.id, *cast("list[str]", run.options.get("lineage", ())))
            async for event in engine.events(one)
            if (event.kind, event.stage) == ("read", "harvest")
        }
        return report, await check_sources(report, SourceRereader(resources, pages, run, fetched))


class SourceRereader:
    """Reads sources as a run does: pages through the guarded client, files from the disk, uploads from the store."""

    def __init__(self, resources: ServerResources, pages: PageReader, run: Run, fetched: set[str]) -> None:
        self._resources = resources
        self._pages = pages
        self._docs = cast("list[str]", run.options.get("docs", ()))
        self._fetched = fetched

    async def __call__(self, card: SourceCard) -> RereadResult:
        from openassay.engine.watch import RereadResult, from_page

        if card.url.startswith(("http://", "https://")):
            if self._resources.engine.settings.offline:
                return RereadResult(reason="offline is set, so no page is fetched")
            return from_page(await self._pages.read(card.url), ours=card.url in self._fetched)
        if card.url.startswith("file:"):
            return await asyncio.to_thread(self._read_file, Path(url2pathname(urlsplit(card.url).path)))
        if card.url.startswith(SCHEME):
            return await asyncio.to_thread(self._read_upload, card.url)
        if card.kind == "demo":
            stored = await self._resources.engine.document(card.document)
            return RereadResult(stored.text, "is demo data, which are a part of OpenAssay and do not change")
        return RereadResult(reason="it has no address that could be asked again")

    def _read_file(self, path: Path) -> RereadResult:
        from openassay.engine.watch import RereadResult

        if not path.parent.is_dir():
            return RereadResult(reason=f"its folder {path.parent} is not there")
        if not path.exists():
            return RereadResult(reason="the file is no longer there", gone=True)
        try:
            return RereadResult(self._resources.sources.reader.read(path).text)
        except ReadError as error:
            return RereadResult(reason=error.message)

    def _read_upload(self, url: str) -> RereadResult:
        """`upload:ID/NAME` is what a report calls it, `upload:OWNER/ID` what the run was given."""
        from openassay.engine.watch import RereadResult

        id, _, name = url.removeprefix(SCHEME).partition("/")
        for given in self._docs:
            if given.startswith(SCHEME) and given.endswith(f"/{id}"):
                try:
                    return self._read_file(self._resources.files.locate(given) / unquote(name))
                except NotFoundError:
                    break
        return RereadResult(reason="the upload was deleted", gone=True)


def _mark_changes(old: str, new: str) -> str:
    """Put what is new in brackets: [+added+], [-dropped-]."""
    before, after = old.split(), new.split()
    parts: list[str] = []
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += after[start:end]
            continue
        parts += [f"[-{' '.join(before[first:last])}-]"] * (last > first)
        parts += [f"[+{' '.join(after[start:end])}+]"] * (end > start)
    return " ".join(parts)
