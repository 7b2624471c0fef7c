"""Checks of everything that the settings name, for `openassay doctor` and /readyz of servers and workers."""

import asyncio
import logging
import math
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import time
from typing import NamedTuple
from urllib.parse import urlsplit

from openassay.errors import ConfigurationError, OpenAssayError, SourceError, StorageError
from openassay.fetch.browser import find_chromium
from openassay.llm.names import base_url, check_file
from openassay.llm.prices import find_price
from openassay.llm.selection import select_models
from openassay.models.thread import ResearchOptions
from openassay.protocols import RemoteSource, Source
from openassay.settings import Settings
from openassay.storage.database import MAIN_SCHEMA, POSTGRES_SCHEMA, Database, load_migrations
from openassay.telemetry import require_opentelemetry
from openassay.telemetry.metrics import ServerDatabase, count_live_workers

_log = logging.getLogger("openassay")
CHECK_SECONDS = 5.0  # after which something that does not answer counts as broken
FRESH_SECONDS = 1.0  # for which a finding is repeated
# Optional things are not waited for: a caller that asks whether a process is ready may give up after a second.
SOFT_CHECK_SECONDS = 0.5
SOFT_FRESH_SECONDS = 15.0
MIN_FREE_BYTES = 200_000_000
MAX_SKEW_SECONDS = 2.0
CONNECT_SECONDS = 1.0
JOURNALS = "checkpoints"
_VERSION = "SELECT current_setting('server_version') AS version"


class HealthCheck(NamedTuple):
    """A check. `look` says what is there, or raises OpenAssayError or OSError; it blocks, and runs in a thread.
    `problem` is public: no path and no address. `is_soft`: OpenAssay works without it, only not as well."""

    name: str
    problem: str
    look: Callable[[], str]
    is_soft: bool = False


class HealthFinding(NamedTuple):
    name: str
    good: bool
    detail: str
    help: str = ""
    soft: bool = False
    problem: str = ""


class Readiness:
    """Runs checks. However many callers ask, each check has one thread at most, and one that hangs is not started again
    before it has ended."""

    def __init__(self, checks: Iterable[HealthCheck]) -> None:
        self._runners = [_CheckRunner(check) for check in checks]

    async def collect_findings(self) -> list[HealthFinding]:
        return list(await asyncio.gather(*(runner.get_finding(CHECK_SECONDS) for runner in self._runners)))

    async def summarise(self) -> tuple[list[str], list[str]]:
        """Return what keeps this process from working, and what it works without."""
        findings = await asyncio.gather(*(runner.get_finding() for runner in self._runners))
        bad = [finding for finding in findings if not finding.good]
        return [one.problem for one in bad if not one.soft], [one.problem for one in bad if one.soft]


class _CheckRunner:
    """Runs one check and remembers its last finding."""

    def __init__(self, check: HealthCheck) -> None:
        self._check = check
        self._task: asyncio.Task[str] | None = None
        self._last = HealthFinding(check.name, True, "not checked yet")
        self._at = -math.inf

    async def get_finding(self, seconds: float | None = None) -> HealthFinding:
        check, clock = self._check, asyncio.get_running_loop().time
        if clock() - self._at < (SOFT_FRESH_SECONDS if check.is_soft else FRESH_SECONDS):
            return self._last
        task = self._task  # which another caller may start again meanwhile
        if task is None or task.done():
            task = self._task = asyncio.create_task(asyncio.to_thread(check.look))
        seconds = seconds or (SOFT_CHECK_SECONDS if check.is_soft else CHECK_SECONDS)
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done and check.is_soft and seconds < CHECK_SECONDS:
            return self._last
        self._at = clock()
        if not done:
            found = self._make_failure(f"no answer within {seconds:g} s")
        else:
            try:
                found = HealthFinding(check.name, True, task.result(), soft=check.is_soft)
            except OpenAssayError as error:
                found = self._make_failure(error.message, error.help)
            except OSError as error:
                found = self._make_failure(error.strerror or str(error))
        # A change is logged once, not whenever somebody asks.
        if found.good and not self._last.good:
            _log.warning("resolved: %s", self._last.problem)
        elif not found.good and (self._last.good or self._last.detail != found.detail):
            _log.warning("%s: %s (%s)", "degraded" if found.soft else "not ready", found.problem, found.detail)
        self._last = found
        return found

    def _make_failure(self, detail: str, help: str = "") -> HealthFinding:
        return HealthFinding(self._check.name, False, detail, help, self._check.is_soft, self._check.problem)


def list_checks(
    settings: Settings, folder: Path, database: Database | None, sources: Sequence[Source] = ()
) -> Iterator[HealthCheck]:
    """List the checks of the settings. `folder` is the data directory; `database` is open, where there is one."""
    yield HealthCheck("data", "the data directory cannot be written to", partial(_check_writable, folder))
    yield HealthCheck("space", "the disk is nearly full", partial(_check_space, folder), is_soft=True)
    if settings.persistence.journal and settings.persistence.backend != "memory":
        look = partial(_check_journal, folder)
        yield HealthCheck("journal", "journals of runs cannot be written", look, is_soft=True)
    if database is not None:
        yield HealthCheck("database", "the database does not answer", partial(_check_database, database))
    if isinstance(database, ServerDatabase):
        look = partial(_check_clock, database)
        yield HealthCheck("clock", "this machine's clock is not the database's", look, is_soft=True)
        if settings.server.runs == "workers":
            look = partial(_check_workers, database, settings.fleet.lease_seconds)
            yield HealthCheck("workers", "no worker is alive", look, is_soft=True)
    yield HealthCheck("encryption", "there is no key to read what is stored", partial(_check_encryption, settings))
    if needs_redis(settings):
        yield HealthCheck("redis", "the Redis server does not answer", partial(_check_redis, settings), is_soft=True)
    look = partial(_check_reasoner, settings)
    yield HealthCheck("reasoner", "no model can be asked as the settings say", look, is_soft=True)
    try:
        chosen = select_models(settings, ResearchOptions())
        addresses = {base_url(model, settings) for model in chosen.models} if chosen else set()
    except ConfigurationError:  # which the check before reports
        addresses = set()
    for address in sorted(filter(None, addresses)):  # hosted vendors are not asked
        look = partial(_check_address, address)
        yield HealthCheck("model server", "a model's server cannot be reached", look, is_soft=True)
    yield HealthCheck("sources", "no source can be asked", partial(_check_sources, settings, sources), is_soft=True)
    missing = "none; pages that need JavaScript are left out"
    yield HealthCheck(
        "browser", "the browser cannot be used", lambda: find_chromium(settings.harvest) or missing, is_soft=True
    )
    if settings.telemetry.traces != "off":
        yield HealthCheck("traces", "the collector of traces does not answer", _check_collector, is_soft=True)


def _check_writable(folder: Path) -> str:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ready")
        file.flush()
    return str(folder)


def _check_space(folder: Path) -> str:
    free = shutil.disk_usage(folder).free
    if free < MIN_FREE_BYTES:
        raise StorageError(f"{free / 1e9:.1f} GB free", help="Make room, or set OPENASSAY_DATA_DIR to another disk.")
    return f"{free / 1e9:.1f} GB free"


def _check_journal(folder: Path) -> str:
    journals = folder / JOURNALS
    if not journals.is_dir():
        return "none yet"
    if not os.access(journals, os.W_OK | os.X_OK):
        raise StorageError(f"{journals} cannot be written to", help="Give the user that runs OpenAssay write access.")
    return str(journals)


def _check_encryption(settings: Settings) -> str:
    has_key = settings.keys.openassay_storage_key is not None
    if settings.persistence.encrypt and not has_key:
        raise ConfigurationError("persistence.encrypt is set, and there is no key", help="Set OPENASSAY_STORAGE_KEY.")
    return f"{'on' if settings.persistence.encrypt else 'off'}, {'with' if has_key else 'without'} a key to seal with"


def _check_database(database: Database) -> str:
    is_server = isinstance(database, ServerDatabase)
    schema = POSTGRES_SCHEMA if is_server else MAIN_SCHEMA
    known = max(migration.version for migration in load_migrations(schema.migrations))
    with database.connection() as connection:
        applied = connection.execute("SELECT max(version) AS version FROM schema_migrations").fetchone()["version"]
        version = connection.execute(_VERSION).fetchone()["version"] if is_server else sqlite3.sqlite_version
    if applied < known:
        raise StorageError(
            f"{database.name} has schema {applied}, and this OpenAssay works with {known}",
            help="Run: openassay admin db migrate",
        )
    return f"{database.name}, {'PostgreSQL' if is_server else 'SQLite'} {version}, schema {applied}"


def _check_clock(database: Database) -> str:
    with database.connection() as connection:
        before = time()
        row = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float) AS now").fetchone()
        skew = (before + time()) / 2 - row["now"]
    if abs(skew) > MAX_SKEW_SECONDS:
        raise StorageError(f"{skew:+.1f} s from the database's", help="Keep both clocks in sync, by NTP for example.")
    return f"{skew:+.2f} s from the database's"


def _check_workers(database: Database, lease: float) -> str:
    with database.connection() as connection:
        number = count_live_workers(connection, lease)
    if not number:
        raise StorageError("none has reported lately", help="Start one: openassay worker")
    return f"{number} alive"


def needs_redis(settings: Settings) -> bool:
    is_chosen = settings.fleet.signals == "auto" and settings.keys.redis_url is not None
    return "redis" in (settings.cache.backend, settings.fleet.signals) or is_chosen


def _check_redis(settings: Settings) -> str:
    """Check the server; its address may hold a password, so errors are described in words of our own."""
    from redis import Redis
    from redis.exceptions import RedisError

    url = settings.keys.redis_url
    if url is None:
        raise ConfigurationError("there is no REDIS_URL", help="Set it, as redis://host:6379/0.")
    try:
        with Redis.from_url(
            url.get_secret_value(), socket_connect_timeout=CONNECT_SECONDS, socket_timeout=CONNECT_SECONDS
        ) as server:
            info = server.info("server")
    except ValueError:
        raise ConfigurationError("REDIS_URL is not the address of a Redis server", help="Correct it.") from None
    except RedisError as error:
        help = "Check that it runs, and REDIS_URL. OpenAssay continues without it."
        raise StorageError(f"it cannot be asked ({type(error).__name__})", help=help) from None
    name = "Valkey" if "valkey_version" in info else "Redis"
    return f"{name} {info.get('valkey_version') or info.get('redis_version')}"


def _check_reasoner(settings: Settings) -> str:
    chosen = select_models(settings, ResearchOptions())
    if chosen is None:
        return "embedded (no language model needed); with a key or a local server a model can do the thinking"
    for model in chosen.models:
        find_price(model, settings)
        check_file(model)
    return f"{', then '.join(map(str, chosen.by_role['writer']))}; at most ${settings.budget.usd:.2f} a question"


def _check_sources(settings: Settings, sources: Sequence[Source]) -> str:
    """List the sources that would be asked; `openassay sources` says on which terms."""
    ready = [one for one in sources if one.is_available() and not (settings.offline and isinstance(one, RemoteSource))]
    if settings.search.searxng_url and not settings.offline:
        _check_address(settings.search.searxng_url)
    if not ready:
        raise SourceError("none can be asked", help="See: openassay sources")
    return ", ".join(one.name for one in ready) + (" (offline)" if settings.offline else "")


def _check_address(address: str) -> str:
    """Check that a server listens; nothing is sent, so that it costs nothing."""
    parts = urlsplit(address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    server = f"{parts.hostname}:{port}"
    try:
        socket.create_connection((str(parts.hostname), port), CONNECT_SECONDS).close()
    except OSError as error:
        raise SourceError(f"{server} cannot be reached ({error})", help="Start it, or correct its address.") from error
    return server


def _check_collector() -> str:
    require_opentelemetry()
    from openassay.telemetry.traces import can_reach_collector

    if not can_reach_collector():
        raise OpenAssayError(
            "it does not accept traces",
            help="Start it, correct OTEL_EXPORTER_OTLP_ENDPOINT, or set traces to off.",
        )
    return "it accepts traces"
