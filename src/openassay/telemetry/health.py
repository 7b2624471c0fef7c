"""Everything that the settings name, each with a look at whether it is there. `openassay doctor`, /readyz of the
server and
of a worker look at the same.
"""

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
from openassay.telemetry.metrics import ServerDatabase, count_live_workers
from openassay.telemetry.traces import can_reach_collector

# Whether all is there that a process needs, looked at whenever somebody asks and not more often than is good.

_log = logging.getLogger("openassay")
PATIENCE = 5.0  # seconds after which something that does not answer is taken for broken
FRESH = 1.0  # seconds for which what was found is told again
# What can be done without is not waited for: whoever asks whether a process can work may give up after a second.
SOFT_PATIENCE, SOFT_FRESH = 0.5, 15.0


class HealthCheck(NamedTuple):
    """`look` says what is there, or raises OpenAssayError or OSError; it blocks, and is called in a thread.
    `problem` is
    what everybody is told: no path and no address. `is_soft`: OpenAssay works without, only not as well."""

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


class ReadinessSummary(NamedTuple):
    """What keeps a process from working, and what it has to do without."""

    problems: list[str]
    degraded: list[str]


class Readiness:
    """However many ask: each check has one thread at the most, and one that hangs is not begun again before it has
    ended."""

    def __init__(self, checks: Iterable[HealthCheck]) -> None:
        self._looks = [_CheckRunner(check) for check in checks]

    async def collect_findings(self) -> list[HealthFinding]:
        """All of them, waited for."""
        return list(await asyncio.gather(*(look.get_finding(PATIENCE) for look in self._looks)))

    async def summarise(self) -> ReadinessSummary:
        found = await asyncio.gather(*(look.get_finding() for look in self._looks))
        bad = [finding for finding in found if not finding.good]
        return ReadinessSummary(
            [finding.problem for finding in bad if not finding.soft],
            [finding.problem for finding in bad if finding.soft],
        )


class _CheckRunner:
    """At one thing, with what was found there last."""

    def __init__(self, check: HealthCheck) -> None:
        self._check = check
        self._task: asyncio.Task[str] | None = None
        self._last = HealthFinding(check.name, True, "not looked at yet")
        self._at = -math.inf

    async def get_finding(self, patience: float | None = None) -> HealthFinding:
        is_soft = self._check.is_soft
        if _now() - self._at < (SOFT_FRESH if is_soft else FRESH):
            return self._last
        task = self._task  # which somebody else may begin anew meanwhile
        if task is None or task.done():
            task = self._task = asyncio.create_task(asyncio.to_thread(self._check.look))
        patience = patience or (SOFT_PATIENCE if is_soft else PATIENCE)
        done, _ = await asyncio.wait([task], timeout=patience)
        if done or not is_soft or patience >= PATIENCE:
            self._at = _now()
            self._log_change(
                self._read_result(task) if done else self._make_failure(f"no answer within {patience:g} s")
            )
        return self._last

    def _read_result(self, task: asyncio.Task[str]) -> HealthFinding:
        try:
            return HealthFinding(self._check.name, True, task.result(), soft=self._check.is_soft)
        except OpenAssayError as error:
            return self._make_failure(error.message, error.help)
        except OSError as error:
            return self._make_failure(error.strerror or str(error))

    def _make_failure(self, detail: str, help: str = "") -> HealthFinding:
        return HealthFinding(self._check.name, False, detail, help, self._check.is_soft, self._check.problem)

    def _log_change(self, found: HealthFinding) -> None:
        """In the log once, not whenever somebody asks."""
        if found.good and not self._last.good:
            _log.warning("it is over: %s", self._last.problem)
        elif not found.good and (self._last.good or self._last.detail != found.detail):
            _log.warning("%s: %s (%s)", "degraded" if found.soft else "not ready", found.problem, found.detail)
        self._last = found


def _now() -> float:
    return asyncio.get_running_loop().time()


LEAST_FREE = 200_000_000  # bytes
MOST_SKEW = 2.0  # seconds
CONNECTING = 1.0  # seconds a server has to answer
JOURNALS = "checkpoints"
_VERSION = "SELECT current_setting('server_version') AS version"


def list_checks(
    settings: Settings, folder: Path, database: Database | None, sources: Sequence[Source] = ()
) -> Iterator[HealthCheck]:
    """`folder` is the data directory; `database` is open, where there is one."""
    yield HealthCheck("data", "the data directory cannot be written to", partial(_check_writable, folder))
    yield HealthCheck("space", "the disk is nearly full", partial(_check_space, folder), is_soft=True)
    if settings.persistence.journal and settings.persistence.backend != "memory":
        yield HealthCheck(
            "journal", "journals of runs cannot be written", partial(_check_journal, folder), is_soft=True
        )
    if database is not None:
        yield HealthCheck("database", "the database does not answer", partial(_check_database, database))
    if isinstance(database, ServerDatabase):
        yield HealthCheck(
            "clock", "this machine's clock is not the database's", partial(_check_clock, database), is_soft=True
        )
        if settings.server.runs == "workers":
            look = partial(_check_workers, database, settings.fleet.lease_seconds)
            yield HealthCheck("workers", "no worker is alive", look, is_soft=True)
    yield HealthCheck("encryption", "there is no key to read what is stored", partial(_check_encryption, settings))
    if needs_redis(settings):
        yield HealthCheck("redis", "the Redis server does not answer", partial(_check_redis, settings), is_soft=True)
    yield from _list_model_checks(settings)
    yield HealthCheck("sources", "no source can be asked", partial(_check_sources, settings, sources), is_soft=True)
    yield HealthCheck("browser", "the browser cannot be used", partial(_check_browser, settings), is_soft=True)
    if settings.telemetry.traces != "off":
        yield HealthCheck("traces", "the collector of traces does not answer", _check_collector, is_soft=True)


# This machine ----------------------------------------------------------------------------------------


def _check_writable(folder: Path) -> str:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ready")
        file.flush()
    return str(folder)


def _check_space(folder: Path) -> str:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise StorageError(f"{free / 1e9:.1f} GB free", help="Make room, or set OPENASSAY_DATA_DIR to another disk.")
    return f"{free / 1e9:.1f} GB free"


def _check_journal(folder: Path) -> str:
    journals = folder / JOURNALS
    if not journals.is_dir():
        return "none yet"
    if not os.access(journals, os.W_OK | os.X_OK):
        raise StorageError(f"{journals} cannot be written to", help="Let whoever runs OpenAssay write there.")
    return str(journals)


def _check_encryption(settings: Settings) -> str:
    has_key = settings.keys.openassay_storage_key is not None
    if settings.persistence.encrypt and not has_key:
        raise ConfigurationError("persistence.encrypt is set, and there is no key", help="Set OPENASSAY_STORAGE_KEY.")
    return f"{'on' if settings.persistence.encrypt else 'off'}, {'with' if has_key else 'without'} a key to seal with"


def _check_browser(settings: Settings) -> str:
    return find_chromium(settings.harvest) or "none; pages that need JavaScript are left out"


# The database ----------------------------------------------------------------------------------------


def _check_database(database: Database) -> str:
    is_server = isinstance(database, ServerDatabase)
    known = max(
        migration.version for migration in load_migrations((POSTGRES_SCHEMA if is_server else MAIN_SCHEMA).migrations)
    )
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
    if abs(skew) > MOST_SKEW:
        raise StorageError(f"{skew:+.1f} s from the database's", help="Let both keep time, by NTP for one.")
    return f"{skew:+.2f} s from the database's"


def _check_workers(database: Database, lease: float) -> str:
    with database.connection() as connection:
        number = count_live_workers(connection, lease)
    if not number:
        raise StorageError("none has given a sign lately", help="Start one: openassay worker")
    return f"{number} alive"


# Others ----------------------------------------------------------------------------------------------


def needs_redis(settings: Settings) -> bool:
    carried = settings.fleet.signals == "redis"
    chosen = settings.fleet.signals == "auto" and settings.keys.redis_url is not None
    return settings.cache.backend == "redis" or carried or chosen


def _check_redis(settings: Settings) -> str:
    """Its address may hold a password: what goes wrong is told in words of our own."""
    from redis import Redis
    from redis.exceptions import RedisError

    url = settings.keys.redis_url
    if url is None:
        raise ConfigurationError("there is no REDIS_URL", help="Set it, as redis://host:6379/0.")
    try:
        with Redis.from_url(
            url.get_secret_value(), socket_connect_timeout=CONNECTING, socket_timeout=CONNECTING
        ) as server:
            told = server.info("server")
    except ValueError:
        raise ConfigurationError("REDIS_URL is not the address of a Redis server", help="Correct it.") from None
    except RedisError as error:
        help = "Check that it runs, and REDIS_URL. OpenAssay goes on without what it shares."
        raise StorageError(f"it cannot be asked ({type(error).__name__})", help=help) from None
    name = "Valkey" if "valkey_version" in told else "Redis"
    return f"{name} {told.get('valkey_version') or told.get('redis_version')}"


def _list_model_checks(settings: Settings) -> Iterator[HealthCheck]:
    """Whether each can be asked; a hosted vendor is not asked for that."""
    yield HealthCheck(
        "reasoner", "no model can be asked as the settings say", partial(_check_reasoner, settings), is_soft=True
    )
    try:
        chosen = select_models(settings, ResearchOptions())
        places = {base_url(model, settings) for model in chosen.models} if chosen else set()
    except ConfigurationError:  # told by the one before
        return
    for place in sorted(place for place in places if place):
        yield HealthCheck(
            "model server", "a model's server cannot be reached", partial(_check_address, place), is_soft=True
        )


def _check_reasoner(settings: Settings) -> str:
    chosen = select_models(settings, ResearchOptions())
    if chosen is None:
        return "embedded (no language model needed); with a key or a local server a model can do the thinking"
    for model in chosen.models:
        find_price(model, settings)
        check_file(model)
    return f"{', then '.join(map(str, chosen.by_role['writer']))}; at most ${settings.budget.usd:.2f} a question"


def _check_sources(settings: Settings, sources: Sequence[Source]) -> str:
    """Who would be asked; `openassay sources` says on which terms."""
    ready = [one for one in sources if one.is_available() and not (settings.offline and isinstance(one, RemoteSource))]
    if settings.search.searxng_url and not settings.offline:
        _check_address(settings.search.searxng_url)
    if not ready:
        raise SourceError("none can be asked", help="See: openassay sources")
    return ", ".join(one.name for one in ready) + (" (offline)" if settings.offline else "")


def _check_address(address: str) -> str:
    """Whether somebody listens there: nothing is said, so that it costs nothing."""
    parts = urlsplit(address)
    place = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        host, _, port = place.rpartition(":")
        socket.create_connection((host, int(port)), CONNECTING).close()
    except OSError as error:
        raise SourceError(f"{place} cannot be reached ({error})", help="Start it, or correct its address.") from error
    return place


def _check_collector() -> str:
    if not can_reach_collector():
        raise OpenAssayError(
            "it does not take what it is told",
            help="Start it, correct OTEL_EXPORTER_OTLP_ENDPOINT, or set traces to off.",
        )
    return "it takes what it is told"
