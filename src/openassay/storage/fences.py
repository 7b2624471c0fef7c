"""Fences refuse what a process still writes for a thread whose lease it has lost.

The holder of a lease has a token, which travels with the context: tasks and `asyncio.to_thread` take it along. A
transaction that writes for the thread checks that it is still the current token, and no other process can take the
thread over until the transaction is done. Without a token nothing is refused: what people say, and ask of a run, is
written by processes that do not hold its thread.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from openassay.errors import StaleLeaseError
from openassay.protocols import Lease
from openassay.storage.database import Connection

_tokens: ContextVar[Mapping[str, int]] = ContextVar("tokens", default=MappingProxyType({}))  # by thread

# A transaction waits for a lock no longer than it may stand still itself. Otherwise the transactions of a stopped
# process, waiting for one another, would be ended one after the other and keep the thread from its next holder. As
# it is, the first is ended after that time and those that waited for it after twice that: by then the lease is over.
_PATIENCE = "set_config('lock_timeout', current_setting('idle_in_transaction_session_timeout'), true)"
# KEY SHARE conflicts with taking a thread (FOR UPDATE) and releasing it (DELETE), but not with renewing its lease.
_TOKEN = "SELECT token FROM leases WHERE leases.thread = {thread} FOR KEY SHARE"  # noqa: S105
_OF_RUN = f"""
SELECT thread, ({_TOKEN.format(thread="runs.thread")}) AS token, {_PATIENCE} FROM runs WHERE id = ?
"""  # noqa: S608
_LEASE = {  # by the scope of what is written; documents are the same whoever writes them
    "thread": f"""
SELECT id AS thread, ({_TOKEN.format(thread="id")}) AS token, {_PATIENCE} FROM (VALUES (?)) AS given (id)
""",  # noqa: S608
    "run": _OF_RUN,
    "ledger": _OF_RUN,
}


@contextmanager
def fence(lease: Lease) -> Iterator[None]:
    """Refuse what is written in here for the thread of a lease once another process has taken it over."""
    outer = _tokens.get()
    if lease.token:
        _tokens.set({**outer, lease.thread: lease.token})
    try:
        yield
    finally:
        _tokens.set(outer)


def check(connection: Connection, scope: str) -> None:
    """Raise StaleLeaseError where a transaction may not change rows of a scope, such as "thread:ID". This makes a write
    a tenth slower."""
    tokens = _tokens.get()
    kind, _, owner = scope.partition(":")
    if not tokens or kind not in _LEASE or (kind == "thread" and owner not in tokens):
        return
    row = connection.execute(_LEASE[kind], (owner,)).fetchone()
    if row and row["thread"] in tokens and row["token"] != tokens[row["thread"]]:
        raise lease_error(row["thread"])


def lease_error(thread: str) -> StaleLeaseError:
    return StaleLeaseError(
        f"another process has taken over thread {thread}; nothing more is written for it here",
        help=f"Follow it there: openassay threads follow {thread}",
        thread=thread,
    )
