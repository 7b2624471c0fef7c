"""The journal of a run: a folder that is enough to restore the run from.

    records.jsonl          what the run rests on: its rows, paid calls, notes, documents, results of tasks
    events.jsonl           what happened
    checkpoint_STEP.json   the state after a step, with its .sha256
    progress.md            for people; nothing reads it

The seal of each line covers the line before it. Before a checkpoint is put in its place, a line of records.jsonl holds
its SHA-256 and the seal of the last event, so whatever is changed, moved or removed up to there is noticed.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from pydantic import ValidationError

from openassay.errors import IntegrityError, StorageError, UsageError
from openassay.models.base import Record
from openassay.models.event import Event, RunStatus
from openassay.models.evidence import Document
from openassay.models.thread import Branch, Run, Thread
from openassay.storage.sealed_rows import Seals

FORMAT = 2
RECORDS, EVENTS, PROGRESS = "records.jsonl", "events.jsonl", "progress.md"
TEMPORARY = ".tmp"
_FORMER = "run.json"  # a file of format 1
_ASIDE = ".damaged-"
_ALTERED = "It was altered or damaged. Take another copy of the folder; what is in the database is not touched."
_SEAL = b', "seal": "'
_WHOLE_LINE = re.compile(rb', "seal": "[0-9a-f]{64}"}.', re.DOTALL)

Plain = dict[str, Any]


# Lines, each sealed over the one before


class SealedLine(NamedTuple):
    content: Plain
    seal: str
    end: int  # where the next line begins in the file


def seal_line(seals: Seals, before: str, content: Mapping[str, Any], *, is_clear: bool = False) -> tuple[bytes, str]:
    """Return a line that follows the one with the seal `before`, and its own seal."""
    text = json.dumps(content)
    if seals.encrypts and not is_clear:
        text = json.dumps({"encrypted": seals.encrypt(before, text)})
    return _seal_body(seals, before, text.removesuffix("}").encode())


def read_lines(path: Path, seals: Seals, run: str) -> tuple[list[SealedLine], bool]:
    """Return the lines of a file, and whether a crash has left a part of another. The first of records.jsonl is never
    encrypted."""
    *whole, rest = path.read_bytes().split(b"\n") if path.exists() else [b""]
    before, end, lines = chain_start(run, path.name), 0, list[SealedLine]()
    for number, line in enumerate(whole, 1):
        place = f"{run}/{path.name} line {number}"
        body = line.rpartition(_SEAL)[0]
        expected, seal = _seal_body(seals, before, body)
        if expected != line + b"\n":
            raise integrity_error(place)
        content = _parse_json(place, body + b"}")
        if seals.encrypts and (path.name, number) != (RECORDS, 1):
            content = _parse_json(place, seals.decrypt(before, content.get("encrypted", "")))
        end += len(expected)
        lines.append(SealedLine(content, before := seal, end))
    if _WHOLE_LINE.search(rest):  # a crash leaves the beginning of a line, and nothing after its end
        raise integrity_error(f"{run}/{path.name} line {len(whole) + 1}")
    return lines, bool(rest)


def chain_start(run: str, name: str) -> str:
    """Return what stands in for the seal before the first line: a line of another run or file does not fit."""
    return f"{run}/{name}"


def _seal_body(seals: Seals, before: str, body: bytes) -> tuple[bytes, str]:
    seal = seals.seal_bytes(before.encode() + b"\n" + body)
    return body + _SEAL + seal.encode() + b'"}\n', seal


def _parse_json(place: str, text: str | bytes) -> Plain:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise integrity_error(place) from error
    if not isinstance(content, dict):
        raise integrity_error(place)
    return content


def integrity_error(place: str, why: str = "is not what was written") -> IntegrityError:
    return IntegrityError(f"{place} {why}", help=_ALTERED, place=place)


def contents_error(folder: Path, error: Exception) -> IntegrityError:
    return IntegrityError(
        f"{folder} does not hold what a journal does: {error}", help="Was it written by a newer version?"
    )


# Reading


class RunRows(Record):
    run: Run
    thread: Thread
    branch: Branch | None


@dataclass(slots=True)
class JournalContents:
    rows: RunRows | None = None
    events: list[Event] = field(default_factory=list)
    calls: list[Plain] = field(default_factory=list)
    checkpoints: dict[str, Plain] = field(default_factory=dict)  # by label, in order
    results: list[Plain] = field(default_factory=list)  # of tasks since the last of them
    documents: dict[str, Document] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)  # what a crash has left unfinished
    ends: dict[str, tuple[str, int]] = field(default_factory=dict)  # of each file: its last seal, and where it ends


def read_journal(folder: Path, seals: Seals) -> JournalContents:
    """Read and check all of a journal; IntegrityError names what is not as it was written."""
    try:
        return _read_contents(folder, seals)
    except OSError as error:
        raise StorageError(
            f"{error.filename or folder} cannot be read: {error.strerror}", help="Give a folder that you can read."
        ) from error
    except (KeyError, IndexError, TypeError, AttributeError, ValidationError) as error:
        raise contents_error(folder, error) from error


def _read_contents(folder: Path, seals: Seals) -> JournalContents:
    run = _read_header(folder, seals)
    kept = JournalContents()
    files = {}
    for name in (RECORDS, EVENTS):
        files[name], is_torn = read_lines(folder / name, seals, run)
        if is_torn:
            kept.remarks.append(f"the last line of {name} was cut off and is left out")
    records, events = files[RECORDS], files[EVENTS]
    last = records[-1].content
    if last["kind"] == "checkpoint" and not (folder / last["file"]).exists():
        kept.remarks.append(f"{last['file']} was not finished and is left out; the run goes on from the one before")
        records.pop()
    kept.ends = {name: (lines[-1].seal, lines[-1].end) for name, lines in files.items() if lines}
    known = {chain_start(run, EVENTS), *(line.seal for line in events)}
    for line in records[1:]:
        _add_record(kept, folder, seals, run, line.content, known)
    listed = {f"checkpoint_{label}.json" for label in kept.checkpoints}
    for path in sorted(folder.glob("checkpoint_*.json")):
        if path.name not in listed:
            raise integrity_error(f"{run}/{RECORDS}", f"was cut off: it does not know {path.name}")
    kept.events = _in_order(kept, events)
    return kept


def _read_header(folder: Path, seals: Seals) -> str:
    """Return the id of the run, if this version and this key can read its journal."""
    help = "Give a folder under checkpoints/: one a run."
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", help=help)
    if (folder / _FORMER).is_file() and not (folder / RECORDS).exists():
        raise _format_error("the journal", 1)
    if not (folder / RECORDS).is_file():
        raise UsageError(f"{folder} is not the journal of a run", help=help)
    header = _parse_json(RECORDS, (folder / RECORDS).read_bytes().partition(b"\n")[0])
    if header.get("kind") != "journal":
        raise integrity_error(f"{RECORDS} line 1")
    if header["format"] != FORMAT:
        raise _format_error(RECORDS, header["format"])
    if header["key"] != seals.key_id:
        with_key = "Set OPENASSAY_STORAGE_KEY to the key the run was kept with."
        without = "The run was kept without a key: restore it without one, then seal it: openassay admin seal"
        raise IntegrityError(
            f"{RECORDS} was sealed with another key than this one's, or damaged",
            help=with_key if header["key"] else without,
        )
    if header["encrypted"] != seals.encrypts:
        state = "encrypted" if header["encrypted"] else "not encrypted"
        raise IntegrityError(f"{RECORDS} is {state}", help="Set persistence.encrypt as it was when it was written.")
    return str(header["run"])


def _format_error(what: str, format: object) -> IntegrityError:
    return IntegrityError(
        f"{what} is of format {format}; this version reads {FORMAT} (the run in the database is not affected)",
        help="Restore the run with the version of OpenAssay that wrote it.",
    )


def _add_record(kept: JournalContents, folder: Path, seals: Seals, run: str, record: Plain, events: set[str]) -> None:
    match record["kind"]:
        case "rows":
            kept.rows = RunRows.model_validate(record["rows"])
        case "call":
            kept.calls.append(record["call"])
        case "note":
            kept.notes[record["name"]] = record["note"]
        case "document":
            document = Document.model_validate(record["document"])
            if hashlib.sha256(document.text.encode()).hexdigest() != document.hash:
                raise integrity_error(f"{run}/{RECORDS}", f"holds a text that is not document {document.hash}")
            kept.documents[document.hash] = document
        case "result":
            if record["checkpoint"] == list(kept.checkpoints.values())[-1]["id"]:
                kept.results.append(record)
        case "checkpoint":
            if record["events"] not in events:
                raise integrity_error(f"{run}/{EVENTS}", f"is not what it was when {record['file']} was written")
            kept.checkpoints[record["label"]] = _read_checkpoint(folder, seals, run, record)
            kept.results = []  # those before have become part of it
        case kind:
            raise integrity_error(f"{run}/{RECORDS}", f"holds a record of an unknown kind: {kind}")


def _read_checkpoint(folder: Path, seals: Seals, run: str, record: Plain) -> Plain:
    path = folder / Path(record["file"]).name  # of this folder, whoever wrote the record
    place = f"{run}/{path.name}"
    sidecar = path.with_name(f"{path.name}.sha256")
    for needed in (path, sidecar):
        if not needed.is_file():
            raise integrity_error(f"{run}/{needed.name}", "is missing")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != record["sha256"]:
        raise integrity_error(place)
    if sidecar.read_text(encoding="ascii", errors="replace") != _checksum_line(path.name, record["sha256"]):
        raise integrity_error(f"{run}/{sidecar.name}")
    held = _parse_json(place, content)
    return _parse_json(place, seals.decrypt(place, held["encrypted"])) if seals.encrypts else held


def _in_order(kept: JournalContents, lines: list[SealedLine]) -> list[Event]:
    """Return events by their number. Those of tasks that run at once are written as they come: after a crash one may
    be missing, and those after it are left out."""
    plain = [{name: value for name, value in line.content.items() if name != "step"} for line in lines]
    events = {event.seq: event for event in map(Event.model_validate, plain)}
    whole = [events[seq] for seq in takewhile(events.__contains__, count(1))]
    if len(whole) < len(events):
        kept.remarks.append(f"{EVENTS} lacks event {len(whole) + 1}; those after it are left out")
    return whole


def _checksum_line(name: str, sha256: str) -> str:
    return f"{sha256}  {name}\n"


# Writing


class JournalWriter:
    """Continues where `kept` ends. Safe to be called from several threads; raises OSError when it cannot write."""

    def __init__(self, folder: Path, run: str, seals: Seals, kept: JournalContents | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._run = run
        self._seals = seals
        self._lock = RLock()
        for path in folder.glob(f"*{TEMPORARY}"):
            path.unlink()
        is_new, kept = kept is None, kept or JournalContents()
        self._ends = {name: kept.ends.get(name, (chain_start(run, name), 0)) for name in (RECORDS, EVENTS)}
        header = {"kind": "journal", "format": FORMAT, "run": run, "key": seals.key_id, "encrypted": seals.encrypts}
        first, seal = seal_line(seals, chain_start(run, RECORDS), header, is_clear=True)
        for name, (_, end) in self._ends.items():
            # A file of its own: a process that was stopped, and has the old one open, adds nothing to it.
            path = folder / name
            replace_file(path, path.read_bytes()[:end] if end else first if name == RECORDS else b"")
        if is_new:
            self._ends[RECORDS] = seal, len(first)
        self._files = {name: (folder / name).open("ab", buffering=0) for name in self._ends}
        self._rows = kept.rows
        self._calls = {_call_key(row): hash(json.dumps(row)) for row in kept.calls}
        self.seqs = {event.seq for event in kept.events}
        self.labels = {content["id"]: label for label, content in kept.checkpoints.items()}
        self.tasks = {result["task"] for result in kept.results}
        self.documents = set(kept.documents)
        self.notes = set(kept.notes)

    def write_rows(self, rows: RunRows) -> None:
        """Record the rows of the run and its thread, if they have changed."""
        with self._lock:
            if self._rows != rows:
                self._append(RECORDS, {"kind": "rows", "rows": rows.plain()})
                self._rows = rows

    def write_event(self, event: Event) -> None:
        """Record an event, with what it belongs to: the entry of its stage and everything under it have the same."""
        with self._lock:
            if event.seq not in self.seqs:
                under = event.parent if event.kind != "enter" else None
                step = f"{event.stage or 'run'}-{under or event.seq}"
                self._append(EVENTS, {**event.plain(), "step": step})
                self.seqs.add(event.seq)

    def write_calls(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Record accounts and calls that have changed, as they are now."""
        with self._lock:
            for row in rows:
                key, digest = _call_key(row), hash(json.dumps(row))
                if self._calls.get(key) != digest:
                    self._append(RECORDS, {"kind": "call", "call": row})
                    self._calls[key] = digest

    def attach(self, documents: Iterable[Document], notes: Mapping[str, Any]) -> None:
        """Record what a checkpoint or a result is about to refer to."""
        with self._lock:
            for document in documents:
                self._append(RECORDS, {"kind": "document", "document": document.plain()})
                self.documents.add(document.hash)
            for name, note in notes.items():
                self._append(RECORDS, {"kind": "note", "name": name, "note": note})
                self.notes.add(name)

    def write_checkpoint(self, content: Plain) -> None:
        """Write a checkpoint, with an id and a step. What happened before it is on the disk before it is."""
        with self._lock:
            if content["id"] in self.labels:
                return
            label = self._next_label(content["step"])
            name = f"checkpoint_{label}.json"
            text = json.dumps(content)
            if self._seals.encrypts:
                text = json.dumps({"encrypted": self._seals.encrypt(f"{self._run}/{name}", text)})
            digest = hashlib.sha256(text.encode()).hexdigest()
            mark = {"file": name, "label": label, "sha256": digest, "events": self._ends[EVENTS][0]}
            self._append(RECORDS, {"kind": "checkpoint", **mark})
            for file in self._files.values():
                os.fsync(file.fileno())
            replace_file(self._folder / f"{name}.sha256", _checksum_line(name, digest).encode())
            replace_file(self._folder / name, text.encode())
            sync_folder(self._folder)
            self.labels[content["id"]] = label
            self.tasks = set()

    def write_result(self, checkpoint: str, result: Plain) -> None:
        """Record what a task has brought that has ended since a checkpoint."""
        with self._lock:
            self._append(RECORDS, {"kind": "result", "checkpoint": checkpoint, **result})
            self.tasks.add(result["task"])

    def close(self) -> None:
        with self._lock, ExitStack() as stack:
            for file in self._files.values():
                stack.enter_context(file)
            for file in self._files.values():
                os.fsync(file.fileno())

    def _append(self, name: str, content: Mapping[str, Any]) -> None:
        before, end = self._ends[name]
        line, seal = seal_line(self._seals, before, content)
        if self._files[name].write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._ends[name] = seal, end + len(line)

    def _next_label(self, step: int) -> str:
        """Return the step, with a number if there was another way to it before."""
        taken = set(self.labels.values())
        others = (f"{step}-{number}" for number in range(2, len(taken) + 3))
        return next(label for label in (str(step), *others) if label not in taken)


def _call_key(row: Mapping[str, Any]) -> tuple[object, ...]:
    return row["run"], row.get("key"), row.get("time")


# Files and folders


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that under its name there is what was before, or all of this."""
    temporary = path.with_name(path.name + TEMPORARY)
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def has_content(folder: Path) -> bool:
    """Whether a journal was begun there; a crash may leave a folder with temporary files alone."""
    return folder.is_dir() and any(path.suffix != TEMPORARY for path in folder.iterdir())


def move_aside(folder: Path) -> Path:
    """Rename a folder that cannot be continued."""
    number = 1
    while (aside := folder.with_name(f"{folder.name}{_ASIDE}{number}")).exists():
        number += 1
    os.replace(folder, aside)
    return aside


def folder_run(folder: Path) -> str:
    """Return whose folder it is, or was before it was set aside."""
    return folder.name.partition(_ASIDE)[0]


def delete_aside(folder: Path) -> None:
    for path in folder.parent.glob(f"{folder.name}{_ASIDE}*"):
        shutil.rmtree(path)


def delete_folder(folder: Path) -> None:
    """Delete a folder with what was set aside of it."""
    shutil.rmtree(folder, ignore_errors=not folder.exists())
    delete_aside(folder)


# progress.md: what a run has found so far, for somebody who looks in after a crash

QUOTES = 5  # of a sub-question
MAX_QUOTE_CHARS = 240
_MARKUP = re.compile(r"[\\`*_\[\]<>!|#]")


class ProgressPage:
    """Grows by what it does not say yet. Without a path nothing is written."""

    def __init__(self, path: Path | None, thread: str) -> None:
        self._path = path
        self._thread = thread
        self._text = path.read_text(encoding="utf-8", errors="replace") if path and path.exists() else ""
        self._questions: dict[str, str] = {}
        self._usd = 0.0

    def add_opening(self, run: Run) -> None:
        self._add(
            f"# {_escape_line(run.question)}\n\nBegun on {run.started:%Y-%m-%d at %H:%M %Z}."
            " This page grows as sub-questions are finished.\n"
            f"If the run was stopped, go on with: `openassay resume {self._thread}`,"
            " or, where only this folder is left, with: `openassay resume --from FOLDER`\n"
        )

    def add_plan(self, plan: Mapping[str, Any] | None) -> None:
        if questions := {item["id"]: _escape_line(item["text"]) for item in (plan or {}).get("questions", ())}:
            self._questions = questions
            self._add("\n## Plan\n\n" + "".join(f"- {id}: {question}\n" for id, question in questions.items()))

    def add_findings(self, task: str, findings: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> None:
        """Say what a sub-question of a round has brought; `titles` of the documents of its best quotes."""
        id = str(findings[0]["question"]) if findings else task.rpartition(":")[2]
        quotes = [_format_quote(finding["span"], titles) for finding in best_findings(findings)]
        lines = quotes or ["Nothing that answers it was found.\n"]
        more = f"- and {len(findings) - QUOTES} more\n" if len(findings) > QUOTES else ""
        section = f"\n## {id}: {self._questions.get(id, 'finished')}\n\n{''.join(lines)}{more}"
        self._add(section, after=f"\nCost so far: ${self._usd:.4f}\n")

    def add_event(self, event: Event) -> None:
        data, stage = event.data, event.stage
        match event.kind:
            case "notice":
                self._add(f"\n> Notice: {_escape_line(data.get('text', ''))}\n")
            case "error":
                self._add(f"\n> Error{f' ({stage})' if stage else ''}: {_escape_line(data.get('message', ''))}\n")
            case "spend":
                self._usd = float(str(data.get("total_usd", 0)))
            case "interrupt":
                self._add(f"\nA question is open. Answer it with: `openassay resume {self._thread}`\n")

    def add_end(self, status: RunStatus) -> None:
        if status is RunStatus.DONE:
            report = f"Read the report with: `openassay threads show {self._thread}`"
            self._add(f"\n## Finished\n\nCost: ${self._usd:.4f}. {report}\n")
        elif status in (RunStatus.FAILED, RunStatus.CANCELLED):
            end = f"\nStopped ({status}). Go on with: `openassay resume {self._thread}`\n"
            if not self._text.endswith(end):
                self._append(end)

    def _add(self, text: str, after: str = "") -> None:
        if text not in self._text:
            self._append(text + after)

    def _append(self, text: str) -> None:
        self._text += text
        if self._path:
            with self._path.open("ab") as file:
                file.write(text.encode())


def best_findings(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return sorted(findings, key=lambda finding: -finding["relevance"])[:QUOTES]


def _format_quote(span: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    quote = span["quote"]
    short = quote if len(quote) <= MAX_QUOTE_CHARS else f"{quote[: MAX_QUOTE_CHARS - 1]}…"
    return f"- “{_escape_line(short)}” ({_escape_line(titles.get(span['document'], span['document'][:12]))})\n"


def _escape_line(text: object) -> str:
    """Return a text on one line, and as it stands: what pages say is neither markup nor a command to a terminal."""
    shown = "".join(character for character in " ".join(str(text).split()) if character.isprintable())
    return _MARKUP.sub(lambda found: f"\\{found[0]}", shown)
