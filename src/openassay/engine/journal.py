"""The folder of one run while it is written. What the state refers to is there before the state that refers to it."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, Protocol

from openassay.errors import IntegrityError, StorageError, UsageError

# Files that a crash leaves whole: replaced at once, or grown by whole lines.

TEMPORARY = ".tmp"
AT_ONCE = 8  # files that are synced together: a disk needs hardly longer for eight than for one, measured on ext4

_sync_pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="journal")


class AppendOnlyFile:
    """A file that only grows. Nothing is held back: what was added outlives the process at once, and a power cut from
    the next `replace` on that it is given to."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._dirty = True

    def append(self, content: bytes) -> None:
        self._dirty = True
        while content:
            content = content[os.write(self._descriptor, content) :]

    def take_dirty(self) -> list[int]:
        """Its descriptor, if something was added since this was asked last."""
        dirty, self._dirty = self._dirty, False
        return [self._descriptor] if dirty else []

    def close(self) -> None:
        """Whoever adds to it afterwards gets an OSError, and not into a file that has its number by then."""
        os.close(self._descriptor)
        self._descriptor = -1


def replace_files(files: Mapping[Path, bytes], grown: Sequence[AppendOnlyFile] = ()) -> None:
    """Under each name there is what was before, or all of this, and what has `grown` is on the disk before either.
    `sync_folder` makes the names themselves outlast a power cut."""
    with ExitStack() as stack:
        opened = []
        for path, content in files.items():
            file = stack.enter_context(_temporary_path(path).open("wb"))
            file.write(content)
            file.flush()
            opened.append(file.fileno())
        sync_files([*(descriptor for file in grown for descriptor in file.take_dirty()), *opened])
    for path in files:
        os.replace(_temporary_path(path), path)


def sync_files(descriptors: Sequence[int]) -> None:
    list(_sync_pool.map(os.fsync, descriptors))


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def truncate_files(lengths: Mapping[Path, int]) -> None:
    """Take off what a crash has left half-written. Each becomes a file of its own: a process that was stopped, and has
    the old one open, adds nothing to it when it wakes up."""
    replace_files({path: path.read_bytes()[:length] for path, length in lengths.items() if path.exists()})


def find_leftovers(folder: Path) -> Iterator[Path]:
    """Temporary files of whoever was stopped in the middle."""
    return folder.rglob(f"*{TEMPORARY}")


def _temporary_path(path: Path) -> Path:
    return path.with_name(path.name + TEMPORARY)


# Plain data as one line of JSON, or a file of it, with a seal at its end.
#
# A seal is over the place of what it stands on, the seal before it where there is one, and every byte up to itself.

Plain = dict[str, Any]

ALTERED = "It was altered or damaged. Take another copy of the folder; what is in the database is not touched."
_ENCRYPTED = "encrypted"
_encode = json.JSONEncoder(ensure_ascii=False).encode
_END = re.compile(rb', "seal": "([0-9a-f]{64})"}\n\Z')
_HALVES = re.compile("[\ud800-\udfff]")  # of surrogate pairs: no file in UTF-8 can hold one


class Sealer(Protocol):
    """How seals are made, and how what is stored is hidden (storage.seals.Seals)."""

    key_id: str
    encrypts: bool

    def seal_bytes(self, content: bytes) -> str: ...

    def encrypt(self, place: str, value: Any) -> Any: ...

    def decrypt(self, place: str, value: Any) -> Any: ...


def seal_content(
    seals: Sealer,
    place: str,
    content: Mapping[str, Any],
    *,
    before: str = "",
    clear: Mapping[str, Any] | None = None,
    levels: int = 0,
) -> tuple[bytes, str]:
    """The bytes to be written, and the seal they end with. `clear` stays readable where the rest is encrypted."""
    text = to_json({**(clear or {}), **content}, levels)
    if seals.encrypts:
        text = to_json({**(clear or {}), _ENCRYPTED: seals.encrypt(place, to_json(content))})
    body = text.removesuffix("}").rstrip().encode()
    seal = seals.seal_bytes(_seal_prefix(place, before) + body)
    return body + f', "seal": "{seal}"}}\n'.encode(), seal


def unseal(seals: Sealer, place: str, line: bytes, *, before: str = "") -> tuple[Plain, str]:
    """The content, and its seal. IntegrityError unless both are what was written there."""
    end = _END.search(line)
    if end is None:
        raise integrity_error(place)
    body, seal = line[: end.start()], end[1].decode()
    if seals.seal_bytes(_seal_prefix(place, before) + body) != seal:
        raise integrity_error(place)
    content = _parse_json(place, body + b"}")
    if _ENCRYPTED in content and not seals.encrypts:
        raise IntegrityError(
            f"{place} is encrypted", help="Set persistence.encrypt, with the key it was made with.", place=place
        )
    if seals.encrypts:
        content |= _parse_json(place, seals.decrypt(place, content.pop(_ENCRYPTED, "")))
    return content, seal


def to_json(content: Mapping[str, Any], levels: int = 0) -> str:
    """On one line, or with the keys of so many levels on lines of their own."""
    text = _format_json(content, levels)
    return _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _format_json(value: Any, levels: int, margin: str = "\n") -> str:
    """Only what holds more than plain values is laid out: the indentation of `json` is made in Python, twelve times as
    slow."""
    if not levels or not isinstance(value, dict) or not any(isinstance(held, dict | list) for held in value.values()):
        return _encode(value)
    inner = f"{margin} "
    lines = (f"{_encode(str(key))}: {_format_json(held, levels - 1, inner)}" for key, held in value.items())
    return "{" + inner + f",{inner}".join(lines) + margin + "}"


def integrity_error(place: str, why: str = "is not what was written") -> IntegrityError:
    return IntegrityError(f"{place} {why}", help=ALTERED, place=place)


def _parse_json(place: str, text: str | bytes) -> Plain:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise integrity_error(place) from error
    if not isinstance(content, dict):
        raise integrity_error(place)
    return content


def _seal_prefix(place: str, before: str) -> bytes:
    return f"{place}\n{before}\n".encode()


# Lines in a file, each sealed over the one before: none can be changed, moved or taken out of their middle.


class ChainEnd(NamedTuple):
    """Of a chain as far as it is whole."""

    lines: int = 0
    seal: str = ""
    length: int = 0  # in bytes


class ChainContents(NamedTuple):
    """What was read of a chain."""

    contents: list[Plain]
    seals: list[str]
    end: ChainEnd
    torn: bool  # a last line was cut off


class SealChain:
    """A chain that goes on. It begins after `end`, whose seal for an empty file is that of what it hangs on."""

    def __init__(self, path: Path, seals: Sealer, place: str, end: ChainEnd) -> None:
        self._seals = seals
        self._place = place
        self.file = AppendOnlyFile(path)
        self.end = end

    def append(self, content: Mapping[str, Any]) -> None:
        lines, before, length = self.end
        line, seal = seal_content(self._seals, _line_place(self._place, lines + 1), content, before=before)
        self.file.append(line)
        self.end = ChainEnd(lines + 1, seal, length + len(line))


def read_chain(path: Path, seals: Sealer, place: str, before: str = "") -> ChainContents:
    """All whole lines; a last one without its end is what a crash leaves, and does not count."""
    *whole, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    contents, made = [], []
    for number, line in enumerate(whole, 1):
        content, before = unseal(seals, _line_place(place, number), line + b"\n", before=before)
        contents.append(content)
        made.append(before)
    return ChainContents(contents, made, ChainEnd(len(whole), before, sum(len(line) + 1 for line in whole)), bool(rest))


def _line_place(place: str, line: int) -> str:
    return f"{place} line {line}"


# Reading the folder of a run. Everything is checked; what a crash may leave is put right, and said.

FORMAT = 1
EVENTS, LEDGER, NOTES = "events.jsonl", "ledger.jsonl", "notes.jsonl"
RUN, THREAD = "run.json", "thread.json"
DOCUMENTS = "documents"
MARK = "checkpoint"  # the kind of the line that says a checkpoint is there
SHA256 = ".sha256"


@dataclass(slots=True)
class JournalContents:
    """What a folder holds. `ends` says how far each of its chains is whole."""

    folder: Path
    id: str
    run: Plain
    thread: Plain
    events: list[Plain] = field(default_factory=list)
    calls: list[Plain] = field(default_factory=list)
    checkpoints: dict[str, Plain] = field(default_factory=dict)  # by label, in order
    results: list[Plain] = field(default_factory=list)  # of tasks since the last of them
    documents: dict[str, Plain] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    ends: dict[str, ChainEnd] = field(default_factory=dict)
    seals: dict[str, str] = field(default_factory=dict)  # of checkpoints, by label
    unlisted: list[str] = field(default_factory=list)  # labels of checkpoints that the events do not speak of yet


def read_journal(folder: Path, seals: Sealer) -> JournalContents:
    """IntegrityError names the file, and the line in it, that is not what was written."""
    try:
        return _read_contents(folder, seals)
    except OSError as error:
        raise StorageError(
            f"{error.filename or folder} cannot be read: {error.strerror}", help="Give a folder that you can read."
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise integrity_error(str(folder), f"does not hold what a journal does: {error!r}") from error


def _read_contents(folder: Path, seals: Sealer) -> JournalContents:
    run, _ = _read_run(folder, seals)
    id = str(run["id"])
    kept = JournalContents(folder, id, run, _read_file(folder, THREAD, seals, id)[0])
    chains = {name: _read_chain_file(kept, name, seals) for name in (EVENTS, LEDGER, NOTES)}
    kept.events = [line for line in chains[EVENTS].contents if line["kind"] != MARK]
    kept.calls = chains[LEDGER].contents
    kept.notes = {line["name"]: line["note"] for line in chains[NOTES].contents}
    for label, seal in _list_marks(chains[EVENTS]):
        _add_checkpoint(kept, label, seals, chains, seal)
    for label in _find_labels_without_mark(kept):
        _add_last_checkpoint(kept, label, seals, chains)
    for label in list(kept.checkpoints)[-1:]:
        kept.results = _read_chain_file(kept, f"writes_{label}.jsonl", seals, before=kept.seals[label]).contents
    kept.documents = dict(_read_documents(kept, seals))
    _check_rows(kept, seals)
    _check_references(kept, chains[NOTES].contents)
    return kept


def _read_run(folder: Path, seals: Sealer) -> tuple[Plain, str]:
    """The one file that does not know whose it is before it is read."""
    path = folder / RUN
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", help="Give a folder under checkpoints/: one a run.")
    if not path.is_file():
        raise UsageError(f"{folder} is not the journal of a run", help="Give a folder under checkpoints/: one a run.")
    content = path.read_bytes()
    try:
        said = json.loads(content)
        format, key = said.get("format"), said.get("key")
    except (ValueError, AttributeError) as error:
        raise integrity_error(RUN) from error
    if key != seals.key_id:
        raise IntegrityError(f"{RUN} was sealed with another key than this one's, or damaged", help=_key_help(key))
    if format != FORMAT:
        raise IntegrityError(f"{RUN} is of format {format}; this version reads {FORMAT}", help="Update OpenAssay.")
    return unseal(seals, RUN, content)


def _key_help(key: object) -> str:
    if key:
        return "Set OPENASSAY_STORAGE_KEY to the key the run was kept with."
    return "The run was kept without a key: restore it without one, then seal it: openassay admin seal"


def _read_file(folder: Path, name: str, seals: Sealer, id: str) -> tuple[Plain, str]:
    path = folder / name
    if not path.is_file():
        raise integrity_error(f"{id}/{name}", "is missing")
    return unseal(seals, f"{id}/{name}", path.read_bytes())


def _read_chain_file(kept: JournalContents, name: str, seals: Sealer, before: str = "") -> ChainContents:
    links = read_chain(kept.folder / name, seals, f"{kept.id}/{name}", before)
    kept.ends[name] = links.end
    if links.torn:
        kept.remarks.append(f"the last line of {name} was cut off and is left out")
    return links


# -- checkpoints ------------------------------------------------------------------------------------------------------


def _list_marks(events: ChainContents) -> Iterator[tuple[str, str]]:
    return ((line["label"], line["sealed"]) for line in events.contents if line["kind"] == MARK)


def _find_labels_without_mark(kept: JournalContents) -> list[str]:
    """Written just before a crash, before the events could say so."""
    labels = [path.name[len("checkpoint_") : -len(".json")] for path in kept.folder.glob("checkpoint_*.json")]
    return sorted(label for label in labels if label not in kept.checkpoints)


def _add_checkpoint(
    kept: JournalContents, label: str, seals: Sealer, chains: Mapping[str, ChainContents], seal: str | None = None
) -> None:
    name = f"checkpoint_{label}.json"
    content, found = _read_file(kept.folder, name, seals, kept.id)
    verify_checksum(kept.folder / name, kept.id)
    place = f"{kept.id}/{name}"
    if seal not in (None, found):
        raise integrity_error(place, "is not the one the events speak of")
    for file, links in chains.items():
        said = content[file]
        if (links.seals[: said["lines"]] or [""])[-1] != said["seal"] or len(links.seals) < said["lines"]:
            raise integrity_error(f"{kept.id}/{file}", f"is not what it was when {name} was written")
    kept.checkpoints[label] = content
    kept.seals[label] = found


def _add_last_checkpoint(kept: JournalContents, label: str, seals: Sealer, chains: Mapping[str, ChainContents]) -> None:
    name = f"checkpoint_{label}.json"
    kept.unlisted.append(label)
    if not (kept.folder / f"{name}{SHA256}").exists():
        kept.remarks.append(f"{name} was not finished and is left out; the run goes on from the one before")
        return
    _add_checkpoint(kept, label, seals, chains)


def verify_checksum(path: Path, id: str) -> None:
    """The file beside it, as `sha256sum -c` would."""
    sidecar = path.with_name(path.name + SHA256)
    if not sidecar.is_file():
        raise integrity_error(f"{id}/{sidecar.name}", "is missing")
    if sidecar.read_bytes() != checksum_line(path.name, path.read_bytes()):
        raise integrity_error(f"{id}/{path.name}", f"is not what {sidecar.name} was made from")


def checksum_line(name: str, content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()


# -- what they refer to -----------------------------------------------------------------------------------------------


def _read_documents(kept: JournalContents, seals: Sealer) -> Iterator[tuple[str, Plain]]:
    for path in sorted((kept.folder / DOCUMENTS).glob("*.json")):
        name, held = path.stem, _read_file(kept.folder, f"{DOCUMENTS}/{path.name}", seals, kept.id)[0]
        text = held["text"].encode("utf-8", "surrogatepass")
        if not held["hash"] == name == hashlib.sha256(text).hexdigest():
            raise integrity_error(f"{kept.id}/{DOCUMENTS}/{name}.json", "is not the text its hash was made from")
        yield name, held


def _check_references(kept: JournalContents, notes: list[Plain]) -> None:
    for content in (*kept.checkpoints.values(), *kept.results, *notes):
        for name in content["documents"]:
            if name not in kept.documents:
                raise integrity_error(f"{kept.id}/{DOCUMENTS}/{name}.json", "is missing")
        for name in content.get("notes", ()):
            if name not in kept.notes:
                raise integrity_error(f"{kept.id}/{NOTES}", f"lacks note {name}")


def _check_rows(kept: JournalContents, seals: Sealer) -> None:
    """Neither may be older than the last checkpoint knew it: it was written since, or is the one of then."""
    if not kept.checkpoints:
        return
    last: Mapping[str, Any] = list(kept.checkpoints.values())[-1]
    for name, (content, seal) in {
        RUN: _read_run(kept.folder, seals), THREAD: _read_file(kept.folder, THREAD, seals, kept.id)
    }.items():  # fmt: skip
        if content["lines"] < last[EVENTS]["lines"] and seal != last["rows"][name]:
            raise integrity_error(f"{kept.id}/{name}", "was put back to an older one")


PROGRESS = "progress.md"
_ASIDE = ".damaged-"
_LEVELS = 3  # of a file that are laid out for people: a checkpoint, its values, and each of them


class JournalWriter:
    """Goes on where `kept` ends. Safe to be written from several threads; raises OSError when it cannot be."""

    def __init__(self, folder: Path, id: str, seals: Sealer, kept: JournalContents | None = None) -> None:
        self._folder = folder
        self._id = id
        self._seals = seals
        self._lock = RLock()
        (folder / DOCUMENTS).mkdir(parents=True, exist_ok=True)
        if kept:
            _repair_folder(folder, kept)
        self._ends = dict(kept.ends) if kept else {}
        self._chains = {name: self._open_chain(name) for name in (EVENTS, LEDGER, NOTES)}
        self._writes: tuple[str, SealChain] | None = None  # results of the step at hand
        self._rows: dict[str, str] = {}
        self._page = None if seals.encrypts else AppendOnlyFile(folder / PROGRESS)
        self._seal_of = {label: kept.seals[label] for label in _list_labels(kept)} if kept else {}
        self._calls = {_call_key(row): hash(to_json(row)) for row in kept.calls} if kept else {}
        self.labels = {kept.checkpoints[label]["id"]: label for label in _list_labels(kept)} if kept else {}
        self.told = kept.events[-1]["seq"] if kept and kept.events else 0
        self.tasks = {line["task"] for line in kept.results} if kept and not kept.unlisted else set()
        self.documents = set(kept.documents) if kept else set()
        self.notes = set(kept.notes) if kept else set()

    def write_rows(self, run: Mapping[str, Any], thread: Mapping[str, Any]) -> None:
        """What is needed to have them again."""
        with self._lock:
            lines = self._chains[EVENTS].end.lines
            said = {"format": FORMAT, "id": self._id, "key": self._seals.key_id}
            first = seal_content(self._seals, RUN, {"run": run, "lines": lines}, clear=said, levels=_LEVELS)
            second = self._seal(THREAD, {"thread": thread, "lines": lines})
            self._rows = {RUN: first[1], THREAD: second[1]}
            replace_files({self._folder / RUN: first[0], self._folder / THREAD: second[0]})
            sync_folder(self._folder)

    def write_events(self, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Those that were not there yet."""
        with self._lock:
            new = [event for event in events if event["seq"] > self.told]
            for event in new:
                self._chains[EVENTS].append({**event, "step": event_step(event)})
                self.told = event["seq"]
            return new

    def write_calls(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Accounts and calls as they stand now."""
        with self._lock:
            for row in rows:
                if self._calls.get(_call_key(row)) != hash(to_json(row)):
                    self._chains[LEDGER].append(row)
                    self._calls[_call_key(row)] = hash(to_json(row))

    def attach(self, documents: Sequence[Plain], notes: Sequence[Plain]) -> None:
        """What a checkpoint or a result is about to refer to; a note comes with the documents it speaks of."""
        with self._lock:
            if documents:
                names = {document["hash"]: f"{DOCUMENTS}/{document['hash']}.json" for document in documents}
                held = {
                    name: self._seal(names[name], document) for name, document in zip(names, documents, strict=True)
                }
                replace_files({self._folder / names[name]: content for name, (content, _) in held.items()})
                sync_folder(self._folder / DOCUMENTS)
                self.documents |= names.keys()
            for note in notes:
                self._chains[NOTES].append(note)
                self.notes.add(note["name"])

    def write_checkpoint(self, content: Mapping[str, Any]) -> None:
        """`content` has at least an id, a step and a time. What happened before it is on the disk before it is."""
        with self._lock:
            label = self._next_label(content["step"])
            path = self._folder / f"checkpoint_{label}.json"
            heads = {name: {"lines": chain.end.lines, "seal": chain.end.seal} for name, chain in self._chains.items()}
            held, seal = self._seal(path.name, {**content, **heads, "rows": self._rows})
            beside = path.with_name(path.name + SHA256)
            replace_files(
                {path: held, beside: checksum_line(path.name, held)}, [chain.file for chain in self._chains.values()]
            )
            sync_folder(self._folder)
            mark = {"kind": MARK, "time": content["time"], "label": label, "id": content["id"], "sealed": seal}
            self._chains[EVENTS].append(mark)
            self._seal_of[label] = seal
            self.labels[content["id"]] = label

    def write_result(self, checkpoint: str, content: Mapping[str, Any]) -> None:
        """What a task that has ended since a checkpoint has brought. One that comes late opens its file again."""
        with self._lock:
            name = f"writes_{self.labels[checkpoint]}.jsonl"
            if self._writes is None or self._writes[0] != name:
                self._close_writes()
                self._writes = name, self._open_chain(name, ChainEnd(seal=self._seal_of[self.labels[checkpoint]]))
            self._writes[1].append(content)
            self._ends[name] = self._writes[1].end
            self.tasks.add(content["task"])

    def write_progress(self, text: str) -> None:
        """More of the page for people."""
        with self._lock:
            if self._page and text:
                self._page.append(text.encode("utf-8", "replace"))

    def close(self) -> None:
        with self._lock:
            files = [*(chain.file for chain in self._chains.values()), *([self._page] if self._page else [])]
            sync_files([descriptor for file in files for descriptor in file.take_dirty()])
            self._close_writes()
            for file in files:
                file.close()

    def _close_writes(self) -> None:
        if self._writes:
            self._writes[1].file.close()
            self._writes = None

    def _open_chain(self, name: str, start: ChainEnd = ChainEnd()) -> SealChain:  # noqa: B008  # it cannot be changed
        end = self._ends.get(name, start)
        return SealChain(self._folder / name, self._seals, f"{self._id}/{name}", end)

    def _seal(self, name: str, content: Mapping[str, Any]) -> tuple[bytes, str]:
        return seal_content(self._seals, f"{self._id}/{name}", content, levels=_LEVELS)

    def _next_label(self, step: int) -> str:
        """The step, unless there was another way to it before."""
        taken = self._seal_of.keys()
        others = (f"{step}-{number}" for number in range(2, len(taken) + 3))
        return next(label for label in (str(step), *others) if label not in taken)


def event_step(event: Mapping[str, Any]) -> str:
    """What an event belongs to: the entry of its stage and everything under it have the same."""
    under = event["parent"] if event["kind"] != "enter" else None
    return f"{event['stage'] or 'run'}-{under or event['seq']}"


def move_aside(folder: Path) -> Path:
    """A folder that cannot be gone on with makes room for a new one."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}{_ASIDE}{number}")).exists():
        number += 1
    os.replace(folder, aside)
    return aside


def folder_run(folder: Path) -> str:
    """Whose folder it is, or was before it was set aside."""
    return folder.name.partition(_ASIDE)[0]


def replace_folder(folder: Path, new: Path) -> None:
    """Another takes the place of a folder, and of what was set aside of it. One of the two is there at any time."""
    if folder.exists():
        move_aside(folder)
    os.replace(new, folder)
    sync_folder(folder.parent)
    for path in _find_aside(folder):
        shutil.rmtree(path)


def delete_folder(folder: Path) -> None:
    """With what was set aside of it."""
    for path in (folder, *_find_aside(folder)):
        if path.exists():
            shutil.rmtree(path)


def _find_aside(folder: Path) -> list[Path]:
    return list(folder.parent.glob(f"{folder.name}{_ASIDE}*"))


def _list_labels(kept: JournalContents) -> list[str]:
    return [label for label in kept.checkpoints if label not in kept.unlisted]


def _repair_folder(folder: Path, kept: JournalContents) -> None:
    """A crash may have left half of something; it is written again from the database."""
    truncate_files({folder / name: end.length for name, end in kept.ends.items()})
    for path in find_leftovers(folder):
        path.unlink()
    for label in kept.unlisted:
        for name in (f"checkpoint_{label}.json", f"checkpoint_{label}.json{SHA256}", f"writes_{label}.jsonl"):
            (folder / name).unlink(missing_ok=True)


def _call_key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["run"], row.get("key"), row.get("time")


# progress.md: what a run has found so far, for somebody who looks in after a crash. It only grows.

QUOTES = 5  # of a sub-question
SHOWN = 240  # characters of a quote
_MARKUP = re.compile(r"[\\`*_\[\]<>!|#]")


class ProgressPage:
    """Says each thing once: every method gives the text to be added."""

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._questions: dict[str, str] = {}
        self._planned = ""
        self._usd = 0.0
        self._told: set[str] = set()
        self._ending = ""

    def format_opening(self, question: str, started: datetime) -> str:
        return (
            f"# {_escape_line(question)}\n\nBegun on {started:%Y-%m-%d at %H:%M %Z}."
            " This page grows as sub-questions are finished.\n"
            "If the run was stopped, go on with: `openassay resume "
            f"{self._thread}`, or, where only this folder is left,"
            " with: `openassay resume --from FOLDER`\n"
        )

    def format_plan(self, plan: Mapping[str, Any] | None) -> str:
        """A plan that was changed is told again."""
        questions = {item["id"]: _escape_line(item["text"]) for item in (plan or {}).get("questions", ())}
        text = "".join(f"- {id}: {asked}\n" for id, asked in questions.items())
        if not questions or text == self._planned:
            return ""
        self._questions, self._planned = questions, text
        return f"\n## Plan\n\n{text}"

    def has_news(self, tasks: Collection[str]) -> bool:
        return not self._told.issuperset(tasks)

    def format_findings(self, task: str, findings: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
        """A sub-question of a round was read."""
        if task in self._told:
            return ""
        self._told.add(task)
        id = str(findings[0]["question"]) if findings else task.rpartition(":")[2]
        best = sorted(findings, key=lambda finding: -finding["relevance"])[:QUOTES]
        lines = [_format_quote(finding["span"], titles) for finding in best] or ["Nothing that answers it was found.\n"]
        more = f"- and {len(findings) - QUOTES} more\n" if len(findings) > QUOTES else ""
        cost = f"\nCost so far: ${self._usd:.4f}\n"
        return f"\n## {id}: {self._questions.get(id, 'finished')}\n\n{''.join(lines)}{more}{cost}"

    def format_event(self, kind: str, stage: str, data: Mapping[str, Any]) -> str:
        match kind:
            case "notice":
                return f"\n> Notice: {_escape_line(data.get('text', ''))}\n"
            case "error":
                return f"\n> Error{f' ({stage})' if stage else ''}: {_escape_line(data.get('message', ''))}\n"
            case "spend":
                self._usd = float(data.get("total_usd", 0))
            case "interrupt":
                return f"\nA question is open. Answer it with: `openassay resume {self._thread}`\n"
            case "run":
                self._ending = self._describe_end(str(data.get("status")))
        return ""

    def format_ending(self) -> str:
        """How it ended, which is told last: what tasks brought while it was being stopped is found after that."""
        text, self._ending = self._ending, ""
        return text

    def _describe_end(self, status: str) -> str:
        if status == "done":
            report = f"Read the report with: `openassay threads show {self._thread}`"
            return f"\n## Finished\n\nCost: ${self._usd:.4f}. {report}\n"
        if status in ("failed", "cancelled"):
            return f"\nStopped ({status}). Go on with: `openassay resume {self._thread}`\n"
        return ""


def _format_quote(span: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    quote = span["quote"]
    short = quote if len(quote) <= SHOWN else f"{quote[: SHOWN - 1]}…"
    return f"- “{_escape_line(short)}” ({_escape_line(titles.get(span['document'], span['document'][:12]))})\n"


def _escape_line(text: object) -> str:
    """On one line, and as it stands: text of pages is neither markup nor a command to a terminal."""
    shown = " ".join(str(text).split())
    if not shown.isprintable():
        shown = "".join(character for character in shown if character.isprintable())
    return _MARKUP.sub(lambda found: f"\\{found[0]}", shown)
