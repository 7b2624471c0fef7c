"""A run as it was, from its journal alone: everything is read and checked before anything is written.

Doing it again after it was interrupted finishes it; what is there already is left alone.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from assay.checkpoints import snapshots
from assay.checkpoints.recorder import Stores
from assay.errors import IntegrityError, NotFoundError, StorageError, UsageError
from assay.journal import Kept, Sealing, read
from assay.model.event import ENDED, Event, RunStatus
from assay.model.source import Document
from assay.model.thread import Branch, Options, Run, Thread, is_id

_HALF = "its restoring was interrupted: do it again with assay resume --from"


class Restored(NamedTuple):
    """What a journal holds, as the stores take it."""

    kept: Kept
    run: Run
    thread: Thread
    branch: Branch | None
    events: list[Event]
    documents: list[Document]
    accounts: list[list[dict[str, Any]]]


async def opened(folder: Path, seals: Sealing) -> Restored:
    """IntegrityError names what in the folder is not as it was written."""
    return await asyncio.to_thread(_opened, folder, seals)


async def restore(found: Restored, stores: Stores, now: datetime) -> Run:
    """The run, standing still: `Engine.resume` goes on with it, unless it was finished."""
    kept, run = found.kept, found.run
    before = await _check_absent(run, stores)
    for rows in found.accounts:
        await stores.ledger.restore(rows)
    if before is None:
        await _begin(found, stores, now)
    await stores.notes.put(run.thread, list(kept.notes.values()))
    for event in found.events[len(await stores.log.since(run.id, 0)) :]:
        await stores.log.append(event)
    last = list(kept.checkpoints)[-1:]
    for label, content in kept.checkpoints.items():
        results = kept.results if label in last else []  # those before have become part of the next
        await snapshots.restore(stores.checkpointer, run.thread, content, results)
    for document in found.documents:  # last: by now the thread uses them, so nobody takes them for what no thread does
        await stores.documents.put(document)
    for remark in (f"Restored from its journal in {kept.folder.name}.", *kept.remarks):
        await stores.log.append(Event(run=run.id, time=now, kind="notice", data={"text": remark}))
    await stores.threads.update(run.id, status=run.status, stage=run.stage, error=run.error or "")
    return await stores.threads.run(run.id)


def refuse_half(run: Run) -> None:
    """Before anything goes on: a run whose restoring was interrupted is not what it was."""
    if run.error == _HALF:
        raise StorageError(
            f"run {run.id} is there in part only: its restoring was interrupted",
            help="Do it again with: assay resume --from DIR, or delete its thread.",
            run=run.id,
        )


async def _check_absent(run: Run, stores: Stores) -> Run | None:
    """A run that is here is not touched, unless it was being restored when that was interrupted."""
    try:
        here = await stores.threads.run(run.id)
    except NotFoundError:
        return None
    if here.error == _HALF:
        return here
    raise UsageError(f"run {run.id} is here already", help=f"Go on with: assay resume {here.thread}")


async def _begin(found: Restored, stores: Stores, now: datetime) -> None:
    changes = {"status": RunStatus.FAILED, "error": _HALF, "finished": found.run.finished or now}
    run = found.run.model_copy(update=changes)
    try:
        await stores.threads.get(run.thread)  # restored with another of its runs
    except NotFoundError:
        await stores.threads.fork(found.thread, run, found.branch)
    else:
        await stores.threads.begin(run)


def _opened(folder: Path, seals: Sealing) -> Restored:
    try:
        kept = read(folder, seals)
    except IntegrityError as error:  # by the name it was given under
        raise IntegrityError(f"{folder}: {error.message}", help=error.help) from error
    try:
        for content in kept.checkpoints.values():
            snapshots.decoded(content["checkpoint"])
        events = [Event.model_validate(_without(line, "step")) for line in kept.events]
        thread = kept.thread["thread"]
        found = Restored(
            kept,
            _standing(Run.model_validate(kept.run["run"]), events),
            Thread.model_validate(_without(thread, "branch")),
            Branch.model_validate(thread["branch"]) if thread["branch"] else None,
            events,
            [Document.model_validate(document) for document in kept.documents.values()],
            list(_accounts(kept.calls)),
        )
        _check_ids(found)
    except (ValidationError, KeyError, ValueError, TypeError) as error:
        raise IntegrityError(
            f"{folder} does not hold what a journal does: {error}", help="Was it written by a newer version?"
        ) from error
    return found


def _check_ids(found: Restored) -> None:
    """They become names of files, and say whose rows are written: a journal may come from anybody."""
    run, thread = found.run, found.thread.id
    runs = {found.kept.id, *(event.run for event in found.events)}
    threads = {run.thread, *([found.branch.thread] if found.branch else [])}
    accounts = {str(rows[0]["run"]) for rows in found.accounts} - {*Options.model_validate(run.options).lineage}
    if not (is_id(run.id) and is_id(thread) and runs | accounts <= {run.id} and threads == {thread}):
        raise ValueError("its ids are not those of one run and its thread")


def _standing(run: Run, events: Iterable[Event]) -> Run:
    """Its last events know better than its row how it ended; one that had not ended waits to be gone on with."""
    said = [RunStatus(str(event.data["status"])) for event in events if event.kind == "run"]
    status = said[-1] if said else run.status
    return run.model_copy(update={"status": status if status in ENDED else RunStatus.QUEUED})


def _accounts(lines: Iterable[Mapping[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """For each run its account and then its calls, as they stood last."""
    runs: dict[str, dict[object, dict[str, Any]]] = {}
    for line in lines:
        runs.setdefault(line["run"], {})[(line.get("key"), line.get("time"))] = dict(line)
    for rows in runs.values():
        account = rows.pop((None, None), None)
        if account is not None:
            yield [account, *rows.values()]


def _without(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}
