"""`assay chat`: one thread, many short questions, and commands that begin with a slash."""

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from assay.bootstrap import open_engine
from assay.cli.asking import can_ask, how_to_answer
from assay.cli.chat_commands import BESIDE, MEANINGS, carry_out, show_help
from assay.cli.lines import is_command, one_line, said
from assay.cli.progress import Progress
from assay.cli.research import OPEN, Wishes, converse, options, told_before
from assay.cli.screen import show_report, tell
from assay.engine import Engine, Outcome
from assay.errors import AssayError
from assay.model.event import RunStatus
from assay.model.question import Depth
from assay.model.thread import Run
from assay.questions import OpenQuestion
from assay.settings import Settings, load
from assay.text.words import counted

if TYPE_CHECKING:
    from assay.cli.prompting import Prompt

LEAVE = frozenset({"/exit", "/quit", "exit", "quit"})
_WELCOME = """Ask a question: every sentence of the answer opens the passage behind it.
Follow-ups keep the subject. /help tells what else can be done, /exit ends."""
HISTORY = "chat_history"  # in the data directory


def chat(wishes: Wishes, thread: str | None) -> None:
    settings = load(depth=wishes.depth or Depth.QUICK, mode=wishes.mode, source=wishes.source)
    asyncio.run(_talk(settings, wishes, thread))


async def _talk(settings: Settings, wishes: Wishes, thread: str | None) -> None:
    async with open_engine(settings) as engine:
        talk = Talk(engine, settings, wishes)
        tell(_WELCOME, "bold")
        await talk.begin(thread)
        while not talk.leaving and (line := await talk.line()) is not None and line.lower() not in LEAVE:
            if line:
                await talk.heed(line)
        await talk.part()


class Talk:
    """A conversation at a terminal or through a pipe. What was wished for holds for the questions to come."""

    def __init__(self, engine: Engine, settings: Settings, wishes: Wishes) -> None:
        self.engine, self.settings, self.wishes = engine, settings, wishes
        self.thread: str | None = None
        self.leaving = False
        self._at_question = False
        self._noted: set[str] = set()  # of the sources and models at hand, which stay as they are
        self._prompt: Prompt | None = None
        self._warned = False

    def wish(self, **wishes: object) -> None:
        self.wishes = replace(self.wishes, **wishes)  # type: ignore[arg-type]  # the fields of Wishes

    # -- lines --------------------------------------------------------------------------------------------

    async def line(self) -> str | None:
        """The next line; None at the end. Ctrl-C twice is one."""
        try:
            line = await self._typed() if can_ask() else _piped()
        except EOFError:
            return None
        except KeyboardInterrupt:
            if self._warned or not can_ask():
                return None
            self._warned = True
            tell("Ctrl-C again, or Ctrl-D, ends the conversation.")
            return ""
        self._warned = False
        return line.strip()

    async def _typed(self) -> str:
        tell("")
        return await self.prompt.line("you> ")

    @property
    def prompt(self) -> "Prompt":
        if self._prompt is None:
            from assay.cli.prompting import Prompt

            folder = self.settings.data_dir
            history = folder / HISTORY if folder.is_dir() else None
            self._prompt = Prompt(history=history, commands=MEANINGS)
        return self._prompt

    async def agrees(self, question: str) -> bool:
        """A word between two questions, which is not kept in the history. Ctrl-C and Ctrl-D are a no."""
        from assay.cli.prompting import Prompt

        try:
            return (await Prompt().line(question)).strip().lower() in ("y", "yes")
        except (EOFError, KeyboardInterrupt):
            return False

    async def heed(self, line: str) -> None:
        """A command or a question. What fails is told and forgotten; the conversation goes on."""
        try:
            if is_command(line):
                await carry_out(self, line)
            elif not await self._something_open():
                await self.ask(said(line))
        except AssayError as error:
            tell(f"assay: {one_line(error.message)}\n       {one_line(in_chat(error.help))}".rstrip())

    async def _beside(self, line: str) -> bool:
        """At a question of a run: a few commands are carried out there, the others come after it."""
        name = line.strip().lower()
        if name in LEAVE:
            self.leaving = True
            raise EOFError
        if not is_command(line):
            return False
        if name == "/help":
            show_help(BESIDE)
            tell("help tells how to answer, Ctrl-D leaves the question open. An answer may begin with //.")
        elif name.split()[0] in BESIDE or name.split()[0] not in MEANINGS:
            await self.heed(line.strip())
        else:
            tell("Answer first, or Ctrl-D leaves it open.")
        return True

    # -- questions ----------------------------------------------------------------------------------------

    async def ask(self, question: str) -> None:
        run = await self.engine.start(question, options(self.settings, self.wishes), thread=self.thread)
        self._finish(run, await self._followed(run))

    async def resume(self, thread: str) -> None:
        """What was stopped, or waits for an answer."""
        told = await told_before(self.engine, thread)
        run = await self.engine.resume(thread)
        self._finish(run, await self._followed(run, told))

    async def follow(self, thread: str, told: int) -> None:
        """A run that goes on by itself. One that was asking is being followed already."""
        if self._at_question:
            return
        run = (await self.engine.threads.runs(thread))[-1]
        self._finish(run, await self._followed(run, told))

    async def _followed(self, run: Run, told: int = 0) -> Outcome:
        async def aside(line: str) -> bool:
            self.thread, self._at_question = run.thread, True
            try:
                return await self._beside(line)
            finally:
                self._at_question = False

        progress = Progress(run, noted=self._noted)
        try:
            return await converse(
                self.engine, run, progress, interactive=self.wishes.interactive, told=told, aside=aside
            )
        except KeyboardInterrupt:  # at one of its questions
            return await self.engine.outcome(run.id)

    def _finish(self, run: Run, outcome: Outcome) -> None:
        self.thread = run.thread
        if outcome.report is not None:
            return show_report(outcome.report, talking=True, noted=self._noted)
        if outcome.questions:
            tell(f"assay: a question is open: {one_line(outcome.questions[0].question)}")
            return None if self.leaving else self._left_open(run, outcome)
        stopped = outcome.run.status is RunStatus.CANCELLED
        tell("Stopped. /resume goes on with it." if stopped else f"assay: {_failed(outcome)}")
        return None

    def _left_open(self, run: Run, outcome: Outcome) -> None:
        if not self.wishes.interactive:
            self._tell_how(run.thread, outcome.questions[0])
            raise typer.Exit(OPEN)
        tell("It stays open: /resume puts it again, /new begins another conversation.")

    @staticmethod
    def _tell_how(thread: str, question: OpenQuestion) -> None:
        tell("\n".join(how_to_answer(thread, question)))

    async def _something_open(self) -> bool:
        """A thread is asked one thing after the other: what it waits for comes first."""
        if not self.thread or not self.wishes.interactive or not await self.engine.open_questions(self.thread):
            return False
        tell("A question of this conversation is still open; it comes first (/new leaves it alone).")
        await self.resume(self.thread)
        return True

    # -- threads ------------------------------------------------------------------------------------------

    async def begin(self, thread: str | None) -> None:
        said = options(self.settings, self.wishes)
        docs = f" · documents {', '.join(one_line(path) for path in self.wishes.docs)}" if self.wishes.docs else ""
        tell(f"depth {said.depth} · mode {said.mode or self.settings.mode}{docs}", "dim")
        if thread:
            await self.open(thread)

    async def open(self, thread: str) -> None:
        found = await self.engine.threads.get(thread)
        self.thread = found.id
        asked = len(await self.engine.threads.runs(found.id))
        tell(f"thread {found.id}, {counted(asked, 'question')} so far: {one_line(found.title)}", "dim")
        if self.wishes.interactive and await self.engine.open_questions(found.id):
            await self.heed("/resume")

    async def part(self) -> None:
        if not self.thread:
            return
        tell(f"This conversation is thread {self.thread}. Go on with: assay chat --thread {self.thread}")
        if questions := await self.engine.open_questions(self.thread):
            self._tell_how(self.thread, questions[0])
            raise typer.Exit(OPEN)


def _piped() -> str:
    """Nothing else is to be done until the next line comes, so waiting may block the event loop."""
    return input()


def in_chat(help: str) -> str:
    """What can be done about something here, where commands of the shell have names of their own."""
    help = re.sub(r"assay resume [0-9a-f]+", "/resume", help)
    return re.sub(r"Ask a new one: assay ask .*", "Ask a new one.", help)


def _failed(outcome: Outcome) -> str:
    return one_line(outcome.run.error or "no answer was made")
