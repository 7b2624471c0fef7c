"""What every Memory does; above all, that nobody sees what is another's."""

import asyncio
import itertools
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from openassay.engine.memory import MOST_FACTS, UserMemory, create_shared_memory, open_memory
from openassay.errors import NotFoundError, StorageError, UsageError
from openassay.models.user import LONGEST_FACT, MemoryFact, Preferences
from openassay.storage.integrity import SqlIntegrity
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows, Seals
from tests.contract.conftest import KEY

pytestmark = pytest.mark.requirement("W-19")

START = datetime(2026, 1, 1, tzinfo=UTC)
LIKED = Preferences(style="executive", words=500, prefer=("nasa.gov",), avoid=("reddit.com",), region="Austria")


def clock() -> Callable[[], datetime]:
    """An hour passes each time somebody looks."""
    hours = itertools.count()
    return lambda: START + timedelta(hours=next(hours))


@pytest.fixture(params=["in memory", "sqlite", "postgres"])
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[UserMemory]:
    async with open_memory(tmp_path / "memory.sqlite3") as memory:
        if request.param == "in memory":
            memory = UserMemory(InMemoryStore())
        elif request.param == "postgres":
            database: PostgresDatabase = request.getfixturevalue("postgres_database")
            memory = create_shared_memory(Rows(database), database)
        memory.now = clock()
        yield memory


async def texts(memory: UserMemory, user: str = "ann") -> list[str]:
    return [fact.text for fact in await memory.facts(user)]


# Preferences -----------------------------------------------------------------------------------------


async def test_somebody_new_has_no_preferences_and_no_facts(memory: UserMemory) -> None:
    assert await memory.preferences("ann") == Preferences()
    assert await memory.facts("ann") == []
    assert await memory.find_relevant("ann", "What do we know?", limit=5) == []


async def test_preferences_take_the_place_of_those_before(memory: UserMemory) -> None:
    await memory.set_preferences("ann", LIKED)
    assert await memory.preferences("ann") == LIKED
    await memory.set_preferences("ann", Preferences(language="German"))
    assert await memory.preferences("ann") == Preferences(language="German")


# Facts -----------------------------------------------------------------------------------------------


async def test_facts_come_back_oldest_first_with_short_ids(memory: UserMemory) -> None:
    first = await memory.remember("ann", "We report in euros")
    second = await memory.remember("ann", "  The plant\nis in   Grünheide. ")
    assert first == MemoryFact(id="M1", text="We report in euros", created=START, updated=START)
    assert (second.id, second.text) == ("M2", "The plant is in Grünheide.")
    assert await memory.facts("ann") == [first, second]


async def test_more_than_nine_facts_stay_in_order(memory: UserMemory) -> None:
    for number in range(1, 13):
        await memory.remember("ann", f"Fact number {number}")
    assert [fact.id for fact in await memory.facts("ann")] == [f"M{number}" for number in range(1, 13)]


async def test_saying_the_same_again_gives_the_fact_there_is(memory: UserMemory) -> None:
    first = await memory.remember("ann", "We report in euros")
    assert await memory.remember("ann", "we  report in EUROS.") == first
    assert len(await memory.facts("ann")) == 1


async def test_an_edit_keeps_the_id_and_when_it_was_first_said(memory: UserMemory) -> None:
    first = await memory.remember("ann", "We report in euros")
    await memory.remember("ann", "The plant is in Graz")
    edited = await memory.edit("ann", "m1", "We report in francs")
    assert edited.id == first.id
    assert edited.created == first.created
    assert edited.updated > first.updated
    assert await texts(memory) == ["We report in francs", "The plant is in Graz"]


async def test_two_facts_cannot_be_made_the_same(memory: UserMemory) -> None:
    await memory.remember("ann", "We report in euros")
    await memory.remember("ann", "The plant is in Graz")
    with pytest.raises(UsageError, match="M1 says that already"):
        await memory.edit("ann", "M2", "we report in euros")
    assert (await memory.edit("ann", "M1", "We report in Euros")).text == "We report in Euros"


async def test_an_id_is_never_given_twice(memory: UserMemory) -> None:
    await memory.remember("ann", "One thing")
    await memory.remember("ann", "Another thing")
    await memory.forget("ann", "M2")
    assert (await memory.remember("ann", "A third thing")).id == "M3"
    await memory.forget_all("ann")
    assert (await memory.remember("ann", "A fourth thing")).id == "M4"


async def test_everything_can_be_forgotten(memory: UserMemory) -> None:
    await memory.set_preferences("ann", LIKED)
    await memory.remember("ann", "We report in euros")
    await memory.forget_all("ann")
    assert await memory.preferences("ann") == Preferences()
    assert await memory.facts("ann") == []
    await memory.forget_all("ann")


@pytest.mark.slow
@pytest.mark.parametrize("id", ["M1", "M7", "x", "", "all", "M1; DROP"])
async def test_an_id_that_is_not_the_users_is_not_found(memory: UserMemory, id: str) -> None:
    await memory.remember("bob", "We report in euros")
    with pytest.raises(NotFoundError):
        await memory.edit("ann", id, "something else")
    with pytest.raises(NotFoundError):
        await memory.forget("ann", id)
    assert await texts(memory, "bob") == ["We report in euros"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "  \n", "...", "\x1b[31mred", "bell\x07", "bro\ufffdken", "half \ud800 pair"])
async def test_what_cannot_be_read_is_refused(memory: UserMemory, text: str) -> None:
    with pytest.raises(UsageError, match="not readable"):
        await memory.remember("ann", text)
    assert await memory.facts("ann") == []


async def test_what_cannot_be_seen_is_left_out(memory: UserMemory) -> None:
    """A reader would not see it, a model would obey it."""
    fact = await memory.remember("ann", "We re\u200bport\u202e in \U000e0041euros")
    assert fact.text == "We report in euros"


@pytest.mark.slow
async def test_a_fact_has_a_longest_and_a_person_a_most(memory: UserMemory) -> None:
    assert len((await memory.remember("ann", "x" * LONGEST_FACT)).text) == LONGEST_FACT
    with pytest.raises(UsageError, match="at most 500 characters, not 501"):
        await memory.remember("ann", "x" * (LONGEST_FACT + 1))
    for number in range(2, MOST_FACTS + 1):
        await memory.remember("ann", f"Fact {number}")
    with pytest.raises(UsageError, match="200 facts"):
        await memory.remember("ann", "One more")
    assert len(await memory.facts("ann")) == MOST_FACTS
    assert (await memory.remember("ann", "Fact 7")).text == "Fact 7"  # which is known
    await memory.remember("bob", "Somebody else has room")


# Relevance -------------------------------------------------------------------------------------------


async def relevant(memory: UserMemory, question: str, limit: int = 10) -> list[str]:
    return [fact.text for fact in await memory.find_relevant("ann", question, limit=limit)]


async def test_facts_that_share_words_with_a_question_come_best_first(memory: UserMemory) -> None:
    for text in (
        "Voestalpine supplies the steel",
        "Tesla's battery plant is in Grünheide",
        "Tesla opened a showroom",
        "The auditors are in Linz",
    ):
        await memory.remember("ann", text)
    asked = "How many batteries do the plants of Tesla make?"
    assert await relevant(memory, asked) == ["Tesla's battery plant is in Grünheide", "Tesla opened a showroom"]
    assert await relevant(memory, asked, 1) == ["Tesla's battery plant is in Grünheide"]
    assert await relevant(memory, asked, 0) == []
    assert await relevant(memory, "What is dark matter?") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["I work in procurement", "We report in euros", "Our fiscal year ends in June", "Never use Wikipedia",
     "Amounts always in euros", "My team is in Graz", "Wir berichten in Euro"],
)  # fmt: skip
async def test_what_is_said_of_the_person_counts_for_every_question(memory: UserMemory, text: str) -> None:
    await memory.remember("ann", text)
    assert await relevant(memory, "What is dark matter?") == [text]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["World War I ended in 1918", "The US imports steel", "Weather stations report hourly"]
)
async def test_what_only_looks_like_it_does_not(memory: UserMemory, text: str) -> None:
    await memory.remember("ann", text)
    assert await relevant(memory, "What is dark matter?") == []


@pytest.mark.slow
async def test_a_fact_about_the_person_is_not_crowded_out(memory: UserMemory) -> None:
    await memory.remember("ann", "We report in euros")
    for number in range(50):
        await memory.remember("ann", f"Tesla fact {number}")
    assert "We report in euros" in await relevant(memory, "How is Tesla doing?", 5)


# Users -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("user", ["", "a.b", "a b", "ä", "x" * 65, "a/b", "a\n", "*", "memory\x00"])
async def test_a_user_without_a_valid_name_is_refused(memory: UserMemory, user: str) -> None:
    for attempt in (
        memory.preferences(user),
        memory.set_preferences(user, LIKED),
        memory.facts(user),
        memory.remember(user, "One thing"),
        memory.find_relevant(user, "What?", limit=3),
        memory.edit(user, "M1", "Other"),
        memory.forget(user, "M1"),
        memory.forget_all(user),
    ):
        with pytest.raises(UsageError):
            await attempt


Step = tuple[str, str, int, str]  # who, what, which fact, saying what
USERS = ("a", "A", "ab", "a_b", "a-b", "aXb", "facts")  # near enough for a pattern to take one for another
STEP = st.tuples(
    st.sampled_from(USERS),
    st.sampled_from(["remember", "edit", "forget", "forget_all", "prefer"]),
    st.integers(1, 4),
    st.sampled_from(["red", "green", "blue"]),
)


@asynccontextmanager
async def in_process() -> AsyncIterator[UserMemory]:
    yield UserMemory(InMemoryStore())


async def _do(memory: UserMemory, model: dict[str, dict[str, str]], step: Step, last: dict[str, int]) -> None:
    """One operation on the memory and on a plain dictionary of what it should hold."""
    user, what, number, word = step
    held, id, text = model[user], f"M{number}", f"{word} thing"
    match what:
        case "remember":
            fact = await memory.remember(user, text)
            if text not in held.values():
                last[user] += 1
                held[f"M{last[user]}"] = text
            assert held[fact.id] == text
        case "edit" if id in held and text not in held.values():
            held[id] = (await memory.edit(user, id, text)).text
        case "forget" if id in held:
            await memory.forget(user, id)
            del held[id]
        case "forget_all":
            await memory.forget_all(user)
            held.clear()
        case "prefer":
            await memory.set_preferences(user, Preferences(words=number * 50))
            held["words"] = str(number * 50)


@asynccontextmanager
async def emptied(database: PostgresDatabase) -> AsyncIterator[UserMemory]:
    with database.transaction() as connection:
        for table in ("memories", "heads"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608
    yield create_shared_memory(Rows(database), database)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["in memory", "sqlite", "postgres"])
def test_two_users_never_mix(
    kind: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> None:
    database = request.getfixturevalue("postgres_database") if kind == "postgres" else None

    def opened() -> AbstractAsyncContextManager[UserMemory]:
        if database:
            return emptied(database)
        return in_process() if kind == "in memory" else open_memory(tmp_path_factory.mktemp("memory") / "m.sqlite3")

    @settings(max_examples=8 if database else 25, deadline=None)
    @given(st.lists(STEP, max_size=25))
    def interleaved(steps: list[Step]) -> None:
        asyncio.run(_play(opened, steps))

    interleaved()


async def _play(opened: Callable[[], AbstractAsyncContextManager[UserMemory]], steps: list[Step]) -> None:
    model: dict[str, dict[str, str]] = {user: {} for user in USERS}
    last = dict.fromkeys(USERS, 0)
    async with opened() as memory:
        for step in steps:
            await _do(memory, model, step, last)
        for user, held in model.items():
            words = held.pop("words", None)
            assert (await memory.preferences(user)).words == (int(words) if words else None)
            assert {fact.id: fact.text for fact in await memory.facts(user)} == held


@pytest.mark.slow
async def test_many_at_once_get_an_id_each(memory: UserMemory) -> None:
    facts = await asyncio.gather(*(memory.remember("ann", f"Fact {number}") for number in range(20)))
    assert len({fact.id for fact in facts}) == 20
    assert len(await memory.facts("ann")) == 20


# On disk ---------------------------------------------------------------------------------------------


async def test_what_was_remembered_is_there_when_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "below" / "memory.sqlite3"
    async with open_memory(file) as memory:
        await memory.set_preferences("ann", LIKED)
        await memory.remember("ann", "We report in euros")
        await memory.remember("ann", "To be forgotten")
        await memory.forget("ann", "M2")
    async with open_memory(file) as memory:
        assert await memory.preferences("ann") == LIKED
        assert await texts(memory) == ["We report in euros"]
        assert (await memory.remember("ann", "One more")).id == "M3"


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_only_its_owner_may_read_the_file_and_what_is_forgotten_is_gone_from_it(tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite3"
    async with open_memory(file) as memory:
        await memory.remember("ann", "Zanzibar is the code name")
        await memory.edit("ann", "M1", "Madagascar is the code name")
        await memory.remember("ann", "Something that stays")
        await memory.forget("ann", "M1")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept = contents(tmp_path)
    assert b"Something that stays" in kept
    assert b"Zanzibar" not in kept
    assert b"Madagascar" not in kept


WRITER = """
import asyncio, sys
from pathlib import Path
from openassay.engine.memory import open_memory

async def write():
    async with open_memory(Path(sys.argv[1])) as memory:
        for number in range(10):
            await memory.remember("ann", f"Fact {number} of {sys.argv[2]}")

asyncio.run(write())
"""


@pytest.mark.slow
async def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """Also the file is made by one of them while the others want to."""
    file = tmp_path / "memory.sqlite3"
    started = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, str(file), name) for name in ("x", "y", "z")
    ]
    assert [await process.wait() for process in started] == [0, 0, 0]
    async with open_memory(file) as memory:
        facts = await memory.facts("ann")
    assert len(facts) == 30
    assert [fact.id for fact in facts] == [f"M{number}" for number in range(1, 31)]


async def test_a_file_that_is_no_memory_is_told(tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite3"
    file.write_text("not a database, but long enough to be taken for a damaged one" * 20, encoding="utf-8")
    with pytest.raises(StorageError, match=r"memory\.sqlite3") as told:
        async with open_memory(file):
            pass
    assert "start afresh" in told.value.help


async def test_what_a_newer_version_wrote_is_told_and_can_be_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "memory.sqlite3"
    async with open_memory(file) as memory:
        await memory.set_preferences("ann", LIKED)
        await memory.remember("ann", "We report in euros")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE store SET value = '{\"later\": 1}' WHERE prefix LIKE '%.ann.%'")
    async with open_memory(file) as memory:
        with pytest.raises(StorageError, match="this version"):
            await memory.preferences("ann")
        with pytest.raises(StorageError, match="this version"):
            await memory.facts("ann")
        await memory.forget_all("ann")
        assert await memory.facts("ann") == []


@pytest.mark.parametrize(
    "kept", ["{", '"text"', '{"id": "first", "text": "x", "created": "2025-01-01", "updated": "2025-01-01"}']
)
async def test_a_fact_that_is_damaged_is_told(tmp_path: Path, kept: str) -> None:
    file = tmp_path / "memory.sqlite3"
    async with open_memory(file) as memory:
        await memory.remember("ann", "We report in euros")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE store SET value = ? WHERE prefix LIKE '%.facts'", (kept,))
    async with open_memory(file) as memory:
        with pytest.raises(StorageError) as told:
            await memory.find_relevant("ann", "What are euros?", limit=3)
    assert told.value.help


async def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StorageError) as told:
        async with open_memory(tmp_path / "file" / "memory.sqlite3"):
            pass
    assert "OPENASSAY_DATA_DIR" in told.value.help


# In the database -------------------------------------------------------------------------------------


@pytest.fixture
def database(postgres_database: PostgresDatabase) -> PostgresDatabase:
    return postgres_database


@pytest.mark.requirement("F-10")
async def test_what_one_machine_is_told_the_other_knows(postgres_address: str) -> None:
    with PostgresDatabase(postgres_address) as here, PostgresDatabase(postgres_address) as there:
        one, other = (create_shared_memory(Rows(database), database) for database in (here, there))
        await asyncio.gather(*(memory.remember("ann", f"Fact {n}") for n in range(8) for memory in (one, other)))
        await one.set_preferences("ann", LIKED)

        assert await texts(other) == await texts(one)
        assert len(await texts(one)) == 8  # both were told the same
        assert await other.preferences("ann") == LIKED
        await other.forget_all("ann")
        assert await one.facts("ann") == []


async def test_facts_are_sealed_and_encrypted_in_the_database(database: PostgresDatabase) -> None:
    rows = Rows(database, Seals(KEY, encrypt=True))
    memory = create_shared_memory(rows, database)
    await memory.remember("ann", "Zanzibar is the code name")
    await memory.remember("ann", "Something else")

    with database.connection() as connection:
        kept = connection.execute("SELECT value FROM memories").fetchall()
    assert len(kept) == 3
    assert "Zanzibar" not in str(kept)
    assert await texts(memory) == ["Zanzibar is the code name", "Something else"]
    assert await SqlIntegrity(rows).problems() == []
    with database.transaction() as connection:
        connection.execute("DELETE FROM memories WHERE key = 'M2'")
    assert any("user ann" in problem for problem in await SqlIntegrity(rows).problems())


async def test_whoever_writes_is_waited_for_and_then_told_of(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openassay.engine.memory.BUSY_SECONDS", 0.2)
    memory = create_shared_memory(Rows(database), database)
    with database.advisory_lock("openassay memory", 1):
        with pytest.raises(StorageError, match="lock timeout") as told:
            await memory.remember("ann", "We report in euros")
        assert told.value.retryable
        assert "try again" in told.value.help
        assert await memory.facts("ann") == []
    await memory.remember("ann", "We report in euros")


async def test_whoever_is_cancelled_while_waiting_keeps_nobody_out(database: PostgresDatabase) -> None:
    memory = create_shared_memory(Rows(database), database)
    with database.advisory_lock("openassay memory", 1):
        waiting = asyncio.create_task(memory.remember("ann", "We report in euros"))
        await asyncio.sleep(0.2)
        waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await memory.remember("ann", "We report in francs")).id == "M1"
