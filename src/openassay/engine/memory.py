"""What people want remembered, in anything that keeps items as LangGraph's Store does."""

import asyncio
import os
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from json import JSONDecodeError, dumps
from math import log
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import ValidationError

from openassay.errors import NotFoundError, StorageError, UsageError
from openassay.models.user import LONGEST_FACT, MemoryFact, Preferences
from openassay.search.registry import parse_host_or_source
from openassay.settings import Settings, load
from openassay.storage.locks import lock_handle
from openassay.storage.postgres import PostgresDatabase
from openassay.storage.sealed_rows import Rows
from openassay.storage.users import SqlMemories
from openassay.text.language import language_code
from openassay.text.words import clean_text, fold, is_readable, stems

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore
    from langgraph.store.sqlite.aio import AsyncSqliteStore


# The file in which one machine remembers: LangGraph's Store on SQLite, for the owner's eyes only.

FILE = "memory.sqlite3"  # in the data directory
MOST_ITEMS = 1_000_000  # of everybody
BUSY_SECONDS = 10


async def load_memories(path: Path) -> list[tuple[str, str, str, str]]:
    """What is remembered of anybody in a file: whose, where, under which key, and what."""
    if not await asyncio.to_thread(path.exists):
        return []
    async with open_store(path) as store:
        items = await store.asearch(("memory",), limit=MOST_ITEMS)
        return [(item.namespace[1], ".".join(item.namespace[2:]), item.key, dumps(item.value)) for item in items]


@asynccontextmanager
async def open_store(path: Path) -> "AsyncIterator[AsyncSqliteStore]":
    import aiosqlite
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    os.close(_open_file(path))
    opening = asyncio.ensure_future(aiosqlite.connect(path, isolation_level=None, timeout=BUSY_SECONDS))
    try:
        connection = await asyncio.shield(opening)
    except asyncio.CancelledError:  # given up halfway, its thread would call a loop that is closed
        await (await opening).close()
        raise
    try:
        store = AsyncSqliteStore(connection)
        async with lock_file(path):  # two at once would both add the same columns
            with translate_errors(path):
                await connection.execute("PRAGMA journal_mode = WAL")
                await connection.execute("PRAGMA secure_delete = ON")
                await store.setup()
        try:
            yield store
        finally:  # a Store only cancels its task when it is collected, and then nobody waits for its end
            if store._task is not None:
                store._task.cancel()
                await asyncio.wait([store._task])
    finally:
        await connection.close()


@asynccontextmanager
async def lock_file(path: Path) -> AsyncIterator[None]:
    """One writer at a time, among all processes. Who dies gives the lock back."""
    beside = path.with_suffix(".lock")
    handle, until = _open_file(beside), monotonic() + BUSY_SECONDS
    try:
        while True:
            try:
                lock_handle(handle)
                break
            except BlockingIOError as error:
                if monotonic() > until:
                    raise StorageError(
                        "another process is writing to the memory", help="Try again later.", retryable=True, path=beside
                    ) from error
            await asyncio.sleep(0.01)
        yield
    finally:
        os.close(handle)  # the file stays: were it removed, two processes could each lock one of the same name


def _open_file(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(
            f"cannot use {path}: {error.strerror}",
            help="Set OPENASSAY_DATA_DIR to a folder you can write to.",
            path=path,
        ) from error


@contextmanager
def translate_errors(path: Path | None = None) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, JSONDecodeError) as error:
        where = f"{path}: " if path else "the memory cannot be used: "
        raise StorageError(
            f"{where}{error}", help=f"Move {FILE} away and start afresh, or restore a copy.", path=path
        ) from error


# Which of the facts somebody wants remembered bear on a question.

GENERAL = 1.5  # what a fact about the person is worth for any question: a word that every third or fourth fact has
_ABOUT_ONESELF = re.compile(
    r"^\W*(?:i|ich|je|yo)\b|\b(?:we|my|our|always|never|wir|mein\w*|unser\w*|immer|nie|nous|notre|toujours|jamais"
    r"|nosotros|nuestr[oa]s?|siempre|nunca)\b",
    re.I,
)


def rank_facts(facts: Sequence[MemoryFact], question: str) -> list[MemoryFact]:
    """Those that share a word with a question, the rarer among the facts the better, and those about the person, which
    bear on everything; of equals the newest first."""
    said = {fact.id: set(stems(fact.text)) for fact in facts}
    common = Counter(word for words in said.values() for word in words)
    asked = set(stems(question))

    def worth(fact: MemoryFact) -> float:
        shared = sorted(asked & said[fact.id])
        general = GENERAL if _ABOUT_ONESELF.search(fact.text) else 0.0
        return round(general + sum(log(1 + len(facts) / common[word]) for word in shared), 9)

    counting = [fact for fact in facts if worth(fact) > 0]
    return sorted(counting, key=lambda fact: (-worth(fact), -fact_number(fact)))


def fact_number(fact: MemoryFact) -> int:
    return int(fact.id[1:])


MOST_FACTS = 200  # of one person

_USER = re.compile(r"[A-Za-z0-9_-]{1,64}")
WriteLock = Callable[[], AbstractAsyncContextManager[None]]


class UserMemory:
    """What people want remembered across threads; nobody sees what is another's. A user without a valid name is
    refused with UsageError, an id that is not the user's with NotFoundError. A Store cannot compare and set, so
    writers go one by one through `alone`; without one, those of this object do."""

    def __init__(self, store: "BaseStore | SqlMemories", alone: WriteLock | None = None) -> None:
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._store = store
        lock = asyncio.Lock()
        self._alone: WriteLock = alone or (lambda: lock)

    @asynccontextmanager
    async def _lock_writes(self) -> AsyncIterator[None]:
        async with self._alone():
            with translate_errors():
                yield

    async def preferences(self, user: str) -> Preferences:
        with translate_errors():
            item = await self._store.aget((*_user_namespace(user), "preferences"), "all")
        with _translate_invalid(user):
            return Preferences.model_validate(item.value if item else {})

    async def set_preferences(self, user: str, preferences: Preferences) -> None:
        async with self._lock_writes():
            await self._store.aput((*_user_namespace(user), "preferences"), "all", preferences.plain())

    async def facts(self, user: str) -> list[MemoryFact]:
        with translate_errors():
            items = await self._store.asearch((*_user_namespace(user), "facts"), limit=MOST_FACTS)
        with _translate_invalid(user):
            return sorted((MemoryFact.model_validate(item.value) for item in items), key=fact_number)

    async def find_relevant(self, user: str, question: str, *, limit: int) -> list[MemoryFact]:
        return rank_facts(await self.facts(user), question)[: max(limit, 0)]

    async def remember(self, user: str, text: str) -> MemoryFact:
        said, place = _clean_text(text), _user_namespace(user)
        async with self._lock_writes():
            facts = await self.facts(user)
            if known := _find_same(facts, said):
                return known
            if len(facts) >= MOST_FACTS:
                raise UsageError(
                    f"{MOST_FACTS} facts are remembered already, which is the most", help="Forget one of them first."
                )
            last = await self._store.aget(place, "last")
            number = (last.value["number"] if last else 0) + 1
            await self._store.aput(place, "last", {"number": number})  # first: a number that a crash skips is no harm
            now = self.now()
            fact = MemoryFact(id=f"M{number}", text=said, created=now, updated=now)
            await self._store.aput((*place, "facts"), fact.id, fact.plain())
            return fact

    async def edit(self, user: str, id: str, text: str) -> MemoryFact:
        said = _clean_text(text)
        async with self._lock_writes():
            facts = await self.facts(user)
            fact = _get_fact(facts, id)
            if (known := _find_same(facts, said)) and known.id != fact.id:
                raise UsageError(f"{known.id} says that already", help=f"Forget {fact.id} if it is not needed.")
            edited = fact.model_copy(update={"text": said, "updated": self.now()})
            await self._store.aput((*_user_namespace(user), "facts"), fact.id, edited.plain())
            return edited

    async def forget(self, user: str, id: str) -> None:
        async with self._lock_writes():
            fact = _get_fact(await self.facts(user), id)
            await self._store.adelete((*_user_namespace(user), "facts"), fact.id)

    async def forget_all(self, user: str) -> None:
        """Forget also what cannot be read any more. Ids go on where they were."""
        place = _user_namespace(user)
        async with self._lock_writes():
            for item in await self._store.asearch((*place, "facts"), limit=MOST_FACTS):
                await self._store.adelete((*place, "facts"), item.key)
            await self._store.adelete((*place, "preferences"), "all")


def _user_namespace(user: str) -> tuple[str, str]:
    if not _USER.fullmatch(user):
        raise UsageError(
            f"{user!r} cannot be the name of a user", help="Use 1 to 64 letters, digits, hyphens and underscores."
        )
    return "memory", user


def _clean_text(text: str) -> str:
    """On one line, without what cannot be seen."""
    said = " ".join(clean_text(text).split())
    if not is_readable(text) or not any(mark.isalnum() for mark in said):
        raise UsageError("that is not readable text", help='Say it in words: "We report in euros".')
    if len(said) > LONGEST_FACT:
        raise UsageError(
            f"a fact has at most {LONGEST_FACT} characters, not {len(said):,}",
            help="Shorten it, or put it into a file given with --docs.",
        )
    return said


def _find_same(facts: Sequence[MemoryFact], said: str) -> MemoryFact | None:
    """Find what says the same: case, accents and the full stop make no other fact."""
    wanted = fold(said).rstrip(" .!")
    return next((fact for fact in facts if fold(fact.text).rstrip(" .!") == wanted), None)


def _get_fact(facts: Sequence[MemoryFact], id: str) -> MemoryFact:
    for fact in facts:
        if fact.id == id.strip().upper():
            return fact
    some = ", ".join(fact.id for fact in facts[:12]) + (" ..." if len(facts) > 12 else "")
    raise NotFoundError(f"no fact {id} is remembered", help=f"There are: {some}." if facts else "There are none.")


@contextmanager
def _translate_invalid(user: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # a record that does not validate, or an id without a number
        raise StorageError(
            f"what is remembered of {user} was not written by this version of OpenAssay",
            help="Upgrade OpenAssay, or forget it: openassay memory forget all",
        ) from error


# Where it is kept: in a file on one machine, in the database where there are several.


def create_shared_memory(rows: Rows, database: PostgresDatabase) -> UserMemory:
    """Remember in the database of the rows, for every machine that uses it."""
    store = SqlMemories(rows, lambda: database.advisory_lock("openassay memory", BUSY_SECONDS))
    return UserMemory(store, store.exclusive)


@asynccontextmanager
async def open_memory(path: Path) -> AsyncIterator[UserMemory]:
    """Remember in a file for the owner's eyes only, made if there is none. What is forgotten is overwritten in it."""
    async with open_store(path) as store:
        yield UserMemory(store, lambda: lock_file(path))


# What is remembered of one person, changed by words: a preference by its name, a fact by its id.

ALLOWED_VALUES = {
    "style": "academic, technical or executive",
    "words": "a number from 50 to 20,000",
    "prefer": "hosts or sources with commas between them, as in nasa.gov,arxiv",
    "avoid": "hosts or sources with commas between them, as in reddit.com,gdelt",
    "region": "a country or region, up to 80 characters",
    "language": "a language, as in German or de",
}
MAX_LISTED = 12  # names of what is remembered
_OPPOSITE = {"prefer": "avoid", "avoid": "prefer"}


async def set_preference(memory: UserMemory, user: str, key: str, value: str) -> list[str]:
    """Set one preference and say so in lines; the others stay, but for what contradicts it."""
    name = key.strip().lower()
    if name not in ALLOWED_VALUES:
        near = get_close_matches(name, ALLOWED_VALUES, n=1)
        known = f"Preferences are {', '.join(ALLOWED_VALUES)}."
        raise UsageError(
            f"{key!r} is no preference" + (f"; did you mean {near[0]}?" if near else ""),
            help=f"{known} A fact is kept with: openassay memory remember TEXT",
        )
    before = await memory.preferences(user)
    after = change_preference(before, name, value)
    await memory.set_preferences(user, after)
    shown = dict(format_preferences(after))
    lines = [f"{name}: {shown.get(name, '')}"]
    opposite = _OPPOSITE.get(name)
    if opposite and getattr(before, opposite) != getattr(after, opposite):
        lines.append(f"{opposite}: {shown.get(opposite, 'nobody')}")
    if name == "language" and language_code(after.language) is None:
        lines.append("The planner knows; sources cannot be asked in this language.")
    return lines


async def forget_entry(memory: UserMemory, user: str, what: str) -> str:
    """Forget a fact by its id or a preference by its name, and say so."""
    name = what.strip().lower()
    if name in ALLOWED_VALUES:
        before = await memory.preferences(user)
        await memory.set_preferences(user, Preferences.model_validate(before.model_dump(exclude={name})))
        return f"{name} is forgotten: the settings decide."
    try:
        await memory.forget(user, what)
    except NotFoundError as error:
        names = dict(format_preferences(await memory.preferences(user)))
        known = [*names, *(fact.id for fact in await memory.facts(user))]
        some = ", ".join(known[:MAX_LISTED]) + (" ..." if known[MAX_LISTED:] else "")
        is_fact = re.fullmatch(r"m\d+", what.strip(), re.I)
        message = error.message if is_fact else f"nothing called {what.strip()[:80]!r} is remembered"
        raise NotFoundError(message, help=f"There are: {some}." if known else "There are none.") from error
    return f"{name.upper()} is forgotten."


def format_preferences(preferences: Preferences) -> list[tuple[str, str]]:
    values = {name: getattr(preferences, name) for name in ALLOWED_VALUES}
    return [
        (name, ", ".join(value) if isinstance(value, tuple) else str(value)) for name, value in values.items() if value
    ]


def parse_hosts_or_sources(names: Iterable[str], settings: Settings) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_host_or_source(name, settings) for name in names))


def change_preference(before: Preferences, name: str, value: str) -> Preferences:
    """Set one preference; what is preferred from now on is no longer avoided, and the other way round."""
    refused = UsageError(f"{name} cannot be {value!r}", help=f"It takes {ALLOWED_VALUES[name]}.")
    text = " ".join(value.split())
    if not is_readable(text) or not any(map(str.isalnum, text)):
        raise refused
    parsed: object = text
    if name in _OPPOSITE:
        parsed = parse_hosts_or_sources([part for part in text.split(",") if part.strip()], load())
    elif name == "words":
        parsed = text.replace(",", "")
    elif name == "style":
        parsed = text.lower()
    fields = {**before.model_dump(), name: parsed}
    if other := _OPPOSITE.get(name):
        fields[other] = tuple(one for one in fields[other] if one not in fields[name])
    try:
        return Preferences.model_validate(fields)
    except ValidationError as error:
        raise refused from error
