"""`openassay users`: people and their tokens, as the server knows them."""

import asyncio
import json as jsonlib
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import typer

from openassay.bootstrap import open_users
from openassay.cli.screen import format_dollars, print_message, to_one_line
from openassay.errors import ConfigurationError, UsageError
from openassay.models.user import USUAL, ApiToken, Scope, User
from openassay.settings import USER, load
from openassay.storage.users import SqlUsers
from openassay.text.words import pluralize

T = TypeVar("T")
LONGEST_LABEL = 100
MOST_USD, MOST_REQUESTS = 1_000_000, 1_000_000
_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_NONE = "none"


def list_users(json: bool) -> None:
    async def everybody(users: SqlUsers) -> list[tuple[User, list[ApiToken]]]:
        return [(user, await users.tokens(user.name)) for user in await users.all()]

    found = _with_users(everybody)
    if json:
        typer.echo(jsonlib.dumps([_user_to_dict(user, tokens) for user, tokens in found], indent=2, ensure_ascii=False))
        return
    if not found:
        print_message(
            "Nobody was added yet: whoever is on this machine may use the server. Try: openassay users add NAME"
        )
    now = datetime.now(UTC)
    for user, tokens in found:
        typer.echo(f"{user.name}  {_format_limits(user)}")
        for token in tokens:
            label = f"  {to_one_line(token.label)}" if token.label else ""
            typer.echo(f"  {token.id}  {' '.join(token.scopes)}  {_format_token_status(token, now)}{label}")


def add_user(
    name: str, usd: str | None, requests: str | None, *, scopes: Sequence[str] | None, expires: str | None, label: str,
    json: bool,
) -> None:  # fmt: skip
    user = User(
        name=_parse_name(name),
        created=datetime.now(UTC),
        usd=_parse_usd(usd),
        requests_per_minute=_parse_requests(requests),
    )
    kind = _parse_token_options(scopes, expires, label)

    async def added(users: SqlUsers) -> tuple[ApiToken, str]:
        await users.add(user)
        return await users.issue(name, **kind)

    _show_token(*_with_users(added), json=json)


def issue_token(name: str, *, scopes: Sequence[str] | None, expires: str | None, label: str, json: bool) -> None:
    kind = _parse_token_options(scopes, expires, label)
    _show_token(*_with_users(lambda users: users.issue(name, **kind)), json=json)


def revoke_token(id: str) -> None:
    gone = _with_users(lambda users: users.revoke(id))
    print_message(f"Token {gone.id} of {gone.owner} is revoked.")


def change_limits(name: str, usd: str | None, requests: str | None) -> None:
    changes: dict[str, Any] = {}
    if usd is not None:
        changes["usd"] = _parse_usd(usd)
    if requests is not None:
        changes["requests_per_minute"] = _parse_requests(requests)
    if not changes:
        raise UsageError("nothing was said to change", help="Give --usd, --requests or both.")
    changed = _with_users(lambda users: users.change(name, **changes))
    print_message(f"{changed.name}: {_format_limits(changed)}")


def change_access(name: str, *, disabled: bool) -> None:
    _with_users(lambda users: users.change(name, disabled=disabled))
    print_message(f"{name} is let in no more." if disabled else f"{name} is let in again.")


# What was said ----------------------------------------------------------------------------------------


def _parse_name(name: str) -> str:
    if not re.fullmatch(USER, name):
        raise UsageError(
            f"{name[:80]!r} cannot be a user's name", help="It has 1 to 64 letters, digits, hyphens and underscores."
        )
    return name


def _parse_usd(said: str | None) -> float | None:
    return None if said in (None, _NONE) else _parse_number(str(said), "--usd", 0, MOST_USD)


def _parse_requests(said: str | None) -> int | None:
    if said in (None, _NONE):
        return None
    number = _parse_number(str(said), "--requests", 1, MOST_REQUESTS)
    if not number.is_integer():
        raise UsageError(f"--requests cannot be {said}", help="It is a whole number, or none.")
    return int(number)


def _parse_number(said: str, option: str, least: float, most: float) -> float:
    try:
        number = float(said)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise UsageError(f"{option} cannot be {said[:40]!r}", help=f"It is {least:g} to {most:,}, or none.")
    return number


def _parse_token_options(scopes: Sequence[str] | None, expires: str | None, label: str) -> dict[str, Any]:
    if len(label) > LONGEST_LABEL or not label.isprintable():
        raise UsageError("this cannot be a label", help=f"It has up to {LONGEST_LABEL} characters on one line.")
    return {"scopes": _parse_scopes(scopes), "expires": _parse_expiry(expires), "label": label}


def _parse_scopes(said: Sequence[str] | None) -> tuple[Scope, ...]:
    known = [scope.value for scope in Scope]
    wrong = [word for word in said or () if word not in known]
    if wrong:
        raise UsageError(f"there is no scope {wrong[0][:40]!r}", help=f"Scopes are {', '.join(known)}.")
    return tuple(scope for scope in Scope if scope in said) if said else USUAL


def _parse_expiry(said: str | None) -> datetime | None:
    if said is None:
        return None
    now = datetime.now(UTC)
    try:
        span = re.fullmatch(r"(\d{1,5})([hdw])", said)
        moment = now + int(span[1]) * _SPANS[span[2]] if span else datetime.fromisoformat(said)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--expires cannot be {said[:40]!r}", help="As 12h, 30d, 8w or 2027-01-31.") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= now:
        raise UsageError(f"{said[:40]} is over", help="A token expires in the future.")
    return moment


# What is shown ----------------------------------------------------------------------------------------


def _show_token(token: ApiToken, secret: str, *, json: bool) -> None:
    if json:
        typer.echo(jsonlib.dumps({"user": token.owner, "secret": secret, **_token_to_dict(token)}, indent=2))
        return
    typer.echo(secret)
    until = f", until {token.expires:%Y-%m-%d %H:%M} UTC" if token.expires else ""
    print_message(f"Token {token.id} of {token.owner} may {', '.join(token.scopes)}{until}. It is not shown again.")


def _user_to_dict(user: User, tokens: Sequence[ApiToken]) -> dict[str, Any]:
    return {**user.plain(), "tokens": [_token_to_dict(token) for token in tokens]}


def _token_to_dict(token: ApiToken) -> dict[str, Any]:
    return {name: value for name, value in token.plain().items() if name not in ("hash", "owner")}


def _format_limits(user: User) -> str:
    parts = [
        "disabled" if user.disabled else "",
        f"{format_dollars(user.usd)} a month" if user.usd is not None else "",
        f"{pluralize(user.requests_per_minute, 'request')} a minute" if user.requests_per_minute is not None else "",
    ]
    return ", ".join(part for part in parts if part) or "as the settings say"


def _format_token_status(token: ApiToken, now: datetime) -> str:
    if token.revoked:
        return f"revoked {token.revoked:%Y-%m-%d}"
    if token.expires is None:
        return "does not expire"
    return f"{'expired' if token.expires <= now else 'expires'} {token.expires:%Y-%m-%d %H:%M}"


def _with_users(work: Callable[[SqlUsers], Awaitable[T]]) -> T:
    settings = load()
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "nobody can be added: persistence.backend is memory", help="Set it to sqlite, which is the default."
        )

    async def run() -> T:
        async with open_users(settings) as users:
            return await work(users)

    return asyncio.run(run())
