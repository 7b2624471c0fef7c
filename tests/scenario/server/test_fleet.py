"""A server whose runs are worked on by others: whatever is asked of it is written down and put in line, no more."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from openassay.engine.engine import Engine
from openassay.errors import ConfigurationError
from openassay.models.evidence import Hit
from openassay.search.demo import DemoSource
from openassay.server.app import RunningServer, open_server
from openassay.settings import load
from openassay.storage.database import ACCOUNTS
from openassay.storage.postgres import PostgresDatabase
from openassay.worker.queue import prepare_tables
from openassay.worker.worker import PERIODIC, Worker, open_worker
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.server.asking import asked, researched, standing
from tests.scenario.server.conftest import Http, Open, token_of
from tests.scenario.server.sse import listening

PATIENCE = 60.0
PLAN = {"modeOverride": "plan"}


@pytest.fixture
def serve(postgres_address: str, serve: Open) -> Open:
    """Closed before its database is dropped."""
    return serve


@pytest.fixture
def fleet(postgres_address: str) -> dict[str, Any]:
    """Settings."""
    return {
        "persistence": {"backend": "postgres", "connection_string": postgres_address},
        "fleet": {"lease_seconds": 2}, "server": {"runs": "workers", "start_seconds": 0, "heartbeat": 0.05},
    }  # fmt: skip


Hire = Callable[..., Awaitable[Worker]]


@pytest.fixture
async def hire(fleet: dict[str, Any], tmp_path: Path) -> AsyncIterator[Hire]:
    """`await hire()`: a worker of the same fleet, until the end."""
    async with AsyncExitStack() as stack:

        async def hired(**settings: Any) -> Worker:
            given = load(data_dir=tmp_path / "worker", source="demo", **{**fleet, **settings})
            return await stack.enter_async_context(at_work(await stack.enter_async_context(open_worker(given))))

        yield hired


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[Worker]:
    stopping = asyncio.Event()
    works = asyncio.create_task(worker.run(stopping))
    try:
        yield worker
    finally:
        stopping.set()
        await works


@asynccontextmanager
async def only_put_in_line(server: RunningServer) -> AsyncIterator[None]:
    """Nothing is worked on by the server itself meanwhile."""
    seen: list[str] = []

    async def look(engine: Engine) -> None:
        while True:
            seen.extend(engine.list_running())
            await asyncio.sleep(0.002)

    looking = asyncio.create_task(look(server.service.engine))
    yield
    looking.cancel()
    assert seen == []


@pytest.mark.requirement("W-16")
async def test_settings_that_allow_for_no_workers_are_refused(
    tmp_path: Path, fleet: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match=r"persistence\.backend is sqlite") as refused:
        async with open_server(load(data_dir=tmp_path, server={"runs": "workers", "port": 0})):
            pass
    assert "DATABASE_URL" in refused.value.help
    monkeypatch.setattr("openassay.worker.queue.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="extra `fleet`") as refused:
        async with open_worker(load(data_dir=tmp_path, **fleet)):
            pass
    assert "make fleet" in refused.value.help


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_what_is_asked_waits_for_a_worker(serve: Open, http: Http, fleet: dict[str, Any], hire: Hire) -> None:
    server = await serve(**fleet)
    client = http(server)
    async with only_put_in_line(server):
        threads = [(await asked(client))["threadId"] for _ in range(2)]
        ready = await client.get("/readyz")
        assert (ready.status_code, "no worker is picking up runs" in ready.json()["detail"]) == (503, True)
        async with asyncio.timeout(30), listening(client, threads[1]) as events:
            places = (heard.json()["position"] async for heard in events if heard.name == "queue")
            assert 2 in [place async for place in _until(places, 2)]
        await hire()
        runs = [await standing(client, thread) for thread in threads]
        async with asyncio.timeout(30):
            while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    assert [run["status"] for run in runs] == ["done", "done"]


async def _until(places: AsyncIterator[int], wanted: int) -> AsyncIterator[int]:
    async for place in places:
        yield place
        if place == wanted:
            return


@pytest.mark.slow
@pytest.mark.requirement("F-09", "W-16")
async def test_a_person_answers_and_a_worker_goes_on(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire
) -> None:
    server = await serve(hitl_after_planning=True, **fleet)
    client = http(server)
    await hire(hitl_after_planning=True)
    async with only_put_in_line(server):
        thread = (await asked(client, **PLAN))["threadId"]
        while (await standing(client, thread))["status"] == "waiting":
            [review] = (await client.get(f"/api/threads/{thread}/reviews")).json()["reviews"]
            value = "The last year" if review["kind"] == "planning" else {"decision": "approve"}
            answer = await client.post(f"/api/reviews/{review['id']}/answer", json={"value": value})
            assert answer.status_code == 200, answer.text
            again = await client.post(f"/api/reviews/{review['id']}/answer", json={"value": value})
            assert again.status_code == 409, "it was taken once"
        assert (await standing(client, thread))["status"] == "done"


@pytest.mark.slow
async def test_what_changes_a_thread_goes_on_at_a_worker(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire
) -> None:
    """A mode that drops questions, a branch, a veto, a run that is stopped and resumed."""
    server = await serve(**fleet)
    client = http(server)
    await hire()
    async with only_put_in_line(server):
        thread = (await asked(client, **PLAN))["threadId"]
        assert (await standing(client, thread))["status"] == "waiting"
        assert (await client.patch(f"/api/threads/{thread}/mode", json={"mode": "auto"})).status_code == 200
        assert (await standing(client, thread))["status"] == "done"
        fork = (await client.post(f"/api/threads/{thread}/fork", json={"changes": {"words": 300}})).json()
        assert (await standing(client, fork["threadId"]))["status"] == "done"
        veto = await client.post(f"/api/threads/{thread}/sources/S1/veto")
        assert (veto.status_code, veto.json()["status"]) == (202, "queued")
        assert (await standing(client, thread))["status"] == "done"
        waits = (await asked(client, **PLAN))["threadId"]
        await standing(client, waits)
        assert (await client.post(f"/api/threads/{waits}/cancel")).json()["status"] == "cancelled"
        assert (await client.post(f"/api/threads/{waits}/resume", json={})).status_code == 200
        assert (await standing(client, waits))["status"] == "waiting"


@pytest.mark.slow
@pytest.mark.requirement("F-09")
async def test_workers_keep_time(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, postgres_address: str
) -> None:
    server = await serve(hitl_after_planning=True, breakpoints={"plan_timeout": 60}, **fleet)
    client = http(server)
    workers = [await hire(hitl_after_planning=True, breakpoints={"plan_timeout": 60}) for _ in range(2)]
    threads = [(await asked(client))["threadId"] for _ in range(2)]
    assert [(await standing(client, thread))["status"] for thread in threads] == ["waiting"] * 2
    due = datetime.now(UTC) + timedelta(seconds=61)
    for worker in workers:
        worker.engine._runner.now = lambda: due
    for thread in threads:
        async with asyncio.timeout(PATIENCE):
            while (await client.get(f"/api/threads/{thread}")).json()["status"] != "done":  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    assert changed(postgres_address, 'SELECT "by" FROM reviews') == [("timer",)] * 2


class Gate:
    """Runs come to it when they search, and go on when it is opened."""

    def __init__(self) -> None:
        self.came, self.open = asyncio.Event(), asyncio.Event()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    made, real = Gate(), DemoSource.search

    async def search(self: DemoSource, query: str, *, limit: int) -> list[Hit]:
        made.came.set()
        await made.open.wait()
        return await real(self, query, limit=limit)

    monkeypatch.setattr(DemoSource, "search", search)
    return made


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_run_at_a_worker_is_stopped_from_the_server(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, gate: Gate
) -> None:
    client = http(await serve(**fleet))
    await hire()
    thread = (await asked(client))["threadId"]
    await asyncio.wait_for(gate.came.wait(), PATIENCE)
    assert (await client.post(f"/api/threads/{thread}/cancel")).status_code == 200
    assert (await standing(client, thread))["status"] == "cancelled"
    gate.open.set()
    assert await researched(client), "the worker goes on with others"


def changed(address: str, *statements: str) -> list[Any]:
    """By somebody else, in the tables of the queue; the rows of the last one."""
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        found = [connection.execute(one.encode()) for one in statements][-1]
        return found.fetchall() if found.description else []


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_worker_that_was_taken_for_dead_ends_nothing_of_anothers(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, gate: Gate, postgres_address: str
) -> None:
    """It was asleep: its job was ended, and itself forgotten. Both times it finds out by itself, and stays."""
    client = http(await serve(**fleet))
    await hire()
    thread = (await asked(client))["threadId"]
    await asyncio.wait_for(gate.came.wait(), PATIENCE)
    changed(
        postgres_address,
        "UPDATE procrastinate_jobs SET status = 'failed' WHERE status = 'doing'",
        "DELETE FROM procrastinate_workers",
    )
    gate.open.set()
    assert (await standing(client, thread))["status"] == "done", "the thread was its own all the time"
    assert await researched(client)
    ended = changed(postgres_address, "SELECT status FROM procrastinate_jobs WHERE queue_name = 'runs' ORDER BY id")
    assert ended[0] == ("failed",), "what was ended stays so"


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_what_a_dead_worker_has_left_needs_no_free_place(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, gate: Gate, postgres_address: str
) -> None:
    """A worker has one place, and a run in it that does not end; another run waits, and a third was at work elsewhere.
    The third is taken up at once, the other in its turn."""
    client = http(await serve(**fleet))
    worker = await hire(fleet={"lease_seconds": 2, "concurrency": 1})
    await asked(client)
    await asyncio.wait_for(gate.came.wait(), PATIENCE)
    waits, left = [(await asked(client))["threadId"] for _ in range(2)]
    theirs = f"lock = '{left}' AND status = 'todo'"
    await until(lambda: bool(changed(postgres_address, f"SELECT 1 FROM procrastinate_jobs WHERE {theirs}")))  # noqa: S608
    changed(
        postgres_address,
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')",
        "UPDATE procrastinate_jobs SET status = 'doing', worker_id ="  # noqa: S608
        f" (SELECT max(id) FROM procrastinate_workers) WHERE {theirs}",
    )
    await until(lambda: len(worker.engine.list_running()) == 2)
    async with asyncio.timeout(PATIENCE):
        while (await client.get(f"/api/threads/{left}")).json()["status"] != "running":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)
    assert len(worker.engine.list_running()) == 2
    assert (await client.get(f"/api/threads/{waits}")).json()["status"] == "queued"
    gate.open.set()
    assert [(await standing(client, thread))["status"] for thread in (left, waits)] == ["done"] * 2


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_job_whose_worker_never_heard_of_it_is_put_in_line_again(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was lost just when it had given the job out."""
    real, lost = JobManager.fetch_job, list[Job]()

    async def fetch_job(self: JobManager, *given: Any) -> Job | None:
        job = await real(self, *given)
        if job and job.queue == "runs" and not lost:
            lost.append(job)
            raise ConnectorException("the connection was lost")
        return job

    monkeypatch.setattr(JobManager, "fetch_job", fetch_job)
    client = http(await serve(**fleet))
    await hire()
    assert await researched(client)
    assert lost


POISON = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args) VALUES
    ('runs', 'work', 2000000000, 'a', '{"run": "there is none", "thread": "x", "user": "y"}'),
    ('runs', 'work', 2000000000, 'b', '{"run": 7}'), ('runs', 'work', 2000000000, 'c', '[1, 2]'),
    ('runs', 'work', 2000000000, 'd', '{"run": null, "thread": [], "user": {}}'),
    ('runs', 'unheard of', 2000000000, 'e', '{}')
"""


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_what_no_worker_can_make_sense_of_is_put_aside(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, postgres_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = http(await serve(**fleet))
    changed(postgres_address, POISON)
    await hire()
    assert await researched(client), "others are not held up"
    jobs = "SELECT status FROM procrastinate_jobs WHERE lock IN ('a', 'b', 'c', 'd', 'e')"
    await until(lambda: changed(postgres_address, jobs) == [("failed",)] * 5)
    told = [record.message for record in caplog.records if "was rejected" in record.message]
    assert len(told) == 5
    assert not [record for record in caplog.records if record.exc_info], "a line each, and no traceback"


FINISHED = """
INSERT INTO procrastinate_jobs (queue_name, task_name, status, args) VALUES ('runs', 'work', '{status}', '{{}}');
INSERT INTO procrastinate_events (job_id, type, at) SELECT max(id), 'started', now() - interval '{age}'
FROM procrastinate_jobs
"""


@pytest.mark.slow
@pytest.mark.requirement("F-10", "W-16")
async def test_chores_are_done_by_whichever_worker_comes_to_them(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, postgres_address: str
) -> None:
    kept = fleet["persistence"] | {"ttl_hours": 24}
    client = http(await serve(**fleet))
    worker = await hire(persistence=kept)
    thread = await researched(client)
    for status, age in [("succeeded", "2 hours"), ("failed", "2 hours"), ("failed", "8 days")]:
        changed(postgres_address, FINISHED.format(status=status, age=age))
    later = datetime.now(UTC) + timedelta(hours=25)
    worker.engine._runner.now = lambda: later
    chores = (
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('chores', '{}', '{{\"timestamp\": 1}}')"
    )
    changed(postgres_address, *map(chores.format, PERIODIC))
    old = "SELECT status FROM procrastinate_jobs WHERE lock IS NULL AND queue_name = 'runs'"
    await until(lambda: changed(postgres_address, old) == [("failed",)])
    async with asyncio.timeout(PATIENCE):
        while (await client.get(f"/api/threads/{thread}")).status_code != 404:
            changed(postgres_address, chores.format("expire"))  # the run's things may only just have been put away
            await asyncio.sleep(0.5)


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_database_that_is_restarted_loses_nothing(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, gate: Gate, postgres_server: Any
) -> None:
    """One run is at work meanwhile, one in line."""
    client = http(await serve(**fleet))
    await hire(fleet=fleet["fleet"] | {"concurrency": 1})
    threads = [(await asked(client))["threadId"]]
    await asyncio.wait_for(gate.came.wait(), PATIENCE)
    threads.append((await asked(client))["threadId"])
    await asyncio.to_thread(postgres_server.stop)
    try:
        gate.open.set()
        await asyncio.sleep(1)
    finally:
        await asyncio.to_thread(postgres_server.start)
    assert [(await standing(client, thread))["status"] for thread in threads] == ["done", "done"]
    async with asyncio.timeout(PATIENCE):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.requirement("W-15")
async def test_a_worker_heeds_what_a_person_may_spend(
    serve: Open, http: Http, fleet: dict[str, Any], hire: Hire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left when a run begins counts, not what was left when it was put in line."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel()) as provider:
        fleet["llm"] = {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}
        server = await serve(**fleet)
        ada = http(server, await token_of(server, "ada"))
        thread = (await asked(ada))["threadId"]
        await server.service.resources.users.change("ada", usd=0.4)
        await hire()
        run = await standing(ada, thread)
    account = server.service.resources.rows.find(ACCOUNTS, run["id"])
    assert account is not None
    assert account["cap_micros"] == 400_000


def prepare_queue(address: str) -> None:
    with PostgresDatabase(address, connections=1) as database:
        prepare_tables(database)


@pytest.mark.requirement("W-16")
async def test_the_queue_is_made_once_whoever_comes_first(postgres_server: Any, postgres_address: str) -> None:
    empty = postgres_server.create("TEMPLATE template0")
    await asyncio.gather(*(asyncio.to_thread(prepare_queue, empty) for _ in range(3)))
    prepare_queue(empty)
    postgres_server.drop(empty)

    prepare_queue(postgres_address)
    changed(postgres_address, "INSERT INTO queue_migrations VALUES ('99.00.00_01_unheard_of')")
    with pytest.raises(ConfigurationError, match="newer OpenAssay"):
        prepare_queue(postgres_address)
    changed(postgres_address, "DROP TABLE queue_migrations")
    with pytest.raises(ConfigurationError, match="another program"):
        prepare_queue(postgres_address)
