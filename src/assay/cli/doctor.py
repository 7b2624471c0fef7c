"""`assay doctor`: what this machine has, and what to do about what is missing."""

import asyncio
import json as jsonlib
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

import typer

from assay.cli.lines import fitted
from assay.errors import AssayError, IntegrityError
from assay.settings import Settings, config_file, load

if TYPE_CHECKING:
    from assay.llm.nearby import Found


class Finding(NamedTuple):
    name: str
    good: bool
    detail: str
    help: str = ""


Check = Callable[[Settings], Finding]


def doctor(as_json: bool) -> None:
    findings = list(examine(CHECKS))
    if as_json:
        typer.echo(jsonlib.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            typer.echo(fitted(f"{'ok ' if finding.good else 'BAD'}  {finding.name:14} {finding.detail}", 20))
            if finding.help and not finding.good:
                typer.echo(fitted(f"     {'':14} {finding.help}", 20))
    raise typer.Exit(0 if all(finding.good for finding in findings) else 1)


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
        yield check(settings)


def _full_text(settings: Settings) -> Finding:
    with sqlite3.connect(":memory:") as connection:
        has = connection.execute(
            "SELECT 1 FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'"
        ).fetchone()
    connection.close()
    return Finding(
        "full text", bool(has), f"SQLite {sqlite3.sqlite_version} with FTS5", "Use a Python whose SQLite has FTS5."
    )


def _data_dir(settings: Settings) -> Finding:
    place = settings.data_dir if settings.data_dir.exists() else settings.data_dir.absolute().parent
    free = shutil.disk_usage(place).free / 1e9 if place.exists() else 0.0
    good = os.access(place, os.W_OK) and free > 0.2
    return Finding(
        "data",
        good,
        f"{settings.data_dir} ({free:.1f} GB free)",
        "Set ASSAY_DATA_DIR to a folder with room you can write to.",
    )


def database(settings: Settings) -> Finding:
    if settings.persistence.backend == "memory":
        return Finding("database", True, "in memory: nothing outlives a command")
    if settings.persistence.backend == "sqlite" and not (settings.data_dir / "assay.sqlite3").exists():
        return Finding("database", True, "none yet; the first question makes one")
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


def _encoder(settings: Settings) -> Finding:
    from assay.embedding.minilm import MiniLM

    began = time.perf_counter()
    return _try(
        "encoder",
        lambda: f"{MiniLM().embed(['ready?']).shape[1]} dimensions, loaded in {time.perf_counter() - began:.2f} s",
    )


def _pdf(settings: Settings) -> Finding:
    from importlib.metadata import version

    return Finding("pdf", True, f"pypdfium2 {version('pypdfium2')} in a process of its own")


def _sources(settings: Settings) -> Finding:
    """Who would be asked; `assay sources` says on which terms."""
    from assay.cli.sources import KEEP_NOTHING, rows

    def ready() -> str:
        listed = asyncio.run(rows(load(**KEEP_NOTHING)))
        return ", ".join(row["name"] for row in listed if row["available"]) + (" (offline)" if settings.offline else "")

    return _try("sources", ready)


def _browser(settings: Settings) -> Finding:
    from assay.harvest.fetching.browser import found

    return _try("browser", lambda: found(settings.harvest) or "none; pages that need JavaScript are left out")


def _reasoner(settings: Settings) -> Finding:
    from assay.llm.lineup import lineup
    from assay.llm.prices import price
    from assay.model.thread import Options

    def who() -> str:
        chosen = lineup(settings, Options())
        if chosen is None:
            return "embedded (no language model needed); with a key or a local server a model can do the thinking"
        for model in chosen.models:
            price(model, settings)
        return f"{', then '.join(map(str, chosen.by_role['writer']))}; at most ${settings.budget.usd:.2f} a question"

    return _try("reasoner", who)


def _nearby(settings: Settings) -> Finding:
    """Servers on this machine that could do the thinking, and how to let them."""
    from assay.llm.nearby import nearby

    found = asyncio.run(nearby())
    offers = [f"{server.kind} at {server.url}: {_offer(server)}" for server in found]
    return Finding("local models", True, "; ".join(offers) or "none found on this machine (Ollama, llama.cpp)")


def _offer(server: "Found") -> str:
    if not server.models:
        return "no model loaded"
    address = "" if server.kind == "ollama" else f"ASSAY_LLM__BASE_URL={server.url} "
    return f"use it with {address}ASSAY_LLM__MODEL={server.kind}:{server.models[0]}"


def _try(name: str, detail: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, detail())
    except AssayError as error:
        return Finding(name, False, error.message, error.help)


CHECKS: tuple[Check, ...] = (
    _full_text, _data_dir, database, _encoder, _pdf, _sources, _browser, _reasoner, _nearby,
)  # fmt: skip
