"""`assay storage` and `assay threads check`: what is stored, held against what was written."""

import asyncio

import typer

from assay import upkeep
from assay.bootstrap import open_engine
from assay.cli.lines import one_line
from assay.cli.screen import tell
from assay.errors import UsageError
from assay.settings import load
from assay.text.words import counted


def check(thread: str | None) -> None:
    found = asyncio.run(_problems(thread))
    for problem in found:
        typer.echo(one_line(problem))
    what = f"Thread {thread}" if thread else "Everything"
    if found:
        tell(f"{counted(len(found), 'problem')}. Restore a copy, or delete the thread and ask again.")
        raise typer.Exit(1)
    tell(f"{what} is what was written.")


async def _problems(thread: str | None) -> list[str]:
    async with open_engine(load()) as engine:
        return await engine.problems(thread)


def seal(encrypt: bool | None, *, trust_unsealed: bool) -> None:
    settings = load()
    if settings.keys.assay_storage_key is None and settings.keys.assay_storage_key_before is None:
        raise UsageError(
            "there is no key to seal with",
            help="Set ASSAY_STORAGE_KEY; to give a key up, set it as ASSAY_STORAGE_KEY_BEFORE instead.",
        )
    wanted = settings.persistence.encrypt if encrypt is None else encrypt
    rows = asyncio.run(upkeep.seal(settings, encrypt=wanted, trust_unsealed=trust_unsealed))
    how = "with the key" if settings.keys.assay_storage_key else "without a key"
    tell(f"{counted(rows, 'row')} sealed {how}{', encrypted' if wanted else ''}.")
    if wanted != settings.persistence.encrypt:
        tell(f"Set persistence.encrypt to {str(wanted).lower()} before anything else is done.")
    if settings.keys.assay_storage_key_before:
        tell("ASSAY_STORAGE_KEY_BEFORE is not needed any more.")
