"""/remember and /memory: what `assay memory` does, without leaving the conversation."""

from typing import TYPE_CHECKING

import typer

from assay.cli.asking import can_ask
from assay.cli.lines import one_line
from assay.cli.memory import Remembered
from assay.cli.screen import tell
from assay.errors import UsageError

if TYPE_CHECKING:
    from assay.cli.chat import Talk

_WAYS = "As in: /memory set style executive, /memory edit M1 TEXT, /memory forget M1. /remember TEXT keeps a fact."


async def remember(talk: "Talk", text: str) -> None:
    if not text:
        raise UsageError("say what to remember", help="As in: /remember we report in euros")
    fact = await talk.engine.memory.remember(talk.settings.user, text)
    tell(f"Remembered as {fact.id}. Forget it with: /memory forget {fact.id}")


async def memory(talk: "Talk", said: str) -> None:
    kept = Remembered(talk.engine.memory, talk.settings.user)
    match said.split(None, 2):
        case []:
            await _show(kept)
        case ["set", key, value]:
            for line in await kept.set(key, value):
                typer.echo(line)
        case ["edit", id, text]:
            typer.echo(await kept.edit(id, text))
        case ["remember", *_]:
            await remember(talk, said.partition(" ")[2].strip())
        case ["forget", "all"]:
            await _forget_all(talk)
        case ["forget", what]:
            tell(await kept.forget(what))
        case _:
            raise UsageError(f"“{one_line(said)}” is not understood", help=_WAYS)


async def _show(kept: Remembered) -> None:
    rows = [*await kept.preferred(), *((fact.id, one_line(fact.text)) for fact in await kept.facts())]
    for name, text in rows:
        typer.echo(f"{name:8}  {text}")
    tell(_WAYS if rows else "Nothing is remembered of you. As in: /remember we report in euros", "dim")


async def _forget_all(talk: "Talk") -> None:
    user = talk.settings.user
    if not can_ask():
        raise UsageError(
            "everything would be forgotten", help="If that is what you want: assay memory forget all --yes"
        )
    if await talk.agrees(f"Forget everything about {user}? [y/N] "):
        await talk.engine.memory.forget_all(user)
        tell(f"Everything about {user} is forgotten.")
    else:
        tell("Nothing was forgotten.")
