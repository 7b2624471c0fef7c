"""People, and the tokens by which they are known. Of a token only its hash is kept: it has 256 bits of chance in it, so
a fast hash cannot be guessed, and being fast it costs a request nothing.
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
from openassay.models.user import USUAL, ApiToken, Scope, ShareLink, User
from openassay.storage.database import (
    CHATS,
    MEMORIES,
    REPLIES,
    SHARES,
    TOKENS,
    USERS,
    ConstraintError,
    timestamp,
    utc_now,
)
from openassay.storage.rows import Row, Rows, Writer
from openassay.storage.threads import open_thread_writer

# Conversations of chat front ends, and the thread each became. A front end sends all of what was said each time: it is
# known again by the last question and the answer to it, also where the front end has left out what came before.

_OWNED = (
    "WHERE said = ? AND thread IN (SELECT id FROM threads WHERE owner = ?) ORDER BY created DESC, thread DESC LIMIT 1"
)
_LAST_EXCHANGE = "WHERE thread = ? ORDER BY created DESC, said LIMIT 1"


class SqlChats:
    """Nothing of what was said is kept here but its hash."""

    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def add(self, thread: str, question: str, answer: str) -> None:
        """What was said last on a thread; NotFoundError if there is none any more."""
        await asyncio.to_thread(self._add, thread, _hash_exchange(question, answer))

    async def find_thread(self, owner: str, question: str, answer: str) -> str | None:
        """The person's thread that ends with this. A question that was asked again, or changed after it was answered,
        belongs to no thread: the one it was asked on has gone on."""
        return await asyncio.to_thread(self._find_thread, owner, _hash_exchange(question, answer))

    def _add(self, thread: str, said: str) -> None:
        row = {"said": said, "thread": thread, "created": timestamp(self._now())}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(CHATS, row, on_conflict="replace")

    def _find_thread(self, owner: str, said: str) -> str | None:
        rows = self._rows.read(CHATS, _OWNED, (said, owner))
        if not rows:
            return None
        thread = str(rows[0]["thread"])
        [last] = self._rows.read(CHATS, _LAST_EXCHANGE, (thread,))
        return thread if last["said"] == said else None


def _hash_exchange(question: str, answer: str) -> str:
    """Front ends trim and wrap: white space does not count."""
    plain = "\x1f".join(" ".join(text.split()) for text in (question, answer))
    return hashlib.sha256(plain.encode()).hexdigest()


# What people want remembered, in rows of the database: for every machine, and sealed and encrypted like all others.
#
# It is asked as LangGraph's Store is: the namespace ("memory", "ann", "facts") is the place `facts` of ann.

_AT = "WHERE owner = ? AND place = ?"

Namespace = tuple[str, ...]


class MemoryItem(NamedTuple):
    key: str
    value: dict[str, Any]


class SqlMemories:
    """`lock` keeps everybody else out, on whatever machine, while it is open; it is entered and left in threads."""

    def __init__(self, rows: Rows, lock: Callable[[], AbstractContextManager[None]]) -> None:
        self._rows = rows
        self._lock = lock
        self._turn = asyncio.Lock()

    async def aget(self, namespace: Namespace, key: str) -> MemoryItem | None:
        row = await asyncio.to_thread(self._rows.find, MEMORIES, *_split_namespace(namespace), key)
        return _item(row) if row else None

    async def asearch(self, namespace: Namespace, /, *, limit: int) -> list[MemoryItem]:
        values = (*_split_namespace(namespace), limit)
        rows = await asyncio.to_thread(self._rows.read, MEMORIES, f"{_AT} ORDER BY key LIMIT ?", values)
        return [_item(row) for row in rows]

    async def aput(self, namespace: Namespace, key: str, value: dict[str, Any]) -> None:
        await asyncio.to_thread(self._put, *_split_namespace(namespace), key, json.dumps(value))

    async def adelete(self, namespace: Namespace, key: str) -> None:
        await asyncio.to_thread(self._delete, *_split_namespace(namespace), key)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Writers read first what there is, so they go one by one. Those of this process wait for each other here: were
        each to wait in a thread, none would be left for the one whose turn it is."""
        async with self._turn:
            lock = self._lock()
            entering = asyncio.create_task(asyncio.to_thread(lock.__enter__))
            try:
                await asyncio.shield(entering)
                yield
            finally:
                await asyncio.wait([entering])  # whoever is cancelled has it in a moment all the same
                if entering.exception() is None:
                    await asyncio.to_thread(lock.__exit__, None, None, None)

    def _put(self, owner: str, place: str, key: str, value: str) -> None:
        with self._rows.open_writer("user", owner) as writer:
            row = {"owner": owner, "place": place, "key": key, "value": value}
            writer.insert(MEMORIES, row, on_conflict="replace")

    def _delete(self, owner: str, place: str, key: str) -> None:
        with self._rows.open_writer("user", owner) as writer:
            writer.delete(MEMORIES, f"{_AT} AND key = ?", (owner, place, key))


def _split_namespace(namespace: Namespace) -> tuple[str, str]:
    _, owner, *place = namespace
    return owner, ".".join(place)


def _item(row: Row) -> MemoryItem:
    return MemoryItem(row["key"], json.loads(row["value"]))


# What was answered to requests with an Idempotency-Key, for as long as somebody may send them again.
#
# A key is claimed before the work and kept with the answer after it. A claim without an answer whose time is over was
# left by a process that died: whoever comes next takes it over, under the same name, and can see what became of the
# work.

REPLY_LIFETIME = timedelta(hours=24)
REPLY_LEASE = timedelta(seconds=90)  # an answer takes no longer: a start waits 60 s at most
PENDING = 0  # in place of a status


class IdempotentReply(Record):
    """`body` of one that is pending is the name its work goes by."""

    owner: str
    key: str
    request: str  # hash of what was sent
    status: int
    body: str
    created: datetime

    @property
    def pending(self) -> bool:
        return self.status == PENDING


class SqlReplies:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def claim(self, owner: str, key: str, request: str, name: str) -> tuple[IdempotentReply, bool]:
        """The reply of that key, and whether the work is the caller's to do. `name` is what a new one goes by."""
        return await asyncio.to_thread(self._claim, owner, key, request, name)

    async def store(self, owner: str, key: str, status: int, body: str) -> None:
        await asyncio.to_thread(self._store, owner, key, status, body)

    async def release(self, owner: str, key: str) -> None:
        """Nothing came of it: the key can be used again."""
        await asyncio.to_thread(self._release, owner, key)

    def _claim(self, owner: str, key: str, request: str, name: str) -> tuple[IdempotentReply, bool]:
        now = self._now()
        new = IdempotentReply(owner=owner, key=key, request=request, status=PENDING, body=name, created=now)
        with self._rows.open_writer("") as writer:
            writer.delete(REPLIES, "WHERE created < ?", (timestamp(now - REPLY_LIFETIME),))
            if writer.insert(REPLIES, {**dict(new), "created": timestamp(now)}, on_conflict="keep"):
                return new, True
            row = self._lock_row(writer, owner, key)
            if row is None:
                return new, False  # it was given up just now
            held = IdempotentReply.model_validate(row)
            if not held.pending or held.request != request or now - held.created < REPLY_LEASE:
                return held, False
            writer.update(REPLIES, (owner, key), {"created": timestamp(now)})
            return held, True

    def _lock_row(self, writer: Writer, owner: str, key: str) -> Row | None:
        """Two who find it left must not both take it over."""
        held = f"SELECT 1 FROM replies WHERE owner = ? AND key = ?{self._rows.database.for_update}"  # noqa: S608
        writer.connection.execute(held, (owner, key))
        return writer.find(REPLIES, owner, key)

    def _store(self, owner: str, key: str, status: int, body: str) -> None:
        with self._rows.open_writer("") as writer:
            writer.update(REPLIES, (owner, key), {"status": status, "body": body})

    def _release(self, owner: str, key: str) -> None:
        with self._rows.open_writer("") as writer:
            writer.delete(REPLIES, f"WHERE owner = ? AND key = ? AND status = {PENDING}", (owner, key))


TOKEN_PREFIX = "openassay"  # noqa: S105  # what a token begins with, not one


class SqlUsers:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def add(self, user: User) -> None:
        await asyncio.to_thread(self._add, user)

    async def get(self, name: str) -> User:
        return await asyncio.to_thread(self._get, name)

    async def find(self, name: str) -> User | None:
        """As `get`, where there may be none."""
        return await asyncio.to_thread(self._find, name)

    async def all(self) -> list[User]:
        return await asyncio.to_thread(self._all)

    async def change(self, name: str, **changes: Any) -> User:
        """`usd`, `requests_per_minute` or `disabled`."""
        return await asyncio.to_thread(self._change, name, changes)

    async def issue(
        self, owner: str, *, label: str = "", scopes: Sequence[Scope] = USUAL, expires: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """A new token and its secret, which is told this once."""
        return await asyncio.to_thread(self._issue, owner, label, scopes, expires)

    async def find_by_secret(self, secret: str) -> tuple[ApiToken, User] | None:
        """Whose a secret is, whether or not it is still good."""
        return await asyncio.to_thread(self._find_by_secret, secret)

    async def find_by_token_id(self, id: str) -> tuple[ApiToken, User] | None:
        """As `known`, by the token's id."""
        return await asyncio.to_thread(self._find_by_token_id, id)

    async def is_empty(self) -> bool:
        """Whether no user was ever added."""
        return await asyncio.to_thread(self._is_empty)

    async def tokens(self, owner: str) -> list[ApiToken]:
        return await asyncio.to_thread(self._tokens, owner)

    async def revoke(self, id: str) -> ApiToken:
        return await asyncio.to_thread(self._revoke, id)

    async def has_valid_token(self) -> bool:
        """Whether anybody could come in with a token."""
        now = self._now()
        for user in await self.all():
            if not user.disabled and any(token.is_valid(now) for token in await self.tokens(user.name)):
                return True
        return False

    def _add(self, user: User) -> None:
        values = {**dict(user), "created": timestamp(user.created), "disabled": int(user.disabled)}
        with self._rows.open_writer("user", user.name) as writer:
            try:
                writer.insert(USERS, values)
            except ConstraintError as error:
                raise UsageError(
                    f"there is a user {user.name} already", help=f"Their token: openassay admin users token {user.name}"
                ) from error

    def _get(self, name: str) -> User:
        found = self._find(name)
        if found is None:
            raise no_user(name)
        return found

    def _find(self, name: str) -> User | None:
        row = self._rows.find(USERS, name)
        return _user(row) if row else None

    def _all(self) -> list[User]:
        return [_user(row) for row in self._rows.read(USERS, "ORDER BY name")]

    def _change(self, name: str, changes: dict[str, Any]) -> User:
        if "disabled" in changes:
            changes["disabled"] = int(changes["disabled"])
        with self._rows.open_writer("user", name) as writer:
            row = writer.update(USERS, (name,), changes)
            if row is None:
                raise no_user(name)
        return _user(row)

    def _issue(self, owner: str, label: str, scopes: Sequence[Scope], expires: datetime | None) -> tuple[ApiToken, str]:
        id = secrets.token_hex(4)
        secret = f"{TOKEN_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        token = ApiToken(
            id=id, owner=owner, label=label, hash=hash_secret(secret), scopes=tuple(scopes), created=self._now(),
            expires=expires,
        )  # fmt: skip
        with self._rows.open_writer("user", owner) as writer:
            try:
                writer.insert(TOKENS, _token_row(token))
            except ConstraintError as error:
                raise no_user(owner) from error
        return token, secret

    def _find_by_secret(self, secret: str) -> tuple[ApiToken, User] | None:
        rows = self._rows.read(TOKENS, "WHERE hash = ?", (hash_secret(secret),))
        return (_token(rows[0]), self._get(rows[0]["owner"])) if rows else None

    def _find_by_token_id(self, id: str) -> tuple[ApiToken, User] | None:
        row = self._rows.find(TOKENS, id)
        return (_token(row), self._get(row["owner"])) if row else None

    def _is_empty(self) -> bool:
        with self._rows.database.connection() as connection:
            return connection.execute("SELECT 1 FROM users LIMIT 1").fetchone() is None

    def _tokens(self, owner: str) -> list[ApiToken]:
        self._get(owner)
        return [_token(row) for row in self._rows.read(TOKENS, "WHERE owner = ? ORDER BY created, id", (owner,))]

    def _revoke(self, id: str) -> ApiToken:
        found = self._rows.find(TOKENS, id)
        if found is None:
            raise NotFoundError(f"there is no token {id}", help="See: openassay admin users list")
        with self._rows.open_writer("user", found["owner"]) as writer:
            row = writer.update(TOKENS, (id,), {"revoked": found["revoked"] or timestamp(self._now())})
        return _token(row or found)


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def no_user(name: str) -> NotFoundError:
    return NotFoundError(f"there is no user {name}", help=f"Add them: openassay admin users add {name}")


def _user(row: Row) -> User:
    return User.model_validate({**row, "disabled": bool(row["disabled"])})


def _token(row: Row) -> ApiToken:
    return ApiToken.model_validate({**row, "scopes": tuple(row["scopes"].split())})


def _token_row(token: ApiToken) -> dict[str, object]:
    return {
        **dict(token), "scopes": " ".join(token.scopes), "created": timestamp(token.created),
        "expires": timestamp(token.expires) if token.expires else None, "revoked": None,
    }  # fmt: skip


# Links that show a thread to whoever has them; they go with it.

SHARE_PREFIX = "share"


class SqlShares:
    def __init__(self, rows: Rows, now: Callable[[], datetime] = utc_now) -> None:
        self._rows = rows
        self._now = now

    async def create(self, thread: str, lasts: timedelta) -> tuple[ShareLink, str]:
        """A new link and its secret, which is told this once."""
        return await asyncio.to_thread(self._create, thread, lasts)

    async def find_by_secret(self, secret: str) -> ShareLink | None:
        """Whether or not it is still good."""
        return await asyncio.to_thread(self._find_by_secret, secret)

    async def list_for(self, thread: str) -> list[ShareLink]:
        return await asyncio.to_thread(self._list_for, thread)

    async def revoke(self, thread: str, id: str) -> ShareLink:
        return await asyncio.to_thread(self._revoke, thread, id)

    def _create(self, thread: str, lasts: timedelta) -> tuple[ShareLink, str]:
        id, now = secrets.token_hex(4), self._now()
        secret = f"{SHARE_PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        share = ShareLink(id=id, thread=thread, hash=hash_secret(secret), created=now, expires=now + lasts)
        times = {"created": timestamp(share.created), "expires": timestamp(share.expires)}
        with open_thread_writer(self._rows, thread) as writer:
            writer.insert(SHARES, {**dict(share), **times})
        return share, secret

    def _find_by_secret(self, secret: str) -> ShareLink | None:
        rows = self._rows.read(SHARES, "WHERE hash = ?", (hash_secret(secret),))
        return ShareLink.model_validate(rows[0]) if rows else None

    def _list_for(self, thread: str) -> list[ShareLink]:
        rows = self._rows.read(SHARES, "WHERE thread = ? ORDER BY created, id", (thread,))
        return [ShareLink.model_validate(row) for row in rows]

    def _revoke(self, thread: str, id: str) -> ShareLink:
        with open_thread_writer(self._rows, thread) as writer:
            found = writer.find(SHARES, id)
            if found is None or found["thread"] != thread:
                raise NotFoundError(f"there is no link {id} to this thread", help="See the thread's list of links.")
            row = writer.update(SHARES, (id,), {"revoked": found["revoked"] or timestamp(self._now())})
        return ShareLink.model_validate(row or found)
