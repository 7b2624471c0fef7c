"""`openassay admin users`: people and their tokens, as the server knows them."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from openassay.cli.options import group, json_option
from openassay.cli.runtime import match_id
from openassay.cli.screen import format_dollars, print_json, print_message, to_one_line
from openassay.errors import ConfigurationError, UsageError
from openassay.models.user import USUAL, ApiToken, Scope, User
from openassay.settings import USER, load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.storage.users import SqlUsers

T = TypeVar("T")
MAX_LABEL = 100  # characters
MAX_USD, MAX_REQUESTS = 1_000_000, 1_000_000
_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_NONE = "none"

app = group("Manage who may use the server: people, their tokens and their limits.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, hyphens and underscores.")]
Dollars = Annotated[
    str | None, typer.Option("--usd", metavar="USD", help="The most their runs may cost in a month, or none.")
]
Requests = Annotated[str | None, typer.Option("--requests", metavar="N", help="Requests a minute, or none.")]
Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="What the token may do: read, write, share or metrics; may be repeated."),
]
Expires = Annotated[
    str | None, typer.Option("--expires", metavar="WHEN", help="After 12h, 30d or 8w, or on a date as 2027-01-31.")
]
Label = Annotated[str, typer.Option("--label", metavar="TEXT", help="What it is for, to recognise it.")]
JsonToken = Annotated[bool, json_option("the token and its secret")]


@app.callback()
def users(context: typer.Context, json: Annotated[bool, json_option("the users")] = False) -> None:
    if context.invoked_subcommand is None:
        list_users(json)


@app.command("list")
def list_users(json: Annotated[bool, json_option("the users")] = False) -> None:
    """List users with their limits and tokens; of a token its id, never its secret."""

    async def load_users(users: SqlUsers) -> list[tuple[User, list[ApiToken]]]:
        return [(user, await users.tokens(user.name)) for user in await users.all()]

    found = _with_users(load_users)
    if json:
        return print_json([{**user.plain(), "tokens": list(map(_token_to_dict, tokens))} for user, tokens in found])
    if not found:
        print_message(
            "No users yet: anybody on this machine may use the server. Add one: openassay admin users add NAME"
        )
    now = datetime.now(UTC)
    for user, tokens in found:
        typer.echo(f"{user.name}  {_format_limits(user)}")
        for token in tokens:
            if token.revoked:
                status = f"revoked {token.revoked:%Y-%m-%d}"
            elif token.expires is None:
                status = "does not expire"
            else:
                status = f"{'expired' if token.expires <= now else 'expires'} {token.expires:%Y-%m-%d %H:%M}"
            label = f"  {to_one_line(token.label)}" if token.label else ""
            typer.echo(f"  {token.id}  {' '.join(token.scopes)}  {status}{label}")
    return None


@app.command()
def add(
    name: Name,
    usd: Dollars = None,
    requests: Requests = None,
    scope: Scopes = None,
    expires: Expires = None,
    label: Label = "",
    json: JsonToken = False,
) -> None:
    """Add a user and print a token for them, which is shown this once."""
    if not re.fullmatch(USER, name):
        raise UsageError(
            f"{name[:80]!r} cannot be a user's name", help="It has 1 to 64 letters, digits, hyphens and underscores."
        )
    user = User(
        name=name, created=datetime.now(UTC), usd=_parse_usd(usd), requests_per_minute=_parse_requests(requests)
    )
    options = _parse_token_options(scope, expires, label)

    async def add_user(users: SqlUsers) -> tuple[ApiToken, str]:
        await users.add(user)
        return await users.issue(name, **options)

    _show_token(*_with_users(add_user), json=json)


@app.command()
def token(
    name: Name, scope: Scopes = None, expires: Expires = None, label: Label = "", json: JsonToken = False
) -> None:
    """Print another token for a user, which is shown this once."""
    options = _parse_token_options(scope, expires, label)
    _show_token(*_with_users(lambda users: users.issue(name, **options)), json=json)


@app.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="Its id, or the start of it; see users list.")],
) -> None:
    """Revoke a token, at once and for good."""

    async def revoke_token(users: SqlUsers) -> ApiToken:
        known = [token.id for user in await users.all() for token in await users.tokens(user.name)]
        return await users.revoke(match_id(id, known, "tokens"))

    revoked = _with_users(revoke_token)
    print_message(f"Token {revoked.id} of {revoked.owner} is revoked.")


@app.command()
def limit(name: Name, usd: Dollars = None, requests: Requests = None) -> None:
    """Change a user's limits; none leaves them to the settings."""
    changes: dict[str, Any] = {}
    if usd is not None:
        changes["usd"] = _parse_usd(usd)
    if requests is not None:
        changes["requests_per_minute"] = _parse_requests(requests)
    if not changes:
        raise UsageError("there is nothing to change", help="Give --usd, --requests or both.")
    changed = _with_users(lambda users: users.change(name, **changes))
    print_message(f"{changed.name}: {_format_limits(changed)}")


@app.command()
def disable(name: Name) -> None:
    """Shut a user out, whatever token they have; their threads stay."""
    _with_users(lambda users: users.change(name, disabled=True))
    print_message(f"{name} is disabled.")


@app.command()
def enable(name: Name) -> None:
    """Let a user in again."""
    _with_users(lambda users: users.change(name, disabled=False))
    print_message(f"{name} is enabled.")


# -- what was typed -----------------------------------------------------------------------------------------


def _parse_usd(text: str | None) -> float | None:
    return None if text in (None, _NONE) else _parse_number(str(text), "--usd", 0, MAX_USD)


def _parse_requests(text: str | None) -> int | None:
    if text in (None, _NONE):
        return None
    number = _parse_number(str(text), "--requests", 1, MAX_REQUESTS)
    if not number.is_integer():
        raise UsageError(f"--requests cannot be {text}", help="It is a whole number, or none.")
    return int(number)


def _parse_number(text: str, option: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise UsageError(f"{option} cannot be {text[:40]!r}", help=f"It is {least:g} to {most:,}, or none.")
    return number


def _parse_token_options(scopes: Sequence[str] | None, expires: str | None, label: str) -> dict[str, Any]:
    if len(label) > MAX_LABEL or not label.isprintable():
        raise UsageError("this cannot be a label", help=f"It has up to {MAX_LABEL} characters on one line.")
    known = [scope.value for scope in Scope]
    if wrong := [word for word in scopes or () if word not in known]:
        raise UsageError(f"there is no scope {wrong[0][:40]!r}", help=f"Scopes are {', '.join(known)}.")
    chosen = tuple(scope for scope in Scope if scope in scopes) if scopes else USUAL
    if expires is None:
        return {"scopes": chosen, "expires": None, "label": label}
    now = datetime.now(UTC)
    try:
        span = re.fullmatch(r"(\d{1,5})([hdw])", expires)
        moment = now + int(span[1]) * _SPANS[span[2]] if span else datetime.fromisoformat(expires)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--expires cannot be {expires[:40]!r}", help="As 12h, 30d, 8w or 2027-01-31.") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment <= now:
        raise UsageError(f"{expires[:40]} is over", help="A token expires in the future.")
    return {"scopes": chosen, "expires": moment, "label": label}


# -- what is shown ------------------------------------------------------------------------------------------


def _show_token(token: ApiToken, secret: str, *, json: bool) -> None:
    if json:
        return print_json({"user": token.owner, "secret": secret, **_token_to_dict(token)})
    typer.echo(secret)
    until = f", until {token.expires:%Y-%m-%d %H:%M} UTC" if token.expires else ""
    return print_message(
        f"Token {token.id} of {token.owner} may {', '.join(token.scopes)}{until}. It is not shown again."
    )


def _token_to_dict(token: ApiToken) -> dict[str, Any]:
    return {name: value for name, value in token.plain().items() if name not in ("hash", "owner")}


def _format_limits(user: User) -> str:
    parts = [
        "disabled" if user.disabled else "",
        f"{format_dollars(user.usd)} a month" if user.usd is not None else "",
        f"{pluralize(user.requests_per_minute, 'request')} a minute" if user.requests_per_minute is not None else "",
    ]
    return ", ".join(part for part in parts if part) or "as the settings say"


def _with_users(work: Callable[[SqlUsers], Awaitable[T]]) -> T:
    from openassay.bootstrap import open_users

    settings = load()
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "there can be no users: persistence.backend is memory", help="Set it to sqlite, which is the default."
        )

    async def run() -> T:
        async with open_users(settings) as users:
            return await work(users)

    return asyncio.run(run())
