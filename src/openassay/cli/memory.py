"""`openassay memory`: what is remembered of the person, shown, changed and forgotten."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from openassay.cli.options import group, json_option
from openassay.cli.screen import open_console, print_json, to_one_line
from openassay.errors import ConfigurationError, UsageError
from openassay.models.user import MemoryFact, Preferences
from openassay.settings import Settings, load
from openassay.text.words import pluralize

if TYPE_CHECKING:
    from openassay.engine.memory import UserMemory

T = TypeVar("T")
app = group("Show, change and forget what is remembered about you across threads.")
Words = Annotated[str, typer.Argument(metavar="TEXT")]


@app.callback()
def memory(context: typer.Context, json: Annotated[bool, json_option("preferences and facts")] = False) -> None:
    """Show what is remembered about you; or change it."""
    if context.invoked_subcommand is not None:
        return None
    from openassay.engine.memory import FILE, format_preferences

    settings = _load_settings()

    async def look(memory: UserMemory) -> tuple[Preferences, list[MemoryFact]]:
        return await memory.preferences(settings.user), await memory.facts(settings.user)

    preferences, facts = _with_memory(settings, look)
    if json:
        known = {"user": settings.user, "preferences": preferences.plain(), "facts": [fact.plain() for fact in facts]}
        return print_json(known)
    console = open_console()
    if preferences == Preferences() and not facts:
        console.print(f"Nothing is remembered about {settings.user} yet. Try:")
        examples = '  openassay memory set style executive\n  openassay memory remember "We report in euros"'
        return console.print(examples, style="dim")
    for heading, rows in (
        ("Preferences", format_preferences(preferences)),
        (pluralize(len(facts), "fact").capitalize(), [(fact.id, fact.text) for fact in facts]),
    ):
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=1)
        grid.add_column(no_wrap=True)
        for name, text in rows:
            grid.add_row("", Text(name, style="blue"), Text(to_one_line(text)))
        if rows:
            console.print(Text(heading, style="bold"))
            console.print(grid)
    shared = settings.persistence.backend == "postgres"
    where = f"Remembered about {settings.user} in {'the database' if shared else settings.data_dir / FILE}"
    hint = "openassay memory forget NAME forgets one of them"
    return console.print(Text(f"\n{where}\n{hint}", style="dim"), soft_wrap=True)


@app.command("set")
def set_preference(
    key: Annotated[str, typer.Argument(metavar="KEY", help="style, words, prefer, avoid, region or language.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Several hosts or sources with commas between them.")],
) -> None:
    """Remember a preference."""
    from openassay.engine import memory as engine

    settings = _load_settings()
    for line in _with_memory(settings, lambda memory: engine.set_preference(memory, settings.user, key, value)):
        typer.echo(to_one_line(line))


@app.command("remember")
def remember_fact(text: Words) -> None:
    """Remember a fact, such as "We report in euros"."""
    settings = _load_settings()
    fact = _with_memory(settings, lambda memory: memory.remember(settings.user, text))
    typer.echo(f"{fact.id}  {to_one_line(fact.text)}")


@app.command("edit")
def edit_fact(id: Annotated[str, typer.Argument(metavar="ID", help="Of a fact, such as M2.")], text: Words) -> None:
    """Reword a fact."""
    settings = _load_settings()
    fact = _with_memory(settings, lambda memory: memory.edit(settings.user, id, text))
    typer.echo(f"{fact.id}  {to_one_line(fact.text)}")


@app.command("forget")
def forget_entry(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="A fact's id, a preference's name, or all.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether all is meant.")] = False,
) -> None:
    """Forget something for good."""
    from openassay.engine import memory as engine

    settings = _load_settings()
    if what.strip().lower() != "all":
        return typer.echo(
            _with_memory(settings, lambda memory: engine.forget_entry(memory, settings.user, what)), err=True
        )
    if not yes and not sys.stdin.isatty():
        raise UsageError("everything would be forgotten", help="Add --yes if that is what you want.")
    if not yes and not typer.confirm(f"Forget everything about {settings.user}?", err=True):
        return typer.echo("Nothing was forgotten.", err=True)
    _with_memory(settings, lambda memory: memory.forget_all(settings.user))
    return typer.echo(f"Everything about {settings.user} is forgotten.", err=True)


def _load_settings() -> Settings:
    settings = load()
    if settings.persistence.backend == "memory":
        raise ConfigurationError(
            "nothing is remembered: persistence.backend is memory", help="Set it to sqlite, which is the default."
        )
    return settings


def _with_memory(settings: Settings, work: Callable[[UserMemory], Awaitable[T]]) -> T:
    async def run() -> T:
        if settings.persistence.backend == "postgres":
            from openassay.bootstrap import open_user_memory  # what opens a database takes seconds to import

            opened = open_user_memory(settings)
        else:
            from openassay.engine.memory import FILE, open_memory

            opened = open_memory(settings.data_dir / FILE)
        async with opened as memory:
            return await work(memory)

    return asyncio.run(run())
