"""Putting a run's questions to the person at the terminal, and handing their answers over."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from assay.cli.dialogue import Dialogue, Said
from assay.cli.lines import is_command, one_line
from assay.cli.lines import said as meant
from assay.cli.screen import item, open_console, tell
from assay.engine import Engine
from assay.errors import AnswerError
from assay.questions import OpenQuestion
from assay.stages.question import ALL, CUSTOM
from assay.text.words import counted

MEANWHILE = {
    "approve": "the run goes on as if it were approved",
    "end": "the run ends with what there is",
    "guess": "the run goes on with its best guess",
}
_SETTLING = 10  # looks, half a second apart, until the timer's answer has been taken


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


Aside = Callable[[str], Awaitable[bool]]  # a line that may be no answer: whether it was seen to


async def no_commands(line: str) -> bool:
    if is_command(line):
        tell("Commands with a slash belong to assay chat. help tells how to answer; an answer may begin with //.")
    return is_command(line)


async def answered(engine: Engine, thread: str, question: OpenQuestion, aside: Aside = no_commands) -> None:
    """Until an answer was taken, by whomever it was given. EOFError and KeyboardInterrupt: the person will not answer
    now, and the question stays open."""
    asking = _Asking(engine, thread, question, aside)
    asking.introduce()
    try:
        while not await asking.settled():
            pass
    except TimeoutError:
        asking.tell_unsent()
        await asking.time_is_up()
    except (EOFError, KeyboardInterrupt):
        asking.tell_unsent()
        raise


class _Asking:
    """One question at the prompt."""

    def __init__(self, engine: Engine, thread: str, question: OpenQuestion, aside: Aside) -> None:
        from assay.cli.prompting import Prompt

        self._engine, self._thread, self._question, self._aside = engine, thread, question, aside
        self._console, self._prompt, self._dialogue = open_console(stderr=True), Prompt(), dialogue_for(question)

    def introduce(self) -> None:
        shown, due = self._question.shown, self._question.due
        place = f"({shown['number']} of {shown['of']}) " if self._question.kind == "planning" else ""
        self._console.print()
        self._console.print(Text.assemble((place, "dim"), (one_line(self._question.question), "bold")))
        self._dialogue.show(self._console)
        if due is not None:
            then = MEANWHILE[self._question.on_timeout]
            self._console.print(Text(f"Answer {within(due)}, else {then}.", style="dim"))

    async def settled(self) -> bool:
        """One line more: whether it has answered the question, or somebody else has meanwhile."""
        line = await self._prompt.line(self._dialogue.before, until=self._question.due)
        if await self._aside(line):
            return not await self._is_open()
        said = self._dialogue.take(meant(line))
        if said.told:
            self._console.print(said.told, style="cyan")
        if said.again:
            self._dialogue.show(self._console)
        return said.answer is not None and await self._taken(said.answer)

    async def _taken(self, answer: Any) -> bool:
        try:
            await self._engine.answer(self._thread, self._question.id, answer)
        except AnswerError as error:
            tell(f"{error.message.rstrip('.')}. {error.help}")
            if await self._is_open():
                return False
            self.tell_unsent()
        return True

    def tell_unsent(self) -> None:
        if self._dialogue.unsent:
            were = "was" if self._dialogue.unsent == 1 else "were"
            tell(f"{counted(self._dialogue.unsent, 'change')} of yours {were} not sent.")

    async def time_is_up(self) -> None:
        tell(f"Time is up: {MEANWHILE[self._question.on_timeout]}.")
        for _ in range(_SETTLING):
            await self._engine.settle_overdue()
            if not await self._is_open():
                return
            await asyncio.sleep(0.5)

    async def _is_open(self) -> bool:
        return any(self._question.id == other.id for other in await self._engine.open_questions(self._thread))


def dialogue_for(question: OpenQuestion) -> Dialogue:
    if not question.kind.startswith("approve_"):
        return Choice(question, at_prompt=True)
    from assay.cli.approving import Approval
    from assay.cli.planning import PlanEditor

    return PlanEditor(question) if question.kind == "approve_plan" and "plan" in question.shown else Approval(question)


def within(due: datetime) -> str:
    seconds = (due - datetime.now(UTC)).total_seconds()
    if seconds < 90:
        return f"within {counted(max(round(seconds), 0), 'second')}"
    return (
        f"within {counted(round(seconds / 60), 'minute')}" if seconds < 5400 else f"by {due.astimezone():%H:%M, %d %b}"
    )


def how_to_answer(thread: str, question: OpenQuestion) -> tuple[str, str]:
    """What to tell who leaves a question open."""
    answer = "approve" if question.kind.startswith("approve_") else "ANSWER"
    return f"Answer it in a terminal with: assay resume {thread}", f"or with: assay review answer {thread} {answer}"


class Choice:
    """A question with options, or none; own words always do."""

    unsent = 0

    def __init__(self, question: OpenQuestion, *, at_prompt: bool = False) -> None:
        self.before = "> "
        self._at_prompt = at_prompt
        self._options = question.options
        self._listed = [option for option in question.options if option not in (ALL, CUSTOM)]
        self._several = ALL in question.options
        self._free = False  # Custom was chosen, so that a number is an answer too

    def show(self, console: Console) -> None:
        for number, option in enumerate(self._options, 1):
            console.print(item(f"{number}.", Text(one_line(option)), 2))
        if self._several:
            console.print(Text("Several are chosen like this: 1,3", style="dim"))

    def take(self, line: str) -> Said:
        line = line.strip()
        if not line or line.lower() in ("help", "?"):
            return Said(told=f"{self._how}{' Ctrl-D leaves the question open.' if self._at_prompt else ''}")
        if self._free or not self._options or not re.fullmatch(r"\d+(\s*(,|;|and|\s)\s*\d+)*", line):
            return Said(line)
        numbers = [int(number) for number in re.findall(r"\d{1,9}", line)]
        if not all(1 <= number <= len(self._options) for number in numbers):
            return Said(told=self._how)
        return self._chosen([self._options[number - 1] for number in dict.fromkeys(numbers)])

    def _chosen(self, options: list[str]) -> Said:
        if CUSTOM in options:
            self._free, self.before = True, "Your answer: "
            return Said()
        if ALL in options:
            return Said("; ".join(self._listed))
        if len(options) > 1 and not self._several:
            return Said(told="Only one of them fits here. Choose one, or write your own answer.")
        return Said("; ".join(options))

    @property
    def _how(self) -> str:
        several = ", several as 1,3" if self._several else ""
        choose = f"Choose 1 to {len(self._options)}{several}, or write" if self._options and not self._free else "Write"
        return f"{choose} your own answer."
