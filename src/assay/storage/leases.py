"""One process at a time on a thread, of all that share a PostgreSQL database. A thread is held for a while, and while
it is, its holder says again and again that it is still there. One that was killed, stopped or cut off is succeeded when
its time is over, and what it still wants to write is refused (fences.py).

No clock but the server's counts. docs/decisions/0024 says why these are not the server's own locks.
"""

import logging
import math
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from assay.errors import StorageError, ThreadBusyError
from assay.ports import Lease
from assay.storage.database import Connection
from assay.storage.locks import in_other_hands

if TYPE_CHECKING:
    from psycopg import Connection as PsycopgConnection

    from assay.storage.postgres import PostgresDatabase

_log = logging.getLogger("assay")
SECONDS = 15.0
RENEWALS = 3  # in the time of a lease: two may be missed
RETRY = 1.0  # seconds after which a server that was not there is asked again, at the most
SILENCE = 4  # leases after which a process that never asks for what it holds is taken to hang, and holds it no longer

# SKIP LOCKED: a write that is under way is not waited for; the thread is busy until it is done.
_TAKE = """
WITH free AS (
    SELECT thread FROM leases WHERE thread = :thread AND until < clock_timestamp() FOR UPDATE SKIP LOCKED
), taken AS (
    UPDATE leases SET token = nextval('leases_token'), holder = :holder,
        until = clock_timestamp() + make_interval(secs => :seconds),
        falls = CASE WHEN :forgive = 1 THEN 0 ELSE falls + 1 END
    FROM free WHERE leases.thread = free.thread RETURNING token, falls
), made AS (
    INSERT INTO leases (thread, token, holder, until, falls)
    VALUES (:thread, nextval('leases_token'), :holder, clock_timestamp() + make_interval(secs => :seconds), 0)
    ON CONFLICT (thread) DO NOTHING RETURNING token, falls
)
SELECT token, falls FROM taken UNION ALL SELECT token, falls FROM made
"""
_LEFT = "SELECT extract(epoch FROM until - clock_timestamp()) AS seconds FROM leases WHERE thread = ?"
_RENEW = b"""
UPDATE leases SET until = clock_timestamp() + make_interval(secs => %s)
FROM unnest(%s::text[], %s::bigint[]) AS held (thread, token)
WHERE leases.thread = held.thread AND leases.token = held.token
"""
_TOKEN = "SELECT token FROM leases WHERE thread = ?"  # noqa: S105
_FREE = "SELECT count(*) AS taken FROM leases WHERE thread = ? AND until >= clock_timestamp()"
_FALLS = "SELECT falls + 1 AS falls FROM leases WHERE thread = ?"
_PROGRESSED = "UPDATE leases SET falls = 0 WHERE thread = ? AND token = ?"
_RELEASE = "DELETE FROM leases WHERE thread = ? AND token = ?"


class Leases:
    """Implements ports.RunLocks. Safe to be used from several threads; `close` gives back what is still held."""

    def __init__(self, database: "PostgresDatabase", *, seconds: float = SECONDS) -> None:
        self._database = database
        self._seconds = seconds
        self._holder = f"process {os.getpid()} on {socket.gethostname()}"  # for whoever looks into the table
        self._held: dict[str, int] = {}  # token by thread
        self._asked = time.monotonic()  # when anybody in this process was concerned with them last
        self._change = threading.Condition()
        self._renewing: threading.Thread | None = None
        self._closed = False

    def take(self, thread: str, *, forgive: bool = True) -> Lease:
        self._asked = time.monotonic()
        values = {"thread": thread, "holder": self._holder, "seconds": self._seconds, "forgive": int(forgive)}
        with self._database.connection() as connection:
            # One that was lost, and whose holder here has not seen that yet, must not be given back in its name.
            row = None if thread in self._held else connection.execute(_TAKE, values).fetchone()
            if row is None:
                raise self._refusal(connection, thread)
        with self._change:
            self._held[thread] = row["token"]
            if self._renewing is None:
                self._renewing = threading.Thread(target=self._renew_on, name="leases", daemon=True)
                self._renewing.start()
        return Lease(thread, row["token"], row["falls"])

    def release(self, thread: str) -> None:
        with self._change:
            token = self._held.pop(thread, None)
        if token is None:
            return
        try:
            with self._database.connection() as connection:
                connection.execute(_RELEASE, (thread, token))
        except StorageError as error:
            _log.warning("thread %s is free in at most %g s: %s", thread, self._seconds, error.message)

    def holds(self, thread: str) -> bool:
        self._asked = time.monotonic()
        if thread not in self._held:
            return False
        with self._database.connection() as connection:
            row = connection.execute(_TOKEN, (thread,)).fetchone()
        return row is not None and row["token"] == self._held.get(thread)

    def is_free(self, thread: str) -> bool:
        with self._database.connection() as connection:
            return thread not in self._held and connection.execute(_FREE, (thread,)).fetchone()["taken"] == 0

    def falls(self, thread: str) -> int:
        with self._database.connection() as connection:
            row = connection.execute(_FALLS, (thread,)).fetchone()
        return int(row["falls"]) if row else 0

    def progressed(self, thread: str) -> None:
        if token := self._held.get(thread):
            with self._database.connection() as connection:
                connection.execute(_PROGRESSED, (thread, token))

    def close(self) -> None:
        for thread in list(self._held):
            self.release(thread)
        with self._change:
            self._closed, renewing = True, self._renewing
            self._change.notify()
        if renewing:
            renewing.join(RETRY)  # a server that does not answer is not waited for

    def _refusal(self, connection: Connection, thread: str) -> ThreadBusyError:
        row = connection.execute(_LEFT, (thread,)).fetchone()
        seconds = max(math.ceil(row["seconds"]), 1) if row else 1
        return in_other_hands(thread, f". If that process is gone, the thread is free in at most {seconds} s.")

    # -- staying ------------------------------------------------------------------------------------------

    def _renew_on(self) -> None:
        """As long as anything is held. A server that is away loses nothing by itself: what nobody else has taken when
        it is back is held on to."""
        session: PsycopgConnection[Any] | None = None
        pause, is_told = self._seconds / RENEWALS, False
        while held := self._held_after(pause):
            try:
                session = session or self._database.session()
                if time.monotonic() - self._asked < SILENCE * self._seconds:
                    self._renew(session, held)
                pause, is_told = self._seconds / RENEWALS, False
            except StorageError as error:
                if not is_told and not self._closed:
                    _log.warning("the server does not hear of the %d threads held here: %s", len(held), error.message)
                pause, is_told = min(RETRY, pause), True
                if session is not None:
                    session.close()
                    session = None
        if session is not None:
            session.close()

    def _held_after(self, seconds: float) -> dict[str, int]:
        with self._change:
            self._change.wait_for(lambda: self._closed, seconds)
            if self._closed or not self._held:
                self._renewing = None
                return {}
            return dict(self._held)

    def _renew(self, session: "PsycopgConnection[Any]", held: dict[str, int]) -> None:
        with self._database.translating():
            session.execute(_RENEW, (self._seconds, list(held), list(held.values())))
