"""What the state of a thread refers to: plain values, compressed, each under a name made from what it says."""

import asyncio
import hashlib
import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from assay.errors import IntegrityError, NotFoundError
from assay.storage.rows import Row, Rows, Writer, place
from assay.storage.seals import ALTERED
from assay.storage.tables import NOTES, USED_DOCUMENTS
from assay.storage.threads import writing_in

DIGITS = 40  # of a name, so that none is taken for the hash of a document
_LEVEL = 1  # of compression: 35 KB of hits in 0.4 ms, to a seventh
_MOST = 500  # names in one statement
_DOCUMENT = "document"  # the key under which stages write the hash of a snapshot
_HASH = re.compile(r"[0-9a-f]{64}")
_WRITTEN_HASH = re.compile(rb'(?<=[{,])"document":"([0-9a-f]{64})"')  # in a text the quotes would be escaped


class SqlNotes:
    """A ports.Notes."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def put(self, thread: str, values: Sequence[Any]) -> list[str]:
        return await asyncio.to_thread(self._put, thread, values)

    async def get(self, thread: str, names: Collection[str]) -> dict[str, Any]:
        return await asyncio.to_thread(self._get, thread, names)

    def _put(self, thread: str, values: Sequence[Any]) -> list[str]:
        contents = [written(value) for value in values]
        names = [name_of(content) for content in contents]
        with writing_in(self._rows, thread) as writer:
            for name, content in zip(names, contents, strict=True):
                row = {"thread": thread, "name": name, "content": zlib.compress(content, _LEVEL)}
                if writer.insert(NOTES, row, on_conflict="keep"):
                    use(writer, thread, hashes_in(content))
        return names

    def _get(self, thread: str, names: Collection[str]) -> dict[str, Any]:
        found = {row["name"]: _opened(row) for row in self._read(thread, names)}
        if missing := sorted(set(names) - found.keys()):
            raise no_note(thread, missing[0])
        return found

    def _read(self, thread: str, names: Collection[str]) -> list[Row]:
        wanted, rows = sorted(set(names)), []
        for first in range(0, len(wanted), _MOST):
            some = wanted[first : first + _MOST]
            marks = ", ".join("?" for _ in some)
            rows += self._rows.read(NOTES, f"WHERE thread = ? AND name IN ({marks})", (thread, *some))
        return rows

    def copy(self, source: str, target: str, names: Collection[str]) -> None:
        """To another thread, as a part of the transaction it is called in."""
        rows = self._read(source, names)
        if missing := sorted(set(names) - {row["name"] for row in rows}):
            raise no_note(source, missing[0])
        with writing_in(self._rows, target) as writer:
            for row in rows:
                if writer.insert(NOTES, {**row, "thread": target}, on_conflict="keep"):
                    use_documents(writer, target, _opened(row))


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]


def no_note(thread: str, name: str) -> NotFoundError:
    return NotFoundError(f"thread {thread} has no note {name}", help=ALTERED, thread=thread)


def _opened(row: Row) -> Any:
    try:
        content = zlib.decompress(row["content"])
        if name_of(content) == row["name"]:
            return json.loads(content)
    except (zlib.error, ValueError):
        pass
    raise IntegrityError(f"row {place(NOTES, row)} is not what its name was made from", help=ALTERED, table=NOTES.name)


def use_documents(writer: Writer, thread: str, value: Any) -> None:
    """The thread rests on every snapshot the value refers to, and whoever may see the thread may read it: so the value
    must be of stages' making (notebook.evidence)."""
    use(writer, thread, set(documents_in(value)))


def use(writer: Writer, thread: str, documents: Iterable[str]) -> None:
    for document in sorted(documents):
        writer.insert(USED_DOCUMENTS, {"thread": thread, "document": document}, on_conflict="keep")


def hashes_in(content: bytes) -> set[str]:
    """What `documents_in` finds in the value that was written."""
    return {found.decode() for found in _WRITTEN_HASH.findall(content)}


def documents_in(value: Any) -> Iterator[str]:
    """The hashes of snapshots that plain data refer to, in no order: what stands under `document`. A text elsewhere is
    a text, also where it looks like a hash: a person, a page or a model may have written it."""
    left = [value]
    while left:
        held = left.pop()
        if held is None or isinstance(held, str | int | float):
            continue
        if isinstance(held, Mapping):
            named = held.get(_DOCUMENT)
            if isinstance(named, str) and len(named) == 64 and _HASH.fullmatch(named):  # digits of a SHA-256
                yield named
            left.extend(held.values())
        elif isinstance(held, list | tuple):
            left.extend(held)
        elif hasattr(held, "arg"):  # a Send
            left.append(held.arg)
