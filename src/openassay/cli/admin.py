"""`openassay doctor`: what this machine has, whether all is there that the settings name, and what to do about the
rest."""

import asyncio
import json as jsonlib
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from openassay import bootstrap
from openassay.bootstrap import open_engine
from openassay.cli.screen import print_message, to_one_line, wrap_line
from openassay.errors import IntegrityError, OpenAssayError, UsageError, install_help
from openassay.settings import CacheSettings, FleetSettings, PersistenceSettings, Settings, config_file, load
from openassay.storage.admin import ConnectionCounts, Inspection, TableSize, inspect_database, open_database
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.postgres import apply_migrations as upgrade
from openassay.telemetry.health import HealthFinding, Readiness
from openassay.text.words import pluralize
from openassay.worker.queue import prepare_tables

if TYPE_CHECKING:
    from openassay.llm.names import ModelServer
    from openassay.storage.database import Database


# `openassay db`: the database as it stands, and brought up to this version.

QUEUE = "queue_migrations"  # a table that is there once the queue was prepared


def show_database_status(as_json: bool) -> None:
    with open_database(load()) as database:
        found = inspect_database(database)
    if as_json:
        typer.echo(jsonlib.dumps(_database_to_dict(found), indent=2))
        return
    for name, text in _format_database(found):
        typer.echo(wrap_line(f"{name:13}{text}", 13))
    for line in _format_tables(found.tables):
        typer.echo(line)


def migrate_database() -> None:
    with open_database(load(), make=True) as database:
        done = upgrade(database) if isinstance(database, PostgresDatabase) else database.migrate()
        print_message(f"Applied: {', '.join(done)}." if done else f"{database.name} is up to date.")
        if isinstance(database, PostgresDatabase):
            _prepare_queue(database)


def copy_database(folder: Path) -> None:
    from openassay.bootstrap import copy_to_postgres

    rows = asyncio.run(copy_to_postgres(load(), folder))
    print_message(
        f"{pluralize(rows, 'row')} copied. {folder} is as it was; journals and indexes of folders stay there."
    )


def _prepare_queue(database: PostgresDatabase) -> None:
    """Who has no workers needs no queue."""
    if find_spec("procrastinate") is None:
        print_message(f"There is no queue for workers, which need the extra `fleet`. {install_help('fleet')}")
        return
    prepare_tables(database)
    print_message("The queue of the workers is ready.")


def _database_to_dict(found: Inspection) -> dict[str, object]:
    return {
        **found._asdict(),
        "tables": [table._asdict() for table in found.tables],
        "connections": found.connections._asdict() if found.connections else None,
        "queue": _has_queue(found),
    }


def _format_database(found: Inspection) -> list[tuple[str, str]]:
    missing = f"{', '.join(found.pending)}: openassay db migrate" if found.pending else "nothing"
    lines = [
        ("database", found.database),
        ("server", found.server),
        ("schema", f"{found.applied[-1]} ({len(found.applied)} applied)" if found.applied else "none yet"),
        ("missing", missing),
        ("size", _format_size(found.bytes)),
    ]
    if found.connections:
        lines.append(("queue", "ready for workers" if _has_queue(found) else "not prepared: openassay db migrate"))
        lines.append(("connections", _format_connections(found.connections)))
    return lines


def _has_queue(found: Inspection) -> bool:
    return any(table.name == QUEUE for table in found.tables)


def _format_connections(connections: ConnectionCounts) -> str:
    programs = ", ".join(f"{name} {count}" for name, count in connections.by_program.items())
    return f"{sum(connections.by_program.values())} of {connections.most}: {programs}"


def _format_tables(tables: Sequence[TableSize]) -> list[str]:
    """The largest first. Of one that was never looked through the server does not know how many rows it has."""
    width = max((len(table.name) for table in tables), default=0)
    rows = [
        f"  {table.name:{width}}  {'' if table.rows is None else pluralize(table.rows, 'row'):>14}"
        f"  {'' if table.bytes is None else _format_size(table.bytes):>10}".rstrip()
        for table in tables
    ]
    return ["", *rows] if rows else []


def _format_size(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB"


Check = Callable[[Settings], Iterable[HealthFinding]]


def run_doctor(as_json: bool) -> None:
    """1 where something is missing that nothing goes without."""
    findings = list(run_checks(CHECKS))
    if as_json:
        typer.echo(jsonlib.dumps([_finding_to_dict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            typer.echo(wrap_line(f"{_format_state(finding):4} {finding.name:14} {finding.detail}", 20))
            if finding.help and not finding.good:
                typer.echo(wrap_line(f"{'':4} {'':14} {finding.help}", 20))
    raise typer.Exit(0 if all(finding.good or finding.soft for finding in findings) else 1)


def _format_state(finding: HealthFinding) -> str:
    return "ok" if finding.good else "WEAK" if finding.soft else "BAD"


def _finding_to_dict(finding: HealthFinding) -> dict[str, object]:
    return {name: value for name, value in finding._asdict().items() if name != "problem"}


def run_checks(checks: Sequence[Check]) -> Iterator[HealthFinding]:
    """Settings that cannot be read leave nothing else to look at."""
    yield HealthFinding("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer.")
    try:
        settings = load()
    except OpenAssayError as error:
        yield HealthFinding("settings", False, error.message, error.help)
        return
    yield HealthFinding(
        "settings",
        True,
        f"config file: {config_file() if config_file().is_file() else 'none'}, hash {settings.fingerprint()}",
    )
    for check in checks:
        yield from check(settings)


# What is named ---------------------------------------------------------------------------------------


def check_dependencies(settings: Settings) -> list[HealthFinding]:
    """As a server with these settings looks at them for /readyz; but for the database, which is looked into deeper."""
    return asyncio.run(_find_dependencies(settings))


async def _find_dependencies(settings: Settings) -> list[HealthFinding]:
    from openassay.bootstrap import open_resources
    from openassay.telemetry.health import list_checks

    folder = settings.data_dir if settings.data_dir.exists() else settings.data_dir.absolute().parent
    async with AsyncExitStack() as stack:
        sources = []
        with suppress(OpenAssayError):  # told by others
            sources = (
                await stack.enter_async_context(open_resources(_isolate_settings(settings)))
            ).sources.list_sources()
        named = list_checks(settings, folder, _open_server_database(settings, stack), sources)
        return await Readiness(check for check in named if check.name != "database").collect_findings()


def _isolate_settings(settings: Settings) -> Settings:
    """With nothing that is kept, or shared with other processes."""
    kept, cached, told = (
        PersistenceSettings(backend="memory"),
        CacheSettings(backend="memory"),
        FleetSettings(signals="process"),
    )
    return settings.model_copy(update={"persistence": kept, "cache": cached, "fleet": told})


def _open_server_database(settings: Settings, stack: AsyncExitStack) -> "Database | None":
    """Where it cannot be, `database` says why."""
    from openassay.bootstrap import open_rows

    if settings.persistence.backend == "postgres":
        with suppress(OpenAssayError):
            return open_rows(settings, settings.data_dir, stack)[0].database
    return None


def check_database(settings: Settings) -> list[HealthFinding]:
    if settings.persistence.backend == "memory":
        return [HealthFinding("database", True, "in memory: nothing outlives a command")]
    if settings.persistence.backend == "sqlite" and not (settings.data_dir / "openassay.sqlite3").exists():
        return [HealthFinding("database", True, "none yet; the first question makes one")]
    return _run_check("database", lambda: asyncio.run(_describe_database(settings)))


async def _describe_database(settings: Settings) -> str:
    """Every row is looked into: a thread takes about 2 ms."""
    from openassay.bootstrap import open_rows
    from openassay.storage.integrity import SqlIntegrity

    async with AsyncExitStack() as stack:
        rows, _ = open_rows(settings, settings.data_dir, stack)
        with rows.database.connection() as connection:
            schema = connection.execute("SELECT max(version) AS version FROM schema_migrations").fetchone()["version"]
        if problems := await SqlIntegrity(rows).problems():
            more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
            raise IntegrityError(f"{problems[0]}{more}", help="See them all with: openassay storage check")
    sealed = "sealed with the key" if rows.seals.keyed else "sealed without a key"
    encrypted = "encrypted" if rows.seals.encrypts else "not encrypted"
    return f"{rows.database.name}, {settings.persistence.backend}, schema {schema}, {sealed}, {encrypted}"


# This machine ----------------------------------------------------------------------------------------


def _check_full_text(settings: Settings) -> list[HealthFinding]:
    with sqlite3.connect(":memory:") as connection:
        has = connection.execute(
            "SELECT 1 FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'"
        ).fetchone()
    connection.close()
    help = "Use a Python whose SQLite has FTS5."
    return [HealthFinding("full text", bool(has), f"SQLite {sqlite3.sqlite_version} with FTS5", help)]


def _check_encoder(settings: Settings) -> list[HealthFinding]:
    from openassay.text.embeddings import MiniLM

    began = time.perf_counter()
    return _run_check(
        "encoder",
        lambda: f"{MiniLM().embed(['ready?']).shape[1]} dimensions, loaded in {time.perf_counter() - began:.2f} s",
    )


def _check_pdf(settings: Settings) -> list[HealthFinding]:
    from importlib.metadata import version

    return [HealthFinding("pdf", True, f"pypdfium2 {version('pypdfium2')} in a process of its own")]


def _find_local_models(settings: Settings) -> list[HealthFinding]:
    """Servers on this machine that could do the thinking, and how to let them."""
    from openassay.llm.names import find_model_servers

    found = asyncio.run(find_model_servers())
    offers = [f"{server.kind} at {server.url}: {_describe_offer(server)}" for server in found]
    return [HealthFinding("local models", True, "; ".join(offers) or "none found on this machine (Ollama, llama.cpp)")]


def _describe_offer(server: "ModelServer") -> str:
    if not server.models:
        return "no model loaded"
    address = "" if server.kind == "ollama" else f"OPENASSAY_LLM__BASE_URL={server.url} "
    return f"use it with {address}OPENASSAY_LLM__MODEL={server.kind}:{server.models[0]}"


def _run_check(name: str, detail: Callable[[], str]) -> list[HealthFinding]:
    try:
        return [HealthFinding(name, True, detail())]
    except OpenAssayError as error:
        return [HealthFinding(name, False, error.message, error.help)]


CHECKS: tuple[Check, ...] = (
    _check_full_text,
    _check_encoder,
    _check_pdf,
    check_database,
    check_dependencies,
    _find_local_models,
)


# `openassay storage` and `openassay threads check`: what is stored, held against what was written.


def check_storage(thread: str | None) -> None:
    found = asyncio.run(_find_problems(thread))
    for problem in found:
        typer.echo(to_one_line(problem))
    what = f"Thread {thread}" if thread else "Everything"
    if found:
        print_message(f"{pluralize(len(found), 'problem')}. Restore a copy, or delete the thread and ask again.")
        raise typer.Exit(1)
    print_message(f"{what} is what was written.")


async def _find_problems(thread: str | None) -> list[str]:
    async with open_engine(load()) as engine:
        return await engine.problems(thread)


def seal_storage(encrypt: bool | None, *, trust_unsealed: bool) -> None:
    settings = load()
    if settings.keys.openassay_storage_key is None and settings.keys.openassay_storage_key_before is None:
        raise UsageError(
            "there is no key to seal with",
            help="Set OPENASSAY_STORAGE_KEY; to give a key up, set it as OPENASSAY_STORAGE_KEY_BEFORE instead.",
        )
    wanted = settings.persistence.encrypt if encrypt is None else encrypt
    rows = asyncio.run(bootstrap.reseal_storage(settings, encrypt=wanted, trust_unsealed=trust_unsealed))
    how = "with the key" if settings.keys.openassay_storage_key else "without a key"
    print_message(f"{pluralize(rows, 'row')} sealed {how}{', encrypted' if wanted else ''}.")
    if wanted != settings.persistence.encrypt:
        print_message(f"Set persistence.encrypt to {str(wanted).lower()} before anything else is done.")
    if settings.keys.openassay_storage_key_before:
        print_message("OPENASSAY_STORAGE_KEY_BEFORE is not needed any more.")
