"""Snapshots by content hash: what was read stays readable, and cannot change unnoticed."""

import asyncio
import hashlib
import json
import logging
import re
from typing import TypeVar

from assay.errors import EvidenceError, NotFoundError
from assay.model.source import Document
from assay.storage.database import Connection
from assay.storage.rows import Rows
from assay.storage.tables import DOCUMENTS

_log = logging.getLogger("assay")
_HEX_DIGITS = 64
_FOUND = "SELECT hash FROM documents WHERE hash BETWEEN ? AND ? LIMIT 2"
_IS_THERE = "SELECT 1 FROM documents WHERE hash = ?"
_USED = """
SELECT document FROM used_documents JOIN documents ON documents.hash = document WHERE thread = ? ORDER BY document
"""
_UNUSED = "FROM documents WHERE NOT EXISTS (SELECT 1 FROM used_documents WHERE document = documents.hash)"
_AT_WORK = "SELECT count(*) AS n FROM runs WHERE status IN ('queued', 'running', 'waiting')"

Found = TypeVar("Found")


class SqlDocuments:
    """A ports.DocumentStore. The first `put` of a text decides its metadata."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def put(self, document: Document) -> None:
        await asyncio.to_thread(self._put, document)

    async def get(self, hash: str) -> Document:
        return await asyncio.to_thread(self._get, hash)

    async def used(self, thread: str) -> list[str]:
        return await asyncio.to_thread(self._used, thread)

    def _used(self, thread: str) -> list[str]:
        with self._rows.database.connection() as connection:
            return [str(row["document"]) for row in connection.execute(_USED, (thread,)).fetchall()]

    def _put(self, document: Document) -> None:
        check_hash(document)
        if self._is_there(document.hash):  # without a turn at writing, which runs at once would wait for
            return
        row = {"hash": document.hash, "metadata": metadata_of(document), "text": document.text}
        with self._rows.writing("") as writer:
            writer.insert(DOCUMENTS, row, on_conflict="keep")

    def _is_there(self, hash: str) -> bool:
        with self._rows.database.connection() as connection:
            return connection.execute(_IS_THERE, (hash,)).fetchone() is not None

    def _get(self, hash: str) -> Document:
        prefix = checked_prefix(hash)
        values = (prefix, prefix.ljust(_HEX_DIGITS, "f"))
        with self._rows.database.connection() as connection:
            found = connection.execute(_FOUND, values).fetchall()
        row = self._rows.one(DOCUMENTS, the_only([row["hash"] for row in found], hash))
        return restored(hash, "", b"") if row is None else restored(row["hash"], row["metadata"], row["text"].encode())


def sweep(rows: Rows, connection: Connection) -> None:
    """Delete what no thread uses, as a part of the transaction it is called in.

    What a step has read is used by its thread only when the step is over, so nothing goes while a run is at work, and
    none begins meanwhile. What stays goes with the next thread that does, as does what steps read that were killed."""
    rows.heads.take_common(connection)
    unused = int(connection.execute(f"SELECT count(*) AS n {_UNUSED}").fetchone()["n"])
    if unused and connection.execute(_AT_WORK).fetchone()["n"]:
        _log.warning(
            "%d documents that no thread uses stay, since a run is active; they go with the next thread", unused
        )
    elif unused:
        connection.execute(f"DELETE {_UNUSED}")


def check_hash(document: Document) -> None:
    """Raises EvidenceError unless `hash` is the sha256 of `text`."""
    try:
        content = document.text.encode()
    except UnicodeEncodeError as error:
        raise EvidenceError(
            f"the text of {document.url!r} holds a lone surrogate, so it has no hash",
            help="Decode the file or page properly before making a document of it.",
            document=document.hash,
        ) from error
    if hashlib.sha256(content).hexdigest() != document.hash:
        raise EvidenceError(
            f"the text of {document.url!r} is not the text that its hash {document.hash[:12]} was made from",
            help="The snapshot was altered: delete it and read the source again.",
            document=document.hash,
        )


def checked_prefix(hash: str) -> str:
    """The lower-case hash or prefix of one, or NotFoundError if no document can have it."""
    prefix = hash.lower()
    if not re.fullmatch(rf"[0-9a-f]{{8,{_HEX_DIGITS}}}", prefix):
        raise NotFoundError(f"{hash!r} is not a document", help="Give 8 to 64 hexadecimal digits of its hash.")
    return prefix


def the_only(found: list[Found], hash: str) -> Found:
    if not found:
        raise NotFoundError(f"no document {hash}", help="Check the hash; a report lists those of its sources.")
    if len(found) > 1:
        raise NotFoundError(f"{hash} is ambiguous: several documents begin so", help="Give more of its digits.")
    return found[0]


def metadata_of(document: Document) -> str:
    """All of a document but its text and hash, as JSON."""
    return json.dumps(document.model_dump(mode="json", exclude={"hash", "text"}))


def restored(hash: str, metadata: str, text: bytes) -> Document:
    """The document that was stored, or EvidenceError if it is not what it was."""
    try:
        document = Document.model_validate({**json.loads(metadata), "hash": hash, "text": text.decode()})
    except (TypeError, ValueError) as error:
        raise EvidenceError(
            f"what is stored of document {hash[:12]} cannot be read",
            help="The snapshot was altered: delete it and read the source again.",
            document=hash,
        ) from error
    check_hash(document)
    return document
