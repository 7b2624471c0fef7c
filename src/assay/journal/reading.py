"""Reading the folder of a run. Everything is checked; what a crash may leave is put right, and said."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.errors import IntegrityError, StorageError, UsageError
from assay.journal.chain import End, Links, read_chain
from assay.journal.lines import Plain, Sealing, broken, opened

FORMAT = 1
EVENTS, LEDGER, NOTES = "events.jsonl", "ledger.jsonl", "notes.jsonl"
RUN, THREAD = "run.json", "thread.json"
DOCUMENTS = "documents"
MARK = "checkpoint"  # the kind of the line that says a checkpoint is there
SHA256 = ".sha256"


@dataclass(slots=True)
class Kept:
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
    ends: dict[str, End] = field(default_factory=dict)
    seals: dict[str, str] = field(default_factory=dict)  # of checkpoints, by label
    unlisted: list[str] = field(default_factory=list)  # labels of checkpoints that the events do not speak of yet


def read(folder: Path, seals: Sealing) -> Kept:
    """IntegrityError names the file, and the line in it, that is not what was written."""
    try:
        return _kept(folder, seals)
    except OSError as error:
        raise StorageError(
            f"{error.filename or folder} cannot be read: {error.strerror}", help="Give a folder that you can read."
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise broken(str(folder), f"does not hold what a journal does: {error!r}") from error


def _kept(folder: Path, seals: Sealing) -> Kept:
    run, _ = _run(folder, seals)
    id = str(run["id"])
    kept = Kept(folder, id, run, _file(folder, THREAD, seals, id)[0])
    chains = {name: _chain(kept, name, seals) for name in (EVENTS, LEDGER, NOTES)}
    kept.events = [line for line in chains[EVENTS].contents if line["kind"] != MARK]
    kept.calls = chains[LEDGER].contents
    kept.notes = {line["name"]: line["note"] for line in chains[NOTES].contents}
    for label, seal in _marked(chains[EVENTS]):
        _take(kept, label, seals, chains, seal)
    for label in _unmarked(kept):
        _take_last(kept, label, seals, chains)
    for label in list(kept.checkpoints)[-1:]:
        kept.results = _chain(kept, f"writes_{label}.jsonl", seals, before=kept.seals[label]).contents
    kept.documents = dict(_documents(kept, seals))
    _check_rows(kept, seals)
    _check_attached(kept, chains[NOTES].contents)
    return kept


def _run(folder: Path, seals: Sealing) -> tuple[Plain, str]:
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
        raise broken(RUN) from error
    if key != seals.key_id:
        raise IntegrityError(f"{RUN} was sealed with another key than this one's, or damaged", help=_which_key(key))
    if format != FORMAT:
        raise IntegrityError(f"{RUN} is of format {format}; this version reads {FORMAT}", help="Update Assay.")
    return opened(seals, RUN, content)


def _which_key(key: object) -> str:
    if key:
        return "Set ASSAY_STORAGE_KEY to the key the run was kept with."
    return "The run was kept without a key: restore it without one, then seal it: assay storage seal"


def _file(folder: Path, name: str, seals: Sealing, id: str) -> tuple[Plain, str]:
    path = folder / name
    if not path.is_file():
        raise broken(f"{id}/{name}", "is missing")
    return opened(seals, f"{id}/{name}", path.read_bytes())


def _chain(kept: Kept, name: str, seals: Sealing, before: str = "") -> Links:
    links = read_chain(kept.folder / name, seals, f"{kept.id}/{name}", before)
    kept.ends[name] = links.end
    if links.torn:
        kept.remarks.append(f"the last line of {name} was cut off and is left out")
    return links


# -- checkpoints ------------------------------------------------------------------------------------------------------


def _marked(events: Links) -> Iterator[tuple[str, str]]:
    return ((line["label"], line["sealed"]) for line in events.contents if line["kind"] == MARK)


def _unmarked(kept: Kept) -> list[str]:
    """Written just before a crash, before the events could say so."""
    labels = [path.name[len("checkpoint_") : -len(".json")] for path in kept.folder.glob("checkpoint_*.json")]
    return sorted(label for label in labels if label not in kept.checkpoints)


def _take(kept: Kept, label: str, seals: Sealing, chains: Mapping[str, Links], seal: str | None = None) -> None:
    name = f"checkpoint_{label}.json"
    content, found = _file(kept.folder, name, seals, kept.id)
    check_sum(kept.folder / name, kept.id)
    place = f"{kept.id}/{name}"
    if seal not in (None, found):
        raise broken(place, "is not the one the events speak of")
    for file, links in chains.items():
        said = content[file]
        if (links.seals[: said["lines"]] or [""])[-1] != said["seal"] or len(links.seals) < said["lines"]:
            raise broken(f"{kept.id}/{file}", f"is not what it was when {name} was written")
    kept.checkpoints[label] = content
    kept.seals[label] = found


def _take_last(kept: Kept, label: str, seals: Sealing, chains: Mapping[str, Links]) -> None:
    name = f"checkpoint_{label}.json"
    kept.unlisted.append(label)
    if not (kept.folder / f"{name}{SHA256}").exists():
        kept.remarks.append(f"{name} was not finished and is left out; the run goes on from the one before")
        return
    _take(kept, label, seals, chains)


def check_sum(path: Path, id: str) -> None:
    """The file beside it, as `sha256sum -c` would."""
    sidecar = path.with_name(path.name + SHA256)
    if not sidecar.is_file():
        raise broken(f"{id}/{sidecar.name}", "is missing")
    if sidecar.read_bytes() != sum_of(path.name, path.read_bytes()):
        raise broken(f"{id}/{path.name}", f"is not what {sidecar.name} was made from")


def sum_of(name: str, content: bytes) -> bytes:
    return f"{hashlib.sha256(content).hexdigest()}  {name}\n".encode()


# -- what they refer to -----------------------------------------------------------------------------------------------


def _documents(kept: Kept, seals: Sealing) -> Iterator[tuple[str, Plain]]:
    for path in sorted((kept.folder / DOCUMENTS).glob("*.json")):
        name, held = path.stem, _file(kept.folder, f"{DOCUMENTS}/{path.name}", seals, kept.id)[0]
        text = held["text"].encode("utf-8", "surrogatepass")
        if not held["hash"] == name == hashlib.sha256(text).hexdigest():
            raise broken(f"{kept.id}/{DOCUMENTS}/{name}.json", "is not the text its hash was made from")
        yield name, held


def _check_attached(kept: Kept, notes: list[Plain]) -> None:
    for content in (*kept.checkpoints.values(), *kept.results, *notes):
        for name in content["documents"]:
            if name not in kept.documents:
                raise broken(f"{kept.id}/{DOCUMENTS}/{name}.json", "is missing")
        for name in content.get("notes", ()):
            if name not in kept.notes:
                raise broken(f"{kept.id}/{NOTES}", f"lacks note {name}")


def _check_rows(kept: Kept, seals: Sealing) -> None:
    """Neither may be older than the last checkpoint knew it: it was written since, or is the one of then."""
    if not kept.checkpoints:
        return
    last: Mapping[str, Any] = list(kept.checkpoints.values())[-1]
    for name, (content, seal) in {
        RUN: _run(kept.folder, seals), THREAD: _file(kept.folder, THREAD, seals, kept.id)
    }.items():  # fmt: skip
        if content["lines"] < last[EVENTS]["lines"] and seal != last["rows"][name]:
            raise broken(f"{kept.id}/{name}", "was put back to an older one")
