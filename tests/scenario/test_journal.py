"""Runs that are copied into their folder as they go, and had again from it alone."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openassay.bootstrap import open_engine, open_journal, open_rows, reseal_storage
from openassay.engine.engine import Engine
from openassay.engine.journal import JournalWriter, RunRows
from openassay.errors import IntegrityError, NotFoundError, StorageError, UsageError
from openassay.export import Report
from openassay.models.event import Event, RunStatus
from openassay.models.plan import Depth, Mode
from openassay.models.thread import Branch, ResearchOptions, Run, Thread
from openassay.settings import load
from openassay.storage.sealed_rows import Seals
from openassay.storage.threads import SqlThreads
from tests.fakes.llm_server import FakeLlmServer
from tests.fakes.model import FakeModel
from tests.scenario.checking import check_report, stored_texts

QUESTION = "What's happening with Tesla and its stock?"
KEY = "a key that only these tests have"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@asynccontextmanager
async def engine_on(folder: Path, **settings: Any) -> AsyncIterator[Engine]:
    async with open_engine(load(data_dir=folder, source="demo", **settings)) as engine:
        yield engine


async def log(engine: Engine, run: Run) -> list[Event]:
    return [event async for event in engine.events(run.id)]


def journal(folder: Path, run: Run) -> Path:
    return folder / "checkpoints" / run.id


def told(report: Report) -> dict[str, Any]:
    """Without what differs between any two runs."""
    return {name: value for name, value in report.plain().items() if name not in ("provenance", "created", "metadata")}


async def stopped_at(engine: Engine, kind: str, stage: str, **options: Any) -> Run:
    run = await engine.start(QUESTION, ResearchOptions(source="demo", **options))
    async for event in engine.events(run.id):
        if (event.kind, event.stage) == (kind, stage):
            break
    await engine.cancel(run.id)
    return await engine.threads.run(run.id)


class Kept(NamedTuple):
    """A data directory with one run in it."""

    folder: Path
    run: Run
    events: list[Event]
    state: dict[str, Any]
    report: Report | None


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return asyncio.run(_research(tmp_path_factory.mktemp("finished"), stop=False))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """After the first sub-questions were read."""
    return asyncio.run(_research(tmp_path_factory.mktemp("stopped"), stop=True))


async def _research(folder: Path, *, stop: bool) -> Kept:
    async with engine_on(folder) as engine:
        if stop:
            run = await _stopped_while_reading(engine, folder)
        else:
            run = await engine.start(QUESTION, ResearchOptions(source="demo"))
        outcome = await engine.wait(run.id)
        return Kept(folder, outcome.run, await log(engine, run), await engine.state(run.thread), outcome.report)


async def _stopped_while_reading(engine: Engine, folder: Path) -> Run:
    run = await engine.start(QUESTION, ResearchOptions(source="demo"))
    page = journal(folder, run) / "progress.md"
    async with asyncio.timeout(30):
        while not (page.exists() and "\n## Q" in page.read_text(encoding="utf-8")):  # noqa: ASYNC110  # it is a file
            await asyncio.sleep(0.002)
    await engine.cancel(run.id)
    return run


@pytest.mark.requirement("L-06")
def test_every_event_is_in_the_journal_under_the_step_it_belongs_to(finished: Kept) -> None:
    content = (journal(finished.folder, finished.run) / "events.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in content.splitlines()]
    events = sorted(lines, key=lambda line: int(line["seq"]))
    assert [event["seq"] for event in events] == [event.seq for event in finished.events]
    entries = {event["seq"]: event for event in events if event["kind"] == "enter"}
    inside = [event for event in events if event["stage"] and event["kind"] != "enter"]
    assert {"leave", "search", "finding", "section"} <= {event["kind"] for event in inside}
    for event in inside:
        entry = entries[event["parent"]]
        assert (entry["stage"], entry["step"]) == (event["stage"], event["step"]), "tasks that run at once do not mix"
    assert {event["parent"] for event in entries.values()} == {1}
    assert all(event["time"] and "data" in event for event in events)


@pytest.mark.requirement("L-07")
def test_sha256sum_agrees_with_every_checkpoint(finished: Kept) -> None:
    folder = journal(finished.folder, finished.run)
    sums = sorted(path.name for path in folder.glob("*.sha256"))
    assert len(sums) == len(list(folder.glob("checkpoint_*.json"))) > 10
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", *sums], cwd=folder, check=True)


@pytest.mark.requirement("L-08")
def test_progress_tells_question_plan_findings_and_how_to_go_on(finished: Kept, stopped: Kept) -> None:
    page = (journal(stopped.folder, stopped.run) / "progress.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {QUESTION}")
    assert "## Plan" in page
    assert page.count("\n## Q") >= 1
    assert "(Tesla" in page, "quotes come with the titles of their sources"
    assert page.rstrip().endswith(f"`openassay resume {stopped.run.thread}`")
    whole = (journal(finished.folder, finished.run) / "progress.md").read_text(encoding="utf-8")
    assert whole.count("\n## Q") == len(finished.state["plan"]["questions"])
    assert "## Finished" in whole


@pytest.mark.requirement("L-07")
async def test_a_finished_run_is_had_again_elsewhere(finished: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "moved"
    shutil.copytree(journal(finished.folder, finished.run), folder)
    async with engine_on(tmp_path / "data") as engine:
        run = await engine.restore(folder)
        assert (run.id, run.status, run.finished) == (finished.run.id, RunStatus.DONE, finished.run.finished)
        assert await engine.state(run.thread) == finished.state, "exactly"
        assert await engine.history.report(run.thread) == finished.report
        events = await log(engine, run)
        assert events[:-1] == finished.events
        assert "moved" in str(events[-1].data["text"])
        assert await engine.archive.problems() == []
        history = await engine.history.list_page(run.thread)
        with pytest.raises(UsageError, match="here already") as refused:
            await engine.restore(folder)
        assert run.thread in refused.value.help
    assert finished.report is not None
    check_report(finished.report, stored_texts(tmp_path / "data"))
    async with engine_on(finished.folder) as engine:
        assert await engine.history.list_page(run.thread) == history
    copies = journal(tmp_path / "data", run)
    assert {path.name for path in copies.glob("checkpoint_*")} == {path.name for path in folder.glob("checkpoint_*")}
    page = (copies / "progress.md").read_text(encoding="utf-8")
    assert page.count("\n## Q") == len(finished.state["plan"]["questions"]), "what was read before is told as well"


@pytest.mark.requirement("L-07")
async def test_a_stopped_run_is_finished_elsewhere_and_nothing_finished_is_done_again(
    stopped: Kept, finished: Kept, tmp_path: Path
) -> None:
    folder = journal(stopped.folder, stopped.run)
    with (folder / "events.jsonl").open("ab") as file:
        file.write(b'{"seq": 999, "ru')  # as kill -9 leaves it
    async with engine_on(tmp_path) as engine:
        run = await engine.restore(folder)
        before = len(await log(engine, run))
        await engine.resume(run.thread)
        outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        events = await log(engine, run)
    assert told(outcome.report) == told(finished.report)  # type: ignore[arg-type]
    assert not [event for event in events[before:] if event.kind in ("search", "enter") and event.stage == "search"]
    done = re.findall(r"^## (Q\d+):", (folder / "progress.md").read_text(encoding="utf-8"), re.MULTILINE)
    again = {event.data["question"] for event in events[before:] if event.kind == "finding"}
    assert done
    assert not set(done) & again
    assert any("events.jsonl was cut off" in str(event.data.get("text")) for event in events)
    page = (journal(tmp_path, run) / "progress.md").read_text(encoding="utf-8")
    assert page.count("\n## Q") == len(finished.state["plan"]["questions"])


@pytest.mark.requirement("L-07", "W-16")
async def test_what_was_paid_for_is_in_the_journal_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-not-a-key")
    async with FakeLlmServer(FakeModel()) as provider:
        models = {"llm": {"model": "openai:gpt-4o", "endpoints": {"openai": f"{provider.url}/v1"}}}
        async with engine_on(tmp_path / "one", **models) as engine:
            run = await stopped_at(engine, "spend", "read", depth=Depth.QUICK)
            before = await engine.threads.run(run.id)
        paid = len(provider.billable_calls)
        async with engine_on(tmp_path / "two", **models) as engine:
            await engine.restore(journal(tmp_path / "one", before))
            await engine.resume(run.thread)
            outcome = await engine.wait(run.id)
            assert outcome.report is not None, outcome.run.error
    prompts = [(call.prompt.form, call.prompt.text) for call in provider.billable_calls]
    assert paid < len(prompts)
    assert len(prompts) == len(set(prompts)), "nothing was asked twice"
    assert outcome.report.spend.requests == len(prompts), "the books are whole"


async def test_an_edited_journal_is_refused_before_anything_is_written(finished: Kept, tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    shutil.copytree(journal(finished.folder, finished.run), folder)
    path = folder / "records.jsonl"
    documents = [line for line in path.read_bytes().splitlines() if b'"kind": "document"' in line]
    path.write_bytes(path.read_bytes().replace(documents[-1], documents[-1].replace(b"Tesla", b"Telsa", 1)))
    async with engine_on(tmp_path / "data") as engine:
        with pytest.raises(IntegrityError, match=r"records\.jsonl line \d+"):
            await engine.restore(folder)
        assert await engine.threads.list_recent(limit=5) == []
        with pytest.raises(NotFoundError):
            await engine.document(json.loads(documents[0])["document"]["hash"])


async def test_a_restoring_that_was_interrupted_is_done_again(
    finished: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = journal(finished.folder, finished.run)

    async def dies(*_: object) -> None:
        raise KeyboardInterrupt

    async with engine_on(tmp_path) as engine:
        with monkeypatch.context() as patch:
            patch.setattr("openassay.engine.run_journal.restore_checkpoint", dies)
            with pytest.raises(KeyboardInterrupt):
                await engine.restore(folder)
        run = (await engine.threads.runs(finished.run.thread))[0]
        assert (run.status, "--from" in (run.error or "")) == (RunStatus.FAILED, True)
        for going_on in (
            engine.resume(run.thread),
            engine.start(QUESTION, ResearchOptions(source="demo"), thread=run.thread),
        ):
            with pytest.raises(StorageError, match="in part only"):
                await going_on
        assert [problem for problem in await engine.archive.problems() if "in part only" in problem]
        assert await engine.threads.runs(run.thread) == [run]
        run = await engine.restore(folder)
        assert (run.status, run.error or None) == (RunStatus.DONE, None)
        assert await engine.state(run.thread) == finished.state
        assert (await log(engine, run))[:-1] == finished.events


def forged(folder: Path, run: str = "r1", thread: str = "t1", *, told: str = "r1", paid: str = "r1") -> Path:
    """A journal that is whole: without a key, anybody can write one."""
    book = JournalWriter(folder, run, Seals())
    row = Run(id=run, thread=thread, question=QUESTION, started=NOON)
    branch = Branch(thread="t1", parent="t0", checkpoint="c", created=NOON)
    held = Thread(id=thread, title=QUESTION, created=NOON, updated=NOON)
    book.write_rows(RunRows(run=row, thread=held, branch=branch))
    book.write_event(Event(seq=1, run=told, time=NOON, kind="run", data={"status": "running"}))
    book.write_calls(
        [{"run": paid, "cap_micros": 1, "cap_tokens": 1, "cap_requests": 1, "finish_share": 0.0, "refused": 0}]
    )
    book.close()
    return folder


@pytest.mark.parametrize("wrong", [
    {"run": "../../victim", "told": "../../victim", "paid": "../../victim"}, {"thread": "../../victim"},
    {"thread": "t2"}, {"told": "r2"}, {"paid": "r2"},
])  # fmt: skip
async def test_a_journal_whose_ids_lead_elsewhere_is_refused(wrong: dict[str, str], tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    async with engine_on(tmp_path / "data") as engine:
        with pytest.raises(IntegrityError, match="its ids"):
            await engine.restore(forged(tmp_path / "forged", **wrong))
        assert await engine.threads.list_recent(limit=5) == []
    assert list(victim.iterdir()) == []
    assert not (tmp_path / "victim.lock").exists()


async def test_only_a_run_of_ours_has_a_folder(tmp_path: Path) -> None:
    (tmp_path / "victim").mkdir()
    (tmp_path / "checkpoints" / "r1.damaged-1").mkdir(parents=True)
    settings = load(data_dir=tmp_path, source="demo")
    async with AsyncExitStack() as stack:
        rows, _ = open_rows(settings, tmp_path, stack)
        journal_ = open_journal(settings, rows, tmp_path)
        for name in ("../victim", "..", "", "*"):
            with pytest.raises(NotFoundError):
                journal_.folder(name)
            await journal_.delete(name)
    assert (tmp_path / "victim").exists()
    assert (tmp_path / "checkpoints" / "r1.damaged-1").exists()


async def test_a_branch_is_restored_as_one_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    folder = forged(tmp_path / "forged")
    async with engine_on(tmp_path / "data") as engine:
        with monkeypatch.context() as patch:
            patch.setattr(SqlThreads, "_add_branch", dies)
            with pytest.raises(KeyboardInterrupt):
                await engine.restore(folder)
        assert await engine.threads.list_recent(limit=5) == []
        await engine.restore(folder)
        restored = await engine.threads.branch("t1")
        assert restored is not None
        assert restored.parent == "t0"


async def test_an_open_question_is_asked_again_elsewhere(tmp_path: Path) -> None:
    async with engine_on(tmp_path / "one") as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", mode=Mode.PLAN, interactive=True))
        outcome = await engine.wait(run.id)
        assert outcome.run.status is RunStatus.WAITING
    async with engine_on(tmp_path / "two") as engine:
        await engine.restore(journal(tmp_path / "one", run))
        await engine.resume(run.thread)
        [asked] = (await engine.wait(run.id)).questions
        assert (asked.kind, asked.question) == (outcome.questions[0].kind, outcome.questions[0].question)
        await engine.interrupts.answer(run.thread, asked.id, "its share price")
        [another] = (await engine.wait(run.id)).questions
        assert another.question != asked.question


# -- the journal goes on, or is given up ------------------------------------------------------------------------------


async def test_a_journal_that_was_damaged_is_set_aside_and_written_anew(stopped: Kept, tmp_path: Path) -> None:
    shutil.copytree(stopped.folder, tmp_path, dirs_exist_ok=True)
    folder = journal(tmp_path, stopped.run)
    path = next(folder.glob("checkpoint_3.json"))
    path.write_bytes(path.read_bytes()[:-40])
    async with engine_on(tmp_path) as engine:
        [problem] = await engine.archive.problems(stopped.run.thread)
        assert "checkpoint_3.json" in problem
        await engine.resume(stopped.run.thread)
        assert (await engine.wait(stopped.run.id)).report is not None
        notices = [str(event.data["text"]) for event in await log(engine, stopped.run) if event.kind == "notice"]
        assert [text for text in notices if "damaged-1" in text and "checkpoint_3.json" in text]
        assert (tmp_path / "checkpoints" / f"{stopped.run.id}.damaged-1").is_dir()
        async with engine_on(tmp_path / "elsewhere") as other:
            assert (await other.restore(folder)).status is RunStatus.DONE
        await engine.archive.delete(stopped.run.thread)
    assert list((tmp_path / "checkpoints").iterdir()) == []


async def test_a_database_that_was_put_back_is_noticed(stopped: Kept, tmp_path: Path) -> None:
    shutil.copytree(stopped.folder, tmp_path, dirs_exist_ok=True)
    older = (tmp_path / "openassay.sqlite3").read_bytes()
    async with engine_on(tmp_path) as engine:
        await engine.resume(stopped.run.thread)
        assert (await engine.wait(stopped.run.id)).report is not None
    for name in ("openassay.sqlite3-wal", "openassay.sqlite3-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "openassay.sqlite3").write_bytes(older)
    async with engine_on(tmp_path) as engine:
        await engine.resume(stopped.run.thread)
        assert (await engine.wait(stopped.run.id)).report is not None
        notices = [str(event.data["text"]) for event in await log(engine, stopped.run) if event.kind == "notice"]
    assert [text for text in notices if "as if that had been put back" in text]


async def test_a_run_without_its_journal_has_one_again_when_it_goes_on(stopped: Kept, tmp_path: Path) -> None:
    shutil.copytree(stopped.folder, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "checkpoints")
    async with engine_on(tmp_path) as engine:
        await engine.resume(stopped.run.thread)
        outcome = await engine.wait(stopped.run.id)
    async with engine_on(tmp_path / "elsewhere") as engine:
        run = await engine.restore(journal(tmp_path, stopped.run))
        assert await engine.history.report(run.thread) == outcome.report


async def test_a_journal_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way", encoding="utf-8")
    async with engine_on(tmp_path) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        outcome = await engine.wait(run.id)
        assert outcome.report is not None, outcome.run.error
        notices = [str(event.data["text"]) for event in await log(engine, run) if event.kind == "notice"]
    assert len([text for text in notices if "journal" in text and "could not be written" in text]) == 1


async def test_a_disk_that_is_full_in_mid_run_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from openassay.engine import journal

    replace, count = journal.replace_file, 0

    def full(*given: Any) -> None:
        nonlocal count
        count += 1
        if count > 6:
            raise OSError(28, "No space left on device")
        replace(*given)

    monkeypatch.setattr("openassay.engine.journal.replace_file", full)
    async with engine_on(tmp_path) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        assert (await engine.wait(run.id)).report is not None
        notices = [str(event.data["text"]) for event in await log(engine, run) if event.kind == "notice"]
    assert [text for text in notices if "No space left on device" in text] == [
        "The journal of this run could not be written and is given up: No space left on device"
    ]


async def test_no_journal_is_written_where_none_is_wanted(tmp_path: Path) -> None:
    async with engine_on(tmp_path, persistence={"journal": False}) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        assert (await engine.wait(run.id)).report is not None
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.slow
@pytest.mark.requirement("L-07")
async def test_an_encrypted_run_is_had_again_with_its_key_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY)
    sealed = {"persistence": {"encrypt": True}}
    async with engine_on(tmp_path / "one", **sealed) as engine:
        run = await engine.start(QUESTION, ResearchOptions(source="demo", depth=Depth.QUICK))
        report = (await engine.wait(run.id)).report
    folder = journal(tmp_path / "one", run)
    assert not any(b" Tesla" in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    async with engine_on(tmp_path / "two", **sealed) as engine:
        assert await engine.history.report((await engine.restore(folder)).thread) == report
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY_BEFORE", KEY)
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY[::-1])
    await reseal_storage(load(data_dir=tmp_path / "two", source="demo"), encrypt=False)
    async with engine_on(tmp_path / "two") as engine:
        assert await engine.archive.problems() == [], "the journal was written anew with the new key"
    monkeypatch.delenv("OPENASSAY_STORAGE_KEY")
    async with engine_on(tmp_path / "three") as engine:
        with pytest.raises(IntegrityError, match="another key"):
            await engine.restore(folder)


async def test_sealing_anew_leaves_a_journal_that_the_database_does_not_know(
    stopped: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(stopped.folder, tmp_path, dirs_exist_ok=True)
    stranger = forged(tmp_path / "checkpoints" / "r1")
    before = contents(stranger)
    monkeypatch.setenv("OPENASSAY_STORAGE_KEY", KEY)
    await reseal_storage(load(data_dir=tmp_path, source="demo", persistence={"journal": False}), encrypt=True)
    assert contents(stranger) == before
    assert [line for line in caplog.messages if str(stranger) in line]
    names = {path.name for path in (tmp_path / "checkpoints").iterdir()}
    assert names == {"r1", stopped.run.id}
    async with engine_on(tmp_path / "elsewhere", persistence={"encrypt": True}) as engine:
        assert (await engine.restore(journal(tmp_path, stopped.run))).id == stopped.run.id


async def test_a_journal_that_cannot_be_written_anew_stays_as_it_was(
    stopped: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    shutil.copytree(stopped.folder, tmp_path, dirs_exist_ok=True)
    folder = journal(tmp_path, stopped.run)
    before = contents(folder)
    monkeypatch.setattr("openassay.engine.journal.replace_file", full)
    await reseal_storage(load(data_dir=tmp_path, source="demo"), encrypt=False)
    assert contents(folder) == before
    assert "No space left on device" in caplog.text
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [stopped.run.id]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
