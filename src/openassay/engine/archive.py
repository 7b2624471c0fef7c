"""Threads as they are kept: looked through, taken out as one file, deleted, and forgotten in their time."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from openassay.engine.runner import Runner
from openassay.errors import EvidenceError, IntegrityError, OpenAssayError, StorageError, ThreadBusyError
from openassay.export import write_zip
from openassay.export.html import render_page
from openassay.export.report import Report
from openassay.models.base import Record
from openassay.models.thread import Run, Thread
from openassay.settings import Settings

_log = logging.getLogger("openassay")
MAX_THREADS = 100_000  # threads of one database
AT_ONCE = 50  # threads that are forgotten when a process starts

_README = """# Thread {id}: {title}

- `thread.json`, `runs/RUN/run.json`: what was asked, and with which options
- `report.md`, `report.html`, `report.json`: the latest report
- `runs/RUN/events.jsonl`: everything that happened, one event a line
- `runs/RUN/ledger.jsonl`: every call that was paid for
- `runs/RUN/journal/`: the run as `openassay resume --from` reads it
- `documents/HASH.txt`: what was read, named by the SHA-256 of its text; `HASH.json` says what it is
"""


def log_file(settings: Settings, thread: str) -> Path:
    """What a process of its own says while it works on a thread."""
    return settings.data_dir / "logs" / f"{thread}.log"


class ThreadArchive:
    """`forget` gives up what is known of folders that no thread asks any more."""

    def __init__(self, runner: Runner, forget: Callable[[set[str]], None]) -> None:
        self._runner = runner
        self._forget = forget

    # -- going --------------------------------------------------------------------------------------------

    async def delete(self, thread: str) -> None:
        """All of it, for good, also where it is damaged. What was spent stays in the books; what another thread uses
        stays, too."""
        with suppress(IntegrityError):
            await self._runner.threads.get(thread)
        try:
            async with self._runner.lock_thread(thread):  # a run that is at work would write into the void
                await self._delete_data(thread)
        except ThreadBusyError as error:
            raise ThreadBusyError(
                f"thread {thread} is being worked on",
                help=f"Stop it first: openassay threads stop {thread}",
                retryable=True,
            ) from error

    async def _delete_data(self, thread: str) -> None:
        asked = await self._list_folders(thread)
        for run in await self._runner.threads.run_ids(thread):
            await self._forget_answers(run)
            if self._runner.journal is not None:
                await self._runner.journal.delete(run)
        await asyncio.to_thread(log_file(self._runner.settings, thread).unlink, missing_ok=True)
        await self._runner.threads.delete(thread)
        await self._runner.checkpointer.adelete_thread(thread)
        if asked:
            await asyncio.to_thread(self._forget, asked - await self._runner.threads.folders())

    async def _list_folders(self, thread: str) -> set[str]:
        """Documents of people's own that were asked."""
        try:
            runs = await self._runner.threads.runs(thread)
        except IntegrityError:  # what cannot be read cannot be told; an index of a folder is no part of a thread
            return set()
        return {str(path) for run in runs for path in cast("list[object]", run.options.get("docs", ()))}

    async def _forget_answers(self, run: str) -> None:
        try:
            if self._runner.ledger is not None:
                await self._runner.ledger.forget(run)
        except IntegrityError as error:
            _log.warning("what models said in run %s could not be removed from the books: %s", run, error.message)

    async def expire(self, limit: int = AT_ONCE) -> list[str]:
        """Delete threads that nobody has touched for `persistence.ttl_hours`; those that went. Where something is going
        on, or a question is open, nothing is deleted. What other machines have deleted goes here, too, and so do
        documents that no thread has used for a day."""
        if self._runner.journal is not None:
            await self._runner.journal.delete_orphans()
        await self._runner.threads.delete_orphan_documents()
        hours = self._runner.settings.persistence.ttl_hours
        if hours is None:
            return []
        gone, since = list[str](), self._runner.now() - timedelta(hours=hours)
        for thread in await self._runner.threads.list_idle(since, limit=limit):
            try:
                async with self._runner.lock_thread(thread, patience=0):
                    if not await self._is_idle(thread, since):
                        continue
                    await self._delete_data(thread)
            except OpenAssayError as error:  # another process was faster, or is at work on it; or it is damaged
                _log.info("thread %s was not forgotten: %s", thread, error.message)
                continue
            gone.append(thread)
            _log.warning("thread %s was deleted: nobody has touched it for %g hours", thread, hours)
        return gone

    async def _is_idle(self, thread: str, since: datetime) -> bool:
        """Asked while nobody else works on it, and of rows that are what was written: what listed it was neither."""
        kept = await self._runner.threads.get(thread)
        return kept.updated < since and not any(run.active for run in await self._runner.threads.runs(thread))

    # -- looking ------------------------------------------------------------------------------------------

    async def problems(self, thread: str | None = None) -> list[str]:
        """What is stored and not what was written, one line each."""
        if self._runner.integrity is None:
            return []
        if thread:
            with suppress(StorageError):  # which is among the problems
                await self._runner.threads.get(thread)
        found = await self._runner.integrity.problems(thread)
        for id in [thread] if thread else [row.id for row in await self._list_threads(found)]:
            try:
                await self._runner.check(id)  # a document that is missing is only missed by the state
            except (StorageError, EvidenceError) as error:
                found.append(error.message)
        return list(dict.fromkeys([*found, *await self._journal_problems(thread)]))

    async def _journal_problems(self, thread: str | None) -> list[str]:
        journal, runs = self._runner.journal, list[str]()
        if journal is not None:
            with suppress(StorageError):  # told already
                runs = [run.id for run in await self._runner.threads.runs(thread)] if thread else journal.list_runs()
            return [line for run in runs for line in await journal.verify(run)]
        return []

    async def _list_threads(self, found: list[str]) -> list[Thread]:
        try:
            return await self._runner.threads.list_recent(limit=MAX_THREADS)
        except StorageError as error:
            found.append(error.message)
            return []

    # -- taking out ---------------------------------------------------------------------------------------

    async def export(self, thread: str, path: Path) -> None:
        """Everything of a thread in one zip, for people and for programs."""
        kept = await self._runner.threads.get(thread)
        await self._complete_journals(thread)
        files = {
            "README.md": _README.format(**kept.model_dump()).encode(),
            **_json_file("thread.json", kept),
            **await self._report_files(thread),
            **{
                name: content
                for run in await self._runner.threads.runs(thread)
                for name, content in await self._run_files(run)
            },
            **await self._document_files(kept),
        }
        await asyncio.to_thread(lambda: write_zip(path, self._redact_files(files)))

    async def _complete_journals(self, thread: str) -> None:
        """Other machines may have worked on it. Where somebody does, they are taken as they are."""
        if self._runner.journal is not None:
            with suppress(ThreadBusyError):
                async with self._runner.lock_thread(thread, patience=0):
                    for run in await self._runner.threads.runs(thread):
                        await self._runner.journal.complete(run)

    def _redact_files(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """What can be read is redacted. A journal or a snapshot would not match its checksum any more: one that holds a
        secret of the settings is left out, and the README says so; what others have published stays as it was read."""
        clean, kept, left = self._runner.redaction, dict[str, bytes](), list[str]()
        for name, content in files.items():
            text = content.decode("utf-8", "replace")
            if "/journal/" not in name and not (name.startswith("documents/") and name.endswith(".txt")):
                redacted = clean.redact_text(text)
                kept[name] = content if redacted == text else redacted.encode()
            elif clean.redact_secrets(text) == text:
                kept[name] = content
            else:
                left.append(name)
        if left:
            listed = "".join(f"- `{name}`\n" for name in left)
            kept["README.md"] += f"\nLeft out, since they hold a secret of the settings:\n\n{listed}".encode()
        return kept

    async def _report_files(self, thread: str) -> dict[str, bytes]:
        held = (await self._runner.state(thread)).values.get("report")
        if not held:
            return {}
        report = Report.model_validate(
            self._runner.redaction.redact_data(held)
        )  # Markdown escapes what a secret is known by
        return {
            "report.md": report.markdown.encode(),
            "report.html": render_page(report).encode(),
            **_json_file("report.json", report),
        }

    async def _run_files(self, run: Run) -> list[tuple[str, bytes]]:
        folder = f"runs/{run.id}"
        events = [event.plain() for event in await self._runner.log.since(run.id, 0)]
        calls = await self._runner.ledger.export(run.id) if self._runner.ledger else []
        kept = self._runner.journal.folder(run.id) if self._runner.journal else None
        journal = await asyncio.to_thread(lambda: dict(_read_files(kept))) if kept else {}
        return [
            *_json_file(f"{folder}/run.json", run).items(),
            (f"{folder}/events.jsonl", _to_jsonl(events)),
            (f"{folder}/ledger.jsonl", _to_jsonl(calls)),
            *((f"{folder}/journal/{name}", content) for name, content in journal.items()),
        ]

    async def _document_files(self, thread: Thread) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for hash in await self._runner.documents.list_hashes(thread.id):
            document = await self._runner.documents.get(hash)
            facts = {name: value for name, value in document.plain().items() if name != "text"}
            files[f"documents/{hash}.txt"] = document.text.encode()
            files[f"documents/{hash}.json"] = json.dumps(facts, indent=2).encode()
        return files


def _json_file(name: str, record: Record) -> dict[str, bytes]:
    return {name: record.model_dump_json(indent=2).encode()}


def _to_jsonl(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()
