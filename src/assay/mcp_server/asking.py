"""`research` and `threads`: a question becomes a run, and what came of runs can be looked at."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from assay.engine import Outcome
from assay.errors import AssayError, NotFoundError, UsageError
from assay.export.report import Report
from assay.mcp_server.house import Guest, House, own
from assay.model.event import AT_WORK, Event, RunStatus
from assay.model.question import Depth, Mode
from assay.model.thread import Options, Run, ThreadSummary
from assay.model.user import Scope

Tell = Callable[[float, str], Awaitable[None]]  # how far it is, and what is going on
QUOTES = 5  # of one source
GOES_ON = "It goes on by itself: call `threads` with its id to see what became of it."
_STAGES = {
    "understand": "Understanding the question", "plan": "Planning", "search": "Searching",
    "fuse": "Choosing what to read", "harvest": "Fetching pages", "read": "Reading",
    "analyse": "Looking for gaps", "verify": "Checking every claim", "write": "Writing", "review": "Reviewing",
    "publish": "Publishing", "fallback": "Saving what there is",
}  # fmt: skip


class Cited(BaseModel):
    id: str = Field(description="As in the answer's citations: S1, S2, ...", examples=["S1"])
    title: str
    url: str
    published: str | None = None
    quotes: list[str] = Field(description="Verbatim passages of this source that the answer rests on.")


class Answer(BaseModel):
    thread: str = Field(description="Give it to `research` for a follow-up question, or to `verify` and `threads`.")
    status: Literal["complete", "partial", "no_data", "cancelled", "running"] = Field(
        description="running: it was not waited for any longer, and goes on by itself."
    )
    answer: str = Field(description="The report in Markdown, every factual sentence with its citations [S1].")
    confidence: Literal["high", "medium", "low"]
    checked: str = Field(description="How many statements were held against their sources.", examples=["61 of 64"])
    sources: list[Cited]
    not_found: list[str] = Field(description="Sub-questions that no source answered.")
    notices: list[str] = Field(description="What was degraded, skipped or taken for granted.")
    usd: float = Field(description="What it has cost.")


class Question(BaseModel):
    """A question that a run waits for, and a person has to answer."""

    id: str
    question: str
    options: list[str] = []


class Listed(BaseModel):
    thread: str
    title: str
    status: str | None
    question: str
    updated: str
    usd: float


class Shown(Listed):
    error: str | None = None
    open_questions: list[Question] = []
    report: Answer | None = Field(default=None, description="Its latest finished report.")


class Threads(BaseModel):
    threads: list[Listed] = Field(description="The latest first; one where a thread was named.")
    thread: Shown | None = Field(default=None, description="The one that was named.")


class Wishes(BaseModel):
    """What may be said besides the question."""

    depth: Depth | None = None
    documents: Sequence[str] = ()
    web: bool = False
    thread: str | None = None
    model: str | None = None
    budget: float | None = None
    wait_seconds: float | None = None


async def research(house: House, guest: Guest, question: str, wishes: Wishes, tell: Tell) -> Answer:
    """Nobody is asked back. Whoever gives up waiting, or goes away, leaves the run to itself: it has a cap, and what
    it finds can be looked at later."""
    guest.needs(Scope.WRITE)
    if wishes.thread is not None:
        await own(house, guest, wishes.thread)
    options = await _options(house, guest, wishes)
    run = await house.ask(guest, question, options, wishes.thread)
    try:
        async with asyncio.timeout(wishes.wait_seconds):
            await _followed(house, run, tell)
    except TimeoutError:
        return _unfinished(run)
    return _answer(await house.premises.engine.outcome(run.id), house.premises.engine.fault(run.id))


async def _options(house: House, guest: Guest, wishes: Wishes) -> Options:
    settings = house.premises.engine.settings
    try:
        return Options(
            depth=wishes.depth or settings.depth, mode=Mode.AUTO, user=guest.user, source=settings.source,
            docs=await house.documents(guest, wishes.documents), web=wishes.web, model=wishes.model, usd=wishes.budget,
        )  # fmt: skip
    except ValidationError as error:
        raise UsageError("budget or model is not valid", help="A budget is 0 to 10,000, a model a name.") from error


async def _followed(house: House, run: Run, tell: Tell) -> None:
    steps = 0
    async for event in house.events(run.id):
        if line := _line(event):
            steps += 1
            await tell(steps, line)


def _line(event: Event) -> str:
    """What somebody who waits wants to know."""
    if event.kind == "enter":
        return _STAGES.get(event.stage, "")
    if event.kind == "finding":
        return f"{event.data.get('findings', 0)} findings for: {event.data.get('text', '')}"
    if event.kind == "notice":
        return str(event.data.get("text", ""))
    return ""


def _unfinished(run: Run) -> Answer:
    return Answer(
        thread=run.thread, status="running", answer=f"This is still being researched. {GOES_ON}", confidence="low",
        checked="0 of 0", sources=[], not_found=[], notices=[], usd=0.0,
    )  # fmt: skip


def _answer(outcome: Outcome, fault: AssayError | None) -> Answer:
    run, report = outcome.run, outcome.report
    if report is not None:
        return answer(report)
    if fault is not None:
        raise fault
    if run.status in AT_WORK:  # this process ends before the run does
        return _unfinished(run)
    raise AssayError(
        run.error or f"thread {run.thread} ended as {run.status}", help="Ask again, with this thread to go on with it."
    )


def answer(report: Report) -> Answer:
    quotes: dict[str, list[str]] = {}
    for claim in report.claims:
        for span in claim.spans:
            kept = quotes.setdefault(span.source, [])
            if span.quote not in kept and len(kept) < QUOTES:
                kept.append(span.quote)
    sources = [
        Cited(id=card.id, title=card.title, url=card.url, published=card.published, quotes=quotes.get(card.id, []))
        for card in report.sources
    ]
    return Answer(
        thread=report.provenance.thread, status=report.status.value, answer=report.markdown,
        confidence=report.confidence, checked=f"{report.coverage.checked} of {report.coverage.total}", sources=sources,
        not_found=[one.question for one in report.not_found], notices=list(report.notices), usd=report.spend.usd,
    )  # fmt: skip


async def threads(house: House, guest: Guest, thread: str | None, limit: int) -> Threads:
    guest.needs(Scope.READ)
    engine = house.premises.engine
    if thread is None:
        found = await engine.overview(limit, owner=guest.user)
        return Threads(threads=[_listed(one) for one in found])
    shown = await _shown(house, guest, thread)
    return Threads(threads=[Listed(**shown.model_dump(include=set(Listed.model_fields)))], thread=shown)


def _listed(one: ThreadSummary) -> Listed:
    return Listed(
        thread=one.id, title=one.title, status=one.status, question=one.question, updated=one.updated.isoformat(),
        usd=one.usd,
    )  # fmt: skip


async def _shown(house: House, guest: Guest, thread: str) -> Shown:
    engine = house.premises.engine
    kept = await own(house, guest, thread)
    last = next(iter((await engine.threads.runs(thread))[-1:]), None)
    report = None
    with suppress(NotFoundError):  # none is finished yet
        report = answer(await engine.report(thread))
    asked = await engine.open_questions(thread) if last and last.status is RunStatus.WAITING else []
    return Shown(
        thread=thread, title=kept.title, status=last.status if last else None, question=last.question if last else "",
        updated=kept.updated.isoformat(), usd=report.usd if report else 0.0,
        error=house.said(last.error) if last and last.error else None,
        open_questions=[Question(id=one.id, question=one.question, options=list(one.options)) for one in asked],
        report=report,
    )  # fmt: skip
