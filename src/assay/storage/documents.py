"""Snapshots by content hash: what was read stays readable, and cannot change unnoticed."""

import asyncio
import hashlib
import json
import re
from typing import TypeVar

from assay.errors import EvidenceError, NotFoundError
from assay.model.source import Document
from assay.storage.sqlite import Database

_HEX_DIGITS = 64

Found = TypeVar("Found")


class SqliteDocuments:
    """A ports.DocumentStore. The first `put` of a text decides its metadata."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, document: Document) -> None:
        await asyncio.to_thread(self._put, document)

    async def get(self, hash: str) -> Document:
        return await asyncio.to_thread(self._get, hash)

    def _put(self, document: Document) -> None:
        check_hash(document)
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO documents (hash, metadata, text) VALUES (?, ?, ?) ON CONFLICT (hash) DO NOTHING",
                (document.hash, metadata_of(document), document.text),
            )

    def _get(self, hash: str) -> Document:
        prefix = checked_prefix(hash)
        with self._database.connection() as connection:
            rows = connection.execute(
                "SELECT hash, metadata, CAST(text AS BLOB) FROM documents WHERE hash BETWEEN ? AND ? LIMIT 2",
                (prefix, prefix.ljust(_HEX_DIGITS, "f")),
            ).fetchall()
        row = the_only([tuple(row) for row in rows], hash)
        return restored(*row)


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
