"""A question that becomes a run: all that can be refused is refused before anything is written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from openassay.engine.lock import ThreadLock
from openassay.engine.questions import list_skipped_approvals, validate_question
from openassay.engine.runner import Runner
from openassay.errors import StorageError
from openassay.llm.selection import is_private
from openassay.models.event import RunStatus
from openassay.models.plan import Mode
from openassay.models.thread import Run, ResearchOptions, Thread, read_options
from openassay.protocols import ChooseSources, Source
from openassay.storage.threads import active_run_error
from openassay.text.redaction import GONE

UNTITLED = "Untitled"
TAKEN_OUT = "A secret of the settings stood in your question and was taken out."


class RunStarter:
    """`sources` chooses those of a run, with notices about the choice that the person must see."""

    def __init__(self, runner: Runner, sources: ChooseSources) -> None:
        self._runner = runner
        self._threads = runner.threads
        self._sources = sources

    @asynccontextmanager
    async def open_run(
        self, question: str, options: ResearchOptions, thread: str | None, status: RunStatus, id: str | None = None
    ) -> AsyncIterator[tuple[Run, list[Source], dict[str, str], ThreadLock]]:
        """A run that is written down, on a thread that is held."""
        question = validate_question(question, options)
        if thread is None:  # it need not be held before there is one
            asked = run, *_ = await self._prepare_run(question, options, uuid4().hex[:12], status, id)
            async with self._runner.lock_thread(run.thread) as hold:
                await self._threads.fork(
                    self.build_thread(run.thread, make_title(run.question), _thread_mode(options), options.user), run
                )
                yield *asked, hold
            return
        await self._threads.get(thread)
        async with self._runner.lock_thread(thread) as hold:
            options = await self._inherit_options(thread, options)
            await self._runner.check(thread)
            asked = run, *_ = await self._prepare_run(question, options, thread, status, id)
            await self._add_follow_up(run, _thread_mode(options))
            yield *asked, hold

    async def _prepare_run(
        self, question: str, options: ResearchOptions, thread: str, status: RunStatus, id: str | None = None
    ) -> tuple[Run, list[Source], dict[str, str]]:
        """All that can be refused is refused here, before anything is written."""
        question, options, cleaned = self._redact_question(question, options)
        options, remembered = await self._load_preferences(options.model_copy(update={"private": is_private(options)}))
        sources, notices = await asyncio.to_thread(self._sources, options)
        notices |= (
            cleaned
            | remembered
            | list_skipped_approvals(options, self._runner.settings)
            | await asyncio.to_thread(self._runner.thinking.notices, options)
        )
        options = await asyncio.to_thread(self._runner.thinking.pin_options, options)
        if options.source == "auto":
            options = options.model_copy(update={"sources": tuple(source.name for source in sources)})
        return self.build_run(thread, question, options, status, id), sources, notices

    def _redact_question(self, question: str, options: ResearchOptions) -> tuple[str, ResearchOptions, dict[str, str]]:
        """A secret of the settings is nobody's own words."""
        clean = self._runner.redaction.redact_secrets
        question, options = clean(question), options.model_copy(update={"context": clean(options.context)})
        return question, options, secret_notice(question, options)

    def build_run(
        self, thread: str, question: str, options: ResearchOptions, status: RunStatus, id: str | None = None
    ) -> Run:
        return Run(
            id=id or uuid4().hex[:12], thread=thread, question=question, status=status, started=self._runner.now(),
            settings=self._runner.settings.fingerprint(), options=options.plain(),
        )  # fmt: skip

    async def _add_follow_up(self, run: Run, mode: Mode | None) -> None:
        """One question after the other. A thread without a title is called after its first; a mode that was said for
        one is the thread's."""
        before = await self._threads.runs(run.thread)
        if before and before[-1].active:
            raise active_run_error(run.id, run.thread)
        if not before and (await self._threads.get(run.thread)).title == UNTITLED:
            await self._threads.rename(run.thread, make_title(run.question))
        if mode:
            await self._threads.set_mode(run.thread, mode)
        await self._threads.begin(run)

    def build_thread(self, id: str, title: str, mode: Mode | None, owner: str) -> Thread:
        now = self._runner.now()
        return Thread(id=id, title=title or UNTITLED, created=now, updated=now, mode=mode, owner=owner)

    async def _inherit_options(self, thread: str, options: ResearchOptions) -> ResearchOptions:
        """A follow-up asks the documents its thread was started on, unless it names its own or another source."""
        runs = await self._threads.runs(thread)
        before = read_options(runs[-1]) if runs else options
        # What was said about documents stays as private as they are, whatever is asked next.
        options = options.model_copy(update={"private": before.private or options.private})
        if options.docs or options.source != "auto":
            return options
        web = options.web or before.web
        return options.model_copy(update={"docs": before.docs, "source": before.source, "web": web})

    async def _load_preferences(self, options: ResearchOptions) -> tuple[ResearchOptions, dict[str, str]]:
        """What the person prefers, as it is when the run begins."""
        try:
            known = await self._runner.memory.preferences(options.user)
        except StorageError as error:
            return options, {"memory": f"What is remembered of you could not be read and was left out: {error.message}"}
        return options.model_copy(update={"preferences": known}), {}


def secret_notice(question: str, options: ResearchOptions) -> dict[str, str]:
    return {"secret": TAKEN_OUT} if GONE in question + options.context else {}


def _thread_mode(options: ResearchOptions) -> Mode | None:
    """A thread keeps what a person said, not what a job did."""
    return options.mode if options.interactive else None


def make_title(question: str) -> str:
    line = " ".join(question.split())
    return (line if len(line) <= 80 else f"{line[:79]}…") or UNTITLED
