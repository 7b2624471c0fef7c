"""Everything that the settings name, each with a look at whether it is there. `assay doctor`, /readyz of the server and
of a worker look at the same."""

import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import time
from urllib.parse import urlsplit

from assay.errors import AssayError, ConfigurationError, SourceError, StorageError
from assay.harvest.fetching.browser import found
from assay.llm.lineup import lineup
from assay.llm.names import base_url, check_file
from assay.llm.prices import price
from assay.model.thread import Options
from assay.ports import Remote, Source
from assay.settings import Settings
from assay.storage.database import Database
from assay.storage.migrating import MAIN, POSTGRES, read
from assay.telemetry.backlog import Pooled, alive
from assay.telemetry.readiness import Check
from assay.telemetry.traces import is_heard

LEAST_FREE = 200_000_000  # bytes
MOST_SKEW = 2.0  # seconds
CONNECTING = 1.0  # seconds a server has to answer
JOURNALS = "checkpoints"
_VERSION = "SELECT current_setting('server_version') AS version"


def checks(
    settings: Settings, folder: Path, database: Database | None, sources: Sequence[Source] = ()
) -> Iterator[Check]:
    """`folder` is the data directory; `database` is open, where there is one."""
    yield Check("data", "the data directory cannot be written to", partial(_writable, folder))
    yield Check("space", "the disk is nearly full", partial(_space, folder), is_soft=True)
    if settings.persistence.journal and settings.persistence.backend != "memory":
        yield Check("journal", "journals of runs cannot be written", partial(_journal, folder), is_soft=True)
    if database is not None:
        yield Check("database", "the database does not answer", partial(_database, database))
    if isinstance(database, Pooled):
        yield Check("clock", "this machine's clock is not the database's", partial(_clock, database), is_soft=True)
        if settings.server.runs == "workers":
            look = partial(_workers, database, settings.fleet.lease_seconds)
            yield Check("workers", "no worker is alive", look, is_soft=True)
    yield Check("encryption", "there is no key to read what is stored", partial(_encryption, settings))
    if wants_redis(settings):
        yield Check("redis", "the Redis server does not answer", partial(_redis, settings), is_soft=True)
    yield from _models(settings)
    yield Check("sources", "no source can be asked", partial(_sources, settings, sources), is_soft=True)
    yield Check("browser", "the browser cannot be used", partial(_browser, settings), is_soft=True)
    if settings.telemetry.traces != "off":
        yield Check("traces", "the collector of traces does not answer", _collector, is_soft=True)


# This machine ----------------------------------------------------------------------------------------


def _writable(folder: Path) -> str:
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"ready")
        file.flush()
    return str(folder)


def _space(folder: Path) -> str:
    free = shutil.disk_usage(folder).free
    if free < LEAST_FREE:
        raise StorageError(f"{free / 1e9:.1f} GB free", help="Make room, or set ASSAY_DATA_DIR to another disk.")
    return f"{free / 1e9:.1f} GB free"


def _journal(folder: Path) -> str:
    journals = folder / JOURNALS
    if not journals.is_dir():
        return "none yet"
    if not os.access(journals, os.W_OK | os.X_OK):
        raise StorageError(f"{journals} cannot be written to", help="Let whoever runs Assay write there.")
    return str(journals)


def _encryption(settings: Settings) -> str:
    has_key = settings.keys.assay_storage_key is not None
    if settings.persistence.encrypt and not has_key:
        raise ConfigurationError("persistence.encrypt is set, and there is no key", help="Set ASSAY_STORAGE_KEY.")
    return f"{'on' if settings.persistence.encrypt else 'off'}, {'with' if has_key else 'without'} a key to seal with"


def _browser(settings: Settings) -> str:
    return found(settings.harvest) or "none; pages that need JavaScript are left out"


# The database ----------------------------------------------------------------------------------------


def _database(database: Database) -> str:
    is_server = isinstance(database, Pooled)
    known = max(migration.version for migration in read((POSTGRES if is_server else MAIN).migrations))
    with database.connection() as connection:
        applied = connection.execute("SELECT max(version) AS version FROM schema_migrations").fetchone()["version"]
        version = connection.execute(_VERSION).fetchone()["version"] if is_server else sqlite3.sqlite_version
    if applied < known:
        raise StorageError(
            f"{database.name} has schema {applied}, and this Assay works with {known}", help="Run: assay db migrate"
        )
    return f"{database.name}, {'PostgreSQL' if is_server else 'SQLite'} {version}, schema {applied}"


def _clock(database: Database) -> str:
    with database.connection() as connection:
        before = time()
        row = connection.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS float) AS now").fetchone()
        skew = (before + time()) / 2 - row["now"]
    if abs(skew) > MOST_SKEW:
        raise StorageError(f"{skew:+.1f} s from the database's", help="Let both keep time, by NTP for one.")
    return f"{skew:+.2f} s from the database's"


def _workers(database: Database, lease: float) -> str:
    with database.connection() as connection:
        number = alive(connection, lease)
    if not number:
        raise StorageError("none has given a sign lately", help="Start one: assay worker")
    return f"{number} alive"


# Others ----------------------------------------------------------------------------------------------


def wants_redis(settings: Settings) -> bool:
    carried = settings.fleet.signals == "redis"
    chosen = settings.fleet.signals == "auto" and settings.keys.redis_url is not None
    return settings.cache.backend == "redis" or carried or chosen


def _redis(settings: Settings) -> str:
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
        help = "Check that it runs, and REDIS_URL. Assay goes on without what it shares."
        raise StorageError(f"it cannot be asked ({type(error).__name__})", help=help) from None
    name = "Valkey" if "valkey_version" in told else "Redis"
    return f"{name} {told.get('valkey_version') or told.get('redis_version')}"


def _models(settings: Settings) -> Iterator[Check]:
    """Whether each can be asked; a hosted vendor is not asked for that."""
    yield Check("reasoner", "no model can be asked as the settings say", partial(_reasoner, settings), is_soft=True)
    try:
        chosen = lineup(settings, Options())
        places = {base_url(model, settings) for model in chosen.models} if chosen else set()
    except ConfigurationError:  # told by the one before
        return
    for place in sorted(place for place in places if place):
        yield Check("model server", "a model's server cannot be reached", partial(_reached, place), is_soft=True)


def _reasoner(settings: Settings) -> str:
    chosen = lineup(settings, Options())
    if chosen is None:
        return "embedded (no language model needed); with a key or a local server a model can do the thinking"
    for model in chosen.models:
        price(model, settings)
        check_file(model)
    return f"{', then '.join(map(str, chosen.by_role['writer']))}; at most ${settings.budget.usd:.2f} a question"


def _sources(settings: Settings, sources: Sequence[Source]) -> str:
    """Who would be asked; `assay sources` says on which terms."""
    ready = [one for one in sources if one.is_available() and not (settings.offline and isinstance(one, Remote))]
    if settings.search.searxng_url and not settings.offline:
        _reached(settings.search.searxng_url)
    if not ready:
        raise SourceError("none can be asked", help="See: assay sources")
    return ", ".join(one.name for one in ready) + (" (offline)" if settings.offline else "")


def _reached(address: str) -> str:
    """Whether somebody listens there: nothing is said, so that it costs nothing."""
    parts = urlsplit(address)
    place = f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        host, _, port = place.rpartition(":")
        socket.create_connection((host, int(port)), CONNECTING).close()
    except OSError as error:
        raise SourceError(f"{place} cannot be reached ({error})", help="Start it, or correct its address.") from error
    return place


def _collector() -> str:
    if not is_heard():
        raise AssayError(
            "it does not take what it is told",
            help="Start it, correct OTEL_EXPORTER_OTLP_ENDPOINT, or set traces to off.",
        )
    return "it takes what it is told"
