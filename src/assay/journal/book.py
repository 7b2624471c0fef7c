"""The folder of one run while it is written. What the state refers to is there before the state that refers to it."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any

from assay.journal.chain import Chain, End
from assay.journal.files import Growing, leftovers, renew, replace, sync, sync_folder
from assay.journal.lines import Plain, Sealing, sealed, written
from assay.journal.reading import DOCUMENTS, EVENTS, FORMAT, LEDGER, MARK, NOTES, RUN, SHA256, THREAD, Kept, sum_of

PROGRESS = "progress.md"
_ASIDE = ".damaged-"
_LEVELS = 3  # of a file that are laid out for people: a checkpoint, its values, and each of them


class Book:
    """Goes on where `kept` ends. Safe to be written from several threads; raises OSError when it cannot be."""

    def __init__(self, folder: Path, id: str, seals: Sealing, kept: Kept | None = None) -> None:
        self._folder = folder
        self._id = id
        self._seals = seals
        self._lock = RLock()
        (folder / DOCUMENTS).mkdir(parents=True, exist_ok=True)
        if kept:
            _tidy(folder, kept)
        self._ends = dict(kept.ends) if kept else {}
        self._chains = {name: self._chain(name) for name in (EVENTS, LEDGER, NOTES)}
        self._writes: tuple[str, Chain] | None = None  # results of the step at hand
        self._rows: dict[str, str] = {}
        self._page = None if seals.encrypts else Growing(folder / PROGRESS)
        self._seal_of = {label: kept.seals[label] for label in _listed(kept)} if kept else {}
        self._calls = {_call(row): hash(written(row)) for row in kept.calls} if kept else {}
        self.labels = {kept.checkpoints[label]["id"]: label for label in _listed(kept)} if kept else {}
        self.told = kept.events[-1]["seq"] if kept and kept.events else 0
        self.tasks = {line["task"] for line in kept.results} if kept and not kept.unlisted else set()
        self.documents = set(kept.documents) if kept else set()
        self.notes = set(kept.notes) if kept else set()

    def rows(self, run: Mapping[str, Any], thread: Mapping[str, Any]) -> None:
        """What is needed to have them again."""
        with self._lock:
            lines = self._chains[EVENTS].end.lines
            said = {"format": FORMAT, "id": self._id, "key": self._seals.key_id}
            first = sealed(self._seals, RUN, {"run": run, "lines": lines}, clear=said, levels=_LEVELS)
            second = self._sealed(THREAD, {"thread": thread, "lines": lines})
            self._rows = {RUN: first[1], THREAD: second[1]}
            replace({self._folder / RUN: first[0], self._folder / THREAD: second[0]})
            sync_folder(self._folder)

    def event(self, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those that were not there yet."""
        with self._lock:
            new = [event for event in events if event["seq"] > self.told]
            for event in new:
                self._chains[EVENTS].add({**event, "step": step(event)})
                self.told = event["seq"]
            return new

    def calls(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Accounts and calls as they stand now."""
        with self._lock:
            for row in rows:
                if self._calls.get(_call(row)) != hash(written(row)):
                    self._chains[LEDGER].add(row)
                    self._calls[_call(row)] = hash(written(row))

    def attach(self, documents: Sequence[Plain], notes: Sequence[Plain]) -> None:
        """What a checkpoint or a result is about to refer to; a note comes with the documents it speaks of."""
        with self._lock:
            if documents:
                names = {document["hash"]: f"{DOCUMENTS}/{document['hash']}.json" for document in documents}
                held = {
                    name: self._sealed(names[name], document) for name, document in zip(names, documents, strict=True)
                }
                replace({self._folder / names[name]: content for name, (content, _) in held.items()})
                sync_folder(self._folder / DOCUMENTS)
                self.documents |= names.keys()
            for note in notes:
                self._chains[NOTES].add(note)
                self.notes.add(note["name"])

    def checkpoint(self, content: Mapping[str, Any]) -> None:
        """`content` has at least an id, a step and a time. What happened before it is on the disk before it is."""
        with self._lock:
            label = self._label(content["step"])
            path = self._folder / f"checkpoint_{label}.json"
            heads = {name: {"lines": chain.end.lines, "seal": chain.end.seal} for name, chain in self._chains.items()}
            held, seal = self._sealed(path.name, {**content, **heads, "rows": self._rows})
            beside = path.with_name(path.name + SHA256)
            replace({path: held, beside: sum_of(path.name, held)}, [chain.file for chain in self._chains.values()])
            sync_folder(self._folder)
            mark = {"kind": MARK, "time": content["time"], "label": label, "id": content["id"], "sealed": seal}
            self._chains[EVENTS].add(mark)
            self._seal_of[label] = seal
            self.labels[content["id"]] = label

    def result(self, checkpoint: str, content: Mapping[str, Any]) -> None:
        """What a task that has ended since a checkpoint has brought. One that comes late opens its file again."""
        with self._lock:
            name = f"writes_{self.labels[checkpoint]}.jsonl"
            if self._writes is None or self._writes[0] != name:
                self._close_writes()
                self._writes = name, self._chain(name, End(seal=self._seal_of[self.labels[checkpoint]]))
            self._writes[1].add(content)
            self._ends[name] = self._writes[1].end
            self.tasks.add(content["task"])

    def tell(self, text: str) -> None:
        """More of the page for people."""
        with self._lock:
            if self._page and text:
                self._page.add(text.encode("utf-8", "replace"))

    def close(self) -> None:
        with self._lock:
            files = [*(chain.file for chain in self._chains.values()), *([self._page] if self._page else [])]
            sync([descriptor for file in files for descriptor in file.unsynced()])
            self._close_writes()
            for file in files:
                file.close()

    def _close_writes(self) -> None:
        if self._writes:
            self._writes[1].file.close()
            self._writes = None

    def _chain(self, name: str, start: End = End()) -> Chain:  # noqa: B008  # it cannot be changed
        end = self._ends.get(name, start)
        return Chain(self._folder / name, self._seals, f"{self._id}/{name}", end)

    def _sealed(self, name: str, content: Mapping[str, Any]) -> tuple[bytes, str]:
        return sealed(self._seals, f"{self._id}/{name}", content, levels=_LEVELS)

    def _label(self, step: int) -> str:
        """The step, unless there was another way to it before."""
        taken = self._seal_of.keys()
        others = (f"{step}-{number}" for number in range(2, len(taken) + 3))
        return next(label for label in (str(step), *others) if label not in taken)


def step(event: Mapping[str, Any]) -> str:
    """What an event belongs to: the entry of its stage and everything under it have the same."""
    under = event["parent"] if event["kind"] != "enter" else None
    return f"{event['stage'] or 'run'}-{under or event['seq']}"


def set_aside(folder: Path) -> Path:
    """A folder that cannot be gone on with makes room for a new one."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}{_ASIDE}{number}")).exists():
        number += 1
    os.replace(folder, aside)
    return aside


def run_of(folder: Path) -> str:
    """Whose folder it is, or was before it was set aside."""
    return folder.name.partition(_ASIDE)[0]


def exchange(folder: Path, new: Path) -> None:
    """Another takes the place of a folder, and of what was set aside of it. One of the two is there at any time."""
    if folder.exists():
        set_aside(folder)
    os.replace(new, folder)
    sync_folder(folder.parent)
    for path in _aside(folder):
        shutil.rmtree(path)


def discard(folder: Path) -> None:
    """With what was set aside of it."""
    for path in (folder, *_aside(folder)):
        if path.exists():
            shutil.rmtree(path)


def _aside(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f"{folder.name}{_ASIDE}*"))


def _listed(kept: Kept) -> list[str]:
    return [label for label in kept.checkpoints if label not in kept.unlisted]


def _tidy(folder: Path, kept: Kept) -> None:
    """A crash may have left half of something; it is written again from the database."""
    renew({folder / name: end.length for name, end in kept.ends.items()})
    for path in leftovers(folder):
        path.unlink()
    for label in kept.unlisted:
        for name in (f"checkpoint_{label}.json", f"checkpoint_{label}.json{SHA256}", f"writes_{label}.jsonl"):
            (folder / name).unlink(missing_ok=True)


def _call(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["run"], row.get("key"), row.get("time")
