"""What people want remembered: in LangGraph's Store on one machine, in the database where there are several.

    ("memory", user, "preferences")  "all"   their preferences
    ("memory", user, "facts")        "M3"    one fact
    ("memory", user)                 "last"  the highest number a fact has had, so that no id is given twice

Every item is named in full: two people share no namespace, whatever they are called.
"""

import asyncio
import os
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from json import JSONDecodeError, dumps
from math import log
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from assay.errors import NotFoundError, StorageError, UsageError
from assay.model.memory import LONGEST_FACT, Fact, Preferences
from assay.storage.flock import lock
from assay.storage.memories import SqlMemories
from assay.storage.postgres import PostgresDatabase
from assay.storage.rows import Rows
from assay.text.clean import clean, is_readable
from assay.text.words import fold, stems

if TYPE_CHECKING:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

FILE = "memory.sqlite3"  # in the data directory
MOST_FACTS = 200  # of one person
MOST_ITEMS = 1_000_000  # of everybody
BUSY_SECONDS = 10
GENERAL = 1.5  # what a fact about the person is worth for any question: a word that every third or fourth fact has

_USER = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ABOUT_ONESELF = re.compile(
    r"^\W*(?:i|ich|je|yo)\b|\b(?:we|my|our|always|never|wir|mein\w*|unser\w*|immer|nie|nous|notre|toujours|jamais"
    r"|nosotros|nuestr[oa]s?|siempre|nunca)\b",
    re.I,
)
Alone = Callable[[], AbstractAsyncContextManager[None]]
Namespace = tuple[str, ...]


class Item(Protocol):
    @property
    def key(self) -> str: ...

    @property
    def value(self) -> dict[str, Any]: ...


class Store(Protocol):
    """What is needed of LangGraph's Store."""

    async def aget(self, namespace: Namespace, key: str) -> Item | None: ...

    async def asearch(self, namespace: Namespace, /, *, limit: int) -> Sequence[Item]: ...

    async def aput(self, namespace: Namespace, key: str, value: dict[str, Any]) -> None: ...

    async def adelete(self, namespace: Namespace, key: str) -> None: ...


class StoreMemory:
    """A ports.Memory. A Store cannot compare and set, so writers go one by one through `alone`; without one, those of
    this object do."""

    def __init__(
        self, store: Store, now: Callable[[], datetime] = lambda: datetime.now(UTC), alone: Alone | None = None
    ) -> None:
        self._store = store
        self._now = now
        lock = asyncio.Lock()
        self._alone: Alone = alone or (lambda: lock)

    async def preferences(self, user: str) -> Preferences:
        value = await self._value((*_of(user), "preferences"), "all")
        with _readable_by_us(user):
            return Preferences.model_validate(value or {})

    async def prefer(self, user: str, preferences: Preferences) -> None:
        place = (*_of(user), "preferences")
        async with self._alone():
            with _stored():
                await self._store.aput(place, "all", preferences.plain())

    async def facts(self, user: str) -> list[Fact]:
        place = (*_of(user), "facts")
        with _stored():
            items = await self._store.asearch(place, limit=MOST_FACTS)
        with _readable_by_us(user):
            return sorted((Fact.model_validate(item.value) for item in items), key=_number)

    async def relevant(self, user: str, question: str, *, limit: int) -> list[Fact]:
        return related(await self.facts(user), question)[: max(limit, 0)]

    async def remember(self, user: str, text: str) -> Fact:
        said = _said(text)
        async with self._alone():
            facts = await self.facts(user)
            if known := _same(facts, said):
                return known
            if len(facts) >= MOST_FACTS:
                raise UsageError(
                    f"{MOST_FACTS} facts are remembered already, which is the most", help="Forget one of them first."
                )
            now = self._now()
            fact = Fact(id=await self._next_id(user), text=said, created=now, updated=now)
            await self._keep(user, fact)
            return fact

    async def edit(self, user: str, id: str, text: str) -> Fact:
        said = _said(text)
        async with self._alone():
            facts = await self.facts(user)
            fact = _named(facts, id)
            if (known := _same(facts, said)) and known.id != fact.id:
                raise UsageError(f"{known.id} says that already", help=f"Forget {fact.id} if it is not needed.")
            edited = fact.model_copy(update={"text": said, "updated": self._now()})
            await self._keep(user, edited)
            return edited

    async def forget(self, user: str, id: str) -> None:
        async with self._alone():
            fact = _named(await self.facts(user), id)
            with _stored():
                await self._store.adelete((*_of(user), "facts"), fact.id)

    async def forget_all(self, user: str) -> None:
        """Also of what cannot be read any more. Ids go on where they were."""
        place = _of(user)
        async with self._alone():
            with _stored():
                items = await self._store.asearch((*place, "facts"), limit=MOST_FACTS)
                deletions = [self._store.adelete((*place, "facts"), item.key) for item in items]
                await asyncio.gather(*deletions, self._store.adelete((*place, "preferences"), "all"))

    async def _next_id(self, user: str) -> str:
        last = await self._value(_of(user), "last")
        number = (last["number"] if last else 0) + 1
        with _stored():  # before the fact: a number that a crash leaves out is no harm
            await self._store.aput(_of(user), "last", {"number": number})
        return f"M{number}"

    async def _keep(self, user: str, fact: Fact) -> None:
        with _stored():
            await self._store.aput((*_of(user), "facts"), fact.id, fact.plain())

    async def _value(self, place: tuple[str, ...], key: str) -> dict[str, Any] | None:
        with _stored():
            item = await self._store.aget(place, key)
        return item.value if item else None


def related(facts: Sequence[Fact], question: str) -> list[Fact]:
    """Those that share a word with a question, the rarer among the facts the better, and those about the person, which
    bear on everything; of equals the newest first."""
    said = {fact.id: set(stems(fact.text)) for fact in facts}
    common = Counter(word for words in said.values() for word in words)
    asked = set(stems(question))

    def worth(fact: Fact) -> float:
        shared = sorted(asked & said[fact.id])
        general = GENERAL if _ABOUT_ONESELF.search(fact.text) else 0.0
        return round(general + sum(log(1 + len(facts) / common[word]) for word in shared), 9)

    counting = [fact for fact in facts if worth(fact) > 0]
    return sorted(counting, key=lambda fact: (-worth(fact), -_number(fact)))


def _of(user: str) -> tuple[str, str]:
    if not _USER.fullmatch(user):
        raise UsageError(
            f"{user!r} cannot be the name of a user", help="Use 1 to 64 letters, digits, hyphens and underscores."
        )
    return "memory", user


def _said(text: str) -> str:
    """On one line, without what cannot be seen."""
    said = " ".join(clean(text).split())
    if not is_readable(text) or not any(mark.isalnum() for mark in said):
        raise UsageError("that is not readable text", help='Say it in words: "We report in euros".')
    if len(said) > LONGEST_FACT:
        raise UsageError(
            f"a fact has at most {LONGEST_FACT} characters, not {len(said):,}",
            help="Shorten it, or put it into a file given with --docs.",
        )
    return said


def _same(facts: Sequence[Fact], said: str) -> Fact | None:
    return next((fact for fact in facts if _bare(fact.text) == _bare(said)), None)


def _bare(text: str) -> str:
    """Case, accents and the full stop make no other fact."""
    return fold(text).rstrip(" .!")


def _named(facts: Sequence[Fact], id: str) -> Fact:
    for fact in facts:
        if fact.id == id.strip().upper():
            return fact
    some = ", ".join(fact.id for fact in facts[:12]) + (" ..." if len(facts) > 12 else "")
    raise NotFoundError(f"no fact {id} is remembered", help=f"There are: {some}." if facts else "There are none.")


def _number(fact: Fact) -> int:
    return int(fact.id[1:])


# Storage ---------------------------------------------------------------------------------------------


def shared_memory(
    rows: Rows, database: PostgresDatabase, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> StoreMemory:
    """In the database of the rows, for every machine that uses it."""
    store = SqlMemories(rows, lambda: database.alone("assay memory", BUSY_SECONDS))
    return StoreMemory(store, now, store.alone)


@asynccontextmanager
async def open_memory(
    path: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[StoreMemory]:
    """On a file for the owner's eyes only, made if there is none. What is forgotten is overwritten in it."""

    def alone() -> AbstractAsyncContextManager[None]:
        return _alone(path.with_suffix(".lock"))

    async with _store(path, alone) as store:
        yield StoreMemory(store, now, alone)


async def all_memories(path: Path) -> list[tuple[str, str, str, str]]:
    """What is remembered of anybody in a file: whose, where, under which key, and what."""
    if not await asyncio.to_thread(path.exists):
        return []
    async with _store(path, lambda: _alone(path.with_suffix(".lock"))) as store:
        items = await store.asearch(("memory",), limit=MOST_ITEMS)
        return [(item.namespace[1], ".".join(item.namespace[2:]), item.key, dumps(item.value)) for item in items]


@asynccontextmanager
async def _store(path: Path, alone: Alone) -> "AsyncIterator[AsyncSqliteStore]":
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    os.close(_opened(path))
    async with aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS) as connection:
        store = AsyncSqliteStore(connection)
        async with alone():  # two at once would both add the same columns
            with _stored(path):
                await connection.execute("PRAGMA journal_mode = WAL")
                await connection.execute("PRAGMA secure_delete = ON")
                await store.setup()
        try:
            yield store
        finally:
            await _ended(store._task)


async def _ended(task: "asyncio.Task[None] | None") -> None:
    """A Store's task is only cancelled when the Store is collected, and then nobody waits for its end."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[None]:
    """One writer at a time, among all processes. Who dies gives the lock back."""
    handle = _opened(path)
    try:
        await _locked(handle, path)
        yield
    finally:
        os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(
            f"cannot use {path}: {error.strerror}", help="Set ASSAY_DATA_DIR to a folder you can write to.", path=path
        ) from error


async def _locked(handle: int, path: Path) -> None:
    until = monotonic() + BUSY_SECONDS
    while True:
        try:
            return lock(handle)
        except BlockingIOError as error:
            if monotonic() > until:
                raise StorageError(
                    "another process is writing to the memory", help="Try again later.", retryable=True, path=path
                ) from error
        await asyncio.sleep(0.01)


@contextmanager
def _stored(path: Path | None = None) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, JSONDecodeError) as error:
        where = f"{path}: " if path else "the memory cannot be used: "
        raise StorageError(
            f"{where}{error}", help=f"Move {FILE} away and start afresh, or restore a copy.", path=path
        ) from error


@contextmanager
def _readable_by_us(user: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # a record that does not validate, or an id without a number
        raise StorageError(
            f"what is remembered of {user} was not written by this version of Assay",
            help="Upgrade Assay, or forget it: assay memory forget all",
        ) from error
