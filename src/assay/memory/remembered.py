"""What people want remembered, in anything that keeps items as LangGraph's Store does."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any, Protocol

from assay.errors import NotFoundError, StorageError, UsageError
from assay.memory.file import stored
from assay.memory.relevance import number, related
from assay.model.memory import LONGEST_FACT, Fact, Preferences
from assay.text.clean import clean, is_readable
from assay.text.words import fold

MOST_FACTS = 200  # of one person

_USER = re.compile(r"[A-Za-z0-9_-]{1,64}")
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
            with stored():
                await self._store.aput(place, "all", preferences.plain())

    async def facts(self, user: str) -> list[Fact]:
        place = (*_of(user), "facts")
        with stored():
            items = await self._store.asearch(place, limit=MOST_FACTS)
        with _readable_by_us(user):
            return sorted((Fact.model_validate(item.value) for item in items), key=number)

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
            with stored():
                await self._store.adelete((*_of(user), "facts"), fact.id)

    async def forget_all(self, user: str) -> None:
        """Also of what cannot be read any more. Ids go on where they were."""
        place = _of(user)
        async with self._alone():
            with stored():
                items = await self._store.asearch((*place, "facts"), limit=MOST_FACTS)
                deletions = [self._store.adelete((*place, "facts"), item.key) for item in items]
                await asyncio.gather(*deletions, self._store.adelete((*place, "preferences"), "all"))

    async def _next_id(self, user: str) -> str:
        last = await self._value(_of(user), "last")
        count = (last["number"] if last else 0) + 1
        with stored():  # before the fact: a number that a crash leaves out is no harm
            await self._store.aput(_of(user), "last", {"number": count})
        return f"M{count}"

    async def _keep(self, user: str, fact: Fact) -> None:
        with stored():
            await self._store.aput((*_of(user), "facts"), fact.id, fact.plain())

    async def _value(self, place: tuple[str, ...], key: str) -> dict[str, Any] | None:
        with stored():
            item = await self._store.aget(place, key)
        return item.value if item else None


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


@contextmanager
def _readable_by_us(user: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # a record that does not validate, or an id without a number
        raise StorageError(
            f"what is remembered of {user} was not written by this version of Assay",
            help="Upgrade Assay, or forget it: assay memory forget all",
        ) from error
