"""What a process that has lost its thread still wants to write is refused.

Whoever holds a thread has a token of it, which travels with the context: tasks and `asyncio.to_thread` take it along. A
transaction that writes for the thread looks whether that is still the one that counts, and nobody can take the thread
over until it is done. Where no token is held nothing is refused: what people say, and ask of a run, is written by
processes that do not hold its thread.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from openassay.errors import StaleLeaseError
from openassay.protocols import Lease
from openassay.storage.database import Connection

_tokens: ContextVar[Mapping[str, int]] = ContextVar("tokens", default=MappingProxyType({}))  # by thread

# Whoever waits for somebody longer than it may stand still itself gives up: of a process that is stopped, all that wait
# for one another would else be ended one after the other, and keep the thread from its next holder as often as long. As
# it is, the first is ended after that time and those that waited for it after twice that: by then the lease is over.
_PATIENCE = "set_config('lock_timeout', current_setting('idle_in_transaction_session_timeout'), true)"
# KEY SHARE stands against taking a thread (FOR UPDATE) and giving it back (DELETE), and not against renewing its lease.
_TOKEN = "SELECT token FROM leases WHERE leases.thread = {thread} FOR KEY SHARE"  # noqa: S105
_OF_RUN = f"""
SELECT thread, ({_TOKEN.format(thread="runs.thread")}) AS token, {_PATIENCE} FROM runs WHERE id = ?
"""  # noqa: S608
_LEASE = {  # what is written, by its scope; documents are the same whoever writes them
    "thread": f"""
SELECT id AS thread, ({_TOKEN.format(thread="id")}) AS token, {_PATIENCE} FROM (VALUES (?)) AS given (id)
""",  # noqa: S608
    "run": _OF_RUN,
    "ledger": _OF_RUN,
}


@contextmanager
def fence(lease: Lease) -> Iterator[None]:
    """What is written for its thread in here is refused once another has taken that over."""
    outer = _tokens.get()
    if lease.token:
        _tokens.set({**outer, lease.thread: lease.token})
    try:
        yield
    finally:
        _tokens.set(outer)


def check(connection: Connection, scope: str) -> None:
    """A step of a transaction that is about to change rows of a scope, as "thread:ID"; FencedError where it must not.
    That it asks for one row more makes a write a tenth slower."""
    tokens = _tokens.get()
    kind, _, owner = scope.partition(":")
    if not tokens or kind not in _LEASE or (kind == "thread" and owner not in tokens):
        return
    row = connection.execute(_LEASE[kind], (owner,)).fetchone()
    if row and row["thread"] in tokens and row["token"] != tokens[row["thread"]]:
        raise lease_error(row["thread"])


def lease_error(thread: str) -> StaleLeaseError:
    return StaleLeaseError(
        f"thread {thread} is another process's by now; nothing more is written for it here",
        help=f"See how it goes there: openassay threads follow {thread}",
        thread=thread,
    )
