"""Users and their tokens, links to threads, chats, memories, and replies to idempotent requests.

Of a token only its hash is stored: it has 256 random bits, so that a fast hash cannot be guessed and costs a request
nothing.
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from openassay.errors import NotFoundError, UsageError
from openassay.models.base import Record
from openassay.models.user import SHARE_PREFIX, TOKEN_PREFIX, USUAL, ApiToken, Scope, ShareLink, User
from openassay.storage.database import (
    CHATS,
    MEMORIES,
    REPLIES,
    SHARES,
    TOKENS,
    USERS,
    ConstraintError,
    run_in_thread,
    timestamp,
)
from openassay.storage.sealed_rows import Row, Rows, RowStore
from openassay.storage.threads import open_thread_writer

_OWNED = (
    "WHERE said = ? AND thread IN (SELECT id FROM threads WHERE owner = ?) ORDER BY created DESC, thread DESC LIMIT 1"
)
_LAST_EXCHANGE = "WHERE thread = ? ORDER BY created DESC, said LIMIT 1"


class SqlChats(RowStore):
    """Conversations of chat front ends, and the thread of each. A front end sends the whole conversation each time: it
    is recognised by the last question and its answer, of which only the hash is stored."""

    @run_in_thread
    def add(self, thread: str, question: str, answer: str) -> None:
        """Record the last exchange of a thread; NotFoundError if it was deleted."""
        row = {"said": _hash_exchange(question, answer), "thread": thread, "created": self._now()}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(CHATS, row, on_conflict="replace")

    @run_in_thread
    def find_thread(self, owner: str, question: str, answer: str) -> str | None:
        """Return the user's thread that ends with this exchange. A question that was asked again, or changed after it
        was answered, belongs to no thread: the one it was asked on has continued."""
        exchange = _hash_exchange(question, answer)
        rows = self._rows.read(CHATS, _OWNED, (exchange, owner))
        if not rows:
            return None
        thread = str(rows[0]["thread"])
        [last] = self._rows.read(CHATS, _LAST_EXCHANGE, (thread,))
        return thread if last["said"] == exchange else None


def _hash_exchange(question: str, answer: str) -> str:
    """Hash an exchange without its white space: front ends trim and wrap."""
    plain = "\x1f".join(" ".join(text.split()) for text in (question, answer))
    return hashlib.sha256(plain.encode()).hexdigest()


_AT = "WHERE owner = ? AND place = ?"

Namespace = tuple[str, ...]


class MemoryItem(NamedTuple):
    key: str
    value: dict[str, Any]


class SqlMemories:
    """A part of LangGraph's Store: the namespace ("memory", "ann", "facts") is the place `facts` of user ann.

    `lock` keeps out all other writers, on any machine, while it is open; it is entered and left in threads."""

    def __init__(self, rows: Rows, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._rows = rows
        self._lock = lock
        self._writing = asyncio.Lock()

    async def aget(self, namespace: Namespace, key: str) -> MemoryItem | None:
        row = await asyncio.to_thread(self._rows.find, MEMORIES, *_split_namespace(namespace), key)
        return MemoryItem(row["key"], json.loads(row["value"])) if row else None

    async def asearch(self, namespace: Namespace, /, *, limit: int) -> list[MemoryItem]:
        values = (*_split_namespace(namespace), limit)
        rows = await asyncio.to_thread(self._rows.read, MEMORIES, f"{_AT} ORDER BY key LIMIT ?", values)
        return [MemoryItem(row["key"], json.loads(row["value"])) for row in rows]

    @run_in_thread
    def aput(self, namespace: Namespace, key: str, value: dict[str, Any]) -> None:
        owner, place = _split_namespace(namespace)
        with self._rows.open_writer("user", owner) as writer:
            row = {"owner": owner, "place": place, "key": key, "value": json.dumps(value)}
            writer.insert(MEMORIES, row, on_conflict="replace")

    @run_in_thread
    def adelete(self, namespace: Namespace, key: str) -> None:
        owner, place = _split_namespace(namespace)
        with self._rows.open_writer("user", owner) as writer:
            writer.delete(MEMORIES, f"{_AT} AND key = ?", (owner, place, key))

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Let one writer at a time read and write. Those of this process wait for each other here: were each to wait in
        a thread, none would be left for the one that has the lock."""
        async with self._writing:
            lock = self._lock()
            entering = asyncio.create_task(asyncio.to_thread(lock.__enter__))
            try:
                await asyncio.shield(entering)
                yield
            finally:
                await asyncio.wait([entering])  # a task that is cancelled gets the lock all the same
                if entering.exception() is None:
                    await asyncio.to_thread(lock.__exit__, None, None, None)


def _split_namespace(namespace: Namespace) -> tuple[str, str]:
    _, owner, *place = namespace
    return owner, ".".join(place)


REPLY_LIFETIME = timedelta(hours=24)
REPLY_LEASE = timedelta(seconds=90)  # a reply takes no longer: a start waits 60 s at most
PENDING = 0  # in place of a status


class IdempotentReply(Record):
    """The reply to a request with an Idempotency-Key. While it is pending, `body` is the name of its work."""

    owner: str
    key: str
    request: str  # hash of what was sent
    status: int
    body: str
    created: datetime

    @property
    def pending(self) -> bool:
        return self.status == PENDING


class SqlReplies(RowStore):
    """Replies to requests with an Idempotency-Key, for as long as one may be sent again.

    A key is claimed before the work, and its reply is stored afterwards. A claim without a reply whose lease is over
    was left by a process that died: the next caller takes it over under the same name, and can see what became of the
    work.
    """

    @run_in_thread
    def claim(self, owner: str, key: str, request: str, name: str) -> tuple[IdempotentReply, bool]:
        """Return the reply of that key, and whether the caller is to do the work. `name` is that of new work."""
        now = self._now()
        new = IdempotentReply(owner=owner, key=key, request=request, status=PENDING, body=name, created=now)
        with self._rows.open_writer("") as writer:
            writer.delete(REPLIES, "WHERE created < ?", (timestamp(now - REPLY_LIFETIME),))
            if writer.insert(REPLIES, dict(new), on_conflict="keep"):
                return new, True
            # Locked: of two who find it abandoned, one takes it over.
            lock = f"SELECT 1 FROM replies WHERE owner = ? AND key = ?{self._rows.database.for_update}"  # noqa: S608
            writer.connection.execute(lock, (owner, key))
            row = writer.find(REPLIES, owner, key)
            if row is None:
                return new, False  # it was released just now
            stored = IdempotentReply.model_validate(row)
            if not stored.pending or stored.request != request or now - stored.created < REPLY_LEASE:
                return stored, False
            writer.update(REPLIES, (owner, key), {"created": now})
            return stored, True

    @run_in_thread
    def store(self, owner: str, key: str, status: int, body: str) -> None:
        with self._rows.open_writer("") as writer:
            writer.update(REPLIES, (owner, key), {"status": status, "body": body})

    @run_in_thread
    def release(self, owner: str, key: str) -> None:
        """Free a key whose work came to nothing."""
        with self._rows.open_writer("") as writer:
            writer.delete(REPLIES, f"WHERE owner = ? AND key = ? AND status = {PENDING}", (owner, key))


class SqlUsers(RowStore):
    @run_in_thread
    def add(self, user: User) -> None:
        with self._rows.open_writer("user", user.name) as writer:
            try:
                writer.insert(USERS, dict(user))
            except ConstraintError as error:
                raise UsageError(
                    f"there is a user {user.name} already", help=f"Their token: openassay admin users token {user.name}"
                ) from error

    @run_in_thread
    def all(self) -> list[User]:
        return [User.model_validate(row) for row in self._rows.read(USERS, "ORDER BY name")]

    @run_in_thread
    def change(self, name: str, **changes: Any) -> User:
        """Change `usd`, `requests_per_minute` or `disabled`."""
        with self._rows.open_writer("user", name) as writer:
            row = writer.update(USERS, (name,), changes)
            if row is None:
                raise no_user(name)
        return User.model_validate(row)

    @run_in_thread
    def issue(
        self, owner: str, *, label: str = "", scopes: Sequence[Scope] = USUAL, expires: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """Create a token; return it with its secret, which is shown only once."""
        id = secrets.token_hex(4)
        secret = f"{TOKEN_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        token = ApiToken(
            id=id,
            owner=owner,
            label=label,
            hash=hash_secret(secret),
            scopes=tuple(scopes),
            created=self._now(),
            expires=expires,
        )
        with self._rows.open_writer("user", owner) as writer:
            try:
                writer.insert(TOKENS, dict(token))
            except ConstraintError as error:
                raise no_user(owner) from error
        return token, secret

    @run_in_thread
    def find_by_secret(self, secret: str) -> tuple[ApiToken, User] | None:
        """Return the token and the user of a secret, whether or not it is still valid."""
        rows = self._rows.read(TOKENS, "WHERE hash = ?", (hash_secret(secret),))
        return (_token(rows[0]), self._get(rows[0]["owner"])) if rows else None

    @run_in_thread
    def find_by_token_id(self, id: str) -> tuple[ApiToken, User] | None:
        row = self._rows.find(TOKENS, id)
        return (_token(row), self._get(row["owner"])) if row else None

    @run_in_thread
    def is_empty(self) -> bool:
        """Return whether no user was ever added."""
        return self._rows.database.query_one("SELECT 1 FROM users LIMIT 1") is None

    @run_in_thread
    def tokens(self, owner: str) -> list[ApiToken]:
        self._get(owner)
        return [_token(row) for row in self._rows.read(TOKENS, "WHERE owner = ? ORDER BY created, id", (owner,))]

    @run_in_thread
    def revoke(self, id: str) -> ApiToken:
        found = self._rows.find(TOKENS, id)
        if found is None:
            raise NotFoundError(f"there is no token {id}", help="See: openassay admin users list")
        with self._rows.open_writer("user", found["owner"]) as writer:
            row = writer.update(TOKENS, (id,), {"revoked": found["revoked"] or self._now()})
        return _token(row or found)

    async def has_valid_token(self) -> bool:
        now = self._now()
        for user in await self.all():
            if not user.disabled and any(token.is_valid(now) for token in await self.tokens(user.name)):
                return True
        return False

    def _get(self, name: str) -> User:
        found = self._find(name)
        if found is None:
            raise no_user(name)
        return found

    def _find(self, name: str) -> User | None:
        row = self._rows.find(USERS, name)
        return User.model_validate(row) if row else None

    get = run_in_thread(_get)
    find = run_in_thread(_find)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def no_user(name: str) -> NotFoundError:
    return NotFoundError(f"there is no user {name}", help=f"Add them: openassay admin users add {name}")


def _token(row: Row) -> ApiToken:
    return ApiToken.model_validate({**row, "scopes": tuple(row["scopes"].split())})


class SqlShares(RowStore):
    """Links that show a thread to whoever has them; they are deleted with it."""

    @run_in_thread
    def create(self, thread: str, lasts: timedelta) -> tuple[ShareLink, str]:
        """Create a link; return it with its secret, which is shown only once."""
        id, now = secrets.token_hex(4), self._now()
        secret = f"{SHARE_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        share = ShareLink(id=id, thread=thread, hash=hash_secret(secret), created=now, expires=now + lasts)
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(SHARES, dict(share))
        return share, secret

    @run_in_thread
    def find_by_secret(self, secret: str) -> ShareLink | None:
        """Return the link of a secret, whether or not it is still valid."""
        rows = self._rows.read(SHARES, "WHERE hash = ?", (hash_secret(secret),))
        return ShareLink.model_validate(rows[0]) if rows else None

    @run_in_thread
    def list_for(self, thread: str) -> list[ShareLink]:
        rows = self._rows.read(SHARES, "WHERE thread = ? ORDER BY created, id", (thread,))
        return [ShareLink.model_validate(row) for row in rows]

    @run_in_thread
    def revoke(self, thread: str, id: str) -> ShareLink:
        with open_thread_writer(self._rows, thread) as writer:
            found = writer.find(SHARES, id)
            if found is None or found["thread"] != thread:
                raise NotFoundError(f"there is no link {id} to this thread", help="See the thread's list of links.")
            row = writer.update(SHARES, (id,), {"revoked": found["revoked"] or self._now()})
        return ShareLink.model_validate(row or found)
