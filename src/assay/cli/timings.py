"""`assay threads timings`: where the time of a run went."""

import asyncio
from collections.abc import Iterator, Sequence

import typer

from assay.bootstrap import open_engine
from assay.cli.lines import cut, dollars, one_line
from assay.settings import load
from assay.text.words import counted
from assay.view.timings import Clock, Party, Timings


def timings(thread: str, run: str | None, *, json: bool) -> None:
    async def look() -> Timings:
        async with open_engine(load()) as engine:
            await engine.threads.get(thread)
            return await engine.timings(thread, run)

    found = asyncio.run(look())
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in _told(found):
        typer.echo(cut(one_line(line)))


def _told(found: Timings) -> Iterator[str]:
    request = f", request {found.request}" if found.request else ""
    taken_up = f", taken up {counted(found.attempts, 'time')}" if found.attempts > 1 else ""
    yield f"run {found.run}  {found.status}{taken_up}{request}"
    yield f"{_duration(found.seconds.total)}: {_spent(found.seconds)}"
    yield ""
    stages = [
        (one.stage, str(one.count), str(one.unfinished or ""), _seconds(one.seconds), _seconds(one.longest))
        for one in found.stages
    ]
    yield from _table(("stage", "ended", "not ended", "seconds", "longest"), stages)
    if found.parties:
        yield ""
        heads = ("asked", "answered", "failed", "seconds", "median", "longest", "cost")
        yield from _table(heads, [_party(one) for one in found.parties])
    for one in found.caches:
        if one.rate is not None:
            yield f"{one.cache}: the cache knew {one.hits:,} of {one.asked:,} ({one.rate:.0%})"
    if found.errors:
        yield "errors: " + ", ".join(f"{category} {count:,}" for category, count in sorted(found.errors.items()))


def _spent(clock: Clock) -> str:
    parts = {
        "in line": clock.queued, "at work": clock.working, "waiting for an answer": clock.waiting,
        "stopped": clock.stopped,
    }  # fmt: skip
    return ", ".join(f"{_duration(value)} {name}" for name, value in parts.items() if value or name == "at work")


def _party(one: Party) -> tuple[str, ...]:
    name = f"{one.party} ({one.kind})" if one.kind != "model" else one.party
    return (
        name, str(one.calls), str(one.failures or ""), _seconds(one.seconds), _seconds(one.median),
        _seconds(one.longest), dollars(one.usd) if one.usd else "",
    )  # fmt: skip


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for first, *rest in (heads, *rows):
        told = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(told).rstrip()


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
