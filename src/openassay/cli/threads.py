"""`openassay threads`, `document` and `passage`: looking at what is stored."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from json import dumps
from pathlib import Path
from typing import TypeVar

import typer
from rich.text import Text

from openassay.bootstrap import open_engine
from openassay.cli.prompts import can_ask
from openassay.cli.runtime import run_with_engine
from openassay.cli.screen import (
    format_age,
    format_dollars,
    open_console,
    print_message,
    show_report,
    to_one_line,
    truncate_line,
    wrap_line,
)
from openassay.engine.artifacts import shorten_report
from openassay.engine.engine import Engine
from openassay.engine.timings import ExternalParty, RunDurations, Timings
from openassay.engine.view import StateView
from openassay.errors import EvidenceError, IntegrityError, NotFoundError, UsageError
from openassay.export.report import Report
from openassay.models.event import ACTIVE
from openassay.models.plan import Mode
from openassay.models.report import ReportClaim, ReportSpan, SourceCard
from openassay.models.thread import Run, ThreadSummary
from openassay.settings import load
from openassay.text.words import pluralize

# The passages behind a claim or a source, highlighted in what stands around them.

T = TypeVar("T")
AROUND = 300  # characters of context shown on each side of a span
MOST_SHOWN = 6  # passages of one source; the others are counted


async def render_claim_passages(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    claim = _find_by_id(name, "claim", {claim.id: claim for claim in report.claims})
    titles = {card.id: card.title for card in report.sources}
    yield Text(f"{claim.text}\n{_format_verdict(claim)}", style="bold")
    for span in claim.spans:
        head = f"\n{span.source} {to_one_line(titles[span.source])}, characters {span.start}-{span.end}\n"
        yield Text.assemble((head, "blue"), await _render_context(engine, span))


async def render_source_passages(engine: Engine, report: Report, name: str) -> AsyncIterator[Text]:
    """A source's card, and what was taken from it. S3 and 3 are the same."""
    card = _find_by_id(f"S{name}" if name.isdecimal() else name, "source", {card.id: card for card in report.sources})
    yield _render_card(card)
    used = [(span, claim) for claim in report.claims for span in claim.spans if span.source == card.id]
    for span, claim in used[:MOST_SHOWN]:
        yield Text.assemble((f"\n{claim.id} {claim.text}\n", "blue"), await _render_context(engine, span))
    if used[MOST_SHOWN:]:
        yield Text(f"\n… and {len(used) - MOST_SHOWN} more passages", style="dim")


def _find_by_id(name: str, kind: str, known: dict[str, T]) -> T:
    for id, found in known.items():
        if id.lower() == name.lower():
            return found
    raise NotFoundError(f"there is no {kind} {to_one_line(name)}", help=f"There are: {_format_ids(known)}.")


def _format_ids(ids: Iterable[str]) -> str:
    listed = list(ids)
    return f"{', '.join(listed[:12])}{' ...' if listed[12:] else ''}" if listed else "none, since nothing was found"


async def _render_context(engine: Engine, span: ReportSpan) -> Text:
    text = (await engine.document(span.document)).text
    before, after = text[max(0, span.start - AROUND) : span.start], text[span.end : span.end + AROUND]
    return Text.assemble((before, "dim"), (span.quote, "reverse"), (after, "dim"))


def _render_card(card: SourceCard) -> Text:
    facts = [card.author, card.published or "undated", card.host or card.kind, f"credibility {card.credibility:.2f}"]
    lines = [card.url, " · ".join(fact for fact in facts if fact), *card.credibility_reasons, card.why_used]
    body = "\n".join(to_one_line(line) for line in lines if line)
    return Text.assemble((f"{card.id} {to_one_line(card.title)}\n", "bold"), (body, "dim"))


def _format_verdict(claim: ReportClaim) -> str:
    verdict = claim.verdict.value.replace("_", " ")
    return f"{verdict}, confidence {claim.confidence:.2f} {claim.mark or ''}".rstrip()


LONGEST = 160  # characters of a question where it is cut short
MOST_RUNS = 20


def list_threads(limit: int, *, active: bool, json: bool) -> None:
    async def rows(engine: Engine) -> list[ThreadSummary]:
        return await engine.overview(limit, ACTIVE if active else ())

    found = run_with_engine(rows)
    if json:
        typer.echo(dumps([one.plain() for one in found], indent=2, ensure_ascii=False).encode())
        return
    if not found:
        ask = 'Ask something: openassay ask "What is happening with Apple?"'
        typer.echo("Nothing is at work or waits." if active else f"No threads yet. {ask}", err=True)
        return
    now = datetime.now(UTC)
    told = [
        (one.id, _format_status(one), format_age(now - one.updated), format_dollars(one.usd), _format_question(one))
        for one in found
    ]
    for row in [("thread", "status", "age", "cost", "question"), *told]:
        typer.echo(truncate_line("{:12}  {:9}  {:>8}  {:>8}  {}".format(*map(to_one_line, row))))


def _format_question(thread: ThreadSummary) -> str:
    """The last question, after the title where that says something else. That of a branch begins with what was
    changed, and may end with what was asked."""
    asked = " ".join(thread.question.split())
    before, between, name = thread.title.rpartition(" · ") if thread.parent else ("", "", thread.title)
    if asked.startswith(name.rstrip("…")):
        told = f"{before}{between}{asked}"
    else:
        told = f"{thread.title} · {asked}" if asked else thread.title
    return f"↳ {told}" if thread.parent else told


def _format_status(thread: ThreadSummary) -> str:
    return "damaged" if thread.damaged else "stopped" if thread.left else thread.status or ""


def create_thread(title: str) -> None:
    async def create(engine: Engine) -> str:
        return (await engine.create_thread(title)).id

    thread = run_with_engine(create)
    typer.echo(thread)
    print_message(f'Ask on it: openassay ask "..." --thread {thread}')


def rename_thread(thread: str, title: str) -> None:
    async def change(engine: Engine) -> str:
        await engine.rename(thread, title)
        return (await engine.threads.get(thread)).title

    typer.echo(f"Thread {thread} is called: {to_one_line(run_with_engine(change))}", err=True)


def show_thread(thread: str, json: bool, *, full: bool = False) -> None:
    async def look(engine: Engine) -> tuple[list[Run], Report | None, str]:
        await engine.threads.get(thread)
        values = await engine.state(thread)
        report = await engine.report(thread) if values.get("report") else None
        return await engine.threads.runs(thread), report, await find_damage(engine, thread) if report else ""

    runs, report, careful = run_with_engine(look)
    if careful:
        print_message(f"Careful: {to_one_line(careful)}")
    if json:
        typer.echo((report.model_dump_json(indent=2) if report else "null").encode())
        return
    for run in runs if full else runs[-MOST_RUNS:]:
        state = f"{run.id}  {run.status}  {run.stage}  {run.started:%Y-%m-%d %H:%M}"
        typer.echo(wrap_line(f"{state}  {_shorten(run.question, full)}", 14))
        if run.error:
            typer.echo(wrap_line(f"{'':14}{_shorten(run.error, full)}", 14))
    if report is not None:
        show_report(report if full else shorten_report(report))
    elif runs:
        print_message(f"No report yet. Go on with: openassay resume {thread}")
    else:
        print_message(f'Nothing was asked yet. Ask: openassay ask "..." --thread {thread}')


async def find_damage(engine: Engine, thread: str) -> str:
    """A report tells what was checked when it was written; what it rests on may have been altered since."""
    try:
        await engine.check(thread)
    except (IntegrityError, EvidenceError) as error:
        return error.message
    return ""


def _shorten(text: str, full: bool) -> str:
    line = to_one_line(text)
    return line if full or len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def show_state(thread: str, json: bool, at: str | None = None) -> None:
    async def look(engine: Engine) -> StateView:
        return await engine.view(thread) if at is None else await engine.view_at(thread, at)

    found = run_with_engine(look)
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for label, text in _format_state(found):
        typer.echo(wrap_line(f"{label:9}  {to_one_line(text)}".rstrip(), 11))


def _format_state(view: StateView) -> Iterator[tuple[str, str]]:
    """Few lines; the rest is in the JSON."""
    yield "thread", f"{view.thread}, {view.status}{', next: ' if view.next else ''}{', '.join(view.next)}"
    yield "goal", view.user_inputs.goal
    if view.subject:
        yield "subject", view.subject
    if gate := view.user_inputs.gate:
        signals = f"clarity {gate.clarity:.2f}, coherence {gate.coherence:.2f}, {format_dollars(gate.usd)}"
        yield "mode", f"{Mode.AUTO if gate.auto else Mode.PLAN} ({signals}): {gate.reason}"
    for about, answer in view.user_inputs.planner_answers.items():
        yield "answer", f"{about}: {answer}"
    if view.plan:
        for step in view.plan.dag:
            yield step.id, f"{step.text} ({pluralize(len(step.queries), 'query', 'queries')})"
    yield from _format_evidence(view)
    yield from (("issue", issue) for issue in view.issues)
    yield from (("note", notice) for notice in view.notices)
    if view.left_out:
        yield "left out", ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in view.left_out.items())


def _format_evidence(view: StateView) -> Iterator[tuple[str, str]]:
    if view.search_results:
        results = pluralize(len(view.search_results), "result")
        yield "found", f"{results} for {pluralize(len(view.queries), 'query', 'queries')}"
    for one in view.evidence:
        what = one.problem or pluralize(len(one.chunks), "chunk")
        yield one.id or "chosen", f"{one.title or one.content_hash} ({what})"
    if view.draft:
        words = pluralize(len(view.draft.text.split()), "word")
        cited = pluralize(len(view.draft.citations), "source")
        yield "draft", f"{words}, {cited} cited, confidence {view.draft.confidence:.2f}"


def show_log(thread: str) -> None:
    async def lines(engine: Engine) -> list[str]:
        await engine.threads.get(thread)
        runs = await engine.threads.runs(thread)
        return [
            f"{event.seq:4} {event.time:%H:%M:%S} {event.kind:9} {event.stage:12} {_omit_sentences(event.data)}"
            for run in runs[-1:]
            async for event in engine.events(run.id)
        ]

    for line in run_with_engine(lines):
        typer.echo(line)


def _omit_sentences(data: Mapping[str, object]) -> dict[str, object]:
    """Without the sentences of a section, which the report has."""
    return {name: value for name, value in data.items() if name != "lines"}


def delete_threads(threads: Sequence[str], *, yes: bool) -> None:
    """Nothing is deleted unless all of them are there."""

    async def titles(engine: Engine) -> dict[str, str]:
        return {thread: await _load_title(engine, thread) for thread in threads}

    async def remove(engine: Engine) -> None:
        for thread in dict.fromkeys(threads):
            await engine.delete(thread)
            typer.echo(f"Thread {thread} deleted.", err=True)

    named = run_with_engine(titles)
    if not yes:
        if not can_ask():
            raise UsageError("what is deleted is gone for good, and nobody is there to be asked", help="Add --yes.")
        for thread, title in named.items():
            print_message(f"{thread}  {to_one_line(title)}")
        if not typer.confirm(f"Delete {'it' if len(named) == 1 else 'them'} for good?", err=True):
            raise typer.Exit(1)
    run_with_engine(remove)


async def _load_title(engine: Engine, thread: str) -> str:
    try:
        return (await engine.threads.get(thread)).title
    except IntegrityError:  # to delete it is what is advised then
        return "(damaged)"


def export_thread(thread: str, out: Path | None) -> None:
    target = out or Path(f"{thread}.zip")

    async def write(engine: Engine) -> None:
        await engine.export(thread, target)

    run_with_engine(write)
    typer.echo(f"Thread {thread} written to {target}", err=True)


def expire_threads() -> None:
    async def gone() -> int:
        count = 0
        async with open_engine(settings, expire=False) as engine:
            while threads := await engine.expire():
                count += len(threads)
        return count

    settings = load()
    if settings.persistence.ttl_hours is None:
        raise UsageError("threads are kept for ever", help="Set persistence.ttl_hours to have them forgotten.")
    typer.echo(f"{pluralize(asyncio.run(gone()), 'thread')} deleted.", err=True)


def print_document(hash: str) -> None:
    async def text(engine: Engine) -> str:
        return (await engine.document(hash)).text

    # Exactly the snapshot, byte for byte: no newline is added and none is translated.
    sys.stdout.buffer.write(run_with_engine(text).encode())
    sys.stdout.buffer.flush()


def show_passages(thread: str, claim: str) -> None:
    async def find(engine: Engine) -> list[Text]:
        await engine.threads.get(thread)
        return [part async for part in render_claim_passages(engine, await engine.report(thread), claim)]

    console = open_console()
    for part in run_with_engine(find):
        console.print(part)


# `openassay threads timings`: where the time of a run went.


def show_timings(thread: str, run: str | None, *, json: bool) -> None:
    async def look() -> Timings:
        async with open_engine(load()) as engine:
            await engine.threads.get(thread)
            return await engine.timings(thread, run)

    found = asyncio.run(look())
    if json:
        typer.echo(found.model_dump_json(indent=2).encode())
        return
    for line in _format_timings(found):
        typer.echo(truncate_line(to_one_line(line)))


def _format_timings(found: Timings) -> Iterator[str]:
    request = f", request {found.request}" if found.request else ""
    taken_up = f", taken up {pluralize(found.attempts, 'time')}" if found.attempts > 1 else ""
    yield f"run {found.run}  {found.status}{taken_up}{request}"
    yield f"{_format_duration(found.seconds.total)}: {_format_clock(found.seconds)}"
    yield ""
    stages = [
        (
            one.stage,
            str(one.count),
            str(one.unfinished or ""),
            _format_seconds(one.seconds),
            _format_seconds(one.longest),
        )
        for one in found.stages
    ]
    yield from _format_table(("stage", "ended", "not ended", "seconds", "longest"), stages)
    if found.parties:
        yield ""
        heads = ("asked", "answered", "failed", "seconds", "median", "longest", "cost")
        yield from _format_table(heads, [_format_party(one) for one in found.parties])
    for one in found.caches:
        if one.rate is not None:
            yield f"{one.cache}: the cache knew {one.hits:,} of {one.asked:,} ({one.rate:.0%})"
    if found.errors:
        yield "errors: " + ", ".join(f"{category} {count:,}" for category, count in sorted(found.errors.items()))


def _format_clock(clock: RunDurations) -> str:
    parts = {
        "in line": clock.queued, "at work": clock.working, "waiting for an answer": clock.waiting,
        "stopped": clock.stopped,
    }  # fmt: skip
    return ", ".join(f"{_format_duration(value)} {name}" for name, value in parts.items() if value or name == "at work")


def _format_party(one: ExternalParty) -> tuple[str, ...]:
    name = f"{one.party} ({one.kind})" if one.kind != "model" else one.party
    return (
        name, str(one.calls), str(one.failures or ""), _format_seconds(one.seconds), _format_seconds(one.median),
        _format_seconds(one.longest), format_dollars(one.usd) if one.usd else "",
    )  # fmt: skip


def _format_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for first, *rest in (heads, *rows):
        told = [first.ljust(widths[0]), *(text.rjust(width) for text, width in zip(rest, widths[1:], strict=True))]
        yield "  ".join(told).rstrip()


def _format_seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _format_duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
