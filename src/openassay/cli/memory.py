"""`openassay memory`: what is remembered of the person, shown, changed and forgotten."""

import asyncio
import json as jsonlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from difflib import get_close_matches
from typing import TypeVar

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from openassay.cli.screen import open_console, to_one_line
from openassay.engine.memory import FILE, UserMemory, open_memory
from openassay.errors import ConfigurationError, NotFoundError, UsageError
from openassay.models.user import MemoryFact, Preferences
from openassay.nodes.preferences import language_code
from openassay.protocols import Memory
from openassay.search.registry import parse_host_or_source
from openassay.settings import Settings, load
from openassay.text.words import is_readable, pluralize

T = TypeVar("T")

ALLOWED = {
    "style": "academic, technical or executive",
    "words": "a number from 50 to 20,000",
    "prefer": "hosts or sources with commas between them, as in nasa.gov,arxiv",
    "avoid": "hosts or sources with commas between them, as in reddit.com,gdelt",
    "region": "a country or region, up to 80 characters",
    "language": "a language, as in German or de",
}
_OPPOSITE = {"prefer": "avoid", "avoid": "prefer"}
_MOST_LISTED = 12  # names of what is remembered


class MemoryEditor:
    """What is remembered of one person, and the words that change it."""

    def __init__(self, memory: Memory, user: str) -> None:
        self._memory = memory
        self._user = user

    async def list_preferences(self) -> list[tuple[str, str]]:
        """Preferences that are set, with how they are shown."""
        preferences = await self._memory.preferences(self._user)
        return [(name, shown) for name in ALLOWED if (shown := _format_preference(preferences, name))]

    async def facts(self) -> list[MemoryFact]:
        return await self._memory.facts(self._user)

    async def set(self, key: str, value: str) -> list[str]:
        """One preference; the others stay, but for an opposite one. Told in lines."""
        name = _parse_key(key)
        before = await self._memory.preferences(self._user)
        after = change_preference(before, name, value)
        await self._memory.set_preferences(self._user, after)
        told = [f"{name}: {_format_preference(after, name)}"]
        opposite = _OPPOSITE.get(name)
        if opposite and getattr(before, opposite) != getattr(after, opposite):
            told.append(f"{opposite}: {_format_preference(after, opposite) or 'nobody'}")
        if name == "language" and language_code(after) is None:
            told.append("The planner is told; sources cannot be asked in this language.")
        return told

    async def edit(self, id: str, text: str) -> str:
        fact = await self._memory.edit(self._user, id, text)
        return f"{fact.id}  {to_one_line(fact.text)}"

    async def forget(self, what: str) -> str:
        """A fact by its id or a preference by its name."""
        name = what.strip().lower()
        if name in ALLOWED:
            before = await self._memory.preferences(self._user)
            await self._memory.set_preferences(
                self._user, Preferences.model_validate(before.model_dump(exclude={name}))
            )
            return f"{name} is forgotten: the settings decide."
        try:
            await self._memory.forget(self._user, what)
        except NotFoundError as error:
            raise await self._make_unknown_error(what, error) from error
        return f"{name.upper()} is forgotten."

    async def _make_unknown_error(self, what: str, error: NotFoundError) -> NotFoundError:
        known = [name for name, _ in await self.list_preferences()] + [fact.id for fact in await self.facts()]
        some = ", ".join(known[:_MOST_LISTED]) + (" ..." if known[_MOST_LISTED:] else "")
        is_fact = re.fullmatch(r"m\d+", what.strip(), re.I)
        message = error.message if is_fact else f"nothing called {what.strip()[:80]!r} is remembered"
        return NotFoundError(message, help=f"There are: {some}." if known else "There are none.")


# Commands --------------------------------------------------------------------------------------------


def show_memory(json: bool = False) -> None:
    settings = _load_settings()

    async def look(memory: UserMemory) -> tuple[Preferences, list[MemoryFact]]:
        return await memory.preferences(settings.user), await memory.facts(settings.user)

    preferences, facts = _with_memory(settings, look)
    if json:
        told = {"user": settings.user, "preferences": preferences.plain(), "facts": [fact.plain() for fact in facts]}
        typer.echo(jsonlib.dumps(told, indent=2, ensure_ascii=False).encode())
        return
    console = open_console()
    if preferences == Preferences() and not facts:
        console.print(f"Nothing is remembered of {settings.user} yet. Try:")
        console.print(
            '  openassay memory set style executive\n  openassay memory remember "We report in euros"', style="dim"
        )
        return
    _show_preferences(console, preferences)
    _show_facts(console, facts)
    shared = settings.persistence.backend == "postgres"
    where = f"Remembered of {settings.user} in {'the database' if shared else settings.data_dir / FILE}"
    console.print(Text(f"\n{where}\nassay memory forget NAME forgets one of them", style="dim"), soft_wrap=True)


def set_preference(key: str, value: str) -> None:
    for line in _with_editor(lambda remembered: remembered.set(key, value)):
        typer.echo(line)


def remember_fact(text: str) -> None:
    settings = _load_settings()
    fact = _with_memory(settings, lambda memory: memory.remember(settings.user, text))
    typer.echo(f"{fact.id}  {to_one_line(fact.text)}")


def edit_fact(id: str, text: str) -> None:
    typer.echo(_with_editor(lambda remembered: remembered.edit(id, text)))


def forget_entry(what: str, yes: bool = False) -> None:
    """A fact by its id, a preference by its name, or all."""
    if what.strip().lower() == "all":
        _forget_all(_load_settings(), yes)
    else:
        typer.echo(_with_editor(lambda remembered: remembered.forget(what)), err=True)


def _with_editor(work: Callable[[MemoryEditor], Awaitable[T]]) -> T:
    settings = _load_settings()
    return _with_memory(settings, lambda memory: work(MemoryEditor(memory, settings.user)))


def _forget_all(settings: Settings, yes: bool) -> None:
    if not yes and not sys.stdin.isatty():
        raise UsageError("everything would be forgotten", help="Add --yes if that is what you want.")
    if not yes and not typer.confirm(f"Forget everything about {settings.user}?", err=True):
        typer.echo("Nothing was forgotten.", err=True)
        return
    _with_memory(settings, lambda memory: memory.forget_all(settings.user))
    typer.echo(f"Everything about {settings.user} is forgotten.", err=True)


# Preferences -----------------------------------------------------------------------------------------


def change_preference(before: Preferences, name: str, value: str) -> Preferences:
    """With one of them set; who is preferred from now on is no longer avoided, and the other way round."""
    fields = {**before.model_dump(), name: _parse_value(name, value)}
    if other := _OPPOSITE.get(name):
        fields[other] = tuple(one for one in fields[other] if one not in fields[name])
    try:
        return Preferences.model_validate(fields)
    except ValidationError as error:
        raise _make_value_error(name, value) from error


def _parse_value(name: str, value: str) -> object:
    said = " ".join(value.split())
    if not is_readable(said) or not any(map(str.isalnum, said)):
        raise _make_value_error(name, value)
    match name:
        case "prefer" | "avoid":
            return tuple(dict.fromkeys(parse_host_or_source(part, load()) for part in said.split(",") if part.strip()))
        case "words":
            return said.replace(",", "")
        case "style":
            return said.lower()
        case _:
            return said


def _parse_key(key: str) -> str:
    name = key.strip().lower()
    if name in ALLOWED:
        return name
    near = get_close_matches(name, ALLOWED, n=1)
    raise UsageError(
        f"{key!r} is no preference" + (f"; did you mean {near[0]}?" if near else ""),
        help=f"Preferences are {', '.join(ALLOWED)}. A fact is kept with: openassay memory remember TEXT",
    )


def _make_value_error(name: str, value: str) -> UsageError:
    return UsageError(f"{name} cannot be {value!r}", help=f"It takes {ALLOWED[name]}.")


def _format_preference(preferences: Preferences, name: str) -> str:
    value = getattr(preferences, name)
    return to_one_line(", ".join(value) if isinstance(value, tuple) else str(value or ""))


# Display ---------------------------------------------------------------------------------------------


def _show_preferences(console: Console, preferences: Preferences) -> None:
    rows = [(name, _format_preference(preferences, name)) for name in ALLOWED if _format_preference(preferences, name)]
    if rows:
        console.print(Text("Preferences", style="bold"))
        console.print(_make_grid(rows))


def _show_facts(console: Console, facts: list[MemoryFact]) -> None:
    if facts:
        console.print(Text(pluralize(len(facts), "fact").capitalize(), style="bold"))
        console.print(_make_grid([(fact.id, to_one_line(fact.text)) for fact in facts]))


def _make_grid(rows: list[tuple[str, str]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=1)
    grid.add_column(no_wrap=True)
    for name, text in rows:
        grid.add_row("", Text(name, style="blue"), Text(text))
    return grid


def _load_settings() -> Settings:
    settings = load()
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "nothing is remembered: persistence.backend is memory", help="Set it to sqlite, which is the default."
        )
    return settings


def _with_memory(settings: Settings, work: Callable[[UserMemory], Awaitable[T]]) -> T:
    async def run() -> T:
        async with _open_memory(settings) as memory:
            return await work(memory)

    return asyncio.run(run())


@asynccontextmanager
async def _open_memory(settings: Settings) -> AsyncIterator[UserMemory]:
    """What opens a database takes seconds to import, and a file needs none of it."""
    if settings.persistence.backend == "postgres":
        from openassay.bootstrap import open_user_memory

        async with open_user_memory(settings) as memory:
            yield memory
    else:
        async with open_memory(settings.data_dir / FILE) as memory:
            yield memory
