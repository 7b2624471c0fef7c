"""`openassay doctor`: what this machine has, whether all is there that the settings name, and what to do about the
rest."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from importlib.metadata import version
from typing import Annotated

import typer

from openassay.cli.options import json_option
from openassay.cli.screen import print_json, wrap_line
from openassay.errors import OpenAssayError
from openassay.settings import CacheSettings, FleetSettings, PersistenceSettings, Settings, config_file, load
from openassay.telemetry.health import HealthFinding, Readiness

Check = Callable[[Settings], Iterable[HealthFinding]]


def doctor(json: Annotated[bool, json_option("the findings")] = False) -> None:
    """Check what this machine has and lacks; exits with 1 where something necessary is missing."""
    findings = list(run_checks(CHECKS))
    if json:
        print_json([{k: v for k, v in finding._asdict().items() if k != "problem"} for finding in findings])
    else:
        for finding in findings:
            state = "ok" if finding.good else "WEAK" if finding.soft else "BAD"
            typer.echo(wrap_line(f"{state:4} {finding.name:14} {finding.detail}", 20))
            if finding.help and not finding.good:
                typer.echo(wrap_line(f"{'':4} {'':14} {finding.help}", 20))
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


# -- this machine -------------------------------------------------------------------------------------------


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
    """Find servers on this machine that could do the thinking, and say how to use them."""
    from openassay.llm.names import find_model_servers

    offers = []
    for server in asyncio.run(find_model_servers()):
        address = "" if server.kind == "ollama" else f"OPENASSAY_LLM__BASE_URL={server.url} "
        use = f"use it with {address}OPENASSAY_LLM__MODEL={server.kind}:{server.models[0]}" if server.models else ""
        offers.append(f"{server.kind} at {server.url}: {use or 'no model loaded'}")
    return [HealthFinding("local models", True, "; ".join(offers) or "none found on this machine (Ollama, llama.cpp)")]


# -- what the settings name ---------------------------------------------------------------------------------


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
