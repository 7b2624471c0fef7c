"""`openassay admin` and `doctor`: the database, what is stored, users and their tokens, the graph, and this machine."""

from __future__ import annotations

import asyncio
import math
import re
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from openassay.cli.options import complete_thread, group, json_option
from openassay.cli.runtime import find_thread, match_id, run_with_engine
from openassay.cli.screen import format_dollars, print_found, print_json, print_message, to_one_line, wrap_line
from openassay.errors import ConfigurationError, OpenAssayError, UsageError, install_help
from openassay.models.user import USUAL, ApiToken, Scope, User
from openassay.settings import (
    USER,
    CacheSettings,
    FleetSettings,
    PersistenceSettings,
    Settings,
    config_file,
    load,
)
from openassay.telemetry.health import HealthFinding, Readiness
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.engine import Engine
    from openassay.storage.users import SqlUsers

T = TypeVar("T")
Check = Callable[[Settings], Iterable[HealthFinding]]
MAX_LABEL = 100  # characters
MAX_LIMIT = 1_000_000  # dollars a month, requests a minute
_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_NONE = "none"

app = group("Look after the database, what is stored, and users.", no_args_is_help=True)
database = group("Show the database, bring it up to date, or move into it.", no_args_is_help=True)
people = group("Manage who may use the server: people, their tokens and their limits.")
app.add_typer(database, name="db")
app.add_typer(people, name="users")


@database.command()
def status(json: Annotated[bool, json_option("the status")] = False) -> None:
    """Show which database it is, its version, what is missing, sizes and connections. Changes nothing."""
    from openassay.engine.maintenance import has_queue, inspect_storage

    found = inspect_storage(load())
    if json:
        tables = [table._asdict() for table in found.tables]
        connections = found.connections._asdict() if found.connections else None
        return print_json({**found._asdict(), "tables": tables, "connections": connections, "queue": has_queue(found)})
    lines = {
        "database": found.database,
        "server": found.server,
        "schema": f"{found.applied[-1]} ({len(found.applied)} applied)" if found.applied else "none yet",
        "missing": f"{', '.join(found.pending)}: openassay admin db migrate" if found.pending else "nothing",
        "size": _format_size(found.bytes),
    }
    if found.connections:
        programs = ", ".join(f"{name} {count}" for name, count in found.connections.by_program.items())
        total = f"{sum(found.connections.by_program.values())} of {found.connections.most}"
        lines["queue"] = "ready for workers" if has_queue(found) else "not prepared: openassay admin db migrate"
        lines["connections"] = f"{total}: {programs}"
    for name, text in lines.items():
        typer.echo(wrap_line(f"{name:13}{text}", 13))
    if found.tables:
        typer.echo("")
    width = max((len(table.name) for table in found.tables), default=0)
    for table in found.tables:  # the server does not know how many rows one has that was never looked through
        rows = "" if table.rows is None else pluralize(table.rows, "row")
        size = "" if table.bytes is None else _format_size(table.bytes)
        typer.echo(f"  {table.name:{width}}  {rows:>14}  {size:>10}".rstrip())
    return None


def _format_size(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB"


@database.command()
def migrate() -> None:
    """Bring it up to this version, all or nothing, before workers and servers of this version start."""
    from openassay.engine.maintenance import migrate_storage

    settings, message = load(), ""
    if settings.persistence.backend != "postgres":
        name, applied = migrate_storage(settings)
    elif find_spec("procrastinate") is None:  # without workers no queue is needed
        name, applied = migrate_storage(settings)
        message = f"There is no queue for workers, which need the extra `fleet`. {install_help('fleet')}"
    else:
        from openassay.worker.queue import prepare_tables

        name, applied = migrate_storage(settings, prepare_tables)
        message = "The queue of the workers is ready."
    print_message(f"Applied: {', '.join(applied)}." if applied else f"{name} is up to date.")
    if message:
        print_message(message)


@database.command()
def copy(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The data directory of the machine to copy from, which stays.")
    ],
) -> None:
    """Copy what one machine has stored into an empty PostgreSQL database: all or nothing."""
    from openassay.bootstrap import copy_to_postgres

    rows = asyncio.run(copy_to_postgres(load(), folder))
    print_message(f"{pluralize(rows, 'row')} copied. {folder} is unchanged; journals and folder indexes stay there.")


@app.command()
def check(
    thread: Annotated[str, typer.Argument(metavar="[THREAD]", show_default=False, autocompletion=complete_thread)] = "",
) -> None:
    """Check every stored row, of a thread or of all; exits with 1 where one is not what was written."""

    async def find_problems(engine: Engine) -> tuple[str, list[str]]:
        id = await find_thread(engine, thread)
        return id, await engine.archive.problems(id or None)

    id, found = run_with_engine(find_problems)
    for problem in found:
        typer.echo(to_one_line(problem))
    if found:
        print_message(f"{pluralize(len(found), 'problem')}. Restore a copy, or delete the thread and ask again.")
        raise typer.Exit(1)
    print_message(f"{f'Thread {id}' if id else 'Everything'} is what was written.")


@app.command()
def seal(
    encrypt: Annotated[
        bool | None, typer.Option("--encrypt/--no-encrypt", help="Encrypt as well; by default as the settings say.")
    ] = None,
) -> None:
    """Seal everything stored with OPENASSAY_STORAGE_KEY.

    The key before it, if there was one, is OPENASSAY_STORAGE_KEY_BEFORE."""
    from openassay.bootstrap import reseal_storage

    settings = load()
    keys = settings.keys
    if keys.openassay_storage_key is None and keys.openassay_storage_key_before is None:
        raise UsageError(
            "there is no key to seal with",
            help="Set OPENASSAY_STORAGE_KEY; to give a key up, set it as OPENASSAY_STORAGE_KEY_BEFORE instead.",
        )
    encrypts = settings.persistence.encrypt if encrypt is None else encrypt
    rows = asyncio.run(reseal_storage(settings, encrypt=encrypts))
    how = "with the key" if keys.openassay_storage_key else "without a key"
    print_message(f"{pluralize(rows, 'row')} sealed {how}{', encrypted' if encrypts else ''}.")
    if encrypts != settings.persistence.encrypt:
        print_message(f"Set persistence.encrypt to {str(encrypts).lower()} before anything else is done.")
    if keys.openassay_storage_key_before:
        print_message("OPENASSAY_STORAGE_KEY_BEFORE is not needed any more.")


@app.command()
def graph() -> None:
    """Draw the research graph as Mermaid."""
    from openassay.engine.state_view import draw_mermaid

    typer.echo(draw_mermaid())


# -- users: people and their tokens, as the server knows them --------------------------------------------

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


@people.callback()
def users(context: typer.Context, json: Annotated[bool, json_option("the users")] = False) -> None:
    if context.invoked_subcommand is None:
        list_users(json)


@people.command("list")
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
    for user, tokens in found:
        typer.echo(f"{user.name}  {_format_limits(user)}")
        for token in tokens:
            label = f"  {to_one_line(token.label)}" if token.label else ""
            typer.echo(f"  {token.id}  {' '.join(token.scopes)}  {_format_expiry(token)}{label}")
    return None


def _format_expiry(token: ApiToken) -> str:
    if token.revoked:
        return f"revoked {token.revoked:%Y-%m-%d}"
    if token.expires is None:
        return "does not expire"
    return f"{'expired' if token.expires <= datetime.now(UTC) else 'expires'} {token.expires:%Y-%m-%d %H:%M}"


@people.command()
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
        name=name,
        created=datetime.now(UTC),
        usd=_parse_limit(usd, "--usd", 0),
        requests_per_minute=_parse_requests(requests),
    )
    options = _parse_token_options(scope, expires, label)

    async def add_user(users: SqlUsers) -> tuple[ApiToken, str]:
        await users.add(user)
        return await users.issue(name, **options)

    _show_token(*_with_users(add_user), json=json)


@people.command()
def token(
    name: Name, scope: Scopes = None, expires: Expires = None, label: Label = "", json: JsonToken = False
) -> None:
    """Print another token for a user, which is shown this once."""
    options = _parse_token_options(scope, expires, label)
    _show_token(*_with_users(lambda users: users.issue(name, **options)), json=json)


@people.command()
def revoke(
    id: Annotated[str, typer.Argument(metavar="TOKEN_ID", help="Its id, or the start of it; see users list.")],
) -> None:
    """Revoke a token, at once and for good."""

    async def revoke_token(users: SqlUsers) -> ApiToken:
        known = [token.id for user in await users.all() for token in await users.tokens(user.name)]
        return await users.revoke(match_id(id, known, "tokens"))

    revoked = _with_users(revoke_token)
    print_message(f"Token {revoked.id} of {revoked.owner} is revoked.")


@people.command()
def limit(name: Name, usd: Dollars = None, requests: Requests = None) -> None:
    """Change a user's limits; none leaves them to the settings."""
    changes: dict[str, Any] = {}
    if usd is not None:
        changes["usd"] = _parse_limit(usd, "--usd", 0)
    if requests is not None:
        changes["requests_per_minute"] = _parse_requests(requests)
    if not changes:
        raise UsageError("there is nothing to change", help="Give --usd, --requests or both.")
    changed = _with_users(lambda users: users.change(name, **changes))
    print_message(f"{changed.name}: {_format_limits(changed)}")


@people.command()
def disable(name: Name) -> None:
    """Lock a user out, whatever token they have; their threads are kept."""
    _with_users(lambda users: users.change(name, disabled=True))
    print_message(f"{name} is disabled.")


@people.command()
def enable(name: Name) -> None:
    """Let a user in again."""
    _with_users(lambda users: users.change(name, disabled=False))
    print_message(f"{name} is enabled.")


def _parse_limit(text: str | None, option: str, least: int) -> float | None:
    if text in (None, _NONE):
        return None
    try:
        number = float(str(text))
    except ValueError:
        number = math.nan
    if not least <= number <= MAX_LIMIT:
        raise UsageError(f"{option} cannot be {str(text)[:40]!r}", help=f"It is {least} to {MAX_LIMIT:,}, or none.")
    return number


def _parse_requests(text: str | None) -> int | None:
    number = _parse_limit(text, "--requests", 1)
    if number is not None and not number.is_integer():
        raise UsageError(f"--requests cannot be {text}", help="It is a whole number, or none.")
    return None if number is None else int(number)


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
        raise UsageError(f"{expires[:40]} is in the past", help="A token expires in the future.")
    return {"scopes": chosen, "expires": moment, "label": label}


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


# -- doctor: what this machine has, and whether all is there that the settings name ----------------------


def doctor(json: Annotated[bool, json_option("the findings")] = False) -> None:
    """Check what this machine has and lacks; exits with 1 where something necessary is missing."""
    findings, lines = list(run_checks(CHECKS)), []
    for finding in findings:
        state = "ok" if finding.good else "WEAK" if finding.soft else "BAD"
        lines.append(f"{state:4} {finding.name:14} {finding.detail}")
        lines += [f"{'':19} {finding.help}"] if finding.help and not finding.good else []
    plain = [{name: value for name, value in one._asdict().items() if name != "problem"} for one in findings]
    print_found(plain, lines, json=json, indent=20)
    raise typer.Exit(0 if all(finding.good or finding.soft for finding in findings) else 1)


def run_checks(checks: Sequence[Check]) -> Iterator[HealthFinding]:
    """Settings that cannot be read leave nothing else to check."""
    yield HealthFinding("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer.")
    try:
        settings = load()
    except OpenAssayError as error:
        yield HealthFinding("settings", False, error.message, error.help)
        return
    config = config_file() if config_file().is_file() else "none"
    yield HealthFinding("settings", True, f"config file: {config}, hash {settings.fingerprint()}")
    for check in checks:
        yield from check(settings)


def keep_nothing(settings: Settings) -> Settings:
    """Change settings so that nothing is kept, or shared with other processes."""
    changes = {
        "persistence": PersistenceSettings(backend="memory"),
        "cache": CacheSettings(backend="memory"),
        "fleet": FleetSettings(signals="process"),
    }
    return settings.model_copy(update=changes)


def _check_machine(settings: Settings) -> Iterator[HealthFinding]:
    from openassay.text.embeddings import MiniLM

    with sqlite3.connect(":memory:") as connection:
        query = "SELECT 1 FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'"
        has = connection.execute(query).fetchone()
    connection.close()
    help = "Use a Python whose SQLite has FTS5."
    yield HealthFinding("full text", bool(has), f"SQLite {sqlite3.sqlite_version} with FTS5", help)
    began = time.perf_counter()
    yield from _run_check(
        "encoder",
        lambda: f"{MiniLM().embed(['ready?']).shape[1]} dimensions, loaded in {time.perf_counter() - began:.2f} s",
    )
    yield HealthFinding("pdf", True, f"pypdfium2 {version('pypdfium2')} in a process of its own")


def _find_local_models(settings: Settings) -> list[HealthFinding]:
    from openassay.engine.maintenance import list_model_servers

    offers = asyncio.run(list_model_servers())
    return [HealthFinding("local models", True, "; ".join(offers) or "none found on this machine (Ollama, llama.cpp)")]


def check_database(settings: Settings) -> list[HealthFinding]:
    from openassay.engine.maintenance import describe_database, has_database

    if settings.persistence.backend == "memory":
        return [HealthFinding("database", True, "in memory: nothing outlives a command")]
    if not has_database(settings):
        return [HealthFinding("database", True, "none yet; the first question makes one")]
    return _run_check("database", lambda: asyncio.run(describe_database(settings)))


def check_dependencies(settings: Settings) -> list[HealthFinding]:
    """Check what a server checks for /readyz, but for the database, into which `check_database` looks deeper."""
    from openassay.bootstrap import open_resources
    from openassay.engine.maintenance import open_server_database
    from openassay.telemetry.health import list_checks

    async def find() -> list[HealthFinding]:
        folder = settings.data_dir if settings.data_dir.exists() else settings.data_dir.absolute().parent
        async with AsyncExitStack() as stack:
            sources = []
            with suppress(OpenAssayError):  # other checks say why
                resources = await stack.enter_async_context(open_resources(keep_nothing(settings)))
                sources = resources.sources.list_sources()
            named = list_checks(settings, folder, open_server_database(settings, stack), sources)
            return await Readiness(check for check in named if check.name != "database").collect_findings()

    return asyncio.run(find())


def _run_check(name: str, describe: Callable[[], str]) -> list[HealthFinding]:
    try:
        return [HealthFinding(name, True, describe())]
    except OpenAssayError as error:
        return [HealthFinding(name, False, error.message, error.help)]


CHECKS: tuple[Check, ...] = (_check_machine, check_database, check_dependencies, _find_local_models)
