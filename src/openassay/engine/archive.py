"""The archive of threads: deleted, expired, checked for damage, and exported as one file."""

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from openassay.engine.runner import Runner
from openassay.errors import EvidenceError, IntegrityError, OpenAssayError, StorageError, ThreadBusyError
from openassay.export import Report, write_zip
from openassay.export.html import render_page
from openassay.models.thread import Run
from openassay.settings import Settings

_log = logging.getLogger("openassay")
MAX_THREADS = 100_000  # threads of one database
MAX_EXPIRED = 50  # threads that are deleted when a process starts

_README = """# Thread {id}: {title}

- `thread.json`, `runs/RUN/run.json`: what was asked, and with which options
- `report.md`, `report.html`, `report.json`: the latest report
- `runs/RUN/events.jsonl`: everything that happened, one event a line
- `runs/RUN/ledger.jsonl`: every call that was paid for
- `runs/RUN/journal/`: the run as `openassay resume --from` reads it
- `documents/HASH.txt`: what was read, named by the SHA-256 of its text; `HASH.json` says what it is
"""


def log_file(settings: Settings, thread: str) -> Path:
    """Return the log of a detached process that works on a thread."""
    return settings.data_dir / "logs" / f"{thread}.log"


class ThreadArchive:
    """`forget` deletes the indexes of folders that no thread uses any more."""

    def __init__(self, runner: Runner, forget: Callable[[set[str]], None]) -> None:
        self._runner = runner
        self._forget = forget

    async def delete(self, thread: str) -> None:
        """Delete a thread for good, also where it is damaged. What was spent stays in the ledger, and so does what
        another thread uses."""
        with suppress(IntegrityError):
            await self._runner.threads.get(thread)
        try:
            async with self._runner.lock_thread(thread):  # a run at work would write into a thread that is gone
                await self._delete_data(thread)
        except ThreadBusyError as error:
            raise ThreadBusyError(
                f"thread {thread} is being worked on",
                help=f"Stop it first: openassay threads stop {thread}",
                retryable=True,
            ) from error

    async def _delete_data(self, thread: str) -> None:
        folders: set[str] = set()
        with suppress(IntegrityError):  # what cannot be read is not known; an index of a folder is no part of a thread
            runs = await self._runner.threads.runs(thread)
            folders = {path for run in runs for path in run.options.docs}
        for id in await self._runner.threads.run_ids(thread):
            try:
                if self._runner.ledger is not None:
                    await self._runner.ledger.forget(id)
            except IntegrityError as error:
                _log.warning("model replies of run %s could not be removed from the ledger: %s", id, error.message)
            if self._runner.journal is not None:
                await self._runner.journal.delete(id)
        await asyncio.to_thread(log_file(self._runner.settings, thread).unlink, missing_ok=True)
        await self._runner.threads.delete(thread)
        await self._runner.checkpointer.adelete_thread(thread)
        if folders:
            await asyncio.to_thread(self._forget, folders - await self._runner.threads.folders())

    async def expire(self, limit: int = MAX_EXPIRED) -> list[str]:
        """Delete threads unused for `persistence.ttl_hours`; returns their ids. Threads with an active run or an open
        question stay. What other machines have deleted is deleted here too, and so are documents that no thread has
        used for a day."""
        threads = self._runner.threads
        if self._runner.journal is not None:
            await self._runner.journal.delete_orphans()
        await threads.delete_orphan_documents()
        hours = self._runner.settings.persistence.ttl_hours
        if hours is None:
            return []
        deleted, since = list[str](), self._runner.now() - timedelta(hours=hours)
        for thread in await threads.list_idle(since, limit=limit):
            try:
                async with self._runner.lock_thread(thread, patience=0):
                    # Checked again under the lock, on verified rows: the list was neither.
                    is_used = (await threads.get(thread)).updated >= since
                    if is_used or any(run.active for run in await threads.runs(thread)):
                        continue
                    await self._delete_data(thread)
            except OpenAssayError as error:  # another process was faster, or is at work on it; or it is damaged
                _log.info("thread %s was not deleted: %s", thread, error.message)
                continue
            deleted.append(thread)
            _log.warning("thread %s was deleted: it was not used for %g hours", thread, hours)
        return deleted

    async def problems(self, thread: str | None = None) -> list[str]:
        """Describe what is stored and not what was written, one line each."""
        threads, journal = self._runner.threads, self._runner.journal
        if self._runner.integrity is None:
            return []
        if thread:
            with suppress(StorageError):  # which is among the problems
                await threads.get(thread)
        found = await self._runner.integrity.problems(thread)
        ids = [thread] if thread else []
        if not thread:
            try:
                ids = [one.id for one in await threads.list_recent(limit=MAX_THREADS)]
            except StorageError as error:
                found.append(error.message)
        for id in ids:
            try:
                await self._runner.check(id)  # only the state knows that a document is missing
            except (StorageError, EvidenceError) as error:
                found.append(error.message)
        if journal is not None:
            runs: list[str] = []
            with suppress(StorageError):  # reported already
                runs = [run.id for run in await threads.runs(thread)] if thread else journal.list_runs()
            found += [line for run in runs for line in await journal.verify(run)]
        return list(dict.fromkeys(found))

    async def export(self, thread: str, path: Path) -> None:
        """Export everything of a thread into one zip file, for people and for programs."""
        runner = self._runner
        record = await runner.threads.get(thread)
        if runner.journal is not None:
            # Other machines may have worked on it. Where a process does so now, journals are exported as they are.
            with suppress(ThreadBusyError):
                async with runner.lock_thread(thread, patience=0):
                    for run in await runner.threads.runs(thread):
                        if not await runner.journal.verify(run.id):  # a damaged one stays as it is
                            await runner.journal.copy(run)
        files = {
            "README.md": _README.format(**record.model_dump()).encode(),
            "thread.json": record.model_dump_json(indent=2).encode(),
        }
        if data := (await runner.state(thread)).values.get("report"):
            # Redacted before it is rendered: Markdown escapes characters by which a secret is recognised.
            report = Report.model_validate(runner.redaction.redact_data(data))
            files["report.md"] = report.markdown.encode()
            files["report.html"] = render_page(report).encode()
            files["report.json"] = report.model_dump_json(indent=2).encode()
        for run in await runner.threads.runs(thread):
            files |= await self._run_files(run)
        for hash in await runner.documents.list_hashes(thread):
            document = await runner.documents.get(hash)
            facts = {name: value for name, value in document.plain().items() if name != "text"}
            files[f"documents/{hash}.txt"] = document.text.encode()
            files[f"documents/{hash}.json"] = json.dumps(facts, indent=2).encode()
        await asyncio.to_thread(lambda: write_zip(path, self._redact_files(files)))

    async def _run_files(self, run: Run) -> dict[str, bytes]:
        folder = f"runs/{run.id}"
        events = [event.plain() for event in await self._runner.log.since(run.id, 0)]
        calls = await self._runner.ledger.export(run.id) if self._runner.ledger else []
        files = {
            f"{folder}/run.json": run.model_dump_json(indent=2).encode(),
            f"{folder}/events.jsonl": "".join(json.dumps(event) + "\n" for event in events).encode(),
            f"{folder}/ledger.jsonl": "".join(json.dumps(call) + "\n" for call in calls).encode(),
        }
        if self._runner.journal:
            journal = self._runner.journal.folder(run.id)
            for path in await asyncio.to_thread(lambda: sorted(journal.rglob("*"))):
                if path.is_file():
                    content = await asyncio.to_thread(path.read_bytes)
                    files[f"{folder}/journal/{path.relative_to(journal)}"] = content
        return files

    def _redact_files(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """Redact what can be read. A journal or a snapshot would not match its checksum any more: one that holds a
        secret of the settings is left out, and the README says so; what others have published stays as it was read."""
        redaction, kept, omitted = self._runner.redaction, dict[str, bytes](), list[str]()
        for name, content in files.items():
            text = content.decode("utf-8", "replace")
            if "/journal/" not in name and not (name.startswith("documents/") and name.endswith(".txt")):
                redacted = redaction.redact_text(text)
                kept[name] = content if redacted == text else redacted.encode()
            elif redaction.redact_secrets(text) == text:
                kept[name] = content
            else:
                omitted.append(name)
        if omitted:
            listed = "".join(f"- `{name}`\n" for name in omitted)
            kept["README.md"] += f"\nLeft out, since they hold a secret of the settings:\n\n{listed}".encode()
        return kept
