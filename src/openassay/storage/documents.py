"""Documents by content hash: what was read stays readable, and cannot change unnoticed."""

import hashlib
import json
import logging
import re
from datetime import datetime, timedelta
from typing import TypeVar

from openassay.errors import EvidenceError, NotFoundError
from openassay.models.base import utc_now
from openassay.models.evidence import Document
from openassay.storage.database import DOCUMENTS, Connection, run_in_thread, timestamp
from openassay.storage.sealed_rows import Rows, RowStore

_log = logging.getLogger("openassay")
_HEX_DIGITS = 64
# From reading a document until its thread rests on it no step takes nearly as long, and no two clocks differ so much.
GRACE_PERIOD = timedelta(days=1)
_FIND_BY_PREFIX = "SELECT hash FROM documents WHERE hash BETWEEN ? AND ? LIMIT 2"
_IS_THERE = """
SELECT unused_documents.hash IS NULL AS safe
FROM documents LEFT JOIN unused_documents ON unused_documents.hash = documents.hash WHERE documents.hash = ?
"""
_UNMARK = "DELETE FROM unused_documents WHERE hash = ?"
_THREAD_HASHES = """
SELECT document FROM used_documents JOIN documents ON documents.hash = document WHERE thread = ? ORDER BY document
"""
_UNUSED = "FROM documents WHERE NOT EXISTS (SELECT 1 FROM used_documents WHERE document = documents.hash)"
_MARK = f"INSERT INTO unused_documents (hash, since) SELECT hash, ? {_UNUSED} ON CONFLICT (hash) DO NOTHING"
_LONG_UNUSED = f"{_UNUSED} AND hash IN (SELECT hash FROM unused_documents WHERE since < ?)"  # noqa: S608  # ours
DUE_FOR_SWEEP = "SELECT 1 FROM unused_documents WHERE since < ? LIMIT 1"
_UNMARK_OTHERS = f"DELETE FROM unused_documents WHERE hash NOT IN (SELECT hash {_UNUSED})"  # noqa: S608
_AT_WORK = "SELECT count(*) AS n FROM runs WHERE status IN ('queued', 'running', 'waiting')"

T = TypeVar("T")


class SqlDocuments(RowStore):
    """A DocumentStore. The first `put` of a text decides its metadata."""

    @run_in_thread
    def put(self, document: Document) -> None:
        check_hash(document)
        stored = self._rows.database.query_one(_IS_THERE, (document.hash,))
        if stored and stored["safe"]:  # no transaction, for which other runs would wait
            return
        row = {"hash": document.hash, "metadata": dump_metadata(document), "text": document.text}
        with self._rows.database.transaction() as connection:
            if stored:  # and may be swept away at any moment
                self._rows.heads.lock_common(connection)
                connection.execute(_UNMARK, (document.hash,))
            with self._rows.open_writer("") as writer:
                writer.insert(DOCUMENTS, row, on_conflict="keep")

    @run_in_thread
    def get(self, hash: str) -> Document:
        prefix = validate_prefix(hash)
        values = (prefix, prefix.ljust(_HEX_DIGITS, "f"))
        hashes = [row["hash"] for row in self._rows.database.query(_FIND_BY_PREFIX, values)]
        row = get_only(self._rows.read(DOCUMENTS, "WHERE hash = ?", (get_only(hashes, hash),)), hash)
        return load_document(row["hash"], row["metadata"], row["text"].encode())

    @run_in_thread
    def list_hashes(self, thread: str) -> list[str]:
        return [str(row["document"]) for row in self._rows.database.query(_THREAD_HASHES, (thread,))]


def sweep_documents(rows: Rows, connection: Connection, now: datetime | None = None) -> None:
    """Delete documents that no thread uses, as part of the caller's transaction.

    What a step has read is used by its thread only when the step is over. So while a run is active, only what has long
    been unused is deleted; the rest is marked, and storing a document again removes its mark.
    """
    now = now or utc_now()
    rows.heads.lock_common(connection)
    if not connection.execute(_AT_WORK).fetchone()["n"]:
        connection.execute(f"DELETE {_UNUSED}")
    else:
        connection.execute(f"DELETE {_LONG_UNUSED}", (timestamp(now - GRACE_PERIOD),))
        marked = connection.execute(_MARK, (timestamp(now),)).rowcount
        if marked:
            _log.info("%d documents that no thread uses stay for a day, since a run is active", marked)
    connection.execute(_UNMARK_OTHERS)


def check_hash(document: Document) -> None:
    """Raise EvidenceError unless `hash` is the sha256 of `text`."""
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


def validate_prefix(hash: str) -> str:
    """Return the lower-case hash or prefix of one; NotFoundError if no document can have it."""
    prefix = hash.lower()
    if not re.fullmatch(rf"[0-9a-f]{{8,{_HEX_DIGITS}}}", prefix):
        raise NotFoundError(f"{hash!r} is not a document", help="Give 8 to 64 hexadecimal digits of its hash.")
    return prefix


def get_only(found: list[T], hash: str) -> T:
    if not found:
        raise NotFoundError(f"no document {hash}", help="Check the hash; a report lists those of its sources.")
    if len(found) > 1:
        raise NotFoundError(f"{hash} is ambiguous: several documents begin so", help="Give more of its digits.")
    return found[0]


def dump_metadata(document: Document) -> str:
    """Return all of a document but its text and hash, as JSON."""
    return json.dumps(document.model_dump(mode="json", exclude={"hash", "text"}))


def load_document(hash: str, metadata: str, text: bytes) -> Document:
    """Rebuild a stored document; EvidenceError if it is not what was stored."""
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
