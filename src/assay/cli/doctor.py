"""`assay doctor`: what this machine has, whether all is there that the settings name, and what to do about the rest."""

import asyncio
import json as jsonlib
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

import typer

from assay.cli.lines import fitted
from assay.errors import AssayError, IntegrityError
from assay.settings import Caching, Fleet, Persistence, Settings, config_file, load
from assay.telemetry.readiness import Finding, Readiness

if TYPE_CHECKING:
    from assay.llm.nearby import Found
    from assay.storage.database import Database

Check = Callable[[Settings], Iterable[Finding]]


def doctor(as_json: bool) -> None:
    """1 where something is missing that nothing goes without."""
    findings = list(examine(CHECKS))
    if as_json:
        typer.echo(jsonlib.dumps([_plain(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            typer.echo(fitted(f"{_mark(finding):4} {finding.name:14} {finding.detail}", 20))
            if finding.help and not finding.good:
                typer.echo(fitted(f"{'':4} {'':14} {finding.help}", 20))
    raise typer.Exit(0 if all(finding.good or finding.soft for finding in findings) else 1)


def _mark(finding: Finding) -> str:
    return "ok" if finding.good else "WEAK" if finding.soft else "BAD"


def _plain(finding: Finding) -> dict[str, object]:
    return {name: value for name, value in finding._asdict().items() if name != "problem"}


def examine(checks: Sequence[Check]) -> Iterator[Finding]:
    """Settings that cannot be read leave nothing else to look at."""
    yield Finding("python", sys.version_info >= (3, 11), sys.version.split()[0], "Install Python 3.11 or newer.")
    try:
        settings = load()
    except AssayError as error:
        yield Finding("settings", False, error.message, error.help)
        return
    yield Finding(
        "settings",
        True,
        f"config file: {config_file() if config_file().is_file() else 'none'}, hash {settings.fingerprint()}",
    )
    for check in checks:
        yield from check(settings)


# What is named ---------------------------------------------------------------------------------------


def dependencies(settings: Settings) -> list[Finding]:
    """As a server with these settings looks at them for /readyz; but for the database, which is looked into deeper."""
    return asyncio.run(_dependencies(settings))


async def _dependencies(settings: Settings) -> list[Finding]:
    from assay.bootstrap import open_world
    from assay.telemetry.checks import checks

    folder = settings.data_dir if settings.data_dir.exists() else settings.data_dir.absolute().parent
    async with AsyncExitStack() as stack:
        sources = []
        with suppress(AssayError):  # told by others
            sources = (await stack.enter_async_context(open_world(_alone(settings)))).sources.installed()
        named = checks(settings, folder, _opened(settings, stack), sources)
        return await Readiness(check for check in named if check.name != "database").findings()


def _alone(settings: Settings) -> Settings:
    """With nothing that is kept, or shared with other processes."""
    kept, cached, told = Persistence(backend="memory"), Caching(backend="memory"), Fleet(signals="process")
    return settings.model_copy(update={"persistence": kept, "cache": cached, "fleet": told})


def _opened(settings: Settings, stack: AsyncExitStack) -> "Database | None":
    """Where it cannot be, `database` says why."""
    from assay.bootstrap import open_rows

    if settings.persistence.backend == "postgres":
        with suppress(AssayError):
            return open_rows(settings, settings.data_dir, stack)[0].database
    return None


def database(settings: Settings) -> list[Finding]:
    if settings.persistence.backend == "memory":
        return [Finding("database", True, "in memory: nothing outlives a command")]
    if settings.persistence.backend == "sqlite" and not (settings.data_dir / "assay.sqlite3").exists():
        return [Finding("database", True, "none yet; the first question makes one")]
    return _try("database", lambda: asyncio.run(_stored(settings)))


async def _stored(settings: Settings) -> str:
    """Every row is looked into: a thread takes about 2 ms."""
    from assay.bootstrap import open_rows
    from assay.storage.integrity import SqlIntegrity

    async with AsyncExitStack() as stack:
        rows, _ = open_rows(settings, settings.data_dir, stack)
        with rows.database.connection() as connection:
            schema = connection.execute("SELECT max(version) AS version FROM schema_migrations").fetchone()["version"]
        if problems := await SqlIntegrity(rows).problems():
            more = f", and {len(problems) - 1:,} more" if len(problems) > 1 else ""
            raise IntegrityError(f"{problems[0]}{more}", help="See them all with: assay storage check")
    sealed = "sealed with the key" if rows.seals.keyed else "sealed without a key"
    encrypted = "encrypted" if rows.seals.encrypts else "not encrypted"
    return f"{rows.database.name}, {settings.persistence.backend}, schema {schema}, {sealed}, {encrypted}"


# This machine ----------------------------------------------------------------------------------------


def _full_text(settings: Settings) -> list[Finding]:
    with sqlite3.connect(":memory:") as connection:
        has = connection.execute(
            "SELECT 1 FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'"
        ).fetchone()
    connection.close()
    help = "Use a Python whose SQLite has FTS5."
    return [Finding("full text", bool(has), f"SQLite {sqlite3.sqlite_version} with FTS5", help)]


def _encoder(settings: Settings) -> list[Finding]:
    from assay.embedding.minilm import MiniLM

    began = time.perf_counter()
    return _try(
        "encoder",
        lambda: f"{MiniLM().embed(['ready?']).shape[1]} dimensions, loaded in {time.perf_counter() - began:.2f} s",
    )


def _pdf(settings: Settings) -> list[Finding]:
    from importlib.metadata import version

    return [Finding("pdf", True, f"pypdfium2 {version('pypdfium2')} in a process of its own")]


def _nearby(settings: Settings) -> list[Finding]:
    """Servers on this machine that could do the thinking, and how to let them."""
    from assay.llm.nearby import nearby

    found = asyncio.run(nearby())
    offers = [f"{server.kind} at {server.url}: {_offer(server)}" for server in found]
    return [Finding("local models", True, "; ".join(offers) or "none found on this machine (Ollama, llama.cpp)")]


def _offer(server: "Found") -> str:
    if not server.models:
        return "no model loaded"
    address = "" if server.kind == "ollama" else f"ASSAY_LLM__BASE_URL={server.url} "
    return f"use it with {address}ASSAY_LLM__MODEL={server.kind}:{server.models[0]}"


def _try(name: str, detail: Callable[[], str]) -> list[Finding]:
    try:
        return [Finding(name, True, detail())]
    except AssayError as error:
        return [Finding(name, False, error.message, error.help)]


CHECKS: tuple[Check, ...] = (_full_text, _encoder, _pdf, database, dependencies, _nearby)
