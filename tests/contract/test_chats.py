"""Which thread a conversation of a chat front end belongs to."""

from datetime import UTC, datetime, timedelta

import pytest

from openassay.errors import NotFoundError
from openassay.models.thread import Thread
from openassay.storage.sealed_rows import Rows
from openassay.storage.threads import SqlThreads
from openassay.storage.users import SqlChats

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clock:
    """Each look is a second later."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
async def chats(keyed_rows: Rows) -> SqlChats:
    threads = SqlThreads(keyed_rows)
    for id, owner in {"a": "ada", "b": "ben", "c": "ada"}.items():
        await threads.create(Thread(id=id, title="", created=NOON, updated=NOON, owner=owner))
    return SqlChats(keyed_rows, Clock())


@pytest.mark.slow
async def test_a_conversation_is_known_by_what_was_said_last(chats: SqlChats) -> None:
    await chats.add("a", "How fast?", "About 70.\n\nSources: S1")
    assert await chats.find_thread("ada", " How fast? ", "About 70. Sources: S1") == "a"
    assert await chats.find_thread("ada", "How fast?", "About 71.") is None
    assert await chats.find_thread("ben", "How fast?", "About 70. Sources: S1") is None, "it is not theirs"


@pytest.mark.slow
async def test_a_thread_that_has_gone_on_is_not_asked_from_an_earlier_point(chats: SqlChats) -> None:
    await chats.add("a", "first", "one")
    await chats.add("a", "second", "two")
    assert await chats.find_thread("ada", "first", "one") is None
    assert await chats.find_thread("ada", "second", "two") == "a"


@pytest.mark.slow
async def test_of_two_that_say_the_same_the_newest_is_meant(chats: SqlChats) -> None:
    await chats.add("a", "Hi", "Hello")
    await chats.add("c", "Hi", "Hello")
    await chats.add("b", "Hi", "Hello")
    assert await chats.find_thread("ada", "Hi", "Hello") == "c"


@pytest.mark.slow
async def test_it_goes_with_its_thread(chats: SqlChats, keyed_rows: Rows) -> None:
    await chats.add("a", "Hi", "Hello")
    await SqlThreads(keyed_rows).delete("a")
    assert await chats.find_thread("ada", "Hi", "Hello") is None
    with pytest.raises(NotFoundError):
        await chats.add("a", "Hi", "Hello")
