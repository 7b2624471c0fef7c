"""`assay sources`: who can be asked. `assay fetch`: one page, read as research reads it."""

import asyncio
import json as jsonlib
from collections.abc import Sequence
from typing import Any

import typer

from assay.bootstrap import open_world
from assay.cli.lines import dollars, fitted, one_line
from assay.errors import ReadError
from assay.ports import Page, Remote, Source
from assay.settings import Settings, load

KEEP_NOTHING: dict[str, Any] = {
    "persistence": {"backend": "memory"}, "cache": {"backend": "memory"}, "fleet": {"signals": "process"}
}  # fmt: skip


def sources(as_json: bool) -> None:
    settings = load(**KEEP_NOTHING)
    listed = asyncio.run(rows(settings))
    if as_json:
        typer.echo(jsonlib.dumps(listed, indent=2))
        return
    for row in listed:
        state = "ok " if row["available"] else "-  "
        typer.echo(fitted(f"{state} {row['name']:17} {', '.join(row['types']):9} {_terms(row)}", 32))


async def rows(settings: Settings) -> list[dict[str, Any]]:
    async with open_world(settings) as world:
        return [_row(source, settings) for source in world.sources.installed()]


def _row(source: Source, settings: Settings) -> dict[str, Any]:
    row: dict[str, Any] = {"name": source.name, "available": source.is_available(), "remote": False, "types": ["own"]}
    if not isinstance(source, Remote):
        return row
    terms = source.terms
    return {
        **row, "remote": True, "types": list(source.types), "available": row["available"] and not settings.offline,
        "usd": terms.usd, "per_minute": terms.per_minute, "per_day": terms.per_day,
        "key": terms.key.upper() if terms.key else None, "key_required": terms.key_required,
        "needs": terms.needs,
    }  # fmt: skip


def _terms(row: dict[str, Any]) -> str:
    if not row["remote"]:
        return "on this machine" if row["available"] else "needs --docs PATH"
    price = f"{dollars(row['usd'])} a search" if row["usd"] else "free"
    parts = [price, f"{row['per_minute']:g} a minute"]
    if row["per_day"]:
        parts.append(f"{row['per_day']} a day")
    if row["key"]:
        parts.append(f"{'needs' if row['key_required'] else 'better with'} {row['key']}")
    if row["needs"]:
        parts.append(f"needs {row['needs']}")
    return ", ".join(parts)


def fetch(url: str, as_json: bool) -> None:
    page = asyncio.run(_page(url, load()))
    if page.document is None:
        raise ReadError(f"{url}: {one_line(page.reason)}", help="Nothing of it would be used in a report.")
    if as_json:
        typer.echo(page.document.model_dump_json(indent=2))
        return
    document = page.document
    facts: Sequence[object] = (
        document.host,
        document.author,
        document.published,
        "from the cache" if page.cached else "",
    )
    typer.echo(
        f"{document.title}\n{document.url}\n{' · '.join(str(fact) for fact in facts if fact)}\n\n{document.text}"
    )


async def _page(url: str, settings: Settings) -> Page:
    if settings.offline:
        return Page(url, reason="offline is set, so no page is fetched")
    async with open_world(settings) as world:
        return await world.pages.read(url)
