"""Turns a question into a run: whatever can be refused is refused before anything is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from openassay.engine.runner import Runner
from openassay.engine.thread_lock import ThreadLock
from openassay.engine.validation import list_skipped_approvals, validate_question
from openassay.errors import OpenAssayError, StorageError
from openassay.llm.selection import EMBEDDED, ModelSelection, is_private, select_models
from openassay.models.event import RunStatus
from openassay.models.plan import TYPES_BY_DEPTH, Depth, Mode, QueryType
from openassay.models.thread import ResearchOptions, Run, Thread
from openassay.nodes.analyse import max_rounds
from openassay.protocols import ChooseSources, RemoteSource, Source
from openassay.reasoning.llm import plan as llm_plan
from openassay.reasoning.llm.write import QUICK_WORDS
from openassay.reasoning.rules import plan as rules_plan
from openassay.search.registry import OFFLINE
from openassay.settings import Settings
from openassay.storage.threads import active_run_error
from openassay.text.redaction import GONE

# What can be chosen for a question under the given settings. Nothing on the network is asked.

_PLACES: dict[QueryType, str] = {"web": "the web", "academic": "papers", "news": "the news", "code": "code"}
Models = ModelSelection | OpenAssayError | None  # an error: why no model can be used; None: the rules think


def select_default_models(settings: Settings) -> Models:
    try:
        return select_models(settings, ResearchOptions())
    except OpenAssayError as error:
        return error


def describe_model(models: Models) -> str | None:
    """Return the name of the model that is used, or None if it cannot be used."""
    if not isinstance(models, ModelSelection):
        return EMBEDDED if models is None else None
    return f"local:{Path(models.first.name).name}" if models.first.vendor == "local" else str(models.first)


def describe_depth(depth: Depth, settings: Settings, models: Models) -> str:
    """Return what a depth of research means, in a sentence."""
    most, rounds = (rules_plan if models is None else llm_plan).MOST[depth], max_rounds(settings)
    quick = f"An answer of up to {QUICK_WORDS} words"
    length = quick if depth is Depth.QUICK else f"A report of up to {settings.target_length:,} words"
    *others, last = [_PLACES[kind] for kind in TYPES_BY_DEPTH[depth]]
    places = f"{', '.join(others)} and {last}" if others else last
    questions = f"up to {most} sub-questions" if most > 1 else "one sub-question"
    return f"{length}: {questions}, {f'up to {rounds} rounds' if rounds > 1 else 'one round'} of searching {places}."


def unavailable_reason(source: Source, settings: Settings) -> str:
    """Return why a source cannot be searched, or an empty text if it can."""
    if isinstance(source, RemoteSource) and settings.offline:
        return OFFLINE
    if source.is_available():
        return ""
    if not isinstance(source, RemoteSource):
        return "needs documents that are given with the question"
    if source.name in settings.search.without:
        return "left out by the settings"
    needed = source.terms.needs or (source.terms.key or "").upper()
    return f"needs {needed}" if needed else "it is not set up"


UNTITLED = "Untitled"
REDACTED = "Your question contained a secret of the settings, which was removed."


class PreparedRun(NamedTuple):
    """A run with its sources, and notices about it that the person must see."""

    run: Run
    sources: list[Source]
    notices: dict[str, str]


class RunStarter:
    """Creates runs. `sources` chooses those of a run."""

    def __init__(self, runner: Runner, sources: ChooseSources) -> None:
        self._runner = runner
        self._threads = runner.threads
        self._sources = sources

    @asynccontextmanager
    async def open_run(
        self, question: str, options: ResearchOptions, thread: str | None, status: RunStatus, id: str | None = None
    ) -> AsyncIterator[tuple[PreparedRun, ThreadLock]]:
        """Store a new run, on a new thread unless one is named, and keep its thread locked."""
        question = validate_question(question, options)
        mode = options.mode if options.interactive else None  # a thread keeps what a person said, not what a job did
        if thread is None:  # it need not be locked before it exists
            prepared = await self._prepare_run(question, options, uuid4().hex[:12], status, id)
            run = prepared.run
            async with self._runner.lock_thread(run.thread) as lock:
                title = make_title(run.question)
                await self._threads.fork(self.build_thread(run.thread, title, mode, options.user), run)
                yield prepared, lock
            return
        await self._threads.get(thread)
        async with self._runner.lock_thread(thread) as lock:
            runs = await self._threads.runs(thread)
            options = _inherit_options(options, runs[-1].options if runs else options)
            await self._runner.check(thread)
            prepared = await self._prepare_run(question, options, thread, status, id)
            run = prepared.run
            # One question after the other. A thread without a title is called after its first.
            if runs and runs[-1].active:
                raise active_run_error(run.id, thread)
            if not runs and (await self._threads.get(thread)).title == UNTITLED:
                await self._threads.rename(thread, make_title(run.question))
            if mode:
                await self._threads.set_mode(thread, mode)
            await self._threads.begin(run)
            yield prepared, lock

    async def _prepare_run(
        self, question: str, options: ResearchOptions, thread: str, status: RunStatus, id: str | None = None
    ) -> PreparedRun:
        clean, reasoners = self._runner.redaction.redact_secrets, self._runner.reasoners
        question = clean(question)
        options = options.model_copy(update={"context": clean(options.context), "private": is_private(options)})
        remembered = {}
        try:
            preferences = await self._runner.memory.preferences(options.user)
            options = options.model_copy(update={"preferences": preferences})
        except StorageError as error:
            remembered["memory"] = f"Your preferences could not be read and were left out: {error.message}"
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices = {
            **notices,
            **secret_notice(question, options),
            **remembered,
            **list_skipped_approvals(options, self._runner.settings),
            **await asyncio.to_thread(reasoners.notices, options),
        }
        options = await asyncio.to_thread(reasoners.pin_options, options)
        if options.source == "auto":
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        return PreparedRun(self.build_run(thread, question, options, status, id), sources, notices)

    def build_run(
        self, thread: str, question: str, options: ResearchOptions, status: RunStatus, id: str | None = None
    ) -> Run:
        return Run(
            id=id or uuid4().hex[:12],
            thread=thread,
            question=question,
            status=status,
            started=self._runner.now(),
            settings=self._runner.settings.fingerprint(),
            options=options,
        )

    def build_thread(self, id: str, title: str, mode: Mode | None, owner: str) -> Thread:
        now = self._runner.now()
        return Thread(id=id, title=title or UNTITLED, created=now, updated=now, mode=mode, owner=owner)


def _inherit_options(options: ResearchOptions, before: ResearchOptions) -> ResearchOptions:
    """Let a follow-up ask the documents of the question before, unless it names its own or another source. What was
    said about documents stays as private as they are, whatever is asked next."""
    options = options.model_copy(update={"private": before.private or options.private})
    if options.docs or options.source != "auto":
        return options
    web = options.web or before.web
    return options.model_copy(update={"docs": before.docs, "source": before.source, "web": web})


def secret_notice(question: str, options: ResearchOptions) -> dict[str, str]:
    return {"secret": REDACTED} if GONE in question + options.context else {}


def make_title(question: str) -> str:
    line = " ".join(question.split())
    return (line if len(line) <= 80 else f"{line[:79]}…") or UNTITLED
