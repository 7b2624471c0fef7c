"""Workers as processes of their own, beside a server that only puts runs in line."""

import asyncio
import json
import signal
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import psycopg
import pytest

from openassay.bootstrap import open_engine
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.settings import load
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.system.command import PATIENCE, Command

GOAL = "What's happening with Tesla and its stock?"
RUN = "SELECT status FROM runs WHERE id = %s"
STILL = "SELECT status IN ('waiting', 'done') FROM runs WHERE id = %s"
BEGUN = "SELECT count(*) FROM events WHERE run = %s AND kind = 'run' AND data LIKE '%%running%%'"


class Team:
    """A server and workers on one database."""

    def __init__(self, openassay: Command, database: str, **settings: Any) -> None:
        self._openassay = openassay
        self._database = database
        given = {
            "source": "demo", "depth": "quick", "fleet": {"lease_seconds": 2, "concurrency": 2},
            "persistence": {"backend": "postgres", "connection_string": database},
            "server": {"runs": "workers", "port": 0, "start_seconds": 0}, **settings,
        }  # fmt: skip
        self._settings = given
        (openassay.folder / "config.yaml").write_text(json.dumps(given), encoding="utf-8")

    async def put(self) -> str:
        """A run in line, as a process leaves it that is gone before anybody was told."""
        async with open_engine(load(data_dir=self._openassay.data, **self._settings)) as engine:
            return (await engine.queue(GOAL, ResearchOptions(source="demo", depth=Depth.QUICK))).id

    @contextmanager
    def worker(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        """One that has begun to work."""
        with self._openassay.started("worker", *options) as process:
            assert process.stderr is not None
            assert b"Working on runs" in process.stderr.readline()
            yield process

    @contextmanager
    def serving(self) -> Iterator[Callable[..., Any]]:
        """What calls its API."""
        with self._openassay.started("serve") as process:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip()

            def call(path: str, body: object = None) -> Any:
                headers = {"Content-Type": "application/json"}
                content = None if body is None else json.dumps(body).encode()
                request = urllib.request.Request(f"{address}/api/{path}", content, headers)  # noqa: S310  # its own
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
                    return json.load(answer)

            yield call

    def rows(self, sql: str, *values: object) -> list[Any]:
        with closing(psycopg.connect(self._database, autocommit=True)) as connection:
            return connection.execute(sql.encode(), values).fetchall()

    async def until(self, *wanted: object, sql: str, values: tuple[object, ...] = ()) -> None:
        """The rows of a statement are these."""
        async with asyncio.timeout(PATIENCE):
            while (found := await asyncio.to_thread(self.rows, sql, *values)) != [(one,) for one in wanted]:
                assert found not in ([("failed",)], [("cancelled",)])
                await asyncio.sleep(0.05)

    async def stands(self, run: str, status: str) -> None:
        await self.until(status, sql=RUN, values=(run,))


@asynccontextmanager
async def slow_model(
    openassay: Command, patch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[FakeLlmServer, dict[str, Any]]]:
    """A run takes several seconds with it; with the settings that name it."""
    (openassay.folder / ".env").write_text("OPENAI_API_KEY=sk-test-not-a-key\n", encoding="utf-8")
    patch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel(), latency=0.25) as provider:
        yield provider, {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}


async def at_work(provider: FakeLlmServer, calls: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(provider.calls) < calls:  # noqa: ASYNC110  # another process calls
            await asyncio.sleep(0.02)


def ended(process: "subprocess.Popen[bytes]", code: int = 0) -> str:
    """What it has said since it began."""
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, err.decode()
    assert b"Traceback" not in err, err.decode()
    return err.decode()


@pytest.mark.slow
def test_settings_without_a_shared_database_are_refused(openassay: Command) -> None:
    openassay("worker").refused(2, "persistence.backend is sqlite", "DATABASE_URL")


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_worker_finishes_what_a_server_was_asked(openassay: Command, postgres_address: str) -> None:
    team = Team(openassay, postgres_address)
    with team.serving() as call:
        plain = call("threads/start", {"goal": GOAL})["runId"]
        planned = call("threads/start", {"goal": GOAL, "modeOverride": "plan"})
        with team.worker() as worker:
            await team.stands(planned["runId"], "waiting")
            while reviews := call(f"threads/{planned['threadId']}/reviews")["reviews"]:
                call(f"reviews/{reviews[0]['id']}/answer", {"value": "any"})
                await team.until(True, sql=STILL, values=(planned["runId"],))
            await team.stands(planned["runId"], "done")
            await team.stands(plain, "done")
            assert call(f"threads/{planned['threadId']}/report")["status"] == "complete"
            worker.send_signal(signal.SIGTERM)
            said = await asyncio.to_thread(ended, worker)
    assert "Stopping" in said
    assert "Stopped" in said
    assert team.rows("SELECT count(*) FROM procrastinate_workers") == [(0,)]


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-16")
async def test_one_that_is_stopped_hands_over_at_once(
    openassay: Command, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with slow_model(openassay, monkeypatch) as (provider, llm):
        team = Team(openassay, postgres_address, llm=llm, fleet={"lease_seconds": 60, "concurrency": 2})
        run = await team.put()
        with team.worker() as first:
            await at_work(provider)
            first.send_signal(signal.SIGTERM)
            await asyncio.to_thread(ended, first)
        await team.stands(run, "queued")
        second = await asyncio.to_thread(openassay, "worker", "--until-idle")
    assert (second.code, "Nothing is left to do" in second.err) == (0, True)
    await team.stands(run, "done")
    assert team.rows(BEGUN, run) == [(2,)]


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-16")
async def test_what_a_killed_one_was_at_is_finished_by_another(
    openassay: Command, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with slow_model(openassay, monkeypatch) as (provider, llm):
        team = Team(openassay, postgres_address, llm=llm)
        with team.worker() as one, team.worker() as another:
            run = await team.put()
            await at_work(provider, 2)
            [(holder,)] = team.rows("SELECT holder FROM leases")
            killed, alive = (one, another) if str(one.pid) in holder.split() else (another, one)
            killed.kill()
            await team.stands(run, "done")
            alive.send_signal(signal.SIGTERM)
            said = await asyncio.to_thread(ended, alive)
    assert run in said, "that a worker is gone is told"
    assert team.rows(BEGUN, run)[0][0] >= 2
