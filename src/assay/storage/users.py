"""People, and the tokens by which they are known. Of a token only its hash is kept: it has 256 bits of chance in it, so
a fast hash cannot be guessed, and being fast it costs a request nothing."""

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from assay.errors import NotFoundError, UsageError
from assay.model.user import USUAL, Scope, Token, User
from assay.storage.database import ConstraintError, timestamp, utc_now
from assay.storage.rows import Row, Rows
from assay.storage.tables import TOKENS, USERS

PREFIX = "assay"


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
    ) -> tuple[Token, str]:
        """A new token and its secret, which is told this once."""
        return await asyncio.to_thread(self._issue, owner, label, scopes, expires)

    async def known(self, secret: str) -> tuple[Token, User] | None:
        """Whose a secret is, whether or not it is still good."""
        return await asyncio.to_thread(self._known, secret)

    async def holder(self, id: str) -> tuple[Token, User] | None:
        """As `known`, by the token's id."""
        return await asyncio.to_thread(self._holder, id)

    async def nobody(self) -> bool:
        """Whether no user was ever added."""
        return await asyncio.to_thread(self._nobody)

    async def tokens(self, owner: str) -> list[Token]:
        return await asyncio.to_thread(self._tokens, owner)

    async def revoke(self, id: str) -> Token:
        return await asyncio.to_thread(self._revoke, id)

    async def anybody(self) -> bool:
        """Whether anybody could come in with a token."""
        now = self._now()
        for user in await self.all():
            if not user.disabled and any(token.is_good(now) for token in await self.tokens(user.name)):
                return True
        return False

    def _add(self, user: User) -> None:
        values = {**dict(user), "created": timestamp(user.created), "disabled": int(user.disabled)}
        with self._rows.writing("user", user.name) as writer:
            try:
                writer.insert(USERS, values)
            except ConstraintError as error:
                raise UsageError(
                    f"there is a user {user.name} already", help=f"Give them a token: assay users token {user.name}"
                ) from error

    def _get(self, name: str) -> User:
        found = self._find(name)
        if found is None:
            raise no_user(name)
        return found

    def _find(self, name: str) -> User | None:
        row = self._rows.one(USERS, name)
        return _user(row) if row else None

    def _all(self) -> list[User]:
        return [_user(row) for row in self._rows.read(USERS, "ORDER BY name")]

    def _change(self, name: str, changes: dict[str, Any]) -> User:
        if "disabled" in changes:
            changes["disabled"] = int(changes["disabled"])
        with self._rows.writing("user", name) as writer:
            row = writer.update(USERS, (name,), changes)
            if row is None:
                raise no_user(name)
        return _user(row)

    def _issue(self, owner: str, label: str, scopes: Sequence[Scope], expires: datetime | None) -> tuple[Token, str]:
        id = secrets.token_hex(4)
        secret = f"{PREFIX}_{id}_{secrets.token_urlsafe(32)}"
        token = Token(
            id=id, owner=owner, label=label, hash=hashed(secret), scopes=tuple(scopes), created=self._now(),
            expires=expires,
        )  # fmt: skip
        with self._rows.writing("user", owner) as writer:
            try:
                writer.insert(TOKENS, _token_row(token))
            except ConstraintError as error:
                raise no_user(owner) from error
        return token, secret

    def _known(self, secret: str) -> tuple[Token, User] | None:
        rows = self._rows.read(TOKENS, "WHERE hash = ?", (hashed(secret),))
        return (_token(rows[0]), self._get(rows[0]["owner"])) if rows else None

    def _holder(self, id: str) -> tuple[Token, User] | None:
        row = self._rows.one(TOKENS, id)
        return (_token(row), self._get(row["owner"])) if row else None

    def _nobody(self) -> bool:
        with self._rows.database.connection() as connection:
            return connection.execute("SELECT 1 FROM users LIMIT 1").fetchone() is None

    def _tokens(self, owner: str) -> list[Token]:
        self._get(owner)
        return [_token(row) for row in self._rows.read(TOKENS, "WHERE owner = ? ORDER BY created, id", (owner,))]

    def _revoke(self, id: str) -> Token:
        found = self._rows.one(TOKENS, id)
        if found is None:
            raise NotFoundError(f"there is no token {id}", help="See: assay users list")
        with self._rows.writing("user", found["owner"]) as writer:
            row = writer.update(TOKENS, (id,), {"revoked": found["revoked"] or timestamp(self._now())})
        return _token(row or found)


def hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def no_user(name: str) -> NotFoundError:
    return NotFoundError(f"there is no user {name}", help=f"Add them: assay users add {name}")


def _user(row: Row) -> User:
    return User.model_validate({**row, "disabled": bool(row["disabled"])})


def _token(row: Row) -> Token:
    return Token.model_validate({**row, "scopes": tuple(row["scopes"].split())})


def _token_row(token: Token) -> dict[str, object]:
    return {
        **dict(token), "scopes": " ".join(token.scopes), "created": timestamp(token.created),
        "expires": timestamp(token.expires) if token.expires else None, "revoked": None,
    }  # fmt: skip
